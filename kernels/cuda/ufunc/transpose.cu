/* Copies whose input and output are contiguous along different dimensions, through tiles in shared memory. */
#include "kernels/cuda/ufunc/device.cuh"
#include "kernels/words.h"

namespace ad {
inline namespace AD_ISA {

constexpr int WARPS = AD_UFUNC_THREADS / 32;

/* K elements along the input's fast dimension, of K neighbours along the other one, are K words. They become K words
 * the other way round. */
template <int K> __device__ __forceinline__ void turn(uint32_t (&w)[K]) {
    if constexpr (K == 2) {
        uint32_t a = w[0], b = w[1];
        w[0] = __byte_perm(a, b, 0x5410);
        w[1] = __byte_perm(a, b, 0x7632);
    } else if constexpr (K == 4) {
        uint32_t a = __byte_perm(w[0], w[1], 0x5140), b = __byte_perm(w[2], w[3], 0x5140);
        uint32_t c = __byte_perm(w[0], w[1], 0x7362), d = __byte_perm(w[2], w[3], 0x7362);
        w[0] = __byte_perm(a, b, 0x5410);
        w[1] = __byte_perm(a, b, 0x7632);
        w[2] = __byte_perm(c, d, 0x5410);
        w[3] = __byte_perm(c, d, 0x7632);
    }
}
template <int K, class W> __device__ __forceinline__ void turn(W (&)[K]) { static_assert(K == 1, "one element"); }

struct tile_place {
    const char *in;
    char *out;
    uint32_t row, column; /* of the tile's corner */
};

__device__ __forceinline__ tile_place locate(const ad_ufunc_transpose &t, uint32_t rows, uint32_t columns) {
    uint32_t rest = divide(blockIdx.x, t.across), across = blockIdx.x - rest * t.across.size;
    uint32_t outer = divide(rest, t.down), down = rest - outer * t.down.size;
    tile_place p = {t.in, t.out, down * rows, across * columns};
    for (int d = int(t.ndim) - 1; d >= 0; d--) {
        uint32_t q = divide(outer, t.dim[d]), at = outer - q * t.dim[d].size;
        p.in += int64_t(at) * t.in_stride[d];
        p.out += int64_t(at) * t.out_stride[d];
        outer = q;
    }
    return p;
}

/* Words W of K elements; a tile has 32*G words of either dimension. Rows of the tile lie in shared memory with their
 * words exchanged (w ^ row). So both ways of going through it touch every bank once. */
template <class W, int K, int G> __global__ void __launch_bounds__(AD_UFUNC_THREADS)
    transpose(const __grid_constant__ ad_ufunc_transpose t) {
    constexpr int SIDE = 32 * K * G, LOADS = 32 * G * G / WARPS, STORES = LOADS * K;
    __shared__ W tile[G][SIDE][32];
    const tile_place p = locate(t, SIDE, SIDE);
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    W w[LOADS][K];
    begin();
#pragma unroll
    for (int n = 0; n < LOADS; n++) {
        const int task = n * WARPS + warp;
        const uint32_t row = p.row + (task % G * 32 + lane) * K, column = p.column + task / G * K;
        if (row >= t.rows || column >= t.columns) continue;
        const char *from = p.in + int64_t(row) * t.in_row + int64_t(column) * t.in_column;
#pragma unroll
        for (int k = 0; k < K; k++) w[n][k] = *reinterpret_cast<const W *>(from + k * t.in_column);
    }
#pragma unroll
    for (int n = 0; n < LOADS; n++) {
        const int task = n * WARPS + warp, word = task / G;
        turn(w[n]);
#pragma unroll
        for (int k = 0; k < K; k++) tile[word / 32][(task % G * 32 + lane) * K + k][(word & 31) ^ lane] = w[n][k];
    }
    __syncthreads();
#pragma unroll
    for (int n = 0; n < STORES; n++) {
        const int task = n * WARPS + warp, row = task / G, g = task % G;
        const uint32_t column = p.column + (g * 32 + lane) * K;
        if (p.row + row >= t.rows || column >= t.columns) continue;
        char *to = p.out + int64_t(p.row + row) * t.out_row + int64_t(column) * t.out_column;
        *reinterpret_cast<W *>(to) = tile[g][row][lane ^ (row / K & 31)];
    }
}

template <class W, int K, int G> const void *found(int *side) {
    *side = 32 * K * G;
    return reinterpret_cast<const void *>(&transpose<W, K, G>);
}

} // namespace AD_ISA
} // namespace ad

const void *ad_cuda_transpose_kernel(int size, bool packed, int *side) {
    if (packed && size == 1) return ad::found<uint32_t, 4, 1>(side);
    if (packed && size == 2) return ad::found<uint32_t, 2, 1>(side);
    return ad::visit_aligned_words(size, [&](auto w) {
        using W = typename decltype(w)::type;
        return ad::found<W, 1, (sizeof(W) <= 4 ? 2 : 1)>(side);
    });
}
