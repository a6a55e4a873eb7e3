/* Plans of reductions over their arrays: dimensions, threads and blocks. */
#ifndef AD_KERNELS_CUDA_REDUCE_PLAN_H
#define AD_KERNELS_CUDA_REDUCE_PLAN_H

#include "kernels/call.h"
#include "kernels/cuda/reduce/reduce.h"

/* Arrays of a reduction. mask: of x's shape (strides may be 0), data NULL for none; out: of the kept axes. */
struct ad_fold_arrays {
    ad::array x, mask, out;
    uint64_t axes; /* of x, that are reduced */
};

/* Fill in f's addresses, dimensions and counts. ordered: elements are taken in row-major order. False: there are more
 * dimensions than a kernel takes. */
bool ad_fold_dimensions(ad_fold *f, const ad_fold_arrays *a, bool ordered);
/* Choose how the elements are best read, of the ways (AD_FOLD_UNIT ...) that `has` has a bit for. f is filled in for
 * it. */
int ad_fold_way(ad_fold *f, unsigned has, int64_t itemsize);
/* Tell whether AD_FOLD_MASKED can read the elements and their mask. */
bool ad_fold_masks(const ad_fold *f, int64_t itemsize);
/* Divide the work among the threads of a block, and blocks. multiprocessors: of the device. */
void ad_fold_divide(ad_fold *f, int way, int multiprocessors);

/* Scratch memory for what the blocks of a group leave to its last one. AD_E_MEMORY. */
int ad_fold_scratch(ad_call *c, ad_fold *f, int64_t groups, int state);

/* A reduction whose input is computed as it is read (fuse_reduce.cpp): everything of it but the kernel. Addresses of
 * its elements are offsets into a row-major array. */
struct ad_fold_layout {
    ad_fold fold;
    int family, way, input, loop, state; /* state: bytes of a thread */
    int64_t groups;
};
/* False: there is no such reduction. Needs no scratch memory yet. */
bool ad_fold_lay(ad_call *c, ad_fold_layout *to);

/* The dimensions of a walk over input and output. False: there are too many. */
bool ad_fold_axes(const ad::walk<2> *from, ad_fold_axis *to, uint8_t *n);
/* `by` places of the axis become one. */
void ad_fold_shrink(ad_fold_axis *axis, int64_t by);
/* A number that no operation had before, nor one of an earlier process. */
uint64_t ad_fold_tag(void);

#endif
