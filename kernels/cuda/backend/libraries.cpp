#include "kernels/cuda/backend/libraries.h"

#include "kernels/cuda/call/fft/plans.h"

#include <new>
#include <stdlib.h>

struct ad_cuda_libraries {
    cublasHandle_t blas;
    int multiprocessors; /* that cuBLAS was told to count on; 0: all */
    cusolverDnParams_t parameters;
    ad_cuda_fft_plans *fft_plans;
};

namespace {

int libraries_of(ad_device *device, ad_cuda_libraries **out, ad_fault *fault) {
    if (!device->libraries) device->libraries = new (std::nothrow) ad_cuda_libraries();
    if (!device->libraries) return ad__fault(fault, AD_E_MEMORY, "out of memory");
    *out = device->libraries;
    return 0;
}

/* A failure of a library may be the device's own, which then says more. */
int library_fault(const char *what, const char *library, int number, bool memory, ad_fault *fault) {
    cudaError_t error = cudaPeekAtLastError();
    if (error != cudaSuccess) {
        int status = ad_cuda_status(error, what, fault);
        if (status == AD_E_DEVICE_LOST) return status;
        cudaGetLastError();
    }
    if (memory) return ad__fault(fault, AD_E_MEMORY, "%s: %s is out of memory", what, library);
    return ad__fault(fault, AD_E_DEVICE, "%s: %s failed with status %d", what, library, number);
}

int make_blas(cublasHandle_t *out, ad_fault *fault) {
    cublasHandle_t made;
    int status = ad_cuda_blas_status(cublasCreate(&made), "cublasCreate", fault);
    if (!status) *out = made;
    return status;
}

/* Bind the handle to the stream, and to the multiprocessors of the part where that has its operations. */
int bind_blas(ad_cuda_libraries *l, const ad_stream *stream, ad_fault *fault) {
    const int status = ad_cuda_blas_status(cublasSetStream(l->blas, stream->cuda), "cublasSetStream", fault);
    if (status || l->multiprocessors == stream->multiprocessors) return status;
    l->multiprocessors = stream->multiprocessors;
    return ad_cuda_blas_status(cublasSetSmCountTarget(l->blas, stream->multiprocessors), "cublasSetSmCountTarget",
                               fault);
}

/* Get the handle, bound to the call's stream and that workspace. */
int open_blas(ad_call *c, void *memory, uint64_t workspace, cublasHandle_t *out) {
    ad_cuda_libraries *l = nullptr;
    int status = libraries_of(c->stream->device, &l, c->fault);
    if (status || (!l->blas && (status = make_blas(&l->blas, c->fault)))) return status;
    if ((status = bind_blas(l, c->stream, c->fault))) return status;
    status = ad_cuda_blas_status(cublasSetWorkspace(l->blas, memory, workspace), "cublasSetWorkspace", c->fault);
    if (!status) *out = l->blas;
    return status;
}

/* Get workspace. Less of it than wanted is no reason to fail: the session's limit may be small. */
void *workspace_of(ad_call *c, uint64_t *size) {
    constexpr uint64_t LEAST = 256 << 10;
    for (; *size >= LEAST; *size /= 4) {
        void *memory = c->run->workspace(c->run, *size);
        if (memory) return memory;
    }
    *size = 0;
    return nullptr;
}

} // namespace

uint64_t ad_cuda_blas_workspace(const ad_device *device) { return device->major >= 9 ? 32u << 20 : 4u << 20; }

int ad_cuda_blas(ad_call *c, uint64_t workspace, cublasHandle_t *out) {
    void *memory = workspace_of(c, &workspace);
    return open_blas(c, memory, workspace, out);
}

int ad_cuda_blas_factor(ad_call *c, cublasHandle_t *out) {
    constexpr uint64_t SIZE = 4 << 20;
    void *memory = ad_call_workspace(c, SIZE);
    return memory ? open_blas(c, memory, SIZE, out) : AD_E_MEMORY;
}

int ad_cuda_solver(ad_call *c, cusolverDnHandle_t *out) {
    ad_stream *stream = c->stream;
    int status = ad_cuda_stream_widen(stream, c->fault);
    if (status) return status;
    if (!stream->solver) {
        cusolverDnHandle_t made;
        status = ad_cuda_solver_status(cusolverDnCreate(&made), "cusolverDnCreate", c->fault);
        if (!status)
            status = ad_cuda_solver_status(cusolverDnSetStream(made, stream->cuda), "cusolverDnSetStream", c->fault);
        if (status) return status;
        stream->solver = made;
    }
    *out = stream->solver;
    return 0;
}

void ad_cuda_solver_close(ad_stream *stream) {
    if (stream->solver) cusolverDnDestroy(stream->solver);
    stream->solver = nullptr;
}

int ad_cuda_solver_parameters(ad_call *c, cusolverDnParams_t *out) {
    ad_cuda_libraries *l = nullptr;
    int status = libraries_of(c->stream->device, &l, c->fault);
    if (status) return status;
    if (!l->parameters) {
        cusolverDnParams_t made;
        status = ad_cuda_solver_status(cusolverDnCreateParams(&made), "cusolverDnCreateParams", c->fault);
        if (status) return status;
        l->parameters = made;
    }
    *out = l->parameters;
    return 0;
}

int ad_cuda_fft_plans_of(ad_call *c, ad_cuda_fft_plans ***out) {
    ad_cuda_libraries *l = nullptr;
    int status = libraries_of(c->stream->device, &l, c->fault);
    if (!status) *out = &l->fft_plans;
    return status;
}

void ad_cuda_device_plans(ad_device *device, ad_plans *plans) {
    *plans = {};
    if (device->libraries) ad_cuda_fft_plans_count(device->libraries->fft_plans, plans);
}

int ad_cuda_blas_status(cublasStatus_t status, const char *what, ad_fault *fault) {
    if (status == CUBLAS_STATUS_SUCCESS) return 0;
    return library_fault(what, "cuBLAS", int(status), status == CUBLAS_STATUS_ALLOC_FAILED, fault);
}

int ad_cuda_fft_status(cufftResult status, const char *what, ad_fault *fault) {
    if (status == CUFFT_SUCCESS) return 0;
    return library_fault(what, "cuFFT", int(status), status == CUFFT_ALLOC_FAILED, fault);
}

int ad_cuda_solver_status(cusolverStatus_t status, const char *what, ad_fault *fault) {
    if (status == CUSOLVER_STATUS_SUCCESS) return 0;
    return library_fault(what, "cuSOLVER", int(status), status == CUSOLVER_STATUS_ALLOC_FAILED, fault);
}

void ad_cuda_libraries_close(ad_device *device) {
    ad_cuda_libraries *l = device->libraries;
    if (!l) return;
    ad_cuda_fft_plans_close(l->fft_plans);
    if (l->parameters) cusolverDnDestroyParams(l->parameters);
    if (l->blas) cublasDestroy(l->blas);
    delete l;
    device->libraries = nullptr;
}
