/* Eligibility of operations other than ufuncs for the fusion queue. */
#include <stdlib.h>

#include "protocol/desc.h"
#include "protocol/distribution.h"
#include "protocol/rows_call.h"
#include "protocol/rows_request.h"
#include "server/worker/fusion/entries.h"
#include "server/worker/fusion/queue.h"
#include "server/worker/session.h"

/* Tell whether a reduction or scan can be queued: only one of a queued value. */
static bool can_end_chain(const ad_worker_session *s, const ad_op *op) {
    return s->fusion.count && op->nin == 1 && op->nout == 1 && ad__fusion_is_view(&op->operand[1]) &&
           !ad__fusion_is_view(&op->operand[0]);
}

/* Tell whether a call makes random numbers with scalar parameters, each from its own words of the generator. */
static bool is_fusible_random(const ad_op *op) {
    if (op->row != AD_CALL_random || op->nout != 1 || op->nparam != 3 || op->param[0].kind != AD_SCALAR_INT)
        return false;
    const ad_distribution_row *row = ad__distribution(op->param[0].as.i);
    if (!row || row->source != AD_RANDOM_BLOCK || op->nin != row->nparam) return false;
    for (int i = 0; i < op->nin; i++)
        if (!op->operand[1 + i].is_scalar) return false;
    return op->operand[0].desc.dtype == op->loop;
}

bool ad__fusion_is_eligible(const ad_worker_session *s, const ad_op *op) {
    if (op->opcode == AD_REQ_REDUCE) return can_end_chain(s, op);
    if (op->opcode != AD_REQ_CALL) return false;
    switch (op->row) {
    case AD_CALL_cumsum:
    case AD_CALL_cumprod:
    case AD_CALL_nancumsum:
    case AD_CALL_nancumprod: return can_end_chain(s, op);
    default: return is_fusible_random(op);
    }
}

/* The view is plain if each step is longer than the extent of all shorter steps. */
bool ad__fusion_is_plain(const ad_desc *d) {
    int64_t size = ad__dtypes[d->dtype].size, step[AD_MAX_NDIM], length[AD_MAX_NDIM];
    __int128 reach = size;
    int n = 0;
    if (ad__is_contiguous(d)) return true;
    for (int i = 0; i < d->ndim; i++) {
        int at = n;
        if (d->shape[i] == 1) continue;
        for (; at > 0 && step[at - 1] > llabs(d->strides[i]); at--)
            step[at] = step[at - 1], length[at] = length[at - 1];
        step[at] = llabs(d->strides[i]);
        length[at] = d->shape[i];
        n++;
    }
    for (int i = 0; i < n; i++) {
        if (step[i] < reach) return false;
        reach += (__int128)step[i] * (length[i] - 1);
    }
    return true;
}
