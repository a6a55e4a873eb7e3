/* Special functions that CUDA has, and those of a line or two; Bessel functions of double are xsf's. */
#include "kernels/special/elementary.h"

#include "kernels/cuda/special/special.cuh"

void ad_cuda_special_elementary(ad_ufunc_table *tables) {
    ad::fill_special<float, AD_FAMILY_ELEMENTARY, AD_FAMILY_ELEMENTARY_MORE, true>(tables);
    ad::fill_special<double, AD_FAMILY_ELEMENTARY, AD_FAMILY_ELEMENTARY_MORE, true>(tables);
}
