/* Loops over strided operands: dimensions brought into a good order and joined where they can be. */
#ifndef AD_KERNELS_LOOP_H
#define AD_KERNELS_LOOP_H

#include "kernels/chain.h"

#define AD_LOOP_OPERANDS 6 /* two outputs, three inputs, a mask */

/* A loop over at most N operands. ndim is at least 1; the last dimension is the innermost. Only the first ndim and nop
 * places are set. */
template <int N> struct ad_loop_of {
    static constexpr int operands = N;
    int ndim, nop;
    int64_t shape[AD_MAX_NDIM];
    char *base[N];
    int64_t stride[N][AD_MAX_NDIM];
};
using ad_loop = ad_loop_of<AD_LOOP_OPERANDS>;
using ad_loop_wide = ad_loop_of<AD_CHAIN_INPUTS + AD_CHAIN_OUTPUTS + 2>; /* a value that is reduced; an order */
using ad_loop_one = ad_loop_of<1>;

/* The functions below exist for the three loops above. */

/* An empty loop over shape; operands are then added one after another. */
template <class L> void ad_loop_init(L *l, int ndim, const int64_t *shape);
/* An operand that broadcasts to the loop's shape. */
template <class L> void ad_loop_add(L *l, void *base, int ndim, const int64_t *shape, const int64_t *strides);
void ad_loop_add_scalar(ad_loop *l, void *base);
template <class L> int64_t ad_loop_count(const L *l);
/* For loops whose order is free: turn negative strides round, let the strides of the first operands fall, join
 * dimensions. */
template <class L> void ad_loop_optimize(L *l);
/* Join dimensions without changing the order of elements. */
template <class L> void ad_loop_join(L *l);
/* Bring a dimension next to the innermost one if some operand jumps along the innermost dimension, but hardly along
 * that one. False: nothing to be gained. */
bool ad_loop_plane(ad_loop *l);
/* The loop over rows: l without its innermost dimension (ndim at least 2) and with operands first.. only. */
void ad_loop_outer(ad_loop *to, const ad_loop *l, int first, int nop);
/* True when all strides of an operand are 0. */
template <class L> bool ad_loop_is_scalar(const L *l, int op);

/* f(pointers, n) for the runs along the innermost dimension that make up elements begin..end of the loop, from other
 * addresses than its own. */
template <class L, class F>
inline void ad_loop_walk_from(const L *l, char *const *base, int64_t begin, int64_t end, F f) {
    const int last = l->ndim - 1, nop = L::operands == 1 ? 1 : l->nop;
    const int64_t inner = l->shape[last];
    char *p[L::operands];
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

template <class L, class F> inline void ad_loop_walk(const L *l, int64_t begin, int64_t end, F f) {
    ad_loop_walk_from(l, l->base, begin, end, f);
}

#endif
