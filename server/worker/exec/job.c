/* How a job begins and ends, and the memory that it gets. */
#include "server/worker/exec/job.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "protocol/desc.h"
#include "protocol/infer.h"
#include "protocol/rows_request.h"
#include "server/worker/engine/background.h"
#include "server/worker/spill/quota.h"
#include "server/worker/spill/spill.h"
#include "server/worker/device/cost.h"
#include "server/worker/checkpoint/buffer_free.h"

/* ---- memory ---- */

int ad__buffer_take_memory(ad_worker_session *s, ad_stream_queue *queue, ad_buffer *b, uint64_t size, bool zero,
                           ad_fault *fault) {
    ad__checkpoint_mark_buffer(s, b);
    b->address = ad__no_bytes;
    b->home = queue;
    b->in_use = true; /* the buffer is not moved while it is made, until ad__spill_end */
    if (!size) return 0;
    int status = ad__quota_take(s, queue, size, &b->block, fault);
    if (status) return status;
    b->address = b->block.address;
    b->size = size;
    s->held.buffer_bytes += size;
    if (!zero || b->block.clean) return 0;
    const bool in_background = ad__background_begin(s, ad__bytes_cost(size));
    status = s->worker->backend->zero(queue->stream, b->address, size, fault);
    if (in_background) ad__background_end(s);
    return ad__session_status(s, status, fault);
}

bool ad__op_needs_zeros(const ad_op *op) { return op->opcode == AD_REQ_UFUNC && op->nin > ad__ufunc(op->row)->nin; }

int ad__job_make_output(job *j, int i) {
    const ad_desc *d = &j->op->operand[i].desc;
    uint64_t size = 0;
    int status = d->form == AD_FRESH ? ad__job_fresh_size(j, i, &size) : 0;
    if (!status && !j->made[i]) status = ad__buffers_add(&j->s->buffers, d->buffer, &j->buffer[i], &j->fault);
    if (status) return status;
    j->made[i] = true;
    if (j->buffer[i]->size) return 0;
    status =
        ad__buffer_take_memory(j->s, j->stream_queue, j->buffer[i], size, size && ad__op_needs_zeros(j->op), &j->fault);
    return status ? ad__fresh_refused(d, status, &j->fault) : 0;
}

static void put_shape(const ad_desc *d, char *out, size_t size) {
    size_t at = 0;
    for (int i = 0; i < d->ndim && at < size; i++)
        at += (size_t)snprintf(out + at, size - at, "%s%" PRId64, i ? ", " : "", d->shape[i]);
    if (d->ndim == 1 && at < size) snprintf(out + at, size - at, ",");
    if (at >= size) strcpy(out + size - 4, "..."); /* there are 64 dimensions at most */
}

int ad__fresh_refused(const ad_desc *d, int status, ad_fault *fault) {
    char shape[80] = "", text[2 * AD_FAULT_TEXT];
    if (status != AD_E_MEMORY) return status;
    put_shape(d, shape, sizeof shape);
    const int size =
        snprintf(text, sizeof text, "no room for shape (%s) of %s: %s", shape, ad__dtypes[d->dtype].name, fault->text);
    if (size >= AD_FAULT_TEXT) return status; /* who holds the memory matters more than the shape */
    return ad__fault(fault, status, "%s", text);
}

/* Scratch memory is repaid when the job has been enqueued: its next user on this stream queue comes later on the
 * stream. */
void *ad__job_scratch(job *j, uint64_t size) {
    if (j->nscratch == JOB_SCRATCH || size > INT64_MAX) return NULL;
    ad_block *b = &j->scratch[j->nscratch];
    if (ad__quota_borrow(j->s, j->stream_queue, size + 256, b, &j->lack)) return NULL;
    j->nscratch++;
    return (void *)(((uintptr_t)b->address + 255) & ~(uintptr_t)255);
}

int ad__job_fail_cancelled(job *j) {
    j->run.wrote = true; /* nobody can have what its outputs should be */
    j->s->progress.cancelled++;
    return ad__fault(&j->fault, AD_E_CANCELLED, "cancelled by its client");
}

int ad__job_explain_status(job *j, int status) {
    const int why =
        status == AD_E_INTERRUPTED ? __atomic_load_n(&j->s->turns.cancelled, __ATOMIC_RELAXED) : AD_CANCEL_NOT;
    if (why == AD_CANCEL_ASKED) return ad__job_fail_cancelled(j);
    if (why == AD_CANCEL_TIME)
        return ad__fault(&j->fault, AD_E_TIMEOUT,
                         "%s took longer than the %g s that an operation may take on this server: cut it into smaller "
                         "ones, or have the option operation-time raised",
                         ad__op_name(j->op), j->s->worker->config.operation_time);
    if (status != AD_E_MEMORY || !j->lack.code) return status;
    return ad__fault(&j->fault, status, "%s", j->lack.text);
}

static void *get_workspace(ad_run *run, uint64_t size) {
    job *j = (job *)run;
    ad__background_take_engine(j->s);
    void *scratch = ad__job_scratch(j, size);
    ad__background_release_engine(j->s);
    return scratch;
}

static void *allocate_output(ad_run *run, int index, uint64_t size) {
    job *j = (job *)run;
    if (index < 0 || index >= j->op->nout || !j->made[index]) return NULL;
    ad__background_take_engine(j->s);
    int status = ad__buffer_take_memory(j->s, j->stream_queue, j->buffer[index], size, false, &j->fault);
    ad__background_release_engine(j->s);
    return status ? NULL : j->buffer[index]->address;
}

/* ---- beginning and end ---- */

void ad__job_begin(job *j, ad_worker_session *s, ad_op *op, uint64_t number) {
    j->run = (ad_run){.workspace = get_workspace, .output = allocate_output};
    j->s = s;
    j->op = op;
    j->number = number;
    j->facts = op == &s->messages.message.op ? s->messages.message.facts : NULL;
    j->inherited = NULL;
    j->stream_queue = NULL;
    j->nscratch = 0;
    j->using = 0;
    j->queued = false;
    j->nbehind = 0;
    j->fault.code = j->lack.code = 0;
    j->fault.text[0] = 0;
    j->launch = NULL;
    j->buffer = j->own_buffer;
    j->made = j->own_made;
    for (int i = 0; i < AD_MAX_OUT; i++) j->made[i] = false;
}

int ad__job_begin_launch(job *j, ad_worker_session *s, ad_message *m, ad_launching *l, uint64_t number) {
    const size_t n = (size_t)m->op.nout + m->op.nin;
    ad__job_begin(j, s, &m->op, number);
    l->message = m;
    j->launch = l;
    j->buffer = ad__arena_alloc(&s->messages.arena, (n + 1) * sizeof *j->buffer);
    j->made = ad__arena_alloc(&s->messages.arena, m->op.nout + 1u);
    if (!j->buffer || !j->made) return ad__fault(&j->fault, AD_E_MEMORY, "out of host memory");
    memset(j->buffer, 0, n * sizeof *j->buffer);
    memset(j->made, 0, m->op.nout);
    return 0;
}

void ad__job_end(job *j) {
    ad__spill_end(j->s, j->buffer, j->using);
    while (j->nscratch) ad__quota_repay(j->s, j->stream_queue, &j->scratch[--j->nscratch]);
}
