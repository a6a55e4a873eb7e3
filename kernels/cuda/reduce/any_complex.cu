/* Reductions computed in complex numbers. */
#include "kernels/cuda/reduce/any.cuh"

ad_fold_kernel ad_fold_any_complex(int row, int compute) {
    switch (compute) {
    case AD_COMPLEX64: return ad::fold_any_row<ad::complex<float>>(row);
    case AD_COMPLEX128: return ad::fold_any_row<ad::complex<double>>(row);
    default: return {nullptr, 0};
    }
}
