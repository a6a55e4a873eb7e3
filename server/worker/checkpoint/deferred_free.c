/* Memory, and other objects, that a session has given up. Operations that are executed again may need them, so
 * they are freed only when a checkpoint without them is committed. */
#include <stdlib.h>
#include <string.h>

#include "server/common/os.h"
#include "server/worker/sharing/sharing.h"
#include "server/worker/spill/spill.h"
#include "server/worker/checkpoint/inside.h"

/* A block, or another object, that is to be freed. */
typedef struct ad_deferred_free {
    ad_stream_arena *home;
    ad_block block;
    uint32_t place; /* place of the row that has the block, with the buffer's id and moves */
    uint64_t id, moves;
    ad_deferred_release *release; /* frees the object; NULL: there is none */
    void *object;
    bool delays; /* answers wait for their checkpoint meanwhile */
} ad_deferred_free;

bool ad__checkpoint_must_defer(const ad_worker_session *s, const ad_buffer *b) {
    const ad_checkpoint *v = &s->checkpoint;
    return v->late && b->place && ad__checkpoint_is_recoverable(v);
}

static bool append_deferred(ad_worker_session *s, const ad_deferred_free *p) {
    ad_checkpoint *v = &s->checkpoint;
    if (!ad__checkpoint_is_recoverable(v)) return false;
    ad_deferred_free *list = ad__os_grow(v->frees.list, v->frees.count, &v->frees.room, sizeof *list);
    if (!list) {
        ad__checkpoint_give_up(s);
        return false;
    }
    v->frees.list = list;
    list[v->frees.count++] = *p;
    v->frees.delays += p->delays;
    return true;
}

bool ad__checkpoint_defer_free(ad_worker_session *s, ad_stream_arena *home, const ad_block *block, const ad_buffer *b) {
    ad_deferred_free p = {.home = home, .block = *block};
    if (b) {
        p.place = b->place;
        p.id = b->id;
        p.moves = ad__buffer_moves(b);
    }
    return append_deferred(s, &p);
}

bool ad__checkpoint_defer_release(ad_worker_session *s, ad_deferred_release *release, void *object, bool delays) {
    return append_deferred(s, &(ad_deferred_free){.release = release, .object = object, .delays = delays});
}

bool ad__checkpoint_has_deferred(const ad_worker_session *s, ad_deferred_release *release,
                                 bool (*matches)(const void *object, const void *user), const void *user) {
    const ad_checkpoint *v = &s->checkpoint;
    for (size_t i = 0; i < v->frees.count; i++)
        if (v->frees.list[i].release == release && matches(v->frees.list[i].object, user)) return true;
    return false;
}

static void free_entry(ad_worker_session *s, ad_deferred_free *p) {
    if (p->home) ad__memory_give(p->home, &p->block);
    else if (p->release) p->release(s, p->object);
}

void ad__checkpoint_free_deferred(ad_worker_session *s, size_t n) {
    ad_checkpoint *v = &s->checkpoint;
    for (size_t i = 0; i < n; i++) {
        v->frees.delays -= v->frees.list[i].delays;
        free_entry(s, &v->frees.list[i]);
    }
    v->frees.count -= n;
    if (v->frees.count) memmove(v->frees.list, v->frees.list + n, v->frees.count * sizeof *v->frees.list);
    v->frees.pending = 0;
    v->frees.begun = v->frees.begun > n ? v->frees.begun - n : 0;
    ad__spill_settle(s->worker);
}

/* ---- when memory is short ---- */

bool ad__checkpoint_move_deferred_to_host(ad_worker_session *s, ad_stream_queue *queue) {
    ad_checkpoint *v = &s->checkpoint;
    bool done = false;
    if (!v->frees.count || ad__stream_queues_wait(s, NULL)) return false;
    for (size_t i = 0; i < v->frees.count; i++) {
        ad_deferred_free *p = &v->frees.list[i];
        ad_block from = p->block;
        if (!p->place || !p->home || !ad__spill_copy(s->worker, queue, p->home, &from, &p->block)) continue;
        ad_journal_place now = {.id = p->id, .moves = ++p->moves, .block = p->block.size};
        ad__memory_place(&p->block, &now.slab, &now.offset);
        ad__checkpoint_record_place(s, p->place, &now);
        ad__memory_give(p->home, &from);
        p->home = s->worker->spill->stream_arena;
        done = true;
    }
    return done;
}

/* No checkpoint can be begun while operations are queued or deferred checks are open. So the rows record the loss,
 * in case the worker is killed now. */
bool ad__checkpoint_drop_deferred(ad_worker_session *s) {
    ad_checkpoint *v = &s->checkpoint;
    bool done = false;
    if (!v->frees.count || ad__stream_queues_wait(s, NULL)) return false;
    for (size_t i = 0; i < v->frees.count; i++) {
        ad_deferred_free *p = &v->frees.list[i];
        if (!p->home) continue;
        ad__checkpoint_record_loss(s, p->place);
        ad__memory_give(p->home, &p->block);
        p->home = NULL;
        done = true;
    }
    return done;
}
