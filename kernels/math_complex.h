/* The functions of math.h for complex numbers. Those that the C library has come from there (on the GPU from headers
 * beside this one), the rest follows NumPy's formulas. */
#ifndef AD_KERNELS_MATH_COMPLEX_H
#define AD_KERNELS_MATH_COMPLEX_H

#include "kernels/math.h"

/* Chains compiled at run time do without those of the C library: libcu++ takes the compiler most of a second. */
#ifdef __CUDACC_RTC__
#define AD_COMPLEX1(name)
#elif defined(__CUDACC__)
#include "kernels/math_complex_gpu.h"
#include "kernels/math_complex_inverse.h"
/* Both headers define for the GPU what the C library has for the CPU. Zeros, infinities and NaN give what C says, which
 * libcu++'s functions of complex numbers do not in many places. Nor do these functions lose digits by overflow as
 * libcu++'s do: its sqrt of -1 as complex64 has a real part of -4e-8, and its sin of 1000i is not a number. A change of
 * one of them asks for a comparison of all functions with NumPy on the grid of tests/ops/test_complex.py, zeros' signs
 * included. */
#define AD_COMPLEX1(name)
#else
#define AD_COMPLEX1_AS(name, T, libm)                                                \
    static __attribute__((noinline, unused)) ad::complex<T> name(ad::complex<T> x) { \
        _Complex T v;                                                                \
        __real__ v = x.re;                                                           \
        __imag__ v = x.im;                                                           \
        v = libm(v);                                                                 \
        return {__real__ v, __imag__ v};                                             \
    }
