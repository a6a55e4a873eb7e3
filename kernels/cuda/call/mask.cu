/* nonzero, compress and place: what a mask picks out. A first pass counts the true elements of each tile of the mask,
 * and a second one adds the counts up. A third one lists each tile's true elements in shared memory and moves the
 * elements that they stand for. So neighbouring threads have neighbouring elements of the result. */
#include "kernels/cuda/call/index/index.h"

#include <pthread.h>

#include "kernels/cuda/backend/checks.h"
#include "kernels/cuda/backend/device.h"
#include "kernels/words.h"

namespace {

using namespace ad;

constexpr int THREADS = 256, CHUNK = 16, EACH = 4; /* mask elements that are loaded at once; chunks of a thread */
constexpr int ROUND = THREADS * CHUNK, TILE = ROUND * EACH;
constexpr int ADDERS = 1024;
template <class W> constexpr int at_once = sizeof(W) > 4 ? 4 : 8; /* elements that a thread moves together */

/* A packed mask, cut into chunks where addresses are multiples of CHUNK: the first `lead` elements of the first chunk
 * are not its own. */
struct mask {
    const uint8_t *chunks;
    int64_t lead, end; /* elements from the start of the first chunk: where it begins and ends */
    int64_t tiles;
    uint32_t *counts; /* of each tile */
    int64_t *before;  /* true elements before each tile, then their number */
    int *stop;        /* place: set when the count is not the one that was wanted */
};

/* Bit i: element i of the chunk is true. */
__device__ uint32_t bits_of(uint32_t four) {
    const uint32_t high = (((four & 0x7f7f7f7fu) + 0x7f7f7f7fu) | four) & 0x80808080u;
    return (high >> 7) * 0x01020408u >> 24 & 15u;
}

__device__ uint32_t load_chunk(const mask &m, int64_t chunk) {
    const int64_t at = chunk * CHUNK;
    if (at >= m.end) return 0;
    if (at >= m.lead && at + CHUNK <= m.end) {
        const uint4 v = __ldcs(reinterpret_cast<const uint4 *>(m.chunks + at));
        return bits_of(v.x) | bits_of(v.y) << 4 | bits_of(v.z) << 8 | bits_of(v.w) << 12;
    }
    uint32_t bits = 0;
    for (int i = 0; i < CHUNK; i++)
        if (at + i >= m.lead && at + i < m.end && m.chunks[at + i] != 0) bits |= 1u << i;
    return bits;
}

__device__ int warp_sum(int v) {
    for (int step = 16; step > 0; step /= 2) v += __shfl_xor_sync(~0u, v, step);
    return v;
}

/* The use of the number of true elements. answer: host memory, or NULL; wanted: what it must be, or -1. */
struct count_check {
    int64_t *answer;
    int64_t wanted;
    ad_check *check;
};

__device__ void tell_total(const mask &m, const count_check &v, int64_t total) {
    m.before[m.tiles] = total;
    if (v.answer) *v.answer = total;
    if (m.stop) *m.stop = total != v.wanted;
    if (v.wanted >= 0 && total != v.wanted) ad_cuda_report(v.check, AD_CHECK_place_count, v.wanted, total, 0);
}

/* A mask of one tile needs no second pass. */
__global__ void __launch_bounds__(THREADS)
    count_tiles(const __grid_constant__ mask m, const __grid_constant__ count_check v) {
    __shared__ int sums[THREADS / 32];
    uint32_t bits[EACH];
    const int64_t first = int64_t(blockIdx.x) * (TILE / CHUNK) + threadIdx.x;
#pragma unroll
    for (int i = 0; i < EACH; i++) bits[i] = load_chunk(m, first + i * THREADS);
    int n = 0;
#pragma unroll
    for (int i = 0; i < EACH; i++) n += __popc(bits[i]);
    n = warp_sum(n);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = n;
    __syncthreads();
    if (threadIdx.x >= 32) return;
    n = warp_sum(threadIdx.x < THREADS / 32 ? sums[threadIdx.x] : 0);
    if (threadIdx.x != 0) return;
    m.counts[blockIdx.x] = uint32_t(n);
    if (m.tiles > 1) return;
    m.before[0] = 0;
    tell_total(m, v, n);
}

/* Sums of those before, over the block; *total of all. */
__device__ int64_t scan_block(int64_t v, int64_t *total) {
    __shared__ int64_t sums[ADDERS / 32];
    const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
    int64_t sum = v;
    for (int step = 1; step < 32; step *= 2) {
        const int64_t other = __shfl_up_sync(~0u, sum, step);
        if (lane >= step) sum += other;
    }
    if (lane == 31) sums[warp] = sum;
    __syncthreads();
    if (warp == 0) {
        int64_t w = sums[lane];
        for (int step = 1; step < 32; step *= 2) {
            const int64_t other = __shfl_up_sync(~0u, w, step);
            if (lane >= step) w += other;
        }
        sums[lane] = w;
    }
    __syncthreads();
    *total = sums[ADDERS / 32 - 1];
    const int64_t before = warp > 0 ? sums[warp - 1] : 0;
    __syncthreads();
    return before + sum - v;
}

/* One block. */
__global__ void __launch_bounds__(ADDERS)
    add_tiles(const __grid_constant__ mask m, const __grid_constant__ count_check v) {
    constexpr int FOUR = 4;
    int64_t before = 0;
    for (int64_t t = 0; t < m.tiles; t += ADDERS * FOUR) {
        const int64_t first = t + threadIdx.x * FOUR;
        int64_t n[FOUR], mine = 0, total;
#pragma unroll
        for (int i = 0; i < FOUR; i++) {
            n[i] = first + i < m.tiles ? m.counts[first + i] : 0;
            mine += n[i];
        }
        int64_t at = before + scan_block(mine, &total);
#pragma unroll
        for (int i = 0; i < FOUR; i++) {
            if (first + i < m.tiles) m.before[first + i] = at;
            at += n[i];
        }
        before += total;
    }
    if (threadIdx.x == 0) tell_total(m, v, before);
}

/* ---- moving ---- */

enum { PICK, PUT, TELL }; /* from the masked array in order; the other way; the places themselves */

struct move {
    mask m;
    char *masked, *line; /* the array that has the mask's axes; the other one, whose elements are `step` bytes apart */
    int64_t step;
    int ndim;
    bool narrow; /* the mask has less than 2^31 elements */
    ad_divisor divisor[AD_MAX_NDIM];
    int64_t shape[AD_MAX_NDIM], stride[AD_MAX_NDIM]; /* of the masked array; for TELL only shape */
};

/* True elements of the block's tile, by their place in it; how many. */
__device__ int list_tile(const mask &m, uint16_t *list) {
    __shared__ uint64_t sums[THREADS / 32];
    const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
    const int64_t first = int64_t(blockIdx.x) * (TILE / CHUNK) + threadIdx.x;
    uint32_t bits[EACH];
    uint64_t count = 0; /* four counts of 16 bits: one scan for all */
#pragma unroll
    for (int i = 0; i < EACH; i++) bits[i] = load_chunk(m, first + i * THREADS);
#pragma unroll
    for (int i = 0; i < EACH; i++) count |= uint64_t(__popc(bits[i])) << (16 * i);
    uint64_t sum = count;
    for (int step = 1; step < 32; step *= 2) {
        const uint64_t other = __shfl_up_sync(~0u, sum, step);
        if (lane >= step) sum += other;
    }
    if (lane == 31) sums[warp] = sum;
    __syncthreads();
    uint64_t all = 0, before = sum - count;
#pragma unroll
    for (int w = 0; w < THREADS / 32; w++) {
        if (w < warp) before += sums[w];
        all += sums[w];
    }
    int found = 0;
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        int at = found + int(before >> (16 * i) & 0xffff);
        for (uint32_t rest = bits[i]; rest != 0; rest &= rest - 1)
            list[at++] = uint16_t(i * ROUND + int(threadIdx.x) * CHUNK + __ffs(int(rest)) - 1);
        found += int(all >> (16 * i) & 0xffff);
    }
    __syncthreads();
    return found;
}

