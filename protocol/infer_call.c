/* Type and shape rules of library calls: see infer_call.h. */
#include "protocol/infer_call.h"
#include "protocol/desc.h"

#include <inttypes.h>
#include <string.h>

static int (*const infers[AD_CALL_LIMIT])(const ad_op *op, ad_result *result, ad_fault *fault) = {
#define AD_CALL(id, name, nout, nin_min, nin_max, params, kind, guard, work, cost, infer, doc) [id] = ad__infer_##infer,
#include "protocol/call.def"
#undef AD_CALL
};

/* ---- shared by the rules ---- */

static bool is_param(char letter, const ad_scalar *v) {
    switch (letter) {
    case 'i': return v->kind == AD_SCALAR_INT;
    case 'b': return v->kind == AD_SCALAR_BOOL;
    case 'f': return v->kind == AD_SCALAR_INT || v->kind == AD_SCALAR_UINT || v->kind == AD_SCALAR_FLOAT;
    default: return v->kind != AD_SCALAR_NIL;
    }
}

/* Check the output that a call of kind UPDATE changes. AD_E_VALUE, AD_E_TYPE. */
static int check_updated(const ad_op *op, ad_fault *fault) {
    const ad_desc *out;
    int status = ad__given_output(op, &out, fault);

    if (status) return status;
    if (out->form != AD_VIEW) return ad__fault(fault, AD_E_VALUE, "%s: the output must exist", ad__op_name(op));
    if (out->dtype != op->loop)
        return ad__fault(fault, AD_E_TYPE, "%s: the output must be of the loop's type, %s", ad__op_name(op),
                         ad__dtypes[op->loop].name);
    return 0;
}

int ad__infer_call(const ad_call_row *row, const ad_op *op, ad_result *result, ad_fault *fault) {
    int status = row->kind == AD_CALL_UPDATE ? check_updated(op, fault) : 0;

    if (status) return status;
    for (int i = 0; i < op->nparam; i++)
        if (!is_param(row->params[i], &op->param[i]))
            return ad__fault(fault, AD_E_TYPE, "%s: parameter %d is of the wrong type", row->name, i);
    return infers[row->infer](op, result, fault);
}

int ad__array_input(const ad_op *op, int i, const ad_desc **out, ad_fault *fault) {
    const ad_operand *x = &op->operand[op->nout + i];

    *out = &x->desc;
    if (x->is_scalar) return ad__fault(fault, AD_E_TYPE, "%s: input %d must be an array", ad__op_name(op), i);
    return 0;
}

int ad__typed_input(const ad_op *op, int i, int dtype, const ad_desc **out, ad_fault *fault) {
    int status = ad__array_input(op, i, out, fault);

    if (!status && (*out)->dtype != dtype)
        return ad__fault(fault, AD_E_TYPE, "%s: input %d must be of type %s, not %s", ad__op_name(op), i,
                         ad__dtypes[dtype].name, ad__dtypes[(*out)->dtype].name);
    return status;
}

int ad__given_output(const ad_op *op, const ad_desc **out, ad_fault *fault) {
    *out = &op->operand[0].desc;
    if (op->nout < 1 || op->operand[0].is_scalar || (*out)->form == AD_SIZED)
        return ad__fault(fault, AD_E_VALUE, "%s: the output must be described", ad__op_name(op));
    return 0;
}

int ad__bad_shape(const ad_op *op, int i, const char *what, ad_fault *fault) {
    return ad__fault(fault, AD_E_VALUE, "%s: input %d %s", ad__op_name(op), i, what);
}

void ad__set_result(ad_result *result, int dtype, int ndim, const int64_t *shape) {
    result->dtype = (uint8_t)dtype;
    result->ndim = (uint8_t)ndim;
    if (ndim > 0) memcpy(result->shape, shape, (size_t)ndim * sizeof *shape);
}

bool ad__shapes_equal(const int64_t *a, const int64_t *b, int n) {
    return n == 0 || memcmp(a, b, (size_t)n * sizeof *a) == 0;
}

int ad__check_axis(const ad_op *op, const ad_desc *d, ad_fault *fault) {
    const int64_t axis = op->param[0].as.i;

    if (axis < 0 || axis >= d->ndim)
        return ad__fault(fault, AD_E_VALUE, "%s: axis %" PRId64 " is out of bounds for array of dimension %d",
                         ad__op_name(op), axis, d->ndim);
    return 0;
}

