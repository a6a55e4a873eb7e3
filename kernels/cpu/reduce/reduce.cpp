/* Reductions: the loop over the kept dimensions around the loop over the reduced ones.
 *
 * Outputs are made in groups, in one of two ways, whichever reads memory in order. One after another folds runs of
 * elements (rows); all at once takes one element of every run each (columns). The reduced elements are taken in pieces
 * of a fixed size, whose states are merged pairwise. So the result does not depend on the number of threads. */
#include <algorithm>
#include <atomic>
#include <memory>
#include <stdlib.h>
#include <string.h>

#include "kernels/loop.h"
#include "kernels/cpu/backend/operand.h"
#include "kernels/cpu/backend/parallel.h"
#include "protocol/infer.h"
#include "protocol/tables.h"

namespace {

constexpr int64_t PIECE = 1 << 16;        /* elements */
constexpr int64_t PIECES_MOST = 1 << 13;  /* of one output: each has a state */
constexpr int64_t CANCEL_EVERY = 1 << 24; /* elements between looks at whether the operation is cancelled */
constexpr int64_t GRAIN = 1 << 17;        /* elements worth waking a thread for */
constexpr int64_t BLOCK_BYTES = 8192;     /* gathered at a time */
constexpr int64_t STATE_BYTES = 1 << 15;  /* of a group */
constexpr int64_t CHECK = 1 << 14;        /* elements between looks at done() */
enum { IN, OUT, MASK };                   /* operands of the kept loop; the reduced one has no OUT */

struct plan {
    const ad_cpu_kernels *kernels;
    const ad_reduce_kernel *kernel;
    uint8_t compute, in_size, result_dtype, result_size;
    bool converts, masked, columns, has_initial;
    int64_t reduced, piece, block;
    int64_t group, width; /* outputs made at a time; of these as columns */
    double ddof;
    ad_cpu_cast in, out;
    ad_loop keep, over;
    std::atomic<bool> no_memory;
    alignas(16) char slot[16], mask_slot[16], initial[16];
};

/* ---- planning ---- */

int compute_type(int loop) {
    return loop == AD_BOOL ? AD_UINT8 : loop == AD_FLOAT16 || loop == AD_BFLOAT16 ? AD_FLOAT32 : loop;
}

uint64_t axes_of(const ad_op *op) {
    const ad_scalar *s = &op->param[0];
    return op->nparam == 0 ? 0 : s->kind == AD_SCALAR_UINT ? s->as.u : uint64_t(s->as.i);
}

void add_dimensions(ad_loop *l, void *base, int ndim, const int64_t *strides, uint64_t axes, uint64_t wanted) {
    int64_t *to = l->stride[l->nop];
    int n = 0;
    to[0] = 0;
    for (int d = 0; d < ndim; d++)
        if ((axes >> d & 1) == wanted) to[n++] = strides[d];
    l->base[l->nop++] = static_cast<char *>(base);
}

/* The input's strides, or the mask's broadcast to the input. */
void plan_loops(plan *p, const ad_op *op, uint64_t axes) {
    const ad_operand *in = &op->operand[1], *mask = &op->operand[2], *out = &op->operand[0];
    int64_t kept[AD_MAX_NDIM], reduced[AD_MAX_NDIM];
    int ndim = in->is_scalar ? 0 : in->desc.ndim, nkept = 0, nreduced = 0;
    for (int d = 0; d < ndim; d++) {
        if (axes >> d & 1) reduced[nreduced++] = in->desc.shape[d];
        else kept[nkept++] = in->desc.shape[d];
    }
    ad_loop_init(&p->keep, nkept, kept);
    ad_loop_init(&p->over, nreduced, reduced);
    void *base = in->is_scalar ? p->slot : in->data;
    add_dimensions(&p->keep, base, ndim, in->desc.strides, axes, 0);
    add_dimensions(&p->over, base, ndim, in->desc.strides, axes, 1);
    ad_loop_add(&p->keep, out->data, out->desc.ndim, out->desc.shape, out->desc.strides);
    if (!p->masked) return;
    ad_loop whole;
    ad_loop_init(&whole, ndim, in->desc.shape);
    if (mask->is_scalar) ad_loop_add_scalar(&whole, p->mask_slot);
    else ad_loop_add(&whole, mask->data, mask->desc.ndim, mask->desc.shape, mask->desc.strides);
    add_dimensions(&p->keep, whole.base[0], ndim, whole.stride[0], axes, 0);
    add_dimensions(&p->over, whole.base[0], ndim, whole.stride[0], axes, 1);
}

void plan_types(plan *p, const ad_op *op) {
    const ad_operand *in = &op->operand[1];
    const ad_rule_row *rule = &ad__rules[ad__reduction(op->row)->rule];
    p->kernels = ad_cpu_kernels_get();
    p->compute = uint8_t(compute_type(op->loop));
    p->kernel = &p->kernels->reduce[p->compute][op->row];
    p->in_size = ad__dtypes[p->compute].size;
    int from = in->is_scalar ? op->loop : in->desc.dtype;
    p->in = ad_cpu_cast_get(p->kernels, from, op->loop, p->compute);
    p->converts = from != p->compute || op->loop != p->compute;
    int made = rule->out[0] == AD_CODE_B ? AD_BOOL : ad__code_dtype(rule->out[0], p->compute);
    p->result_dtype = uint8_t(made);
    p->result_size = ad__dtypes[made].size;
    p->out = ad_cpu_cast_get(p->kernels, made, ad__code_dtype(rule->out[0], op->loop), op->operand[0].desc.dtype);
    if (in->is_scalar) ad_scalar_store(&in->scalar, op->loop, p->slot);
}

void plan_parameters(plan *p, const ad_op *op) {
    p->ddof = op->nparam > 1 ? ad_scalar_number(&op->param[1]) : 0;
    p->has_initial = op->nparam > 2 && op->param[2].kind != AD_SCALAR_NIL;
    if (!p->has_initial) return;
    alignas(16) char value[16];
    ad_scalar_store(&op->param[2], op->loop, value);
    p->kernels->cast[op->loop][p->compute](p->initial, 16, value, 16, 1);
}

/* Columns when neighbours lie along a kept dimension, or when runs would be very short. */
bool choose_columns(const plan *p) {
    int k = p->keep.ndim - 1, r = p->over.ndim - 1;
    int64_t kept = llabs(p->keep.stride[IN][k]), over = llabs(p->over.stride[IN][r]);
    if (p->keep.shape[k] < 8 || p->reduced == 1) return p->keep.shape[k] >= 8;
    return (kept < over && kept != 0) || p->over.shape[r] < 32;
}

/* The reduced loop starts from the kept one's addresses: where it is turned round, they move. */
void order_loops(plan *p) {
    char *const in = p->over.base[0], *const mask = p->masked ? p->over.base[1] : nullptr;
    if (p->kernel->ordered) ad_loop_join(&p->over);
    else ad_loop_optimize(&p->over);
    p->keep.base[IN] += p->over.base[0] - in;
    if (p->masked) p->keep.base[MASK] += p->over.base[1] - mask;
    ad_loop_optimize(&p->keep);
}

void make_plan(plan *p, const ad_op *op) {
    p->masked = op->nin > 1;
    if (p->masked && op->operand[2].is_scalar) ad_scalar_store(&op->operand[2].scalar, AD_BOOL, p->mask_slot);
    p->no_memory.store(false, std::memory_order_relaxed);
    plan_types(p, op);
    plan_parameters(p, op);
    plan_loops(p, op, axes_of(op));
    p->reduced = ad_loop_count(&p->over);
    p->block = BLOCK_BYTES / 16;
    if (p->reduced == 0 || ad_loop_count(&p->keep) == 0) return;
    order_loops(p);
    p->columns = choose_columns(p);
    p->group = STATE_BYTES / p->kernel->state_size;
    p->width = p->columns ? std::min(p->keep.shape[p->keep.ndim - 1], p->group) : 1;
    p->piece = std::max<int64_t>({PIECE / p->width, 512, p->reduced / PIECES_MOST});
    if (!p->columns && p->reduced > p->piece) p->group = 1;
}

/* ---- taking elements ---- */

/* Get n elements, contiguous and in the kernel's type. They are gathered into block where they are not. */
const void *elements(const plan *p, const char *from, int64_t stride, int64_t n, char *block) {
    if (!p->converts && stride == p->in_size) return from;
    if (p->converts) ad_cpu_cast_run(&p->in, block, p->in_size, from, stride, n);
    else p->kernels->cast[p->compute][p->compute](block, p->in_size, from, stride, n);
    return block;
}

const uint8_t *mask_of(const plan *p, const char *from, int64_t stride, int64_t n, char *block) {
    if (stride == 1) return reinterpret_cast<const uint8_t *>(from);
    p->kernels->cast[AD_BOOL][AD_BOOL](block, 1, from, stride, n);
    return reinterpret_cast<const uint8_t *>(block);
}

void take_masked(const plan *p, char *state, int64_t state_step, char *const *q, int64_t stride, int64_t mask_stride,
                 int64_t n, int64_t index, int64_t index_step) {
    alignas(64) char block[BLOCK_BYTES], bits[BLOCK_BYTES / 16];
    for (int64_t i = 0; i < n; i += p->block) {
        int64_t m = n - i < p->block ? n - i : p->block;
        const void *x = elements(p, q[0] + i * stride, stride, m, block);
        const uint8_t *mask = mask_of(p, q[1] + i * mask_stride, mask_stride, m, bits);
        p->kernel->masked(state + i * state_step * p->kernel->state_size, state_step, x, mask, m,
                          index + i * index_step, index_step);
    }
}

/* A run into one state. */
void take_run(const plan *p, char *state, char *const *q, int64_t n, int64_t index) {
    const int last = p->over.ndim - 1;
    const int64_t stride = p->over.stride[0][last];
    if (p->masked) return take_masked(p, state, 0, q, stride, p->over.stride[1][last], n, index, 1);
    alignas(64) char block[BLOCK_BYTES];
    const int64_t gathered = BLOCK_BYTES / p->in_size;
    int64_t step = p->converts || stride != p->in_size ? gathered : p->kernel->done ? CHECK : n;
    for (int64_t i = 0; i < n; i += step) {
        int64_t m = n - i < step ? n - i : step;
        p->kernel->fold(state, elements(p, q[0] + i * stride, stride, m, block), m, index + i);
        if (p->kernel->done && p->kernel->done(state)) return;
    }
}

/* Take m neighbours into m states. */
void take_each(const plan *p, char *state, char *const *q, int64_t m, int64_t index) {
    const int last = p->keep.ndim - 1;
    const int64_t stride = p->keep.stride[IN][last];
    if (p->masked) return take_masked(p, state, 1, q, stride, p->keep.stride[MASK][last], m, index, 0);
    if (!p->converts && stride == p->in_size) return p->kernel->each(state, q[0], m, index);
    alignas(64) char block[BLOCK_BYTES];
    for (int64_t i = 0; i < m; i += p->block) {
        int64_t n = m - i < p->block ? m - i : p->block;
        p->kernel->each(state + i * p->kernel->state_size, elements(p, q[0] + i * stride, stride, n, block), n, index);
    }
}

/* A run of any length: a view of few elements in memory may have 2^60. */
void take_long_run(const plan *p, char *state, char *const *q, int64_t n, int64_t index) {
    const int last = p->over.ndim - 1;
    if (n <= CANCEL_EVERY) return take_run(p, state, q, n, index);
    for (int64_t i = 0; i < n; i += CANCEL_EVERY) {
        ad_cpu_check_cancelled();
        char *r[2] = {q[0] + i * p->over.stride[0][last], p->masked ? q[1] + i * p->over.stride[1][last] : nullptr};
        take_run(p, state, r, std::min(n - i, CANCEL_EVERY), index + i);
        if (p->kernel->done && p->kernel->done(state)) return;
    }
}

/* Reduced elements begin..end of the m outputs whose first elements are at base, into their states. */
void take_piece(const plan *p, char *state, char *const *base, int64_t m, int64_t begin, int64_t end) {
    int64_t index = begin;
    const int last = p->over.ndim - 1;
    if (last == 0 && !p->columns && begin == 0) return take_long_run(p, state, base, end, 0); /* the usual row */
    ad_loop_walk_from(&p->over, base, begin, end, [&](char *const *q, int64_t n) {
        if (!p->columns) {
            take_long_run(p, state, q, n, index);
        } else {
            char *r[2] = {q[0], p->masked ? q[1] : nullptr};
            for (int64_t i = 0; i < n; i++) {
                if (i % CANCEL_EVERY == 0) ad_cpu_check_cancelled();
                take_each(p, state, r, m, index + i);
                r[0] += p->over.stride[0][last];
                if (p->masked) r[1] += p->over.stride[1][last];
            }
        }
        index += n;
    });
}

/* ---- outputs ---- */

void take_initial(const plan *p, char *state, int64_t m) {
    alignas(64) char head[64];
    const int64_t size = p->kernel->state_size;
    if (!p->has_initial) return;
    p->kernel->init(head, 1);
    p->kernel->fold(head, p->initial, 1, -1);
    for (int64_t i = 0; i < m; i++) p->kernel->merge(state + i * size, head, 1);
}

void put_results(const plan *p, char *to, int64_t stride, char *state, int64_t m) {
    alignas(64) char block[BLOCK_BYTES];
    take_initial(p, state, m);
    for (int64_t i = 0; i < m; i += p->block) {
        int64_t n = m - i < p->block ? m - i : p->block;
        p->kernel->result(block, state + i * p->kernel->state_size, n, p->ddof);
        ad_cpu_cast_run(&p->out, to + i * stride, stride, block, p->result_size, n);
    }
}

/* All pieces of a group, in parallel where the caller is not one of many already. */
void take_pieces(plan *p, char *const *base, int64_t m, char *first) {
    const int64_t pieces = (p->reduced + p->piece - 1) / p->piece, bytes = (m * p->kernel->state_size + 63) / 64 * 64;
    const std::unique_ptr<char, void (*)(void *)> owner(static_cast<char *>(aligned_alloc(64, size_t(pieces * bytes))),
                                                        free);
    char *const states = owner.get();
    if (!states) return p->no_memory.store(true, std::memory_order_relaxed);
    std::atomic<bool> stop{false};
    const int64_t grain = p->piece >= GRAIN ? 1 : (GRAIN + p->piece * m - 1) / (p->piece * m);
    ad_cpu_parallel(pieces, grain, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i++) {
            int64_t to = (i + 1) * p->piece < p->reduced ? (i + 1) * p->piece : p->reduced;
            char *state = states + i * bytes;
            p->kernel->init(state, m);
            if (stop.load(std::memory_order_relaxed)) continue;
            take_piece(p, state, base, m, i * p->piece, to);
            if (m == 1 && p->kernel->done && p->kernel->done(state)) stop.store(true, std::memory_order_relaxed);
        }
    });
    for (int64_t step = 1; step < pieces; step *= 2)
        for (int64_t i = 0; i + step < pieces; i += 2 * step)
            p->kernel->merge(states + i * bytes, states + (i + step) * bytes, m);
    memcpy(first, states, size_t(m * p->kernel->state_size));
}

