#include <criterion/criterion.h>
#include <string.h>

#include "protocol/infer.h"
#include "protocol/rows.h"
#include "protocol/rows_request.h"

#define ARRAY(dtype_, ...)                                      \
    (ad_operand) {                                              \
        .desc = {                                               \
            1,                                                  \
            0,                                                  \
            (const int64_t[]){__VA_ARGS__},                     \
            some,                                               \
            dtype_,                                             \
            sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), \
            AD_VIEW                                             \
        }                                                       \
    }
#define POINT(dtype_)                                    \
    (ad_operand) {                                       \
        .desc = { 1, 0, some, some, dtype_, 0, AD_VIEW } \
    }
#define NUMBER(value)                                             \
    (ad_operand) {                                                \
        .is_scalar = 1, .scalar = { AD_SCALAR_INT, {.i = value} } \
    }
#define INT(value)                    \
    (ad_scalar) {                     \
        AD_SCALAR_INT, { .i = value } \
    }
#define NIL                  \
    (ad_scalar) {            \
        AD_SCALAR_NIL, { 0 } \
    }

static const int64_t some[AD_MAX_NDIM] = {4, 4, 4, 4};
static ad_fault fault;
static ad_result result[AD_MAX_OUT];
static ad_operand operand[8];
static ad_scalar param[3];
static ad_op op;

/* An operation over operand and param, with one output unless it is said otherwise. */
static int infer_op(int opcode, int row, int loop, int nin, int nparam) {
    op = (ad_op){(uint8_t)opcode, (uint8_t)loop, 1, (uint8_t)nin, (uint8_t)nparam, (uint16_t)row, operand, param};
    return ad__infer(&op, result, &fault);
}
#define UFUNC(row, loop, nin) infer_op(AD_REQ_UFUNC, AD_UFUNC_##row, loop, nin, 0)
#define REDUCE(row, loop, nin) infer_op(AD_REQ_REDUCE, AD_REDUCTION_##row, loop, nin, 3)
#define CALL(row, loop, nin, nparam) infer_op(AD_REQ_CALL, AD_CALL_##row, loop, nin, nparam)
#define QUERY(row, loop, nin) infer_op(AD_REQ_QUERY, AD_CALL_##row, loop, nin, 0)

/* A merge of pairs, which has two outputs, over the operands from 2 on. */
static int infer_merge_pairs(void) {
    op = (ad_op){AD_REQ_CALL, AD_FLOAT32, 2, 4, 0, AD_CALL_merge_pairs, operand, param};
    return ad__infer(&op, result, &fault);
}

static bool has_shape(int dtype, int ndim, const int64_t *shape) {
    return result[0].dtype == dtype && result[0].ndim == ndim &&
           (ndim == 0 || memcmp(result[0].shape, shape, (size_t)ndim * sizeof *shape) == 0);
}
#define IS(dtype, ...) \
    has_shape(dtype, sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (const int64_t[]){__VA_ARGS__})

Test(infer, ufunc) {
    operand[1] = ARRAY(AD_FLOAT32, 3, 1);
    operand[2] = ARRAY(AD_INT8, 4);
    cr_expect(UFUNC(add, AD_FLOAT32, 2) == 0 && IS(AD_FLOAT32, 3, 4));
    cr_expect(UFUNC(less, AD_FLOAT32, 2) == 0 && IS(AD_BOOL, 3, 4));
    cr_expect(UFUNC(absolute, AD_COMPLEX64, 1) == 0 && IS(AD_FLOAT32, 3, 1));
    operand[3] = ARRAY(AD_BOOL, 2, 1, 1);
    cr_expect(UFUNC(add, AD_FLOAT32, 3) == 0 && IS(AD_FLOAT32, 2, 3, 4));
    operand[3] = ARRAY(AD_INT8, 2, 1, 1);
    cr_expect_eq(UFUNC(add, AD_FLOAT32, 3), AD_E_TYPE);
    cr_expect_eq(UFUNC(add, AD_FLOAT32, 1), AD_E_VALUE);
    cr_expect_eq(UFUNC(add, AD_FLOAT32, 4), AD_E_VALUE);
    cr_expect_eq(infer_op(AD_REQ_UFUNC, AD_UFUNC_add, AD_FLOAT32, 2, 1), AD_E_VALUE);
    cr_expect_eq(UFUNC(subtract, AD_BOOL, 2), AD_E_TYPE);
    cr_expect_eq(UFUNC(add, AD_NDTYPE, 2), AD_E_TYPE);
    cr_expect_eq(infer_op(AD_REQ_UFUNC, 255, AD_FLOAT32, 2, 0), AD_E_UNSUPPORTED);
    operand[2] = ARRAY(AD_INT8, 5, 4);
    cr_expect_eq(UFUNC(add, AD_FLOAT32, 2), AD_E_VALUE);
    operand[1] = operand[2] = NUMBER(1);
    cr_expect(UFUNC(add, AD_INT64, 2) == 0 && has_shape(AD_INT64, 0, NULL));
}

