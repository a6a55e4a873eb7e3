/* The parts of a matrix product on a GPU. */
#ifndef AD_KERNELS_CUDA_CALL_MATMUL_MATMUL_H
#define AD_KERNELS_CUDA_CALL_MATMUL_MATMUL_H

#include "kernels/call.h"

/* A matrix as a view; steps in bytes. */
struct ad_cuda_matrix {
    char *data;
    int64_t rows, columns, row_step, column_step;
};

/* A product c = a b for every position of a batch. */
struct ad_cuda_product {
    int dtype;
    ad_cuda_matrix a, b, c;
    ad::walk<3> batch; /* c, a, b */
};

/* Multiply by cuBLAS: float16, bfloat16, float32, float64, complex64, complex128. a and b are as ad_cuda_matmul_takes
 * says, c by rows. */
int ad_cuda_matmul_blas(ad_call *c, const ad_cuda_product *p);
/* Rows or columns of every matrix lie contiguous, so that cuBLAS can read them as they are. */
bool ad_cuda_matmul_takes(const ad::array *x);
/* Addresses of the matrices of items first..first+n of the batch: n of c, n of a, n of b, in device memory. */
int ad_cuda_matmul_pointers(ad_call *c, const ad_cuda_product *p, int64_t first, int64_t n, void **to);
/* Multiply by loops over whatever strides: integers (they wrap) and bool (or of ands). */
int ad_cuda_matmul_loops(ad_call *c, const ad_cuda_product *p);

#endif
