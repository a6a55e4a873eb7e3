/* Filters along one axis: correlate1d and window1d.
 *
 * A block copies a tile into shared memory: some lanes, some elements of each, and what windows reach beyond them. Each
 * thread makes EACH neighbouring results of a lane from elements that pass through its registers. So an element is read
 * once for EACH of them. Lanes that are longer than a tile, or windows that are, take several. */
#include "kernels/cuda/backend/divide.h"
#include "kernels/cuda/call/ndimage/keys.cuh"
#include "kernels/cuda/call/ndimage/ndimage.h"

#include <algorithm>

namespace {

using namespace ad;

constexpr int THREADS = 256, EACH = 8, RESULTS = THREADS * EACH;
constexpr int ACROSS = 32;            /* lanes side by side */
constexpr int64_t SHARED = 48 * 1024; /* bytes */
constexpr int64_t MOST_BLOCKS = int64_t(1) << 30;

/* An array of (outer, n, inner) elements without gaps. */
template <class T> struct lines {
    const T *x, *weight;
    T *out, value;
    int64_t n, inner, lanes, size, before;
    int mode;
    int tile_lanes, tile, taps; /* of a block: lanes, results of each, and taps in one pass */
    int pitch;                  /* elements of shared memory from one lane to the next; of neighbouring lanes 1 */
    int64_t chunks, blocks;     /* tiles along a lane, and in all */
    ad_divisor length;          /* elements of a lane that a tile has in shared memory, of the first pass */
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

/* ---- tiles ---- */

/* Get the slot of element `at` of a lane in shared memory. Lanes in order have a gap after each 32 elements. Threads,
 * whose elements are EACH apart, then reach different banks. */
template <bool Across> __device__ int slot_of(int at) { return Across ? at * ACROSS : at + at / 32; }

template <class T> __device__ const T *lane_of(const lines<T> &l, int64_t lane) {
    if (l.inner == 1) return l.x + lane * l.n;
    return l.x + lane / l.inner * l.n * l.inner + lane % l.inner;
}

template <class Op, class T> __device__ T load_place(const lines<T> &l, const T *lane, int64_t at) {
    at = find_edge(at, l.n, l.mode);
    return Op::load(l, at < 0 ? l.value : lane[at * l.inner]);
}

/* `length` elements of each lane from place `from` on. */
template <class Op, bool Across, class T>
__device__ void load_tile(const lines<T> &l, T *tile, int64_t first_lane, int64_t from, int length) {
    if (Across) {
        const int64_t lane = first_lane + threadIdx.x % ACROSS;
        if (lane >= l.lanes) return;
        const T *x = lane_of(l, lane);
        for (int i = int(threadIdx.x) / ACROSS; i < length; i += THREADS / ACROSS)
            tile[i * ACROSS + threadIdx.x % ACROSS] = load_place<Op>(l, x, from + i);
        return;
    }
    for (uint32_t i = threadIdx.x; i < uint32_t(l.tile_lanes * length); i += THREADS) {
        uint32_t at = i, lane = 0;
        if (l.tile_lanes > 1)
            lane = length == int(l.length.value) ? l.length.divide(i, &at) : (at = i % length, i / length);
        if (first_lane + lane >= l.lanes) return;
        tile[lane * l.pitch + slot_of<false>(int(at))] = load_place<Op>(l, lane_of(l, first_lane + lane), from + at);
    }
}

/* EACH results from the tile's elements `x`, the first of which is that of the first tap. */
template <class Op, bool Across, class T, class W>
__device__ void take_taps(const T *tile, int at, const W *weight, int taps, T (&sum)[EACH]) {
    T v[EACH];
#pragma unroll
    for (int r = 0; r < EACH; r++) v[r] = tile[slot_of<Across>(at + r)];
    for (int j = 0; j < taps; j += EACH) {
#pragma unroll
        for (int u = 0; u < EACH; u++) {
            if (j + u >= taps) break;
            const W w = weight[j + u];
#pragma unroll
            for (int r = 0; r < EACH; r++) sum[r] = Op::take(sum[r], w, v[(u + r) % EACH]);
            v[u] = tile[slot_of<Across>(at + j + u + EACH)];
        }
    }
}

/* A thread's work: lane and first result within the tile; lane -1: nothing. */
struct share {
    int lane, first;
};

template <bool Across, class T> __device__ share share_of(const lines<T> &l) {
    if (Across) return {int(threadIdx.x) % ACROSS, int(threadIdx.x) / ACROSS * EACH};
    const int threads = l.tile / EACH, lane = int(threadIdx.x) / threads;
    return {lane < l.tile_lanes ? lane : -1, (int(threadIdx.x) - lane * threads) * EACH};
}

/* Results go by shared memory, so that neighbouring threads write neighbours. */
template <class Op, bool Across, class T>
__device__ void store_tile(const lines<T> &l, T *tile, int64_t lane, int64_t first, share own, const T (&sum)[EACH]) {
    T *out = l.out + (lane_of(l, 0) - l.x);
    if (Across) {
        if (lane + own.lane >= l.lanes) return;
        out += lane_of(l, lane + own.lane) - l.x;
#pragma unroll
        for (int r = 0; r < EACH; r++)
            if (first + own.first + r < l.n) out[(first + own.first + r) * l.inner] = Op::store(l, sum[r]);
        return;
    }
    __syncthreads();
#pragma unroll
    for (int r = 0; r < EACH; r++)
        if (own.lane >= 0) tile[own.lane * l.pitch + slot_of<false>(own.first + r)] = sum[r];
    __syncthreads();
    for (int k = 0; k < l.tile_lanes && lane + k < l.lanes; k += l.tile < THREADS ? THREADS / l.tile : 1) {
        const int mine = l.tile < THREADS ? int(threadIdx.x) / l.tile : 0;
        if (k + mine >= l.tile_lanes || lane + k + mine >= l.lanes) continue;
        for (int i = int(threadIdx.x) - mine * l.tile; i < l.tile && first + i < l.n; i += THREADS)
            out[(lane + k + mine) * l.n + first + i] = Op::store(l, tile[(k + mine) * l.pitch + slot_of<false>(i)]);
    }
}

template <class Op, bool Across> __global__ void __launch_bounds__(THREADS)
    filter_lines(const __grid_constant__ lines<typename Op::type> l) {
    using T = typename Op::type;
    using W = decltype(Op::get_weight(l, 0));
    extern __shared__ __align__(16) char memory[];
    W *weight = reinterpret_cast<W *>(memory);
    T *tile = reinterpret_cast<T *>(memory + (l.taps * sizeof(W) + 15) / 16 * 16);
    const share own = share_of<Across>(l);
    for (int64_t b = blockIdx.x; b < l.blocks; b += gridDim.x) {
        const int64_t group = b / l.chunks, first = (b - group * l.chunks) * l.tile, lane = group * l.tile_lanes;
        T sum[EACH];
#pragma unroll
        for (int r = 0; r < EACH; r++) sum[r] = Op::begin(l);
        for (int64_t j = 0; j < l.size; j += l.taps) {
            const int taps = int(l.size - j < l.taps ? l.size - j : l.taps);
            __syncthreads();
            for (int i = int(threadIdx.x); i < taps; i += THREADS) weight[i] = Op::get_weight(l, j + i);
            load_tile<Op, Across>(l, tile, lane, first + j - l.before, l.tile + taps - 1);
            __syncthreads();
            if (own.lane >= 0) take_taps<Op, Across>(tile + own.lane * l.pitch, own.first, weight, taps, sum);
        }
        store_tile<Op, Across>(l, tile, lane, first, own, sum);
    }
}

/* ---- launching ---- */

/* Cut an array across lanes that lie side by side, else along a lane. */
template <class T> size_t cut_lines(lines<T> *l, bool across, size_t weight_size) {
    const int64_t room = (SHARED - 64) / int64_t(sizeof(T));
    const int64_t most = across ? room / ACROSS - THREADS / ACROSS * EACH - 1 : (room - RESULTS) / 4;
    l->taps = int(std::min(l->size, most));
    if (across) {
        l->tile_lanes = ACROSS;
        l->tile = THREADS / ACROSS * EACH;
        l->pitch = 1;
    } else {
        l->tile = int(std::min((l->n + EACH - 1) / EACH * EACH, int64_t(RESULTS)));
        const int padded = l->tile + l->taps + EACH;
        l->pitch = padded + padded / 32 + 1;
        l->tile_lanes = int(std::min(int64_t(RESULTS / l->tile), std::max((room - l->taps) / l->pitch, int64_t(1))));
    }
    l->length.set(l->tile + l->taps - 1);
    l->chunks = (l->n + l->tile - 1) / l->tile;
    l->blocks = l->chunks * ((l->lanes + l->tile_lanes - 1) / l->tile_lanes);
    const int64_t elements = across ? int64_t(l->tile + l->taps + EACH) * ACROSS : int64_t(l->pitch) * l->tile_lanes;
    return (l->taps * weight_size + 15) / 16 * 16 + size_t(elements) * sizeof(T);
}

template <class Op, bool Across> int launch_cut(ad_call *c, lines<typename Op::type> *l) {
    using W = decltype(Op::get_weight(*l, 0));
    const size_t shared = cut_lines(l, Across, sizeof(W));
    if (shared > size_t(SHARED)) {
        const int status = ad_cuda_status(
            cudaFuncSetAttribute(filter_lines<Op, Across>, cudaFuncAttributeMaxDynamicSharedMemorySize, int(shared)),
            "shared memory of a filter", c->fault);
        if (status) return status;
    }
    filter_lines<Op, Across><<<unsigned(std::min(l->blocks, MOST_BLOCKS)), THREADS, shared, c->stream->cuda>>>(*l);
    return ad_cuda_launched("a filter along an axis", c->fault);
}

template <class Op> int launch_lines(ad_call *c, lines<typename Op::type> *l) {
    return l->inner > 1 ? launch_cut<Op, true>(c, l) : launch_cut<Op, false>(c, l);
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
