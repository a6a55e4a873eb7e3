/* Algorithms that one thread runs over iterators, for kernels written in Python (cupyx.jit.thrust). An iterator is
 * whatever has [], and + and - as pointers have. */
#ifndef AD_RUN_ALGORITHM_H
#define AD_RUN_ALGORITHM_H

#define AD_AL static inline __device__

namespace ad_algorithm {

/* ---- iterators and what algorithms return ---- */

template <class A, class B> struct pair {
    A _0;
    B _1;
};

template <class T> struct bare { typedef T type; };
template <class T> struct bare<T &> { typedef T type; };
template <class T> struct bare<const T> { typedef T type; };
template <class T> struct bare<const T &> { typedef T type; };
template <class I> __device__ I some();
template <class I> using element = typename bare<decltype(some<I>()[ptrdiff_t(0)])>::type;

/* A place in an array, whose elements are counted in C order. */
template <class Array> struct position {
    Array array;
    ptrdiff_t at;
    AD_AL position of(const Array &array, ptrdiff_t at) {
        position p;
        p.array = array;
        p.at = at;
        return p;
    }
    __device__ decltype(some<Array>()[ptrdiff_t(0)]) operator[](ptrdiff_t i) const {
        return const_cast<Array &>(array)[at + i];
    }
    __device__ position operator+(ptrdiff_t n) const { return of(array, at + n); }
    __device__ position operator-(ptrdiff_t n) const { return of(array, at - n); }
    __device__ ptrdiff_t operator-(const position &other) const { return at - other.at; }
};

/* Elements that are all one value, or count on from it. */
template <class T, bool Counts> struct generated {
    T first;
    ptrdiff_t at;
    __device__ T operator[](ptrdiff_t i) const { return Counts ? T(first + T(at + i)) : first; }
    __device__ generated operator+(ptrdiff_t n) const { return generated{first, at + n}; }
    __device__ generated operator-(ptrdiff_t n) const { return generated{first, at - n}; }
    __device__ ptrdiff_t operator-(const generated &other) const {
        return Counts ? ptrdiff_t(first - other.first) + at - other.at : at - other.at;
    }
};
template <class T> AD_AL generated<T, false> make_constant_iterator(T value) { return generated<T, false>{value, 0}; }
template <class T> AD_AL generated<T, true> make_counting_iterator(T value) { return generated<T, true>{value, 0}; }

/* ---- copies ---- */

template <class I, class O> AD_AL O copy(I first, I last, O out) {
    const ptrdiff_t n = last - first;
    for (ptrdiff_t i = 0; i < n; i++) out[i] = first[i];
    return out + n;
}
template <class O, class T> AD_AL void fill(O first, O last, T value) {
    const ptrdiff_t n = last - first;
    for (ptrdiff_t i = 0; i < n; i++) first[i] = value;
}
template <class O, class T, class S> AD_AL void sequence(O first, O last, T start, S step) {
    const ptrdiff_t n = last - first;
    for (ptrdiff_t i = 0; i < n; i++) first[i] = start + step * S(i);
}
template <class O, class T> AD_AL void sequence(O first, O last, T start) { sequence(first, last, start, T(1)); }
template <class O> AD_AL void sequence(O first, O last) { sequence(first, last, element<O>(0)); }
template <class M, class I, class O> AD_AL O gather(M first, M last, I from, O out) {
    const ptrdiff_t n = last - first;
    for (ptrdiff_t i = 0; i < n; i++) out[i] = from[first[i]];
    return out + n;
}
template <class I, class M, class O> AD_AL void scatter(I first, I last, M map, O out) {
    const ptrdiff_t n = last - first;
    for (ptrdiff_t i = 0; i < n; i++) out[map[i]] = first[i];
}
template <class I> AD_AL void swap_elements(I it, ptrdiff_t a, ptrdiff_t b) {
    const element<I> kept = it[a];
    it[a] = it[b];
    it[b] = kept;
}
template <class I, class J> AD_AL J swap_ranges(I first, I last, J other) {
    const ptrdiff_t n = last - first;
    for (ptrdiff_t i = 0; i < n; i++) {
        const element<I> kept = first[i];
        first[i] = other[i];
        other[i] = kept;
    }
    return other + n;
}
template <class I> AD_AL void reverse(I first, I last) {
    for (ptrdiff_t i = 0, k = last - first - 1; i < k; i++, k--) swap_elements(first, i, k);
}
template <class I, class O> AD_AL O reverse_copy(I first, I last, O out) {
    const ptrdiff_t n = last - first;
    for (ptrdiff_t i = 0; i < n; i++) out[i] = first[n - 1 - i];
    return out + n;
}
template <class I, class O, class T> AD_AL O replace_copy(I first, I last, O out, T old, T value) {
    const ptrdiff_t n = last - first;
    for (ptrdiff_t i = 0; i < n; i++) out[i] = first[i] == old ? value : T(first[i]);
    return out + n;
}
template <class I, class T> AD_AL void replace(I first, I last, T old, T value) {
    replace_copy(first, last, first, old, value);
}
template <class I, class O, class T> AD_AL O remove_copy(I first, I last, O out, T value) {
    const ptrdiff_t n = last - first;
    ptrdiff_t kept = 0;
    for (ptrdiff_t i = 0; i < n; i++)
        if (!(first[i] == value)) out[kept++] = first[i];
    return out + kept;
}
template <class I, class T> AD_AL I remove(I first, I last, T value) { return remove_copy(first, last, first, value); }
template <class I, class O> AD_AL O unique_copy(I first, I last, O out) {
    const ptrdiff_t n = last - first;
    ptrdiff_t kept = 0, last_kept = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        if (i != 0 && first[i] == first[last_kept]) continue;
        out[kept++] = first[last_kept = i];
    }
    return out + kept;
}
template <class I> AD_AL I unique(I first, I last) { return unique_copy(first, last, first); }
template <class K, class V, class KO, class VO>
AD_AL pair<KO, VO> unique_by_key_copy(K first, K last, V values, KO keys_out, VO out) {
    const ptrdiff_t n = last - first;
    ptrdiff_t kept = 0, last_kept = 0;
    for (ptrdiff_t i = 0; i < n; i++) {
        if (i != 0 && first[i] == first[last_kept]) continue;
        keys_out[kept] = first[last_kept = i];
        out[kept++] = values[i];
    }
    return pair<KO, VO>{keys_out + kept, out + kept};
}
template <class K, class V> AD_AL pair<K, V> unique_by_key(K first, K last, V values) {
    return unique_by_key_copy(first, last, values, first, values);
}

