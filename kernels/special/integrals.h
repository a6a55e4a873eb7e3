/* Integrals of elementary functions, zeta functions, angles in degrees, Legendre functions. */
#ifndef AD_KERNELS_SPECIAL_INTEGRALS_H
#define AD_KERNELS_SPECIAL_INTEGRALS_H
#define xsf xsf_integrals /* functions of xsf that are not inline are those of this file alone */
#include "kernels/special/xsf.h"
#include <xsf/cephes/expn.h>
#include <xsf/cephes/shichi.h>
#include <xsf/cephes/sici.h>
#include <xsf/cephes/sindg.h>
#include <xsf/cephes/tandg.h>
#include <xsf/cephes/zeta.h>
#include <xsf/cephes/zetac.h>
#include <xsf/expint.h>
#ifdef __NVCC__
#include <xsf/lpmv.h>
#else
#include <xsf/specfun/specfun.h>
#endif
#include <xsf/wright_bessel.h>
#include "kernels/special/xsf_end.h"

namespace special {

/* Recurrences take a step for each degree or each unit below zero, so there is a largest one. */
constexpr double MOST_STEPS = 1e4;

namespace body {
AD_DEFINE_1(exp1, xsf::exp1(x))
AD_DEFINE_1(expi, xsf::expi(x))
AD_DEFINE_2(expn, x >= -2147483648.0 && x <= 2147483647.0 ? xsf::cephes::expn(int(x), y) : ::nan(""))
AD_BODY void sici(double x, double &si, double &ci) { xsf::cephes::sici(x, si, ci); }
AD_BODY void shichi(double x, double &shi, double &chi) { xsf::cephes::shichi(x, shi, chi); }
AD_DEFINE_1(sindg, xsf::cephes::sindg(x))
AD_DEFINE_1(cosdg, xsf::cephes::cosdg(::fabs(x)))
AD_DEFINE_1(tandg, xsf::cephes::tandg(x))
AD_DEFINE_1(cotdg, xsf::cephes::cotdg(x))
AD_DEFINE_2(zeta, y >= -MOST_STEPS || x <= 1 ? xsf::cephes::zeta(x, y) : y == ::floor(y) ? HUGE_VAL : ::nan(""))
AD_DEFINE_1(zetac, xsf::cephes::zetac(x))
AD_DEFINE_3(wright_bessel, xsf::wright_bessel(x, y, z))
AD_BODY double lpmv(double m, double v, double x) {
    if (m != ::floor(m) || !(::fabs(m) <= MOST_STEPS) || !(::fabs(v) <= MOST_STEPS)) return ::nan("");
    const double value = xsf::specfun::lpmv(x, int(m), v);
    return ::fabs(value) == 1e300 ? value * HUGE_VAL : value;
}
} // namespace body
} // namespace special
#endif
