/* Whether a compiled module has variables: what its kernels find there the next time is what the last ones left. */
#ifndef AD_SERVER_WORKER_MODULES_VARIABLES_H
#define AD_SERVER_WORKER_MODULES_VARIABLES_H

#include "kernels/compile.h"

typedef enum ad_variables {
    AD_VARIABLES_NONE,
    AD_VARIABLES_CONSTANT, /* which only clients can change */
    AD_VARIABLES_ANY       /* or nobody knows */
} ad_variables;

/* Of a cubin, or a shared object for the host. What the compiler has put there by itself does not count. */
ad_variables ad__module_variables(ad_compile_target target, const uint8_t *elf, size_t size);

#endif
