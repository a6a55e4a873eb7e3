/* Fourier transforms of lines by pocketfft, for each instruction set. */
#ifndef AD_KERNELS_CPU_ISA_FFT_H
#define AD_KERNELS_CPU_ISA_FFT_H

#include <stdint.h>

/* FROM_REAL gives the first half of the frequencies; FROM_REAL_INVERSE that of the inverse transform. The last four are
 * of cosines and sines, by type. */
enum ad_fft_kind {
    AD_FFT_FORWARD,
    AD_FFT_INVERSE,
    AD_FFT_FROM_REAL,
    AD_FFT_FROM_REAL_INVERSE,
    AD_FFT_TO_REAL,
    AD_FFT_COSINE_1,
    AD_FFT_SINE_1,
    AD_FFT_TRIGONOMETRIC_23,
    AD_FFT_TRIGONOMETRIC_4
};

static inline bool ad_fft_is_trigonometric(ad_fft_kind kind) { return kind >= AD_FFT_COSINE_1; }

/* A plan of its own for each of these: of complex numbers, of real numbers either way, and of cosines and sines. */
enum ad_fft_form {
    AD_FFT_OF_COMPLEX,
    AD_FFT_OF_REAL,
    AD_FFT_OF_COSINE_1,
    AD_FFT_OF_SINE_1,
    AD_FFT_OF_TRIGONOMETRIC_23,
    AD_FFT_OF_TRIGONOMETRIC_4
};

static inline ad_fft_form ad_fft_form_of(ad_fft_kind kind) {
    if (ad_fft_is_trigonometric(kind)) return ad_fft_form(kind - AD_FFT_COSINE_1 + AD_FFT_OF_COSINE_1);
    return kind == AD_FFT_FORWARD || kind == AD_FFT_INVERSE ? AD_FFT_OF_COMPLEX : AD_FFT_OF_REAL;
}

/* Lines that are transformed one beside the other. Steps in bytes: between the points of a line, and from one line to
 * the next. A transform of complex numbers may be in place, with the steps of both sides the same. */
struct ad_fft_lines {
    ad_fft_kind kind;
    const char *from;
    char *to;
    int64_t from_step, to_step, lines, from_next, to_next;
    double factor;    /* of the result */
    int type;         /* of a transform of cosines or sines; for others 0 */
    bool sine, ortho; /* likewise: which of both, and whether the ends are scaled (protocol/call.def) */
};

struct ad_fft_kernels {
    void *(*make)(ad_fft_form form, bool wide, int64_t n); /* throws std::bad_alloc */
    void (*destroy)(ad_fft_form form, bool wide, void *plan);
    void (*run)(bool wide, int64_t n, const void *plan, const ad_fft_lines *lines); /* throws std::bad_alloc */
};

#endif
