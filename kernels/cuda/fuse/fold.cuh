/* The end of a chain: reductions that compute elements where those of reduce/fold.cuh read them. They take them in the
 * same order into the same states, so results have the same bits. Compiled at run time.
 *
 * Addresses are offsets into a row-major array that does not exist. The generated source has `values`: chunk<V>(f, e)
 * gives elements e .. e + V - 1, where e is a multiple of V. ROLLED: its instructions are many, and to be written out
 * once. */
#ifndef AD_KERNELS_CUDA_FUSE_FOLD_CUH
#define AD_KERNELS_CUDA_FUSE_FOLD_CUH

#include "kernels/cuda/fuse/device.cuh"
#include "kernels/cuda/reduce/states.cuh"

namespace ad {
inline namespace AD_ISA {

template <int Operands, int Scalars> struct fuse_fold {
    ad_fold fold;
    alignas(16) fuse_argument<Operands, Scalars> chain;
};

/* Chunk k of N begins at element at(k). */
template <int V, int N, class Values, class S, class At>
__device__ __forceinline__ void fuse_gather(const ad_fold &f, At at, S (&x)[N][V]) {
    decltype(Values::template chunk<V>(f, 0)) v[N];
    if constexpr (Values::ROLLED && N > 1) {
#pragma unroll 1
        for (int k = 0; k < N; k++) {
#pragma unroll
            for (int j = 0; j + 1 < N; j++) v[j] = v[j + 1];
            v[N - 1] = Values::template chunk<V>(f, at(k));
        }
    } else {
#pragma unroll
        for (int k = 0; k < N; k++) v[k] = Values::template chunk<V>(f, at(k));
    }
#pragma unroll
    for (int k = 0; k < N; k++)
#pragma unroll
        for (int i = 0; i < V; i++) x[k][i] = bit_cast<S>(v[k].get(i));
}

/* Element of an address, and of the reduced element i of an output that begins there. */
template <class S> __device__ __forceinline__ int64_t fuse_element(const char *p) {
    return int64_t(reinterpret_cast<uintptr_t>(p)) / int64_t(sizeof(S));
}
template <class S> __device__ __forceinline__ int64_t fuse_element(const ad_fold &f, const char *in, int64_t i) {
    return fuse_element<S>(in + (f.nover <= 1 ? i * f.over[0].in : fold_locate_in(f.over, f.nover, i)));
}

/* Does what wide_work does, for one run for each output. */
template <class A, class Values> struct fuse_wide_work : fold_work {
    using state = A;
    using S = typename A::element;
    using read = wide_work<A>;
    static constexpr int SIDE = 1, WIDTH = read::WIDTH, DEPTH = read::DEPTH, AT_ONCE = read::AT_ONCE;

    static __device__ __forceinline__ void run(const ad_fold &f, A (&a)[1], const char *in, const char *,
                                               const fold_part &part) {
        const int64_t step = part.step, before = read::head(in);
        const int64_t begin = fuse_element<S>(in);
        int64_t c = part.first;
#pragma unroll 1
        for (; c + (DEPTH - 1) * step < f.chunks; c += DEPTH * step) {
#pragma unroll 1
            for (int u = 0; u < DEPTH; u += AT_ONCE) {
                const int64_t index = before + (c + u * step) * WIDTH;
                S x[AT_ONCE][WIDTH], all[AT_ONCE * WIDTH];
                fuse_gather<WIDTH, AT_ONCE, Values>(
                    f, [&](int k) { return begin + index + k * step * WIDTH; }, x);
                memcpy(all, x, sizeof x);
                a[0].template take_all<WIDTH>(all, index, step * WIDTH, f);
            }
        }
#pragma unroll 1
        for (; c < f.chunks; c += step) {
            const int64_t index = before + c * WIDTH;
            S x[1][WIDTH];
            fuse_gather<WIDTH, 1, Values>(
                f, [&](int) { return begin + index; }, x);
            a[0].template take_all<WIDTH>(x[0], index, 0, f);
        }
#pragma unroll 1
        for (int64_t i = part.first; i < f.loose; i += step) {
            const int64_t at = i >= before ? i + f.run_chunks * WIDTH : i;
            S x[1][1];
            fuse_gather<1, 1, Values>(
                f, [&](int) { return begin + at; }, x);
            a[0].take(x[0][0], at, f);
        }
    }
};

/* Does what unit_work does and, with outputs next to each other, side_work. */
template <class A, class Values, int Side> struct fuse_step_work : fold_work {
    using state = A;
    using S = typename A::element;
    static constexpr int SIDE = Side, DEPTH = Side == 1 ? unit_work<A>::DEPTH : 8;

    static __device__ __forceinline__ void run(const ad_fold &f, A (&a)[SIDE], const char *in, const char *,
                                               const fold_part &part) {
        const int64_t step = part.step;
        int64_t i = part.first;
#pragma unroll 1
        for (; i + (DEPTH - 1) * step < part.end; i += DEPTH * step) {
            S x[DEPTH][SIDE];
            fuse_gather<SIDE, DEPTH, Values>(
                f, [&](int k) { return fuse_element<S>(f, in, i + k * step); }, x);
#pragma unroll
            for (int k = 0; k < SIDE; k++) {
                S column[DEPTH];
#pragma unroll
                for (int u = 0; u < DEPTH; u++) column[u] = x[u][k];
                a[k].template take_all<1>(column, i, step, f);
            }
        }
#pragma unroll 1
        for (; i < part.end; i += step) {
            S x[1][SIDE];
            fuse_gather<SIDE, 1, Values>(
                f, [&](int) { return fuse_element<S>(f, in, i); }, x);
#pragma unroll
            for (int k = 0; k < SIDE; k++) a[k].take(x[0][k], i, f);
        }
    }
};

} // namespace AD_ISA
} // namespace ad
#endif
