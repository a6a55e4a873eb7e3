/* The order of a result's dimensions in memory: that of the inputs, as NumPy's order 'K' and CuPy's rule say. The
 * server makes row-major arrays only. So it is asked for the same operation with its dimensions in the order of the
 * inputs' strides. */
#include "client-c/client.h"

enum { NOTHING_TELLS, STAYS, GOES_INSIDE };

/* Return the bytes between neighbours along an axis of a result; 0: the input has one element there, or repeats it. */
static int64_t get_axis_step(const ad_operand *in, int ndim, int axis) {
    const int i = axis - (ndim - in->desc.ndim);
    if (in->is_scalar || i < 0 || in->desc.shape[i] == 1) return 0;
    const int64_t stride = in->desc.strides[i];
    return stride < 0 ? -stride : stride;
}

/* Compare an axis with one that is further inside so far. The axis stays when inputs disagree, as in NumPy. */
static int compare_axes(const ad_op *op, int ndim, int axis, int inside) {
    int relation = NOTHING_TELLS;
    for (int i = op->nout; i < op->nout + op->nin; i++) {
        const int64_t outer = get_axis_step(&op->operand[i], ndim, axis),
                      inner = get_axis_step(&op->operand[i], ndim, inside);
        if (!outer || !inner) continue;
        if (inner <= outer) return STAYS;
        relation = GOES_INSIDE;
    }
    return relation;
}

/* Find the place of an axis in the order, from its own place inwards. */
static int find_axis_place(const ad_op *op, int ndim, const int *axes, int axis) {
    int place = axis;
    for (int i = axis + 1; i < ndim; i++) {
        const int relation = compare_axes(op, ndim, axis, axes[i]);
        if (relation == STAYS) break;
        if (relation == GOES_INSIDE) place = i;
    }
    return place;
}

bool ad__find_order(const ad_op *op, int ndim, int *axes) {
    bool permuted = false;
    for (int axis = ndim - 1; axis >= 0; axis--) {
        const int place = find_axis_place(op, ndim, axes, axis);
        for (int i = axis; i < place; i++) axes[i] = axes[i + 1];
        axes[place] = axis;
        permuted |= place != axis;
    }
    return permuted;
}

/* Permute a description's dimensions. Those of ndim that it lacks repeat its elements. */
static void permute_desc(ad_desc *d, int ndim, const int *axes, int64_t *shape, int64_t *strides) {
    for (int i = 0; i < ndim; i++) {
        const int from = axes[i] - (ndim - d->ndim);
        shape[i] = from >= 0 ? d->shape[from] : 1;
        strides[i] = from >= 0 ? d->strides[from] : 0;
    }
    d->ndim = (uint8_t)ndim;
    d->shape = shape;
    d->strides = strides;
}

void ad__permute_inputs(ad_op *op, int ndim, const int *axes, int64_t storage[][2][AD_MAX_NDIM]) {
    for (int i = 0; i < op->nin; i++) {
        ad_operand *in = &op->operand[op->nout + i];
        if (!in->is_scalar) permute_desc(&in->desc, ndim, axes, storage[i][0], storage[i][1]);
    }
}

void ad__array_permute(ad_array *a, const int *axes) {
    int64_t shape[AD_MAX_NDIM], strides[AD_MAX_NDIM];
    for (int i = 0; i < a->ndim; i++) {
        shape[axes[i]] = a->shape[i];
        strides[axes[i]] = a->strides[i];
    }
    for (int i = 0; i < a->ndim; i++) {
        a->shape[i] = shape[i];
        a->strides[i] = strides[i];
    }
    const ad_desc d = ad__array_desc(a);
    a->contiguous = ad__is_contiguous(&d);
    a->f_contiguous = ad__is_f_contiguous(&d);
}

void ad__array_reverse(ad_array *a) {
    int axes[AD_MAX_NDIM];
    for (int i = 0; i < a->ndim; i++) axes[i] = a->ndim - 1 - i;
    ad__array_permute(a, axes);
}
