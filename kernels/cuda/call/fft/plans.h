/* Plans of cuFFT, kept by device: the ones used last, so many of them and so many bytes at most. They hold no work
 * area, only their own tables (42 MiB for 2^22 points of complex64 and no power of two). Making one waits for the
 * device and may take milliseconds; running one does neither. */
#ifndef AD_KERNELS_CUDA_CALL_FFT_PLANS_H
#define AD_KERNELS_CUDA_CALL_FFT_PLANS_H

#include "kernels/call.h"

enum ad_cuda_fft_kind { AD_CUDA_FFT_COMPLEX, AD_CUDA_FFT_FROM_REAL, AD_CUDA_FFT_TO_REAL };

#define AD_CUDA_FFT_RANK 3 /* axes that one plan can have */

/* Elements of one side: element (i, j, k) of transform b is at b*dist + ((i*embed[1] + j)*embed[2] + k)*stride. */
struct ad_cuda_fft_side {
    long long embed[AD_CUDA_FFT_RANK], stride, dist;
};

/* The properties of a plan, all of which are its key. Unused places are 0. n: points along each axis, counted on the
 * real side where there is one. */
struct ad_cuda_fft_plan {
    long long kind, wide, rank, n[AD_CUDA_FFT_RANK], batch;
    ad_cuda_fft_side from, to;
};

/* Find the plan with this key, or make it. It has a work area from ad_call_workspace, and is ready for any number of
 * runs in this call. AD_E_UNSUPPORTED when cuFFT has no such transform. */
int ad_cuda_fft_prepare(ad_call *c, const ad_cuda_fft_plan *plan, int *handle);
/* Transform at `from` to `to`; they may be the same for the complex kind. direction: -1 forward, 1 inverse. */
int ad_cuda_fft_run(ad_call *c, int handle, void *from, void *to, int direction);

/* A device's plans; NULL until the first. */
struct ad_cuda_fft_plans;
void ad_cuda_fft_plans_close(ad_cuda_fft_plans *plans);
void ad_cuda_fft_plans_count(const ad_cuda_fft_plans *plans, ad_plans *out);

#endif
