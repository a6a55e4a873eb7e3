/* The messages of class ASK. */
#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#include "protocol/desc.h"
#include "server/worker/job.h"

#define PART (1u << 20) /* payload of one frame of a read's reply: it stays in the cache from copying to sending */

/* The session's pending error answers the request instead, once. */
static bool fail_pending(ad_session *s, uint64_t request) {
    ad_poison *p = s->pending;
    if (!p) return false;
    s->pending = NULL;
    ad__reply_fail(s, request, p);
    ad__poison_release(p);
    return true;
}

static void fail_fault(ad_session *s, uint64_t request, int status, ad_fault *fault) {
    fault->code = status;
    ad_poison *p = ad__poison_new(fault, 0, "");
    ad__reply_fail(s, request, p);
    ad__poison_release(p);
}

/* ---- stat ---- */

static uint64_t counter(ad_session *s, int index) {
    ad_worker *w = s->worker;
    switch (index) {
    case AD_COUNTER_ops_done: return s->done;
    case AD_COUNTER_ops_failed: return s->failed;
    case AD_COUNTER_requests: return s->requests;
    case AD_COUNTER_bytes_in: return s->bytes_in;
    case AD_COUNTER_bytes_out: return atomic_load(&s->output.total);
    case AD_COUNTER_buffers: return s->buffers.count;
    case AD_COUNTER_buffer_bytes: return s->buffer_bytes;
    case AD_COUNTER_used_bytes: return w->memory.used;
    case AD_COUNTER_slab_bytes: return w->memory.slab_bytes;
    case AD_COUNTER_slabs: return w->memory.slabs;
    case AD_COUNTER_sessions: return atomic_load(&w->nsessions);
    case AD_COUNTER_worker_pid: return (uint64_t)getpid();
    default: return 0;
    }
}

static void do_stat(ad_session *s, ad_message *m) {
    ad_scalar values[AD_NCOUNTER];
    for (int i = 0; i < AD_NCOUNTER; i++)
        values[i] = (ad_scalar){.kind = AD_SCALAR_INT, .as.i = (int64_t)counter(s, i)};
    ad__reply_values(s, m->u[0], AD_NCOUNTER, values);
}

/* ---- read ---- */

/* Find the view's bytes, or a contiguous copy of them. */
static int begin_read(ad_session *s, ad_message *m, ad_poison **poison, ad_fault *fault) {
    const ad_desc *d = &m->operand.desc;
    ad_reading *r = &s->reading;
    *r = (ad_reading){.request = m->u[0]};
    if (m->operand.is_scalar || d->form != AD_VIEW) return ad__fault(fault, AD_E_TYPE, "read: not a view of a buffer");
    ad_buffer *b = ad__buffers_find(&s->buffers, d->buffer);
    if (!b) return ad__fault(fault, AD_E_STALE, "read: there is no buffer %" PRIu64, d->buffer);
    if ((*poison = b->poison)) return b->poison->code;
    int status = ad__desc_check(d, (int64_t)b->size, "read", fault);
    if (!status) status = ad__fresh_size(d, &r->total, fault);
    if (!status && !ad__session_stream(s, fault)) status = fault->code;
    if (status) return status;
    m->operand.data = (void *)((uintptr_t)b->address + (uint64_t)d->offset);
    r->from = m->operand.data;
    if (r->total && !ad__is_contiguous(d)) {
        if ((status = ad__exec_contiguous(s, &m->operand, r->total, &r->copy, fault))) return status;
        r->from = r->copy.address;
    }
    r->active = true;
    return 0;
}

static ad_output_block *read_part(ad_session *s, uint64_t size, ad_fault *fault) {
    ad_reading *r = &s->reading;
    const ad_backend *backend = s->worker->backend;
    ad_output_block *b = ad__output_block(size);
    if (!b) {
        ad__fault(fault, AD_E_MEMORY, "out of host memory");
        return NULL;
    }
    b->size = size;
    int status = backend->download(s->stream, b->data, r->from + r->offset, size, fault);
    if (!status) status = backend->stream_wait(s->stream, fault);
    if (!ad__session_status(s, status, fault)) return b;
    fault->code = status;
    free(b);
    return NULL;
}

static void end_read(ad_session *s) {
    ad__memory_give(s->estate, &s->reading.copy);
    s->reading.active = false;
}

/* Send parts while the client takes them; false: go on when its queue is shorter. */
static bool continue_read(ad_session *s) {
    ad_reading *r = &s->reading;
    ad_fault fault = {0};
    uint64_t most = s->output.limit / 4 < PART ? s->output.limit / 4 + 1 : PART;
    do {
        ad_output_block *part = NULL;
        uint64_t left = r->total - r->offset, size = left < most ? left : most;
        if (r->offset && ad__output_flush(&s->output)) ad__engine_attend(s);
        if (size > PART / 64 && atomic_load(&s->output.queued) >= AD_OUTPUT_HIGH) return false;
        if (size && !(part = read_part(s, size, &fault))) {
            fail_fault(s, r->request, fault.code, &fault);
            break;
        }
        ad__reply_part(s, r->request, r->total, r->offset, size < left ? AD_FRAME_MORE : 0, part);
        r->offset += size;
    } while (r->offset < r->total && !atomic_load(&s->output.broken));
    end_read(s);
    return true;
}

static bool do_read(ad_session *s, ad_message *m) {
    ad_fault fault = {0};
    ad_poison *poison = NULL;
    if (s->reading.active) return continue_read(s);
    if (fail_pending(s, m->u[0])) return true;
    int status = begin_read(s, m, &poison, &fault);
    if (!status) return continue_read(s);
    if (poison) ad__reply_fail(s, m->u[0], poison);
    else fail_fault(s, m->u[0], status, &fault);
    return true;
}

/* ---- query ---- */

static void do_query(ad_session *s, ad_message *m) {
    int64_t values[8];
    ad_scalar scalars[8];
    int n = 0;
    ad_poison *p = ad__exec_query(s, m, values, &n);
    if (p) {
        if (p == s->pending) {
            ad__poison_release(p);
            s->pending = NULL;
        }
        ad__reply_fail(s, m->u[0], p);
        ad__poison_release(p);
        return;
    }
    for (int i = 0; i < n && i < 8; i++) scalars[i] = (ad_scalar){.kind = AD_SCALAR_INT, .as.i = values[i]};
    ad__reply_values(s, m->u[0], (size_t)n, scalars);
}

bool ad__ask(ad_session *s, ad_message *m) {
    switch (m->opcode) {
    case AD_REQ_READ: return do_read(s, m);
    case AD_REQ_STAT: do_stat(s, m); break;
    case AD_REQ_QUERY: do_query(s, m); break;
    default:
        if (!fail_pending(s, m->u[0])) ad__reply_values(s, m->u[0], 0, NULL);
        break;
    }
    return true;
}
