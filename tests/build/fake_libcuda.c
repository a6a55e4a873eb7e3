/* A CUDA driver for tests of client-c/interop/export_cuda.c, client-c/interop/lend_cuda.c, and of what uses them: one
 * device whose memory is the host's. It counts what it has handed out, and fails the n-th call. Its types are cuda.h's
 * where that is found, so that a declaration which is not the driver's does not compile here. */
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cuda.h>

int fake_reader, fake_fail, fake_calls, fake_contexts, fake_pushed, fake_handles, fake_reserved, fake_mapped,
    fake_accessible, fake_events, fake_waits, fake_freeing, fake_synchronized, fake_wrong;
static int descriptor = -1;

static CUresult count_call(void) { return ++fake_calls == fake_fail ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS; }
#define CHECK(...)                        \
    do {                                  \
        CUresult result_ = count_call();  \
        if (result_) return result_;      \
        if (!(__VA_ARGS__)) fake_wrong++; \
    } while (0)

CUresult cuInit(unsigned flags) { return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS; }
CUresult cuGetErrorString(CUresult error, const char **text) {
    *text = error == CUDA_ERROR_INVALID_VALUE ? "invalid argument" : "another";
    return CUDA_SUCCESS;
}
CUresult cuDeviceGetCount(int *count) {
    CHECK(1);
    *count = 2;
    return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice *device, int ordinal) {
    CHECK(ordinal == 0 || ordinal == 1);
    *device = ordinal;
    return CUDA_SUCCESS;
}
CUresult cuDeviceGetUuid(CUuuid *uuid, CUdevice device) {
    CHECK(1);
    for (int i = 0; i < 16; i++) uuid->bytes[i] = (char)(16 * i + device);
    return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    CHECK(device == 1);
    fake_contexts++;
    *context = (CUcontext)&fake_contexts;
    return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRelease(CUdevice device) {
    fake_contexts--;
    fake_wrong += device != 1;
    return CUDA_SUCCESS;
}
CUresult cuCtxPushCurrent(CUcontext context) {
    CHECK(context == (CUcontext)&fake_contexts);
    fake_pushed++;
    return CUDA_SUCCESS;
}
CUresult cuCtxPopCurrent(CUcontext *context) {
    fake_pushed--;
    *context = (CUcontext)&fake_contexts;
    return CUDA_SUCCESS;
}
CUresult cuCtxSynchronize(void) {
    fake_synchronized++;
    if (!fake_freeing) CHECK(fake_pushed);
    return CUDA_SUCCESS;
}
CUresult cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, size_t size) {
    CHECK(fake_pushed);
    memcpy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, size);
    return CUDA_SUCCESS;
}
CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle *handle, void *os,
                                        CUmemAllocationHandleType type) {
    CHECK(type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR && fake_pushed);
    descriptor = dup((int)(intptr_t)os);
    fake_handles++;
    *handle = 7;
    return CUDA_SUCCESS;
}
CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
    fake_wrong += handle != 7 && handle < 100;
    fake_handles--;
    if (handle == 7 && !fake_mapped) close(descriptor);
    return CUDA_SUCCESS;
}
CUresult cuMemAddressReserve(CUdeviceptr *at, size_t size, size_t alignment, CUdeviceptr wanted,
                             unsigned long long flags) {
    CHECK(!alignment && !wanted && !flags);
    void *base = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (base == MAP_FAILED) return CUDA_ERROR_OUT_OF_MEMORY;
    fake_reserved++;
    *at = (CUdeviceptr)(uintptr_t)base;
    return CUDA_SUCCESS;
}
CUresult cuMemAddressFree(CUdeviceptr at, size_t size) {
    fake_reserved--;
    fake_wrong += fake_mapped != 0;
    return munmap((void *)(uintptr_t)at, size) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
CUresult cuMemMap(CUdeviceptr at, size_t size, size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long flags) {
    CHECK(handle == 7 && !offset && !flags);
    fake_mapped++;
    void *base = mmap((void *)(uintptr_t)at, size, PROT_NONE, MAP_SHARED | MAP_FIXED, descriptor, 0);
    return base == MAP_FAILED ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}
CUresult cuMemUnmap(CUdeviceptr at, size_t size) {
    (void)at, (void)size;
    fake_mapped--;
    return CUDA_SUCCESS;
}
CUresult cuMemSetAccess(CUdeviceptr at, size_t size, const CUmemAccessDesc *access, size_t count) {
    CHECK(count == 1 && access->location.type == CU_MEM_LOCATION_TYPE_DEVICE && access->location.id == 1 &&
          access->flags == (fake_reader ? CU_MEM_ACCESS_FLAGS_PROT_READ : CU_MEM_ACCESS_FLAGS_PROT_READWRITE));
    fake_accessible++;
    return mprotect((void *)(uintptr_t)at, size, fake_reader ? PROT_READ : PROT_READ | PROT_WRITE)
               ? CUDA_ERROR_INVALID_VALUE
               : CUDA_SUCCESS;
}
CUresult cuIpcOpenEventHandle(CUevent *event, CUipcEventHandle handle) {
    CHECK(handle.reserved[0] == 1 && handle.reserved[63] == 64);
    fake_events++;
    *event = (CUevent)&fake_events;
    return CUDA_SUCCESS;
}
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
    CHECK(stream == (CUstream)0x2 && event == (CUevent)&fake_events && !flags);
    fake_waits++;
    return CUDA_SUCCESS;
}
CUresult cuEventDestroy(CUevent event) {
    fake_wrong += event != (CUevent)&fake_events;
    fake_events--;
    return CUDA_SUCCESS;
}
CUresult cuStreamSynchronize(CUstream stream) {
    fake_synchronized++;
    CHECK(fake_pushed && (stream == (CUstream)0x1 || stream == (CUstream)0x2));
    return CUDA_SUCCESS;
}

