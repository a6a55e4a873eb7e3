/* gather and scatter: advanced indexing. Elements move as words of their size; rows, where they lie without gaps in
 * both arrays, as words of up to 16 bytes. */
#include "kernels/cuda/call/index/index.h"

#include "kernels/cuda/backend/checks.h"
#include "kernels/cuda/backend/device.h"
#include "kernels/words.h"

namespace {

using namespace ad;

constexpr int THREADS = 256, EACH = 4; /* units of a thread */
constexpr int FAST_EACH = 8;
constexpr int64_t MOST_UNITS = (int64_t(1) << 31) - THREADS * FAST_EACH;
constexpr int64_t FEW_UNITS = 4096; /* that one block scatters, having checked all indices itself */
constexpr int ALONE = 512;          /* threads of that block, and most places */

/* ---- kernels ---- */

__device__ void report(const ad_cuda_selection &s, int a, int64_t v) {
    if (!s.raw) ad_cuda_report(s.check, AD_CHECK_index, v, a, s.index[a].size);
}

/* The usual case: one index array, single elements, all in a line. */
struct line {
    const int64_t *index;
    const char *from;
    char *to;
    int64_t size, step;
    uint32_t n;
    ad_check *check;
};

template <class W> __global__ void __launch_bounds__(THREADS) gather_line(const __grid_constant__ line l) {
    const uint32_t first = blockIdx.x * uint32_t(THREADS * FAST_EACH) + threadIdx.x;
    int64_t v[FAST_EACH];
    W w[FAST_EACH];
#pragma unroll
    for (int i = 0; i < FAST_EACH; i++) {
        const uint32_t u = first + i * THREADS;
        v[i] = u < l.n ? __ldcs(reinterpret_cast<const long long *>(l.index) + u) : 0;
    }
#pragma unroll
    for (int i = 0; i < FAST_EACH; i++) {
        const bool good = uint64_t(v[i]) + uint64_t(l.size) < 2 * uint64_t(l.size);
        w[i] = W{};
        if (good) w[i] = __ldg(reinterpret_cast<const W *>(l.from + (v[i] < 0 ? v[i] + l.size : v[i]) * l.step));
        else if (first + i * THREADS < l.n) ad_cuda_report(l.check, AD_CHECK_index, v[i], 0, l.size);
    }
#pragma unroll
    for (int i = 0; i < FAST_EACH; i++) {
        const uint32_t u = first + i * THREADS;
        if (u < l.n) __stcs(reinterpret_cast<W *>(l.to) + u, w[i]);
    }
}

/* Offsets of a thread's units in both arrays; bit i of the result: unit i is there and its indices are in bounds. */
template <int Each> __device__ unsigned find(const ad_cuda_selection &s, uint32_t first, uint32_t step,
                                             int64_t (&plain)[Each], int64_t (&indexed)[Each], unsigned *present) {
    int64_t entry[Each][AD_SELECTION_INDICES];
    const uint32_t n = s.places * s.words;
    unsigned good = 0;
#pragma unroll
    for (int i = 0; i < Each; i++) {
        const uint32_t u = first + i * step;
        if (u >= n) continue;
        good |= 1u << i;
        locate(s, u, &plain[i], &indexed[i], entry[i]);
    }
    *present = good;
#pragma unroll
    for (int a = 0; a < AD_SELECTION_INDICES; a++) {
        if (a >= s.k) break;
        int64_t v[Each];
#pragma unroll
        for (int i = 0; i < Each; i++)
            v[i] = *present >> i & 1 ? *reinterpret_cast<const int64_t *>(s.index[a].data + entry[i][a]) : 0;
#pragma unroll
        for (int i = 0; i < Each; i++)
            if ((*present >> i & 1) && !index_offset(s, a, v[i], &indexed[i])) {
                good &= ~(1u << i);
                report(s, a, v[i]);
            }
    }
    return good;
}

template <class W> __global__ void __launch_bounds__(THREADS)
    gather_units(const __grid_constant__ ad_cuda_selection s) {
    int64_t plain[EACH], indexed[EACH];
    unsigned present;
    if (s.stop && *s.stop != 0) return;
    const unsigned good =
        find(s, blockIdx.x * uint32_t(THREADS * EACH) + threadIdx.x, THREADS, plain, indexed, &present);
    W w[EACH];
#pragma unroll
    for (int i = 0; i < EACH; i++) {
        w[i] = W{};
        if (good >> i & 1) w[i] = *reinterpret_cast<const W *>(s.indexed + indexed[i]);
    }
#pragma unroll
    for (int i = 0; i < EACH; i++)
        if (present >> i & 1) *reinterpret_cast<W *>(s.plain + plain[i]) = w[i];
}

template <class W, int Each> __device__ void scatter_some(const ad_cuda_selection &s, uint32_t first, uint32_t step) {
    int64_t plain[Each], indexed[Each];
    unsigned present;
    const unsigned good = find(s, first, step, plain, indexed, &present);
    W w[Each];
#pragma unroll
    for (int i = 0; i < Each; i++)
        if (good >> i & 1) w[i] = *reinterpret_cast<const W *>(s.plain + plain[i]);
#pragma unroll
    for (int i = 0; i < Each; i++)
        if (good >> i & 1) *reinterpret_cast<W *>(s.indexed + indexed[i]) = w[i];
}

template <class W> __global__ void __launch_bounds__(THREADS)
    scatter_units(const __grid_constant__ ad_cuda_selection s) {
    if (s.stop && *s.stop != 0) return;
    scatter_some<W, EACH>(s, blockIdx.x * uint32_t(THREADS * EACH) + threadIdx.x, THREADS);
}

/* Check that the indices of a place are in bounds, and set *offset to the place in the indexed array. */
__device__ bool check_place(const ad_cuda_selection &s, uint32_t place, int64_t *offset) {
    int64_t plain, entry[AD_SELECTION_INDICES];
    bool good = true;
    locate(s, place * s.words, &plain, offset, entry);
#pragma unroll
    for (int a = 0; a < AD_SELECTION_INDICES; a++) {
        if (a >= s.k) break;
        const int64_t v = *reinterpret_cast<const int64_t *>(s.index[a].data + entry[a]);
        if (index_offset(s, a, v, offset)) continue;
        good = false;
        report(s, a, v);
    }
    return good;
}

__global__ void __launch_bounds__(THREADS) check_places(const __grid_constant__ ad_cuda_selection s) {
    const uint32_t step = gridDim.x * THREADS;
    int64_t offset;
    for (uint32_t p = blockIdx.x * THREADS + threadIdx.x; p < s.places; p += step)
        if (!check_place(s, p, &offset)) *s.stop = 1;
}

/* A small scatter: everything in one block, which also sees to it that of equal indices the last one wins. */
template <class W> __global__ void __launch_bounds__(ALONE) scatter_alone(const __grid_constant__ ad_cuda_selection s) {
    __shared__ int64_t offset[ALONE];
    __shared__ bool lost[ALONE];
    const uint32_t own = threadIdx.x;
    bool good = true;
    if (own < s.places) {
        good = check_place(s, own, &offset[own]);
        lost[own] = false;
    }
    if (!__syncthreads_and(good)) return;
    if (own < s.places)
        for (uint32_t p = own + 1; p < s.places; p++)
            if (offset[p] == offset[own]) lost[own] = true;
    __syncthreads();
    for (uint32_t u = own; u < s.places * s.words; u += ALONE) {
        uint32_t word;
        if (!lost[s.by_words.divide(u, &word)]) scatter_some<W, 1>(s, u, ALONE);
    }
}

/* Index arrays as offsets in bytes, added up; AD_NO_PLACE where one of them is out of bounds. One at a time. */
struct folding {
    const char *index;
    int64_t *offset, places;
    int64_t size, step;
    int ndim, axis;
    int64_t shape[AD_MAX_NDIM], stride[AD_MAX_NDIM];
    ad_check *check;
};

__global__ void __launch_bounds__(THREADS) fold_index(const __grid_constant__ folding f) {
    for (int64_t p = int64_t(blockIdx.x) * THREADS + threadIdx.x; p < f.places; p += int64_t(gridDim.x) * THREADS) {
        int64_t rest = p, at = 0;
        for (int d = f.ndim - 1; d >= 0; d--) {
            at += rest % f.shape[d] * f.stride[d];
            rest /= f.shape[d];
        }
        const int64_t v = *reinterpret_cast<const int64_t *>(f.index + at), before = f.axis == 0 ? 0 : f.offset[p];
        const bool good = uint64_t(v) + uint64_t(f.size) < 2 * uint64_t(f.size);
        if (!good) ad_cuda_report(f.check, AD_CHECK_index, v, f.axis, f.size);
        f.offset[p] = good && before != AD_NO_PLACE ? before + (v < 0 ? v + f.size : v) * f.step : AD_NO_PLACE;
    }
}

/* ---- from a request to selections ---- */

/* Axes with K strides each, which may be cut and shortened once they have been added. */
template <int K> struct axes : walk<K> {
    using walk<K>::ndim, walk<K>::shape;

    int64_t count() const {
        int64_t n = 1;
        for (int i = 0; i < ndim; i++) n *= shape[i];
        return n;
    }
    int longest() const {
        int at = 0;
        for (int i = 1; i < ndim; i++)
            if (shape[i] > shape[at]) at = i;
        return at;
    }
};

struct parts {
    const ad_cuda_request *r;
    axes<1 + AD_SELECTION_INDICES> places;
    axes<2> inner;
    int k, item, word;
    bool raw;
    char *plain, *indexed;
    const char *index[AD_SELECTION_INDICES];
    ad_check *check;
    int *stop;
};

/* Bits that are set in an address or a stride, but for those of the innermost `without` axes of a block. */
uint64_t bits_used(const parts *p, int without) {
    uint64_t all = uint64_t(uintptr_t(p->plain)) | uint64_t(uintptr_t(p->indexed));
    for (int i = 0; i < p->places.ndim; i++) all |= uint64_t(p->places.stride[i][0]);
    for (int i = 0; i < p->inner.ndim - without; i++)
        all |= uint64_t(p->inner.stride[i][0]) | uint64_t(p->inner.stride[i][1]);
    for (int a = 0; a < p->r->k; a++) all |= uint64_t(p->r->step[a]);
    return all;
}

/* Complex numbers need not be aligned to more than half their size. */
void halve(parts *p) {
    if (bits_used(p, 0) % uint64_t(p->item) == 0) return;
    p->item /= 2;
    const int64_t both[2] = {p->item, p->item};
    p->inner.add(2, both);
}

void widen(parts *p) {
    halve(p);
    p->word = p->item;
    const int last = p->inner.ndim - 1, item = p->item;
    if (last < 0 || p->inner.stride[last][0] != item || p->inner.stride[last][1] != item) return;
    const uint64_t used = bits_used(p, 1) | uint64_t(p->inner.shape[last] * item);
    int word = 16;
    while (word > item && used % uint64_t(word) != 0) word /= 2;
    if (word <= item) return;
    p->word = word;
    p->inner.shape[last] = p->inner.shape[last] * item / word;
    p->inner.stride[last][0] = p->inner.stride[last][1] = word;
    if (p->inner.shape[last] == 1) p->inner.ndim--;
}

int fold(ad_call *c, parts *p) {
    const ad_cuda_request *r = p->r;
    const int64_t n = count(r->index[0]);
    int64_t *offset = static_cast<int64_t *>(ad_call_workspace(c, uint64_t(n) * 8));
    if (!offset) return AD_E_MEMORY;
    for (int a = 0; a < r->k; a++) {
        folding f;
        f.index = r->index[a].data;
        f.offset = offset;
        f.places = n;
        f.size = r->size[a];
        f.step = r->step[a];
        f.axis = a;
        f.check = p->check;
        const walk<1> w = walk_of(r->index[a]);
        f.ndim = w.ndim;
        for (int i = 0; i < w.ndim; i++) {
            f.shape[i] = w.shape[i];
            f.stride[i] = w.stride[i][0];
        }
        const int64_t blocks = (n + THREADS - 1) / THREADS, most = c->stream->device->multiprocessors * 16;
        fold_index<<<int(blocks < most ? blocks : most), THREADS, 0, c->stream->cuda>>>(f);
        const int status = ad_cuda_launched("adding up indices", c->fault);
        if (status) return status;
    }
    p->k = 1;
    p->raw = true;
    p->index[0] = reinterpret_cast<const char *>(offset);
    return 0;
}

/* Index arrays that many kernels read, or that are too many, become offsets first. */
int parts_init(ad_call *c, const ad_cuda_request *r, bool wide, parts *p) {
    p->r = r;
    p->k = r->k;
    p->raw = false;
    p->item = p->word = r->itemsize;
    p->plain = r->plain;
    p->indexed = r->indexed;
    p->check = c->run->check;
    p->stop = const_cast<int *>(r->stop);
    const array &b = r->index[0];
    if (r->k > AD_SELECTION_INDICES) {
        const int status = fold(c, p);
        if (status) return status;
    } else
        for (int a = 0; a < r->k; a++) p->index[a] = r->index[a].data;
    int64_t packed = 8;
    int64_t step[AD_MAX_NDIM];
    for (int i = b.ndim - 1; i >= 0; i--) {
        step[i] = packed;
        packed *= b.shape[i];
    }
    for (int i = 0; i < b.ndim; i++) {
        int64_t all[1 + AD_SELECTION_INDICES] = {r->plain_stride[i]};
        for (int a = 0; a < p->k; a++) all[1 + a] = p->raw ? step[i] : r->index[a].stride[i];
        p->places.add(b.shape[i], all);
    }
    for (int i = 0; i < r->inner_ndim; i++) {
        const int64_t both[2] = {r->inner_plain[i], r->inner_indexed[i]};
        p->inner.add(r->inner_shape[i], both);
    }
    if (wide) widen(p);
    return 0;
}

void fill(const parts *p, ad_cuda_selection *s) {
    s->plain = p->plain;
    s->indexed = p->indexed;
    s->places = uint32_t(p->places.count());
    s->words = uint32_t(p->inner.count());
    s->ndim = p->places.ndim;
    s->inner_ndim = p->inner.ndim;
    s->k = p->k;
    s->raw = p->raw;
    s->check = p->check;
    s->stop = p->stop;
    s->by_words.set(s->words);
    for (int i = 0; i < s->ndim; i++) {
        s->shape[i].set(p->places.shape[i]);
        s->plain_stride[i] = p->places.stride[i][0];
        for (int a = 0; a < s->k; a++) s->index[a].stride[i] = p->places.stride[i][1 + a];
    }
    for (int i = 0; i < s->inner_ndim; i++) {
        s->inner[i].set(p->inner.shape[i]);
        s->inner_plain[i] = p->inner.stride[i][0];
        s->inner_indexed[i] = p->inner.stride[i][1];
    }
    for (int a = 0; a < s->k; a++) {
        s->index[a].data = p->index[a];
        s->index[a].size = p->r->size[a];
        s->index[a].step = p->r->step[a];
    }
}

/* Cut the longest axis until every part is small enough for 31 bits. */
template <class F> int each_part(const parts *p, F f) {
    if (p->places.count() * p->inner.count() <= MOST_UNITS) return f(p);
    parts half = *p;
    const int d = p->places.longest(), e = p->inner.longest();
    const bool inner = p->places.ndim == 0 || (p->inner.ndim > 0 && p->inner.shape[e] > p->places.shape[d]);
    const int64_t n = inner ? p->inner.shape[e] : p->places.shape[d], first = n / 2;
    (inner ? half.inner.shape[e] : half.places.shape[d]) = first;
    const int status = each_part(&half, f);
    if (status) return status;
    (inner ? half.inner.shape[e] : half.places.shape[d]) = n - first;
    if (inner) {
        half.plain += first * p->inner.stride[e][0];
        half.indexed += first * p->inner.stride[e][1];
    } else {
        half.plain += first * p->places.stride[d][0];
        for (int a = 0; a < p->k; a++) half.index[a] += first * p->places.stride[d][1 + a];
    }
    return each_part(&half, f);
}

int blocks_of(int64_t n, int each) { return int((n + int64_t(THREADS) * each - 1) / (int64_t(THREADS) * each)); }

bool is_line(const parts *p) {
    return p->k == 1 && !p->raw && p->inner.ndim == 0 && p->places.ndim <= 1 && !p->stop &&
           (p->places.ndim == 0 || (p->places.stride[0][0] == p->word && p->places.stride[0][1] == 8));
}

int gather_part(ad_call *c, const parts *p) {
    const int64_t n = p->places.count() * p->inner.count();
    if (is_line(p)) {
        const line l = {reinterpret_cast<const int64_t *>(p->index[0]),
                        p->indexed,
                        p->plain,
                        p->r->size[0],
                        p->r->step[0],
                        uint32_t(n),
                        p->check};
        visit_aligned_words(p->word, [&](auto w) {
            gather_line<typename decltype(w)::type><<<blocks_of(n, FAST_EACH), THREADS, 0, c->stream->cuda>>>(l);
        });
    } else {
        ad_cuda_selection s;
        fill(p, &s);
        visit_aligned_words(p->word, [&](auto w) {
            gather_units<typename decltype(w)::type><<<blocks_of(n, EACH), THREADS, 0, c->stream->cuda>>>(s);
        });
    }
    return ad_cuda_launched("gather", c->fault);
}

int scatter_part(ad_call *c, const parts *p, bool alone) {
    ad_cuda_selection s;
    fill(p, &s);
    const int64_t n = int64_t(s.places) * s.words;
    visit_aligned_words(p->word, [&](auto w) {
        using W = typename decltype(w)::type;
        if (alone) scatter_alone<W><<<1, ALONE, 0, c->stream->cuda>>>(s);
        else scatter_units<W><<<blocks_of(n, EACH), THREADS, 0, c->stream->cuda>>>(s);
    });
    return ad_cuda_launched("scatter", c->fault);
}

int check_part(ad_call *c, const parts *p) {
    ad_cuda_selection s;
    fill(p, &s);
    int blocks = blocks_of(s.places, 1);
    const int most = c->stream->device->multiprocessors * 8;
    if (blocks > most) blocks = most;
    check_places<<<blocks, THREADS, 0, c->stream->cuda>>>(s);
    return ad_cuda_launched("checking indices", c->fault);
}

/* All indices of the request, before anything is written: *p->stop says what came of it. */
int check_all(ad_call *c, parts *p) {
    p->stop = static_cast<int *>(ad_call_workspace(c, sizeof(int)));
    if (!p->stop) return AD_E_MEMORY;
    int status = ad_cuda_status(cudaMemsetAsync(p->stop, 0, sizeof(int), c->stream->cuda), "clearing a flag", c->fault);
    if (status) return status;
    parts once = *p;
    once.inner.ndim = 0;
    return each_part(&once, [&](const parts *part) { return check_part(c, part); });
}

/* ---- from a call to a request ---- */

/* Inputs from 1 on index array x. */
int take_indices(ad_call *c, const array *x, ad_cuda_request *r) {
    r->k = c->op->nin - 1;
    r->stop = nullptr;
    for (int a = 0; a < r->k; a++) {
        const int status = ad_call_input(c, 1 + a, AD_INT64, &r->index[a]);
        if (status) return status;
        r->size[a] = x->shape[a];
        r->step[a] = x->stride[a];
    }
    r->indexed = x->data;
    r->itemsize = int(itemsize(x->dtype));
    r->inner_ndim = x->ndim - r->k;
    for (int i = 0; i < r->inner_ndim; i++) {
        r->inner_shape[i] = x->shape[r->k + i];
        r->inner_indexed[i] = x->stride[r->k + i];
    }
    return 0;
}

int64_t inner_count(const ad_cuda_request *r) {
    int64_t n = 1;
    for (int i = 0; i < r->inner_ndim; i++) n *= r->inner_shape[i];
    return n;
}

/* Check the indices where nothing is to be moved. */
int only_check(ad_call *c, ad_cuda_request *r) {
    parts p;
    if (count(r->index[0]) == 0) return 0;
    r->inner_ndim = 0;
    c->run->checked = true;
    const int status = parts_init(c, r, false, &p);
    return status ? status : check_all(c, &p);
}

} // namespace

