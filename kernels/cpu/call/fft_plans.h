/* Plans of FFTW, kept by the process: transforms along one axis of several lines at once. */
#ifndef AD_KERNELS_CPU_CALL_FFT_PLANS_H
#define AD_KERNELS_CPU_CALL_FFT_PLANS_H

#include "kernels/backend.h"

enum ad_fft_kind { AD_FFT_FORWARD, AD_FFT_INVERSE, AD_FFT_FROM_REAL, AD_FFT_TO_REAL };

/* What a plan is made for; all of it is the key. Steps in elements of the array's own type. */
struct ad_fft_plan {
    int64_t kind, wide, n;      /* wide: double; n: points, of the real side where there is one */
    int64_t from_step, to_step; /* between the points of a line */
    int64_t lines, from_next, to_next;
    int64_t in_place, aligned; /* aligned: whatever it is run on is, as ad_fft_aligned says */
};

struct ad_fft_kept;

/* The plan with this key, made if it is not there; it stays until it is released. AD_E_MEMORY. */
int ad_fft_acquire(const ad_fft_plan *plan, ad_fft_kept **out, ad_fault *fault);
void ad_fft_release(ad_fft_kept *kept);
void ad_fft_plans_count(ad_plans *out);
/* Any number of threads may run one plan at a time. The input is not changed. */
void ad_fft_run(const ad_fft_kept *kept, char *from, char *to);
/* Whether FFTW can use its fastest code on what lies at `offset` from data. */
bool ad_fft_aligned(const char *data, int64_t offset);

#endif
