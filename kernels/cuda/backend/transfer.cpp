/* Copies between host and device, and the host memory that they need. Pageable memory goes through a ring of pinned
 * chunks. The device fetches one chunk while the next one is being filled. */
#include <algorithm>
#include <new>

#include "kernels/cuda/backend/device.h"
#include "kernels/cuda/backend/team.h"

namespace {

constexpr uint64_t CHUNK = 4 << 20;
constexpr int CHUNKS = 8;
constexpr uint64_t SMALL = 64 << 10; /* up to here CUDA itself takes the bytes before it returns, at once */
constexpr uint64_t DIRECT =
    32 << 10; /* up to here a kernel writes to the host sooner than the copy engine has started */

} // namespace

struct ad_cuda_ring {
    char *memory;
    cudaEvent_t fetched[CHUNKS];
    int next;
    ad_cuda_team *team;
};

namespace {

/* The next chunk, once the device has fetched what was in it. */
int chunk_of(ad_cuda_ring *r, int *out, ad_fault *fault) {
    const int i = r->next;
    int status = ad_cuda_status(cudaEventSynchronize(r->fetched[i]), "an upload", fault);
    if (status) return status;
    r->next = (i + 1) % CHUNKS;
    *out = i;
    return 0;
}

int upload_chunk(ad_stream *stream, ad_cuda_ring *r, char *to, const char *host, uint64_t size, ad_fault *fault) {
    int i = 0, status = chunk_of(r, &i, fault);
    if (status) return status;
    char *chunk = r->memory + uint64_t(i) * CHUNK;
    ad_cuda_team_copy(r->team, chunk, host, size);
    status = ad_cuda_status(cudaMemcpyAsync(to, chunk, size, cudaMemcpyHostToDevice, stream->cuda), "an upload", fault);
    return status ? status : ad_cuda_status(cudaEventRecord(r->fetched[i], stream->cuda), "an upload", fault);
}

int copy(ad_stream *stream, void *to, const void *from, uint64_t size, cudaMemcpyKind kind, const char *what,
         ad_fault *fault) {
    if (size == 0) return 0;
    int status = ad_cuda_enter(stream->device, fault);
    return status ? status : ad_cuda_status(cudaMemcpyAsync(to, from, size, kind, stream->cuda), what, fault);
}

} // namespace

/* Made when the device is opened: pinning takes milliseconds, which the first upload should not pay for. */
int ad_cuda_ring_open(ad_device *device, ad_fault *fault) {
    void *memory = nullptr;
    ad_cuda_ring *r = new (std::nothrow) ad_cuda_ring();
    if (!r) return ad__fault(fault, AD_E_MEMORY, "out of memory");
    device->ring = r;
    if (!(r->team = ad_cuda_team_open())) return ad__fault(fault, AD_E_MEMORY, "out of memory");
    int status = ad_cuda_host_alloc(device, CHUNKS * CHUNK, &memory, fault);
    r->memory = static_cast<char *>(memory);
    for (int i = 0; !status && i < CHUNKS; i++)
        status =
            ad_cuda_status(cudaEventCreateWithFlags(&r->fetched[i], cudaEventDisableTiming), "cudaEventCreate", fault);
    return status;
}

void ad_cuda_ring_close(ad_device *device) {
    ad_cuda_ring *r = device->ring;
    if (!r) return;
    for (cudaEvent_t event : r->fetched) {
        if (!event) continue;
        cudaEventSynchronize(event);
        cudaEventDestroy(event);
    }
    ad_cuda_host_free(device, r->memory);
    ad_cuda_team_close(r->team);
    delete r;
    device->ring = nullptr;
}

int ad_cuda_host_alloc(ad_device *device, uint64_t size, void **out, ad_fault *fault) {
    int status = ad_cuda_enter(device, fault);
    if (status) return status;
    return ad_cuda_status(cudaHostAlloc(out, size > 0 ? size : 1, cudaHostAllocPortable | cudaHostAllocMapped),
                          "pinning host memory", fault);
}

