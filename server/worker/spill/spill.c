#include <stdio.h>
#include <stdlib.h>

#include "server/common/os.h"
#include "server/worker/exec/job.h"
#include "server/worker/memory/shared.h"
#include "server/worker/spill/inside.h"

#define PIECE (1u << 20) /* bytes that are moved at a time, if there are as many */
#define NS_FOR_BYTES 20  /* bytes that a device copies in a nanosecond, about */

/* ---- host memory ---- */

static void close_moved(ad_worker *w, ad_moved *m) {
    if (m->event) w->backend->event_close(m->event);
    free(m);
}

/* Give the block back, and keep the object for another one. */
static void recycle_moved(ad_spill *all, ad_moved *m) {
    ad__memory_give(all->stream_arena, &m->block);
    m->leaving = false;
    m->next = all->spare;
    all->spare = m;
}

static void watch_copy(ad_spill *all, ad_moved *m) {
    if (m->under_way) return;
    m->under_way = true;
    m->prev = NULL;
    m->next = all->under_way;
    if (m->next) m->next->prev = m;
    all->under_way = m;
}

static void unwatch_copy(ad_spill *all, ad_moved *m) {
    if (!m->under_way) return;
    m->under_way = false;
    if (m->next) m->next->prev = m->prev;
    if (m->prev) m->prev->next = m->next;
    else all->under_way = m->next;
}

static void give_left_memory(ad_moved *m) {
    if (m->left.slab) ad__memory_give(m->home, &m->left);
}

/* Finish a copy that is complete: record the new place, and give back what was left. */
static void complete_copy(ad_spill *all, ad_moved *m) {
    unwatch_copy(all, m);
    if (m->place) m->session->worker->hooks.checkpoint->record_place(m->session, m->place, &m->now);
    m->place = 0;
    give_left_memory(m);
    if (m->leaving) recycle_moved(all, m);
}

/* Check whether a copy is complete, and finish it. On a lost device no copy is ever complete. */
static bool check_copy(ad_worker *w, ad_moved *m) {
    const bool done = !m->event || w->backend->event_done(m->event, NULL) == 1;
    if (done) complete_copy(w->spill, m);
    else watch_copy(w->spill, m);
    return done;
}

/* Check all copies under way. True: memory of a device was given back. */
static bool reap_copies(ad_worker *w) {
    bool given = false;
    for (ad_moved *m = w->spill->under_way, *next; m; m = next) {
        const bool left = m->left.slab != NULL;
        next = m->next;
        given = (check_copy(w, m) && left) || given;
    }
    return given;
}

/* Wait for the copies that keep memory of a device (host: of the host), and finish them. A copy is the last
 * operation of its stream, so nothing else is waited for. */
static bool await_copies(ad_worker *w, bool host) {
    for (ad_moved *m = w->spill->under_way; m; m = m->next)
        if ((host ? m->leaving : !!m->left.slab) && w->backend->event_done(m->event, NULL) != 1)
            w->backend->stream_wait(m->stream, NULL);
    return reap_copies(w);
}

/* True if memory of a device is kept by a copy. */
static bool has_awaited_memory(const ad_spill *all) {
    const ad_moved *m = all->under_way;
    while (m && !m->left.slab) m = m->next;
    return m;
}

static int open_event(ad_worker *w, ad_moved *m, ad_gpu *gpu) {
    if (!w->backend->asynchronous || (m->event && m->gpu == gpu)) return 0;
    if (m->event) w->backend->event_close(m->event);
    m->event = NULL;
    m->gpu = gpu;
    return w->backend->event_open(gpu->device, false, &m->event, NULL);
}

/* Get an object without a block. NULL: no memory. */
static ad_moved *take_spare_moved(ad_spill *all) {
    ad_moved *m = all->spare;
    if (!m) return ad__os.calloc(1, sizeof *m);
    all->spare = m->next;
    return m;
}

