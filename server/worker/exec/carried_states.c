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

static int copy_states(job *j) {
    const ad_op *op = j->op;
    ad_operand before = op->operand[op->nout];
    ad_buffer *from = j->buffer[op->nout];
    int status = ad__job_make_output(j, STATES); /* the job may not have come to it */
    if (!status) status = ad__stream_queue_uses(j->s, j->stream_queue, from, false, &j->fault);
    if (status) return status;
    before.data = (char *)from->address + before.desc.offset;
    ad__deferred_checks_set(j->s, j->buffer[STATES], ad__deferred_checks_of(j->s, from));
    status = ad__job_pack(j, &before, j->buffer[STATES]->address);
    return status ? status : ad__session_enqueued(j->s, j->stream_queue, &j->fault);
}

/* Tell whether the job is a draw that has found its operands and written nothing. */
static bool is_untouched_draw(const job *j) {
    const ad_op *op = j->op;
    if (op->opcode != AD_REQ_CALL || op->row != AD_CALL_curand || op->operand[STATES].desc.form != AD_FRESH)
        return false;
    return !j->inherited && !j->run.wrote && j->using && j->buffer[op->nout] && j->buffer[op->nout]->size;
}

bool ad__job_carry_states(job *j, int output) {
    if (output != STATES || !is_untouched_draw(j)) return false;
    const ad_fault failure = j->fault;
    const bool carried = copy_states(j) == 0;
    j->fault = failure;
    return carried;
}
