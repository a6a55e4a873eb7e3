/* Stable sorting of rows of keys, alone or with an index each. Blocks sort as many elements as shared memory holds: a
 * piece of a row, or several short rows. Then runs are merged two by two. */
#include "kernels/cuda/call/sort/sort.h"

#include "kernels/call_order.h"
#include "kernels/cuda/backend/device.h"
#include "kernels/cuda/backend/divide.h"

namespace {

using namespace ad;

constexpr int THREADS = 256, EACH = AD_MERGE_TILE / THREADS;
static_assert(EACH * THREADS == AD_MERGE_TILE && EACH % 2 == 1, "odd: neighbouring threads meet different banks");

/* Order of keys: of equal ones `minus` and `zero` are. */
template <class K> struct key_order {
    K minus, zero;
    __device__ K of(K k) const { return k == minus ? zero : k; }
    __device__ bool less(K a, K b) const { return of(a) < of(b); }
};

template <class K, bool Indexed> struct room {
    K key[AD_MERGE_TILE];
    uint32_t index[Indexed ? AD_MERGE_TILE : 1];
};

template <class K, bool Indexed> struct job {
    const K *from_key;
    const uint32_t *from_index; /* NULL: count up in every row */
    K *to_key;
    uint32_t *to_index;
    int64_t rows, n, run;
    int64_t tiles;    /* of a row */
    int lanes, group; /* short rows: threads for each, rows in a block */
    ad_divisor by_length;
    key_order<K> order;
};

/* Count how many of the first `diagonal` elements of two merged runs come from a. */
template <class K> __device__ int split(const key_order<K> &o, const K *a, int na, const K *b, int nb, int diagonal) {
    int low = max(0, diagonal - nb), high = min(diagonal, na);
    while (low < high) {
        const int middle = (low + high) / 2;
        if (o.less(b[diagonal - 1 - middle], a[middle])) high = middle;
        else low = middle + 1;
    }
    return low;
}

/* A thread's EACH elements of two runs merged: from their own place on. */
template <class K, bool Indexed> __device__ void merge_some(const key_order<K> &o, const room<K, Indexed> &r, int a,
                                                            int na, int b, int nb, int diagonal, K (&key)[EACH],
                                                            uint32_t (&index)[EACH]) {
    int i = split(o, r.key + a, na, r.key + b, nb, diagonal), j = diagonal - i;
    i += a;
    j += b;
    const int i_end = a + na, j_end = b + nb;
    K x = i < i_end ? r.key[i] : K(0), y = j < j_end ? r.key[j] : K(0);
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        const bool second = i >= i_end || (j < j_end && o.less(y, x));
        const int at = second ? j : i;
        key[e] = second ? y : x;
        if constexpr (Indexed) index[e] = at < AD_MERGE_TILE ? r.index[at] : 0;
        if (second) {
            j++;
            if (j < j_end) y = r.key[j];
        } else {
            i++;
            if (i < i_end) x = r.key[i];
        }
    }
}

/* Insertion by exchanging neighbours: every step is known when the code is compiled. */
template <class K, bool Indexed>
__device__ void sort_own(const key_order<K> &o, K (&key)[EACH], uint32_t (&index)[EACH]) {
#pragma unroll
    for (int round = 0; round < EACH; round++)
#pragma unroll
        for (int e = round & 1; e + 1 < EACH; e += 2)
            if (o.less(key[e + 1], key[e])) {
                const K k = key[e];
                key[e] = key[e + 1];
                key[e + 1] = k;
                if constexpr (Indexed) {
                    const uint32_t i = index[e];
                    index[e] = index[e + 1];
                    index[e + 1] = i;
                }
            }
}

/* A thread's elements to their places; `mine` of them exist. */
template <class K, bool Indexed> __device__ void put_back(room<K, Indexed> &r, int first, int mine,
                                                          const K (&key)[EACH], const uint32_t (&index)[EACH]) {
#pragma unroll
    for (int e = 0; e < EACH; e++)
        if (e < mine) {
            r.key[first + e] = key[e];
            if constexpr (Indexed) r.index[first + e] = index[e];
        }
}

/* The work of a block: `rows` rows of `length`, which come from `first` on; the pieces of a long row count as one row.
 */
struct share {
    int64_t first;  /* of the block's elements */
    int64_t column; /* of its first element in its row */
    int rows, length;
};

template <class K, bool Indexed> __device__ share share_of(const job<K, Indexed> &t) {
    share s;
    if (t.group > 0) {
        const int64_t row = int64_t(blockIdx.x) * t.group;
        s.first = row * t.n;
        s.column = 0;
        s.rows = int(min(int64_t(t.group), t.rows - row));
        s.length = int(t.n);
        return s;
    }
    const int64_t row = blockIdx.x / t.tiles;
    s.column = blockIdx.x % t.tiles * AD_MERGE_TILE;
    s.first = row * t.n + s.column;
    s.rows = 1;
    s.length = int(min(int64_t(AD_MERGE_TILE), t.n - s.column));
    return s;
}

