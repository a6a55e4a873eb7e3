#include "server/worker/survival.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/common/log.h"
#include "server/common/os.h"
#include "server/worker/job.h"
#include "server/worker/sharing.h"

#define FIRST_ROWS 64

/* ---- memory of a session ---- */

static ad_ledger_table *table_new(ad_ledger *l, uint64_t capacity) {
    ad_ledger_table *t = ad__ledger_alloc(l, sizeof *t + capacity * sizeof *t->row);
    if (!t) return NULL;
    memset(t, 0, sizeof *t + capacity * sizeof *t->row);
    t->capacity = capacity;
    return t;
}

static ad_ledger_log *log_new(ad_ledger *l, uint64_t capacity) {
    ad_ledger_log *g = ad__ledger_alloc(l, sizeof *g + capacity * sizeof *g->entry);
    if (g) g->capacity = capacity;
    return g;
}

static ad_ledger_table *table_of(const ad_survival *v) { return ad__ledger_get(v->ledger, v->at->table); }

static void link_session(ad_survival *v) {
    ad_ledger_head *head = ad__ledger_head(v->ledger);
    v->at->next = head->sessions;
    ad__ledger_store(&head->sessions, ad__ledger_at(v->ledger, v->at));
}

static void seen(void *session, int fd) {
    const ad_session *s = session;
    int own = ad__os.dup(fd);
    if (own >= 0)
        ad__worker_tell(s->worker, &(ad_note){.kind = AD_NOTE_WINDOW, .id = s->id, .process = s->input.received}, own);
}

void ad__survival_watch(ad_session *s) {
    if (!s->survival.at) return;
    s->windows.descriptors.seen = seen;
    s->windows.descriptors.user = s;
}

void ad__survival_restored(ad_session *s) {
    uint64_t lives = s->survival.at ? s->survival.at->lives : 0;
    ad__survival_commit(s);
    if (s->survival.at) s->survival.at->lives = lives;
    ad__session_go_on(s);
}

void ad__survival_begin(ad_session *s) {
    ad_survival *v = &s->survival;
    ad_ledger *l = s->worker->ledger;
    if (!l || !s->comeback.able) return;
    ad_ledger_session *at = ad__ledger_alloc(l, sizeof *at);
    ad_ledger_table *t = table_new(l, FIRST_ROWS);
    for (int i = 0; i < 2; i++) v->log[i] = log_new(l, FIRST_ROWS);
    if (!at || !t || !v->log[0] || !v->log[1]) {
        ad__ledger_free(l, at);
        ad__ledger_free(l, t);
        for (int i = 0; i < 2; i++) ad__ledger_free(l, v->log[i]);
        return;
    }
    *at = (ad_ledger_session){.id = s->id, .process = s->comeback.process, .alive = 1, .grants = s->grants};
    memcpy(at->who, s->principal, sizeof at->who);
    memcpy(at->client, s->client, sizeof at->client);
    memcpy(at->secret, s->comeback.secret, sizeof at->secret);
    at->table = ad__ledger_at(l, t);
    v->ledger = l;
    v->at = at;
    v->places = 1; /* 0 is none */
    v->next = 1;
    s->input.ledger = l;
    s->input.at = at;
    ad__survival_watch(s);
    ad__output_write_down(&s->output, l, at);
    link_session(v);
}

bool ad__survives(const ad_session *s) {
    return s->survival.at && __atomic_load_n(&s->survival.at->alive, __ATOMIC_ACQUIRE);
}

void ad__survival_over(ad_session *s) {
    ad_survival *v = &s->survival;
    if (!v->at) return;
    ad__ledger_store(&v->at->alive, 0);
    ad__output_settle(&s->output, UINT64_MAX);
}

static void unlink_session(ad_survival *v) {
    ad_ledger_head *head = ad__ledger_head(v->ledger);
    uint64_t *link = &head->sessions;
    const ad_at own = ad__ledger_at(v->ledger, v->at);
    while (*link && *link != own) link = &((ad_ledger_session *)ad__ledger_get(v->ledger, *link))->next;
    if (*link) ad__ledger_store(link, v->at->next);
}

