/* Sums and means of what is not NaN. */
#include "kernels/cuda/reduce/ways.cuh"

using namespace ad;

template <class S> static ad_fold_kernel nansum(bool mean, int way) {
    return mean ? fold_kernels<nansum_state<S, true>>(way) : fold_kernels<nansum_state<S, false>>(way);
}

ad_fold_kernel ad_fold_nansum(int input, bool mean, int way) {
    switch (input) {
    case AD_FLOAT16: return nansum<ad::half>(mean, way);
    case AD_BFLOAT16: return nansum<bfloat16>(mean, way);
    case AD_FLOAT32: return nansum<float>(mean, way);
    case AD_FLOAT64: return nansum<double>(mean, way);
    case AD_COMPLEX64: return nansum<complex<float>>(mean, way);
    case AD_COMPLEX128: return nansum<complex<double>>(mean, way);
    default: return {nullptr, 0};
    }
}