/* Offset of a place of the mask in the array that has its axes. */
__device__ int64_t offset_of(const move &t, int64_t place) {
    int64_t offset = 0;
    if (t.narrow) {
        uint32_t rest = uint32_t(place);
        for (int d = t.ndim - 1; d >= 0; d--) {
            uint32_t at = rest;
            if (d > 0) rest = t.divisor[d].divide(rest, &at);
            offset += at * t.stride[d];
        }
        return offset;
    }
    for (int d = t.ndim - 1; d >= 0; d--) {
        offset += place % t.shape[d] * t.stride[d];
        place /= t.shape[d];
    }
    return offset;
}

/* Number `rank` of `total` true elements is at `place`: its index along every axis. */
__device__ void tell(const move &t, int64_t total, int64_t rank, int64_t place) {
    int64_t *to = reinterpret_cast<int64_t *>(t.line) + rank;
    for (int d = t.ndim - 1; d > 0; d--) {
        int64_t at;
        if (t.narrow) {
            uint32_t rest;
            place = t.divisor[d].divide(uint32_t(place), &rest);
            at = rest;
        } else {
            at = place % t.shape[d];
            place /= t.shape[d];
        }
        to[d * total] = at;
    }
    *to = place;
}

/* A thread's next elements of the list, at_once of them when Whole: all loads are on their way before the first
 * store. `first`: number of its first one in the list. */
