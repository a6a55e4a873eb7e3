/* General kernels, for operands of any types, strides and order, with or without a mask. One kernel has the cheap rows
 * of a loop type, a second one has the others. Some rows have other types than the loop's (truth values, counts,
 * exponents). These fit into the loop's type, so x, y, z and the results are all of that type. */
#ifndef AD_KERNELS_CUDA_UFUNC_GENERAL_CUH
#define AD_KERNELS_CUDA_UFUNC_GENERAL_CUH

#include "kernels/cuda/ufunc/fast.cuh"
#include "protocol/rows_ufunc.h"

namespace ad {
inline namespace AD_ISA {

/* Byte offsets of a thread's elements in every operand, and which of them there are. */
template <int U> struct places {
    int32_t at[AD_UFUNC_SLOTS][U];
    bool here[U];
};

template <int U>
__device__ __forceinline__ void advance(const ad_ufunc_general &l, int d, int u, int32_t index, places<U> &p) {
    p.at[AD_UFUNC_OUT0][u] += index * l.stride[AD_UFUNC_OUT0][d];
    p.at[AD_UFUNC_IN0][u] += index * l.stride[AD_UFUNC_IN0][d];
    p.at[AD_UFUNC_IN1][u] += index * l.stride[AD_UFUNC_IN1][d];
}
template <int U>
__device__ __forceinline__ void advance_extra(const ad_ufunc_general &l, int d, int u, int32_t index, places<U> &p) {
    p.at[AD_UFUNC_OUT1][u] += index * l.stride[AD_UFUNC_OUT1][d];
    p.at[AD_UFUNC_IN2][u] += index * l.stride[AD_UFUNC_IN2][d];
    p.at[AD_UFUNC_MASK][u] += index * l.stride[AD_UFUNC_MASK][d];
}
template <bool Full, int U>
__device__ __forceinline__ void advance_all(const ad_ufunc_general &l, int d, const int32_t (&index)[U], places<U> &p) {
#pragma unroll
    for (int u = 0; u < U; u++) advance(l, d, u, index[u], p);
    if constexpr (!Full) return;
#pragma unroll
    for (int u = 0; u < U; u++) advance_extra(l, d, u, index[u], p);
}

/* Dimensions 0..last from the number of an element, innermost first. */
template <bool Full, int U>
__device__ __forceinline__ void unravel(const ad_ufunc_general &l, int last, uint32_t (&rest)[U], places<U> &p) {
    int32_t index[U];
#pragma unroll 1
    for (int d = last; d > 0; d--) {
#pragma unroll
        for (int u = 0; u < U; u++) {
            uint32_t q = divide(rest[u], l.dim[d]);
            index[u] = int32_t(rest[u] - q * l.dim[d].size);
            rest[u] = q;
        }
        advance_all<Full>(l, d, index, p);
    }
#pragma unroll
    for (int u = 0; u < U; u++) index[u] = int32_t(rest[u]);
    if (last >= 0) advance_all<Full>(l, 0, index, p);
}

/* Elements one after the other. */
template <bool Full, int U> __device__ __forceinline__ void locate_line(const ad_ufunc_general &l, places<U> &p) {
    uint32_t i[U];
#pragma unroll
    for (int u = 0; u < U; u++) {
        i[u] = (blockIdx.x * U + u) * AD_UFUNC_THREADS + threadIdx.x;
        p.here[u] = i[u] < l.count;
        if (!p.here[u]) i[u] = 0;
    }
    unravel<Full>(l, l.ndim - 1, i, p);
}

/* A tile of the two last dimensions for each block. A warp has 8 columns of 4 rows, so that its accesses are whole
 * sectors whichever of the two an operand is contiguous along. */
template <bool Full, int U> __device__ __forceinline__ void locate_tile(const ad_ufunc_general &l, places<U> &p) {
    const int c = l.ndim - 1, r = l.ndim - 2;
    uint32_t q = divide(blockIdx.x, l.across), tile_column = blockIdx.x - q * l.across.size;
    uint32_t outer[1] = {divide(q, l.down)}, tile_row = q - outer[0] * l.down.size;
    places<1> origin = {};
    unravel<Full>(l, l.ndim - 3, outer, origin);
    const uint32_t t = threadIdx.x, column = tile_column * AD_UFUNC_TILE + (t & 7) + (t >> 5 & 3) * 8;
    int32_t rows[U], columns[U];
#pragma unroll
    for (int u = 0; u < U; u++) {
        uint32_t row = (tile_row * U + u) * 8 + (t >> 3 & 3) + (t >> 7) * 4;
        p.here[u] = row < l.dim[r].size && column < l.dim[c].size;
        rows[u] = p.here[u] ? int32_t(row) : 0;
        columns[u] = p.here[u] ? int32_t(column) : 0;
#pragma unroll
        for (int k = 0; k < AD_UFUNC_SLOTS; k++) p.at[k][u] = origin.at[k][0];
    }
    advance_all<Full>(l, r, rows, p);
    advance_all<Full>(l, c, columns, p);
}

/* ---- loading and storing ---- */

/* A value of an array's type as one of T's loop; exact where T is the output's type. */
template <class T, class S> __device__ __forceinline__ compute_t<T> as_loop(S v, int through) {
    if (through == AD_BOOL) return cast<compute_t<T>>(cast<bool>(v));
    if constexpr (same<T, float>) {
        if (through == AD_FLOAT16) return load(cast<half>(v));
        if (through == AD_BFLOAT16) return load(cast<bfloat16>(v));
    }
    return load(cast<T>(v));
}

template <class T, class S, int U> __device__ __forceinline__ void
load_as(const char *base, const int32_t (&at)[U], const bool (&here)[U], int through, compute_t<T> (&x)[U]) {
    S v[U];
#pragma unroll
    for (int u = 0; u < U; u++)
        if (here[u]) v[u] = *reinterpret_cast<const S *>(base + at[u]);
#pragma unroll
    for (int u = 0; u < U; u++) x[u] = as_loop<T>(v[u], through);
}

template <class T, int U> __device__ __forceinline__ void load_operand(const ad_ufunc_general &l, int slot,
                                                                       const places<U> &p, compute_t<T> (&x)[U]) {
    const char *base = l.base[slot];
    if (!base) {
        T v;
        memcpy(&v, l.value[slot - AD_UFUNC_IN0], sizeof v);
#pragma unroll
        for (int u = 0; u < U; u++) x[u] = load(v);
        return;
    }
    if (l.dtype[slot] == dtype_of<T>::value && l.through[slot] == AD_UFUNC_AS_IS) {
#pragma unroll
        for (int u = 0; u < U; u++)
            if (p.here[u]) x[u] = load(*reinterpret_cast<const T *>(base + p.at[slot][u]));
        return;
    }
    switch (l.dtype[slot]) {
#define AD_DTYPE(id, NAME, name, size, kind, letter)                        \
    case id:                                                                \
        load_as<T, t_##name>(base, p.at[slot], p.here, l.through[slot], x); \
        break;
#include "protocol/dtype.def"
#undef AD_DTYPE
    }
}

template <class T, int U> __device__ __forceinline__ void store_operand(const ad_ufunc_general &l, int slot,
                                                                        const places<U> &p, compute_t<T> (&r)[U]) {
    char *base = l.base[slot];
    if constexpr (same<T, float>) {
        const int through = l.through[slot];
        if (through != AD_UFUNC_AS_IS) {
#pragma unroll
            for (int u = 0; u < U; u++) r[u] = through == AD_FLOAT16 ? float(half(r[u])) : float(bfloat16(r[u]));
        }
    }
    if (l.dtype[slot] == dtype_of<T>::value) {
#pragma unroll
        for (int u = 0; u < U; u++)
            if (p.here[u]) *reinterpret_cast<T *>(base + p.at[slot][u]) = T(r[u]);
        return;
    }
    switch (l.dtype[slot]) {
#define AD_DTYPE(id, NAME, name, size, kind, letter)                                   \
    case id:                                                                           \
        _Pragma("unroll") for (int u = 0; u < U; u++) if (p.here[u]) *                 \
            reinterpret_cast<t_##name *>(base + p.at[slot][u]) = cast<t_##name>(r[u]); \
        break;
#include "protocol/dtype.def"
#undef AD_DTYPE
    }
}

/* ---- the rows ---- */

/* Choose the loop's general kernel that knows a row. float32's know it for float16 and bfloat16 that have none of their
 * own. */
template <int Id, class T> constexpr int general_class() {
    if (!has_kernel<Id, T>() && !(Id == AD_UFUNC_copy && has_row<Id, T>())) return 0;
    if (is_identity<Id, T>()) return 0;
    return is_light<Id, T>() ? 1 : 2;
}

template <int Id, class T, int U>
__device__ __forceinline__ void apply_row(ad_check *check, const places<U> &p, const compute_t<T> (&x)[U],
                                          const compute_t<T> (&y)[U], const compute_t<T> (&z)[U], compute_t<T> (&r0)[U],
                                          compute_t<T> (&r1)[U]) {
    using F = ufunc<Id, T>;
    using C = compute_t<T>;
#pragma unroll
    for (int u = 0; u < U; u++) {
        typename F::B b{};
        typename F::C c{};
        typename F::R0 a0;
        typename F::R1 a1;
        if constexpr (Id == AD_UFUNC_ldexp) b = int64_t(y[u] > 20000 ? C(20000) : y[u] < -20000 ? C(-20000) : y[u]);
        else if constexpr (F::nin > 1) b = cast<typename F::B>(y[u]);
        if constexpr (F::nin > 2) c = cast<typename F::C>(z[u]);
        if (p.here[u]) check_element<Id>(check, b);
        F::apply(cast<typename F::A>(x[u]), b, c, a0, a1);
        r0[u] = cast<C>(a0);
        if constexpr (F::nout > 1) r1[u] = cast<C>(a1);
    }
}

/* Full: also the second output, the third input and the mask. */
template <class T, int Class, int U, bool Full> __global__ void __launch_bounds__(AD_UFUNC_THREADS)
    general(const __grid_constant__ ad_ufunc_general l) {
    using C = compute_t<T>;
    places<U> p = {};
    C x[U] = {}, y[U] = {}, z[U] = {}, r0[U] = {}, r1[U] = {};
    if (l.tiled) locate_tile<Full>(l, p);
    else locate_line<Full>(l, p);
    bool chosen[U];
    begin();
    if (Full && l.masked) {
#pragma unroll
        for (int u = 0; u < U; u++) chosen[u] = p.here[u] && l.base[AD_UFUNC_MASK][p.at[AD_UFUNC_MASK][u]] != 0;
    }
    load_operand<T>(l, AD_UFUNC_IN0, p, x);
    if (l.nin > 1) load_operand<T>(l, AD_UFUNC_IN1, p, y);
    if (Full && l.nin > 2) load_operand<T>(l, AD_UFUNC_IN2, p, z);
    /* Masks are looked at here and not before, so that all loads are under way together. */
    if (Full && l.masked) {
#pragma unroll
        for (int u = 0; u < U; u++) p.here[u] = chosen[u];
    }
    switch (l.row) {
#define AD_UFUNC(id, name, nin, nout, rulename, domain, cost, traits, test, doc, ...)     \
    case id:                                                                              \
        if constexpr (general_class<id, T>() == Class && (Full || (nin < 3 && nout < 2))) \
            apply_row<id, T>(l.check, p, x, y, z, r0, r1);                                \
        break;
#include "protocol/ufunc.def"
#undef AD_UFUNC
    }
    store_operand<T>(l, AD_UFUNC_OUT0, p, r0);
    if (Full && l.nout > 1) store_operand<T>(l, AD_UFUNC_OUT1, p, r1);
}

template <class T> void fill_general(ad_ufunc_table *t) {
    constexpr int size = sizeof(compute_t<T>);
    constexpr int light = size <= 4 ? 4 : size == 8 ? 2 : 1, full = size <= 4 ? 2 : 1;
#define AD_UFUNC(id, name, nin, nout, rulename, domain, cost, traits, test, doc, ...) \
    t->general[id] = general_class<id, T>();
#include "protocol/ufunc.def"
#undef AD_UFUNC
    t->light = reinterpret_cast<const void *>(&general<T, 1, light, false>);
    t->light_unroll = light;
    t->full = reinterpret_cast<const void *>(&general<T, 1, full, true>);
    t->full_unroll = full;
    if constexpr (!same<T, bool8> && !same<T, half> && !same<T, bfloat16>)
        t->heavy = reinterpret_cast<const void *>(&general<T, 2, 1, true>);
    t->heavy_unroll = 1;
}

} // namespace AD_ISA
} // namespace ad

/* All kernels of a loop type, and what puts them into its table. */
#define AD_CUDA_UFUNC(name)                             \
    void ad_cuda_ufunc_fill_##name(ad_ufunc_table *t);  \
    void ad_cuda_ufunc_fill_##name(ad_ufunc_table *t) { \
        ad::fill_fast<ad::t_##name>(t);                 \
        ad::fill_general<ad::t_##name>(t);              \
    }
#endif
