#include "server/worker/device/stream_queue.h"

#include <inttypes.h>
#include <stdlib.h>

#include "protocol/size.h"
#include "server/common/os.h"
#include "server/worker/session.h"

#define RECENT_WINDOW 20000000 /* window in ns over which a session's device time is added up */
#define MUCH (16 << 20)        /* bytes of a buffer on another device from which its use takes long */
#define PEER_RATE 330          /* bytes that come from another device in a ns, over NVLink */
#define NEGLIGIBLE 500         /* ns of an operation that are too few to count */
#define RECENT_MOST 2000000    /* device time in a window, in ns, above which a session gets low priority */

static const ad_backend *get_backend(const ad_worker_session *s) { return s->worker->backend; }

/* ---- opening and closing ---- */

/* Choose a stream's priority as backends count it: below 0 runs first. Default streams of normal priority run before
 * low ones, and before those of heavy users. */
static int choose_priority(const ad_worker_session *s, bool high) {
    if (s->grants.priority < AD_PRIORITY_NORMAL) return 0;
    return -(int)high - (s->grants.priority > AD_PRIORITY_NORMAL);
}

/* Open the list of the queue's buffers that could be moved to host memory. AD_E_MEMORY. */
static int open_owner(const ad_worker *w, ad_stream_queue *queue) {
    if (!w->spill) return 0;
    queue->owner = ad__spill_owner_open(&queue->gpu->spill, ad__stream_arena_account(queue->stream_arena));
    return queue->owner ? 0 : AD_E_MEMORY;
}

static int create_stream_queue(ad_worker_session *s, unsigned slot, ad_gpu *gpu, bool high, ad_fault *fault) {
    ad_stream_queue *queue = ad__os.calloc(1, sizeof *queue);
    if (!queue) return ad__fault(fault, AD_E_MEMORY, "out of host memory");
    int status = get_backend(s)->stream_open(gpu->device, choose_priority(s, high), &queue->stream, fault);
    ad__session_status(s, status, fault);
    if (status) goto free_stream_queue;
    if (!(queue->stream_arena = ad__stream_arena_open(&gpu->memory, s->principal, queue->stream))) {
        status = ad__fault(fault, AD_E_MEMORY, "out of host memory");
        goto close_stream;
    }
    ad__account_grant(ad__stream_arena_account(queue->stream_arena), &s->grants);
    queue->session = s;
    queue->slot = slot;
    queue->gpu = gpu;
    queue->high = high;
    queue->most_marks = s->grants.priority < AD_PRIORITY_NORMAL ? AD_MARKS_LOW : AD_MARKS;
    if (open_owner(s->worker, queue)) {
        status = ad__fault(fault, AD_E_MEMORY, "out of host memory");
        goto close_stream_arena;
    }
    s->streams.queues[slot] = queue;
    if (slot == 1) s->streams.unrecorded = s->streams.queues[0]->sequence;
    if (slot >= s->streams.count) s->streams.count = slot + 1;
    return 0;

close_stream_arena:
    ad__stream_arena_close(queue->stream_arena);
close_stream:
    get_backend(s)->stream_close(queue->stream);
free_stream_queue:
    free(queue);
    return status;
}

/* Return the stream queue, or NULL with a fault if its device is lost. */
static ad_stream_queue *check_device(ad_stream_queue *queue, ad_fault *fault) {
    if (!queue->lost) return queue;
    ad__fault(fault, AD_E_DEVICE, "device %u is lost, and its stream with it: choose another device", queue->lost - 1);
    return NULL;
}

static ad_stream_queue *find_open_queue(ad_worker_session *s, uint64_t id) {
    for (unsigned i = 0; i < s->streams.count; i++)
        if (s->streams.queues[i]->open && s->streams.queues[i]->id == id) return s->streams.queues[i];
    return NULL;
}

/* A device that the session may not use is not opened either: that would cost device memory. */
ad_gpu *ad__session_gpu(ad_worker_session *s, uint64_t device, ad_fault *fault) {
    if (device < AD_DEVICES && !(s->grants.devices >> device & 1)) {
        ad__fault(fault, AD_E_DENIED, "%s may not use device %" PRIu64 " (grant devices)", s->principal, device);
        return NULL;
    }
    return ad__gpu_get(s->worker, device, fault);
}

