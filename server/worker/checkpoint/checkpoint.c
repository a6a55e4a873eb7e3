#include "server/worker/checkpoint/checkpoint.h"

#include <stdlib.h>
#include <string.h>

#include "server/common/os.h"
#include "server/worker/exec/job.h"
#include "server/worker/sharing/sharing.h"
#include "server/worker/checkpoint/inside.h"
#include "server/worker/session.h"
#include "server/worker/checkpoint/buffer_free.h"

#define FIRST_ROWS 64

/* ---- memory of a session ---- */

ad_journal_table *ad__checkpoint_table_new(ad_journal *l, uint64_t capacity) {
    ad_journal_table *t = ad__journal_alloc(l, sizeof *t + capacity * sizeof *t->row);
    if (!t) return NULL;
    memset(t, 0, sizeof *t + capacity * sizeof *t->row);
    t->capacity = capacity;
    return t;
}

ad_journal_log *ad__checkpoint_log_new(ad_journal *l, uint64_t capacity) {
    ad_journal_log *g = ad__journal_alloc(l, sizeof *g + capacity * sizeof *g->entry);
    if (g) g->capacity = capacity;
    return g;
}

void ad__checkpoint_list(ad_session *s) {
    ad_checkpoint *v = &s->checkpoint;
    if (!v->at || v->listed) return;
    v->listed = true;
    pthread_mutex_lock(&s->worker->sessions_lock);
    ad_journal_head *head = ad__journal_head(v->journal);
    v->at->next = head->sessions;
    ad__journal_store(&head->sessions, ad__journal_at(v->journal, v->at));
    pthread_mutex_unlock(&s->worker->sessions_lock);
}

static void pass_descriptor(void *session, int fd, uint64_t number) {
    const ad_session *s = session;
    int own = ad__os.dup(fd);
    if (own < 0) return;
    const ad_note note = {.kind = AD_NOTE_DESCRIPTOR, .id = s->id, .size = number, .process = s->input.received};
    ad__worker_tell(s->worker, &note, own);
}

void ad__checkpoint_watch_descriptors(ad_session *s) {
    if (!s->checkpoint.at) return;
    s->windows.descriptors.seen = pass_descriptor;
    s->windows.descriptors.user = s;
}

/* Give the session an entry in the journal. Without memory it is not journaled. */
static int open_checkpoint(ad_session *s, const ad_note *note) {
    ad_checkpoint *v = &s->checkpoint;
    ad_journal *l = s->worker->journal;
    (void)note;
    if (!l || !s->comeback.able) return 0;
    ad_journal_session *at = ad__journal_alloc(l, sizeof *at);
    ad_journal_table *t = ad__checkpoint_table_new(l, FIRST_ROWS);
    for (int i = 0; i < 2; i++) v->log[i] = ad__checkpoint_log_new(l, FIRST_ROWS);
    if (!at || !t || !v->log[0] || !v->log[1]) {
        ad__journal_free(l, at);
        ad__journal_free(l, t);
        for (int i = 0; i < 2; i++) ad__journal_free(l, v->log[i]);
        return 0;
    }
    *at = (ad_journal_session){
        .id = s->id, .process = s->comeback.process, .key = s->comeback.key, .alive = 1, .grants = s->grants};
    memcpy(at->who, s->principal, sizeof at->who);
    memcpy(at->client, s->client, sizeof at->client);
    memcpy(at->secret, s->comeback.secret, sizeof at->secret);
    at->table = ad__journal_at(l, t);
    v->journal = l;
    v->at = at;
    v->rows.places = 1; /* place 0 stands for none */
    v->next = 1;
    v->late = s->worker->backend->asynchronous;
    s->input.journal = l;
    s->input.at = at;
    ad__checkpoint_watch_descriptors(s);
    ad__output_write_down(&s->output, l, at);
    return 0;
}

bool ad__session_is_recoverable(const ad_session *s) { return ad__checkpoint_is_recoverable(&s->checkpoint); }

bool ad__session_commits_late(const ad_session *s) { return s->checkpoint.late && ad__session_is_recoverable(s); }

void ad__checkpoint_give_up(ad_session *s) {
    ad_checkpoint *v = &s->checkpoint;
    if (!v->at) return;
    ad__journal_store(&v->at->alive, 0);
    ad__output_settle(&s->output, UINT64_MAX);
}

