/* Estimate what messages cost.
 *
 * Estimates only tell cheap operations from long ones; turns are charged by the clock. An operation that is
 * estimated at AD_BACKGROUND_NS or more runs beside the engine. Every other one runs in it, and keeps everybody
 * waiting. So an operation may take longer than its estimate by ten times at most (tests/fault/test_costs.py measures
 * that). */
#include "server/worker/device/cost.h"

#include "protocol/curand.h"
#include "protocol/desc.h"
#include "protocol/rows_request.h"
#include "protocol/size.h"
#include "protocol/tables.h"
#include "server/worker/device/call_work.h"
#include "server/worker/session.h"

static int64_t count_elements(const ad_operand *o) {
    return o->is_scalar || o->desc.form == AD_SIZED ? 1 : ad__desc_count(&o->desc);
}

/* Tell whether a kernel goes through all elements of an operand. A gather reads of its source what it writes. */
static bool is_walked(const ad_op *op, int i) {
    return !(op->opcode == AD_REQ_CALL && ad__call(op->row)->work == AD_WORK_GATHER && i == op->nout);
}

int64_t ad__op_elements(const ad_op *op) {
    int64_t most = 1;
    for (int i = 0; i < op->nout + op->nin; i++) {
        int64_t n = is_walked(op, i) ? count_elements(&op->operand[i]) : 1;
        if (n > most) most = n;
    }
    return most;
}

static bool is_complex(uint8_t dtype) { return dtype == AD_COMPLEX64 || dtype == AD_COMPLEX128; }

/* ---- views whose elements lie far apart ---- */

#define CACHE_LINE 64
#define FAR_MANY 1000 /* elements from which on it is worth to look at strides */
#define FAR_COST 20   /* ns of an element that shares its cache line with no other, and often its page neither */

/* Tell whether every step between elements of the view leaves the cache line. */
static bool is_far_apart(const ad_operand *o) {
    bool steps = false;
    if (o->is_scalar || o->desc.form != AD_VIEW) return false;
    for (int i = 0; i < o->desc.ndim; i++) {
        const int64_t stride = o->desc.strides[i];
        if (o->desc.shape[i] == 1 || stride == 0) continue;
        if (stride > -CACHE_LINE && stride < CACHE_LINE) return false;
        steps = true;
    }
    return steps;
}

static int64_t estimate_far(const ad_operand *o) {
    const int64_t n = count_elements(o);
    return n >= FAR_MANY && is_far_apart(o) ? ad__size_product(FAR_COST, n) : 0;
}

static int64_t estimate_all_far(const ad_op *op) {
    int64_t ns = 0;
    for (int i = 0; i < op->nout + op->nin; i++)
        if (is_walked(op, i)) ns = ad__size_sum(ns, estimate_far(&op->operand[i]));
    return ns;
}

/* ---- library calls ---- */

#define MATRIX_NS 2000 /* of each matrix, however small */

/* The first input, or NULL where it is no array of matrices. */
static const ad_desc *find_matrices(const ad_op *op) {
    const ad_operand *x = op->nin ? &op->operand[op->nout] : NULL;
    return x && !x->is_scalar && x->desc.ndim >= 2 ? &x->desc : NULL;
}

bool ad__op_decomposes(const ad_op *op) {
    return (op->opcode == AD_REQ_CALL || op->opcode == AD_REQ_QUERY) && ad__call(op->row)->work == AD_WORK_MATRIX &&
           find_matrices(op);
}

/* Random numbers by rejection take as long as their distribution says, besides. */
static int64_t estimate_each(const ad_op *op, int64_t ns) {
    ns = ad__size_product(ns + ad__random_cost(op), ad__op_elements(op));
    return is_complex(op->loop) ? ad__size_product(4, ns) : ns;
}

/* Calls whose operands are not those that the estimates below expect take so many ns for each element. */
#define OTHER_NS 20

static int64_t estimate_product(const ad_op *op, int64_t ns) {
    if (!op->nin || !op->nout) return estimate_each(op, OTHER_NS);
    const ad_operand *x = &op->operand[op->nout], *out = op->operand;
    const int64_t k = !x->is_scalar && x->desc.ndim ? x->desc.shape[x->desc.ndim - 1] : 1,
                  results = count_elements(out);
    int64_t matrices = 1;
    for (int i = 0; i < out->desc.ndim - 2; i++) matrices = ad__size_product(matrices, out->desc.shape[i]);
    return ad__size_sum(ad__size_sum(ad__op_elements(op), ad__size_product(ns, matrices)),
                        ad__size_product(k, results) / 5);
}

