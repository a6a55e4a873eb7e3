/* Sums and means. */
#include "kernels/cuda/reduce/states.cuh"

using namespace ad;

/* The loop of integers is int64 or uint64, which give the same bits; that of float16 and bfloat16 may be float32. */
ad_fold_kernel ad_fold_sum(int input, int loop, int way) {
    if (input == AD_FLOAT32 && loop == AD_FLOAT64) return fold_kernels<sum_state<float, double>>(way);
    switch (input) {
    case AD_INT8: return fold_kernels<sum_state<int8_t, int64_t>>(way);
    case AD_INT16: return fold_kernels<sum_state<int16_t, int64_t>>(way);
    case AD_INT32: return fold_kernels<sum_state<int32_t, int64_t>>(way);
    case AD_INT64:
    case AD_UINT64: return fold_kernels<sum_state<int64_t, int64_t>>(way);
    case AD_UINT8: return fold_kernels<sum_state<uint8_t, int64_t>>(way);
    case AD_UINT16: return fold_kernels<sum_state<uint16_t, int64_t>>(way);
    case AD_UINT32: return fold_kernels<sum_state<uint32_t, int64_t>>(way);
    case AD_FLOAT16: return fold_kernels<sum_state<ad::half, float>>(way);
    case AD_BFLOAT16: return fold_kernels<sum_state<bfloat16, float>>(way);
    case AD_FLOAT32: return fold_kernels<sum_state<float, float>>(way);
    case AD_FLOAT64: return fold_kernels<sum_state<double, double>>(way);
    case AD_COMPLEX64: return fold_kernels<sum_state<complex<float>, complex<float>>>(way);
    case AD_COMPLEX128: return fold_kernels<sum_state<complex<double>, complex<double>>>(way);
    default: return {nullptr, 0};
    }
}
