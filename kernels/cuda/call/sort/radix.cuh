/* CUB's radix sort of one row. Every type costs seconds to compile and a quarter of a megabyte. */
#ifndef AD_KERNELS_CUDA_CALL_SORT_RADIX_CUH
#define AD_KERNELS_CUDA_CALL_SORT_RADIX_CUH

#include <cub/device/device_radix_sort.cuh>

#include "kernels/cuda/call/sort/sort.h"

/* Make a floating-point number as CUB is to see it. Both zeros are alike, as CUB's own are, but NaNs whose sign is set
 * come after all others too. Their keys, the least `Nans` ones, wrap around. */
template <class U, U Nans> struct ad_radix_float { U bits; };
template <class U, U Nans> inline constexpr bool cuda::is_floating_point_v<ad_radix_float<U, Nans>> = true;

CUB_NAMESPACE_BEGIN
template <class U, U Nans> struct NumericTraits<ad_radix_float<U, Nans>> {
    using UnsignedBits = U;
    static constexpr U SIGN = U(U(1) << (8 * sizeof(U) - 1)), ALL = U(~U(0));
    static _CCCL_HOST_DEVICE _CCCL_FORCEINLINE U TwiddleIn(U b) { return U(U(b ^ (b & SIGN ? ALL : SIGN)) - Nans); }
    static _CCCL_HOST_DEVICE _CCCL_FORCEINLINE U TwiddleOut(U b) {
        const U key = U(b + Nans);
        return U(key ^ (key & SIGN ? SIGN : ALL));
    }
    static constexpr U LOWEST_KEY = U(U(~Nans)),
                       MAX_KEY = U(~U(Nans - 1)); /* -inf; the NaN whose key is the greatest */
};
CUB_NAMESPACE_END

/* CUB's policy for keys of 4 bytes, but that blocks take half as many more at a time: all that shared memory holds. On
 * an H200 2^28 of them take 5.0 ms and not 6.2. */
template <class T> struct ad_radix_hub {
    using own = typename cub::detail::radix::policy_hub<T, cub::NullType, unsigned>;
    struct Policy900 : cub::ChainedPolicy<900, Policy900, typename own::Policy800> {
        using from = typename own::Policy900;
        static constexpr bool ONESWEEP = true;
        static constexpr int ONESWEEP_RADIX_BITS = 8;
        using HistogramPolicy = typename from::HistogramPolicy;
        using ExclusiveSumPolicy = typename from::ExclusiveSumPolicy;
        using OnesweepPolicy = cub::AgentRadixSortOnesweepPolicy<512, 23, T, 1, cub::RADIX_RANK_MATCH_EARLY_COUNTS_ANY,
                                                                 cub::BLOCK_SCAN_RAKING_MEMOIZE,
                                                                 cub::RADIX_SORT_STORE_DIRECT, ONESWEEP_RADIX_BITS>;
        using ScanPolicy = typename from::ScanPolicy;
        using DownsweepPolicy = typename from::DownsweepPolicy;
        using AltDownsweepPolicy = typename from::AltDownsweepPolicy;
        using UpsweepPolicy = typename from::UpsweepPolicy;
        using AltUpsweepPolicy = typename from::AltUpsweepPolicy;
        using SingleTilePolicy = typename from::SingleTilePolicy;
        using SegmentedPolicy = typename from::SegmentedPolicy;
        using AltSegmentedPolicy = typename from::AltSegmentedPolicy;
    };
    using MaxPolicy = Policy900;
};

template <class T>
cudaError_t ad_radix_row(void *memory, size_t *size, const char *in, char *out, int n, int end, cudaStream_t stream) {
    const T *from = reinterpret_cast<const T *>(in);
    T *to = reinterpret_cast<T *>(out);
    if constexpr (sizeof(T) == 4) {
        cub::DoubleBuffer<T> keys(const_cast<T *>(from), to);
        cub::DoubleBuffer<cub::NullType> values;
        return cub::DispatchRadixSort<cub::SortOrder::Ascending, T, cub::NullType, unsigned,
                                      cub::detail::identity_decomposer_t, ad_radix_hub<T>>::Dispatch(memory, *size,
                                                                                                     keys, values,
                                                                                                     unsigned(n), 0,
                                                                                                     end, false,
                                                                                                     stream);
    } else {
        return cub::DeviceRadixSort::SortKeys(memory, *size, from, to, n, 0, end, stream);
    }
}

template <class K>
cudaError_t ad_radix_pairs_row(void *memory, size_t *size, ad_radix_pairs *p, int n, cudaStream_t stream) {
    cub::DoubleBuffer<K> keys(static_cast<K *>(p->keys[p->at]), static_cast<K *>(p->keys[1 - p->at]));
    cub::DoubleBuffer<uint32_t> index(p->index[p->at], p->index[1 - p->at]);
    const cudaError_t error = cub::DeviceRadixSort::SortPairs(memory, *size, keys, index, n, 0, p->end, stream);
    if (memory && index.selector != 0) p->at = 1 - p->at;
    return error;
}

#define AD_RADIX(name, T)                                                                          \
    cudaError_t ad_cuda_radix_##name(void *memory, size_t *size, const char *in, char *out, int n, \
                                     cudaStream_t stream) {                                        \
        return ad_radix_row<T>(memory, size, in, out, n, 8 * int(sizeof(T)), stream);              \
    }

#endif
