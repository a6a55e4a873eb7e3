/* sort and argsort. Short lanes of real types are sorted many at once (isa/sort.cpp). Else real types are sorted as
 * unsigned keys (call_order.h), by radix where there are many; complex ones by merging. */
#include "kernels/call.h"

#include <atomic>
#include <stdlib.h>
#include <string.h>

#include "kernels/call_order.h"
#include "kernels/cpu/call/radix.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/backend/parallel.h"

namespace {

using namespace ad;

constexpr int64_t RUN = 16;             /* elements that are sorted before merging */
constexpr int64_t LONG_LANE = 1 << 16;  /* elements from which one lane is sorted by all threads */
constexpr int64_t SORT_GRAIN = 1 << 12; /* elements */
constexpr int MAX_ROOMS = 256;

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
    int64_t from_step, to_step, n;
    bool divide; /* among threads */
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
    const E *sorted = sort_elements(a, b, l->n, counts, l->divide);
    ad_cpu_parallel(l->n, grain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i++) How::store(l, i, sorted[i]);
    });
    if constexpr (How::mends) mend_zeros<S>(l, sorted);
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
template <class How, class S>
void sort_run(const ad_sort_lanes *run, const ad_sort_kernel *kernel, char *room, int64_t capacity, bool divide) {
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
            const lane one = {l.from + k * l.from_lane, l.to + k * l.to_lane, l.from_step, l.to_step, l.n, divide};
            sort_lane<How, S>(&one, room, capacity);
        }
    }
}

template <class How, class S>
int sort_lanes(ad_call *c, int axis, const array *out, const array *x, const ad_sort_kernel *kernel) {
    using E = typename How::element;
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
            sort_run<How, S>(&run, kernel, room, capacity, divide);
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
/* Sorting partitions at every place. */
int ad_call_partition(ad_call *c) { return sort_call<false>(c); }
int ad_call_argpartition(ad_call *c) { return sort_call<true>(c); }
