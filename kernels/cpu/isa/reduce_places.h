/* The places of extremes in a run: argmin, argmax and those that skip NaN. */
#ifndef AD_KERNELS_CPU_ISA_REDUCE_PLACES_H
#define AD_KERNELS_CPU_ISA_REDUCE_PLACES_H

#include "kernels/cpu/isa/reduce_fold.h"

#include "kernels/call_order.h"

namespace ad {
inline namespace AD_ISA {

/* ---- looking for a value that is known ---- */

/* The first place of which hit(element or vector of them) is true. There was one, and if somebody has written over it
 * since, it is the last place. */
template <class T, class Hit> int64_t first_hit(const T *x, int64_t n, Hit hit) {
    using V = vec<T>;
    typedef T loose __attribute__((vector_size(AD_VECTOR_BYTES), aligned(sizeof(T)), may_alias));
    constexpr int64_t LANES = AD_VECTOR_BYTES / sizeof(T);
    const auto at = [x](int64_t i) { return V(*reinterpret_cast<const loose *>(x + i)); };
    int64_t i = 0;
    while (i + 4 * LANES <= n &&
           !any((hit(at(i)) | hit(at(i + LANES))) | (hit(at(i + 2 * LANES)) | hit(at(i + 3 * LANES)))))
        i += 4 * LANES;
    while (i + LANES <= n && !any(hit(at(i)))) i += LANES;
    while (i + 1 < n && !hit(x[i])) i++;
    return i < n ? i : n - 1;
}
template <class T> AD_NOINLINE int64_t place_of(const T *x, int64_t n, T value) {
    if (is_nan(value)) return first_hit(x, n, [](auto e) { return is_nan(e); });
    return first_hit(x, n, [value](auto e) { return e == splat<decltype(e)>(value); });
}

/* ---- value and place of a short run in one go ---- */

/* The extreme in each lane, and in which vector it came first: one byte must be able to count them. No branch depends
 * on the elements, as it could not be predicted. From MOST vectors on it costs more to remember than to look later. */
template <class T, bool Smallest> struct placed_extreme {
    using V = vec<T>;
    using number = typename uint_of<sizeof(T)>::type;
    using N = vec<number>;
    static constexpr int64_t LANES = AD_VECTOR_BYTES / sizeof(T), MOST = AD_VECTOR_BYTES == 64 ? 128 : 32;
    using each_lane = std::make_index_sequence<size_t(LANES)>;
    typedef T loose __attribute__((vector_size(AD_VECTOR_BYTES), aligned(sizeof(T)), may_alias));
    V s, sum; /* sum: NaN where one was, and maybe where infinities are */
    N n;

    static auto beats(V a, V b) { return Smallest ? a < b : b < a; }
    static V at(const T *x) { return *reinterpret_cast<const loose *>(x); }
    void init(V x, number k) { s = x, sum = x, n = splat<N>(k); }
    void take(V x, N k) {
        const auto better = beats(x, s);
        s = better ? x : s;
        n = better ? k : n;
        if constexpr (is_float<T>) sum = sum + x;
    }
    void merge(const placed_extreme &o) {
        const auto better = beats(o.s, s) | ((o.s == s) & (o.n < n));
        s = better ? o.s : s;
        n = better ? o.n : n;
        if constexpr (is_float<T>) sum = sum + o.sum;
    }

    /* The lanes `By` further on, in place of each. Those of one word of 8 bytes are shifted. */
    template <int By, class X, size_t... I> static X turned(X a, std::index_sequence<I...>) {
        if constexpr (By * sizeof(T) >= 8) return __builtin_shufflevector(a, a, ((I + By) % sizeof...(I))...);
        else return X(vec<uint64_t>(a) >> (8 * By * sizeof(T)));
    }
    /* The least, or the extreme, of all lanes, in lane 0. */
    template <int By = int(LANES) / 2, class X, class Better> static X across(X a, Better better) {
        const X b = turned<By>(a, each_lane());
        a = better(b, a) ? b : a;
        if constexpr (By > 1) return across<By / 2>(a, better);
        else return a;
    }
    template <size_t... I> static N lane_numbers(std::index_sequence<I...>) { return N{number(I)...}; }

    /* Find the extreme of at least LANES elements. False: one may be NaN. */
    static bool find(const T *x, int64_t n, T *value, int64_t *place) {
        constexpr int U = 4;
        const int64_t vectors = n / LANES;
        placed_extreme a[U];
        int64_t k = 1;
        a[0].init(at(x), 0);
        if (vectors >= 2 * U) {
            N number_of[U];
            for (int u = 1; u < U; u++) a[u].init(at(x + u * LANES), number(u));
            for (int u = 0; u < U; u++) number_of[u] = splat<N>(number(u));
            for (k = U; k + U <= vectors; k += U)
                for (int u = 0; u < U; u++) {
                    number_of[u] = number_of[u] + splat<N>(number(U));
                    a[u].take(at(x + (k + u) * LANES), number_of[u]);
                }
            for (int u = 1; u < U; u++) a[0].merge(a[u]);
        }
        for (; k < vectors; k++) a[0].take(at(x + k * LANES), splat<N>(number(k)));
        if (n % LANES != 0) a[0].take(at(x + n - LANES), splat<N>(number(vectors)));
        if constexpr (is_float<T>)
            if (any(a[0].sum != a[0].sum)) return false;
        const V best = across(a[0].s, [](V p, V q) { return beats(p, q); });
        const auto less = [](N p, N q) { return p < q; };
        const auto hit = a[0].s == splat<V>(best[0]);
        const N lane = lane_numbers(each_lane()), none = ~N{};
        int64_t i;
        if constexpr (sizeof(T) > 1) {
            i = across(hit ? a[0].n * splat<N>(number(LANES)) + lane : none, less)[0];
        } else {
            const number first = across(hit ? a[0].n : none, less)[0];
            const auto last = hit & (a[0].n == splat<N>(first));
            i = first * LANES + across(last ? lane : none, less)[0];
        }
        if (i >= vectors * LANES) i -= (vectors + 1) * LANES - n;
        *value = best[0];
        *place = i;
        return true;
    }
};
template <template <class> class A, class T> struct placed_of { using type = void; };
template <class T> struct placed_of<ArgMin, T> { using type = placed_extreme<T, true>; };
template <class T> struct placed_of<ArgMax, T> { using type = placed_extreme<T, false>; };

/* ---- runs ---- */

/* The extreme of a stretch by vectors; only in the stretch that has the best is its place looked up. */
template <template <class> class A, class T> void fold_stretches(A<T> *s, const T *x, int64_t n, int64_t index) {
    constexpr int64_t STRETCH = 8192 / sizeof(T);
    int64_t best = -1;
    for (int64_t i = 0; i < n; i += STRETCH) {
        int64_t m = n - i < STRETCH ? n - i : STRETCH;
        A<T> stretch, merged = *s;
        stretch.init();
        stretch.take(fold_vector<A<T>::template extreme, T>::leaf(x + i, m).s, index + i);
        merged.merge(stretch);
        if (merged.i != index + i || stretch.i < 0) continue;
        best = i;
        *s = merged;
    }
    if (best >= 0) s->i += place_of(x + best, n - best, s->v);
}

template <template <class> class A, class T> void fold_indexed(A<T> *s, const T *x, int64_t n, int64_t index) {
    using P = typename placed_of<A, T>::type;
    if constexpr (!same<P, void>) {
        A<T> found;
        if (n >= P::LANES && n < P::MOST * P::LANES && P::find(x, n, &found.v, &found.i)) {
            found.i += index;
            return s->merge(found);
        }
    }
    fold_stretches<A, T>(s, x, n, index);
}

} // namespace AD_ISA
} // namespace ad
#endif