template <class W, int How, bool Whole>
__device__ void move_some(const move &t, const uint16_t *list, int first, int found, int64_t rank, int64_t start) {
    constexpr int N = at_once<W>;
    int64_t place[N] = {};
    W w[N];
#pragma unroll
    for (int i = 0; i < N; i++)
        if (Whole || first + i * THREADS < found) place[i] = start + list[first + i * THREADS];
    char *line = t.line + (rank + first) * t.step;
    const int64_t step = THREADS * t.step;
    if (t.ndim == 1) {
#pragma unroll
        for (int i = 0; i < N; i++) place[i] *= t.stride[0];
    } else {
#pragma unroll
        for (int i = 0; i < N; i++)
            if (Whole || first + i * THREADS < found) place[i] = offset_of(t, place[i]);
    }
#pragma unroll
    for (int i = 0; i < N; i++)
        if (Whole || first + i * THREADS < found)
            w[i] = *reinterpret_cast<const W *>(How == PICK ? t.masked + place[i] : line + i * step);
#pragma unroll
    for (int i = 0; i < N; i++)
        if (Whole || first + i * THREADS < found)
            *reinterpret_cast<W *>(How == PICK ? line + i * step : t.masked + place[i]) = w[i];
}

template <class W, int How> __global__ void __launch_bounds__(THREADS) move_tiles(const __grid_constant__ move t) {
    __shared__ uint16_t list[TILE];
    if (t.m.stop && *t.m.stop != 0) return;
    const int64_t rank = t.m.before[blockIdx.x], start = int64_t(blockIdx.x) * TILE - t.m.lead;
    const int found = list_tile(t.m, list);
    int k = int(threadIdx.x);
    if constexpr (How == TELL) {
        const int64_t total = t.m.before[t.m.tiles];
        for (; k < found; k += THREADS) tell(t, total, rank + k, start + list[k]);
    } else {
        constexpr int N = at_once<W>;
        for (; k + (N - 1) * THREADS < found; k += N * THREADS) move_some<W, How, true>(t, list, k, found, rank, start);
        if (k < found) move_some<W, How, false>(t, list, k, found, rank, start);
    }
}

/* ---- the host's part ---- */

/* A word of pinned memory for each device, to have counts written to. */
struct answers {
    int64_t *page;
    cudaError_t error;
};
answers counted;
pthread_once_t counted_once = PTHREAD_ONCE_INIT;
constexpr int MOST_DEVICES = 64;

void make_answers() {
    void *page = nullptr;
    counted.error = cudaHostAlloc(&page, MOST_DEVICES * sizeof(int64_t), cudaHostAllocPortable | cudaHostAllocMapped);
    counted.page = static_cast<int64_t *>(page);
}

int answer_place(ad_call *c, int64_t **out) {
    pthread_once(&counted_once, make_answers);
    *out = counted.page + c->stream->device->index % MOST_DEVICES;
    return ad_cuda_status(counted.error, "memory for counts", c->fault);
}

