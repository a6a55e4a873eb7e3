/* Tables of functions over one-dimensional runs. The instruction-set specific part of the cpu backend (cpu/isa,
 * compiled once for each of KERNEL_ISAS) gives them to the rest. */
#ifndef AD_KERNELS_CPU_KERNELS_H
#define AD_KERNELS_CPU_KERNELS_H

#include "protocol/base.h"

/* n elements of a ufunc. p: outputs, then inputs, each contiguous in its own type of the row's rule; bit i of scalars
 * set: input i is one element. An output may be the same array as an input. */
typedef void (*ad_ufunc_kernel)(void *const *p, unsigned scalars, int64_t n);

/* Copy n elements, converting. Strides in bytes, any. */
typedef void (*ad_cast_kernel)(void *to, int64_t to_stride, const void *from, int64_t from_stride, int64_t n);

/* One reduction for one type of element. A state is state_size bytes, aligned to 64; states of an array follow each
 * other. Elements are contiguous in the kernel's type; index is that of the first, the following have the next ones
 * (fold) or the same one (each). */
typedef struct ad_reduce_kernel {
    uint8_t state_size;
    bool ordered; /* needs indices: elements must come in row-major order */
    void (*init)(void *state, int64_t n);
    void (*fold)(void *state, const void *x, int64_t n, int64_t index); /* all into one state */
    void (*each)(void *state, const void *x, int64_t n, int64_t index); /* x[i] into state[i] */
    void (*masked)(void *state, int64_t state_step, const void *x, const uint8_t *mask, int64_t n, int64_t index,
                   int64_t index_step); /* x[i] into state[i*state_step] where mask[i]; index + i*index_step */
    void (*merge)(void *state, const void *later, int64_t n); /* state[i] with later[i] */
    void (*result)(void *out, const void *state, int64_t n, double ddof);
    bool (*done)(const void *state); /* no further element can change it; NULL: never so */
} ad_reduce_kernel;

/* Lanes of n elements each (at most AD_SORT_MOST), which lie `step` bytes apart. */
#define AD_SORT_MOST 1024
typedef struct ad_sort_lanes {
    const char *from;
    char *to;
    int64_t from_lane, to_lane, from_step, to_step; /* from one lane to the next; within one */
    int64_t n, lanes;
} ad_sort_lanes;

/* As many lanes at once as a kernel takes, or fewer. False: not by this kernel, nothing has been written. */
typedef struct ad_sort_kernel {
    int lanes;
    bool (*sort)(const ad_sort_lanes *l);
} ad_sort_kernel;

typedef struct ad_cpu_kernels {
    const char *name;
    const ad_ufunc_kernel *ufunc[AD_NDTYPE];   /* [loop][row], or NULL */
    const ad_reduce_kernel *reduce[AD_NDTYPE]; /* [loop][row]; state_size 0: none */
    const ad_cast_kernel *cast[AD_NDTYPE];     /* [from][to] */
    const ad_sort_kernel *sort, *argsort;      /* [dtype]; sort NULL: none */
    const struct ad_random_kernels *random;    /* kernels/cpu/isa/random_tables.h */
    const struct ad_fft_kernels *fft;          /* kernels/cpu/isa/fft.h */
    const struct ad_factor_kernel *factor;     /* [dtype]; lanes 0: none; kernels/cpu/isa/factor.h */
    const struct ad_pair_kernels *pairs;       /* kernels/cpu/isa/pairs.h */
    const struct ad_filter_kernels *filter;    /* kernels/cpu/isa/filter.h */
} ad_cpu_kernels;

/* The best that this processor runs, chosen at the first call. */
const ad_cpu_kernels *ad_cpu_kernels_get(void);
/* Take the one of that name from now on (tests). False: there is none, or the processor cannot run it. */
bool ad_cpu_kernels_select(const char *name);

#endif
