/* Handlers of buffers and operations. */
#include <inttypes.h>

#include "protocol/desc.h"
#include "protocol/rows_call.h"
#include "protocol/size.h"
#include "server/worker/handlers.h"
#include "server/worker/io/reply.h"
#include "server/worker/engine/background.h"
#include "server/worker/checkpoint/blame.h"
#include "server/worker/exec/job.h"
#include "server/worker/sharing/sharing.h"
#include "server/worker/spill/spill.h"
#include "server/worker/exec/exec.h"
#include "server/worker/session/ops.h"
#include "server/worker/device/cost.h"
#include "server/worker/checkpoint/buffer_free.h"

/* ---- buffers ---- */

static int create_buffer(ad_worker_session *s, ad_message *m, bool zero, ad_fault *fault) {
    ad_buffer *b = NULL;
    uint64_t size = 0;
    const ad_desc *d = &m->operand.desc;
    ad_stream_queue *queue = ad__stream_queue_current(s, fault);
    int status = queue ? 0 : fault->code;
    if (!status) status = ad__buffers_add(&s->buffers, d->buffer, &b, fault);
    if (!status) status = ad__blame_check(s, "", fault);
    if (!status) status = ad__fresh_size(d, &size, fault);
    if (!status) status = ad__fresh_refused(d, ad__buffer_take_memory(s, queue, b, size, zero, fault), fault);
    if (!status) b->filling = !zero && size;
    if (!status && zero) status = ad__stream_queue_uses(s, queue, b, true, fault);
    if (!status && zero) status = ad__session_enqueued(s, queue, fault);
    if (!status) ad__spill_end(s, &b, 1);
    if (!status || !b) return status;
    fault->code = status;
    ad__buffer_give_memory(s, b);
    ad__checkpoint_mark_buffer(s, b);
    b->poison = ad__poison_new(fault, s->progress.done + 1, m->row->name);
    s->progress.failed++;
    return 0;
}

int ad__handle_new(ad_worker_session *s, ad_message *m, ad_fault *fault) { return create_buffer(s, m, true, fault); }

int ad__handle_empty(ad_worker_session *s, ad_message *m, ad_fault *fault) { return create_buffer(s, m, false, fault); }

int ad__handle_free(ad_worker_session *s, ad_message *m, ad_fault *fault) {
    ad__buffers_prefetch(&s->buffers, m->ids, m->nids);
    for (size_t i = 0; i < m->nids; i++) {
        ad_buffer *b = ad__buffers_find(&s->buffers, m->ids[i]);
        if (!b) {
            if (!fault->code) ad__fault(fault, AD_E_STALE, "free: there is no buffer %" PRIu64, m->ids[i]);
            continue;
        }
        if (ad__fusion_defer_buffer(s, b)) continue;
        ad__buffers_detach(&s->buffers, b);
        ad__buffer_free(s, b);
    }
    return fault->code;
}

/* Poison a buffer whose contents are not what the client takes them for: a write of it was left out or refused. */
static int poison_unwritten(ad_worker_session *s, ad_buffer *b, const char *what, const ad_fault *why) {
    ad__checkpoint_mark_buffer(s, b);
    b->poison = ad__poison_new(why, s->progress.done + 1, what);
    s->progress.failed++;
    return 0;
}

int ad__store_refuse(ad_worker_session *s, const char *what, uint64_t id, ad_fault *fault) {
    ad_buffer *b = ad__buffers_find(&s->buffers, id);
    if (!b || !b->filling) return fault->code;
    return b->poison ? 0 : poison_unwritten(s, b, what, fault);
}

