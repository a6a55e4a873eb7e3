/* Rows of the journal: making them for what a session has, writing them to a log, copying them into the table. */
#include <string.h>

#include "server/common/os.h"
#include "server/worker/exec/job.h"
#include "server/worker/sharing/sharing.h"
#include "server/worker/spill/spill.h"
#include "server/worker/checkpoint/inside.h"

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

ad_at ad__checkpoint_poison_row(ad_journal *l, const ad_poison *p) {
    ad_journal_poison *w = p ? ad__journal_alloc(l, sizeof *w) : NULL;
    if (!w) return 0;
    *w = (ad_journal_poison){.code = p->code, .number = p->number};
    memcpy(w->name, p->name, sizeof w->name);
    memcpy(w->text, p->text, sizeof w->text);
    return ad__journal_at(l, w);
}

ad_journal_row ad__checkpoint_memory_row(const ad_worker *w, const ad_shared *m) {
    ad_journal_row r = {.kind = AD_JOURNAL_BUFFER, .size = m->size, .shared = 1, .common = m->common};
    r.read = m->readers > 0;
    r.poison = ad__checkpoint_poison_row(w->journal, m->poison);
    if (m->home) r.device = (uint16_t)m->home->gpu->index;
    if (m->block.slab) {
        ad__memory_place(&m->block, &r.slab, &r.offset);
        r.block = m->block.size;
        r.open = m->block.open;
    }
    return r;
}

static ad_journal_row make_buffer_row(const ad_checkpoint *v, const ad_buffer *b) {
    const ad_block *block = b->shared ? &b->shared->block : b->is_moved ? ad__spill_block_of(b) : &b->block;
    ad_journal_row r = {.kind = AD_JOURNAL_BUFFER, .id = b->id, .size = b->size, .readonly = b->readonly};
    r.shared = b->shared != NULL;
    r.fleeting = b->module ? AD_FLEETING_VARIABLE : b->import ? AD_FLEETING_IMPORT : 0;
    r.moves = ad__buffer_moves(b);
    r.common = b->shared && b->shared->common;
    r.read = b->shared && b->shared->readers;
    r.filling = b->filling;
    r.poison = ad__checkpoint_poison_row(v->journal, b->poison);
    if (b->home) r.device = (uint16_t)b->home->gpu->index;
    if (block->slab) {
        ad__memory_place(block, &r.slab, &r.offset);
        r.block = block->size;
        r.open = block->open;
    }
    return r;
}

void ad__checkpoint_free_row_data(ad_journal *l, const ad_journal_row *row) {
    ad__journal_free(l, ad__journal_get(l, row->poison));
    ad__journal_free(l, ad__journal_get(l, row->elsewhere));
    if (row->kind != AD_JOURNAL_MODULE) return;
    ad__recipe_release(l, ad__journal_get(l, row->recipe));
    ad__journal_free(l, ad__journal_get(l, row->settings));
}

/* Make the row of what has changed. *b: its buffer, or NULL. 1: it is made; 0: what has changed is gone; AD_E_MEMORY.
 */
static int make_row(ad_worker_session *s, const ad_changed *c, ad_journal_row *row, ad_buffer **b) {
    *b = NULL;
    *row = (ad_journal_row){0};
    if (c->kind == AD_JOURNAL_NONE) return 1;
    if (c->kind != AD_JOURNAL_BUFFER) {
        row->kind = c->kind;
        row->id = c->id;
        return ad__component_of(s->worker, c->kind)->save(s, c->id, row);
    }
    if (!(*b = ad__buffers_find(&s->buffers, c->id))) return 0;
    (*b)->changed = (*b)->apart = false;
    *row = make_buffer_row(&s->checkpoint, *b);
    return (*b)->poison && !row->poison ? AD_E_MEMORY : 1;
}

/* Take a free place for a row. 0: no memory. */
static uint32_t take_place(ad_checkpoint *v) {
    ad_journal_table *t = ad__checkpoint_table(v);
    if (v->rows.nspare) return v->rows.spare[--v->rows.nspare];
    if (v->rows.places == t->capacity) {
        ad_journal_table *more = ad__checkpoint_table_new(v->journal, 2 * t->capacity);
        if (!more) return 0;
        memcpy(more->row, t->row, t->capacity * sizeof *t->row);
        ad__journal_store(&v->at->table, ad__journal_at(v->journal, more));
        ad__journal_free(v->journal, t);
    }
    return v->rows.places++;
}

static void free_place(ad_checkpoint *v, uint32_t place) {
    uint32_t *list = ad__os_grow(v->rows.spare, v->rows.nspare, &v->rows.spare_room, sizeof *list);
    if (!list) return; /* the place is never used again */
    v->rows.spare = list;
    v->rows.spare[v->rows.nspare++] = place;
}

/* Get the place of the row of what has changed, or take one. 0: no memory. */
static uint32_t assign_place(ad_worker_session *s, const ad_changed *c, ad_buffer *b) {
    uint32_t *own = b ? &b->place : ad__component_of(s->worker, c->kind)->place(s, c->id);
    if (!*own) *own = take_place(&s->checkpoint);
    return *own;
}

