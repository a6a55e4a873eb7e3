#include "server/worker/session/streams.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "server/common/os.h"
#include "server/worker/handlers.h"
#include "server/worker/spill/spill.h"
#include "server/worker/session.h"
#include "server/worker/io/reply.h"

struct ad_client_event {
    uint64_t id;
    bool timed, timeless; /* timeless: it was reached in another worker, at an unknown time */
    uint32_t place;       /* its row in the journal; 0: none */
    ad_gpu *gpu;
    ad_event *event;
};

/* ---- events by id ---- */

/* Find the index of the event id, or where to insert it. */
static size_t find_event_place(const ad_events *e, uint64_t id) {
    size_t low = 0, high = e->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (e->list[middle].id < id) low = middle + 1;
        else high = middle;
    }
    return low;
}

static ad_client_event *find_event(ad_worker_session *s, uint64_t id, ad_fault *fault) {
    ad_events *e = &s->streams.events;
    size_t at = find_event_place(e, id);
    if (at < e->count && e->list[at].id == id) return &e->list[at];
    ad__fault(fault, AD_E_STALE, "there is no event %" PRIu64, id);
    return NULL;
}

static int add_event(ad_worker_session *s, const ad_client_event *event, ad_fault *fault) {
    ad_events *e = &s->streams.events;
    if (e->count == AD_EVENTS) return ad__fault(fault, AD_E_LIMIT, "a session has at most %d events", AD_EVENTS);
    ad_client_event *list = ad__os_grow(e->list, e->count, &e->capacity, sizeof *list);
    if (!list) return ad__fault(fault, AD_E_MEMORY, "out of host memory");
    e->list = list;
    size_t at = find_event_place(e, event->id);
    memmove(e->list + at + 1, e->list + at, (e->count - at) * sizeof *e->list);
    e->list[at] = *event;
    e->count++;
    return 0;
}

static void remove_event(ad_worker_session *s, ad_client_event *event) {
    ad_events *e = &s->streams.events;
    s->worker->backend->event_close(event->event);
    size_t at = (size_t)(event - e->list);
    memmove(event, event + 1, (--e->count - at) * sizeof *event);
}

static void close_events(ad_worker_session *s) {
    for (size_t i = 0; i < s->streams.events.count; i++)
        s->worker->backend->event_close(s->streams.events.list[i].event);
    free(s->streams.events.list);
    s->streams.events = (ad_events){0};
}

/* ---- requests without a reply ---- */

static int open_event(ad_worker_session *s, ad_client_event *event, const ad_stream_queue *queue, ad_fault *fault) {
    const ad_backend *b = s->worker->backend;
    int status = b->event_open(queue->gpu->device, event->timed, &event->event, fault);
    if (status) return ad__session_status(s, status, fault);
    ad__checkpoint_mark_row(s, AD_JOURNAL_EVENT, event->id);
    status = ad__session_status(s, b->event_record(event->event, queue->stream, fault), fault);
    if (!status) status = add_event(s, event, fault);
    if (status) b->event_close(event->event);
    return status;
}

int ad__handle_event(ad_worker_session *s, ad_message *m, ad_fault *fault) {
    const ad_backend *b = s->worker->backend;
    ad_stream_queue *queue = ad__stream_queue_join(s, m->u[1], fault);
    if (!queue) return fault->code;
    size_t at = find_event_place(&s->streams.events, m->u[0]);
    ad_client_event *old =
        at < s->streams.events.count && s->streams.events.list[at].id == m->u[0] ? &s->streams.events.list[at] : NULL;
    if (old && old->gpu == queue->gpu && old->timed == (m->u[2] != 0)) {
        old->timeless = false;
        return ad__session_status(s, b->event_record(old->event, queue->stream, fault), fault);
    }
    ad_client_event event = {.id = m->u[0], .timed = m->u[2] != 0, .gpu = queue->gpu, .place = old ? old->place : 0};
    if (old) remove_event(s, old);
    return open_event(s, &event, queue, fault);
}

int ad__handle_event_drop(ad_worker_session *s, ad_message *m, ad_fault *fault) {
    ad_client_event *event = find_event(s, m->u[0], fault);
    if (!event) return fault->code;
    ad__checkpoint_remove_row(s, event->place);
    remove_event(s, event);
    return 0;
}

/* Make a stream queue wait for an event, and count that as an operation: the queue is not idle before. */
static int follow_event(ad_worker_session *s, ad_stream_queue *queue, const ad_client_event *event, ad_fault *fault) {
    int status = s->worker->backend->stream_follow(queue->stream, event->event, fault);
    return status ? ad__session_status(s, status, fault) : ad__session_enqueued(s, queue, fault);
}

