/* Filters with windows of any shape, which are lists of offsets: correlate, rank_filter and grey_filter.
 *
 * One kernel copies the offsets, and finds how far they reach. It also finds where each one leads from an element whose
 * whole window is within the array. In the kernels that follow, each thread makes one result. */
#include "kernels/cuda/backend/divide.h"
#include "kernels/cuda/call/ndimage/keys.cuh"
#include "kernels/cuda/call/ndimage/ndimage.h"

#include <algorithm>
#include <utility>

namespace {

using namespace ad;

constexpr int THREADS = 256, PREPARERS = 512;
constexpr int64_t MOST_BLOCKS = int64_t(1) << 30, SMALL = int64_t(1) << 31;

/* Scratch memory. It has offsets, cut off as AD_FARTHEST says, elements from the middle of a window to each of its
 * others, and the least and the greatest offset along each axis. */
struct taps {
    int64_t *offset, *away, *low, *high;
    int64_t n;
};

template <class T> struct windows {
    taps t;
    const T *x, *height; /* height: or weight */
    T *out, value;
    int64_t count, rank;
    int ndim, mode;
    bool greatest;
    int64_t shape[AD_MAX_NDIM];
    ad_divisor divisor[AD_MAX_NDIM]; /* of the shape, if there are fewer than SMALL elements */
    ranking<conditional_t<(sizeof(T) > 8), uint64_t, typename uint_of<(sizeof(T) > 8 ? 8 : sizeof(T))>::type>> order;
};

/* ---- offsets ---- */

struct preparing {
    taps t;
    const char *offset;
    int64_t step[2];
    int ndim;
    int64_t shape[AD_MAX_NDIM];
};

/* One block. */
__global__ void __launch_bounds__(PREPARERS) prepare_taps(const __grid_constant__ preparing p) {
    __shared__ long long low[AD_MAX_NDIM], high[AD_MAX_NDIM];
    if (threadIdx.x < AD_MAX_NDIM) {
        low[threadIdx.x] = AD_FARTHEST;
        high[threadIdx.x] = -AD_FARTHEST;
    }
    __syncthreads();
    for (int64_t k = threadIdx.x; k < p.t.n; k += PREPARERS) {
        int64_t away = 0;
        for (int d = 0; d < p.ndim; d++) {
            const int64_t offset =
                limit_offset(*reinterpret_cast<const int64_t *>(p.offset + k * p.step[0] + d * p.step[1]));
            p.t.offset[k * p.ndim + d] = offset;
            away = int64_t(uint64_t(away) * uint64_t(p.shape[d]) + uint64_t(offset));
            atomicMin(&low[d], (long long)offset);
            atomicMax(&high[d], (long long)offset);
        }
        p.t.away[k] = away;
    }
    __syncthreads();
    if (int(threadIdx.x) >= p.ndim) return;
    p.t.low[threadIdx.x] = low[threadIdx.x];
    p.t.high[threadIdx.x] = high[threadIdx.x];
}

int open_taps(ad_call *c, const array *x, taps *t) {
    array offsets;
    int status = ad_call_input(c, 1, AD_INT64, &offsets);
    if (status) return status;
    preparing p = {};
    t->n = offsets.shape[0];
    t->offset = static_cast<int64_t *>(ad_call_workspace(c, uint64_t((t->n + 2) * x->ndim + t->n) * 8));
    if (!t->offset) return AD_E_MEMORY;
    t->away = t->offset + t->n * x->ndim;
    t->low = t->away + t->n;
    t->high = t->low + x->ndim;
    p.t = *t;
    p.offset = offsets.data;
    p.step[0] = offsets.stride[0];
    p.step[1] = offsets.stride[1];
    p.ndim = x->ndim;
    for (int d = 0; d < x->ndim; d++) p.shape[d] = x->shape[d];
    prepare_taps<<<1, PREPARERS, 0, c->stream->cuda>>>(p);
    return ad_cuda_launched("the offsets of a window", c->fault);
}

/* ---- windows ---- */

template <bool Small, class T> __device__ int64_t split_place(const windows<T> &w, int64_t *rest, int d) {
    if (Small) {
        uint32_t at;
        *rest = w.divisor[d].divide(uint32_t(*rest), &at);
        return at;
    }
    const int64_t n = *rest / w.shape[d], at = *rest - n * w.shape[d];
    *rest = n;
    return at;
}

/* Tell whether the whole window is within the array. */
template <bool Small, class T> __device__ bool is_inside(const windows<T> &w, int64_t place) {
    for (int d = w.ndim - 1; d >= 0; d--) {
        const int64_t at = split_place<Small>(w, &place, d);
        if (at + w.t.low[d] < 0 || at + w.t.high[d] >= w.shape[d]) return false;
    }
    return true;
}

/* The element at an offset that may lead beyond an edge. */
template <bool Small, class T> __device__ T load_edge(const windows<T> &w, int64_t place, int64_t k) {
    int64_t from = 0, step = 1;
    for (int d = w.ndim - 1; d >= 0; d--) {
        const int64_t at = find_edge(split_place<Small>(w, &place, d) + w.t.offset[k * w.ndim + d], w.shape[d], w.mode);
        if (at < 0) return w.value;
        from += at * step;
        step *= w.shape[d];
    }
    return w.x[from];
}

template <bool Small, class T> __device__ T load_tap(const windows<T> &w, int64_t place, bool inside, int64_t k) {
    return inside ? w.x[place + w.t.away[k]] : load_edge<Small>(w, place, k);
}

/* ---- one result ---- */

template <class V> struct adding {
    using type = V;
    template <bool Small> static __device__ V make(const windows<V> &w, int64_t place, bool inside) {
        V sum = V(0);
#pragma unroll 4
        for (int64_t k = 0; k < w.t.n; k++) sum = sum + w.height[k] * load_tap<Small>(w, place, inside, k);
        return sum;
    }
};

template <class V> struct raising {
    using type = V;
    template <bool Small> static __device__ V make(const windows<V> &w, int64_t place, bool inside) {
        V best = V(0);
        for (int64_t k = 0; k < w.t.n; k++) {
            const V x = load_tap<Small>(w, place, inside, k), v = w.greatest ? x + w.height[k] : x - w.height[k];
            if (k == 0 || (w.greatest ? v > best : v < best)) best = v;
        }
        return best;
    }
};

/* The least key, which is that of the greatest element where the order is turned. */
template <class K> struct limiting {
    using type = K;
    template <bool Small> static __device__ K make(const windows<K> &w, int64_t place, bool inside) {
        K least = K(~K(0));
#pragma unroll 4
        for (int64_t k = 0; k < w.t.n; k++) {
            const K v = w.order.key(load_tap<Small>(w, place, inside, k));
            least = v < least ? v : least;
        }
        return w.order.back(least);
    }
};

/* Keys of any number are counted below a bound, bit by bit of the result. */
template <class K> struct bisecting {
    using type = K;
    template <bool Small> static __device__ K make(const windows<K> &w, int64_t place, bool inside) {
        K found = 0;
        for (int bit = 8 * int(sizeof(K)) - 1; bit >= 0; bit--) {
            const K bound = K(found | K(K(1) << bit));
            int64_t below = 0;
#pragma unroll 4
            for (int64_t k = 0; k < w.t.n; k++) below += w.order.key(load_tap<Small>(w, place, inside, k)) < bound;
            if (below <= w.rank) found = bound;
        }
        return w.order.back(found);
    }
};

/* ---- networks that sort in registers ---- */

struct comparison {
    int a, b;
};

/* Batcher's merge exchange. */
template <int N> struct network {
    int n = 0;
    comparison at[N * 10] = {};

    constexpr network() {
        for (int p = 1; p < N; p *= 2)
            for (int k = p; k >= 1; k /= 2)
                for (int j = k % p; j + k < N; j += 2 * k)
                    for (int i = 0; i < k && i < N - j - k; i++)
                        if ((i + j) / (2 * p) == (i + j + k) / (2 * p)) at[n++] = {i + j, i + j + k};
    }
};
template <int N> constexpr network<N> network_of = network<N>();

template <int A, int B, class R, int N> __device__ __forceinline__ void compare_two(R (&key)[N]) {
    const R low = min(key[A], key[B]), high = max(key[A], key[B]);
    key[A] = low;
    key[B] = high;
}

template <class R, int N, size_t... I>
__device__ __forceinline__ void sort_keys(R (&key)[N], std::index_sequence<I...>) {
    (compare_two<network_of<N>.at[I].a, network_of<N>.at[I].b>(key), ...);
}

/* Sorting of at most N elements. Rank not below 0: of exactly N, with only those steps of the network that the rank
 * depends on. */
template <class K, int N, int Rank> struct sorting {
    using type = K;
    template <bool Small> static __device__ K make(const windows<K> &w, int64_t place, bool inside) {
        using R = conditional_t<(sizeof(K) > 4), unsigned long long, uint32_t>;
        R key[N];
#pragma unroll
        for (int k = 0; k < N; k++)
            key[k] = Rank >= 0 || k < w.t.n ? R(w.order.key(load_tap<Small>(w, place, inside, k))) : ~R(0);
        sort_keys(key, std::make_index_sequence<size_t(network_of<N>.n)>());
        if (Rank >= 0) return w.order.back(K(key[Rank < 0 ? 0 : Rank]));
        R found = 0;
#pragma unroll
        for (int k = 0; k < N; k++)
            if (k == w.rank) found = key[k];
        return w.order.back(K(found));
    }
};

/* ---- launching ---- */

template <class Op, bool Small> __global__ void __launch_bounds__(THREADS)
    filter_windows(const __grid_constant__ windows<typename Op::type> w) {
    const int64_t step = int64_t(gridDim.x) * THREADS;
    for (int64_t i = int64_t(blockIdx.x) * THREADS + threadIdx.x; i < w.count; i += step)
        w.out[i] = Op::template make<Small>(w, i, is_inside<Small>(w, i));
}

template <class Op> int launch_windows(ad_call *c, const windows<typename Op::type> *w) {
    const unsigned blocks = unsigned(std::min((w->count + THREADS - 1) / THREADS, MOST_BLOCKS));
    if (w->count < SMALL) filter_windows<Op, true><<<blocks, THREADS, 0, c->stream->cuda>>>(*w);
    else filter_windows<Op, false><<<blocks, THREADS, 0, c->stream->cuda>>>(*w);
    return ad_cuda_launched("a filter", c->fault);
}

struct operands {
    array x, out;
    taps t;
};

int open_operands(ad_call *c, operands *o) {
    int status;
    if ((status = ad_call_input_packed(c, 0, c->op->loop, &o->x)) ||
        (status = ad_cuda_packed_output(c, 0, c->op->loop, &o->out)))
        return status;
    return count(o->out) > 0 ? open_taps(c, &o->x, &o->t) : 0;
}

template <class T> windows<T> make_windows(ad_call *c, const operands *o, int64_t mode, const ad_scalar *value) {
    windows<T> w = {};
    alignas(16) char bytes[16];
    ad_scalar_store(value, c->op->loop, bytes);
    memcpy(&w.value, bytes, sizeof w.value);
    w.t = o->t;
    w.x = reinterpret_cast<const T *>(o->x.data);
    w.out = reinterpret_cast<T *>(o->out.data);
    w.count = count(o->x);
    w.mode = int(mode);
    w.ndim = o->x.ndim;
    for (int d = 0; d < w.ndim; d++) {
        w.shape[d] = o->x.shape[d];
        if (w.count < SMALL) w.divisor[d].set(w.shape[d]);
    }
    return w;
}

template <class S> int rank_windows(ad_call *c, const operands *o) {
    if constexpr (is_complex<S>) return AD_E_TYPE;
    else {
        using K = typename order<S>::key;
        constexpr int MOST = sizeof(K) > 4 ? 32 : 64;
        windows<K> w = make_windows<K>(c, o, c->op->param[1].as.i, &c->op->param[2]);
        w.rank = c->op->param[0].as.i;
        w.order = rank_type<S>(w.rank > 0 && w.rank == w.t.n - 1);
        if (w.rank == 0 || w.rank == w.t.n - 1) return launch_windows<limiting<K>>(c, &w);
        if (w.t.n == 9 && w.rank == 4) return launch_windows<sorting<K, 9, 4>>(c, &w);
        if (w.t.n == 25 && w.rank == 12) return launch_windows<sorting<K, 25, 12>>(c, &w);
        if (w.t.n <= 16) return launch_windows<sorting<K, 16, -1>>(c, &w);
        if (w.t.n <= MOST) return launch_windows<sorting<K, MOST, -1>>(c, &w);
        return launch_windows<bisecting<K>>(c, &w);
    }
}

} // namespace

