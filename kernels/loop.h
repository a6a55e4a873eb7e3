/* Loops over strided operands: dimensions brought into a good order and joined where they can be. */
#ifndef AD_KERNELS_LOOP_H
#define AD_KERNELS_LOOP_H

#include "protocol/op.h"

#define AD_LOOP_OPERANDS 6 /* two outputs, three inputs, a mask */

/* ndim is at least 1; the last dimension is the innermost. Only the first ndim and nop places are set. */
typedef struct ad_loop {
    int ndim, nop;
    int64_t shape[AD_MAX_NDIM];
    char *base[AD_LOOP_OPERANDS];
    int64_t stride[AD_LOOP_OPERANDS][AD_MAX_NDIM];
} ad_loop;

/* An empty loop over shape; operands are then added one after another. */
void ad_loop_init(ad_loop *l, int ndim, const int64_t *shape);
/* An operand that broadcasts to the loop's shape. */
void ad_loop_add(ad_loop *l, void *base, int ndim, const int64_t *shape, const int64_t *strides);
void ad_loop_add_scalar(ad_loop *l, void *base);
int64_t ad_loop_count(const ad_loop *l);
/* For loops whose order is free: turn negative strides round, let the strides of the first operands fall, join
 * dimensions. */
void ad_loop_optimize(ad_loop *l);
/* Join dimensions without changing the order of elements. */
void ad_loop_join(ad_loop *l);
/* Where some operand jumps along the innermost dimension but hardly along another one, bring that one next to it.
 * False: nothing to be gained. */
bool ad_loop_plane(ad_loop *l);
/* The loop over rows: l without its innermost dimension (ndim at least 2) and with operands first.. only. */
void ad_loop_outer(ad_loop *to, const ad_loop *l, int first, int nop);
/* True when all strides of an operand are 0. */
bool ad_loop_is_scalar(const ad_loop *l, int op);

/* f(pointers, n) for the runs along the innermost dimension that make up elements begin..end of the loop, from other
 * addresses than its own. */
template <class F> inline void ad_loop_walk_from(const ad_loop *l, char *const *base, int64_t begin, int64_t end, F f) {
    const int last = l->ndim - 1, nop = l->nop;
    const int64_t inner = l->shape[last];
    char *p[AD_LOOP_OPERANDS];
    int64_t at[AD_MAX_NDIM], rest = begin / inner, offset = begin - rest * inner, left = end - begin;
    for (int k = 0; k < nop; k++) p[k] = base[k] + offset * l->stride[k][last];
    for (int d = last - 1; d >= 0; d--) {
        at[d] = rest % l->shape[d];
        rest /= l->shape[d];
        for (int k = 0; k < nop; k++) p[k] += at[d] * l->stride[k][d];
    }
    for (;;) {
        int64_t n = inner - offset < left ? inner - offset : left;
        f(p, n);
        left -= n;
        if (left <= 0) return;
        if (offset != 0)
            for (int k = 0; k < nop; k++) p[k] -= offset * l->stride[k][last];
        offset = 0;
        for (int d = last - 1; d >= 0; d--) {
            bool carry = ++at[d] == l->shape[d];
            int64_t step = carry ? 1 - l->shape[d] : 1;
            for (int k = 0; k < nop; k++) p[k] += step * l->stride[k][d];
            if (!carry) break;
            at[d] = 0;
        }
    }
}

template <class F> inline void ad_loop_walk(const ad_loop *l, int64_t begin, int64_t end, F f) {
    ad_loop_walk_from(l, l->base, begin, end, f);
}

#endif