/* ---- one rule after another ---- */

int ad__infer_iota(const ad_op *op, ad_result *result, ad_fault *fault) {
    const ad_desc *out;
    int status = ad__given_output(op, &out, fault);

    if (!status && out->ndim != 1)
        status = ad__fault(fault, AD_E_VALUE, "%s: the output must have one dimension", ad__op_name(op));
    if (!status) ad__set_result(result, op->loop, 1, out->shape);
    return status;
}

/* Check the k index arrays from input 1 on, which have one shape. Infer the shape that they select from x: their shape,
 * then the rest of x's. */
static int infer_indexed_shape(const ad_op *op, const ad_desc *x, ad_result *result, ad_fault *fault) {
    const int k = op->nin - 1;
    const ad_desc *first = NULL, *index;

    if (x->ndim < k)
        return ad__fault(fault, AD_E_INDEX, "too many indices for array: array is %d-dimensional, but %d were indexed",
                         x->ndim, k);
    for (int i = 1; i <= k; i++) {
        int status = ad__typed_input(op, i, AD_INT64, &index, fault);
        if (status) return status;
        if (!first) first = index;
        else if (index->ndim != first->ndim || !ad__shapes_equal(index->shape, first->shape, first->ndim))
            return ad__bad_shape(op, i, "does not have the shape of the other indices", fault);
    }
    if (first->ndim + x->ndim - k > AD_MAX_NDIM)
        return ad__fault(fault, AD_E_VALUE, "%s: maximum supported dimension for an ndarray is currently %d, found %d",
                         ad__op_name(op), AD_MAX_NDIM, first->ndim + x->ndim - k);
    ad__set_result(result, op->loop, first->ndim, first->shape);
    for (int i = k; i < x->ndim; i++) result->shape[result->ndim++] = x->shape[i];
    return 0;
}

int ad__infer_gather(const ad_op *op, ad_result *result, ad_fault *fault) {
    const ad_desc *x;
    int status = ad__array_input(op, 0, &x, fault);

    return !status ? infer_indexed_shape(op, x, result, fault) : status;
}

int ad__infer_scatter(const ad_op *op, ad_result *result, ad_fault *fault) {
    const ad_operand *v = &op->operand[op->nout];
    int64_t strides[AD_MAX_NDIM];
    ad_result selected = {0};
    const ad_desc *x = &op->operand[0].desc;
    ad_desc view;
    int status = infer_indexed_shape(op, x, &selected, fault);

    if (!status && (op->param[0].as.i < 0 || op->param[0].as.i > 3))
        status = ad__fault(fault, AD_E_VALUE, "scatter: no such mode: %" PRId64, op->param[0].as.i);
    if (!status) status = ad__result_check(&selected, fault);
    if (!status && !v->is_scalar)
        status = ad__broadcast_to(&v->desc, selected.ndim, selected.shape, strides, &view, fault);
    if (!status) ad__set_result(result, x->dtype, x->ndim, x->shape);
    return status;
}

static int infer_same_shape(const ad_op *op, int dtype, ad_result *result, ad_fault *fault) {
    const ad_desc *x;
    int status = ad__array_input(op, 0, &x, fault);

    if (!status) status = ad__check_axis(op, x, fault);
    if (!status) ad__set_result(result, dtype, x->ndim, x->shape);
    return status;
}

int ad__infer_scan_sum(const ad_op *op, ad_result *result, ad_fault *fault) {
    if (!(ad__rules[AD_RULE_SUM].loops & AD_BIT(op->loop)))
        return ad__fault(fault, AD_E_TYPE, "%s: there is no loop for %s", ad__op_name(op), ad__dtypes[op->loop].name);
    return infer_same_shape(op, op->loop, result, fault);
}

int ad__infer_same(const ad_op *op, ad_result *result, ad_fault *fault) {
    return infer_same_shape(op, op->loop, result, fault);
}

int ad__infer_argsort(const ad_op *op, ad_result *result, ad_fault *fault) {
    return infer_same_shape(op, AD_INT64, result, fault);
}

