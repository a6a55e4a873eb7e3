/* Selections: places in an array that index arrays name, for gather, scatter and what a mask picks out. */
#ifndef AD_KERNELS_CUDA_CALL_INDEX_INDEX_H
#define AD_KERNELS_CUDA_CALL_INDEX_INDEX_H

#include "kernels/call.h"
#include "kernels/cuda/backend/divide.h"

constexpr int AD_SELECTION_INDICES = 4; /* index arrays that kernels read; more are added up to offsets before */

/* Blocks of elements at `places` places, in two arrays: one has them in order (plain), of the other index arrays give
 * the places (indexed). Unit u is word u % words of the block at place u / words. Strides in bytes. */
struct ad_cuda_selection {
    char *plain, *indexed;
    uint32_t places, words;
    int ndim, inner_ndim, k;
    bool raw; /* the only index array holds byte offsets, or AD_NO_PLACE */
    ad_divisor by_words, shape[AD_MAX_NDIM], inner[AD_MAX_NDIM];
    int64_t plain_stride[AD_MAX_NDIM], inner_plain[AD_MAX_NDIM], inner_indexed[AD_MAX_NDIM];
    struct {
        const char *data;
        int64_t size, step; /* of the axis that it indexes */
        int64_t stride[AD_MAX_NDIM];
    } index[AD_SELECTION_INDICES];
    ad_check *check;
    int *stop; /* device memory, or NULL: not 0 says that an index is out of bounds */
};

constexpr int64_t AD_NO_PLACE = INT64_MIN;

/* The selection of a call, on the host. plain: a block's place in order. both: the elements of a block, in the plain
 * array and in the indexed one. index: k arrays of shape B. */
struct ad_cuda_request {
    int k;
    ad::array index[AD_MAX_NDIM];
    int64_t size[AD_MAX_NDIM], step[AD_MAX_NDIM];
    char *plain, *indexed;
    int itemsize;
    int64_t plain_stride[AD_MAX_NDIM]; /* over B */
    int inner_ndim;
    int64_t inner_shape[AD_MAX_NDIM], inner_plain[AD_MAX_NDIM], inner_indexed[AD_MAX_NDIM];
    const int *stop; /* device memory, or NULL: nothing is to be done when it is not 0 */
};

/* Compute plain[...] = indexed[index...]. An index out of bounds is reported and gives 0. */
int ad_cuda_gather(ad_call *c, const ad_cuda_request *r);
/* Compute indexed[index...] = plain[...], mode as in scatter. known: the indices are in bounds. */
int ad_cuda_scatter(ad_call *c, const ad_cuda_request *r, int dtype, int mode, bool known);

/* Do a part of a scatter that combines: update.cu. */
int ad_cuda_update(ad_call *c, const ad_cuda_selection *s, int dtype, int mode);

#ifdef __CUDACC__
namespace {

__device__ inline bool index_offset(const ad_cuda_selection &s, int a, int64_t v, int64_t *offset) {
    if (s.raw) {
        *offset += v;
        return v != AD_NO_PLACE;
    }
    const int64_t size = s.index[a].size;
    *offset += (v < 0 ? v + size : v) * s.index[a].step;
    return uint64_t(v) + uint64_t(size) < 2 * uint64_t(size);
}

/* Find where the unit's word lies in the plain array and inside its block of the indexed one, and its entry of each
 * index array. */
__device__ inline void locate(const ad_cuda_selection &s, uint32_t unit, int64_t *plain, int64_t *indexed,
                              int64_t (&entry)[AD_SELECTION_INDICES]) {
    uint32_t word, place = s.by_words.divide(unit, &word);
    *plain = *indexed = 0;
#pragma unroll
    for (int a = 0; a < AD_SELECTION_INDICES; a++) entry[a] = 0;
    for (int d = s.inner_ndim - 1; d >= 0; d--) {
        uint32_t at = word;
        if (d > 0) word = s.inner[d].divide(word, &at);
        *plain += at * s.inner_plain[d];
        *indexed += at * s.inner_indexed[d];
    }
    for (int d = s.ndim - 1; d >= 0; d--) {
        uint32_t at = place;
        if (d > 0) place = s.shape[d].divide(place, &at);
        *plain += at * s.plain_stride[d];
#pragma unroll
        for (int a = 0; a < AD_SELECTION_INDICES; a++)
            if (a < s.k) entry[a] += at * s.index[a].stride[d];
    }
}

} // namespace
#endif
#endif
