/* The end of a chain: reductions that compute elements where those of reduce_fold.cuh read them, and take them in the
 * same order into the same states, so that results have the same bits. Compiled at run time.
 *
 * Addresses are offsets into a row-major array that there is not. Values, of the generated source: chunk<V>(f, e) gives
 * elements e .. e + V - 1, e a multiple of V; ROLLED: its instructions are many, and to be written out once. */
#ifndef AD_KERNELS_CUDA_FUSE_FOLD_CUH
#define AD_KERNELS_CUDA_FUSE_FOLD_CUH

#include "kernels/cuda/fuse_device.cuh"
#include "kernels/cuda/reduce_states.cuh"

namespace ad {
inline namespace AD_ISA {

template <int Operands, int Scalars> struct fuse_fold {
    ad_fold fold;
    alignas(16) fuse_argument<Operands, Scalars> chain;
};

/* Chunk k of N begins at element e + k * step. */
template <int V, int N, class Values, class S>
__device__ __forceinline__ void fuse_gather(const ad_fold &f, int64_t e, int64_t step, S (&x)[V * N]) {
    decltype(Values::template chunk<V>(f, e)) v[N];
    if constexpr (Values::ROLLED && N > 1) {
#pragma unroll 1
        for (int k = 0; k < N; k++, e += step) {
#pragma unroll
            for (int j = 0; j + 1 < N; j++) v[j] = v[j + 1];
            v[N - 1] = Values::template chunk<V>(f, e);
        }
    } else {
#pragma unroll
        for (int k = 0; k < N; k++) v[k] = Values::template chunk<V>(f, e + k * step);
    }
#pragma unroll
    for (int k = 0; k < N; k++)
#pragma unroll
        for (int i = 0; i < V; i++) x[k * V + i] = bit_cast<S>(v[k].get(i));
}

/* As wide_work, of one run for each output. */
template <class A, class Values> struct fuse_wide_work {
    using state = A;
    using S = typename A::element;
    using read = wide_work<A>;
    static constexpr int SIDE = 1, WIDTH = read::WIDTH, DEPTH = read::DEPTH, AT_ONCE = read::AT_ONCE;

    static __device__ __forceinline__ void run(const ad_fold &f, A (&a)[1], const char *in, const char *,
                                               const fold_part &part) {
        const int64_t step = part.step, before = read::head(in);
        const int64_t begin = int64_t(reinterpret_cast<uintptr_t>(in)) / int64_t(sizeof(S));
        int64_t c = part.first;
#pragma unroll 1
        for (; c + (DEPTH - 1) * step < f.chunks; c += DEPTH * step) {
#pragma unroll 1
            for (int u = 0; u < DEPTH; u += AT_ONCE) {
                const int64_t index = before + (c + u * step) * WIDTH;
                S x[WIDTH * AT_ONCE];
                fuse_gather<WIDTH, AT_ONCE, Values>(f, begin + index, step * WIDTH, x);
                a[0].template take_all<WIDTH>(x, index, step * WIDTH, f);
            }
        }
#pragma unroll 1
        for (; c < f.chunks; c += step) {
            S x[WIDTH];
            fuse_gather<WIDTH, 1, Values>(f, begin + before + c * WIDTH, 0, x);
            a[0].template take_all<WIDTH>(x, before + c * WIDTH, 0, f);
        }
#pragma unroll 1
        for (int64_t i = part.first; i < f.loose; i += step) {
            const int64_t at = i >= before ? i + f.run_chunks * WIDTH : i;
            S x[1];
            fuse_gather<1, 1, Values>(f, begin + at, 0, x);
            a[0].take(x[0], at, f);
        }
    }
};

/* As unit_work. */
template <class A, class Values> struct fuse_unit_work {
    using state = A;
    using S = typename A::element;
    static constexpr int SIDE = 1, DEPTH = unit_work<A>::DEPTH;

    static __device__ __forceinline__ void run(const ad_fold &f, A (&a)[1], const char *in, const char *,
                                               const fold_part &part) {
        constexpr int64_t size = sizeof(S);
        const int64_t step = part.step, begin = int64_t(reinterpret_cast<uintptr_t>(in)) / size;
        const int64_t stride = f.over[0].in / size;
        int64_t i = part.first;
#pragma unroll 1
        for (; i + (DEPTH - 1) * step < part.end; i += DEPTH * step) {
            S x[DEPTH];
            fuse_gather<1, DEPTH, Values>(f, begin + i * stride, step * stride, x);
            a[0].template take_all<1>(x, i, step, f);
        }
#pragma unroll 1
        for (; i < part.end; i += step) {
            S x[1];
            fuse_gather<1, 1, Values>(f, begin + i * stride, 0, x);
            a[0].take(x[0], i, f);
        }
    }
};

} // namespace AD_ISA
} // namespace ad
#endif
