/* Estimates of what messages cost. They only tell cheap from long operations; turns are charged by the clock. */
#include "server/worker/device/cost.h"

#include "protocol/desc.h"
#include "protocol/rows.h"
#include "protocol/size.h"
#include "server/worker/session.h"

static int64_t count_elements(const ad_operand *o) {
    return o->is_scalar || o->desc.form == AD_SIZED ? 1 : ad__desc_count(&o->desc);
}

int64_t ad__op_elements(const ad_op *op) {
    int64_t most = 1;
    for (int i = 0; i < op->nout + op->nin; i++) {
        int64_t n = count_elements(&op->operand[i]);
        if (n > most) most = n;
    }
    return most;
}

/* Library calls that compute a whole matrix at once: some n^3 steps for n^2 elements. */
static const bool decomposes[] = {
    [AD_CALL_cholesky] = true, [AD_CALL_qr] = true,    [AD_CALL_qr_raw] = true,   [AD_CALL_svd] = true,
    [AD_CALL_svdvals] = true,  [AD_CALL_eigh] = true,  [AD_CALL_eigvalsh] = true, [AD_CALL_eig] = true,
    [AD_CALL_eigvals] = true,  [AD_CALL_solve] = true, [AD_CALL_inv] = true,      [AD_CALL_lu] = true,
    [AD_CALL_lstsq] = true,
};

bool ad__op_decomposes(const ad_op *op) {
    return (op->opcode == AD_REQ_CALL || op->opcode == AD_REQ_QUERY) && op->row < sizeof decomposes &&
           decomposes[op->row] && op->nin && !op->operand[op->nout].is_scalar && op->operand[op->nout].desc.ndim >= 2;
}

static int64_t estimate_decomposition(const ad_op *op) {
    const ad_desc *x = &op->operand[op->nout].desc;
    const int64_t rows = x->shape[x->ndim - 2], columns = x->shape[x->ndim - 1];
    return ad__size_sum(ad__op_elements(op), ad__size_product(ad__desc_count(x), rows < columns ? rows : columns) / 2);
}

static int64_t estimate_call(const ad_op *op) {
    if (ad__op_decomposes(op)) return estimate_decomposition(op);
    if (op->row != AD_CALL_matmul || op->nin < 1 || op->operand[op->nout].is_scalar)
        return ad__size_product(20, ad__op_elements(op));
    const ad_desc *x = &op->operand[op->nout].desc;
    int64_t k = x->ndim ? x->shape[x->ndim - 1] : 1,
            products = ad__size_product(k, op->nout ? count_elements(op->operand) : 1);
    return ad__size_sum(ad__op_elements(op), products / 5);
}

/* The length of a user's kernel is unknown. On a synchronous backend the I/O thread should not wait for one, unless
 * there is a single session. */
#define LAUNCH_COST 1000000
#define LAUNCH_DEVICE_COST 2000 /* before it is corrected by measurements (pace.h) */

/* Speed of a GPU relative to one processor: in moving elements, in multiplying matrices, in decompositions. */
#define MOVES 600
#define MULTIPLIES 5000
#define DECOMPOSES 50

int64_t ad__device_cost(const ad_op *op) {
    const int64_t moves = ad__size_product(2, ad__op_elements(op));
    if (op->opcode == AD_REQ_LAUNCH) return LAUNCH_DEVICE_COST + moves / MOVES;
    if (op->opcode != AD_REQ_CALL) return 1 + moves / MOVES;
    if (ad__op_decomposes(op)) return 1 + estimate_call(op) / DECOMPOSES;
    return 1 + estimate_call(op) / (op->row == AD_CALL_matmul ? MULTIPLIES : MOVES);
}

/* Estimate the ns of enqueuing a message. It is constant, except for moving bytes and for waiting inside a library. */
static int64_t estimate_enqueue(const ad_session *s, const ad_message *m) {
    switch (m->opcode) {
    case AD_REQ_WRITE: return 2000 + ad__bytes_cost(s->messages.frame.payload_size);
    case AD_REQ_QUERY: return 50000;
    case AD_REQ_CALL: return 6000;
    default: return 3000;
    }
}

int64_t ad__op_cost(const ad_op *op) {
    switch (op->opcode) {
    case AD_REQ_LAUNCH: return LAUNCH_COST;
    case AD_REQ_CALL:
    case AD_REQ_QUERY: return estimate_call(op);
    default: return ad__size_product(2, ad__op_elements(op));
    }
}

int64_t ad__exec_cost(const ad_session *s, const ad_message *m) {
    if (s->worker->backend->asynchronous) return estimate_enqueue(s, m);
    switch (m->opcode) {
    case AD_REQ_UFUNC:
    case AD_REQ_REDUCE:
    case AD_REQ_CALL:
    case AD_REQ_QUERY:
    case AD_REQ_LAUNCH: return ad__op_cost(&m->op);
    case AD_REQ_NEW:
    case AD_REQ_EMPTY: return count_elements(&m->operand);
    case AD_REQ_READ: return ad__size_product(2, count_elements(&m->operand));
    case AD_REQ_WRITE: return ad__bytes_cost(s->messages.frame.payload_size);
    case AD_REQ_LOAD: return ad__bytes_cost(m->u[4]);
    default: return 100;
    }
}
