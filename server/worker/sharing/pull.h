/* Arrays of other servers.
 *
 *     session here                    arrayd                      arrayd-pull                  the other server
 *       pull: waits ──note PULL──────▶ starts a program ─────────▶ a session here, of the
 *                                                                  same principal, and one ──▶ attaches
 *                                                                  copies ◀───────────────────  elements
 *       attaches ◀──note PULLED─────── passes its answer on ◀───── a capability, ends
 *
 * The worker opens no connection. A message that another worker executes again asks again, and arrayd, which knows it
 * by its place, gives the same answer. */
#ifndef AD_SERVER_WORKER_SHARING_PULL_H
#define AD_SERVER_WORKER_SHARING_PULL_H

#include "server/worker/session.h"

/* I/O thread: take arrayd's answer. One that nobody waits for any more is dropped. */
void ad__pull_take_answer(ad_worker_session *s, const ad_note *note);

#endif
