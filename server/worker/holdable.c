/* What can be held at all, whatever else is held. */
#include <stdlib.h>

#include "protocol/desc.h"
#include "protocol/distribution.h"
#include "server/worker/held.h"
#include "server/worker/session.h"
#include "server/worker/sharing.h"

bool ad__held_masked(const ad_op *op) { return op->opcode == AD_REQ_UFUNC && op->nin > ad__ufunc(op->row)->nin; }

/* A reduction only of what is held. */
static bool suits_reduction(const ad_session *s, const ad_op *op) {
    return s->held.count && op->nin == 1 && op->nout == 1 && ad__held_view(&op->operand[1]) &&
           !ad__held_view(&op->operand[0]);
}

/* Elementwise, and nothing in the data can make it fail. */
static bool suits_ufunc(const ad_op *op) {
    const ad_ufunc_row *row = ad__ufunc(op->row);
    if (!row || op->nout != row->nout || op->nin < row->nin || op->nin > row->nin + 1) return false;
    return op->row != AD_UFUNC_power || ad__dtypes[op->loop].kind != 'i';
}

/* Random numbers of one set of parameters, each from words that its number says where to find. */
static bool suits_random(const ad_op *op) {
    if (op->row != AD_CALL_random || op->nout != 1 || op->nparam != 3 || op->param[0].kind != AD_SCALAR_INT)
        return false;
    const ad_distribution_row *row = ad__distribution(op->param[0].as.i);
    if (!row || row->source != AD_RANDOM_BLOCK || op->nin != row->nparam) return false;
    for (int i = 0; i < op->nin; i++)
        if (!op->operand[1 + i].is_scalar) return false;
    return op->operand[0].desc.dtype == op->loop;
}

bool ad__held_suits(const ad_session *s, const ad_op *op) {
    switch (op->opcode) {
    case AD_REQ_UFUNC: return suits_ufunc(op);
    case AD_REQ_REDUCE: return suits_reduction(s, op);
    case AD_REQ_CALL: return suits_random(op);
    default: return false;
    }
}

static bool is_empty(const ad_desc *d) {
    for (int i = 0; i < d->ndim; i++)
        if (d->shape[i] == 0) return true;
    return false;
}

/* No two elements of the view share a byte, as far as that shows at once: each step is longer than what all shorter
 * ones reach. */
static bool is_plain(const ad_desc *d) {
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

/* Memory that others write, too: what uses that takes effect in the order in which it comes, from whatever session. A
 * module's variable is written even if the array that stands for it is dropped. And what must not be written is refused
 * at once. */
static bool is_common(const ad_op *op, ad_buffer *const *buffer) {
    for (int i = 0; i < op->nout + op->nin; i++) {
        const ad_buffer *b = buffer[i];
        if (b && b->module && i < op->nout) return true;
        if (b && b->shared && (b->shared->common || (i < op->nout && b->readonly))) return true;
    }
    return false;
}

/* An output that exists must be no other view of an input's buffer, nor of the other output's. */
static bool writes_cleanly(const ad_op *op, ad_buffer *const *buffer) {
    for (int o = 0; o < op->nout; o++) {
        if (!ad__held_view(&op->operand[o])) continue;
        if (!is_plain(&op->operand[o].desc)) return false;
        for (int i = 0; i < op->nout + op->nin; i++) {
            if (i == o || buffer[i] != buffer[o]) continue;
            if (i < op->nout || !ad__desc_same(&op->operand[i].desc, &op->operand[o].desc)) return false;
        }
    }
    return true;
}

bool ad__held_clean(const ad_op *op, ad_buffer *const *buffer) {
    return !is_empty(ad__held_shape(op)) && !is_common(op, buffer) && writes_cleanly(op, buffer);
}
