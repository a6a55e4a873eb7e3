/* The parts of a matrix product. */
#ifndef AD_KERNELS_CPU_CALL_MATMUL_H
#define AD_KERNELS_CPU_CALL_MATMUL_H

#include "kernels/call.h"

/* A matrix as a view; steps in bytes. */
struct ad_matrix {
    char *data;
    int64_t rows, columns, row_step, column_step;
};

/* c = a b, or c += a b with `add`, for one type of elements, on the calling thread. c's rows are contiguous. */
typedef void ad_matmul_function(const ad_matrix *a, const ad_matrix *b, const ad_matrix *c, bool add);

/* By OpenBLAS: float32, float64, complex64, complex128; a and b as ad_matmul_blas_takes says. */
ad_matmul_function *ad_matmul_blas(int dtype);
/* Rows or columns of m lie contiguous, so that OpenBLAS can read it as it is. */
bool ad_matmul_blas_takes(const ad_matrix *m, int64_t itemsize);
/* By loops over whatever strides: integers (they wrap), bool (or of ands), and small matrices of the others. */
ad_matmul_function *ad_matmul_loops(int dtype);

#endif
