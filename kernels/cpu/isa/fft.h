/* Fourier transforms of lines by pocketfft, for each instruction set. */
#ifndef AD_KERNELS_CPU_ISA_FFT_H
#define AD_KERNELS_CPU_ISA_FFT_H

#include <stdint.h>

/* FROM_REAL gives the first half of the frequencies; FROM_REAL_INVERSE that of the inverse transform. */
enum ad_fft_kind { AD_FFT_FORWARD, AD_FFT_INVERSE, AD_FFT_FROM_REAL, AD_FFT_FROM_REAL_INVERSE, AD_FFT_TO_REAL };

/* Numbers on one side of a transform of this kind are real. */
static inline bool ad_fft_is_real(ad_fft_kind kind) { return kind != AD_FFT_FORWARD && kind != AD_FFT_INVERSE; }

/* Lines that are transformed one beside the other. Steps in bytes: between the points of a line, and from one line to
 * the next. A transform of complex numbers may be in place, with the steps of both sides the same. */
struct ad_fft_lines {
    ad_fft_kind kind;
    const char *from;
    char *to;
    int64_t from_step, to_step, lines, from_next, to_next;
    double factor; /* of the result */
};

struct ad_fft_kernels {
    void *(*make)(bool real, bool wide, int64_t n); /* throws std::bad_alloc */
    void (*destroy)(bool real, bool wide, void *plan);
    void (*run)(bool wide, int64_t n, const void *plan, const ad_fft_lines *lines); /* throws std::bad_alloc */
};

#endif
