/* Plans as arguments of kernels. */
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/special/special.h"
#include "kernels/cuda/ufunc/plan.h"
#include "kernels/types.h"
#include "protocol/infer.h"
#include "protocol/rows_ufunc.h"

namespace {

using plan = ad_ufunc_plan;

constexpr int64_t TILED_COUNT = 4096; /* elements worth ordering memory accesses for */
constexpr size_t DEEP_STACK = 4096;   /* bytes of a thread */

int64_t divided(int64_t n, int64_t by) { return (n + by - 1) / by; }

/* Make one of the two halves of a plan too large for one launch. The second begins as aligned as the first. */
plan half_of(const plan *p, int d, bool second) {
    plan h = *p;
    const int64_t half = p->walk.shape[d] / 2, first = half < 64 ? half : half / 64 * 64;
    h.walk.shape[d] = second ? p->walk.shape[d] - first : first;
    for (int k = 0; second && k < p->walk.nop; k++)
        if (p->walk.base[k]) h.walk.base[k] += first * p->walk.stride[k][d];
    return h;
}

template <class F> int in_halves(const plan *p, int d, F run) {
    plan h = half_of(p, d, false);
    int result = run(&h);
    if (result < 0) return result;
    h = half_of(p, d, true);
    return run(&h);
}

/* ---- fast ---- */

bool is_aligned(const plan *p, int k, int64_t to) {
    uint64_t bits = uint64_t(reinterpret_cast<uintptr_t>(p->walk.base[k]));
    for (int d = 0; d < p->walk.ndim - 1; d++) bits |= uint64_t(p->walk.stride[k][d]);
    return bits % uint64_t(to) == 0;
}

/* Elements that are not next to each other are better left to neighbouring threads when they are small. */
bool is_fast_input(const plan *p, int k) {
    const int64_t size = ad_ufunc_size(p->want[k]), inner = p->walk.stride[k][p->walk.ndim - 1];
    if (p->dtype[k] != p->want[k]) return false;
    return !p->walk.base[k] || inner == 0 || inner == size || inner == -size || (size >= 4 && llabs(inner) <= 32);
}

bool is_fast_output(const plan *p, int k) {
    const int last = p->walk.ndim - 1;
    const int64_t size = ad_ufunc_size(p->want[k]);
    return p->dtype[k] == p->want[k] && (p->walk.stride[k][last] == size || p->walk.shape[last] == 1) &&
           is_aligned(p, k, size);
}

bool is_fast(const plan *p, int width, bool *skewed) {
    const int last = p->walk.ndim - 1;
    if (p->masked || width == 0 || last > AD_UFUNC_OUTER) return false;
    *skewed = false;
    for (int k = 0; k < p->nout; k++) {
        if (!is_fast_output(p, k)) return false;
        if (!is_aligned(p, k, ad_ufunc_size(p->want[k]) * width)) *skewed = true;
    }
    if (*skewed && p->nout > 1) return false;
    if (last > 0 && width > 1 && p->walk.shape[last] < (*skewed ? 8 : 4) * width) return false;
    for (int k = p->nout; k < p->nop; k++)
        if (!is_fast_input(p, k)) return false;
    return true;
}

void fill_fast(const plan *p, int width, bool skewed, int64_t chunks, int64_t rows, ad_ufunc_fast<5> *a) {
    const int last = p->walk.ndim - 1;
    ad_ufunc_fast_head *h = &a->head;
    h->columns = p->walk.shape[last];
    h->chunks = uint32_t(chunks * rows);
    h->ndim = uint32_t(last);
    h->skewed = skewed;
    h->ragged = skewed || h->columns % width != 0;
    h->check = p->check;
    if (last > 0) h->row = ad_ufunc_divider_of(uint32_t(chunks));
    for (int d = 1; d < last; d++) h->dim[d] = ad_ufunc_divider_of(uint32_t(p->walk.shape[d]));
    for (int k = 0; k < p->nop; k++) {
        ad_ufunc_fast_operand *o = &a->op[k];
        o->base = p->walk.base[k];
        o->inner = p->walk.stride[k][last];
        if (!o->base) memcpy(o->value, p->value[k], 16);
        else
            for (int d = 0; d < last; d++) o->stride[d] = p->walk.stride[k][d];
    }
}

/* ---- general ---- */

int slot_of(const plan *p, int k) {
    return k < p->nout ? AD_UFUNC_OUT0 + k : k < p->nop ? AD_UFUNC_IN0 + k - p->nout : AD_UFUNC_MASK;
}

/* -1: the plan's indices and offsets fit 32 bits; else the dimension to halve. */
int too_large(const plan *p) {
    int64_t widest = 0;
    int at = 0;
    bool large = ad_loop_count(&p->walk) > AD_UFUNC_LARGEST;
    for (int k = 0; k < p->walk.nop; k++) {
        int64_t span = 0;
        for (int d = 0; d < p->walk.ndim; d++) {
            int64_t s = p->walk.stride[k][d] * (p->walk.shape[d] - 1);
            if (s < 0) s = -s;
            if (s > widest) widest = s, at = d;
            span += s;
        }
        large = large || span > AD_UFUNC_LARGEST;
    }
    return large ? at : -1;
}

void fill_general(const plan *p, int compute, ad_ufunc_general *g) {
    const ad_loop *w = &p->walk;
    g->count = uint32_t(ad_loop_count(w));
    g->row = uint16_t(p->row);
    g->ndim = uint8_t(w->ndim);
    g->nout = uint8_t(p->nout);
    g->nin = uint8_t(p->nop - p->nout);
    g->masked = p->masked;
    g->tiled = false;
    g->check = p->check;
    for (int d = 0; d < w->ndim; d++) g->dim[d] = ad_ufunc_divider_of(uint32_t(w->shape[d]));
    for (int s = 0; s < AD_UFUNC_SLOTS; s++) g->base[s] = nullptr;
    for (int s = 0; s < AD_UFUNC_SLOTS; s++)
        for (int d = 0; d < w->ndim; d++) g->stride[s][d] = 0;
    for (int k = 0; k < w->nop; k++) {
        const int s = slot_of(p, k);
        g->base[s] = w->base[k];
        g->dtype[s] = p->dtype[k];
        g->through[s] = AD_UFUNC_AS_IS;
        for (int d = 0; d < w->ndim; d++) g->stride[s][d] = int32_t(w->stride[k][d]);
        if (k >= p->nop || p->row == AD_UFUNC_copy) continue;
        /* Convert only what the loop's type does not say already: truth values, and the 16-bit types within float32. */
        const int want = p->want[k];
        if (want == AD_BOOL && k >= p->nout && p->dtype[k] != AD_BOOL) g->through[s] = AD_BOOL;
        if (want == p->loop && want != compute && p->dtype[k] != want) g->through[s] = uint8_t(want);
    }
    for (int k = p->nout; k < p->nop; k++) {
        if (w->base[k]) continue;
        char *to = g->value[k - p->nout];
        memcpy(to, p->value[k], 16);
        ad_ufunc_convert(p->row == AD_UFUNC_copy ? p->dtype[k] : p->want[k], compute, to);
    }
}

/* Tell whether a special function may need more stack than the 1 KiB that CUDA gives a thread. Functions that call
 * themselves are among them, so the compiler cannot tell what a kernel needs; complex ones take up to 2 KiB. Elementary
 * ones of real numbers are CUDA's own, or call little. */
bool needs_deep_stack(const plan *p, int compute) {
    return compute == AD_COMPLEX64 || compute == AD_COMPLEX128 || AD_SPECIAL_FAMILY(p->row) > AD_FAMILY_ELEMENTARY_MORE;
}

/* Give threads DEEP_STACK. For all threads of a device that is some GB, so it comes with the first function that needs
 * it. AD_E_MEMORY, AD_E_DEVICE. */
int deepen_stack(const plan *p) {
    ad_device *d = p->stream->device;
    if (d->has_deep_stack) return 0;
    const int status =
        ad_cuda_status(cudaDeviceSetLimit(cudaLimitStackSize, DEEP_STACK), "cudaDeviceSetLimit", p->fault);
    d->has_deep_stack = !status;
    return status;
}

int launch_special(const plan *p, int compute, const void *kernel, int64_t blocks, ad_ufunc_general *g) {
    const int status = needs_deep_stack(p, compute) ? deepen_stack(p) : 0;
    return status ? status : ad_ufunc_launch(p, kernel, blocks, g);
}

int run_fitting(plan *p) {
    ad_ufunc_general g;
    int compute = p->row == AD_UFUNC_copy ? p->dtype[0] : p->loop;
    const ad_ufunc_table *t = ad_cuda_ufunc_table(compute);
    if (t->general[p->row] == 0) t = ad_cuda_ufunc_table(compute = AD_FLOAT32);
    const bool heavy = t->general[p->row] != 1, full = p->masked || p->nout > 1 || p->nop - p->nout > 2;
    const int unroll = heavy ? t->heavy_unroll : full ? t->full_unroll : t->light_unroll;
    const bool tiled = p->walk.ndim > 1 && ad_loop_count(&p->walk) >= TILED_COUNT && ad_loop_plane(&p->walk);
    fill_general(p, compute, &g);
    int64_t blocks = divided(g.count, AD_UFUNC_THREADS * unroll);
    if (tiled) {
        const ad_loop *w = &p->walk;
        const int64_t across = divided(w->shape[w->ndim - 1], AD_UFUNC_TILE);
        const int64_t down = divided(w->shape[w->ndim - 2], 8 * unroll);
        int64_t outer = 1;
        for (int d = 0; d < w->ndim - 2; d++) outer *= w->shape[d];
        g.across = ad_ufunc_divider_of(uint32_t(across));
        g.down = ad_ufunc_divider_of(uint32_t(down));
        g.tiled = across * down * outer <= AD_UFUNC_LARGEST;
        if (g.tiled) blocks = across * down * outer;
    }
    if (t->special[p->row]) return launch_special(p, compute, t->special[p->row], blocks, &g);
    return ad_ufunc_launch(p, heavy ? t->heavy : full ? t->full : t->light, blocks, &g);
}

/* ---- transposes ---- */

bool is_transpose(const plan *p, const ad_loop *w, int size) {
    const int c = w->ndim - 1, r = w->ndim - 2;
    uint64_t bits = 0;
    for (int k = 0; k < 2; k++) {
        bits |= uint64_t(reinterpret_cast<uintptr_t>(w->base[k]));
        for (int d = 0; d < w->ndim; d++) bits |= uint64_t(w->stride[k][d]);
    }
    return bits % uint64_t(size) == 0 && w->stride[0][c] == size && w->stride[1][r] == size && w->shape[c] >= 8 &&
           w->shape[r] >= 8 && !p->masked;
}

bool is_packed(const ad_loop *w, int size) {
    const int c = w->ndim - 1, r = w->ndim - 2;
    uint64_t bits = 0;
    for (int k = 0; k < 2; k++) {
        bits |= uint64_t(reinterpret_cast<uintptr_t>(w->base[k])) | uint64_t(w->stride[k][k == 0 ? r : c]);
        for (int d = 0; d < r; d++) bits |= uint64_t(w->stride[k][d]);
    }
    return bits % 4 == 0 && w->shape[c] * size % 4 == 0 && w->shape[r] * size % 4 == 0;
}

void fill_transpose(const ad_loop *w, int64_t across, int64_t down, ad_ufunc_transpose *t) {
    const int c = w->ndim - 1, r = w->ndim - 2;
    t->rows = uint32_t(w->shape[r]);
    t->columns = uint32_t(w->shape[c]);
    t->out_row = w->stride[0][r];
    t->out_column = w->stride[0][c];
    t->in_row = w->stride[1][r];
    t->in_column = w->stride[1][c];
    t->out = w->base[0];
    t->in = w->base[1];
    t->across = ad_ufunc_divider_of(uint32_t(across));
    t->down = ad_ufunc_divider_of(uint32_t(down));
    t->ndim = uint32_t(r);
    for (int d = 0; d < r; d++) {
        t->dim[d] = ad_ufunc_divider_of(uint32_t(w->shape[d]));
        t->out_stride[d] = w->stride[0][d];
        t->in_stride[d] = w->stride[1][d];
    }
}

} // namespace

