/* Type and shape rules of filters, interpolation and measurements of images. */
#include "protocol/infer_call.h"

#include "protocol/desc.h"
#include "protocol/size.h"

#include <inttypes.h>

#define NMODES 5
/* Types that filters add in, and that are in order. */
#define LOOPS_SUM (AD_BIT(AD_FLOAT32) | AD_BIT(AD_FLOAT64) | AD_M_COMPLEX)
#define LOOPS_ORDER (AD_M_BOOL | AD_M_INT | AD_M_FLOAT)
#define LARGEST_WINDOW (INT64_C(1) << 31)

/* Check that the loop computes in one of the types. AD_E_TYPE. */
static int check_loop(const ad_op *op, uint32_t loops, ad_fault *fault) {
    if (loops & AD_BIT(op->loop)) return 0;
    return ad__fault(fault, AD_E_TYPE, "%s: there is no loop for %s", ad__op_name(op), ad__dtypes[op->loop].name);
}

static int check_mode(const ad_op *op, int p, ad_fault *fault) {
    if (op->param[p].as.i >= 0 && op->param[p].as.i < NMODES) return 0;
    return ad__fault(fault, AD_E_VALUE, "%s: no such mode: %" PRId64, ad__op_name(op), op->param[p].as.i);
}

/* Check that a window of that size begins at or before its element. AD_E_VALUE. */
static int check_window(const ad_op *op, int64_t size, int64_t before, ad_fault *fault) {
    if (size < 1 || size >= LARGEST_WINDOW)
        return ad__fault(fault, AD_E_VALUE, "%s: a window of %" PRId64 " elements; it must have 1 to 2^31 - 1",
                         ad__op_name(op), size);
    if (before >= 0 && before < size) return 0;
    return ad__fault(fault, AD_E_VALUE, "%s: the window's origin, %" PRId64 ", is not within its %" PRId64 " elements",
                     ad__op_name(op), before, size);
}

int ad__infer_correlate1d(const ad_op *op, ad_result *result, ad_fault *fault) {
    const ad_desc *x, *w;
    int status = ad__array_input(op, 0, &x, fault);

    if (!status) status = ad__typed_input(op, 1, op->loop, &w, fault);
    if (!status) status = check_loop(op, LOOPS_SUM, fault);
    if (!status) status = ad__check_axis(op, x, fault);
    if (!status) status = check_mode(op, 1, fault);
    if (!status && w->ndim != 1) status = ad__bad_shape(op, 1, "must have one dimension", fault);
    if (!status) status = check_window(op, w->shape[0], op->param[3].as.i, fault);
    if (!status) ad__set_result(result, op->loop, x->ndim, x->shape);
    return status;
}

int ad__infer_window1d(const ad_op *op, ad_result *result, ad_fault *fault) {
    const int64_t what = op->param[1].as.i;
    const ad_desc *x;
    int status = ad__array_input(op, 0, &x, fault);

    if (!status) status = ad__check_axis(op, x, fault);
    if (!status && (what < 0 || what > 2))
        status = ad__fault(fault, AD_E_VALUE, "window1d: no such operation: %" PRId64, what);
    if (!status) status = check_loop(op, what == 0 ? LOOPS_SUM : LOOPS_ORDER, fault);
    if (!status) status = check_mode(op, 3, fault);
    if (!status) status = check_window(op, op->param[2].as.i, op->param[5].as.i, fault);
    if (!status) ad__set_result(result, op->loop, x->ndim, x->shape);
    return status;
}

/* Check x and the offsets of a window's elements from its middle, and infer a result of x's shape. */
static int infer_offsets(const ad_op *op, const ad_desc **offsets, ad_result *result, ad_fault *fault) {
    const ad_desc *x;
    int status = ad__array_input(op, 0, &x, fault);

    if (!status) status = ad__typed_input(op, 1, AD_INT64, offsets, fault);
    if (status) return status;
    if (x->ndim < 1) return ad__bad_shape(op, 0, "must have a dimension", fault);
    if ((*offsets)->ndim != 2 || (*offsets)->shape[0] < 1 || (*offsets)->shape[1] != x->ndim)
        return ad__bad_shape(op, 1, "must have a row for each element of the window, and a column for each axis of x",
                             fault);
    if ((*offsets)->shape[0] >= LARGEST_WINDOW) return ad__bad_shape(op, 1, "has more than 2^31 - 1 rows", fault);
    ad__set_result(result, op->loop, x->ndim, x->shape);
    return 0;
}

