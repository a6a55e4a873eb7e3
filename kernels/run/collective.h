/* Reductions and scans by the threads of a warp or a block together, for kernels written in Python (cupyx.jit.cub). */
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

/* Steps of doubled width over N threads, of which the caller is number `rank`. T is added in A. */
template <class T, class A, int N, class Wait> struct scanner {
    typedef storage<A, N> TempStorage;
    TempStorage *temporary;
    int rank;
    template <class Op> __device__ T InclusiveScan(T value, Op op) const {
        A *const at = temporary->at();
        A sum = A(value);
        at[rank] = sum;
        Wait::wait();
        for (int width = 1; width < N; width *= 2) {
            if (rank >= width) sum = op(at[rank - width], sum);
            Wait::wait();
            at[rank] = sum;
            Wait::wait();
        }
        return T(sum);
    }
    __device__ T InclusiveSum(T value) const { return InclusiveScan(value, ad_collective::Sum()); }
    __device__ T ExclusiveSum(T value) const {
        InclusiveSum(value);
        return rank ? T(temporary->at()[rank - 1]) : T(0);
    }
};

static inline __device__ int thread_rank() {
    return int(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z));
}

#define AD_COLLECTIVE(name, base, wait, n, index)                                 \
    struct name : base<T, A, n, wait> {                                           \
        name() = default;                                                         \
        __device__ explicit name(typename base<T, A, n, wait>::TempStorage &at) { \
            this->temporary = &at;                                                \
            this->rank = index;                                                   \
        }                                                                         \
    };
template <class T, class A> AD_COLLECTIVE(warp_reduce, reducer, wait_for_warp, 32, thread_rank() % 32)
template <class T, class A> AD_COLLECTIVE(warp_scan, scanner, wait_for_warp, 32, thread_rank() % 32)
template <class T, class A, int N> AD_COLLECTIVE(block_reduce, reducer, wait_for_block, N, thread_rank())
template <class T, class A, int N> AD_COLLECTIVE(block_scan, scanner, wait_for_block, N, thread_rank())
#undef AD_COLLECTIVE

} // namespace ad_collective
#endif