/* Take m rows that are one piece each into m states. */
void take_rows(const plan *p, char *state, char **base, int64_t m) {
    const int last = p->keep.ndim - 1;
    p->kernel->init(state, m);
    for (int64_t i = 0; i < m; i++) {
        take_piece(p, state, base, 1, 0, p->reduced);
        state += p->kernel->state_size;
        base[0] += p->keep.stride[IN][last];
        if (p->masked) base[1] += p->keep.stride[MASK][last];
    }
}

void make_group(plan *p, char *const *ptr, int64_t m) {
    alignas(64) char state[STATE_BYTES];
    char *base[2] = {ptr[IN], p->masked ? ptr[MASK] : nullptr};
    if (p->reduced > p->piece) take_pieces(p, base, m, state);
    else if (!p->columns) take_rows(p, state, base, m);
    else {
        p->kernel->init(state, m);
        take_piece(p, state, base, m, 0, p->reduced);
    }
    put_results(p, ptr[OUT], p->keep.stride[OUT][p->keep.ndim - 1], state, m);
}

void make_outputs(plan *p, int64_t begin, int64_t end) {
    const int last = p->keep.ndim - 1;
    ad_loop_walk(&p->keep, begin, end, [&](char *const *q, int64_t n) {
        char *r[3] = {q[IN], q[OUT], p->masked ? q[MASK] : nullptr};
        for (int64_t i = 0; i < n; i += p->group) {
            int64_t m = n - i < p->group ? n - i : p->group;
            make_group(p, r, m);
            for (int k = 0; k < p->keep.nop; k++) r[k] += m * p->keep.stride[k][last];
        }
    });
}

