/* Memory of a GPU that the server has exported, mapped into this process. The driver is loaded with the first one, by
 * name, and its few types are declared here, so that this library needs nothing of CUDA to be built or run. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "client-c/export.h"

/* ---- as cuda.h has them ---- */

typedef unsigned long long cu_pointer, cu_handle;
typedef struct cu_uuid {
    unsigned char bytes[16];
} cu_uuid;
typedef struct cu_access {
    int type, id; /* the location */
    int flags;
} cu_access;
typedef struct cu_ipc_event {
    unsigned char bytes[AD_EXPORT_MESSAGE];
} cu_ipc_event;
enum { LOCATION_DEVICE = 1, READ_WRITE = 3, POSIX_DESCRIPTOR = 1 };

typedef struct driver {
    int (*cuInit)(unsigned flags);
    int (*cuGetErrorString)(int error, const char **text);
    int (*cuDeviceGetCount)(int *count);
    int (*cuDeviceGet)(int *device, int ordinal);
    int (*cuDeviceGetUuid_v2)(cu_uuid *uuid, int device);
    int (*cuDevicePrimaryCtxRetain)(void **context, int device);
    int (*cuDevicePrimaryCtxRelease_v2)(int device);
    int (*cuCtxPushCurrent_v2)(void *context);
    int (*cuCtxPopCurrent_v2)(void **context);
    int (*cuCtxSynchronize)(void);
    int (*cuMemImportFromShareableHandle)(cu_handle *handle, void *descriptor, int type);
    int (*cuMemRelease)(cu_handle handle);
    int (*cuMemAddressReserve)(cu_pointer *at, size_t size, size_t alignment, cu_pointer wanted, uint64_t flags);
    int (*cuMemAddressFree)(cu_pointer at, size_t size);
    int (*cuMemMap)(cu_pointer at, size_t size, size_t offset, cu_handle handle, uint64_t flags);
    int (*cuMemUnmap)(cu_pointer at, size_t size);
    int (*cuMemSetAccess)(cu_pointer at, size_t size, const cu_access *access, size_t count);
    int (*cuMemcpyDtoD_v2)(cu_pointer to, cu_pointer from, size_t size);
    int (*cuIpcOpenEventHandle)(void **event, cu_ipc_event handle);
    int (*cuStreamWaitEvent)(void *stream, void *event, unsigned flags);
    int (*cuEventDestroy_v2)(void *event);
} driver;

static driver cuda;
static char missing[200]; /* why there is none; "": there is */
static pthread_once_t loaded = PTHREAD_ONCE_INIT;

static void load(void) {
    static const struct {
        const char *name;
        size_t place;
    } functions[] = {
#define FUNCTION(name) {#name, offsetof(driver, name)}
        FUNCTION(cuInit),
        FUNCTION(cuGetErrorString),
        FUNCTION(cuDeviceGetCount),
        FUNCTION(cuDeviceGet),
        FUNCTION(cuDeviceGetUuid_v2),
        FUNCTION(cuDevicePrimaryCtxRetain),
        FUNCTION(cuDevicePrimaryCtxRelease_v2),
        FUNCTION(cuCtxPushCurrent_v2),
        FUNCTION(cuCtxPopCurrent_v2),
        FUNCTION(cuCtxSynchronize),
        FUNCTION(cuMemImportFromShareableHandle),
        FUNCTION(cuMemRelease),
        FUNCTION(cuMemAddressReserve),
        FUNCTION(cuMemAddressFree),
        FUNCTION(cuMemMap),
        FUNCTION(cuMemUnmap),
        FUNCTION(cuMemSetAccess),
        FUNCTION(cuMemcpyDtoD_v2),
        FUNCTION(cuIpcOpenEventHandle),
        FUNCTION(cuStreamWaitEvent),
        FUNCTION(cuEventDestroy_v2),
#undef FUNCTION
    };
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(missing, sizeof missing, "%s", dlerror());
        return;
    }
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *function = dlsym(library, functions[i].name);
        if (!function) {
            snprintf(missing, sizeof missing, "the driver has no %s", functions[i].name);
            return;
        }
        memcpy((char *)&cuda + functions[i].place, &function, sizeof function);
    }
    int error = cuda.cuInit(0);
    if (error) snprintf(missing, sizeof missing, "cuInit: error %d", error);
}

static int failed(int error, const char *what) {
    const char *text = NULL;
    if (!error) return 0;
    if (cuda.cuGetErrorString(error, &text)) text = NULL;
    return ad__fail(error == 2 ? AD_E_MEMORY : AD_E_DEVICE, "export: %s: %s (CUDA error %d)", what,
                    text ? text : "unknown", error);
}
#define CALL(name, ...) failed(cuda.name(__VA_ARGS__), #name)

/* ---- devices ---- */

