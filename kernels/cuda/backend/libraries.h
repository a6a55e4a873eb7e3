/* Handles of cuBLAS, cuSOLVER and cuFFT, which are made when first asked for, and the errors of these libraries.
 *
 * A device has one handle of cuBLAS. It stays bound to a stream until somebody asks for it again, so ask at the
 * beginning of each operation and never keep it. Each stream has a handle of cuSOLVER of its own: one that goes from
 * stream to stream fails now and then (Xgetrs with CUSOLVER_STATUS_INTERNAL_ERROR).
 *
 * Nothing here allocates device memory behind the quota's back. cuBLAS works in the scratch memory that it is given.
 * cuSOLVER's 64-bit interface takes its own as arguments. Make plans of cuFFT with cufftSetAutoAllocation(plan, 0), and
 * run them with cufftSetWorkArea. */
#ifndef AD_KERNELS_CUDA_BACKEND_LIBRARIES_H
#define AD_KERNELS_CUDA_BACKEND_LIBRARIES_H

#include <cublas_v2.h>
#include <cufft.h>
#include <cusolverDn.h>

#include "kernels/call.h"
#include "kernels/cuda/backend/device.h"

/* Get the workspace that NVIDIA recommends for its fastest products: 32 MiB since Hopper, 4 MiB before. Small products
 * need less. */
uint64_t ad_cuda_blas_workspace(const ad_device *device);

/* Get the handle of cuBLAS for products. workspace: bytes of scratch memory, taken from ad_call_workspace; there may be
 * fewer. Scalars are on the host; the math mode is the default one (no TF32). */
int ad_cuda_blas(ad_call *c, uint64_t workspace, cublasHandle_t *out);
/* Get that handle for factorisations and triangular systems, with a workspace of 4 MiB and no less: without one
 * cublasSgetrfBatched of more than 64 rows launches kernels for ever (13.1). AD_E_MEMORY where there is none. */
int ad_cuda_blas_factor(ad_call *c, cublasHandle_t *out);
/* Get the stream's handle of cuSOLVER, which works on the whole device: it cannot be told of a part. Ask before
 * anything else reads the stream. */
int ad_cuda_solver(ad_call *c, cusolverDnHandle_t *out);
void ad_cuda_solver_close(ad_stream *stream);
/* Parameters for cuSOLVER's 64-bit interface, all defaults. */
int ad_cuda_solver_parameters(ad_call *c, cusolverDnParams_t *out);
/* Get the place of the device's plans of cuFFT (call/fft/plans.h). */
int ad_cuda_fft_plans_of(ad_call *c, struct ad_cuda_fft_plans ***out);

/* As ad_cuda_status. */
int ad_cuda_blas_status(cublasStatus_t status, const char *what, ad_fault *fault);
int ad_cuda_fft_status(cufftResult status, const char *what, ad_fault *fault);
int ad_cuda_solver_status(cusolverStatus_t status, const char *what, ad_fault *fault);

void ad_cuda_libraries_close(ad_device *device);

#endif
