/* searchsorted, bincount and histogram. */
#include "kernels/call.h"
#include "kernels/call_order.h"
#include "kernels/cuda/backend/checks.h"
#include "kernels/cuda/backend/device.h"
#include "kernels/histogram.h"

namespace {

using namespace ad;

constexpr int THREADS = 256, EACH = 4; /* searches of a thread: their memory accesses overlap */
constexpr int64_t SHARED_BINS = 4096;  /* that a block counts in shared memory */
constexpr int64_t ELEMENTS = 64;       /* that a thread counts at least before its block adds up */
constexpr int64_t SHARED_EDGES = 2048; /* bins whose edges and counts are in shared memory */

/* ---- searchsorted ---- */

struct searching {
    const char *x;
    char *v, *out;
    int64_t n, values;
    bool right;
    int ndim;
    int64_t shape[AD_MAX_NDIM], stride[AD_MAX_NDIM][2];
};

__device__ void locate(const searching &s, int64_t i, int64_t *out, int64_t *v) {
    *out = *v = 0;
    for (int d = s.ndim - 1; d >= 0; d--) {
        int64_t at = i;
        if (d > 0) {
            at = i % s.shape[d];
            i /= s.shape[d];
        }
        *out += at * s.stride[d][0];
        *v += at * s.stride[d][1];
    }
}

template <class S> __device__ bool before(S e, S v, bool right) {
    return right ? !sorts_before(v, e) : sorts_before(e, v);
}

template <class S> __global__ void __launch_bounds__(THREADS) search(const __grid_constant__ searching s) {
    const int64_t first = int64_t(blockIdx.x) * (THREADS * EACH) + threadIdx.x;
    const S *x = reinterpret_cast<const S *>(s.x);
    int64_t out[EACH], place[EACH];
    S v[EACH];
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        int64_t at;
        place[i] = 0;
        if (first + i * THREADS >= s.values) continue;
        locate(s, first + i * THREADS, &out[i], &at);
        v[i] = *reinterpret_cast<const S *>(s.v + at);
    }
    for (int64_t length = s.n; length > 1;) {
        const int64_t half = length / 2;
#pragma unroll
        for (int i = 0; i < EACH; i++)
            if (first + i * THREADS < s.values && before(x[place[i] + half - 1], v[i], s.right)) place[i] += half;
        length -= half;
    }
#pragma unroll
    for (int i = 0; i < EACH; i++)
        if (first + i * THREADS < s.values) {
            if (s.n > 0 && before(x[place[i]], v[i], s.right)) place[i]++;
            *reinterpret_cast<int64_t *>(s.out + out[i]) = place[i];
        }
}

/* ---- bincount ---- */

struct counting {
    const char *x, *weights; /* NULL: 1 each */
    char *out;
    int64_t x_step, weights_step, out_step, n, bins, each; /* elements of a block */
    ad_check *check;
};

__device__ void add_to(int64_t *to, unsigned long long n) { atomicAdd(reinterpret_cast<unsigned long long *>(to), n); }
__device__ void add_to(unsigned *to, unsigned n) { atomicAdd(to, n); }
__device__ void add_to(double *to, double v) { atomicAdd(to, v); }

__device__ bool bin_of(const counting &k, int64_t i, int64_t *bin) {
    *bin = *reinterpret_cast<const int64_t *>(k.x + i * k.x_step);
    if (uint64_t(*bin) < uint64_t(k.bins)) return true;
    ad_cuda_report(k.check, *bin < 0 ? AD_CHECK_bincount_negative : AD_CHECK_bincount_high, *bin, k.bins, 0);
    return false;
}

template <class T> __device__ T weight_of(const counting &k, int64_t i) {
    if constexpr (same<T, double>) return *reinterpret_cast<const double *>(k.weights + i * k.weights_step);
    else return T(1);
}

/* T: what is counted in in shared memory (unsigned or double), O: of the result. */
template <class T, class O> __global__ void __launch_bounds__(THREADS)
    count_shared(const __grid_constant__ counting k) {
    extern __shared__ __align__(16) char memory[];
    T *table = reinterpret_cast<T *>(memory);
    for (int b = int(threadIdx.x); b < k.bins; b += THREADS) table[b] = T(0);
    __syncthreads();
    const int64_t begin = int64_t(blockIdx.x) * k.each, end = min(begin + k.each, k.n);
    int64_t i = begin + threadIdx.x;
    for (; i + 3 * THREADS < end; i += 4 * THREADS) {
        int64_t bin[4];
        bool good[4];
#pragma unroll
        for (int j = 0; j < 4; j++) good[j] = bin_of(k, i + j * THREADS, &bin[j]);
#pragma unroll
        for (int j = 0; j < 4; j++)
            if (good[j]) add_to(&table[bin[j]], weight_of<T>(k, i + j * THREADS));
    }
    for (; i < end; i += THREADS) {
        int64_t bin;
        if (bin_of(k, i, &bin)) add_to(&table[bin], weight_of<T>(k, i));
    }
    __syncthreads();
    for (int b = int(threadIdx.x); b < k.bins; b += THREADS)
        if (table[b] != T(0)) add_to(reinterpret_cast<O *>(k.out + b * k.out_step), table[b]);
}

