#include "server/worker/sharing/sharing.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "server/common/os.h"
#include "server/worker/handlers.h"
#include "server/worker/exec/job.h"
#include "server/worker/spill/quota.h"
#include "server/worker/spill/spill.h"
#include "server/worker/session.h"
#include "server/worker/io/reply.h"
#include "server/worker/checkpoint/buffer_free.h"

static bool is_session_queue(const ad_worker_session *s, const ad_stream_queue *queue) {
    return queue && queue->session == s;
}

static bool is_asynchronous(const ad_worker *w, const ad_shared *m) { return w->backend->asynchronous && m->home; }

const char *ad__shared_owner(const ad_shared *m) {
    return m->home ? ad__stream_arena_account(m->home->stream_arena)->principal : NULL;
}

bool ad__shared_is_of(const ad_shared *m, const char *principal) {
    const char *owner = ad__shared_owner(m);
    return owner && !strcmp(owner, principal);
}

bool ad__shared_has_strangers(const ad_shared *m) {
    const ad_buffer *b = m->buffers;
    const ad_holder *h = m->others;
    while (b && ad__shared_is_of(m, b->sharing.holder->principal)) b = b->sharing.next;
    while (h && ad__shared_is_of(m, h->principal)) h = h->next;
    return b || h;
}

/* ---- holders ---- */

static void link_buffer(ad_shared *m, ad_worker_session *s, ad_buffer *b) {
    b->shared = m;
    b->sharing.holder = s;
    b->sharing.seen = 0;
    b->block.slab = NULL;
    b->sharing.prev = NULL;
    b->sharing.next = m->buffers;
    if (m->buffers) m->buffers->sharing.prev = b;
    m->buffers = b;
    s->sharing.shares++;
}

static void unlink_buffer(ad_shared *m, ad_buffer *b) {
    if (b->sharing.next) b->sharing.next->sharing.prev = b->sharing.prev;
    if (b->sharing.prev) b->sharing.prev->sharing.next = b->sharing.next;
    else m->buffers = b->sharing.next;
    b->sharing.holder->sharing.shares--;
    b->shared = NULL;
}

/* Begin to track the uses of a buffer. While a session has one stream queue, its uses are not tracked. */
static void begin_tracking(ad_buffer *b) {
    if (!b->home || b->order.writer) return;
    b->order.writer = b->home;
    b->order.written = b->home->sequence;
    b->order.readers |= 1ull << b->home->slot;
}

ad_shared *ad__shared_of(ad_worker_session *s, ad_buffer *b) {
    ad_sharing *all = s->worker->sharing;
    if (b->shared) return b->shared;
    ad_shared *m = ad__os.calloc(1, sizeof *m);
    if (!m) return NULL;
    *m = (ad_shared){.holders = 1,
                     .paying = 1,
                     .size = b->size,
                     .address = b->address,
                     .block = b->block,
                     .home = b->block.slab ? b->home : NULL,
                     .version = 1};
    if (m->home) {
        m->home->keeps++;
        begin_tracking(b);
        m->writer = b->order.writer;
    }
    s->held.buffer_bytes -= m->size;
    ad__shared_pay(m, s);
    ad__spill_remove(b);
    link_buffer(m, s, b);
    b->sharing.seen = m->version;
    ad__checkpoint_mark_buffer(s, b);
    all->count++;
    all->bytes += m->size;
    return m;
}

ad_shared *ad__shared_restore(ad_worker *w, ad_stream_queue *home, const ad_block *block, uint64_t size) {
    ad_shared *m = ad__os.calloc(1, sizeof *m);
    if (!m) return NULL;
    *m = (ad_shared){.size = size, .address = block->address, .block = *block, .home = home, .version = 1};
    if (home) home->keeps++;
    w->sharing->count++;
    w->sharing->bytes += size;
    return m;
}

ad_shared *ad__shared_without_memory(ad_worker *w, ad_fault *fault) {
    ad_shared *m = ad__shared_restore(w, NULL, &(ad_block){.address = ad__no_bytes}, 0);
    if (!m) ad__fault(fault, AD_E_MEMORY, "out of host memory");
    return m;
}

