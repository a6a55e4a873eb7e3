/* Kernels that belong to no operation: what the common part of calls needs, and what tests and the first client do. */
#include "kernels/call.h"
#include "kernels/cuda/backend/device.h"

namespace {

struct small_value {
    char bytes[16];
};

__global__ void store_kernel(char *to, const __grid_constant__ small_value value, int size) {
    if (int(threadIdx.x) < size) to[threadIdx.x] = value.bytes[threadIdx.x];
}

__global__ void wild_kernel(int *to) { *to = 1; }

template <class W> __global__ void copy_kernel(W *to, const W *from, unsigned n) {
    const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] = from[i];
}

template <class W> void copy_words(cudaStream_t stream, void *to, const void *from, uint64_t size) {
    constexpr unsigned THREADS = 128;
    const unsigned n = unsigned(size / sizeof(W));
    copy_kernel<<<(n + THREADS - 1) / THREADS, THREADS, 0, stream>>>(static_cast<W *>(to), static_cast<const W *>(from),
                                                                     n);
}

template <class W> __global__ void zero_kernel(W *to, uint64_t n) {
    const uint64_t step = uint64_t(gridDim.x) * blockDim.x;
    for (uint64_t i = uint64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += step) to[i] = W{};
}

template <class W> void zero_words(cudaStream_t stream, void *to, uint64_t size) {
    constexpr unsigned THREADS = 256, MOST = 1024; /* blocks, each of which then has several turns */
    const uint64_t n = size / sizeof(W), blocks = (n + THREADS - 1) / THREADS;
    zero_kernel<<<unsigned(blocks < MOST ? blocks : MOST), THREADS, 0, stream>>>(static_cast<W *>(to), n);
}

} // namespace

int ad_cuda_zero_by_kernel(ad_stream *stream, void *to, uint64_t size, ad_fault *fault) {
    if ((reinterpret_cast<uintptr_t>(to) | size) % 16 == 0) zero_words<uint4>(stream->cuda, to, size);
    else zero_words<uint8_t>(stream->cuda, to, size);
    return ad_cuda_launched("zeroing memory", fault);
}

int ad_cuda_copy_small(ad_stream *stream, void *to, const void *from, uint64_t size, ad_fault *fault) {
    const uint64_t together = reinterpret_cast<uintptr_t>(to) | reinterpret_cast<uintptr_t>(from) | size;
    if (together % 16 == 0) copy_words<uint4>(stream->cuda, to, from, size);
    else if (together % 4 == 0) copy_words<uint32_t>(stream->cuda, to, from, size);
    else copy_words<uint8_t>(stream->cuda, to, from, size);
    return ad_cuda_launched("a copy", fault);
}

int ad__call_store(ad_call *c, void *to, const void *value, int size) {
    small_value v = {};
    memcpy(v.bytes, value, size_t(size));
    store_kernel<<<1, 16, 0, c->stream->cuda>>>(static_cast<char *>(to), v, size);
    return ad_cuda_launched("storing a scalar", c->fault);
}

/* A part of a call, whose other kernels come after it: no item of a list. */
int ad__call_ufunc(ad_call *c, const ad_op *op) {
    c->stream->listing = false;
    return ad_cuda_ufunc(c->stream, op, c->run, c->fault);
}

int ad_cuda_wild(ad_stream *stream, ad_fault *fault) {
    wild_kernel<<<1, 1, 0, stream->cuda>>>(reinterpret_cast<int *>(uintptr_t(16)));
    return ad_cuda_launched("a wild kernel", fault);
}

/* A first launch loads the module's code and makes the driver's queues. */
int ad_cuda_warm(ad_device *device, ad_fault *fault) {
    void *memory = nullptr;
    int status = ad_cuda_status(cudaMallocAsync(&memory, 256, device->own), "a first allocation", fault);
    if (status) return status;
    store_kernel<<<1, 16, 0, device->own>>>(static_cast<char *>(memory), small_value{}, 16);
    status = ad_cuda_launched("a first kernel", fault);
    cudaFreeAsync(memory, device->own);
    if (status) return status;
    return ad_cuda_status(cudaStreamSynchronize(device->own), "a first kernel", fault);
}
