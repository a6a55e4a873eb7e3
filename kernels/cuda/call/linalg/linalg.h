/* The parts of the decompositions on a GPU: cuSOLVER and cuBLAS on packed matrices by columns, and small kernels. */
#ifndef AD_KERNELS_CUDA_CALL_LINALG_LINALG_H
#define AD_KERNELS_CUDA_CALL_LINALG_LINALG_H

#include "kernels/call_linalg.h"
#include "kernels/cuda/backend/device.h"

/* ---- kernels.cu; all are enqueued on the call's stream. size: of an element, 4, 8 or 16 ---- */

/* Report `what` (AD_CHECK_...) where one of n infos is not 0; sets c->run->checked. */
int ad_linalg_report(ad_call *c, const int *info, int64_t n, int what);
/* Set to[i] = base + i * step, for i < n. */
int ad_linalg_pointers(ad_call *c, void **to, char *base, int64_t step, int64_t n);
/* Zero what is below the diagonal of a matrix by rows (upper), or above it. */
int ad_linalg_triangle(ad_call *c, const ad::array *a, bool upper);
/* Set info[i] to 1, for the matrices of a whose diagonal has a zero. */
int ad_linalg_zeros(ad_call *c, const ad::array *a, int *info);
/* Ones on the diagonals, zero elsewhere. */
int ad_linalg_identity(ad_call *c, const ad::array *a);
/* Pivots from 0 of cuSOLVER's (wide) or cuBLAS's, which count from 1. */
int ad_linalg_pivots(ad_call *c, int64_t *to, const void *from, bool wide, int64_t n);
/* Signs and logarithms of the sizes of determinants, packed, of a's LU factors and of pivots as above. */
int ad_linalg_slogdet(ad_call *c, const ad::array *a, const void *pivots, bool wide, char *sign, char *size);
/* Numbers that are infinite or NaN become 0; then *flag is 1. */
int ad_linalg_clean(ad_call *c, const ad::array *a, int *flag);
/* Make complex eigenvectors, by columns, of those that geev gives for real matrices. Of a conjugate pair it gives the
 * parts of the first one's vector. */
int ad_linalg_join(ad_call *c, const ad::array *to, const char *from, const ad::array *values);
int ad_linalg_conjugate(ad_call *c, const ad::array *a);
/* Make q by rows of reflectors by columns, from geqrf (m by n for each of a stack of q's). */
int ad_linalg_make_q(ad_call *c, const ad::array *q, const char *factors, const char *tau, int64_t n);
/* Column j of m, by columns, divided by s[j]; zero for each s[j] not above rcond * s[0]. *rank: how many are. */
int ad_linalg_divide(ad_call *c, const ad::array *m, const void *s, double rcond, int64_t *rank);

/* ---- svd.cpp ---- */

/* Singular values of the matrices of `in`; u and vh unless NULL, packed, m by m and n by n (full), or reduced. */
int ad_linalg_svd(ad_call *c, const ad::array *in, bool full, ad::array *u, ad::array *s, ad::array *vh, int what);

#endif
