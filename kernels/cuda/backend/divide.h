/* Division by a number that is the same for all threads, for indices below 2^31: by multiplying. */
#ifndef AD_KERNELS_CUDA_BACKEND_DIVIDE_H
#define AD_KERNELS_CUDA_BACKEND_DIVIDE_H

#include <stdint.h>

struct ad_divisor {
    uint32_t value, factor, shift;

    /* value: 1 to 2^31 - 1. */
    void set(int64_t v) {
        value = uint32_t(v);
        factor = shift = 0;
        if (v == 1) return;
        int bits = 0;
        while ((int64_t(1) << bits) < v) bits++;
        factor = uint32_t(((uint64_t(1) << (31 + bits)) + uint64_t(v) - 1) / uint64_t(v));
        shift = uint32_t(bits - 1);
    }
#ifdef __CUDACC__
    __device__ uint32_t divide(uint32_t n, uint32_t *rest) const {
        const uint32_t q = value == 1 ? n : __umulhi(n, factor) >> shift;
        *rest = n - q * value;
        return q;
    }
#endif
};

#endif
