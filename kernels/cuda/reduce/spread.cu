/* Variances. */
#include "kernels/cuda/reduce/ways.cuh"

using namespace ad;

ad_fold_kernel ad_fold_spread(int input, int way) {
    switch (input) {
    case AD_FLOAT16: return fold_kernels<spread_state<ad::half>>(way);
    case AD_BFLOAT16: return fold_kernels<spread_state<bfloat16>>(way);
    case AD_FLOAT32: return fold_kernels<spread_state<float>>(way);
    case AD_FLOAT64: return fold_kernels<spread_state<double>>(way);
    case AD_COMPLEX64: return fold_kernels<spread_state<complex<float>>>(way);
    case AD_COMPLEX128: return fold_kernels<spread_state<complex<double>>>(way);
    default: return {nullptr, 0};
    }
}
