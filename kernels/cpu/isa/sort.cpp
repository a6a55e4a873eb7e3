/* Sorting many short lanes at once. A vector has the i-th key of each lane, and a network of comparisons, each a
 * minimum and a maximum, sorts them all.
 *
 * Keys are signed, in the order of sort: NaN is the greatest, -0.0 comes just before 0.0. */
#include "kernels/cpu/isa/isa.h"
#include "kernels/cpu/isa/transpose.h"

#include <algorithm>
#include <limits>
#include <string.h>

#include "kernels/accumulate.h"
#include "kernels/call_order.h"
#include "kernels/cpu/kernels.h"

namespace ad {
inline namespace AD_ISA {
namespace {

template <int Size> struct int_of;
template <> struct int_of<1> { using type = int8_t; };
template <> struct int_of<2> { using type = int16_t; };
template <> struct int_of<4> { using type = int32_t; };
template <> struct int_of<8> { using type = int64_t; };

/* ---- elements of the network ---- */

/* Keys alone. */
template <class K> struct keys {
    using V = vec<K>;
    static constexpr int LANES = AD_VECTOR_BYTES / sizeof(K), VECTORS = 1;
    V k;
    static keys last() { return {V{} + std::numeric_limits<K>::max()}; }
    static void order(keys &a, keys &b) {
        const V low = a.k < b.k ? a.k : b.k;
        b.k = a.k < b.k ? b.k : a.k;
        a.k = low;
    }
};

/* Keys with their places, which tell equal ones apart. */
struct placed_keys {
    using V = vec<int64_t>;
    static constexpr int LANES = AD_VECTOR_BYTES / 8, VECTORS = 2;
    V k, place;
    static placed_keys last() { return {keys<int64_t>::last().k, keys<int64_t>::last().k}; }
    static void order(placed_keys &a, placed_keys &b) {
        const auto turn = (b.k < a.k) | ((b.k == a.k) & (b.place < a.place));
        const placed_keys low = {turn ? b.k : a.k, turn ? b.place : a.place};
        b = {turn ? a.k : b.k, turn ? a.place : b.place};
        a = low;
    }
};

/* ---- the network ---- */

struct comparison {
    int a, b;
};
template <int N> struct comparisons { comparison at[N]; };
constexpr int log2_of(int n) { return n < 2 ? 0 : 1 + log2_of(n / 2); }
/* Batcher's odd-even merge sort of N = 2^t elements. */
template <int N> struct sorting {
    static constexpr int t = log2_of(N), count = N / 4 * (t * t - t + 4) - 1;
    static constexpr comparisons<count> make() {
        comparisons<count> list{};
        int n = 0;
        for (int p = 1; p < N; p *= 2)
            for (int k = p; k > 0; k /= 2)
                for (int j = k % p; j + k < N; j += 2 * k)
                    for (int i = j; i < j + k && i + k < N; i++)
                        if (i / (2 * p) == (i + k) / (2 * p)) list.at[n++] = {i, i + k};
        return list;
    }
};
/* Sorting of N elements that rise and then only fall, or the other way round, and of any rotation of such. */
template <int N> struct merging {
    static constexpr int count = N / 2 * log2_of(N);
    static constexpr comparisons<count> make() {
        comparisons<count> list{};
        int n = 0;
        for (int k = N / 2; k > 0; k /= 2)
            for (int i = 0; i < N; i++)
                if ((i & k) == 0) list.at[n++] = {i, i + k};
        return list;
    }
};

/* A block is as many elements as registers hold, with room for what is compared. */
template <class E> constexpr int BLOCK = (AD_VECTOR_BYTES == 64 ? 16 : 8) / E::VECTORS;

/* No loop copies them: the compiler makes a memcpy of it, in pieces of 16 bytes by way of memory. */
template <class List, class E, size_t... I, size_t... J>
void compare_in_registers(E *from, std::index_sequence<I...>, std::index_sequence<J...>) {
    constexpr auto list = List::make();
    E e[BLOCK<E>] = {from[J]...};
    (E::order(e[list.at[I].a], e[list.at[I].b]), ...);
    ((from[J] = e[J]), ...);
}
/* Each block of n elements for itself. */
template <class List, class E> void compare_blocks(E *e, int64_t n) {
    for (int64_t i = 0; i < n; i += BLOCK<E>)
        compare_in_registers<List>(e + i, std::make_index_sequence<List::count>(),
                                   std::make_index_sequence<BLOCK<E>>());
}

/* Do two steps on four elements at once, which saves half of the memory accesses. First a is compared with c and b with
 * d, or turned a with d and b with c; then a with b and c with d. Elements beyond n count as greater than all. */
template <bool Turned, class E> inline void order_four(E *e, int64_t a, int64_t b, int64_t c, int64_t d, int64_t n) {
    if (d < n) {
        E p = e[a], q = e[b], r = e[c], s = e[d];
        E::order(p, Turned ? s : r);
        E::order(q, Turned ? r : s);
        E::order(p, q);
        E::order(r, s);
        e[a] = p, e[b] = q, e[c] = r, e[d] = s;
        return;
    }
    if (c < n) E::order(e[Turned ? b : a], e[c]);
    if (b < n) E::order(e[a], e[b]);
}

/* Merge sorted runs of `size` into runs of twice as many, of n elements (a multiple of the block). The second run is
 * turned round in the first step. */
template <class E> void merge_runs(E *e, int64_t size, int64_t n) {
    constexpr int64_t block = BLOCK<E>;
    int64_t k = size / 2;
    for (int64_t at = 0; at + size < n; at += 2 * size)
        if (size == block)
            for (int64_t i = 0; i < size; i++) E::order(e[at + i], e[at + 2 * size - 1 - i]);
        else
            for (int64_t i = at; i < at + k; i++)
                order_four<true>(e, i, i + k, 2 * at + 3 * k - 1 - i, 2 * at + 4 * k - 1 - i, n);
    for (k /= 2; k >= 2 * block; k /= 4)
        for (int64_t at = 0; at < n; at += 2 * k)
            for (int64_t i = at; i < at + k / 2; i++) order_four<false>(e, i, i + k / 2, i + k, i + k + k / 2, n);
    for (int64_t at = 0; k == block && at + k < n; at += 2 * k)
        for (int64_t i = at; i < at + k; i++) E::order(e[i], e[i + k]);
    compare_blocks<merging<BLOCK<E>>>(e, n);
}

/* Sort by the network. n: a multiple of the block. */
template <class E> void sort_network(E *e, int64_t n) {
    compare_blocks<sorting<BLOCK<E>>>(e, n);
    for (int64_t size = BLOCK<E>; size < n; size *= 2) merge_runs(e, size, n);
}

/* ---- elements as keys ---- */

/* The order of signed elements, for an element's bits and for a vector of them. */
template <class S> struct signed_order {
    using O = order<S>;
    using K = typename int_of<sizeof(S)>::type;
    static constexpr K most = std::numeric_limits<K>::max(), minus_zero = -1;
    static constexpr K top = K(8 * sizeof(S) - 1);

    template <class B> static B of(B bits) {
        if constexpr (O::real) {
            const B key = bits ^ ((bits >> top) & most);
            return (bits & most) > K(O::infinity) ? B{} + most : key;
        } else if constexpr (same<S, bool8>) return (bits != 0 ? B{} + K(1) : B{});
        else return is_signed<S> ? bits : bits ^ K(O::sign);
    }
    template <class B> static B back(B key) {
        if constexpr (O::real) {
            const B bits = key ^ ((key >> top) & most);
            return key == most ? B{} + K(O::quiet_nan) : bits;
        } else if constexpr (same<S, bool8>) return key;
        else return is_signed<S> ? key : key ^ K(O::sign);
    }
};

/* ---- vectors of lanes ---- */

/* Sorting by value: K is the key of S, of its own size. */
template <class S> struct by_value {
    using O = signed_order<S>;
    using K = typename O::K;
    using E = keys<K>;
    static constexpr int L = E::LANES, size = sizeof(S);

    static void take_one(const ad_sort_lanes *l, E *e, int64_t i) {
        K key[L];
        for (int r = 0; r < L; r++) {
            K bits;
            memcpy(&bits, l->from + std::min<int64_t>(r, l->lanes - 1) * l->from_lane + i * l->from_step, sizeof bits);
            key[r] = O::of(bits);
        }
        memcpy(&e[i].k, key, sizeof key);
    }
    static void take(const ad_sort_lanes *l, E *e) {
        int64_t i = 0;
        if (l->lanes == L && l->from_lane == size)
            for (; i < l->n; i++) e[i].k = O::of(load_vector<K>(l->from + i * l->from_step));
        if (l->lanes == L && l->from_step == size)
            for (; i + L <= l->n; i += L) {
                vec<K> m[L];
                for (int r = 0; r < L; r++) m[r] = load_vector<K>(l->from + r * l->from_lane + i * size);
                transposition<K>::transpose_rows(m);
                for (int r = 0; r < L; r++) e[i + r].k = O::of(m[r]);
            }
        for (; i < l->n; i++) take_one(l, e, i);
    }
    static void give(const ad_sort_lanes *l, const E *e) {
        int64_t i = 0;
        for (; l->lanes == L && l->to_lane == size && i < l->n; i++) {
            const vec<K> v = O::back(e[i].k);
            memcpy(l->to + i * l->to_step, &v, sizeof v);
        }
        for (; l->lanes == L && l->to_step == size && i + L <= l->n; i += L) {
            vec<K> m[L];
            for (int r = 0; r < L; r++) m[r] = O::back(e[i + r].k);
            transposition<K>::transpose_rows(m);
            for (int r = 0; r < L; r++) memcpy(l->to + r * l->to_lane + i * size, &m[r], sizeof m[r]);
        }
        for (; i < l->n; i++)
            for (int r = 0; r < l->lanes; r++) {
                const K bits = O::back(K(e[i].k[r]));
                memcpy(l->to + r * l->to_lane + i * l->to_step, &bits, sizeof bits);
            }
    }
    /* Zeros of both signs are equal and keep their order, which keys do not know. */
    static bool takes(const E *e, int64_t n) {
        if (!order<S>::real) return true;
        vec<K> found{};
        for (int64_t i = 0; i < n; i++) found |= e[i].k == O::minus_zero;
        return !any(found);
    }
};

/* Sorting places: keys of at most four bytes have theirs behind them in one number. */
template <class S> struct by_place {
    static constexpr bool narrow = sizeof(S) <= 4;
    using E = conditional_t<narrow, keys<int64_t>, placed_keys>;
    static constexpr int L = E::LANES;

    static void take(const ad_sort_lanes *l, E *e) {
        constexpr uint64_t sign = uint64_t(1) << 63;
        for (int64_t i = 0; i < l->n; i++) {
            uint64_t key[L];
            for (int r = 0; r < L; r++) {
                S v;
                memcpy(&v, l->from + std::min<int64_t>(r, l->lanes - 1) * l->from_lane + i * l->from_step, sizeof v);
                const uint64_t k = order<S>::equal(v);
                key[r] = (narrow ? k << 32 | uint64_t(i) : k) ^ sign;
            }
            memcpy(&e[i].k, key, sizeof key);
            if constexpr (!narrow) e[i].place = vec<int64_t>{} + i;
        }
    }
    static void give(const ad_sort_lanes *l, const E *e) {
        for (int64_t i = 0; i < l->n; i++)
            for (int r = 0; r < l->lanes; r++) {
                int64_t place;
                if constexpr (narrow) place = e[i].k[r] & 0xffffffff;
                else place = e[i].place[r];
                memcpy(l->to + r * l->to_lane + i * l->to_step, &place, sizeof place);
            }
    }
    static bool takes(const E *, int64_t) { return true; }
};

template <class How> bool sort_lanes(const ad_sort_lanes *l) {
    using E = typename How::E;
    E e[AD_SORT_MOST];
    int64_t n = l->n;
    How::take(l, e);
    if (!How::takes(e, n)) return false;
    while (n % BLOCK<E> != 0) e[n++] = E::last();
    sort_network(e, n);
    How::give(l, e);
    return true;
}

template <template <class> class How, class S> constexpr ad_sort_kernel sort_kernel() {
    if constexpr (is_complex<S>) return {};
    else return {How<S>::L, sort_lanes<How<S>>};
}

} // namespace

extern const ad_sort_kernel sort_kernels[AD_NDTYPE] = {
#define AD_DTYPE(id, NAME, name, size, kind, letter) sort_kernel<by_value, t_##name>(),
#include "protocol/dtype.def"
#undef AD_DTYPE
};
extern const ad_sort_kernel argsort_kernels[AD_NDTYPE] = {
#define AD_DTYPE(id, NAME, name, size, kind, letter) sort_kernel<by_place, t_##name>(),
#include "protocol/dtype.def"
#undef AD_DTYPE
};

} // namespace AD_ISA
} // namespace ad
