/* The order of sort, argsort and searchsorted: ascending, NaN last, -0.0 equal to 0.0. */
#ifndef AD_KERNELS_CALL_ORDER_H
#define AD_KERNELS_CALL_ORDER_H

#include "kernels/types.h"

namespace ad {
inline namespace AD_ISA {

template <int Size> struct uint_of;
template <> struct uint_of<1> { using type = uint8_t; };
template <> struct uint_of<2> { using type = uint16_t; };
template <> struct uint_of<4> { using type = uint32_t; };
template <> struct uint_of<8> { using type = uint64_t; };

/* Every real type as an unsigned integer in the same order. NaN is the greatest; -0.0 comes just before 0.0. */
template <class S> struct order {
    using key = typename uint_of<sizeof(S)>::type;
    static constexpr bool real = same<S, half> || same<S, bfloat16> || is_float<S>;
    static constexpr key sign = key(key(1) << (8 * sizeof(S) - 1));
    static constexpr key nan = key(~key(0));
    static constexpr key minus_zero = key(sign - 1), zero = sign; /* of real types */
    static constexpr key infinity = same<S, half>       ? key(0x7c00)
                                    : same<S, bfloat16> ? key(0x7f80)
                                    : same<S, float>    ? key(0x7f800000)
                                                        : key(0x7ff0000000000000ull);
    static constexpr key quiet_nan = key(infinity | (infinity >> 1));

    static AD_HD key of(S v) {
        if constexpr (same<S, bool8>) return key(bool(v));
        else {
            key b = bit_cast<key>(v);
            if constexpr (real) {
                if (key(b & key(~sign)) > infinity) return nan;
                return key(b & sign ? key(~b) : key(b | sign));
            } else return is_signed<S> ? key(b ^ sign) : b;
        }
    }
    static AD_HD S back(key k) {
        if constexpr (same<S, bool8>) return bool8(k != 0);
        else if constexpr (real) {
            if (k == nan) return bit_cast<S>(quiet_nan);
            return bit_cast<S>(key(k & sign ? key(k ^ sign) : key(~k)));
        } else return bit_cast<S>(key(is_signed<S> ? key(k ^ sign) : k));
    }
    /* Both zeros alike. */
    static AD_HD key equal(S v) {
        key k = of(v);
        return real && k == minus_zero ? zero : k;
    }
};

/* Order complex numbers by real, then by imaginary part, as NumPy does. Numbers with a NaN imaginary part come after
 * all that have none. Those with a NaN real part come last. */
template <class T> AD_HD bool sorts_before(complex<T> a, complex<T> b) {
    int a_class = 2 * (a.re != a.re) + (a.im != a.im), b_class = 2 * (b.re != b.re) + (b.im != b.im);
    if (a_class != b_class) return a_class < b_class;
    if (a.re < b.re || b.re < a.re) return a.re < b.re;
    return a.im < b.im;
}
template <class S> AD_HD bool sorts_before(S a, S b) { return order<S>::equal(a) < order<S>::equal(b); }

} // namespace AD_ISA
} // namespace ad
#endif
