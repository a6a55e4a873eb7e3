/* Type and shape rules of the Fourier transforms. */
#include "protocol/infer_call.h"

#include <inttypes.h>

static int get_real_type(int dtype) { return dtype == AD_COMPLEX64 ? AD_FLOAT32 : AD_FLOAT64; }

static int check_fft_loop(const ad_op *op, ad_fault *fault) {
    if (op->loop == AD_COMPLEX64 || op->loop == AD_COMPLEX128) return 0;
    return ad__fault(fault, AD_E_TYPE, "%s: there is no loop for %s", ad__op_name(op), ad__dtypes[op->loop].name);
}

static int check_points(int64_t n, ad_fault *fault) {
    if (n >= 1) return 0;
    return ad__fault(fault, AD_E_VALUE, "Invalid number of FFT data points (%" PRId64 ") specified.", n);
}

/* Check that parameter p is a set of axes of x, none of which is empty. AD_E_VALUE. */
static int check_axes(const ad_op *op, int p, const ad_desc *x, ad_fault *fault) {
    const int64_t mask = op->param[p].as.i;
    int status = 0;

    if (mask < 0 || mask >> x->ndim != 0)
        return ad__fault(fault, AD_E_VALUE,
                         "%s: axes %" PRIx64 " (a bit mask) are out of bounds for array of dimension %d",
                         ad__op_name(op), (uint64_t)mask, x->ndim);
    for (int i = 0; i < x->ndim && !status; i++)
        if (mask >> i & 1) status = check_points(x->shape[i], fault);
    return status;
}

/* Check the axes of a real transform: parameter 0 is its axis, parameter 1 the set of the others. AD_E_VALUE. */
static int check_real(const ad_op *op, const ad_desc *x, ad_fault *fault) {
    int status = ad__check_axis(op, x, fault);

    if (!status) status = check_axes(op, 1, x, fault);
    if (!status && (op->param[1].as.i >> op->param[0].as.i & 1))
        status = ad__fault(fault, AD_E_VALUE, "%s: axis %" PRId64 " is also one of the other axes", ad__op_name(op),
                           op->param[0].as.i);
    return status;
}

int ad__infer_fft(const ad_op *op, ad_result *result, ad_fault *fault) {
    const ad_desc *x;
    int status = ad__array_input(op, 0, &x, fault);

    if (!status) status = check_fft_loop(op, fault);
    if (!status) status = check_axes(op, 0, x, fault);
    if (!status && op->param[1].as.i != 1 && op->param[1].as.i != -1)
        status = ad__fault(fault, AD_E_VALUE, "%s: no such direction: %" PRId64, ad__op_name(op), op->param[1].as.i);
    if (!status) ad__set_result(result, op->loop, x->ndim, x->shape);
    return status;
}

int ad__infer_rfft(const ad_op *op, ad_result *result, ad_fault *fault) {
    const ad_desc *x;
    int status = ad__array_input(op, 0, &x, fault);

    if (!status) status = check_fft_loop(op, fault);
    if (!status && ad__dtypes[x->dtype].kind == 'c')
        status = ad__fault(fault, AD_E_TYPE, "%s: the input must be real, not %s", ad__op_name(op),
                           ad__dtypes[x->dtype].name);
    if (!status) status = check_real(op, x, fault);
    if (!status) status = check_points(x->shape[op->param[0].as.i], fault);
    if (status) return status;
    ad__set_result(result, op->loop, x->ndim, x->shape);
    result->shape[op->param[0].as.i] = x->shape[op->param[0].as.i] / 2 + 1;
    return 0;
}

int ad__infer_irfft(const ad_op *op, ad_result *result, ad_fault *fault) {
    const ad_desc *x;
    int status = ad__array_input(op, 0, &x, fault);

    if (!status) status = check_fft_loop(op, fault);
    if (!status) status = check_real(op, x, fault);
    if (!status) status = check_points(op->param[2].as.i, fault);
    if (status) return status;
    const int64_t axis = op->param[0].as.i, n = op->param[2].as.i;
    if (x->shape[axis] != n / 2 + 1)
        return ad__fault(fault, AD_E_VALUE,
                         "%s: axis %" PRId64 " must have %" PRId64 " elements for %" PRId64 " points, not %" PRId64,
                         ad__op_name(op), axis, n / 2 + 1, n, x->shape[axis]);
    ad__set_result(result, get_real_type(op->loop), x->ndim, x->shape);
    result->shape[axis] = n;
    return 0;
}

#define MOST_DCT_POINTS (INT64_C(1) << 48) /* twice as many are still counted */

int ad__infer_dct(const ad_op *op, ad_result *result, ad_fault *fault) {
    const int64_t type = op->param[1].as.i;
    const ad_desc *x;
    int status = ad__array_input(op, 0, &x, fault);

    if (!status && op->loop != AD_FLOAT32 && op->loop != AD_FLOAT64)
        status = ad__fault(fault, AD_E_TYPE, "dct: there is no loop for %s", ad__dtypes[op->loop].name);
    if (!status && ad__dtypes[x->dtype].kind == 'c')
        status = ad__fault(fault, AD_E_TYPE, "dct: the input must be real, not %s", ad__dtypes[x->dtype].name);
    if (!status) status = ad__check_axis(op, x, fault);
    if (!status && (type < 1 || type > 4))
        status = ad__fault(fault, AD_E_VALUE, "dct: no such type: %" PRId64 "; it is 1, 2, 3 or 4", type);
    if (status) return status;
    const int64_t n = x->shape[op->param[0].as.i], least = type == 1 && !op->param[2].as.b ? 2 : 1;
    if (n < least || n > MOST_DCT_POINTS)
        return ad__fault(fault, AD_E_VALUE,
                         "dct: axis %" PRId64 " has %" PRId64 " points; it must have %" PRId64 " to 2^48",
                         op->param[0].as.i, n, least);
    ad__set_result(result, op->loop, x->ndim, x->shape);
    return 0;
}