/* Get an object with a block of host memory and an event. NULL: no memory. */
static ad_moved *take_host_memory(ad_worker *w, ad_stream_queue *queue, uint64_t size) {
    ad_spill *all = w->spill;
    reap_copies(w);
    ad_moved *m = take_spare_moved(all);
    if (!m) return NULL;
    int status = ad__memory_take(all->stream_arena, size, &m->block, NULL);
    if (status && all->under_way) {
        await_copies(w, true);
        status = ad__memory_take(all->stream_arena, size, &m->block, NULL);
    }
    if (!status && !open_event(w, m, queue->gpu)) return m;
    recycle_moved(all, m);
    return NULL;
}

void ad__spill_end_copy(ad_worker *w, ad_worker_session *s, ad_stream_queue *queue, ad_moved *m) {
    ad_fault fault = {0};
    const int64_t ns = (int64_t)(m->block.size / NS_FOR_BYTES);
    ad__stream_queue_expect(queue, ns, ns);
    ad__session_enqueued(s, queue, &fault);
    m->stream = queue->stream;
    if (m->event && w->backend->event_record(m->event, queue->stream, &fault))
        w->backend->stream_wait(queue->stream, NULL);
}

/* ---- out and in ---- */

void ad__spill_set_place(ad_worker_session *s, ad_buffer *b, ad_moved *m, const ad_block *block) {
    m->session = s;
    m->place = s->worker->hooks.checkpoint->is_recoverable(s) ? b->place : 0;
    b->moving.count = ad__buffer_moves(b) + 1;
    b->was_moved = true;
    m->now = (ad_journal_place){.id = b->id, .moves = b->moving.count, .block = block->size};
    ad__memory_place(block, &m->now.slab, &m->now.offset);
    s->worker->hooks.checkpoint->mark_buffer(s, b);
}

/* Give up a buffer's device memory: at once if the journal has no row of it, else when the copy is complete. */
static void leave_device(ad_worker *w, ad_buffer *b, ad_moved *m) {
    m->home = b->home->stream_arena;
    m->left = b->block;
    b->block.slab = NULL;
    b->address = NULL;
    if (m->place) check_copy(w, m);
    else give_left_memory(m);
}

/* Let the home stream queue wait for what the copy of a buffer needs. */
static int await_contents(ad_worker_session *s, ad_buffer *b, ad_fault *fault) {
    if (!b->shared) return ad__stream_queue_frees(s, b, fault);
    return s->worker->backend->asynchronous ? ad__stream_queue_uses(s, b->home, b, false, fault) : 0;
}

/* Copy a buffer to host memory. A copy from another session's stream arena is waited for: the journal has to say that
 * the bytes are elsewhere before that memory is given back. */
static int copy_out(ad_worker *w, ad_buffer *b, ad_moved *m, ad_fault *fault) {
    ad_stream_queue *queue = b->home;
    int status = await_contents(queue->session, b, fault);
    if (!status) status = w->backend->download(queue->stream, m->block.address, b->address, b->size, fault);
    if (status) return status;
    ad__spill_end_copy(w, queue->session, queue, m);
    return b->shared ? w->backend->stream_wait(queue->stream, fault) : 0;
}

static int move_out(ad_worker *w, ad_buffer *b) {
    ad_spill *all = w->spill;
    ad_fault fault = {0};
    ad_stream_queue *queue = b->home;
    ad_worker_session *s = queue->session;
    ad_moved *m = take_host_memory(w, queue, b->size);
    if (!m) return AD_E_MEMORY;
    const int status = copy_out(w, b, m, &fault);
    if (status) {
        recycle_moved(all, m);
        return ad__session_status(s, status, &fault);
    }
    ad__spill_remove(b);
    ad__spill_set_place(s, b, m, &m->block);
    leave_device(w, b, m);
    if (b->shared) w->hooks.sharing->leave_moved(s, b);
    ad__account_charge(ad__stream_arena_account(queue->stream_arena), AD_USE_MOVED, b->size);
    b->moving.to = m;
    b->is_moved = true;
    s->held.moved_bytes += b->size;
    all->bytes += b->size;
    all->moved_out += b->size;
    return 0;
}

