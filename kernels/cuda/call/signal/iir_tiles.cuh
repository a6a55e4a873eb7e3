/* Recursive filters of few long lanes. A lane is cut into tiles, and a tile into runs of EACH elements, one for each
 * thread of a block.
 *
 * Without its input a filter of order P takes a state z to A z, so after 2^m elements to A^(2^m) z. find_way computes
 * these powers. end_tiles filters each tile from a state of zeros and keeps the state at its end. carry_tiles makes of
 * these the states at the tiles' beginnings, and filter_tiles filters once more, from there. Within a tile the states
 * between runs are found in the same manner. Rounding errors of powers are as large as those of filtering so many
 * elements; a filter whose powers grow is left to one thread for each lane. */
#ifndef AD_KERNELS_CUDA_CALL_SIGNAL_IIR_TILES_CUH
#define AD_KERNELS_CUDA_CALL_SIGNAL_IIR_TILES_CUH

#include "kernels/types.h"

namespace ad {
namespace iir {

constexpr int LOG_THREADS = 6, LOG_EACH = 4, LOG_CARRIERS = 8, LOG_TILE = LOG_THREADS + LOG_EACH;
constexpr int THREADS = 1 << LOG_THREADS, EACH = 1 << LOG_EACH, TILE = 1 << LOG_TILE;
constexpr int CARRIERS = 1 << LOG_CARRIERS; /* threads of carry_tiles */
constexpr int AHEAD = 4;                    /* states that are read before the first of them is needed */
constexpr int MOST_ORDER = 8;               /* of a filter that tiles are for */
constexpr double MOST_GROWTH = 1e10;        /* of an element of a power */
enum { BY_TILES, BY_LANES, FINITE };        /* finite: there are no factors of the output but the first */

/* One section. Element i of lane l is at l * apart + i * step, element j of its state at j * lanes + l. */
template <class T> struct section {
    const T *factor; /* order+1 of the input, then of the output, the first of which is 1 */
    const T *x, *before;
    T *y, *state;   /* what becomes of x and of the state before; y may be x */
    const T *power; /* A^(2^m) row by row, one m after another */
    T *ends;        /* of each tile of each lane the state at its end, then that at its beginning */
    const int *way; /* BY_TILES ... */
    int64_t order, n, lanes, step, apart, tiles;
    int doublings; /* log2 of the tiles of a thread of carry_tiles */
};

template <class T> struct wide_of { using type = double; };
template <class R> struct wide_of<complex<R>> { using type = complex<double>; };

template <class T, int P> struct state { T z[P]; };

template <class T, int P> struct factors {
    T b[P + 1], a[P + 1];
    __device__ explicit factors(const T *from) {
#pragma unroll
        for (int j = 0; j <= P; j++) {
            b[j] = from[j];
            a[j] = from[P + 1 + j];
        }
    }
    /* The result of an element, in transposed direct form II. */
    __device__ T step(T in, state<T, P> &s) const {
        const T out = b[0] * in + s.z[0];
#pragma unroll
        for (int j = 1; j < P; j++) s.z[j - 1] = b[j] * in + s.z[j] - a[j] * out;
        s.z[P - 1] = b[P] * in - a[P] * out;
        return out;
    }
};

/* A^(2^m). */
template <class T, int P> struct matrix {
    T a[P][P];
    __device__ matrix(const T *power, int m) {
#pragma unroll
        for (int i = 0; i < P; i++)
#pragma unroll
            for (int j = 0; j < P; j++) a[i][j] = power[(m * P + i) * P + j];
    }
    /* Add to `to` what becomes of `from`. */
    __device__ void add(state<T, P> &to, const state<T, P> &from) const {
#pragma unroll
        for (int i = 0; i < P; i++)
#pragma unroll
            for (int j = 0; j < P; j++) to.z[i] = to.z[i] + a[i][j] * from.z[j];
    }
};

/* A state of each of the threads of a block, which others read. */
template <class T, int P, int Log> struct exchange {
    T z[P][1 << Log];

    __device__ void put(const state<T, P> &s) {
        __syncthreads();
#pragma unroll
        for (int j = 0; j < P; j++) z[j][threadIdx.x] = s.z[j];
        __syncthreads();
    }
    __device__ state<T, P> get(int thread) const {
        state<T, P> s;
#pragma unroll
        for (int j = 0; j < P; j++) s.z[j] = z[j][thread];
        return s;
    }
};

/* Each thread has the state at the end of 2^m elements, from zeros at their beginning. It becomes that from the
 * beginning of the first thread's elements, and `between` has those of all threads. */
template <class T, int P, int Log>
__device__ void join_states(state<T, P> &s, exchange<T, P, Log> &between, const T *power, int m) {
    for (int k = 0; k < Log; k++) {
        between.put(s);
        const int from = int(threadIdx.x) - (1 << k);
        if (from >= 0) matrix<T, P>(power, m + k).add(s, between.get(from));
    }
    between.put(s);
}

/* A tile in shared memory. Runs have a gap of an element between them, for the banks. */
template <class T> struct tile {
    T v[TILE + THREADS];

    __device__ T &at(uint32_t i) { return v[i + i / EACH]; }
    __device__ T &own(int i) { return v[threadIdx.x * (EACH + 1) + i]; }
    __device__ void load(const T *x, int64_t count) {
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            const uint32_t i = k * THREADS + threadIdx.x;
            at(i) = i < count ? x[i] : T(0);
        }
    }
    __device__ void store(T *y, int64_t count) {
#pragma unroll
        for (int k = 0; k < EACH; k++) {
            const uint32_t i = k * THREADS + threadIdx.x;
            if (i < count) y[i] = at(i);
        }
    }
};

template <class T, int P> __device__ void clear_state(state<T, P> &s) {
#pragma unroll
    for (int j = 0; j < P; j++) s.z[j] = T(0);
}

template <class T, int P> __device__ void load_state(state<T, P> &s, const T *from, int64_t apart) {
#pragma unroll
    for (int j = 0; j < P; j++) s.z[j] = from[j * apart];
}

template <class T, int P> __device__ void store_state(T *to, int64_t apart, const state<T, P> &s) {
#pragma unroll
    for (int j = 0; j < P; j++) to[j * apart] = s.z[j];
}

/* The state at the end of a thread's run, from zeros at its beginning. */
template <class T, int P> __device__ state<T, P> end_run(tile<T> &t, const factors<T, P> &f) {
    state<T, P> s;
    clear_state(s);
#pragma unroll
    for (int i = 0; i < EACH; i++) f.step(t.own(i), s);
    return s;
}

/* ---- the kernels ---- */

template <class T, int P> __global__ void __launch_bounds__(THREADS) end_tiles(const __grid_constant__ section<T> c) {
    __shared__ tile<T> t;
    __shared__ exchange<T, P, LOG_THREADS> between;
    if (*c.way != BY_TILES) return;
    const factors<T, P> f(c.factor);
    for (int64_t b = blockIdx.x; b < c.tiles * c.lanes; b += gridDim.x) {
        const int64_t lane = b / c.tiles, first = (b - lane * c.tiles) * TILE;
        __syncthreads();
        t.load(c.x + lane * c.n + first, c.n - first);
        __syncthreads();
        state<T, P> s = end_run(t, f);
        join_states(s, between, c.power, LOG_EACH);
        if (threadIdx.x == THREADS - 1) store_state(c.ends + b * P, 1, s);
    }
}

/* f(i, state i) for states begin to end in order. It may change state i. */
template <class T, int P, class F> __device__ void for_states(const T *ends, int64_t begin, int64_t end, F f) {
    for (int64_t i = begin; i < end; i += AHEAD) {
        state<T, P> s[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; k++) load_state(s[k], ends + min(i + k, end - 1) * P, 1);
#pragma unroll
        for (int k = 0; k < AHEAD; k++)
            if (i + k < end) f(i + k, s[k]);
    }
}

/* A block for each lane. */
template <class T, int P> __global__ void __launch_bounds__(CARRIERS)
    carry_tiles(const __grid_constant__ section<T> c) {
    __shared__ exchange<T, P, LOG_CARRIERS> between;
    if (*c.way != BY_TILES) return;
    const matrix<T, P> later(c.power, LOG_TILE);
    for (int64_t lane = blockIdx.x; lane < c.lanes; lane += gridDim.x) {
        T *ends = c.ends + lane * c.tiles * P;
        const int64_t begin = int64_t(threadIdx.x) << c.doublings;
        const int64_t end = min(begin + (int64_t(1) << c.doublings), c.tiles);
        state<T, P> s, before;
        clear_state(s);
        if (threadIdx.x == 0) load_state(s, c.before + lane, c.lanes);
        before = s;
        for_states<T, P>(ends, begin, end, [&](int64_t, state<T, P> &at_end) {
            later.add(at_end, s);
            s = at_end;
        });
        join_states(s, between, c.power, LOG_TILE + c.doublings);
        if (threadIdx.x > 0) before = between.get(int(threadIdx.x) - 1);
        for_states<T, P>(ends, begin, end, [&](int64_t i, state<T, P> &at_end) {
            store_state(ends + i * P, 1, before);
            later.add(at_end, before);
            before = at_end;
        });
    }
}

template <class T, int P> __global__ void __launch_bounds__(THREADS)
    filter_tiles(const __grid_constant__ section<T> c) {
    __shared__ tile<T> t;
    __shared__ exchange<T, P, LOG_THREADS> between;
    if (*c.way != BY_TILES) return;
    const factors<T, P> f(c.factor);
    for (int64_t b = blockIdx.x; b < c.tiles * c.lanes; b += gridDim.x) {
        const int64_t lane = b / c.tiles, first = (b - lane * c.tiles) * TILE;
        const int64_t last = c.n - 1 - first - int64_t(threadIdx.x) * EACH; /* in the thread's run */
        state<T, P> carry;
        load_state(carry, c.ends + b * P, 1);
        __syncthreads();
        t.load(c.x + lane * c.n + first, c.n - first);
        __syncthreads();
        state<T, P> s = end_run(t, f);
        if (threadIdx.x == 0) matrix<T, P>(c.power, LOG_EACH).add(s, carry);
        join_states(s, between, c.power, LOG_EACH);
        s = threadIdx.x == 0 ? carry : between.get(int(threadIdx.x) - 1);
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            t.own(i) = f.step(t.own(i), s);
            if (i == last) store_state(c.state + lane, c.lanes, s);
        }
        __syncthreads();
        t.store(c.y + lane * c.n + first, c.n - first);
    }
}