void ad_cuda_host_free(ad_device *device, void *memory) {
    if (memory && !ad_cuda_enter(device, nullptr)) cudaFreeHost(memory);
}

/* Memory that this process may only read has to be called so. */
int ad_cuda_host_register(ad_device *device, void *memory, uint64_t size, ad_fault *fault) {
    constexpr unsigned FLAGS = cudaHostRegisterPortable | cudaHostRegisterMapped;
    int status = ad_cuda_enter(device, fault);
    if (status) return status;
    if (cudaHostRegister(memory, size, FLAGS) == cudaSuccess) return 0;
    cudaGetLastError();
    return ad_cuda_status(cudaHostRegister(memory, size, FLAGS | cudaHostRegisterReadOnly), "pinning host memory",
                          fault);
}

void ad_cuda_host_unregister(ad_device *device, void *memory) {
    if (!ad_cuda_enter(device, nullptr) && cudaHostUnregister(memory) != cudaSuccess) cudaGetLastError();
}

/* CUDA sets no memory of another device (seen with driver 580). A kernel reaches it. */
int ad_cuda_zero(ad_stream *stream, void *to, uint64_t size, ad_fault *fault) {
    int status = ad_faults_check(&stream->device->faults, AD_SITE_zero, fault);
    if (status || size == 0 || (status = ad_cuda_enter(stream->device, fault))) return status;
    const cudaError_t error = cudaMemsetAsync(to, 0, size, stream->cuda);
    if (error != cudaErrorInvalidValue) return ad_cuda_status(error, "zeroing memory", fault);
    cudaGetLastError();
    return ad_cuda_zero_by_kernel(stream, to, size, fault);
}

int ad_cuda_upload(ad_stream *stream, void *to, const void *host, uint64_t size, ad_fault *fault) {
    ad_cuda_ring *r = stream->device->ring;
    int status = ad_faults_check(&stream->device->faults, AD_SITE_upload, fault);
    if (status) return status;
    if (size <= SMALL) return copy(stream, to, host, size, cudaMemcpyHostToDevice, "an upload", fault);
    if ((status = ad_cuda_enter(stream->device, fault))) return status;
    for (uint64_t at = 0; !status && at < size; at += CHUNK)
        status = upload_chunk(stream, r, static_cast<char *>(to) + at, static_cast<const char *>(host) + at,
                              std::min(CHUNK, size - at), fault);
    return status;
}

int ad_cuda_upload_pinned(ad_stream *stream, void *to, const void *host, uint64_t size, ad_fault *fault) {
    int status = ad_faults_check(&stream->device->faults, AD_SITE_upload, fault);
    return status ? status : copy(stream, to, host, size, cudaMemcpyHostToDevice, "an upload", fault);
}

/* A kernel follows another at once, the copy engine only after 8 us more: half of what a small answer takes. */
int ad_cuda_download(ad_stream *stream, void *host, const void *from, uint64_t size, ad_fault *fault) {
    int status = ad_faults_check(&stream->device->faults, AD_SITE_download, fault);
    if (status) return status;
    if (size == 0 || size > DIRECT) return copy(stream, host, from, size, cudaMemcpyDeviceToHost, "a download", fault);
    void *seen = nullptr; /* the device's address of host memory: the same, on all but the smallest boards */
    if ((status = ad_cuda_enter(stream->device, fault))) return status;
    if (!stream->device->one_address &&
        (status = ad_cuda_status(cudaHostGetDevicePointer(&seen, host, 0), "a download", fault)))
        return status;
    return ad_cuda_copy_small(stream, stream->device->one_address ? host : seen, from, size, fault);
}

int ad_cuda_move(ad_stream *stream, void *to, const void *from, uint64_t size, ad_fault *fault) {
    return copy(stream, to, from, size, cudaMemcpyDefault, "a copy", fault);
}
