#include "kernels/special/integrals.h"

#include "kernels/cuda/special/special.cuh"

void ad_cuda_special_integrals(ad_ufunc_table *tables) {
    ad::fill_special<float, AD_FAMILY_INTEGRALS, AD_FAMILY_INTEGRALS>(tables);
    ad::fill_special<double, AD_FAMILY_INTEGRALS, AD_FAMILY_INTEGRALS>(tables);
}
