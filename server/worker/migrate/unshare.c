/* What a principal that goes has in common with those who stay. Snapshots become each one's own: nobody sees a
 * difference. Memory that both write into cannot be in two workers. */
#include <string.h>

#include "server/worker/sharing/exports.h"
#include "server/worker/exec/job.h"
#include "server/worker/migrate/migration.h"

/* What is looked for, and found. */
typedef struct look {
    ad_worker *worker;
    ad_session *session; /* whose buffers are looked at */
    const char *who;
    bool found, wait;
    int status;
    ad_fault *fault;
} look;

/* One of the two goes, the other stays. */
static bool crosses(const ad_shared *m, const char *holder, const char *who) {
    return m && m->home && ad__shared_is_of(m, who) != !strcmp(holder, who);
}

static void obstacle(look *l, const char *what) {
    if (l->status) return;
    l->status = ad__fault(l->fault, AD_E_UNSUPPORTED, "%s", what);
}

/* ---- looking ---- */

static bool is_plain(const ad_buffer *b) {
    const ad_block *block = b->shared ? &b->shared->block : &b->block;
    return block->slab && ad__memory_is_plain(block);
}

static void check_buffer(void *user, ad_buffer *b) {
    look *l = user;
    const bool goes = ad__migration_is_of(l->session, l->who);
    if (goes && b->import) obstacle(l, "it uses memory of its program (lend): drop those arrays, or copy them");
    if (goes && is_plain(b)) obstacle(l, "programs have memory of it by handles (ipc_handle): drop those arrays");
    if (!crosses(b->shared, l->session->principal, l->who)) return;
    if (b->shared->common) obstacle(l, "it has an array in common with another user, and both may write it: drop it");
    l->found = true;
    /* What has been begun with its address, or keeps a state from being written, ends first. */
    l->wait = l->wait || l->session->exporting || (l->session->reading.active && l->session->reading.buffer == b);
}

static void check_holder(void *user, const char *principal, ad_shared *m) {
    look *l = user;
    if (!crosses(m, principal, l->who)) return;
    obstacle(l, strcmp(principal, l->who) ? "another user has published or shared an array of it: ask for that to end"
                                          : "it has published or shared an array of another user: end that");
}

int ad__migration_check_shared(ad_worker *w, const char *who, ad_fault *fault) {
    look l = {.worker = w, .who = who, .fault = fault};
    ad__names_holders(w, check_holder, &l);
    ad__capabilities_holders(w, check_holder, &l);
    for (l.session = w->sessions; l.session && !l.status; l.session = l.session->next) {
        if (ad__migration_is_of(l.session, who) && l.session->modules.count) obstacle(&l, "it has modules of kernels");
        ad__buffers_each(&l.session->buffers, check_buffer, &l);
    }
    return l.status ? l.status : l.wait;
}

/* ---- separating ---- */

static void detach(void *user, ad_buffer *b) {
    look *l = user;
    if (!l->status && crosses(b->shared, l->session->principal, l->who))
        l->status = ad__shared_detach(l->session, b, l->fault);
}

/* What was common is nobody's whose memory goes, also for who goes on with the session if this worker is killed now. */
static int settle(look *l) {
    ad_session *s = l->session;
    int status = ad__session_status(s, ad__stream_queues_wait(s, l->fault), l->fault);
    if (status) return status;
    const bool counts = !s->checkpoint.late || !ad__session_is_recoverable(s) || ad__checkpoint_flush(s, true);
    ad__checkpoint_commit(s);
    if (counts && !ad__checkpoint_has_deferred_of(s, l->who)) return 0;
    return ad__fault(l->fault, AD_E_UNSUPPORTED, "an array that others have had of it is still in use: try again");
}

static int separate(look *l) {
    ad_session *s = l->session;
    l->found = l->wait = false;
    ad__buffers_each(&s->buffers, check_buffer, l);
    const bool parks = !ad__migration_is_of(s, l->who) && ad__checkpoint_has_deferred_of(s, l->who);
    if (l->status || !(l->found || parks)) return l->status;
    ad__fusion_flush(s);
    ad__buffers_each(&s->buffers, detach, l);
    return l->status ? l->status : ad__migration_is_of(s, l->who) ? 0 : settle(l);
}

int ad__migration_unshare(ad_worker *w, const char *who, ad_fault *fault) {
    look l = {.worker = w, .who = who, .fault = fault};
    int status = 0;
    for (l.session = w->sessions; l.session && !status; l.session = l.session->next) status = separate(&l);
    return status;
}
