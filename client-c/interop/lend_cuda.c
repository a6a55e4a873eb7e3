/* Names by which another process can map GPU memory of this process. */
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "client-c/interop/lend.h"

static ad_cuda_pointer make_pointer(const void *data) { return (ad_cuda_pointer)(uintptr_t)data; }

/* Return an attribute of a pointer; 0: the driver does not know it. */
static uint64_t get_attribute(int which, const void *data) {
    uint64_t value = 0; /* wide enough for any attribute */
    return ad__cuda.cuPointerGetAttribute(&value, which, make_pointer(data)) ? 0 : value;
}

static int find_memory_device(const void *data, int expected, int *ordinal) {
    int status = AD_CUDA(cuPointerGetAttribute, ordinal, AD_CUDA_DEVICE_ORDINAL, make_pointer(data));
    if (status) return status;
    if (get_attribute(AD_CUDA_MEMORY_TYPE, data) != AD_CUDA_DEVICE_MEMORY || get_attribute(AD_CUDA_IS_MANAGED, data))
        return ad__fail(AD_E_UNSUPPORTED, "lend: the memory moves between host and GPU, or is the host's");
    if (expected < 0 || expected == *ordinal) return 0;
    return ad__fail(AD_E_VALUE, "lend: the memory is of GPU %d of this process, not %d", *ordinal, expected);
}

static int check_extent(const ad_place *p, const void *data, size_t size) {
    const uint64_t before = make_pointer(data) - p->base;
    if (before < p->size && size <= p->size - before) return 0;
    return ad__fail(AD_E_UNSUPPORTED, "lend: the memory is of several allocations");
}

/* Export a descriptor of memory of the virtual-memory API; false: it was not made to be shared. */
static bool export_descriptor(const void *data, ad_place *p) {
    ad_cuda_allocation handle;
    if (ad__cuda.cuMemRetainAllocationHandle(&handle, (void *)(uintptr_t)data)) return false;
    int error = ad__cuda.cuMemExportToShareableHandle(&p->fd, handle, AD_CUDA_DESCRIPTOR, 0);
    ad__cuda.cuMemRelease(handle);
    if (error) {
        p->fd = -1;
        return false;
    }
    p->base = get_attribute(AD_CUDA_MAPPING_BASE, data);
    p->size = get_attribute(AD_CUDA_MAPPING_SIZE, data);
    return true;
}

/* Get the handle of memory of cuMemAlloc, which cudaMalloc calls. */
static int export_handle(const void *data, ad_place *p) {
    ad_cuda_handle handle;
    ad_cuda_pointer base = 0;
    size_t size = 0;
    int status = AD_CUDA(cuMemGetAddressRange_v2, &base, &size, make_pointer(data));
    if (status) return status;
    if (ad__cuda.cuIpcGetMemHandle(&handle, base))
        return ad__fail(AD_E_UNSUPPORTED, "lend: what has allocated the memory lets no other process have it");
    p->base = base;
    p->size = size;
    memcpy(p->message, handle.bytes, sizeof p->message);
    return 0;
}

/* Wait for the stream, and find the allocation and its name. The device's context is current. */
static int find_allocation(const void *data, size_t size, void *stream, ad_place *p) {
    int status = stream ? AD_CUDA(cuStreamSynchronize, stream) : AD_CUDA(cuCtxSynchronize);
    if (!status && !export_descriptor(data, p)) status = export_handle(data, p);
    if (!status) status = check_extent(p, data, size);
    if (status && p->fd >= 0) close(p->fd);
    return status;
}

int ad__cuda_find(const void *data, size_t size, int expected, void *stream, ad_place *p) {
    int device, status = ad__driver_load("lend");
    *p = (ad_place){.fd = -1};
    if (!status) status = find_memory_device(data, expected, &p->device);
    if (!status) status = AD_CUDA(cuDeviceGet, &device, p->device);
    if (!status) status = ad__driver_name(device, p->id);
    if (!status) status = ad__driver_enter(device);
    if (status) return status;
    status = find_allocation(data, size, stream, p);
    ad__driver_leave(device, false); /* the context is retained by what has allocated the memory */
    return status;
}
