/* sort, argsort, partition and argpartition. Short lanes of real types are sorted many at once (isa/sort.cpp). Else
 * real types are sorted as unsigned keys (call_order.h), by radix where there are many; complex ones by merging. Of
 * long lanes that are only partitioned, few elements are sorted: those between two of a sample, which are likely to
 * have the k-th one. */
#include "kernels/call.h"

#include <atomic>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <utility>

#include "kernels/call_order.h"
#include "kernels/cpu/call/radix.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/backend/parallel.h"
#include "protocol/rows_call.h"

namespace {

using namespace ad;

constexpr int64_t RUN = 16;             /* elements that are sorted before merging */
constexpr int64_t LONG_LANE = 1 << 16;  /* elements from which one lane is sorted by all threads */
constexpr int64_t SORT_GRAIN = 1 << 12; /* elements */
constexpr int MAX_ROOMS = 256;
constexpr int64_t SAMPLE = 1 << 12;         /* elements that a lane's k-th one is estimated by */
constexpr int64_t LEAST_SELECTED = 1 << 15; /* elements from which a lane is partitioned without sorting it */
constexpr int64_t SPLIT_CHUNKS = 64;        /* of a lane, which threads take one by one */

/* Scratch memory for each thread that sorts lanes. */
struct rooms {
    char *base;
    int64_t each;
    int n;
    std::atomic<bool> taken[MAX_ROOMS];

