/* Division of integers by one number: a multiplication by its reciprocal, as compilers do for constants. Host only. */
#ifndef AD_KERNELS_MATH_DIVIDE_H
#define AD_KERNELS_MATH_DIVIDE_H

#include "kernels/types.h"

namespace adm {
inline namespace AD_ISA {

/* The upper half of a product. */
inline uint16_t upper(uint16_t a, uint16_t b) { return uint16_t((uint32_t(a) * b) >> 16); }
inline uint32_t upper(uint32_t a, uint32_t b) { return uint32_t((uint64_t(a) * b) >> 32); }
inline uint64_t upper(uint64_t a, uint64_t b) {
#ifdef __AVX512F__ /* of halves, which vectorises: faster here, and slower with vectors of 32 bytes */
    uint64_t a0 = uint32_t(a), a1 = a >> 32, b0 = uint32_t(b), b1 = b >> 32;
    uint64_t middle = a1 * b0 + (a0 * b0 >> 32), other = a0 * b1 + uint32_t(middle);
    return a1 * b1 + (middle >> 32) + (other >> 32);
#else
    return uint64_t((unsigned __int128)(a)*b >> 64);
#endif
}

/* Division by a number that is known before. For d = |value| > 1 and 2^(l-1) < d <= 2^l the factor is 2^k / d, rounded
 * up, which is at most (d - 1) / 2^k above it. So n * factor >> k is n / d for all n with n * (d - 1) < 2^k. Signed
 * types have n up to 2^(N-1), so k = N - 1 + l, and the factor has N bits. Unsigned types need k = N + l; the factor's
 * bit N is left out of it, and the sum makes up for it. Types of 8 bits have k = 16, in 16 bits. */
template <class T> struct divisor {
    static constexpr bool tiny = sizeof(T) == 1, sign = ad::is_signed<T>;
    static constexpr int bits = tiny ? 16 : 8 * int(sizeof(T));
    using U = ad::conditional_t<tiny, uint16_t, ad::unsigned_t<T>>;

    T value, flip; /* flip: all bits where value is negative */
    U factor;
    int shift;

    static bool takes(T value) { return value > 1 || (sign && value < T(-1)); }

    explicit divisor(T v) : value(v), flip(T(sign && v < 0 ? -1 : 0)), shift(0) {
        const uint64_t d = uint64_t(ad::unsigned_t<T>((v ^ flip) - flip));
        if (!tiny) shift = 63 - __builtin_clzll(d - 1);
        const uint64_t part = tiny || sign ? uint64_t(1) << shift : (uint64_t(2) << shift) - d;
        factor = U((((unsigned __int128)(part) << bits) + d - 1) / d);
    }
    U positive(U n) const {
        const U q = upper(n, factor);
        return tiny ? q : sign ? U(q >> shift) : U(U(q + U(U(n - q) >> 1)) >> shift);
    }
    /* The largest whole number not above x / value. Of a negative quotient n / d it is -1 - (-n - 1) / d. */
    T floor(T x) const {
        if constexpr (!sign) return T(positive(x));
        const T n = T(x ^ flip), less = T(n < flip ? -1 : 0);
        return T(T(positive(U(ad::unsigned_t<T>((n - flip) ^ less)))) ^ less);
    }
};

template <class T> T floor_divide(T x, const divisor<T> &y) { return y.floor(x); }
template <class T> T remainder(T x, const divisor<T> &y) {
    return T(ad::unsigned_t<T>(x) - 1u * ad::unsigned_t<T>(y.floor(x)) * ad::unsigned_t<T>(y.value));
}
template <class T> void divmod(T x, const divisor<T> &y, T &quotient, T &remainder) {
    quotient = y.floor(x);
    remainder = T(ad::unsigned_t<T>(x) - 1u * ad::unsigned_t<T>(quotient) * ad::unsigned_t<T>(y.value));
}

} // namespace AD_ISA
} // namespace adm
#endif
