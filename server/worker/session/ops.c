/* Execute messages of class OP. */
#include <inttypes.h>

#include "protocol/desc.h"
#include "protocol/rows_call.h"
#include "protocol/size.h"
#include "server/worker/engine/background.h"
#include "server/worker/checkpoint/blame.h"
#include "server/worker/exec/job.h"
#include "server/worker/sharing/sharing.h"
#include "server/worker/spill/spill.h"
#include "server/worker/exec/exec.h"
#include "server/worker/session/ops.h"
#include "server/worker/device/cost.h"
#include "server/worker/checkpoint/buffer_free.h"

/* ---- operations ---- */

/* Record a failure of an operation without an output to carry it. */
static void record_failure(ad_session *s, const ad_fault *fault, const char *name) {
    ad_poison *p = ad__poison_new(fault, s->progress.done + 1, name);
    ad__session_keep_failure(s, p);
    ad__poison_release(p);
    s->progress.failed++;
}

static void create_buffer(ad_session *s, ad_message *m, bool zero) {
    ad_fault fault = {0};
    ad_buffer *b = NULL;
    uint64_t size = 0;
    const ad_desc *d = &m->operand.desc;
    ad_stream_queue *queue = ad__stream_queue_current(s, &fault);
    int status = queue ? 0 : fault.code;
    if (!status) status = ad__buffers_add(&s->buffers, d->buffer, &b, &fault);
    if (!status) status = ad__blame_check(s, "", &fault);
    if (!status) status = ad__fresh_size(d, &size, &fault);
    if (!status) status = ad__buffer_take_memory(s, queue, b, size, zero, &fault);
    if (!status && zero) status = ad__stream_queue_uses(s, queue, b, true, &fault);
    if (!status && zero) status = ad__session_enqueued(s, queue, &fault);
    if (!status) ad__spill_end(s, &b, 1);
    if (!status) return;
    fault.code = status;
    if (!b) {
        record_failure(s, &fault, m->row->name);
        return;
    }
    ad__buffer_give_memory(s, b);
    ad__checkpoint_mark_buffer(s, b);
    b->poison = ad__poison_new(&fault, s->progress.done + 1, m->row->name);
    s->progress.failed++;
}

static void free_buffers(ad_session *s, ad_message *m) {
    ad_fault fault = {0};
    ad__buffers_prefetch(&s->buffers, m->ids, m->nids);
    for (size_t i = 0; i < m->nids; i++) {
        ad_buffer *b = ad__buffers_find(&s->buffers, m->ids[i]);
        if (!b) {
            if (!fault.code) ad__fault(&fault, AD_E_STALE, "free: there is no buffer %" PRIu64, m->ids[i]);
            continue;
        }
        if (ad__fusion_defer_buffer(s, b)) continue;
        ad__buffers_detach(&s->buffers, b);
        ad__buffer_free(s, b);
    }
    if (fault.code) record_failure(s, &fault, "free");
}

/* Poison a buffer whose write is left out, because workers have ended while executing it. */
static int poison_left_out(ad_session *s, ad_buffer *b, const char *what, const ad_fault *why) {
    ad__checkpoint_mark_buffer(s, b);
    b->poison = ad__poison_new(why, s->progress.done + 1, what);
    s->progress.failed++;
    return 0;
}

int ad__store(ad_session *s, const char *what, uint64_t id, uint64_t offset, const void *from, uint64_t size,
              bool pinned, ad_fault *fault) {
    const ad_backend *backend = s->worker->backend;
    ad_buffer *b = ad__buffers_find(&s->buffers, id);
    if (!b) return ad__fault(fault, AD_E_STALE, "%s: there is no buffer %" PRIu64, what, id);
    if (b->poison) return 0; /* its readers get the poison's error */
    if (ad__blame_check(s, "", fault)) return poison_left_out(s, b, what, fault);
    if (offset > b->size || size > b->size - offset)
        return ad__fault(fault, AD_E_EXTENT,
                         "%s: %" PRIu64 " bytes at %" PRIu64 " reach beyond buffer %" PRIu64 " of %" PRIu64 " bytes",
                         what, size, offset, id, b->size);
    if (b->import && s->worker->hooks.sharing->import_check_write(b, fault)) return fault->code;
    ad_stream_queue *queue = ad__stream_queue_current(s, fault);
    if (queue && !ad__checkpoint_is_repeatable_write(s, b))
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
    return ad__session_status(s, status, fault);
}