    char *take(int *which) {
        for (int i = 0;; i = i + 1 < n ? i + 1 : 0)
            if (!taken[i].exchange(true, std::memory_order_acquire)) {
                *which = i;
                return base + i * each;
            }
    }
    void leave(int which) { taken[which].store(false, std::memory_order_release); }
};

int rooms_init(ad_call *c, rooms *r, int64_t each, bool parallel) {
    r->n = parallel ? std::min(ad_cpu_parallel_threads(), MAX_ROOMS) : 1;
    r->each = (each + 63) / 64 * 64;
    for (int i = 0; i < r->n; i++) r->taken[i].store(false);
    r->base = static_cast<char *>(ad_call_workspace(c, uint64_t(r->each) * uint64_t(r->n)));
    return !r->base ? AD_E_MEMORY : 0;
}

/* A lane to sort, element by element `step` bytes apart, into another. */
struct lane {
    const char *from;
    char *to;
    int64_t from_step, to_step, n, kth; /* kth: the place to partition it at; -1: it is sorted */
    bool divide;                        /* among threads */
};

/* ---- what is sorted, and how it comes from and goes back to elements ---- */

/* Values of a real type as keys. */
template <class S> struct sort_values {
    using element = typename order<S>::key;
    static constexpr bool mends = order<S>::real;
    using result = S;
    static element load(const lane *l, int64_t i) {
        return order<S>::of(*reinterpret_cast<const S *>(l->from + i * l->from_step));
    }
    static void store(const lane *l, int64_t i, element e) {
        *reinterpret_cast<S *>(l->to + i * l->to_step) = order<S>::back(e);
    }
};

/* Sort indices of a real type. Keys of at most four bytes have their index in four more, if there are not too many. */
template <class S, class K, class I> struct sort_indices {
    using element = indexed<K, I>;
    static constexpr bool mends = false;
    using result = int64_t;
    static element load(const lane *l, int64_t i) {
        return {K(order<S>::equal(*reinterpret_cast<const S *>(l->from + i * l->from_step))), I(i)};
    }
    static void store(const lane *l, int64_t i, element e) {
        *reinterpret_cast<int64_t *>(l->to + i * l->to_step) = int64_t(e.index);
    }
};

template <class S> struct complex_value {
    S v;
    friend bool operator<(const complex_value &a, const complex_value &b) { return sorts_before(a.v, b.v); }
};
template <class S> struct sort_complex {
    using element = complex_value<S>;
    static constexpr bool mends = false;
    using result = S;
    static element load(const lane *l, int64_t i) { return {*reinterpret_cast<const S *>(l->from + i * l->from_step)}; }
    static void store(const lane *l, int64_t i, element e) { *reinterpret_cast<S *>(l->to + i * l->to_step) = e.v; }
};

template <class S> struct indexed_complex {
    S v;
    int64_t index;
    friend bool operator<(const indexed_complex &a, const indexed_complex &b) { return sorts_before(a.v, b.v); }
};
template <class S> struct sort_complex_indices {
    using element = indexed_complex<S>;
    static constexpr bool mends = false;
    using result = int64_t;
    static element load(const lane *l, int64_t i) {
        return {*reinterpret_cast<const S *>(l->from + i * l->from_step), i};
    }
    static void store(const lane *l, int64_t i, element e) {
        *reinterpret_cast<int64_t *>(l->to + i * l->to_step) = e.index;
    }
};

template <class E> constexpr bool has_key = true;
template <class S> constexpr bool has_key<complex_value<S>> = false;
template <class S> constexpr bool has_key<indexed_complex<S>> = false;
/* Nothing but a key: one compare is one instruction. */
template <class E> constexpr bool is_key =
    same<E, uint8_t> || same<E, uint16_t> || same<E, uint32_t> || same<E, uint64_t>;

/* ---- sorting n elements of a, with room for as many in b; where the result lies ---- */

/* Two sorted runs into one; of equal elements those of a first. The choice is no branch, it could not be predicted. */
template <class E> void merge(const E *a, int64_t n, const E *b, int64_t m, E *to) {
    const E *a_end = a + n, *b_end = b + m;
    while (a < a_end && b < b_end) {
        const bool second = *b < *a;
        *to++ = *(second ? b : a);
        a += !second;
        b += second;
    }
    while (a < a_end) *to++ = *a++;
    while (b < b_end) *to++ = *b++;
}

template <class E> E *merge_sort(E *a, E *b, int64_t n, bool divide) {
    const int64_t grain = divide ? SORT_GRAIN : n + 1;
    ad_cpu_parallel((n + RUN - 1) / RUN, std::max<int64_t>(1, grain / RUN), [&](int64_t begin, int64_t end) {
        for (int64_t r = begin; r < end; r++) {
            const int64_t at = r * RUN, m = std::min(RUN, n - at);
            if constexpr (is_key<E>) rank_sort(a + at, m, b + at);
            else insertion_sort(a + at, m);
        }
    });
    if (is_key<E>) std::swap(a, b);
    for (int64_t run = RUN; run < n; run *= 2, std::swap(a, b)) {
        const int64_t pairs = (n + 2 * run - 1) / (2 * run);
        ad_cpu_parallel(pairs, std::max<int64_t>(1, grain / run), [&](int64_t begin, int64_t end) {
            for (int64_t p = begin; p < end; p++) {
                int64_t at = p * 2 * run, left = std::min(run, n - at), right = std::min(run, n - at - left);
                merge(a + at, left, a + at + left, right, b + at);
            }
        });
    }
    return a;
}

/* Elements from which counting pays: it costs a table of 256 for each byte of the key. */
template <class E> constexpr int64_t radix_least() { return 48 * int64_t(sizeof(typename element_key<E>::type)); }

template <class E> E *sort_elements(E *a, E *b, int64_t n, radix_counts *counts, bool divide) {
    if constexpr (has_key<E>)
        if (n >= radix_least<E>())
            return radix_sort(a, b, n, counts, divide ? std::min(ad_cpu_parallel_threads(), RADIX_CHUNKS) : 1);
    return merge_sort(a, b, n, divide);
}

/* ---- partitioning n elements of a, with room for as many in b, where the result lies ---- */

/* Two elements between which the k-th is likely to be. The sample, sorted, lies in `room`, twice as large. */
template <class E> struct pivots {
    E low, high;
    bool from_start, to_end; /* there is none below, or above */
};
template <class E> pivots<E> choose_pivots(const E *a, int64_t n, int64_t kth, E *room, radix_counts *counts) {
    const int64_t part = n / SAMPLE;
    uint64_t drawn = 1;
    for (int64_t i = 0; i < SAMPLE; i++) {
        drawn = drawn * 6364136223846793005u + 1442695040888963407u;
        room[i] = a[i * part + int64_t((drawn >> 33) % uint64_t(part))];
    }
    const E *sorted = sort_elements(room, room + SAMPLE, SAMPLE, counts, false);
    const double share = (double(kth) + 0.5) / double(n), mean = share * SAMPLE;
    const double margin = 4 * sqrt(mean * (1 - share)) + 8;
    const bool from_start = mean < margin, to_end = mean + margin >= SAMPLE - 1;
    return {sorted[from_start ? 0 : int64_t(mean - margin)], sorted[to_end ? SAMPLE - 1 : int64_t(mean + margin) + 1],
            from_start, to_end};
}

template <class E> bool is_below(const pivots<E> &p, E e) { return !p.from_start & (e < p.low); }
template <class E> bool is_above(const pivots<E> &p, E e) { return !p.to_end & (p.high < e); }

/* f(chunk, begin, end) for each chunk of a lane. */
template <class F> void for_chunks(int64_t n, bool divide, F f) {
    const auto begin_of = [&](int64_t c) { return n / SPLIT_CHUNKS * c + std::min(c, n % SPLIT_CHUNKS); };
    ad_cpu_parallel(SPLIT_CHUNKS, divide ? 1 : SPLIT_CHUNKS, [&](int64_t first, int64_t last) {
        for (int64_t c = first; c < last; c++) {
            ad_cpu_check_cancelled();
            f(c, begin_of(c), begin_of(c + 1));
        }
    });
}

/* Move the elements of a to b: those below the pivots, those between them, those above. end: of each part. */
template <class E> void split_parts(const E *a, E *b, int64_t n, const pivots<E> &p, bool divide, int64_t (&end)[3]) {
    int64_t at[SPLIT_CHUNKS][3], before = 0;
    for_chunks(n, divide, [&](int64_t c, int64_t first, int64_t last) {
        int64_t below = 0, above = 0;
        for (int64_t i = first; i < last; i++) {
            below += is_below(p, a[i]);
            above += is_above(p, a[i]);
        }
        at[c][0] = below;
        at[c][1] = last - first - below - above;
        at[c][2] = above;
    });
    for (int part = 0; part < 3; end[part++] = before)
        for (int64_t c = 0; c < SPLIT_CHUNKS; c++) before += std::exchange(at[c][part], before);
    for_chunks(n, divide, [&](int64_t c, int64_t first, int64_t last) {
        int64_t to[3] = {at[c][0], at[c][1], at[c][2]};
        for (int64_t i = first; i < last; i++) b[to[1 - is_below(p, a[i]) + is_above(p, a[i])]++] = a[i];
    });
}

/* Partition, and sort the part that has the k-th element, wherever the sample was wrong. */
template <class E> E *select_elements(E *a, E *b, int64_t n, int64_t kth, radix_counts *counts, bool divide) {
    const pivots<E> p = choose_pivots(a, n, kth, b, counts);
    int64_t end[3];
    split_parts(a, b, n, p, divide, end);
    const int part = kth < end[0] ? 0 : kth < end[1] ? 1 : 2;
    const int64_t begin = part ? end[part - 1] : 0, count = end[part] - begin;
    if (part == 1 && !p.from_start && !p.to_end && !(p.low < p.high)) return b; /* all are equal */
    const E *sorted = sort_elements(b + begin, a + begin, count, counts, divide);
    if (sorted != b + begin) memcpy(static_cast<void *>(b + begin), sorted, size_t(count) * sizeof(E));
    return b;
}

/* ---- lanes ---- */

/* Keys put -0.0 before 0.0; a stable sort keeps their order where both occur. */
template <class S> void mend_zeros(const lane *l, const typename order<S>::key *sorted) {
    using O = order<S>;
    if (sorted[0] > O::minus_zero || sorted[l->n - 1] < O::zero) return;
    const auto *end = sorted + l->n, *zero = std::lower_bound(sorted, end, O::minus_zero);
    if (zero == end || *zero != O::minus_zero) return;
    const auto *last = std::upper_bound(zero, end, O::zero);
    if (last[-1] != O::zero) return;
    char *to = l->to + (zero - sorted) * l->to_step;
    for (int64_t i = 0; i < l->n; i++) {
        S v = *reinterpret_cast<const S *>(l->from + i * l->from_step);
        if (O::equal(v) != O::zero) continue;
        *reinterpret_cast<S *>(to) = v;
        to += l->to_step;
    }
}

template <class How, class S> void sort_lane(const lane *l, char *room, int64_t capacity) {
    using E = typename How::element;
    E *a = reinterpret_cast<E *>(room), *b = a + capacity;
    radix_counts *counts = reinterpret_cast<radix_counts *>(b + capacity);
    const int64_t grain = l->divide ? SORT_GRAIN : l->n + 1;
    ad_cpu_parallel(l->n, grain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i++) a[i] = How::load(l, i);
    });
    const bool select = has_key<E> && l->kth >= 0 && l->n >= LEAST_SELECTED;
    const E *sorted =
        select ? select_elements(a, b, l->n, l->kth, counts, l->divide) : sort_elements(a, b, l->n, counts, l->divide);
    ad_cpu_parallel(l->n, grain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i++) How::store(l, i, sorted[i]);
    });
    if constexpr (How::mends)
        if (!select) mend_zeros<S>(l, sorted);
}

