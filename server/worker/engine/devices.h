/* The devices of a worker, opened when they are first used. Only whoever runs the engine calls these. */
#ifndef AD_SERVER_WORKER_ENGINE_DEVICES_H
#define AD_SERVER_WORKER_ENGINE_DEVICES_H

#include "server/worker/memory/memory.h"
#include "server/worker/memory/spill/lru.h"

#define AD_DEVICES 64 /* as many default streams as a session has */

typedef struct ad_gpu {
    int index;
    ad_device *device; /* NULL: not open */
    ad_device_info info;
    ad_memory memory;
    ad_spill_list spill; /* what could be moved to host memory */
} ad_gpu;

struct ad_worker;

/* Tell arrayd of a slab (memory/memory.h); user is the worker. */
void ad__slab_announce(void *user, const char *principal, uint64_t id, uint64_t size, int fd);
/* Device number index; NULL: there is none, or it cannot be used. */
ad_gpu *ad__gpu_get(struct ad_worker *w, uint64_t index, ad_fault *fault);
/* Close all. */
void ad__gpus_close(struct ad_worker *w);
/* May what runs on one use the memory of the other? */
bool ad__gpu_can_reach(const ad_gpu *from, const ad_gpu *to);

#endif
