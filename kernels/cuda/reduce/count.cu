/* Counts elements that are not zero; with that, whether any is and whether all are. */
#include "kernels/cuda/reduce/ways.cuh"

using namespace ad;

ad_fold_kernel ad_fold_count(int input, int way) {
    switch (input) {
    case AD_BOOL:
    case AD_INT8:
    case AD_UINT8: return fold_kernels<count_state<uint8_t>>(way);
    case AD_INT16:
    case AD_UINT16: return fold_kernels<count_state<uint16_t>>(way);
    case AD_INT32:
    case AD_UINT32: return fold_kernels<count_state<uint32_t>>(way);
    case AD_INT64:
    case AD_UINT64: return fold_kernels<count_state<uint64_t>>(way);
    case AD_FLOAT16:
    case AD_BFLOAT16: return fold_kernels<count_state<ad::half>>(way);
    case AD_FLOAT32: return fold_kernels<count_state<float>>(way);
    case AD_FLOAT64: return fold_kernels<count_state<double>>(way);
    case AD_COMPLEX64: return fold_kernels<count_state<complex<float>>>(way);
    case AD_COMPLEX128: return fold_kernels<count_state<complex<double>>>(way);
    default: return {nullptr, 0};
    }
}