int ad__shared_join(ad_worker_session *s, ad_shared *m, uint64_t id, bool readonly, ad_fault *fault) {
    ad_buffer *b;
    ad_stream_queue *home = m->home ? ad__stream_queue_find(s, (uint64_t)m->home->gpu->index, fault) : NULL;
    if (m->home && !home) return fault->code;
    int status = ad__buffers_add(&s->buffers, id, &b, fault);
    if (status) return status;
    b->size = m->size;
    b->address = m->address;
    b->home = b->order.writer = home;
    b->order.written = home ? home->sequence : 0;
    b->readonly = readonly;
    if (m->poison) b->poison = ad__poison_hold(m->poison);
    if (!m->buffers) ad__shared_pay(m, s); /* no session has paid for it since the last buffer was gone */
    ad__shared_hold(m, s->principal);
    link_buffer(m, s, b);
    ad__checkpoint_mark_buffer(s, b);
    return 0;
}

/* ---- the end ---- */

void ad__sharing_due_soon(ad_worker *w) {
    const int64_t soon = ad__os_now() + AD_SHARING_LOOK;
    if (soon < w->sharing->due) w->sharing->due = soon;
}

/* Give back what nothing of an orphan's memory holds any more: no session will use it again. */
static void trim_orphan(ad_worker *w, ad_stream_queue *queue) {
    ad__stream_arena_trim(queue->stream_arena);
    if (ad__stream_arena_reap(queue->stream_arena)) ad__sharing_due_soon(w);
}

static void retire_orphan(ad_worker *w, ad_stream_queue *queue) {
    const ad_backend *backend = w->backend;
    ad_stream_queue **at = &w->sharing->orphan;
    while (*at != queue) at = &(*at)->next;
    *at = queue->next;
    w->sharing->orphans--;
    ad__stream_arena_trim(queue->stream_arena);
    if (backend->asynchronous && !queue->fence && backend->event_open(queue->gpu->device, false, &queue->fence, NULL))
        queue->fence = NULL;
    if (queue->fence && !backend->event_record(queue->fence, queue->stream, NULL)) {
        queue->next = w->sharing->going;
        w->sharing->going = queue;
        ad__sharing_due_soon(w);
    } else {
        backend->stream_wait(queue->stream, NULL);
        ad__stream_queue_close(backend, queue);
    }
}

void ad__sharing_orphan(ad_worker *w, ad_stream_queue *queue) {
    queue->session = NULL;
    queue->next = w->sharing->orphan;
    w->sharing->orphan = queue;
    w->sharing->orphans++;
    trim_orphan(w, queue);
}

static void free_shared(ad_worker *w, ad_shared *m) {
    w->sharing->count--;
    w->sharing->bytes -= m->size;
    if (m->ready) w->backend->event_close(m->ready);
    ad__poison_release(m->poison);
    free(m);
}

/* Make shared memory the only holder's own, if that is a session's buffer in its own stream queue's memory and no
 * program reads it. The home queue waits for former holders, and the session's other stream queues wait for the home
 * queue. */
static void unshare_memory(ad_worker *w, ad_shared *m) {
    ad_buffer *b = m->buffers;
    ad_worker_session *s = b->sharing.holder;
    if (m->readers || (m->home && !is_session_queue(s, m->home))) return;
    if (is_asynchronous(w, m) && b->order.writer && !ad__run_is_dropping(s) &&
        ad__stream_queue_after(w->backend, m->home, b->order.writer, NULL))
        return;
    ad__shared_pay(m, NULL);
    s->held.buffer_bytes += m->size;
    unlink_buffer(m, b);
    b->block = m->block;
    if (m->home) {
        m->home->keeps--;
        b->home = b->order.writer = m->home;
        b->order.written = ++m->home->sequence;
    }
    b->readonly = false;
    free_shared(w, m);
    if (!b->in_use) ad__spill_end(s, &b, 1);
}

