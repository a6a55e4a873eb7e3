/* The functions of the CUDA driver that this library calls. Private to it. */
#ifndef AD_CLIENT_C_INTEROP_DRIVER_H
#define AD_CLIENT_C_INTEROP_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AD_DEVICE_ID 64

/* ---- types and values of cuda.h ---- */

typedef unsigned long long ad_cuda_pointer, ad_cuda_allocation;
typedef struct ad_cuda_uuid {
    unsigned char bytes[16];
} ad_cuda_uuid;
typedef struct ad_cuda_access {
    int type, id; /* location: a device by its number */
    int flags;
} ad_cuda_access;
typedef struct ad_cuda_handle { /* handle of an event, or of memory */
    unsigned char bytes[64];
} ad_cuda_handle;
enum {
    AD_CUDA_OUT_OF_MEMORY = 2,
    AD_CUDA_ON_DEVICE = 1, /* type of a location */
    AD_CUDA_READ = 1,
    AD_CUDA_READ_WRITE = 3,
    AD_CUDA_DESCRIPTOR = 1, /* type of a handle */
    AD_CUDA_DEVICE_MEMORY = 2,
    AD_CUDA_MEMORY_TYPE = 2, /* from here on: attributes of a pointer */
    AD_CUDA_IS_MANAGED = 8,
    AD_CUDA_DEVICE_ORDINAL = 9,
    AD_CUDA_MAPPING_SIZE = 18,
    AD_CUDA_MAPPING_BASE = 19,
};

#define AD_DRIVER_FUNCTIONS(X)                                                                               \
    X(cuInit, (unsigned flags))                                                                              \
    X(cuGetErrorString, (int error, const char **text))                                                      \
    X(cuDeviceGetCount, (int *count))                                                                        \
    X(cuDeviceGet, (int *device, int ordinal))                                                               \
    X(cuDeviceGetUuid_v2, (ad_cuda_uuid * uuid, int device))                                                 \
    X(cuDevicePrimaryCtxRetain, (void **context, int device))                                                \
    X(cuDevicePrimaryCtxRelease_v2, (int device))                                                            \
    X(cuCtxPushCurrent_v2, (void *context))                                                                  \
    X(cuCtxPopCurrent_v2, (void **context))                                                                  \
    X(cuCtxSynchronize, (void))                                                                              \
    X(cuStreamSynchronize, (void *stream))                                                                   \
    X(cuMemImportFromShareableHandle, (ad_cuda_allocation * handle, void *descriptor, int type))             \
    X(cuMemExportToShareableHandle, (void *descriptor, ad_cuda_allocation handle, int type, uint64_t flags)) \
    X(cuMemRetainAllocationHandle, (ad_cuda_allocation * handle, void *address))                             \
    X(cuMemRelease, (ad_cuda_allocation handle))                                                             \
    X(cuMemAddressReserve,                                                                                   \
      (ad_cuda_pointer * at, size_t size, size_t alignment, ad_cuda_pointer wanted, uint64_t flags))         \
    X(cuMemAddressFree, (ad_cuda_pointer at, size_t size))                                                   \
    X(cuMemMap, (ad_cuda_pointer at, size_t size, size_t offset, ad_cuda_allocation handle, uint64_t flags)) \
    X(cuMemUnmap, (ad_cuda_pointer at, size_t size))                                                         \
    X(cuMemSetAccess, (ad_cuda_pointer at, size_t size, const ad_cuda_access *access, size_t count))         \
    X(cuMemcpyDtoD_v2, (ad_cuda_pointer to, ad_cuda_pointer from, size_t size))                              \
    X(cuMemGetAddressRange_v2, (ad_cuda_pointer * base, size_t * size, ad_cuda_pointer at))                  \
    X(cuPointerGetAttribute, (void *value, int attribute, ad_cuda_pointer at))                               \
    X(cuIpcGetMemHandle, (ad_cuda_handle * handle, ad_cuda_pointer at))                                      \
    X(cuIpcOpenEventHandle, (void **event, ad_cuda_handle handle))                                           \
    X(cuStreamWaitEvent, (void *stream, void *event, unsigned flags))                                        \
    X(cuEventDestroy_v2, (void *event))

typedef struct ad_driver {
#define FUNCTION(name, arguments) int(*name) arguments;
    AD_DRIVER_FUNCTIONS(FUNCTION)
#undef FUNCTION
} ad_driver;
extern ad_driver ad__cuda;

/* ---- driver.c ---- */
/* Load the driver. what: the caller's name for the error message. AD_E_UNSUPPORTED: there is no driver. */
int ad__driver_load(const char *what);
/* Turn an error of the driver into a failure with the call's name; error 0: none. AD_E_MEMORY, AD_E_DEVICE. */
int ad__driver_failed(int error, const char *call);
#define AD_CUDA(name, ...) ad__driver_failed(ad__cuda.name(__VA_ARGS__), #name)
/* Return a device's id, "GPU-...", which is the same in the server. */
int ad__driver_name(int device, char out[AD_DEVICE_ID]);
/* Make the device's primary context, which frameworks use, current on this thread until ad__driver_leave. keep: the
 * context stays retained. */
int ad__driver_enter(int device);
void ad__driver_leave(int device, bool keep);

#endif
