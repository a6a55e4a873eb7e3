/* A backend: the shared object libarrayd-<name>.so behind one table of functions.
 *
 * All calls except `devices` come from one thread at a time per device, but not always from the same one: the worker's
 * I/O thread executes cheap operations itself, its engine thread the others (server/worker/engine.h says why). Every
 * function that can fail returns a status and fills *fault; nothing here exits, aborts or prints. The backend checks
 * nothing about operands that ad__check_op and ad__desc_check have already checked. */
#ifndef AD_KERNELS_BACKEND_H
#define AD_KERNELS_BACKEND_H

#include "protocol/op.h"

#ifdef __cplusplus
extern "C" {
#endif

#define AD_BACKEND_VERSION 1

typedef struct ad_device ad_device; /* one GPU, or the host's processors; owned by whoever opened it */
typedef struct ad_stream ad_stream; /* operations of one stream run in order */

typedef struct ad_device_info {
    char name[64];
    uint64_t memory; /* bytes in all */
} ad_device_info;

typedef struct ad_slab_map {
    void *base;    /* device address */
    uint64_t size; /* bytes, rounded up to the backend's granularity */
    int fd;        /* exportable descriptor, owned by the caller */
} ad_slab_map;

/* What an operation may ask of the engine while it is being enqueued. */
typedef struct ad_run {
    /* Scratch memory on the device until the operation is complete; NULL: none left (return AD_E_MEMORY). 256-byte
     * aligned, not zeroed. */
    void *(*workspace)(struct ad_run *run, uint64_t size);
    /* For output `index` of an ASK call, whose size only the data decide: create its buffer of `size` bytes and give
     * its address (a valid pointer also for size 0); NULL: no memory. */
    void *(*output)(struct ad_run *run, int index, uint64_t size);
    int64_t *values; /* ASK calls: the integers to reply, 8 places; the backend sets nvalues. NULL for others */
    int nvalues;
    bool wrote;      /* set before the first byte of an output that already existed is changed: an operation that
                        fails with wrote unset has changed nothing */
} ad_run;

typedef struct ad_backend {
    uint32_t version; /* AD_BACKEND_VERSION */
    const char *name;
    int (*devices)(int *count, ad_fault *fault);
    int (*device_open)(int index, int threads /* 0: all */, ad_device **out, ad_fault *fault);
    void (*device_close)(ad_device *device);
    void (*device_info)(ad_device *device, ad_device_info *info);
    /* Slabs: zero-filled memory with a descriptor that keeps it alive without this process. */
    int (*slab_create)(ad_device *device, uint64_t size, ad_slab_map *out, ad_fault *fault);
    int (*slab_attach)(ad_device *device, int fd, uint64_t size, ad_slab_map *out, ad_fault *fault); /* dup's fd */
    void (*slab_close)(ad_device *device, ad_slab_map *slab); /* unmaps and closes fd */
    int (*stream_open)(ad_device *device, int priority, ad_stream **out, ad_fault *fault);
    void (*stream_close)(ad_stream *stream);
    int (*stream_wait)(ad_stream *stream, ad_fault *fault); /* until all before is complete */
    int (*zero)(ad_stream *stream, void *to, uint64_t size, ad_fault *fault);
    int (*upload)(ad_stream *stream, void *to, const void *host, uint64_t size, ad_fault *fault);
    int (*download)(ad_stream *stream, void *host, const void *from, uint64_t size, ad_fault *fault);
    /* Enqueue an operation that passed ad__check_op and whose operands have addresses. Outputs may be the same view
     * as an input of a ufunc; other overlaps never arrive here. */
    int (*run)(ad_stream *stream, const ad_op *op, ad_run *run, ad_fault *fault);
} ad_backend;

/* The only symbol a backend exports. */
const ad_backend *ad_backend_get(void);

#ifdef __cplusplus
}
#endif
#endif
