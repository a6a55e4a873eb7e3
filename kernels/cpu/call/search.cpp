/* searchsorted, bincount and histogram. */
#include "kernels/call.h"

#include <algorithm>
#include <atomic>
#include <string.h>
#include <type_traits>

#include "kernels/call_order.h"
#include "kernels/cpu/backend/parallel.h"
#include "kernels/histogram.h"

namespace {

using namespace ad;

constexpr int64_t SEARCH_GRAIN = 1 << 11;
constexpr int64_t COUNT_GRAIN = 1 << 16;
constexpr int64_t OWN_BINS = 1 << 14;     /* bins up to which every thread counts into a table of its own */
constexpr int64_t MOST_LISTED = 1 << 14;  /* integers up to which places are listed */
constexpr int64_t MOST_GUESSED = 1 << 16; /* bins up to which one is computed, not searched for */
constexpr int GROUP = 8;                  /* searches that go on together: their memory accesses overlap */
constexpr int64_t FOLLOWED = 8;           /* elements that are looked at behind the place of the value before */

/* Tell whether `e`, of the sorted array, lies before the place of `v`. */
template <bool Right, class S> inline bool before(S e, S v) { return Right ? !sorts_before(v, e) : sorts_before(e, v); }

template <bool Right, class S> void search_group(const S *x, int64_t n, const S *v, int m, int64_t *place) {
    int64_t length = n;
    for (int k = 0; k < m; k++) place[k] = 0;
    while (length > 1) {
        int64_t half = length / 2;
        for (int k = 0; k < m; k++) place[k] += before<Right>(x[place[k] + half - 1], v[k]) ? half : 0;
        length -= half;
    }
    if (n > 0)
        for (int k = 0; k < m; k++) place[k] += before<Right>(x[place[k]], v[k]);
}

/* Values that ascend in small steps are found from the place of the one before: a few elements further on. False where
 * one is not. */
template <bool Right, class S>
bool follow_group(const S *x, int64_t n, const S *v, int m, int64_t from, int64_t *place) {
    if (from > 0 && !before<Right>(x[from - 1], v[0])) return false;
    for (int k = 0; k < m; k++) {
        if (k > 0 && sorts_before(v[k], v[k - 1])) return false;
        const int64_t last = n - from < FOLLOWED ? n : from + FOLLOWED;
        while (from < last && before<Right>(x[from], v[k])) from++;
        if (from == last && from < n) return false;
        place[k] = from;
    }
    return true;
}

template <bool Right, class S> void search(const array *x, const array *v, const array *out) {
    const walk<2> w = walk_of(*out, *v);
    const int64_t out_step = w.inner(0), v_step = w.inner(1);
    ad_cpu_parallel(w.count, SEARCH_GRAIN, [&](int64_t begin, int64_t end) {
        int64_t last = 0;
        w.runs(begin, end, [&](const int64_t(&at)[2], int64_t n, int64_t) {
            S value[GROUP];
            int64_t place[GROUP];
            for (int64_t i = 0; i < n; i += GROUP) {
                int m = n - i < GROUP ? int(n - i) : GROUP;
                for (int k = 0; k < m; k++) value[k] = *reinterpret_cast<S *>(v->data + at[1] + (i + k) * v_step);
                const S *sorted = reinterpret_cast<const S *>(x->data);
                if (!follow_group<Right>(sorted, x->shape[0], value, m, last, place))
                    search_group<Right>(sorted, x->shape[0], value, m, place);
                last = place[m - 1];
                for (int k = 0; k < m; k++)
                    *reinterpret_cast<int64_t *>(out->data + at[0] + (i + k) * out_step) = place[k];
            }
            return true;
        });
    });
}

/* Places of all integers between the first and the last element, one after another. */
template <bool Right, class S> void list_places(const S *sorted, int64_t n, S first, int64_t range, int64_t *list) {
    int64_t j = 0;
    for (int64_t t = 0; t <= range; t++) {
        while (j < n && before<Right>(sorted[j], S(uint64_t(first) + uint64_t(t)))) j++;
        list[t] = j;
    }
}

/* Many integers in an array of few that lie near each other: each is looked up in a list. *done: whether it was so.
 * AD_E_MEMORY. */
template <bool Right, class S>
int search_list(ad_call *c, const array *x, const array *v, const array *out, bool *done) {
    const S *sorted = reinterpret_cast<const S *>(x->data);
    const int64_t n = x->shape[0];
    *done = false;
    if (n < 2) return 0;
    const S first = sorted[0], last = sorted[n - 1];
    const uint64_t range = uint64_t(last) - uint64_t(first);
    if (last < first || range >= MOST_LISTED || uint64_t(count(*v)) / 4 < range) return 0;
    int64_t *list = static_cast<int64_t *>(ad_call_workspace(c, (range + 1) * 8));
    if (!list) return AD_E_MEMORY;
    c->run->wrote = true;
    list_places<Right>(sorted, n, first, int64_t(range), list);
    const walk<2> w = walk_of(*out, *v);
    const int64_t out_step = w.inner(0), v_step = w.inner(1);
    ad_cpu_parallel(w.count, SEARCH_GRAIN, [&](int64_t begin, int64_t end) {
        w.runs(begin, end, [&](const int64_t(&at)[2], int64_t m, int64_t) {
            for (int64_t i = 0; i < m; i++) {
                const S e = *reinterpret_cast<const S *>(v->data + at[1] + i * v_step);
                *reinterpret_cast<int64_t *>(out->data + at[0] + i * out_step) =
                    e < first  ? 0
                    : e > last ? n
                               : list[uint64_t(e) - uint64_t(first)];
            }
            return true;
        });
    });
    *done = true;
    return 0;
}

template <bool Right, class S> int search_type(ad_call *c, const array *x, const array *v, const array *out) {
    bool done = false;
    int status = 0;
    if constexpr (std::is_integral_v<S>) status = search_list<Right, S>(c, x, v, out, &done);
    if (status || done) return status;
    c->run->wrote = true;
    search<Right, S>(x, v, out);
    return 0;
}

/* ---- bincount ---- */

int64_t value_at(const array *x, int64_t i) { return *reinterpret_cast<const int64_t *>(x->data + i * x->stride[0]); }

/* Whether values are from 0 to below bins, without a branch for each. */
template <class F> bool all_below(F value, int64_t begin, int64_t end, int64_t bins) {
    uint64_t signs = 0;
    for (int64_t i = begin; i < end; i++) signs |= uint64_t(value(i)) | (uint64_t(bins - 1) - uint64_t(value(i)));
    return signs >> 63 == 0;
}

/* f(values), a function of the place: values that lie side by side are read with a step that the compiler knows. */
template <class F> inline void with_values(const array *x, F f) {
    const char *data = x->data;
    const int64_t step = x->stride[0];
    if (step == 8) f([=](int64_t i) { return reinterpret_cast<const int64_t *>(data)[i]; });
    else f([=](int64_t i) { return *reinterpret_cast<const int64_t *>(data + i * step); });
}

/* The first of the values begin .. end - 1 that is out of bounds; end where none is. */
int64_t find_wrong(const array *x, int64_t begin, int64_t end, int64_t bins) {
    int64_t i = begin;
    with_values(x, [&](auto value) {
        if (all_below(value, begin, end, bins)) i = end;
        while (i < end && uint64_t(value(i)) < uint64_t(bins)) i++;
    });
    return i;
}

int check_values(ad_call *c, const array *x, int64_t n, int64_t bins) {
    std::atomic<int64_t> bad{n};
    ad_cpu_parallel(n, COUNT_GRAIN, [&](int64_t begin, int64_t end) {
        const int64_t i = find_wrong(x, begin, end, bins);
        int64_t old = bad.load();
        while (i < end && i < old && !bad.compare_exchange_weak(old, i)) {}
    });
    if (bad.load() == n) return 0;
    int64_t value = value_at(x, bad.load());
    if (value < 0) return ad__fault(c->fault, AD_E_VALUE, "'list' argument must have no negative elements");
    return ad__fault(c->fault, AD_E_VALUE, "bincount: the value %lld is not below the number of bins, %lld",
                     (long long)value, (long long)bins);
}

/* Count values begin .. end - 1 in a table of four parts, so that equal ones that follow one another do not wait. */
void count_values(const array *x, int64_t begin, int64_t end, int64_t bins, int64_t *table) {
    with_values(x, [&](auto value) {
        int64_t i = begin;
        for (; i + 4 <= end; i += 4)
            for (int64_t k = 0; k < 4; k++) table[k * bins + value(i + k)]++;
        for (; i < end; i++) table[value(i)]++;
    });
}

/* Tables of their own for pieces of the input, added at the end. */
int count_pieces(ad_call *c, const array *x, int64_t n, const array *out, int64_t bins) {
    const int64_t pieces = std::min<int64_t>(ad_cpu_parallel_threads(), (n + COUNT_GRAIN - 1) / COUNT_GRAIN);
    const int64_t piece = (n + pieces - 1) / pieces, tables = 4 * pieces;
    int64_t *table = static_cast<int64_t *>(ad_call_workspace(c, uint64_t(tables * bins) * 8));
    if (!table) return AD_E_MEMORY;
    memset(table, 0, size_t(tables * bins) * 8);
    ad_cpu_parallel(pieces, 1, [&](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; p++)
            ad_cpu_in_order(std::max<int64_t>(std::min(piece, n - p * piece), 0), [&](int64_t first, int64_t last) {
                count_values(x, p * piece + first, p * piece + last, bins, table + 4 * p * bins);
            });
    });
    c->run->wrote = true;
    for (int64_t b = 0; b < bins; b++) {
        int64_t sum = 0;
        for (int64_t p = 0; p < tables; p++) sum += table[p * bins + b];
        *reinterpret_cast<int64_t *>(out->data + b * out->stride[0]) = sum;
    }
    return 0;
}

