/* The kernels of special functions, which are compiled by families. */
#ifndef AD_KERNELS_CUDA_SPECIAL_SPECIAL_H
#define AD_KERNELS_CUDA_SPECIAL_SPECIAL_H

#include "kernels/cuda/ufunc/kernels.h"

/* Families of ids (AD_SPECIAL_FAMILY of protocol/rows_ufunc.h). */
enum {
    AD_FAMILY_ELEMENTARY,
    AD_FAMILY_ELEMENTARY_MORE,
    AD_FAMILY_GAMMA,
    AD_FAMILY_DISTRIBUTIONS,
    AD_FAMILY_BESSEL,
    AD_FAMILY_INTEGRALS,
    AD_FAMILIES
};

/* Each puts its kernels into the tables of all loop types. */
void ad_cuda_special_elementary(ad_ufunc_table *tables);
void ad_cuda_special_complex(ad_ufunc_table *tables);
void ad_cuda_special_gamma(ad_ufunc_table *tables);
void ad_cuda_special_distributions(ad_ufunc_table *tables);
void ad_cuda_special_bessel(ad_ufunc_table *tables);
void ad_cuda_special_integrals(ad_ufunc_table *tables);

#endif