int ad__handle_after(ad_worker_session *s, ad_message *m, ad_fault *fault) {
    ad_stream_queue *queue = ad__stream_queue_find(s, m->u[0], fault);
    ad_client_event *event = queue ? find_event(s, m->u[1], fault) : NULL;
    int status = event ? follow_event(s, queue, event, fault) : fault->code;
    return status || !queue->low ? status : follow_event(s, queue->low, event, fault);
}

int ad__handle_stream(ad_worker_session *s, ad_message *m, ad_fault *fault) {
    if (m->u[0] < AD_OWN_STREAMS || m->u[0] == AD_HIDDEN_STREAM)
        return ad__fault(fault, AD_E_VALUE, "a stream's id must be %d or above, not %" PRIu64, AD_OWN_STREAMS, m->u[0]);
    int status = ad__stream_queue_open(s, m->u[0], m->u[1], m->u[2] != 0, fault);
    if (!status) ad__checkpoint_mark_row(s, AD_JOURNAL_STREAM, m->u[0]);
    return status;
}

int ad__handle_stream_drop(ad_worker_session *s, ad_message *m, ad_fault *fault) {
    const uint64_t id = m->u[0];
    ad_stream_queue *queue = id < AD_OWN_STREAMS ? NULL : ad__stream_queue_known(s, id);
    if (queue) ad__checkpoint_remove_row(s, queue->place);
    if (queue) queue->place = 0;
    return ad__stream_queue_drop(s, id, fault);
}

int ad__handle_on(ad_worker_session *s, ad_message *m, ad_fault *fault) {
    ad_stream_queue *queue = ad__stream_queue_find(s, m->u[0], fault);
    if (!queue) return fault->code;
    s->streams.current = queue;
    return 0;
}

/* ---- requests with a reply ---- */

/* Begin to wait. True: what is awaited has not been reached, and the session waits. */
static bool must_await(ad_worker_session *s, ad_wait_for kind, ad_stream_queue *queue, ad_event *event) {
    ad__session_await(s, kind, queue, event);
    return !ad__session_poll(s);
}

/* Begin to wait. 0: what is awaited has been reached. AD_WAITS; negative with a fault. */
static int begin_wait(ad_worker_session *s, const ad_message *m, ad_fault *fault) {
    ad_stream_queue *queue = NULL;
    ad_client_event *event = NULL;
    if (m->u[1] > 1) return ad__fault(fault, AD_E_VALUE, "wait: 0 (stream) or 1 (event), not %" PRIu64, m->u[1]);
    if (m->u[1]) event = find_event(s, m->u[2], fault);
    else queue = ad__stream_queue_join(s, m->u[2], fault);
    if (!event && !queue) return fault->code;
    if (event && event->timeless) return 0;
    const bool waits =
        queue ? must_await(s, AD_WAIT_STREAM, queue, NULL) : must_await(s, AD_WAIT_EVENT, NULL, event->event);
    return waits ? AD_WAITS : 0;
}

int ad__handle_wait(ad_worker_session *s, ad_message *m, ad_fault *fault) {
    int status = begin_wait(s, m, fault);
    if (status) return status;
    /* After this answer the client may overwrite windows, so nothing may need to be loaded from them again. */
    if (s->checkpoint.loaded > s->checkpoint.committed && !ad__checkpoint_is_committed(s)) return AD_WAITS;
    if (!ad__reply_pending_failure(s, m->u[0])) ad__reply_values(s, m->u[0], 0, NULL);
    return 0;
}

int ad__handle_done(ad_worker_session *s, ad_message *m, ad_fault *fault) {
    int result = begin_wait(s, m, fault);
    s->wait.kind = AD_WAIT_NONE;
    if (result < 0) return result;
    ad_scalar value = {.kind = AD_SCALAR_BOOL, .as.b = result != AD_WAITS};
    ad__reply_values(s, m->u[0], 1, &value);
    return 0;
}

int ad__handle_elapsed(ad_worker_session *s, ad_message *m, ad_fault *fault) {
    float ms;
    for (int i = 1; i <= 2; i++) {
        ad_client_event *event = find_event(s, m->u[i], fault);
        if (!event) return fault->code;
        if (!event->timed)
            return ad__fault(fault, AD_E_VALUE, "elapsed: event %" PRIu64 " was recorded without timing", m->u[i]);
        if (event->timeless)
            return ad__fault(fault, AD_E_VALUE,
                             "elapsed: when event %" PRIu64 " was is lost with the worker that saw it", m->u[i]);
        if (must_await(s, AD_WAIT_EVENT, NULL, event->event)) return AD_WAITS;
    }
    ad_event *from = find_event(s, m->u[1], fault)->event, *to = find_event(s, m->u[2], fault)->event;
    int status = s->worker->backend->event_elapsed(from, to, &ms, fault);
    ad_scalar value = {.kind = AD_SCALAR_FLOAT, .as.f = ms};
    if (!status) ad__reply_values(s, m->u[0], 1, &value);
    return ad__session_status(s, status, fault);
}

