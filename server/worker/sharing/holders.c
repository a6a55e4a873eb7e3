#include "server/worker/sharing/holders.h"

#include <string.h>

#include "server/worker/session/session.h"
#include "server/worker/sharing/sharing.h"

void ad__holder_begin(ad_worker *w, ad_holder *h) {
    ad_shared *m = h->shared;
    h->link = &m->others;
    h->next = m->others;
    if (h->next) h->next->link = &h->next;
    m->others = h;
    if (w->journal && h->write) h->write(w, h);
}

void ad__holder_end(ad_worker *w, ad_holder *h) {
    *h->link = h->next;
    if (h->next) h->next->link = h->link;
    if (w->journal && h->write) ad__journal_release(w->journal, h->place);
    ad__shared_release(w, h->shared, h->principal);
}

ad_journal_holder *ad__holder_make_row(const ad_worker *w, const ad_holder *holder, ad_holder_kind kind) {
    ad_journal_holder *h = ad__journal_alloc(w->journal, sizeof *h);
    if (!h) return NULL;
    *h = (ad_journal_holder){
        .kind = kind, .memory = ad__checkpoint_memory_row(w, holder->shared), .by = holder->by, .at = holder->at};
    memcpy(h->who, holder->principal, sizeof h->who);
    if (!holder->shared->poison || h->memory.poison) return h;
    ad__journal_free(w->journal, h);
    return NULL;
}

void ad__holders_write(ad_worker *w, ad_shared *m) {
    for (ad_holder *h = w->journal ? m->others : NULL; h; h = h->next) {
        const uint32_t before = h->place;
        if (!h->write) continue;
        h->place = 0;
        h->write(w, h);
        ad__journal_release(w->journal, before);
    }
}

/* ---- holders that a message uses or ends ---- */

void ad__holder_use(ad_worker_session *s, ad_holder *h, uint64_t left) {
    ad_journal_holder *row = s->worker->journal ? ad__journal_holder(s->worker->journal, h->place) : NULL;
    h->by = s->id;
    h->at = s->messages.place;
    if (!row) return;
    ad__journal_store(&row->by, 0);
    ad__journal_store(&row->at, h->at);
    ad__journal_store(&row->left, left);
    ad__journal_store(&row->by, h->by);
    if (left) ad__journal_store(&row->uses, left);
}

bool ad__holder_is_used(const ad_worker_session *s, const ad_holder *h) {
    return h->by == s->id && h->at == s->messages.place;
}

bool ad__holder_await_use(ad_worker_session *s, const ad_holder *h) {
    if (!h->by || h->by == s->id || ad__checkpoint_has_message(s->worker, h->by, h->at)) return true;
    ad__session_await(s, AD_WAIT_USE, NULL, NULL);
    s->wait.session = h->by;
    s->wait.place = h->at;
    return false;
}

static void list_ended(ad_worker *w, ad_holder *h) {
    h->ended = w->sharing->over;
    w->sharing->over = h;
}

/* Free the first holder at a link of the list of those that have ended. */
static void free_ended(ad_worker *w, ad_holder **link) {
    ad_holder *h = *link;
    *link = h->ended;
    ad__holder_end(w, h);
    h->free(h);
}

static void release_ended(ad_worker_session *s, void *holder) {
    ad_holder **link = &s->worker->sharing->over;
    while (*link != holder) link = &(*link)->ended;
    free_ended(s->worker, link);
}

void ad__holder_end_late(ad_worker_session *s, ad_holder *h) {
    const bool listed = h->by && ad__holder_is_used(s, h) && ad__holder_find_ended(s, h->write) == h;
    if (!listed) {
        ad__holder_use(s, h, 0);
        list_ended(s->worker, h);
    }
    h->deferred = ad__checkpoint_defer_release(s, release_ended, h, false);
    if (!h->deferred) release_ended(s, h);
}

ad_holder *ad__holder_find_ended(const ad_worker_session *s, ad_holder_write *kind) {
    ad_holder *h = s->worker->sharing->over;
    while (h && !(h->write == kind && ad__holder_is_used(s, h))) h = h->ended;
    return h;
}

/* True if the session's committed checkpoint has the message at that place in its stream. */
static bool is_behind(const ad_worker_session *s, uint64_t place) {
    return place < s->checkpoint.frame_end + AD_FRAME_HEADER + s->checkpoint.resumed.skip;
}

void ad__holder_take_up_ended(ad_worker *w, ad_holder *h) {
    const ad_worker_session *s = ad__session_find(w, h->by);
    if (s && !is_behind(s, h->at)) {
        list_ended(w, h);
        ad__holder_begin(w, h);
        return;
    }
    ad__shared_release(w, h->shared, h->principal);
    h->free(h);
}

void ad__holders_forget(ad_worker *w, const ad_worker_session *s) {
    for (ad_holder **link = &w->sharing->over; *link;)
        if (!s || (!(*link)->deferred && (*link)->by == s->id)) free_ended(w, link);
        else link = &(*link)->ended;
}
