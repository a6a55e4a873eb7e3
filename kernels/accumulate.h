/* The accumulators of reduction.def, for both backends.
 *
 * An accumulator is a template over V: an element (float, int64_t, complex<double> ...) or, on a host, a vector of them
 * (GCC's vector extension). All its members are elements or vectors of one element type, so a vector of states is an
 * array of states turned round. These are its functions:
 *   init()             the identity
 *   take(x)            one more element (of each lane)
 *   merge(later)       what another one took from later elements
 *   result<O>(ddof)    the value, as output type O (scalar states only)
 *   done()             true if no further element can change it any more; not all have this
 * Accumulators that need positions are INDEXED: take(x, index). They and the COUNTING one have scalar states only.
 * Booleans come as uint8_t of 0 and 1. */
#ifndef AD_KERNELS_ACCUMULATE_H
#define AD_KERNELS_ACCUMULATE_H

#include "kernels/math.h"
#include "kernels/types.h"

namespace ad {
inline namespace AD_ISA {

/* ---- elements and vectors under one name ---- */

template <class V> struct lanes { /* of an element type: one */
    using element = V;
    static constexpr bool vector = false;
};
#ifndef __CUDACC__
template <class T> struct vector_of { typedef T type __attribute__((vector_size(AD_VECTOR_BYTES))); };
template <class T> using vec = typename vector_of<T>::type;
#define AD_LANES(T)                          \
    template <> struct lanes<vec<T>> {       \
        using element = T;                   \
        static constexpr bool vector = true; \
    };
/* clang-format off */
AD_LANES(int8_t) AD_LANES(int16_t) AD_LANES(int32_t) AD_LANES(int64_t)
AD_LANES(uint8_t) AD_LANES(uint16_t) AD_LANES(uint32_t) AD_LANES(uint64_t) AD_LANES(float) AD_LANES(double)
/* clang-format on */
#undef AD_LANES
        template <class V>
        struct lanes<complex<V>> {
    using element = complex<typename lanes<V>::element>;
    static constexpr bool vector = lanes<V>::vector;
};
#endif
template <class V> using element_t = typename lanes<V>::element;

template <class V> AD_HD V splat(element_t<V> v) {
    if constexpr (!lanes<V>::vector) return v;
    else if constexpr (is_complex<V>) return V(v.re - decltype(V::re){}, v.im - decltype(V::im){});
    else return v - V{};
}
template <class M, class V> AD_HD V choose(M mask, V a, V b) { return mask ? a : b; }
template <class M, class V> AD_HD complex<V> choose(M mask, complex<V> a, complex<V> b) {
    return {choose(mask, a.re, b.re), choose(mask, a.im, b.im)};
}
template <class V> AD_HD auto is_nan(V x) { return x != x; }
template <class V> AD_HD auto is_nan(complex<V> x) { return (x.re != x.re) | (x.im != x.im); }
template <class V> AD_HD auto is_less(V x, V y) { return x < y; }
template <class V> AD_HD auto is_less(complex<V> x, complex<V> y) {
    return ((x.re < y.re) & (x.im == x.im) & (y.im == y.im)) | ((x.re == y.re) & (x.im < y.im));
}
template <class V> AD_HD auto is_true(V x) { return x != splat<V>(0); }
template <class V> AD_HD auto is_true(complex<V> x) { return is_true(x.re) | is_true(x.im); }

/* The real part's type, in which is counted. */
template <class V> struct part { using type = V; };
template <class T> struct part<complex<T>> { using type = T; };
template <class V> using part_t = typename part<V>::type;

template <class V> AD_HD V product_real(V a, V b) { return a * b; } /* real part of a conj(b) */
template <class T> AD_HD T product_real(complex<T> a, complex<T> b) { return a.re * b.re + a.im * b.im; }
template <class V> AD_HD V scaled(V a, V f) { return a * f; }
template <class T> AD_HD complex<T> scaled(complex<T> a, T f) { return {a.re * f, a.im * f}; }
template <class V> AD_HD V divided(V a, V n) { return a / n; }
template <class T> AD_HD complex<T> divided(complex<T> a, T n) { return {a.re / n, a.im / n}; }

template <class T> AD_HD T highest() {
    if constexpr (is_complex<T>) return T(highest<real_t<T>>(), highest<real_t<T>>());
    else if constexpr (is_float<T>) return adm::infinity<T>();
    else return is_signed<T> ? T(unsigned_t<T>(~unsigned_t<T>(0)) >> 1) : T(~T(0));
}
template <class T> AD_HD T lowest() {
    if constexpr (is_complex<T>) return T(lowest<real_t<T>>(), lowest<real_t<T>>());
    else if constexpr (is_float<T>) return -adm::infinity<T>();
    else return T(~highest<T>());
}
/* NaN, or for integers the value given. */
template <class T> AD_HD T nothing(T integer) {
    if constexpr (is_complex<T>) return T(adm::nan<real_t<T>>(), real_t<T>(0));
    else if constexpr (is_float<T>) return adm::nan<T>();
    else return integer;
}

/* ---- sums and products ---- */

template <class V> struct Sum {
    V s;
    AD_HD void init() { s = splat<V>(0); }
    AD_HD void take(V x) { s = s + x; }
    AD_HD void merge(const Sum &o) { s = s + o.s; }
    template <class O> AD_HD O result(double) const { return s; }
};
template <class V> struct Prod {
    V s;
    AD_HD void init() { s = splat<V>(1); }
    AD_HD void take(V x) { s = s * x; }
    AD_HD void merge(const Prod &o) { s = s * o.s; }
    template <class O> AD_HD O result(double) const { return s; }
};
template <class V> struct NanSum : Sum<V> {
    AD_HD void take(V x) { this->s = this->s + choose(is_nan(x), splat<V>(0), x); }
};
template <class V> struct NanProd : Prod<V> {
    AD_HD void take(V x) { this->s = this->s * choose(is_nan(x), splat<V>(1), x); }
};

/* ---- extremes ---- */

template <class V> struct Min {
    V s;
    AD_HD void init() { s = splat<V>(highest<element_t<V>>()); }
    AD_HD void take(V x) { s = choose(is_less(x, s) | is_nan(x), x, s); }
    AD_HD void merge(const Min &o) { take(o.s); }
    template <class O> AD_HD O result(double) const { return s; }
};
template <class V> struct Max {
    V s;
    AD_HD void init() { s = splat<V>(lowest<element_t<V>>()); }
    AD_HD void take(V x) { s = choose(is_less(s, x) | is_nan(x), x, s); }
    AD_HD void merge(const Max &o) { take(o.s); }
    template <class O> AD_HD O result(double) const { return s; }
};
template <class V> struct NanMin {
    V s;
    AD_HD void init() { s = splat<V>(nothing(highest<element_t<V>>())); }
    AD_HD void take(V x) { s = choose(is_less(x, s) | is_nan(s), x, s); }
    AD_HD void merge(const NanMin &o) { take(o.s); }
    template <class O> AD_HD O result(double) const { return s; }
};
template <class V> struct NanMax {
    V s;
    AD_HD void init() { s = splat<V>(nothing(lowest<element_t<V>>())); }
    AD_HD void take(V x) { s = choose(is_less(s, x) | is_nan(s), x, s); }
    AD_HD void merge(const NanMax &o) { take(o.s); }
    template <class O> AD_HD O result(double) const { return s; }
};

/* ---- truth ---- */

template <class V> struct Any {
    part_t<V> s;
    AD_HD void init() { s = splat<part_t<V>>(0); }
    AD_HD void take(V x) { s = choose(is_true(x), splat<part_t<V>>(1), s); }
    AD_HD void merge(const Any &o) { s = choose(is_true(o.s), o.s, s); }
    AD_HD bool done() const { return s != 0; }
    template <class O> AD_HD O result(double) const { return O(s != 0); }
};
template <class V> struct All {
    part_t<V> s;
    AD_HD void init() { s = splat<part_t<V>>(1); }
    AD_HD void take(V x) { s = choose(is_true(x), s, splat<part_t<V>>(0)); }
    AD_HD void merge(const All &o) { s = choose(is_true(o.s), s, o.s); }
    AD_HD bool done() const { return s == 0; }
    template <class O> AD_HD O result(double) const { return O(s != 0); }
};

/* ---- moments ---- */

template <class V> struct Mean {
    V s;
    part_t<V> n;
    AD_HD void init() { s = splat<V>(0), n = splat<part_t<V>>(0); }
    AD_HD void take(V x) { s = s + x, n = n + splat<part_t<V>>(1); }
    AD_HD void merge(const Mean &o) { s = s + o.s, n = n + o.n; }
    template <class O> AD_HD O result(double) const { return divided(s, n); }
};
template <class V> struct NanMean : Mean<V> {
    AD_HD void take(V x) {
        using N = part_t<V>;
        this->s = this->s + choose(is_nan(x), splat<V>(0), x);
        this->n = this->n + choose(is_nan(x), splat<N>(0), splat<N>(1));
    }
};

/* Count, mean and sum of squared distances from it, kept as elements come (Welford) and put together (Chan): one
 * pass, and no cancellation. */
template <class V> struct Var {
    using N = part_t<V>;
    V mean;
    N n, m2;
    AD_HD void init() { mean = splat<V>(0), n = splat<N>(0), m2 = splat<N>(0); }
    AD_HD void take(V x) {
        n = n + splat<N>(1);
        V d = x - mean;
        mean = mean + divided(d, n);
        m2 = m2 + product_real(d, x - mean);
    }
    AD_HD void merge(const Var &o) {
        N total = n + o.n, share = o.n / choose(is_true(total), total, splat<N>(1));
        V d = o.mean - mean;
        m2 = m2 + o.m2 + choose(is_true(n) & is_true(o.n), product_real(d, d) * n * share, splat<N>(0));
        mean = choose(is_true(n), mean + scaled(d, share), o.mean);
        n = total;
    }
    AD_HD N variance(double ddof) const {
        N divisor = n - N(ddof);
        return m2 / (divisor > 0 ? divisor : N(0));
    }
    template <class O> AD_HD O result(double ddof) const { return variance(ddof); }
};
template <class V> struct NanVar : Var<V> {
    using N = part_t<V>;
    AD_HD void take(V x) {
        auto nan = is_nan(x);
        NanVar next = *this;
        next.Var<V>::take(x);
        this->mean = choose(nan, this->mean, next.mean);
        this->n = choose(nan, this->n, next.n);
        this->m2 = choose(nan, this->m2, next.m2);
    }
    AD_HD N variance(double ddof) const { return this->n > N(ddof) ? Var<V>::variance(ddof) : adm::nan<N>(); }
    template <class O> AD_HD O result(double ddof) const { return variance(ddof); }
};
template <class V> struct Std : Var<V> {
    template <class O> AD_HD O result(double ddof) const { return adm::sqrt(this->variance(ddof)); }
};
template <class V> struct NanStd : NanVar<V> {
    template <class O> AD_HD O result(double ddof) const { return adm::sqrt(this->variance(ddof)); }
};

/* ---- positions and counts: scalar states ---- */

template <class A> constexpr bool INDEXED = false;
template <class A> constexpr bool COUNTING = false;

/* Value and row-major position of the best element; position -1: none yet. Better: (a, b): a beats b. */
template <class T, class Better> struct Best {
    T v;
    int64_t i;
    AD_HD void init() { v = T(0), i = -1; }
    AD_HD void take(T x, int64_t index) {
        bool better = !Better::skips(x) && (i < 0 || Better::beats(x, v));
        v = better ? x : v;
        i = better ? index : i;
    }
    AD_HD void merge(const Best &o) {
        bool better = o.i >= 0 && (i < 0 || Better::beats(o.v, v) || (o.i < i && !Better::beats(v, o.v)));
        v = better ? o.v : v;
        i = better ? o.i : i;
    }
    template <class O> AD_HD O result(double) const { return i; }
};
template <bool Smallest, bool SkipNan> struct Order {
    template <class T> static AD_HD bool skips(T x) { return SkipNan && is_nan(x); }
    template <class T> static AD_HD bool beats(T a, T b) {
        return (Smallest ? is_less(a, b) : is_less(b, a)) || (is_nan(a) && !is_nan(b));
    }
};
template <class T> struct ArgMin : Best<T, Order<true, false>> { template <class V> using extreme = Min<V>; };
template <class T> struct ArgMax : Best<T, Order<false, false>> { template <class V> using extreme = Max<V>; };
template <class T> struct NanArgMin : Best<T, Order<true, true>> { template <class V> using extreme = NanMin<V>; };
template <class T> struct NanArgMax : Best<T, Order<false, true>> { template <class V> using extreme = NanMax<V>; };
template <class T> constexpr bool INDEXED<ArgMin<T>> = true;
template <class T> constexpr bool INDEXED<ArgMax<T>> = true;
template <class T> constexpr bool INDEXED<NanArgMin<T>> = true;
template <class T> constexpr bool INDEXED<NanArgMax<T>> = true;

template <class T> struct CountNonzero {
    int64_t n;
    AD_HD void init() { n = 0; }
    AD_HD void take(T x) { n += is_true(x) ? 1 : 0; }
    AD_HD void merge(const CountNonzero &o) { n += o.n; }
    template <class O> AD_HD O result(double) const { return n; }
};
template <class T> constexpr bool COUNTING<CountNonzero<T>> = true;

} // namespace AD_ISA
} // namespace ad
#endif