void ad__survival_close(ad_session *s) {
    ad_survival *v = &s->survival;
    if (!v->at) return;
    unlink_session(v);
    ad_ledger_table *t = table_of(v);
    for (uint64_t i = 0; i < t->capacity; i++) ad__ledger_free(v->ledger, ad__ledger_get(v->ledger, t->row[i].poison));
    ad__ledger_free(v->ledger, ad__ledger_get(v->ledger, v->at->state[v->at->current].pending));
    ad__ledger_free(v->ledger, t);
    for (int i = 0; i < 2; i++) ad__ledger_free(v->ledger, v->log[i]);
    ad__ledger_free(v->ledger, v->at);
    free(v->changed);
    free(v->spare);
    v->at = NULL;
}

/* ---- what has changed ---- */

void ad__survival_note(ad_session *s, ad_ledger_kind kind, uint64_t id, uint32_t place) {
    ad_survival *v = &s->survival;
    if (!v->at || !v->at->alive) return;
    ad_changed *list = ad__os_grow(v->changed, v->nchanged, &v->changed_room, sizeof *list);
    if (!list) {
        ad__survival_over(s);
        return;
    }
    v->changed = list;
    v->changed[v->nchanged++] = (ad_changed){id, kind, place};
}

void ad__survival_touch(ad_session *s, ad_buffer *b) {
    if (!s->survival.at || b->changed || !b->id) return;
    b->changed = true;
    ad__survival_note(s, AD_LEDGER_BUFFER, b->id, b->place);
}

void ad__survival_moved(ad_worker *w, ad_shared *m) {
    for (ad_buffer *b = m->buffers; b; b = b->next_holder) {
        ad__survival_touch(b->holder, b);
        if (b->holder->held.count) ad__survival_over(b->holder); /* its state is not that of now */
        else ad__survival_commit(b->holder);
    }
    ad__capabilities_moved(w, m);
    ad__names_moved(w, m);
}

void ad__survival_passed(ad_session *s) {
    if (s->survival.at) ad__worker_tell(s->worker, &(ad_note){.kind = AD_NOTE_WINDOW_GONE, .id = s->id}, -1);
}

void ad__survival_writes(ad_session *s, ad_buffer *b, uint64_t number, const char *name) {
    ad_survival *v = &s->survival;
    if (!v->at || !b->place) return;
    if (v->at->writing != number) {
        snprintf(v->at->name, sizeof v->at->name, "%s", name);
        v->at->writing = number;
    }
    ad__ledger_store(&table_of(v)->row[b->place].writing, number);
}

void ad__survival_loads(ad_session *s, bool begins) {
    if (s->survival.at) ad__ledger_store(&s->survival.at->loading, begins);
}

bool ad__survival_keeps(ad_session *s, ad_buffer *b) {
    ad_survival *v = &s->survival;
    if (!v->at || !b->place) return false;
    b->next = v->leaving;
    v->leaving = b;
    return true;
}

static void give_leaving(ad_session *s) {
    ad_survival *v = &s->survival;
    while (v->leaving) {
        ad_buffer *b = v->leaving;
        v->leaving = b->next;
        ad__buffer_give_memory(s, b);
        ad__poison_release(b->poison);
        ad__buffers_recycle(&s->buffers, b);
    }
}

bool ad__survival_give(ad_session *s) {
    ad_survival *v = &s->survival;
    if (!v->leaving) return false;
    ad__ledger_store(&v->at->fragile, 1);
    give_leaving(s);
    return true;
}

/* ---- rows ---- */

static ad_at write_poison(ad_ledger *l, const ad_poison *p) {
    ad_ledger_poison *w = p ? ad__ledger_alloc(l, sizeof *w) : NULL;
    if (!w) return 0;
    *w = (ad_ledger_poison){.code = p->code, .number = p->number};
    memcpy(w->name, p->name, sizeof w->name);
    memcpy(w->text, p->text, sizeof w->text);
    return ad__ledger_at(l, w);
}

