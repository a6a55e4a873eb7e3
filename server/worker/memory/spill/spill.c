#include "server/worker/memory/spill/spill.h"

#include <stdio.h>
#include <stdlib.h>

#include "server/common/os.h"
#include "server/worker/exec/job.h"
#include "server/worker/memory/quota.h"

#define PIECE (1u << 20) /* so much is moved at a time, if there is as much */
#define NS_FOR_BYTES 20  /* a device copies so many bytes in a nanosecond, about */

/* Memory that a copy may still read or write stays as it is until that is complete, and so does what another worker
 * would have to go on with until it is written down where the bytes are now: one thing after the other. */
struct ad_moved {
    ad_moved *next, *prev; /* of those that are under way; next: of spare ones */
    ad_block block;        /* in host memory */
    ad_gpu *gpu;           /* whose event */
    ad_event *event;       /* the copy to it, or from it, is complete; NULL where copies are when they return */
    ad_stream *stream;     /* of that copy */
    bool under_way;
    bool leaving; /* no buffer is here any more */
    ad_session *session;
    ad_stream_arena *home; /* of the memory that the buffer has left; no slab: it has that no more */
    ad_block left;
    uint32_t place; /* of the row in which it is written down; 0: nowhere */
    ad_journal_place now;
};

/* ---- host memory ---- */

static void close_moved(ad_worker *w, ad_moved *m) {
    if (m->event) w->backend->event_close(m->event);
    free(m);
}

/* The block may be used again. */
static void release(ad_spill *all, ad_moved *m) {
    ad__memory_give(all->stream_arena, &m->block);
    m->leaving = false;
    m->next = all->spare;
    all->spare = m;
}

static void watch(ad_spill *all, ad_moved *m) {
    if (m->under_way) return;
    m->under_way = true;
    m->prev = NULL;
    m->next = all->under_way;
    if (m->next) m->next->prev = m;
    all->under_way = m;
}

static void unwatch(ad_spill *all, ad_moved *m) {
    if (!m->under_way) return;
    m->under_way = false;
    if (m->next) m->next->prev = m->prev;
    if (m->prev) m->prev->next = m->next;
    else all->under_way = m->next;
}

static void give_left(ad_moved *m) {
    if (m->left.slab) ad__memory_give(m->home, &m->left);
}

/* Its copy is complete. */
static void complete(ad_spill *all, ad_moved *m) {
    unwatch(all, m);
    if (m->place) ad__checkpoint_record_place(m->session, m->place, &m->now);
    m->place = 0;
    give_left(m);
    if (m->leaving) release(all, m);
}

/* True: it is complete by now. A device that is lost completes nothing. */
static bool look(ad_worker *w, ad_moved *m) {
    const bool done = !m->event || w->backend->event_done(m->event, NULL) == 1;
    if (done) complete(w->spill, m);
    else watch(w->spill, m);
    return done;
}

/* Look at all that are under way; true: memory of a device has been given back. */
static bool reap(ad_worker *w) {
    bool given = false;
    for (ad_moved *m = w->spill->under_way, *next; m; m = next) {
        const bool left = m->left.slab != NULL;
        next = m->next;
        given = (look(w, m) && left) || given;
    }
    return given;
}

/* The same when those are complete that keep memory of a device, or of the host: nothing else is waited for, as a copy
 * is the last that its stream has been asked for. */
static bool await(ad_worker *w, bool host) {
    for (ad_moved *m = w->spill->under_way; m; m = m->next)
        if ((host ? m->leaving : m->left.slab != NULL) && w->backend->event_done(m->event, NULL) != 1)
            w->backend->stream_wait(m->stream, NULL);
    return reap(w);
}

