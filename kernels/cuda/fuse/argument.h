/* The argument of a chain's kernel (source.cpp generates those), for the host and for the compiler at run time. */
#ifndef AD_KERNELS_CUDA_FUSE_ARGUMENT_H
#define AD_KERNELS_CUDA_FUSE_ARGUMENT_H

#include "kernels/cuda/backend/divide.h"

#define AD_FUSE_THREADS 256 /* of a block */
#define AD_FUSE_OUTER 4     /* dimensions outside the rows */
#define AD_FUSE_TILE 32     /* columns of a tile; it has 8 rows for each element of a thread */

/* A chunk is as many elements, next to each other in a row, as a thread has at a time. A thread has chunks
 * blockIdx.x * block + threadIdx.x + n * step. */
typedef struct ad_fuse_head {
    int64_t columns;                    /* of a row */
    uint32_t chunks, block, step;       /* chunks: of all rows */
    ad_divisor row, dim[AD_FUSE_OUTER]; /* chunks of a row; outer dimensions, outermost first, the first unused */
    ad_divisor across, down;            /* tiles of the last dimension and of the last but one */
    uint32_t unused[2];
} ad_fuse_head;

/* Strides in bytes; inner: from one element of a row to the next. */
typedef struct ad_fuse_operand {
    char *base;
    int64_t inner, stride[AD_FUSE_OUTER];
} ad_fuse_operand;

typedef struct ad_fuse_scalar {
    alignas(16) char bytes[16];
} ad_fuse_scalar;

/* The argument: the head, the operands (outputs, then inputs), the scalars, without gaps between them. */
static_assert(sizeof(ad_fuse_head) % 16 == 0 && sizeof(ad_fuse_operand) % 16 == 0, "no gaps");

#endif