Test(infer, two_outputs) {
    operand[1] = operand[2] = ARRAY(AD_FLOAT32, 7);
    op = (ad_op){AD_REQ_UFUNC, AD_FLOAT32, 2, 1, 0, AD_UFUNC_frexp, operand, NULL};
    cr_expect_eq(ad__infer(&op, result, &fault), 0);
    cr_expect(result[0].dtype == AD_FLOAT32 && result[1].dtype == AD_INT32 && result[1].ndim == 1 &&
              result[1].shape[0] == 7);
}

Test(infer, reduce) {
    operand[1] = ARRAY(AD_INT16, 2, 3, 5);
    param[0] = INT(5);
    param[1] = param[2] = NIL;
    cr_expect(REDUCE(sum, AD_INT64, 1) == 0 && IS(AD_INT64, 3));
    cr_expect(REDUCE(argmax, AD_INT16, 1) == 0 && IS(AD_INT64, 3));
    cr_expect(REDUCE(any, AD_INT16, 1) == 0 && IS(AD_BOOL, 3));
    cr_expect(REDUCE(std, AD_COMPLEX64, 1) == 0 && IS(AD_FLOAT32, 3));
    cr_expect_eq(REDUCE(sum, AD_INT16, 1), AD_E_TYPE); /* summed in 64 bits */
    cr_expect_eq(infer_op(AD_REQ_REDUCE, AD_REDUCTION_sum, AD_INT64, 1, 2), AD_E_VALUE);
    param[0] = INT(0);
    cr_expect(REDUCE(sum, AD_INT64, 1) == 0 && IS(AD_INT64, 2, 3, 5));
    const ad_scalar bad[] = {INT(8), INT(-1), INT(INT64_MIN), INT(INT64_MAX), NIL, {AD_SCALAR_FLOAT, {.f = 1}}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        param[0] = bad[i];
        cr_expect_eq(REDUCE(sum, AD_INT64, 1), AD_E_VALUE, "%zu", i);
    }
    param[0] = INT(1);
    operand[1] = NUMBER(1);
    cr_expect_eq(REDUCE(sum, AD_INT64, 1), AD_E_TYPE);
    operand[1] = POINT(AD_INT16);
    cr_expect_eq(REDUCE(sum, AD_INT64, 1), AD_E_VALUE);
    param[0] = INT(0);
    cr_expect(REDUCE(sum, AD_INT64, 1) == 0 && has_shape(AD_INT64, 0, NULL));
    int64_t ones[AD_MAX_NDIM];
    for (int i = 0; i < AD_MAX_NDIM; i++) ones[i] = 1;
    operand[1].desc = (ad_desc){1, 0, ones, ones, AD_INT16, AD_MAX_NDIM, AD_VIEW};
    param[0] = INT((int64_t)UINT32_MAX);
    cr_expect(REDUCE(sum, AD_INT64, 1) == 0 && result[0].ndim == 0);
    param[0] = INT((int64_t)UINT32_MAX + 1);
    cr_expect_eq(REDUCE(sum, AD_INT64, 1), AD_E_VALUE);
}

Test(infer, reduce_parameters) {
    operand[1] = ARRAY(AD_FLOAT32, 4);
    param[0] = INT(1);
    param[1] = INT(1);
    param[2] = NIL;
    cr_expect_eq(REDUCE(var, AD_FLOAT32, 1), 0);
    param[1] = (ad_scalar){AD_SCALAR_BOOL, {.b = true}};
    cr_expect_eq(REDUCE(var, AD_FLOAT32, 1), AD_E_TYPE);
    param[1] = NIL;
    param[2] = INT(5);
    cr_expect_eq(REDUCE(nanmax, AD_FLOAT32, 1), 0);
    cr_expect_eq(REDUCE(prod, AD_FLOAT32, 1), 0);
    cr_expect_eq(REDUCE(mean, AD_FLOAT32, 1), AD_E_TYPE);
    cr_expect_eq(REDUCE(any, AD_FLOAT32, 1), AD_E_TYPE);
    cr_expect_eq(REDUCE(argmin, AD_FLOAT32, 1), AD_E_TYPE);
}