/* Input `index` as a mask; other types than bool are true where they are not zero. */
int mask_init(ad_call *c, int index, array *a, mask *m) {
    int status = ad_call_input_packed(c, index, AD_BOOL, a);
    if (status) return status;
    m->lead = int64_t(reinterpret_cast<uintptr_t>(a->data) % CHUNK);
    m->chunks = reinterpret_cast<const uint8_t *>(a->data) - m->lead;
    m->end = m->lead + count(*a);
    m->tiles = (m->end + TILE - 1) / TILE;
    m->before = static_cast<int64_t *>(ad_call_workspace(c, uint64_t(m->tiles + 1) * 12 + 16));
    if (!m->before) return AD_E_MEMORY;
    m->counts = reinterpret_cast<uint32_t *>(m->before + m->tiles + 1);
    m->stop = nullptr;
    return 0;
}

int mask_count(ad_call *c, const mask *m, const count_check *v) {
    if (m->tiles > 0) count_tiles<<<int(m->tiles), THREADS, 0, c->stream->cuda>>>(*m, *v);
    if (m->tiles != 1) add_tiles<<<1, ADDERS, 0, c->stream->cuda>>>(*m, *v);
    return ad_cuda_launched("counting a mask", c->fault);
}

/* The count, for which the stream is waited for. */
int mask_total(ad_call *c, const mask *m, int64_t *total) {
    count_check v = {nullptr, -1, nullptr};
    int status = answer_place(c, &v.answer);
    if (status || (status = mask_count(c, m, &v))) return status;
    status = ad_cuda_status(cudaStreamSynchronize(c->stream->cuda), "counting a mask", c->fault);
    *total = *static_cast<volatile int64_t *>(v.answer);
    return status;
}

/* The masked array's axes, merged where they lie behind each other. */
void set_axes(move *t, const mask *m, const walk<1> *w) {
    t->m = *m;
    t->ndim = w->ndim;
    t->narrow = w->count < INT32_MAX;
    for (int i = 0; i < w->ndim; i++) {
        t->shape[i] = w->shape[i];
        t->stride[i] = w->stride[i][0];
        if (t->narrow) t->divisor[i].set(w->shape[i]);
    }
    if (w->ndim == 0) {
        t->ndim = 1;
        t->stride[0] = 0;
    }
}

template <int How> int move_elements(ad_call *c, const move *t, int dtype) {
    const int tiles = int(t->m.tiles);
    visit_words(dtype, [&](auto w) {
        move_tiles<typename decltype(w)::type, How><<<tiles, THREADS, 0, c->stream->cuda>>>(*t);
    });
    return ad_cuda_launched("moving what a mask picks out", c->fault);
}

/* Index of each true element along each of the mask's axes: `to` has a row of `total` for each. */
int tell_places(ad_call *c, const mask *m, const array *shape, int64_t *to) {
    move t;
    t.m = *m;
    t.line = reinterpret_cast<char *>(to);
    t.ndim = shape->ndim;
    t.narrow = count(*shape) < INT32_MAX;
    for (int i = 0; i < t.ndim; i++) {
        t.shape[i] = shape->shape[i];
        if (t.narrow) t.divisor[i].set(shape->shape[i]);
    }
    move_tiles<uint8_t, TELL><<<int(m->tiles), THREADS, 0, c->stream->cuda>>>(t);
    return ad_cuda_launched("listing what a mask picks out", c->fault);
}

walk<1> first_axes(const array *a, int n) {
    walk<1> w;
    for (int i = 0; i < n; i++) w.add(a->shape[i], {a->stride[i]});
    return w;
}

/* Rows are moved by their indices. x has the mask's axes, then those of a row; rows: n of them. */
int move_rows(ad_call *c, const mask *m, const array *masked, const array *x, const array *rows, bool pick) {
    const int64_t n = rows->shape[0];
    int64_t *places = static_cast<int64_t *>(ad_call_workspace(c, uint64_t(n * masked->ndim) * 8));
    if (!places) return AD_E_MEMORY;
    int status = tell_places(c, m, masked, places);
    if (status) return status;
    ad_cuda_request r;
    r.k = masked->ndim;
    r.stop = m->stop;
    r.plain = rows->data;
    r.indexed = x->data;
    r.itemsize = int(itemsize(x->dtype));
    r.plain_stride[0] = rows->stride[0];
    for (int a = 0; a < r.k; a++) {
        r.index[a] = {reinterpret_cast<char *>(places + a * n), AD_INT64, 1, {n}, {8}};
        r.size[a] = x->shape[a];
        r.step[a] = x->stride[a];
    }
    r.inner_ndim = x->ndim - r.k;
    for (int i = 0; i < r.inner_ndim; i++) {
        r.inner_shape[i] = x->shape[r.k + i];
        r.inner_indexed[i] = x->stride[r.k + i];
        r.inner_plain[i] = rows->stride[1 + i];
    }
    return pick ? ad_cuda_gather(c, &r) : ad_cuda_scatter(c, &r, x->dtype, 0, true);
}

