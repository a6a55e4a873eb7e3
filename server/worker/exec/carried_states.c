/* States of a random generator whose draw has failed: the generator goes on.
 *
 *     curand(states) ──▶ numbers: poisoned, as there is no memory for them, or a parameter is wrong or poisoned
 *                    └─▶ states after it: good, so that the next draw succeeds
 *
 * A draw that has failed before it began leaves a copy of the states before it. One whose deferred check fails has
 * written states: a backend draws without the wrong parameters, or copies the states. */
#include "protocol/rows_call.h"
#include "protocol/rows_request.h"
#include "server/worker/exec/job.h"
#include "server/worker/spill/spill.h"

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

bool ad__job_makes_states(const job *j, int output) {
    const ad_op *op = j->op;
    return output == STATES && op->opcode == AD_REQ_CALL && op->row == AD_CALL_curand &&
           op->operand[STATES].desc.form == AD_FRESH;
}

/* Tell whether the job has found good states. A poisoned parameter comes after them; both outputs are new. */
static bool has_states(const job *j) {
    const ad_op *op = j->op;
    if (!j->using && !(j->inherited && op->operand[0].desc.form == AD_FRESH)) return false;
    const ad_buffer *states = j->buffer[op->nout];
    return states && !states->poison && states->size;
}

/* Bring the states back from host memory, where the job has not come to that. */
static int bring_states(job *j) {
    const int nout = j->op->nout;
    if (j->using) return 0;
    for (int i = 0; i < nout; i++) j->buffer[i] = NULL;
    j->using = nout + 1;
    return ad__spill_begin(j->s, j->stream_queue, j->buffer, j->using, &j->fault);
}

bool ad__job_carry_states(job *j, int output) {
    if (!ad__job_makes_states(j, output) || j->run.wrote || !has_states(j)) return false;
    const ad_fault failure = j->fault;
    const bool carried = bring_states(j) == 0 && copy_states(j) == 0;
    j->fault = failure;
    return carried;
}