/* Add weights one after another, so in the order of the input. */
void add_weights(const array *x, int64_t n, const array *weights, const array *out, int64_t bins) {
    const int64_t step = out->stride[0], weight_step = weights->stride[0];
    char *to = out->data;
    const char *from = weights->data;
    for (int64_t b = 0; b < bins; b++) *reinterpret_cast<double *>(to + b * step) = 0;
    ad_cpu_in_order(n, [&](int64_t begin, int64_t end) {
        with_values(x, [&](auto value) {
            if (step == 8 && weight_step == 8)
                for (int64_t i = begin; i < end; i++)
                    reinterpret_cast<double *>(to)[value(i)] += reinterpret_cast<const double *>(from)[i];
            else
                for (int64_t i = begin; i < end; i++)
                    *reinterpret_cast<double *>(to + value(i) * step) +=
                        *reinterpret_cast<const double *>(from + i * weight_step);
        });
    });
}

/* Count values one after another. */
void count_serial(const array *x, int64_t n, const array *out, int64_t bins) {
    const int64_t step = out->stride[0];
    for (int64_t b = 0; b < bins; b++) *reinterpret_cast<int64_t *>(out->data + b * step) = 0;
    ad_cpu_in_order(n, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i++) ++*reinterpret_cast<int64_t *>(out->data + value_at(x, i) * step);
    });
}

