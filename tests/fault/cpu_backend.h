/* The cpu backend, for those of tests that are the same but for some functions. */
#ifndef AD_TESTS_CPU_BACKEND_H
#define AD_TESTS_CPU_BACKEND_H

#include <dlfcn.h>
#include <stddef.h>

#include "kernels/backend.h"

/* NULL: it cannot be loaded. */
static inline const ad_backend *open_cpu_backend(void) {
    void *library = dlopen(CPU_BACKEND, RTLD_NOW | RTLD_LOCAL);
    const ad_backend *(*get)(void) = NULL;
    if (library) *(void **)&get = dlsym(library, "ad_backend_get");
    return get ? get() : NULL;
}

#endif
