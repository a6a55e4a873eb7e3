/* Complex tan, tanh and the inverse functions for the GPU. There libcu++ loses digits near poles, cuts and for large
 * arguments, and has other zeros, infinities and NaN than C. Everything is computed in double: complex64 has then
 * nothing to lose. The inverse sine and cosine go by way of the two distances to the branch points (Hull, Fairgrieve
 * and Tang, 1997), the tangents by Kahan's formulas. */
#ifndef AD_KERNELS_MATH_COMPLEX_INVERSE_H
#define AD_KERNELS_MATH_COMPLEX_INVERSE_H

#include "kernels/math_complex_gpu.h"

namespace adm {
inline namespace AD_ISA {

using cdouble = ad::complex<double>;

AD_HD bool is_finite(cdouble x) { return isfinite(x.re) && isfinite(x.im); }
/* True if squares of the number would overflow. */
AD_HD bool is_large(cdouble x) { return fabs(x.re) > 1e150 || fabs(x.im) > 1e150; }

/* Inverse sine and cosine of x + iy in the first quadrant: real parts, and the imaginary part, which is the same but
 * for its sign. */
struct inverse_parts {
    double sine, cosine, imaginary;
};
AD_HD inverse_parts inverse_of(double x, double y) {
    inverse_parts p;
    if (is_large({x, y})) return {atan2(x, y), atan2(y, x), log_modulus(cdouble(x, y)) + ln2<double>()};
    const double r = hypot(x + 1, y), s = hypot(x - 1, y), a = 0.5 * (r + s), b = x / a, sum = a + x;
    if (b <= 0.6417) {
        p.sine = asin(b);
        p.cosine = acos(b);
    } else {
        const double w = x <= 1 ? sqrt(0.5 * sum * (y * y / (r + (x + 1)) + (s + (1 - x))))
                                : y * sqrt(0.5 * (sum / (r + (x + 1)) + sum / (s + (x - 1))));
        p.sine = atan2(x, w);
        p.cosine = atan2(w, x);
    }
    if (x < 1 && y < 1e-150) {
        p.imaginary = y / sqrt((1 - x) * (1 + x));
    } else if (a <= 1.5) {
        const double t = y * y / (r + (x + 1)) + (x < 1 ? y * y / (s + (1 - x)) : s + (x - 1));
        p.imaginary = log1p(0.5 * t + sqrt(t * (a + 1) * 0.5));
    } else {
        p.imaginary = a > 1e8 ? log(a) + ln2<double>() : log(a + sqrt(a * a - 1));
    }
    return p;
}

/* The inverse hyperbolic sine of a number that is not finite. */
AD_HD cdouble infinite_inverse_hyperbolic_sine(cdouble x) {
    const double quarter = pi<double>() / 4;
    if (isinf(x.im))
        return {copysign(infinity<double>(), x.re),
                isnan(x.re) ? x.re : copysign(isinf(x.re) ? quarter : 2 * quarter, x.im)};
    if (isfinite(x.re)) return {nan<double>(), nan<double>()};
    return {x.re, (isinf(x.re) && !isnan(x.im)) || x.im == 0 ? copysign(0.0, x.im) : nan<double>()};
}
AD_HD cdouble infinite_inverse_sine(cdouble x) {
    if (isnan(x.re) || isnan(x.im)) {
        if (x.re == 0) return x;
        return {nan<double>(), isinf(x.re) || isinf(x.im) ? copysign(infinity<double>(), x.im) : nan<double>()};
    }
    const cdouble r = infinite_inverse_hyperbolic_sine({x.im, x.re});
    return {r.im, r.re};
}
AD_HD cdouble inverse_sine(cdouble x) {
    if (!is_finite(x)) return infinite_inverse_sine(x);
    const inverse_parts p = inverse_of(fabs(x.re), fabs(x.im));
    return {copysign(p.sine, x.re), copysign(p.imaginary, x.im)};
}
AD_HD cdouble inverse_cosine(cdouble x) {
    if (!is_finite(x)) {
        const cdouble r = infinite_inverse_sine(x);
        return {pi<double>() / 2 - r.re, -r.im};
    }
    const inverse_parts p = inverse_of(fabs(x.re), fabs(x.im));
    return {signbit(x.re) ? pi<double>() - p.cosine : p.cosine, copysign(p.imaginary, -x.im)};
}
AD_HD cdouble inverse_hyperbolic_sine(cdouble x) {
    if (!is_finite(x)) return infinite_inverse_hyperbolic_sine(x);
    const cdouble r = inverse_sine({x.im, x.re});
    return {r.im, r.re};
}
AD_HD cdouble inverse_hyperbolic_cosine(cdouble x) {
    const cdouble r = inverse_cosine(x);
    if (isinf(x.re) || isinf(x.im)) return {infinity<double>(), isnan(r.re) ? r.re : copysign(r.re, x.im)};
    if (!is_finite(x)) return {nan<double>(), x.re == 0 ? pi<double>() / 2 : nan<double>()};
    return {fabs(r.im), copysign(r.re, x.im)};
}
/* The inverse hyperbolic tangent of a number that is not finite, or too large for squares. */
AD_HD cdouble far_inverse_hyperbolic_tangent(cdouble x) {
    const double turn = copysign(pi<double>() / 2, x.im);
    if (isinf(x.im)) return {copysign(0.0, x.re), turn};
    if (isinf(x.re) || x.re == 0) return {copysign(0.0, x.re), isnan(x.im) ? x.im : turn};
    if (!is_finite(x)) return {nan<double>(), nan<double>()};
    const double half = hypot(x.re / 2, x.im / 2);
    return {x.re / half / half / 4, turn};
}
AD_HD cdouble inverse_hyperbolic_tangent(cdouble x) {
    if (!is_finite(x) || is_large(x)) return far_inverse_hyperbolic_tangent(x);
    const double a = fabs(x.re), b = fabs(x.im);
    const double im = 0.5 * atan2(2 * b, (1 - a) * (1 + a) - b * b);
    const double re =
        a == 1 && b < 1e-150 ? 0.5 * (ln2<double>() - log(b)) : 0.25 * log1p(4 * a / ((1 - a) * (1 - a) + b * b));
    return {copysign(re, x.re), copysign(im, x.im)};
}
AD_HD cdouble inverse_tangent(cdouble x) {
    const cdouble r = inverse_hyperbolic_tangent({x.im, x.re});
    return {r.im, r.re};
}
AD_HD cdouble hyperbolic_tangent(cdouble x) {
    if (!isfinite(x.im) && isinf(x.re)) return {copysign(1.0, x.re), copysign(0.0, x.im)};
    if (x.im == 0 || !isfinite(x.im))
        return {x.im == 0 ? tanh(x.re) : x.re == 0 ? x.re : nan<double>(), x.im == 0 ? x.im : nan<double>()};
    if (fabs(x.re) > 20) return {copysign(1.0, x.re), 4 * sin(x.im) * cos(x.im) * exp(-2 * fabs(x.re))};
    const double t = tan(x.im), s = sinh(x.re), b = 1 + t * t, d = 1 + b * s * s;
    return {b * sqrt(1 + s * s) * s / d, t / d};
}
AD_HD cdouble tangent(cdouble x) {
    const cdouble r = hyperbolic_tangent({x.im, x.re});
    return {r.im, r.re};
}

#define AD_COMPLEX_OWN(name, own)                             \
    AD_HD cdouble name(cdouble x) { return own(x); }          \
    AD_HD ad::complex<float> name(ad::complex<float> x) {     \
        cdouble r = own(cdouble(double(x.re), double(x.im))); \
        return {float(r.re), float(r.im)};                    \
    }

AD_COMPLEX_OWN(tan, tangent)
AD_COMPLEX_OWN(tanh, hyperbolic_tangent)
AD_COMPLEX_OWN(asin, inverse_sine)
AD_COMPLEX_OWN(acos, inverse_cosine)
AD_COMPLEX_OWN(atan, inverse_tangent)
AD_COMPLEX_OWN(asinh, inverse_hyperbolic_sine)
AD_COMPLEX_OWN(acosh, inverse_hyperbolic_cosine)
AD_COMPLEX_OWN(atanh, inverse_hyperbolic_tangent)
#undef AD_COMPLEX_OWN

} // namespace AD_ISA
} // namespace adm
#endif
