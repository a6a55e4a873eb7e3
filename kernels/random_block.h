/* Distributions whose elements are functions of the words that they share a block for. */
#ifndef AD_KERNELS_RANDOM_BLOCK_H
#define AD_KERNELS_RANDOM_BLOCK_H

#include "kernels/random.h"

namespace ad {
inline namespace AD_ISA {

template <class T> struct random_parameters { T a, b, c; };

/* ---- two normal numbers from two words (Box and Muller) ----
 * float32 on a GPU uses the fast logarithm, root, sine and cosine: absolute errors of about 2^-21 (r + 1/r), where r is
 * the length of the pair. */

/* -2 log(u) for u in (0, 1]. */
AD_HD float minus_twice_log(float u) {
#ifdef __CUDA_ARCH__
    return -2.0f * __logf(u);
#else
    return -2.0f * adm::log(u);
#endif
}
AD_HD double minus_twice_log(double u) { return -2.0 * adm::log(u); }

AD_HD float radius(float u) {
#ifdef __CUDA_ARCH__
    float r;
    asm("sqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(minus_twice_log(u)));
    return r;
#else
    return adm::sqrt(minus_twice_log(u));
#endif
}
AD_HD double radius(double u) { return adm::sqrt(minus_twice_log(u)); }

/* Sine and cosine of pi*x for x in [-1, 1). */
AD_HD void sine_cosine(float x, float *s, float *c) {
#ifdef __CUDA_ARCH__
    __sincosf(x * 3.14159265358979f, s, c);
#else
    *s = adm::sin(x * 3.14159265358979f);
    *c = adm::cos(x * 3.14159265358979f);
#endif
}
AD_HD void sine_cosine(double x, double *s, double *c) {
#ifdef __CUDA_ARCH__
    ::sincospi(x, s, c);
#else
    *s = adm::sin(x * 3.14159265358979323846);
    *c = adm::cos(x * 3.14159265358979323846);
#endif
}

template <class T>
AD_HD void normal_pair(typename random_number<T>::word w0, typename random_number<T>::word w1, T *x, T *y) {
    T s, c;
    const T r = radius(random_number<T>::upto1(w0));
    sine_cosine(random_number<T>::turn(w1), &s, &c);
    *x = r * c;
    *y = r * s;
}

/* ---- the rows of distribution.def: one element from its word ---- */

template <int Id, class T> struct random_one; /* T of(word, parameters) */

#define AD_RANDOM_ONE(name)                                                                 \
    template <class T> struct random_one<AD_RANDOM_##name, T> {                             \
        using number = random_number<T>;                                                    \
        using word = typename number::word;                                                 \
        static AD_HD T of(word w, const random_parameters<T> &p);                           \
    };                                                                                      \
    template <class T> AD_HD T random_one<AD_RANDOM_##name, T>::of([[maybe_unused]] word w, \
                                                                   [[maybe_unused]] const random_parameters<T> &p)

AD_RANDOM_ONE(uniform) { return random_affine(p.a, p.b - p.a, number::unit(w)); }
AD_RANDOM_ONE(upto1) { return number::upto1(w); }
AD_RANDOM_ONE(exponential) { return p.a * -adm::log(number::upto1(w)); }
AD_RANDOM_ONE(laplace) {
    const T e = -adm::log(number::upto1(w << 1)), side = w >> (8 * sizeof w - 1) ? T(-1) : T(1);
    return p.a + p.b * side * e;
}
AD_RANDOM_ONE(logistic) {
    const T u = number::inside(w);
    return p.a + p.b * adm::log(u / (1 - u));
}
AD_RANDOM_ONE(gumbel) { return p.a - p.b * adm::log(-adm::log(number::inside(w))); }
AD_RANDOM_ONE(pareto) { return adm::expm1(-adm::log(number::upto1(w)) / p.a); }
AD_RANDOM_ONE(power) { return adm::exp(adm::log(number::upto1(w)) / p.a); }
AD_RANDOM_ONE(rayleigh) { return p.a * adm::sqrt(-2 * adm::log(number::upto1(w))); }
AD_RANDOM_ONE(weibull) {
    const T x = adm::exp(adm::log(-adm::log(number::inside(w))) / p.a);
    return p.a == 0 ? T(0) : x;
}
/* tan(pi*(u - 1/2)); beyond 1 by the cotangent of what is left to the pole, which is exact. */
AD_RANDOM_ONE(standard_cauchy) {
    const T u = number::inside(w) - T(0.5), size = adm::fabs(u);
    const bool far = size > T(0.25);
    const T t = adm::tan(T(3.14159265358979323846) * (far ? T(0.5) - size : size));
    return adm::copysign(far ? 1 / t : t, u);
}
AD_RANDOM_ONE(triangular) {
    const T u = number::inside(w), base = p.c - p.a, left = p.b - p.a;
    const bool below = u * base <= left;
    const T root = adm::sqrt((below ? u : 1 - u) * base * (below ? left : p.c - p.b));
    return below ? p.a + root : p.c - root;
}
#undef AD_RANDOM_ONE

/* Both of a pair of elements that were made together. */
template <int Id, class T> AD_HD T random_scaled(T z, const random_parameters<T> &p) {
    const T x = p.a + p.b * z;
    if constexpr (Id == AD_RANDOM_lognormal) return adm::exp(x);
    else return x;
}

template <int Id> constexpr bool random_paired = Id == AD_RANDOM_normal || Id == AD_RANDOM_lognormal;

/* Element e alone. */
template <int Id, class T> AD_HD T random_element(uint64_t key, uint64_t e, const random_parameters<T> &p) {
    using words = random_words<typename random_number<T>::word>;
    if constexpr (random_paired<Id>) {
        const random_block b = random_at(key, e / words::count, 0, words::stream);
        const bool second = words::count == 4 && (e & 2);
        T x, y;
        normal_pair<T>(second ? words::get(b, words::count - 2) : words::get(b, 0),
                       second ? words::get(b, words::count - 1) : words::get(b, 1), &x, &y);
        return random_scaled<Id>(e & 1 ? y : x, p);
    } else return random_one<Id, T>::of(words::of(key, e), p);
}

/* ---- integers ---- */

/* Integers from 0 to n-1, all equally likely: the high half of word*n (Lemire, 2019). Where the low half is one of the
 * `least` that would make some numbers likelier, a word is drawn again from the element's own blocks. n 0: all that a
 * word has. */
template <class R> struct random_range {
    R n, least;

    AD_HD explicit random_range(R span) : n(R(span + 1)), least(0) {
        if (n != 0) least = R(R(0) - n) % n;
    }
};

AD_HD void multiply_wide(uint32_t a, uint32_t b, uint32_t *high, uint32_t *low) {
    *high = multiply_high(a, b);
    *low = a * b;
}

AD_HD void multiply_wide(uint64_t a, uint64_t b, uint64_t *high, uint64_t *low) {
#ifdef __CUDA_ARCH__
    *high = __umul64hi(a, b);
    *low = a * b;
#else
    const unsigned __int128 m = static_cast<unsigned __int128>(a) * b;
    *high = uint64_t(m >> 64);
    *low = uint64_t(m);
#endif
}

#ifdef __CUDACC__
#define AD_RARE __host__ __device__ __noinline__
#else
#define AD_RARE __attribute__((noinline))
#endif

template <class R> AD_RARE R random_again(const random_range<R> range, uint64_t key, uint64_t element) {
    R high, low = 0;
    random_sequence s(key, element);
    do multiply_wide(s.take<R>(), range.n, &high, &low);
    while (low < range.least);
    return high;
}

template <class R> AD_HD R random_below(R w, const random_range<R> &range, uint64_t key, uint64_t element) {
    R high, low;
    if (range.n == 0) return w;
    multiply_wide(w, range.n, &high, &low);
    return low < range.least ? random_again(range, key, element) : high;
}

/* Draw the integer of element e alone, without a division where there is no need. */
template <class R> AD_HD R random_one_below(R span, uint64_t key, uint64_t e) {
    const R w = random_words<R>::of(key, e), n = R(span + 1);
    R high, low;
    multiply_wide(w, n, &high, &low);
    return n != 0 && low >= n ? high : random_below(w, random_range<R>(span), key, e);
}

/* 32 bits do for spans that fit. */
AD_HD uint64_t random_integer(uint64_t span, uint64_t key, uint64_t e) {
    if (span >> 32 == 0) return random_one_below(uint32_t(span), key, e);
    return random_one_below(span, key, e);
}

} // namespace AD_ISA
} // namespace ad
#endif