/* ---- searching ---- */

template <class I, class T> AD_AL I find(I first, I last, T value) {
    const ptrdiff_t n = last - first;
    ptrdiff_t i = 0;
    while (i < n && !(first[i] == value)) i++;
    return first + i;
}
template <class I, class T> AD_AL ptrdiff_t count(I first, I last, T value) {
    const ptrdiff_t n = last - first;
    ptrdiff_t found = 0;
    for (ptrdiff_t i = 0; i < n; i++) found += first[i] == value;
    return found;
}
template <class I, class J> AD_AL pair<I, J> mismatch(I first, I last, J other) {
    const ptrdiff_t n = last - first;
    ptrdiff_t i = 0;
    while (i < n && first[i] == other[i]) i++;
    return pair<I, J>{first + i, other + i};
}
template <class I, class J> AD_AL bool equal(I first, I last, J other) {
    return mismatch(first, last, other)._0 - last == 0;
}
template <class I> AD_AL I is_sorted_until(I first, I last) {
    const ptrdiff_t n = last - first;
    ptrdiff_t i = n > 0;
    while (i < n && !(first[i] < first[i - 1])) i++;
    return first + i;
}
template <class I> AD_AL bool is_sorted(I first, I last) { return is_sorted_until(first, last) - last == 0; }
template <class I> AD_AL pair<I, I> minmax_element(I first, I last) {
    const ptrdiff_t n = last - first;
    ptrdiff_t least = 0, most = 0;
    for (ptrdiff_t i = 1; i < n; i++) {
        if (first[i] < first[least]) least = i;
        if (first[most] < first[i]) most = i;
    }
    return pair<I, I>{first + least, first + most};
}
template <class I> AD_AL I min_element(I first, I last) { return minmax_element(first, last)._0; }
template <class I> AD_AL I max_element(I first, I last) { return minmax_element(first, last)._1; }

