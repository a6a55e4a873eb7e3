/* Slabs of the cuda backend: memory of the device with a descriptor that keeps it alive and that another process can
 * map. The device that made it and all its peers have it at the same address. Plain ones are cudaMalloc's, the only
 * memory that has a cudaIpcMemHandle_t; borrowed ones are plain memory of another process, which owns it. */
#include <errno.h>
#include <fcntl.h>
#include <mutex>
#include <new>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kernels/cuda/backend/device.h"
#include "kernels/cuda/backend/driver.h"

namespace {

enum kind { SHAREABLE, PLAIN, BORROWED };

/* A mapping, so that a device that is opened later is let in as well. */
struct mapping {
    CUdeviceptr base;
    uint64_t size;
    int device;
    enum kind kind;
    mapping *next;
};

/* Smaller pieces may be cut out of a block that has others in it, all of which a handle would show. */
constexpr uint64_t PLAIN_GRAIN = 2u << 20;

std::mutex lock; /* of both */
mapping *mappings;
uint64_t opened; /* bit n: device n */

CUmemAllocationProp properties_of(const ad_device *device) {
    CUmemAllocationProp p = {};
    p.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    p.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    p.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    p.location.id = device->index;
    return p;
}

/* All plain memory of a device is let out at once, and for good. */
int grant_plain(int owner, int device, ad_fault *fault) {
    int before = 0;
    if (device == owner) return 0;
    int status = ad_cuda_status(cudaGetDevice(&before), "cudaGetDevice", fault);
    if (status || (status = ad_cuda_status(cudaSetDevice(device), "cudaSetDevice", fault))) return status;
    cudaError_t error = cudaDeviceEnablePeerAccess(owner, 0);
    if (error == cudaErrorPeerAccessAlreadyEnabled) {
        cudaGetLastError();
        error = cudaSuccess;
    }
    status = ad_cuda_status(error, "cudaDeviceEnablePeerAccess", fault);
    cudaSetDevice(before);
    return status;
}

int grant(const mapping *m, int device, ad_fault *fault) {
    if (m->kind != SHAREABLE) return grant_plain(m->device, device, fault);
    CUmemAccessDesc access = {};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.location.id = device;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    return ad_cuda_driver_status(ad_cuda_driver_get()->cuMemSetAccess(m->base, m->size, &access, 1), "cuMemSetAccess",
                                 fault);
}

int size_status(const char *what, uint64_t size, CUresult result, ad_fault *fault) {
    char text[64];
    snprintf(text, sizeof text, "a slab of %llu bytes: %s", (unsigned long long)size, what);
    return ad_cuda_driver_status(result, text, fault);
}

int round_up(uint64_t grain, uint64_t size, uint64_t *rounded, ad_fault *fault) {
    if (size == 0) size = 1;
    if (size > uint64_t(INT64_MAX) - grain)
        return ad__fault(fault, AD_E_MEMORY, "a slab of %llu bytes is larger than any memory",
                         (unsigned long long)size);
    *rounded = (size + grain - 1) / grain * grain;
    return 0;
}

/* Let the device and its peers in, and remember it. The lock is held. */
int let_in(const ad_device *device, mapping *m, ad_fault *fault) {
    int status = grant(m, device->index, fault);
    for (int other = 0; other < 64 && !status; other++)
        if ((device->peers & opened) >> other & 1) status = grant(m, other, fault);
    if (status) return status;
    m->next = mappings;
    mappings = m;
    return 0;
}

/* Map the allocation for the device and its peers. */
int map(const ad_device *device, CUmemGenericAllocationHandle handle, uint64_t size, mapping **out, ad_fault *fault) {
    const ad_cuda_driver *d = ad_cuda_driver_get();
    mapping *m = new (std::nothrow) mapping{0, size, device->index, SHAREABLE, nullptr};
    if (!m) return ad__fault(fault, AD_E_MEMORY, "out of memory");
    std::lock_guard<std::mutex> hold(lock);
    int status = size_status("cuMemAddressReserve", size, d->cuMemAddressReserve(&m->base, size, 0, 0, 0), fault);
    if (status) goto free_mapping;
    if ((status = size_status("cuMemMap", size, d->cuMemMap(m->base, size, 0, handle, 0), fault))) goto free_address;
    if ((status = let_in(device, m, fault))) goto unmap;
    *out = m;
    return 0;

unmap:
    d->cuMemUnmap(m->base, size);
free_address:
    d->cuMemAddressFree(m->base, size);
free_mapping:
    delete m;
    return status;
}

void unmap(CUdeviceptr base) {
    const ad_cuda_driver *d = ad_cuda_driver_get();
    std::lock_guard<std::mutex> hold(lock);
    for (mapping **at = &mappings; *at; at = &(*at)->next) {
        mapping *m = *at;
        if (m->base != base) continue;
        *at = m->next;
        void *memory = reinterpret_cast<void *>(m->base);
        if (m->kind == PLAIN) {
            cudaFree(memory);
        } else if (m->kind == BORROWED) {
            cudaIpcCloseMemHandle(memory);
        } else {
            d->cuMemUnmap(m->base, m->size);
            d->cuMemAddressFree(m->base, m->size);
        }
        delete m;
        return;
    }
}

/* Clear memory, so that nobody sees what another user has freed. */
int clear(const ad_device *device, const mapping *m, ad_fault *fault) {
    int status = ad_cuda_status(cudaMemsetAsync(reinterpret_cast<void *>(m->base), 0, m->size, device->own),
                                "zeroing a slab", fault);
    return status ? status : ad_cuda_status(cudaStreamSynchronize(device->own), "zeroing a slab", fault);
}

void fill_in(const mapping *m, int fd, ad_slab_map *out) {
    out->base = reinterpret_cast<void *>(m->base);
    out->size = m->size;
    out->fd = fd;
}

} // namespace