/* Check that input 2 has one element of the loop's type for each row of the offsets. */
static int check_taps(const ad_op *op, const ad_desc *offsets, ad_fault *fault) {
    const ad_desc *w;
    int status = ad__typed_input(op, 2, op->loop, &w, fault);

    if (!status && (w->ndim != 1 || w->shape[0] != offsets->shape[0]))
        status = ad__bad_shape(op, 2, "must have an element for each row of the offsets", fault);
    return status;
}

int ad__infer_correlate(const ad_op *op, ad_result *result, ad_fault *fault) {
    const ad_desc *offsets;
    int status = infer_offsets(op, &offsets, result, fault);

    if (!status) status = check_taps(op, offsets, fault);
    if (!status) status = check_loop(op, LOOPS_SUM | AD_BIT(AD_INT64), fault);
    if (!status) status = check_mode(op, 0, fault);
    return status;
}

int ad__infer_rank_filter(const ad_op *op, ad_result *result, ad_fault *fault) {
    const int64_t rank = op->param[0].as.i;
    const ad_desc *offsets;
    int status = infer_offsets(op, &offsets, result, fault);

    if (!status && (rank < 0 || rank >= offsets->shape[0]))
        status = ad__fault(fault, AD_E_VALUE, "rank_filter: no rank %" PRId64 " among %" PRId64 " elements", rank,
                           offsets->shape[0]);
    if (!status) status = check_loop(op, LOOPS_ORDER, fault);
    if (!status) status = check_mode(op, 1, fault);
    return status;
}

int ad__infer_grey_filter(const ad_op *op, ad_result *result, ad_fault *fault) {
    const ad_desc *offsets;
    int status = infer_offsets(op, &offsets, result, fault);

    if (!status) status = check_taps(op, offsets, fault);
    if (!status) status = check_loop(op, AD_BIT(AD_FLOAT32) | AD_BIT(AD_FLOAT64), fault);
    if (!status) status = check_mode(op, 1, fault);
    return status;
}

/* ---- splines ---- */

#define MOST_ORDER 5
#define NSAMPLE_MODES 7
#define MOST_NEIGHBOURS (INT64_C(1) << 20) /* elements that a point may depend on */
#define LOOPS_SPLINE (AD_BIT(AD_FLOAT32) | AD_BIT(AD_FLOAT64))

/* Check a spline's order and mode, parameters p and p + 1. AD_E_VALUE. */
static int check_spline(const ad_op *op, int p, ad_fault *fault) {
    const int64_t order = op->param[p].as.i, mode = op->param[p + 1].as.i;

    if (order < 0 || order > MOST_ORDER) return ad__fault(fault, AD_E_VALUE, "spline order not supported");
    if (mode >= 0 && mode < NSAMPLE_MODES) return 0;
    return ad__fault(fault, AD_E_VALUE, "%s: no such mode: %" PRId64, ad__op_name(op), mode);
}

int ad__infer_spline1d(const ad_op *op, ad_result *result, ad_fault *fault) {
    const ad_desc *x;
    int status = ad__array_input(op, 0, &x, fault);

    if (!status) status = check_loop(op, LOOPS_SPLINE, fault);
    if (!status) status = ad__check_axis(op, x, fault);
    if (!status) status = check_spline(op, 1, fault);
    if (!status) ad__set_result(result, op->loop, x->ndim, x->shape);
    return status;
}

/* Check that x has elements, and not too many axes for the order. AD_E_VALUE. */
static int check_samples(const ad_op *op, const ad_desc *x, ad_fault *fault) {
    int64_t neighbours = 1;

    if (x->ndim < 1 || ad__desc_count(x) == 0) return ad__bad_shape(op, 0, "must have a dimension and elements", fault);
    for (int i = 0; i < x->ndim; i++) neighbours = ad__size_product(neighbours, op->param[1].as.i + 1);
    if (neighbours <= MOST_NEIGHBOURS) return 0;
    return ad__fault(fault, AD_E_VALUE,
                     "sample: %" PRId64 " elements for each point; order %" PRId64 " is too much for %d dimensions",
                     neighbours, op->param[1].as.i, x->ndim);
}

/* Check the matrix of an affine sample against the output that is described. */
static int infer_affine(const ad_op *op, const ad_desc *x, const ad_desc *matrix, ad_result *result, ad_fault *fault) {
    const ad_desc *out;
    int status = ad__given_output(op, &out, fault);

    if (status) return status;
    if (matrix->dtype != AD_FLOAT64 || matrix->ndim != 2 || matrix->shape[0] != x->ndim ||
        matrix->shape[1] != out->ndim + 1)
        return ad__bad_shape(op, 1, "must be a float64 matrix of x.ndim rows and out.ndim + 1 columns", fault);
    ad__set_result(result, op->loop, out->ndim, out->shape);
    return 0;
}

