/* Products. */
#include "kernels/cuda/reduce/ways.cuh"

using namespace ad;

ad_fold_kernel ad_fold_product(int input, int way) {
    switch (input) {
    case AD_INT64:
    case AD_UINT64: return fold_kernels<product_state<int64_t, int64_t>>(way);
    case AD_FLOAT16: return fold_kernels<product_state<ad::half, float>>(way);
    case AD_BFLOAT16: return fold_kernels<product_state<bfloat16, float>>(way);
    case AD_FLOAT32: return fold_kernels<product_state<float, float>>(way);
    case AD_FLOAT64: return fold_kernels<product_state<double, double>>(way);
    case AD_COMPLEX64: return fold_kernels<product_state<complex<float>, complex<float>>>(way);
    case AD_COMPLEX128: return fold_kernels<product_state<complex<double>, complex<double>>>(way);
    default: return {nullptr, 0};
    }
}
