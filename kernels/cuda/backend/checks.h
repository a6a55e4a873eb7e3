/* Checks: what operations report about their data after they have been enqueued (ad_check of kernels/backend.h). */
#ifndef AD_KERNELS_CUDA_BACKEND_CHECKS_H
#define AD_KERNELS_CUDA_BACKEND_CHECKS_H

#include "kernels/backend.h"

/* AD_CHECK(name, status, text for printf with the three values, which are long long). */
#define AD_CHECKS(AD_CHECK)                                                                                       \
    AD_CHECK(index, AD_E_INDEX, "index %lld is out of bounds for axis %lld with size %lld")                       \
    AD_CHECK(negative_power, AD_E_VALUE, "Integers to negative integer powers are not allowed.")                  \
    AD_CHECK(bincount_negative, AD_E_VALUE, "'list' argument must have no negative elements")                     \
    AD_CHECK(bincount_high, AD_E_VALUE, "bincount: the value %lld is not below the number of bins, %lld")         \
    AD_CHECK(place_count, AD_E_VALUE,                                                                             \
             "NumPy boolean array indexing assignment cannot assign %lld input values to the %lld output values " \
             "where the mask is true")                                                                            \
    AD_CHECK(random, AD_E_VALUE, "a parameter of a distribution is outside of its domain")                        \
    AD_CHECK(sparse_index, AD_E_INDEX, "the index %lld of a sparse matrix is out of bounds for size %lld")        \
    AD_CHECK(sparse_indptr, AD_E_VALUE,                                                                           \
             "indptr of a sparse matrix must ascend, from 0 or more to at most its %lld entries")                 \
    AD_CHECK(sparse_whole, AD_E_VALUE,                                                                            \
             "indptr of a sparse matrix must begin with 0 and end with the number of its entries, %lld")          \
    AD_CHECK(sparse_sorted, AD_E_VALUE,                                                                           \
             "the columns of row %lld of a sparse matrix do not ascend: sort its indices, and add up those that are " \
             "there twice")                                                                                       \
    AD_CHECK(linalg_definite, AD_E_LINALG, "Matrix is not positive definite")                                     \
    AD_CHECK(linalg_singular, AD_E_LINALG, "Singular matrix")                                                     \
    AD_CHECK(linalg_qr, AD_E_LINALG, "Incorrect argument found while performing QR factorization")                \
    AD_CHECK(linalg_svd, AD_E_LINALG, "SVD did not converge")                                                     \
    AD_CHECK(linalg_eigh, AD_E_LINALG, "Eigenvalues did not converge")                                            \
    AD_CHECK(linalg_lstsq, AD_E_LINALG, "SVD did not converge in Linear Least Squares")

enum {
    AD_CHECK_none,
#define AD_CHECK(name, status, text) AD_CHECK_##name,
    AD_CHECKS(AD_CHECK)
#undef AD_CHECK
};

#ifdef __CUDACC__
/* Device: report once; later reports are dropped. check may be NULL. */
static __device__ inline void ad_cuda_report(ad_check *check, int what, int64_t a, int64_t b, int64_t c) {
    static constexpr int32_t code[] = {0,
#define AD_CHECK(name, status, text) status,
                                       AD_CHECKS(AD_CHECK)
#undef AD_CHECK
    };
    if (!check || atomicCAS(&check->what, 0, what) != 0) return;
    check->value[0] = a;
    check->value[1] = b;
    check->value[2] = c;
    __threadfence_system();
    *(volatile int32_t *)&check->code = code[what];
}
#endif
#endif
