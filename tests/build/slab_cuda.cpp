/* kernels/cuda/backend/slab.cpp beside a runtime and a driver made for this test, of two devices that are peers. Each
 * call fails in turn, and then nothing is left behind. Without a failure everything is closed in the end. Prints how
 * many calls there were for a slab with a descriptor, for a plain one, and for one of another process. */
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernels/cuda/backend/device.h"
#include "kernels/cuda/backend/driver.h"

namespace {

int calls, fail, allocations, handles, reserved, mapped, borrowed, wrong;
int descriptor = -1;   /* the last one */
int current;           /* device */
bool reaches[2][2];    /* plain memory of the second, by the first */
int granted[2];        /* how often cuMemSetAccess let a device in */
char theirs[8u << 20]; /* memory of another process */
int theirs_on;         /* device of that memory */

bool fails() { return ++calls == fail; }

/* Opening gives an address in the middle of it. */
constexpr size_t AHEAD = 1u << 20;
void check_at(CUdeviceptr at) { wrong += reinterpret_cast<char *>(uintptr_t(at)) != theirs + AHEAD; }

CUresult granularity_of(size_t *out, const CUmemAllocationProp *, CUmemAllocationGranularity_flags) {
    *out = 2u << 20;
    return CUDA_SUCCESS;
}
CUresult create(CUmemGenericAllocationHandle *out, size_t, const CUmemAllocationProp *, unsigned long long) {
    if (fails()) return CUDA_ERROR_OUT_OF_MEMORY;
    *out = 7;
    handles++;
    return CUDA_SUCCESS;
}
CUresult release(CUmemGenericAllocationHandle) {
    handles--;
    return CUDA_SUCCESS;
}
CUresult export_it(void *fd, CUmemGenericAllocationHandle, CUmemAllocationHandleType, unsigned long long) {
    if (fails()) return CUDA_ERROR_INVALID_VALUE;
    *static_cast<int *>(fd) = descriptor = memfd_create("slab", 0);
    return CUDA_SUCCESS;
}
CUresult reserve(CUdeviceptr *out, size_t size, size_t, CUdeviceptr, unsigned long long) {
    if (fails()) return CUDA_ERROR_OUT_OF_MEMORY;
    void *base = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    *out = CUdeviceptr(reinterpret_cast<uintptr_t>(base));
    reserved++;
    return CUDA_SUCCESS;
}
CUresult unreserve(CUdeviceptr at, size_t size) {
    reserved--;
    munmap(reinterpret_cast<void *>(at), size);
    return CUDA_SUCCESS;
}
CUresult map_it(CUdeviceptr, size_t, size_t, CUmemGenericAllocationHandle, unsigned long long) {
    if (fails()) return CUDA_ERROR_INVALID_VALUE;
    mapped++;
    return CUDA_SUCCESS;
}
CUresult unmap_it(CUdeviceptr, size_t) {
    mapped--;
    return CUDA_SUCCESS;
}
CUresult let_in(CUdeviceptr, size_t, const CUmemAccessDesc *access, size_t) {
    if (fails()) return CUDA_ERROR_INVALID_VALUE;
    granted[access->location.id]++;
    return CUDA_SUCCESS;
}
CUresult range_of(CUdeviceptr *base, size_t *size, CUdeviceptr at) {
    if (fails()) return CUDA_ERROR_INVALID_VALUE;
    check_at(at);
    *base = CUdeviceptr(reinterpret_cast<uintptr_t>(theirs));
    *size = sizeof theirs;
    return CUDA_SUCCESS;
}

ad_cuda_driver table() {
    ad_cuda_driver d = {};
    d.cuMemGetAllocationGranularity = granularity_of;
    d.cuMemCreate = create;
    d.cuMemRelease = release;
    d.cuMemExportToShareableHandle = export_it;
    d.cuMemAddressReserve = reserve;
    d.cuMemAddressFree = unreserve;
    d.cuMemMap = map_it;
    d.cuMemUnmap = unmap_it;
    d.cuMemSetAccess = let_in;
    d.cuMemGetAddressRange = range_of;
    return d;
}

} // namespace

/* ---- what kernels/cuda/backend/slab.cpp takes from other files, and from the runtime ---- */

const ad_cuda_driver *ad_cuda_driver_get() {
    static const ad_cuda_driver d = table();
    return &d;
}
int ad_cuda_driver_status(CUresult result, const char *what, ad_fault *fault) {
    if (result == CUDA_SUCCESS) return 0;
    return ad__fault(fault, result == CUDA_ERROR_OUT_OF_MEMORY ? AD_E_MEMORY : AD_E_DEVICE, "%s", what);
}
int ad_cuda_status(cudaError_t error, const char *what, ad_fault *fault) {
    if (error == cudaSuccess) return 0;
    return ad__fault(fault, error == cudaErrorMemoryAllocation ? AD_E_MEMORY : AD_E_DEVICE, "%s", what);
}
int ad_cuda_enter(const ad_device *device, ad_fault *) {
    current = device->index;
    return 0;
}

