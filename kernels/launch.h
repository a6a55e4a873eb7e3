/* Launches of users' kernels: what can be known to be wrong before they begin, in words that name it. */
#ifndef AD_KERNELS_LAUNCH_H
#define AD_KERNELS_LAUNCH_H

#include "kernels/backend.h"

/* Of an argument_size: the kernel's parameter may have fewer bytes, and gets the first of the argument's. */
#define AD_LAUNCH_LONGER (1u << 31)

/* The limits of a kernel's launch. */
typedef struct ad_launch_limits {
    const char *name;
    const uint32_t *sizes; /* bytes of each parameter */
    int nparameters;
    int max_threads;     /* of a block */
    int64_t max_dynamic; /* bytes of dynamic shared memory */
} ad_launch_limits;

/* AD_E_VALUE */
int ad_launch_check(const ad_kernel_launch *launch, const ad_launch_limits *kernel, ad_fault *fault);

#endif
