/* Loading all kernels of this library ahead of time. CUDA would load a kernel when it is first launched, and then it
 * may wait for whatever runs on the device. So the first sum of one user would wait for the end of another one's long
 * product. nvcc's code registers its kernels with the runtime before `main`. The linker leads those calls here first
 * (--wrap in flags.mk). */
#include <cuda_runtime.h>

#include "kernels/cuda/backend/device.h"

namespace {

constexpr int MOST = 1 << 15;
const void *kernels[MOST]; /* the host's names of them; no constructor of ours has run yet when they come */
int known;

} // namespace

extern "C" void __real___cudaRegisterFunction(void **binary, const char *host, char *device, const char *name,
                                              int threads, void *tid, void *bid, void *block, void *grid, int *warp);

extern "C" void __wrap___cudaRegisterFunction(void **binary, const char *host, char *device, const char *name,
                                              int threads, void *tid, void *bid, void *block, void *grid, int *warp) {
    if (known < MOST) kernels[known++] = host;
    __real___cudaRegisterFunction(binary, host, device, name, threads, tid, bid, block, grid, warp);
}

int ad_cuda_kernels_count() { return known; }

/* Failures show when somebody needs it. */
void ad_cuda_kernel_load(int i) {
    cudaFuncAttributes attributes;
    if (cudaFuncGetAttributes(&attributes, kernels[i]) != cudaSuccess) cudaGetLastError();
}
