/* Bessel functions and elliptic integrals. */
#ifndef AD_KERNELS_SPECIAL_BESSEL_H
#define AD_KERNELS_SPECIAL_BESSEL_H
#define xsf xsf_bessel /* functions of xsf that are not inline are those of this file alone */
#include "kernels/special/xsf.h"
#include <xsf/cephes/ellie.h>
#include <xsf/cephes/ellik.h>
#include <xsf/cephes/ellpe.h>
#include <xsf/cephes/ellpj.h>
#include <xsf/cephes/ellpk.h>
#include <xsf/cephes/i0.h>
#include <xsf/cephes/i1.h>
#include <xsf/cephes/k0.h>
#include <xsf/cephes/k1.h>
#include <xsf/cephes/yn.h>
#include "kernels/special/xsf_end.h"
#include "kernels/special/ellipj.h"

namespace special {

/* Recurrences take a step for each order, so there is a largest one. */
constexpr double LARGEST_ORDER = 1e4;
AD_BODY static inline bool is_order(double n) { return n >= -LARGEST_ORDER && n <= LARGEST_ORDER; }

AD_BODY static double climb_yn(int64_t n, double x) {
    double last = -::cos(x) / x, value = (last - ::sin(x)) / x;
    if (n == 0) return last;
    for (int64_t k = 1; k < n && !::isinf(value); k++) {
        const double next = double(2 * k + 1) * value / x - last;
        last = value;
        value = next;
    }
    return value;
}

namespace body {
AD_DEFINE_1(i0e, xsf::cephes::i0e(x))
AD_DEFINE_1(i1, xsf::cephes::i1(x))
AD_DEFINE_1(i1e, xsf::cephes::i1e(x))
AD_DEFINE_1(k0, xsf::cephes::k0(x))
AD_DEFINE_1(k0e, xsf::cephes::k0e(x))
AD_DEFINE_1(k1, xsf::cephes::k1(x))
AD_DEFINE_1(k1e, xsf::cephes::k1e(x))
AD_DEFINE_2(yn, is_order(x) ? xsf::cephes::yn(int(x), y) : ::nan(""))
AD_BODY double spherical_yn(double n, double x) {
    if (x != x) return x;
    if (!is_order(n) || n < 0) return ::nan("");
    if (::isinf(x)) return 0;
    const double value = x == 0 ? -HUGE_VAL : climb_yn(int64_t(n), ::fabs(x));
    return x < 0 && int64_t(n) % 2 == 0 ? -value : value;
}
AD_DEFINE_1(ellipk, xsf::cephes::ellpk(1 - x))
AD_DEFINE_1(ellipkm1, xsf::cephes::ellpk(x))
AD_DEFINE_1(ellipe, xsf::cephes::ellpe(x))
AD_DEFINE_2(ellipkinc, xsf::cephes::ellik(x, y))
AD_DEFINE_2(ellipeinc, xsf::cephes::ellie(x, y))
AD_BODY void ellipj(double u, double m, double (&four)[4]) {
    if (m >= 1e-9 && m < 0.9999999999 && ::isfinite(u)) step_down(u, m, four);
    else xsf::cephes::ellpj(u, m, &four[0], &four[1], &four[2], &four[3]);
}
} // namespace body
} // namespace special
#endif