/* Check the axis, and that it has an element number kth unless there are none at all. */
static int infer_partition(const ad_op *op, int dtype, ad_result *result, ad_fault *fault) {
    const int status = infer_same_shape(op, dtype, result, fault);
    const ad_desc *x = &op->operand[op->nout].desc;
    int64_t kth = op->param[1].as.i, n;

    if (status || ad__desc_count(x) == 0) return status;
    n = x->shape[op->param[0].as.i];
    if (kth >= 0 && kth < n) return 0;
    return ad__fault(fault, AD_E_VALUE, "%s: kth is %" PRId64 ", and must be from 0 to %" PRId64 " for this axis",
                     ad__op_name(op), kth, n - 1);
}

int ad__infer_partition(const ad_op *op, ad_result *result, ad_fault *fault) {
    return infer_partition(op, op->loop, result, fault);
}

int ad__infer_argpartition(const ad_op *op, ad_result *result, ad_fault *fault) {
    return infer_partition(op, AD_INT64, result, fault);
}

int ad__infer_searchsorted(const ad_op *op, ad_result *result, ad_fault *fault) {
    const ad_operand *v = &op->operand[op->nout + 1];
    const ad_desc *x;
    int status = ad__array_input(op, 0, &x, fault);

    if (!status && x->ndim != 1) status = ad__bad_shape(op, 0, "must have one dimension", fault);
    if (!status) ad__set_result(result, AD_INT64, v->is_scalar ? 0 : v->desc.ndim, v->desc.shape);
    return status;
}

int ad__infer_histogram(const ad_op *op, ad_result *result, ad_fault *fault) {
    const ad_desc *line[2];
    int64_t bins;
    int status = 0;

    for (int i = 0; i < 2 && !status; i++) {
        status = ad__array_input(op, i, &line[i], fault);
        if (!status && line[i]->ndim != 1) status = ad__bad_shape(op, i, "must have one dimension", fault);
    }
    if (!status && line[1]->shape[0] < 1) status = ad__bad_shape(op, 1, "must not be empty", fault);
    if (!status && op->loop != AD_FLOAT32 && op->loop != AD_FLOAT64)
        status = ad__fault(fault, AD_E_TYPE, "histogram: the loop must be float32 or float64");
    if (status) return status;
    bins = line[1]->shape[0] - 1;
    ad__set_result(result, AD_INT64, 1, &bins);
    return 0;
}

/* Check that input i is one-dimensional and of a type; count its elements. */
static int check_line(const ad_op *op, int i, int dtype, int64_t *n, ad_fault *fault) {
    const ad_desc *x;
    int status = ad__typed_input(op, i, dtype, &x, fault);

    if (!status && x->ndim != 1) status = ad__bad_shape(op, i, "must have one dimension", fault);
    if (!status) *n = x->shape[0];
    return status;
}

int ad__infer_sort_places(const ad_op *op, ad_result *result, ad_fault *fault) {
    int64_t n;
    int status = check_line(op, 0, op->loop, &n, fault);

    if (status) return status;
    ad__set_result(result, op->loop, 1, &n);
    ad__set_result(&result[1], AD_INT64, 1, &n);
    return 0;
}

int ad__infer_merge(const ad_op *op, ad_result *result, ad_fault *fault) {
    int64_t n[2], both;
    int status = 0;

    for (int i = 0; i < 2 && !status; i++) status = check_line(op, i, op->loop, &n[i], fault);
    if (status) return status;
    if (__builtin_add_overflow(n[0], n[1], &both))
        return ad__fault(fault, AD_E_VALUE, "%s: the inputs have too many elements", ad__op_name(op));
    ad__set_result(result, op->loop, 1, &both);
    return 0;
}

int ad__infer_merge_pairs(const ad_op *op, ad_result *result, ad_fault *fault) {
    int status = ad__infer_merge(op, result, fault);
    int64_t n;

    for (int i = 0; i < 2 && !status; i++) {
        status = check_line(op, 2 + i, AD_INT64, &n, fault);
        if (!status && n != op->operand[op->nout + i].desc.shape[0])
            status = ad__bad_shape(op, 2 + i, "must have a number for each element", fault);
    }
    if (!status) ad__set_result(&result[1], AD_INT64, 1, result[0].shape);
    return status;
}

