/* Operands and scalars of an operation as the kernels want them. */
#ifndef AD_KERNELS_CPU_BACKEND_OPERAND_H
#define AD_KERNELS_CPU_BACKEND_OPERAND_H

#include "kernels/backend.h"
#include "kernels/call.h"
#include "kernels/cpu/kernels.h"

/* Conversion from -> through -> to: as if the value had been of type `through` in between. */
typedef struct ad_cpu_cast {
    ad_cast_kernel first, second; /* second NULL: one step is enough */
    int64_t middle_size;
} ad_cpu_cast;
ad_cpu_cast ad_cpu_cast_get(const ad_cpu_kernels *k, int from, int through, int to);
void ad_cpu_cast_run(const ad_cpu_cast *c, void *to, int64_t to_stride, const void *from, int64_t from_stride,
                     int64_t n);

/* Notes in *run that an output which exists already is about to change. */
void ad_cpu_writes(const ad_op *op, ad_run *run);

int ad_cpu_ufunc(ad_stream *stream, const ad_op *op, ad_run *run, ad_fault *fault);
int ad_cpu_reduce(ad_stream *stream, const ad_op *op, ad_run *run, ad_fault *fault);

#endif