/* Choose lanes that are sorted where they go to, for rows that follow each other. A copy reads and writes memory in
 * order. A kernel that takes a vector of each row in turn does so only where rows are short. */
ad_sort_lanes moved_rows(const ad_sort_lanes *l, int64_t size) {
    const int64_t row = l->n * size;
    ad_sort_lanes moved = *l;
    if (l->from_step != size || l->to_step != size || l->from_lane != row || l->to_lane != row || row < 256)
        return moved;
    memmove(l->to, l->from, size_t(l->lanes * row));
    moved.from = l->to;
    return moved;
}

/* A run of lanes; by the kernel, if there is one, where enough of them are left for it. */
template <class How, class S> void sort_run(const ad_sort_lanes *run, const ad_sort_kernel *kernel, char *room,
                                            int64_t capacity, int64_t kth, bool divide) {
    const int64_t width = kernel ? kernel->lanes : 1;
    for (int64_t j = 0; j < run->lanes; j += width) {
        const int64_t at = std::min(j, std::max<int64_t>(0, run->lanes - width)); /* the last ones once more */
        ad_sort_lanes l = *run;
        l.from += at * l.from_lane;
        l.to += at * l.to_lane;
        l.lanes = std::min(width, run->lanes - at);
        if (kernel && 4 * l.lanes >= width) {
            const ad_sort_lanes moved = moved_rows(&l, sizeof(S));
            if (kernel->sort(&moved)) continue;
        }
        for (int64_t k = 0; k < l.lanes; k++) {
            const lane one = {l.from + k * l.from_lane, l.to + k * l.to_lane, l.from_step, l.to_step, l.n, kth, divide};
            sort_lane<How, S>(&one, room, capacity);
        }
    }
}