int ad_cuda_slab_open(ad_device *device, ad_fault *fault) {
    CUmemAllocationProp p = properties_of(device);
    size_t granularity = 0;
    int status = ad_cuda_driver_status(
        ad_cuda_driver_get()->cuMemGetAllocationGranularity(&granularity, &p, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED),
        "cuMemGetAllocationGranularity", fault);
    if (status) return status;
    device->granularity = granularity;
    std::lock_guard<std::mutex> hold(lock);
    for (const mapping *m = mappings; m; m = m->next)
        if (device->peers >> m->device & 1 && (status = grant(m, device->index, fault))) return status;
    opened |= uint64_t(1) << device->index;
    return 0;
}

void ad_cuda_slab_forget(ad_device *device) {
    std::lock_guard<std::mutex> hold(lock);
    opened &= ~(uint64_t(1) << device->index);
}

int ad_cuda_slab_create(ad_device *device, uint64_t size, ad_slab_map *out, ad_fault *fault) {
    const ad_cuda_driver *d = ad_cuda_driver_get();
    CUmemAllocationProp p = properties_of(device);
    CUmemGenericAllocationHandle handle;
    mapping *m = nullptr;
    uint64_t rounded = 0;
    int fd = -1, status = ad_faults_check(&device->faults, AD_SITE_slab_create, fault);
    if (status || (status = round_up(device->granularity, size, &rounded, fault)) ||
        (status = ad_cuda_enter(device, fault)))
        return status;
    if ((status = size_status("cuMemCreate", rounded, d->cuMemCreate(&handle, rounded, &p, 0), fault))) return status;
    status =
        size_status("cuMemExportToShareableHandle", rounded,
                    d->cuMemExportToShareableHandle(&fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0), fault);
    if (status) goto release;
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    if ((status = map(device, handle, rounded, &m, fault))) goto close_fd;
    if ((status = clear(device, m, fault))) goto unmap;
    fill_in(m, fd, out);
    goto release;

unmap:
    unmap(m->base);
close_fd:
    close(fd);
release: /* the mapping and the descriptor keep the memory */
    d->cuMemRelease(handle);
    return status;
}

