/* Devices of a worker, each opened on first use. Runner only. */
#ifndef AD_SERVER_WORKER_DEVICE_DEVICES_H
#define AD_SERVER_WORKER_DEVICE_DEVICES_H

#include "server/worker/device/parts.h"
#include "server/worker/memory/memory.h"
#include "server/worker/memory/lru.h"

#define AD_DEVICES 64 /* as many default streams as a session has */

typedef struct ad_gpu {
    int index;
    ad_device *device;        /* NULL: the device is not open */
    char lost[AD_FAULT_TEXT]; /* why the device did not open, and will not for this worker; "": it may */
    ad_device_info info;
    ad_memory memory;
    ad_spill_list spill; /* buffers that could be moved to host memory */
    ad_parts parts;
} ad_gpu;

struct ad_worker;

/* Tell arrayd of a slab, or of its end when fd is negative (memory/memory.h). user: the worker. */
void ad__slab_announce(void *user, const char *principal, uint64_t id, uint64_t size, int fd);
/* Get a device, opening it if needed. NULL with a fault: AD_E_VALUE for an unknown index; AD_E_MEMORY; AD_E_DEVICE: it
 * cannot be used. That ends no worker, and until the next worker it is not tried again, which could take long. */
ad_gpu *ad__gpu_get(struct ad_worker *w, uint64_t index, ad_fault *fault);
/* Read anew what a device has free, and which of the devices that there are it reaches. */
void ad__gpu_measure(const struct ad_worker *w, ad_gpu *g);
/* Close all open devices. */
void ad__gpus_close(struct ad_worker *w);
/* Tell whether kernels on `from` can use the memory of `to`. */
bool ad__gpu_can_reach(const ad_gpu *from, const ad_gpu *to);

#endif
