/* merge and merge_pairs. The result is cut into tiles, a block each. A first kernel finds the cuts, all at once. The
 * second one brings what a tile is made of into shared memory, where each thread merges a few elements. Arrays that are
 * not sorted have cuts that do not ascend, so those are put where a tile's elements fit. */
#include "kernels/call.h"
#include "kernels/call_merge.h"
#include "kernels/cuda/backend/device.h"

namespace {

using namespace ad;

constexpr int THREADS = 256;
/* Elements of a thread: odd, so that neighbouring threads meet different banks. */
template <class S, bool Pairs> constexpr int each_of = sizeof(S) + (Pairs ? 8 : 0) > 8 ? 7 : 11;
template <class S, bool Pairs> constexpr int tile_of = THREADS *each_of<S, Pairs>;

template <class S> struct merging {
    const S *a, *b;
    const int64_t *a_number, *b_number;
    char *out, *out_number;
    int64_t step, number_step; /* in bytes */
    int64_t na, nb, tiles;
    int64_t *cuts; /* of a, where each tile begins, and its end */
};

template <class S, int Tile> __global__ void __launch_bounds__(THREADS)
    find_cuts(const __grid_constant__ merging<S> m) {
    const int64_t tile = int64_t(blockIdx.x) * THREADS + threadIdx.x;
    if (tile > m.tiles) return;
    const int64_t cut = min(tile * Tile, m.na + m.nb);
    m.cuts[tile] = count_of_first(m.a, m.na, m.b, m.nb, cut);
}

/* Merge a thread's elements; the tile has na keys of the first array, then nb of the second. places: where each lies.
 */
template <class S, int Each>
__device__ void merge_some(const S *keys, int na, int nb, int first, S (&key)[Each], int (&place)[Each]) {
    const int end = na + nb;
    int i = count_of_first(keys, na, keys + na, nb, first), j = na + first - i;
#pragma unroll
    for (int e = 0; e < Each; e++) {
        if (first + e >= end) break;
        const bool second = i >= na || (j < end && sorts_before(keys[j], keys[i]));
        place[e] = second ? j++ : i++;
        key[e] = keys[place[e]];
    }
}

template <class S, bool Pairs> __global__ void __launch_bounds__(THREADS)
    merge_tiles(const __grid_constant__ merging<S> m) {
    constexpr int EACH = each_of<S, Pairs>, TILE = tile_of<S, Pairs>;
    __shared__ __align__(16) char key_memory[TILE * sizeof(S)];
    __shared__ int64_t numbers[Pairs ? TILE : 1];
    S *keys = reinterpret_cast<S *>(key_memory), key[EACH];
    int64_t number[EACH];
    int place[EACH];
    const int64_t begin = int64_t(blockIdx.x) * TILE, a = m.cuts[blockIdx.x], b = begin - a;
    const int size = int(min(int64_t(TILE), m.na + m.nb - begin));
    const int na = int(min(max(m.cuts[blockIdx.x + 1] - a, int64_t(0)), int64_t(size)));
    for (int i = int(threadIdx.x); i < size; i += THREADS) {
        keys[i] = i < na ? m.a[a + i] : m.b[b + i - na];
        if constexpr (Pairs) numbers[i] = i < na ? m.a_number[a + i] : m.b_number[b + i - na];
    }
    __syncthreads();
    const int first = int(threadIdx.x) * EACH, mine = max(0, min(EACH, size - first));
    if (mine) merge_some<S, EACH>(keys, na, size - na, first, key, place);
    if constexpr (Pairs)
#pragma unroll
        for (int e = 0; e < EACH; e++) number[e] = e < mine ? numbers[place[e]] : 0;
    __syncthreads();
#pragma unroll
    for (int e = 0; e < EACH; e++)
        if (e < mine) {
            keys[first + e] = key[e];
            if constexpr (Pairs) numbers[first + e] = number[e];
        }
    __syncthreads();
    for (int i = int(threadIdx.x); i < size; i += THREADS) {
        *reinterpret_cast<S *>(m.out + (begin + i) * m.step) = keys[i];
        if constexpr (Pairs) *reinterpret_cast<int64_t *>(m.out_number + (begin + i) * m.number_step) = numbers[i];
    }
}

template <class S, bool Pairs> int launch(ad_call *c, merging<S> m) {
    constexpr int TILE = tile_of<S, Pairs>;
    m.tiles = (m.na + m.nb + TILE - 1) / TILE;
    m.cuts = static_cast<int64_t *>(ad_call_workspace(c, uint64_t(m.tiles + 1) * 8));
    if (!m.cuts) return AD_E_MEMORY;
    c->run->wrote = true;
    find_cuts<S, TILE><<<unsigned(m.tiles / THREADS + 1), THREADS, 0, c->stream->cuda>>>(m);
    merge_tiles<S, Pairs><<<unsigned(m.tiles), THREADS, 0, c->stream->cuda>>>(m);
    return ad_cuda_launched("merge", c->fault);
}

template <class S, bool Pairs> int merge(ad_call *c) {
    array x[4], out[2];
    int status = 0;
    for (int i = 0; i < c->op->nin && !status; i++)
        status = ad_call_input_packed(c, i, i < 2 ? c->op->loop : int(AD_INT64), &x[i]);
    for (int i = 0; i < c->op->nout && !status; i++)
        status = ad_call_output(c, i, i ? int(AD_INT64) : c->op->loop, &out[i]);
    if (status || count(out[0]) == 0) return status;
    merging<S> m = {};
    m.a = reinterpret_cast<const S *>(x[0].data);
    m.b = reinterpret_cast<const S *>(x[1].data);
    m.na = x[0].shape[0];
    m.nb = x[1].shape[0];
    m.out = out[0].data;
    m.step = out[0].stride[0];
    if (Pairs) {
        m.a_number = reinterpret_cast<const int64_t *>(x[2].data);
        m.b_number = reinterpret_cast<const int64_t *>(x[3].data);
        m.out_number = out[1].data;
        m.number_step = out[1].stride[0];
    }
    if ((status = launch<S, Pairs>(c, m)) || (status = ad_call_finish(c, 0, &out[0]))) return status;
    return Pairs ? ad_call_finish(c, 1, &out[1]) : 0;
}

template <bool Pairs> int merge_any(ad_call *c) {
    return visit(c->op->loop, [&](auto t) { return merge<typename decltype(t)::type, Pairs>(c); });
}

} // namespace

int ad_call_merge(ad_call *c) { return merge_any<false>(c); }

int ad_call_merge_pairs(ad_call *c) { return merge_any<true>(c); }
