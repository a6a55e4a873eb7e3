/* The C library's functions for float and double under one name each, in namespace adm.
 *
 * On a host with glibc's libmvec the declarations say that vector forms exist, so that loops over them vectorise
 * (at most 4 units in the last place). The declarations are of our own because <math.h> offers those forms only
 * together with -ffast-math. */
#ifndef AD_KERNELS_MATH_LIBM_H
#define AD_KERNELS_MATH_LIBM_H

#include "kernels/types.h"

#if !defined(__CUDACC__) && defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && defined(__GLIBC__)
#if __GLIBC_PREREQ(2, 35)
#define AD_VECTOR_LIBM __attribute__((simd("notinbranch")))
#ifdef __AVX512F__
#define AD_OWN_POWER /* kernels/cpu/isa/power.cpp */
#endif
#endif
#endif
#ifndef AD_VECTOR_LIBM
#define AD_VECTOR_LIBM
#endif

#ifdef __CUDACC__
#define AD_LIBM1(name, libm)                           \
    AD_HD float name(float x) { return ::libm##f(x); } \
    AD_HD double name(double x) { return ::libm(x); }
#define AD_LIBM2(name, libm)                                       \
    AD_HD float name(float x, float y) { return ::libm##f(x, y); } \
    AD_HD double name(double x, double y) { return ::libm(x, y); }
#define AD_LIBM1V AD_LIBM1
#define AD_LIBM2V AD_LIBM2
#else
#define AD_LIBM1_AS(name, libm, attributes)                                                                  \
    extern "C" float ad_libm_##libm##f(float) noexcept __asm__(#libm "f") __attribute__((const)) attributes; \
    extern "C" double ad_libm_##libm(double) noexcept __asm__(#libm) __attribute__((const)) attributes;      \
    AD_HD float name(float x) { return ad_libm_##libm##f(x); }                                               \
    AD_HD double name(double x) { return ad_libm_##libm(x); }
#define AD_LIBM2_AS(name, libm, attributes)                                                                         \
    extern "C" float ad_libm_##libm##f(float, float) noexcept __asm__(#libm "f") __attribute__((const)) attributes; \
    extern "C" double ad_libm_##libm(double, double) noexcept __asm__(#libm) __attribute__((const)) attributes;     \
    AD_HD float name(float x, float y) { return ad_libm_##libm##f(x, y); }                                          \
    AD_HD double name(double x, double y) { return ad_libm_##libm(x, y); }
#define AD_LIBM1(name, libm) AD_LIBM1_AS(name, libm, )
#define AD_LIBM2(name, libm) AD_LIBM2_AS(name, libm, )
#define AD_LIBM1V(name, libm) AD_LIBM1_AS(name, libm, AD_VECTOR_LIBM)
#define AD_LIBM2V(name, libm) AD_LIBM2_AS(name, libm, AD_VECTOR_LIBM)
#endif

namespace adm {
inline namespace AD_ISA {

AD_LIBM1V(exp, exp)
AD_LIBM1V(exp2, exp2)
AD_LIBM1V(expm1, expm1)
AD_LIBM1V(log, log)
AD_LIBM1V(log2, log2)
AD_LIBM1V(log10, log10)
AD_LIBM1V(log1p, log1p)
#ifndef __CUDACC_RTC__
AD_LIBM1V(sin, sin)
AD_LIBM1V(cos, cos)
AD_LIBM1V(tan, tan)
#else
/* CUDA's reduce arguments from 105615 on in another way, which takes many registers and local memory. Tested here, that
 * is left out of line, and their own test falls away. */
#define AD_LIBM1_APART(name)                                                   \
    __device__ __noinline__ float name##_far(float x) { return ::name##f(x); } \
    AD_HD float name(float x) {                                                \
        if (::fabsf(x) >= 105615.0f) return name##_far(x);                     \
        return ::name##f(x);                                                   \
    }                                                                          \
    AD_HD double name(double x) { return ::name(x); }
AD_LIBM1_APART(sin)
AD_LIBM1_APART(cos)
AD_LIBM1_APART(tan)
#endif
AD_LIBM1V(asin, asin)
AD_LIBM1V(acos, acos)
AD_LIBM1V(atan, atan)
AD_LIBM1V(sinh, sinh)
AD_LIBM1V(cosh, cosh)
AD_LIBM1V(tanh, tanh)
AD_LIBM1V(asinh, asinh)
AD_LIBM1V(acosh, acosh)
AD_LIBM1V(atanh, atanh)
AD_LIBM1V(cbrt, cbrt)
AD_LIBM2V(atan2, atan2)
#ifndef __CUDACC__
AD_LIBM2V(hypot, hypot)
#else
/* CUDA's may overflow where the larger one is the result. */
AD_HD float hypot(float x, float y) {
    float a = ::fabsf(x), b = ::fabsf(y), larger = a > b ? a : b, other = a > b ? b : a;
    return other <= larger * 0x1p-13f ? larger : ::hypotf(x, y);
}
AD_HD double hypot(double x, double y) {
    double a = ::fabs(x), b = ::fabs(y), larger = a > b ? a : b, other = a > b ? b : a;
    return other <= larger * 0x1p-28 ? larger : ::hypot(x, y);
}
#endif
#ifdef AD_OWN_POWER
extern "C" float ad_powf(float, float) noexcept __attribute__((const)) AD_VECTOR_LIBM;
extern "C" double ad_pow(double, double) noexcept __attribute__((const)) AD_VECTOR_LIBM;
AD_HD float libm_pow(float x, float y) { return ad_powf(x, y); }
AD_HD double libm_pow(double x, double y) { return ad_pow(x, y); }
#else
AD_LIBM2V(libm_pow, pow)
#endif
AD_LIBM2(libm_fmod, fmod)
AD_LIBM2(libm_nextafter, nextafter)

#ifdef __CUDACC__
AD_LIBM1(sqrt, sqrt)
AD_LIBM1(floor, floor)
AD_LIBM1(ceil, ceil)
AD_LIBM1(trunc, trunc)
AD_LIBM1(rint, rint)
AD_LIBM1(fabs, fabs)
AD_LIBM2(copysign, copysign)
#else
#define AD_BUILTIN1(name)                                        \
    AD_HD float name(float x) { return __builtin_##name##f(x); } \
    AD_HD double name(double x) { return __builtin_##name(x); }
AD_BUILTIN1(sqrt)
AD_BUILTIN1(floor)
AD_BUILTIN1(ceil)
AD_BUILTIN1(trunc)
AD_BUILTIN1(rint)
AD_BUILTIN1(fabs)
#undef AD_BUILTIN1
AD_HD float copysign(float x, float y) { return __builtin_copysignf(x, y); }
AD_HD double copysign(double x, double y) { return __builtin_copysign(x, y); }
#endif

} // namespace AD_ISA
} // namespace adm
#endif