template <class How, class S>
int sort_lanes(ad_call *c, int axis, const array *out, const array *x, const ad_sort_kernel *kernel) {
    using E = typename How::element;
    const int64_t kth =
        c->op->row == AD_CALL_partition || c->op->row == AD_CALL_argpartition ? c->op->param[1].as.i : -1;
    const walk<2> lanes = walk_of(*out, *x, axis);
    const int64_t n = out->shape[axis], capacity = (n + 7) / 8 * 8;
    const bool divide = n >= LONG_LANE && lanes.count < ad_cpu_parallel_threads();
    const int chunks = divide ? RADIX_CHUNKS : 1;
    const int64_t counts = int64_t(sizeof(radix_counts::at[0])) * chunks;
    rooms r;
    int status = rooms_init(c, &r, 2 * capacity * int64_t(sizeof(E)) + counts, !divide && lanes.count > 1);
    if (status) return status;
    if (n > AD_SORT_MOST || !kernel->sort) kernel = nullptr;
    c->run->wrote = true;
    const int64_t grain = std::max<int64_t>(kernel ? kernel->lanes : 1, SORT_GRAIN / n);
    ad_cpu_parallel(lanes.count, divide ? lanes.count + 1 : grain, [&](int64_t begin, int64_t end) {
        int which;
        char *room = r.take(&which);
        lanes.runs(begin, end, [&](const int64_t(&at)[2], int64_t length, int64_t) {
            const ad_sort_lanes run = {x->data + at[1],
                                       out->data + at[0],
                                       lanes.inner(1),
                                       lanes.inner(0),
                                       x->stride[axis],
                                       out->stride[axis],
                                       n,
                                       length};
            sort_run<How, S>(&run, kernel, room, capacity, kth, divide);
            return true;
        });
        r.leave(which);
    });
    return 0;
}