int ad__infer_sample(const ad_op *op, ad_result *result, ad_fault *fault) {
    const ad_desc *x, *where;
    int status = ad__array_input(op, 0, &x, fault);

    if (!status) status = ad__array_input(op, 1, &where, fault);
    if (!status) status = check_loop(op, LOOPS_SPLINE, fault);
    if (!status) status = check_spline(op, 1, fault);
    if (!status) status = check_samples(op, x, fault);
    if (status) return status;
    if (op->param[0].as.b) return infer_affine(op, x, where, result, fault);
    if (!(LOOPS_SPLINE & AD_BIT(where->dtype)) || where->ndim < 1 || where->shape[0] != x->ndim)
        return ad__bad_shape(op, 1, "must have float32 or float64 coordinates for each axis of x", fault);
    ad__set_result(result, op->loop, where->ndim - 1, where->shape + 1);
    return 0;
}

/* ---- measurements ---- */

/* Check bool x, of fewer than 2^31 elements, and infer two results of its shape. */
static int infer_field(const ad_op *op, const ad_desc **x, int first, int second, ad_result *result, ad_fault *fault) {
    int status = ad__typed_input(op, 0, AD_BOOL, x, fault);

    if (!status && (*x)->ndim < 1) status = ad__bad_shape(op, 0, "must have a dimension", fault);
    for (int i = 0; !status && i < (*x)->ndim; i++)
        if ((*x)->shape[i] >= LARGEST_WINDOW) status = ad__bad_shape(op, 0, "has more than 2^31 - 1 elements", fault);
    if (!status && ad__desc_count(*x) >= LARGEST_WINDOW)
        status = ad__bad_shape(op, 0, "has more than 2^31 - 1 elements", fault);
    if (status) return status;
    ad__set_result(&result[0], first, (*x)->ndim, (*x)->shape);
    ad__set_result(&result[1], second, (*x)->ndim, (*x)->shape);
    return 0;
}

int ad__infer_label(const ad_op *op, ad_result *result, ad_fault *fault) {
    const ad_desc *x, *offsets;
    int status = infer_field(op, &x, AD_INT32, AD_INT64, result, fault);

    if (!status) status = ad__typed_input(op, 1, AD_INT64, &offsets, fault);
    if (!status && (offsets->ndim != 2 || offsets->shape[1] != x->ndim))
        status = ad__bad_shape(op, 1, "must have a column for each axis of x", fault);
    if (!status) result[1].ndim = 0;
    return status;
}

int ad__infer_nearest_zero(const ad_op *op, ad_result *result, ad_fault *fault) {
    const ad_desc *x, *sampling;
    int status = infer_field(op, &x, AD_FLOAT64, AD_INT64, result, fault);

    if (!status) status = ad__typed_input(op, 1, AD_FLOAT64, &sampling, fault);
    if (!status && (sampling->ndim != 1 || sampling->shape[0] != x->ndim))
        status = ad__bad_shape(op, 1, "must have an element for each axis of x", fault);
    return status;
}

/* ---- signals ---- */

int ad__infer_iir(const ad_op *op, ad_result *result, ad_fault *fault) {
    const ad_desc *x, *sections, *state;
    int64_t lanes = 1;
    int status = ad__array_input(op, 0, &x, fault);

    if (!status) status = ad__typed_input(op, 1, op->loop, &sections, fault);
    if (!status) status = ad__typed_input(op, 2, op->loop, &state, fault);
    if (!status) status = check_loop(op, LOOPS_SUM, fault);
    if (!status) status = ad__check_axis(op, x, fault);
    if (status) return status;
    if (sections->ndim != 3 || sections->shape[1] != 2 || sections->shape[2] < 1)
        return ad__bad_shape(op, 1, "must be of shape (sections, 2, order + 1)", fault);
    for (int i = 0; i < x->ndim; i++)
        if (i != op->param[0].as.i) lanes = ad__size_product(lanes, x->shape[i]);
    if (state->ndim != 3 || state->shape[0] != sections->shape[0] || state->shape[1] != sections->shape[2] - 1 ||
        state->shape[2] != lanes)
        return ad__bad_shape(op, 2, "must be of shape (sections, order, elements of x's other axes)", fault);
    ad__set_result(&result[0], op->loop, x->ndim, x->shape);
    ad__set_result(&result[1], op->loop, 3, state->shape);
    return 0;
}