int ad__stream_queue_open(ad_worker_session *s, uint64_t id, uint64_t device, bool high, ad_fault *fault) {
    ad_gpu *gpu = ad__session_gpu(s, device, fault);
    ad_stream_queue *queue = NULL;
    if (!gpu) return fault->code;
    if (find_open_queue(s, id)) return ad__fault(fault, AD_E_VALUE, "stream %" PRIu64 " exists already", id);
    for (unsigned i = 0; !queue && i < s->streams.count; i++) {
        ad_stream_queue *old = s->streams.queues[i];
        if (!old->open && old->gpu == gpu && old->high == high) queue = old;
    }
    if (!queue) {
        if (s->streams.count == AD_STREAM_QUEUES)
            return ad__fault(fault, AD_E_LIMIT, "a session has at most %d streams", AD_STREAM_QUEUES);
        int status = create_stream_queue(s, s->streams.count, gpu, high, fault);
        if (status) return status;
        queue = s->streams.queues[s->streams.count - 1];
    }
    queue->id = id;
    queue->open = true;
    queue->lost = 0;
    return 0;
}

uint64_t ad__session_usable_device(ad_worker_session *s, uint64_t device) {
    if (ad__session_gpu(s, device, NULL)) return device;
    for (uint64_t i = 0; i < (uint64_t)s->worker->device.count && i < AD_DEVICES; i++)
        if (ad__session_gpu(s, i, NULL)) return i;
    return device;
}

ad_stream_queue *ad__stream_queue_restore(ad_worker_session *s, uint64_t id, uint64_t device, bool high,
                                          ad_fault *fault) {
    ad_stream_queue *queue = find_open_queue(s, id);
    if (queue) return queue;
    const uint64_t usable = ad__session_usable_device(s, device);
    if (ad__stream_queue_open(s, id, usable, high, fault)) return NULL;
    queue = find_open_queue(s, id);
    queue->lost = usable == device ? 0 : (unsigned)device + 1;
    return queue;
}

ad_stream_queue *ad__stream_queue_known(ad_worker_session *s, uint64_t id) { return find_open_queue(s, id); }

ad_stream_queue *ad__stream_queue_find(ad_worker_session *s, uint64_t id, ad_fault *fault) {
    ad_stream_queue *queue = find_open_queue(s, id);
    if (queue && id != AD_HIDDEN_STREAM) return check_device(queue, fault);
    if (id >= AD_OWN_STREAMS) {
        ad__fault(fault, AD_E_STALE, "there is no stream %" PRIu64, id);
        return NULL;
    }
    return ad__stream_queue_open(s, id, id, true, fault) ? NULL : find_open_queue(s, id);
}

/* Get the low-priority stream queue beside a default stream, opening it if needed. NULL with a fault. */
static ad_stream_queue *get_low_queue(ad_worker_session *s, ad_stream_queue *queue, ad_fault *fault) {
    if (queue->low || s->streams.count == AD_STREAM_QUEUES) return queue->low ? queue->low : queue;
    if (create_stream_queue(s, s->streams.count, queue->gpu, false, fault)) return NULL;
    queue->low = s->streams.queues[s->streams.count - 1];
    queue->low->open = true;
    queue->low->id = AD_HIDDEN_STREAM;
    return queue->low;
}

ad_stream_queue *ad__stream_queue_current(ad_worker_session *s, ad_fault *fault) {
    if (!s->streams.current && !(s->streams.current = ad__stream_queue_find(s, 0, fault))) return NULL;
    if (!check_device(s->streams.current, fault)) return NULL;
    if (!s->usage.heavy || s->streams.current->id >= AD_OWN_STREAMS) return s->streams.current;
    return get_low_queue(s, s->streams.current, fault);
}

/* Correct an estimate by the session's pace. */
static int64_t correct_estimate(const ad_worker_session *s, int64_t estimate) {
    const double paced = (double)estimate * ad__pace(&s->usage.pace);
    return paced < (double)INT64_MAX ? (int64_t)paced : INT64_MAX;
}