int ad_cuda_slab_create_plain(ad_device *device, uint64_t size, ad_slab_map *out, ad_fault *fault) {
    char what[64];
    void *base = nullptr;
    uint64_t rounded = 0;
    int status = ad_faults_check(&device->faults, AD_SITE_slab_create, fault);
    if (status || (status = round_up(PLAIN_GRAIN, size, &rounded, fault)) || (status = ad_cuda_enter(device, fault)))
        return status;
    mapping *m = new (std::nothrow) mapping{0, rounded, device->index, PLAIN, nullptr};
    if (!m) return ad__fault(fault, AD_E_MEMORY, "out of memory");
    snprintf(what, sizeof what, "a slab of %llu bytes: cudaMalloc", (unsigned long long)rounded);
    if ((status = ad_cuda_status(cudaMalloc(&base, rounded), what, fault))) goto free_mapping;
    m->base = CUdeviceptr(reinterpret_cast<uintptr_t>(base));
    if ((status = clear(device, m, fault))) goto free_memory;
    {
        std::lock_guard<std::mutex> hold(lock);
        if ((status = let_in(device, m, fault))) goto free_memory;
    }
    fill_in(m, -1, out);
    return 0;

free_memory:
    cudaFree(base);
free_mapping:
    delete m;
    return status;
}

int ad_cuda_slab_handle(ad_device *device, const ad_slab_map *slab, uint8_t handle[AD_SLAB_HANDLE], ad_fault *fault) {
    cudaIpcMemHandle_t made;
    static_assert(sizeof made == AD_SLAB_HANDLE, "a handle has 64 bytes");
    int status = ad_cuda_enter(device, fault);
    if (status || (status = ad_cuda_status(cudaIpcGetMemHandle(&made, slab->base), "cudaIpcGetMemHandle", fault)))
        return status;
    memcpy(handle, &made, sizeof made);
    return 0;
}

namespace {

/* All of it lies on the device, and size bytes of it behind base. */
int measure(const ad_device *device, void *base, uint64_t *size, ad_fault *fault) {
    cudaPointerAttributes of = {};
    CUdeviceptr at = CUdeviceptr(reinterpret_cast<uintptr_t>(base)), begin = 0;
    size_t all = 0;
    int status = ad_cuda_status(cudaPointerGetAttributes(&of, base), "cudaPointerGetAttributes", fault);
    if (status) return status;
    if (of.type != cudaMemoryTypeDevice || of.device != device->index)
        return ad__fault(fault, AD_E_VALUE, "the handle is of memory of device %d, not %d", of.device, device->index);
    status = ad_cuda_driver_status(ad_cuda_driver_get()->cuMemGetAddressRange(&begin, &all, at), "cuMemGetAddressRange",
                                   fault);
    if (!status) *size = all - uint64_t(at - begin);
    return status;
}

} // namespace

/* The driver counts: of one allocation that is opened several times all mappings are the same. */
int ad_cuda_slab_import(ad_device *device, const uint8_t handle[AD_SLAB_HANDLE], ad_slab_map *out, ad_fault *fault) {
    cudaIpcMemHandle_t theirs;
    void *base = nullptr;
    memcpy(&theirs, handle, sizeof theirs);
    int status = ad_faults_check(&device->faults, AD_SITE_slab_attach, fault);
    if (status || (status = ad_cuda_enter(device, fault))) return status;
    mapping *m = new (std::nothrow) mapping{0, 0, device->index, BORROWED, nullptr};
    if (!m) return ad__fault(fault, AD_E_MEMORY, "out of memory");
    status = ad_cuda_status(cudaIpcOpenMemHandle(&base, theirs, cudaIpcMemLazyEnablePeerAccess), "cudaIpcOpenMemHandle",
                            fault);
    if (status) goto free_mapping;
    m->base = CUdeviceptr(reinterpret_cast<uintptr_t>(base));
    if ((status = measure(device, base, &m->size, fault))) goto close_handle;
    {
        std::lock_guard<std::mutex> hold(lock);
        if ((status = let_in(device, m, fault))) goto close_handle;
    }
    fill_in(m, -1, out);
    return 0;

close_handle:
    cudaIpcCloseMemHandle(base);
free_mapping:
    delete m;
    return status;
}

