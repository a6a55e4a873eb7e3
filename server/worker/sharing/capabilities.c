/* Capabilities: a session that holds a buffer makes one, and other sessions of its principal attach the buffer with
 * it. It ends when it is used up, expires or is revoked. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "server/common/os.h"
#include "server/worker/handlers.h"
#include "server/worker/sharing/sharing.h"
#include "server/worker/session/session.h"
#include "server/worker/io/reply.h"

static ad_issued_capability **get_bucket(ad_worker *w, uint64_t half) {
    return &w->sharing->capability[half % AD_CAPABILITY_BUCKETS];
}

/* Find the link to a capability of the session's principal. NULL: there is none. */
static ad_issued_capability **find_capability(ad_worker_session *s, const uint64_t half[2]) {
    for (ad_issued_capability **at = get_bucket(s->worker, half[0]); *at; at = &(*at)->next)
        if ((*at)->half[0] == half[0] && (*at)->half[1] == half[1])
            return strcmp((*at)->holder.principal, s->principal) ? NULL : at;
    return NULL;
}

/* Take a capability from the table, so that nobody finds it. */
static ad_issued_capability *remove_capability(ad_worker *w, ad_issued_capability **at) {
    ad_issued_capability *c = *at;
    *at = c->next;
    w->sharing->capabilities--;
    if (c->owner) c->owner->sharing.capabilities--;
    return c;
}

static void free_capability(ad_holder *h) { free(h); }

static void drop_capability(ad_worker *w, ad_issued_capability **at) {
    ad_issued_capability *c = remove_capability(w, at);
    ad__holder_end(w, &c->holder);
    free(c);
}

static void write_capability(ad_worker *w, ad_holder *holder) {
    const ad_issued_capability *c = (const ad_issued_capability *)holder;
    ad_journal_holder *h = ad__holder_make_row(w, holder, AD_HOLDER_CAPABILITY);
    if (!h) return;
    h->memory.readonly = c->readonly;
    memcpy(h->half, c->half, sizeof h->half);
    h->uses = h->left = c->uses;
    h->owner = c->owner ? c->owner->id : 0;
    h->expires = c->expires;
    h->linger = c->linger;
    holder->place = ad__journal_hold(w->journal, h);
}

static void add_capability(ad_worker *w, ad_issued_capability *c) {
    ad_sharing *all = w->sharing;
    ad_issued_capability **at = get_bucket(w, c->half[0]);
    c->next = *at;
    *at = c;
    if (c->owner) c->owner->sharing.capabilities++;
    all->capabilities++;
    if (c->expires < all->due) all->due = c->expires;
    ad__holder_begin(w, &c->holder);
}

int ad__capability_restore(ad_worker *w, const ad_journal_holder *h, ad_shared *shared) {
    ad_issued_capability *c = ad__os.calloc(1, sizeof *c);
    if (!c) return AD_E_MEMORY;
    *c = (ad_issued_capability){
        .half = {h->half[0], h->half[1]},
        .holder = {.shared = shared, .write = write_capability, .free = free_capability, .by = h->by, .at = h->at},
        .owner = h->owner ? ad__session_find(w, h->owner) : NULL,
        .readonly = h->memory.readonly,
        .uses = h->by ? h->left : h->uses,
        .expires = h->expires,
        .linger = h->linger};
    memcpy(c->holder.principal, h->who, sizeof c->holder.principal - 1);
    if (!c->owner && h->owner && c->expires > ad__os_now() + c->linger) c->expires = ad__os_now() + c->linger;
    ad__shared_hold(shared, c->holder.principal);
    if (h->by && !h->left) ad__holder_take_up_ended(w, &c->holder);
    else add_capability(w, c);
    return 0;
}

void ad__capabilities_holders(const ad_worker *w, ad_holder_visit visit, void *user) {
    for (int i = 0; w->sharing->capabilities && i < AD_CAPABILITY_BUCKETS; i++)
        for (const ad_issued_capability *c = w->sharing->capability[i]; c; c = c->next)
            visit(user, c->holder.principal, c->holder.shared);
}

void ad__capabilities_part(ad_worker *w, const char *principal) {
    for (int i = 0; w->sharing->capabilities && i < AD_CAPABILITY_BUCKETS; i++)
        for (ad_issued_capability **at = &w->sharing->capability[i]; *at;)
            if (strcmp((*at)->holder.principal, principal)) at = &(*at)->next;
            else drop_capability(w, at);
}

static int64_t add_milliseconds(int64_t now, uint64_t milliseconds, double most) {
    double ns = (double)milliseconds * 1e6;
    return now + (int64_t)(ns < most * 1e9 ? ns : most * 1e9);
}

static int make_capability(ad_worker_session *s, ad_buffer *b, const ad_message *m, ad_issued_capability **out,
                           ad_fault *fault) {
    double most = s->worker->config.share_lease;
    if (s->sharing.capabilities == AD_CAPABILITIES)
        return ad__fault(fault, AD_E_LIMIT, "a session has at most %d capabilities", AD_CAPABILITIES);
    ad_issued_capability *c = ad__os.calloc(1, sizeof *c);
    if (!c) return ad__fault(fault, AD_E_MEMORY, "out of host memory");
    ad_shared *shared = ad__shared_give(s, b, fault);
    int status = shared ? 0 : fault->code;
    if (!status && getrandom(c->half, sizeof c->half, 0) != (ssize_t)sizeof c->half)
        status = ad__fault(fault, AD_E_SYSTEM, "no random numbers");
    if (status) {
        if (shared) ad__shared_release(s->worker, shared, s->principal);
        free(c);
        return status;
    }
    c->holder.shared = shared;
    c->holder.write = write_capability;
    c->holder.free = free_capability;
    c->owner = s;
    c->readonly = b->readonly;
    c->uses = m->u[2];
    c->expires = m->u[3] ? add_milliseconds(ad__os_now(), m->u[3], most) : INT64_MAX;
    c->linger = add_milliseconds(0, m->u[4], most);
    memcpy(c->holder.principal, s->principal, sizeof c->holder.principal);
    *out = c;
    return 0;
}

