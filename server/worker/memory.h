/* Device memory: slabs of a principal, cut into blocks for its arrays.
 *
 * A slab belongs to one principal, is never mixed, and is announced to arrayd with its descriptor. Arrays larger than
 * a quarter of a slab have one of their own. Only whoever runs the engine calls these. */
#ifndef AD_SERVER_MEMORY_H
#define AD_SERVER_MEMORY_H

#include "kernels/backend.h"
#include "server/worker/heap.h"

typedef struct ad_slab ad_slab;
typedef struct ad_estate ad_estate;

/* The memory of one worker and device. */
typedef struct ad_memory {
    const ad_backend *backend;
    ad_device *device;
    uint64_t slab_size, limit;
    uint64_t slab_bytes, slabs, used; /* now */
    uint64_t next_id;
    ad_estate *estates;
    /* Tell arrayd: a slab was made (fd is the callee's, a duplicate) or given back (fd -1). */
    void (*announce)(void *user, const char *principal, uint64_t id, uint64_t size, int fd);
    void *user;
} ad_memory;

/* A piece of device memory. */
typedef struct ad_block {
    ad_slab *slab;
    ad_chunk *chunk; /* NULL: the whole slab */
    void *address;
    uint64_t size; /* bytes charged */
    bool clean;    /* known to be all zero when it was handed out */
} ad_block;

/* The estate of a principal: its slabs. Made by its first session and gone with the last. NULL: no memory. */
ad_estate *ad__estate_open(ad_memory *m, const char *principal);
void ad__estate_close(ad_estate *e);
/* A block of size bytes (not 0), at least 64-byte aligned. AD_E_MEMORY, with a fault that says who holds what as far
 * as it is known here; AD_E_DEVICE and others of the backend. */
int ad__memory_take(ad_estate *e, uint64_t size, ad_block *out, ad_fault *fault);
void ad__memory_give(ad_estate *e, ad_block *b);
/* Bytes as people read them: "1.5 GiB". */
void ad__bytes_text(uint64_t n, char out[16]);

#endif
