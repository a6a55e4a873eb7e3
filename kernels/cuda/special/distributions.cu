#include "kernels/special/distributions.h"

#include "kernels/cuda/special/special.cuh"

void ad_cuda_special_distributions(ad_ufunc_table *tables) {
    ad::fill_special<float, AD_FAMILY_DISTRIBUTIONS, AD_FAMILY_DISTRIBUTIONS>(tables);
    ad::fill_special<double, AD_FAMILY_DISTRIBUTIONS, AD_FAMILY_DISTRIBUTIONS>(tables);
}
