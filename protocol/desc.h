/* Array descriptions: views, broadcasting, extents. All arithmetic is checked; nothing here trusts its input. */
#ifndef AD_PROTOCOL_DESC_H
#define AD_PROTOCOL_DESC_H

#include "protocol/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The most bytes that an array's elements may have, also where strides of 0 make many of them one. It is half of what
 * NumPy allows, so that the sum of two such sizes fits int64. */
#define AD_MAX_BYTES ((INT64_C(1) << 62) - 1)
/* Elements of a shape. AD_E_VALUE with NumPy's wording for more than 32 dimensions, a negative one, or more than
 * AD_MAX_BYTES bytes, for which dimensions of 0 are left out, as NumPy does. */
int ad__shape_count(int ndim, const int64_t *shape, int dtype, int64_t *count, ad_fault *fault);
/* Elements of a description that nobody has checked; INT64_MAX stands for more. */
int64_t ad__desc_count(const ad_desc *d);
/* Row-major byte strides for a shape of checked size; 0 for dimensions of size 1, so that the extent of a whole
 * buffer's view is the buffer. */
void ad__strides_contiguous(int ndim, const int64_t *shape, int64_t itemsize, int64_t *strides);
/* True when the elements lie row-major without gaps (dimensions of size 1 and empty arrays never break that). */
bool ad__is_contiguous(const ad_desc *d);
bool ad__is_f_contiguous(const ad_desc *d);
/* Byte range [*low, *high) that the view touches relative to its buffer, by 128-bit arithmetic; strides of size-1
 * dimensions count as if walked, an empty array touches nothing (low == high == offset). */
int ad__desc_extent(const ad_desc *d, int64_t *low, int64_t *high, ad_fault *fault);
/* The whole check of an untrusted view against a buffer of size bytes: ndim, dtype, shape, extent, alignment of
 * offset and strides to the dtype's alignment. AD_E_EXTENT, AD_E_VALUE, AD_E_TYPE. name is used in the message. */
int ad__desc_check(const ad_desc *d, int64_t size, const char *name, ad_fault *fault);
/* Broadcast shape of n operands (scalars are 0-d). shape has AD_MAX_NDIM places. AD_E_VALUE with NumPy's wording. */
int ad__broadcast(int n, const ad_operand *const *operand, int *ndim, int64_t *shape, ad_fault *fault);
/* *out: d as a view of a broadcast shape (strides 0 where repeated; strides has ndim places). AD_E_VALUE. */
int ad__broadcast_to(const ad_desc *d, int ndim, const int64_t *shape, int64_t *strides, ad_desc *out, ad_fault *fault);
/* Strides that let the view be seen as another shape of the same count without a copy; false when there are none. */
bool ad__reshape_strides(const ad_desc *d, int ndim, const int64_t *shape, int64_t *strides);
/* True when the byte ranges of two views of one buffer meet. Conservative: interleaved views meet. */
bool ad__desc_overlap(const ad_desc *a, const ad_desc *b);
/* True for the very same elements in the same order. */
bool ad__desc_same(const ad_desc *a, const ad_desc *b);

#ifdef __cplusplus
}
#endif
#endif