static void spell(const cu_uuid *uuid, char out[AD_DEVICE_ID]) {
    int at = snprintf(out, AD_DEVICE_ID, "GPU");
    for (int i = 0; i < 16; i++)
        at += snprintf(out + at, AD_DEVICE_ID - (size_t)at, "%s%02x",
                       i == 0 || i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", uuid->bytes[i]);
}

/* The server may count its devices in another way. */
static int find_device(const char *id, int *ordinal, int *device) {
    int count, status = CALL(cuDeviceGetCount, &count);
    for (int i = 0; !status && i < count; i++) {
        cu_uuid uuid;
        char own[AD_DEVICE_ID];
        status = CALL(cuDeviceGet, device, i);
        if (!status) status = CALL(cuDeviceGetUuid_v2, &uuid, *device);
        if (status) return status;
        spell(&uuid, own);
        *ordinal = i;
        if (strcmp(own, id) == 0) return 0;
    }
    return status ? status : ad__fail(AD_E_UNSUPPORTED, "export: this process does not see the device %s", id);
}

/* The context that frameworks use, current on this thread until leave. */
static int enter(int device) {
    void *context;
    int status = CALL(cuDevicePrimaryCtxRetain, &context, device);
    if (status) return status;
    status = CALL(cuCtxPushCurrent_v2, context);
    if (status) cuda.cuDevicePrimaryCtxRelease_v2(device);
    return status;
}

static void leave(int device, bool keep) {
    void *context;
    cuda.cuCtxPopCurrent_v2(&context);
    if (!keep) cuda.cuDevicePrimaryCtxRelease_v2(device);
}

/* ---- memory ---- */

static int map(ad_lease *l, int ordinal) {
    const cu_access access = {LOCATION_DEVICE, ordinal, READ_WRITE};
    cu_handle handle;
    cu_pointer at = 0;
    int status = CALL(cuMemImportFromShareableHandle, &handle, (void *)(intptr_t)l->fd, POSIX_DESCRIPTOR);
    if (status) return status;
    if ((status = CALL(cuMemAddressReserve, &at, l->size, 0, 0, 0))) goto release;
    if ((status = CALL(cuMemMap, at, l->size, 0, handle, 0))) goto free_address;
    if ((status = CALL(cuMemSetAccess, at, l->size, &access, 1))) goto unmap;
    cuda.cuMemRelease(handle); /* the mapping keeps the memory */
    l->base = (void *)(uintptr_t)at;
    return 0;

unmap:
    cuda.cuMemUnmap(at, l->size);
free_address:
    cuda.cuMemAddressFree(at, l->size);
release:
    cuda.cuMemRelease(handle);
    return status;
}

static int follow(const ad_lease *l, void *stream) {
    static const unsigned char none[AD_EXPORT_MESSAGE];
    cu_ipc_event handle;
    void *event;
    if (memcmp(l->event, none, sizeof none) == 0) return 0;
    memcpy(handle.bytes, l->event, sizeof handle.bytes);
    int status = CALL(cuIpcOpenEventHandle, &event, handle);
    if (status) return status;
    status = CALL(cuStreamWaitEvent, stream, event, 0);
    cuda.cuEventDestroy_v2(event);
    return status;
}

static void unmap(const ad_lease *l) {
    cuda.cuCtxSynchronize(); /* nothing may be under way there */
    cuda.cuMemUnmap((cu_pointer)(uintptr_t)l->base, l->size);
    cuda.cuMemAddressFree((cu_pointer)(uintptr_t)l->base, l->size);
}

int ad__cuda_map(ad_lease *l, void *stream) {
    int ordinal = -1, device, status;
    pthread_once(&loaded, load);
    if (*missing) return ad__fail(AD_E_UNSUPPORTED, "export: no CUDA driver in this process: %s", missing);
    if ((status = find_device(l->id, &ordinal, &device))) return status;
    if ((status = enter(device))) return status;
    status = map(l, ordinal);
    if (!status && (status = follow(l, stream))) {
        unmap(l);
        l->base = NULL;
    }
    if (!status) l->device = ordinal;
    leave(device, status == 0);
    return status;
}

void ad__cuda_unmap(ad_lease *l) {
    int device;
    void *context;
    if (cuda.cuDeviceGet(&device, l->device) || cuda.cuDevicePrimaryCtxRetain(&context, device)) return;
    if (cuda.cuCtxPushCurrent_v2(context) == 0) {
        unmap(l);
        leave(device, false);
    } else {
        cuda.cuDevicePrimaryCtxRelease_v2(device);
    }
    cuda.cuDevicePrimaryCtxRelease_v2(device); /* that of ad__cuda_map */
}

int ad__cuda_copy(const ad_lease *l, int ordinal, void *to, const void *from, size_t size) {
    int device, status;
    if (ordinal >= 0 && ordinal != l->device)
        return ad__fail(AD_E_VALUE, "the memory is of GPU %d of this process, and the array lies on GPU %d", ordinal,
                        l->device);
    if ((status = CALL(cuDeviceGet, &device, l->device))) return status;
    if ((status = enter(device))) return status;
    status = CALL(cuCtxSynchronize);
    if (!status) status = CALL(cuMemcpyDtoD_v2, (cu_pointer)(uintptr_t)to, (cu_pointer)(uintptr_t)from, size);
    if (!status) status = CALL(cuCtxSynchronize);
    leave(device, false);
    return status;
}
