/* Migration: with its first kernel a principal gets a worker of its own (docs/internals/migration.md), which
 * goes on with its sessions, names and capabilities.
 *
 *     session              this worker                arrayd                new worker
 *     needs a kernel ──▶ waits, asks ─────────────▶ starts it ───────────▶ begins
 *                        halts the principal ◀───── note
 *                        device idle, unshared
 *                        writes a journal ────────▶ passes it on ────────▶ recovers sessions
 *                        frees what it had ◀─────── note
 *
 * Only a worker that principals share (ad_worker.shared) does so. The session whose message needs a worker of its own
 * waits, and arrayd starts that worker. Then the sessions of the principal are halted. Once the device has completed
 * their operations, and they share no memory with other principals, their state is written. It becomes a journal of its
 * own, like that of a worker that was killed. Memory stays where it is: a slab has one principal, and arrayd has the
 * descriptors.
 *
 * When arrayd has the journal, this worker frees what the principal had, and tells nobody. If the principal cannot
 * migrate, its sessions go on as before. */
#ifndef AD_SERVER_WORKER_MIGRATE_MIGRATION_H
#define AD_SERVER_WORKER_MIGRATE_MIGRATION_H

#include "server/worker/session.h"

/* Runner: true if the message must wait until the session's principal has a worker of its own. False: the session
 * executes it here, unless `refused` has a fault. */
bool ad__migration_must_wait(ad_worker_session *s, const ad_message *m, ad_fault *refused);

/* True if the session must complete an export or a read first, because unsharing may change that memory's address. */
bool ad__migration_ends_session(const ad_worker_session *s);

extern const ad_migration_hooks ad__migration_hooks;

/* I/O thread: handle a note about a migration. */
void ad__migration_take_note(ad_worker *w, const ad_note *note);
/* I/O thread, after each turn of the loop: advance the migrations. */
void ad__migration_advance(ad_worker *w);
void ad__migration_close(ad_worker *w);

#endif