template <class T, class O> __global__ void __launch_bounds__(THREADS) count_far(const __grid_constant__ counting k) {
    const int64_t step = int64_t(gridDim.x) * THREADS;
    for (int64_t i = int64_t(blockIdx.x) * THREADS + threadIdx.x; i < k.n; i += step) {
        int64_t bin;
        if (bin_of(k, i, &bin)) add_to(reinterpret_cast<O *>(k.out + bin * k.out_step), weight_of<T>(k, i));
    }
}

/* Zero, as an integer and as a double. */
__global__ void __launch_bounds__(THREADS) clear_bins(const __grid_constant__ counting k) {
    const int64_t b = int64_t(blockIdx.x) * THREADS + threadIdx.x;
    if (b < k.bins) *reinterpret_cast<int64_t *>(k.out + b * k.out_step) = 0;
}

template <class T, class O> void count_all(ad_call *c, counting *k) {
    const int64_t most = c->stream->device->multiprocessors * 8, least = THREADS * ELEMENTS;
    int64_t blocks = (k->n + least - 1) / least;
    blocks = blocks < most ? blocks : most;
    k->each = (k->n + blocks - 1) / blocks;
    if (k->bins > SHARED_BINS || k->n < k->bins || k->each >= int64_t(UINT32_MAX))
        count_far<T, O><<<int(blocks), THREADS, 0, c->stream->cuda>>>(*k);
    else count_shared<T, O><<<int(blocks), THREADS, size_t(k->bins) * sizeof(T), c->stream->cuda>>>(*k);
}

/* ---- histogram ---- */

struct binning {
    const char *x, *edges;
    int64_t n, bins, each; /* each: elements of a block, a multiple of 16 */
    bool whole;            /* x is aligned to 16 bytes */
};

/* Edges in shared memory, what is computed from them, and counts. */
template <class T> struct shared_bins {
    const T *edge;
    unsigned *table;
    bin_guess<T> g;
    int64_t bins;

    __device__ void count(T x) const {
        int64_t bin;
        if (!g.guess(x, &bin)) bin = find_bin(x, edge, bins);
        if (uint64_t(bin) < uint64_t(bins)) atomicAdd(table + bin, 1u);
    }
};

/* The block's edges and empty counts. Errors are not negative, so their bits are in their order. */
template <class T> __device__ shared_bins<T> begin_bins(const binning &k, char *memory, unsigned *error) {
    T *edge = reinterpret_cast<T *>(memory);
    unsigned *table = reinterpret_cast<unsigned *>(memory + (k.bins + 1) * int64_t(sizeof(T)));
    for (int i = int(threadIdx.x); i <= k.bins; i += THREADS) edge[i] = reinterpret_cast<const T *>(k.edges)[i];
    for (int i = int(threadIdx.x); i < k.bins; i += THREADS) table[i] = 0;
    if (threadIdx.x == 0) *error = 0;
    __syncthreads();
    shared_bins<T> s = {edge, table, bin_guess<T>(edge, k.bins), k.bins};
    for (int i = int(threadIdx.x); i <= k.bins; i += THREADS)
        atomicMax(error, __float_as_uint(__double2float_ru(double(s.g.error(edge[i], i)))));
    __syncthreads();
    s.g.trust(T(__uint_as_float(*error)));
    return s;
}

template <class T> __global__ void __launch_bounds__(THREADS)
    bin_shared(const __grid_constant__ binning k, const __grid_constant__ counting to) {
    constexpr int WIDTH = 16 / int(sizeof(T)), DEPTH = 4;
    extern __shared__ __align__(16) char memory[];
    __shared__ unsigned error;
    const shared_bins<T> s = begin_bins<T>(k, memory, &error);
    const int64_t begin = int64_t(blockIdx.x) * k.each, end = min(begin + k.each, k.n);
    const T *x = reinterpret_cast<const T *>(k.x);
    int64_t i = begin;
    if (k.whole)
        for (; i + DEPTH * WIDTH * THREADS <= end; i += DEPTH * WIDTH * THREADS) {
            uint4 v[DEPTH];
#pragma unroll
            for (int u = 0; u < DEPTH; u++)
                v[u] = __ldcs(reinterpret_cast<const uint4 *>(x + i) + u * THREADS + threadIdx.x);
#pragma unroll
            for (int u = 0; u < DEPTH; u++) {
                T e[WIDTH];
                memcpy(e, &v[u], sizeof e);
#pragma unroll
                for (int j = 0; j < WIDTH; j++) s.count(e[j]);
            }
        }
    for (i += threadIdx.x; i < end; i += THREADS) s.count(x[i]);
    __syncthreads();
    for (int b = int(threadIdx.x); b < k.bins; b += THREADS)
        if (s.table[b] > 0) add_to(reinterpret_cast<int64_t *>(to.out + b * to.out_step), s.table[b]);
}

