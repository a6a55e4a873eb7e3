/* Variables of a compiled module: what its kernels leave there, its next kernels find. */
#ifndef AD_SERVER_WORKER_MODULES_VARIABLES_H
#define AD_SERVER_WORKER_MODULES_VARIABLES_H

#include "kernels/compile.h"

typedef enum ad_variables {
    AD_VARIABLES_NONE,
    AD_VARIABLES_CONSTANT, /* only clients can change them */
    AD_VARIABLES_ANY       /* kernels may change them, or that is unknown */
} ad_variables;

/* Classify the variables of a cubin, or of a shared object for the host. Parts that the compiler adds itself do not
 * count. */
ad_variables ad__module_variables(ad_compile_target target, const uint8_t *elf, size_t size);

#endif
