/* Chains on the CPU (kernels/chain.h): a program of steps over blocks of elements that stay in the cache. */
#ifndef AD_KERNELS_CPU_FUSE_CHAIN_H
#define AD_KERNELS_CPU_FUSE_CHAIN_H

#include "kernels/loop.h"
#include "kernels/cpu/backend/operand.h"
#include "kernels/random_call.h"

#define AD_CHAIN_SLOTS 512
#define AD_CHAIN_BLOCK 1024 /* least bytes of a block, and what divides it */

/* Elements in a row that a step reads or makes, all of one type. They are in a block, in an array itself where that
 * lies so, or one element stands for all. */
struct ad_chain_slot {
    uint8_t size;
    bool one;            /* element, at `constant` */
    int16_t block;       /* -1: none */
    int16_t first, last; /* steps: that makes it; that uses it last */
    char *constant;
};

enum ad_chain_kind { AD_STEP_LOAD, AD_STEP_CAST, AD_STEP_RUN, AD_STEP_RANDOM };

/* LOAD: array `operand` to slot[0]. CAST: slot[1] to slot[0]. RUN: the kernel, outputs then inputs. RANDOM: numbers of
 * source `operand` to slot[0]. */
struct ad_chain_step {
    uint8_t kind, nop, scalars;
    bool plain; /* LOAD: no conversion, so the array itself does where its elements are in a row */
    int16_t operand, slot[5];
    ad_ufunc_kernel kernel;
    ad_cpu_cast cast;
};

/* An array: in the order of the program's elements. */
struct ad_chain_array {
    ad_loop_one loop;
    uint8_t dtype, size;
    bool dense;   /* element n follows element n - 1 */
    bool home;    /* output: its slot's elements may be made in the array itself */
    int16_t slot; /* output: what it is filled from */
};

struct ad_chain_program {
    const ad_cpu_kernels *kernels;
    int nsteps, nslots, nblocks, noutputs, ninputs;
    int64_t count, block, block_bytes, grain;
    ad_chain_step step[AD_CHAIN_SLOTS];
    ad_chain_slot slot[AD_CHAIN_SLOTS];
    ad_chain_array output[AD_CHAIN_OUTPUTS + 1], input[AD_CHAIN_INPUTS];
    ad::random_source random[AD_CHAIN_RANDOMS]; /* then elements are in row-major order */
    alignas(16) char constant[AD_CHAIN_SLOTS / 2][16];
    int nconstants;
};

/* False: as a chain it would be no faster. */
bool ad_cpu_chain_suits(const ad_chain *chain);
/* Make the program. Its outputs are the chain's. Where there is an end, `value` comes before them: the operand that the
 * end takes. It has memory of its own, and a type that need not be the value's (NULL: none). */
void ad_cpu_chain_plan(ad_chain_program *p, const ad_chain *chain, const ad_operand *value);
void ad_cpu_chain_run(const ad_chain_program *p);
/* Elements begin..end of the value go to `to`, whatever its data are; by this thread alone. The chain has no outputs.
 */
void ad_cpu_chain_make(const ad_chain_program *p, int64_t begin, int64_t end, void *to);

/* ad_backend.fuse for a chain that suits. 0: no memory. */
int ad_cpu_fuse(ad_stream *stream, const ad_chain *chain, ad_run *run, ad_fault *fault);

#endif
