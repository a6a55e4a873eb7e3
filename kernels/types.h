/* Element types as C++ types, for the host compiler and nvcc alike: storage, compute type, conversion.
 *
 * A dtype has a storage type S, in which it lies in memory, and a compute type C = compute_t<S>, in which arithmetic is
 * done. C of bool8 is bool, that of half and bfloat16 is float; else C is S itself. load() and store() go between them.
 * cast<To>(v) converts any of these types to any other as NumPy does, defined for every value.
 *
 * Everything lives in an inline namespace named by AD_ISA, so one source compiled for several instruction sets gives
 * distinct symbols. */
#ifndef AD_KERNELS_TYPES_H
#define AD_KERNELS_TYPES_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "protocol/base.h"

#ifdef __CUDACC__
#define AD_HD __host__ __device__ __forceinline__
#else
#define AD_HD inline __attribute__((always_inline))
#endif

#ifndef AD_ISA
#define AD_ISA plain
#endif

namespace ad {
inline namespace AD_ISA {

template <class To, class From> AD_HD To bit_cast(From v) {
    static_assert(sizeof(To) == sizeof(From), "bit_cast needs equal sizes");
#ifdef __CUDA_ARCH__
    To r;
    memcpy(&r, &v, sizeof r);
    return r;
#else
    return __builtin_bit_cast(To, v);
#endif
}

template <class T> struct complex {
    T re, im;
    complex() = default;
    AD_HD constexpr complex(T r, T i = T(0)) : re(r), im(i) {}
    AD_HD T real() const { return re; }
    AD_HD T imag() const { return im; }
};

/* ---- storage types that are no C++ arithmetic types ---- */

/* Any byte but 0 is true: clients may upload what they like. */
struct bool8 {
    uint8_t bits;
    bool8() = default;
    AD_HD explicit bool8(bool v) : bits(v) {}
    AD_HD operator bool() const { return bits != 0; }
};

/* Branch-free, so that loops over it vectorise on every instruction set. */
AD_HD float half_to_float(uint16_t h) {
#ifdef __CUDA_ARCH__
    float f;
    asm("cvt.f32.f16 %0, %1;" : "=f"(f) : "h"(h));
    return f;
#else
    uint32_t magnitude = uint32_t(h & 0x7fff) << 13, sign = uint32_t(h & 0x8000) << 16;
    uint32_t finite = bit_cast<uint32_t>(bit_cast<float>(magnitude) * 0x1p112f);
    uint32_t r = magnitude >= 0x0f800000u ? magnitude | 0x7f800000u : finite;
    return bit_cast<float>(r | sign);
#endif
}

AD_HD uint16_t float_to_half(float f) {
#ifdef __CUDA_ARCH__
    uint16_t h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(f));
    return h;
#else
    uint32_t b = bit_cast<uint32_t>(f), magnitude = b & 0x7fffffffu;
    uint32_t normal = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1)) >> 13;
    uint32_t tiny = bit_cast<uint32_t>(bit_cast<float>(magnitude) + 0.5f) - 0x3f000000u; /* rounds at 2^-24 */
    uint32_t r = magnitude < 0x38800000u ? tiny : normal;
    r = magnitude >= 0x477ff000u ? 0x7c00u : r;
    r = magnitude > 0x7f800000u ? 0x7e00u | ((magnitude >> 13) & 0x3ffu) : r;
    return uint16_t(r | ((b >> 16) & 0x8000u));
#endif
}

/* Rounds once: to odd in float, whose spare bits then decide. */
AD_HD uint16_t double_to_half(double d) {
#ifdef __CUDA_ARCH__
    uint16_t h;
    asm("cvt.rn.f16.f64 %0, %1;" : "=h"(h) : "d"(d));
    return h;
#else
    float f = float(d);
    uint32_t b = bit_cast<uint32_t>(f);
    double back = f;
    b -= fabs(back) > fabs(d) ? 1u : 0u;
    b |= back != d ? 1u : 0u;
    return float_to_half(bit_cast<float>(b));
#endif
}

AD_HD float bfloat16_to_float(uint16_t h) { return bit_cast<float>(uint32_t(h) << 16); }

AD_HD uint16_t float_to_bfloat16(float f) {
#ifdef __CUDA_ARCH__
    uint16_t h;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(f));
    return h;