/* Searches in sorted elements. */
template <class I, class T> AD_AL I lower_bound(I first, I last, T value) {
    ptrdiff_t low = 0, high = last - first;
    while (low < high) {
        const ptrdiff_t middle = low + (high - low) / 2;
        if (first[middle] < value) low = middle + 1;
        else high = middle;
    }
    return first + low;
}
template <class I, class T> AD_AL I upper_bound(I first, I last, T value) {
    ptrdiff_t low = 0, high = last - first;
    while (low < high) {
        const ptrdiff_t middle = low + (high - low) / 2;
        if (value < first[middle]) high = middle;
        else low = middle + 1;
    }
    return first + low;
}
template <class I, class T> AD_AL pair<I, I> equal_range(I first, I last, T value) {
    return pair<I, I>{lower_bound(first, last, value), upper_bound(first, last, value)};
}
template <class I, class T> AD_AL bool binary_search(I first, I last, T value) {
    const I found = lower_bound(first, last, value);
    return last - found > 0 && !(value < found[0]);
}
#define AD_AL_OF_EACH(name, result)                                                                     \
    template <class I, class J, class O> AD_AL O name(I first, I last, J value, J values_last, O out) { \
        const ptrdiff_t n = values_last - value;                                                        \
        for (ptrdiff_t i = 0; i < n; i++) out[i] = name(first, last, value[i]) result;                  \
        return out + n;                                                                                 \
    }
AD_AL_OF_EACH(lower_bound, -first)
AD_AL_OF_EACH(upper_bound, -first)
AD_AL_OF_EACH(binary_search, )
#undef AD_AL_OF_EACH

/* ---- sums and scans ---- */

template <class I, class T> AD_AL T reduce(I first, I last, T start) {
    const ptrdiff_t n = last - first;
    for (ptrdiff_t i = 0; i < n; i++) start = T(start + first[i]);
    return start;
}
template <class I> AD_AL element<I> reduce(I first, I last) { return reduce(first, last, element<I>(0)); }
template <class I, class J, class T> AD_AL T inner_product(I first, I last, J other, T start) {
    const ptrdiff_t n = last - first;
    for (ptrdiff_t i = 0; i < n; i++) start = T(start + first[i] * other[i]);
    return start;
}
/* The last comes first, as out may be where the elements are. */
template <class I, class O> AD_AL O adjacent_difference(I first, I last, O out) {
    const ptrdiff_t n = last - first;
    for (ptrdiff_t i = n - 1; i > 0; i--) out[i] = first[i] - first[i - 1];
    if (n > 0) out[0] = first[0];
    return out + n;
}
template <class K, class V, class KO, class VO>
AD_AL pair<KO, VO> reduce_by_key(K first, K last, V values, KO keys_out, VO out) {
    const ptrdiff_t n = last - first;
    ptrdiff_t groups = 0;
    for (ptrdiff_t i = 0; i < n; groups++) {
        const element<K> key = first[i];
        element<V> sum = values[i++];
        while (i < n && first[i] == key) sum = sum + values[i++];
        keys_out[groups] = key;
        out[groups] = sum;
    }
    return pair<KO, VO>{keys_out + groups, out + groups};
}
template <class I, class O> AD_AL O inclusive_scan(I first, I last, O out) {
    const ptrdiff_t n = last - first;
    element<I> sum = element<I>(0);
    for (ptrdiff_t i = 0; i < n; i++) {
        sum = i ? element<I>(sum + first[i]) : element<I>(first[i]);
        out[i] = sum;
    }
    return out + n;
}
template <class I, class O, class T> AD_AL O exclusive_scan(I first, I last, O out, T sum) {
    const ptrdiff_t n = last - first;
    for (ptrdiff_t i = 0; i < n; i++) {
        const element<I> x = first[i];
        out[i] = sum;
        sum = T(sum + x);
    }
    return out + n;
}
template <class I, class O> AD_AL O exclusive_scan(I first, I last, O out) {
    return exclusive_scan(first, last, out, element<I>(0));
}
/* Keys and values are read before out is written, which may be where they are. */
template <class K, class V, class O> AD_AL O inclusive_scan_by_key(K first, K last, V values, O out) {
    const ptrdiff_t n = last - first;
    element<V> sum = element<V>(0);
    element<K> before = element<K>(0);
    for (ptrdiff_t i = 0; i < n; i++) {
        const element<K> key = first[i];
        const element<V> x = values[i];
        out[i] = sum = i && key == before ? element<V>(sum + x) : x;
        before = key;
    }
    return out + n;
}
template <class K, class V, class O, class T> AD_AL O exclusive_scan_by_key(K first, K last, V values, O out, T start) {
    const ptrdiff_t n = last - first;
    T sum = start;
    element<K> before = element<K>(0);
    for (ptrdiff_t i = 0; i < n; i++) {
        const element<K> key = first[i];
        const element<V> x = values[i];
        if (i && !(key == before)) sum = start;
        out[i] = sum;
        sum = T(sum + x);
        before = key;
    }
    return out + n;
}
template <class K, class V, class O> AD_AL O exclusive_scan_by_key(K first, K last, V values, O out) {
    return exclusive_scan_by_key(first, last, values, out, element<V>(0));
}

