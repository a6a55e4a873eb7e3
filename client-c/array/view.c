/* Views, which are computed here: nothing is sent. */
#include "client-c/client.h"
#include "protocol/text.h"

int ad_view(const ad_array *a, int dtype, int64_t offset, int ndim, const int64_t *shape, const int64_t *strides,
            ad_array **out) {
    int64_t walked[AD_MAX_NDIM];
    ad_fault fault;
    int status = ad__shape_check(ndim, shape, dtype);
    if (status) return status;
    ad__strides_walked(ndim, shape, strides, walked);
    ad_desc d = {.shape = shape, .strides = walked, .offset = offset, .dtype = (uint8_t)dtype, .ndim = (uint8_t)ndim};
    if (ad__desc_check(&d, a->base ? a->base->size : a->size, "view", &fault)) return ad__fail_fault(&fault);
    return ad__array_view(a, dtype, offset, ndim, shape, strides, out);
}

/* Clip a slice's bound as Python does: a negative one counts from the end, and then it lies within low and high. */
static int64_t clip_index(int64_t i, int64_t n, int64_t low, int64_t high) {
    if (i < 0) i += n;
    return i < low ? low : i > high ? high : i;
}

int ad_slice(const ad_array *a, int axis, int64_t start, int64_t stop, int64_t step, ad_array **out) {
    int64_t shape[AD_MAX_NDIM], strides[AD_MAX_NDIM], count = 0, offset = a->offset, stride;
    if (axis < 0 || axis >= a->ndim)
        return ad__fail(AD_E_VALUE, "axis %d is out of bounds for array of dimension %d", axis, a->ndim);
    if (step == 0) return ad__fail(AD_E_VALUE, "slice step cannot be zero");
    const int64_t n = a->shape[axis], low = step < 0 ? -1 : 0, high = step < 0 ? n - 1 : n;
    start = clip_index(start, n, low, high);
    stop = clip_index(stop, n, low, high);
    if (step > 0 && start < stop) count = (stop - start - 1) / step + 1;
    else if (step < 0 && stop < start) count = (int64_t)((uint64_t)(start - stop - 1) / (0 - (uint64_t)step)) + 1;
    for (int i = 0; i < a->ndim; i++) {
        shape[i] = a->shape[i];
        strides[i] = a->strides[i];
    }
    if (count && a->count) offset += start * a->strides[axis]; /* strides of an empty array may be any */
    if (__builtin_mul_overflow(a->strides[axis], step, &stride))
        stride = 0; /* the axis has no two elements that far apart */
    shape[axis] = count;
    strides[axis] = stride;
    return ad__array_view(a, a->dtype, offset, a->ndim, shape, strides, out);
}

static int fail_reshape(const ad_array *a, int ndim, const int64_t *shape) {
    char must[200];
    ad_text_buffer t = {must, sizeof must, 0};
    ad__text_shape(&t, ndim, shape);
    return ad__fail(AD_E_VALUE, "cannot reshape array of size %lld into shape %s", (long long)a->count, must);
}

int ad_reshape_view(const ad_array *a, int ndim, const int64_t *shape, ad_array **out) {
    int64_t strides[AD_MAX_NDIM], count;
    ad_desc d = ad__array_desc(a);
    int status = ad__shape_check(ndim, shape, a->dtype);
    if (status) return status;
    if (ad__shape_count(ndim, shape, a->dtype, &count, NULL) || count != a->count) return fail_reshape(a, ndim, shape);
    d.strides = a->strides;
    if (!ad__reshape_strides(&d, ndim, shape, strides)) return ad__fail(AD_E_UNSUPPORTED, "this shape needs a copy");
    return ad__array_view(a, a->dtype, a->offset, ndim, shape, strides, out);
}

int ad_transpose(const ad_array *a, const int *axes, ad_array **out) {
    int64_t shape[AD_MAX_NDIM], strides[AD_MAX_NDIM];
    uint64_t seen = 0;
    for (int i = 0; i < a->ndim; i++) {
        int axis = axes ? axes[i] : a->ndim - 1 - i;
        if (axis < 0 || axis >= a->ndim || seen >> axis & 1) return ad__fail(AD_E_VALUE, "axes don't match array");
        seen |= (uint64_t)1 << axis;
        shape[i] = a->shape[axis];
        strides[i] = a->strides[axis];
    }
    return ad__array_view(a, a->dtype, a->offset, a->ndim, shape, strides, out);
}

int ad_broadcast_to(const ad_array *a, int ndim, const int64_t *shape, ad_array **out) {
    int64_t strides[AD_MAX_NDIM];
    ad_desc d = ad__array_desc(a), view;
    ad_fault fault;
    int status = ad__shape_check(ndim, shape, a->dtype);
    if (status) return status;
    if (ad__broadcast_to(&d, ndim, shape, strides, &view, &fault)) return ad__fail_fault(&fault);
    return ad__array_view(a, a->dtype, a->offset, ndim, shape, strides, out);
}