int64_t ad__stream_queue_charge(ad_worker_session *s, int64_t estimate) {
    const int64_t ns = correct_estimate(s, estimate);
    s->usage.turn_ns = ad__size_sum(s->usage.turn_ns, ns);
    s->usage.device_ns = ad__size_sum(s->usage.device_ns, ns);
    if (ns <= NEGLIGIBLE) return ns;
    const int64_t now = ad__session_turn_time(s);
    if (now - s->usage.recent_since > RECENT_WINDOW) {
        s->usage.heavy = s->usage.recent > RECENT_MOST;
        s->usage.recent = 0;
        s->usage.recent_since = now;
    }
    s->usage.recent = ad__size_sum(s->usage.recent, ns);
    if (s->usage.recent > RECENT_MOST) s->usage.heavy = true;
    return ns;
}

void ad__stream_queue_expect(ad_stream_queue *queue, int64_t ns, int64_t corrected) {
    queue->coming.ns = ad__size_sum(queue->coming.ns, corrected);
    queue->coming.estimate = ad__size_sum(queue->coming.estimate, ns);
    queue->coming.count++;
    if (queue->session) ad__parts_choose(queue->session, queue);
}

int ad__stream_queue_drop(ad_worker_session *s, uint64_t id, ad_fault *fault) {
    ad_stream_queue *queue = id == AD_HIDDEN_STREAM ? NULL : find_open_queue(s, id);
    if (!queue || id < AD_OWN_STREAMS)
        return ad__fault(fault, AD_E_STALE, "there is no stream %" PRIu64 " to drop", id);
    if (s->streams.current == queue) s->streams.current = NULL;
    queue->open = false;
    return 0;
}

static void close_marks(const ad_backend *b, ad_stream_queue *queue) {
    for (unsigned i = 0; i < AD_MARKS; i++)
        if (queue->mark[i].event) b->event_close(queue->mark[i].event);
}

ad_stream_queue *ad__stream_queue_alone(ad_worker *w, uint64_t device, const char *principal, ad_fault *fault) {
    ad_gpu *gpu = ad__gpu_get(w, device, fault);
    ad_stream_queue *queue = gpu ? ad__os.calloc(1, sizeof *queue) : NULL;
    if (!queue) {
        if (gpu) ad__fault(fault, AD_E_MEMORY, "out of host memory");
        return NULL;
    }
    if (w->backend->stream_open(gpu->device, 0, &queue->stream, fault)) goto free_stream_queue;
    queue->gpu = gpu;
    if ((queue->stream_arena = ad__stream_arena_open(&gpu->memory, principal, queue->stream))) return queue;
    ad__fault(fault, AD_E_MEMORY, "out of host memory");
    w->backend->stream_close(queue->stream);
free_stream_queue:
    free(queue);
    return NULL;
}

void ad__stream_queue_close(const ad_backend *b, ad_stream_queue *queue) {
    if (queue->fence) b->event_close(queue->fence);
    ad__spill_owner_close(queue->owner);
    ad__stream_arena_close(queue->stream_arena);
    b->stream_close(queue->stream);
    free(queue);
}

void ad__stream_queues_close(ad_worker_session *s) {
    for (unsigned i = 0; i < s->streams.count; i++) {
        close_marks(get_backend(s), s->streams.queues[i]);
        if (s->streams.queues[i]->keeps) s->worker->hooks.sharing->orphan(s->worker, s->streams.queues[i]);
        else ad__stream_queue_close(get_backend(s), s->streams.queues[i]);
    }
    s->streams.count = 0;
    s->streams.unrecorded = 0;
    s->streams.current = NULL;
}

/* ---- order between stream queues ---- */

/* Record the fence behind all that a stream queue holds. */
static int record_fence(const ad_backend *b, ad_stream_queue *queue, ad_fault *fault) {
    int status = queue->fence ? 0 : b->event_open(queue->gpu->device, false, &queue->fence, fault);
    if (!status) status = b->event_record(queue->fence, queue->stream, fault);
    if (!status) queue->fenced = queue->sequence;
    return status;
}

int ad__stream_queue_after(const ad_backend *b, ad_stream_queue *queue, ad_stream_queue *other, ad_fault *fault) {
    if (queue == other) return 0;
    const int status = record_fence(b, other, fault);
    return status ? status : b->stream_follow(queue->stream, other->fence, fault);
}

/* Find the oldest mark after an operation. NULL: there is none. */
static const ad_mark *find_mark(const ad_stream_queue *queue, uint64_t sequence) {
    for (unsigned i = 0; i < queue->nmarks; i++) {
        const ad_mark *m = &queue->mark[(queue->first_mark + i) % AD_MARKS];
        if (m->sequence >= sequence) return m;
    }
    return NULL;
}