#else
    uint32_t b = bit_cast<uint32_t>(f);
    uint32_t rounded = (b + 0x7fffu + ((b >> 16) & 1)) >> 16, nan = (b >> 16 & 0x8000u) | 0x7fc0u;
    return uint16_t((b & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
#endif
}

struct half {
    uint16_t bits;
    half() = default;
    AD_HD explicit half(float v) : bits(float_to_half(v)) {}
    AD_HD operator float() const { return half_to_float(bits); }
};

struct bfloat16 {
    uint16_t bits;
    bfloat16() = default;
    AD_HD explicit bfloat16(float v) : bits(float_to_bfloat16(v)) {}
    AD_HD operator float() const { return bfloat16_to_float(bits); }
};

/* ---- dtype id <-> storage type ---- */

using t_bool = bool8;
using t_int8 = int8_t;
using t_int16 = int16_t;
using t_int32 = int32_t;
using t_int64 = int64_t;
using t_uint8 = uint8_t;
using t_uint16 = uint16_t;
using t_uint32 = uint32_t;
using t_uint64 = uint64_t;
using t_float16 = half;
using t_bfloat16 = bfloat16;
using t_float32 = float;
using t_float64 = double;
using t_complex64 = complex<float>;
using t_complex128 = complex<double>;

template <class T> struct tag { using type = T; };

template <int D> struct storage;    /* storage<AD_FLOAT16>::type is half */
template <class S> struct dtype_of; /* dtype_of<half>::value is AD_FLOAT16 */
#define AD_DTYPE(id, NAME, name, size, kind, letter)  \
    template <> struct storage<AD_##NAME> {           \
        using type = t_##name;                        \
        static_assert(sizeof(type) == (size), #name); \
    };                                                \
    template <> struct dtype_of<t_##name> {           \
        static constexpr int value = AD_##NAME;       \
        static constexpr char letter_of_kind = kind;  \
    };
#include "protocol/dtype.def"
#undef AD_DTYPE
template <int D> using storage_t = typename storage<D>::type;

/* f(tag<S>{}) for the storage type of a (checked) dtype: visit(dtype, [&](auto t) { using S = typename
 * decltype(t)::type; ... }). */
