/* A thread loads kernels before anybody needs them. They are this library's (preload.cpp), and those of cuBLAS and
 * cuFFT, which take 20 to 60 ms for each family. It begins with ours at once. It loads those of the libraries a little
 * later, so that a server that lives for one short program does not pay for them. */
#include <errno.h>
#include <new>
#include <pthread.h>
#include <time.h>

#include "kernels/cuda/backend/device.h"
#include "kernels/cuda/backend/libraries.h"

struct ad_cuda_warmer {
    const ad_device *device;
    pthread_t thread;
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t wake;
    bool stop = false;
};

namespace {

constexpr long DELAY = 400000000; /* ns */
constexpr int SIZE = 512;         /* of a matrix; cuBLAS has other kernels for small ones */
constexpr size_t MATRIX = size_t(SIZE) * SIZE * sizeof(double);

/* False: the device is being closed. */
bool wait_a_little(ad_cuda_warmer *w, long ns) {
    timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += ns;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&w->lock);
    while (!w->stop && pthread_cond_timedwait(&w->wake, &w->lock, &until) != ETIMEDOUT) {}
    const bool go = !w->stop;
    pthread_mutex_unlock(&w->lock);
    return go;
}

/* alpha is not 0, or cuBLAS would see that there is nothing to load a kernel for. */
bool multiply(ad_cuda_warmer *w, cublasHandle_t blas, void *memory, cudaDataType type, int n) {
    const float one = 1;
    const double wide = 1;
    const bool is_wide = type == CUDA_R_64F;
    const void *alpha = is_wide ? static_cast<const void *>(&wide) : &one;
    return wait_a_little(w, 0) &&
           cublasGemmEx(blas, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, alpha, memory, type, n, memory, type, n, alpha, memory,
                        type, n, is_wide ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F,
                        CUBLAS_GEMM_DEFAULT) == CUBLAS_STATUS_SUCCESS;
}

/* Multiply with as much workspace as products have: it decides which kernels there are to choose from. */
void multiply_all(ad_cuda_warmer *w, cublasHandle_t blas, char *memory, size_t workspace) {
    if (cublasSetWorkspace(blas, memory + MATRIX, workspace) == CUBLAS_STATUS_SUCCESS &&
        multiply(w, blas, memory, CUDA_R_32F, SIZE) && multiply(w, blas, memory, CUDA_R_32F, 16) &&
        multiply(w, blas, memory, CUDA_R_64F, SIZE))
        multiply(w, blas, memory, CUDA_R_16F, SIZE);
}

void transform(ad_cuda_warmer *w) {
    cufftHandle plan;
    size_t size = 0;
    if (!wait_a_little(w, 0) || cufftCreate(&plan) != CUFFT_SUCCESS) return;
    cufftSetAutoAllocation(plan, 0);
    cufftMakePlan1d(plan, 256, CUFFT_C2C, 1, &size);
    cufftDestroy(plan);
}

/* Warm up on a stream and memory of its own: nobody waits for what is done here. Failures show when somebody needs
 * it. */
void *warm(void *argument) {
    ad_cuda_warmer *w = static_cast<ad_cuda_warmer *>(argument);
    cudaStream_t stream = nullptr;
    cublasHandle_t blas = nullptr;
    void *memory = nullptr;
    if (ad_cuda_enter(w->device, nullptr)) return nullptr;
    for (int i = 0; i < ad_cuda_kernels_count() && wait_a_little(w, 0); i++) ad_cuda_kernel_load(i);
    if (!wait_a_little(w, DELAY)) return nullptr;
    const size_t workspace = ad_cuda_blas_workspace(w->device);
    if (cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess) return nullptr;
    if (cudaMallocAsync(&memory, MATRIX + workspace, stream) == cudaSuccess &&
        cublasCreate(&blas) == CUBLAS_STATUS_SUCCESS) {
        cudaMemsetAsync(memory, 0, MATRIX, stream);
        cublasSetStream(blas, stream);
        multiply_all(w, blas, static_cast<char *>(memory), workspace);
        transform(w);
    }
    if (blas) cublasDestroy(blas);
    if (memory) cudaFreeAsync(memory, stream);
    cudaStreamSynchronize(stream);
    cudaStreamDestroy(stream);
    cudaGetLastError();
    return nullptr;
}

} // namespace

/* Start the thread. Without one, kernels are loaded when they are first used. */
void ad_cuda_warmer_open(ad_device *device) {
    pthread_condattr_t clock;
    ad_cuda_warmer *w = new (std::nothrow) ad_cuda_warmer{};
    if (!w) return;
    w->device = device;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&w->wake, &clock);
    pthread_condattr_destroy(&clock);
    if (pthread_create(&w->thread, nullptr, warm, w) == 0) device->warmer = w;
    else delete w;
}

void ad_cuda_warmer_close(ad_device *device) {
    ad_cuda_warmer *w = device->warmer;
    if (!w) return;
    pthread_mutex_lock(&w->lock);
    w->stop = true;
    pthread_cond_signal(&w->wake);
    pthread_mutex_unlock(&w->lock);
    pthread_join(w->thread, nullptr);
    pthread_cond_destroy(&w->wake);
    delete w;
    device->warmer = nullptr;
}
