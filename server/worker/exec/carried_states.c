/* States of a random generator whose draw has failed before it began: the states after the draw are those before it.
 *
 *     curand(states) ──▶ numbers: poisoned, as there is no memory for them
 *                    └─▶ states after it: a copy of `states`, so that the next draw succeeds
 *
 * Without the copy one draw that is too large would end its generator. */
#include "protocol/rows_call.h"
#include "protocol/rows_request.h"
#include "server/worker/exec/job.h"

#define STATES 1 /* the output with the states */

/* The job may not have come to its outputs. */
static int make_states(job *j, const ad_desc *d, uint64_t size) {
    int status = 0;
    if (!j->made[STATES]) status = ad__buffers_add(&j->s->buffers, d->buffer, &j->buffer[STATES], &j->fault);
    if (status) return status;
    j->made[STATES] = true;
    if (j->buffer[STATES]->address) return 0;
    return ad__buffer_take_memory(j->s, j->stream_queue, j->buffer[STATES], size, false, &j->fault);
}

static int copy_states(job *j) {
    const ad_op *op = j->op;
    ad_operand before = op->operand[op->nout];
    ad_buffer *from = j->buffer[op->nout];
    uint64_t size = 0;
    int status = ad__fresh_size(&op->operand[STATES].desc, &size, &j->fault);
    if (!status) status = make_states(j, &op->operand[STATES].desc, size);
    if (!status) status = ad__stream_queue_uses(j->s, j->stream_queue, from, false, &j->fault);
    if (status) return status;
    before.data = (char *)from->address + before.desc.offset;
    status = ad__job_pack(j, &before, j->buffer[STATES]->address);
    return status ? status : ad__session_enqueued(j->s, j->stream_queue, &j->fault);
}

bool ad__job_carry_states(job *j) {
    const ad_op *op = j->op;
    if (op->opcode != AD_REQ_CALL || op->row != AD_CALL_curand || op->operand[STATES].desc.form != AD_FRESH)
        return false;
    if (j->inherited || j->run.wrote || !j->using || !j->buffer[op->nout] || !j->buffer[op->nout]->address)
        return false;
    const ad_fault failure = j->fault;
    const bool carried = copy_states(j) == 0;
    j->fault = failure;
    return carried;
}
