/* Plans of Fourier transforms, kept by the process. */
#ifndef AD_KERNELS_CPU_CALL_FFT_PLANS_H
#define AD_KERNELS_CPU_CALL_FFT_PLANS_H

#include "kernels/backend.h"
#include "kernels/cpu/isa/fft.h"

/* The properties of a plan, all of which are its key. */
struct ad_fft_plan {
    ad_fft_form form;
    bool wide; /* of double */
    int64_t n; /* points, of the real side where there is one */
};

struct ad_fft_kept;

/* The plan with this key, made for `device` if it is not there; it stays until it is released. AD_E_MEMORY. */
int ad_fft_acquire(const ad_device *device, const ad_fft_plan *plan, ad_fft_kept **out, ad_fault *fault);
void ad_fft_release(ad_fft_kept *kept);
/* Count the plans that were made for `device`, though all devices use them. */
void ad_fft_plans_count(const ad_device *device, ad_plans *out);
/* Any number of threads may run one plan at a time. Throws std::bad_alloc. */
void ad_fft_run(const ad_fft_kept *kept, const ad_fft_lines *lines);

#endif
