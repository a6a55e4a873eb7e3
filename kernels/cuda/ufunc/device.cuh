/* Code that the elementwise kernels have in common: division, and the rows by weight. */
#ifndef AD_KERNELS_CUDA_UFUNC_DEVICE_CUH
#define AD_KERNELS_CUDA_UFUNC_DEVICE_CUH

#include "kernels/cuda/backend/checks.h"
#include "kernels/cuda/ufunc/kernels.h"
#include "kernels/cuda/ufunc/vector.cuh"
#include "kernels/ufunc.h"
#include "protocol/rows_ufunc.h"

namespace ad {
inline namespace AD_ISA {

__device__ __forceinline__ uint32_t divide(uint32_t n, const ad_ufunc_divider &d) {
    return (__umulhi(n, d.magic) + n) >> d.shift;
}

/* ---- the rows ---- */

/* Cheap rows are unrolled over vectors; the others have one body in a loop. */
template <int Id, class S> constexpr bool is_light() {
    using C = compute_t<S>;
    constexpr unsigned has = ufunc_row<Id>::has;
    return (has & AD_U_LIGHT) || ((has & AD_U_LIGHT_REAL) && !is_complex<C>) ||
           ((has & AD_U_LIGHT_FLOAT) && same<C, float>) || ((has & AD_U_LIGHT_HALF) && sizeof(S) == 2);
}

/* Rows that only move their input: ad_cuda_ufunc treats them as copies. */
template <int Id, class S> constexpr bool is_identity() {
    using C = compute_t<S>;
    constexpr unsigned has = ufunc_row<Id>::has;
    constexpr bool whole = !is_float<C> && !is_complex<C>;
    if constexpr (whole)
        if ((has & AD_U_MOVES_UNSIGNED) && !is_signed<C>) return true;
    return (has & AD_U_MOVES) || ((has & AD_U_MOVES_REAL) && !is_complex<C>) || ((has & AD_U_MOVES_WHOLE) && whole);
}

/* Tell whether unsigned integers may use the signed ones' kernel, because the bits come out the same. */
template <int Id> constexpr bool ignores_sign() { return ufunc_row<Id>::has & AD_U_SIGNLESS; }

template <int Id, class S> constexpr bool has_row() {
    return !(ufunc_row<Id>::has & AD_U_SPECIAL) && (ufunc_row<Id>::loops >> dtype_of<S>::value & 1);
}

/* Integers have no negative powers: the first one found is reported. */
template <int Id, class B> __device__ __forceinline__ void check_element(ad_check *check, B y) {
    if constexpr (Id == AD_UFUNC_power)
        if constexpr (is_int<B>)
            if (is_signed<B> && y < B(0)) ad_cuda_report(check, AD_CHECK_negative_power, 0, 0, 0);
}

} // namespace AD_ISA
} // namespace ad
#endif
