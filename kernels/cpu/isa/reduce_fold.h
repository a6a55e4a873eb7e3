/* All elements of a run into one accumulator, by vectors. */
#ifndef AD_KERNELS_CPU_ISA_REDUCE_FOLD_H
#define AD_KERNELS_CPU_ISA_REDUCE_FOLD_H

#include "kernels/cpu/isa/isa.h"

#include <string.h>
#include <utility>

#include "kernels/accumulate.h"

namespace ad {
inline namespace AD_ISA {

/* Lanes as narrow as the elements count up to 127 vectors, then are added up. */
template <class T> AD_HD int64_t count_nonzero(const T *x, int64_t n) {
    int64_t total = 0, i = 0;
    if constexpr (!is_complex<T>) {
        typedef T loose __attribute__((vector_size(AD_VECTOR_BYTES), aligned(sizeof(T)), may_alias));
        constexpr int64_t LANES = AD_VECTOR_BYTES / sizeof(T);
        const auto at = [x](int64_t j) { return vec<T>(*reinterpret_cast<const loose *>(x + j)) != vec<T>{}; };
        while (n - i >= LANES) {
            auto lane = at(i);
            i += LANES;
            for (int k = 1; k < 127 && n - i >= LANES; k++, i += LANES) lane = lane + at(i);
            for (int64_t j = 0; j < LANES; j++) total -= lane[j];
        }
    }
    for (; i < n; i++) total += is_true(x[i]) ? 1 : 0;
    return total;
}

/* The extreme of numbers of which none is NaN. sum: NaN where one was, and maybe where infinities are. */
template <class V, bool Smallest> struct quick_extreme {
    V s, sum;
    void init() {
        s = splat<V>(Smallest ? highest<element_t<V>>() : lowest<element_t<V>>());
        sum = splat<V>(0);
    }
    void look(V x) { s = choose(Smallest ? is_less(x, s) : is_less(s, x), x, s); }
    void take(V x) { look(x), sum = sum + x; }
    void merge(const quick_extreme &o) { look(o.s), sum = sum + o.sum; }
};
template <class V> using quick_min = quick_extreme<V, true>;
template <class V> using quick_max = quick_extreme<V, false>;

template <template <class> class A, class T> struct fold_vector;
/* The fold that finds the same as A if the numbers are no NaN. */
template <template <class> class A, class T> struct quick { using fold = void; };
template <class T> struct quick<Min, T> { using fold = conditional_t<is_float<T>, fold_vector<quick_min, T>, void>; };
template <class T> struct quick<Max, T> { using fold = conditional_t<is_float<T>, fold_vector<quick_max, T>, void>; };

/* Accumulators of vectors, UNROLL of them so that their latencies overlap. A leaf takes 16 elements into each lane;
 * leaves are merged pairwise, which keeps the rounding of long sums small. */
template <template <class> class A, class T> struct fold_vector {
    using E = real_t<T>;
    using W = vec<E>;
    using each_lane = std::make_index_sequence<AD_VECTOR_BYTES / sizeof(E)>;
    static constexpr int LANES = AD_VECTOR_BYTES / sizeof(E), MEMBERS = sizeof(A<T>) / sizeof(E);
    static constexpr int UNROLL = MEMBERS == 1 ? 8 : 4, LEAF = 16 * UNROLL * LANES;
    typedef E loose __attribute__((vector_size(AD_VECTOR_BYTES), aligned(sizeof(E)), may_alias));

    static AD_HD W words(const E *x) { return *reinterpret_cast<const loose *>(x); }
    /* Every second one of two vectors, from `first` on. */
    template <int First, size_t... I> static AD_HD W half_of(W a, W b, std::index_sequence<I...>) {
        return __builtin_shufflevector(a, b, (2 * I + First)...);
    }
    static AD_HD auto at(const T *x) {
        const E *e = reinterpret_cast<const E *>(x);
        if constexpr (is_complex<T>) {
            W a = words(e), b = words(e + LANES);
            return complex<W>(half_of<0>(a, b, each_lane()), half_of<1>(a, b, each_lane()));
        } else {
            return words(e);
        }
    }
    using V = decltype(at(nullptr));
    static_assert(sizeof(A<V>) == sizeof(A<T>) * LANES, "members of one element type");

    /* Each lane with the one `Words` words of 8 bytes behind it, again and again: word 0 has them all. */
    template <int Words> static void halve(A<V> &v) {
        using words64 = vec<uint64_t>;
        words64 m[MEMBERS];
        A<V> upper;
        memcpy(m, &v, sizeof v);
        for (int k = 0; k < MEMBERS; k++) m[k] = turned<Words>(m[k], std::make_index_sequence<AD_VECTOR_BYTES / 8>());
        memcpy(&upper, m, sizeof v);
        v.merge(upper);
        if constexpr (Words > 1) halve<Words / 2>(v);
    }
    template <int By, class W64, size_t... I> static W64 turned(W64 a, std::index_sequence<I...>) {
        return __builtin_shufflevector(a, a, ((I + By) % sizeof...(I))...);
    }

    static A<T> across(A<V> v) {
        constexpr int LEFT = 8 / sizeof(E);
        A<T> lane[LEFT];
        halve<AD_VECTOR_BYTES / 16>(v);
        const char *from = reinterpret_cast<const char *>(&v);
        char *to = reinterpret_cast<char *>(lane);
        for (int m = 0; m < MEMBERS; m++)
            for (int i = 0; i < LEFT; i++)
                memcpy(to + (i * MEMBERS + m) * sizeof(E), from + (m * LANES + i) * sizeof(E), sizeof(E));
        for (int step = LEFT / 2; step > 0; step /= 2)
            for (int i = 0; i < step; i++) lane[i].merge(lane[i + step]);
        return lane[0];
    }

    /* The whole vectors among n elements; N accumulators. */
    template <int N> __attribute__((always_inline)) static inline A<V> vectors(const T *x, int64_t n) {
        A<V> a[N];
        int64_t i = 0;
        for (int u = 0; u < N; u++) a[u].init();
        for (; i + N * LANES <= n; i += N * LANES)
            for (int u = 0; u < N; u++) a[u].take(at(x + i + u * LANES));
        for (; i + LANES <= n; i += LANES) a[0].take(at(x + i));
        for (int u = 1; u < N; u++) a[0].merge(a[u]);
        return a[0];
    }

    static AD_NOINLINE A<T> leaf(const T *x, int64_t n) {
        using Quick = typename quick<A, T>::fold;
        A<T> r;
        if constexpr (!same<Quick, void>) {
            const auto found = Quick::leaf(x, n);
            if (found.sum == found.sum) return {found.s};
        }
        r.init();
        if (n >= LANES) r = across(n >= UNROLL * LANES ? vectors<UNROLL>(x, n) : vectors<1>(x, n));
        for (int64_t i = n / LANES * LANES; i < n; i++) {
            AD_SCALAR_LOOP;
            r.take(x[i]);
        }
        return r;
    }

    static A<T> tree(const T *x, int64_t n) {
        if (n <= LEAF) return leaf(x, n);
        int64_t half = (n / LEAF + 1) / 2 * LEAF;
        A<T> r = tree(x, half);
        r.merge(tree(x + half, n - half));
        return r;
    }
};

} // namespace AD_ISA
} // namespace ad
#endif
