/* The ways in which kernels that nvcc compiles read what fold.cuh reduces, and the table of them. */
#ifndef AD_KERNELS_CUDA_REDUCE_WAYS_CUH
#define AD_KERNELS_CUDA_REDUCE_WAYS_CUH

#include "kernels/cuda/reduce/states.cuh"

namespace ad {
inline namespace AD_ISA {

/* Reduce short rows that follow each other. A block's rows come into shared memory by 16 bytes a thread, then each
 * thread takes one row in order. Rows of an even number of elements lie one further apart there, or threads would wait
 * for each other.
 */
template <class A> __global__ void __launch_bounds__(AD_FOLD_THREADS) fold_short(const __grid_constant__ ad_fold f) {
    using S = typename A::element;
    using bits = typename raw<sizeof(S)>::type;
    constexpr uint32_t WIDTH = 16 / sizeof(S);
    extern __shared__ __align__(16) char memory[];
    bits *tile = reinterpret_cast<bits *>(memory);
    const int64_t first = int64_t(blockIdx.x) * AD_FOLD_THREADS, left = f.keep[0].size - first;
    const uint32_t n = uint32_t(f.reduced), apart = n | 1, by = uint32_t((uint64_t(1) << 32) / n + 1);
    const uint32_t rows = left < AD_FOLD_THREADS ? uint32_t(left) : AD_FOLD_THREADS, all = rows * n;
    const char *in = f.in + first * f.keep[0].in;
    auto put = [&](uint32_t e, bits x) { tile[e + __umulhi(e, by) * (apart - n)] = x; };
    for (uint32_t e = threadIdx.x * WIDTH; e < all; e += AD_FOLD_THREADS * WIDTH) {
        const bits *from = reinterpret_cast<const bits *>(in) + e;
        if (e + WIDTH <= all) {
            bits x[WIDTH];
            const uint4 v = *reinterpret_cast<const uint4 *>(from);
            memcpy(x, &v, sizeof v);
#pragma unroll
            for (uint32_t i = 0; i < WIDTH; i++) put(e + i, x[i]);
        } else {
            for (uint32_t i = 0; e + i < all; i++) put(e + i, from[i]);
        }
    }
    __syncthreads();
    if (threadIdx.x >= rows) return;
    const bits *row = tile + threadIdx.x * apart;
    A a;
    a.init();
    for (uint32_t i = 0; i < n; i++) {
        S x;
        memcpy(&x, row + i, sizeof x);
        a.take(x, i, f);
    }
    a.finish(f, f.out + (first + threadIdx.x) * f.keep[0].out);
}

/* Reduce elements under a mask by 16 bytes along axis over[0], whose elements lie next to each other, as do the mask's.
 * Both are aligned (ad_fold_masks), so what is left over lies at the end of each run. */
template <class A> struct masked_work : fold_work {
    using state = A;
    using S = typename A::element;
    static constexpr int SIDE = 1, WIDTH = 16 / sizeof(S), DEPTH = 4;

    struct spot {
        fold_place run;
        int64_t at, index; /* of the element or chunk in the run; of the run's first element */
    };
    struct chunk {
        uint4 x;
        vec<uint8_t, WIDTH> mask;
        int64_t index; /* of its first element */
    };

    static __device__ spot find_spot(const ad_fold &f, int64_t i, int64_t per_run, const ad_fold_divisor &by) {
        spot s = {{0, 0, 0}, i, 0};
        if (f.nover <= 1) return s;
        const int64_t run = fold_divide(i, by);
        fold_locate(f.over + 1, f.nover - 1, run, &s.run);
        s.at = i - run * per_run;
        s.index = run * f.over[0].size;
        return s;
    }
    static __device__ chunk load_chunk(const ad_fold &f, const char *in, const char *mask, int64_t i) {
        const spot s = find_spot(f, i, f.run_chunks, f.by_chunks);
        chunk c;
        c.x = __ldcs(reinterpret_cast<const uint4 *>(in + s.run.in) + s.at);
        c.mask = load_vector<uint8_t, WIDTH>(mask + s.run.mask + s.at * WIDTH);
        c.index = s.index + s.at * WIDTH;
        return c;
    }
    static __device__ void take_chunk(const ad_fold &f, A &a, const chunk &c) {
        uint32_t w[4];
        S x[WIDTH];
        fold_words(w, c.x);
        fold_unpack(x, w);
#pragma unroll
        for (int i = 0; i < WIDTH; i++)
            if (c.mask.get(i)) a.take(x[i], c.index + i, f);
    }
    static __device__ void take_loose(const ad_fold &f, A &a, const char *in, const char *mask, int64_t i) {
        const spot s = find_spot(f, i, f.run_loose, f.by_loose);
        const int64_t at = s.at + f.run_chunks * WIDTH;
        if (mask[s.run.mask + at]) a.take(fold_load<S>(in + s.run.in + at * int64_t(sizeof(S))), s.index + at, f);
    }
    static __device__ void run(const ad_fold &f, A (&a)[1], const char *in, const char *mask, const fold_part &part) {
        int64_t i = part.first;
#pragma unroll 1
        for (; i + (DEPTH - 1) * part.step < f.chunks; i += DEPTH * part.step) {
            chunk c[DEPTH];
#pragma unroll
            for (int u = 0; u < DEPTH; u++) c[u] = load_chunk(f, in, mask, i + u * part.step);
#pragma unroll
            for (int u = 0; u < DEPTH; u++) take_chunk(f, a[0], c[u]);
        }
#pragma unroll 1
        for (; i < f.chunks; i += part.step) take_chunk(f, a[0], load_chunk(f, in, mask, i));
#pragma unroll 1
        for (i = part.first; i < f.loose; i += part.step) take_loose(f, a[0], in, mask, i);
    }
};

template <class A> ad_fold_kernel fold_kernels(int way) {
    if (way == AD_FOLD_SHORT) return {reinterpret_cast<const void *>(&fold_short<A>), 0};
    if (way == AD_FOLD_WIDE) return fold_kernel<wide_work<A>>();
    if (way == AD_FOLD_MASKED) return fold_kernel<masked_work<A>>();
    if (way == AD_FOLD_UNIT) return fold_kernel<unit_work<A>>();
    if constexpr (sizeof(typename A::element) <= 4)
        if (way == AD_FOLD_SIDE) return fold_kernel<side_work<A>>();
    return {nullptr, 0};
}

} // namespace AD_ISA
} // namespace ad
#endif