template <class S, bool Indices> int sort_type(ad_call *c, int axis, const array *out, const array *x) {
    const ad_cpu_kernels *k = ad_cpu_kernels_get();
    const ad_sort_kernel *kernel = (Indices ? k->argsort : k->sort) + dtype_of<S>::value;
    if constexpr (is_complex<S>) {
        if constexpr (Indices) return sort_lanes<sort_complex_indices<S>, S>(c, axis, out, x, kernel);
        else return sort_lanes<sort_complex<S>, S>(c, axis, out, x, kernel);
    } else if constexpr (!Indices) return sort_lanes<sort_values<S>, S>(c, axis, out, x, kernel);
    else if constexpr (sizeof(S) <= 4) {
        if (out->shape[axis] <= int64_t(UINT32_MAX))
            return sort_lanes<sort_indices<S, uint32_t, uint32_t>, S>(c, axis, out, x, kernel);
        return sort_lanes<sort_indices<S, uint64_t, uint64_t>, S>(c, axis, out, x, kernel);
    } else return sort_lanes<sort_indices<S, uint64_t, uint64_t>, S>(c, axis, out, x, kernel);
}

template <bool Indices> int sort_call(ad_call *c) {
    array x, out;
    const int dtype = c->op->loop, axis = int(c->op->param[0].as.i);
    int status;
    if ((status = ad_call_input(c, 0, dtype, &x)) || (status = ad_call_output(c, 0, Indices ? AD_INT64 : dtype, &out)))
        return status;
    if (count(out) == 0) return 0;
    status = visit(dtype, [&](auto t) { return sort_type<typename decltype(t)::type, Indices>(c, axis, &out, &x); });
    return status ? status : ad_call_finish(c, 0, &out);
}

/* Pick the elements that have been found to stand at `places`, and number the places from `first` on. */
template <class S> void take_places(const array &x, int64_t first, const array &out, const array &places) {
    ad_cpu_parallel(x.shape[0], SORT_GRAIN, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i++) {
            int64_t *place = reinterpret_cast<int64_t *>(places.data + i * places.stride[0]);
            *reinterpret_cast<S *>(out.data + i * out.stride[0]) =
                *reinterpret_cast<const S *>(x.data + *place * x.stride[0]);
            *place += first;
        }
    });
}

template <class S> int sort_and_place(ad_call *c, const array &x, const array &out, const array &places) {
    const int status = sort_type<S, true>(c, 0, &places, &x);
    if (!status) take_places<S>(x, c->op->param[0].as.i, out, places);
    return status;
}

} // namespace

int ad_call_sort_places(ad_call *c) {
    array x, out, places;
    const int dtype = c->op->loop;
    int status = ad_call_input(c, 0, dtype, &x);
    if (!status) status = ad_call_output(c, 0, dtype, &out);
    if (!status) status = ad_call_output(c, 1, AD_INT64, &places);
    if (status || count(out) == 0) return status;
    status = visit(dtype, [&](auto t) { return sort_and_place<typename decltype(t)::type>(c, x, out, places); });
    if (!status) status = ad_call_finish(c, 0, &out);
    return status ? status : ad_call_finish(c, 1, &places);
}

int ad_call_sort(ad_call *c) { return sort_call<false>(c); }
int ad_call_argsort(ad_call *c) { return sort_call<true>(c); }
int ad_call_partition(ad_call *c) { return sort_call<false>(c); }
int ad_call_argpartition(ad_call *c) { return sort_call<true>(c); }
