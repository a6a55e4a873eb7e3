/* The parts of the kernels of chains, besides the rows' own expressions. They are compiled at run time, without the
 * headers of CUDA and of the C library. */
#ifndef AD_KERNELS_CUDA_FUSE_DEVICE_CUH
#define AD_KERNELS_CUDA_FUSE_DEVICE_CUH

#include "kernels/cuda/fuse/argument.h"
#include "kernels/cuda/ufunc/vector.cuh"

namespace ad {
inline namespace AD_ISA {

template <int Operands, int Scalars> struct fuse_argument {
    ad_fuse_head head;
    ad_fuse_operand op[Operands];
    ad_fuse_scalar scalar[Scalars];
};
template <int Operands> struct fuse_argument<Operands, 0> {
    ad_fuse_head head;
    ad_fuse_operand op[Operands];
};

template <class S> __device__ __forceinline__ S fuse_scalar(const ad_fuse_scalar &s) {
    S v;
    memcpy(&v, s.bytes, sizeof v);
    return v;
}

/* ---- where a chunk is ---- */

template <int Outer> struct fuse_place {
    int64_t column; /* of its first element */
    int count;      /* of its elements that there are; 0: there is no such chunk */
    uint32_t at[Outer ? Outer : 1];
};

template <int Outer, int V, bool Ragged>
__device__ __forceinline__ fuse_place<Outer> fuse_locate(const ad_fuse_head &h, uint32_t chunk) {
    fuse_place<Outer> p;
    p.count = chunk < h.chunks ? V : 0;
    p.column = int64_t(chunk) * V;
    if constexpr (Outer > 0) {
        uint32_t column, row = h.row.divide(chunk, &column);
        p.column = int64_t(column) * V;
#pragma unroll
        for (int d = Outer - 1; d > 0; d--) row = h.dim[d].divide(row, &p.at[d]);
        p.at[0] = row;
    }
    if constexpr (Ragged)
        if (p.count != 0 && p.column + V > h.columns) p.count = int(h.columns - p.column);
    return p;
}

/* Element u of a thread's U in a tile of the two last dimensions for each block. A warp has 8 columns of 4 rows, so
 * that its accesses are whole sectors whichever of the two an operand is contiguous along. */
template <int Outer, int U>
__device__ __forceinline__ fuse_place<Outer> fuse_locate_tile(const ad_fuse_head &h, int u) {
    uint32_t tile_column, tile_row, outer;
    const uint32_t t = threadIdx.x, q = h.across.divide(blockIdx.x, &tile_column);
    outer = h.down.divide(q, &tile_row);
    const uint32_t column = tile_column * AD_FUSE_TILE + (t & 7) + (t >> 5 & 3) * 8;
    const uint32_t row = (tile_row * U + uint32_t(u)) * 8 + (t >> 3 & 3) + (t >> 7) * 4;
    fuse_place<Outer> p;
    p.column = column;
    p.count = row < h.dim[Outer - 1].value && column < h.columns;
    p.at[Outer - 1] = row;
#pragma unroll
    for (int d = Outer - 2; d > 0; d--) outer = h.dim[d].divide(outer, &p.at[d]);
    if constexpr (Outer > 1) p.at[0] = outer;
    return p;
}

/* The chunk that begins with an element, counted row by row; it is whole. */
template <int Outer, int V>
__device__ __forceinline__ fuse_place<Outer> fuse_locate_element(const ad_fuse_head &h, int64_t element) {
    fuse_place<Outer> p;
    if constexpr (Outer > 0) p = fuse_locate<Outer, V, false>(h, uint32_t(element / V));
    else p.column = element;
    p.count = V;
    return p;
}

template <int Outer> __device__ __forceinline__ char *fuse_row(const ad_fuse_operand &o, const fuse_place<Outer> &p) {
    char *row = o.base;
#pragma unroll
    for (int d = 0; d < Outer; d++) row += int64_t(p.at[d]) * o.stride[d];
    return row;
}

/* ---- loading: elements without gaps, at a distance, or one for the whole row ---- */

template <class S, int V, int Outer>
__device__ __forceinline__ vec<S, V> fuse_load_apart(const char *from, int64_t inner, const fuse_place<Outer> &p) {
    S s[V] = {};
#pragma unroll
    for (int i = 0; i < V; i++)
        if (i < p.count) s[i] = *reinterpret_cast<const S *>(from + i * inner);
    return pack<S, V>(s);
}
template <class S, int V, bool Ragged, int Outer>
__device__ __forceinline__ vec<S, V> fuse_load(const ad_fuse_operand &o, const fuse_place<Outer> &p) {
    const char *from = fuse_row(o, p) + p.column * int64_t(sizeof(S));
    if (Ragged && p.count < V) return fuse_load_apart<S, V>(from, sizeof(S), p);
    return load_vector<S, V>(from);
}
template <class S, int V, int Outer>
__device__ __forceinline__ vec<S, V> fuse_load_strided(const ad_fuse_operand &o, const fuse_place<Outer> &p) {
    return fuse_load_apart<S, V>(fuse_row(o, p) + p.column * o.inner, o.inner, p);
}
template <class S, int Outer>
__device__ __forceinline__ S fuse_load_one(const ad_fuse_operand &o, const fuse_place<Outer> &p) {
    return *reinterpret_cast<const S *>(fuse_row(o, p));
}

template <bool Ragged, class S, int V, int Outer>
__device__ __forceinline__ void fuse_store(const ad_fuse_operand &o, const fuse_place<Outer> &p, const vec<S, V> &v) {
    char *to = fuse_row(o, p) + p.column * int64_t(sizeof(S));
    if (!Ragged || p.count == V) {
        store_vector(to, v);
    } else {
#pragma unroll
        for (int i = 0; i < V; i++)
            if (i < p.count) reinterpret_cast<S *>(to)[i] = v.get(i);
    }
}
template <class S, int V, int Outer> __device__ __forceinline__ void
fuse_store_strided(const ad_fuse_operand &o, const fuse_place<Outer> &p, const vec<S, V> &v) {
    char *to = fuse_row(o, p) + p.column * o.inner;
#pragma unroll
    for (int i = 0; i < V; i++)
        if (i < p.count) *reinterpret_cast<S *>(to + i * o.inner) = v.get(i);
}

/* Hide from the compiler where a value comes from. A sign is then changed as the table says, and not in the operation
 * before, which would give a NaN another sign. */
template <class T> __device__ __forceinline__ T fuse_apart(T v) {
    if constexpr (is_complex<T>) return T(fuse_apart(v.re), fuse_apart(v.im));
#ifdef __CUDA_ARCH__
    else if constexpr (same<T, float>) asm("" : "+f"(v));
    else if constexpr (same<T, double>) asm("" : "+d"(v));
#endif
    return v;
}

} // namespace AD_ISA
} // namespace ad
#endif
