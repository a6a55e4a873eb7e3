/* DLPack's structures, as its own header has them, and the names of its capsules. */
#ifndef AD_PY_DLPACK_H
#define AD_PY_DLPACK_H

#include <stdint.h>

typedef struct dl_tensor {
    void *data;
    int32_t device_type, device_id, ndim;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} dl_tensor;

typedef struct dl_managed {
    dl_tensor tensor;
    void *context;
    void (*deleter)(struct dl_managed *);
} dl_managed;

typedef struct dl_managed_versioned {
    uint32_t major, minor;
    void *context;
    void (*deleter)(struct dl_managed_versioned *);
    uint64_t flags;
    dl_tensor tensor;
} dl_managed_versioned;

enum { DL_CPU = 1, DL_CUDA = 2 };
enum { DL_READ_ONLY = 1 }; /* in flags */
enum { DL_INT, DL_UINT, DL_FLOAT, DL_BFLOAT = 4, DL_COMPLEX, DL_BOOL };

#define AD_PY_DL_PLAIN "dltensor"
#define AD_PY_DL_VERSIONED "dltensor_versioned"

#endif