#define AD_COMPLEX1(name)                             \
    AD_COMPLEX1_AS(name, float, __builtin_c##name##f) \
    AD_COMPLEX1_AS(name, double, __builtin_c##name)
#endif

namespace adm {
inline namespace AD_ISA {

template <class T> using cx = ad::complex<T>;

AD_COMPLEX1(sqrt)
AD_COMPLEX1(exp)
AD_COMPLEX1(log)
AD_COMPLEX1(sin)
AD_COMPLEX1(cos)
AD_COMPLEX1(sinh)
AD_COMPLEX1(cosh)
#ifndef __CUDACC__
AD_COMPLEX1(tan)
AD_COMPLEX1(asin)
AD_COMPLEX1(acos)
AD_COMPLEX1(atan)
AD_COMPLEX1(tanh)
AD_COMPLEX1(asinh)
AD_COMPLEX1(acosh)
AD_COMPLEX1(atanh)
#endif

/* ---- tests and order ---- */

template <class T> AD_HD bool truth(cx<T> x) { return (x.re != 0) | (x.im != 0); }
template <class T> AD_HD bool isnan(cx<T> x) { return isnan(x.re) | isnan(x.im); }
template <class T> AD_HD bool isinf(cx<T> x) { return isinf(x.re) | isinf(x.im); }
template <class T> AD_HD bool isfinite(cx<T> x) { return isfinite(x.re) & isfinite(x.im); }
template <class T> AD_HD bool less(cx<T> x, cx<T> y) {
    return ((x.re < y.re) & (x.im == x.im) & (y.im == y.im)) | ((x.re == y.re) & (x.im < y.im));
}
template <class T> AD_HD bool less_equal(cx<T> x, cx<T> y) {
    return ((x.re < y.re) & (x.im == x.im) & (y.im == y.im)) | ((x.re == y.re) & (x.im <= y.im));
}
template <class T> AD_HD cx<T> maximum(cx<T> x, cx<T> y) { return isnan(x) || less_equal(y, x) ? x : y; }
template <class T> AD_HD cx<T> minimum(cx<T> x, cx<T> y) { return isnan(x) || less_equal(x, y) ? x : y; }
template <class T> AD_HD cx<T> fmax(cx<T> x, cx<T> y) { return isnan(y) || less_equal(y, x) ? x : y; }
template <class T> AD_HD cx<T> fmin(cx<T> x, cx<T> y) { return isnan(y) || less_equal(x, y) ? x : y; }

/* ---- arithmetic ---- */

template <class T> AD_HD cx<T> conj(cx<T> x) { return {x.re, -x.im}; }
template <class T> AD_HD T real(cx<T> x) { return x.re; }
template <class T> AD_HD T imag(cx<T> x) { return x.im; }
template <class T> AD_HD T abs(cx<T> x) { return hypot(x.re, x.im); }
template <class T> AD_HD T angle(cx<T> x) { return atan2(x.im, x.re); }
template <class T> AD_HD cx<T> rint(cx<T> x) { return {rint(x.re), rint(x.im)}; }
template <class S, class T> AD_HD cx<T> nan_to_num(cx<T> x) { return {nan_to_num<T>(x.re), nan_to_num<T>(x.im)}; }

template <class T> AD_HD cx<T> sign(cx<T> x) {
    T a = abs(x);
    if (isnan(a)) return {nan<T>(), nan<T>()};
    if (isinf(a)) {
        if (isinf(x.re) && isinf(x.im)) return {nan<T>(), nan<T>()};
        return isinf(x.re) ? cx<T>(sign(x.re), T(0)) : cx<T>(T(0), sign(x.im));
    }
    return a == 0 ? cx<T>(T(0), T(0)) : cx<T>(x.re / a, x.im / a);
}
template <class T> AD_HD cx<T> reciprocal(cx<T> x) {
    if (fabs(x.im) <= fabs(x.re)) {
        T r = x.im / x.re, d = x.re + x.im * r;
        return {T(1) / d, -r / d};
    }
    T r = x.re / x.im, d = x.re * r + x.im;
    return {r / d, T(-1) / d};
}

/* ---- exponentials and powers ---- */

template <class T> AD_HD cx<T> exp2(cx<T> x) { return exp(cx<T>(x.re * ln2<T>(), x.im * ln2<T>())); }
template <class T> AD_HD cx<T> log2(cx<T> x) {
    cx<T> r = log(x);
    return {r.re * log2e<T>(), r.im * log2e<T>()};
}
template <class T> AD_HD cx<T> log10(cx<T> x) {
    cx<T> r = log(x);
    return {r.re * log10e<T>(), r.im * log10e<T>()};
}
template <class T> AD_HD cx<T> expm1(cx<T> x) {
    T a = sin(x.im / 2);
    return {expm1(x.re) * cos(x.im) - 2 * a * a, exp(x.re) * sin(x.im)};
}
/* log|1+x| is half the log1p of |1+x|^2 - 1 while that is small. */
template <class T> AD_HD cx<T> log1p(cx<T> x) {
    T l = hypot(x.re + 1, x.im), small = x.re * (x.re + 2) + x.im * x.im;
    T re = fabs(small) < T(0.5) ? log1p(small) / 2 : log(l);
    return {re, atan2(x.im, x.re + 1)};
}
template <class T> AD_HD cx<T> sinc(cx<T> x) {
    cx<T> y = truth(x) ? cx<T>(pi<T>() * x.re, pi<T>() * x.im) : cx<T>(pi<T>() * T(1e-20), T(0));
    return sin(y) / y;
}

template <class T> AD_HD cx<T> whole_power(cx<T> x, int n) {
    unsigned m = n < 0 ? 0u - unsigned(n) : unsigned(n);
    cx<T> r(T(1), T(0));
    for (; m != 0; m >>= 1) {
        if (m & 1) r = r * x;
        if (m > 1) x = x * x;
    }
    return n < 0 ? cx<T>(T(1), T(0)) / r : r;
}
/* Whole exponents by multiplying, as NumPy does, else exp(y log x). */
template <class T> AD_HD cx<T> power(cx<T> x, cx<T> y) {
    if (!truth(y)) return {T(1), T(0)};
    if (!truth(x)) return y.re > 0 ? cx<T>(T(0), T(0)) : cx<T>(nan<T>(), nan<T>());
    if (y.im == 0 && y.re > -100 && y.re < 100 && y.re == trunc(y.re)) return whole_power(x, int(y.re));
    return exp(y * log(x));
}

} // namespace AD_ISA
} // namespace adm
#endif