void ad__spill_leave_host(ad_worker *w, ad_buffer *b) {
    ad_moved *m = b->moving.to;
    b->is_moved = false;
    b->home->session->held.moved_bytes -= b->size;
    w->spill->bytes -= b->size;
    m->leaving = true;
    check_copy(w, m);
    ad__spill_settle(w);
}

/* Defer freeing both blocks until a checkpoint without the buffer is committed. Without a journal they are freed
 * after the copy. */
static void defer_blocks(ad_worker *w, const ad_buffer *b, ad_moved *m) {
    ad_worker_session *s = b->home->session;
    unwatch_copy(w->spill, m);
    if (m->left.slab && w->hooks.checkpoint->defer_free(s, m->home, &m->left, b)) m->left.slab = NULL;
    if (w->hooks.checkpoint->defer_free(s, w->spill->stream_arena, &m->block, b)) m->block.slab = NULL;
}

void ad__spill_forget(ad_worker *w, ad_buffer *b) {
    ad__spill_remove(b);
    if (!b->is_moved) return;
    ad__account_return(ad__stream_arena_account(b->home->stream_arena), AD_USE_MOVED, b->size);
    b->moving.to->place = 0;
    if (w->hooks.checkpoint->must_defer(b->home->session, b)) defer_blocks(w, b, b->moving.to);
    ad__spill_leave_host(w, b);
}

bool ad__spill_copy(ad_worker *w, ad_stream_queue *queue, const ad_stream_arena *home, const ad_block *from,
                    ad_block *to) {
    ad_spill *all = w->spill;
    if (!all || !ad__stream_arena_is_of(home, &queue->gpu->memory)) return false;
    ad_moved *m = take_host_memory(w, queue, from->size);
    if (!m) return false;
    int status = w->backend->download(queue->stream, m->block.address, from->address, from->size, NULL);
    if (!status) status = w->backend->stream_wait(queue->stream, NULL);
    if (!status) {
        *to = m->block;
        m->block.slab = NULL;
        all->moved_out += from->size;
    }
    recycle_moved(all, m);
    return !status;
}

int ad__spill_take_up(ad_worker *w, ad_stream_queue *queue, ad_buffer *b, ad_slab *slab, const ad_journal_row *row) {
    ad_spill *all = w->spill;
    ad_moved *m = take_spare_moved(all);
    if (!m) return AD_E_MEMORY;
    int status = row->size > row->block ? AD_E_EXTENT : 0;
    if (!status) status = ad__memory_restore(all->stream_arena, slab, row->offset, row->block, &m->block);
    if (!status) status = open_event(w, m, queue->gpu);
    if (status) {
        recycle_moved(all, m);
        return status;
    }
    ad__account_charge(ad__stream_arena_account(queue->stream_arena), AD_USE_MOVED, row->size);
    b->moving.to = m;
    b->is_moved = true;
    b->address = NULL;
    queue->session->held.moved_bytes += row->size;
    all->bytes += row->size;
    return 0;
}

/* ---- use ---- */

static bool is_movable(const ad_buffer *b) { return b->block.slab && !b->in_use && !b->shared && !b->module; }

/* List a buffer as its owner's warmest, if it may be moved. */
static void list_warmest(const ad_spill *all, ad_buffer *b) {
    if (b->size < all->least || !is_movable(b)) return;
    ad__spill_remove(b);
    ad__spill_add(b->home->owner, b);
}

void ad__spill_end(ad_worker_session *s, ad_buffer *const *buffer, int n) {
    const ad_spill *all = s->worker->spill;
    for (int i = 0; i < n && all; i++) {
        if (!buffer[i]) continue;
        buffer[i]->in_use = false;
        list_warmest(all, buffer[i]);
    }
}

const char *ad__spill_bytes_of(const ad_buffer *b) { return b->moving.to->block.address; }

const ad_block *ad__spill_block_of(const ad_buffer *b) { return &b->moving.to->block; }

/* ---- what another worker has left ---- */

struct piece {
    ad_block *block;
    ad_stream_arena *stream_arena;
};

typedef struct found {
    struct piece *list;
    size_t count, room;
    ad_stream_arena *host;
} found;