/* ---- sorted sets ---- */

/* Walk through two sorted sequences, and call emit(whether of the first, place). It is called for the elements of the
 * first alone, and of the second alone. For elements that both have it is called once or, with MERGE, for each. */
enum { NONE, ONE, MERGE };
template <bool A, bool B, int Both, class I, class J, class Emit>
AD_AL void combine(I a, ptrdiff_t na, J b, ptrdiff_t nb, Emit &emit) {
    ptrdiff_t i = 0, k = 0;
    while (i < na && k < nb) {
        if (a[i] < b[k]) {
            if (A) emit(true, i);
            i++;
        } else if (b[k] < a[i]) {
            if (B) emit(false, k);
            k++;
        } else {
            if (Both != NONE) emit(true, i);
            i++;
            k += Both != MERGE;
        }
    }
    for (; A && i < na; i++) emit(true, i);
    for (; B && k < nb; k++) emit(false, k);
}
#define AD_AL_COMBINATION(name, in_a, in_b, in_both)                                                  \
    template <class I, class J, class O> AD_AL O name(I a, I a_last, J b, J b_last, O out) {          \
        ptrdiff_t n = 0;                                                                              \
        auto emit = [&](bool of_a, ptrdiff_t at) {                                                    \
            if (of_a) out[n++] = a[at];                                                               \
            else out[n++] = b[at];                                                                    \
        };                                                                                            \
        combine<in_a, in_b, in_both>(a, a_last - a, b, b_last - b, emit);                             \
        return out + n;                                                                               \
    }                                                                                                 \
    template <class I, class J, class V, class W, class KO, class VO>                                 \
    AD_AL pair<KO, VO> name##_by_key(I a, I a_last, J b, J b_last, V va, W vb, KO keys_out, VO out) { \
        ptrdiff_t n = 0;                                                                              \
        auto emit = [&](bool of_a, ptrdiff_t at) {                                                    \
            if (of_a) keys_out[n] = a[at], out[n++] = va[at];                                         \
            else keys_out[n] = b[at], out[n++] = vb[at];                                              \
        };                                                                                            \
        combine<in_a, in_b, in_both>(a, a_last - a, b, b_last - b, emit);                             \
        return pair<KO, VO>{keys_out + n, out + n};                                                   \
    }
