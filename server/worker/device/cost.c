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

/* Count the elements of the windows of a filter; 0: the call is none. */
static int64_t count_taps(const ad_op *op) {
    switch (op->row) {
    case AD_CALL_correlate1d:
    case AD_CALL_correlate:
    case AD_CALL_rank_filter:
    case AD_CALL_grey_filter: break;
    default: return 0;
    }
    const ad_operand *window = &op->operand[op->nout + 1];
    return op->nin < 2 || window->is_scalar || !window->desc.ndim ? 1 : window->desc.shape[0];
}

/* Count the elements that a point of a sample depends on, and some for finding them. */
static int64_t count_neighbours(const ad_op *op) {
    const ad_operand *x = &op->operand[op->nout];
    int64_t count = 1;

    if (op->nin < 1 || op->nparam < 2 || op->param[1].kind != AD_SCALAR_INT || op->param[1].as.i < 0) return 20;
    for (int i = 0; !x->is_scalar && i < x->desc.ndim; i++) count = ad__size_product(count, op->param[1].as.i + 1);
    return ad__size_sum(20, count);
}

static int64_t estimate_call(const ad_op *op) {
    const int64_t taps = count_taps(op);

    if (ad__op_decomposes(op)) return estimate_decomposition(op);
    if (taps) return ad__size_product(ad__size_sum(20, taps), ad__op_elements(op));
    if (op->row == AD_CALL_sample) return ad__size_product(count_neighbours(op), ad__op_elements(op));
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

int64_t ad__op_cost(const ad_op *op) {
    if (op->opcode == AD_REQ_LAUNCH) return LAUNCH_COST;
    if (op->opcode == AD_REQ_CALL || op->opcode == AD_REQ_QUERY) return estimate_call(op);
    return ad__size_product(2, ad__op_elements(op));
}

/* ---- messages: one function for each word of the column ---- */

static int64_t estimate_small(const ad_session *s, const ad_message *m) { return (void)s, (void)m, 100; }

static int64_t estimate_operation(const ad_session *s, const ad_message *m) { return (void)s, ad__op_cost(&m->op); }

static int64_t estimate_fill(const ad_session *s, const ad_message *m) { return (void)s, count_elements(&m->operand); }

static int64_t estimate_copy(const ad_session *s, const ad_message *m) {
    return (void)s, ad__size_product(2, count_elements(&m->operand));
}

static int64_t estimate_payload(const ad_session *s, const ad_message *m) {
    return (void)m, ad__bytes_cost(s->messages.frame.payload_size);
}

static int64_t estimate_load(const ad_session *s, const ad_message *m) { return (void)s, ad__bytes_cost(m->u[4]); }

/* On an asynchronous device a message takes the host `enqueue` ns, and moving a payload besides. */
static const struct cost {
    int64_t (*estimate)(const ad_session *s, const ad_message *m);
    int64_t enqueue;
} costs[AD_NCOST] = {
    [AD_COST_SMALL] = {estimate_small, 3000},      [AD_COST_OPERATION] = {estimate_operation, 3000},
    [AD_COST_CALL] = {estimate_operation, 6000},   [AD_COST_QUERY] = {estimate_operation, 50000},
    [AD_COST_LAUNCH] = {estimate_operation, 3000}, [AD_COST_FILL] = {estimate_fill, 3000},
    [AD_COST_COPY] = {estimate_copy, 3000},        [AD_COST_PAYLOAD] = {estimate_payload, 2000},
    [AD_COST_LOAD] = {estimate_load, 3000},
};

int64_t ad__exec_cost(const ad_session *s, const ad_message *m) {
    const struct cost *c = &costs[m->row->cost];
    if (!s->worker->backend->asynchronous) return c->estimate(s, m);
    return c->enqueue + (m->row->cost == AD_COST_PAYLOAD ? estimate_payload(s, m) : 0);
}