static bool ensure_log_room(ad_checkpoint *v, size_t entries) {
    ad_journal_log *log = v->log[v->next];
    if (log->capacity >= entries) return true;
    uint64_t capacity = log->capacity;
    while (capacity < entries) capacity *= 2;
    ad_journal_log *more = ad__checkpoint_log_new(v->journal, capacity);
    if (!more) return false;
    ad__journal_free(v->journal, log);
    v->log[v->next] = more;
    return true;
}

bool ad__checkpoint_write_log(ad_worker_session *s, size_t count, uint64_t *entries) {
    ad_checkpoint *v = &s->checkpoint;
    if (!ensure_log_room(v, count)) return false;
    ad_journal_log *log = v->log[v->next];
    *entries = 0;
    for (size_t i = 0; i < count; i++) {
        const ad_changed *c = &v->rows.changed.list[i];
        ad_buffer *b;
        ad_journal_row *row = &log->entry[*entries].row;
        const int made = make_row(s, c, row, &b);
        if (made < 0) return false;
        if (!made) continue;
        uint32_t place = row->kind ? assign_place(s, c, b) : c->place;
        if (!place) return false;
        log->entry[(*entries)++].place = place;
    }
    return true;
}

/* Copy a row but for `writing`. An earlier value there, even of another buffer, does no harm. */
static void copy_row(ad_journal_row *to, const ad_journal_row *row) {
    memcpy(to, row, offsetof(ad_journal_row, writing));
}

/* Replace a row that points to a poison, a place or a module's recipe, and free what it points to. */
static __attribute__((noinline)) void replace_row(ad_checkpoint *v, ad_journal_row *to, ad_journal_row row) {
    ad_journal_row before = *to;
    const ad_journal_place *p = ad__journal_get(v->journal, before.elsewhere);
    row.elsewhere = p && ad__journal_is_later(p, &row) ? before.elsewhere : 0;
    copy_row(to, &row);
    if (before.poison == row.poison) before.poison = 0;
    if (before.elsewhere == row.elsewhere) before.elsewhere = 0;
    ad__checkpoint_free_row_data(v->journal, &before);
}

void ad__checkpoint_apply_log(ad_checkpoint *v, uint64_t entries) {
    ad_journal_table *t = ad__checkpoint_table(v);
    const ad_journal_log *log = v->log[v->next];
    for (uint64_t i = 0; i < entries; i++) {
        const ad_journal_row *row = &log->entry[i].row;
        ad_journal_row *to = &t->row[log->entry[i].place];
        if (to->poison || to->elsewhere || to->kind == AD_JOURNAL_MODULE) replace_row(v, to, *row);
        else copy_row(to, row);
        if (!row->kind) free_place(v, (uint32_t)log->entry[i].place);
    }
}

/* True if the row belongs to another buffer by now, or has the place already. */
static bool is_outdated(const ad_checkpoint *v, const ad_journal_row *row, const ad_journal_place *now) {
    const ad_journal_place *before = ad__journal_get(v->journal, row->elsewhere);
    if (row->kind && !ad__journal_is_later(now, row)) return true;
    return before && before->id == now->id && before->moves >= now->moves;
}

/* A later checkpoint has no such row, or that of a buffer which is made by a later operation. So the loss is that of
 * the newest checkpoint, and of those before. */
void ad__checkpoint_record_loss(ad_worker_session *s, uint32_t place) {
    const ad_checkpoint *v = &s->checkpoint;
    if (!v->at || !place) return;
    const uint64_t newest = v->pending_checkpoint.open ? v->pending_checkpoint.slot : v->at->current;
    ad__journal_store(&ad__checkpoint_table(v)->row[place].writing,
                      (v->at->checkpoint[newest].operations + 1) | AD_JOURNAL_REUSED);
}

void ad__checkpoint_record_place(ad_worker_session *s, uint32_t place, const ad_journal_place *now) {
    ad_checkpoint *v = &s->checkpoint;
    if (!place || !ad__checkpoint_is_recoverable(v)) return;
    ad_journal_row *row = &ad__checkpoint_table(v)->row[place];
    if (is_outdated(v, row, now)) return;
    const ad_at before = row->elsewhere;
    ad_journal_place *p = ad__journal_alloc(v->journal, sizeof *p);
    if (!p) {
        ad__checkpoint_record_loss(s, place);
        return;
    }
    *p = *now;
    ad__journal_store(&row->elsewhere, ad__journal_at(v->journal, p));
    ad__journal_free(v->journal, ad__journal_get(v->journal, before));
}

void ad__checkpoint_discard_log(ad_checkpoint *v, uint64_t entries) {
    const ad_journal_log *log = v->log[v->next];
    for (uint64_t i = 0; i < entries; i++) ad__checkpoint_free_row_data(v->journal, &log->entry[i].row);
}
