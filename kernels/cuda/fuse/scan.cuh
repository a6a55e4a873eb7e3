/* The end of a chain: running sums and products that compute elements where those of call/scan/parts.cuh read them.
 * They take them in the same order, so results have the same bits. Compiled at run time.
 *
 * Addresses are offsets into a row-major array that does not exist. The generated source has `values`, as for fold.cuh.
 */
#ifndef AD_KERNELS_CUDA_FUSE_SCAN_CUH
#define AD_KERNELS_CUDA_FUSE_SCAN_CUH

#include "kernels/cuda/call/scan/parts.cuh"
#include "kernels/cuda/fuse/device.cuh"

namespace ad {
inline namespace AD_ISA {

template <int Operands, int Scalars> struct fuse_scan {
    ad_scan scan;
    alignas(16) fuse_argument<Operands, Scalars> chain;
};

/* As scan_memory. */
template <class Values> struct fuse_scanned {
    static constexpr bool THERE = false;

    /* n: elements that there are; where lanes are not whole vectors there is one lane. */
    template <class Op> static __device__ __forceinline__ scan_vector<typename Op::input, Op::WIDTH>
    vector(const ad_scan &s, const char *p, int64_t n) {
        using S = typename Op::input;
        using value = decltype(Values::template chunk<1>(s, 0).get(0));
        constexpr int V = Op::WIDTH;
        const int64_t first = int64_t(reinterpret_cast<uintptr_t>(p)) / int64_t(sizeof(S));
        auto v = splat<value, V>(bit_cast<value>(Op::missing()));
        if (n >= V) {
            v = Values::template chunk<V>(s, first);
        } else if (n > 0) {
#pragma unroll 1
            for (int i = 0; i < V; i++) {
                auto one = splat<value, 1>(bit_cast<value>(Op::missing()));
                if (i < n) one = Values::template chunk<1>(s, first + i);
                shift(v, one);
            }
        }
        scan_vector<S, V> x;
        static_assert(sizeof x.w == sizeof v.word, "the same registers");
        memcpy(x.w, v.word, sizeof x.w);
        return x;
    }

    template <class Op, int Loads, class Where, class Count> static __device__ __forceinline__ void
    gather(const ad_scan &s, scan_vector<typename Op::input, Op::WIDTH> (&x)[Loads], Where where, Count count) {
        if constexpr (Values::ROLLED) {
#pragma unroll 1
            for (int k = 0; k < Loads; k++) {
#pragma unroll
                for (int j = 0; j + 1 < Loads; j++) x[j] = x[j + 1];
                x[Loads - 1] = vector<Op>(s, where(k), count(k));
            }
        } else {
#pragma unroll
            for (int k = 0; k < Loads; k++) x[k] = vector<Op>(s, where(k), count(k));
        }
    }
};

} // namespace AD_ISA
} // namespace ad
#endif
