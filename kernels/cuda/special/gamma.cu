#include "kernels/special/gamma.h"

#include "kernels/cuda/special/special.cuh"

void ad_cuda_special_gamma(ad_ufunc_table *tables) {
    ad::fill_special<float, AD_FAMILY_GAMMA, AD_FAMILY_GAMMA>(tables);
    ad::fill_special<double, AD_FAMILY_GAMMA, AD_FAMILY_GAMMA>(tables);
}
