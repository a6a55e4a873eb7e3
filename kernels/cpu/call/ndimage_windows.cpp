/* Filters with windows of any shape, which are lists of offsets: correlate, rank_filter and grey_filter.
 *
 * A block of neighbouring results of a row is made at a time. For each offset of the window there is a run of elements
 * that stand side by side. It is in the array itself or, near an edge, in a copy. */
#include "kernels/call.h"

#include <algorithm>
#include <string.h>
#include <vector>

#include "kernels/call_order.h"
#include "kernels/cpu/backend/parallel.h"
#include "kernels/ndimage.h"

namespace {

using namespace ad;

constexpr int64_t BLOCK = 512; /* results of a row made together */
constexpr int64_t SORTED = 64; /* elements of a window up to which a network sorts blocks of LANES windows */
constexpr int64_t LANES = 32;
constexpr int64_t GRAIN = 1 << 16; /* elements of windows */
constexpr int64_t GATHERED = 16;   /* larger windows that are gathered side by side */

/* An array without gaps, its rows, and the window's offsets, of which nobody can write this copy. */
struct windows {
    array x, out;
    int64_t taps, row, rows, blocks; /* row: elements; blocks: of a row */
    int64_t block;
    const int64_t *offset;
    int mode;
    alignas(16) char value[16];
};

/* A block of results: the row's place on each axis but the last, and which elements of it. */
struct block {
    int64_t at[AD_MAX_NDIM], first, n;
    char *out;
};

void find_block(const windows *w, int64_t unit, block *b) {
    const int last = w->x.ndim - 1;
    b->first = unit % w->blocks * w->block;
    b->n = std::min(w->block, w->row - b->first);
    b->out = w->out.data + b->first * w->out.stride[last];
    unit /= w->blocks;
    for (int i = last - 1; i >= 0; i--) {
        b->at[i] = unit % w->x.shape[i];
        unit /= w->x.shape[i];
        b->out += b->at[i] * w->out.stride[i];
    }
}

/* The elements that the block's windows have at an offset; buffer: room for them. */
template <class T> const T *load_tap(const windows *w, const block *b, int64_t tap, T *buffer) {
    const int last = w->x.ndim - 1;
    const int64_t *offset = w->offset + tap * w->x.ndim;
    const T value = *reinterpret_cast<const T *>(w->value);
    int64_t row = 0;
    for (int i = 0; i < last; i++) {
        const int64_t at = find_edge(b->at[i] + offset[i], w->x.shape[i], w->mode);
        if (at < 0) {
            std::fill(buffer, buffer + b->n, value);
            return buffer;
        }
        row = row * w->x.shape[i] + at;
    }
    const T *x = reinterpret_cast<const T *>(w->x.data) + row * w->row;
    const int64_t from = b->first + offset[last];
    if (from >= 0 && from + b->n <= w->row) return x + from;
    const int64_t inner = std::clamp(-from, int64_t(0), b->n), behind = std::clamp(w->row - from, inner, b->n);
    const auto fill = [&](int64_t i, int64_t end) {
        for (; i < end; i++) {
            const int64_t at = find_edge(from + i, w->row, w->mode);
            buffer[i] = at < 0 ? value : x[at];
        }
    };
    fill(0, inner);
    if (behind > inner) memcpy(buffer + inner, x + from + inner, size_t(behind - inner) * sizeof(T));
    fill(behind, b->n);
    return buffer;
}

template <class T> void store_block(const windows *w, const block *b, const T *from) {
    const int64_t step = w->out.stride[w->x.ndim - 1];
    for (int64_t i = 0; i < b->n; i++) *reinterpret_cast<T *>(b->out + i * step) = from[i];
}

/* Call make(block) for every block of results. */
template <class F> void make_blocks(const windows *w, F make) {
    const int64_t cost = w->block * std::min(w->taps, GRAIN);
    ad_cpu_parallel(w->rows * w->blocks, std::max(int64_t(1), GRAIN / cost), [&](int64_t begin, int64_t end) {
        block b;
        for (int64_t u = begin; u < end; u++) {
            ad_cpu_check_cancelled();
            find_block(w, u, &b);
            make(&b);
        }
    });
}

int copy_offsets(ad_call *c, windows *w) {
    array offsets;
    int status = ad_call_input(c, 1, AD_INT64, &offsets);
    if (status) return status;
    w->taps = offsets.shape[0];
    int64_t *to = static_cast<int64_t *>(ad_call_workspace(c, uint64_t(count(offsets)) * 8));
    if (!to) return AD_E_MEMORY;
    w->offset = to;
    for (int64_t k = 0; k < w->taps; k++)
        for (int i = 0; i < w->x.ndim; i++)
            *to++ = limit_offset(
                *reinterpret_cast<const int64_t *>(offsets.data + k * offsets.stride[0] + i * offsets.stride[1]));
    return 0;
}

int open_windows(ad_call *c, int mode, const ad_scalar *value, int64_t block, windows *w) {
    int status;
    if ((status = ad_call_input_packed(c, 0, c->op->loop, &w->x)) ||
        (status = ad_call_output(c, 0, c->op->loop, &w->out)) || (status = copy_offsets(c, w)))
        return status;
    w->mode = mode;
    w->row = w->x.shape[w->x.ndim - 1];
    w->rows = count(w->x, 0, w->x.ndim - 1);
    w->block = std::min(block, std::max(w->row, int64_t(1)));
    w->blocks = (w->row + w->block - 1) / w->block;
    ad_scalar_store(value, c->op->loop, w->value);
    return 0;
}

/* ---- correlate ---- */

/* Four taps one after another, between which sums stay in registers. */
template <class T> void add_four(T *__restrict sum, int64_t n, const T *weight, const T *const (&x)[4]) {
    const T a = weight[0], b = weight[1], c = weight[2], d = weight[3];
    const T *p = x[0], *q = x[1], *r = x[2], *s = x[3];
    for (int64_t i = 0; i < n; i++) sum[i] = sum[i] + a * p[i] + b * q[i] + c * r[i] + d * s[i];
}

template <class T> void add_windows(const windows *w, const T *weight) {
    make_blocks(w, [&](const block *b) {
        alignas(64) T sum[BLOCK], buffer[4][BLOCK];
        std::fill(sum, sum + b->n, T(0));
        int64_t k = 0;
        for (; k + 4 <= w->taps; k += 4) {
            const T *four[4];
            for (int j = 0; j < 4; j++) four[j] = load_tap(w, b, k + j, buffer[j]);
            add_four(sum, b->n, weight + k, four);
        }
        for (; k < w->taps; k++) {
            const T *x = load_tap(w, b, k, buffer[0]), v = weight[k];
            for (int64_t i = 0; i < b->n; i++) sum[i] = sum[i] + v * x[i];
        }
        store_block(w, b, sum);
    });
}

/* ---- grey_filter ---- */

template <class T, bool Greatest> void raise_windows(const windows *w, const T *height) {
    make_blocks(w, [&](const block *b) {
        alignas(64) T best[BLOCK], buffer[BLOCK];
        for (int64_t k = 0; k < w->taps; k++) {
            const T *x = load_tap(w, b, k, buffer), h = Greatest ? height[k] : -height[k];
            if (k == 0)
                for (int64_t i = 0; i < b->n; i++) best[i] = x[i] + h;
            else
                for (int64_t i = 0; i < b->n; i++) {
                    const T v = x[i] + h;
                    best[i] = (Greatest ? v > best[i] : v < best[i]) ? v : best[i];
                }
        }
        store_block(w, b, best);
    });
}

/* ---- rank_filter ---- */

/* Compare two elements of a network: the lesser goes to a, the greater to b. One of them may be wanted no more. */
struct comparison {
    uint8_t a, b;
    bool least, greatest;
};

/* Make those comparisons of Batcher's merge exchange sort of n that the element of the rank depends on. */
std::vector<comparison> make_network(int n, int rank) {
    std::vector<comparison> all, needed;
    for (int p = 1; p < n; p *= 2)
        for (int k = p; k >= 1; k /= 2)
            for (int j = k % p; j + k < n; j += 2 * k)
                for (int i = 0; i < std::min(k, n - j - k); i++)
                    if ((i + j) / (2 * p) == (i + j + k) / (2 * p))
                        all.push_back({uint8_t(i + j), uint8_t(i + j + k), false, false});
    bool wanted[SORTED] = {};
    wanted[rank] = true;
    for (size_t i = all.size(); i-- > 0;) {
        comparison one = all[i];
        one.least = wanted[one.a];
        one.greatest = wanted[one.b];
        if (!one.least && !one.greatest) continue;
        wanted[one.a] = wanted[one.b] = true;
        needed.push_back(one);
    }
    std::reverse(needed.begin(), needed.end());
    return needed;
}

template <class K> void compare_lanes(K *a, K *b, const comparison *how) {
    for (int64_t i = 0; i < LANES; i++) {
        const K low = a[i] < b[i] ? a[i] : b[i], high = a[i] < b[i] ? b[i] : a[i];
        a[i] = how->least ? low : a[i];
        b[i] = how->greatest ? high : b[i];
    }
}

template <class K> void sort_windows(const windows *w, int64_t rank) {
    const std::vector<comparison> network = make_network(int(w->taps), int(rank));
    make_blocks(w, [&](const block *b) {
        alignas(64) K key[SORTED][LANES], buffer[LANES];
        for (int64_t k = 0; k < w->taps; k++) memcpy(key[k], load_tap(w, b, k, buffer), size_t(b->n) * sizeof(K));
        for (const comparison &one : network) compare_lanes(key[one.a], key[one.b], &one);
        store_block(w, b, key[rank]);
    });
}

/* The least or the greatest, of windows of any size. */
template <class K, bool Greatest> void limit_windows(const windows *w) {
    make_blocks(w, [&](const block *b) {
        alignas(64) K best[BLOCK], buffer[BLOCK];
        for (int64_t k = 0; k < w->taps; k++) {
            const K *x = load_tap(w, b, k, buffer);
            if (k == 0) std::copy(x, x + b->n, best);
            else
                for (int64_t i = 0; i < b->n; i++)
                    best[i] = (Greatest ? x[i] > best[i] : x[i] < best[i]) ? x[i] : best[i];
        }
        store_block(w, b, best);
    });
}

/* Larger windows one by one: their elements are gathered, for a few neighbours at a time. Each piece of the work has
 * memory of its own. */
template <class K> int select_windows(ad_call *c, const windows *w, int64_t rank) {
    const int64_t units = w->rows * w->blocks, pieces = std::min(units, int64_t(4) * ad_cpu_parallel_threads());
    const uint64_t own = uint64_t(w->taps) * (GATHERED + 1);
    K *memory = static_cast<K *>(ad_call_workspace(c, uint64_t(pieces) * own * sizeof(K)));
    if (!memory) return AD_E_MEMORY;
    c->run->wrote = true;
    ad_cpu_parallel(pieces, 1, [&](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; p++) {
            K *side = memory + uint64_t(p) * own, *one = side + w->taps * GATHERED, buffer[GATHERED], result[GATHERED];
            const int64_t first = units / pieces * p + std::min(p, units % pieces);
            const int64_t last = first + units / pieces + (p < units % pieces);
            for (int64_t u = first; u < last; u++) {
                block b;
                ad_cpu_check_cancelled();
                find_block(w, u, &b);
                for (int64_t k = 0; k < w->taps; k++)
                    memcpy(side + k * GATHERED, load_tap(w, &b, k, buffer), size_t(b.n) * sizeof(K));
                for (int64_t i = 0; i < b.n; i++) {
                    ad_cpu_check_cancelled();
                    for (int64_t k = 0; k < w->taps; k++) one[k] = side[k * GATHERED + i];
                    std::nth_element(one, one + rank, one + w->taps);
                    result[i] = one[rank];
                }
                store_block(w, &b, result);
            }
        }
    });
    return 0;
}

