/* What a worker was executing when it ended, and which message of a client is to blame.
 *
 * A session's place in the journal says which of its messages is at hand: one store before it is executed, one after
 * it. If worker after worker ends with the same message at hand, that message is left out: the third time when they
 * ended by themselves, the eighth when they were killed from outside, which says less of it. What it would have written
 * has an error that says so, who asked is answered by it, and the session goes on.
 *
 * Often more than one message comes into question: several are executed as one, several sessions use a device that
 * completes operations later. Then, before the last death that it takes, each of them is executed alone (careful): no
 * chain, nothing else under way in the worker, and a state after it. So the last death has one at hand.
 *
 * Only whoever runs the engine calls these. */
#ifndef AD_SERVER_WORKER_ENGINE_BLAME_H
#define AD_SERVER_WORKER_ENGINE_BLAME_H

#include "protocol/base.h"
#include "server/common/channel.h"
#include "server/worker/journal/journal.h"

struct ad_session;

/* The message at hand is to be executed alone, and others have operations in the background: the session waits. */
bool ad__blame_must_wait(struct ad_session *s);
/* The message at hand is about to be executed: decides whether that is done carefully, or not at all. */
void ad__blame_begin_message(struct ad_session *s);
/* The message at hand has been executed, or waits. */
void ad__blame_end_message(struct ad_session *s);
/* A turn begins, in which queued operations may be executed without a message at hand; it has ended, or more is known
 * of what is under way. */
void ad__blame_begin_turn(struct ad_session *s);
void ad__blame_update(struct ad_session *s);
/* The message at hand is left out: AD_E_INTERNAL (AD_E_DEVICE_LOST for a kernel of the user), with a fault that says
 * why. 0: it is not. name: of a request, which nothing else names; else "". */
int ad__blame_check(const struct ad_session *s, const char *name, ad_fault *fault);

/* When the worker starts: a signal that ends it says whose message its thread was executing. */
void ad__blame_catch_signals(void);

/* ---- by the next worker ---- */
/* What is known of a session's message when the worker of that journal has ended by `death`, while `candidates`
 * sessions had a message at hand. */
ad_blame ad__blame_recall(const ad_journal_session *at, ad_death death, uint64_t candidates);
/* So many have ended with one of these messages at hand that no other one is to. */
bool ad__blame_suffices(const ad_blame *b);

#endif