static void collect_block(void *user, ad_buffer *b) {
    found *f = user;
    if (b->shared || !(b->is_moved || b->block.slab)) return;
    struct piece *list = ad__os_grow(f->list, f->count, &f->room, sizeof *list);
    if (!list) return;
    f->list = list;
    list[f->count++] =
        b->is_moved ? (struct piece){&b->moving.to->block, f->host} : (struct piece){&b->block, b->home->stream_arena};
}

static int compare_addresses(const void *a, const void *b) {
    const ad_block *x = ((const struct piece *)a)->block, *y = ((const struct piece *)b)->block;
    if (x->slab != y->slab) return (uintptr_t)x->slab < (uintptr_t)y->slab ? -1 : 1;
    return ((uintptr_t)x->address > (uintptr_t)y->address) - ((uintptr_t)x->address < (uintptr_t)y->address);
}

/* Cut each adopted slab that only one stream arena has blocks in. */
static void cut_slabs(const found *f, ad_block **block) {
    for (size_t i = 0, n; i < f->count; i += n) {
        bool one = true;
        for (n = 0; i + n < f->count && f->list[i + n].block->slab == f->list[i].block->slab; n++) {
            one = one && f->list[i + n].stream_arena == f->list[i].stream_arena;
            block[n] = f->list[i + n].block;
        }
        if (one) ad__memory_cut(f->list[i].stream_arena, block, n);
    }
}

void ad__spill_recovered(ad_worker *w) {
    if (!w->spill) return;
    found f = {.host = w->spill->stream_arena};
    pthread_mutex_lock(&w->sessions_lock);
    for (ad_worker_session *s = w->sessions; s; s = s->next) ad__buffers_each(&s->buffers, collect_block, &f);
    pthread_mutex_unlock(&w->sessions_lock);
    ad_block **block = f.count ? ad__os.calloc(f.count, sizeof *block) : NULL;
    if (block) {
        qsort(f.list, f.count, sizeof *f.list, compare_addresses);
        cut_slabs(&f, block);
    }
    free(block);
    free(f.list);
}

/* ---- making room ---- */

/* True if each holder of the buffer's memory may have a copy of its own. */
static bool may_part(const ad_buffer *b) { return b->sharing.holder->worker->hooks.sharing->may_part(b->shared); }

/* True if the buffer may leave when nothing else is left, although it is not listed: it is small, or others hold its
 * memory, too. */
static bool is_reserve(const ad_buffer *b, const ad_gpu *gpu) {
    if (b->listed || !b->home || b->home->gpu != gpu) return false;
    return b->shared ? may_part(b) : is_movable(b);
}

/* Move a buffer out, and with it all that hold its memory, which would not be free otherwise. Each gets a copy. */
static int move_holders_out(ad_worker *w, ad_buffer *b) {
    int status = 0;
    if (!b->shared) return move_out(w, b);
    if (!may_part(b)) {
        ad__spill_remove(b);
        return 0;
    }
    for (ad_buffer *at = b->shared->buffers, *next; at && !status; at = next) {
        next = at->sharing.next;
        status = move_out(w, at);
    }
    return status;
}

static ad_buffer *find_coldest(const ad_stream_queue *queue) {
    return ad__spill_coldest(&queue->gpu->spill, queue->gpu->memory.limit, queue->owner);
}

static void list_reserve(void *user, ad_buffer *b) {
    if (!is_reserve(b, user)) return;
    if (b->shared) b->block.size = b->shared->block.size;
    ad__spill_add(b->home->owner, b);
}

/* List the buffers that leave after all others, too. */
static void list_all_buffers(ad_worker *w, ad_gpu *gpu) {
    pthread_mutex_lock(&w->sessions_lock);
    for (ad_worker_session *s = w->sessions; s; s = s->next)
        if (!ad__run_is_dropping(s)) ad__buffers_each(&s->buffers, list_reserve, gpu);
    pthread_mutex_unlock(&w->sessions_lock);
}

