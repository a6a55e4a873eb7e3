/* The kernels of special functions, which have no forms for instruction sets. */
#ifndef AD_KERNELS_CPU_SPECIAL_SPECIAL_H
#define AD_KERNELS_CPU_SPECIAL_SPECIAL_H

#include "kernels/cpu/kernels.h"

/* Puts those of a loop type into a table of rows. */
void ad_cpu_special_add(int loop, ad_ufunc_kernel *rows);

#endif