int ad__infer_bincount(const ad_op *op, ad_result *result, ad_fault *fault) {
    const int dtype = op->nin > 1 ? AD_FLOAT64 : AD_INT64;
    const ad_desc *x, *weights, *out;
    int status = ad__typed_input(op, 0, AD_INT64, &x, fault);

    if (!status && x->ndim != 1) status = ad__bad_shape(op, 0, "must have one dimension", fault);
    if (!status && op->nin > 1) {
        status = ad__typed_input(op, 1, AD_FLOAT64, &weights, fault);
        if (!status && (weights->ndim != 1 || weights->shape[0] != x->shape[0]))
            status = ad__fault(fault, AD_E_VALUE, "The weights and list don't have the same length.");
    }
    if (!status && op->loop != dtype)
        status = ad__fault(fault, AD_E_TYPE, "bincount: the loop must be %s", ad__dtypes[dtype].name);
    if (!status) status = ad__given_output(op, &out, fault);
    if (!status && out->ndim != 1)
        status = ad__fault(fault, AD_E_VALUE, "bincount: the output must have one dimension");
    if (!status) ad__set_result(result, dtype, 1, out->shape);
    return status;
}

int ad__infer_matmul(const ad_op *op, ad_result *result, ad_fault *fault) {
    ad_operand a, b;
    const ad_operand *lead[2] = {&a, &b};
    const ad_desc *x, *y;
    int status = ad__array_input(op, 0, &x, fault), ndim;

    if (!status) status = ad__array_input(op, 1, &y, fault);
    if (status) return status;
    if (x->ndim < 2 || y->ndim < 2)
        return ad__bad_shape(op, x->ndim < 2 ? 0 : 1, "must have two dimensions or more", fault);
    if (x->shape[x->ndim - 1] != y->shape[y->ndim - 2])
        return ad__fault(fault, AD_E_VALUE,
                         "matmul: Input operand 1 has a mismatch in its core dimension 0, with gufunc signature "
                         "(n?,k),(k,m?)->(n?,m?) (size %" PRId64 " is different from %" PRId64 ")",
                         y->shape[y->ndim - 2], x->shape[x->ndim - 1]);
    a = op->operand[op->nout];
    b = op->operand[op->nout + 1];
    a.desc.ndim -= 2;
    b.desc.ndim -= 2;
    status = ad__broadcast(2, lead, &ndim, result->shape, fault);
    if (status) return status;
    result->shape[ndim] = x->shape[x->ndim - 2];
    result->shape[ndim + 1] = y->shape[y->ndim - 1];
    result->ndim = (uint8_t)(ndim + 2);
    result->dtype = op->loop;
    return 0;
}

int ad__infer_nonzero(const ad_op *op, ad_result *result, ad_fault *fault) {
    const ad_desc *x;

    ad__set_result(result, AD_INT64, 0, NULL);
    return ad__array_input(op, 0, &x, fault);
}

/* Check that input i is a bool mask over the first axes of x. AD_E_TYPE, AD_E_INDEX. */
static int check_mask_input(const ad_op *op, int i, const ad_desc *x, const ad_desc **mask, ad_fault *fault) {
    int status = ad__typed_input(op, i, AD_BOOL, mask, fault);

    if (status) return status;
    if ((*mask)->ndim > x->ndim)
        return ad__fault(fault, AD_E_INDEX, "too many indices for array: array is %d-dimensional, but %d were indexed",
                         x->ndim, (*mask)->ndim);
    for (int k = 0; k < (*mask)->ndim; k++)
        if ((*mask)->shape[k] != x->shape[k])
            return ad__fault(fault, AD_E_INDEX,
                             "boolean index did not match indexed array along axis %d; size of axis is %" PRId64
                             " but size of corresponding boolean axis is %" PRId64,
                             k, x->shape[k], (*mask)->shape[k]);
    return 0;
}

int ad__infer_compress(const ad_op *op, ad_result *result, ad_fault *fault) {
    const ad_desc *x, *mask;
    int status = ad__array_input(op, 0, &x, fault);

    ad__set_result(result, op->loop, 0, NULL);
    return !status ? check_mask_input(op, 1, x, &mask, fault) : status;
}

int ad__infer_place(const ad_op *op, ad_result *result, ad_fault *fault) {
    const ad_desc *x = &op->operand[0].desc, *mask, *v;
    int status = check_mask_input(op, 0, x, &mask, fault);

    if (!status) status = ad__array_input(op, 1, &v, fault);
    if (status) return status;
    if (v->ndim != 1 + x->ndim - mask->ndim || !ad__shapes_equal(v->shape + 1, x->shape + mask->ndim, v->ndim - 1))
        return ad__bad_shape(op, 1, "does not have the shape of the selected elements", fault);
    ad__set_result(result, x->dtype, x->ndim, x->shape);
    return 0;
}
