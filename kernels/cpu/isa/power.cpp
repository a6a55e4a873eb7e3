/* Powers of floats by vectors of 64 bytes, on processors with AVX-512. Loops over adm::power call these functions by
 * the names that the compiler gives to vector forms (x86-64's vector function ABI). libmvec's pow takes twice the time,
 * and so does the code that the compiler makes of math.h's float_power.
 *
 * x^y = 2^(y log2 x). x is 2^k m with m in [3/4, 3/2); c is near 1/m and so short that r = m c - 1 is exact. So log2 x
 * is k - log2 c + log2(1 + r). It is kept in two numbers, as y multiplies its error: t = y log2 x is up to 1075. 2^t is
 * a 16th root of a power of 2 times a polynomial. The error is at most 0.6 units in the last place, and 1.1 of float64
 * where t is around a thousand. */
#pragma GCC diagnostic ignored "-Wuninitialized" /* GCC 12 warns of what its own header leaves undefined */
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#include "kernels/cpu/isa/isa.h"

#include "kernels/accumulate.h"
#include "kernels/math_libm.h"

#ifdef AD_OWN_POWER

namespace ad {
inline namespace AD_ISA {
namespace {

/* Constants of powers. By 5 bits of m: c, and -log2 c in two parts, of which the first has room for k before it. By
 * sixteenths: 2^(i/16), and its relative error. log2 e in two parts. Then the coefficients of two polynomials through
 * Chebyshev's points, from the lowest on, which were made with 400 bits. The first is log2(1 + r) / (r log2 e) from the
 * square on, divided by the coefficient of r. The second is (2^f - 1) / f. */
template <class T> struct constants;
/* clang-format off */
template <> struct constants<float> {
    alignas(64) static constexpr float inverse[32] = {
        1, 0.953125f, 0.921875f, 0.90625f, 0.875f, 0.859375f, 0.828125f, 0.8125f, 0.796875f, 0.765625f, 0.75f,
        0.734375f, 0.71875f, 0.703125f, 0.6875f, 0.671875f, 1.3125f, 1.296875f, 1.265625f, 1.25f, 1.21875f, 1.203125f,
        1.171875f, 1.15625f, 1.125f, 1.109375f, 1.09375f, 1.078125f, 1.0625f, 1.046875f, 1.03125f, 1};
    alignas(64) static constexpr float log_high[32] = {
        0, 0x1.1bcp-4f, 0x1.e0cp-4f, 0x1.22ep-3f, 0x1.8a9p-3f, 0x1.bfcp-3f, 0x1.16ap-2f, 0x1.32cp-2f, 0x1.4f7p-2f,
        0x1.8a88p-2f, 0x1.a9p-2f, 0x1.c818p-2f, 0x1.e7ep-2f, 0x1.042cp-1f, 0x1.14c4p-1f, 0x1.25cp-1f, -0x1.91b8p-2f,
        -0x1.8008p-2f, -0x1.5cp-2f, -0x1.49a8p-2f, -0x1.244p-2f, -0x1.113p-2f, -0x1.d4ap-3f, -0x1.acfp-3f,
        -0x1.5cp-3f, -0x1.32bp-3f, -0x1.08cp-3f, -0x1.bc8p-4f, -0x1.664p-4f, -0x1.0ecp-4f, -0x1.6bcp-5f, 0};
    alignas(64) static constexpr float log_low[32] = {
        0, -0x1.9ab4p-17f, -0x1.ca2e1ap-17f, -0x1.48f554p-17f, -0x1.9fd502p-17f, 0x1.9eap-17f, -0x1.fd64ep-17f,
        -0x1.1c8f12p-22f, -0x1.134c4ep-20f, 0x1.80abfcp-18f, -0x1.a39fbep-20f, 0x1.dc2d46p-18f, -0x1.40358ep-19f,
        -0x1.5a32c2p-20f, 0x1.60fe68p-17f, 0x1.408c78p-18f, -0x1.d448f8p-17f, -0x1.2b18bp-17f, -0x1.a39fbep-18f,
        0x1.ed0cbap-20f, -0x1.eac382p-20f, -0x1.f6b4c2p-20f, 0x1.1b3cdap-19f, -0x1.78b6d4p-17f, -0x1.a39fbep-19f,
        0x1.61d876p-19f, -0x1.62336ap-17f, -0x1.0902b6p-18f, 0x1.20a6dep-21f, 0x1.8ec0bap-17f, 0x1.2c8a72p-17f, 0};
    alignas(64) static constexpr float root[16] = {
        1, 0x1.0b5586p+0f, 0x1.172b84p+0f, 0x1.2387a6p+0f, 0x1.306fep+0f, 0x1.3dea64p+0f, 0x1.4bfdaep+0f,
        0x1.5ab07ep+0f, 0x1.6a09e6p+0f, 0x1.7a1148p+0f, 0x1.8ace54p+0f, 0x1.9c4918p+0f, 0x1.ae89fap+0f,
        0x1.c199bep+0f, 0x1.d5818ep+0f, 0x1.ea4afap+0f};
    alignas(64) static constexpr float root_low[16] = {
        0, 0x1.8d96d4p-25f, -0x1.9c0c22p-27f, 0x1.964904p-25f, 0x1.125002p-25f, 0x1.370be4p-25f, -0x1.0a355p-25f,
        -0x1.00d8acp-27f, 0x1.26055cp-26f, -0x1.05cb44p-25f, 0x1.67a1cap-28f, 0x1.a3b5e4p-28f, -0x1.f9c304p-27f,
        -0x1.6961b4p-28f, -0x1.a5217cp-28f, 0x1.61428ep-28f};
    static constexpr float log2_e[] = {0x1.715476p+0f, 0x1.4ae0cp-26f};
    static constexpr float logarithm[] = {-0x1.555554p-1f, 0x1.00003ep-1f, -0x1.99be8cp-2f, 0x1.4f4998p-2f};
    static constexpr float exponential[] = {0x1.62e43p-1f, 0x1.ebffa4p-3f, 0x1.c6b2a4p-5f};
};
template <> struct constants<double> {
    alignas(64) static constexpr double inverse[32] = {
        1, 0.953125, 0.921875, 0.90625, 0.875, 0.859375, 0.828125, 0.8125, 0.796875, 0.765625, 0.75, 0.734375,
        0.71875, 0.703125, 0.6875, 0.671875, 1.3125, 1.296875, 1.265625, 1.25, 1.21875, 1.203125, 1.171875, 1.15625,
        1.125, 1.109375, 1.09375, 1.078125, 1.0625, 1.046875, 1.03125, 1};
    alignas(64) static constexpr double log_high[32] = {
        0, 0x1.1bb32a6p-4, 0x1.e0b1ae8f3p-4, 0x1.22dadc2abp-3, 0x1.8a8980abf8p-3, 0x1.bfc67a8p-3, 0x1.169c05364p-2,
        0x1.32bfee371p-2, 0x1.4f6fbb2cecp-2, 0x1.8a8980abfcp-2, 0x1.a8ff97181p-2, 0x1.c819dc2d44p-2,
        0x1.e7df5fe538p-2, 0x1.042bd4b9a8p-1, 0x1.14c560fe68p-1, 0x1.25c0a0463cp-1, -0x1.91bba891fp-2,
        -0x1.800a56316p-2, -0x1.5c01a39fbcp-2, -0x1.49a784bcdp-2, -0x1.24407ab0ep-2, -0x1.11307dad3p-2,
        -0x1.d49ee4c328p-3, -0x1.acf5e2db5p-3, -0x1.5c01a39fcp-3, -0x1.32ae9e2788p-3, -0x1.08c588cda8p-3,
        -0x1.bc84240aep-4, -0x1.663f6fac9p-4, -0x1.0eb389fa3p-4, -0x1.6bad3758ep-5, 0};
    alignas(64) static constexpr double log_low[32] = {
        0, 0x1.52743318a8a57p-42, -0x1.54cda62d3926ep-47, 0x1.a4b69691d7994p-42, 0x1.e9933354dbf17p-42,
        -0x1.667f21fa8423fp-44, -0x1.d4f1b95e0ff45p-43, -0x1.1979a5db68722p-42, 0x1.661e393a16b95p-44,
        -0x1.66cccab240e9p-45, 0x1.4bc302ffa76fbp-43, 0x1.fe43895d8ac46p-42, 0x1.5669df6a2b592p-43,
        -0x1.b3b3864c60011p-44, 0x1.5f101c141e67p-42, -0x1.50520a377c7ecp-45, -0x1.708b4b2b5056cp-42,
        -0x1.c5432aeb609f5p-42, -0x1.6879fa00b120ap-42, -0x1.b8afe492bf6ffp-42, -0x1.ce60916e52e91p-44,
        -0x1.6eb9612e0b4f3p-43, 0x1.3481b85a54d7fp-42, 0x1.36c101ee1344p-43, 0x1.4bc302ffa76fbp-42,
        -0x1.70d0fa8f9603bp-42, 0x1.871a7610e40bdp-45, 0x1.51167134e9647p-42, -0x1.3167ccc538261p-44,
        0x1.819530c22d152p-42, -0x1.fb0e626c0de13p-42, 0};
    alignas(64) static constexpr double root[16] = {
        1, 0x1.0b5586cf9890fp+0, 0x1.172b83c7d517bp+0, 0x1.2387a6e756238p+0, 0x1.306fe0a31b715p+0,
        0x1.3dea64c123422p+0, 0x1.4bfdad5362a27p+0, 0x1.5ab07dd485429p+0, 0x1.6a09e667f3bcdp+0, 0x1.7a11473eb0187p+0,
        0x1.8ace5422aa0dbp+0, 0x1.9c49182a3f09p+0, 0x1.ae89f995ad3adp+0, 0x1.c199bdd85529cp+0, 0x1.d5818dcfba487p+0,
        0x1.ea4afa2a490dap+0};
    alignas(64) static constexpr double root_low[16] = {
        0, 0x1.79aa65d837b6dp-54, -0x1.01b15eaa59348p-55, 0x1.68efde3a8a894p-54, 0x1.34d754db0abb6p-55,
        0x1.59f48a72a4c6dp-55, 0x1.690cebb7aafbp-56, 0x1.063e1e21c5409p-54, -0x1.3b3efbf5e2228p-54,
        -0x1.b32dcb94da51dp-56, 0x1.db72fc1f0eab4p-55, 0x1.1affc2b91ce27p-56, 0x1.c1a7792cb3387p-55,
        0x1.36eae30af0cb3p-56, 0x1.4a385a63d07a7p-56, -0x1.ff7128fd391fp-55};
    static constexpr double log2_e[] = {0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56};
    static constexpr double logarithm[] = {
        -0x1.5555555555555p-1, 0x1.0000000000003p-1, -0x1.999999999a778p-2, 0x1.555555553d17fp-2,
        -0x1.249249019c36ep-2, 0x1.0000006bfe05bp-2, -0x1.c7201971573bcp-3, 0x1.99c429e325695p-3,
        -0x1.64b7162d320e5p-3};
    static constexpr double exponential[] = {
        0x1.62e42fefa39efp-1, 0x1.ebfbdff82c594p-3, 0x1.c6b08d704a0c1p-5, 0x1.3b2ab6fb0365cp-7, 0x1.5d87fe7842f0cp-10,
        0x1.430a4f9e4eeddp-13, 0x1.ffcd8289dfdcp-17};
};
/* clang-format on */

/* ---- AVX-512 by one name for both types ---- */

using floats = __m512;
using doubles = __m512d;

inline floats all(float v) { return _mm512_set1_ps(v); }
inline doubles all(double v) { return _mm512_set1_pd(v); }
inline floats multiply_add(floats a, floats b, floats c) { return _mm512_fmadd_ps(a, b, c); }
inline doubles multiply_add(doubles a, doubles b, doubles c) { return _mm512_fmadd_pd(a, b, c); }
inline floats multiply_subtract(floats a, floats b, floats c) { return _mm512_fmsub_ps(a, b, c); }
inline doubles multiply_subtract(doubles a, doubles b, doubles c) { return _mm512_fmsub_pd(a, b, c); }
inline floats magnitude(floats a) { return _mm512_abs_ps(a); }
inline doubles magnitude(doubles a) { return _mm512_abs_pd(a); }
inline floats mantissa(floats a) { return _mm512_getmant_ps(a, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_zero); }
inline doubles mantissa(doubles a) { return _mm512_getmant_pd(a, _MM_MANT_NORM_p75_1p5, _MM_MANT_SIGN_zero); }
inline floats exponent(floats a) { return _mm512_getexp_ps(a); }
inline doubles exponent(doubles a) { return _mm512_getexp_pd(a); }
/* Take the number that is nearer to zero, with a's sign. */
inline floats clamp(floats a, floats limit) { return _mm512_range_ps(a, limit, 2); }
inline doubles clamp(doubles a, doubles limit) { return _mm512_range_pd(a, limit, 2); }
inline floats scaled(floats a, floats n) { return _mm512_scalef_ps(a, n); }
inline doubles scaled(doubles a, doubles n) { return _mm512_scalef_pd(a, n); }
inline floats truncated(floats a) { return _mm512_roundscale_ps(a, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC); }
inline doubles truncated(doubles a) { return _mm512_roundscale_pd(a, _MM_FROUND_TO_ZERO | _MM_FROUND_NO_EXC); }
inline __mmask16 equal(floats a, floats b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
inline __mmask8 equal(doubles a, doubles b) { return _mm512_cmp_pd_mask(a, b, _CMP_EQ_OQ); }
inline floats choose_lanes(__mmask16 m, floats a, floats b) { return _mm512_mask_blend_ps(m, b, a); }
inline doubles choose_lanes(__mmask8 m, doubles a, doubles b) { return _mm512_mask_blend_pd(m, b, a); }

/* The first five bits of the mantissa and what is above them. */
inline __m512i place(floats m) { return _mm512_srli_epi32(_mm512_castps_si512(m), 18); }
inline __m512i place(doubles m) { return _mm512_srli_epi64(_mm512_castpd_si512(m), 47); }
inline floats of_32(const float *table, __m512i i) {
    return _mm512_permutex2var_ps(_mm512_load_ps(table), i, _mm512_load_ps(table + 16));
}
inline doubles of_16(const double *table, __m512i i) {
    return _mm512_permutex2var_pd(_mm512_load_pd(table), i, _mm512_load_pd(table + 8));
}
inline doubles of_32(const double *table, __m512i i) {
    return choose_lanes(_mm512_test_epi64_mask(i, _mm512_set1_epi64(16)), of_16(table + 16, i), of_16(table, i));
}
inline floats of_16(const float *table, __m512i i) { return _mm512_permutexvar_ps(i, _mm512_load_ps(table)); }
inline __m512i bits(floats a) { return _mm512_castps_si512(a); }
inline __m512i bits(doubles a) { return _mm512_castpd_si512(a); }

enum { NANS = 0x81, ZEROS = 0x06, INFINITIES = 0x18, NEGATIVE = 0x40, FOR_X = NANS | ZEROS | INFINITIES | NEGATIVE };
inline bool unusual(floats x, floats y) {
    return !_kortestz_mask16_u8(_mm512_fpclass_ps_mask(x, FOR_X), _mm512_fpclass_ps_mask(y, NANS | INFINITIES));
}
inline bool unusual(doubles x, doubles y) {
    return !_kortestz_mask8_u8(_mm512_fpclass_pd_mask(x, FOR_X), _mm512_fpclass_pd_mask(y, NANS | INFINITIES));
}
inline __mmask16 not_a_number(floats x) { return _mm512_fpclass_ps_mask(x, NANS); }
inline __mmask8 not_a_number(doubles x) { return _mm512_fpclass_pd_mask(x, NANS); }
inline __mmask16 below_zero(floats x) { return _mm512_fpclass_ps_mask(x, NEGATIVE); } /* negative and finite */
inline __mmask8 below_zero(doubles x) { return _mm512_fpclass_pd_mask(x, NEGATIVE); }
inline floats negated(__mmask16 m, floats a, floats sign) {
    return _mm512_mask_xor_ps(a, m, a, _mm512_and_ps(sign, all(-0.0f)));
}
inline doubles negated(__mmask8 m, doubles a, doubles sign) {
    return _mm512_mask_xor_pd(a, m, a, _mm512_and_pd(sign, all(-0.0)));
}

/* ---- powers ---- */

/* Coefficients from the lowest on. */
template <class T, int N, class V> inline V polynomial(const T (&c)[N], V x) {
    V p = all(c[N - 1]);
    for (int i = N - 2; i >= 0; i--) p = multiply_add(p, x, all(c[i]));
    return p;
}

/* |x|^y of numbers. Zeros and infinities come out by themselves: the exponents of their logarithms are infinite. */
template <class T, class V> inline V positive_power(V x, V y) {
    using C = constants<T>;
    const V m = mantissa(x), k = exponent(x) - exponent(m); /* neither takes notice of the sign */
    const __m512i i = place(m);
    const V r = multiply_subtract(m, of_32(C::inverse, i), all(T(1)));

    /* The terms of log2(1 + r): that of r, that of r^2, each with what it was rounded by, and the rest. */
    const V log2_e = all(C::log2_e[0]), half = r * all(T(-0.5));
    const V first = r * log2_e, first_low = multiply_add(r, all(C::log2_e[1]), multiply_subtract(r, log2_e, first));
    const V second = first * half;
    V low = multiply_add(first_low, half, multiply_subtract(first, half, second));
    low = multiply_add(second * r, polynomial(C::logarithm, r), low);

    /* The sum of the large ones, which come in the order of their size, and of what is lost there. */
    const V whole = k + of_32(C::log_high, i), sum = whole + first, log = sum + second;
    const V lost = (first - (sum - whole)) + (second - (log - sum));
    low = lost + ((first_low + low) + of_32(C::log_low, i));

    const V limit = all(T(4000)), shift = all(sizeof(T) == 4 ? T(0x1.8p19) : T(0x1.8p48));
    const V t = y * log, high = clamp(t, limit);
    V t_low = multiply_add(y, low, multiply_subtract(y, log, t));
    t_low = choose_lanes(equal(t, high), t_low, V{});
    const V shifted = (high + t_low) + shift, n = shifted - shift, f = (high - n) + t_low; /* n: sixteenths */
    const V root = of_16(C::root, bits(shifted));
    return scaled(
        multiply_add(root, multiply_add(polynomial(C::exponential, f), f, of_16(C::root_low, bits(shifted))), root), n);
}

/* The sign, and what C says of special values. */
template <class T, class V> AD_NOINLINE V mended_power(V x, V y, V r) {
    const auto whole = equal(truncated(y), y), one = equal(magnitude(x), all(T(1)));
    const V half = y * all(T(0.5));
    const auto odd = whole & ~equal(truncated(half), half);
    r = negated(odd, r, x);
    r = choose_lanes(not_a_number(x) | not_a_number(y) | (below_zero(x) & ~whole), all(T(__builtin_nan(""))), r);
    const auto endless = equal(magnitude(y), all(T(__builtin_inf())));
    return choose_lanes(equal(y, V{}) | equal(x, all(T(1))) | (one & endless), all(T(1)), r);
}

template <class T, class V> inline V vector_power(V x, V y) {
    const V r = positive_power<T>(x, y);
    return unusual(x, y) ? mended_power<T>(x, y, r) : r;
}

} // namespace
} // namespace AD_ISA
} // namespace ad

/* A single element is a vector of its own, so that it has the same bits. */
extern "C" {
__m512 _ZGVeN16vv_ad_powf(__m512 x, __m512 y);
__m512 _ZGVeN16vv_ad_powf(__m512 x, __m512 y) { return ad::vector_power<float>(x, y); }
__m512d _ZGVeN8vv_ad_pow(__m512d x, __m512d y);
__m512d _ZGVeN8vv_ad_pow(__m512d x, __m512d y) { return ad::vector_power<double>(x, y); }
float ad_powf(float x, float y) noexcept { return _ZGVeN16vv_ad_powf(ad::all(x), ad::all(y))[0]; }
double ad_pow(double x, double y) noexcept { return _ZGVeN8vv_ad_pow(ad::all(x), ad::all(y))[0]; }
}

#endif