void ad__shared_release(ad_worker *w, ad_shared *m, const char *principal) {
    ad_stream_queue *home = m->home;
    ad__paying_release(m, principal);
    if (--m->holders == 1 && m->buffers) unshare_memory(w, m);
    else if (!m->holders) {
        ad__shared_pay(m, NULL);
        if (home) {
            ad__memory_give(home->stream_arena, &m->block);
            home->keeps--;
        }
        free_shared(w, m);
        if (!home || home->session) return;
        if (home->keeps) trim_orphan(w, home);
        else retire_orphan(w, home);
    }
}

/* ---- order ---- */

static int record_write(const ad_backend *backend, ad_shared *m, ad_stream_queue *queue, ad_fault *fault) {
    if (m->ready && m->ready_gpu != queue->gpu) {
        backend->event_close(m->ready);
        m->ready = NULL;
    }
    int status = m->ready ? 0 : backend->event_open(queue->gpu->device, false, &m->ready, fault);
    if (status) return status;
    m->ready_gpu = queue->gpu;
    status = backend->event_record(m->ready, queue->stream, fault);
    m->recorded = !status;
    if (!status) m->writer = NULL;
    return status;
}

static int mark_write_point(ad_worker_session *s, ad_buffer *b, ad_fault *fault) {
    ad_shared *m = b->shared;
    if (!is_asynchronous(s->worker, m)) return 0;
    begin_tracking(b);
    int status = ad__shared_uses(s, b->order.writer, b, false, fault);
    return ad__session_status(s, status ? status : record_write(s->worker->backend, m, b->order.writer, fault), fault);
}

/* Let the stream queue wait for the last write, which another session may have made. */
static int follow_writer(ad_worker_session *s, ad_stream_queue *queue, ad_buffer *b, ad_fault *fault) {
    const ad_backend *backend = s->worker->backend;
    const ad_shared *m = b->shared;
    int status = 0;
    if (b->sharing.seen == m->version) return 0;
    if (m->writer)
        status = is_session_queue(s, m->writer) ? 0 : ad__stream_queue_after(backend, queue, m->writer, fault);
    else if (m->recorded) status = backend->stream_follow(queue->stream, m->ready, fault);
    if (status) return status;
    b->sharing.seen = m->version;
    if (b->order.writer && b->order.writer != queue)
        status = ad__stream_queue_after(backend, queue, b->order.writer, fault);
    b->order.writer = queue; /* the session's other stream queues wait for this one */
    b->order.written = queue->sequence + 1;
    return status;
}

static int follow_users(const ad_backend *backend, ad_stream_queue *queue, const ad_buffer *b, ad_fault *fault) {
    ad_worker_session *s = b->sharing.holder;
    int status = b->order.writer ? ad__stream_queue_after(backend, queue, b->order.writer, fault) : 0;
    for (uint64_t left = b->order.readers; left && !status; left &= left - 1)
        status = ad__stream_queue_after(backend, queue, s->streams.queues[__builtin_ctzll(left)], fault);
    return status;
}

/* Let the stream queue, which is about to write, wait for all holders and former holders. */
static int follow_all(ad_worker_session *s, ad_stream_queue *queue, ad_buffer *b, ad_fault *fault) {
    const ad_backend *backend = s->worker->backend;
    ad_shared *m = b->shared;
    int status = ad__stream_queue_after(backend, queue, m->home, fault); /* the home queue waits for former holders */
    for (const ad_buffer *other = m->buffers; other && !status; other = other->sharing.next)
        if (other->sharing.holder != s) status = follow_users(backend, queue, other, fault);
    m->writer = queue;
    m->recorded = false;
    b->sharing.seen = ++m->version;
    return status;
}

int ad__shared_detach(ad_worker_session *s, ad_buffer *b, ad_fault *fault) {
    const ad_backend *backend = s->worker->backend;
    ad_buffer own = {0};
    uint64_t size = b->size;
    ad_stream_queue *queue = b->home;
    if (size) {
        const bool in_use = b->in_use;
        b->in_use = true; /* it stays while memory is found */
        int status = ad__buffer_take_memory(s, queue, &own, size, false, fault);
        b->in_use = in_use;
        if (!status && backend->asynchronous) status = ad__stream_queue_uses(s, queue, b, false, fault);
        if (!status) status = backend->move(queue->stream, own.address, b->address, size, fault);
        if (!status) status = ad__session_enqueued(s, queue, fault);
        if (status) {
            ad__buffer_give_memory(s, &own);
            return ad__session_status(s, status, fault);
        }
    }
    ad__shared_leave(s, b);
    ad__checkpoint_mark_buffer(s, b);
    if (!size) return 0;
    b->address = own.address;
    b->block = own.block;
    b->size = size;
    b->home = b->order.writer = queue;
    b->order.written = queue->sequence;
    b->order.readers = 0;
    return 0;
}

