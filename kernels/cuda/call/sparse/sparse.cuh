/* Functions that the kernels on sparse matrices share. A kernel of its own looks through indptr, which nobody else
 * writes; the kernels that follow do nothing where it is wrong. An index is bounded in the register that it has been
 * read into. */
#ifndef AD_KERNELS_CUDA_CALL_SPARSE_SPARSE_CUH
#define AD_KERNELS_CUDA_CALL_SPARSE_SPARSE_CUH

#include "kernels/call_sparse.h"
#include "kernels/cuda/backend/checks.h"
#include "kernels/cuda/backend/device.h"

namespace {

using namespace ad;

constexpr int THREADS = 256;

/* The arguments of every kernel. */
template <class T, class I> struct sparse_task {
    csr<T, I> m;
    panel<const T> x;
    panel<T> y;
    int *stop;     /* device memory: not 0 says that indptr is wrong */
    int *has_long; /* behind it: not 0 says that rows are left to multiply_long */
    ad_check *check;
};

template <class T> __device__ inline T load_once(const T *p) {
    if constexpr (same<T, float> || same<T, double> || same<T, int32_t>) return __ldcs(p);
    else if constexpr (same<T, int64_t>) return int64_t(__ldcs(reinterpret_cast<const long long *>(p)));
    else return *p;
}

__device__ inline void add_at(float *p, float v) { atomicAdd(p, v); }
__device__ inline void add_at(double *p, double v) { atomicAdd(p, v); }
__device__ inline void add_at(uint64_t *p, uint64_t v) {
    atomicAdd(reinterpret_cast<unsigned long long *>(p), (unsigned long long)v);
}
template <class R> __device__ inline void add_at(complex<R> *p, complex<R> v) {
    atomicAdd(&p->re, v.re);
    atomicAdd(&p->im, v.im);
}

__device__ inline float shift_down(float v, int by, int width) { return __shfl_down_sync(~0u, v, by, width); }
__device__ inline double shift_down(double v, int by, int width) { return __shfl_down_sync(~0u, v, by, width); }
__device__ inline uint64_t shift_down(uint64_t v, int by, int width) {
    return __shfl_down_sync(~0u, (unsigned long long)v, by, width);
}
template <class R> __device__ inline complex<R> shift_down(complex<R> v, int by, int width) {
    return {__shfl_down_sync(~0u, v.re, by, width), __shfl_down_sync(~0u, v.im, by, width)};
}

template <int Lanes> struct lanes_of { static constexpr int value = Lanes; };

/* The sum over `Lanes` neighbouring lanes, in the first of them. All lanes of the warp call it. */
template <int Lanes, class T> __device__ inline T sum_lanes(T v) {
#pragma unroll
    for (int by = Lanes / 2; by > 0; by /= 2) v = v + shift_down(v, by, Lanes);
    return v;
}

/* The row of entry e, between rows `low` and `high`, whose bounds hold it. */
template <class I> __device__ inline int64_t find_row(const I *indptr, int64_t low, int64_t high, int64_t e) {
    while (low < high) {
        const int64_t middle = low + (high - low + 1) / 2;
        if (int64_t(indptr[middle]) <= e) low = middle;
        else high = middle - 1;
    }
    return low;
}

/* The first entry in [low, high) whose column is not below j. */
template <class I> __device__ inline int64_t find_column(const I *indices, int64_t low, int64_t high, int64_t j) {
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (int64_t(indices[middle]) < j) low = middle + 1;
        else high = middle;
    }
    return low;
}

template <class I> __global__ void __launch_bounds__(THREADS)
    check_indptr(const I *indptr, int64_t rows, int64_t entries, int *stop, ad_check *check) {
    const int64_t i = int64_t(blockIdx.x) * THREADS + threadIdx.x;
    if (i > rows) return;
    const int64_t v = indptr[i], before = i > 0 ? int64_t(indptr[i - 1]) : 0;
    if (v >= before && v <= entries) return;
    *stop = 1;
    ad_cuda_report(check, AD_CHECK_sparse_indptr, entries, 0, 0);
}

inline unsigned count_blocks(int64_t n, int64_t each) { return unsigned((n + each - 1) / each); }

/* Make t->stop, whose kernels set it. AD_E_MEMORY, AD_E_DEVICE. */
template <class T, class I> int enqueue_flags(ad_call *c, sparse_task<T, I> *t) {
    int *stop = static_cast<int *>(ad_call_workspace(c, 2 * sizeof(int)));
    if (!stop) return AD_E_MEMORY;
    t->stop = stop;
    t->has_long = stop + 1;
    t->check = c->run->check;
    c->run->checked = true;
    return ad_cuda_status(cudaMemsetAsync(stop, 0, 2 * sizeof(int), c->stream->cuda), "cudaMemsetAsync", c->fault);
}

/* Enqueue the look through indptr; t->stop is set. AD_E_MEMORY, AD_E_DEVICE. */
template <class T, class I> int enqueue_check(ad_call *c, sparse_task<T, I> *t) {
    const int status = enqueue_flags(c, t);
    if (status) return status;
    check_indptr<<<count_blocks(t->m.rows + 1, THREADS), THREADS, 0, c->stream->cuda>>>(
        t->m.indptr, t->m.rows, t->m.entries, t->stop, t->check);
    return ad_cuda_launched("the check of indptr", c->fault);
}

} // namespace
#endif
