/* AD_CUDA_TABLE(float32) defines all kernels of a loop type and the function that fills in their table. */
#ifndef AD_KERNELS_CUDA_TABLE_CUH
#define AD_KERNELS_CUDA_TABLE_CUH

#include "kernels/accumulate.h"
#include "kernels/cuda/kernels.h"
#include "kernels/ufunc.h"

namespace ad {
inline namespace AD_ISA {

/* ---- elementwise ---- */

template <class S> __device__ compute_t<S> get(const void *p) {
    if constexpr (same<S, none>) return {};
    else return load(*static_cast<const S *>(p));
}
template <class U> __device__ void one(void *const *p) {
    typename U::R0 r0;
    typename U::R1 r1;
    U::apply(get<typename U::X>(p[U::nout]), get<typename U::Y>(p[U::nin > 1 ? U::nout + 1 : 0]),
             get<typename U::Z>(p[U::nin > 2 ? U::nout + 2 : 0]), r0, r1);
    *static_cast<typename U::O0 *>(p[0]) = typename U::O0(r0);
    if constexpr (U::nout > 1) *static_cast<typename U::O1 *>(p[1]) = typename U::O1(r1);
}

template <class U> __global__ void __launch_bounds__(AD_CUDA_THREADS) contiguous(const __grid_constant__ ad_cuda_loop l) {
    const int64_t size[] = {sizeof(typename U::O0), U::nout > 1 ? sizeof(typename U::O1) : sizeof(typename U::X),
                            U::nout > 1 ? sizeof(typename U::X) : sizeof(typename U::Y),
                            U::nout > 1 ? sizeof(typename U::Y) : sizeof(typename U::Z), sizeof(typename U::Z)};
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < l.count; i += int64_t(gridDim.x) * blockDim.x) {
        void *p[5];
        for (int k = 0; k < U::nout + U::nin; k++) p[k] = static_cast<char *>(l.base[k]) + i * size[k];
        one<U>(p);
    }
}

template <class U> __global__ void __launch_bounds__(AD_CUDA_THREADS) strided(const __grid_constant__ ad_cuda_loop l) {
    constexpr int nop = U::nout + U::nin;
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < l.count; i += int64_t(gridDim.x) * blockDim.x) {
        char *p[nop + 1];
        for (int k = 0; k <= nop; k++) p[k] = static_cast<char *>(l.base[k]);
        int64_t rest = i;
        for (int d = l.ndim - 1; d >= 0; d--) {
            int64_t at = rest % l.shape[d];
            rest /= l.shape[d];
            for (int k = 0; k <= nop; k++) p[k] += at * l.stride[k][d];
        }
        if (l.base[nop] && !*p[nop]) continue;
        one<U>(reinterpret_cast<void *const *>(p));
    }
}

/* ---- reductions: one block for each output ---- */

__device__ inline void locate(int64_t i, int ndim, const int64_t *shape, const int64_t *stride, const int64_t *mask_stride,
                              int64_t *at, int64_t *mask_at) {
    for (int d = ndim - 1; d >= 0; d--) {
        *at += i % shape[d] * stride[d];
        *mask_at += i % shape[d] * mask_stride[d];
        i /= shape[d];
    }
}

/* Booleans are reduced as integers 0 and 1. */
template <class S> struct reduced_as {
    using type = compute_t<S>;
};
template <> struct reduced_as<bool8> {
    using type = uint8_t;
};

template <template <class> class A, class S, class O>
__global__ void __launch_bounds__(AD_CUDA_THREADS) reduce(const __grid_constant__ ad_cuda_reduction r) {
    using T = typename reduced_as<S>::type;
    __shared__ __align__(16) char memory[sizeof(A<T>) * AD_CUDA_THREADS];
    A<T> *state = reinterpret_cast<A<T> *>(memory), mine;
    for (int64_t o = blockIdx.x; o < r.outputs; o += gridDim.x) {
        int64_t start = 0, mask_start = 0;
        locate(o, r.kept_ndim, r.kept_shape, r.kept_stride, r.kept_mask_stride, &start, &mask_start);
        mine.init();
        for (int64_t i = threadIdx.x; i < r.reduced; i += blockDim.x) {
            int64_t at = start, mask_at = mask_start;
            locate(i, r.reduced_ndim, r.reduced_shape, r.reduced_stride, r.reduced_mask_stride, &at, &mask_at);
            if (r.mask && !static_cast<const char *>(r.mask)[mask_at]) continue;
            T x = T(load(*reinterpret_cast<const S *>(static_cast<const char *>(r.in) + at)));
            if constexpr (INDEXED<A<T>>) mine.take(x, i);
            else mine.take(x);
        }
        state[threadIdx.x] = mine;
        __syncthreads();
        for (int step = AD_CUDA_THREADS / 2; step > 0; step /= 2) {
            if (threadIdx.x < step) state[threadIdx.x].merge(state[threadIdx.x + step]);
            __syncthreads();
        }
        if (threadIdx.x == 0) static_cast<O *>(r.out)[o] = O(state[0].template result<compute_t<O>>(r.ddof));
        __syncthreads();
    }
}

/* ---- the table ---- */

template <int Id, class S> void add_ufunc(ad_cuda_table *t) {
    if constexpr (ufunc_row<Id>::loops >> dtype_of<S>::value & 1) {
        t->strided[Id] = reinterpret_cast<const void *>(&strided<ufunc<Id, S>>);
        t->contiguous[Id] = reinterpret_cast<const void *>(&contiguous<ufunc<Id, S>>);
    }
}
template <int Id, template <class> class A, int Rule, class S> void add_reduction(ad_cuda_table *t) {
    if constexpr (rule<Rule>::loops >> dtype_of<S>::value & 1) {
        using O = typename coded<rule<Rule>::out0, S>::type;
        t->reduce[Id] = reinterpret_cast<const void *>(&reduce<A, S, O>);
    }
}
template <class S> void fill(ad_cuda_table *t) {
#define AD_UFUNC(id, name, nin, nout, rulename, domain, doc, ...) add_ufunc<id, S>(t);
#include "protocol/ufunc.def"
#undef AD_UFUNC
#define AD_REDUCTION(id, name, rulename, accumulator, empty, domain, doc)                                              \
    add_reduction<id, accumulator, AD_RULE_##rulename, S>(t);
#include "protocol/reduction.def"
#undef AD_REDUCTION
}

} // namespace AD_ISA
} // namespace ad

#define AD_CUDA_TABLE(name)                                                                                            \
    void ad_cuda_fill_##name(ad_cuda_table *t);                                                                        \
    void ad_cuda_fill_##name(ad_cuda_table *t) { ad::fill<ad::t_##name>(t); }
#endif