template <class S, class K> void convert_keys(char *data, int64_t n, bool back) {
    ad_cpu_parallel(n, GRAIN, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i++) {
            S *v = reinterpret_cast<S *>(data) + i;
            K *k = reinterpret_cast<K *>(data) + i;
            if (back) *v = order<S>::back(*k);
            else *k = order<S>::of(*v);
        }
    });
}

/* Elements are ranked as unsigned integers in the same order, in copies of x and of the result. */
template <class S> int rank_windows(ad_call *c, windows *w, int64_t rank) {
    using K = typename order<S>::key;
    const array out = w->out;
    array keys = w->x;
    int status = ad_call_packed(c, &w->x, c->op->loop, 0, &w->x);
    keys.data = status ? nullptr : static_cast<char *>(ad_call_workspace(c, uint64_t(pack(&keys))));
    if (!keys.data) return AD_E_MEMORY;
    w->out = keys;
    convert_keys<S, K>(w->x.data, count(w->x), false);
    const K value = order<S>::of(*reinterpret_cast<const S *>(w->value));
    memcpy(w->value, &value, sizeof value);
    if (rank == 0) limit_windows<K, false>(w);
    else if (rank == w->taps - 1) limit_windows<K, true>(w);
    else if (w->taps <= SORTED) sort_windows<K>(w, rank);
    else status = select_windows<K>(c, w, rank);
    if (status) return status;
    convert_keys<S, K>(keys.data, count(keys), true);
    c->run->wrote = true;
    return ad_call_copy(c, &out, &keys);
}

} // namespace

