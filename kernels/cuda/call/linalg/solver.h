/* cuSOLVER and cuBLAS by type: what the decompositions' host code shares. */
#ifndef AD_KERNELS_CUDA_CALL_LINALG_SOLVER_H
#define AD_KERNELS_CUDA_CALL_LINALG_SOLVER_H

#include <algorithm>
#include <limits.h>
#include <memory>

#include "kernels/cuda/call/linalg/linalg.h"
#include "kernels/cuda/backend/checks.h"
#include "kernels/cuda/backend/libraries.h"

constexpr int64_t AD_LINALG_BATCH = 1 << 16; /* matrices of one batched call */

/* The functions that have a type in their names. */
template <class T> struct ad_solver_of;
#define AD_SOLVER(T, ELEMENT, REAL, x, gqr, ev)                                              \
    template <> struct ad_solver_of<T> {                                                     \
        using element = ELEMENT;                                                             \
        using real = REAL;                                                                   \
        static constexpr auto potrf_batched = cusolverDn##x##potrfBatched;                   \
        static constexpr auto getrf_batched = cublas##x##getrfBatched;                       \
        static constexpr auto getri_batched = cublas##x##getriBatched;                       \
        static constexpr auto getrs_batched = cublas##x##getrsBatched;                       \
        static constexpr auto geqrf_batched = cublas##x##geqrfBatched;                       \
        static constexpr auto trsm = cublas##x##trsm;                                        \
        static constexpr auto trsm_batched = cublas##x##trsmBatched;                         \
        static constexpr auto make_q_size = cusolverDn##x##gqr##_bufferSize;                 \
        static constexpr auto make_q = cusolverDn##x##gqr;                                   \
        static constexpr auto gesvdj_batched_size = cusolverDn##x##gesvdjBatched_bufferSize; \
        static constexpr auto gesvdj_batched = cusolverDn##x##gesvdjBatched;                 \
        static constexpr auto eigh_batched_size = cusolverDn##x##ev##jBatched_bufferSize;    \
        static constexpr auto eigh_batched = cusolverDn##x##ev##jBatched;                    \
    };
AD_SOLVER(float, float, float, S, orgqr, syev)
AD_SOLVER(double, double, double, D, orgqr, syev)
AD_SOLVER(ad::complex<float>, cuComplex, float, C, ungqr, heev)
AD_SOLVER(ad::complex<double>, cuDoubleComplex, double, Z, ungqr, heev)
#undef AD_SOLVER

/* A call's handle, and how the 64-bit functions are told of its types. */
struct ad_solver {
    ad_call *c;
    cusolverDnHandle_t handle;
    cusolverDnParams_t parameters;
    cudaDataType data, real;
    int64_t size; /* of an element */

    int open(ad_call *call) {
        static const cudaDataType types[4] = {CUDA_R_32F, CUDA_R_64F, CUDA_C_32F, CUDA_C_64F};
        const int loop = call->op->loop, wide = ad::real_dtype(loop) == AD_FLOAT64;
        c = call;
        real = types[wide];
        data = types[wide + (ad::is_complex_dtype(loop) ? 2 : 0)];
        size = ad::itemsize(loop);
        const int status = ad_cuda_solver(call, &handle);
        return status ? status : ad_cuda_solver_parameters(call, &parameters);
    }
    int check(cusolverStatus_t result, const char *what) const { return ad_cuda_solver_status(result, what, c->fault); }
};

/* Scratch memory of a 64-bit function, on both sides. */
struct ad_solver_room {
    size_t device_size = 0, host_size = 0;
    void *device = nullptr;
    std::unique_ptr<char[]> host;

    int open(ad_call *c) {
        if (host_size > 0) host.reset(new char[host_size]);
        device = ad_call_workspace(c, device_size);
        return !device ? AD_E_MEMORY : 0;
    }
};

/* Get n ints of scratch memory, zero. */
inline int ad_linalg_infos(ad_call *c, int64_t n, int **out) {
    *out = static_cast<int *>(ad_call_workspace(c, uint64_t(n) * sizeof(int)));
    if (!*out) return AD_E_MEMORY;
    return ad_cuda_status(cudaMemsetAsync(*out, 0, size_t(n) * sizeof(int), c->stream->cuda), "clearing infos",
                          c->fault);
}

/* A list of the matrices of a, in scratch memory. step: bytes from one to the next. */
inline int ad_linalg_list(ad_call *c, char *base, int64_t step, int64_t n, void ***out) {
    *out = static_cast<void **>(ad_call_workspace(c, uint64_t(n) * sizeof(void *)));
    return !*out ? AD_E_MEMORY : ad_linalg_pointers(c, *out, base, step, n);
}

/* Call f(first, n) for parts of a batch that fit one batched call. */
template <class F> int ad_linalg_parts(int64_t batch, F f) {
    int status = 0;
    for (int64_t i = 0; i < batch && !status; i += AD_LINALG_BATCH)
        status = f(i, int(std::min(AD_LINALG_BATCH, batch - i)));
    return status;
}

/* Many matrices that are small enough for a thread block each. */
inline bool ad_linalg_batched(int64_t batch, int64_t n, int64_t most) { return batch > 1 && n <= most; }

/* Check that sizes fit the int of functions that have no 64-bit version. */
inline int ad_linalg_fits(ad_call *c, const ad::array &a) {
    if (ad::rows(a) <= INT_MAX && ad::columns(a) <= INT_MAX) return 0;
    return ad__fault(c->fault, AD_E_UNSUPPORTED, "a matrix has more than %d rows or columns", INT_MAX);
}

#endif