/* Rows start at multiples of lanes * EACH in shared memory. */
template <class K, bool Indexed>
__device__ void load_rows(const job<K, Indexed> &t, const share &s, room<K, Indexed> &r) {
    const int pitch = t.lanes * EACH, n = s.rows * s.length;
    for (int i = int(threadIdx.x); i < n; i += THREADS) {
        uint32_t at = uint32_t(i);
        const uint32_t row = s.rows == 1 ? 0 : t.by_length.divide(uint32_t(i), &at);
        const int to = int(row) * pitch + int(at);
        r.key[to] = t.from_key[s.first + i];
        if constexpr (Indexed) r.index[to] = t.from_index ? t.from_index[s.first + i] : uint32_t(s.column + at);
    }
}

template <class K, bool Indexed>
__device__ void store_rows(const job<K, Indexed> &t, const share &s, const room<K, Indexed> &r) {
    const int pitch = t.lanes * EACH, n = s.rows * s.length;
    for (int i = int(threadIdx.x); i < n; i += THREADS) {
        uint32_t at = uint32_t(i);
        const uint32_t row = s.rows == 1 ? 0 : t.by_length.divide(uint32_t(i), &at);
        const int from = int(row) * pitch + int(at);
        t.to_key[s.first + i] = r.key[from];
        if constexpr (Indexed) t.to_index[s.first + i] = r.index[from];
    }
}

template <class K, bool Indexed> __global__ void __launch_bounds__(THREADS)
    sort_tiles(const __grid_constant__ job<K, Indexed> t) {
    extern __shared__ __align__(16) char memory[];
    room<K, Indexed> &r = *reinterpret_cast<room<K, Indexed> *>(memory);
    const share s = share_of(t);
    const int row = int(threadIdx.x) / t.lanes, lane = int(threadIdx.x) % t.lanes;
    const int base = row * t.lanes * EACH, own = lane * EACH;
    const int mine = row < s.rows ? min(EACH, max(0, s.length - own)) : 0;
    K key[EACH];
    uint32_t index[EACH];
    load_rows(t, s, r);
    __syncthreads();
#pragma unroll
    for (int e = 0; e < EACH; e++) {
        key[e] = e < mine ? r.key[base + own + e] : K(~K(0));
        if constexpr (Indexed) index[e] = e < mine ? r.index[base + own + e] : 0;
    }
    sort_own<K, Indexed>(t.order, key, index);
    put_back(r, base + own, mine, key, index);
    for (int width = 1; width * EACH < s.length; width *= 2) {
        __syncthreads();
        const int start = lane / (2 * width) * (2 * width) * EACH, run = width * EACH;
        const int na = min(run, s.length - start), nb = max(0, min(run, s.length - start - run));
        if (mine > 0) merge_some(t.order, r, base + start, na, base + start + na, nb, own - start, key, index);
        __syncthreads();
        put_back(r, base + own, mine, key, index);
    }
    __syncthreads();
    store_rows(t, s, r);
}

/* Do the same as split for runs in device memory, by a whole warp. */
template <class K>
__device__ int64_t split_far(const key_order<K> &o, const K *a, int64_t na, const K *b, int64_t nb, int64_t diagonal) {
    int64_t low = max(int64_t(0), diagonal - nb), high = min(diagonal, na);
    const int lane = int(threadIdx.x) % 32;
    while (low < high) {
        const int64_t step = (high - low + 31) / 32, at = low + lane * step;
        const bool below = at < high && !o.less(b[diagonal - 1 - at], a[at]);
        const int passed = __popc(__ballot_sync(~0u, below));
        if (passed == 0) return low;
        const int64_t last = low + (passed - 1) * step;
        high = min(high, last + step);
        low = last + 1;
    }
    return low;
}

/* A block's tile of two merged runs. */
template <class K, bool Indexed> __global__ void __launch_bounds__(THREADS)
    merge_tiles(const __grid_constant__ job<K, Indexed> t) {
    extern __shared__ __align__(16) char memory[];
    __shared__ int64_t cut[2];
    room<K, Indexed> &r = *reinterpret_cast<room<K, Indexed> *>(memory);
    const int64_t row = blockIdx.x / t.tiles, column = blockIdx.x % t.tiles * AD_MERGE_TILE;
    const int64_t start = column / (2 * t.run) * (2 * t.run), base = row * t.n;
    const int64_t na = min(t.run, t.n - start), nb = max(int64_t(0), min(t.run, t.n - start - na));
    const int64_t begin = column - start, end = min(begin + AD_MERGE_TILE, na + nb);
    const K *a = t.from_key + base + start, *b = a + na;
    const int warp = int(threadIdx.x) / 32;
    if (warp < 2) {
        const int64_t i = split_far(t.order, a, na, b, nb, warp == 0 ? begin : end);
        if (threadIdx.x % 32 == 0) cut[warp] = i;
    }
    __syncthreads();
    const int64_t a_first = cut[0], b_first = begin - cut[0];
    const int n = int(end - begin), n_a = int(cut[1] - cut[0]), n_b = n - n_a;
    for (int i = int(threadIdx.x); i < n; i += THREADS) {
        const int64_t at = i < n_a ? a_first + i : na + b_first + (i - n_a);
        r.key[i] = a[at];
        if constexpr (Indexed) r.index[i] = t.from_index[base + start + at];
    }
    __syncthreads();
    K key[EACH];
    uint32_t index[EACH];
    const int own = int(threadIdx.x) * EACH, mine = min(EACH, max(0, n - own));
    if (mine > 0) merge_some(t.order, r, 0, n_a, n_a, n_b, own, key, index);
    __syncthreads();
    put_back(r, own, mine, key, index);
    __syncthreads();
    for (int i = int(threadIdx.x); i < n; i += THREADS) {
        t.to_key[base + column + i] = r.key[i];
        if constexpr (Indexed) t.to_index[base + column + i] = r.index[i];
    }
}