Test(infer, reduce_nothing) {
    param[1] = param[2] = NIL;
    operand[1] = ARRAY(AD_FLOAT32, 0, 3);
    param[0] = INT(1);
    cr_expect_eq(REDUCE(min, AD_FLOAT32, 1), AD_E_VALUE);
    cr_expect_str_eq(fault.text, "zero-size array to reduction operation min which has no identity");
    cr_expect_eq(REDUCE(argmin, AD_FLOAT32, 1), AD_E_VALUE);
    cr_expect_str_eq(fault.text, "attempt to get argmin of an empty sequence");
    cr_expect_eq(REDUCE(sum, AD_FLOAT32, 1), 0);
    cr_expect_eq(REDUCE(mean, AD_FLOAT32, 1), 0);
    param[0] = INT(2); /* rows of three elements, of which there are none */
    cr_expect(REDUCE(min, AD_FLOAT32, 1) == 0 && IS(AD_FLOAT32, 0));
    param[0] = INT(1);
    param[2] = INT(7);
    cr_expect(REDUCE(min, AD_FLOAT32, 1) == 0 && IS(AD_FLOAT32, 3));
}

Test(infer, reduce_mask) {
    param[0] = INT(1);
    param[1] = param[2] = NIL;
    operand[1] = ARRAY(AD_FLOAT32, 4, 3);
    operand[2] = ARRAY(AD_BOOL, 3);
    cr_expect_eq(REDUCE(sum, AD_FLOAT32, 2), 0);
    cr_expect_eq(REDUCE(max, AD_FLOAT32, 2), AD_E_VALUE); /* it may hide everything */
    param[2] = INT(0);
    cr_expect_eq(REDUCE(max, AD_FLOAT32, 2), 0);
    param[2] = NIL;
    operand[2] = ARRAY(AD_BOOL, 4);
    cr_expect_eq(REDUCE(sum, AD_FLOAT32, 2), AD_E_VALUE);
    operand[2] = ARRAY(AD_BOOL, 2, 4, 3); /* it does not make the array larger */
    cr_expect_eq(REDUCE(sum, AD_FLOAT32, 2), AD_E_VALUE);
    operand[2] = ARRAY(AD_INT8, 3);
    cr_expect_eq(REDUCE(sum, AD_FLOAT32, 2), AD_E_TYPE);
}

Test(infer, gather) {
    operand[1] = ARRAY(AD_FLOAT32, 7, 8, 9);
    operand[2] = operand[3] = ARRAY(AD_INT64, 2, 3);
    cr_expect(CALL(gather, AD_FLOAT32, 3, 0) == 0 && IS(AD_FLOAT32, 2, 3, 9));
    cr_expect(CALL(gather, AD_FLOAT32, 2, 0) == 0 && IS(AD_FLOAT32, 2, 3, 8, 9));
    operand[3] = ARRAY(AD_INT64, 3, 2);
    cr_expect_eq(CALL(gather, AD_FLOAT32, 3, 0), AD_E_VALUE);
    operand[3] = ARRAY(AD_INT32, 2, 3);
    cr_expect_eq(CALL(gather, AD_FLOAT32, 3, 0), AD_E_TYPE);
    operand[3] = NUMBER(1);
    cr_expect_eq(CALL(gather, AD_FLOAT32, 3, 0), AD_E_TYPE);
    operand[1] = ARRAY(AD_FLOAT32, 7);
    operand[3] = operand[2];
    cr_expect_eq(CALL(gather, AD_FLOAT32, 3, 0), AD_E_INDEX);
    cr_expect_eq(CALL(gather, AD_FLOAT32, 1, 0), AD_E_VALUE);
    int64_t ones[AD_MAX_NDIM] = {0};
    operand[1].desc.ndim = 2;
    operand[2].desc = (ad_desc){1, 0, ones, ones, AD_INT64, AD_MAX_NDIM, AD_VIEW};
    cr_expect_eq(CALL(gather, AD_FLOAT32, 2, 0), AD_E_VALUE); /* 33 dimensions */
}