/* Choose the lower of two limits, where 0 means none. */
static uint64_t choose_lower_limit(uint64_t a, uint64_t b) { return !a || (b && b < a) ? b : a; }

int ad__handle_pool(ad_worker_session *s, ad_message *m, ad_fault *fault) {
    int64_t values[4] = {(int64_t)(s->held.buffer_bytes - s->held.moved_bytes), 0, 0, 0};
    ad_gpu *gpu = ad__session_gpu(s, m->u[1], fault);
    if (!gpu) return fault->code;
    if (m->u[2] > 2) return ad__fault(fault, AD_E_VALUE, "pool: there is no action %" PRIu64, m->u[2]);
    if (m->u[2] == 1) ad__spill_trim(s->worker);
    if (m->u[2] == 2) s->held.buffer_limit = m->u[3];
    for (unsigned i = 0; i < s->streams.count; i++) {
        uint64_t bytes, blocks;
        if (s->streams.queues[i]->gpu != gpu) continue;
        if (m->u[2] == 1) ad__stream_arena_trim(s->streams.queues[i]->stream_arena);
        ad__stream_arena_count(s->streams.queues[i]->stream_arena, &bytes, &blocks);
        values[1] += (int64_t)bytes;
        values[2] += (int64_t)blocks;
    }
    values[3] = (int64_t)choose_lower_limit(s->held.buffer_limit, choose_lower_limit(s->grants.memory, s->grants.each));
    ad__reply_ints(s, m->u[0], 4, values);
    return 0;
}

int ad__handle_device(ad_worker_session *s, ad_message *m, ad_fault *fault) {
    ad_gpu *gpu = ad__session_gpu(s, m->u[1], fault);
    if (!gpu) return fault->code;
    ad__gpu_measure(s->worker, gpu);
    const ad_device_info *i = &gpu->info;
    int64_t values[] = {(int64_t)i->memory, (int64_t)i->free,  i->major,   i->minor,
                        i->multiprocessors, (int64_t)i->peers, i->runtime, i->driver};
    ad__reply_ints(s, m->u[0], sizeof values / sizeof *values, values);
    return 0;
}

/* ---- rows in the journal ---- */

static int save_event(ad_worker_session *s, uint64_t id, ad_journal_row *row) {
    const ad_client_event *event = find_event(s, id, NULL);
    if (!event) return 0;
    row->device = (uint16_t)event->gpu->index;
    row->timed = event->timed;
    return 1;
}

static uint32_t *find_event_row(ad_worker_session *s, uint64_t id) {
    ad_client_event *event = find_event(s, id, NULL);
    return event ? &event->place : NULL;
}

/* Restore an event, which was reached in another worker. That of a lost device is reached on any. */
static int restore_event(ad_worker_session *s, const ad_journal_row *row, const ad_left_behind *left, ad_fault *fault) {
    ad_stream_queue *queue = ad__stream_queue_find(s, ad__session_usable_device(s, row->device), fault);
    ad_client_event event = {.id = row->id, .timed = row->timed, .timeless = true};
    (void)left;
    if (!queue) return fault->code;
    event.gpu = queue->gpu;
    return open_event(s, &event, queue, fault);
}

const ad_component ad__component_events = {.name = "events",
                                           .drop = close_events,
                                           .kind = AD_JOURNAL_EVENT,
                                           .save = save_event,
                                           .place = find_event_row,
                                           .restore = restore_event};

static int save_stream(ad_worker_session *s, uint64_t id, ad_journal_row *row) {
    const ad_stream_queue *queue = ad__stream_queue_known(s, id);
    if (!queue) return 0;
    row->high = queue->high;
    row->device = (uint16_t)(queue->lost ? queue->lost - 1 : (unsigned)queue->gpu->index);
    return 1;
}

static uint32_t *find_stream_row(ad_worker_session *s, uint64_t id) {
    ad_stream_queue *queue = ad__stream_queue_known(s, id);
    return queue ? &queue->place : NULL;
}

static int restore_stream(ad_worker_session *s, const ad_journal_row *row, const ad_left_behind *left,
                          ad_fault *fault) {
    (void)left;
    if (!ad__stream_queue_restore(s, row->id, row->device, row->high, fault)) return fault->code;
    ad__checkpoint_mark_row(s, AD_JOURNAL_STREAM, row->id);
    return 0;
}

const ad_component ad__component_streams = {.name = "streams",
                                            .drop = ad__stream_queues_close,
                                            .kind = AD_JOURNAL_STREAM,
                                            .save = save_stream,
                                            .place = find_stream_row,
                                            .restore = restore_stream};