int ad__handle_share(ad_worker_session *s, ad_message *m, ad_fault *fault) {
    ad_sharing *all = s->worker->sharing;
    ad_issued_capability *c = NULL;
    ad_buffer *b = NULL;
    int status = ad__sharing_begin(s, m, AD_GRANT_EXPORTS, fault);
    if (!status) status = ad__shared_buffer(s, m->u[1], "share", &b, fault);
    if (!status) status = make_capability(s, b, m, &c, fault);
    if (status) return status;
    add_capability(s->worker, c);
    int64_t values[3] = {(int64_t)c->half[0], (int64_t)c->half[1], (int64_t)all->number};
    ad__reply_ints(s, m->u[0], 3, values);
    return 0;
}

/* Count a use, unless a worker before has counted it. */
static void count_use(ad_worker_session *s, ad_issued_capability **at) {
    ad_issued_capability *c = *at;
    if (!c->uses || ad__holder_is_used(s, &c->holder)) return;
    if (--c->uses) ad__holder_use(s, &c->holder, c->uses);
    else ad__holder_end_late(s, &remove_capability(s->worker, at)->holder);
}

/* Find the capability that the message at hand has used up in a worker before. NULL: there is none. */
static ad_issued_capability *find_used_up(const ad_worker_session *s, const uint64_t half[2]) {
    ad_issued_capability *c = (ad_issued_capability *)ad__holder_find_ended(s, write_capability);
    return c && c->half[0] == half[0] && c->half[1] == half[1] ? c : NULL;
}

/* Make a buffer of a capability's memory, and answer. */
static int join_capability(ad_worker_session *s, const ad_message *m, const ad_issued_capability *c, ad_fault *fault) {
    const ad_shared *shared = c->holder.shared;
    const int status = ad__shared_join(s, c->holder.shared, m->u[1], c->readonly, fault);
    if (status) return status;
    const int64_t values[3] = {shared->poison ? -1 : (int64_t)shared->size, c->readonly ? 2 : shared->common,
                               shared->home ? shared->home->gpu->index : 0};
    ad__reply_ints(s, m->u[0], 3, values);
    return 0;
}

int ad__handle_attach(ad_worker_session *s, ad_message *m, ad_fault *fault) {
    int status = ad__sharing_begin(s, m, 0, fault);
    ad_issued_capability **at = status ? NULL : find_capability(s, &m->u[2]);
    if (status) return status;
    if (at && (*at)->expires <= ad__os_now()) {
        drop_capability(s->worker, at);
        at = NULL;
    }
    ad_issued_capability *c = at ? *at : find_used_up(s, &m->u[2]);
    if (!c)
        return ad__fault(fault, AD_E_STALE,
                         "attach: there is no such capability: it was used up or revoked, its lease is over, its "
                         "maker has ended, or it belongs to another user");
    if (c->uses && !ad__holder_await_use(s, &c->holder)) return AD_WAITS;
    status = join_capability(s, m, c, fault);
    if (status) return status;
    if (at) count_use(s, at);
    else ad__holder_end_late(s, &c->holder);
    return 0;
}

int ad__handle_revoke(ad_worker_session *s, ad_message *m, ad_fault *fault) {
    ad_issued_capability **at = find_capability(s, m->u);
    (void)fault;
    if (at) drop_capability(s->worker, at);
    return 0;
}

static void clear_owner(ad_worker *w, const ad_issued_capability *c) {
    ad_journal_holder *h = w->journal ? ad__journal_holder(w->journal, c->holder.place) : NULL;
    if (!h) return;
    ad__journal_store((uint64_t *)(void *)&h->expires, (uint64_t)c->expires);
    ad__journal_store(&h->owner, 0);
}

void ad__capabilities_end(ad_worker *w, ad_worker_session *s) {
    int64_t now = ad__os_now();
    for (int i = 0; w->sharing->capabilities && i < AD_CAPABILITY_BUCKETS; i++)
        for (ad_issued_capability **at = &w->sharing->capability[i]; *at;) {
            ad_issued_capability *c = *at;
            if (s && c->owner == s) {
                c->owner = NULL;
                if (c->expires > now + c->linger) c->expires = now + c->linger;
                if (c->expires < w->sharing->due) w->sharing->due = c->expires;
                clear_owner(w, c);
            }
            if (!s || (!c->owner && c->expires <= now)) drop_capability(w, at);
            else at = &c->next;
        }
}

int64_t ad__capabilities_expire(ad_worker *w, int64_t now) {
    int64_t next = INT64_MAX;
    for (int i = 0; w->sharing->capabilities && i < AD_CAPABILITY_BUCKETS; i++)
        for (ad_issued_capability **at = &w->sharing->capability[i]; *at;) {
            if ((*at)->expires <= now) {
                drop_capability(w, at);
                continue;
            }
            if ((*at)->expires < next) next = (*at)->expires;
            at = &(*at)->next;
        }
    return next;
}