/* ---- histogram ---- */

/* Add the elements begin .. end - 1 of x to their bins. */
template <class T>
void count_bins(const array *x, int64_t begin, int64_t end, const bin_guess<T> &g, const array *edges, int64_t *table) {
    const T *edge = reinterpret_cast<const T *>(edges->data);
    const int64_t bins = edges->shape[0] - 1;
    for (int64_t i = begin; i < end; i++) {
        const T v = *reinterpret_cast<const T *>(x->data + i * x->stride[0]);
        int64_t near;
        const int64_t bin = g.guess(v, &near) ? near : find_bin(v, edge, bins);
        if (uint64_t(bin) < uint64_t(bins)) table[bin]++;
    }
}

/* Count into `pieces` tables of their own, one behind the other. */
template <class T> void fill_tables(const array *x, const array *edges, int64_t pieces, int64_t *table) {
    const T *edge = reinterpret_cast<const T *>(edges->data);
    const int64_t n = x->shape[0], bins = edges->shape[0] - 1, piece = (n + pieces - 1) / pieces;
    bin_guess<T> g(edge, bins);
    T error = bins < MOST_GUESSED ? T(0) : T(1);
    for (int64_t i = 0; i <= bins; i++) error = g.error(edge[i], i) > error ? g.error(edge[i], i) : error;
    g.trust(error);
    ad_cpu_parallel(pieces, 1, [&](int64_t first, int64_t last) {
        for (int64_t p = first; p < last; p++) {
            const int64_t end = std::min(n, (p + 1) * piece);
            for (int64_t i = p * piece; i < end; i += COUNT_GRAIN) {
                ad_cpu_check_cancelled();
                count_bins(x, i, std::min(end, i + COUNT_GRAIN), g, edges, table + p * bins);
            }
        }
    });
}

} // namespace

