/* Types and functions that the files of migration share. */
#ifndef AD_SERVER_WORKER_MIGRATE_INSIDE_H
#define AD_SERVER_WORKER_MIGRATE_INSIDE_H

#include <string.h>

#include "server/worker/session.h"

typedef enum ad_migration_step {
    AD_MIGRATION_GOING,
    AD_MIGRATION_TOLD, /* arrayd may have the journal: nothing changes until it answers */
    AD_MIGRATION_GONE,
    AD_MIGRATION_REFUSED
} ad_migration_step;

/* I/O thread: a principal that migrates. */
struct ad_migration {
    ad_migration *next;
    char who[AD_PRINCIPAL_SIZE];
    ad_migration_step step;
    ad_stream_arena
        *host; /* copies of its buffers in host memory, whose slabs it has in common with others; NULL: none */
    ad_block *copy;
    size_t copies, room;
};

/* Tell whether a session is the principal's. */
static inline bool ad__migration_is_of(const ad_worker_session *s, const char *who) {
    return !strcmp(s->principal, who);
}

/* ---- unshare.c: memory shared with principals that stay ---- */
/* Runner: check that the principal's memory can be separated. 0: it can; 1: not yet; negative: never, as the fault
 * says. */
int ad__migration_check_shared(ad_worker *w, const char *who, ad_fault *fault);
/* Runner: give each holder of a snapshot that is shared with other principals a copy of its own. */
int ad__migration_unshare(ad_worker *w, const char *who, ad_fault *fault);

/* ---- journal.c ---- */
/* I/O thread, as the runner: write the journal from which another worker goes on with the principal. */
int ad__migration_write_journal(ad_worker *w, ad_migration *p, ad_journal **out, ad_fault *fault);

#endif
