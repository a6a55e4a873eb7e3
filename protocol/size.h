/* Saturating products and sums of numbers from 0 up, which stay at INT64_MAX: for unchecked sizes and for estimates. */
#ifndef AD_PROTOCOL_SIZE_H
#define AD_PROTOCOL_SIZE_H

#include <stdint.h>

static inline int64_t ad__size_product(int64_t a, int64_t b) {
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX : product;
}

static inline int64_t ad__size_sum(int64_t a, int64_t b) {
    int64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

#endif
