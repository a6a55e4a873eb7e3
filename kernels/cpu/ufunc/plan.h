/* A ufunc call made ready to run, and the ways to run it. */
#ifndef AD_KERNELS_CPU_UFUNC_PLAN_H
#define AD_KERNELS_CPU_UFUNC_PLAN_H

#include <atomic>

#include "kernels/loop.h"
#include "kernels/cpu/backend/operand.h"

#define AD_BLOCK_BYTES 8192 /* gathered of one operand: all of them stay in the first-level cache */

struct ad_ufunc_plan {
    const ad_cpu_kernels *kernels;
    ad_ufunc_kernel kernel; /* NULL: a copy, operand 1 to operand 0 */
    int nout, nop;          /* nop without the mask, which would be operand nop */
    bool masked;
    uint8_t dtype[AD_LOOP_OPERANDS], size[AD_LOOP_OPERANDS]; /* what the kernel takes */
    bool converts[AD_LOOP_OPERANDS];                         /* the array's type is another */
    uint8_t raw[AD_LOOP_OPERANDS];                           /* the size of its elements */
    ad_cpu_cast cast[AD_LOOP_OPERANDS];
    unsigned scalars, packed; /* bit k: operand k is one element; is gathered into a block */
    int64_t block;            /* elements */
    int64_t grain;
    std::atomic<unsigned> raised;
    ad_loop loop;
    alignas(16) char slot[AD_LOOP_OPERANDS][16];
};

/* Find the kernel of a row for loop (NULL: a copy), and the type that it computes in. float32 serves float16 and
 * bfloat16 where nothing else is there. */
int ad_ufunc_choose(const ad_cpu_kernels *kernels, int row, int loop, ad_ufunc_kernel *kernel);
/* Elements worth waking a thread for. */
int64_t ad_ufunc_grain(int row);

/* Copy n elements of operand k to (gather) or from (spread) the kernel's type, which has stride block_stride. */
static inline void ad_ufunc_gather(const ad_ufunc_plan *p, int k, void *block, int64_t block_stride, const void *from,
                                   int64_t stride, int64_t n) {
    if (p->converts[k]) ad_cpu_cast_run(&p->cast[k], block, block_stride, from, stride, n);
    else p->kernels->cast[p->dtype[k]][p->dtype[k]](block, block_stride, from, stride, n);
}
static inline void ad_ufunc_spread(const ad_ufunc_plan *p, int k, void *to, int64_t stride, const void *block,
                                   int64_t block_stride, int64_t n) {
    if (p->converts[k]) ad_cpu_cast_run(&p->cast[k], to, stride, block, block_stride, n);
    else p->kernels->cast[p->dtype[k]][p->dtype[k]](to, stride, block, block_stride, n);
}

/* n elements from ptr on, along the innermost dimension; where the mask is true, of which the address comes last. */
void ad_ufunc_run_span(const ad_ufunc_plan *p, char *const *ptr, int64_t n);
void ad_ufunc_run_masked(const ad_ufunc_plan *p, char *const *ptr, int64_t n);
/* Loops with a short innermost dimension: rows begin..end of it, many at a time. */
void ad_ufunc_run_short(const ad_ufunc_plan *p, int64_t begin, int64_t end);
/* Loops in which some operand jumps along the innermost dimension (ad_loop_plane): rows begin..end, in tiles. */
void ad_ufunc_run_tiles(const ad_ufunc_plan *p, int64_t begin, int64_t end);

#endif
