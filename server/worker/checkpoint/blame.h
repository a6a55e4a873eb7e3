/* Blame: which message of a client is to blame when a worker ends.
 *
 * A session's row in the journal says which of its messages is at hand. It is stored before a message is executed, and
 * cleared after it:
 *
 *     worker 1   ... at_hand = m ─ executes m ─ crash
 *     worker 2   recovers ... at_hand = m ─ executes m ─ crash
 *     worker 3   recovers ... at_hand = m ─ executes m ─ crash
 *     worker 4   recovers ... leaves m out: its outputs get an error, and the session goes on
 *
 * A message is left out after three crashes with it at hand. Kills from outside say less: it takes eight deaths then.
 *
 * Often several messages come into question: a chain executes many as one, and several sessions use an asynchronous
 * device. So before the last of these deaths each suspect is executed carefully. It runs by itself, with nothing else
 * under way in the worker, and is followed by a checkpoint. Then the last death has a single message at hand.
 *
 * Runner only, except where a comment says otherwise. */
#ifndef AD_SERVER_WORKER_CHECKPOINT_BLAME_H
#define AD_SERVER_WORKER_CHECKPOINT_BLAME_H

#include "protocol/base.h"
#include "server/common/channel.h"
#include "server/worker/journal/journal.h"

struct ad_worker_session;

/* Tell whether the message at hand must be executed by itself while background operations exist. Then the session
 * waits. */
bool ad__blame_must_wait(struct ad_worker_session *s);
/* Record that the message at hand is about to be executed. Decides whether that is done carefully, or not at all. */
void ad__blame_begin_message(struct ad_worker_session *s);
/* Record that the message at hand has been executed, or has to wait. */
void ad__blame_end_message(struct ad_worker_session *s);
/* Record that a turn begins, which may execute queued operations without a message at hand. */
void ad__blame_begin_turn(struct ad_worker_session *s);
/* Update the journal after a turn, or when more is known of what is under way. */
void ad__blame_update(struct ad_worker_session *s);
/* Check whether the message at hand is left out. AD_E_INTERNAL (for a user's kernel AD_E_DEVICE_LOST): it is, and the
 * fault says why; AD_E_CANCELLED: its client has cancelled it; 0: it is not. name: of a request that the fault must
 * name; otherwise "". */
int ad__blame_check(const struct ad_worker_session *s, const char *name, ad_fault *fault);

/* I/O thread, at start: install signal handlers that record which session's message crashed its thread. */
void ad__blame_catch_signals(void);

/* ---- for the next worker ---- */
/* Combine what the journal knew of a session's message with the worker's `death`. candidates: sessions that had a
 * message at hand then. */
ad_blame ad__blame_recall(const ad_journal_session *at, ad_death death, uint64_t candidates);
/* Tell whether enough workers have ended to leave these messages out. */
bool ad__blame_suffices(const ad_blame *b);

#endif
