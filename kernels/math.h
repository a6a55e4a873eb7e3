/* The functions of ufunc.def's expressions: NumPy's semantics for every type of the row's rule, without undefined
 * behaviour for any value. Reals and integers here, complex numbers in math_complex.h. */
#ifndef AD_KERNELS_MATH_H
#define AD_KERNELS_MATH_H

#include "kernels/math_libm.h"
#include "kernels/types.h"

/* Complaints of an element function; the operation fails with one after the loop. (The GPU's kernels look for
 * themselves: kernels/cuda/ufunc/device.cuh.) */
enum { AD_RAISE_NEGATIVE_POWER = 1 };
#ifndef __CUDACC__
extern __thread unsigned ad_cpu_raised;
#endif

namespace adm {
inline namespace AD_ISA {

using ad::bit_cast;
using ad::is_bool;
using ad::is_complex;
using ad::is_float;
using ad::is_int;
using ad::is_signed;
using ad::same;

AD_HD void raise(unsigned what) {
#ifndef __CUDACC__
    ad_cpu_raised |= what;
#else
    (void)what;
#endif
}

/* ---- constants ---- */

template <class F> struct limits;
template <> struct limits<float> {
    using bits = uint32_t;
    static constexpr float max = 3.40282346638528859812e+38f, tiny = 0x1p-149f;
};
template <> struct limits<double> {
    using bits = uint64_t;
    static constexpr double max = 1.79769313486231570815e+308, tiny = 0x1p-1074;
};
template <class F> AD_HD constexpr F pi() { return F(3.14159265358979323846); }
template <class F> AD_HD constexpr F log2e() { return F(1.44269504088896340736); }
template <class F> AD_HD constexpr F log10e() { return F(0.43429448190325182765); }
template <class F> AD_HD constexpr F ln2() { return F(0.69314718055994530942); }
template <class F> AD_HD F infinity() {
    return bit_cast<F>(same<F, float> ? typename limits<F>::bits(0x7f800000u)
                                      : typename limits<F>::bits(0x7ff0000000000000ull));
}
template <class F> AD_HD F nan() {
    return bit_cast<F>(same<F, float> ? typename limits<F>::bits(0x7fc00000u)
                                      : typename limits<F>::bits(0x7ff8000000000000ull));
}

/* ---- tests ---- */

template <class T> AD_HD bool truth(T x) { return x != T(0); }
template <class T> AD_HD bool isnan(T x) {
    if constexpr (is_float<T>) return x != x;
    else return false;
}
template <class T> AD_HD bool isinf(T x) {
    if constexpr (is_float<T>) return fabs(x) > limits<T>::max;
    else return false;
}
template <class T> AD_HD bool isfinite(T x) {
    if constexpr (is_float<T>) return fabs(x) <= limits<T>::max;
    else return true;
}
AD_HD bool signbit(float x) { return bit_cast<int32_t>(x) < 0; }
AD_HD bool signbit(double x) { return bit_cast<int64_t>(x) < 0; }
template <class T> AD_HD bool less(T x, T y) { return x < y; }
template <class T> AD_HD bool less_equal(T x, T y) { return x <= y; }

template <class T> AD_HD T maximum(T x, T y) {
    if constexpr (is_bool<T>) return x | y;
    else return (x >= y) | isnan(x) ? x : y;
}
template <class T> AD_HD T minimum(T x, T y) {
    if constexpr (is_bool<T>) return x & y;
    else return (x <= y) | isnan(x) ? x : y;
}
template <class T> AD_HD T fmax(T x, T y) {
    if constexpr (is_bool<T>) return x | y;
    else return (x >= y) | isnan(y) ? x : y;
}
template <class T> AD_HD T fmin(T x, T y) {
    if constexpr (is_bool<T>) return x & y;
    else return (x <= y) | isnan(y) ? x : y;
}

/* ---- arithmetic ---- */

/* Integers wrap: computed unsigned, in at least 32 bits. */
template <class T> AD_HD T add(T x, T y) {
    if constexpr (is_bool<T>) return x | y;
    else if constexpr (is_int<T>) return T(0u + ad::unsigned_t<T>(x) + ad::unsigned_t<T>(y));
    else return x + y;
}
template <class T> AD_HD T sub(T x, T y) {
    if constexpr (is_int<T>) return T(0u + ad::unsigned_t<T>(x) - ad::unsigned_t<T>(y));
    else return x - y;
}
template <class T> AD_HD T mul(T x, T y) {
    if constexpr (is_bool<T>) return x & y;
    else if constexpr (is_int<T>) return T(1u * ad::unsigned_t<T>(x) * ad::unsigned_t<T>(y));
    else return x * y;
}
template <class T> AD_HD T neg(T x) {
    if constexpr (is_int<T>) return T(0u - ad::unsigned_t<T>(x));
    else return -x;
}
template <class T> AD_HD T abs(T x) {
    if constexpr (is_float<T>) return fabs(x);
    else if constexpr (is_signed<T>) return x < 0 ? neg(x) : x;
    else return x;
}
template <class T> AD_HD T sign(T x) {
    if constexpr (is_float<T>) return x > 0 ? T(1) : x < 0 ? T(-1) : x == 0 ? T(0) : x;
    else if constexpr (is_signed<T>) return T((x > 0) - (x < 0));
    else return T(x > 0);
}
template <class T> AD_HD T reciprocal(T x) {
    if constexpr (is_int<T>) return ad::cast<T>(1.0 / double(x));
    else return T(1) / x;
}
template <class T> AD_HD T rsqrt(T x) { return T(1) / sqrt(x); }
template <class T> AD_HD T conj(T x) { return x; }
template <class T> AD_HD T real(T x) { return x; }
template <class T> AD_HD T imag(T) { return T(0); }

/* ---- division with remainder ---- */

/* Quotients of integers of up to 32 bits are exact in a wider float, which vectorises. */
template <class T> AD_HD T quotient(T x, T y) {
    if constexpr (sizeof(T) <= 2) return T(int32_t(float(x) / float(y)));
    else if constexpr (sizeof(T) == 4) return T(int64_t(double(x) / double(y)));
    else return x / y;
}
/* For int64 and uint64 the safe stand-in of a divisor that C cannot divide by. */
template <class T> AD_HD bool undivisible(T x, T y) {
    if constexpr (is_signed<T>) return (y == 0) | ((y == -1) & (x == T(ad::unsigned_t<T>(1) << (sizeof(T) * 8 - 1))));
    else return y == 0;
}
template <class T> AD_HD T int_divide(T x, T y) { /* towards zero; x/0 is 0, wraps */
    bool bad = undivisible(x, y);
    T q = quotient(x, bad ? T(1) : y);
    return y == 0 ? T(0) : q;
}
template <class T> AD_HD T int_modulo(T x, T y) { /* with x's sign; x%0 is 0 */
    T q = int_divide(x, y);
    return y == 0 ? T(0) : sub(x, mul(q, y));
}
/* Divide integers of up to 32 bits by way of a wider float, which vectorises. It needs no division when y is one
 * number: half a unit away from every whole quotient, the product's rounding cannot cross one. */
template <class T> AD_HD T narrow_floor_divide(T x, T y) {
    using F = ad::conditional_t<(sizeof(T) <= 2), float, double>;
    F a = y < 0 ? -F(x) : F(x), b = y == 0 ? F(1) : fabs(F(y));
    F q = floor((a + F(0.5)) * (F(1) / b));
    if constexpr (same<T, uint32_t>) {
        q = y == 0 ? F(0) : q;
        return T(int32_t(q - F(2147483648.0))) ^ T(0x80000000u);
    } else {
        q = (y == 0) | (q > F(2147483647.0)) ? F(0) : q;
        return undivisible(x, y) & (y != 0) ? x : T(int32_t(q));
    }
}
template <class T> AD_HD T int_floor_divide(T x, T y) {
    if constexpr (sizeof(T) <= 4) return narrow_floor_divide(x, y);
    T q = int_divide(x, y);
    if constexpr (is_signed<T>) {
        T r = int_modulo(x, y);
        q = T(q - ((r != 0) & ((r < 0) != (y < 0)) ? 1 : 0));
    }
    return q;
}
template <class T> AD_HD T int_remainder(T x, T y) {
    if constexpr (sizeof(T) <= 4) return y == 0 ? T(0) : sub(x, mul(narrow_floor_divide(x, y), y));
    T r = int_modulo(x, y);
    if constexpr (is_signed<T>) r = T(r + (y & T((r != 0) & ((r < 0) != (y < 0)) ? -1 : 0)));
    return r;
}

AD_HD float fmod(float x, float y) { return libm_fmod(x, y); }
AD_HD double fmod(double x, double y) { return libm_fmod(x, y); }
template <class T> AD_HD T fmod(T x, T y) { return int_modulo(x, y); }

/* Python's divmod: x == quotient*y + remainder, the remainder with y's sign. */
template <class F> AD_HD void float_divmod(F x, F y, F &quotient, F &remainder) {
    F r = fmod(x, y);
    if (y == 0) {
        quotient = x / y;
        remainder = r;
        return;
    }
    F q = (x - r) / y;
    if (r != 0) {
        bool fix = (y < 0) != (r < 0);
        r = fix ? r + y : r;
        q = fix ? q - 1 : q;
    } else {
        r = copysign(F(0), y);
    }
    F whole = floor(q);
    whole = q - whole > F(0.5) ? whole + 1 : whole;
    quotient = q != 0 ? whole : copysign(F(0), x / y);
    remainder = r;
}
template <class T> AD_HD void divmod(T x, T y, T &quotient, T &remainder) {
    if constexpr (is_float<T>) {
        float_divmod(x, y, quotient, remainder);
    } else {
        quotient = int_floor_divide(x, y);
        remainder = int_remainder(x, y);
    }
}
template <class T> AD_HD T floor_divide(T x, T y) {
    if constexpr (is_float<T>) {
        T q, r;
        float_divmod(x, y, q, r);
        return q;
    } else {
        return int_floor_divide(x, y);
    }
}
template <class T> AD_HD T remainder(T x, T y) {
    if constexpr (is_float<T>) {
        T q, r;
        float_divmod(x, y, q, r);
        return r;
    } else {
        return int_remainder(x, y);
    }
}

template <class T> AD_HD ad::unsigned_t<T> magnitude(T x) { return ad::unsigned_t<T>(abs(x)); }
template <class T> AD_HD T gcd(T x, T y) {
    ad::unsigned_t<T> a = magnitude(x), b = magnitude(y);
    while (b != 0) {
        ad::unsigned_t<T> r = a % b;
        a = b;
        b = r;
    }
    return T(a);
}
template <class T> AD_HD T lcm(T x, T y) {
    ad::unsigned_t<T> a = magnitude(x), b = magnitude(y), g = magnitude(gcd(x, y));
    return g == 0 ? T(0) : T(1u * (a / g) * b);
}

/* ---- powers ---- */

template <class T> AD_HD T int_power(T x, T y) {
    if constexpr (is_signed<T>) {
        if (y < 0) {
            raise(AD_RAISE_NEGATIVE_POWER);
            return 0;
        }
    }
    T r = 1;
    for (; y != 0; y = T(y >> 1)) {
        if (y & 1) r = mul(r, x);
        x = mul(x, x);
    }
    return r;
}
/* a*b + c, rounded once where the processor can. */
AD_HD double multiply_add(double a, double b, double c) {
#ifdef __FP_FAST_FMA
    return __builtin_fma(a, b, c);
#else
    return a * b + c;
#endif
}
/* a ** y for a >= 0 by way of double, which has bits enough for the logarithm: both polynomials (Chebyshev, fitted with
 * 40 digits) are good to 1e-11. Adding 0x1.8p52 rounds to a whole number and leaves it in the low bits. */
AD_HD float positive_power(float a, float y) {
    const double shift = 0x1.8p52;
    uint64_t bits = bit_cast<uint64_t>(double(a));
    int64_t exponent = int64_t(bits - 0x3fe6a09e667f3bcdu) >> 52; /* mantissa from sqrt(1/2) on */
    double m = bit_cast<double>(bits - (uint64_t(exponent) << 52)), s = (m - 1) / (m + 1), z = s * s;
    double e = bit_cast<double>(uint64_t(exponent) + bit_cast<uint64_t>(shift)) - shift;
    double l = 0.340725198333502529;
    l = multiply_add(l, z, 0.4116729922660640375);
    l = multiply_add(l, z, 0.5770835802285016424);
    l = multiply_add(l, z, 0.9617966733679493768);
    l = multiply_add(l, z, 2.885390081790063737);
    l = multiply_add(l, s, e);
    l = a == 0 ? -infinity<double>() : a <= limits<float>::max ? l : double(a);
    double t = double(y) * l;
    t = t < -300 ? -300 : t > 300 ? 300 : t;
    double n = t + shift, f = t - (n - shift);
    double p = 0.00001531008114313815042;
    p = multiply_add(p, f, 0.0001546973197747554811);
    p = multiply_add(p, f, 0.001333345056038446632);
    p = multiply_add(p, f, 0.009618025602955837286);
    p = multiply_add(p, f, 0.05550410941215452825);
    p = multiply_add(p, f, 0.2402265121359523212);
    p = multiply_add(p, f, 0.6931471805459304802);
    p = multiply_add(p, f, 0.9999999999595482609);
    return float(p * bit_cast<double>((bit_cast<uint64_t>(n) << 52) + (uint64_t(1023) << 52)));
}
/* The sign, and what C says of special values. */
AD_HD float float_power(float x, float y) {
    float a = fabs(x), r = positive_power(a, y);
    bool whole = trunc(y) == y, odd = whole & (trunc(y * 0.5f) != y * 0.5f);
    r = a == 1 ? 1.0f : r;
    r = signbit(x) & odd ? -r : r;
    r = (x < 0) & isfinite(x) & !whole ? nan<float>() : r;
    r = isnan(y) & (x != 1) ? y : r;
    return y == 0 ? 1.0f : r;
}
/* Squares are exact: the vector forms of pow need not be. */
template <class T> AD_HD T power(T x, T y) {
    if constexpr (is_float<T>) {
        T r;
#if !defined(__CUDA_ARCH__) && !defined(AD_OWN_POWER)
        if constexpr (same<T, float>) r = float_power(x, y);
        else
#endif
            r = libm_pow(x, y);
        return y == 2 ? x * x : r;
    } else {
        return int_power(x, y);
    }
}
template <class F> AD_HD F logaddexp(F x, F y) {
    using W = double; /* the sum may cancel */
    F d = x - y, r = F(W(maximum(x, y)) + log1p(exp(-fabs(W(d)))));
    return x == y ? x + ln2<F>() : r;
}
template <class F> AD_HD F logaddexp2(F x, F y) {
    using W = double;
    F d = x - y, r = F(W(maximum(x, y)) + log2e<W>() * log1p(exp2(-fabs(W(d)))));
    return x == y ? x + 1 : r;
}

/* ---- special functions ---- */

template <class F> AD_HD F heaviside(F x, F y) { return x == 0 ? y : x < 0 ? F(0) : x > 0 ? F(1) : x; }
template <class F> AD_HD F deg2rad(F x) { return x * F(pi<F>() / F(180)); }
template <class F> AD_HD F rad2deg(F x) { return x * F(F(180) / pi<F>()); }
template <class F> AD_HD F sinc(F x) {
    F y = pi<F>() * (x == 0 ? F(1e-20) : x);
    return sin(y) / y;
}

/* Clenshaw's sum of a Chebyshev series over -1..1. */
template <class F, int N> AD_HD F chebyshev(const double (&c)[N], F t) {
    F a = 0, b = 0;
    for (int i = N - 1; i > 0; i--) {
        F next = 2 * t * a - b + F(c[i]);
        b = a;
        a = next;
    }
    return t * a - b + F(c[0]);
}
/* exp(-x) I0(x) on 0..8, and sqrt(x) exp(-x) I0(x) from 8 on, in 16/x - 1; expanded numerically with 50 digits. */
template <class F> AD_HD F i0(F x) {
    const double low[] = {
        0.338397637204738042,     -0.304682672343198399,    0.171620901522208775,    -0.0949010970480476444,
        0.0493052842396707085,    -0.0237374148058994688,   0.0105464603945949983,   -0.00432430999505057594,
        0.0016394756169413358,    -0.000576375574538582366, 0.000188502885095841656, -0.000057541950100821037,
        0.0000164484480707288971, -4.41673835845875056e-6,  1.11738753912010372e-6,  -2.67079385394061173e-7,
        6.04699502254191895e-8,   -1.30002500998624804e-8,  2.65982372468238665e-9,  -5.18979560163526291e-10,
        9.67580903537323691e-11,  -1.72682629144155571e-11, 2.95505266312963983e-12, -4.85644678311192946e-13,
        7.67618549860493562e-14,  -1.16853328779934517e-14, 1.71539128555513303e-15, -2.43127984654795469e-16,
        3.3307945188222381e-17,   -4.41534164647933938e-18};
    const double high[] = {
        0.402245205507054416,     0.00336911647825569409,   0.0000688975834691682398, 2.89137052083475648e-6,
        2.04891858946906374e-7,   2.26666899049817806e-8,   3.39623202570838635e-9,   4.94060238822496959e-10,
        1.18891471078464383e-11,  -3.14991652796324136e-11, -1.32158118404477131e-11, -1.79417853150680612e-12,
        7.18012445138366623e-13,  3.8527783827421427e-13,   1.54008621752140983e-14,  -4.15056934728722209e-14,
        -9.55484669882830765e-15, 3.81168066935262242e-15,  1.77256013305652638e-15,  -3.42548561967721913e-16,
        -2.82762398051658348e-16, 3.46122286769746109e-17,  4.46562142029676e-17,     -4.83050448594418207e-18,
        -7.23318048787475395e-18, 1.19365089084598209e-18};
    F a = fabs(x), e = exp(a);
    F small = chebyshev(low, a / 4 - 1), large = chebyshev(high, 16 / (a > 8 ? a : F(8)) - 1) / sqrt(a);
    return e * (a <= 8 ? small : large);
}

/* ---- parts and neighbours of floating-point numbers ---- */

template <class T> AD_HD T floor(T x) { return x; }
template <class T> AD_HD T ceil(T x) { return x; }
template <class T> AD_HD T trunc(T x) { return x; }

template <class F> AD_HD void modf(F x, F &fraction, F &whole) {
    whole = trunc(x);
    fraction = copysign(isinf(x) ? F(0) : x - whole, x);
    if (isnan(x)) fraction = x;
}
template <class F> AD_HD void frexp(F x, F &mantissa, int32_t &exponent) {
    constexpr int digits = same<F, float> ? 23 : 52, bias = same<F, float> ? 126 : 1022, top = 2 * bias + 3;
    using U = typename limits<F>::bits;
    F scaled = fabs(x) < limits<F>::tiny * F(U(1) << digits) * 2 ? x * F(U(1) << (digits + 1)) : x;
    U b = bit_cast<U>(scaled);
    int32_t e = int32_t(b >> digits) & top;
    bool whole = x == 0 || e == top;
    mantissa = whole ? x : bit_cast<F>((b & ~(U(top) << digits)) | (U(bias) << digits));
    exponent = whole ? 0 : e - bias - (scaled == x ? 0 : digits + 1);
}
template <class F> AD_HD F ldexp(F x, int64_t y) {
    int n = y > 10000 ? 10000 : y < -10000 ? -10000 : int(y);
#ifdef __CUDACC__
    if constexpr (same<F, float>) return ::ldexpf(x, n);
    else return ::ldexp(x, n);
#else
    if constexpr (same<F, float>) return __builtin_ldexpf(x, n);
    else return __builtin_ldexp(x, n);
#endif
}

/* S: the storage type, whose neighbours are meant. */
template <class S> AD_HD float nextafter16(float x, float y) {
    S v = S(x);
    if (x != x || y != y) return nan<float>();
    if (x == y) return x;
    if (x == 0) v.bits = uint16_t(y > 0 ? 1 : 0x8001);
    else v.bits = uint16_t(v.bits + ((x < y) == (x > 0) ? 1 : -1));
    return float(v);
}
template <class S, class F> AD_HD F nextafter(F x, F y) {
    if constexpr (same<S, F>) return libm_nextafter(x, y);
    else return nextafter16<S>(x, y);
}
/* NumPy's float16 measures towards plus infinity, the others away from zero. */
template <class S, class F> AD_HD F spacing(F x) {
    if (!isfinite(x)) return nan<F>();
    bool up = x >= 0 || same<S, ad::half>;
    return nextafter<S>(x, up ? infinity<F>() : -infinity<F>()) - x;
}

template <class S> struct largest { static constexpr S value = limits<S>::max; };
template <> struct largest<ad::half> { static constexpr float value = 65504.0f; };
template <> struct largest<ad::bfloat16> { static constexpr float value = 0x1.fep127f; };
template <class S, class T> AD_HD T nan_to_num(T x) {
    if constexpr (is_float<T>) {
        T r = x > largest<S>::value ? T(largest<S>::value) : x < -largest<S>::value ? T(-largest<S>::value) : x;
        return isnan(x) ? T(0) : r;
    } else {
        return x;
    }
}
template <class T> AD_HD T angle(T x) { return isnan(x) ? x : signbit(x) ? pi<T>() : T(0); }

/* ---- bits ---- */

template <class T> AD_HD T invert(T x) {
    if constexpr (is_bool<T>) return !x;
    else return T(~x);
}
template <class T> AD_HD T left_shift(T x, T y) {
    using U = ad::unsigned_t<T>;
    constexpr U width = sizeof(T) * 8;
    return U(y) < width ? T((0u | U(x)) << (U(y) % width)) : T(0);
}
template <class T> AD_HD T right_shift(T x, T y) {
    using U = ad::unsigned_t<T>;
    constexpr U width = sizeof(T) * 8;
    return T(x >> (U(y) < width ? U(y) : U(width - 1))) & (is_signed<T> || U(y) < width ? T(-1) : T(0));
}
template <class T> AD_HD uint8_t bitwise_count(T x) {
    uint64_t v = magnitude(x);
#ifdef __CUDA_ARCH__
    return uint8_t(__popcll(v));
#else
    v -= (v >> 1) & 0x5555555555555555u;
    v = (v & 0x3333333333333333u) + ((v >> 2) & 0x3333333333333333u);
    v = (v + (v >> 4)) & 0x0f0f0f0f0f0f0f0fu;
    return uint8_t((v * 0x0101010101010101u) >> 56);
#endif
}

} // namespace AD_ISA
} // namespace adm

#include "kernels/math_complex.h"
#ifndef __CUDACC__
#include "kernels/math_divide.h"
#endif
#endif
