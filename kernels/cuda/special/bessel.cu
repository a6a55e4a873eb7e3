#include "kernels/special/bessel.h"

#include "kernels/cuda/special/special.cuh"

void ad_cuda_special_bessel(ad_ufunc_table *tables) {
    ad::fill_special<float, AD_FAMILY_BESSEL, AD_FAMILY_BESSEL>(tables);
    ad::fill_special<double, AD_FAMILY_BESSEL, AD_FAMILY_BESSEL>(tables);
}
