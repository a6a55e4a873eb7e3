/* Atomic operations on types that CUDA C++ has none for, by cupy/atomics.cuh's name. The host's prelude has them for
 * every type. */
#ifndef AD_RUN_ATOMICS_H
#define AD_RUN_ATOMICS_H

#include <cupy/float16.cuh>

#ifndef __ARRAYD_HOST__

namespace ad_kernel {
/* *p becomes f(*p), by exchanging the word of type U that holds it; what it was. */
template <class U, class T, class F> static inline __device__ T exchange_until(T *p, F f) {
    U now = *(volatile U *)p;
    for (;;) {
        const T old = same_bits<T>(now);
        const U seen = atomicCAS((U *)p, now, same_bits<U>(T(f(old))));
        if (seen == now) return old;
        now = seen;
    }
}
} // namespace ad_kernel

static inline __device__ long long atomicAdd(long long *p, long long v) {
    return (long long)atomicAdd((unsigned long long *)p, (unsigned long long)v);
}
static inline __device__ long atomicAdd(long *p, long v) {
    return (long)atomicAdd((unsigned long long *)p, (unsigned long long)v);
}
static inline __device__ unsigned long atomicAdd(unsigned long *p, unsigned long v) {
    return (unsigned long)atomicAdd((unsigned long long *)p, (unsigned long long)v);
}
#define AD_REAL_ATOMIC(type, word)                                                                      \
    static inline __device__ type atomicMax(type *p, type v) {                                          \
        return ad_kernel::exchange_until<word>(p, [v](type old) -> type { return old < v ? v : old; }); \
    }                                                                                                   \
    static inline __device__ type atomicMin(type *p, type v) {                                          \
        return ad_kernel::exchange_until<word>(p, [v](type old) -> type { return v < old ? v : old; }); \
    }
AD_REAL_ATOMIC(float, unsigned int)
AD_REAL_ATOMIC(double, unsigned long long)
#undef AD_REAL_ATOMIC

/* Add to two bytes, by the word of four that they are in, whose other half stays. */
static inline __device__ float16 atomicAdd(float16 *p, float16 v) {
    unsigned int *const word = (unsigned int *)((size_t)p & ~(size_t)3), shift = ((size_t)p & 2) * 8;
    unsigned int now = *(volatile unsigned int *)word;
    for (;;) {
        float16 old, sum;
        old.bits = (unsigned short)(now >> shift);
        sum = (float)old + (float)v;
        const unsigned int seen = atomicCAS(word, now, (now & ~(0xffffu << shift)) | (unsigned int)sum.bits << shift);
        if (seen == now) return old;
        now = seen;
    }
}

#endif
#endif
