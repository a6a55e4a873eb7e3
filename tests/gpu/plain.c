/* The cuda backend whose slabs have no descriptors (sanitize.py). Below compute-sanitizer's initcheck of CUDA 13.0 the
 * first memset of memory fails once a descriptor has been taken of it. */
#include "tests/fault/copied_backend.h"

const ad_backend *ad_backend_get(void) {
    static ad_backend table;
    if (!open_backend(CUDA_BACKEND, &table)) return NULL;
    table.slab_create = table.slab_create_plain;
    return &table;
}
