/* Complex sqrt, exp, log, sin, cos, sinh and cosh for the GPU. Zeros, infinities and NaN give what C says. So do
 * numbers for which a part of the formula overflows though the result does not. libcu++'s give NaN there, or the sign
 * of another zero. */
#ifndef AD_KERNELS_MATH_COMPLEX_GPU_H
#define AD_KERNELS_MATH_COMPLEX_GPU_H

#include "kernels/math.h"

namespace adm {
inline namespace AD_ISA {

/* Numbers whose squares neither overflow nor lose digits lie between these. */
template <class T> AD_HD constexpr T least_moderate() { return sizeof(T) == 8 ? T(0x1p-500) : T(0x1p-60f); }
template <class T> AD_HD constexpr T most_moderate() { return sizeof(T) == 8 ? T(0x1p500) : T(0x1p60f); }

AD_HD float fused(float a, float b, float c) { return ::fmaf(a, b, c); }
AD_HD double fused(double a, double b, double c) { return ::fma(a, b, c); }

/* a e^x f and b e^x f. */
template <class T> AD_HD ad::complex<T> exp_times(T x, T a, T b, T f) {
    const T e = exp(x);
    if (isfinite(e)) return {e * f * a, e * f * b};
    const T root = exp(x / 2);
    return {a * root * (root * f), b * root * (root * f)};
}

template <class T> AD_HD ad::complex<T> exp(ad::complex<T> z) {
    if (z.im == 0) return {exp(z.re), z.im};
    if (isfinite(z.im)) return exp_times(z.re, cos(z.im), sin(z.im), T(1));
    if (!isinf(z.re)) return {nan<T>(), nan<T>()};
    return z.re > 0 ? ad::complex<T>(z.re, nan<T>()) : ad::complex<T>(T(0), copysign(T(0), z.im));
}

template <class T> AD_HD ad::complex<T> sinh(ad::complex<T> z) {
    const T x = fabs(z.re);
    if (z.im == 0) return {sinh(z.re), z.im};
    if (!isfinite(z.im)) return {z.re == 0 ? z.re : isinf(x) ? x : nan<T>(), nan<T>()};
    const T c = cos(z.im), s = sin(z.im);
    if (!(x > 30)) return {sinh(z.re) * c, cosh(z.re) * s};
    const ad::complex<T> r = exp_times(x, c, s, T(0.5));
    return {z.re < 0 ? -r.re : r.re, r.im};
}

template <class T> AD_HD ad::complex<T> cosh(ad::complex<T> z) {
    const T x = fabs(z.re);
    if (z.im == 0) return {cosh(x), signbit(z.re) && !isnan(x) ? -z.im : z.im};
    if (!isfinite(z.im)) return {isinf(x) ? x : nan<T>(), z.re == 0 ? T(0) : nan<T>()};
    const T c = cos(z.im), s = sin(z.im);
    if (!(x > 30)) return {cosh(z.re) * c, sinh(z.re) * s};
    const ad::complex<T> r = exp_times(x, c, s, T(0.5));
    return {r.re, z.re < 0 ? -r.im : r.im};
}

template <class T> AD_HD ad::complex<T> sin(ad::complex<T> z) {
    const ad::complex<T> r = sinh(ad::complex<T>(z.im, z.re));
    return {r.im, r.re};
}
template <class T> AD_HD ad::complex<T> cos(ad::complex<T> z) { return cosh(ad::complex<T>(-z.im, z.re)); }

/* x^2 + y^2 - 1 for 0 <= y <= x, with the digits that the difference would lose. */
template <class T> AD_HD T square_excess(T x, T y) {
    const T p = x * x, q = y * y, below = fused(x, x, -p) + fused(y, y, -q);
    const T a = p - 1, sum = a + q, part = sum - a;
    return sum + ((a - (sum - part)) + (q - part) + below);
}

/* log|z| */
template <class T> AD_HD T log_modulus(ad::complex<T> z) {
    const T a = fabs(z.re), b = fabs(z.im), x = a < b ? b : a, y = a < b ? a : b;
    if (x > most_moderate<T>() && !isinf(x) && !isinf(y)) return log(hypot(x / 2, y / 2)) + ln2<T>();
    if (x < least_moderate<T>() && x > 0) return log(hypot(x * T(0x1p60f), y * T(0x1p60f))) - 60 * ln2<T>();
    const T size = hypot(x, y);
    return size > T(0.5) && size < 2 ? log1p(square_excess(x, y)) / 2 : log(size);
}
template <class T> AD_HD ad::complex<T> log(ad::complex<T> z) { return {log_modulus(z), atan2(z.im, z.re)}; }

template <class T> AD_HD ad::complex<T> moderate_sqrt(ad::complex<T> z) {
    const T a = fabs(z.re), b = fabs(z.im), part = sqrt((a + hypot(a, b)) / 2), other = b / (2 * part);
    return z.re < 0 ? ad::complex<T>(other, copysign(part, z.im)) : ad::complex<T>(part, copysign(other, z.im));
}
template <class T> AD_HD ad::complex<T> sqrt(ad::complex<T> z) {
    const T a = fabs(z.re), b = fabs(z.im), x = a < b ? b : a;
    if (isinf(b)) return {b, z.im};
    if (isinf(a)) {
        const T other = isnan(b) ? b : T(0);
        return z.re > 0 ? ad::complex<T>(a, copysign(other, z.im)) : ad::complex<T>(other, copysign(a, z.im));
    }
    if (isnan(a) || isnan(b)) return {nan<T>(), nan<T>()};
    if (x == 0) return {T(0), z.im};
    const T root = x > most_moderate<T>() ? T(0x1p30f) : x < least_moderate<T>() ? T(0x1p-30f) : T(1);
    const ad::complex<T> r = moderate_sqrt(ad::complex<T>(z.re / root / root, z.im / root / root));
    return {r.re * root, r.im * root};
}

} // namespace AD_ISA
} // namespace adm
#endif