void ad_ufunc_convert(int from, int to, void *v) {
    if (from == to) return;
    ad::visit(from, [&](auto f) {
        typename decltype(f)::type x;
        memcpy(static_cast<void *>(&x), v, sizeof x);
        ad::visit(to, [&](auto t) {
            auto y = ad::cast<typename decltype(t)::type>(x);
            memcpy(v, static_cast<const void *>(&y), sizeof y);
        });
    });
}

/* Launch a kernel. It may begin before the one ahead of it in the stream has ended, and waits by itself (begin() of
 * device.cuh). So most of the launch's cost is hidden. */
int ad_ufunc_launch(const ad_ufunc_plan *p, const void *kernel, int64_t blocks, void *argument) {
    void *arguments[] = {argument};
    cudaLaunchAttribute early;
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(unsigned(blocks));
    config.blockDim = dim3(AD_UFUNC_THREADS);
    config.stream = p->stream->cuda;
    config.attrs = &early;
    config.numAttrs = p->stream->device->major >= 9 ? 1 : 0;
    int status = ad_cuda_status(cudaLaunchKernelExC(&config, kernel, arguments), "launching a ufunc", p->fault);
    return status ? status : 1;
}

int ad_ufunc_try_fast(const ad_ufunc_plan *p) {
    const ad_ufunc_table *t = ad_cuda_ufunc_table(p->loop);
    const int last = p->walk.ndim - 1, width = t->width[p->row], unroll = t->unroll[p->row];
    bool skewed;
    if (!t->fast[p->row] || !is_fast(p, width, &skewed)) return 0;
    const int64_t row = divided(p->walk.shape[last] + (skewed ? width - 1 : 0), width);
    const int64_t rows = ad_loop_count(&p->walk) / p->walk.shape[last], chunks = rows * row;
    if (chunks > AD_UFUNC_LARGEST) return in_halves(p, 0, ad_ufunc_try_fast);
    ad_ufunc_fast<5> a;
    fill_fast(p, width, skewed, row, rows, &a);
    int64_t blocks = divided(chunks, AD_UFUNC_THREADS);
    if (blocks <= 4 * p->stream->device->multiprocessors) {
        a.head.block = AD_UFUNC_THREADS;
        a.head.step = uint32_t(blocks * AD_UFUNC_THREADS);
    } else {
        a.head.block = uint32_t(AD_UFUNC_THREADS * unroll);
        a.head.step = AD_UFUNC_THREADS;
        blocks = divided(chunks, a.head.block);
    }
    return ad_ufunc_launch(p, t->fast[p->row], blocks, &a);
}

