/* Another backend, for those of tests that are the same but for some functions. */
#ifndef AD_TESTS_COPIED_BACKEND_H
#define AD_TESTS_COPIED_BACKEND_H

#include <dlfcn.h>
#include <stddef.h>

#include "kernels/backend.h"

/* The backend in that library, of which table becomes a copy. NULL: it cannot be loaded. */
static inline const ad_backend *open_backend(const char *library, ad_backend *table) {
    void *opened = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    const ad_backend *(*get)(void) = NULL, *backend;
    if (opened) *(void **)&get = dlsym(opened, "ad_backend_get");
    if (!get || !(backend = get())) return NULL;
    *table = *backend;
    return backend;
}

#endif
