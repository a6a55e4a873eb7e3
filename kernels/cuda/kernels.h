/* The device kernels of ufunc.def and reduction.def, by loop type and row. */
#ifndef AD_KERNELS_CUDA_KERNELS_H
#define AD_KERNELS_CUDA_KERNELS_H

#include "protocol/base.h"

#define AD_CUDA_OPERANDS 6 /* two outputs, three inputs, a mask */

/* Argument of every elementwise kernel: outputs, inputs and the mask (or NULL) with the strides of each, in bytes, over
 * the same ndim dimensions; count elements in all. */
typedef struct ad_cuda_loop {
    int ndim;
    int64_t count;
    void *base[AD_CUDA_OPERANDS];
    int64_t shape[AD_MAX_NDIM];
    int64_t stride[AD_CUDA_OPERANDS][AD_MAX_NDIM];
} ad_cuda_loop;

/* Argument of every reduction kernel, one block of threads for each output: in, out, mask; kept and reduced dims. */
typedef struct ad_cuda_reduction {
    const void *in, *mask; /* mask NULL: none */
    void *out;             /* contiguous, in the type that the row's rule gives */
    int64_t outputs, reduced;
    int kept_ndim, reduced_ndim;
    int64_t kept_shape[AD_MAX_NDIM], kept_stride[AD_MAX_NDIM], kept_mask_stride[AD_MAX_NDIM];
    int64_t reduced_shape[AD_MAX_NDIM], reduced_stride[AD_MAX_NDIM], reduced_mask_stride[AD_MAX_NDIM];
    double ddof;
} ad_cuda_reduction;

#define AD_CUDA_THREADS 256 /* of a block */

/* For cudaLaunchKernel. contiguous: takes an ad_cuda_loop of one dimension whose operands are all contiguous and which
 * has no mask. NULL: the row has no such loop. */
const void *ad_cuda_ufunc_kernel(int loop, int row, bool contiguous);
const void *ad_cuda_reduce_kernel(int loop, int row);

/* Tables of one loop type, by row. */
typedef struct ad_cuda_table {
    const void *strided[AD_UFUNC_LIMIT], *contiguous[AD_UFUNC_LIMIT], *reduce[AD_REDUCTION_LIMIT];
} ad_cuda_table;

#endif