static int store_bytes(ad_worker_session *s, const char *what, uint64_t id, uint64_t offset, const void *from,
                       uint64_t size, bool pinned, ad_fault *fault) {
    const ad_backend *backend = s->worker->backend;
    ad_buffer *b = ad__buffers_find(&s->buffers, id);
    if (!b) return ad__fault(fault, AD_E_STALE, "%s: there is no buffer %" PRIu64, what, id);
    if (b->poison) return 0; /* its readers get the poison's error */
    if (ad__blame_check(s, "", fault)) return poison_unwritten(s, b, what, fault);
    if (offset > b->size || size > b->size - offset)
        return ad__fault(fault, AD_E_EXTENT,
                         "%s: %" PRIu64 " bytes at %" PRIu64 " reach beyond buffer %" PRIu64 " of %" PRIu64 " bytes",
                         what, size, offset, id, b->size);
    if (b->import && s->worker->hooks.sharing->import_check_write(b, fault)) return fault->code;
    ad_stream_queue *queue = ad__stream_queue_current(s, fault);
    if (queue && !ad__checkpoint_is_repeatable_write(s, b, (ad_extent){offset, offset + size}))
        ad__checkpoint_before_write(s, b, s->progress.done + 1, what);
    int status = queue ? size == b->size ? ad__spill_renew(s, queue, b, fault) : 0 : fault->code;
    if (!status) status = ad__spill_begin(s, queue, &b, 1, fault);
    if (!status) status = ad__stream_queue_uses(s, queue, b, true, fault);
    const bool in_background = !status && ad__background_begin(s, ad__bytes_cost(size));
    if (!status)
        status = (pinned ? backend->upload_pinned : backend->upload)(queue->stream, (char *)b->address + offset, from,
                                                                     size, fault);
    if (in_background) ad__background_end(s);
    if (!status) status = ad__session_enqueued(s, queue, fault);
    ad__spill_end(s, &b, 1);
    if (!status && offset + size == b->size) ad__checkpoint_end_filling(s, b);
    return ad__session_status(s, status, fault);
}

int ad__store(ad_worker_session *s, const char *what, uint64_t id, uint64_t offset, const void *from, uint64_t size,
              bool pinned, ad_fault *fault) {
    const int status = store_bytes(s, what, id, offset, from, size, pinned, fault);
    if (!status) return 0;
    fault->code = status;
    return ad__store_refuse(s, what, id, fault);
}

int ad__handle_write(ad_worker_session *s, ad_message *m, ad_fault *fault) {
    return ad__store(s, "write", m->u[0], m->u[1], s->messages.frame.payload, s->messages.frame.payload_size, false,
                     fault);
}

/* ---- operations ---- */

static void run_job(job *j) {
    int status = ad__job_run(j);
    if (status) ad__poison_release(ad__job_fail(j, status));
    ad__job_end(j);
}

static int compute_op(ad_worker_session *s, ad_message *m) {
    job j;
    ad_fusion_offer taken = ad__fusion_offer(s, &m->op);
    if (taken != AD_FUSION_REFUSED) return taken == AD_FUSION_QUEUED ? 0 : AD_WAITS;
    if (!ad__checkpoint_await_place(s)) return AD_WAITS; /* what was queued may have taken the last ones */
    ad__job_begin(&j, s, &m->op, s->progress.done + 1);
    run_job(&j);
    return 0;
}

int ad__handle_ufunc(ad_worker_session *s, ad_message *m, ad_fault *fault) { return (void)fault, compute_op(s, m); }

int ad__handle_reduce(ad_worker_session *s, ad_message *m, ad_fault *fault) { return (void)fault, compute_op(s, m); }

int ad__handle_call(ad_worker_session *s, ad_message *m, ad_fault *fault) { return (void)fault, compute_op(s, m); }

int ad__handle_launch(ad_worker_session *s, ad_message *m, ad_fault *fault) {
    job j;
    ad_launching l;
    if (!ad__checkpoint_await_place(s)) return AD_WAITS;
    int status = ad__job_begin_launch(&j, s, m, &l, s->progress.done + 1);
    if (status) {
        *fault = j.fault;
        return status;
    }
    run_job(&j);
    return 0;
}

/* ---- queries ---- */

/* The result's size depends on the data, which the host must read: all that came before must be complete. */
int ad__handle_query(ad_worker_session *s, ad_message *m, ad_fault *fault) {
    int64_t values[8];
    int n = 0;
    (void)fault;
    if (!ad__checkpoint_await_commit(s)) return AD_WAITS;
    ad_poison *p = ad__exec_query(s, m, values, &n);
    if (!p) {
        ad__reply_ints(s, m->u[0], (size_t)n, values);
        return 0;
    }
    if (p == s->progress.pending) {
        ad__poison_release(p);
        s->progress.pending = NULL;
        ad__count_told_failure(s);
    }
    ad__reply_fail(s, m->u[0], p);
    ad__poison_release(p);
    return 0;
}