static void unlink_session(const ad_session *s) {
    const ad_checkpoint *v = &s->checkpoint;
    pthread_mutex_lock(&s->worker->sessions_lock);
    ad_journal_head *head = ad__journal_head(v->journal);
    uint64_t *link = &head->sessions;
    const ad_at own = ad__journal_at(v->journal, v->at);
    while (*link && *link != own) link = &((ad_journal_session *)ad__journal_get(v->journal, *link))->next;
    if (*link) ad__journal_store(link, v->at->next);
    pthread_mutex_unlock(&s->worker->sessions_lock);
}

static void close_checkpoint(ad_session *s) {
    ad_checkpoint *v = &s->checkpoint;
    if (!v->at) return;
    unlink_session(s);
    ad__checkpoint_drop_pending(s);
    ad_journal_table *t = ad__checkpoint_table(v);
    for (uint64_t i = 0; i < t->capacity; i++) ad__checkpoint_free_row_data(v->journal, &t->row[i]);
    ad__journal_free(v->journal, ad__journal_get(v->journal, v->at->checkpoint[v->at->current].pending));
    ad__journal_free(v->journal, t);
    for (int i = 0; i < 2; i++) ad__journal_free(v->journal, v->log[i]);
    ad__journal_free(v->journal, v->at);
    ad__poison_release(v->pending);
    free(v->rows.changed.list);
    free(v->pending_changes.list);
    free(v->frees.list);
    free(v->rows.spare);
    free(v->unneeded.list);
    free(v->kept.list);
    v->at = NULL;
}

/* ---- what has changed ---- */

static void append_change(ad_session *s, ad_changed change) {
    ad_checkpoint *v = &s->checkpoint;
    if (!ad__checkpoint_is_recoverable(v)) return;
    ad_changed *list = ad__os_grow(v->rows.changed.list, v->rows.changed.count, &v->rows.changed.room, sizeof *list);
    if (!list) {
        ad__checkpoint_give_up(s);
        return;
    }
    v->rows.changed.list = list;
    list[v->rows.changed.count++] = change;
}

/* Prefetch a row that will be written soon: of many sessions' rows few are in the cache. */
static void prefetch_row(const ad_checkpoint *v, uint32_t place) {
    const ad_journal_row *row = &ad__checkpoint_table(v)->row[place];
    __builtin_prefetch(row, 1);
    __builtin_prefetch((const char *)(row + 1) - 1, 1);
}

void ad__checkpoint_mark_row(ad_session *s, ad_journal_kind kind, uint64_t id) {
    append_change(s, (ad_changed){id, kind, 0});
}

void ad__checkpoint_remove_row(ad_session *s, uint32_t place) {
    if (!place) return;
    prefetch_row(&s->checkpoint, place);
    append_change(s, (ad_changed){0, AD_JOURNAL_NONE, place});
}

void ad__checkpoint_mark_freed(ad_session *s, ad_buffer *b) {
    b->changed = true; /* nothing else of the buffer needs to be written */
    ad__checkpoint_remove_row(s, b->place);
}

void ad__checkpoint_mark_buffer(ad_session *s, ad_buffer *b) {
    if (!s->checkpoint.at || b->changed || !b->id) return;
    b->changed = true;
    ad__checkpoint_mark_row(s, AD_JOURNAL_BUFFER, b->id);
}

void ad__checkpoint_mark_moved(ad_shared *m) {
    for (ad_buffer *b = m->buffers; b; b = b->sharing.next) {
        ad_session *s = b->sharing.holder;
        ad__checkpoint_mark_buffer(s, b);
        if (s->checkpoint.late && s->checkpoint.inside) continue; /* the message keeps the old memory */
        if (s->fusion.count || (s->checkpoint.late && !ad__checkpoint_flush(s, true)))
            ad__checkpoint_give_up(s); /* its committed checkpoint has the old place */
        else ad__checkpoint_commit(s);
    }
}

void ad__checkpoint_release_descriptor_now(ad_session *s, uint64_t number) {
    const ad_note note = {.kind = AD_NOTE_DESCRIPTOR_GONE, .id = s->id, .size = number};
    if (s->checkpoint.at) ad__worker_tell(s->worker, &note, -1);
}