/* Copy a buffer to memory that nobody holds yet. If operations complete later, wait: a checkpoint may have the copy
 * at once. */
static int make_copy(ad_worker_session *s, ad_buffer *b, ad_block *block, ad_fault *fault) {
    const ad_backend *backend = s->worker->backend;
    ad_stream_queue *queue = b->home;
    int status = ad__quota_take(s, queue, b->size, block, fault);
    if (status) return status;
    if (backend->asynchronous) status = ad__stream_queue_uses(s, queue, b, false, fault);
    if (!status) status = backend->move(queue->stream, block->address, b->address, b->size, fault);
    if (!status) status = ad__session_enqueued(s, queue, fault);
    if (!status && s->checkpoint.late) status = backend->stream_wait(queue->stream, fault);
    if (status) ad__memory_give(queue->stream_arena, block);
    return ad__session_status(s, status, fault);
}

static ad_shared *give_copy(ad_worker_session *s, ad_buffer *b, ad_fault *fault) {
    ad_block block;
    if (make_copy(s, b, &block, fault)) return NULL;
    ad_shared *m = ad__shared_restore(s->worker, b->home, &block, b->size);
    if (!m) {
        ad__memory_give(b->home->stream_arena, &block);
        ad__fault(fault, AD_E_MEMORY, "out of host memory");
        return NULL;
    }
    ad__shared_hold(m, s->principal);
    if (!is_asynchronous(s->worker, m) ||
        !ad__session_status(s, record_write(s->worker->backend, m, b->home, fault), fault))
        return m;
    ad__shared_release(s->worker, m, s->principal);
    return NULL;
}

/* Give the error of a buffer that has failed, and no memory. What the buffer has may be the elements of before: other
 * holders of a snapshot, which did not fail, have them still. */
static ad_shared *give_failure(ad_worker_session *s, const ad_buffer *b, ad_fault *fault) {
    ad_shared *m = ad__shared_without_memory(s->worker, fault);
    if (!m) return NULL;
    m->poison = ad__poison_hold(b->poison);
    ad__shared_hold(m, s->principal);
    return m;
}

ad_shared *ad__shared_give(ad_worker_session *s, ad_buffer *b, ad_fault *fault) {
    if (b->poison) return give_failure(s, b, fault);
    if (b->import) return give_copy(s, b, fault);
    ad_shared *m = ad__shared_of(s, b);
    if (!m) {
        ad__fault(fault, AD_E_MEMORY, "out of host memory");
        return NULL;
    }
    ad__shared_hold(m, s->principal);
    if (!mark_write_point(s, b, fault)) return m;
    ad__shared_release(s->worker, m, s->principal);
    return NULL;
}

int ad__shared_uses(ad_worker_session *s, ad_stream_queue *queue, ad_buffer *b, bool writes, ad_fault *fault) {
    const bool changes = writes && !b->shared->moving;
    if (changes && b->readonly)
        return ad__fault(fault, AD_E_VALUE, "buffer %" PRIu64 " is read-only: it was published by somebody", b->id);
    if (changes && ad__shared_is_kept(b->shared)) return ad__shared_detach(s, b, fault);
    if (!is_asynchronous(s->worker, b->shared)) return 0;
    int status = follow_writer(s, queue, b, fault);
    if (!status && writes) status = follow_all(s, queue, b, fault);
    return ad__session_status(s, status, fault);
}

/* The home queue is not idle before the other queue, even if the session of that ends. */
void ad__shared_home_waits(const ad_backend *backend, ad_stream_queue *home, ad_stream_queue *queue) {
    if (ad__stream_queue_after(backend, home, queue, NULL)) backend->stream_wait(queue->stream, NULL);
    else if (home->session) ad__session_enqueued(home->session, home, NULL);
}