int ad_call_histogram(ad_call *c) {
    array x, edges, out;
    const int dtype = c->op->loop;
    int status;
    if ((status = ad_call_input(c, 0, dtype, &x)) || (status = ad_call_input_packed(c, 1, dtype, &edges)) ||
        (status = ad_call_output(c, 0, AD_INT64, &out)))
        return status;
    const int64_t bins = out.shape[0], all = x.shape[0] / COUNT_GRAIN;
    if (bins == 0) return 0;
    const int64_t pieces = bins > OWN_BINS ? 1 : std::clamp<int64_t>(all, 1, ad_cpu_parallel_threads());
    int64_t *table = static_cast<int64_t *>(ad_call_workspace(c, uint64_t(pieces * bins) * 8));
    if (!table) return AD_E_MEMORY;
    memset(table, 0, size_t(pieces * bins) * 8);
    if (dtype == AD_FLOAT32) fill_tables<float>(&x, &edges, pieces, table);
    else fill_tables<double>(&x, &edges, pieces, table);
    c->run->wrote = true;
    for (int64_t b = 0; b < bins; b++) {
        int64_t sum = 0;
        for (int64_t p = 0; p < pieces; p++) sum += table[p * bins + b];
        *reinterpret_cast<int64_t *>(out.data + b * out.stride[0]) = sum;
    }
    return ad_call_finish(c, 0, &out);
}

int ad_call_searchsorted(ad_call *c) {
    array x, v, out;
    const int dtype = c->op->loop;
    int status;
    if ((status = ad_call_input_packed(c, 0, dtype, &x)) || (status = ad_call_input(c, 1, dtype, &v)) ||
        (status = ad_call_output(c, 0, AD_INT64, &out)))
        return status;
    status = visit(dtype, [&](auto t) {
        using S = typename decltype(t)::type;
        return c->op->param[0].as.b ? search_type<true, S>(c, &x, &v, &out) : search_type<false, S>(c, &x, &v, &out);
    });
    return status ? status : ad_call_finish(c, 0, &out);
}

int ad_call_bincount(ad_call *c) {
    array x, weights, out;
    const bool weighted = c->op->nin > 1;
    int status;
    if ((status = ad_call_input(c, 0, AD_INT64, &x)) ||
        (weighted && (status = ad_call_input(c, 1, AD_FLOAT64, &weights))) ||
        (status = ad_call_output(c, 0, weighted ? AD_FLOAT64 : AD_INT64, &out)))
        return status;
    const int64_t n = x.shape[0], bins = out.shape[0];
    if ((status = check_values(c, &x, n, bins))) return status;
    if (!weighted && bins <= OWN_BINS && n / 8 > bins) {
        if ((status = count_pieces(c, &x, n, &out, bins))) return status;
        return ad_call_finish(c, 0, &out);
    }
    c->run->wrote = true;
    if (weighted) add_weights(&x, n, &weights, &out, bins);
    else count_serial(&x, n, &out, bins);
    return ad_call_finish(c, 0, &out);
}
