/* Sums and means. */
#include "kernels/cuda/reduce/ways.cuh"

using namespace ad;

/* The mean of elements under a mask: how many they are is found with their sum. */
template <class S, class T> struct mean_state {
    using element = S;
    sum_state<S, T> sum;
    int64_t n;
    __device__ void init() { sum.init(), n = 0; }
    __device__ void take(S x, int64_t i, const ad_fold &f) { sum.take(x, i, f), n++; }
    __device__ void merge(const mean_state &o) { sum.merge(o.sum), n += o.n; }
    __device__ void finish(const ad_fold &f, char *to) {
        if constexpr (is_int<T>) fold_store(f, to, double(sum.s) / double(n));
        else fold_store(f, to, divided(sum.s, part_t<T>(n)));
    }
};

template <class S, class T> static ad_fold_kernel sum(bool mean, int way) {
    if (mean && way == AD_FOLD_MASKED) return fold_kernel<masked_work<mean_state<S, T>>>();
    return fold_kernels<sum_state<S, T>>(way);
}

/* The loop of integers is int64 or uint64, which give the same bits; that of float16 and bfloat16 may be float32. */
ad_fold_kernel ad_fold_sum(int input, int loop, bool mean, int way) {
    if (input == AD_FLOAT32 && loop == AD_FLOAT64) return sum<float, double>(mean, way);
    switch (input) {
    case AD_INT8: return sum<int8_t, int64_t>(mean, way);
    case AD_INT16: return sum<int16_t, int64_t>(mean, way);
    case AD_INT32: return sum<int32_t, int64_t>(mean, way);
    case AD_INT64:
    case AD_UINT64: return sum<int64_t, int64_t>(mean, way);
    case AD_UINT8: return sum<uint8_t, int64_t>(mean, way);
    case AD_UINT16: return sum<uint16_t, int64_t>(mean, way);
    case AD_UINT32: return sum<uint32_t, int64_t>(mean, way);
    case AD_FLOAT16: return sum<ad::half, float>(mean, way);
    case AD_BFLOAT16: return sum<bfloat16, float>(mean, way);
    case AD_FLOAT32: return sum<float, float>(mean, way);
    case AD_FLOAT64: return sum<double, double>(mean, way);
    case AD_COMPLEX64: return sum<complex<float>, complex<float>>(mean, way);
    case AD_COMPLEX128: return sum<complex<double>, complex<double>>(mean, way);
    default: return {nullptr, 0};
    }
}
