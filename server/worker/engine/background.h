/* Long operations in the background, where operations are complete when they return.
 *
 * One thread at a time runs the engine. An operation that takes seconds would keep it from everybody else, so the
 * thread that executes one hands the engine over first and takes it back afterwards:
 *
 *     thread 1   turn of A ─ begin ═══ A's operation, without the engine ═══ end ─ rest of A's turn ─ others' turns
 *     I/O thread            └─ turns of B, C: cheap ones ─┐                   ▲
 *     thread 2                                            └─ B's operation of 1 ms, C's turn ─┘
 *
 * In between nobody else executes anything of session A: it wants no turns (ad_session.in_background), and what its
 * operation uses stays where it is. What the operation needs of the engine (scratch memory, an output's memory) it
 * takes the engine back for. Who would move or hand over memory that A holds as well waits until A is back
 * (AD_WAIT_BACKGROUND).
 *
 * Threads in the background share the processors as the system lets them, not by turns. So while several principals
 * have work each has one operation there; a principal that is alone has up to four.
 *
 * An operation in the background can be cancelled: by the end of its session, or by the option operation-time. */
#ifndef AD_SERVER_WORKER_ENGINE_BACKGROUND_H
#define AD_SERVER_WORKER_ENGINE_BACKGROUND_H

#include "protocol/base.h"

struct ad_session;
struct ad_worker;
struct ad_shared;

#define AD_BACKGROUND_NS 5000000 /* what is estimated to take less is executed with the engine, turn by turn */

/* Why an operation is cancelled: ad_session.cancelled. */
enum { AD_CANCEL_NOT, AD_CANCEL_OVER, AD_CANCEL_TIME };

/* Runner: the call that follows is estimated to take so many ns. True: it is made without the engine, and
 * ad__background_end follows it. */
bool ad__background_begin(struct ad_session *s, int64_t ns);
/* operation-time does not hold for it: it is a user's kernel, which has kernel-time. */
void ad__background_exempt(struct ad_session *s);
/* Runner again, when it returns. */
void ad__background_end(struct ad_session *s);
/* In the middle of a call that may be such a one: be the runner for a moment. Nothing happens where it is none. */
void ad__background_take_engine(struct ad_session *s);
void ad__background_release_engine(struct ad_session *s);
/* Runner: an operation of such length may begin now; otherwise the session waits (AD_WAIT_BACKGROUND). */
bool ad__background_has_room(struct ad_session *s, int64_t ns);
/* Runner: a session that is in the background holds this memory. */
bool ad__background_holds(const struct ad_shared *m);
/* I/O thread, now and then: cancel what takes longer than operation-time. True: something is in the background. */
bool ad__background_tick(struct ad_worker *w);
/* Any thread: the session's operation under way is of no use any more. */
void ad__background_cancel(struct ad_session *s, int why);

#endif