/* ---- the host's part ---- */

template <class K> key_order<K> order_of(const ad_merge *m) {
    key_order<K> o = {K(0), K(0)};
    if (m->index[0]) return o; /* its keys are equal already */
    visit(m->dtype, [&](auto t) {
        using S = typename decltype(t)::type;
        if constexpr (!is_complex<S>)
            if (order<S>::real) o = {K(order<S>::minus_zero), K(order<S>::zero)};
    });
    return o;
}

template <class K, bool Indexed> job<K, Indexed> job_of(const ad_merge *m) {
    job<K, Indexed> t;
    t.from_key = static_cast<const K *>(m->keys[m->at]);
    t.from_index = m->index[m->at];
    t.to_key = static_cast<K *>(m->keys[1 - m->at]);
    t.to_index = m->index[1 - m->at];
    t.rows = m->rows;
    t.n = m->n;
    t.run = 0;
    t.tiles = (m->n + AD_MERGE_TILE - 1) / AD_MERGE_TILE;
    t.lanes = THREADS;
    t.group = 0;
    t.by_length.set(m->n < AD_MERGE_TILE ? m->n : 1);
    t.order = order_of<K>(m);
    return t;
}

/* Launch. A kernel has to ask for more shared memory than 48 KiB once. */
template <class F> int launch(ad_call *c, F kernel, int64_t blocks, size_t shared, const void *argument) {
    int status = 0;
    void *arguments[] = {const_cast<void *>(argument)};
    const void *f = reinterpret_cast<const void *>(kernel);
    if (shared > 48 << 10)
        status = ad_cuda_status(cudaFuncSetAttribute(f, cudaFuncAttributeMaxDynamicSharedMemorySize, int(shared)),
                                "sorting", c->fault);
    if (status) return status;
    return ad_cuda_status(
        cudaLaunchKernel(f, dim3(unsigned(blocks)), dim3(THREADS), arguments, shared, c->stream->cuda), "sorting",
        c->fault);
}

template <class K, bool Indexed> int tiles_of(ad_call *c, ad_merge *m, bool count_up) {
    job<K, Indexed> t = job_of<K, Indexed>(m);
    int64_t blocks = m->rows * t.tiles;
    if (count_up) t.from_index = nullptr;
    if (m->n <= AD_MERGE_TILE / 2) {
        t.lanes = int((m->n + EACH - 1) / EACH);
        t.group = THREADS / t.lanes;
        blocks = (m->rows + t.group - 1) / t.group;
    }
    m->at = 1 - m->at;
    return launch(c, sort_tiles<K, Indexed>, blocks, sizeof(room<K, Indexed>), &t);
}

template <class K, bool Indexed> int runs_of(ad_call *c, ad_merge *m, int64_t run) {
    for (; run < m->n; run *= 2) {
        job<K, Indexed> t = job_of<K, Indexed>(m);
        t.run = run;
        m->at = 1 - m->at;
        const int status = launch(c, merge_tiles<K, Indexed>, m->rows * t.tiles, sizeof(room<K, Indexed>), &t);
        if (status) return status;
    }
    return 0;
}

} // namespace

int ad_cuda_sort_tiles(ad_call *c, ad_merge *m, bool count_up) {
    if (ad_cuda_key_size(m->dtype) == 4)
        return m->index[0] ? tiles_of<uint32_t, true>(c, m, count_up) : tiles_of<uint32_t, false>(c, m, false);
    return m->index[0] ? tiles_of<uint64_t, true>(c, m, count_up) : tiles_of<uint64_t, false>(c, m, false);
}

int ad_cuda_merge_runs(ad_call *c, ad_merge *m, int64_t run) {
    if (ad_cuda_key_size(m->dtype) == 4)
        return m->index[0] ? runs_of<uint32_t, true>(c, m, run) : runs_of<uint32_t, false>(c, m, run);
    return m->index[0] ? runs_of<uint64_t, true>(c, m, run) : runs_of<uint64_t, false>(c, m, run);
}