int ad_ufunc_run_general(const ad_ufunc_plan *p) {
    const int d = too_large(p);
    if (d >= 0) return in_halves(p, d, ad_ufunc_run_general);
    plan own = *p;
    return run_fitting(&own);
}

int ad_ufunc_try_cast(const ad_ufunc_plan *p) {
    const int from = p->dtype[1], to = p->dtype[0];
    if (p->masked || p->walk.ndim != 1) return 0;
    for (int k = 0; k < 2; k++) {
        if (p->walk.stride[k][0] != ad_ufunc_size(p->dtype[k]) && p->walk.shape[0] != 1) return 0;
        if (reinterpret_cast<uintptr_t>(p->walk.base[k]) % 16 != 0) return 0;
    }
    int elements;
    const void *kernel = ad_cuda_cast_kernel(from, to, &elements);
    const int64_t blocks = divided(p->walk.shape[0], AD_UFUNC_THREADS * elements);
    if (blocks > AD_UFUNC_LARGEST) return 0;
    ad_ufunc_cast c = {p->walk.shape[0], p->walk.base[0], p->walk.base[1], from};
    return ad_ufunc_launch(p, kernel, blocks, &c);
}

int ad_ufunc_try_transpose(const ad_ufunc_plan *p) {
    const int size = ad_ufunc_size(p->dtype[0]);
    ad_loop w = p->walk;
    if (w.ndim < 2 || ad_loop_count(&w) < TILED_COUNT || !ad_loop_plane(&w) || !is_transpose(p, &w, size)) return 0;
    int side;
    const void *kernel = ad_cuda_transpose_kernel(size, is_packed(&w, size), &side);
    const int64_t across = divided(w.shape[w.ndim - 1], side), down = divided(w.shape[w.ndim - 2], side);
    int64_t outer = 1;
    bool large = false;
    for (int d = 0; d < w.ndim; d++) large = large || w.shape[d] > AD_UFUNC_LARGEST;
    for (int d = 0; d < w.ndim - 2; d++) outer *= w.shape[d];
    if (large || outer > AD_UFUNC_LARGEST / (across * down)) return 0;
    ad_ufunc_transpose t;
    fill_transpose(&w, across, down, &t);
    return ad_ufunc_launch(p, kernel, across * down * outer, &t);
}
