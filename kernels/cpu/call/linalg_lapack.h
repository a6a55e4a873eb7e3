/* LAPACK's functions by type, on packed matrices by columns, which return its info; and BLAS's solvers of
 * triangular systems, on matrices by rows. */
#ifndef AD_KERNELS_CPU_CALL_LINALG_LAPACK_H
#define AD_KERNELS_CPU_CALL_LINALG_LAPACK_H

#include <cblas.h>
#include <lapacke.h>

#include "kernels/types.h"

/* Scratch memory of the functions that need some. Sizes in elements; -1: to be asked for. */
template <class T> struct ad_lapack_work {
    T *work;
    ad::real_t<T> *rwork; /* complex types only */
    int *iwork;
    int lwork, lrwork, liwork;
};

template <class T> struct ad_lapack;

/* Functions of LAPACK whose real and complex versions have the same arguments. */
#define AD_LAPACK_SAME(T, C, x, glq)                                                                                  \
    using work = ad_lapack_work<T>;                                                                                   \
    static C *in(T *a) { return reinterpret_cast<C *>(a); }                                                           \
    static int potrf(char uplo, int n, T *a) { return LAPACKE_##x##potrf_work(LAPACK_COL_MAJOR, uplo, n, in(a), n); } \
    static int getrf(int m, int n, T *a, int *pivots) {                                                               \
        return LAPACKE_##x##getrf_work(LAPACK_COL_MAJOR, m, n, in(a), m, pivots);                                     \
    }                                                                                                                 \
    static int getrs(int n, int k, T *a, int *pivots, T *b) {                                                         \
        return LAPACKE_##x##getrs_work(LAPACK_COL_MAJOR, 'N', n, k, in(a), n, pivots, in(b), n);                      \
    }                                                                                                                 \
    static int getri(int n, T *a, int *pivots, const work &w) {                                                       \
        return LAPACKE_##x##getri_work(LAPACK_COL_MAJOR, n, in(a), n, pivots, in(w.work), w.lwork);                   \
    }                                                                                                                 \
    static int gelqf(int m, int n, T *a, T *tau, const work &w) {                                                     \
        return LAPACKE_##x##gelqf_work(LAPACK_COL_MAJOR, m, n, in(a), m, in(tau), in(w.work), w.lwork);               \
    }                                                                                                                 \
    static int make_q(int m, int n, int k, T *a, T *tau, const work &w) {                                             \
        return LAPACKE_##x##glq##_work(LAPACK_COL_MAJOR, m, n, k, in(a), m, in(tau), in(w.work), w.lwork);            \
    }

/* Solve a triangular system, transposed or not, with right sides by rows. A single one is a vector: trsv does not pack
 * the triangle as trsm does. BLAS takes real factors by value, and complex ones by address. */
#define AD_SOLVE_TRIANGLE(T, x, factor)                                                                              \
    static void solve_triangle(CBLAS_UPLO triangle, CBLAS_TRANSPOSE transpose, CBLAS_DIAG diagonal, int n, int k,    \
                               const T *a, T *b) {                                                                   \
        const T one = T(1);                                                                                          \
        if (k == 1) cblas_##x##trsv(CblasRowMajor, triangle, transpose, diagonal, n, a, n, b, 1);                    \
        else cblas_##x##trsm(CblasRowMajor, CblasLeft, triangle, transpose, diagonal, n, k, factor one, a, n, b, k); \
    }
#define AD_BY_VALUE
#define AD_BY_ADDRESS &

#define AD_LAPACK_REAL(T, x)                                                                                         \
    template <> struct ad_lapack<T> {                                                                                \
        AD_LAPACK_SAME(T, T, x, orglq)                                                                               \
        AD_SOLVE_TRIANGLE(T, x, AD_BY_VALUE)                                                                         \
        static int gesdd(char job, int m, int n, T *a, T *s, T *u, T *vt, int ldvt, const work &w) {                 \
            return LAPACKE_##x##gesdd_work(LAPACK_COL_MAJOR, job, m, n, a, m, s, u, m, vt, ldvt, w.work, w.lwork,    \
                                           w.iwork);                                                                 \
        }                                                                                                            \
        static int eigh(char job, char uplo, int n, T *a, T *values, const work &w) {                                \
            return LAPACKE_##x##syevd_work(LAPACK_COL_MAJOR, job, uplo, n, a, n, values, w.work, w.lwork, w.iwork,   \
                                           w.liwork);                                                                \
        }                                                                                                            \
        /* rwork takes the real and the imaginary parts of the eigenvalues. */                                       \
        static int geev(char job, int n, T *a, T *vectors, const work &w) {                                          \
            return LAPACKE_##x##geev_work(LAPACK_COL_MAJOR, 'N', job, n, a, n, w.rwork, w.rwork + n, nullptr, n,     \
                                          vectors, n, w.work, w.lwork);                                              \
        }                                                                                                            \
        static int gelsd(int m, int n, int k, T *a, T *b, int ldb, T *s, T rcond, int *rank, const work &w) {        \
            return LAPACKE_##x##gelsd_work(LAPACK_COL_MAJOR, m, n, k, a, m, b, ldb, s, rcond, rank, w.work, w.lwork, \
                                           w.iwork);                                                                 \
        }                                                                                                            \
    };

#define AD_LAPACK_COMPLEX(R, C, x)                                                                                \
    template <> struct ad_lapack<ad::complex<R>> {                                                                \
        using T = ad::complex<R>;                                                                                 \
        AD_LAPACK_SAME(T, C, x, unglq)                                                                            \
        AD_SOLVE_TRIANGLE(T, x, AD_BY_ADDRESS)                                                                    \
        static int gesdd(char job, int m, int n, T *a, R *s, T *u, T *vt, int ldvt, const work &w) {              \
            return LAPACKE_##x##gesdd_work(LAPACK_COL_MAJOR, job, m, n, in(a), m, s, in(u), m, in(vt), ldvt,      \
                                           in(w.work), w.lwork, w.rwork, w.iwork);                                \
        }                                                                                                         \
        static int eigh(char job, char uplo, int n, T *a, R *values, const work &w) {                             \
            return LAPACKE_##x##heevd_work(LAPACK_COL_MAJOR, job, uplo, n, in(a), n, values, in(w.work), w.lwork, \
                                           w.rwork, w.lrwork, w.iwork, w.liwork);                                 \
        }                                                                                                         \
        static int geev(char job, int n, T *a, T *values, T *vectors, const work &w) {                            \
            return LAPACKE_##x##geev_work(LAPACK_COL_MAJOR, 'N', job, n, in(a), n, in(values), nullptr, n,        \
                                          in(vectors), n, in(w.work), w.lwork, w.rwork);                          \
        }                                                                                                         \
        static int gelsd(int m, int n, int k, T *a, T *b, int ldb, R *s, R rcond, int *rank, const work &w) {     \
            return LAPACKE_##x##gelsd_work(LAPACK_COL_MAJOR, m, n, k, in(a), m, in(b), ldb, s, rcond, rank,       \
                                           in(w.work), w.lwork, w.rwork, w.iwork);                                \
        }                                                                                                         \
    };

AD_LAPACK_REAL(float, s)
AD_LAPACK_REAL(double, d)
AD_LAPACK_COMPLEX(float, lapack_complex_float, c)
AD_LAPACK_COMPLEX(double, lapack_complex_double, z)

#undef AD_LAPACK_SAME
#undef AD_LAPACK_REAL
#undef AD_LAPACK_COMPLEX
#endif
