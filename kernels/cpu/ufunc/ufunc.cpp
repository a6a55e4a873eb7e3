/* Universal functions: brings the operands into the form that the kernels want, block by block. */
#include <algorithm>

#include "kernels/cpu/backend/parallel.h"
#include "kernels/cpu/ufunc/plan.h"
#include "kernels/math.h"
#include "protocol/desc.h"
#include "protocol/infer.h"
#include "protocol/rows_ufunc.h"
#include "protocol/tables.h"

__thread unsigned ad_cpu_raised;

namespace {

constexpr int64_t SHORT_RUN = 32;        /* shorter innermost dimensions are gathered into blocks */
constexpr int64_t GRAIN_CHEAP = 1 << 17; /* elements worth waking a thread for */
constexpr int64_t GRAIN_DEAR = 1 << 13;
constexpr int64_t COST_DEAR = 100;       /* of a row, from which on fewer elements are worth it */
constexpr int64_t TILED_COUNT = 4096;    /* elements worth ordering memory accesses for */

using plan = ad_ufunc_plan;

/* ---- planning ---- */

int code_of(const ad_rule_row *rule, int nout, int k) { return k < nout ? rule->out[k] : rule->in[k - nout]; }

void plan_operand(plan *p, const ad_op *op, const ad_rule_row *rule, int compute, int k) {
    const ad_operand *o = &op->operand[k];
    int code = code_of(rule, p->nout, k);
    int middle = ad__code_dtype(code, op->loop), dtype = ad__code_dtype(code, compute);
    if (op->row == AD_UFUNC_copy) dtype = op->operand[0].desc.dtype, middle = k == 0 ? dtype : op->loop;
    p->dtype[k] = uint8_t(dtype);
    p->size[k] = ad__dtypes[dtype].size;
    p->raw[k] = ad__dtypes[o->is_scalar ? middle : o->desc.dtype].size;
    if (o->is_scalar) {
        ad_scalar_store(&o->scalar, middle, p->slot[k]);
        ad_loop_add_scalar(&p->loop, p->slot[k]);
        p->converts[k] = middle != dtype;
        p->cast[k] = ad_cpu_cast_get(p->kernels, middle, middle, dtype);
        return;
    }
    ad_loop_add(&p->loop, o->data, o->desc.ndim, o->desc.shape, o->desc.strides);
    p->converts[k] = o->desc.dtype != dtype || middle != dtype;
    if (!p->converts[k] && p->kernel) return;
    p->cast[k] = k < p->nout ? ad_cpu_cast_get(p->kernels, dtype, middle, o->desc.dtype)
                             : ad_cpu_cast_get(p->kernels, o->desc.dtype, middle, dtype);
}

/* False: the mask is false throughout. */
bool plan_mask(plan *p, const ad_op *op) {
    const ad_operand *mask = &op->operand[p->nop];
    p->masked = op->nout + op->nin > p->nop;
    if (!p->masked) return true;
    if (mask->is_scalar) {
        ad_scalar_store(&mask->scalar, AD_BOOL, p->slot[p->nop]);
        p->masked = false;
        return p->slot[p->nop][0] != 0;
    }
    ad_loop_add(&p->loop, mask->data, mask->desc.ndim, mask->desc.shape, mask->desc.strides);
    return true;
}

/* Inputs that are one element are converted here, once. */
void plan_scalars(plan *p) {
    p->scalars = 0;
    for (int k = p->nout; k < p->nop; k++) {
        if (!ad_loop_is_scalar(&p->loop, k)) continue;
        p->scalars |= 1u << (k - p->nout);
        if (!p->converts[k] || !p->kernel) continue;
        alignas(16) char value[16];
        ad_cpu_cast_run(&p->cast[k], value, 16, p->loop.base[k], 16, 1);
        memcpy(p->slot[k], value, sizeof value);
        p->loop.base[k] = p->slot[k];
        p->raw[k] = p->size[k];
        p->converts[k] = false;
    }
}

/* Plan which operands must be gathered, given the loop's final form. */
void plan_packing(plan *p) {
    int last = p->loop.ndim - 1;
    int64_t widest = 1;
    p->packed = 0;
    for (int k = 0; k < p->nop; k++) {
        int64_t stride = p->loop.stride[k][last];
        bool runs = stride == p->size[k] || p->loop.shape[last] == 1;
        if (k >= p->nout && stride == 0 && !p->converts[k]) p->scalars |= 1u << (k - p->nout);
        else if (p->converts[k] || !runs) p->packed |= 1u << k;
        widest = std::max<int64_t>(widest, std::max(p->size[k], p->raw[k]));
    }
    p->block = AD_BLOCK_BYTES / widest;
}

/* False: there is nothing to be computed. */
bool make_plan(plan *p, const ad_op *op) {
    const ad_ufunc_row *row = ad__ufunc(op->row);
    const ad_rule_row *rule = &ad__rules[row->rule];
    const ad_desc *out = &op->operand[0].desc;
    p->kernels = ad_cpu_kernels_get();
    p->nout = row->nout;
    p->nop = row->nout + row->nin;
    p->raised.store(0, std::memory_order_relaxed);
    p->grain = ad_ufunc_grain(op->row);
    int compute = ad_ufunc_choose(p->kernels, op->row, op->loop, &p->kernel);
    ad_loop_init(&p->loop, out->ndim, out->shape);
    if (ad_loop_count(&p->loop) == 0) return false;
    for (int k = 0; k < p->nop; k++) plan_operand(p, op, rule, compute, k);
    if (!plan_mask(p, op)) return false;
    ad_loop_optimize(&p->loop);
    plan_scalars(p);
    return true;
}

/* ---- running ---- */

/* Run n elements of one run through blocks. */
void run_packed(const plan *p, char *const *ptr, int64_t n) {
    alignas(64) char block[5][AD_BLOCK_BYTES];
    const int last = p->loop.ndim - 1;
    for (int64_t i = 0; i < n; i += p->block) {
        int64_t m = n - i < p->block ? n - i : p->block;
        void *q[5];
        for (int k = 0; k < p->nop; k++) {
            int64_t stride = p->loop.stride[k][last];
            char *from = ptr[k] + i * stride;
            q[k] = p->packed >> k & 1 ? block[k] : from;
            if (k < p->nout || !(p->packed >> k & 1)) continue;
            ad_ufunc_gather(p, k, block[k], p->size[k], from, stride, m);
        }
        p->kernel(q, p->scalars, m);
        for (int k = 0; k < p->nout; k++) {
            int64_t stride = p->loop.stride[k][last];
            char *to = ptr[k] + i * stride;
            if (!(p->packed >> k & 1)) continue;
            ad_ufunc_spread(p, k, to, stride, block[k], p->size[k], m);
        }
    }
}

void run_rows(const plan *p, int64_t begin, int64_t end) {
    if (p->masked) ad_loop_walk(&p->loop, begin, end, [&](char *const *q, int64_t n) { ad_ufunc_run_masked(p, q, n); });
    else ad_loop_walk(&p->loop, begin, end, [&](char *const *q, int64_t n) { ad_ufunc_run_span(p, q, n); });
}

/* ---- the whole ---- */

enum way { ROWS, SHORT, TILES };

/* The latter two take whole rows, not elements. */
way choose_way(plan *p) {
    const int last = p->loop.ndim - 1;
    if (p->masked || last == 0) return ROWS;
    if (ad_loop_count(&p->loop) >= TILED_COUNT && ad_loop_plane(&p->loop)) return TILES;
    return p->kernel && p->loop.shape[last] < SHORT_RUN ? SHORT : ROWS;
}

void run_loop(plan *p) {
    const way how = choose_way(p);
    plan_packing(p);
    const int64_t inner = how == ROWS ? 1 : p->loop.shape[p->loop.ndim - 1];
    ad_cpu_parallel(ad_loop_count(&p->loop) / inner, (p->grain + inner - 1) / inner,
                    [p, how](int64_t begin, int64_t end) {
                        if (how == SHORT) ad_ufunc_run_short(p, begin, end);
                        else if (how == TILES) ad_ufunc_run_tiles(p, begin, end);
                        else run_rows(p, begin, end);
                        if (ad_cpu_raised) {
                            p->raised.fetch_or(ad_cpu_raised, std::memory_order_relaxed);
                            ad_cpu_raised = 0;
                        }
                    });
}

unsigned run_planned(const ad_op *op, ad_run *run) {
    plan p;
    if (!make_plan(&p, op)) return 0;
    ad_cpu_writes(op, run);
    run_loop(&p);
    return p.raised.load(std::memory_order_relaxed);
}

/* ---- what needs no plan ---- */

bool same_shape(const ad_desc *a, const ad_desc *b) {
    return a->ndim == b->ndim && std::equal(a->shape, a->shape + a->ndim, b->shape);
}

/* Call the kernel once, for few elements: all operands are scalars or contiguous arrays of one shape, of the kernel's
 * types. False: this operation is otherwise. */
bool run_directly(const ad_op *op, ad_run *run, unsigned *raised) {
    const ad_ufunc_row *row = ad__ufunc(op->row);
    const ad_rule_row *rule = &ad__rules[row->rule];
    const ad_desc *out = &op->operand[0].desc;
    const int nop = row->nout + row->nin;
    ad_ufunc_kernel kernel;
    alignas(16) char slot[5][16];
    void *data[5];
    int64_t count = 1;
    unsigned scalars = 0;
    if (op->nout + op->nin != nop || ad_ufunc_choose(ad_cpu_kernels_get(), op->row, op->loop, &kernel) != op->loop)
        return false;
    const int64_t most = std::min(GRAIN_DEAR, ad_ufunc_grain(op->row));
    for (int i = 0; i < out->ndim && count <= most; i++) count *= std::min(out->shape[i], most + 1);
    if (!kernel || count < 2 || count > most) return false; /* one element is a scalar */
    for (int k = 0; k < nop; k++) {
        const ad_operand *o = &op->operand[k];
        const int dtype = ad__code_dtype(code_of(rule, row->nout, k), op->loop);
        data[k] = o->is_scalar ? slot[k] : o->data;
        if (o->is_scalar) {
            ad_scalar_store(&o->scalar, dtype, slot[k]);
            scalars |= 1u << (k - row->nout);
        } else if (o->desc.dtype != dtype || !same_shape(&o->desc, out) || !ad__is_contiguous(&o->desc)) {
            return false;
        }
    }
    ad_cpu_writes(op, run);
    kernel(data, scalars, count);
    *raised = ad_cpu_raised;
    ad_cpu_raised = 0;
    return true;
}

} // namespace

