/* Kernels of reduction.def's rows for one type of element: AD_REDUCE_TABLE(float32) defines their table. */
#ifndef AD_KERNELS_CPU_ISA_REDUCE_LOOPS_H
#define AD_KERNELS_CPU_ISA_REDUCE_LOOPS_H

#include "kernels/cpu/isa/isa.h"

#include <utility>

#include "kernels/accumulate.h"
#include "kernels/cpu/kernels.h"
#include "kernels/ufunc.h"

namespace ad {
inline namespace AD_ISA {

template <class A, class T> AD_HD void take_one(A &a, T x, int64_t index) {
    if constexpr (INDEXED<A>) a.take(x, index);
    else a.take(x);
}

/* ---- all into one ---- */

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

    static AD_HD A<T> across(const A<V> &v) {
        A<T> lane[LANES];
        const E *from = reinterpret_cast<const E *>(&v);
        E *to = reinterpret_cast<E *>(lane);
        for (int m = 0; m < MEMBERS; m++)
            for (int i = 0; i < LANES; i++) to[i * MEMBERS + m] = from[m * LANES + i];
        for (int step = LANES / 2; step > 0; step /= 2)
            for (int i = 0; i < step; i++) lane[i].merge(lane[i + step]);
        return lane[0];
    }

    static AD_NOINLINE A<T> leaf(const T *x, int64_t n) {
        A<T> r;
        r.init();
        int64_t i = 0;
        if (n >= LANES) {
            A<V> a[UNROLL];
            for (int u = 0; u < UNROLL; u++) a[u].init();
            for (; i + UNROLL * LANES <= n; i += UNROLL * LANES)
                for (int u = 0; u < UNROLL; u++) a[u].take(at(x + i + u * LANES));
            for (; i + LANES <= n; i += LANES) a[0].take(at(x + i));
            for (int u = 1; u < UNROLL; u++) a[0].merge(a[u]);
            r = across(a[0]);
        }
        for (; i < n; i++) {
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

/* The first place of a value that is among the n. */
template <class T> AD_HD int64_t place_of(const T *x, int64_t n, T value) {
    constexpr int64_t STEP = 64;
    int64_t i = 0;
    for (; i + STEP <= n; i += STEP) {
        unsigned hit = 0;
        for (int64_t k = 0; k < STEP; k++) hit |= unsigned((x[i + k] == value) | (is_nan(x[i + k]) & is_nan(value)));
        if (hit) break;
    }
    while (!((x[i] == value) | (is_nan(x[i]) & is_nan(value)))) i++;
    return i;
}

/* Positions: the extreme of a stretch by vectors; only where it beats the best so far is its place looked up. */
template <template <class> class A, class T> AD_HD void fold_indexed(A<T> *s, const T *x, int64_t n, int64_t index) {
    constexpr int64_t STRETCH = 4096 / sizeof(T);
    for (int64_t i = 0; i < n; i += STRETCH) {
        int64_t m = n - i < STRETCH ? n - i : STRETCH;
        T best = fold_vector<A<T>::template extreme, T>::leaf(x + i, m).s;
        A<T> stretch;
        stretch.init();
        stretch.take(best, index + i + m); /* behind every place of the stretch: only a better value beats */
        A<T> merged = *s;
        merged.merge(stretch);
        if (merged.i != index + i + m) continue;
        merged.i = index + i + place_of(x + i, m, best);
        *s = merged;
    }
}

template <template <class> class A, class T> void fold(void *state, const void *elements, int64_t n, int64_t index) {
    A<T> *s = static_cast<A<T> *>(state);
    const T *x = static_cast<const T *>(elements);
    if constexpr (INDEXED<A<T>> && !is_complex<T>) {
        fold_indexed<A, T>(s, x, n, index);
    } else if constexpr (INDEXED<A<T>>) {
        for (int64_t i = 0; i < n; i++) s->take(x[i], index + i);
    } else if constexpr (COUNTING<A<T>>) {
        s->n += count_nonzero(x, n);
    } else {
        s->merge(fold_vector<A, T>::tree(x, n));
    }
}

/* ---- each into its own ---- */

template <template <class> class A, class T> void each(void *state, const void *elements, int64_t n, int64_t index) {
    A<T> *s = static_cast<A<T> *>(state);
    const T *x = static_cast<const T *>(elements);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; i++) take_one(s[i], x[i], index);
}

template <template <class> class A, class T> void masked(void *state, int64_t state_step, const void *elements,
                                                         const uint8_t *mask, int64_t n, int64_t index,
                                                         int64_t index_step) {
    A<T> *s = static_cast<A<T> *>(state);
    const T *x = static_cast<const T *>(elements);
    for (int64_t i = 0; i < n; i++) {
        AD_SCALAR_LOOP;
        if (mask[i]) take_one(s[i * state_step], x[i], index + i * index_step);
    }
}

template <template <class> class A, class T> void init(void *state, int64_t n) {
    A<T> one;
    one.init();
    for (int64_t i = 0; i < n; i++) static_cast<A<T> *>(state)[i] = one;
}

template <template <class> class A, class T> void merge(void *state, const void *later, int64_t n) {
    A<T> *s = static_cast<A<T> *>(state);
    const A<T> *o = static_cast<const A<T> *>(later);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; i++) s[i].merge(o[i]);
}

template <template <class> class A, class T, class O>
void result(void *out, const void *state, int64_t n, double ddof) {
    using R = compute_t<O>;
    for (int64_t i = 0; i < n; i++)
        static_cast<O *>(out)[i] = O(static_cast<const A<T> *>(state)[i].template result<R>(ddof));
}

template <class A, class = void> struct early { static constexpr bool (*done)(const void *) = nullptr; };
template <class A> struct early<A, decltype(static_cast<void>(A().done()))> {
    static bool done(const void *state) { return static_cast<const A *>(state)->done(); }
};

/* ---- the table ---- */

template <template <class> class A, int Rule, class T> constexpr ad_reduce_kernel reduce_kernel() {
    if constexpr (rule<Rule>::loops >> dtype_of<T>::value & 1) {
        using O = typename coded<rule<Rule>::out0, T>::type;
        return {sizeof(A<T>), INDEXED<A<T>>, init<A, T>,      fold<A, T>,       each<A, T>,
                masked<A, T>, merge<A, T>,   result<A, T, O>, early<A<T>>::done};
    } else {
        return {};
    }
}

template <class T> struct reduce_table {
    ad_reduce_kernel row[AD_REDUCTION_LIMIT];
    constexpr reduce_table() : row{} {
#define AD_REDUCTION(id, name, rulename, accumulator, empty, domain, doc) \
    row[id] = reduce_kernel<accumulator, AD_RULE_##rulename, T>();
#include "protocol/reduction.def"
#undef AD_REDUCTION
    }
};

} // namespace AD_ISA
} // namespace ad

#define AD_REDUCE_TABLE(name)                                                           \
    namespace ad {                                                                      \
    inline namespace AD_ISA {                                                           \
    static constexpr reduce_table<t_##name> reductions_##name;                          \
    extern const ad_reduce_kernel *const reduce_kernels_##name = reductions_##name.row; \
    }                                                                                   \
    }
/* Reduced in another type. */
#define AD_REDUCE_NONE(name)                                              \
    namespace ad {                                                        \
    inline namespace AD_ISA {                                             \
    extern const ad_reduce_kernel *const reduce_kernels_##name = nullptr; \
    }                                                                     \
    }
#endif
