/* Filters along one axis: correlate1d and window1d.
 *
 * Each thread makes EACH neighbouring results of a lane from elements that pass through its registers. So an element is
 * read once for EACH of them. Of lanes that lie side by side neighbouring threads read neighbours, some lanes each, and
 * what others of a block have read is in the cache. Of lanes that lie one behind another a warp copies a piece into
 * shared memory with what windows reach beyond it, and waits for nobody. Short and complex ones go by tiles: a block
 * copies some lanes. Lanes that are longer than a piece or a tile, or windows that are, take several. */
#include "kernels/cuda/backend/divide.h"
#include "kernels/cuda/call/ndimage/keys.cuh"
#include "kernels/cuda/call/ndimage/ndimage.h"

#include <algorithm>

namespace {

using namespace ad;

constexpr int THREADS = 256, EACH = 8, RESULTS = THREADS * EACH;
constexpr int ACROSS = 32;            /* threads side by side, where lanes are */
constexpr int64_t SHARED = 48 * 1024; /* bytes */
constexpr int64_t MOST_BLOCKS = int64_t(1) << 30;
/* Of pieces: threads of a block, vectors of results that each makes, and taps at a time. */
constexpr int ROW_THREADS = 128, ROW_GROUPS = 4, ROW_TAPS = 128;
/* Lanes are filtered by pieces where that is faster: of how many elements, up to how many taps; elements of a vector.
 */
constexpr int64_t ROW_LEAST = 256;
template <class T> constexpr int64_t ROW_MOST = sizeof(T) > 4 ? 64 : INT64_MAX;
template <class T> constexpr int ROW_WIDE = sizeof(T) > 8 ? 1 : sizeof(T) == 8 ? 2 : 4;

/* An array of (outer, n, inner) elements without gaps. */
template <class T> struct lines {
    const T *x, *weight;
    T *out, value;
    int64_t n, inner, lanes, size, before;
    int mode;
    int tile_lanes, tile, taps; /* of a block: lanes, results of each, and taps in one pass */
    int pitch;                  /* elements of shared memory from one lane to the next */
    int64_t chunks, blocks;     /* tiles along a lane, and in all */
    ad_divisor length;          /* elements of a lane, where a tile has whole ones */
    bool wide_in, wide_out;     /* vectors of a lane's elements can be read and written as they lie */
    ranking<conditional_t<(sizeof(T) > 8), uint64_t, typename uint_of<(sizeof(T) > 8 ? 8 : sizeof(T))>::type>> order;
};

/* ---- what is done with each element of a window ---- */

template <class T> struct weighing {
    using type = T;
    static __device__ T begin(const lines<T> &) { return T(0); }
    static __device__ T get_weight(const lines<T> &l, int64_t j) { return l.weight[j]; }
    static __device__ T load(const lines<T> &, T v) { return v; }
    static __device__ T store(const lines<T> &, T v) { return v; }
    static __device__ T take(T sum, T w, T v) { return sum + w * v; }
};

template <class T> struct summing {
    using type = T;
    static __device__ T begin(const lines<T> &) { return T(0); }
    static __device__ int get_weight(const lines<T> &, int64_t) { return 0; }
    static __device__ T load(const lines<T> &, T v) { return v; }
    static __device__ T store(const lines<T> &, T v) { return v; }
    static __device__ T take(T sum, int, T v) { return sum + v; }
};

/* The least key; the greatest where the order is the other way round. */
template <class K> struct choosing {
    using type = K;
    static __device__ K begin(const lines<K> &) { return K(~K(0)); }
    static __device__ int get_weight(const lines<K> &, int64_t) { return 0; }
    static __device__ K load(const lines<K> &l, K v) { return l.order.key(v); }
    static __device__ K store(const lines<K> &l, K v) { return l.order.back(v); }
    static __device__ K take(K least, int, K v) { return v < least ? v : least; }
};

/* ---- windows ---- */

/* Neighbouring elements that are read and written at once. */
template <class T, int Wide> struct alignas(Wide == 1 ? alignof(T) : Wide * sizeof(T)) several { T v[Wide]; };

template <class Op, int Wide, class W, class T>
__device__ void take_one(several<T, Wide> (&sum)[EACH], W w, const several<T, Wide> (&v)[EACH], int first) {
#pragma unroll
    for (int r = 0; r < EACH; r++)
#pragma unroll
        for (int k = 0; k < Wide; k++) sum[r].v[k] = Op::take(sum[r].v[k], w, v[(first + r) % EACH].v[k]);
}

/* EACH results: load(i) is element i from the first result's first tap on, weight(j) that of tap j. */
template <class Op, int Wide, class T, class Load, class Weight>
__device__ void take_taps(int64_t taps, Load load, Weight weight, several<T, Wide> (&sum)[EACH]) {
    several<T, Wide> v[EACH];
    int64_t j = 0;
#pragma unroll
    for (int r = 0; r < EACH; r++) v[r] = load(r);
    for (; j + EACH < taps; j += EACH) {
#pragma unroll
        for (int u = 0; u < EACH; u++) {
            take_one<Op>(sum, weight(j + u), v, u);
            v[u] = load(j + u + EACH);
        }
    }
#pragma unroll
    for (int u = 0; u < EACH; u++) {
        if (j + u >= taps) break;
        take_one<Op>(sum, weight(j + u), v, u);
        if (j + u + 1 < taps) v[u] = load(j + u + EACH);
    }
}

template <class Op, int Wide, class T> __device__ void begin_sums(const lines<T> &l, several<T, Wide> (&sum)[EACH]) {
#pragma unroll
    for (int r = 0; r < EACH; r++)
#pragma unroll
        for (int k = 0; k < Wide; k++) sum[r].v[k] = Op::begin(l);
}

/* ---- lanes side by side ---- */

template <class Op, int Wide, class T> __device__ several<T, Wide> load_several(const lines<T> &l, const T *x) {
    several<T, Wide> v = *reinterpret_cast<const several<T, Wide> *>(x);
#pragma unroll
    for (int k = 0; k < Wide; k++) v.v[k] = Op::load(l, v.v[k]);
    return v;
}

/* Make EACH results from `first` on of the lanes at x, and put them at out. */
template <class Op, int Wide, class T>
__device__ void filter_column(const lines<T> &l, const T *x, T *out, int64_t first) {
    const int64_t from = first - l.before;
    const auto weight = [&](int64_t j) { return Op::get_weight(l, j); };
    several<T, Wide> sum[EACH];
    begin_sums<Op>(l, sum);
    if (from >= 0 && from + l.size + EACH - 1 <= l.n) {
        const T *begin = x + from * l.inner;
        take_taps<Op, Wide, T>(
            l.size, [&](int64_t i) { return load_several<Op, Wide>(l, begin + i * l.inner); }, weight, sum);
    } else {
        take_taps<Op, Wide, T>(
            l.size,
            [&](int64_t i) {
                const int64_t at = find_edge(from + i, l.n, l.mode);
                several<T, Wide> v;
#pragma unroll
                for (int k = 0; k < Wide; k++) v.v[k] = Op::load(l, l.value);
                return at < 0 ? v : load_several<Op, Wide>(l, x + at * l.inner);
            },
            weight, sum);
    }
#pragma unroll
    for (int r = 0; r < EACH; r++) {
        if (first + r >= l.n) return;
#pragma unroll
        for (int k = 0; k < Wide; k++) sum[r].v[k] = Op::store(l, sum[r].v[k]);
        *reinterpret_cast<several<T, Wide> *>(out + (first + r) * l.inner) = sum[r];
    }
}

/* A block has ACROSS threads side by side, with Wide lanes each. */
template <class Op, int Wide> __global__ void __launch_bounds__(THREADS)
    filter_columns(const __grid_constant__ lines<typename Op::type> l) {
    for (int64_t b = blockIdx.x; b < l.blocks; b += gridDim.x) {
        const int64_t group = b / l.chunks;
        const int64_t lane = (group * ACROSS + threadIdx.x % ACROSS) * Wide;
        const int64_t first = (b - group * l.chunks) * l.tile + int64_t(threadIdx.x / ACROSS) * EACH;
        if (lane >= l.lanes || first >= l.n) continue;
        const int64_t outer = lane / l.inner, at = outer * l.n * l.inner + (lane - outer * l.inner);
        filter_column<Op, Wide>(l, l.x + at, l.out + at, first);
    }
}

/* ---- tiles of lanes that lie one behind another ---- */

/* Get the slot of element `at` of a lane in shared memory. There is a gap after each 32 elements. Threads, whose
 * elements are EACH apart, then reach different banks. */
__device__ int slot_of(int at) { return at + at / 32; }

/* f(lane of the tile, element, i) for `count` elements of each of its lanes, i-th in all, divided among the threads. */
template <class T, class F> __device__ void for_elements(const lines<T> &l, int lanes, int count, F f) {
    const bool whole = count == int(l.length.value);
#pragma unroll
    for (int k = 0; k < EACH; k++) {
        const uint32_t i = threadIdx.x + k * THREADS;
        if (i >= uint32_t(lanes * count)) return;
        uint32_t at = i, lane = 0;
        if (lanes > 1) lane = whole ? l.length.divide(i, &at) : (at = i % count, i / count);
        f(int(lane), int(at), k);
    }
}

/* Elements of each lane from place `from` on, `length` of them. Those within the lanes, at most EACH for each thread at
 * a time, are read before the first of them is kept. */
template <class Op, class T>
__device__ void load_tile(const lines<T> &l, T *tile, int64_t first_lane, int lanes, int64_t from, int length) {
    const int64_t begin = from > 0 ? from : 0, end = min(from + length, l.n);
    const int inside = end > begin ? int(end - begin) : 0, ahead = inside ? int(begin - from) : length;
    const T *x = l.x + first_lane * l.n + begin;
    const int most = lanes > 1 ? inside : RESULTS; /* of a lane in one round; of several there is one round */
    for (int done = 0; done < inside; done += most) {
        const int count = min(inside - done, most);
        T v[EACH];
        for_elements(l, lanes, count, [&](int lane, int at, int k) { v[k] = x[lane * l.n + done + at]; });
        for_elements(l, lanes, count, [&](int lane, int at, int k) {
            tile[lane * l.pitch + slot_of(ahead + done + at)] = Op::load(l, v[k]);
        });
    }
    const int beyond = length - inside;
    for (int i = int(threadIdx.x); i < lanes * beyond; i += THREADS) {
        const int lane = i / beyond, at = i - lane * beyond, slot = at < ahead ? at : at + inside;
        const int64_t place = find_edge(from + slot, l.n, l.mode);
        tile[lane * l.pitch + slot_of(slot)] =
            Op::load(l, place < 0 ? l.value : l.x[(first_lane + lane) * l.n + place]);
    }
}

/* A thread's work: lane and first result within the tile; lane -1: nothing. */
struct share {
    int lane, first;
};

template <class T> __device__ share share_of(const lines<T> &l) {
    const int threads = l.tile / EACH, lane = int(threadIdx.x) / threads;
    return {lane < l.tile_lanes ? lane : -1, (int(threadIdx.x) - lane * threads) * EACH};
}

/* Results go by shared memory, so that neighbouring threads write neighbours. */
template <class Op, class T> __device__ void store_tile(const lines<T> &l, T *tile, int64_t first_lane, int lanes,
                                                        int64_t first, share own, const several<T, 1> (&sum)[EACH]) {
    T *out = l.out + first_lane * l.n + first;
    __syncthreads();
#pragma unroll
    for (int r = 0; r < EACH; r++)
        if (own.lane >= 0) tile[own.lane * l.pitch + slot_of(own.first + r)] = sum[r].v[0];
    __syncthreads();
    for_elements(l, lanes, int(min(int64_t(l.tile), l.n - first)), [&](int lane, int at, int) {
        out[lane * l.n + at] = Op::store(l, tile[lane * l.pitch + slot_of(at)]);
    });
}

template <class Op> __global__ void __launch_bounds__(THREADS)
    filter_lines(const __grid_constant__ lines<typename Op::type> l) {
    using T = typename Op::type;
    using W = decltype(Op::get_weight(l, 0));
    extern __shared__ __align__(16) char memory[];
    W *weight = reinterpret_cast<W *>(memory);
    T *tile = reinterpret_cast<T *>(memory + (l.taps * sizeof(W) + 15) / 16 * 16);
    const share own = share_of(l);
    for (int64_t b = blockIdx.x; b < l.blocks; b += gridDim.x) {
        const int64_t group = b / l.chunks, first = (b - group * l.chunks) * l.tile, lane = group * l.tile_lanes;
        const int lanes = int(min(int64_t(l.tile_lanes), l.lanes - lane));
        several<T, 1> sum[EACH];
        begin_sums<Op>(l, sum);
        for (int64_t j = 0; j < l.size; j += l.taps) {
            const int taps = int(l.size - j < l.taps ? l.size - j : l.taps);
            __syncthreads();
            for (int i = int(threadIdx.x); i < taps; i += THREADS) weight[i] = Op::get_weight(l, j + i);
            load_tile<Op>(l, tile, lane, lanes, first + j - l.before, l.tile + taps - 1);
            __syncthreads();
            const T *x = tile + own.lane * l.pitch;
            if (own.lane >= 0)
                take_taps<Op, 1, T>(
                    taps, [&](int64_t i) { return several<T, 1>{{x[slot_of(own.first + int(i))]}}; },
                    [&](int64_t i) { return weight[i]; }, sum);
        }
        store_tile<Op>(l, tile, lane, lanes, first, own, sum);
    }
}

/* ---- pieces of long lanes that lie one behind another ---- */

/* Copy `length` elements of a lane from place `from` on into shared memory, by a warp, Wide of them at once. Those
 * beyond the lane's ends are looked up, and a rest that is no vector. */
template <class Op, int Wide, class T>
__device__ void load_piece(const lines<T> &l, const T *x, T *piece, int64_t from, int length) {
    constexpr int MANY = Wide > 1 ? ROW_GROUPS + 1 : 8;
    const int thread = int(threadIdx.x % 32), ahead = from < 0 ? int(min(-from, int64_t(length))) : 0;
    const int inside = int(max(min(int64_t(length), l.n - from) - ahead, int64_t(0))) / Wide;
    const auto *source = reinterpret_cast<const several<T, Wide> *>(x + from + ahead);
    auto *target = reinterpret_cast<several<T, Wide> *>(piece + ahead);
    for (int done = thread; done < inside; done += 32 * MANY) {
        several<T, Wide> v[MANY];
#pragma unroll
        for (int k = 0; k < MANY; k++)
            if (done + k * 32 < inside) v[k] = source[done + k * 32];
#pragma unroll
        for (int k = 0; k < MANY; k++) {
            if (done + k * 32 >= inside) continue;
#pragma unroll
            for (int u = 0; u < Wide; u++) v[k].v[u] = Op::load(l, v[k].v[u]);
            target[done + k * 32] = v[k];
        }
    }
    for (int i = thread; i < length - inside * Wide; i += 32) {
        const int slot = i < ahead ? i : i + inside * Wide;
        const int64_t place = find_edge(from + slot, l.n, l.mode);
        piece[slot] = Op::load(l, place < 0 ? l.value : x[place]);
    }
}

/* Take `count` taps, at most ROW_WIDE, of windows that begin in v[0] and go on in v[1]. */
template <class Op, class T, class W> __device__ void take_wide(several<T, ROW_WIDE<T>> &sum,
                                                                const several<W, ROW_WIDE<T>> &w,
                                                                const several<T, ROW_WIDE<T>> (&v)[2], int count) {
    constexpr int WIDE = ROW_WIDE<T>;
#pragma unroll
    for (int u = 0; u < WIDE; u++) {
        if (u >= count) break;
#pragma unroll
        for (int r = 0; r < WIDE; r++) sum.v[r] = Op::take(sum.v[r], w.v[u], v[(u + r) / WIDE].v[(u + r) % WIDE]);
    }
}

/* sum[g]: of windows that begin at the vector x[g * 32] of a piece, one for each of its elements. */
template <class Op, class T, class W> __device__ void take_piece(const several<T, ROW_WIDE<T>> *x, const W *weight,
                                                                 int taps, several<T, ROW_WIDE<T>> (&sum)[ROW_GROUPS]) {
    constexpr int WIDE = ROW_WIDE<T>;
    several<T, WIDE> v[ROW_GROUPS][2];
#pragma unroll
    for (int g = 0; g < ROW_GROUPS; g++) v[g][0] = x[g * 32];
    for (int j = 0; j < taps; j += WIDE) {
        const auto w = *reinterpret_cast<const several<W, WIDE> *>(weight + j);
        x++;
#pragma unroll
        for (int g = 0; g < ROW_GROUPS; g++) {
            v[g][1] = x[g * 32];
            if (j + WIDE <= taps) take_wide<Op, T, W>(sum[g], w, v[g], WIDE);
            else take_wide<Op, T, W>(sum[g], w, v[g], taps - j);
            v[g][0] = v[g][1];
        }
    }
}

template <class Op, class T>
__device__ void store_piece(const lines<T> &l, T *out, int64_t first, several<T, ROW_WIDE<T>> (&sum)[ROW_GROUPS]) {
    constexpr int WIDE = ROW_WIDE<T>;
#pragma unroll
    for (int g = 0; g < ROW_GROUPS; g++) {
        const int64_t at = first + g * 32 * WIDE;
#pragma unroll
        for (int r = 0; r < WIDE; r++) sum[g].v[r] = Op::store(l, sum[g].v[r]);
        if (l.wide_out && at < l.n) *reinterpret_cast<several<T, WIDE> *>(out + at) = sum[g];
        if (l.wide_out) continue;
#pragma unroll
        for (int r = 0; r < WIDE; r++)
            if (at + r < l.n) out[at + r] = sum[g].v[r];
    }
}

/* A piece for each warp of a block. Its warps share the weights alone, and have the same number of portions of them. */
template <class Op> __global__ void __launch_bounds__(ROW_THREADS)
    filter_pieces(const __grid_constant__ lines<typename Op::type> l) {
    using T = typename Op::type;
    using W = decltype(Op::get_weight(l, 0));
    constexpr int WIDE = ROW_WIDE<T>;
    extern __shared__ __align__(16) char memory[];
    W *weight = reinterpret_cast<W *>(memory);
    const int warp = int(threadIdx.x / 32), thread = int(threadIdx.x % 32);
    T *piece = reinterpret_cast<T *>(memory + sizeof(W) * ROW_TAPS) + warp * l.pitch;
    for (int64_t b = blockIdx.x; b < l.blocks; b += gridDim.x) {
        const int64_t all = b * (ROW_THREADS / 32) + warp, lane = l.chunks == 1 ? all : all / l.chunks;
        const int64_t first = (all - lane * l.chunks) * l.tile;
        const T *x = l.x + lane * l.n;
        several<T, WIDE> sum[ROW_GROUPS];
#pragma unroll
        for (int g = 0; g < ROW_GROUPS; g++)
#pragma unroll
            for (int r = 0; r < WIDE; r++) sum[g].v[r] = Op::begin(l);
        for (int64_t j = 0; j < l.size; j += ROW_TAPS) {
            const int taps = int(min(l.size - j, int64_t(ROW_TAPS)));
            const int length = int(min(int64_t(l.tile), l.n - first)) + taps - 1;
            __syncthreads();
            for (int i = int(threadIdx.x); i < taps; i += ROW_THREADS) weight[i] = Op::get_weight(l, j + i);
            if (lane < l.lanes && l.wide_in) load_piece<Op, WIDE>(l, x, piece, first + j - l.before, length);
            else if (lane < l.lanes) load_piece<Op, 1>(l, x, piece, first + j - l.before, length);
            __syncthreads();
            take_piece<Op, T, W>(reinterpret_cast<several<T, WIDE> *>(piece) + thread, weight, taps, sum);
        }
        if (lane < l.lanes) store_piece<Op>(l, l.out + lane * l.n, first + thread * WIDE, sum);
    }
}

/* ---- launching ---- */

template <class Op> int launch_pieces(ad_call *c, lines<typename Op::type> *l) {
    using T = typename Op::type;
    constexpr int WIDE = ROW_WIDE<T>, WARPS = ROW_THREADS / 32;
    const auto is_wide = [&](const T *at) {
        return l->n % WIDE == 0 && reinterpret_cast<uintptr_t>(at) % (WIDE * sizeof(T)) == 0;
    };
    l->wide_in = is_wide(l->x) && l->before % WIDE == 0;
    l->wide_out = is_wide(l->out);
    l->tile = 32 * WIDE * ROW_GROUPS;
    l->pitch = l->tile + int(std::min(l->size, int64_t(ROW_TAPS)) + 2 * WIDE - 1) / WIDE * WIDE;
    l->chunks = (l->n + l->tile - 1) / l->tile;
    l->blocks = (l->chunks * l->lanes + WARPS - 1) / WARPS;
    const size_t shared = ROW_TAPS * sizeof(decltype(Op::get_weight(*l, 0))) + size_t(l->pitch) * WARPS * sizeof(T);
    static_assert(ROW_TAPS * sizeof(T) + (32 * WIDE * ROW_GROUPS + ROW_TAPS + 2 * WIDE) * WARPS * sizeof(T) <= SHARED,
                  "a block has no more unasked");
    filter_pieces<Op><<<unsigned(std::min(l->blocks, MOST_BLOCKS)), ROW_THREADS, shared, c->stream->cuda>>>(*l);
    return ad_cuda_launched("a filter along an axis", c->fault);
}

/* Cut an array whose lanes lie one behind another; the size of the shared memory of a block. */
template <class T> size_t cut_lines(lines<T> *l, size_t weight_size) {
    const int64_t room = (SHARED - 64) / int64_t(sizeof(T)), most = (room - RESULTS) / 4;
    l->taps = int(std::min(l->size, most));
    l->tile = int(std::min((l->n + EACH - 1) / EACH * EACH, int64_t(RESULTS)));
    const int padded = l->tile + l->taps + EACH;
    l->pitch = padded + padded / 32 + 1;
    l->tile_lanes = int(std::min(int64_t(RESULTS / l->tile), std::max((room - l->taps) / l->pitch, int64_t(1))));
    l->length.set(std::min(l->n, int64_t(RESULTS)));
    l->chunks = (l->n + l->tile - 1) / l->tile;
    l->blocks = l->chunks * ((l->lanes + l->tile_lanes - 1) / l->tile_lanes);
    return (l->taps * weight_size + 15) / 16 * 16 + size_t(l->pitch) * l->tile_lanes * sizeof(T);
}

template <class Op> int launch_tiles(ad_call *c, lines<typename Op::type> *l) {
    using W = decltype(Op::get_weight(*l, 0));
    const size_t shared = cut_lines(l, sizeof(W));
    if (shared > size_t(SHARED)) {
        const int status = ad_cuda_status(
            cudaFuncSetAttribute(filter_lines<Op>, cudaFuncAttributeMaxDynamicSharedMemorySize, int(shared)),
            "shared memory of a filter", c->fault);
        if (status) return status;
    }
    filter_lines<Op><<<unsigned(std::min(l->blocks, MOST_BLOCKS)), THREADS, shared, c->stream->cuda>>>(*l);
    return ad_cuda_launched("a filter along an axis", c->fault);
}

template <class Op, int Wide> int launch_columns(ad_call *c, lines<typename Op::type> *l) {
    l->tile = THREADS / ACROSS * EACH;
    l->chunks = (l->n + l->tile - 1) / l->tile;
    l->blocks = l->chunks * ((l->lanes + ACROSS * Wide - 1) / (ACROSS * Wide));
    filter_columns<Op, Wide><<<unsigned(std::min(l->blocks, MOST_BLOCKS)), THREADS, 0, c->stream->cuda>>>(*l);
    return ad_cuda_launched("a filter along an axis", c->fault);
}

template <class Op> int launch_lines(ad_call *c, lines<typename Op::type> *l) {
    using T = typename Op::type;
    constexpr int WIDE = sizeof(T) > 8 ? 1 : sizeof(T) == 8 ? 2 : 4;
    if constexpr (sizeof(T) <= 8 && !is_complex<T>)
        if (l->inner == 1 && l->n >= ROW_LEAST && l->size <= ROW_MOST<T>) return launch_pieces<Op>(c, l);
    if (l->inner == 1) return launch_tiles<Op>(c, l);
    const uintptr_t places = reinterpret_cast<uintptr_t>(l->x) | reinterpret_cast<uintptr_t>(l->out);
    const bool wide = l->inner % WIDE == 0 && places % (WIDE * sizeof(T)) == 0;
    return wide ? launch_columns<Op, WIDE>(c, l) : launch_columns<Op, 1>(c, l);
}

template <class T> void set_lines(lines<T> *l, const array *x, const array *out, int axis) {
    l->x = reinterpret_cast<const T *>(x->data);
    l->out = reinterpret_cast<T *>(out->data);
    l->n = x->shape[axis];
    l->inner = count(*x, axis + 1, x->ndim);
    l->lanes = count(*x, 0, axis) * l->inner;
}

template <class S> int combine_lines(ad_call *c, const array *x, const array *out, const ad_scalar *param) {
    const int64_t what = param[1].as.i;
    alignas(16) char value[16];
    ad_scalar_store(&param[4], c->op->loop, value);
    if constexpr (is_float<S> || is_complex<S>)
        if (what == AD_WINDOW_SUM) {
            lines<S> l = {};
            l.value = *reinterpret_cast<S *>(value);
            l.mode = int(param[3].as.i);
            l.size = param[2].as.i;
            l.before = param[5].as.i;
            set_lines(&l, x, out, int(param[0].as.i));
            return launch_lines<summing<S>>(c, &l);
        }
    if constexpr (is_complex<S>) return AD_E_TYPE;
    else {
        using K = typename order<S>::key;
        lines<K> l = {};
        l.value = *reinterpret_cast<K *>(value);
        l.mode = int(param[3].as.i);
        l.size = param[2].as.i;
        l.before = param[5].as.i;
        l.order = rank_type<S>(what == AD_WINDOW_MAX);
        set_lines(&l, x, out, int(param[0].as.i));
        return launch_lines<choosing<K>>(c, &l);
    }
}

template <class S>
int weigh_lines(ad_call *c, const array *x, const array *w, const array *out, const ad_scalar *param) {
    if constexpr (is_float<S> || is_complex<S>) {
        alignas(16) char value[16];
        lines<S> l = {};
        ad_scalar_store(&param[2], c->op->loop, value);
        l.value = *reinterpret_cast<S *>(value);
        l.weight = reinterpret_cast<const S *>(w->data);
        l.mode = int(param[1].as.i);
        l.size = w->shape[0];
        l.before = param[3].as.i;
        set_lines(&l, x, out, int(param[0].as.i));
        return launch_lines<weighing<S>>(c, &l);
    } else return AD_E_TYPE;
}

} // namespace

int ad_call_correlate1d(ad_call *c) {
    array x, w, out;
    int status;
    if ((status = ad_call_input_packed(c, 0, c->op->loop, &x)) ||
        (status = ad_call_input_packed(c, 1, c->op->loop, &w)) ||
        (status = ad_cuda_packed_output(c, 0, c->op->loop, &out)))
        return status;
    if (count(out) == 0) return 0;
    c->run->wrote = true;
    status = visit(c->op->loop,
                   [&](auto t) { return weigh_lines<typename decltype(t)::type>(c, &x, &w, &out, c->op->param); });
    return status ? status : ad_call_finish(c, 0, &out);
}

int ad_call_window1d(ad_call *c) {
    array x, out;
    int status;
    if ((status = ad_call_input_packed(c, 0, c->op->loop, &x)) ||
        (status = ad_cuda_packed_output(c, 0, c->op->loop, &out)))
        return status;
    if (count(out) == 0) return 0;
    c->run->wrote = true;
    status = visit(c->op->loop,
                   [&](auto t) { return combine_lines<typename decltype(t)::type>(c, &x, &out, c->op->param); });
    return status ? status : ad_call_finish(c, 0, &out);
}
