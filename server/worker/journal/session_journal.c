#include "server/worker/journal/session_journal.h"

#include <stdlib.h>
#include <string.h>

#include "server/common/os.h"
#include "server/worker/exec/job.h"
#include "server/worker/sharing/sharing.h"
#include "server/worker/journal/session_journal_inside.h"

#define FIRST_ROWS 64

/* ---- memory of a session ---- */

ad_journal_table *ad__survival_table_new(ad_journal *l, uint64_t capacity) {
    ad_journal_table *t = ad__journal_alloc(l, sizeof *t + capacity * sizeof *t->row);
    if (!t) return NULL;
    memset(t, 0, sizeof *t + capacity * sizeof *t->row);
    t->capacity = capacity;
    return t;
}

ad_journal_log *ad__survival_log_new(ad_journal *l, uint64_t capacity) {
    ad_journal_log *g = ad__journal_alloc(l, sizeof *g + capacity * sizeof *g->entry);
    if (g) g->capacity = capacity;
    return g;
}

void ad__survival_list(ad_session *s) {
    ad_survival *v = &s->survival;
    if (!v->at || v->listed) return;
    v->listed = true;
    pthread_mutex_lock(&s->worker->sessions_lock);
    ad_journal_head *head = ad__journal_head(v->journal);
    v->at->next = head->sessions;
    ad__journal_store(&head->sessions, ad__journal_at(v->journal, v->at));
    pthread_mutex_unlock(&s->worker->sessions_lock);
}

static void seen(void *session, int fd, uint64_t number) {
    const ad_session *s = session;
    int own = ad__os.dup(fd);
    if (own < 0) return;
    const ad_note note = {.kind = AD_NOTE_DESCRIPTOR, .id = s->id, .size = number, .process = s->input.received};
    ad__worker_tell(s->worker, &note, own);
}

void ad__survival_watch(ad_session *s) {
    if (!s->survival.at) return;
    s->windows.descriptors.seen = seen;
    s->windows.descriptors.user = s;
}

void ad__survival_restored(ad_session *s, uint64_t lives) {
    ad__survival_commit(s);
    ad__session_go_on(s);
    if (s->survival.at) s->survival.at->lives = s->queue.count ? lives + 1 : 0; /* nobody dies of nothing */
}

void ad__survival_begin(ad_session *s) {
    ad_survival *v = &s->survival;
    ad_journal *l = s->worker->journal;
    if (!l || !s->comeback.able) return;
    ad_journal_session *at = ad__journal_alloc(l, sizeof *at);
    ad_journal_table *t = ad__survival_table_new(l, FIRST_ROWS);
    for (int i = 0; i < 2; i++) v->log[i] = ad__survival_log_new(l, FIRST_ROWS);
    if (!at || !t || !v->log[0] || !v->log[1]) {
        ad__journal_free(l, at);
        ad__journal_free(l, t);
        for (int i = 0; i < 2; i++) ad__journal_free(l, v->log[i]);
        return;
    }
    *at = (ad_journal_session){
        .id = s->id, .process = s->comeback.process, .key = s->comeback.key, .alive = 1, .grants = s->grants};
    memcpy(at->who, s->principal, sizeof at->who);
    memcpy(at->client, s->client, sizeof at->client);
    memcpy(at->secret, s->comeback.secret, sizeof at->secret);
    at->table = ad__journal_at(l, t);
    v->journal = l;
    v->at = at;
    v->places = 1; /* 0 is none */
    v->next = 1;
    v->late = s->worker->backend->asynchronous;
    s->input.journal = l;
    s->input.at = at;
    ad__survival_watch(s);
    ad__output_write_down(&s->output, l, at);
}

bool ad__survives(const ad_session *s) { return ad__survival_lives(&s->survival); }

bool ad__survives_late(const ad_session *s) { return s->survival.late && ad__survives(s); }

void ad__survival_over(ad_session *s) {
    ad_survival *v = &s->survival;
    if (!v->at) return;
    ad__journal_store(&v->at->alive, 0);
    ad__output_settle(&s->output, UINT64_MAX);
}

static void unlink_session(const ad_session *s) {
    const ad_survival *v = &s->survival;
    pthread_mutex_lock(&s->worker->sessions_lock);
    ad_journal_head *head = ad__journal_head(v->journal);
    uint64_t *link = &head->sessions;
    const ad_at own = ad__journal_at(v->journal, v->at);
    while (*link && *link != own) link = &((ad_journal_session *)ad__journal_get(v->journal, *link))->next;
    if (*link) ad__journal_store(link, v->at->next);
    pthread_mutex_unlock(&s->worker->sessions_lock);
}

void ad__survival_close(ad_session *s) {
    ad_survival *v = &s->survival;
    if (!v->at) return;
    unlink_session(s);
    ad__survival_drop_coming(s);
    ad_journal_table *t = ad__survival_table(v);
    for (uint64_t i = 0; i < t->capacity; i++) ad__survival_forget(v->journal, &t->row[i]);
    ad__journal_free(v->journal, ad__journal_get(v->journal, v->at->state[v->at->current].pending));
    ad__journal_free(v->journal, t);
    for (int i = 0; i < 2; i++) ad__journal_free(v->journal, v->log[i]);
    ad__journal_free(v->journal, v->at);
    ad__poison_release(v->pending);
    free(v->changed.list);
    free(v->taken.list);
    free(v->parked);
    free(v->spare);
    free(v->passed);
    free(v->leaving);
    v->at = NULL;
}