int ad_ufunc_choose(const ad_cpu_kernels *kernels, int row, int loop, ad_ufunc_kernel *kernel) {
    *kernel = row == AD_UFUNC_copy ? nullptr : kernels->ufunc[loop][row];
    if (*kernel || row == AD_UFUNC_copy) return loop;
    *kernel = kernels->ufunc[AD_FLOAT32][row];
    return AD_FLOAT32;
}

int64_t ad_ufunc_grain(int row) {
    const ad_ufunc_row *r = ad__ufunc(uint64_t(row));
    if (ad__rules[r->rule].loops & AD_M_INT) return GRAIN_CHEAP;
    return std::max<int64_t>(1, r->cost > COST_DEAR ? GRAIN_DEAR * COST_DEAR / r->cost : GRAIN_DEAR);
}

void ad_ufunc_run_span(const plan *p, char *const *ptr, int64_t n) {
    const int last = p->loop.ndim - 1;
    if (!p->kernel) {
        ad_cpu_cast_run(&p->cast[1], ptr[0], p->loop.stride[0][last], ptr[1], p->loop.stride[1][last], n);
    } else if (p->packed) {
        run_packed(p, ptr, n);
    } else {
        p->kernel(reinterpret_cast<void *const *>(ptr), p->scalars, n);
    }
}

int ad_cpu_ufunc(ad_stream *, const ad_op *op, ad_run *run, ad_fault *fault) {
    unsigned raised;
    if (!run_directly(op, run, &raised)) raised = run_planned(op, run);
    if (raised & AD_RAISE_NEGATIVE_POWER)
        return ad__fault(fault, AD_E_VALUE, "Integers to negative integer powers are not allowed.");
    return 0;
}
