/* The elements of iota, for both backends. */
#ifndef AD_KERNELS_IOTA_H
#define AD_KERNELS_IOTA_H

#include "kernels/math.h"
#include "kernels/math_complex.h"

namespace ad {
inline namespace AD_ISA {

/* start + i*step, computed as NumPy's arange does: in the compute type. */
template <class S> AD_HD S iota_element(compute_t<S> start, compute_t<S> step, int64_t i) {
    using C = compute_t<S>;
    if constexpr (is_complex<C>) {
        using R = real_t<C>;
        return S(start.re + R(i) * step.re, start.im + R(i) * step.im);
    } else return cast<S>(adm::add(start, adm::mul(C(i), step)));
}

} // namespace AD_ISA
} // namespace ad
#endif
