/* The cuda backend's own objects, and what every file of it may use. */
#ifndef AD_KERNELS_CUDA_BACKEND_DEVICE_H
#define AD_KERNELS_CUDA_BACKEND_DEVICE_H

#include <cuda_runtime_api.h>

#include "kernels/backend.h"
#include "kernels/fault.h"
#include "kernels/parts.h"

struct ad_cuda_libraries; /* handles of cuBLAS and the others, made when first needed (libraries.h) */
struct ad_cuda_ring;      /* pinned memory that uploads pass through (transfer.cpp) */
struct ad_cuda_warmer;    /* a thread that loads what is slow to load (warm.cpp) */
struct ad_cuda_fuser;     /* kernels of chains (fuse/cache.cpp) */
struct ad_cuda_part;      /* some of the multiprocessors, and a stream that has those alone (parts.cpp) */
struct ad_cuda_confined;
struct ad_list; /* small operations that are launched together (list/list.h) */

struct ad_device {
    int index;
    int multiprocessors;
    int major, minor;
    ad_cuda_libraries *libraries;
    ad_cuda_ring *ring;
    ad_cuda_warmer *warmer;
    ad_stream *spare;      /* streams that nobody has now */
    ad_compiler *compiler; /* the worker's; or NULL */
    cudaStream_t own;      /* for what belongs to no stream; waited for by whoever uses it */
    int urgent;            /* the highest priority that a stream can have */
    uint64_t peers;        /* bit n: reaches the memory of device n */
    uint64_t granularity;  /* of slabs */
    bool one_address;      /* registered host memory has its own address on the device too */
    bool has_deep_stack;   /* threads have the stack that special functions need (ufunc/launch.cpp) */
    char name[64], id[48]; /* for device_info */
    ad_faults faults;
    ad_cuda_fuser *fuser; /* made with the first chain */
    ad_cuda_part *parts;  /* made when first asked for */
    int lists;            /* most small operations that are launched together; 0: each is launched by itself */
};

struct ad_stream {
    ad_device *device;
    cudaStream_t cuda; /* where operations go now: `whole`, or one with some of the multiprocessors */
    int priority;
    struct cusolverDnContext *solver; /* its handle of cuSOLVER, for `whole`; NULL: not needed yet */
    ad_stream *next;                  /* spare ones */
    cudaStream_t whole;
    ad_cuda_confined *confined; /* streams that leave multiprocessors alone (parts.cpp) */
    cudaEvent_t moved;          /* orders them; NULL: not needed yet */
    int multiprocessors;        /* that operations have now; 0: all of the device's */
    ad_list *list;              /* what was asked for and is not launched yet; NULL: nothing was ever */
    bool listing;               /* the first launch of the operation at hand may go to the list instead */
};

struct ad_event {
    ad_device *device;
    cudaEvent_t cuda;
    bool recorded;
};

/* Status of a CUDA call: 0, or *fault filled with `what` and CUDA's words. Out of memory gives AD_E_MEMORY; an error
 * after which the context cannot be used AD_E_DEVICE_LOST; any other AD_E_DEVICE. */
int ad_cuda_status(cudaError_t error, const char *what, ad_fault *fault);
/* Get the status of the kernel that was just launched, as ad_cuda_status does. */
int ad_cuda_launched(const char *what, ad_fault *fault);
/* Make CUDA calls of this thread go to the device. Costs nothing when they already do. */
int ad_cuda_enter(const ad_device *device, ad_fault *fault);

int ad_cuda_ufunc(ad_stream *stream, const ad_op *op, ad_run *run, ad_fault *fault);
int ad_cuda_reduce(ad_stream *stream, const ad_op *op, ad_run *run, ad_fault *fault);
int ad_cuda_fuse(ad_stream *stream, const ad_chain *chain, ad_run *run, ad_fault *fault);
void ad_cuda_fuser_close(ad_device *device);

/* ---- the rows of the backend's table, by file ---- */

/* device.cpp */
int ad_cuda_devices(int *count, ad_fault *fault);
int ad_cuda_device_open(int index, int threads, ad_compiler *compiler, ad_device **out, ad_fault *fault);
void ad_cuda_device_close(ad_device *device);
void ad_cuda_device_info(ad_device *device, ad_device_info *info);
void ad_cuda_device_plans(ad_device *device, ad_plans *plans);

/* preload.cpp: kernels of this library; load the i-th of them. */
int ad_cuda_kernels_count();
void ad_cuda_kernel_load(int i);
/* warm.cpp */
void ad_cuda_warmer_open(ad_device *device);
void ad_cuda_warmer_close(ad_device *device);