/* ---- memory that a program has allocated ---- */

#define MOST 2048 /* more than a server takes of one user */
enum { PLAIN = 1, SHAREABLE, POOL, MANAGED };
static struct {
    char *base;
    size_t size;
    int fd, kind;
} memory[MOST];

/* At an address where nothing is, or (NULL) anywhere. */
void *fake_alloc(size_t size, int kind, void *there) {
    int i = 0, fd = memfd_create("device", MFD_ALLOW_SEALING | MFD_CLOEXEC);
    while (i < MOST && memory[i].base) i++;
    if (i == MOST || fd < 0 || ftruncate(fd, (off_t)size) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK)) return NULL;
    void *base = mmap(there, size, PROT_READ | PROT_WRITE, MAP_SHARED | (there ? MAP_FIXED_NOREPLACE : 0), fd, 0);
    if (base == MAP_FAILED) return NULL;
    memory[i].base = base;
    memory[i].size = size;
    memory[i].fd = fd;
    memory[i].kind = kind;
    return base;
}

static int find_allocation(CUdeviceptr at) {
    int i = MOST - 1;
    while (i >= 0 && !(memory[i].base && at - (uintptr_t)memory[i].base < memory[i].size)) i--;
    return i;
}

void fake_free(void *base) {
    int i = find_allocation((CUdeviceptr)(uintptr_t)base);
    munmap(memory[i].base, memory[i].size);
    close(memory[i].fd);
    memory[i].base = NULL;
}

CUresult cuPointerGetAttribute(void *value, CUpointer_attribute attribute, CUdeviceptr at) {
    int i = find_allocation(at);
    CHECK(1);
    if (i < 0) return CUDA_ERROR_INVALID_VALUE;
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *(int *)value = 1; break;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE: *(unsigned *)value = CU_MEMORYTYPE_DEVICE; break;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: *(unsigned *)value = memory[i].kind == MANAGED; break;
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE: *(size_t *)value = memory[i].size; break;
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR: *(char **)value = memory[i].base; break;
    default: fake_wrong++;
    }
    return CUDA_SUCCESS;
}
CUresult cuMemGetAddressRange(CUdeviceptr *base, size_t *size, CUdeviceptr at) {
    int i = find_allocation(at);
    CHECK(i >= 0 && fake_pushed);
    *base = (CUdeviceptr)(uintptr_t)memory[i].base;
    *size = memory[i].size;
    return CUDA_SUCCESS;
}
CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle *handle, void *at) {
    int i = find_allocation((CUdeviceptr)(uintptr_t)at);
    CHECK(i >= 0 && fake_pushed);
    if (memory[i].kind != SHAREABLE) return CUDA_ERROR_INVALID_VALUE;
    fake_handles++;
    *handle = 100 + (unsigned)i;
    return CUDA_SUCCESS;
}
CUresult cuMemExportToShareableHandle(void *out, CUmemGenericAllocationHandle handle, CUmemAllocationHandleType type,
                                      unsigned long long flags) {
    CHECK(type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR && !flags && handle >= 100);
    *(int *)out = fcntl(memory[handle - 100].fd, F_DUPFD_CLOEXEC, 0);
    return CUDA_SUCCESS;
}
/* Make the handle that the backend of tests/fault/handles.c opens. */
CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr at) {
    int i = find_allocation(at);
    CHECK(i >= 0 && at == (CUdeviceptr)(uintptr_t)memory[i].base);
    if (memory[i].kind != PLAIN) return CUDA_ERROR_INVALID_VALUE;
    uint64_t made[8] = {(uint64_t)getpid(), (uint64_t)memory[i].fd, memory[i].size};
    memcpy(handle->reserved, made, sizeof made);
    return CUDA_SUCCESS;
}
