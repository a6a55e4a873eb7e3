/* Universal functions: what an operation's operands are, and which kernel it is for. */
#include "kernels/call.h"
#include "kernels/cuda/list/list.h"
#include "kernels/cuda/ufunc/plan.h"
#include "protocol/infer.h"
#include "protocol/rows_ufunc.h"
#include "protocol/tables.h"

namespace {

using plan = ad_ufunc_plan;

constexpr int64_t ENGINE_BYTES = 1 << 20; /* from which the copy engine is used */
constexpr int64_t ENGINE_RUN = 4 << 10;   /* bytes of each run of elements */

int code_of(const ad_rule_row *rule, int nout, int k) { return k < nout ? rule->out[k] : rule->in[k - nout]; }

/* Tell whether the row only moves its input: it has no kernel though the rule has a loop. */
bool moves(int row, int loop) { return row == AD_UFUNC_copy || ad_cuda_ufunc_table(loop)->width[row] == 0; }

void add_scalar(plan *p, const ad_scalar *s, int k) {
    ad_scalar_store(s, p->want[k], p->value[k]);
    p->dtype[k] = p->want[k];
    ad_loop_add_scalar(&p->walk, nullptr);
}

void add_operand(plan *p, const ad_operand *o, int k) {
    if (o->is_scalar) return add_scalar(p, &o->scalar, k);
    p->dtype[k] = o->desc.dtype;
    ad_loop_add(&p->walk, o->data, o->desc.ndim, o->desc.shape, o->desc.strides);
}

/* False: the mask is false throughout. */
bool add_mask(plan *p, const ad_op *op) {
    const ad_operand *mask = &op->operand[p->nop];
    p->masked = op->nout + op->nin > p->nop;
    if (!p->masked) return true;
    if (!mask->is_scalar) {
        p->want[p->nop] = AD_BOOL;
        add_operand(p, mask, p->nop);
        return true;
    }
    alignas(16) char value[16];
    ad_scalar_store(&mask->scalar, AD_BOOL, value);
    p->masked = false;
    return value[0] != 0;
}

/* False: there is nothing to be computed. */
bool make_plan(plan *p, const ad_op *op) {
    const ad_ufunc_row *row = ad__ufunc(op->row);
    const ad_rule_row *rule = &ad__rules[row->rule];
    const ad_desc *out = &op->operand[0].desc;
    p->row = op->row;
    p->loop = op->loop;
    p->nout = row->nout;
    p->nop = row->nout + row->nin;
    ad_loop_init(&p->walk, out->ndim, out->shape);
    if (ad_loop_count(&p->walk) == 0) return false;
    for (int k = 0; k < p->nop; k++) {
        p->want[k] = uint8_t(ad__code_dtype(code_of(rule, p->nout, k), op->loop));
        add_operand(p, &op->operand[k], k);
    }
    if (!add_mask(p, op)) return false;
    ad_loop_optimize(&p->walk);
    return true;
}

void report_check(plan *p, ad_run *run) {
    const char kind = ad__dtypes[p->loop].kind;
    p->check = nullptr;
    if (p->row != AD_UFUNC_power || kind != 'i' || !run->check) return;
    p->check = run->check;
    run->checked = true;
}

/* Copy by way of scratch memory, for conversions with a third type in between. */
int copy_in_two_steps(plan *p, ad_run *run) {
    const int64_t size = ad_ufunc_size(p->loop);
    char *middle = static_cast<char *>(run->workspace(run, uint64_t(ad_loop_count(&p->walk) * size)));
    if (!middle) return ad__fault(p->fault, AD_E_MEMORY, "out of memory: scratch memory for a conversion");
    plan first = *p, second = *p;
    int64_t step = size;
    first.walk.base[0] = second.walk.base[1] = middle;
    for (int d = p->walk.ndim - 1; d >= 0; d--) {
        first.walk.stride[0][d] = second.walk.stride[1][d] = step;
        step *= p->walk.shape[d];
    }
    first.dtype[0] = second.dtype[1] = uint8_t(p->loop);
    first.masked = false;
    first.walk.nop = first.nop;
    int result = ad_ufunc_try_cast(&first);
    if (result == 0) result = ad_ufunc_run_general(&first);
    if (result < 0) return result;
    result = ad_ufunc_try_cast(&second);
    return result != 0 ? result : ad_ufunc_run_general(&second);
}

/* Copies of one type are those of any other of the same size. */
int any_of_size(int size) {
    return size == 1 ? AD_INT8 : size == 2 ? AD_INT16 : size == 4 ? AD_INT32 : size == 8 ? AD_INT64 : AD_COMPLEX128;
}

bool is_aligned(const plan *p, int k, int64_t size) {
    uint64_t bits = uint64_t(reinterpret_cast<uintptr_t>(p->walk.base[k]));
    for (int d = 0; d < p->walk.ndim; d++) bits |= uint64_t(p->walk.stride[k][d]);
    return bits % uint64_t(size) == 0;
}

/* Copies within contiguous rows take words as wide as everything is aligned for. */
void widen(plan *p) {
    const int last = p->walk.ndim - 1;
    int size = ad_ufunc_size(p->dtype[0]);
    const bool fill = !p->walk.base[1];
    if (fill || p->masked || p->walk.stride[0][last] != size || p->walk.stride[1][last] != size) return;
    while (size < 16 && p->walk.shape[last] % 2 == 0) {
        p->walk.stride[0][last] = p->walk.stride[1][last] = 2 * size;
        if (!is_aligned(p, 0, 2 * size) || !is_aligned(p, 1, 2 * size)) break;
        p->walk.shape[last] /= 2;
        size *= 2;
    }
    p->walk.stride[0][last] = p->walk.stride[1][last] = size;
    /* Complex numbers at half places stay what they are: only their parts are aligned. */
    if (size != ad_ufunc_size(p->dtype[0])) p->dtype[0] = p->dtype[1] = uint8_t(any_of_size(size));
}

/* Tell whether an operand is a run of elements, or such runs at one distance, which do not overlap. */
bool has_runs(const plan *p, int k) {
    const ad_loop &w = p->walk;
    const int64_t last = w.ndim - 1, size = ad_ufunc_size(p->dtype[k]);
    if (w.ndim < 1 || w.ndim > 2 || w.stride[k][last] != size) return false;
    return w.ndim == 1 || (w.shape[1] * size >= ENGINE_RUN && w.stride[k][0] >= w.shape[1] * size);
}

/* Tell whether an operand lies on another device than the stream's. */
bool is_afar(const plan *p, int k) {
    cudaPointerAttributes a;
    if (cudaPointerGetAttributes(&a, p->walk.base[k]) == cudaSuccess)
        return a.type == cudaMemoryTypeDevice && a.device != p->stream->device->index;
    cudaGetLastError();
    return false;
}

/* Copy runs of elements by the copy engine. 0: CUDA does not take them. */
int copy_runs(const plan *p) {
    const ad_loop &w = p->walk;
    const size_t width = size_t(w.shape[1] * ad_ufunc_size(p->dtype[0]));
    const int status = ad_cuda_enter(p->stream->device, p->fault);
    if (status) return status;
    const cudaError_t error = cudaMemcpy2DAsync(w.base[0], size_t(w.stride[0][0]), w.base[1], size_t(w.stride[1][0]),
                                                width, size_t(w.shape[0]), cudaMemcpyDefault, p->stream->cuda);
    if (error == cudaSuccess) return 1;
    if (error != cudaErrorInvalidValue) return ad_cuda_status(error, "a copy", p->fault);
    cudaGetLastError();
    return 0;
}

/* Copy from one device to another by the copy engine, which leaves the multiprocessors to kernels. 0: it is no such
 * copy, or too short to gain. */
int try_engine(const plan *p) {
    const int64_t bytes = ad_loop_count(&p->walk) * ad_ufunc_size(p->dtype[0]);
    if (bytes < ENGINE_BYTES || p->masked || !has_runs(p, 0) || !has_runs(p, 1)) return 0;
    if (!is_afar(p, 0) && !is_afar(p, 1)) return 0;
    const ad_loop &w = p->walk;
    if (w.ndim == 2) return copy_runs(p);
    const int status = ad_cuda_move(p->stream, w.base[0], w.base[1], uint64_t(bytes), p->fault);
    return status ? status : 1;
}

int copy_same(plan *p) {
    const int size = ad_ufunc_size(p->dtype[0]);
    const bool fill = !p->walk.base[1];
    const int moved = fill ? 0 : try_engine(p);
    if (moved != 0) return moved;
    if (is_aligned(p, 0, size) && (fill || is_aligned(p, 1, size)))
        p->dtype[0] = p->dtype[1] = uint8_t(any_of_size(size));
    int result = fill || p->masked ? 0 : ad_ufunc_try_transpose(p);
    if (result != 0) return result;
    widen(p);
    p->loop = p->want[0] = p->want[1] = p->dtype[0];
    result = ad_ufunc_try_fast(p);
    return result != 0 ? result : ad_ufunc_run_general(p);
}

int copy(plan *p, ad_run *run) {
    p->row = AD_UFUNC_copy;
    if (!p->walk.base[1]) {
        ad_ufunc_convert(p->loop, p->dtype[0], p->value[1]);
        p->dtype[1] = p->dtype[0];
    } else if (p->dtype[1] != p->loop && p->dtype[0] != p->loop) {
        return copy_in_two_steps(p, run);
    }
    if (p->dtype[0] == p->dtype[1]) return copy_same(p);
    int result = ad_ufunc_try_cast(p);
    return result != 0 ? result : ad_ufunc_run_general(p);
}

} // namespace

int ad_cuda_ufunc(ad_stream *stream, const ad_op *op, ad_run *run, ad_fault *fault) {
    plan p;
    p.stream = stream;
    p.fault = fault;
    if (!make_plan(&p, op)) return 0;
    for (int i = 0; i < op->nout; i++)
        if (op->operand[i].desc.form == AD_VIEW) run->wrote = true;
    report_check(&p, run);
    int result = ad_cuda_list_ufunc(&p);
    if (result == 0) result = moves(p.row, p.loop) ? copy(&p, run) : ad_ufunc_try_fast(&p);
    if (result == 0) result = ad_ufunc_run_general(&p);
    return result < 0 ? result : 0;
}