/* No elements: the identity everywhere, or what the accumulator makes of none (NaN). */
void make_empty(plan *p) {
    const int last = p->keep.ndim - 1;
    ad_loop_walk(&p->keep, 0, ad_loop_count(&p->keep), [&](char *const *q, int64_t n) {
        alignas(64) char state[64];
        for (int64_t i = 0; i < n; i++) {
            p->kernel->init(state, 1);
            put_results(p, q[OUT] + i * p->keep.stride[OUT][last], 0, state, 1);
        }
    });
}

} // namespace

int ad_cpu_reduce(ad_stream *, const ad_op *op, ad_run *run, ad_fault *fault) {
    plan p;
    make_plan(&p, op);
    const int64_t outputs = ad_loop_count(&p.keep);
    if (outputs == 0) return 0;
    ad_cpu_writes(op, run);
    if (p.reduced == 0) {
        make_empty(&p);
        return 0;
    }
    /* Few large groups share their pieces out, many groups are shared out themselves. */
    const bool many = outputs / p.width >= 4 * ad_cpu_parallel_threads() || p.reduced <= p.piece;
    int64_t grain = (GRAIN + p.reduced - 1) / p.reduced;
    if (many) ad_cpu_parallel(outputs, std::max(grain, p.width), [&](int64_t b, int64_t e) { make_outputs(&p, b, e); });
    else make_outputs(&p, 0, outputs);
    if (p.no_memory.load(std::memory_order_relaxed))
        return ad__fault(fault, AD_E_MEMORY, "no memory for %s", ad__op_name(op));
    return 0;
}
