/* Operations that cannot be repeated are written down before they happen (changes.h). */
#include <string.h>

#include "protocol/desc.h"
#include "server/worker/checkpoint/inside.h"
#include "server/worker/session.h"

/* Most bytes of a buffer that is copied before it is changed in place: the copy stays in the processor's cache. */
#define APART_MOST 16384

/* Tell whether the message at hand is a user's kernel, which may have the buffer's address from elsewhere. */
static bool is_user_kernel(const ad_worker_session *s) {
    const ad_request_row *row = s->messages.message.row;
    return row && row->flags & AD_R_USER_KERNEL;
}

/* Give a buffer other memory with the same contents, so that the committed checkpoint keeps what it has. False: it
 * keeps its memory, as it is large, others see it, or there is no other. */
static bool move_apart(ad_worker_session *s, ad_buffer *b) {
    const ad_worker *w = s->worker;
    ad_block block;
    ad_fault fault;
    if (b->apart) return true;
    if (s->checkpoint.late || w->spill || b->size > APART_MOST || b->changed || !b->block.slab || b->shared ||
        b->module || b->import || b->block.open || is_user_kernel(s) || !ad__session_is_recoverable(s) ||
        ad__memory_take(b->home->stream_arena, b->size, &block, &fault))
        return false;
    if (w->backend->move(b->home->stream, block.address, b->address, b->size, &fault) ||
        !ad__checkpoint_defer_free(s, b->home->stream_arena, &b->block, b)) {
        ad__memory_give(b->home->stream_arena, &block);
        return false;
    }
    b->block = block;
    b->address = block.address;
    b->apart = true;
    ad__checkpoint_mark_buffer(s, b);
    return true;
}

void ad__checkpoint_before_write(ad_worker_session *s, ad_buffer *b, uint64_t number, const char *name) {
    ad_checkpoint *v = &s->checkpoint;
    if (!v->at || !b->place) return;
    v->announced = true;
    if (move_apart(s, b)) return;
    if (v->at->writing != number) {
        const size_t n = strnlen(name, sizeof v->at->name - 1);
        memcpy(v->at->name, name, n);
        v->at->name[n] = 0;
        v->at->writing = number;
    }
    ad__journal_store(&ad__checkpoint_table(v)->row[b->place].writing, number);
}

void ad__checkpoint_before_launch(ad_worker_session *s, uint64_t number) {
    if (s->checkpoint.at) ad__journal_store(&s->checkpoint.at->launched, number);
}

void ad__checkpoint_before_load(ad_worker_session *s, uint64_t module) {
    if (s->checkpoint.at) ad__journal_store(&s->checkpoint.at->loading, module);
}

ad_extent ad__checkpoint_extent(const ad_desc *d) {
    int64_t low, high;
    if (ad__desc_extent(d, &low, &high, NULL) || low < 0) return (ad_extent){0, UINT64_MAX};
    return (ad_extent){(uint64_t)low, (uint64_t)high};
}

void ad__checkpoint_note_read(const ad_worker_session *s, ad_buffer *b, ad_extent bytes) {
    ad_buffer_order *o = &b->order;
    if (!s->checkpoint.late) return;
    const bool first = o->read_at <= s->checkpoint.committed; /* nobody executes the reads before it again */
    o->read_from = first || bytes.from < o->read_from ? bytes.from : o->read_from;
    o->read_to = first || bytes.to > o->read_to ? bytes.to : o->read_to;
    o->read_at = s->progress.done + 1;
}

bool ad__checkpoint_is_repeatable_write(const ad_worker_session *s, const ad_buffer *b, ad_extent bytes) {
    const ad_checkpoint *v = &s->checkpoint;
    const ad_buffer_order *o = &b->order;
    if (!v->late) return true;
    return !b->shared && (o->read_at <= v->committed || bytes.to <= o->read_from || bytes.from >= o->read_to);
}