/* Make `queue` wait for `other` at the first point that is recorded after operation `*sequence`: a mark, or the fence.
 * Where there is none, the fence is recorded now. *sequence becomes the last operation before that point. */
static int follow_from(const ad_backend *b, ad_stream_queue *queue, ad_stream_queue *other, uint64_t *sequence,
                       ad_fault *fault) {
    const ad_mark *m = find_mark(other, *sequence);
    if (!m && other->fenced < *sequence) {
        *sequence = other->sequence;
        return ad__stream_queue_after(b, queue, other, fault);
    }
    *sequence = m ? m->sequence : other->fenced;
    return b->stream_follow(queue->stream, m ? m->event : other->fence, fault);
}

/* Make `queue` wait for an operation of `other`, unless it does already or the operation is complete. Where a mark or
 * the fence comes after the operation, what `other` holds behind that is not waited for. So two devices that exchange
 * parts of their arrays do it at one time. Any operation that was not recorded may have used the buffer as well. */
static int follow_queue(ad_worker_session *s, ad_stream_queue *queue, ad_stream_queue *other, uint64_t sequence,
                        ad_fault *fault) {
    if (other->slot == 0 && sequence < s->streams.unrecorded) sequence = s->streams.unrecorded;
    if (queue == other || queue->followed[other->slot] >= sequence || other->passed >= sequence) return 0;
    const int status = follow_from(get_backend(s), queue, other, &sequence, fault);
    if (!status) queue->followed[other->slot] = sequence;
    return ad__session_status(s, status, fault);
}

static int follow_readers(ad_worker_session *s, ad_stream_queue *queue, ad_buffer *b, ad_fault *fault) {
    for (uint64_t left = b->order.readers; left; left &= left - 1) {
        ad_stream_queue *reader = s->streams.queues[__builtin_ctzll(left)];
        int status = follow_queue(s, queue, reader, reader->sequence, fault);
        if (status) return status;
    }
    return 0;
}

/* ---- marks ---- */

static int record_mark(ad_worker_session *s, ad_stream_queue *queue, ad_fault *fault) {
    const ad_backend *b = get_backend(s);
    ad_mark *m = &queue->mark[(queue->first_mark + queue->nmarks) % AD_MARKS];
    if (!queue->unmarked || ad__stream_queue_full(queue)) return 0;
    int status = m->event ? 0 : b->event_open(queue->gpu->device, false, &m->event, fault);
    if (!status) status = b->event_record(m->event, queue->stream, fault);
    if (status) return ad__session_status(s, status, fault);
    m->first = queue->unmarked_first;
    m->sequence = queue->sequence;
    m->expected = queue->expected.count == queue->unmarked ? queue->expected.estimate : 0;
    m->asked = ad__os_now();
    queue->nmarks++;
    queue->unmarked = 0;
    queue->expected = (ad_expected){0};
    return 0;
}

/* Mark what a stream queue holds, before much memory of another device is used. Other streams that need what comes
 * before do not wait for that then. Where no mark is left the fence is recorded. */
static int mark_before_peer(ad_worker_session *s, ad_stream_queue *queue, const ad_buffer *b, ad_fault *fault) {
    if (b->home->gpu == queue->gpu || b->size < MUCH || !get_backend(s)->asynchronous || !queue->unmarked) return 0;
    if (!ad__stream_queue_full(queue)) return record_mark(s, queue, fault);
    return ad__session_status(s, record_fence(get_backend(s), queue, fault), fault);
}

/* ---- uses of buffers ---- */

/* Count the bytes of an operand that lie on another device. A broadcast operand has fewer elements in memory than its
 * shape says. */
static int64_t count_far_bytes(const ad_stream_queue *queue, const ad_buffer *b, const ad_desc *operand) {
    if (!b->home || b->home->gpu == queue->gpu) return 0;
    const int64_t all = ad__size_product(ad__desc_count(operand), ad__dtypes[operand->dtype].size);
    const int64_t most = (int64_t)b->size;
    return all < most ? all : most;
}

