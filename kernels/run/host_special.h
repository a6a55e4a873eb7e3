/* Special functions of CUDA C++ that the C library does not have; follows host_math.h. */

inline double nan(const char *) { return __builtin_nan(""); }
inline float nanf(const char *) { return __builtin_nanf(""); }

namespace adrun {

/* y with erfc(y) = z, of 0 < z <= 1: Winitzki's guess, made exact by Halley's steps on the function that is small. */
inline double inverse_erfc(double z) {
    const double l = log(z) + log(2 - z), a = 4.3307467508 + l / 2; /* 2 / (0.147 pi) = 4.33 */
    double y = sqrt(sqrt(a * a - l / 0.147) - a);
    for (int i = 0; i < 4; i++) {
        const double error = z < 0.5 ? erfc(y) - z : (1 - z) - erf(y);
        const double step = error / (-1.1283791670955126 * exp(-y * y));
        if (!(step == step)) break;
        y -= step / (1 + y * step);
    }
    return y;
}
/* The continued fraction of erfcx, from 2 on. */
inline double scaled_erfc(double x) {
    double f = x;
    for (int k = 150; k > 0; k--) f = x + k / 2.0 / f;
    return 0.56418958354775628695 / f;
}
/* I_0 and I_1 of x >= 0: the series, and beyond 25 what it tends to. scale: exp(x), or 1. */
inline double bessel_i(int order, double x) {
    if (x < 25) {
        double term = order ? x / 2 : 1, sum = term;
        for (int k = 1; k < 200 && term > sum * 1e-17; k++) sum += term *= x * x / 4 / (double(k) * (k + order));
        return sum;
    }
    double term = 1, sum = 1;
    for (int k = 1; k < 30; k++) {
        const double odd = 2 * k - 1, next = -term * (4 * order * order - odd * odd) / (8 * x * k);
        if (fabs(next) > fabs(term)) break;
        sum += term = next;
    }
    return exp(x / 2) * sum / sqrt(2 * M_PI * x) * exp(x / 2);
}

} // namespace adrun

inline double erfcinv(double z) {
    if (!(z >= 0 && z <= 2)) return NAN;
    if (z == 0 || z == 2) return z == 0 ? INFINITY : -INFINITY;
    return z <= 1 ? adrun::inverse_erfc(z) : -adrun::inverse_erfc(2 - z);
}
inline double erfinv(double x) {
    const double size = fabs(x);
    if (!(size <= 1)) return NAN;
    if (size == 1) return copysign(HUGE_VAL, x);
    double y = size < 1e-8 ? size * 0.88622692545275801 : size < 0.5 ? size * 0.8862 : adrun::inverse_erfc(1 - size);
    for (int i = 0; size >= 1e-8 && size < 0.5 && i < 5; i++) {
        const double step = (erf(y) - size) / (1.1283791670955126 * exp(-y * y));
        y -= step / (1 + y * step);
    }
    return copysign(y, x);
}
inline double normcdfinv(double p) {
    if (!(p >= 0 && p <= 1)) return NAN;
    return -1.4142135623730950488 * erfcinv(2 * p);
}
inline double erfcx(double x) {
    if (x < 2) return exp(x * x) * erfc(x);
    return x < 1e8 ? adrun::scaled_erfc(x) : 0.56418958354775628695 / x;
}
inline double cyl_bessel_i0(double x) { return adrun::bessel_i(0, fabs(x)); }
inline double cyl_bessel_i1(double x) { return copysign(adrun::bessel_i(1, fabs(x)), x); }
inline double norm4d(double a, double b, double c, double d) { return hypot(hypot(a, b), hypot(c, d)); }
inline double rhypot(double a, double b) { return 1 / hypot(a, b); }
inline double rnorm3d(double a, double b, double c) { return 1 / norm3d(a, b, c); }
inline float norm4df(float a, float b, float c, float d) { return float(norm4d(a, b, c, d)); }
inline float rhypotf(float a, float b) { return float(rhypot(a, b)); }
inline float rnorm3df(float a, float b, float c) { return float(rnorm3d(a, b, c)); }

/* In double, and rounded. */
#define AD_RUN_SPECIAL(name)                                         \
    inline float name##f(float x) { return float(name(double(x))); } \
    inline float name(float x) { return name##f(x); }                \
    inline double name(int x) { return name(double(x)); }
AD_RUN_SPECIAL(erfinv)
AD_RUN_SPECIAL(erfcinv)
AD_RUN_SPECIAL(normcdfinv)
AD_RUN_SPECIAL(erfcx)
AD_RUN_SPECIAL(cyl_bessel_i0)
AD_RUN_SPECIAL(cyl_bessel_i1)
#undef AD_RUN_SPECIAL