int ad_call_correlate(ad_call *c) {
    const ad_scalar *param = c->op->param;
    array weights;
    windows w;
    int status = ad_call_input_packed(c, 2, c->op->loop, &weights);
    if (status || (status = open_windows(c, int(param[0].as.i), &param[1], BLOCK, &w))) return status;
    if (count(w.out) == 0) return 0;
    c->run->wrote = true;
    visit(c->op->loop, [&](auto t) {
        using S = typename decltype(t)::type;
        if constexpr (is_float<S> || is_complex<S> || same<S, int64_t>)
            add_windows<S>(&w, reinterpret_cast<const S *>(weights.data));
    });
    return ad_call_finish(c, 0, &w.out);
}

int ad_call_grey_filter(ad_call *c) {
    const ad_scalar *param = c->op->param;
    array heights;
    windows w;
    int status = ad_call_input_packed(c, 2, c->op->loop, &heights);
    if (status || (status = open_windows(c, int(param[1].as.i), &param[2], BLOCK, &w))) return status;
    if (count(w.out) == 0) return 0;
    c->run->wrote = true;
    visit(c->op->loop, [&](auto t) {
        using S = typename decltype(t)::type;
        if constexpr (is_float<S>) {
            if (param[0].as.b) raise_windows<S, true>(&w, reinterpret_cast<const S *>(heights.data));
            else raise_windows<S, false>(&w, reinterpret_cast<const S *>(heights.data));
        }
    });
    return ad_call_finish(c, 0, &w.out);
}

int ad_call_rank_filter(ad_call *c) {
    const ad_scalar *param = c->op->param;
    const int64_t rank = param[0].as.i;
    windows w;
    int status = open_windows(c, int(param[1].as.i), &param[2], BLOCK, &w);
    if (status) return status;
    if (count(w.out) == 0) return 0;
    if (rank > 0 && rank < w.taps - 1) {
        w.block = std::min(w.block, w.taps <= SORTED ? LANES : GATHERED);
        w.blocks = (w.row + w.block - 1) / w.block;
    }
    status = visit(c->op->loop, [&](auto t) {
        using S = typename decltype(t)::type;
        if constexpr (is_complex<S>) return int(AD_E_TYPE);
        else return rank_windows<S>(c, &w, rank);
    });
    return status ? status : ad_call_finish(c, 0, &w.out);
}