Test(infer, scatter) {
    operand[0] = ARRAY(AD_FLOAT32, 7, 8);
    operand[1] = ARRAY(AD_INT8, 8);
    operand[2] = ARRAY(AD_INT64, 2, 3);
    param[0] = INT(1);
    cr_expect(CALL(scatter, AD_FLOAT32, 2, 1) == 0 && IS(AD_FLOAT32, 7, 8));
    operand[1] = NUMBER(3);
    cr_expect_eq(CALL(scatter, AD_FLOAT32, 2, 1), 0);
    operand[1] = ARRAY(AD_FLOAT32, 3, 3, 8);
    cr_expect_eq(CALL(scatter, AD_FLOAT32, 2, 1), AD_E_VALUE);
    operand[1] = NUMBER(3);
    param[0] = INT(4);
    cr_expect_eq(CALL(scatter, AD_FLOAT32, 2, 1), AD_E_VALUE);
    param[0] = INT(0);
    cr_expect_eq(CALL(scatter, AD_FLOAT64, 2, 1), AD_E_TYPE); /* the loop is not x's type */
    operand[0].desc.form = AD_FRESH;
    cr_expect_eq(CALL(scatter, AD_FLOAT32, 2, 1), AD_E_VALUE);
    op.nout = 0;
    cr_expect_eq(ad__infer(&op, result, &fault), AD_E_VALUE);
}

Test(infer, updates) {
    op = (ad_op){.opcode = AD_REQ_CALL, .row = AD_CALL_scatter};
    cr_expect(ad__op_updates(&op));
    op.row = AD_CALL_place;
    cr_expect(ad__op_updates(&op));
    op.row = AD_CALL_gather;
    cr_expect_not(ad__op_updates(&op));
    op.row = UINT16_MAX;
    cr_expect_not(ad__op_updates(&op));
    op = (ad_op){.opcode = AD_REQ_UFUNC, .row = AD_CALL_scatter};
    cr_expect_not(ad__op_updates(&op));
}

Test(infer, along_an_axis) {
    operand[1] = ARRAY(AD_INT16, 2, 3);
    param[0] = INT(1);
    cr_expect(CALL(cumsum, AD_INT64, 1, 1) == 0 && IS(AD_INT64, 2, 3));
    cr_expect_eq(CALL(cumsum, AD_INT16, 1, 1), AD_E_TYPE);
    cr_expect(CALL(sort, AD_INT16, 1, 1) == 0 && IS(AD_INT16, 2, 3));
    cr_expect(CALL(argsort, AD_INT16, 1, 1) == 0 && IS(AD_INT64, 2, 3));
    const ad_scalar bad[] = {INT(2), INT(-1), INT(INT64_MAX)};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        param[0] = bad[i];
        cr_expect_eq(CALL(sort, AD_INT16, 1, 1), AD_E_VALUE);
    }
    param[0] = (ad_scalar){AD_SCALAR_FLOAT, {.f = 0}};
    cr_expect_eq(CALL(sort, AD_INT16, 1, 1), AD_E_TYPE);
    param[0] = INT(0);
    operand[1] = POINT(AD_INT16);
    cr_expect_eq(CALL(sort, AD_INT16, 1, 1), AD_E_VALUE);
    operand[1] = NUMBER(1);
    cr_expect_eq(CALL(argsort, AD_INT16, 1, 1), AD_E_TYPE);
}

Test(infer, partition) {
    op = (ad_op){AD_REQ_CALL, AD_INT16, 1, 1, 2, AD_CALL_partition, operand, param};
    operand[1] = ARRAY(AD_INT16, 2, 3);
    param[0] = INT(1);
    for (int64_t kth = -1; kth <= 3; kth++) {
        param[1] = INT(kth);
        op.row = AD_CALL_partition;
        cr_expect_eq(ad__infer(&op, result, &fault), kth < 0 || kth > 2 ? AD_E_VALUE : 0);
        cr_expect(kth < 0 || kth > 2 || IS(AD_INT16, 2, 3));
        op.row = AD_CALL_argpartition;
        cr_expect_eq(ad__infer(&op, result, &fault), kth < 0 || kth > 2 ? AD_E_VALUE : 0);
        cr_expect(kth < 0 || kth > 2 || IS(AD_INT64, 2, 3));
    }
    operand[1] = ARRAY(AD_INT16, 2, 0); /* where there is nothing there is no place to name */
    cr_expect(ad__infer(&op, result, &fault) == 0 && IS(AD_INT64, 2, 0));
    param[0] = INT(2);
    cr_expect_eq(ad__infer(&op, result, &fault), AD_E_VALUE);
    operand[1] = NUMBER(1);
    cr_expect_eq(ad__infer(&op, result, &fault), AD_E_TYPE);
}