int ad_cuda_gather(ad_call *c, const ad_cuda_request *r) {
    parts p;
    const int status = parts_init(c, r, true, &p);
    return status ? status : each_part(&p, [&](const parts *part) { return gather_part(c, part); });
}

int ad_cuda_scatter(ad_call *c, const ad_cuda_request *r, int dtype, int mode, bool known) {
    parts p;
    int status = parts_init(c, r, mode == 0, &p);
    if (status) return status;
    const bool alone =
        !known && mode == 0 && p.places.count() <= ALONE && p.places.count() * p.inner.count() <= FEW_UNITS;
    if (!known && !alone && (status = check_all(c, &p))) return status;
    return each_part(&p, [&](const parts *part) {
        if (mode == 0) return scatter_part(c, part, alone);
        ad_cuda_selection s;
        fill(part, &s);
        return ad_cuda_update(c, &s, dtype, mode);
    });
}

int ad_call_gather(ad_call *c) {
    array x, out;
    ad_cuda_request r;
    const int dtype = c->op->loop;
    int status;
    if ((status = ad_call_input(c, 0, dtype, &x)) || (status = take_indices(c, &x, &r)) ||
        (status = ad_call_output(c, 0, dtype, &out)))
        return status;
    if (count(out) == 0) return only_check(c, &r);
    const int b = r.index[0].ndim;
    for (int i = 0; i < b; i++) r.plain_stride[i] = out.stride[i];
    for (int i = b; i < out.ndim; i++) r.inner_plain[i - b] = out.stride[i];
    r.plain = out.data;
    c->run->checked = c->run->wrote = true;
    if ((status = ad_cuda_gather(c, &r))) return status;
    return ad_call_finish(c, 0, &out);
}

int ad_call_scatter(ad_call *c) {
    array x = view_of(c->op->operand[0]), v;
    ad_cuda_request r;
    int status;
    if ((status = ad_call_input(c, 0, x.dtype, &v)) || (status = take_indices(c, &x, &r))) return status;
    const int b = r.index[0].ndim, ndim = b + r.inner_ndim;
    if (count(r.index[0]) * inner_count(&r) == 0) return only_check(c, &r);
    for (int i = 0; i < b; i++) r.plain_stride[i] = broadcast_stride(v, i, ndim);
    for (int i = b; i < ndim; i++) r.inner_plain[i - b] = broadcast_stride(v, i, ndim);
    r.plain = v.data;
    c->run->checked = true; /* wrote stays unset: where an index is out of bounds nothing is written */
    status = ad_cuda_scatter(c, &r, x.dtype, int(c->op->param[0].as.i), false);
    c->run->wrote = status;
    return status;
}