ad_ledger_row ad__survival_memory(const ad_worker *w, const ad_shared *m) {
    ad_ledger_row r = {.kind = AD_LEDGER_BUFFER, .size = m->size, .shared = 1, .common = m->common};
    r.poison = write_poison(w->ledger, m->poison);
    if (m->home) r.device = (uint16_t)m->home->gpu->index;
    if (m->block.slab) {
        ad__memory_place(&m->block, &r.slab, &r.offset);
        r.block = m->block.size;
    }
    return r;
}

static ad_ledger_row buffer_row(const ad_survival *v, const ad_buffer *b) {
    const ad_block *block = b->shared ? &b->shared->block : &b->block;
    ad_ledger_row r = {.kind = AD_LEDGER_BUFFER, .id = b->id, .size = b->size, .readonly = b->readonly};
    r.shared = b->shared != NULL;
    r.fleeting = b->module != NULL;
    r.common = b->shared && b->shared->common;
    r.poison = write_poison(v->ledger, b->poison);
    if (b->home) r.device = (uint16_t)b->home->gpu->index;
    if (block->slab) {
        ad__memory_place(block, &r.slab, &r.offset);
        r.block = block->size;
    }
    return r;
}

static ad_ledger_row row_of(ad_session *s, const ad_changed *c, ad_buffer **b) {
    ad_ledger_row none = {0}, r = {.kind = c->kind, .id = c->id};
    const ad_window *w;
    const ad_lane *lane;
    uint16_t device;
    bool timed;
    *b = NULL;
    switch (c->kind) {
    case AD_LEDGER_BUFFER:
        if (!(*b = ad__buffers_find(&s->buffers, c->id))) return none;
        (*b)->changed = false;
        return buffer_row(&s->survival, *b);
    case AD_LEDGER_STREAM:
        if (!(lane = ad__lane_known(s, c->id))) return none;
        r.high = lane->high;
        r.device = (uint16_t)lane->gpu->index;
        return r;
    case AD_LEDGER_EVENT:
        if (!ad__event_known(s, c->id, &device, &timed)) return none;
        r.device = device;
        r.timed = timed;
        return r;
    default:
        if (!(w = ad__window_known(s, c->id))) return none;
        r.size = w->size;
        return r;
    }
}

/* A place for a row; 0: no memory. */
static uint32_t place_new(ad_survival *v) {
    ad_ledger_table *t = table_of(v);
    if (v->nspare) return v->spare[--v->nspare];
    if (v->places == t->capacity) {
        ad_ledger_table *more = table_new(v->ledger, 2 * t->capacity);
        if (!more) return 0;
        memcpy(more->row, t->row, t->capacity * sizeof *t->row);
        ad__ledger_store(&v->at->table, ad__ledger_at(v->ledger, more));
        ad__ledger_free(v->ledger, t);
    }
    return v->places++;
}

static void place_free(ad_survival *v, uint32_t place) {
    uint32_t *list = ad__os_grow(v->spare, v->nspare, &v->spare_room, sizeof *list);
    if (!list) return; /* it is not used again */
    v->spare = list;
    v->spare[v->nspare++] = place;
}

static uint32_t *place_of(ad_session *s, const ad_changed *c) {
    if (c->kind == AD_LEDGER_STREAM) return &ad__lane_known(s, c->id)->place;
    if (c->kind == AD_LEDGER_EVENT) return ad__event_place(s, c->id);
    return &ad__window_known(s, c->id)->place;
}

/* Where what the change is about has its row from now on; 0: nowhere. */
static uint32_t find_place(ad_session *s, const ad_changed *c, ad_buffer *b) {
    uint32_t *own = b ? &b->place : place_of(s, c);
    if (!*own) *own = place_new(&s->survival);
    return *own;
}

static bool make_room(ad_survival *v, size_t entries) {
    ad_ledger_log *log = v->log[v->next];
    if (log->capacity >= entries) return true;
    uint64_t capacity = log->capacity;
    while (capacity < entries) capacity *= 2;
    ad_ledger_log *more = log_new(v->ledger, capacity);
    if (!more) return false;
    ad__ledger_free(v->ledger, log);
    v->log[v->next] = more;
    return true;
}

