/* Filters along one axis: correlate1d and window1d.
 *
 * An array is cut into tiles: so many neighbouring lanes, so many elements of each. A tile is copied with what its
 * windows reach beyond it, lane beside lane. So the same loop over memory in order serves every axis. */
#include "kernels/call.h"

#include <algorithm>
#include <string.h>

#include "kernels/call_order.h"
#include "kernels/cpu/backend/parallel.h"
#include "kernels/cpu/isa/filter.h"
#include "kernels/cpu/kernels.h"
#include "kernels/ndimage.h"

namespace {

using namespace ad;

constexpr int64_t LANES = 32;      /* lines of a tile at most */
constexpr int64_t RESULTS = 2048;  /* elements of a tile at most */
constexpr int64_t REACH = 2048;    /* elements beyond a tile that one pass reads at most */
constexpr int64_t GRAIN = 1 << 15; /* products */

/* An array of (outer, n, inner) elements without gaps, of which windows of `size` go along n. */
struct lines {
    const char *x;
    array out;
    int axis, mode;
    int64_t outer, n, inner, size, before;
    alignas(16) char value[16];

    int64_t lanes() const { return std::min(inner, LANES); }
    int64_t chunk() const { return std::min(n, RESULTS / lanes()); }
    int64_t taps() const { return std::min(size, REACH / lanes()); } /* of a window in one pass */
    int64_t groups() const { return (inner + lanes() - 1) / lanes(); }
    int64_t chunks() const { return (n + chunk() - 1) / chunk(); }
};

/* A tile: `count` elements of each of `lanes` lanes, from element `first` on. */
struct tile {
    int64_t outer, lane, lanes, first, count;
};

tile find_tile(const lines *l, int64_t unit) {
    tile t;
    t.first = unit % l->chunks() * l->chunk();
    t.count = std::min(l->chunk(), l->n - t.first);
    unit /= l->chunks();
    t.lane = unit % l->groups() * l->lanes();
    t.lanes = std::min(l->lanes(), l->inner - t.lane);
    t.outer = unit / l->groups();
    return t;
}

/* Copy `count` elements of each lane of the tile, from place `from` on, which may be beyond the edges. */
template <class T> void load_tile(const lines *l, const tile *t, int64_t from, int64_t count, T *to) {
    const T *x = reinterpret_cast<const T *>(l->x) + t->outer * l->n * l->inner + t->lane;
    const T value = *reinterpret_cast<const T *>(l->value);
    for (int64_t i = 0; i < count; i++, to += t->lanes) {
        const int64_t at = find_edge(from + i, l->n, l->mode);
        if (at >= 0 && at == from + i && l->inner == 1) {
            const int64_t many = std::min(count - i, l->n - at);
            memcpy(to, x + at, size_t(many) * sizeof(T));
            i += many - 1;
            to += many - 1;
        } else if (at < 0) std::fill(to, to + t->lanes, value);
        else memcpy(to, x + at * l->inner, size_t(t->lanes) * sizeof(T));
    }
}

/* Put n results of one lane where they belong, `step` bytes apart. */
template <class T> void store_lane(char *to, int64_t step, const T *from, int64_t n) {
    if (step == int64_t(sizeof(T))) memcpy(to, from, size_t(n) * sizeof(T));
    else
        for (int64_t i = 0; i < n; i++) *reinterpret_cast<T *>(to + i * step) = from[i];
}

/* Put the tile's results where they belong. */
template <class T> void store_tile(const lines *l, const tile *t, const walk<1> *places, const T *from) {
    char *line = nullptr;
    places->runs(t->outer * l->inner + t->lane, t->outer * l->inner + t->lane + t->lanes,
                 [&](const int64_t(&at)[1], int64_t many, int64_t place) {
                     const int64_t lane = place - t->outer * l->inner - t->lane, step = l->out.stride[l->axis];
                     if (t->lanes == 1) {
                         store_lane(l->out.data + at[0] + t->first * step, step, from, t->count);
                         return true;
                     }
                     for (int64_t i = 0; i < t->count; i++) {
                         line = l->out.data + at[0] + (t->first + i) * step;
                         const T *v = from + i * t->lanes + lane;
                         if (places->inner(0) == int64_t(sizeof(T))) memcpy(line, v, size_t(many) * sizeof(T));
                         else
                             for (int64_t j = 0; j < many; j++)
                                 *reinterpret_cast<T *>(line + j * places->inner(0)) = v[j];
                     }
                     return true;
                 });
}

/* ---- correlate1d ---- */

/* Add: sum[i] += w[j] * x[i + j*step] over taps j. */
template <class T> void add_taps(T *sum, int64_t n, const T *x, int64_t step, const T *w, int64_t taps) {
    for (int64_t j = 0; j < taps; j++)
        for (int64_t i = 0; i < n; i++) sum[i] = sum[i] + w[j] * x[j * step + i];
}
void add_taps(float *sum, int64_t n, const float *x, int64_t step, const float *w, int64_t taps) {
    ad_cpu_kernels_get()->filter->add_float(sum, n, x, step, w, taps);
}
void add_taps(double *sum, int64_t n, const double *x, int64_t step, const double *w, int64_t taps) {
    ad_cpu_kernels_get()->filter->add_double(sum, n, x, step, w, taps);
}

template <class T> struct weighing {
    const T *w;
    void begin(T *sum, int64_t n) const { std::fill(sum, sum + n, T(0)); }
    void take(T *sum, int64_t n, T *x, int64_t step, int64_t first, int64_t taps) const {
        add_taps(sum, n, x, step, w + first, taps);
    }
};

/* ---- window1d ---- */

template <class T, int What> T combine(T a, T b) {
    if constexpr (What == AD_WINDOW_SUM) return a + b;
    else if constexpr (What == AD_WINDOW_MIN) return b < a || b != b ? b : a;
    else return a < b || b != b ? b : a;
}

/* Sums of 1, 2, 4 ... neighbours are made in place, and those that make up the window are added. For minima and maxima
 * two that overlap are enough. */
template <class T, int What> struct combining {
    void begin(T *, int64_t) const {}
    void take(T *sum, int64_t n, T *x, int64_t step, int64_t first, int64_t taps) const {
        int64_t have = 1, done = 0, length = n + (taps - 1) * step;
        const auto merge = [&](int64_t at) {
            if (first == 0 && done == 0) std::copy(x + at, x + at + n, sum);
            else
                for (int64_t i = 0; i < n; i++) sum[i] = combine<T, What>(sum[i], x[i + at]);
        };
        for (;; have *= 2) {
            if (What == AD_WINDOW_SUM && (taps & have)) {
                merge(done * step);
                done += have;
            }
            if (2 * have > taps) break;
            length -= have * step;
            for (int64_t i = 0; i < length; i++) x[i] = combine<T, What>(x[i], x[i + have * step]);
        }
        if (What == AD_WINDOW_SUM) return;
        merge(0);
        done = have;
        if (taps > have) merge((taps - have) * step);
    }
};

/* ---- both ---- */

template <class T, class F> void filter_lines(const lines *l, F f) {
    const walk<1> places = walk_of(l->out, l->axis);
    const int64_t units = l->outer * l->groups() * l->chunks();
    const int64_t cost = l->chunk() * l->lanes() * std::min(l->size, GRAIN);
    ad_cpu_parallel(units, std::max(int64_t(1), GRAIN / cost), [&](int64_t begin, int64_t end) {
        alignas(64) T x[RESULTS + REACH], sum[RESULTS];
        for (int64_t u = begin; u < end; u++) {
            const tile t = find_tile(l, u);
            f.begin(sum, t.count * t.lanes);
            for (int64_t j = 0; j < l->size; j += l->taps()) {
                const int64_t taps = std::min(l->taps(), l->size - j);
                if (j > 0) ad_cpu_check_cancelled();
                load_tile(l, &t, t.first + j - l->before, t.count + taps - 1, x);
                f.take(sum, t.count * t.lanes, x, t.lanes, j, taps);
            }
            store_tile(l, &t, &places, sum);
        }
    });
}

int open_lines(ad_call *c, int64_t size, int64_t before, int mode, const ad_scalar *value, lines *l) {
    array x;
    int status;
    if ((status = ad_call_input_packed(c, 0, c->op->loop, &x)) || (status = ad_call_output(c, 0, c->op->loop, &l->out)))
        return status;
    l->x = x.data;
    l->axis = int(c->op->param[0].as.i);
    l->mode = mode;
    l->outer = count(x, 0, l->axis);
    l->n = x.shape[l->axis];
    l->inner = count(x, l->axis + 1, x.ndim);
    l->size = size;
    l->before = before;
    ad_scalar_store(value, c->op->loop, l->value);
    return 0;
}

template <class T> constexpr bool is_summed = is_float<T> || is_complex<T>;

template <class T> void combine_lines(const lines *l, int64_t what) {
    if constexpr (is_summed<T>)
        if (what == AD_WINDOW_SUM) return filter_lines<T>(l, combining<T, AD_WINDOW_SUM>{});
    if constexpr (!is_complex<T>) {
        if (what == AD_WINDOW_MIN) filter_lines<T>(l, combining<T, AD_WINDOW_MIN>{});
        else filter_lines<T>(l, combining<T, AD_WINDOW_MAX>{});
    }
}

} // namespace

int ad_call_correlate1d(ad_call *c) {
    const ad_scalar *param = c->op->param;
    array w;
    lines l;
    int status = ad_call_input_packed(c, 1, c->op->loop, &w);
    if (status || (status = open_lines(c, w.shape[0], param[3].as.i, int(param[1].as.i), &param[2], &l))) return status;
    if (count(l.out) == 0) return 0;
    c->run->wrote = true;
    visit(c->op->loop, [&](auto t) {
        using S = typename decltype(t)::type;
        if constexpr (is_summed<S>) filter_lines<S>(&l, weighing<S>{reinterpret_cast<const S *>(w.data)});
    });
    return ad_call_finish(c, 0, &l.out);
}

int ad_call_window1d(ad_call *c) {
    const ad_scalar *param = c->op->param;
    lines l;
    int status = open_lines(c, param[2].as.i, param[5].as.i, int(param[3].as.i), &param[4], &l);
    if (status) return status;
    if (count(l.out) == 0) return 0;
    c->run->wrote = true;
    visit(c->op->loop, [&](auto t) { combine_lines<typename decltype(t)::type>(&l, param[1].as.i); });
    return ad_call_finish(c, 0, &l.out);
}