/* Steps are counted by the largest operand: a system may have many more right-hand sides than unknowns. */
static int64_t estimate_matrices(const ad_op *op, int64_t tenths) {
    const ad_desc *x = find_matrices(op);
    if (!x) return estimate_each(op, OTHER_NS);
    const int64_t rows = x->shape[x->ndim - 2], columns = x->shape[x->ndim - 1], most = ad__op_elements(op),
                  matrices = rows > 0 && columns > 0 ? ad__desc_count(x) / rows / columns : 0,
                  steps = ad__size_product(most, rows < columns ? rows : columns);
    return ad__size_sum(ad__size_sum(ad__size_product(MATRIX_NS, matrices), ad__size_product(20, most)),
                        ad__size_product(steps / 10, tenths));
}

/* Each element is computed from the elements of a window. */
static int64_t estimate_windows(const ad_op *op, int64_t ns) {
    const ad_operand *window = &op->operand[op->nout + 1];
    const bool has_window = op->nin > 1 && !window->is_scalar && window->desc.ndim;
    return ad__size_product(ad__size_sum(ns, has_window ? window->desc.shape[0] : 1), ad__op_elements(op));
}

/* Each point is computed from order + 1 elements along each axis of the first input. */
static int64_t estimate_samples(const ad_op *op, int64_t ns) {
    const ad_operand *x = &op->operand[op->nout];
    const bool has_order = op->nin && op->nparam > 1 && op->param[1].kind == AD_SCALAR_INT && op->param[1].as.i >= 0;
    int64_t neighbours = has_order;

    for (int i = 0; has_order && !x->is_scalar && i < x->desc.ndim; i++)
        neighbours = ad__size_product(neighbours, ad__size_sum(op->param[1].as.i, 1));
    return ad__size_product(ad__size_sum(ns, neighbours), ad__op_elements(op));
}

static int64_t estimate_call(const ad_op *op) {
    static int64_t (*const estimates[])(const ad_op *op, int64_t cost) = {
        [AD_WORK_EACH] = estimate_each,       [AD_WORK_GATHER] = estimate_each,
        [AD_WORK_LINE] = estimate_windows,    [AD_WORK_RUNNING] = estimate_each,
        [AD_WORK_OFFSETS] = estimate_windows, [AD_WORK_CHOICES] = estimate_windows,
        [AD_WORK_NEIGHBOURS] = estimate_each, [AD_WORK_SECTIONS] = estimate_each,
        [AD_WORK_SPARSE] = estimate_each,     [AD_WORK_PAIRS] = estimate_each,
        [AD_WORK_SAMPLE] = estimate_samples,  [AD_WORK_PRODUCT] = estimate_product,
        [AD_WORK_MATRIX] = estimate_matrices};
    const ad_call_row *row = ad__call(op->row);

    return ad__size_sum(estimates[row->work](op, row->cost), ad__call_more_work(op));
}

/* ---- operations ---- */

/* A row's cost is in instructions of a GPU for float32. A processor does some four in a ns; float64 takes it twice as
 * long, and complex numbers eight times. */
static int64_t estimate_ufunc(const ad_op *op, int64_t elements) {
    const int64_t cost = ad__ufunc(op->row)->cost;
    const int64_t ns = is_complex(op->loop) ? 2 * cost : op->loop == AD_FLOAT64 ? cost / 2 : cost / 4;
    return ad__size_product(2 + ns, elements);
}

#define ITERATES 1000 /* instructions of an element, from which on all that a GPU can hold takes seconds */

bool ad__op_iterates(const ad_op *op) { return op->opcode == AD_REQ_UFUNC && ad__ufunc(op->row)->cost >= ITERATES; }

/* The length of a user's kernel is unknown. On a synchronous backend the I/O thread should not wait for one, unless
 * there is a single session. */
#define LAUNCH_COST 1000000
#define LAUNCH_DEVICE_COST 2000 /* before it is corrected by measurements (pace.h) */

/* Speed of a GPU relative to one processor: in moving elements, in multiplying matrices, in decompositions. */
#define MOVES 600
#define MULTIPLIES 5000
#define DECOMPOSES 50
#define INSTRUCTIONS 29000 /* of all threads of a GPU in a ns */