/* The log of what has changed; false: no memory. */
static bool write_log(ad_session *s, uint64_t *entries) {
    ad_survival *v = &s->survival;
    if (!make_room(v, v->nchanged)) return false;
    ad_ledger_log *log = v->log[v->next];
    *entries = 0;
    for (size_t i = 0; i < v->nchanged; i++) {
        ad_buffer *b;
        ad_ledger_row row = row_of(s, &v->changed[i], &b);
        if (!row.kind && !v->changed[i].place) continue; /* came and went */
        if (b && b->poison && !row.poison) return false;
        uint32_t place = row.kind ? find_place(s, &v->changed[i], b) : v->changed[i].place;
        if (!place) return false;
        log->entry[*entries].place = place;
        log->entry[(*entries)++].row = row;
    }
    return true;
}

static void apply_log(ad_survival *v, uint64_t entries) {
    ad_ledger_table *t = table_of(v);
    const ad_ledger_log *log = v->log[v->next];
    for (uint64_t i = 0; i < entries; i++) {
        ad_ledger_row *to = &t->row[log->entry[i].place];
        ad_at poison = to->poison;
        *to = log->entry[i].row;
        if (poison && poison != to->poison) ad__ledger_free(v->ledger, ad__ledger_get(v->ledger, poison));
        if (!to->kind) place_free(v, (uint32_t)log->entry[i].place);
    }
}

/* ---- the state ---- */

static void where(const ad_session *s, ad_ledger_state *state) {
    state->frame = s->survival.frame_end;
    state->used = 0;
    if (!s->in_frame || !s->frame.block) return;
    state->frame = ad__input_place(&s->frame);
    state->used = s->frame_used - (s->has_message ? s->message.size : 0);
    if (state->used < s->frame.control_size) return;
    state->frame += AD_FRAME_HEADER + s->frame.control_size + s->frame.payload_size;
    state->used = 0;
}

static ad_at pending(ad_session *s, ad_at before) {
    ad_survival *v = &s->survival;
    return s->pending == v->pending ? before : write_poison(v->ledger, s->pending);
}

void ad__survival_commit(ad_session *s) {
    ad_survival *v = &s->survival;
    if (!v->at || !v->at->alive || s->held.count) return;
    const ad_ledger_state *before = &v->at->state[v->at->current];
    ad_ledger_state *state = &v->at->state[v->next];
    *state = (ad_ledger_state){.operations = s->done,
                               .bytes = s->bytes_done,
                               .appended = atomic_load(&s->output.appended),
                               .read = s->reading.active && !s->reading.to ? s->reading.offset : 0,
                               .stream = s->lane ? s->lane->id + 1 : 0,
                               .module = s->modules.latest,
                               .buffer_limit = s->buffer_limit};
    where(s, state);
    if (s->survival.skip) state->used = s->survival.skip;
    const ad_at pending_before = before->pending;
    state->pending = pending(s, pending_before);
    if (!write_log(s, &state->entries)) {
        ad__log(AD_LOG_WARN, "session not kept", "session=%lu why=%s", s->id, "no memory to write it down");
        ad__survival_over(s);
        return;
    }
    state->log = ad__ledger_at(v->ledger, v->log[v->next]);
    ad__ledger_store(&v->at->current, v->next);
    if (state->frame != before->frame || state->used != before->used) v->at->lives = 0;
    v->at->fragile = 0;
    ad__output_settle(&s->output, state->appended);
    apply_log(v, state->entries);
    if (state->pending != pending_before) ad__ledger_free(v->ledger, ad__ledger_get(v->ledger, pending_before));
    v->pending = s->pending;
    v->next ^= 1;
    v->nchanged = 0;
    __atomic_store_n(&v->executed, state->frame, __ATOMIC_RELAXED);
    if (v->leaving) give_leaving(s);
}