bool ad__stream_queue_is_far(const ad_stream_queue *queue, const ad_buffer *b, const ad_desc *operand) {
    return count_far_bytes(queue, b, operand) >= MUCH;
}

/* The time that the bytes take is expected, so that a mark follows them soon, and streams that need them wait for
 * nothing else. */
void ad__stream_queue_count_peer(ad_worker_session *s, ad_stream_queue *queue, const ad_buffer *b,
                                 const ad_desc *operand) {
    const int64_t bytes = count_far_bytes(queue, b, operand), ns = bytes / PEER_RATE;
    s->usage.peer_bytes = ad__size_sum(s->usage.peer_bytes, bytes);
    queue->coming.ns = ad__size_sum(queue->coming.ns, ns);
    queue->coming.estimate = ad__size_sum(queue->coming.estimate, ns);
}

int ad__stream_queue_uses(ad_worker_session *s, ad_stream_queue *queue, ad_buffer *b, bool writes, ad_fault *fault) {
    if (b->import) b = s->worker->hooks.sharing->import_order(b);
    if (!b->home) b->home = queue; /* a buffer without memory */
    if (!ad__gpu_can_reach(queue->gpu, b->home->gpu))
        return ad__fault(fault, AD_E_VALUE,
                         "an array lies on device %d, which device %d cannot reach: copy it by the host",
                         b->home->gpu->index, queue->gpu->index);
    if (!b->order.writer) { /* nothing is recorded of it: all that its home has done so far may count */
        b->order.writer = b->home;
        b->order.written = b->home->sequence;
    }
    int status = mark_before_peer(s, queue, b, fault);
    if (!status && b->shared) status = s->worker->hooks.sharing->uses(s, queue, b, writes, fault);
    if (status) return status;
    status = follow_queue(s, queue, b->order.writer, b->order.written, fault);
    if (!writes) {
        b->order.readers |= 1ull << queue->slot;
        return status;
    }
    if (!status) status = follow_readers(s, queue, b, fault);
    b->order.readers = 0;
    b->order.writer = queue;
    b->order.written = queue->sequence + 1; /* number of the operation about to be enqueued */
    return status;
}

int ad__stream_queue_frees(ad_worker_session *s, ad_buffer *b, ad_fault *fault) {
    ad_buffer *used = b->import ? s->worker->hooks.sharing->import_order(b) : b;
    if (s->streams.count < 2 || !b->home) return 0;
    int status = used->order.writer ? follow_queue(s, b->home, used->order.writer, used->order.written, fault) : 0;
    return status ? status : follow_readers(s, b->home, used, fault);
}

ad_stream_queue *ad__stream_queue_join(ad_worker_session *s, uint64_t id, ad_fault *fault) {
    ad_stream_queue *queue = ad__stream_queue_find(s, id, fault);
    if (!queue || !queue->low || queue->followed[queue->low->slot] >= queue->low->sequence) return queue;
    if (ad__stream_queues_mark(s, fault) || ad__stream_queues_poll(s, fault)) return NULL;
    if (ad__stream_queue_idle(queue->low)) return queue;
    int status = follow_queue(s, queue, queue->low, queue->low->sequence, fault);
    if (!status) status = ad__session_enqueued(s, queue, fault);
    return status ? NULL : queue;
}

/* ---- progress ---- */

static void add_expected(ad_stream_queue *queue) {
    queue->expected.ns = ad__size_sum(queue->expected.ns, queue->coming.ns);
    queue->expected.estimate = ad__size_sum(queue->expected.estimate, queue->coming.estimate);
    queue->expected.count += queue->coming.count;
    queue->coming = (ad_expected){0};
}

/* Record that operation `number` was enqueued. */
static int count_enqueued(ad_worker_session *s, ad_stream_queue *queue, uint64_t number, ad_fault *fault) {
    queue->sequence++;
    if (!get_backend(s)->asynchronous) return 0;
    if (!queue->unmarked++) queue->unmarked_first = number;
    add_expected(queue);
    return queue->unmarked >= AD_MARK_OPS || queue->expected.ns > AD_MARK_NS ? record_mark(s, queue, fault) : 0;
}

int ad__session_enqueued(ad_worker_session *s, ad_stream_queue *queue, ad_fault *fault) {
    return count_enqueued(s, queue, s->fusion.count ? s->fusion.first : s->progress.done + 1, fault);
}

