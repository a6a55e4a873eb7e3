/* The cuda backend whose slabs have no descriptors (sanitize.py): once one has been taken of memory, the first memset
 * there fails below compute-sanitizer's initcheck of CUDA 13.0. */
#include <dlfcn.h>

#include "kernels/backend.h"

const ad_backend *ad_backend_get(void) {
    static ad_backend table;
    void *library = dlopen(CUDA_BACKEND, RTLD_NOW | RTLD_LOCAL);
    const ad_backend *(*get)(void) = 0;
    if (library) *(void **)&get = dlsym(library, "ad_backend_get");
    if (!get) return 0;
    table = *get();
    table.slab_create = table.slab_create_plain;
    return &table;
}