template <class T> __global__ void __launch_bounds__(THREADS)
    bin_far(const __grid_constant__ binning k, const __grid_constant__ counting to) {
    const int64_t step = int64_t(gridDim.x) * THREADS;
    for (int64_t i = int64_t(blockIdx.x) * THREADS + threadIdx.x; i < k.n; i += step) {
        const int64_t bin = find_bin(reinterpret_cast<const T *>(k.x)[i], reinterpret_cast<const T *>(k.edges), k.bins);
        if (uint64_t(bin) < uint64_t(k.bins)) add_to(reinterpret_cast<int64_t *>(to.out + bin * to.out_step), 1);
    }
}

template <class T> void bin_all(ad_call *c, binning *k, const counting &to) {
    constexpr int64_t LEAST = THREADS * ELEMENTS;
    const int64_t most = c->stream->device->multiprocessors * 32, blocks = min((k->n + LEAST - 1) / LEAST, most);
    const cudaStream_t stream = c->stream->cuda;
    k->each = ((k->n + blocks - 1) / blocks + LEAST - 1) / LEAST * LEAST;
    k->whole = reinterpret_cast<uintptr_t>(k->x) % 16 == 0;
    const size_t shared = size_t((k->bins + 1) * int64_t(sizeof(T)) + k->bins * 4);
    if (k->bins > SHARED_EDGES || k->each >= int64_t(UINT32_MAX))
        bin_far<T><<<unsigned(blocks), THREADS, 0, stream>>>(*k, to);
    else bin_shared<T><<<unsigned(blocks), THREADS, shared, stream>>>(*k, to);
}

} // namespace

int ad_call_histogram(ad_call *c) {
    array x, edges, out;
    const int dtype = c->op->loop;
    int status;
    if ((status = ad_call_input_packed(c, 0, dtype, &x)) || (status = ad_call_input_packed(c, 1, dtype, &edges)) ||
        (status = ad_call_output(c, 0, AD_INT64, &out)))
        return status;
    binning k = {x.data, edges.data, x.shape[0], out.shape[0], 0, false};
    counting to = {};
    to.out = out.data;
    to.out_step = out.stride[0];
    to.bins = out.shape[0];
    if (k.bins == 0) return 0;
    c->run->wrote = true;
    clear_bins<<<unsigned((k.bins + THREADS - 1) / THREADS), THREADS, 0, c->stream->cuda>>>(to);
    if (k.n > 0) {
        if (dtype == AD_FLOAT32) bin_all<float>(c, &k, to);
        else bin_all<double>(c, &k, to);
    }
    if ((status = ad_cuda_launched("histogram", c->fault))) return status;
    return ad_call_finish(c, 0, &out);
}

int ad_call_searchsorted(ad_call *c) {
    array x, v, out;
    const int dtype = c->op->loop;
    int status;
    if ((status = ad_call_input_packed(c, 0, dtype, &x)) || (status = ad_call_input(c, 1, dtype, &v)) ||
        (status = ad_call_output(c, 0, AD_INT64, &out)))
        return status;
    if (count(out) == 0) return 0;
    c->run->wrote = true;
    const walk<2> w = walk_of(out, v);
    searching s;
    s.x = x.data;
    s.v = v.data;
    s.out = out.data;
    s.n = x.shape[0];
    s.values = w.count;
    s.right = c->op->param[0].as.b;
    s.ndim = w.ndim;
    for (int i = 0; i < w.ndim; i++) {
        s.shape[i] = w.shape[i];
        for (int k = 0; k < 2; k++) s.stride[i][k] = w.stride[i][k];
    }
    const int64_t blocks = (s.values + THREADS * EACH - 1) / (THREADS * EACH);
    visit(dtype, [&](auto t) {
        using S = typename decltype(t)::type;
        search<S><<<unsigned(blocks), THREADS, 0, c->stream->cuda>>>(s);
    });
    if ((status = ad_cuda_launched("searchsorted", c->fault))) return status;
    return ad_call_finish(c, 0, &out);
}

int ad_call_bincount(ad_call *c) {
    array x, weights, out;
    const bool weighted = c->op->nin > 1;
    int status;
    if ((status = ad_call_input(c, 0, AD_INT64, &x)) ||
        (weighted && (status = ad_call_input(c, 1, AD_FLOAT64, &weights))) ||
        (status = ad_call_output(c, 0, weighted ? AD_FLOAT64 : AD_INT64, &out)))
        return status;
    counting k = {x.data,
                  weighted ? weights.data : nullptr,
                  out.data,
                  x.stride[0],
                  weighted ? weights.stride[0] : 0,
                  out.stride[0],
                  x.shape[0],
                  out.shape[0],
                  0,
                  c->run->check};
    c->run->wrote = c->run->checked = true;
    if (k.bins > 0) clear_bins<<<unsigned((k.bins + THREADS - 1) / THREADS), THREADS, 0, c->stream->cuda>>>(k);
    if (k.n > 0) {
        if (weighted) count_all<double, double>(c, &k);
        else count_all<unsigned, int64_t>(c, &k);
    }
    if ((status = ad_cuda_launched("bincount", c->fault))) return status;
    return ad_call_finish(c, 0, &out);
}