Test(infer, sort_places) {
    op = (ad_op){AD_REQ_CALL, AD_FLOAT32, 2, 1, 1, AD_CALL_sort_places, operand, param};
    param[0] = (ad_scalar){AD_SCALAR_INT, {.i = 7}};
    operand[2] = ARRAY(AD_FLOAT32, 5);
    cr_expect(ad__infer(&op, result, &fault) == 0 && IS(AD_FLOAT32, 5));
    cr_expect(result[1].dtype == AD_INT64 && result[1].ndim == 1 && result[1].shape[0] == 5);
    operand[2] = ARRAY(AD_FLOAT32, 5, 2);
    cr_expect_eq(ad__infer(&op, result, &fault), AD_E_VALUE);
    operand[2] = ARRAY(AD_FLOAT64, 5);
    cr_expect_eq(ad__infer(&op, result, &fault), AD_E_TYPE);
}

Test(infer, merge) {
    operand[1] = ARRAY(AD_FLOAT32, 4);
    operand[2] = ARRAY(AD_FLOAT32, 5);
    cr_expect(CALL(merge, AD_FLOAT32, 2, 0) == 0 && IS(AD_FLOAT32, 9));
    cr_expect_eq(CALL(merge, AD_FLOAT64, 2, 0), AD_E_TYPE);
    operand[2] = ARRAY(AD_FLOAT32, 1, 5);
    cr_expect_eq(CALL(merge, AD_FLOAT32, 2, 0), AD_E_VALUE);
    operand[2] = ARRAY(AD_FLOAT32, INT64_MAX - 3);
    cr_expect_eq(CALL(merge, AD_FLOAT32, 2, 0), AD_E_VALUE);
    operand[2] = NUMBER(1);
    cr_expect_eq(CALL(merge, AD_FLOAT32, 2, 0), AD_E_TYPE);
}

Test(infer, merge_pairs) {
    const int64_t both = 9;
    operand[2] = ARRAY(AD_FLOAT32, 4);
    operand[3] = ARRAY(AD_FLOAT32, 5);
    operand[4] = ARRAY(AD_INT64, 4);
    operand[5] = ARRAY(AD_INT64, 5);
    cr_expect(infer_merge_pairs() == 0 && IS(AD_FLOAT32, 9));
    cr_expect(result[1].dtype == AD_INT64 && result[1].ndim == 1 && result[1].shape[0] == both);
    operand[5] = ARRAY(AD_INT64, 4);
    cr_expect_eq(infer_merge_pairs(), AD_E_VALUE);
    operand[5] = ARRAY(AD_INT32, 5);
    cr_expect_eq(infer_merge_pairs(), AD_E_TYPE);
}

Test(infer, matmul) {
    param[0] = (ad_scalar){AD_SCALAR_BOOL, {.b = true}};
    operand[1] = ARRAY(AD_FLOAT32, 5, 1, 2, 3);
    operand[2] = ARRAY(AD_FLOAT32, 4, 3, 6);
    cr_expect(CALL(matmul, AD_FLOAT32, 2, 1) == 0 && IS(AD_FLOAT32, 5, 4, 2, 6));
    operand[2] = ARRAY(AD_FLOAT32, 4, 2, 6);
    cr_expect_eq(CALL(matmul, AD_FLOAT32, 2, 1), AD_E_VALUE);
    operand[2] = ARRAY(AD_FLOAT32, 3);
    cr_expect_eq(CALL(matmul, AD_FLOAT32, 2, 1), AD_E_VALUE);
    operand[1] = ARRAY(AD_FLOAT32, 5, 2, 3);
    operand[2] = ARRAY(AD_FLOAT32, 4, 3, 6);
    cr_expect_eq(CALL(matmul, AD_FLOAT32, 2, 1), AD_E_VALUE);
}

