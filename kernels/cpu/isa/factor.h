/* Factorisations of many small matrices, one in each lane of vectors, for each instruction set. */
#ifndef AD_KERNELS_CPU_ISA_FACTOR_H
#define AD_KERNELS_CPU_ISA_FACTOR_H

#include <stdint.h>

#define AD_FACTOR_LANES 16 /* at most: those of float32 in 64 bytes */

/* Matrices side by side: where each one begins, and the steps in bytes from row to row and from column to column. */
struct ad_factor_stack {
    char *at[AD_FACTOR_LANES];
    int64_t row, column;
};

/* Elements of a row in scratch memory: an odd number, because rows 4096 bytes apart are in each other's way in the
 * processor's cache. */
static inline int64_t ad_factor_width(int64_t columns) { return columns | 1; }

/* As many matrices at once as there are lanes. Of the last ones there may be fewer; then the other lanes repeat the
 * first one in a and b. Scratch memory is aligned to 64 bytes and has room for n * ad_factor_width(n + k) elements of
 * each lane. False: a pivot of some matrix is zero, no number or so near an end of its type's range that LAPACK's
 * scaling is needed, and nothing has been written. */
struct ad_factor_kernel {
    int lanes;
    /* The triangular factor of n x n matrices, of which one triangle is read. k of the scratch memory is 0. */
    bool (*cholesky)(const ad_factor_stack *a, const ad_factor_stack *out, int count, int n, bool upper, void *scratch);
    /* x of a @ x = b for n x n and n x k matrices; b NULL: the identity. */
    bool (*solve)(const ad_factor_stack *a, const ad_factor_stack *b, const ad_factor_stack *out, int count, int n,
                  int k, void *scratch);
    /* Signs and the logarithms of sizes of n x n matrices' determinants, to `count` places of each. k of the scratch
     * memory is 0. */
    bool (*slogdet)(const ad_factor_stack *a, void *sign, void *size, int count, int n, void *scratch);
};

#endif