extern "C" {
cudaError_t cudaGetLastError(void) { return cudaSuccess; }
cudaError_t cudaGetDevice(int *out) {
    if (fails()) return cudaErrorInvalidValue;
    *out = current;
    return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
    current = device;
    return cudaSuccess;
}
cudaError_t cudaDeviceEnablePeerAccess(int owner, unsigned flags) {
    if (fails()) return cudaErrorInvalidValue;
    if (flags || owner == current) return cudaErrorInvalidDevice;
    if (reaches[current][owner]) return cudaErrorPeerAccessAlreadyEnabled;
    reaches[current][owner] = true;
    return cudaSuccess;
}
cudaError_t cudaMalloc(void **out, size_t size) {
    if (fails()) return cudaErrorMemoryAllocation;
    *out = malloc(size);
    allocations++;
    return cudaSuccess;
}
cudaError_t cudaFree(void *memory) {
    free(memory);
    allocations--;
    return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void *at, int value, size_t size, cudaStream_t) {
    if (fails()) return cudaErrorInvalidValue;
    memset(at, value, size);
    return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t) { return fails() ? cudaErrorInvalidValue : cudaSuccess; }
cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *out, void *base) {
    if (fails()) return cudaErrorInvalidValue;
    memset(out, 0, sizeof *out);
    memcpy(out, &base, sizeof base);
    return cudaSuccess;
}
cudaError_t cudaIpcOpenMemHandle(void **out, cudaIpcMemHandle_t handle, unsigned flags) {
    if (fails()) return cudaErrorInvalidValue;
    wrong += handle.reserved[0] != 'h' || flags != cudaIpcMemLazyEnablePeerAccess;
    *out = theirs + AHEAD;
    borrowed++;
    return cudaSuccess;
}
cudaError_t cudaIpcCloseMemHandle(void *at) {
    check_at(CUdeviceptr(reinterpret_cast<uintptr_t>(at)));
    borrowed--;
    return cudaSuccess;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *out, const void *) {
    if (fails()) return cudaErrorInvalidValue;
    out->type = cudaMemoryTypeDevice;
    out->device = theirs_on;
    return cudaSuccess;
}
}

/* ---- the test ---- */

namespace {

void check(bool good, const char *what) {
    if (good) return;
    printf("call %d of %d: %s\n", calls, fail, what);
    wrong++;
}

bool nothing_left() {
    return !allocations && !handles && !reserved && !mapped && !borrowed && fcntl(descriptor, F_GETFD) == -1;
}

/* Open memory of another process twice, close it. As one(). */
bool another(ad_device *device) {
    ad_slab_map slab[2] = {{nullptr, 0, -1}, {nullptr, 0, -1}};
    ad_fault fault = {};
    const uint8_t handle[AD_SLAB_HANDLE] = {'h'};
    int rc = 0;
    calls = 0;
    theirs_on = device->index;
    for (auto &each : slab) {
        if (rc == 0) rc = ad_cuda_slab_import(device, handle, &each, &fault);
        if (rc) break;
        check(each.base == theirs + AHEAD && each.size == sizeof theirs - AHEAD && each.fd == -1, "its memory");
    }
    for (auto &each : slab) ad_cuda_slab_close(device, &each);
    check(nothing_left() && current == device->index, "nothing is left");
    check((rc == 0) == (fail == 0 || calls < fail) && (rc == 0 || *fault.text), "a failure is told");
    return rc == 0;
}

/* Make a slab, take its handle if it is plain, close it. False: a call has failed. */
bool one(ad_device *device, bool plain) {
    ad_slab_map slab = {nullptr, 0, -1};
    ad_fault fault = {};
    uint8_t handle[AD_SLAB_HANDLE];
    calls = 0;
    int rc = (plain ? ad_cuda_slab_create_plain : ad_cuda_slab_create)(device, 3u << 20, &slab, &fault);
    if (rc == 0) {
        const char *bytes = static_cast<const char *>(slab.base);
        check(slab.size == 4u << 20 && !bytes[0] && !memcmp(bytes, bytes + 1, slab.size - 1), "a slab of zeros");
        check((slab.fd < 0) == plain, "a descriptor, or none");
        if (plain) rc = ad_cuda_slab_handle(device, &slab, handle, &fault);
        if (plain && rc == 0) check(!memcmp(handle, &slab.base, sizeof slab.base), "the slab's handle");
        ad_cuda_slab_close(device, &slab);
        check(slab.base == nullptr && slab.fd == -1, "closed");
    }
    check(nothing_left() && current == device->index, "nothing is left");
    check((rc == 0) == (fail == 0 || calls < fail) && (rc == 0 || *fault.text), "a failure is told");
    return rc == 0;
}

template <class F> int all(F each) {
    fail = 0;
    check(each(), "it works");
    const int n = calls;
    for (fail = 1; fail <= n; fail++) check(!each(), "it fails");
    fail = 0;
    return n;
}

int all(ad_device *device, bool plain) {
    return all([=] { return one(device, plain); });
}

} // namespace

int main() {
    ad_device *device = new ad_device(), *other = new ad_device();
    ad_fault fault = {};
    ad_slab_map before = {nullptr, 0, -1};
    other->index = 1;
    device->peers = 2;
    other->peers = 1;
    check(!ad_cuda_enter(device, &fault) && !ad_cuda_slab_open(device, &fault), "the first device");
    const int alone[] = {all(device, false), all(device, true)};
    check(!ad_cuda_slab_create_plain(device, 1, &before, &fault) && before.size == 2u << 20, "a small slab");
    check(!reaches[1][0], "nobody was let in yet");
    check(!ad_cuda_enter(other, &fault) && !ad_cuda_slab_open(other, &fault) && current == 1, "the second device");
    check(reaches[1][0] && !reaches[0][1], "it reaches what there was");
    ad_cuda_enter(device, &fault);
    ad_cuda_slab_close(device, &before);
    ad_cuda_enter(other, &fault);
    const int both[] = {all(other, false), all(other, true)};
    check(reaches[0][1] && granted[0] && granted[1], "each reaches the other's");
    const int borrowing = all([=] { return another(other); });
    const uint8_t handle[AD_SLAB_HANDLE] = {'h'};
    theirs_on = 0;
    check(ad_cuda_slab_import(other, handle, &before, &fault) == AD_E_VALUE && nothing_left(), "of another device");
    printf("%d %d %d %d %d\n", alone[0], alone[1], both[0], both[1], borrowing);
    delete device;
    delete other;
    return wrong != 0;
}