template <class F> inline auto visit(int dtype, F &&f) {
    switch (dtype) {
#define AD_DTYPE(id, NAME, name, size, kind, letter) \
    case AD_##NAME:                                  \
        return f(tag<t_##name>{});
#include "protocol/dtype.def"
#undef AD_DTYPE
    default: return f(tag<t_bool>{});
    }
}

/* ---- traits ---- */

template <class T> struct traits {
    using compute = T; /* what arithmetic is done in */
    using real = T;    /* type of the real part */
    static constexpr bool is_complex = false;
};
template <> struct traits<bool8> {
    using compute = bool;
    using real = bool8;
    static constexpr bool is_complex = false;
};
template <> struct traits<half> {
    using compute = float;
    using real = half;
    static constexpr bool is_complex = false;
};
template <> struct traits<bfloat16> {
    using compute = float;
    using real = bfloat16;
    static constexpr bool is_complex = false;
};
template <class T> struct traits<complex<T>> {
    using compute = complex<T>;
    using real = T;
    static constexpr bool is_complex = true;
};
template <class T> using compute_t = typename traits<T>::compute;
template <class T> using real_t = typename traits<T>::real;

template <class A, class B> constexpr bool same = false;
template <class A> constexpr bool same<A, A> = true;
template <bool C, class A, class B> struct conditional { using type = A; };
template <class A, class B> struct conditional<false, A, B> { using type = B; };
template <bool C, class A, class B> using conditional_t = typename conditional<C, A, B>::type;
template <class T> constexpr bool is_complex = traits<T>::is_complex;
template <class T> constexpr bool is_float = same<T, float> || same<T, double>; /* of compute types */
template <class T> constexpr bool is_bool = same<T, bool>;
template <class T> constexpr bool is_int = !is_complex<T> && !is_float<T> && !is_bool<T>;
template <class T> constexpr bool is_signed = is_int<T> &&T(-1) < T(1);
template <> inline constexpr bool is_signed<bool> = false;

template <class T> struct unsigned_of { using type = T; };
template <> struct unsigned_of<int8_t> { using type = uint8_t; };
template <> struct unsigned_of<int16_t> { using type = uint16_t; };
template <> struct unsigned_of<int32_t> { using type = uint32_t; };
template <> struct unsigned_of<int64_t> { using type = uint64_t; };
template <class T> using unsigned_t = typename unsigned_of<T>::type;

/* ---- conversion ---- */

template <class S> AD_HD compute_t<S> load(S v) { return compute_t<S>(v); }

/* Convert as x86 does, also outside the range, which is what NumPy's users see. */
template <class F> AD_HD int32_t float_to_int32(F v) {
    bool in = v > F(-2147483904.0) && v < F(2147483648.0);
    if constexpr (same<F, double>) in = v > -2147483649.0 && v < 2147483648.0;
    int32_t r = int32_t(in ? v : F(0));
    return in ? r : INT32_MIN;
}

template <class F> AD_HD int64_t float_to_int64(F v) {
    bool in = v >= F(-0x1p63) && v < F(0x1p63);
    int64_t r = int64_t(in ? v : F(0));
    return in ? r : INT64_MIN;
}

template <class F> AD_HD uint64_t float_to_uint64(F v) {
    uint64_t low = uint64_t(float_to_int64(v)), high = uint64_t(float_to_int64(v - F(0x1p63))) ^ (uint64_t(1) << 63);
    return v >= F(0x1p63) ? high : low;
}

template <class To, class From> AD_HD To float_to_int(From v) {
    if constexpr (same<To, uint64_t>) return float_to_uint64(v);
    else if constexpr (same<To, int64_t> || same<To, uint32_t>) return To(float_to_int64(v));
    else return To(float_to_int32(v));
}

template <class To, class From> AD_HD To cast(From v) {
    if constexpr (same<To, From>) return v;
    else if constexpr (!same<compute_t<From>, From>) return cast<To>(compute_t<From>(v));
    else if constexpr (is_complex<From> && !is_complex<To>) {
        if constexpr (same<compute_t<To>, bool>) return To(v.re != 0 || v.im != 0);
        else return cast<To>(v.re);
    } else if constexpr (is_complex<To>) {
        using R = real_t<To>;
        if constexpr (is_complex<From>) return To(R(v.re), R(v.im));
        else return To(cast<R>(v), R(0));
    } else if constexpr (same<To, half> && same<From, double>) {
        half r;
        r.bits = double_to_half(v);
        return r;
    } else if constexpr (!same<compute_t<To>, To>) return To(cast<compute_t<To>>(v));
    else if constexpr (same<To, bool>) return v != 0;
    else if constexpr (is_float<From> && is_int<To>) return float_to_int<To>(v);
    else return To(v);
}

/* ---- complex arithmetic as NumPy does it ---- */

template <class T> AD_HD complex<T> operator+(complex<T> a, complex<T> b) { return {a.re + b.re, a.im + b.im}; }
template <class T> AD_HD complex<T> operator-(complex<T> a, complex<T> b) { return {a.re - b.re, a.im - b.im}; }
template <class T> AD_HD complex<T> operator-(complex<T> a) { return {-a.re, -a.im}; }
template <class T> AD_HD complex<T> operator*(complex<T> a, complex<T> b) {
    return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
/* Smith's algorithm: no overflow where the quotient has none. */
template <class T> AD_HD complex<T> operator/(complex<T> a, complex<T> b) {
    T re = b.re < 0 ? -b.re : b.re, im = b.im < 0 ? -b.im : b.im;
    if (re >= im) {
        if (re == 0 && im == 0) return {a.re / re, a.im / re};
        T ratio = b.im / b.re, scale = T(1) / (b.re + b.im * ratio);
        return {(a.re + a.im * ratio) * scale, (a.im - a.re * ratio) * scale};
    }
    T ratio = b.re / b.im, scale = T(1) / (b.im + b.re * ratio);
    return {(a.re * ratio + a.im) * scale, (a.im * ratio - a.re) * scale};
}
template <class T> AD_HD bool operator==(complex<T> a, complex<T> b) { return a.re == b.re && a.im == b.im; }
template <class T> AD_HD bool operator!=(complex<T> a, complex<T> b) { return !(a == b); }

} // namespace AD_ISA
} // namespace ad
#endif