int ad_call_correlate(ad_call *c) {
    operands o;
    array weights;
    int status = ad_call_input_packed(c, 2, c->op->loop, &weights);
    if (status || (status = open_operands(c, &o))) return status;
    if (count(o.out) == 0) return 0;
    c->run->wrote = true;
    status = visit(c->op->loop, [&](auto t) {
        using S = typename decltype(t)::type;
        if constexpr (is_float<S> || is_complex<S> || same<S, int64_t>) {
            windows<S> w = make_windows<S>(c, &o, c->op->param[0].as.i, &c->op->param[1]);
            w.height = reinterpret_cast<const S *>(weights.data);
            return launch_windows<adding<S>>(c, &w);
        } else return int(AD_E_TYPE);
    });
    return status ? status : ad_call_finish(c, 0, &o.out);
}

int ad_call_grey_filter(ad_call *c) {
    operands o;
    array heights;
    int status = ad_call_input_packed(c, 2, c->op->loop, &heights);
    if (status || (status = open_operands(c, &o))) return status;
    if (count(o.out) == 0) return 0;
    c->run->wrote = true;
    status = visit(c->op->loop, [&](auto t) {
        using S = typename decltype(t)::type;
        if constexpr (is_float<S>) {
            windows<S> w = make_windows<S>(c, &o, c->op->param[1].as.i, &c->op->param[2]);
            w.height = reinterpret_cast<const S *>(heights.data);
            w.greatest = c->op->param[0].as.b;
            return launch_windows<raising<S>>(c, &w);
        } else return int(AD_E_TYPE);
    });
    return status ? status : ad_call_finish(c, 0, &o.out);
}

int ad_call_rank_filter(ad_call *c) {
    operands o;
    int status = open_operands(c, &o);
    if (status) return status;
    if (count(o.out) == 0) return 0;
    c->run->wrote = true;
    status = visit(c->op->loop, [&](auto t) { return rank_windows<typename decltype(t)::type>(c, &o); });
    return status ? status : ad_call_finish(c, 0, &o.out);
}
