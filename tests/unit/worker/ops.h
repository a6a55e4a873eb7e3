/* Operations on contiguous int64 for the tests of rooms: the fake device adds the inputs. */
#ifndef AD_TESTS_UNIT_WORKER_OPS_H
#define AD_TESTS_UNIT_WORKER_OPS_H

#include "protocol/rows.h"
#include "protocol/rows_request.h"
#include "server/worker/checkpoint/buffer_free.h"
#include "server/worker/exec/exec.h"
#include "server/worker/exec/job.h"
#include "server/worker/spill/spill.h"
#include "tests/unit/worker/end.h"

#define ELEMENTS 16

static const int64_t ops_shape[1] = {ELEMENTS}, ops_strides[1] = {8};

/* The component of stream queues in these tests; it is closed last. */
static const ad_component ops_streams = {.name = "streams", .drop = ad__stream_queues_close};

/* The sum of two arrays, or of one and a number (b 0). */
typedef struct sum {
    ad_operand operand[3];
    ad_op op;
} sum;

static inline ad_operand make_view(uint64_t buffer) {
    return (ad_operand){.desc = {.buffer = buffer,
                                 .shape = ops_shape,
                                 .strides = ops_strides,
                                 .dtype = AD_INT64,
                                 .ndim = 1,
                                 .form = AD_VIEW}};
}

static inline ad_op *make_sum(sum *x, uint64_t out, bool fresh, uint64_t a, uint64_t b, int64_t number) {
    *x = (sum){.operand = {make_view(out), make_view(a),
                           b ? make_view(b) : (ad_operand){.is_scalar = 1, .scalar = {AD_SCALAR_INT, .as.i = number}}}};
    if (fresh) x->operand[0].desc.form = AD_FRESH;
    x->op = (ad_op){
        .opcode = AD_REQ_UFUNC, .loop = AD_INT64, .nout = 1, .nin = 2, .row = AD_UFUNC_add, .operand = x->operand};
    return &x->op;
}

/* Run an operation as session room does. Returns its status. */
static inline int run_op(ad_worker_session *s, ad_op *op) {
    job j;
    ad_message m = {.opcode = AD_REQ_UFUNC, .row = ad__request(AD_REQ_UFUNC), .op = *op};
    ad__checkpoint_begin_message(s, &m);
    ad__job_begin(&j, s, op, s->progress.done + 1);
    int status = ad__job_run(&j);
    if (status) ad__poison_release(ad__job_fail(&j, status));
    ad__job_end(&j);
    s->progress.done++;
    ad__stream_queues_settle(s);
    ad__checkpoint_mark_executed(&s->checkpoint);
    ad__checkpoint_end_changes(&s->checkpoint);
    return status;
}

/* Make a buffer whose elements are all `value`. */
static inline ad_buffer *make_buffer(ad_worker_session *s, uint64_t id, int64_t value) {
    ad_buffer *b = NULL;
    ad_fault fault = {0};
    ad_stream_queue *queue = ad__stream_queue_current(s, &fault);
    if (!queue || ad__buffers_add(&s->buffers, id, &b, &fault)) return NULL;
    if (ad__buffer_take_memory(s, queue, b, ELEMENTS * 8, true, &fault)) return NULL;
    for (int i = 0; i < ELEMENTS; i++) ((int64_t *)b->address)[i] = value;
    ad__spill_end(s, &b, 1);
    s->progress.done++;
    ad__checkpoint_mark_executed(&s->checkpoint);
    return b;
}

static inline int64_t get_value(const ad_worker_session *s, uint64_t id) {
    const ad_buffer *b = ad__buffers_find(&s->buffers, id);
    return b && !b->poison ? ((const int64_t *)b->address)[ELEMENTS - 1] : INT64_MIN;
}

static inline void free_buffer(ad_worker_session *s, uint64_t id) {
    ad_buffer *b = ad__buffers_find(&s->buffers, id);
    ad__buffers_detach(&s->buffers, b);
    ad__buffer_free(s, b);
    s->progress.done++;
    ad__checkpoint_mark_executed(&s->checkpoint);
}

#endif
