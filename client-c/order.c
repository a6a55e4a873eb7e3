/* Column-major results for column-major inputs (NumPy's order 'K' and CuPy's rule): the server makes row-major arrays
 * only, so it is asked for the same operation with all dimensions in reverse. */
#include "client-c/client.h"

static bool is_wide(const ad_desc *d) {
    int wide = 0;
    for (int i = 0; i < d->ndim; i++) wide += d->shape[i] > 1;
    return wide > 1;
}

bool ad__is_column_major(const ad_op *op, int ndim) {
    bool some = false;
    for (int i = op->nout; i < op->nout + op->nin; i++) {
        const ad_operand *in = &op->operand[i];
        if (in->is_scalar || !is_wide(&in->desc)) continue;
        if (in->desc.ndim != ndim || ad__is_contiguous(&in->desc) || !ad__is_f_contiguous(&in->desc)) return false;
        some = true;
    }
    return some;
}

/* d with its dimensions in reverse, those that it lacks among ndim at the end. */
static void reverse_desc(ad_desc *d, int ndim, int64_t *shape, int64_t *strides) {
    for (int i = 0; i < ndim; i++) {
        int from = d->ndim - 1 - i;
        shape[i] = from >= 0 ? d->shape[from] : 1;
        strides[i] = from >= 0 ? d->strides[from] : 0;
    }
    d->ndim = (uint8_t)ndim;
    d->shape = shape;
    d->strides = strides;
}

void ad__reverse_inputs(ad_op *op, int ndim, int64_t storage[][2][AD_MAX_NDIM]) {
    for (int i = 0; i < op->nin; i++) {
        ad_operand *in = &op->operand[op->nout + i];
        if (!in->is_scalar) reverse_desc(&in->desc, ndim, storage[i][0], storage[i][1]);
    }
}

static void reverse(int n, int64_t *x) {
    for (int i = 0; i < n / 2; i++) {
        int64_t other = x[n - 1 - i];
        x[n - 1 - i] = x[i];
        x[i] = other;
    }
}

void ad__array_reverse(ad_array *a) {
    bool contiguous = a->contiguous;
    reverse(a->ndim, a->shape);
    reverse(a->ndim, a->strides);
    a->contiguous = a->f_contiguous;
    a->f_contiguous = contiguous;
}
