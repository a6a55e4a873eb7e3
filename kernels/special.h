/* The special functions of ufunc.def's expressions (namespace special), for float, double and complex numbers. Those of
 * an instruction or a line are written here, and chains compiled at run time can have them. All others are computed in
 * double by namespace body: SciPy's own (kernels/special/, from its headers xsf), declared here and defined once for the
 * CPU (kernels/cpu/special) and once for the GPU (kernels/cuda/special), so few files compile these headers. */
#ifndef AD_KERNELS_SPECIAL_H
#define AD_KERNELS_SPECIAL_H
#ifdef __CUDACC__
#include "kernels/special_gpu.h"
#endif
#include "kernels/math.h"

namespace special {

/* A complex number as the functions of body have it, whatever it is compiled for. */
struct wide {
    double re, im;
};

#ifdef __CUDACC__
#define AD_BODY __host__ __device__
#else
#define AD_BODY
#endif

namespace body {
/* Functions of one, two and three numbers; BODY_C1: of a complex number as well. */
#define AD_BODIES(BODY_1, BODY_2, BODY_3, BODY_C1)                                                                     \
    BODY_1(erf)                                                                                                        \
    BODY_1(erfc) BODY_1(erfcx) BODY_1(erfinv) BODY_1(erfcinv) BODY_1(ndtr) BODY_1(ndtri) BODY_1(gamma) BODY_1(gammaln) \
        BODY_1(j0) BODY_1(j1) BODY_1(y0) BODY_1(y1) BODY_1(rgamma) BODY_1(loggamma) BODY_1(psi) BODY_1(exp1)           \
            BODY_1(expi) BODY_C1(erf) BODY_C1(erfc) BODY_C1(erfcx) BODY_C1(ndtr) BODY_C1(log_ndtr) BODY_C1(gamma)      \
                BODY_C1(rgamma) BODY_C1(loggamma) BODY_C1(psi) BODY_C1(exp1) BODY_C1(expi) BODY_2(gammainc)            \
                    BODY_2(gammaincc) BODY_2(gammaincinv) BODY_2(gammainccinv) BODY_2(beta) BODY_2(betaln)             \
                        BODY_2(binom) BODY_2(poch) BODY_3(betainc) BODY_3(betaincinv) BODY_3(bdtr) BODY_3(bdtrc)       \
                            BODY_3(bdtri) BODY_2(chdtr) BODY_2(chdtrc) BODY_2(chdtri) BODY_3(fdtr) BODY_3(fdtrc)       \
                                BODY_3(fdtri) BODY_3(gdtr) BODY_3(gdtrc) BODY_3(nbdtr) BODY_3(nbdtrc) BODY_3(nbdtri)   \
                                    BODY_2(pdtr) BODY_2(pdtrc) BODY_2(pdtri) BODY_1(i0e) BODY_1(i1) BODY_1(i1e)        \
                                        BODY_1(k0) BODY_1(k0e) BODY_1(k1) BODY_1(k1e) BODY_2(yn) BODY_2(spherical_yn)  \
                                            BODY_1(ellipk) BODY_1(ellipkm1) BODY_1(ellipe) BODY_2(ellipkinc)           \
                                                BODY_2(ellipeinc) BODY_2(expn) BODY_2(zeta) BODY_1(zetac)              \
                                                    BODY_1(sindg) BODY_1(cosdg) BODY_1(tandg) BODY_1(cotdg)            \
                                                        BODY_3(wright_bessel) BODY_3(lpmv)

#define AD_DECLARE_1(name) AD_BODY double name(double x);
#define AD_DECLARE_2(name) AD_BODY double name(double x, double y);
#define AD_DECLARE_3(name) AD_BODY double name(double x, double y, double z);
#define AD_DECLARE_C1(name) AD_BODY wide name(wide x);
AD_BODIES(AD_DECLARE_1, AD_DECLARE_2, AD_DECLARE_3, AD_DECLARE_C1)
#undef AD_DECLARE_1
#undef AD_DECLARE_2
#undef AD_DECLARE_3
#undef AD_DECLARE_C1
AD_BODY wide lambertw(wide x, int64_t branch, double tolerance);
AD_BODY void ellipj(double u, double m, double (&sn_cn_dn_ph)[4]);
AD_BODY void sici(double x, double &si, double &ci);
AD_BODY void shichi(double x, double &shi, double &chi);
AD_BODY void sici(wide x, wide &si, wide &ci);
AD_BODY void shichi(wide x, wide &shi, wide &chi);
} // namespace body

inline namespace AD_ISA {

using ad::is_complex;
using ad::same;

template <class T> AD_HD wide widen(T x) { return {double(x.re), double(x.im)}; }
template <class T> AD_HD T narrow(wide x) {
    using R = decltype(T().re);
    return {R(x.re), R(x.im)};
}

/* ---- by body alone ---- */

#define AD_BY_BODY(name)                                                     \
    template <class T> AD_HD T name(T x) {                                   \
        if constexpr (is_complex<T>) return narrow<T>(body::name(widen(x))); \
        else return T(body::name(double(x)));                                \
    }
#define AD_BY_BODY_1(name) \
    template <class T> AD_HD T name(T x) { return T(body::name(double(x))); }
#define AD_BY_BODY_2(name) \
    template <class T> AD_HD T name(T x, T y) { return T(body::name(double(x), double(y))); }
#define AD_BY_BODY_3(name) \
    template <class T> AD_HD T name(T x, T y, T z) { return T(body::name(double(x), double(y), double(z))); }

AD_BY_BODY(rgamma)
AD_BY_BODY(loggamma) AD_BY_BODY(psi) AD_BY_BODY(exp1) AD_BY_BODY(expi) AD_BY_BODY_2(gammainc) AD_BY_BODY_2(gammaincc)
    AD_BY_BODY_2(gammaincinv) AD_BY_BODY_2(gammainccinv) AD_BY_BODY_2(beta) AD_BY_BODY_2(betaln) AD_BY_BODY_2(binom)
        AD_BY_BODY_2(poch) AD_BY_BODY_3(betainc) AD_BY_BODY_3(betaincinv) AD_BY_BODY_3(bdtr) AD_BY_BODY_3(bdtrc)
            AD_BY_BODY_3(bdtri) AD_BY_BODY_2(chdtr) AD_BY_BODY_2(chdtrc) AD_BY_BODY_2(chdtri) AD_BY_BODY_3(fdtr)
                AD_BY_BODY_3(fdtrc) AD_BY_BODY_3(fdtri) AD_BY_BODY_3(gdtr) AD_BY_BODY_3(gdtrc) AD_BY_BODY_3(nbdtr)
                    AD_BY_BODY_3(nbdtrc) AD_BY_BODY_3(nbdtri) AD_BY_BODY_2(pdtr) AD_BY_BODY_2(pdtrc) AD_BY_BODY_2(pdtri)
                        AD_BY_BODY_1(i0e) AD_BY_BODY_1(i1) AD_BY_BODY_1(i1e) AD_BY_BODY_1(k0) AD_BY_BODY_1(k0e)
                            AD_BY_BODY_1(k1) AD_BY_BODY_1(k1e) AD_BY_BODY_2(yn) AD_BY_BODY_2(spherical_yn)
                                AD_BY_BODY_1(ellipk) AD_BY_BODY_1(ellipkm1) AD_BY_BODY_1(ellipe) AD_BY_BODY_2(ellipkinc)
                                    AD_BY_BODY_2(ellipeinc) AD_BY_BODY_2(expn) AD_BY_BODY_2(zeta) AD_BY_BODY_1(zetac)
                                        AD_BY_BODY_1(sindg) AD_BY_BODY_1(cosdg) AD_BY_BODY_1(tandg) AD_BY_BODY_1(cotdg)
                                            AD_BY_BODY_3(wright_bessel) AD_BY_BODY_3(lpmv)

                                                template <class T>
                                                AD_HD T lambertw(T x, int64_t branch, double tolerance) {
    return narrow<T>(body::lambertw(widen(x), branch, tolerance));
}
/* Two of Jacobi's four functions: sn and cn, or dn and the amplitude. */
template <int First, class T> AD_HD void ellipj(T u, T m, T &r0, T &r1) {
    double four[4];
    body::ellipj(double(u), double(m), four);
    r0 = T(four[First]);
    r1 = T(four[First + 1]);
}
#define AD_BY_BODY_PAIR(name)                               \
    template <class T> AD_HD void name(T x, T &r0, T &r1) { \
        if constexpr (is_complex<T>) {                      \
            wide a, b;                                      \
            body::name(widen(x), a, b);                     \
            r0 = narrow<T>(a);                              \
            r1 = narrow<T>(b);                              \
        } else {                                            \
            double a, b;                                    \
            body::name(double(x), a, b);                    \
            r0 = T(a);                                      \
            r1 = T(b);                                      \
        }                                                   \
    }
AD_BY_BODY_PAIR(sici)
AD_BY_BODY_PAIR(shichi)

/* ---- functions that CUDA has: there by an instruction or its library, on the CPU by body ---- */

#ifdef __CUDACC__
#define AD_BUILT_IN(name, cuda)                                              \
    template <class T> AD_HD T name(T x) {                                   \
        if constexpr (is_complex<T>) return narrow<T>(body::name(widen(x))); \
        else if constexpr (same<T, float>) return ::cuda##f(x);              \
        else return ::cuda(x);                                               \
    }
#define AD_BUILT_IN_REAL(name, cuda)                       \
    template <class T> AD_HD T name(T x) {                 \
        if constexpr (same<T, float>) return ::cuda##f(x); \
        else return ::cuda(x);                             \
    }
/* Bessel functions. Beyond 8 CUDA's are off by up to 5e-12, which float does not show and double does. */
#define AD_BUILT_IN_BESSEL(name)                                   \
    template <class T> AD_HD T name(T x) {                         \
        if constexpr (same<T, float>) return T(::name(double(x))); \
        else return body::name(x);                                 \
    }
#else
#define AD_BUILT_IN(name, cuda) AD_BY_BODY(name)
#define AD_BUILT_IN_REAL(name, cuda) AD_BY_BODY_1(name)
#define AD_BUILT_IN_BESSEL(name) AD_BY_BODY_1(name)
#endif
AD_BUILT_IN(erf, erf)
AD_BUILT_IN(erfc, erfc)
AD_BUILT_IN(erfcx, erfcx)
AD_BUILT_IN(ndtr, normcdf)
AD_BUILT_IN(gamma, tgamma)
AD_BUILT_IN_REAL(erfinv, erfinv)
AD_BUILT_IN_REAL(erfcinv, erfcinv)
AD_BUILT_IN_REAL(ndtri, normcdfinv)
AD_BUILT_IN_BESSEL(j0)
AD_BUILT_IN_BESSEL(j1)
AD_BUILT_IN_BESSEL(y0)
AD_BUILT_IN_BESSEL(y1)
template <class T> AD_HD T gammaln(T x) {
#ifdef __CUDACC__
    if constexpr (same<T, float>) return gammaln_of_float(x);
    return T(x == -adm::infinity<T>() ? x : ::lgamma(x)); /* SciPy's answer there, not C's */
#else
    return T(body::gammaln(double(x)));
#endif
}

/* ---- functions of a line or two, computed in double as SciPy does ---- */

constexpr double LARGEST_LOG = 709.78, LARGEST = 1.79e308;

template <class T> AD_HD T log_ndtr(T x) {
    if constexpr (is_complex<T>) {
        return narrow<T>(body::log_ndtr(widen(x)));
    } else {
        const double t = double(x) * 0.70710678118654752440;
        return T(x < -1 ? adm::log(erfcx(-t) / 2) - t * t : adm::log1p(-erfc(t) / 2));
    }
}
template <class T> AD_HD T expit(T x) { return 1 / (1 + adm::exp(-x)); }
/* Near one half by a form that does not cancel. */
template <class T> AD_HD T logit(T x) {
    const T s = 2 * (x - T(0.5));
    return x < T(0.3) || x > T(0.65) ? adm::log(x / (1 - x)) : adm::log1p(s) - adm::log1p(-s);
}
template <class T> AD_HD T log_expit(T x) { return x < 0 ? x - adm::log1p(adm::exp(x)) : -adm::log1p(adm::exp(-x)); }
template <class T> AD_HD T exp10(T x) {
#ifdef __CUDACC__
    return T(::exp10(double(x)));
#else
    return T(::exp10(double(x)));
#endif
}
template <class T> AD_HD T exprel(T x) {
    const double v = x;
    return T(adm::fabs(v) < 2.3e-16 ? 1 : v > 717 ? adm::infinity<double>() : adm::expm1(v) / v);
}
template <class T> AD_HD T cosm1(T x) {
    const double s = adm::sin(double(x) / 2);
    return T(-2 * s * s);
}
template <class T> AD_HD T gammasgn(T x) {
    const T whole = adm::floor(x);
    if (x != x || x == -adm::infinity<T>()) return adm::nan<T>();
    if (x == 0) return adm::copysign(T(1), x);
    if (x > 0) return 1;
    if (x == whole) return adm::nan<T>();
    return whole / 2 == adm::floor(whole / 2) ? 1 : -1;
}
template <class T> AD_HD T radian(T degrees, T minutes, T seconds) {
    return T(((double(degrees) * 60 + double(minutes)) * 60 + double(seconds)) * 4.8481368110953599358991410e-6);
}
template <class T> AD_HD bool is_nothing(T x) {
    if constexpr (is_complex<T>) return x.re == 0 && x.im == 0;
    else return x == 0;
}
/* 0 where x is 0, whatever the logarithm is, but NaN stays. */
template <class T> AD_HD T xlogy(T x, T y) { return is_nothing(x) && !adm::isnan(y) ? T(0) : adm::mul(x, adm::log(y)); }
template <class T> AD_HD T xlog1py(T x, T y) {
    return is_nothing(x) && !adm::isnan(y) ? T(0) : adm::mul(x, adm::log1p(y));
}
template <class T> AD_HD T entr(T x) {
    return x != x ? x : x > 0 ? -x * adm::log(x) : x == 0 ? T(0) : -adm::infinity<T>();
}
template <class T> AD_HD T rel_entr(T x, T y) {
    const double a = x, b = y, ratio = a / b;
    if (a != a || b != b) return adm::nan<T>();
    if (a == 0 && b >= 0) return 0;
    if (!(a > 0 && b > 0)) return adm::infinity<T>();
    if (ratio > 0.5 && ratio < 2) return T(a * adm::log1p((a - b) / b));
    return T(ratio > 2.3e-308 && ratio <= LARGEST ? a * adm::log(ratio) : a * (adm::log(a) - adm::log(b)));
}
template <class T> AD_HD T kl_div(T x, T y) {
    const double a = x, b = y;
    if (a != a || b != b) return adm::nan<T>();
    if (a == 0 && b >= 0) return y;
    return T(a > 0 && b > 0 ? a * adm::log(a / b) - a + b : adm::infinity<double>());
}
template <class T> AD_HD T huber(T delta, T r) {
    const double d = delta, a = adm::fabs(double(r));
    return T(d < 0 ? adm::infinity<double>() : a <= d ? a * a / 2 : d * (a - d / 2));
}
template <class T> AD_HD T pseudo_huber(T delta, T r) {
    const double d = delta, v = adm::fabs(double(r) / d);
    if (d < 0) return adm::infinity<T>();
    return T(d == 0 || r == 0 ? 0 : d * d * (v > 1e16 ? v : v * v / (adm::sqrt(1 + v * v) + 1)));
}
/* (exp(lambda * log_x) - 1) / lambda, where that product may be too large for exp but not for the quotient. */
AD_HD double boxcox_of_log(double log_x, double lambda) {
    const double product = lambda * log_x;
    if (product < LARGEST_LOG) return adm::expm1(product) / lambda;
    return adm::copysign(1.0, lambda) * adm::exp(product - adm::log(adm::fabs(lambda))) - 1 / lambda;
}
template <class T> AD_HD T boxcox(T x, T lambda) {
    const double l = adm::log(double(x));
    return T(adm::fabs(double(lambda)) < 1e-19 ? l : boxcox_of_log(l, lambda));
}
template <class T> AD_HD T boxcox1p(T x, T lambda) {
    const double l = adm::log1p(double(x)), a = adm::fabs(double(lambda));
    return T(a < 1e-19 || (adm::fabs(l) < 1e-289 && a < 1e273) ? l : boxcox_of_log(l, lambda));
}
/* log(lambda * x + 1) / lambda. */
AD_HD double log_of_boxcox(double x, double lambda) {
    if (lambda * x < LARGEST) return adm::log1p(lambda * x) / lambda;
    return (adm::log(adm::copysign(1.0, lambda) * (x + 1 / lambda)) + adm::log(adm::fabs(lambda))) / lambda;
}
template <class T> AD_HD T inv_boxcox(T x, T lambda) {
    return T(lambda == 0 ? adm::exp(double(x)) : adm::exp(log_of_boxcox(x, lambda)));
}
template <class T> AD_HD T inv_boxcox1p(T x, T lambda) {
    if (lambda == 0) return T(adm::expm1(double(x)));
    return adm::fabs(double(lambda) * double(x)) < 1e-154 ? x : T(adm::expm1(log_of_boxcox(x, lambda)));
}

} // namespace AD_ISA
} // namespace special
#endif
