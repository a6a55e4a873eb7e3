#include "kernels/special/complex.h"

#include "kernels/cuda/special/special.cuh"

void ad_cuda_special_complex(ad_ufunc_table *tables) {
    ad::fill_special<ad::t_complex64, 0, AD_FAMILIES>(tables);
    ad::fill_special<ad::t_complex128, 0, AD_FAMILIES>(tables);
}
