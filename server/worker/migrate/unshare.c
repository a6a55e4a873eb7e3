/* Separating the memory of a principal that migrates from those that stay. Snapshots are copied, which nobody can
 * notice. Memory that both write cannot be in two workers. */
#include <string.h>

#include "server/worker/sharing/exports.h"
#include "server/worker/exec/job.h"
#include "server/worker/migrate/inside.h"

/* A search for memory that two principals share, and what it has found. */
typedef struct search {
    ad_worker *worker;
    ad_worker_session *session; /* session whose buffers are searched */
    const char *who;
    bool found, wait;
    int status;
    ad_fault *fault;
} search;

/* True if the memory and the holder will be in different workers. */
static bool is_shared_across(const ad_shared *m, const char *holder, const char *who) {
    return m && m->home && ad__shared_is_of(m, who) != !strcmp(holder, who);
}

static void report_obstacle(search *l, const char *what) {
    if (l->status) return;
    l->status = ad__fault(l->fault, AD_E_UNSUPPORTED, "%s", what);
}

/* ---- looking ---- */

static bool has_plain_memory(const ad_buffer *b) {
    const ad_block *block = b->shared ? &b->shared->block : &b->block;
    return block->slab && ad__memory_is_plain(block);
}

static void check_buffer(void *user, ad_buffer *b) {
    search *l = user;
    const bool goes = ad__migration_is_of(l->session, l->who);
    if (goes && b->import) report_obstacle(l, "it uses memory of its program (lend): drop those arrays, or copy them");
    if (goes && has_plain_memory(b))
        report_obstacle(l, "programs have memory of it by handles (ipc_handle): drop those arrays");
    if (!is_shared_across(b->shared, l->session->principal, l->who)) return;
    if (b->shared->common)
        report_obstacle(l, "it has an array in common with another user, and both may write it: drop it");
    l->found = true;
    /* An export or a read of the buffer ends first: it has begun with its address. */
    l->wait =
        l->wait || l->session->sharing.exporting || (l->session->reading.active && l->session->reading.buffer == b);
}

static void check_holder(void *user, const char *principal, ad_shared *m) {
    search *l = user;
    if (!is_shared_across(m, principal, l->who)) return;
    report_obstacle(l, strcmp(principal, l->who)
                           ? "another user has published or shared an array of it: ask for that to end"
                           : "it has published or shared an array of another user: end that");
}

int ad__migration_check_shared(ad_worker *w, const char *who, ad_fault *fault) {
    search l = {.worker = w, .who = who, .fault = fault};
    ad__names_holders(w, check_holder, &l);
    ad__capabilities_holders(w, check_holder, &l);
    for (l.session = w->sessions; l.session && !l.status; l.session = l.session->next) {
        if (ad__migration_is_of(l.session, who) && l.session->modules.count)
            report_obstacle(&l, "it has modules of kernels");
        ad__buffers_each(&l.session->buffers, check_buffer, &l);
    }
    return l.status ? l.status : l.wait;
}

/* ---- separating ---- */

static void detach_buffer(void *user, ad_buffer *b) {
    search *l = user;
    if (!l->status && is_shared_across(b->shared, l->session->principal, l->who))
        l->status = ad__shared_detach(l->session, b, l->fault);
}

/* Commit that the session's buffers are copies. If the worker is killed now, no session may use memory that
 * migrates. */
static int commit_detached(search *l) {
    ad_worker_session *s = l->session;
    int status = ad__stream_queues_wait(s, l->fault);
    if (status) return status;
    const bool counts = !s->checkpoint.late || !ad__session_is_recoverable(s) || ad__checkpoint_flush(s, true);
    ad__checkpoint_commit(s);
    if (counts && !ad__sharing_has_deferred_of(s, l->who)) return 0;
    return ad__fault(l->fault, AD_E_UNSUPPORTED, "an array that others have had of it is still in use: try again");
}

static int separate_session(search *l) {
    ad_worker_session *s = l->session;
    l->found = l->wait = false;
    ad__buffers_each(&s->buffers, check_buffer, l);
    const bool defers = !ad__migration_is_of(s, l->who) && ad__sharing_has_deferred_of(s, l->who);
    if (l->status || !(l->found || defers)) return l->status;
    ad__fusion_flush(s);
    ad__buffers_each(&s->buffers, detach_buffer, l);
    return l->status ? l->status : ad__migration_is_of(s, l->who) ? 0 : commit_detached(l);
}

int ad__migration_unshare(ad_worker *w, const char *who, ad_fault *fault) {
    search l = {.worker = w, .who = who, .fault = fault};
    int status = 0;
    for (l.session = w->sessions; l.session && !status; l.session = l.session->next) status = separate_session(&l);
    return status;
}
