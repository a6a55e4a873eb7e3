/* Reductions by the threads of a warp or a block together, for kernels written in Python (cupyx.jit.cub). */
#ifndef AD_RUN_COLLECTIVE_H
#define AD_RUN_COLLECTIVE_H

namespace ad_collective {

struct Sum {
    template <class T> __device__ T operator()(const T &a, const T &b) const { return T(a + b); }
};
struct Max {
    template <class T> __device__ T operator()(const T &a, const T &b) const { return a < b ? b : a; }
};
struct Min {
    template <class T> __device__ T operator()(const T &a, const T &b) const { return b < a ? b : a; }
};

/* The memory that N threads share for a reduction: bytes, as elements with constructors cannot be shared. */
template <class T, int N> struct alignas(16) storage {
    unsigned char bytes[N * sizeof(T)];
    __device__ T *at() { return (T *)bytes; }
};

struct wait_for_warp {
    static __device__ void wait() { __syncwarp(); }
};
struct wait_for_block {
    static __device__ void wait() { __syncthreads(); }
};

/* A tree over the first n of N threads, of which the caller is number `rank`. All have the result. T is reduced in A.
 */
template <class T, class A, int N, class Wait> struct reducer {
    typedef storage<A, N> TempStorage;
    TempStorage *temporary;
    int rank;
    template <class Op> __device__ T Reduce(T value, Op op, int n = N) const {
        A *const at = temporary->at();
        at[rank] = A(value);
        Wait::wait();
        int half = 1;
        while (half < n) half *= 2;
        for (half /= 2; half > 0; half /= 2) {
            if (rank < half && rank + half < n) at[rank] = op(at[rank], at[rank + half]);
            Wait::wait();
        }
        return T(at[0]);
    }
    __device__ T Sum(T value, int n = N) const { return Reduce(value, ad_collective::Sum(), n); }
};

static inline __device__ int thread_rank() {
    return int(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z));
}

template <class T, class A> struct warp_reduce : reducer<T, A, 32, wait_for_warp> {
    warp_reduce() = default;
    __device__ explicit warp_reduce(typename reducer<T, A, 32, wait_for_warp>::TempStorage &temporary) {
        this->temporary = &temporary;
        this->rank = thread_rank() % 32;
    }
};
template <class T, class A, int N> struct block_reduce : reducer<T, A, N, wait_for_block> {
    block_reduce() = default;
    __device__ explicit block_reduce(typename reducer<T, A, N, wait_for_block>::TempStorage &temporary) {
        this->temporary = &temporary;
        this->rank = thread_rank();
    }
};

} // namespace ad_collective
#endif
