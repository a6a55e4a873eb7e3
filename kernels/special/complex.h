/* Special functions of complex numbers, and what shares headers with them that only one file may include. */
#ifndef AD_KERNELS_SPECIAL_COMPLEX_H
#define AD_KERNELS_SPECIAL_COMPLEX_H
#define xsf xsf_complex /* functions of xsf that are not inline are those of this file alone */
#include "kernels/special/xsf.h"
#include <xsf/erf.h>
#include <xsf/gamma.h>
#include <xsf/loggamma.h>
#include <xsf/digamma.h>
#include <xsf/expint.h>
#include <xsf/lambertw.h>
#include <xsf/sici.h>
#include "kernels/special/xsf_end.h"

namespace special {
namespace body {
AD_DEFINE_1(erfcx, xsf::erfcx(x))
AD_DEFINE_C1(erf, xsf::erf)
AD_DEFINE_C1(erfc, xsf::erfc)
AD_DEFINE_C1(erfcx, xsf::erfcx)
AD_BODY wide ndtr(wide x) {
    const wide half = wide_of(xsf::erfc(complex_of({-x.re * 0.70710678118654752440, -x.im * 0.70710678118654752440})));
    return {half.re / 2, half.im / 2};
}
AD_DEFINE_C1(gamma, xsf::gamma)
AD_DEFINE_C1(rgamma, xsf::rgamma)
AD_DEFINE_C1(loggamma, xsf::loggamma)
AD_DEFINE_C1(psi, xsf::digamma)
AD_DEFINE_C1(exp1, xsf::exp1)
AD_DEFINE_C1(expi, xsf::expi)

/* An angle as one of -pi..pi. */
AD_BODY static double wrapped(double angle) {
    const double two_pi = 6.283185307179586477, r = ::fmod(angle, two_pi);
    return r >= two_pi / 2 ? r - two_pi : r < -two_pi / 2 ? r + two_pi : r;
}
/* log(exp(-t^2) w(it) / 2) for t = -x/sqrt(2), with the imaginary part of the principal branch. */
AD_BODY wide log_ndtr(wide x) {
    if (x.re > 6) {
        const wide upper = ndtr({-x.re, -x.im});
        if (::hypot(upper.re, upper.im) < 1e-8) return {-upper.re, -upper.im};
    }
    const double re = -x.re * 0.70710678118654752440, im = -x.im * 0.70710678118654752440;
    const wide w = wide_of(xsf::wofz(complex_of({-im, re})));
    return {(im - re) * (re + im) + ::log(::hypot(w.re, w.im)) - 0.69314718055994530942,
            wrapped(wrapped(-2 * re * im) + ::atan2(w.im, w.re))};
}
AD_BODY wide lambertw(wide x, int64_t branch, double tolerance) {
    return wide_of(xsf::lambertw(complex_of(x), long(branch), tolerance));
}
AD_BODY void sici(wide x, wide &si, wide &ci) {
    complex_double a, b;
    xsf::sici(complex_of(x), a, b);
    si = wide_of(a);
    ci = wide_of(b);
}
AD_BODY void shichi(wide x, wide &shi, wide &chi) {
    complex_double a, b;
    xsf::shichi(complex_of(x), a, b);
    shi = wide_of(a);
    chi = wide_of(b);
}
} // namespace body
} // namespace special
#endif
