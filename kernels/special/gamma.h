/* Functions that are made of the gamma function, the incomplete beta function among them. */
#ifndef AD_KERNELS_SPECIAL_GAMMA_H
#define AD_KERNELS_SPECIAL_GAMMA_H
#define xsf xsf_gamma /* functions of xsf that are not inline are those of this file alone */
#include "kernels/special/xsf.h"
#include <xsf/binom.h>
#include <xsf/cephes/beta.h>
#include <xsf/cephes/gdtr.h>
#include <xsf/cephes/igam.h>
#include <xsf/cephes/igami.h>
#include <xsf/cephes/incbet.h>
#include <xsf/cephes/incbi.h>
#include <xsf/cephes/poch.h>
#include <xsf/cephes/rgamma.h>
#include <xsf/digamma.h>
#include <xsf/loggamma.h>
#include "kernels/special/xsf_end.h"

namespace special {
namespace body {
AD_DEFINE_1(rgamma, xsf::cephes::rgamma(x))
AD_DEFINE_1(loggamma, xsf::loggamma(x))
AD_DEFINE_1(psi, xsf::digamma(x))
AD_DEFINE_2(gammainc, xsf::cephes::igam(x, y))
AD_DEFINE_2(gammaincc, xsf::cephes::igamc(x, y))
AD_DEFINE_2(gammaincinv, xsf::cephes::igami(x, y))
AD_DEFINE_2(gammainccinv, xsf::cephes::igamci(x, y))
AD_DEFINE_2(beta, xsf::cephes::beta(x, y))
AD_DEFINE_2(betaln, xsf::cephes::lbeta(x, y))
AD_DEFINE_2(binom, xsf::binom(x, y))
AD_DEFINE_2(poch, xsf::cephes::poch(x, y))
/* The incomplete beta function. Where a parameter is 0 or infinite, it is the limit for each z; NaN where that depends
 * on how both go there. */
AD_BODY double betainc(double x, double y, double z) {
    if (!(x >= 0 && y >= 0 && z >= 0 && z <= 1) || (x == 0 && y == 0) || (::isinf(x) && ::isinf(y))) return ::nan("");
    if (x == 0 || ::isinf(y)) return z > 0;
    if (y == 0 || ::isinf(x)) return z >= 1;
    return xsf::cephes::incbet(x, y, z);
}
AD_DEFINE_3(betaincinv, x > 0 && y > 0 && z >= 0 && z <= 1 ? xsf::cephes::incbi(x, y, z) : ::nan(""))
AD_DEFINE_3(gdtr, xsf::cephes::gdtr(x, y, z))
AD_DEFINE_3(gdtrc, xsf::cephes::gdtrc(x, y, z))
} // namespace body
} // namespace special
#endif
