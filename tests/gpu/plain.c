/* The cuda backend whose slabs have no descriptors (sanitize.py): once one has been taken of memory, the first memset
 * there fails below compute-sanitizer's initcheck of CUDA 13.0. */
#include "tests/fault/copied_backend.h"

const ad_backend *ad_backend_get(void) {
    static ad_backend table;
    if (!open_backend(CUDA_BACKEND, &table)) return NULL;
    table.slab_create = table.slab_create_plain;
    return &table;
}