/* A GPU moves elements while it computes others: what takes longer counts. */
static int64_t estimate_device_ufunc(const ad_op *op, int64_t elements) {
    const int64_t moves = ad__size_product(2, elements) / MOVES,
                  computes = ad__size_product(ad__ufunc(op->row)->cost, elements) / INSTRUCTIONS;
    return computes > moves ? computes : moves;
}

int64_t ad__device_cost(const ad_op *op) {
    const int64_t elements = ad__op_elements(op), moves = ad__size_product(2, elements);
    if (op->opcode == AD_REQ_LAUNCH) return LAUNCH_DEVICE_COST + moves / MOVES;
    if (op->opcode == AD_REQ_UFUNC) return 1 + estimate_device_ufunc(op, elements);
    if (op->opcode != AD_REQ_CALL) return 1 + moves / MOVES;
    if (ad__op_decomposes(op)) return 1 + estimate_call(op) / DECOMPOSES;
    const int64_t work = estimate_call(op), least = ad__call_least_on_device(op);
    return 1 + (work > least ? work : least) / (ad__call(op->row)->work == AD_WORK_PRODUCT ? MULTIPLIES : MOVES);
}

int64_t ad__op_cost(const ad_op *op) {
    if (op->opcode == AD_REQ_LAUNCH) return LAUNCH_COST;
    const bool is_call = op->opcode == AD_REQ_CALL || op->opcode == AD_REQ_QUERY;
    const int64_t elements = ad__op_elements(op);
    const int64_t ns = is_call                      ? estimate_call(op)
                       : op->opcode == AD_REQ_UFUNC ? estimate_ufunc(op, elements)
                                                    : ad__size_product(2, elements);
    return elements < FAR_MANY ? ns : ad__size_sum(ns, estimate_all_far(op));
}

/* ---- messages: one function for each word of the column ---- */

static int64_t estimate_small(const ad_worker_session *s, const ad_message *m) { return (void)s, (void)m, 100; }

static int64_t estimate_operation(const ad_worker_session *s, const ad_message *m) {
    return (void)s, ad__op_cost(&m->op);
}

static int64_t estimate_fill(const ad_worker_session *s, const ad_message *m) {
    return (void)s, count_elements(&m->operand);
}

static int64_t estimate_copy(const ad_worker_session *s, const ad_message *m) {
    return (void)s, ad__size_sum(ad__size_product(2, count_elements(&m->operand)), estimate_far(&m->operand));
}

static int64_t estimate_payload(const ad_worker_session *s, const ad_message *m) {
    return (void)m, ad__bytes_cost(s->messages.frame.payload_size);
}

static int64_t estimate_load(const ad_worker_session *s, const ad_message *m) {
    return (void)s, ad__bytes_cost(m->u[4]);
}

/* On an asynchronous device a message takes the host `enqueue` ns, and moving a payload besides. */
static const struct cost {
    int64_t (*estimate)(const ad_worker_session *s, const ad_message *m);
    int64_t enqueue;
} costs[AD_NCOST] = {
    [AD_COST_SMALL] = {estimate_small, 3000},      [AD_COST_OPERATION] = {estimate_operation, 3000},
    [AD_COST_CALL] = {estimate_operation, 6000},   [AD_COST_QUERY] = {estimate_operation, 50000},
    [AD_COST_LAUNCH] = {estimate_operation, 3000}, [AD_COST_FILL] = {estimate_fill, 3000},
    [AD_COST_COPY] = {estimate_copy, 3000},        [AD_COST_PAYLOAD] = {estimate_payload, 2000},
    [AD_COST_LOAD] = {estimate_load, 3000},
};

int64_t ad__exec_cost(const ad_worker_session *s, const ad_message *m) {
    const struct cost *c = &costs[m->row->cost];
    if (s->worker->backend->asynchronous)
        return c->enqueue + (m->row->cost == AD_COST_PAYLOAD ? estimate_payload(s, m) : 0);
    if (!m->facts) return c->estimate(s, m);
    if (!m->facts->cost) m->facts->cost = c->estimate(s, m);
    return m->facts->cost;
}

int64_t ad__cost_on_device(const ad_worker_session *s, const ad_op *op) {
    if (!s->worker->backend->asynchronous) return 0;
    ad_facts *facts = op == &s->messages.message.op ? s->messages.message.facts : NULL;
    if (!facts) return ad__device_cost(op);
    if (!facts->device_cost) facts->device_cost = ad__device_cost(op);
    return facts->device_cost;
}
