/* The choice of OpenBLAS's kernels. */
#ifndef AD_KERNELS_CPU_BACKEND_BLAS_CORE_H
#define AD_KERNELS_CPU_BACKEND_BLAS_CORE_H

/* The properties of a processor that the choice depends on. */
typedef struct ad_blas_processor {
    bool amd, avx2, avx512; /* avx2: with FMA; avx512: F, BW, CD, DQ and VL */
} ad_blas_processor;

/* The core to ask OpenBLAS for (OPENBLAS_CORETYPE) where it has found `found` by itself; NULL: that will do. One that
 * is younger than OpenBLAS is taken for the oldest there is, and products take five times as long as they need to. */
const char *ad_cpu_blas_core(const char *found, ad_blas_processor has);

/* Make it so, before anything else uses OpenBLAS. The value of OPENBLAS_CORETYPE already holds. */
void ad_cpu_blas_open(void);

#endif