static void write_payload(ad_session *s, ad_message *m) {
    ad_fault fault = {0};
    fault.code = ad__store(s, "write", m->u[0], m->u[1], s->messages.frame.payload, s->messages.frame.payload_size,
                           false, &fault);
    if (fault.code) record_failure(s, &fault, "write");
}

static bool compute_op(ad_session *s, ad_message *m) {
    job j;
    ad_fusion_offer taken = ad__fusion_offer(s, &m->op);
    if (taken != AD_FUSION_REFUSED) return taken == AD_FUSION_QUEUED;
    ad__job_begin(&j, s, &m->op, s->progress.done + 1);
    int status = ad__job_run(&j);
    if (status) ad__poison_release(ad__job_fail(&j, status));
    ad__job_end(&j);
    return true;
}

static void launch_kernel(ad_session *s, ad_message *m) {
    job j;
    ad_launching l;
    int status = ad__job_begin_launch(&j, s, m, &l, s->progress.done + 1);
    if (status) {
        j.fault.code = status;
        record_failure(s, &j.fault, "launch");
        return;
    }
    status = ad__job_run(&j);
    if (status) ad__poison_release(ad__job_fail(&j, status));
    ad__job_end(&j);
}

/* Execute a request of another file. Its failure belongs to no buffer. */
static void execute_request(ad_session *s, ad_message *m,
                            int (*execute)(ad_session *, const ad_message *, ad_fault *)) {
    ad_fault fault = {0};
    int status = execute(s, m, &fault);
    if (!status) return;
    fault.code = status;
    record_failure(s, &fault, m->row->name);
}

/* Skip an operation that is left out and has no outputs to carry the error. */
static void skip_op(ad_session *s, const ad_message *m) {
    ad_fault fault = {0};
    ad__blame_check(s, "", &fault);
    if (m->opcode == AD_REQ_WINDOW || m->opcode == AD_REQ_FORK) ad__descriptor_skip(s);
    record_failure(s, &fault, m->row->name);
}

/* Tell whether the message has outputs, which carry its failure. */
static bool has_outputs(const ad_message *m) {
    return m->op.opcode || m->opcode == AD_REQ_NEW || m->opcode == AD_REQ_EMPTY || m->opcode == AD_REQ_WRITE ||
           m->opcode == AD_REQ_LOAD;
}

bool ad__exec_op(ad_session *s, ad_message *m) {
    if (s->checkpoint.suspect.left_out && !has_outputs(m)) {
        skip_op(s, m);
        return true;
    }
    switch (m->opcode) {
    case AD_REQ_STREAM:
    case AD_REQ_STREAM_DROP:
    case AD_REQ_ON:
    case AD_REQ_EVENT:
    case AD_REQ_EVENT_DROP:
    case AD_REQ_AFTER: execute_request(s, m, ad__streams_op); break;
    case AD_REQ_WINDOW:
    case AD_REQ_WINDOW_DROP:
    case AD_REQ_LOAD: execute_request(s, m, ad__windows_op); break;
    case AD_REQ_MODULE_DROP: execute_request(s, m, ad__modules_op); break;
    case AD_REQ_KERNEL_SET:
    case AD_REQ_LAUNCH:
        if (!s->checkpoint.suspect.left_out && !ad__modules_ready(s, m->u[0])) return false;
        if (m->opcode == AD_REQ_LAUNCH) launch_kernel(s, m);
        else execute_request(s, m, ad__modules_op);
        break;
    case AD_REQ_FORK:
    case AD_REQ_REVOKE: execute_request(s, m, ad__sharing_op); break;
    case AD_REQ_NEW:
    case AD_REQ_EMPTY: create_buffer(s, m, m->opcode == AD_REQ_NEW); break;
    case AD_REQ_FREE: free_buffers(s, m); break;
    case AD_REQ_WRITE: write_payload(s, m); break;
    default: return compute_op(s, m);
    }
    return true;
}
