/* Kernels of special functions. For each family and type there is one that takes operands of any types, strides and
 * order, as the general kernels of the other rows do. Nearly all its time is in the functions. */
#ifndef AD_KERNELS_CUDA_SPECIAL_SPECIAL_CUH
#define AD_KERNELS_CUDA_SPECIAL_SPECIAL_CUH

#include "kernels/cuda/special/special.h"
#include "kernels/cuda/ufunc/general.cuh"

namespace ad {
inline namespace AD_ISA {

/* Tell whether a row with a loop for T belongs to the families First..Last. */
template <int Id, class T, int First, int Last> constexpr bool in_families() {
    return is_special<Id, T>() && AD_SPECIAL_FAMILY(Id) >= First && AD_SPECIAL_FAMILY(Id) <= Last;
}

template <class T, int First, int Last> __global__ void __launch_bounds__(AD_UFUNC_THREADS)
    special_general(const __grid_constant__ ad_ufunc_general l) {
    using C = compute_t<T>;
    places<1> p = {};
    C x[1] = {}, y[1] = {}, z[1] = {}, r0[1] = {}, r1[1] = {};
    if (l.tiled) locate_tile<true>(l, p);
    else locate_line<true>(l, p);
    begin();
    if (l.masked && p.here[0]) p.here[0] = l.base[AD_UFUNC_MASK][p.at[AD_UFUNC_MASK][0]] != 0;
    if (!p.here[0]) return;
    load_operand<T>(l, AD_UFUNC_IN0, p, x);
    if (l.nin > 1) load_operand<T>(l, AD_UFUNC_IN1, p, y);
    if (l.nin > 2) load_operand<T>(l, AD_UFUNC_IN2, p, z);
    switch (l.row) {
#define AD_UFUNC(id, name, nin, nout, rulename, domain, cost, traits, test, doc, ...)                   \
    case id:                                                                                            \
        if constexpr (in_families<id, T, First, Last>()) apply_row<id, T>(l.check, p, x, y, z, r0, r1); \
        break;
#include "protocol/ufunc.def"
#undef AD_UFUNC
    }
    store_operand<T>(l, AD_UFUNC_OUT0, p, r0);
    if (l.nout > 1) store_operand<T>(l, AD_UFUNC_OUT1, p, r1);
}

template <int Id, class T, int First, int Last, bool Fast> void add_special(ad_ufunc_table *t) {
    if constexpr (in_families<Id, T, First, Last>()) {
        t->general[Id] = 2;
        t->width[Id] = 1; /* 0 would say that the row only moves its input */
        t->special[Id] = reinterpret_cast<const void *>(&special_general<T, First, Last>);
        if constexpr (Fast) {
            t->width[Id] = fast_row<Id, T>::width;
            t->unroll[Id] = fast_row<Id, T>::unroll;
            t->fast[Id] = reinterpret_cast<const void *>(&fast_heavy<Id, T>);
        }
    }
}

/* Fast: also a kernel of each row for operands of its own types without gaps. */
template <class T, int First, int Last, bool Fast = false> void fill_special(ad_ufunc_table *tables) {
#define AD_UFUNC(id, name, nin, nout, rulename, domain, cost, traits, test, doc, ...) \
    add_special<id, T, First, Last, Fast>(&tables[dtype_of<T>::value]);
#include "protocol/ufunc.def"
#undef AD_UFUNC
}

} // namespace AD_ISA
} // namespace ad
#endif