/* Let the home queue wait for the session's stream queues that have used the memory, which is given back in its
 * order. */
static void leave_in_order(ad_worker_session *s, ad_shared *m, ad_buffer *b) {
    const ad_backend *backend = s->worker->backend;
    uint64_t used = b->order.readers | (is_session_queue(s, b->order.writer) ? 1ull << b->order.writer->slot : 0);
    for (; used; used &= used - 1) {
        ad_stream_queue *queue = s->streams.queues[__builtin_ctzll(used)];
        if (queue != m->home && !ad__stream_queue_idle(queue)) ad__shared_home_waits(backend, m->home, queue);
    }
    if (is_session_queue(s, m->writer) && record_write(backend, m, m->writer, NULL))
        backend->stream_wait(m->writer->stream, NULL);
}

static void release_shared(ad_worker_session *s, void *shared) { ad__shared_release(s->worker, shared, s->principal); }

static bool is_shared_of(const void *shared, const void *principal) { return ad__shared_is_of(shared, principal); }

bool ad__sharing_has_deferred_of(const ad_worker_session *s, const char *principal) {
    return ad__checkpoint_has_deferred(s, release_shared, is_shared_of, principal);
}

/* Take the buffer from the memory's list. Its hold has still to be released. */
static void leave_list(ad_worker_session *s, ad_shared *m, ad_buffer *b) {
    if (is_asynchronous(s->worker, m) && !ad__run_is_dropping(s)) leave_in_order(s, m, b);
    if (is_session_queue(s, m->writer)) m->writer = NULL;
    unlink_buffer(m, b);
}

void ad__shared_leave_moved(ad_worker_session *s, ad_buffer *b) {
    ad_shared *m = b->shared;
    leave_list(s, m, b);
    s->held.buffer_bytes += b->size;
    release_shared(s, m);
}

void ad__shared_leave(ad_worker_session *s, ad_buffer *b) {
    ad_shared *m = b->shared;
    const bool defers = ad__checkpoint_must_defer(s, b);
    leave_list(s, m, b);
    b->home = ad__run_is_dropping(s) ? NULL : b->home;
    b->readonly = false;
    if (m->payer == s && m->buffers) ad__shared_pay(m, m->buffers->sharing.holder);
    if (!defers || !ad__checkpoint_defer_release(s, release_shared, m, true)) release_shared(s, m);
}

/* ---- requests ---- */

int ad__shared_buffer(ad_worker_session *s, uint64_t id, const char *what, ad_buffer **out, ad_fault *fault) {
    ad_buffer *b = ad__buffers_find(&s->buffers, id);
    if (!b) return ad__fault(fault, AD_E_STALE, "%s: there is no buffer %" PRIu64, what, id);
    if (b->module)
        return ad__fault(fault, AD_E_VALUE, "%s: buffer %" PRIu64 " is a variable of a module: share a copy of it",
                         what, id);
    if (ad__deferred_checks_of(s, b)) {
        ad__session_await(s, AD_WAIT_ALL, NULL, NULL);
        if (!ad__session_poll(s)) return AD_WAITS;
    }
    const bool moved = b->is_moved;
    int status = ad__spill_begin(s, b->home, &b, 1, fault);
    ad__spill_end(s, &b, 1);
    if (!status && moved) status = ad__spill_arrive(s, fault);
    if (status) return status;
    ad__checkpoint_end_filling(s, b);
    *out = b;
    return 0;
}

int ad__sharing_begin(ad_worker_session *s, const ad_message *m, unsigned grant, ad_fault *fault) {
    if (!(s->grants.may & grant) && grant == AD_GRANT_EXPORTS)
        return ad__fault(fault, AD_E_DENIED, "share: %s may not hand arrays to other sessions (grant exports)",
                         s->principal);
    if (!(s->grants.may & grant) && grant)
        return ad__fault(fault, AD_E_DENIED, "%s: %s may not publish arrays or look them up (grant names)",
                         m->row->name, s->principal);
    /* Other sessions must get only what is committed. */
    return ad__checkpoint_is_committed(s) ? 0 : AD_WAITS;
}