/* ---- what has changed ---- */

static void note(ad_session *s, ad_changed change) {
    ad_survival *v = &s->survival;
    if (!ad__survival_lives(v)) return;
    ad_changed *list = ad__os_grow(v->changed.list, v->changed.count, &v->changed.room, sizeof *list);
    if (!list) {
        ad__survival_over(s);
        return;
    }
    v->changed.list = list;
    list[v->changed.count++] = change;
}

/* It will be written before long, and of many sessions' rows few are in the processor's cache. */
static void foresee_row(const ad_survival *v, uint32_t place) {
    const ad_journal_row *row = &ad__survival_table(v)->row[place];
    __builtin_prefetch(row, 1);
    __builtin_prefetch((const char *)(row + 1) - 1, 1);
}

void ad__survival_note(ad_session *s, ad_journal_kind kind, uint64_t id) { note(s, (ad_changed){id, kind, 0}); }

void ad__survival_gone(ad_session *s, uint32_t place) {
    if (!place) return;
    foresee_row(&s->survival, place);
    note(s, (ad_changed){0, AD_JOURNAL_NONE, place});
}

void ad__survival_freed(ad_session *s, ad_buffer *b) {
    b->changed = true; /* nothing else is to be said of it */
    ad__survival_gone(s, b->place);
}

void ad__survival_touch(ad_session *s, ad_buffer *b) {
    if (!s->survival.at || b->changed || !b->id) return;
    b->changed = true;
    ad__survival_note(s, AD_JOURNAL_BUFFER, b->id);
}

void ad__survival_moved(ad_worker *w, ad_shared *m) {
    for (ad_buffer *b = m->buffers; b; b = b->next_holder) {
        ad_session *s = b->holder;
        ad__survival_touch(s, b);
        if (s->survival.late && s->survival.inside) continue; /* it keeps the memory that it had */
        if (s->held.count || (s->survival.late && !ad__survival_flush(s, true)))
            ad__survival_over(s); /* its state is not that of now */
        else ad__survival_commit(s);
    }
    ad__capabilities_moved(w, m);
    ad__names_moved(w, m);
}

void ad__survival_descriptor_gone(ad_session *s, uint64_t number) {
    const ad_note note = {.kind = AD_NOTE_DESCRIPTOR_GONE, .id = s->id, .size = number};
    if (s->survival.at) ad__worker_tell(s->worker, &note, -1);
}

void ad__survival_passed(ad_session *s, uint64_t number) {
    ad_survival *v = &s->survival;
    if (!ad__survival_lives(v)) {
        ad__survival_descriptor_gone(s, number);
        return;
    }
    uint64_t *list = ad__os_grow(v->passed, v->npassed, &v->passed_room, sizeof *list);
    if (!list) return; /* arrayd has it until the session is over */
    v->passed = list;
    list[v->npassed++] = number;
}

void ad__survival_writes(ad_session *s, ad_buffer *b, uint64_t number, const char *name) {
    ad_survival *v = &s->survival;
    if (!v->at || !b->place) return;
    v->announced = true;
    if (v->at->writing != number) {
        const size_t n = strnlen(name, sizeof v->at->name - 1);
        memcpy(v->at->name, name, n);
        v->at->name[n] = 0;
        v->at->writing = number;
    }
    ad__journal_store(&ad__survival_table(v)->row[b->place].writing, number);
}

void ad__survival_launches(ad_session *s, uint64_t number) {
    if (s->survival.at) ad__journal_store(&s->survival.at->launched, number);
}

void ad__survival_loads(ad_session *s, uint64_t module) {
    if (s->survival.at) ad__journal_store(&s->survival.at->loading, module);
}

void ad__survival_lose(ad_session *s, uint32_t place) {
    ad_survival *v = &s->survival;
    if (v->at && place)
        ad__journal_store(&ad__survival_table(v)->row[place].writing, (s->done + 1) | AD_JOURNAL_REUSED);
}

bool ad__survival_repeats(const ad_session *s, const ad_buffer *b) {
    const ad_survival *v = &s->survival;
    return !v->late || (!b->shared && b->read_at <= v->committed);
}

bool ad__survival_keeps(ad_session *s, ad_buffer *b) {
    ad_survival *v = &s->survival;
    if (!ad__survival_lives(v) || v->late || !v->behind || !b->place) return false;
    ad_buffer **list = ad__os_grow(v->leaving, v->nleaving, &v->leaving_room, sizeof *list);
    if (!list) {
        ad__survival_over(s);
        return false;
    }
    v->leaving = list;
    list[v->nleaving++] = b;
    v->leaving_bytes += b->size;
    return true;
}

void ad__survival_give_leaving(ad_session *s) {
    ad_survival *v = &s->survival;
    while (v->nleaving) ad__buffer_give(s, v->leaving[--v->nleaving]);
    v->leaving_bytes = 0;
}

bool ad__survival_give(ad_session *s) {
    ad_survival *v = &s->survival;
    if (!v->nleaving) return false;
    ad__survival_flush(s, true);
    if (!v->nleaving) return true;
    ad__journal_store(&v->at->fragile, 1); /* something is held */
    ad__survival_give_leaving(s);
    return true;
}
