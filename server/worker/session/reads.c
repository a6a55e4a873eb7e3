/* Answer READ and FETCH: send arrays to clients.
 *
 *     view ─▶ (contiguous copy) ─▶ part 1 ─▶ part 2 ─▶ ...
 *             READ:   each part to the socket, by way of pinned memory
 *             FETCH:  all at once to a window of the client
 *
 * On an asynchronous device a part is requested and the session waits. The message is executed again when the part has
 * come. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/desc.h"
#include "server/worker/handlers.h"
#include "server/worker/engine/background.h"
#include "server/worker/exec/job.h"
#include "server/worker/spill/quota.h"
#include "server/worker/spill/spill.h"
#include "server/worker/session/session.h"
#include "server/worker/io/reply.h"
#include "server/worker/exec/exec.h"
#include "server/worker/device/cost.h"

/* ---- beginning a read ---- */

/* Read a buffer in host memory from there: it need not come back to the device. */
static int find_moved(ad_worker_session *s, const ad_desc *d) {
    ad_reading *r = &s->reading;
    r->stream_queue = r->buffer->home;
    r->from = ad__spill_bytes_of(r->buffer) + d->offset;
    r->from_host = true;
    return 0;
}

/* Find the view's bytes, or make a contiguous copy of them. */
static int find_bytes(ad_worker_session *s, ad_message *m, ad_fault *fault) {
    const ad_desc *d = &m->operand.desc;
    ad_reading *r = &s->reading;
    int status = ad__desc_check(d, (int64_t)r->buffer->size, "read", fault);
    if (!status) status = ad__fresh_size(d, &r->total, fault);
    if (!status && r->buffer->is_moved && ad__is_contiguous(d)) return find_moved(s, d);
    if (!status && !(r->stream_queue = ad__stream_queue_current(s, fault))) status = fault->code;
    if (!status) status = ad__spill_begin(s, r->stream_queue, &r->buffer, 1, fault);
    if (!status) status = ad__stream_queue_uses(s, r->stream_queue, r->buffer, false, fault);
    if (status) return status;
    m->operand.data = (void *)((uintptr_t)r->buffer->address + (uint64_t)d->offset);
    r->from = m->operand.data;
    if (r->total && !ad__is_contiguous(d)) {
        if ((status = ad__exec_contiguous(s, r->stream_queue, &m->operand, r->total, &r->copy, fault))) return status;
        r->from = r->copy.address;
    }
    return 0;
}

static int find_window(ad_worker_session *s, const ad_message *m, ad_fault *fault) {
    ad_reading *r = &s->reading;
    ad_window *w = ad__window_find(s, m->u[1], m->u[2], r->total, "fetch", fault);
    if (!w) return fault->code;
    r->to = (char *)w->base + m->u[2];
    r->direct = !r->from_host && (w->pinned || !s->worker->backend->asynchronous);
    return 0;
}

static int begin_read(ad_worker_session *s, ad_message *m, bool to_window, ad_fault *fault) {
    const ad_desc *d = &m->operand.desc;
    ad_reading *r = &s->reading;
    *r = (ad_reading){.request = m->u[0]};
    if (m->operand.is_scalar || d->form != AD_VIEW) return ad__fault(fault, AD_E_TYPE, "read: not a view of a buffer");
    r->buffer = ad__buffers_find(&s->buffers, d->buffer);
    if (!r->buffer) return ad__fault(fault, AD_E_STALE, "read: there is no buffer %" PRIu64, d->buffer);
    ad__checkpoint_note_read(s, r->buffer, (ad_extent){0, UINT64_MAX});
    if (r->buffer->poison) return r->buffer->poison->code;
    int status = find_bytes(s, m, fault);
    if (!status && to_window) status = find_window(s, m, fault);
    r->offset = s->checkpoint.resumed.read;
    s->checkpoint.resumed.read = 0;
    r->active = true; /* set after a failure, too: ad__reading_end gives back what was taken */
    return status;
}

void ad__reading_end(ad_worker_session *s) {
    ad_reading *r = &s->reading;
    if (!r->active) return;
    if (r->staging) ad__staging_give(s->worker, r->staging, r->part);
    if (r->copy.slab) ad__quota_repay(s, r->stream_queue, &r->copy);
    ad__spill_end(s, &r->buffer, 1);
    r->staging = NULL;
    r->active = r->under_way = false;
}

/* ---- parts ---- */

/* Choose where the next part goes. NULL with a fault. */
static void *choose_part_target(ad_worker_session *s, ad_fault *fault) {
    ad_reading *r = &s->reading;
    if (r->direct) return r->to + r->offset;
    if (s->worker->backend->asynchronous) return r->staging = ad__staging_take(s->worker, r->part, fault);
    r->block = ad__output_block(&s->output, r->part);
    if (!r->block) ad__fault(fault, AD_E_MEMORY, "out of host memory");
    return r->block ? r->block->data : NULL;
}