/* Count the bytes that would be free if all listed buffers had left. */
static uint64_t count_room(const ad_stream_queue *queue) {
    const ad_memory *m = &queue->gpu->memory;
    return m->limit - m->used + queue->gpu->spill.bytes;
}

/* True if moving all that can be moved would make enough room, as far as is known. */
static bool can_make_room(ad_worker *w, const ad_stream_queue *queue, uint64_t size) {
    const ad_account *a = ad__stream_arena_account(queue->stream_arena);
    if (size > ad__account_most(a, queue->gpu->memory.limit) || ad__account_check(a, size, NULL)) return false;
    if (count_room(queue) < size) list_all_buffers(w, queue->gpu);
    return count_room(queue) >= size;
}

/* Choose the buffer that leaves next. Small ones follow when all large ones have left: a few of them may keep whole
 * slabs. So do those whose memory several sessions hold, which takes a copy for each. */
static ad_buffer *choose_next(ad_worker *w, const ad_stream_queue *queue) {
    if (!find_coldest(queue)) list_all_buffers(w, queue->gpu);
    return find_coldest(queue);
}

bool ad__spill_make_room(ad_worker *w, ad_stream_queue *queue, uint64_t size) {
    uint64_t moved = 0, most = queue->gpu->memory.limit / 16;
    if (!w->spill) return false;
    if (has_awaited_memory(w->spill) && await_copies(w, false)) return true;
    if (!can_make_room(w, queue, size)) return false;
    if (size < PIECE) size = PIECE;
    if (size > most) size = most;
    do {
        ad_buffer *b = choose_next(w, queue);
        if (!b || move_holders_out(w, b)) break;
        if (b->is_moved) moved += b->size;
    } while (moved < size);
    if (has_awaited_memory(w->spill)) await_copies(w, false);
    return moved;
}

void ad__spill_stir(ad_worker *w, ad_stream_queue *queue) {
    if (!w->spill || !w->spill->every || ++w->spill->takes % w->spill->every) return;
    ad_buffer *b = find_coldest(queue);
    if (b) move_holders_out(w, b);
}

/* ---- the whole ---- */

int ad__spill_arrive(ad_worker_session *s, ad_fault *fault) {
    if (!s->worker->spill || !(s->checkpoint.late && s->worker->hooks.checkpoint->is_recoverable(s))) return 0;
    int status = ad__stream_queues_wait(s, fault);
    reap_copies(s->worker);
    return ad__session_status(s, status, fault);
}

void ad__spill_look(ad_worker *w) {
    if (w->spill) reap_copies(w);
}

static void finish_copies(ad_worker_session *s) {
    ad_spill *all = s->worker->spill;
    for (ad_moved *m = all ? all->under_way : NULL, *next; m; m = next) {
        next = m->next;
        if (m->session == s) complete_copy(all, m);
    }
}

void ad__spill_trim(ad_worker *w) {
    if (!w->spill) return;
    reap_copies(w);
    ad__stream_arena_trim(w->spill->stream_arena);
}

void ad__spill_settle(ad_worker *w) {
    if (w->spill && !w->spill->bytes) ad__spill_trim(w);
}

void ad__spill_text(const ad_worker *w, char out[AD_SPILL_TEXT]) {
    char moved[16], limit[16];
    out[0] = 0;
    if (!w->spill || !w->spill->bytes) return;
    ad__bytes_text(w->spill->bytes, moved);
    ad__bytes_text(w->spill->limit, limit);
    snprintf(out, AD_SPILL_TEXT, "; %s are in host memory, of %s at most", moved, limit);
}

void ad__spill_close(ad_worker *w) {
    ad_spill *all = w->spill;
    if (!all) return;
    w->spill = NULL;
    for (int i = 0; i < 2; i++) {
        for (ad_moved *m = i ? all->spare : all->under_way, *next; m; m = next) {
            next = m->next;
            ad__memory_give(all->stream_arena, &m->block);
            close_moved(w, m);
        }
    }
    ad__stream_arena_close(all->stream_arena);
    free(all);
}

const ad_component ad__component_spill = {.name = "copies to host memory", .drop = finish_copies};
