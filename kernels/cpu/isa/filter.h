/* Sums of products along lines, for each instruction set. */
#ifndef AD_KERNELS_CPU_ISA_FILTER_H
#define AD_KERNELS_CPU_ISA_FILTER_H

#include <stdint.h>

/* Add: sum[i] += w[j] * x[i + j*step] for i < n, one tap j after the other, rounded each time. */
struct ad_filter_kernels {
    void (*add_float)(float *sum, int64_t n, const float *x, int64_t step, const float *w, int64_t taps);
    void (*add_double)(double *sum, int64_t n, const double *x, int64_t step, const double *w, int64_t taps);
};

#endif
