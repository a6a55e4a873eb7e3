/* The arguments of the elementwise kernels, and their tables. */
#ifndef AD_KERNELS_CUDA_UFUNC_KERNELS_H
#define AD_KERNELS_CUDA_UFUNC_KERNELS_H

#include "kernels/backend.h"

#define AD_UFUNC_THREADS 256        /* of a block */
#define AD_UFUNC_OUTER 3            /* dimensions outside the rows of a fast kernel */
#define AD_UFUNC_TILE 32            /* columns of a tile; it has 8 rows for each element of a thread */
#define AD_UFUNC_LARGEST 0x7fffffff /* elements and bytes that an index or an offset of 32 bits may span */

/* Division of numbers below 2^31 by one number: a multiplication and a shift. */
typedef struct ad_ufunc_divider {
    uint32_t size, magic, shift;
} ad_ufunc_divider;

static inline ad_ufunc_divider ad_ufunc_divider_of(uint32_t size) {
    ad_ufunc_divider d = {size, 0, 0};
    while ((uint64_t(1) << d.shift) < size) d.shift++;
    d.magic = uint32_t(((uint64_t(1) << 32) * ((uint64_t(1) << d.shift) - size)) / size + 1);
    return d;
}

/* ---- fast kernels: outputs whose rows are contiguous, in vectors ---- */

/* base NULL: `value` is the operand. inner: from one element of a row to the next. Strides in bytes. */
typedef struct ad_ufunc_fast_operand {
    char *base;
    int64_t inner;
    union {
        int64_t stride[AD_UFUNC_OUTER]; /* outermost first */
        char value[16];
    };
} ad_ufunc_fast_operand;

/* A thread has chunks blockIdx.x * block + threadIdx.x + n * step; a chunk is a vector of each operand. */
typedef struct ad_ufunc_fast_head {
    int64_t columns; /* of a row */
    uint32_t chunks, block, step;
    uint32_t ndim;                             /* outer dimensions */
    bool ragged, skewed;                       /* not all chunks are whole; rows do not begin with a whole one */
    ad_ufunc_divider row, dim[AD_UFUNC_OUTER]; /* chunks of a row; outer dimensions, the first unused */
    ad_check *check;
} ad_ufunc_fast_head;

/* Outputs, then inputs. Kernels take as many operands as they have, so the argument is short. */
template <int N> struct ad_ufunc_fast {
    ad_ufunc_fast_head head;
    ad_ufunc_fast_operand op[N];
};

/* ---- general kernels: any strides, any types, a mask ---- */

enum { AD_UFUNC_OUT0, AD_UFUNC_OUT1, AD_UFUNC_IN0, AD_UFUNC_IN1, AD_UFUNC_IN2, AD_UFUNC_MASK, AD_UFUNC_SLOTS };

#define AD_UFUNC_AS_IS 255 /* `through` of an operand: straight from or to the array's type */

typedef struct ad_ufunc_general {
    uint32_t count; /* elements */
    uint16_t row;
    uint8_t ndim, nin, nout;
    bool tiled, masked;
    uint8_t dtype[AD_UFUNC_SLOTS], through[AD_UFUNC_SLOTS]; /* of the array; see kernels/cpu/backend/operand.h */
    char *base[AD_UFUNC_SLOTS];                             /* NULL, of an input: a value */
    char value[3][16];                                      /* in the kernel's own type */
    ad_check *check;
    ad_ufunc_divider across, down; /* tiles of the last and the last but one dimension */
    ad_ufunc_divider dim[AD_MAX_NDIM];
    int32_t stride[AD_UFUNC_SLOTS][AD_MAX_NDIM]; /* bytes */
} ad_ufunc_general;

/* ---- casts between arrays without gaps ---- */

typedef struct ad_ufunc_cast {
    int64_t count;
    char *out;
    const char *in;
    int from;
} ad_ufunc_cast;

/* ---- transposes ---- */

typedef struct ad_ufunc_transpose {
    uint32_t rows, columns;                         /* the input is contiguous along a column, the output along a row */
    int64_t in_column, in_row, out_column, out_row; /* bytes */
    char *out;
    const char *in;
    ad_ufunc_divider across, down; /* tiles */
    uint32_t ndim;
    ad_ufunc_divider dim[AD_MAX_NDIM - 2]; /* dimensions outside, outermost first */
    int64_t in_stride[AD_MAX_NDIM - 2], out_stride[AD_MAX_NDIM - 2];
} ad_ufunc_transpose;

/* ---- where they are ---- */

/* The kernels of one loop type. */
typedef struct ad_ufunc_table {
    const void *fast[AD_UFUNC_LIMIT];
    uint8_t width[AD_UFUNC_LIMIT], unroll[AD_UFUNC_LIMIT]; /* of fast: elements of a chunk, chunks of a thread */
    uint8_t general[AD_UFUNC_LIMIT];     /* 0: not here (float32 does for float16 and bfloat16), 1 or 2: below */
    const void *special[AD_UFUNC_LIMIT]; /* in place of heavy, or NULL (kernels/cuda/special) */
    const void *light, *full, *heavy;    /* light: for one output and two inputs, without a mask */
    int light_unroll, full_unroll, heavy_unroll; /* elements of a thread */
} ad_ufunc_table;

const ad_ufunc_table *ad_cuda_ufunc_table(int loop);

/* Cast kernel into dtype `to`, and the elements of a thread that one of `from` has. */
const void *ad_cuda_cast_kernel(int from, int to, int *elements);
/* size: of an element; side: of a tile, in elements. packed: 1-byte and 2-byte elements go as words of 4 bytes, to
 * which everything must then be aligned. */
const void *ad_cuda_transpose_kernel(int size, bool packed, int *side);

#endif
