/* Reductions on the device: what the host plans and the kernels are told (fold.cuh says how they work). */
#ifndef AD_KERNELS_CUDA_REDUCE_REDUCE_H
#define AD_KERNELS_CUDA_REDUCE_REDUCE_H

#include <stdint.h>

#include "protocol/base.h"

#define AD_FOLD_DIMS 6 /* of the kept, and of the reduced dimensions; more are copied together first */
#define AD_FOLD_THREADS 256

/* Division by a number that the host knows: (2n * mul >> 64) >> shift for n below 2^63. */
typedef struct ad_fold_divisor {
    uint64_t mul;
    uint32_t shift;
} ad_fold_divisor;

typedef struct ad_fold_axis {
    int64_t size, in, mask, out; /* strides in bytes; out: of kept dimensions only */
    ad_fold_divisor by;          /* size */
} ad_fold_axis;

/* The kernels' work besides their type, one or several bits. */
enum {
    AD_FOLD_INITIAL = 1, /* initial[] is one more element */
    AD_FOLD_DIVIDE = 2,  /* a sum is divided by `divisor` */
    AD_FOLD_ROOT = 4,    /* a variance becomes a deviation */
    AD_FOLD_SKIP = 8,    /* NaN is passed over */
    AD_FOLD_INVERT = 16, /* zeros are counted */
    AD_FOLD_TRUTH = 32,  /* the result is whether anything was counted */
    AD_FOLD_NONE = 64,   /* the result is whether nothing was counted */
    AD_FOLD_YFAST = 128, /* neighbouring threads take neighbouring reduced elements, not outputs */
};
/* Elements come, or results go, through a type narrower than the one computed in. */
enum { AD_FOLD_AS_IS, AD_FOLD_HALF, AD_FOLD_BFLOAT16, AD_FOLD_BOOL };

/* Axes are innermost first. Threads of a block: 2^log_x outputs times 2^log_y reduced elements. */
typedef struct ad_fold {
    const char *in, *mask; /* mask NULL: none */
    char *out;
    int64_t outputs, reduced;
    /* 16-byte loads along axis over[0]: chunks, and elements outside of them, in all and of each of its runs. */
    int64_t chunks, loose, run_chunks, run_loose;
    ad_fold_divisor by_chunks, by_loose;
    int64_t side; /* bytes between the outputs of a thread */
    double ddof, divisor;
    uint64_t initial[2];
    uint64_t order,
        infinity; /* of extremes: what turns the elements' order round, by XOR; bits of the input's infinity */
    /* Several blocks for each group of outputs: their states, and the tag that says that one is there. */
    char *partial;
    uint64_t *tags;
    uint64_t tag;
    uint32_t blocks, shared;               /* shared: bytes of dynamic shared memory */
    uint8_t flags, input, through, narrow; /* input: dtype; through, narrow: AD_FOLD_AS_IS ... */
    uint8_t nkeep, nover, log_x, log_y;
    uint8_t shuffle_high, shuffle_low, joins, join_step; /* how the states of a block come together */
    ad_fold_axis keep[AD_FOLD_DIMS], over[AD_FOLD_DIMS];
} ad_fold;

/* A kernel: __global__ void (ad_fold). NULL: there is none. */
typedef struct ad_fold_kernel {
    const void *function;
    int state; /* bytes */
} ad_fold_kernel;

/* Kinds of states of fast kernels (states.cuh). */
enum { AD_FOLD_NO_FAMILY, AD_FOLD_SUMS, AD_FOLD_COUNTS, AD_FOLD_TOPS, AD_FOLD_PLACES };

/* Ways in which kernels read inputs of one type. Element by element takes any strides. Loads of 16 bytes go along the
 * reduced axis. Loads of 8 bytes take neighbouring outputs (elements of up to 4 bytes). Shared memory serves short rows
 * that follow each other. Masked elements are loaded as wide ones. */
enum { AD_FOLD_UNIT, AD_FOLD_WIDE, AD_FOLD_SIDE, AD_FOLD_SHORT, AD_FOLD_MASKED, AD_FOLD_WAYS };
ad_fold_kernel ad_fold_sum(int input, int loop, bool mean, int way); /* means divide, by AD_FOLD_DIVIDE if not masked */
ad_fold_kernel ad_fold_product(int input, int way);                  /* of the loop's type */
ad_fold_kernel ad_fold_nansum(int input, bool mean, int way);
ad_fold_kernel ad_fold_count(int input, int way);  /* elements that are not zero */
ad_fold_kernel ad_fold_top(int input, int way);    /* the largest element, by order */
ad_fold_kernel ad_fold_place(int input, int way);  /* index of the largest element */
ad_fold_kernel ad_fold_spread(int input, int way); /* variances */
/* Any input, any mask; compute: the type that elements are converted to, of those that the name says. */
ad_fold_kernel ad_fold_any_small(int row, int compute);
ad_fold_kernel ad_fold_any_long(int row, int compute);
ad_fold_kernel ad_fold_any_float(int row, int compute);
ad_fold_kernel ad_fold_any_complex(int row, int compute);

#endif