static int request_part(ad_worker_session *s, ad_fault *fault) {
    ad_reading *r = &s->reading;
    uint64_t most = s->output.limit / 4 < AD_STAGING_PART ? s->output.limit / 4 + 1 : AD_STAGING_PART;
    r->part = r->total - r->offset;
    if (!r->direct && r->part > most) r->part = most;
    if (!r->part || r->from_host) return 0;
    void *to = choose_part_target(s, fault);
    if (!to) return fault->code;
    const bool in_background = ad__background_begin(s, ad__bytes_cost(r->part));
    int status = s->worker->backend->download(r->stream_queue->stream, to, r->from + r->offset, r->part, fault);
    if (in_background) ad__background_end(s);
    if (!status) status = ad__session_enqueued(s, r->stream_queue, fault);
    if (status) {
        ad__output_block_free(&s->output, r->block);
        r->block = NULL;
    }
    return ad__session_status(s, status, fault);
}

/* Deliver a part that has come to the client. */
static int deliver_part(ad_worker_session *s, ad_fault *fault) {
    ad_reading *r = &s->reading;
    uint64_t left = r->total - r->offset;
    if (s->checkpoint.late) ad__checkpoint_commit(s); /* the answer acknowledges what is complete */
    const char *host = r->from_host ? r->from + r->offset : r->staging;
    if (host && r->part) {
        if (!r->to && !(r->block = ad__output_block(&s->output, r->part)))
            return ad__fault(fault, AD_E_MEMORY, "out of host memory");
        memcpy(r->to ? r->to + r->offset : (char *)r->block->data, host, r->part);
    }
    if (r->staging) ad__staging_give(s->worker, r->staging, r->part);
    r->staging = NULL;
    if (r->block) r->block->own.size = r->part;
    if (!r->to) ad__reply_part(s, r->request, r->total, r->offset, r->part < left ? AD_FRAME_MORE : 0, r->block);
    r->block = NULL;
    r->offset += r->part;
    if (!r->to && r->offset < r->total) ad__checkpoint_commit(s);
    if (r->to && r->offset == r->total) ad__reply_values(s, r->request, 0, NULL);
    return 0;
}

/* Answer with a failure that was found while the part was under way. True: the request is answered. */
static bool answer_failure(ad_worker_session *s) {
    ad_reading *r = &s->reading;
    if (ad__reply_pending_failure(s, r->request)) return true;
    if (!r->buffer->poison) return false;
    ad__reply_fail(s, r->request, r->buffer->poison);
    return true;
}

/* Tell whether the client must take queued output first. */
static bool must_wait_for_client(ad_worker_session *s) {
    ad_reading *r = &s->reading;
    if (r->to) return false;
    if (r->offset && ad__output_flush(&s->output)) ad__engine_request_attention(s);
    return r->total - r->offset > AD_STAGING_PART / 64 && atomic_load(&s->output.queued) >= AD_OUTPUT_HIGH;
}

/* Send parts until all are sent (0), or there is something to wait for (AD_WAITS). */
static int continue_read(ad_worker_session *s) {
    ad_reading *r = &s->reading;
    ad_fault fault = {0};
    int status = 0;
    do {
        if (!r->under_way) {
            if (must_wait_for_client(s)) return AD_WAITS;
            if ((status = request_part(s, &fault))) break;
            r->under_way = true;
            if (s->worker->backend->asynchronous) {
                ad__session_await(s, AD_WAIT_STREAM, r->stream_queue, NULL);
                if (!ad__session_poll(s)) return AD_WAITS;
            }
        }
        r->under_way = false;
        if (answer_failure(s)) break;
        status = deliver_part(s, &fault);
        if (!status && r->from_host && r->offset < r->total)
            return AD_WAITS; /* other sessions need not wait for the whole array */
    } while (!status && r->offset < r->total && !atomic_load(&s->output.broken));
    if (status) ad__reply_fault(s, r->request, status, &fault);
    ad__reading_end(s);
    return 0;
}

static int answer_read(ad_worker_session *s, ad_message *m, bool to_window) {
    ad_fault fault = {0};
    if (s->reading.active) return continue_read(s);
    if (ad__reply_pending_failure(s, m->u[0]) || s->checkpoint.resumed.silent)
        return 0; /* the client may use the window for something else by now */
    int status = begin_read(s, m, to_window, &fault);
    if (!status) return continue_read(s);
    ad_buffer *b = s->reading.buffer;
    if (b && b->poison) ad__reply_fail(s, m->u[0], b->poison);
    else ad__reply_fault(s, m->u[0], status, &fault);
    ad__reading_end(s);
    return 0;
}

int ad__handle_read(ad_worker_session *s, ad_message *m, ad_fault *fault) {
    return (void)fault, answer_read(s, m, false);
}

int ad__handle_fetch(ad_worker_session *s, ad_message *m, ad_fault *fault) {
    return (void)fault, answer_read(s, m, true);
}

const ad_component ad__component_reading = {.name = "read", .drop = ad__reading_end};