int ad__stream_queues_mark(ad_worker_session *s, ad_fault *fault) {
    for (unsigned i = 0; i < s->streams.count; i++) {
        int status = record_mark(s, s->streams.queues[i], fault);
        if (status) return status;
    }
    return 0;
}

/* Count the sessions with something under way on a device. */
static unsigned count_users(const ad_worker *w) {
    unsigned n = 0;
    for (const ad_worker_session *s = w->engine.under_way; s; s = s->turns.next_busy)
        n += s->wait.kind < AD_WAIT_COMPILER;
    return n;
}

static int poll_stream_queue(ad_worker_session *s, ad_stream_queue *queue, ad_fault *fault) {
    while (queue->nmarks) {
        const ad_mark *m = &queue->mark[queue->first_mark];
        int done = get_backend(s)->event_done(m->event, fault);
        if (done < 0) return ad__session_status(s, done, fault);
        if (!done) return 0;
        int64_t now = ad__os_now();
        ad__pace_note(&s->usage.pace, (double)m->expected, m->asked, queue->reached, now, count_users(s->worker));
        queue->reached = now;
        queue->passed = m->sequence;
        queue->first_mark = (queue->first_mark + 1) % AD_MARKS;
        queue->nmarks--;
    }
    ad__stream_arena_reap(queue->stream_arena);
    return 0;
}

/* Find the number of the first operation that may be incomplete. */
static uint64_t find_first_incomplete(const ad_stream_queue *queue) {
    if (queue->nmarks) return queue->mark[queue->first_mark].first;
    return queue->unmarked ? queue->unmarked_first : UINT64_MAX;
}

int ad__stream_queues_wait(ad_worker_session *s, ad_fault *fault) {
    ad_fault own;
    int status = 0;
    if (!fault) fault = &own; /* a lost device ends the worker here, which says why */
    for (unsigned i = 0; i < s->streams.count && !status; i++)
        status = s->worker->backend->stream_wait(s->streams.queues[i]->stream, fault);
    return ad__session_status(s, status, fault);
}

void ad__stream_queues_settle(ad_worker_session *s) {
    uint64_t complete = s->fusion.count ? s->fusion.first - 1 : s->progress.done;
    /* A session with late checkpoints may execute operations again. Its client must keep them until it hears that they
     * are complete. */
    if (s->checkpoint.late && complete > s->checkpoint.committed && s->worker->hooks.checkpoint->is_recoverable(s))
        complete = s->checkpoint.committed;
    if (complete <= s->progress.complete) return;
    for (unsigned i = 0; i < s->streams.count; i++) {
        uint64_t first = find_first_incomplete(s->streams.queues[i]);
        if (first <= complete) complete = first - 1;
    }
    if (complete > s->progress.complete) s->progress.complete = complete;
}

int ad__stream_queues_poll(ad_worker_session *s, ad_fault *fault) {
    for (unsigned i = 0; i < s->streams.count; i++) {
        int status = poll_stream_queue(s, s->streams.queues[i], fault);
        if (status) return status;
        ad__flight_moved(&s->worker->device.watchdog, &s->streams.queues[i]->flight,
                         find_first_incomplete(s->streams.queues[i]) - 1);
    }
    ad__stream_queues_settle(s);
    return 0;
}

int64_t ad__stream_queue_ahead(const ad_worker_session *s, const ad_stream_queue *queue) {
    int64_t ahead = 0;
    for (unsigned i = 0; i < queue->nmarks; i++) {
        const ad_mark *m = &queue->mark[(queue->first_mark + i) % AD_MARKS];
        int64_t left = correct_estimate(s, m->expected);
        if (i == 0) { /* the device has worked on it since it had nothing else to do */
            const int64_t begun = m->asked > queue->reached ? m->asked : queue->reached;
            const int64_t worked = ad__os_now() - begun;
            left = worked < left ? left - worked : 0;
        }
        ahead = ad__size_sum(ahead, left);
    }
    return ahead;
}

bool ad__stream_queue_idle(const ad_stream_queue *queue) { return !queue->nmarks && !queue->unmarked; }

bool ad__stream_queues_idle(const ad_worker_session *s) {
    for (unsigned i = 0; i < s->streams.count; i++)
        if (!ad__stream_queue_idle(s->streams.queues[i])) return false;
    return true;
}