void ad__checkpoint_release_descriptor(ad_session *s, uint64_t number) {
    ad_checkpoint *v = &s->checkpoint;
    if (!ad__checkpoint_is_recoverable(v)) {
        ad__checkpoint_release_descriptor_now(s, number);
        return;
    }
    uint64_t *list = ad__os_grow(v->unneeded.list, v->unneeded.count, &v->unneeded.room, sizeof *list);
    if (!list) return; /* arrayd keeps the descriptor until the session is over */
    v->unneeded.list = list;
    list[v->unneeded.count++] = number;
}

void ad__checkpoint_before_write(ad_session *s, ad_buffer *b, uint64_t number, const char *name) {
    ad_checkpoint *v = &s->checkpoint;
    if (!v->at || !b->place) return;
    v->announced = true;
    if (v->at->writing != number) {
        const size_t n = strnlen(name, sizeof v->at->name - 1);
        memcpy(v->at->name, name, n);
        v->at->name[n] = 0;
        v->at->writing = number;
    }
    ad__journal_store(&ad__checkpoint_table(v)->row[b->place].writing, number);
}

void ad__checkpoint_before_launch(ad_session *s, uint64_t number) {
    if (s->checkpoint.at) ad__journal_store(&s->checkpoint.at->launched, number);
}

void ad__checkpoint_before_load(ad_session *s, uint64_t module) {
    if (s->checkpoint.at) ad__journal_store(&s->checkpoint.at->loading, module);
}

void ad__checkpoint_record_loss(ad_session *s, uint32_t place) {
    ad_checkpoint *v = &s->checkpoint;
    if (v->at && place)
        ad__journal_store(&ad__checkpoint_table(v)->row[place].writing, (s->progress.done + 1) | AD_JOURNAL_REUSED);
}

bool ad__checkpoint_is_repeatable_write(const ad_session *s, const ad_buffer *b) {
    const ad_checkpoint *v = &s->checkpoint;
    return !v->late || (!b->shared && b->order.read_at <= v->committed);
}

bool ad__checkpoint_keep_buffer(ad_session *s, ad_buffer *b) {
    ad_checkpoint *v = &s->checkpoint;
    if (!ad__checkpoint_is_recoverable(v) || v->late || !v->behind || !b->place) return false;
    ad_buffer **list = ad__os_grow(v->kept.list, v->kept.count, &v->kept.room, sizeof *list);
    if (!list) {
        ad__checkpoint_give_up(s);
        return false;
    }
    v->kept.list = list;
    list[v->kept.count++] = b;
    v->kept.bytes += b->size;
    return true;
}

void ad__checkpoint_give_released(ad_session *s) {
    ad_checkpoint *v = &s->checkpoint;
    while (v->kept.count) ad__buffer_give(s, v->kept.list[--v->kept.count]);
    v->kept.bytes = 0;
}

bool ad__checkpoint_give_released_memory(ad_session *s) {
    ad_checkpoint *v = &s->checkpoint;
    if (!v->kept.count) return false;
    ad__checkpoint_flush(s, true);
    if (!v->kept.count) return true;
    ad__journal_store(&v->at->uncertain, 1); /* a queued operation may read the memory */
    ad__checkpoint_give_released(s);
    return true;
}

static void drop_checkpoint(ad_session *s) {
    ad__checkpoint_give_released_memory(s);
    ad__checkpoint_free_deferred(s, s->checkpoint.frees.count);
}

const ad_component ad__component_checkpoint = {
    .name = "checkpoint", .open = open_checkpoint, .drop = drop_checkpoint, .close = close_checkpoint};
const ad_checkpoint_hooks ad__checkpoint_hooks = {.is_recoverable = ad__session_is_recoverable,
                                                  .mark_buffer = ad__checkpoint_mark_buffer,
                                                  .record_place = ad__checkpoint_record_place,
                                                  .must_defer = ad__checkpoint_must_defer,
                                                  .defer_free = ad__checkpoint_defer_free,
                                                  .free_all_deferred = ad__checkpoint_free_all_deferred,
                                                  .give_released_memory = ad__checkpoint_give_released_memory,
                                                  .move_deferred_to_host = ad__checkpoint_move_deferred_to_host,
                                                  .drop_deferred = ad__checkpoint_drop_deferred};
