/* Running the blocks of a kernel's launch on a thread of the system. */
#ifndef AD_KERNELS_CPU_BACKEND_BLOCK_H
#define AD_KERNELS_CPU_BACKEND_BLOCK_H

#include "kernels/backend.h"
#include "kernels/run/abi.h"

#define AD_BLOCK_THREADS 1024 /* of a block, at most */
#define AD_SHARED_MOST 232448 /* bytes of shared memory that a launch may ask for, as many as a GPU's */

struct ad_cpu_meeting; /* of the blocks of a cooperative launch: launch_cooperative.cpp */
/* Wait until all of this block's threads have come. False: some will never come. */
bool ad_cpu_meet(ad_cpu_meeting *m);

struct ad_cpu_grid {
    const char *name; /* of the kernel */
    void (*run)(void *const *argument, adrun::block *b);
    void *const *argument;
    uint3 blocks, threads;
    unsigned count;          /* threads of a block */
    ad_cpu_meeting *meeting; /* NULL: blocks cannot wait for each other */
};

/* Run block number `index`. AD_E_DEVICE_LOST: the kernel crashed; AD_E_VALUE: its threads wait for each other in vain;
 * AD_E_MEMORY. */
int ad_cpu_block_run(const ad_cpu_grid *grid, uint64_t index, ad_fault *fault);
/* All blocks at once, each on a thread of the system of its own. AD_E_VALUE also: too many. */
int ad_cpu_launch_cooperative(const ad_cpu_grid *grid, uint64_t blocks, ad_run *run, ad_fault *fault);
/* Give back what this thread keeps from one block to the next. */
void ad_cpu_block_rest();
/* From now on what a kernel does that the processor refuses ends its block, not the process. */
void ad_cpu_traps_set();

#endif
