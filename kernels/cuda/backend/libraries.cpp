#include "kernels/cuda/backend/libraries.h"

#include "kernels/cuda/call/fft/plans.h"

#include <new>
#include <stdlib.h>

struct ad_cuda_libraries {
    cublasHandle_t blas;
    cusolverDnParams_t parameters;
    ad_cuda_fft_plans *fft_plans;
};

namespace {

int libraries_of(ad_device *device, ad_cuda_libraries **out, ad_fault *fault) {
    if (device->libraries == nullptr) device->libraries = new (std::nothrow) ad_cuda_libraries();
    if (device->libraries == nullptr) return ad__fault(fault, AD_E_MEMORY, "out of memory");
    *out = device->libraries;
    return 0;
}

/* A failure of a library may be the device's own, which then says more. */
int library_fault(const char *what, const char *library, int status, bool memory, ad_fault *fault) {
    cudaError_t error = cudaPeekAtLastError();
    if (error != cudaSuccess) {
        int rc = ad_cuda_status(error, what, fault);
        if (rc == AD_E_DEVICE_LOST) return rc;
        cudaGetLastError();
    }
    if (memory) return ad__fault(fault, AD_E_MEMORY, "%s: %s is out of memory", what, library);
    return ad__fault(fault, AD_E_DEVICE, "%s: %s failed with status %d", what, library, status);
}

int make_blas(cublasHandle_t *out, ad_fault *fault) {
    cublasHandle_t made;
    int rc = ad_cuda_blas_status(cublasCreate(&made), "cublasCreate", fault);
    if (rc == 0) *out = made;
    return rc;
}

/* Get workspace. Less of it than wanted is no reason to fail: the session's limit may be small. */
void *workspace_of(ad_call *c, uint64_t *size) {
    constexpr uint64_t LEAST = 256 << 10;
    for (; *size >= LEAST; *size /= 4) {
        void *memory = c->run->workspace(c->run, *size);
        if (memory != nullptr) return memory;
    }
    *size = 0;
    return nullptr;
}

} // namespace

uint64_t ad_cuda_blas_workspace(const ad_device *device) { return device->major >= 9 ? 32u << 20 : 4u << 20; }

int ad_cuda_blas(ad_call *c, uint64_t workspace, cublasHandle_t *out) {
    ad_cuda_libraries *l = nullptr;
    int rc = libraries_of(c->stream->device, &l, c->fault);
    if (rc < 0 || (l->blas == nullptr && (rc = make_blas(&l->blas, c->fault)) < 0)) return rc;
    if ((rc = ad_cuda_blas_status(cublasSetStream(l->blas, c->stream->cuda), "cublasSetStream", c->fault)) < 0)
        return rc;
    void *memory = workspace_of(c, &workspace);
    rc = ad_cuda_blas_status(cublasSetWorkspace(l->blas, memory, workspace), "cublasSetWorkspace", c->fault);
    if (rc == 0) *out = l->blas;
    return rc;
}

int ad_cuda_solver(ad_call *c, cusolverDnHandle_t *out) {
    ad_stream *stream = c->stream;
    if (stream->solver == nullptr) {
        cusolverDnHandle_t made;
        int rc = ad_cuda_solver_status(cusolverDnCreate(&made), "cusolverDnCreate", c->fault);
        if (rc == 0)
            rc = ad_cuda_solver_status(cusolverDnSetStream(made, stream->cuda), "cusolverDnSetStream", c->fault);
        if (rc < 0) return rc;
        stream->solver = made;
    }
    *out = stream->solver;
    return 0;
}

void ad_cuda_solver_close(ad_stream *stream) {
    if (stream->solver != nullptr) cusolverDnDestroy(stream->solver);
    stream->solver = nullptr;
}

int ad_cuda_solver_parameters(ad_call *c, cusolverDnParams_t *out) {
    ad_cuda_libraries *l = nullptr;
    int rc = libraries_of(c->stream->device, &l, c->fault);
    if (rc < 0) return rc;
    if (l->parameters == nullptr) {
        cusolverDnParams_t made;
        rc = ad_cuda_solver_status(cusolverDnCreateParams(&made), "cusolverDnCreateParams", c->fault);
        if (rc < 0) return rc;
        l->parameters = made;
    }
    *out = l->parameters;
    return 0;
}

int ad_cuda_fft_plans_of(ad_call *c, ad_cuda_fft_plans ***out) {
    ad_cuda_libraries *l = nullptr;
    int rc = libraries_of(c->stream->device, &l, c->fault);
    if (rc == 0) *out = &l->fft_plans;
    return rc;
}

void ad_cuda_device_plans(ad_device *device, ad_plans *plans) {
    *plans = {};
    if (device->libraries != nullptr) ad_cuda_fft_plans_count(device->libraries->fft_plans, plans);
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
    if (l == nullptr) return;
    ad_cuda_fft_plans_close(l->fft_plans);
    if (l->parameters != nullptr) cusolverDnDestroyParams(l->parameters);
    if (l->blas != nullptr) cublasDestroy(l->blas);
    delete l;
    device->libraries = nullptr;
}
