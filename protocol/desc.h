/* Array descriptions: views, broadcasting, extents. All arithmetic is checked; nothing here trusts its input. */
#ifndef AD_PROTOCOL_DESC_H
#define AD_PROTOCOL_DESC_H

#include "protocol/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The most bytes that the elements of an array may have, even if strides of 0 make many of them one. It is half of
 * NumPy's limit, so that the sum of two sizes fits int64. */
#define AD_MAX_BYTES ((INT64_C(1) << 62) - 1)
/* Count the elements of a shape. AD_E_VALUE with NumPy's wording: more than 32 dimensions, a negative one, or more
 * than AD_MAX_BYTES bytes, where dimensions of 0 are left out, as in NumPy. */
int ad__shape_count(int ndim, const int64_t *shape, int dtype, int64_t *count, ad_fault *fault);
/* Count the elements of an unchecked description; INT64_MAX stands for more. */
int64_t ad__desc_count(const ad_desc *d);
/* Compute row-major byte strides for a shape of checked size. Dimensions of size 1 get 0, so that the extent of a
 * whole buffer's view is the buffer. */
void ad__strides_contiguous(int ndim, const int64_t *shape, int64_t itemsize, int64_t *strides);
/* Copy strides, but for those of dimensions of size 1, which nothing walks: these become 0, as an extent counts each
 * stride at least once. */
void ad__strides_walked(int ndim, const int64_t *shape, const int64_t *strides, int64_t *walked);
/* Tell whether the elements lie row-major (F: column-major) without gaps. Dimensions of size 1 and empty arrays have
 * none. */
bool ad__is_contiguous(const ad_desc *d);
bool ad__is_f_contiguous(const ad_desc *d);
/* Compute the byte range [*low, *high) of its buffer that a view touches, in 128-bit arithmetic. Strides of
 * dimensions of size 1 count as if they were walked; an empty array touches nothing (low == high == offset).
 * AD_E_EXTENT. */
int ad__desc_extent(const ad_desc *d, int64_t *low, int64_t *high, ad_fault *fault);
/* Check an untrusted view against a buffer of size bytes: dimensions, dtype, shape, extent, and alignment of offset
 * and strides. AD_E_EXTENT, AD_E_VALUE, AD_E_TYPE. name begins the message. */
int ad__desc_check(const ad_desc *d, int64_t size, const char *name, ad_fault *fault);
/* Compute the broadcast shape of n operands; scalars have no dimensions. shape has AD_MAX_NDIM places. AD_E_VALUE
 * with NumPy's wording. */
int ad__broadcast(int n, const ad_operand *const *operand, int *ndim, int64_t *shape, ad_fault *fault);
/* Make *out a view of d with a broadcast shape, with strides of 0 where elements repeat; strides has ndim places.
 * AD_E_VALUE. */
int ad__broadcast_to(const ad_desc *d, int ndim, const int64_t *shape, int64_t *strides, ad_desc *out, ad_fault *fault);
/* Compute strides that show the view in another shape of as many elements without a copy. False: there are none. */
bool ad__reshape_strides(const ad_desc *d, int ndim, const int64_t *shape, int64_t *strides);
/* Tell whether the byte ranges of two views of one buffer overlap. Interleaved views count as overlapping. */
bool ad__desc_overlap(const ad_desc *a, const ad_desc *b);
/* Tell whether two views have the same elements in the same order. */
bool ad__desc_same(const ad_desc *a, const ad_desc *b);

#ifdef __cplusplus
}
#endif
#endif
