/* Writing the journal of a principal that migrates: a copy of its part of the worker's journal. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "server/common/log.h"
#include "server/common/os.h"
#include "server/worker/exec/job.h"
#include "server/worker/migrate/inside.h"
#include "server/worker/spill/spill.h"

typedef struct copying {
    ad_worker *worker;
    ad_migration *migration;
    ad_worker_session *session;
    const ad_journal *from;
    ad_journal *to;
    ad_fault *fault;
} copying;

static int report_no_memory(const copying *c) {
    return ad__fault(c->fault, AD_E_MEMORY, "there is no memory for its state");
}

/* Copy a piece of the journal. from 0: *to is 0. */
static int copy_piece(const copying *c, ad_at from, size_t size, ad_at *to) {
    void *p = from ? ad__journal_alloc(c->to, size) : NULL;
    if (from && !p) return report_no_memory(c);
    if (p) memcpy(p, ad__journal_get(c->from, from), size);
    *to = ad__journal_at(c->to, p);
    return 0;
}

static int copy_poison(const copying *c, ad_at *poison) {
    return copy_piece(c, *poison, sizeof(ad_journal_poison), poison);
}

/* ---- memory ---- */

/* Open a stream arena for copies of the principal's buffers in host memory: other slabs there have several
 * principals' buffers in them. */
static int open_host(const copying *c) {
    ad_migration *p = c->migration;
    char name[AD_PRINCIPAL_SIZE + 1];
    if (p->host) return 0;
    if (snprintf(name, sizeof name, "%c%s", AD_PARTED, p->who) >= AD_PRINCIPAL_SIZE)
        return ad__fault(c->fault, AD_E_UNSUPPORTED, "arrays of it are in host memory, and its name is too long");
    p->host = ad__stream_arena_open(&c->worker->spill->host, name, NULL);
    return p->host ? 0 : report_no_memory(c);
}

static int copy_host(const copying *c, const ad_buffer *b, ad_journal_row *row) {
    ad_migration *p = c->migration;
    int status = open_host(c);
    if (status) return status;
    ad_block *list = ad__os_grow(p->copy, p->copies, &p->room, sizeof *list);
    if (!list) return report_no_memory(c);
    p->copy = list;
    ad_block *block = &list[p->copies];
    if ((status = ad__memory_take(p->host, b->size, block, c->fault))) return status;
    p->copies++;
    memcpy(block->address, ad__spill_bytes_of(b), b->size);
    ad__memory_place(block, &row->slab, &row->offset);
    row->block = block->size;
    return 0;
}

static int copy_row(const copying *c, ad_journal_row *row) {
    const ad_journal_place *p = ad__journal_get(c->from, row->elsewhere);
    int status = copy_poison(c, &row->poison);
    row->elsewhere = 0;
    if (status || row->kind != AD_JOURNAL_BUFFER) return status;
    const ad_buffer *b = ad__buffers_find(&c->session->buffers, row->id);
    ad__journal_settle(row, p);
    return b && b->is_moved ? copy_host(c, b, row) : 0;
}

static int copy_table(const copying *c, ad_at *table) {
    const ad_journal_table *t = ad__journal_get(c->from, *table);
    int status = copy_piece(c, *table, sizeof *t + t->capacity * sizeof *t->row, table);
    if (status) return status;
    ad_journal_table *own = ad__journal_get(c->to, *table);
    for (uint64_t i = 0; i < own->capacity && !status; i++) status = copy_row(c, &own->row[i]);
    return status;
}

/* ---- sessions ---- */

/* Copy the blocks of a stream that do not end before `begin`. */
static int copy_stream(const copying *c, ad_at *first, uint64_t begin) {
    ad_at at = *first, *link = first;
    *link = 0;
    for (const ad_journal_block *b; (b = ad__journal_get(c->from, at)); at = b->next) {
        if (b->base + b->size < begin) continue;
        ad_journal_block *own = ad__journal_alloc(c->to, sizeof *own + b->size + 8); /* the reader reads whole words */
        if (!own) return report_no_memory(c);
        *own = (ad_journal_block){.base = b->base, .size = b->size, .data = ad__journal_at(c->to, own + 1)};
        if (b->size) memcpy(own + 1, ad__journal_get(c->from, b->data), b->size);
        *link = ad__journal_at(c->to, own);
        link = &own->next;
    }
    return 0;
}

