/* Freeing buffers: now, or once another worker cannot need them any more. */
#include "server/worker/checkpoint/buffer_free.h"

#include "server/common/os.h"
#include "server/common/rights.h"
#include "server/worker/checkpoint/inside.h"
#include "server/worker/spill/spill.h"

void ad__buffer_give_memory(ad_worker_session *s, ad_buffer *b) {
    bool counted = !b->promised && !b->shared, deferred = ad__checkpoint_must_defer(s, b);
    ad__checkpoint_mark_buffer(s, b);
    ad__spill_forget(s->worker, b);
    if (b->module) s->worker->hooks.modules->variable_gone(s, b);
    if (b->import) s->worker->hooks.sharing->import_gone(s, b);
    if (b->shared) {
        s->worker->hooks.sharing->leave(s, b);
    } else if (b->block.slab) {
        ad__stream_queue_frees(s, b, NULL);
        if (deferred && ad__checkpoint_defer_free(s, b->home->stream_arena, &b->block, b)) b->block.slab = NULL;
        else ad__memory_give(b->home->stream_arena, &b->block);
    }
    if (counted) s->held.buffer_bytes -= b->size;
    b->promised = false;
    b->size = 0;
    b->address = ad__no_bytes;
}

void ad__buffer_give(ad_worker_session *s, ad_buffer *b) {
    ad__buffer_give_memory(s, b);
    ad__poison_release(b->poison);
    ad__buffers_recycle(&s->buffers, b);
}

bool ad__checkpoint_keep_buffer(ad_worker_session *s, ad_buffer *b) {
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

void ad__checkpoint_give_released(ad_worker_session *s) {
    ad_checkpoint *v = &s->checkpoint;
    while (v->kept.count) ad__buffer_give(s, v->kept.list[--v->kept.count]);
    v->kept.bytes = 0;
}

void ad__buffer_free(ad_worker_session *s, ad_buffer *b) {
    ad__checkpoint_mark_freed(s, b);
    if (!ad__checkpoint_keep_buffer(s, b)) ad__buffer_give(s, b);
}

/* ---- the end of a session ---- */

#define DROPPED_SLOTS 16384 /* of the table of buffers, in one turn: at most some 2 ms */

static void drop_buffer(void *user, ad_buffer *b) {
    ad_worker_session *s = user;
    const ad_hooks *hooks = &s->worker->hooks;
    ad__spill_forget(s->worker, b);
    if (b->module) hooks->modules->variable_gone(s, b);
    else if (b->import) hooks->sharing->import_gone(s, b);
    else if (b->shared) hooks->sharing->leave(s, b);
    else if (b->home) ad__memory_give(b->home->stream_arena, &b->block);
    ad__poison_release(b->poison);
}

static int open_buffers(ad_worker_session *s, const ad_note *note) {
    ad_worker *w = s->worker;
    (void)note;
    ad__buffers_init(&s->buffers, ad__most_buffers(&w->config, &s->grants));
    pthread_mutex_lock(&w->sessions_lock);
    s->buffers.total =
        ad__buffer_total_open(&w->buffer_totals, s->principal, ad__most_buffers_each(&w->config, s->principal));
    pthread_mutex_unlock(&w->sessions_lock);
    return s->buffers.total ? 0 : AD_E_MEMORY;
}

static bool drop_some_buffers(ad_worker_session *s) {
    return ad__buffers_clear_part(&s->buffers, DROPPED_SLOTS, drop_buffer, s);
}

static void drop_buffers(ad_worker_session *s) { ad__buffers_clear(&s->buffers, drop_buffer, s); }

static void close_buffers(ad_worker_session *s) {
    ad_worker *w = s->worker;
    pthread_mutex_lock(&w->sessions_lock);
    ad__buffer_total_close(&w->buffer_totals, s->buffers.total);
    pthread_mutex_unlock(&w->sessions_lock);
}

const ad_component ad__component_buffers = {.name = "buffers",
                                            .open = open_buffers,
                                            .drop_part = drop_some_buffers,
                                            .drop = drop_buffers,
                                            .close = close_buffers};
