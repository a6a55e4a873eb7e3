/* cuBLAS, cuSOLVER and cuFFT: handles, made when first asked for; and what they say.
 *
 * cuBLAS has one for a device, which is bound to the stream it was asked for until it is asked for again: ask at the
 * beginning of each operation, never keep it. cuSOLVER has one for each stream: one that goes from stream to stream
 * fails now and then (Xgetrs with CUSOLVER_STATUS_INTERNAL_ERROR). Nothing here allocates device memory behind the
 * quota's back: cuBLAS works in the scratch memory that it is given, cuSOLVER's 64-bit interface takes its own as
 * arguments, and plans of cuFFT are to be made with cufftSetAutoAllocation(plan, 0) and run with cufftSetWorkArea. */
#ifndef AD_KERNELS_CUDA_BACKEND_LIBRARIES_H
#define AD_KERNELS_CUDA_BACKEND_LIBRARIES_H

#include <cublas_v2.h>
#include <cufft.h>
#include <cusolverDn.h>

#include "kernels/call.h"
#include "kernels/cuda/backend/device.h"

/* What NVIDIA recommends for its fastest products: 32 MiB since Hopper, 4 MiB before. For small ones less does. */
uint64_t ad_cuda_blas_workspace(const ad_device *device);

/* workspace: bytes of scratch memory for cuBLAS to work in (0: none, which not all its algorithms can do with); taken
 * from ad_call_workspace, and fewer when there are not as many. Host scalars; default math mode (no TF32). */
int ad_cuda_blas(ad_call *c, uint64_t workspace, cublasHandle_t *out);
int ad_cuda_solver(ad_call *c, cusolverDnHandle_t *out);
void ad_cuda_solver_close(ad_stream *stream);
/* Parameters for cuSOLVER's 64-bit interface, all defaults. */
int ad_cuda_solver_parameters(ad_call *c, cusolverDnParams_t *out);
/* Where the device's plans of cuFFT are (call/fft/plans.h). */
int ad_cuda_fft_plans_of(ad_call *c, struct ad_cuda_fft_plans ***out);

/* As ad_cuda_status. */
int ad_cuda_blas_status(cublasStatus_t status, const char *what, ad_fault *fault);
int ad_cuda_fft_status(cufftResult status, const char *what, ad_fault *fault);
int ad_cuda_solver_status(cusolverStatus_t status, const char *what, ad_fault *fault);

void ad_cuda_libraries_close(ad_device *device);

#endif
