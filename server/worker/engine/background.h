/* Long operations in the background, where operations are complete when they return.
 *
 * One thread at a time runs the engine. An operation of seconds would keep all others waiting, so its thread releases
 * the engine first and takes it back afterwards:
 *
 *     thread 1   turn of A ─ begin ═══ A's operation, without the engine ═══ end ─ rest of A's turn ─ others' turns
 *     I/O thread            └─ turns of B, C: cheap ones ─┐                   ▲
 *     thread 2                                            └─ B's operation of 1 ms, C's turn ─┘
 *
 * Meanwhile no other thread executes anything of session A: it wants no turns (ad_worker_session.in_background), and
 * the operands of its operation are not moved. When the operation needs scratch memory or an output's memory, its
 * thread takes the engine back for a moment. Sessions that would move or free memory that A holds, too, wait until A is
 * back (AD_WAIT_BACKGROUND).
 *
 * Background threads share the processors as the operating system decides, not by turns. So each of several principals
 * with work has one background operation; a principal with the engine to itself has up to four.
 *
 * A background operation is cancelled by its client, by the end of its session, or by the option operation-time. */
#ifndef AD_SERVER_WORKER_ENGINE_BACKGROUND_H
#define AD_SERVER_WORKER_ENGINE_BACKGROUND_H

#include "protocol/base.h"

struct ad_worker_session;
struct ad_worker;
struct ad_shared;

#define AD_BACKGROUND_NS 5000000 /* shorter operations (estimated) are executed by the runner, turn by turn */

/* Reasons for cancelling an operation, in ad_worker_session.cancelled. */
enum { AD_CANCEL_NOT, AD_CANCEL_OVER, AD_CANCEL_TIME, AD_CANCEL_ASKED };

/* Runner: announce a call that is estimated to take `ns`. True: the call runs without the engine, and
 * ad__background_end must follow it. */
bool ad__background_begin(struct ad_worker_session *s, int64_t ns);
/* Runner: exempt the operation under way from operation-time. It is a user's kernel, which kernel-time limits. */
void ad__background_exempt(struct ad_worker_session *s);
/* Take the engine back after the call. The caller is the runner again. */
void ad__background_end(struct ad_worker_session *s);
/* Take the engine back in the middle of a background operation, to use its memory. No effect in the foreground. */
void ad__background_take_engine(struct ad_worker_session *s);
/* Release the engine again; no effect in the foreground. */
void ad__background_release_engine(struct ad_worker_session *s);
/* Runner: tell whether an operation of `ns` may begin. Otherwise the session waits (AD_WAIT_BACKGROUND). */
bool ad__background_has_room(struct ad_worker_session *s, int64_t ns);
/* Runner: tell whether a session with a background operation holds this memory. */
bool ad__background_holds(const struct ad_shared *m);
/* I/O thread, periodically: cancel operations that exceed operation-time. True: a background operation exists. */
bool ad__background_tick(struct ad_worker *w);
/* I/O thread: the client cancels what it has sent before this place of its stream. Computations under way are
 * cancelled, and those that have not begun never do. */
void ad__background_cancel_before(struct ad_worker_session *s, uint64_t place);

#endif
