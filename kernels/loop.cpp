#include "kernels/loop.h"

#include <stdlib.h>

template <class L> void ad_loop_init(L *l, int ndim, const int64_t *shape) {
    l->ndim = ndim > 0 ? ndim : 1;
    l->nop = 0;
    l->shape[0] = 1;
    for (int d = 0; d < ndim; d++) l->shape[d] = shape[d];
}

template <class L> void ad_loop_add(L *l, void *base, int ndim, const int64_t *shape, const int64_t *strides) {
    int64_t *stride = l->stride[l->nop];
    int skip = l->ndim - ndim;
    for (int d = 0; d < skip; d++) stride[d] = 0;
    for (int d = 0; d < ndim; d++) stride[skip + d] = shape[d] == 1 ? 0 : strides[d];
    l->base[l->nop++] = static_cast<char *>(base);
}

void ad_loop_add_scalar(ad_loop *l, void *base) {
    for (int d = 0; d < l->ndim; d++) l->stride[l->nop][d] = 0;
    l->base[l->nop++] = static_cast<char *>(base);
}

template <class L> int64_t ad_loop_count(const L *l) {
    int64_t n = 1;
    for (int d = 0; d < l->ndim; d++) n *= l->shape[d];
    return n;
}

template <class L> bool ad_loop_is_scalar(const L *l, int op) {
    for (int d = 0; d < l->ndim; d++)
        if (l->stride[op][d] != 0) return false;
    return true;
}

template <class L> static void copy_dimension(L *to, int d, const L *from, int e) {
    to->shape[d] = from->shape[e];
    for (int k = 0; k < from->nop; k++) to->stride[k][d] = from->stride[k][e];
}

template <class L> static void swap_dimensions(L *l, int d, int e) {
    int64_t n = l->shape[d];
    l->shape[d] = l->shape[e];
    l->shape[e] = n;
    for (int k = 0; k < l->nop; k++) {
        int64_t s = l->stride[k][d];
        l->stride[k][d] = l->stride[k][e];
        l->stride[k][e] = s;
    }
}

template <class L> static void flip_negative(L *l) {
    for (int d = 0; d < l->ndim; d++) {
        if (l->stride[0][d] >= 0) continue;
        for (int k = 0; k < l->nop; k++) {
            l->base[k] += (l->shape[d] - 1) * l->stride[k][d];
            l->stride[k][d] = -l->stride[k][d];
        }
    }
}

/* Dimension d is the better inner one: the first operand that tells them apart has the smaller stride there. */
template <class L> static bool more_inner(const L *l, int d, int e) {
    for (int k = 0; k < l->nop; k++) {
        int64_t a = llabs(l->stride[k][d]), b = llabs(l->stride[k][e]);
        if (a != 0 && b != 0 && a != b) return a < b;
    }
    return false;
}

template <class L> static void sort_dimensions(L *l) {
    for (int d = 1; d < l->ndim; d++)
        for (int e = d; e > 0 && more_inner(l, e - 1, e); e--) swap_dimensions(l, e - 1, e);
}

template <class L> static bool joins(const L *l, int outer, int inner) {
    for (int k = 0; k < l->nop; k++)
        if (l->stride[k][outer] != l->stride[k][inner] * l->shape[inner]) return false;
    return true;
}

template <class L> static void drop_ones(L *l) {
    int n = 0;
    for (int d = 0; d < l->ndim; d++) {
        if (l->shape[d] == 1) continue;
        if (n != d) copy_dimension(l, n, l, d);
        n++;
    }
    if (n == 0) {
        l->shape[0] = 1;
        for (int k = 0; k < l->nop; k++) l->stride[k][0] = 0;
        n = 1;
    }
    l->ndim = n;
}

template <class L> static void join_neighbours(L *l) {
    int n = 0;
    for (int d = 1; d < l->ndim; d++) {
        if (joins(l, n, d)) {
            int64_t outer = l->shape[n];
            copy_dimension(l, n, l, d);
            l->shape[n] *= outer;
        } else if (++n != d) {
            copy_dimension(l, n, l, d);
        }
    }
    l->ndim = n + 1;
}

template <class L> void ad_loop_join(L *l) {
    drop_ones(l);
    join_neighbours(l);
}

template <class L> void ad_loop_optimize(L *l) {
    drop_ones(l);
    flip_negative(l);
    if (l->ndim == 1) return;
    sort_dimensions(l);
    join_neighbours(l);
}

/* The dimension along which some operand that jumps along the innermost one is contiguous or nearly so; -1: none. */
static int smoother_dimension(const ad_loop *l) {
    int last = l->ndim - 1;
    for (int k = 0; k < l->nop; k++) {
        int64_t inner = llabs(l->stride[k][last]);
        if (inner < 256) continue;
        for (int d = last - 1; d >= 0; d--) {
            int64_t s = llabs(l->stride[k][d]);
            if (s != 0 && s <= 32 && l->shape[d] >= 8) return d;
        }
    }
    return -1;
}

bool ad_loop_plane(ad_loop *l) {
    int d = smoother_dimension(l);
    if (d < 0) return false;
    for (; d < l->ndim - 2; d++) swap_dimensions(l, d, d + 1);
    return true;
}

void ad_loop_outer(ad_loop *to, const ad_loop *l, int first, int nop) {
    to->ndim = l->ndim - 1;
    to->nop = nop;
    for (int d = 0; d < to->ndim; d++) to->shape[d] = l->shape[d];
    for (int k = 0; k < nop; k++) {
        to->base[k] = l->base[first + k];
        for (int d = 0; d < to->ndim; d++) to->stride[k][d] = l->stride[first + k][d];
    }
}

#define AD_LOOPS(L)                                                                \
    template void ad_loop_init(L *, int, const int64_t *);                         \
    template void ad_loop_add(L *, void *, int, const int64_t *, const int64_t *); \
    template int64_t ad_loop_count(const L *);                                     \
    template bool ad_loop_is_scalar(const L *, int);                               \
    template void ad_loop_join(L *);                                               \
    template void ad_loop_optimize(L *);
AD_LOOPS(ad_loop)
AD_LOOPS(ad_loop_wide)
AD_LOOPS(ad_loop_one)
#undef AD_LOOPS
