/* A backend: the shared object libarrayd-<name>.so behind one table of functions.
 *
 * All calls except `devices` and event_done come from one thread at a time per device, but not always from the same
 * one. The worker's I/O thread executes cheap operations itself, its engine's threads the others
 * (server/worker/engine/engine.h says why). Where operations are complete when they return, long ones of several
 * streams run at the same time. Several threads then call `run`, `fuse` and `launch`, at most one of them for each
 * stream.
 *
 * Every function that can fail returns a status and fills *fault; nothing here exits, aborts or prints. The backend
 * checks nothing about operands that ad__check_op and ad__desc_check have already checked. */
#ifndef AD_KERNELS_BACKEND_H
#define AD_KERNELS_BACKEND_H

#include "kernels/chain.h"
#include "kernels/compile.h"
#include "protocol/op.h"

#ifdef __cplusplus
extern "C" {
#endif

#define AD_BACKEND_VERSION 6
#define AD_SLAB_HANDLE 64 /* bytes: a cudaIpcMemHandle_t */

typedef struct ad_device ad_device; /* one GPU, or the host's processors; owned by whoever opened it */
typedef struct ad_stream ad_stream; /* operations of one stream run in order */
typedef struct ad_event ad_event;   /* a point in a stream's work */

typedef struct ad_device_info {
    char name[64], id[48]; /* product; UUID or the like, unique on the host ("" : none) */
    uint64_t memory, free; /* bytes in all; not in use by anybody now */
    int major, minor;      /* compute capability; 0: none */
    int multiprocessors;   /* or processors */
    uint64_t peers;        /* bit n: this device reaches the memory of device n */
    int runtime, driver;   /* versions of CUDA, 1000 * major + 10 * minor; 0: none */
} ad_device_info;

typedef struct ad_device_module ad_device_module; /* a user's compiled source, loaded on a device */
typedef struct ad_kernel ad_kernel;               /* one of its functions; the module's */

/* The limits and needs of a kernel, as cudaFuncGetAttributes says. */
typedef struct ad_kernel_info {
    int64_t max_threads_per_block, shared_bytes, const_bytes, local_bytes, registers, ptx_version, binary_version,
        cache_mode_ca, max_dynamic_shared_bytes, preferred_shared_carveout;
} ad_kernel_info;

typedef struct ad_kernel_launch {
    const ad_kernel *kernel;
    uint32_t grid[3], block[3], shared; /* shared: bytes of dynamic shared memory */
    void *const *argument;              /* for each parameter, where its value lies */
    const uint32_t *argument_size;      /* bytes of each */
    int narguments;
    bool cooperative; /* blocks run all at once, and may wait for each other */
} ad_kernel_launch;

/* The plans of Fourier transforms that are kept. */
typedef struct ad_plans {
    uint64_t count, most, bytes; /* bytes of the device, about */
} ad_plans;

/* A check: the place where an operation reports, after `run` has returned, an error that only its data tell (an index
 * out of bounds, a singular matrix). It is in memory from check_open. The device writes it at most once, and the host
 * reads it when the stream has passed. All zero: nothing is wrong. */
typedef struct ad_check {
    int32_t code;     /* status, AD_E_..., or 0 */
    int32_t what;     /* the backend's, for check_fault */
    int64_t value[3]; /* the same */
} ad_check;

typedef struct ad_slab_map {
    void *base;    /* device address */
    uint64_t size; /* bytes, rounded up to the backend's granularity */
    int fd;        /* exportable descriptor, owned by the caller */
} ad_slab_map;

/* The engine's services for an operation while it is being enqueued. */
typedef struct ad_run {
    /* Scratch memory on the device until the operation is complete (reused in stream order); NULL: none left (return
     * AD_E_MEMORY). 256-byte aligned, not zeroed. */
    void *(*workspace)(struct ad_run *run, uint64_t size);
    /* Create the buffer of output `index` of an ASK call, whose size only the data decide. Returns its address, also
     * for size 0 a valid pointer; NULL: no memory. */
    void *(*output)(struct ad_run *run, int index, uint64_t size);
    int64_t *values; /* ASK calls: the integers to reply, 8 places; the backend sets nvalues. NULL for others */
    int nvalues;
    /* Set by whoever calls where the stream is asynchronous, else NULL: a check for this operation. The backend sets
     * `checked` when its outcome is still to come. */
    ad_check *check;
    bool checked;
    bool wrote; /* set before the first byte of an output that already existed is changed: an operation that
                   fails with wrote unset has changed nothing */
    /* Not 0 as soon as the operation is to be given up: where operations are complete when they return, `run` and
     * `fuse` look at it often and return AD_E_INTERRUPTED. Other threads write it. NULL: never. */
    const int *cancelled;
} ad_run;

typedef struct ad_backend {
    uint32_t version; /* AD_BACKEND_VERSION */
    const char *name;
    /* Operations are enqueued, and complete when their stream has come so far. False: they are complete when the
     * call returns. */
    bool asynchronous;
    int (*devices)(int *count, ad_fault *fault);
    /* threads: 0: all. compiler: outlives the device; NULL: there is none, so no fusion and no modules. */
    int (*device_open)(int index, int threads, ad_compiler *compiler, ad_device **out, ad_fault *fault);
    void (*device_close)(ad_device *device);
    void (*device_info)(ad_device *device, ad_device_info *info);
    void (*device_plans)(ad_device *device, ad_plans *plans);
    /* Slabs: zero-filled memory with a descriptor that keeps it alive without this process. Every device that is a peer
     * of this one may use it. */
    int (*slab_create)(ad_device *device, uint64_t size, ad_slab_map *out, ad_fault *fault);
    int (*slab_attach)(ad_device *device, int fd, uint64_t size, ad_slab_map *out, ad_fault *fault); /* dup's fd */
    void (*slab_close)(ad_device *device, ad_slab_map *slab); /* unmaps and closes fd */
    /* Slabs for programs that speak only the handles of CUDA's first interprocess calls. One has no descriptor (fd -1),
     * goes with this process, and closing it waits for the device. AD_E_UNSUPPORTED: the backend has none such. */
    int (*slab_create_plain)(ad_device *device, uint64_t size, ad_slab_map *out, ad_fault *fault);
    int (*slab_handle)(ad_device *device, const ad_slab_map *slab, uint8_t handle[AD_SLAB_HANDLE], ad_fault *fault);
    /* Memory of another process by its handle, of which this device must be: all of it from where the handle was taken.
     * Closing it may wait for the device. AD_E_UNSUPPORTED; AD_E_VALUE: it is no handle, or of another device. */
    int (*slab_import)(ad_device *device, const uint8_t handle[AD_SLAB_HANDLE], ad_slab_map *out, ad_fault *fault);
    /* priority: 0 usual; negative: before others (as far as the device has it). */
    int (*stream_open)(ad_device *device, int priority, ad_stream **out, ad_fault *fault);
    void (*stream_close)(ad_stream *stream);
    int (*stream_wait)(ad_stream *stream, ad_fault *fault); /* until all before is complete */
    /* Events. timed: ad_backend.event_elapsed may be asked for it. */
    int (*event_open)(ad_device *device, bool timed, ad_event **out, ad_fault *fault);
    void (*event_close)(ad_event *event);
    int (*event_record)(ad_event *event, ad_stream *stream, ad_fault *fault);
    int (*event_done)(ad_event *event, ad_fault *fault); /* 1: reached (or never recorded), 0: not yet; negative */
    int (*event_elapsed)(ad_event *from, ad_event *to, float *ms, ad_fault *fault); /* both reached */
    int (*stream_follow)(ad_stream *stream, ad_event *event, ad_fault *fault);      /* what comes now waits for event */
    /* Host memory that copies reach without a detour: of the backend, or the caller's own (page-aligned). */
    int (*host_alloc)(ad_device *device, uint64_t size, void **out, ad_fault *fault);
    void (*host_free)(ad_device *device, void *memory);
    int (*host_register)(ad_device *device, void *memory, uint64_t size, ad_fault *fault);
    void (*host_unregister)(ad_device *device, void *memory);
    /* n checks, all zero; freed as one. */
    int (*check_open)(ad_device *device, int n, ad_check **out, ad_fault *fault);
    void (*check_close)(ad_device *device, ad_check *checks);
    int (*check_fault)(const ad_check *check, ad_fault *fault); /* its code, and the text */
    int (*zero)(ad_stream *stream, void *to, uint64_t size, ad_fault *fault);
    /* Copies. upload: from any host memory, which may be used again when it returns. upload_pinned and download: from
     * and to host memory of host_alloc or host_register, which must stay as it is until the stream has passed. move:
     * within and between devices that are peers; source and destination do not overlap. */
    int (*upload)(ad_stream *stream, void *to, const void *host, uint64_t size, ad_fault *fault);
    int (*upload_pinned)(ad_stream *stream, void *to, const void *host, uint64_t size, ad_fault *fault);
    int (*download)(ad_stream *stream, void *host, const void *from, uint64_t size, ad_fault *fault);
    int (*move)(ad_stream *stream, void *to, const void *from, uint64_t size, ad_fault *fault);
    /* Enqueue an operation that passed ad__check_op and whose operands have addresses. Outputs may be the same view as
     * an input of a ufunc; other overlaps never arrive here.
     *
     * Other processes have the memory of some operands, and may write it at any time, also while the operation runs
     * (server/worker/sharing/exports.h, server/worker/sharing/imports.h). So a kernel uses a value that it has checked
     * from a register, or from memory that no client can write, and never reads it again from the operand. Such
     * operands of an operation of call.def come as copies in scratch memory, except those whose `guard` is v. Operands
     * with guard v, and all operands of ufuncs, reductions and chains, come as they are. There the places that the
     * kernel reads and writes, and the ends of its loops, depend on shapes, strides and registers only. Its results may
     * be anything. */
    int (*run)(ad_stream *stream, const ad_op *op, ad_run *run, ad_fault *fault);
    /* Enqueue a chain whose nodes each passed ad__check_op. 1: done. 0: not now (no kernel for it yet, or it would be
     * no faster), and nothing has been enqueued: the caller runs the operations one by one. Never waits for the
     * compiler. */
    int (*fuse)(ad_stream *stream, const ad_chain *chain, ad_run *run, ad_fault *fault);
    /* Users' kernels. module_job: what is to be compiled for this device so that source, options and names can be
     * loaded. Fills target, arch, prelude, own options and headers, and may put something else in the place of source
     * and names: with what outlives the device, or lies in the arena. AD_E_MEMORY, AD_E_UNSUPPORTED. */
    int (*module_job)(ad_device *device, ad_compile_job *job, ad_arena *arena, ad_fault *fault);
    int (*module_open)(ad_device *device, const ad_binary *binary, ad_device_module **out, ad_fault *fault);
    void (*module_close)(ad_device_module *module); /* nothing of it is under way */
    /* name: lowered (where the compiler said so, else as the name expression was), or of an extern "C" function.
     * AD_E_VALUE: there is none. The kernel is the module's. */
    int (*module_kernel)(ad_device_module *module, const char *name, ad_kernel **out, ad_fault *fault);
    int (*module_global)(ad_device_module *module, const char *name, void **address, uint64_t *size, ad_fault *fault);
    int (*kernel_info)(ad_kernel *kernel, ad_kernel_info *out, ad_fault *fault);
    /* The two attributes that can be set; negative: leave as it is. */
    int (*kernel_set)(ad_kernel *kernel, int64_t max_dynamic_shared, int64_t carveout, ad_fault *fault);
    /* Everything in `launch` may go when this returns. AD_E_VALUE: the launch does not fit the kernel or the device;
     * AD_E_DEVICE_LOST: the kernel did something after which this process is not to be trusted. */
    int (*launch)(ad_stream *stream, const ad_kernel_launch *launch, ad_run *run, ad_fault *fault);
} ad_backend;

/* The only symbol a backend exports. */
const ad_backend *ad_backend_get(void);

#ifdef __cplusplus
}
#endif
#endif
