/* Special functions that a GPU computes in single precision, where double would take longer than the memory does. */
#ifndef AD_KERNELS_SPECIAL_GPU_H
#define AD_KERNELS_SPECIAL_GPU_H

#include "kernels/math.h"

namespace special {
inline namespace AD_ISA {

/* A polynomial by Horner's rule, from the constant term on. */
template <int N> AD_HD float evaluate(const float (&c)[N], float x) {
    float sum = c[N - 1];
#pragma unroll
    for (int i = N - 2; i >= 0; i--) sum = ::fmaf(sum, x, c[i]);
    return sum;
}

/* The logarithm of a positive finite number, less `less`, to some 1e-9. Its large parts are added in double, which
 * costs less than a logarithm in double. */
AD_HD double log_of_float(float x, double less) {
    const bool tiny = x < 1.17549435e-38f;
    const uint32_t bits = ad::bit_cast<uint32_t>(tiny ? x * 8388608.0f : x);
    const int32_t e = (int32_t(bits) - 0x3f2aaaab) >> 23; /* the rest is between 2/3 and 4/3 */
    const float f = ad::bit_cast<float>(bits - (uint32_t(e) << 23)) - 1.0f;
    const float s = f / (2.0f + f), z = s * s, half = 0.5f * f * f;
    const float rest = z * ::fmaf(z, ::fmaf(z, ::fmaf(z, 0.2222222f, 0.2857143f), 0.4f), 0.6666667f);
    const float low = ::fmaf(s, half + rest, -half);
    return double(e - (tiny ? 23 : 0)) * 0.69314718055994530942 + ((double(f) - less) + double(low));
}

/* The logarithm of the gamma function, within 3 units in the last place of positive numbers; CUDA's float version is
 * off by more. Polynomials have the factors by which it is 0 at 1 and at 2; from 4 on it is Stirling's series. */
AD_HD float gammaln_of_float(float x) {
    constexpr float near_one[] = {
        -0.5772156715393066f, 0.822467029094696f,    -0.4006851613521576f, 0.2705812454223633f,   -0.2074146568775177f,
        0.1695573478937149f,  -0.14336909353733063f, 0.12523788213729858f, -0.11878755688667297f, 0.10467880964279175f,
        -0.0503969117999077f, 0.05291146785020828f,  -0.177897110581398f,  0.1569720357656479f};
    constexpr float near_two[] = {0.42278432846069336f,   0.32246702909469604f,   -0.06735248863697052f,
                                  0.02058131992816925f,   -0.00738275796175003f,  0.0028842517640441656f,
                                  -0.001204517087899148f, 0.0005413141916505992f, -0.0002208947262261063f,
                                  4.959843499818817e-05f};
    if (x == -adm::infinity<float>()) return x; /* SciPy's answer there, not C's */
    if (!(x > 0 && x < adm::infinity<float>())) return float(::lgamma(double(x)));
    if (x < 1.5f) {
        const bool small = x < 0.5f; /* then that of x + 1, less log(x) */
        const float u = small ? x : x - 1.0f, v = u * evaluate(near_one, u);
        return small ? float(double(v) - log_of_float(x, 0)) : v;
    }
    if (x < 4.0f) {
        const bool large = x >= 3.0f; /* then that of x - 1, and log(x - 1) */
        const float u = large ? x - 3.0f : x - 2.0f, v = u * evaluate(near_two, u);
        return large ? float(double(v) + log_of_float(x - 1.0f, 0)) : v;
    }
    const float t = 1.0f / x, z = t * t;
    const float series =
        t * ::fmaf(z, ::fmaf(z, ::fmaf(z, -5.952381e-4f, 7.936508e-4f), -2.7777778e-3f), 8.3333333e-2f);
    return float((double(x) - 0.5) * log_of_float(x, 1) + (0.41893853320467274178 + double(series)));
}

} // namespace AD_ISA
} // namespace special
#endif