Test(infer, other_calls) {
    operand[0] = ARRAY(AD_INT64, 9);
    param[0] = param[1] = INT(1);
    cr_expect(CALL(iota, AD_FLOAT32, 0, 2) == 0 && IS(AD_FLOAT32, 9));
    param[1] = NIL;
    cr_expect_eq(CALL(iota, AD_FLOAT32, 0, 2), AD_E_TYPE);
    operand[1] = ARRAY(AD_INT64, 20);
    cr_expect(CALL(bincount, AD_INT64, 1, 0) == 0 && IS(AD_INT64, 9));
    operand[2] = ARRAY(AD_FLOAT64, 20);
    cr_expect(CALL(bincount, AD_FLOAT64, 2, 0) == 0 && IS(AD_FLOAT64, 9));
    cr_expect_eq(CALL(bincount, AD_INT64, 2, 0), AD_E_TYPE);
    operand[2] = ARRAY(AD_FLOAT64, 19);
    cr_expect_eq(CALL(bincount, AD_FLOAT64, 2, 0), AD_E_VALUE);
    operand[1] = ARRAY(AD_INT32, 20);
    cr_expect_eq(CALL(bincount, AD_INT64, 1, 0), AD_E_TYPE);
    param[0] = (ad_scalar){AD_SCALAR_BOOL, {.b = true}};
    operand[1] = ARRAY(AD_FLOAT32, 20);
    operand[2] = ARRAY(AD_FLOAT32, 2, 3);
    cr_expect(CALL(searchsorted, AD_FLOAT32, 2, 1) == 0 && IS(AD_INT64, 2, 3));
    operand[2] = NUMBER(7);
    cr_expect(CALL(searchsorted, AD_FLOAT32, 2, 1) == 0 && has_shape(AD_INT64, 0, NULL));
    operand[1] = ARRAY(AD_FLOAT32, 4, 5);
    cr_expect_eq(CALL(searchsorted, AD_FLOAT32, 2, 1), AD_E_VALUE);
    cr_expect_eq(CALL(nonzero, AD_FLOAT32, 1, 0), AD_E_UNSUPPORTED); /* to be asked, not called */
    cr_expect_eq(QUERY(sort, AD_FLOAT32, 1), AD_E_UNSUPPORTED);
}

Test(infer, masks) {
    operand[1] = ARRAY(AD_FLOAT32, 4, 5);
    operand[2] = ARRAY(AD_BOOL, 4);
    cr_expect_eq(QUERY(compress, AD_FLOAT32, 2), 0);
    cr_expect_eq(QUERY(nonzero, AD_FLOAT32, 1), 0);
    cr_expect_eq(result[0].dtype, AD_INT64);
    operand[2] = ARRAY(AD_BOOL, 5);
    cr_expect_eq(QUERY(compress, AD_FLOAT32, 2), AD_E_INDEX);
    operand[2] = ARRAY(AD_BOOL, 4, 5, 1);
    cr_expect_eq(QUERY(compress, AD_FLOAT32, 2), AD_E_INDEX);
    operand[2] = ARRAY(AD_UINT8, 4);
    cr_expect_eq(QUERY(compress, AD_FLOAT32, 2), AD_E_TYPE);
    operand[0] = ARRAY(AD_FLOAT32, 4, 5);
    operand[1] = ARRAY(AD_BOOL, 4);
    operand[2] = ARRAY(AD_FLOAT32, 3, 5);
    cr_expect(CALL(place, AD_FLOAT32, 2, 0) == 0 && IS(AD_FLOAT32, 4, 5));
    operand[2] = ARRAY(AD_FLOAT32, 3, 4);
    cr_expect_eq(CALL(place, AD_FLOAT32, 2, 0), AD_E_VALUE);
    operand[2] = ARRAY(AD_FLOAT32, 3);
    cr_expect_eq(CALL(place, AD_FLOAT32, 2, 0), AD_E_VALUE);
    operand[2] = POINT(AD_FLOAT32);
    cr_expect_eq(CALL(place, AD_FLOAT32, 2, 0), AD_E_VALUE);
    operand[2] = NUMBER(1);
    cr_expect_eq(CALL(place, AD_FLOAT32, 2, 0), AD_E_TYPE);
    operand[0].desc.form = AD_FRESH;
    cr_expect_eq(CALL(place, AD_FLOAT32, 2, 0), AD_E_VALUE);
}

static int check_op(int nout) {
    op.nout = (uint8_t)nout;
    return ad__check_op(&op, &fault);
}