/* The driver says little about descriptors that are something else. */
static int import_slab(const ad_device *device, int fd, CUmemGenericAllocationHandle *out, ad_fault *fault) {
    const ad_cuda_driver *d = ad_cuda_driver_get();
    CUmemAllocationProp p = {};
    CUmemGenericAllocationHandle handle;
    CUresult result = d->cuMemImportFromShareableHandle(&handle, reinterpret_cast<void *>(intptr_t(fd)),
                                                        CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
    if (result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_INVALID_HANDLE ||
        result == CUDA_ERROR_NOT_SUPPORTED || result == CUDA_ERROR_OPERATING_SYSTEM ||
        result == CUDA_ERROR_INVALID_DEVICE || result == CUDA_ERROR_UNKNOWN)
        return ad__fault(fault, AD_E_VALUE, "the descriptor is no slab of this driver");
    int status = ad_cuda_driver_status(result, "cuMemImportFromShareableHandle", fault);
    if (status) return status;
    status = ad_cuda_driver_status(d->cuMemGetAllocationPropertiesFromHandle(&p, handle),
                                   "cuMemGetAllocationPropertiesFromHandle", fault);
    if (!status && (p.location.type != CU_MEM_LOCATION_TYPE_DEVICE || p.location.id != device->index))
        status = ad__fault(fault, AD_E_VALUE, "the slab is of device %d, not %d", p.location.id, device->index);
    if (status) d->cuMemRelease(handle);
    else *out = handle;
    return status;
}

int ad_cuda_slab_attach(ad_device *device, int fd, uint64_t size, ad_slab_map *out, ad_fault *fault) {
    CUmemGenericAllocationHandle handle = 0;
    mapping *m = nullptr;
    uint64_t rounded = 0;
    int own, status = ad_faults_check(&device->faults, AD_SITE_slab_attach, fault);
    if (status || (status = round_up(device->granularity, size, &rounded, fault)) ||
        (status = ad_cuda_enter(device, fault)))
        return status;
    if ((own = fcntl(fd, F_DUPFD_CLOEXEC, 0)) < 0)
        return ad__fault(fault, AD_E_SYSTEM, "a slab of %llu bytes: dup: %s", (unsigned long long)rounded,
                         strerror(errno));
    if ((status = import_slab(device, own, &handle, fault))) goto close_fd;
    status = map(device, handle, rounded, &m, fault);
    ad_cuda_driver_get()->cuMemRelease(handle);
    if (status == AD_E_DEVICE)
        status = ad__fault(fault, AD_E_EXTENT, "the slab has not %llu bytes", (unsigned long long)rounded);
    if (status) goto close_fd;
    fill_in(m, own, out);
    return 0;

close_fd:
    close(own);
    return status;
}

/* Close a slab that nothing uses any more, as its owner has seen by events. To wait here for the whole device would be
 * to wait for everybody else's work, too. */
void ad_cuda_slab_close(ad_device *device, ad_slab_map *slab) {
    if (slab->base && !ad_cuda_enter(device, nullptr)) unmap(CUdeviceptr(reinterpret_cast<uintptr_t>(slab->base)));
    if (slab->fd >= 0) close(slab->fd);
    slab->base = nullptr;
    slab->size = 0;
    slab->fd = -1;
}