static int copy_session(copying *c) {
    const ad_journal_session *at = c->session->checkpoint.at;
    ad_journal_head *head = ad__journal_head(c->to);
    ad_at own_at;
    int status = copy_piece(c, ad__journal_at(c->from, at), sizeof *at, &own_at);
    if (status) return status;
    ad_journal_session *own = ad__journal_get(c->to, own_at);
    ad_journal_checkpoint *state = &own->checkpoint[0];
    *state = at->checkpoint[at->current];
    state->log = state->entries = 0; /* the table has the log's rows */
    own->current = own->lives = 0;
    if (!status) status = copy_poison(c, &state->pending);
    if (!status) status = copy_table(c, &own->table);
    if (!status) status = copy_stream(c, &own->input, state->frame);
    if (!status) status = copy_stream(c, &own->output, 0);
    own->next = head->sessions;
    head->sessions = own_at;
    return status;
}

/* Commit all that the session has executed. False: something cannot be committed. */
static bool commit_session(ad_worker_session *s) {
    ad__fusion_flush(s);
    if (s->checkpoint.late) ad__checkpoint_flush(s, true);
    ad__checkpoint_commit(s);
    return ad__session_is_recoverable(s) && !s->fusion.count && !s->checkpoint.pending_checkpoint.open &&
           !s->checkpoint.rows.changed.count;
}

static bool must_go(const copying *c, const ad_worker_session *s) {
    return atomic_load(&s->move.halted) && ad__session_is_recoverable(s) &&
           ad__migration_is_of(s, c->migration->who); /* other sessions are over */
}

static int write_sessions(copying *c) {
    int status = 0;
    for (ad_worker_session *s = c->worker->sessions; s; s = s->next)
        if (must_go(c, s) && !commit_session(s))
            return ad__fault(c->fault, AD_E_UNSUPPORTED, "session %" PRIu64 " is in a state that cannot be written",
                             s->id);
    ad__spill_look(c->worker); /* complete moves from host memory are recorded now */
    for (c->session = c->worker->sessions; c->session && !status; c->session = c->session->next)
        if (must_go(c, c->session)) status = copy_session(c);
    return status;
}

/* ---- names and capabilities ---- */

static int copy_holder(const copying *c, ad_at from) {
    ad_at at;
    int status = copy_piece(c, from, sizeof(ad_journal_holder), &at);
    if (status) return status;
    ad_journal_holder *h = ad__journal_get(c->to, at);
    const uint64_t *grant = ad__journal_get(c->from, h->grant);
    status = copy_poison(c, &h->memory.poison);
    if (!status && grant) status = copy_piece(c, h->grant, sizeof *grant + *grant, &h->grant);
    if (!status && !ad__journal_hold(c->to, h)) status = report_no_memory(c);
    return status;
}

static int write_holders(const copying *c) {
    const ad_journal_index *index = ad__journal_get(c->from, ad__journal_head(c->from)->index);
    int status = 0;
    for (uint64_t i = 0; index && i < index->capacity && !status; i++) {
        const ad_journal_holder *h = ad__journal_get(c->from, index->holder[i]);
        if (h && !strcmp(h->who, c->migration->who)) status = copy_holder(c, index->holder[i]);
    }
    return status;
}

int ad__migration_write_journal(ad_worker *w, ad_migration *p, ad_journal **out, ad_fault *fault) {
    copying c = {.worker = w, .migration = p, .from = w->journal, .fault = fault};
    int status = ad__journal_open(&c.to, fault);
    if (status) return status;
    const ad_journal_head *head = ad__journal_head(w->journal);
    ad__journal_head(c.to)->number = head->number;
    ad__journal_head(c.to)->forked = head->forked;
    status = write_sessions(&c);
    if (!status) status = write_holders(&c);
    if (status) ad__journal_close(c.to);
    else *out = c.to;
    return status;
}
