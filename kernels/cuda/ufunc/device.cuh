/* What the elementwise kernels have in common: division, the rows by weight. */
#ifndef AD_KERNELS_CUDA_UFUNC_DEVICE_CUH
#define AD_KERNELS_CUDA_UFUNC_DEVICE_CUH

#include "kernels/cuda/backend/checks.h"
#include "kernels/cuda/ufunc/kernels.h"
#include "kernels/cuda/ufunc/vector.cuh"
#include "kernels/ufunc.h"
#include "protocol/rows.h"

namespace ad {
inline namespace AD_ISA {

__device__ __forceinline__ uint32_t divide(uint32_t n, const ad_ufunc_divider &d) {
    return (__umulhi(n, d.magic) + n) >> d.shift;
}

/* ---- the rows ---- */

template <int... Rows> constexpr bool is_one_of(int row) { return ((row == Rows) || ...); }

/* Cheap rows are unrolled over vectors; the others have one body in a loop. */
template <int Id, class S> constexpr bool is_light() {
    using C = compute_t<S>;
    if (is_one_of<AD_UFUNC_absolute, AD_UFUNC_sign>(Id)) return !is_complex<C>;
    if (is_one_of<AD_UFUNC_divide, AD_UFUNC_reciprocal, AD_UFUNC_sqrt, AD_UFUNC_exp>(Id)) return same<C, float>;
    if (is_one_of<AD_UFUNC_nextafter, AD_UFUNC_spacing>(Id)) return sizeof(S) == 2;
    return is_one_of<AD_UFUNC_add, AD_UFUNC_subtract, AD_UFUNC_multiply, AD_UFUNC_negative, AD_UFUNC_fabs,
                     AD_UFUNC_conjugate, AD_UFUNC_square, AD_UFUNC_heaviside, AD_UFUNC_deg2rad, AD_UFUNC_rad2deg,
                     AD_UFUNC_equal, AD_UFUNC_not_equal, AD_UFUNC_less, AD_UFUNC_less_equal, AD_UFUNC_greater,
                     AD_UFUNC_greater_equal, AD_UFUNC_logical_and, AD_UFUNC_logical_or, AD_UFUNC_logical_xor,
                     AD_UFUNC_logical_not, AD_UFUNC_maximum, AD_UFUNC_minimum, AD_UFUNC_fmax, AD_UFUNC_fmin,
                     AD_UFUNC_clip, AD_UFUNC_where, AD_UFUNC_isnan, AD_UFUNC_isinf, AD_UFUNC_isfinite,
                     AD_UFUNC_isposinf, AD_UFUNC_isneginf, AD_UFUNC_signbit, AD_UFUNC_copysign, AD_UFUNC_floor,
                     AD_UFUNC_ceil, AD_UFUNC_trunc, AD_UFUNC_rint, AD_UFUNC_nan_to_num, AD_UFUNC_real, AD_UFUNC_imag,
                     AD_UFUNC_bitwise_and, AD_UFUNC_bitwise_or, AD_UFUNC_bitwise_xor, AD_UFUNC_invert,
                     AD_UFUNC_left_shift, AD_UFUNC_right_shift, AD_UFUNC_bitwise_count, AD_UFUNC_copy>(Id);
}

/* Rows that only move their input: ad_cuda_ufunc treats them as copies. */
template <int Id, class S> constexpr bool is_identity() {
    using C = compute_t<S>;
    constexpr bool whole = !is_float<C> && !is_complex<C>;
    if (is_one_of<AD_UFUNC_conjugate, AD_UFUNC_real>(Id)) return !is_complex<C>;
    if (is_one_of<AD_UFUNC_floor, AD_UFUNC_ceil, AD_UFUNC_trunc, AD_UFUNC_nan_to_num>(Id)) return whole;
    if constexpr (whole)
        if (Id == AD_UFUNC_absolute) return !is_signed<C>;
    return Id == AD_UFUNC_positive;
}

/* Whether unsigned integers may use the signed ones' kernel: the bits come out the same. */
template <int Id> constexpr bool ignores_sign() {
    return is_one_of<AD_UFUNC_add, AD_UFUNC_subtract, AD_UFUNC_multiply, AD_UFUNC_negative, AD_UFUNC_square,
                     AD_UFUNC_equal, AD_UFUNC_not_equal, AD_UFUNC_logical_and, AD_UFUNC_logical_or,
                     AD_UFUNC_logical_xor, AD_UFUNC_logical_not, AD_UFUNC_where, AD_UFUNC_isnan, AD_UFUNC_isinf,
                     AD_UFUNC_isfinite, AD_UFUNC_isposinf, AD_UFUNC_isneginf, AD_UFUNC_imag, AD_UFUNC_bitwise_and,
                     AD_UFUNC_bitwise_or, AD_UFUNC_bitwise_xor, AD_UFUNC_invert, AD_UFUNC_left_shift, AD_UFUNC_copy>(
        Id);
}

template <int Id, class S> constexpr bool has_row() { return ufunc_row<Id>::loops >> dtype_of<S>::value & 1; }

/* Integers have no negative powers: the first one found is reported. */
template <int Id, class B> __device__ __forceinline__ void check_element(ad_check *check, B y) {
    if constexpr (Id == AD_UFUNC_power)
        if constexpr (is_int<B>)
            if (is_signed<B> && y < B(0)) ad_cuda_report(check, AD_CHECK_negative_power, 0, 0, 0);
}

} // namespace AD_ISA
} // namespace ad
#endif
