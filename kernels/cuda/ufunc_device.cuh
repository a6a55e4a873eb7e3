/* What the elementwise kernels have in common: vectors, division, the rows by weight. */
#ifndef AD_KERNELS_CUDA_UFUNC_DEVICE_CUH
#define AD_KERNELS_CUDA_UFUNC_DEVICE_CUH

#include "kernels/cuda/checks.h"
#include "kernels/cuda/ufunc_kernels.h"
#include "kernels/ufunc.h"

namespace ad {
inline namespace AD_ISA {

__device__ __forceinline__ uint32_t divide(uint32_t n, const ad_ufunc_divider &d) {
    return (__umulhi(n, d.magic) + n) >> d.shift;
}

/* Kernels are launched while the one before may still be running (ad_ufunc_launch): nothing may be read or written
 * before this. */
__device__ __forceinline__ void begin() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* ---- vectors of up to 16 bytes ---- */

template <int Bytes> struct raw;
template <> struct raw<1> { using type = uint8_t; };
template <> struct raw<2> { using type = uint16_t; };
template <> struct raw<4> { using type = uint32_t; };
template <> struct raw<8> { using type = uint2; };
template <> struct raw<16> { using type = uint4; };

/* V elements as they lie in memory, in registers of 4 bytes: small elements stay together until they are wanted. */
template <class S, int V> struct vec {
    static constexpr int bytes = sizeof(S) * V, words = (bytes + 3) / 4;
    using memory = typename raw<bytes>::type;
    uint32_t word[words];

    __device__ __forceinline__ S get(int i) const {
        if constexpr (sizeof(S) == 1) return bit_cast<S>(uint8_t(word[i / 4] >> i % 4 * 8));
        else if constexpr (sizeof(S) == 2) return bit_cast<S>(uint16_t(word[i / 2] >> i % 2 * 16));
        else if constexpr (sizeof(S) == 4) return bit_cast<S>(word[i]);
        else if constexpr (sizeof(S) == 8) return bit_cast<S>(make_uint2(word[2 * i], word[2 * i + 1]));
        else return bit_cast<S>(make_uint4(word[4 * i], word[4 * i + 1], word[4 * i + 2], word[4 * i + 3]));
    }
};

template <class S, int V> __device__ __forceinline__ vec<S, V> load_vector(const char *p) {
    vec<S, V> v;
    const auto m = *reinterpret_cast<const typename vec<S, V>::memory *>(p);
    if constexpr (v.bytes < 4) v.word[0] = m;
    else memcpy(v.word, &m, sizeof m);
    return v;
}
template <class S, int V> __device__ __forceinline__ void store_vector(char *p, const vec<S, V> &v) {
    typename vec<S, V>::memory m;
    if constexpr (v.bytes < 4) m = typename vec<S, V>::memory(v.word[0]);
    else memcpy(&m, v.word, sizeof m);
    *reinterpret_cast<typename vec<S, V>::memory *>(p) = m;
}

template <class S> __device__ __forceinline__ uint32_t low_word(S s) {
    if constexpr (sizeof(S) == 1) return bit_cast<uint8_t>(s);
    else if constexpr (sizeof(S) == 2) return bit_cast<uint16_t>(s);
    else return bit_cast<uint32_t>(s);
}

template <class S, int V> __device__ __forceinline__ vec<S, V> pack(const S (&s)[V]) {
    vec<S, V> v;
    if constexpr (sizeof(S) >= 4) {
        memcpy(v.word, s, sizeof s);
    } else if constexpr (V == 1) {
        v.word[0] = low_word(s[0]);
    } else if constexpr (sizeof(S) == 2 || V == 2) {
#pragma unroll
        for (int i = 0; i < v.words; i++)
            v.word[i] = __byte_perm(low_word(s[2 * i]), low_word(s[2 * i + 1]), sizeof(S) == 2 ? 0x5410 : 0x0040);
    } else {
#pragma unroll
        for (int i = 0; i < v.words; i++)
            v.word[i] = __byte_perm(__byte_perm(low_word(s[4 * i]), low_word(s[4 * i + 1]), 0x0040),
                                    __byte_perm(low_word(s[4 * i + 2]), low_word(s[4 * i + 3]), 0x0040), 0x5410);
    }
    return v;
}

template <class S, int V> __device__ __forceinline__ vec<S, V> splat(S s) {
    S all[V];
#pragma unroll
    for (int i = 0; i < V; i++) all[i] = s;
    return pack<S, V>(all);
}

/* Drops the first N elements; `next`, N more, come at the end. */
template <int N, class S, int V> __device__ __forceinline__ void shift(vec<S, V> &v, const vec<S, N> &next) {
    constexpr int bytes = N * int(sizeof(S));
    if constexpr (N == V) {
        v = next;
    } else if constexpr (bytes % 4 == 0) {
#pragma unroll
        for (int i = 0; i < v.words; i++)
            v.word[i] = i + bytes / 4 < v.words ? v.word[i + bytes / 4] : next.word[i + bytes / 4 - v.words];
    } else {
#pragma unroll
        for (int i = 0; i < v.words; i++)
            v.word[i] = __funnelshift_r(v.word[i], i + 1 < v.words ? v.word[i + 1] : next.word[0], bytes * 8);
    }
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