/* True: memory of a device waits for a copy. */
static bool is_awaited(const ad_spill *all) {
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

/* One without a block. NULL: no memory. */
static ad_moved *take_spare(ad_spill *all) {
    ad_moved *m = all->spare;
    if (!m) return ad__os.calloc(1, sizeof *m);
    all->spare = m->next;
    return m;
}

/* A block of host memory, and the event to go with it; NULL: there is none. */
static ad_moved *take_host(ad_worker *w, ad_stream_queue *queue, uint64_t size) {
    ad_spill *all = w->spill;
    reap(w);
    ad_moved *m = take_spare(all);
    if (!m) return NULL;
    int status = ad__memory_take(all->stream_arena, size, &m->block, NULL);
    if (status && all->under_way) {
        await(w, true);
        status = ad__memory_take(all->stream_arena, size, &m->block, NULL);
    }
    if (!status && !open_event(w, m, queue->gpu)) return m;
    release(all, m);
    return NULL;
}

/* What the stream has been asked for ends the copy. */
static void end_copy(ad_worker *w, ad_session *s, ad_stream_queue *queue, ad_moved *m) {
    ad_fault fault = {0};
    const int64_t ns = (int64_t)(m->block.size / NS_FOR_BYTES);
    ad__stream_queue_expect(queue, ns, ns);
    ad__session_enqueued(s, queue, &fault);
    m->stream = queue->stream;
    if (m->event && w->backend->event_record(m->event, queue->stream, &fault))
        w->backend->stream_wait(queue->stream, NULL);
}

/* ---- out and in ---- */

/* Once the copy is complete the buffer's bytes are there. */
static void note_place(ad_session *s, ad_buffer *b, ad_moved *m, const ad_block *block) {
    m->session = s;
    m->place = ad__session_is_recoverable(s) ? b->place : 0;
    b->moves = ad__buffer_moves(b) + 1;
    b->was_moved = true;
    m->now = (ad_journal_place){.id = b->id, .moves = b->moves, .block = block->size};
    ad__memory_place(block, &m->now.slab, &m->now.offset);
    ad__checkpoint_mark_buffer(s, b);
}

/* Where no other worker would look for it there, what comes later in the stream may have that memory at once. */
static void leave_device(ad_worker *w, ad_buffer *b, ad_moved *m) {
    m->home = b->home->stream_arena;
    m->left = b->block;
    b->block.slab = NULL;
    b->address = NULL;
    if (m->place) look(w, m);
    else give_left(m);
}

static int move_out(ad_worker *w, ad_buffer *b) {
    ad_spill *all = w->spill;
    ad_fault fault = {0};
    ad_stream_queue *queue = b->home;
    ad_session *s = queue->session;
    ad_moved *m = take_host(w, queue, b->size);
    if (!m) return AD_E_MEMORY;
    int status = ad__stream_queue_frees(s, b, &fault);
    if (!status) status = w->backend->download(queue->stream, m->block.address, b->address, b->size, &fault);
    if (status) {
        release(all, m);
        return ad__session_status(s, status, &fault);
    }
    end_copy(w, s, queue, m);
    ad__spill_remove(b);
    note_place(s, b, m, &m->block);
    leave_device(w, b, m);
    ad__account_charge(ad__stream_arena_account(queue->stream_arena), AD_USE_MOVED, b->size);
    b->moved = m;
    b->is_moved = true;
    s->moved_bytes += b->size;
    all->bytes += b->size;
    all->moved_out += b->size;
    return 0;
}

/* While something is moved, what is spare in host memory will be needed again. */
static void no_longer_moved(ad_worker *w, ad_buffer *b) {
    ad_moved *m = b->moved;
    b->is_moved = false;
    b->home->session->moved_bytes -= b->size;
    w->spill->bytes -= b->size;
    m->leaving = true;
    look(w, m);
    ad__spill_settle(w);
}

static int copy_in(ad_worker *w, ad_stream_queue *queue, const ad_buffer *b, void *to, ad_fault *fault) {
    ad_moved *m = b->moved;
    int status = m->event && queue != b->home ? w->backend->stream_follow(queue->stream, m->event, fault) : 0;
    return status ? status : w->backend->upload_pinned(queue->stream, to, m->block.address, b->size, fault);
}

/* Room for it where it was. What it takes the place of needs host memory before it has left its own there, so for that
 * moment there may be more than the limit: else nothing could be exchanged once that is reached. */
static int take_device(ad_session *s, ad_stream_queue *queue, uint64_t size, ad_block *out, ad_fault *fault) {
    ad_memory *host = &s->worker->spill->host;
    const uint64_t limit = s->worker->spill->limit, more = 2 * size + host->slab_size;
    host->limit = limit > UINT64_MAX - more ? UINT64_MAX : limit + more;
    int status = ad__quota_return(s, queue, size, out, fault);
    host->limit = limit;
    return status;
}

/* On the device that it was on, by way of the stream queue that uses it if that is one of that device. */
static int bring(ad_session *s, ad_stream_queue *queue, ad_buffer *b, bool contents, ad_fault *fault) {
    ad_worker *w = s->worker;
    ad_moved *m = b->moved;
    ad_block block;
    ad_account *home = ad__stream_arena_account(b->home->stream_arena);
    if (queue->gpu != b->home->gpu) queue = b->home;
    ad__account_return(home, AD_USE_MOVED, b->size);
    int status = take_device(s, queue, b->size, &block, fault);
    if (status) goto stay;
    if (contents && (status = copy_in(w, queue, b, block.address, fault))) goto give_block;
    if (contents) end_copy(w, s, queue, m);
    if (contents) w->spill->moved_in += b->size;
    note_place(s, b, m, &block);
    no_longer_moved(w, b);
    b->block = block;
    b->address = block.address;
    b->home = b->writer = queue;
    b->written = queue->sequence;
    b->readers = 0;
    return 0;

give_block:
    ad__memory_give(queue->stream_arena, &block);
stay:
    ad__account_charge(home, AD_USE_MOVED, b->size);
    return ad__session_status(s, status, fault);
}

/* Neither is used again until a state without the buffer is valid; otherwise they go when no copy uses them. */
static void park(ad_worker *w, const ad_buffer *b, ad_moved *m) {
    ad_session *s = b->home->session;
    unwatch(w->spill, m);
    if (m->left.slab && ad__checkpoint_defer_free(s, m->home, &m->left, b)) m->left.slab = NULL;
    if (ad__checkpoint_defer_free(s, w->spill->stream_arena, &m->block, b)) m->block.slab = NULL;
}

void ad__spill_forget(ad_worker *w, ad_buffer *b) {
    ad__spill_remove(b);
    if (!b->is_moved) return;
    ad__account_return(ad__stream_arena_account(b->home->stream_arena), AD_USE_MOVED, b->size);
    b->moved->place = 0;
    if (ad__checkpoint_must_defer(b->home->session, b)) park(w, b, b->moved);
    no_longer_moved(w, b);
}

bool ad__spill_copy(ad_worker *w, ad_stream_queue *queue, const ad_stream_arena *home, const ad_block *from,
                    ad_block *to) {
    ad_spill *all = w->spill;
    if (!all || !ad__stream_arena_is_of(home, &queue->gpu->memory)) return false;
    ad_moved *m = take_host(w, queue, from->size);
    if (!m) return false;
    int status = w->backend->download(queue->stream, m->block.address, from->address, from->size, NULL);
    if (!status) status = w->backend->stream_wait(queue->stream, NULL);
    if (!status) {
        *to = m->block;
        m->block.slab = NULL;
        all->moved_out += from->size;
    }
    release(all, m);
    return !status;
}

int ad__spill_take_up(ad_worker *w, ad_stream_queue *queue, ad_buffer *b, ad_slab *slab, const ad_journal_row *row) {
    ad_spill *all = w->spill;
    ad_moved *m = take_spare(all);
    if (!m) return AD_E_MEMORY;
    int status = row->size > row->block ? AD_E_EXTENT : 0;
    if (!status) status = ad__memory_restore(all->stream_arena, slab, row->offset, row->block, &m->block);
    if (!status) status = open_event(w, m, queue->gpu);
    if (status) {
        release(all, m);
        return status;
    }
    ad__account_charge(ad__stream_arena_account(queue->stream_arena), AD_USE_MOVED, row->size);
    b->moved = m;
    b->is_moved = true;
    b->address = NULL;
    queue->session->moved_bytes += row->size;
    all->bytes += row->size;
    return 0;
}

/* ---- use ---- */

static bool movable(const ad_buffer *b) { return b->block.slab && !b->in_use && !b->shared && !b->module; }

/* Listed as the one used last, if it may be moved at all. */
static void touch(const ad_spill *all, ad_buffer *b) {
    if (b->size < all->least || !movable(b)) return;
    ad__spill_remove(b);
    ad__spill_add(b->home->owner, b);
}

int ad__spill_begin(ad_session *s, ad_stream_queue *queue, ad_buffer *const *buffer, int n, ad_fault *fault) {
    const ad_spill *all = s->worker->spill;
    int status = 0;
    if (!all) return 0;
    for (int i = 0; i < n; i++) {
        if (!buffer[i]) continue;
        buffer[i]->in_use = true;
        ad__spill_remove(buffer[i]);
    }
    for (int i = 0; i < n && !status; i++)
        if (buffer[i] && buffer[i]->is_moved) status = bring(s, queue, buffer[i], true, fault);
    return status;
}

void ad__spill_end(ad_session *s, ad_buffer *const *buffer, int n) {
    const ad_spill *all = s->worker->spill;
    for (int i = 0; i < n && all; i++) {
        if (!buffer[i]) continue;
        buffer[i]->in_use = false;
        touch(all, buffer[i]);
    }
}

const char *ad__spill_bytes_of(const ad_buffer *b) { return b->moved->block.address; }

const ad_block *ad__spill_block_of(const ad_buffer *b) { return &b->moved->block; }

int ad__spill_renew(ad_session *s, ad_stream_queue *queue, ad_buffer *b, ad_fault *fault) {
    return b->is_moved ? bring(s, queue, b, false, fault) : 0;
}

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

static void find_block(void *user, ad_buffer *b) {
    found *f = user;
    if (b->shared || !(b->is_moved || b->block.slab)) return;
    struct piece *list = ad__os_grow(f->list, f->count, &f->room, sizeof *list);
    if (!list) return;
    f->list = list;
    list[f->count++] =
        b->is_moved ? (struct piece){&b->moved->block, f->host} : (struct piece){&b->block, b->home->stream_arena};
}

static int compare(const void *a, const void *b) {
    const ad_block *x = ((const struct piece *)a)->block, *y = ((const struct piece *)b)->block;
    if (x->slab != y->slab) return (uintptr_t)x->slab < (uintptr_t)y->slab ? -1 : 1;
    return ((uintptr_t)x->address > (uintptr_t)y->address) - ((uintptr_t)x->address < (uintptr_t)y->address);
}

/* Where all of a slab is one stream's. */
static void cut(const found *f, ad_block **block) {
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
    for (ad_session *s = w->sessions; s; s = s->next) ad__buffers_each(&s->buffers, find_block, &f);
    pthread_mutex_unlock(&w->sessions_lock);
    ad_block **block = f.count ? ad__os.calloc(f.count, sizeof *block) : NULL;
    if (block) {
        qsort(f.list, f.count, sizeof *f.list, compare);
        cut(&f, block);
    }
    free(block);
    free(f.list);
}

/* ---- making room ---- */

static ad_buffer *coldest(const ad_stream_queue *queue) {
    return ad__spill_coldest(&queue->gpu->spill, queue->gpu->memory.limit, queue->owner);
}

static void list_small(void *user, ad_buffer *b) {
    const ad_gpu *gpu = user;
    if (!b->listed && movable(b) && b->home->gpu == gpu) ad__spill_add(b->home->owner, b);
}

/* List what is small, too: it goes after all the others. */
static void list_all(ad_worker *w, ad_gpu *gpu) {
    pthread_mutex_lock(&w->sessions_lock);
    for (ad_session *s = w->sessions; s; s = s->next)
        if (!s->dropping) ad__buffers_each(&s->buffers, list_small, gpu);
    pthread_mutex_unlock(&w->sessions_lock);
}

/* What there would be if all that is listed were gone. */
static uint64_t room(const ad_stream_queue *queue) {
    const ad_memory *m = &queue->gpu->memory;
    return m->limit - m->used + queue->gpu->spill.bytes;
}

/* All that can be moved is enough, so far as that can be known. */
static bool would_help(ad_worker *w, const ad_stream_queue *queue, uint64_t size) {
    const ad_account *a = ad__stream_arena_account(queue->stream_arena);
    if (size > ad__account_most(a, queue->gpu->memory.limit) || ad__account_check(a, size, NULL)) return false;
    if (room(queue) < size) list_all(w, queue->gpu);
    return room(queue) >= size;
}

/* When all that is large has gone and still no slab has fallen free, a few small buffers may keep each of them. */
static ad_buffer *next_one(ad_worker *w, const ad_stream_queue *queue) {
    if (!coldest(queue)) list_all(w, queue->gpu);
    return coldest(queue);
}

bool ad__spill_make_room(ad_worker *w, ad_stream_queue *queue, uint64_t size) {
    uint64_t moved = 0, most = queue->gpu->memory.limit / 16;
    if (!w->spill) return false;
    if (is_awaited(w->spill) && await(w, false)) return true;
    if (!would_help(w, queue, size)) return false;
    if (size < PIECE) size = PIECE;
    if (size > most) size = most;
    do {
        ad_buffer *b = next_one(w, queue);
        if (!b || move_out(w, b)) break;
        moved += b->size;
    } while (moved < size);
    if (is_awaited(w->spill)) await(w, false);
    return moved;
}

void ad__spill_stir(ad_worker *w, ad_stream_queue *queue) {
    if (!w->spill || !w->spill->every || ++w->spill->takes % w->spill->every) return;
    ad_buffer *b = coldest(queue);
    if (b) move_out(w, b);
}

/* ---- the whole ---- */

int ad__spill_stream_queue(ad_worker *w, ad_stream_queue *queue) {
    if (!w->spill) return 0;
    queue->owner = ad__spill_owner_open(&queue->gpu->spill, ad__stream_arena_account(queue->stream_arena));
    return queue->owner ? 0 : AD_E_MEMORY;
}

int ad__spill_arrive(ad_session *s, ad_fault *fault) {
    if (!s->worker->spill || !ad__session_commits_late(s)) return 0;
    int status = ad__stream_queues_wait(s, fault);
    reap(s->worker);
    return status;
}

void ad__spill_look(ad_worker *w) {
    if (w->spill) reap(w);
}

void ad__spill_over(ad_session *s) {
    ad_spill *all = s->worker->spill;
    for (ad_moved *m = all ? all->under_way : NULL, *next; m; m = next) {
        next = m->next;
        if (m->session == s) complete(all, m);
    }
}

void ad__spill_trim(ad_worker *w) {
    if (!w->spill) return;
    reap(w);
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

uint64_t ad__spill_counter(const ad_worker *w, int index) {
    if (!w->spill) return 0;
    switch (index) {
    case AD_COUNTER_moved_out: return w->spill->moved_out;
    case AD_COUNTER_moved_in: return w->spill->moved_in;
    default: return w->spill->bytes;
    }
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
