/* The steps of sort and argsort, and partition. Rows of n elements each lie one behind the other; all addresses are the device's. */
#ifndef AD_KERNELS_CUDA_CALL_SORT_SORT_H
#define AD_KERNELS_CUDA_CALL_SORT_SORT_H

#include <cuda_runtime_api.h>

#include "kernels/call.h"

/* ---- keys (keys.cu) ---- Keys are those of call_order.h. They have 32 bits for real types of up to 4 bytes, and 64
 * for those of 8 and for complex64. complex128 has two keys of 64 bits, of which the first counts more. */

enum { AD_KEYS_VALUES, AD_KEYS_EQUAL /* one for both zeros */, AD_KEYS_SECOND /* as that, of a complex128 */ };
inline int ad_cuda_key_size(int dtype) { return ad::itemsize(dtype) > 4 ? 8 : 4; }
int ad_cuda_keys(ad_call *c, int dtype, int which, const char *x, int64_t n, void *keys);
int ad_cuda_from_keys(ad_call *c, int dtype, const void *keys, int64_t n, char *out);
/* Copy uint16, uint32 and uint64 as the signed type, int8 and bool as uint8, in the same order; and back. */
int ad_cuda_carry(ad_call *c, int dtype, const char *x, int64_t n, char *out, bool back);
int ad_cuda_count_up(ad_call *c, uint32_t *to, int64_t n, int64_t start);
/* Compute to[i] = first + from[i]. */
int ad_cuda_widen(ad_call *c, const uint32_t *from, int64_t n, int64_t first, int64_t *to);
/* Compute to[r][i] = from[r][index[r][i]] over rows of length n. */
int ad_cuda_pick(ad_call *c, int size, const char *from, const uint32_t *index, int64_t rows, int64_t n, char *to);

/* ---- one row by radix (call_sort_radix_*.cu) ---- */

constexpr int64_t AD_RADIX_MOST = (int64_t(1) << 31) - (1 << 20); /* elements */

/* A sort by radix. memory NULL: it only says how much is wanted. */
typedef cudaError_t ad_radix_values(void *memory, size_t *size, const char *in, char *out, int n, cudaStream_t stream);
ad_radix_values ad_cuda_radix_uint8, ad_cuda_radix_int16, ad_cuda_radix_int32, ad_cuda_radix_int64,
    ad_cuda_radix_float16, ad_cuda_radix_bfloat16, ad_cuda_radix_float32, ad_cuda_radix_float64;

/* Two buffers each for keys and indices; *at: which of them has the data, before and after. Bits from `end` on are 0.
 */
struct ad_radix_pairs {
    void *keys[2];
    uint32_t *index[2];
    int at, end;
};
cudaError_t ad_cuda_radix_pairs32(void *memory, size_t *size, ad_radix_pairs *p, int n, cudaStream_t stream);
cudaError_t ad_cuda_radix_pairs64(void *memory, size_t *size, ad_radix_pairs *p, int n, cudaStream_t stream);

/* ---- rows by merging (merge.cu) ---- */

constexpr int AD_MERGE_TILE = 4352; /* elements that one block sorts */

/* Keys of rows, with an index each (index[0] not NULL; keys are AD_KEYS_EQUAL then) or without (AD_KEYS_VALUES, of
 * which -0.0 and 0.0 are taken for equal). Two buffers each, of which `at` has the data before and after. */
struct ad_merge {
    void *keys[2];
    uint32_t *index[2];
    int at, dtype;
    int64_t rows, n;
};
int ad_cuda_sort_tiles(ad_call *c, ad_merge *m, bool count_up); /* count_up: the indices are still to be made */
/* Runs of `run` elements, a multiple of AD_MERGE_TILE, into whole rows. */
int ad_cuda_merge_runs(ad_call *c, ad_merge *m, int64_t run);

/* ---- partition of long rows (select.cu) ---- */

constexpr int64_t AD_SELECT_LEAST = 1 << 16, AD_SELECT_MOST = UINT32_MAX; /* elements of a row */

/* Rows of a real type to partition at kth: into `out`, whose elements are int64 with `indices`. */
struct ad_selection {
    int dtype;
    bool indices;
    const char *x;
    char *out;
    int64_t rows, n, kth;
};
int ad_cuda_select(ad_call *c, const ad_selection *s);

#endif
