/* A principal parts from the others: with its first kernel it gets a worker of its own (docs/design.md, "A trust
 * domain"), which goes on with its sessions, names and capabilities.
 *
 * Only in a worker that principals share (ad_worker.shared). The session that wants something that nobody else's memory
 * is to be beside waits, and arrayd starts the other worker. When that is there, no session of the principal goes on;
 * as soon as the device has done what they gave it, and nothing is held in common with other principals any more, all
 * they have is written down as a journal of its own, as a worker that was killed would have left it. Memory stays where
 * it is: a slab is one principal's, and arrayd has the descriptors. Once arrayd has the journal what is left here is
 * given back, with nobody being told. If that cannot be, the sessions go on as if nothing had been asked. */
#ifndef AD_SERVER_WORKER_MIGRATE_MIGRATION_H
#define AD_SERVER_WORKER_MIGRATE_MIGRATION_H

#include <string.h>

#include "server/worker/net/session.h"

typedef enum ad_migration_step {
    AD_MIGRATION_GOING,
    AD_MIGRATION_TOLD, /* arrayd may have it: nothing changes until it has answered */
    AD_MIGRATION_GONE,
    AD_MIGRATION_REFUSED
} ad_migration_step;

/* A principal that is on its way; the I/O thread's. */
struct ad_migration {
    ad_migration *next;
    char who[AD_PRINCIPAL_SIZE];
    ad_migration_step step;
    ad_stream_arena
        *host; /* copies of its buffers that are in host memory: what others have lies beside those; NULL: none */
    ad_block *copy;
    size_t copies, room;
};

static inline bool ad__migration_is_of(const ad_session *s, const char *who) { return !strcmp(s->principal, who); }

/* Runner, of a session that parts: the message must wait until its principal has a worker of its own. False: it is
 * executed here, unless it is refused, with a fault that says why. */
bool ad__migration_must_wait(ad_session *s, const ad_message *m, ad_fault *refused);

/* What the session has begun it must end where it is: the memory may be another one then. */
bool ad__migration_ends_session(const ad_session *s);

/* I/O thread: notes PART, PART_REFUSED and PART_DONE. */
void ad__migration_take_note(ad_worker *w, const ad_note *note);
/* I/O thread, after each turn of the loop: go on with those that are on their way. */
void ad__migration_advance(ad_worker *w);
void ad__migration_close(ad_worker *w);

/* ---- unshare.c: what they have in common with others. Who runs the engine. ---- */
/* 0: it can be separated, 1: in a moment; negative: not at all, as the fault says. */
int ad__migration_check_shared(ad_worker *w, const char *who, ad_fault *fault);
/* Each of those who have a snapshot in common gets its own. */
int ad__migration_unshare(ad_worker *w, const char *who, ad_fault *fault);

/* ---- journal.c ---- */
/* All that another worker needs to go on with the principal. Who runs the engine, and is the I/O thread. */
int ad__migration_write_journal(ad_worker *w, ad_migration *p, ad_journal **out, ad_fault *fault);

#endif