AD_AL_COMBINATION(merge, true, true, MERGE)
AD_AL_COMBINATION(set_union, true, true, ONE)
AD_AL_COMBINATION(set_difference, true, false, NONE)
AD_AL_COMBINATION(set_intersection, false, false, ONE)
AD_AL_COMBINATION(set_symmetric_difference, true, true, NONE)
#undef AD_AL_COMBINATION
template <class I, class J, class V, class KO, class VO>
AD_AL pair<KO, VO> set_intersection_by_key(I a, I a_last, J b, J b_last, V va, KO keys_out, VO out) {
    return set_intersection_by_key(a, a_last, b, b_last, va, va, keys_out, out);
}

/* ---- sorting: stable, in place, O(n log(n)^2) ---- */

/* The elements that are sorted: keys, or keys and the values that go with them. */
template <class K> struct keys_only {
    K key;
    __device__ void swap(ptrdiff_t a, ptrdiff_t b) const { swap_elements(key, a, b); }
};
template <class K, class V> struct keys_and_values {
    K key;
    V value;
    __device__ void swap(ptrdiff_t a, ptrdiff_t b) const {
        swap_elements(key, a, b);
        swap_elements(value, a, b);
    }
};
template <class S> AD_AL void flip(const S &s, ptrdiff_t a, ptrdiff_t b) {
    for (b--; a < b; a++, b--) s.swap(a, b);
}
/* Exchange [a, m) and [m, b). */
template <class S> AD_AL void rotate(const S &s, ptrdiff_t a, ptrdiff_t m, ptrdiff_t b) {
    if (a == m || m == b) return;
    flip(s, a, m);
    flip(s, m, b);
    flip(s, a, b);
}
/* Merge the neighbours [a, m) and [m, b) by Kim and Kutzner's SymMerge. It exchanges elements of the left that are
 * greater than those of the right around the middle, then merges both halves. The halves that wait have a stack here,
 * as a GPU's own is small. Each is at most half as long as that below it. */
template <class S> AD_AL void merge_neighbours(const S &s, ptrdiff_t a, ptrdiff_t m, ptrdiff_t b) {
    ptrdiff_t waiting[3 * 64];
    int depth = 0;
    for (;;) {
        if (a < m && m < b && s.key[m] < s.key[m - 1]) {
            if (b - a == 2) {
                s.swap(a, m);
            } else {
                const ptrdiff_t middle = a + (b - a) / 2, sum = middle + m;
                ptrdiff_t low = m > middle ? sum - b : a, high = m > middle ? middle : m;
                while (low < high) {
                    const ptrdiff_t c = low + (high - low) / 2;
                    if (s.key[sum - 1 - c] < s.key[c]) high = c;
                    else low = c + 1;
                }
                const ptrdiff_t end = sum - low;
                rotate(s, low, m, end);
                waiting[depth++] = middle, waiting[depth++] = end, waiting[depth++] = b;
                m = low, b = middle;
                continue;
            }
        }
        if (depth == 0) return;
        b = waiting[--depth], m = waiting[--depth], a = waiting[--depth];
    }
}
template <class S> AD_AL void sort_stably(const S &s, ptrdiff_t n) {
    const ptrdiff_t few = 8;
    for (ptrdiff_t a = 0; a < n; a += few)
        for (ptrdiff_t i = a + 1; i < n && i < a + few; i++)
            for (ptrdiff_t k = i; k > a && s.key[k] < s.key[k - 1]; k--) s.swap(k, k - 1);
    for (ptrdiff_t size = few; size < n; size *= 2)
        for (ptrdiff_t a = 0; a + size < n; a += 2 * size)
            merge_neighbours(s, a, a + size, a + 2 * size < n ? a + 2 * size : n);
}
template <class K> AD_AL void stable_sort(K first, K last) { sort_stably(keys_only<K>{first}, last - first); }
template <class K, class V> AD_AL void stable_sort_by_key(K first, K last, V values) {
    sort_stably(keys_and_values<K, V>{first, values}, last - first);
}
template <class K> AD_AL void sort(K first, K last) { stable_sort(first, last); }
template <class K, class V> AD_AL void sort_by_key(K first, K last, V values) {
    stable_sort_by_key(first, last, values);
}

} // namespace ad_algorithm

#undef AD_AL
#endif