int move_masked(ad_call *c, const mask *m, const array *masked, const array *x, const array *rows, bool pick) {
    if (masked->ndim > 0 && count(*x, masked->ndim, x->ndim) > 1) return move_rows(c, m, masked, x, rows, pick);
    move t;
    const walk<1> w = first_axes(x, masked->ndim);
    set_axes(&t, m, &w);
    t.masked = x->data;
    t.line = rows->data;
    t.step = rows->stride[0];
    return pick ? move_elements<PICK>(c, &t, x->dtype) : move_elements<PUT>(c, &t, x->dtype);
}

/* A 0-d mask picks all or nothing, as one of the shape (1,) would. */
void give_axis(array *a) {
    for (int i = a->ndim; i > 0; i--) {
        a->shape[i] = a->shape[i - 1];
        a->stride[i] = a->stride[i - 1];
    }
    a->shape[0] = 1;
    a->stride[0] = 0;
    a->ndim++;
}

} // namespace

int ad_call_nonzero(ad_call *c) {
    array x;
    mask m;
    int64_t total = 0;
    int status = mask_init(c, 0, &x, &m);
    if (status || (status = mask_total(c, &m, &total))) return status;
    array out = {nullptr, AD_INT64, 2, {x.ndim, total}, {total * 8, 8}};
    if ((status = ad_call_sized(c, 0, &out))) return status;
    c->run->values[0] = total;
    c->run->nvalues = 1;
    if (x.ndim > 0 && total > 0 && (status = tell_places(c, &m, &x, reinterpret_cast<int64_t *>(out.data))))
        return status;
    return ad_call_finish(c, 0, &out);
}

int ad_call_compress(ad_call *c) {
    array x, masked, out;
    mask m;
    int64_t total = 0;
    int status;
    if ((status = ad_call_input(c, 0, c->op->loop, &x)) || (status = mask_init(c, 1, &masked, &m))) return status;
    if (x.ndim - masked.ndim >= AD_MAX_NDIM)
        return ad__fault(c->fault, AD_E_VALUE, "compress: the result has more than %d dimensions", AD_MAX_NDIM);
    if ((status = mask_total(c, &m, &total))) return status;
    if (masked.ndim == 0) {
        give_axis(&masked);
        give_axis(&x);
    }
    out = x;
    out.ndim = 1 + x.ndim - masked.ndim;
    out.shape[0] = total;
    for (int i = 1; i < out.ndim; i++) out.shape[i] = x.shape[masked.ndim + i - 1];
    pack(&out);
    if ((status = ad_call_sized(c, 0, &out))) return status;
    c->run->values[0] = total;
    c->run->nvalues = 1;
    if (count(out) > 0 && (status = move_masked(c, &m, &masked, &x, &out, true))) return status;
    return ad_call_finish(c, 0, &out);
}

int ad_call_place(ad_call *c) {
    array x = view_of(c->op->operand[0]), masked, v;
    mask m;
    int status;
    if ((status = mask_init(c, 0, &masked, &m)) || (status = ad_call_input(c, 1, x.dtype, &v))) return status;
    m.stop = reinterpret_cast<int *>(m.counts + m.tiles);
    c->run->checked = true;
    const count_check wanted = {nullptr, v.shape[0], c->run->check};
    if ((status = mask_count(c, &m, &wanted))) return status;
    if (masked.ndim == 0) {
        give_axis(&masked);
        give_axis(&x);
    }
    if (count(v) == 0 || count(x) == 0) return 0;
    status = move_masked(c, &m, &masked, &x, &v, false);
    c->run->wrote = status; /* where the count is wrong nothing is written */
    return status;
}
