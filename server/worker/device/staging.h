/* Pinned host memory through which parts of arrays come from a device, reused for later parts. Runner only. */
#ifndef AD_SERVER_WORKER_DEVICE_STAGING_H
#define AD_SERVER_WORKER_DEVICE_STAGING_H

#include "kernels/backend.h"

#define AD_STAGING_SMALL 4096u
#define AD_STAGING_PART (1u << 20)

struct ad_worker;

typedef struct ad_staging {
    void *small, *parts; /* free lists: each piece begins with the address of the next */
} ad_staging;

/* Take a piece of at least size bytes (at most AD_STAGING_PART). NULL with a fault. */
void *ad__staging_take(struct ad_worker *w, uint64_t size, ad_fault *fault);
/* Return a piece. size: as it was taken. */
void ad__staging_give(struct ad_worker *w, void *memory, uint64_t size);

#endif
