/* Stable sorting of unsigned keys, alone or with an index behind them, by radix. */
#ifndef AD_KERNELS_CPU_CALL_RADIX_H
#define AD_KERNELS_CPU_CALL_RADIX_H

#include <algorithm>

#include "kernels/cpu/backend/parallel.h"

namespace ad {
inline namespace AD_ISA {

template <class K, class I> struct indexed {
    using key_type = K;
    K key;
    I index;
    friend bool operator<(const indexed &a, const indexed &b) { return a.key < b.key; }
};

template <class E> struct element_key {
    using type = E;
    static inline E of(E e) { return e; }
};
template <class K, class I> struct element_key<indexed<K, I>> {
    using type = K;
    static inline K of(indexed<K, I> e) { return e.key; }
};

constexpr int RADIX_BITS = 8;
constexpr int RADIX_SIZE = 1 << RADIX_BITS;
constexpr int RADIX_CHUNKS = 64; /* most pieces of an array that are counted and moved in parallel */

/* Counts of one digit, for each chunk: then where the chunk's first element with that digit goes. */
struct radix_counts {
    int64_t at[RADIX_CHUNKS][RADIX_SIZE];
};

template <class E> inline unsigned digit_of(E e, int shift) {
    return unsigned(element_key<E>::of(e) >> shift) & (RADIX_SIZE - 1);
}

template <class E> void radix_count(const E *from, int64_t n, int shift, int64_t *count) {
    for (int d = 0; d < RADIX_SIZE; d++) count[d] = 0;
    for (int64_t i = 0; i < n; i++) count[digit_of(from[i], shift)]++;
}

template <class E> void radix_move(const E *from, int64_t n, int shift, int64_t *at, E *to) {
    for (int64_t i = 0; i < n; i++) to[at[digit_of(from[i], shift)]++] = from[i];
}

/* Turn the counts of chunks into places. False: all elements have one digit, there is nothing to move. */
inline bool radix_places(int64_t (*at)[RADIX_SIZE], int chunks, int64_t n) {
    int64_t sum = 0;
    for (int d = 0; d < RADIX_SIZE; d++) {
        int64_t all = sum;
        for (int k = 0; k < chunks; k++) {
            int64_t count = at[k][d];
            at[k][d] = sum;
            sum += count;
        }
        if (sum - all == n) return false;
    }
    return true;
}

/* The bits in which keys differ. */
template <class E> typename element_key<E>::type find_varying(const E *a, int64_t n) {
    using K = typename element_key<E>::type;
    K varying = 0;
    for (int64_t i = 1; i < n; i++) varying = K(varying | (element_key<E>::of(a[i]) ^ element_key<E>::of(a[0])));
    return varying;
}

/* Sorts n elements of a; b: room for as many. Where the result lies, a or b. Digits that all have are not counted. */
template <class E> E *radix_sort(E *a, E *b, int64_t n, radix_counts *c, int chunks) {
    const int64_t piece = (n + chunks - 1) / chunks;
    auto each = [&](auto f) {
        ad_cpu_parallel(chunks, 1, [&](int64_t begin, int64_t end) {
            for (int64_t k = begin; k < end; k++) {
                int64_t first = std::min(n, k * piece), last = std::min(n, first + piece);
                f(k, first, last - first);
            }
        });
    };
    const typename element_key<E>::type varying = find_varying(a, n);
    for (int shift = 0; shift < int(8 * sizeof(typename element_key<E>::type)); shift += RADIX_BITS) {
        ad_cpu_check_cancelled();
        if (!(unsigned(varying >> shift) & (RADIX_SIZE - 1))) continue;
        each([&](int64_t k, int64_t first, int64_t m) { radix_count(a + first, m, shift, c->at[k]); });
        if (!radix_places(c->at, chunks, n)) continue;
        each([&](int64_t k, int64_t first, int64_t m) { radix_move(a + first, m, shift, c->at[k], b); });
        std::swap(a, b);
    }
    return a;
}

/* Each element to the place that counting those before it gives: no branches to mispredict. */
template <class E> void rank_sort(const E *a, int64_t n, E *to) {
    for (int64_t i = 0; i < n; i++) {
        int64_t rank = 0;
        for (int64_t j = 0; j < i; j++) rank += !(a[i] < a[j]);
        for (int64_t j = i + 1; j < n; j++) rank += a[j] < a[i];
        to[rank] = a[i];
    }
}

template <class E> void insertion_sort(E *a, int64_t n) {
    for (int64_t i = 1; i < n; i++) {
        E e = a[i];
        int64_t j = i;
        for (; j > 0 && e < a[j - 1]; j--) a[j] = a[j - 1];
        a[j] = e;
    }
}

} // namespace AD_ISA
} // namespace ad
#endif
