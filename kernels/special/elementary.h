/* Error functions and their like, the gamma function, Bessel functions of order 0 and 1. A GPU takes CUDA's own, but
 * for Bessel functions of double. */
#ifndef AD_KERNELS_SPECIAL_ELEMENTARY_H
#define AD_KERNELS_SPECIAL_ELEMENTARY_H
#define xsf xsf_elementary /* functions of xsf that are not inline are those of this file alone */
#include "kernels/special/xsf.h"
#include <xsf/cephes/erfinv.h>
#include <xsf/cephes/gamma.h>
#include <xsf/cephes/j0.h>
#include <xsf/cephes/j1.h>
#include <xsf/cephes/ndtr.h>
#include <xsf/cephes/ndtri.h>
#include "kernels/special/xsf_end.h"

namespace special {
namespace body {
AD_DEFINE_1(erf, xsf::cephes::erf(x))
AD_DEFINE_1(erfc, xsf::cephes::erfc(x))
/* xsf's cancels where x is small. Up to one half a polynomial in 8 x^2 - 1, through Chebyshev's points, made with 60
 * digits of the series. */
AD_BODY double erfinv(double x) {
    constexpr double factors[] = {
        0.9174083670522701,     0.03356743029704947,    0.0026140273452605754,  0.00025227475517460794,
        2.6977001010184286e-05, 3.063743623699522e-06,  3.619864126620266e-07,  4.398277747010447e-08,
        5.456542918137929e-09,  6.879322045661287e-10,  8.785252532186867e-11,  1.1336703214253102e-11,
        1.4725064514619827e-12, 1.9307029027055681e-13, 2.7415119683989285e-14, 3.6392300986948105e-15};
    if (!(::fabs(x) < 0.5)) return xsf::cephes::erfinv(x);
    const double t = 8 * x * x - 1;
    double sum = factors[15];
    for (int i = 14; i >= 0; i--) sum = sum * t + factors[i];
    return sum * x;
}
AD_DEFINE_1(erfcinv, xsf::cephes::erfcinv(x))
AD_DEFINE_1(ndtr, xsf::cephes::ndtr(x))
AD_DEFINE_1(ndtri, xsf::cephes::ndtri(x))
AD_DEFINE_1(gamma, xsf::cephes::Gamma(x))
AD_DEFINE_1(gammaln, xsf::cephes::lgam(x))
AD_DEFINE_1(j0, xsf::cephes::j0(::fabs(x))) /* a sign that no branch waits for */
AD_DEFINE_1(j1, xsf::cephes::j1(x))
AD_DEFINE_1(y0, xsf::cephes::y0(x))
AD_DEFINE_1(y1, xsf::cephes::y1(x))
} // namespace body
} // namespace special
#endif
