/* Distributions of probability that are made of the incomplete beta and gamma functions. */
#ifndef AD_KERNELS_SPECIAL_DISTRIBUTIONS_H
#define AD_KERNELS_SPECIAL_DISTRIBUTIONS_H
#define xsf xsf_distributions /* functions of xsf that are not inline are those of this file alone */
#include "kernels/special/xsf.h"
#include <xsf/cephes/bdtr.h>
#include <xsf/cephes/chdtr.h>
#include <xsf/cephes/fdtr.h>
#include <xsf/cephes/incbet.h>
#include <xsf/cephes/incbi.h>
#include <xsf/cephes/nbdtr.h>
#include <xsf/cephes/pdtr.h>
#include "kernels/special/xsf_end.h"

namespace special {

/* True if a number is good for an int. */
AD_BODY static inline bool is_count(double x) { return x >= -2147483648.0 && x <= 2147483647.0; }

namespace body {
#define AD_NOT_A_NUMBER ::nan("")
AD_DEFINE_3(bdtr, is_count(y) ? xsf::cephes::bdtr(x, int(y), z) : AD_NOT_A_NUMBER)
AD_DEFINE_3(bdtrc, is_count(y) ? xsf::cephes::bdtrc(x, int(y), z) : AD_NOT_A_NUMBER)
AD_DEFINE_3(bdtri, is_count(y) ? xsf::cephes::bdtri(x, int(y), z) : AD_NOT_A_NUMBER)
AD_DEFINE_2(chdtr, xsf::cephes::chdtr(x, y))
AD_DEFINE_2(chdtrc, xsf::cephes::chdtrc(x, y))
AD_DEFINE_2(chdtri, xsf::cephes::chdtri(x, y))
AD_DEFINE_3(fdtr, xsf::cephes::fdtr(x, y, z))
AD_DEFINE_3(fdtrc, xsf::cephes::fdtrc(x, y, z))
AD_DEFINE_3(fdtri, xsf::cephes::fdtri(x, y, z))
AD_DEFINE_3(nbdtr, is_count(x) && is_count(y) ? xsf::cephes::nbdtr(int(x), int(y), z) : AD_NOT_A_NUMBER)
AD_DEFINE_3(nbdtrc, is_count(x) && is_count(y) ? xsf::cephes::nbdtrc(int(x), int(y), z) : AD_NOT_A_NUMBER)
AD_DEFINE_3(nbdtri, is_count(x) && is_count(y) ? xsf::cephes::nbdtri(int(x), int(y), z) : AD_NOT_A_NUMBER)
AD_DEFINE_2(pdtr, xsf::cephes::pdtr(x, y))
AD_DEFINE_2(pdtrc, xsf::cephes::pdtrc(x, y))
AD_DEFINE_2(pdtri, is_count(x) ? xsf::cephes::pdtri(int(x), y) : AD_NOT_A_NUMBER)
} // namespace body
} // namespace special
#endif