__device__ inline double size_of(double v) { return v < 0 ? -v : v; }
__device__ inline double size_of(complex<double> v) { return size_of(v.re) + size_of(v.im); }
template <class T> __device__ bool is_nothing(T v) {
    if constexpr (is_complex<T>) return v.re == 0 && v.im == 0;
    else return v == T(0);
}

/* Compute the powers of a section and choose how it is filtered: one block for each section, of P * P threads at
 * least. P: 0 where tiles are not for it. */
template <class T, int P> __global__ void __launch_bounds__(THREADS)
    find_way(const T *factor, int64_t order, T *power, int powers, int *way, bool alone) {
    using W = typename wide_of<T>::type;
    constexpr int Q = P > 0 ? P : 1;
    __shared__ W a[2][Q][Q];
    __shared__ int bad, recursive;
    const T *f = factor + blockIdx.x * 2 * (order + 1) + order + 1;
    const int i = int(threadIdx.x) / Q, j = int(threadIdx.x) % Q;
    if (threadIdx.x == 0) bad = recursive = 0;
    __syncthreads();
    for (int64_t k = 1 + threadIdx.x; k <= order; k += THREADS)
        if (!is_nothing(f[k])) recursive = 1;
    if (P > 0 && i < Q) a[0][i][j] = j == i + 1 ? W(1) : W(0);
    __syncthreads();
    if (P > 0 && i < Q && j == 0) a[0][i][0] = a[0][i][0] - cast<W>(f[i + 1]);
    __syncthreads();
    for (int m = 0; P > 0 && m < powers; m++) {
        const W(&now)[Q][Q] = a[m % 2];
        if (i < Q) {
            W sum = W(0);
            for (int k = 0; k < Q; k++) sum = sum + now[i][k] * now[k][j];
            a[1 - m % 2][i][j] = sum;
            power[(int64_t(blockIdx.x) * powers + m) * Q * Q + i * Q + j] = cast<T>(now[i][j]);
            if (!(size_of(now[i][j]) < MOST_GROWTH)) bad = 1;
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) way[blockIdx.x] = alone && !recursive ? FINITE : P == 0 || bad ? BY_LANES : BY_TILES;
}

/* ---- without tiles ---- */

/* A thread for each lane. */
template <class T> __global__ void __launch_bounds__(THREADS) filter_lanes(const __grid_constant__ section<T> c) {
    if (*c.way != BY_LANES) return;
    const T *b = c.factor, *a = c.factor + c.order + 1;
    const int64_t threads = int64_t(gridDim.x) * THREADS;
    for (int64_t lane = int64_t(blockIdx.x) * THREADS + threadIdx.x; lane < c.lanes; lane += threads) {
        const T *x = c.x + lane * c.apart;
        T *y = c.y + lane * c.apart, *state = c.state + lane;
        for (int64_t j = 0; j < c.order; j++) state[j * c.lanes] = c.before[j * c.lanes + lane];
        for (int64_t i = 0; i < c.n; i++, x += c.step, y += c.step) {
            const T in = *x, out = c.order > 0 ? b[0] * in + state[0] : b[0] * in;
            *y = out;
            for (int64_t j = 1; j <= c.order; j++) {
                T *z = state + (j - 1) * c.lanes;
                *z = j < c.order ? b[j] * in + z[c.lanes] - a[j] * out : b[j] * in - a[j] * out;
            }
        }
    }
}

/* A thread for each result: a sum from the oldest input to the newest. */
template <class T> __global__ void __launch_bounds__(THREADS) filter_finite(const __grid_constant__ section<T> c) {
    if (*c.way != FINITE) return;
    const int64_t threads = int64_t(gridDim.x) * THREADS, count = c.n * c.lanes;
    for (int64_t u = int64_t(blockIdx.x) * THREADS + threadIdx.x; u < count; u += threads) {
        const int64_t row = u / (c.step == 1 ? c.n : c.lanes), place = u - row * (c.step == 1 ? c.n : c.lanes);
        const int64_t lane = c.step == 1 ? row : place, i = c.step == 1 ? place : row;
        const T *x = c.x + lane * c.apart + i * c.step;
        T sum = i < c.order ? c.before[i * c.lanes + lane] : T(0);
        for (int64_t k = min(i, c.order); k >= 0; k--) sum = c.factor[k] * x[-k * c.step] + sum;
        c.y[lane * c.apart + i * c.step] = sum;
    }
}

/* The states that filter_finite's inputs leave: a thread for each element of them. */
template <class T> __global__ void __launch_bounds__(THREADS) end_finite(const __grid_constant__ section<T> c) {
    if (*c.way != FINITE) return;
    const int64_t threads = int64_t(gridDim.x) * THREADS, count = c.order * c.lanes;
    for (int64_t u = int64_t(blockIdx.x) * THREADS + threadIdx.x; u < count; u += threads) {
        const int64_t j = u / c.lanes, lane = u % c.lanes;
        const T *x = c.x + lane * c.apart + c.n * c.step;
        T sum = j + c.n < c.order ? c.before[(j + c.n) * c.lanes + lane] : T(0);
        for (int64_t k = min(c.order, j + c.n); k > j; k--) sum = c.factor[k] * x[(j - k) * c.step] + sum;
        c.state[u] = sum;
    }
}

} // namespace iir
} // namespace ad
#endif
