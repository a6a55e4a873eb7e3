/* Error functions and their like, the gamma function, Bessel functions of order 0 and 1. A GPU takes CUDA's own, but for
 * Bessel functions of double. */
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
/* xsf's cancels where x is small; a step of Newton's method mends it. */
AD_BODY double erfinv(double x) {
    const double v = xsf::cephes::erfinv(x), half_root_pi = 0.88622692545275801365;
    return ::fabs(x) < 0.5 ? v - (xsf::cephes::erf(v) - x) * ::exp(v * v) * half_root_pi : v;
}
AD_DEFINE_1(erfcinv, xsf::cephes::erfcinv(x))
AD_DEFINE_1(ndtr, xsf::cephes::ndtr(x))
AD_DEFINE_1(ndtri, xsf::cephes::ndtri(x))
AD_DEFINE_1(gamma, xsf::cephes::Gamma(x))
AD_DEFINE_1(gammaln, xsf::cephes::lgam(x))
AD_DEFINE_1(j0, xsf::cephes::j0(x))
AD_DEFINE_1(j1, xsf::cephes::j1(x))
AD_DEFINE_1(y0, xsf::cephes::y0(x))
AD_DEFINE_1(y1, xsf::cephes::y1(x))
} // namespace body
} // namespace special
#endif