Test(infer, check_outputs) {
    operand[0] = ARRAY(AD_INT8, 3, 4); /* results are cast */
    operand[1] = ARRAY(AD_FLOAT32, 3, 1);
    operand[2] = ARRAY(AD_FLOAT32, 4);
    UFUNC(add, AD_FLOAT32, 2);
    cr_expect_eq(check_op(1), 0);
    cr_expect_eq(check_op(0), AD_E_VALUE);
    operand[0] = ARRAY(AD_FLOAT32, 2, 3, 4); /* inputs are broadcast to outputs */
    cr_expect_eq(check_op(1), 0);
    operand[0] = ARRAY(AD_FLOAT32, 3, 5);
    cr_expect_eq(check_op(1), AD_E_VALUE);
    operand[0] = ARRAY(AD_FLOAT32, 4);
    cr_expect_eq(check_op(1), AD_E_VALUE);
    operand[0] = NUMBER(1);
    cr_expect_eq(check_op(1), AD_E_TYPE);
    operand[0] = ARRAY(AD_FLOAT32, 3, 4);
    operand[0].desc.strides = (const int64_t[]){4, 0};
    cr_expect_eq(check_op(1), AD_E_VALUE);
    operand[0] = operand[1] = operand[2] = ARRAY(AD_FLOAT32, 0, 4); /* without elements nothing repeats */
    operand[0].desc.strides = (const int64_t[]){4, 0};
    cr_expect_eq(check_op(1), 0);
    operand[1] = ARRAY(AD_FLOAT32, 3, 1);
    operand[2] = ARRAY(AD_FLOAT32, 4);
    operand[0] = ARRAY(AD_FLOAT32, 3, 4);
    operand[0].desc.form = AD_FRESH;
    cr_expect_eq(check_op(1), 0);
    operand[0].desc.form = AD_SIZED;
    cr_expect_eq(check_op(1), AD_E_VALUE);
    operand[0] = ARRAY(AD_FLOAT32, 3, 1);
    operand[1] = ARRAY(AD_FLOAT32, 3, 4);
    param[0] = INT(2);
    param[1] = param[2] = NIL;
    REDUCE(sum, AD_FLOAT32, 1);
    cr_expect_eq(check_op(1), AD_E_VALUE); /* a reduction's shape is exact */
    operand[0] = ARRAY(AD_FLOAT32, 3);
    cr_expect_eq(check_op(1), 0);
}

Test(infer, check_two_outputs) {
    operand[0] = operand[2] = ARRAY(AD_FLOAT64, 3, 4);
    operand[1] = ARRAY(AD_FLOAT64, 2, 3, 4);
    op = (ad_op){AD_REQ_UFUNC, AD_FLOAT64, 2, 1, 0, AD_UFUNC_modf, operand, NULL};
    cr_expect_eq(check_op(2), AD_E_VALUE);
    operand[1] = operand[0];
    cr_expect_eq(check_op(2), 0);
    op = (ad_op){AD_REQ_UFUNC, AD_FLOAT64, 1, 2, 0, AD_UFUNC_modf, operand, NULL};
    cr_expect_lt(ad__check_op(&op, &fault), 0);
}

Test(infer, check_asked_outputs) {
    operand[0] = (ad_operand){.desc = {9, 0, NULL, NULL, AD_INT64, 0, AD_SIZED}};
    operand[1] = ARRAY(AD_FLOAT32, 3, 4);
    QUERY(nonzero, AD_FLOAT32, 1);
    cr_expect_eq(check_op(1), 0);
    operand[0].desc.dtype = AD_INT32; /* what the data decide is not cast */
    cr_expect_eq(check_op(1), AD_E_TYPE);
    operand[0] = ARRAY(AD_INT64, 2, 3);
    cr_expect_eq(check_op(1), AD_E_VALUE);
}

Test(infer, names) {
    UFUNC(add, 0, 0);
    cr_expect_str_eq(ad__op_name(&op), "add");
    REDUCE(sum, 0, 0);
    cr_expect_str_eq(ad__op_name(&op), "sum");
    CALL(sort, 0, 0, 0);
    cr_expect_str_eq(ad__op_name(&op), "sort");
    op = (ad_op){.opcode = AD_REQ_UFUNC, .row = 999};
    cr_expect_str_eq(ad__op_name(&op), "?");
    op = (ad_op){.opcode = AD_REQ_NEW};
    cr_expect_str_eq(ad__op_name(&op), "?");
    cr_expect_eq(ad__check_op(&op, &fault), AD_E_UNSUPPORTED);
}