/* slab.cpp */
int ad_cuda_slab_open(ad_device *device, ad_fault *fault); /* part of device_open */
void ad_cuda_slab_forget(ad_device *device);               /* part of device_close */
int ad_cuda_slab_create(ad_device *device, uint64_t size, ad_slab_map *out, ad_fault *fault);
int ad_cuda_slab_attach(ad_device *device, int fd, uint64_t size, ad_slab_map *out, ad_fault *fault);
void ad_cuda_slab_close(ad_device *device, ad_slab_map *slab);
int ad_cuda_slab_create_plain(ad_device *device, uint64_t size, ad_slab_map *out, ad_fault *fault);
int ad_cuda_slab_handle(ad_device *device, const ad_slab_map *slab, uint8_t handle[AD_SLAB_HANDLE], ad_fault *fault);
int ad_cuda_slab_import(ad_device *device, const uint8_t handle[AD_SLAB_HANDLE], ad_slab_map *out, ad_fault *fault);

/* stream.cpp */
int ad_cuda_streams_prepare(ad_device *device, ad_fault *fault); /* for device_open */
void ad_cuda_streams_close(ad_device *device);                   /* for device_close, when all are spare */
int ad_cuda_stream_open(ad_device *device, int priority, ad_stream **out, ad_fault *fault);
void ad_cuda_stream_close(ad_stream *stream);
int ad_cuda_stream_wait(ad_stream *stream, ad_fault *fault);
int ad_cuda_event_open(ad_device *device, bool timed, ad_event **out, ad_fault *fault);
void ad_cuda_event_close(ad_event *event);
int ad_cuda_event_record(ad_event *event, ad_stream *stream, ad_fault *fault);
int ad_cuda_event_done(ad_event *event, ad_fault *fault);
int ad_cuda_event_elapsed(ad_event *from, ad_event *to, float *ms, ad_fault *fault);
int ad_cuda_stream_follow(ad_stream *stream, ad_event *event, ad_fault *fault);
int ad_cuda_check_open(ad_device *device, int n, ad_check **out, ad_fault *fault);
void ad_cuda_check_close(ad_device *device, ad_check *checks);
int ad_cuda_check_fault(const ad_check *check, ad_fault *fault);

/* parts.cpp */
int ad_cuda_device_split(ad_device *device, int wanted, ad_fault *fault);
int ad_cuda_stream_confine(ad_stream *stream, int reserved, ad_fault *fault);
/* Let operations that need the whole device have it: they launch as many blocks as it takes at once, which wait for
 * each other. Costs nothing where the stream has the whole device already. */
int ad_cuda_stream_widen(ad_stream *stream, ad_fault *fault);
void ad_cuda_confined_close(ad_stream *stream); /* for streams_close */
void ad_cuda_parts_close(ad_device *device);    /* for device_close, after the streams */

/* transfer.cpp */
int ad_cuda_ring_open(ad_device *device, ad_fault *fault); /* for device_open */
void ad_cuda_ring_close(ad_device *device);                /* also after a failed open */
int ad_cuda_host_alloc(ad_device *device, uint64_t size, void **out, ad_fault *fault);
void ad_cuda_host_free(ad_device *device, void *memory);
int ad_cuda_host_register(ad_device *device, void *memory, uint64_t size, ad_fault *fault);
void ad_cuda_host_unregister(ad_device *device, void *memory);
int ad_cuda_zero(ad_stream *stream, void *to, uint64_t size, ad_fault *fault);
int ad_cuda_upload(ad_stream *stream, void *to, const void *host, uint64_t size, ad_fault *fault);
int ad_cuda_upload_pinned(ad_stream *stream, void *to, const void *host, uint64_t size, ad_fault *fault);
int ad_cuda_download(ad_stream *stream, void *host, const void *from, uint64_t size, ad_fault *fault);
int ad_cuda_move(ad_stream *stream, void *to, const void *from, uint64_t size, ad_fault *fault);

/* list/list.cpp: launch the stream's list, before anything else is done with the stream. */
int ad_cuda_list_flush(ad_stream *stream, ad_fault *fault);

/* call/call.cu: kernels that the rest of the backend needs. */
/* A copy between any two places that the device reaches; both must be there. size: more than 0, less than 2^31. */
int ad_cuda_copy_small(ad_stream *stream, void *to, const void *from, uint64_t size, ad_fault *fault);
/* Zero memory of any device that this one reaches. size: more than 0. */
int ad_cuda_zero_by_kernel(ad_stream *stream, void *to, uint64_t size, ad_fault *fault);
int ad_cuda_wild(ad_stream *stream, ad_fault *fault); /* for tests: writes where nothing is */
int ad_cuda_warm(ad_device *device, ad_fault *fault); /* so that the first client does not wait for it */

#endif
