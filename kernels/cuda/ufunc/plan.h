/* An elementwise operation made ready for one of the kernels. */
#ifndef AD_KERNELS_CUDA_UFUNC_PLAN_H
#define AD_KERNELS_CUDA_UFUNC_PLAN_H

#include "kernels/cuda/backend/device.h"
#include "kernels/cuda/ufunc/kernels.h"
#include "kernels/loop.h"
#include "protocol/rows_ufunc.h"

/* Operands in the loop's order: outputs, inputs, the mask. Scalars are no part of the loop's addresses: their base is
 * NULL, their strides 0. */
typedef struct ad_ufunc_plan {
    ad_stream *stream;
    ad_fault *fault;
    ad_check *check;
    int row, loop, nout, nop; /* nop without the mask; row: AD_UFUNC_copy also for rows that only move */
    bool masked;
    uint8_t dtype[AD_LOOP_OPERANDS];              /* of the array; of a scalar: as `want` */
    uint8_t want[AD_LOOP_OPERANDS];               /* what the row has there */
    alignas(16) char value[AD_LOOP_OPERANDS][16]; /* scalars as `want`; those of copies as the output's type */
    ad_loop walk;
} ad_ufunc_plan;

/* Convert the 16 bytes at v, on the host. */
void ad_ufunc_convert(int from, int to, void *v);

/* Each launches what it can and gives 1, or 0 if it is not for the plan; negative: *fault is filled. `general` is for
 * every plan. */
int ad_ufunc_try_fast(const ad_ufunc_plan *p);
int ad_ufunc_try_cast(const ad_ufunc_plan *p);
int ad_ufunc_try_transpose(const ad_ufunc_plan *p);
int ad_ufunc_run_general(const ad_ufunc_plan *p);

/* Launch once. argument: of the kernel's own size at least. */
int ad_ufunc_launch(const ad_ufunc_plan *p, const void *kernel, int64_t blocks, void *argument);

static inline int ad_ufunc_size(int dtype) {
    static const uint8_t sizes[] = {
#define AD_DTYPE(id, NAME, name, size, kind, letter) size,
#include "protocol/dtype.def"
#undef AD_DTYPE
    };
    return sizes[dtype];
}

#endif
