/* GPU memory that the server has exported, mapped into this process. */
#include <string.h>
#include <unistd.h>

#include "client-c/interop/driver.h"
#include "client-c/interop/export.h"

/* Find the device by its id, as the server may number its devices in another way. */
static int find_device_by_id(const char *id, int *ordinal, int *device) {
    int count, status = AD_CUDA(cuDeviceGetCount, &count);
    for (int i = 0; !status && i < count; i++) {
        char own[AD_DEVICE_ID];
        status = AD_CUDA(cuDeviceGet, device, i);
        if (!status) status = ad__driver_name(*device, own);
        if (status) return status;
        *ordinal = i;
        if (strcmp(own, id) == 0) return 0;
    }
    return status ? status : ad__fail(AD_E_UNSUPPORTED, "export: this process does not see the device %s", id);
}

static int map_memory(ad_lease *l, int ordinal) {
    const ad_cuda_access access = {AD_CUDA_ON_DEVICE, ordinal, l->readonly ? AD_CUDA_READ : AD_CUDA_READ_WRITE};
    ad_cuda_allocation handle;
    ad_cuda_pointer at = 0;
    int status = AD_CUDA(cuMemImportFromShareableHandle, &handle, (void *)(intptr_t)l->fd, AD_CUDA_DESCRIPTOR);
    if (status) return status;
    if ((status = AD_CUDA(cuMemAddressReserve, &at, l->size, 0, 0, 0))) goto release;
    if ((status = AD_CUDA(cuMemMap, at, l->size, 0, handle, 0))) goto free_address;
    if ((status = AD_CUDA(cuMemSetAccess, at, l->size, &access, 1))) goto unmap;
    ad__cuda.cuMemRelease(handle); /* the mapping holds a reference to the memory */
    l->base = (void *)(uintptr_t)at;
    return 0;

unmap:
    ad__cuda.cuMemUnmap(at, l->size);
free_address:
    ad__cuda.cuMemAddressFree(at, l->size);
release:
    ad__cuda.cuMemRelease(handle);
    return status;
}

static int make_stream_wait(const ad_lease *l, void *stream) {
    static const unsigned char none[AD_EXPORT_MESSAGE];
    ad_cuda_handle handle;
    void *event;
    if (memcmp(l->event, none, sizeof none) == 0) return 0;
    memcpy(handle.bytes, l->event, sizeof handle.bytes);
    int status = AD_CUDA(cuIpcOpenEventHandle, &event, handle);
    if (status) return status;
    status = AD_CUDA(cuStreamWaitEvent, stream, event, 0);
    ad__cuda.cuEventDestroy_v2(event);
    return status;
}

static void unmap_memory(const ad_lease *l) {
    ad__cuda.cuCtxSynchronize(); /* the device may still use the memory */
    ad__cuda.cuMemUnmap((ad_cuda_pointer)(uintptr_t)l->base, l->size);
    ad__cuda.cuMemAddressFree((ad_cuda_pointer)(uintptr_t)l->base, l->size);
}

int ad__cuda_map(ad_lease *l, void *stream) {
    int ordinal = -1, device, status;
    if ((status = ad__driver_load("export"))) return status;
    if ((status = find_device_by_id(l->id, &ordinal, &device))) return status;
    if ((status = ad__driver_enter(device))) return status;
    status = map_memory(l, ordinal);
    if (!status && (status = make_stream_wait(l, stream))) {
        unmap_memory(l);
        l->base = NULL;
    }
    if (!status) l->device = ordinal;
    ad__driver_leave(device, !status);
    return status;
}

void ad__cuda_unmap(ad_lease *l) {
    int device;
    void *context;
    if (ad__cuda.cuDeviceGet(&device, l->device) || ad__cuda.cuDevicePrimaryCtxRetain(&context, device)) return;
    if (ad__cuda.cuCtxPushCurrent_v2(context) == 0) {
        unmap_memory(l);
        ad__driver_leave(device, false);
    } else {
        ad__cuda.cuDevicePrimaryCtxRelease_v2(device);
    }
    ad__cuda.cuDevicePrimaryCtxRelease_v2(device); /* ad__cuda_map has retained it */
}

int ad__cuda_copy(const ad_lease *l, int ordinal, void *to, const void *from, size_t size) {
    int device, status;
    if (ordinal >= 0 && ordinal != l->device)
        return ad__fail(AD_E_VALUE, "the memory is of GPU %d of this process, and the array lies on GPU %d", ordinal,
                        l->device);
    if ((status = AD_CUDA(cuDeviceGet, &device, l->device))) return status;
    if ((status = ad__driver_enter(device))) return status;
    status = AD_CUDA(cuCtxSynchronize);
    if (!status)
        status = AD_CUDA(cuMemcpyDtoD_v2, (ad_cuda_pointer)(uintptr_t)to, (ad_cuda_pointer)(uintptr_t)from, size);
    if (!status) status = AD_CUDA(cuCtxSynchronize);
    ad__driver_leave(device, false);
    return status;
}
