/* Reductions: the choice of a kernel, the additional work for it, and its launch. Arrays that are reduced whole, in the
 * order in which they lie in memory, have kernels of their own: for types that a sum or an extreme can be taken of
 * directly. All others go through one kernel that takes everything. */
#include "kernels/cuda/backend/device.h"
#include "kernels/cuda/list/list.h"
#include "kernels/cuda/reduce/plan.h"
#include "protocol/infer.h"
#include "protocol/rows_reduction.h"
#include "protocol/tables.h"

namespace {

struct plan {
    ad_call call;
    ad_fold_arrays arrays;
    ad_fold fold;
    ad_fold_kernel ways[AD_FOLD_WAYS]; /* by AD_FOLD_UNIT ...; function NULL: there is none */
    int row, loop, input, natural;     /* natural: dtype that the kernel makes */
    int start;                         /* dtype of the initial value */
    int family;                        /* of `ways` */
    bool masked, nothing;
};

bool is_inexact(int dtype) { return AD_BIT(dtype) & (AD_M_FLOAT | AD_M_COMPLEX); }
bool is_narrow(int dtype) { return dtype == AD_FLOAT16 || dtype == AD_BFLOAT16; }
unsigned traits_of(int row) { return ad__reduction(uint64_t(row))->traits; }
bool is_ordered(int row) { return traits_of(row) & AD_F_PLACE; }
bool is_truth(int row) { return traits_of(row) & AD_F_TRUTH; }
int narrowing(int dtype) {
    return dtype == AD_FLOAT16 ? AD_FOLD_HALF : dtype == AD_BFLOAT16 ? AD_FOLD_BFLOAT16 : AD_FOLD_AS_IS;
}
int computed_in(int loop) { return loop == AD_BOOL ? AD_UINT8 : is_narrow(loop) ? AD_FLOAT32 : loop; }

/* The row that comes to the same for these types. */
int simpler(int row, int input, int loop, uint8_t *flags) {
    if (traits_of(row) & AD_F_ROOT) {
        *flags |= AD_FOLD_ROOT;
        row = ad__reduction(uint64_t(row))->plain;
    }
    return is_inexact(input) && is_inexact(loop) ? row : ad__reduction(uint64_t(row))->plain; /* nothing is NaN */
}

/* ---- the choice of a kernel ---- */

void take_family(plan *p, ad_fold_kernel (*kernels)(int input, int way), unsigned flags) {
    for (int way = 0; way < AD_FOLD_WAYS; way++) p->ways[way] = kernels(p->input, way);
    p->family = kernels == ad_fold_count   ? AD_FOLD_COUNTS
                : kernels == ad_fold_top   ? AD_FOLD_TOPS
                : kernels == ad_fold_place ? AD_FOLD_PLACES
                                           : AD_FOLD_NO_FAMILY;
    p->fold.flags |= uint8_t(flags);
}

void choose_sum(plan *p) {
    const int in = p->input, loop = p->loop;
    const bool mean = traits_of(p->row) & AD_F_MEAN;
    const unsigned divide = mean ? AD_FOLD_DIVIDE : 0;
    const bool whole = !is_inexact(in) && (mean ? loop == AD_FLOAT64 && ad__dtypes[in].size <= 4 : !is_inexact(loop));
    if (whole && in == AD_BOOL && mean && p->masked) return;
    if (whole && in == AD_BOOL) return take_family(p, ad_fold_count, divide);
    if (!whole && in != loop && !(is_narrow(in) && loop == AD_FLOAT32) && !(in == AD_FLOAT32 && loop == AD_FLOAT64))
        return;
    if (!whole && !is_inexact(in)) return;
    for (int way = 0; way < AD_FOLD_WAYS; way++) p->ways[way] = ad_fold_sum(in, loop, mean, way);
    p->family = AD_FOLD_SUMS;
    p->fold.flags |= uint8_t(divide);
    p->start = whole ? loop : computed_in(loop);
}

void choose_nansum(plan *p) {
    const bool mean = traits_of(p->row) & AD_F_MEAN;
    for (int way = 0; way < AD_FOLD_WAYS; way++) p->ways[way] = ad_fold_nansum(p->input, mean, way);
    p->start = computed_in(p->loop);
}

void choose_product(plan *p) {
    take_family(p, ad_fold_product, 0);
    p->start = computed_in(p->loop);
}

void choose_extreme(plan *p) {
    const int in = p->input;
    const unsigned traits = traits_of(p->row);
    const bool smallest = traits & AD_F_LEAST, ordered = traits & AD_F_PLACE;
    const uint64_t top = uint64_t(1) << (ad__dtypes[in].size * 8 - 1);
    ad_fold *f = &p->fold;
    if (AD_BIT(in) & AD_M_COMPLEX) return;
    if (in == AD_BOOL && !ordered) {
        if (p->call.op->param[2].kind != AD_SCALAR_NIL) return;
        return take_family(p, ad_fold_count, smallest ? AD_FOLD_INVERT | AD_FOLD_NONE : AD_FOLD_TRUTH);
    }
    f->order = (smallest ? ~uint64_t(0) : 0) ^ (AD_BIT(in) & AD_M_UNSIGNED ? top : 0);
    f->infinity = in == AD_FLOAT16    ? 0x7c00
                  : in == AD_BFLOAT16 ? 0x7f80
                  : in == AD_FLOAT32  ? 0x7f800000
                                      : 0x7ff0000000000000;
    p->start = in;
    take_family(p, ordered ? ad_fold_place : ad_fold_top, traits & AD_F_SKIP ? AD_FOLD_SKIP : 0);
}

/* Choose kernels for whole arrays of the loop's own type, or of one that a kernel takes instead. */
void choose_fast(plan *p) {
    const ad_reduction_row *row = ad__reduction(uint64_t(p->row));
    if (row->kernel == AD_KERNEL_SUM) return choose_sum(p);
    if (p->input != p->loop) return;
    switch (row->kernel) {
    case AD_KERNEL_NANSUM: return choose_nansum(p);
    case AD_KERNEL_PRODUCT: return choose_product(p);
    case AD_KERNEL_ANY: return take_family(p, ad_fold_count, AD_FOLD_TRUTH);
    case AD_KERNEL_ALL: return take_family(p, ad_fold_count, AD_FOLD_INVERT | AD_FOLD_NONE);
    case AD_KERNEL_COUNT: return take_family(p, ad_fold_count, 0);
    case AD_KERNEL_SPREAD: return take_family(p, ad_fold_spread, row->traits & AD_F_SKIP ? AD_FOLD_SKIP : 0);
    case AD_KERNEL_EXTREME: return choose_extreme(p);
    default: return;
    }
}

void choose_any(plan *p) {
    const bool truth = is_truth(p->row);
    const int compute = truth ? AD_UINT8 : computed_in(p->loop);
    const uint32_t bit = AD_BIT(compute);
    p->ways[AD_FOLD_UNIT] = bit & AD_M_WIDEINT   ? ad_fold_any_long(p->row, compute)
                            : bit & AD_M_INT     ? ad_fold_any_small(p->row, compute)
                            : bit & AD_M_COMPLEX ? ad_fold_any_complex(p->row, compute)
                                                 : ad_fold_any_float(p->row, compute);
    p->start = compute;
    p->fold.input = uint8_t(p->input);
    p->fold.through = uint8_t(truth || p->loop == AD_BOOL ? AD_FOLD_BOOL : narrowing(p->loop));
}

/* Choose a kernel that loads whole chunks of elements and of their mask. Extremes need something to begin with, in case
 * nothing is wanted. */
void choose_masked(plan *p) {
    const bool begins = p->call.op->param[2].kind != AD_SCALAR_NIL;
    if (ad__reduction(uint64_t(p->row))->kernel == AD_KERNEL_EXTREME && !begins) return;
    if (!ad_fold_masks(&p->fold, ad::itemsize(p->input))) return;
    choose_fast(p);
    for (int way = 0; way < AD_FOLD_WAYS; way++)
        if (way != AD_FOLD_MASKED) p->ways[way] = {nullptr, 0};
}

void choose_kernel(plan *p) {
    p->start = p->loop;
    if (p->masked && !p->nothing) choose_masked(p);
    else if (!p->nothing) choose_fast(p);
    if (!p->ways[AD_FOLD_UNIT].function && !p->ways[AD_FOLD_MASKED].function) choose_any(p);
}

/* ---- operands ---- */

/* The mask with x's shape; an empty set of elements where a scalar says so. */
void plan_mask(plan *p, const ad_operand *mask) {
    const ad::array &x = p->arrays.x;
    ad::array *to = &p->arrays.mask;
    to->data = nullptr;
    p->masked = false;
    if (!mask) return;
    if (mask->is_scalar) {
        uint8_t value[16];
        ad_scalar_store(&mask->scalar, AD_BOOL, value);
        p->nothing = value[0] == 0;
        return;
    }
    const ad::array own = ad::view_of(*mask);
    *to = x;
    to->dtype = AD_BOOL;
    to->data = own.data;
    for (int i = 0; i < x.ndim; i++) to->stride[i] = ad::broadcast_stride(own, i, x.ndim);
    p->masked = true;
}

int plan_operands(plan *p) {
    const ad_op *op = p->call.op;
    const ad_scalar *axes = &op->param[0];
    ad_fold_arrays *a = &p->arrays;
    p->input = op->operand[1].desc.dtype;
    p->loop = op->loop;
    a->axes = axes->kind == AD_SCALAR_UINT ? axes->as.u : uint64_t(axes->as.i);
    p->natural = ad__code_dtype(ad__rules[ad__reduction(op->row)->rule].out[0], op->loop);
    p->row = simpler(op->row, p->input, p->loop, &p->fold.flags);
    a->x = ad::view_of(op->operand[1]);
    if (is_truth(p->row) && p->input != p->loop) {
        int status = ad_call_input(&p->call, 0, p->loop, &a->x);
        if (status) return status;
        p->input = p->loop;
    }
    plan_mask(p, op->nin > 1 ? &op->operand[2] : nullptr);
    return ad_call_output(&p->call, 0, p->natural, &a->out);
}

/* The kept axes first, then the reduced ones. */
ad::array kept_first(const ad::array &from, uint64_t axes) {
    ad::array r = from;
    int n = 0;
    for (unsigned reduced = 0; reduced < 2; reduced++)
        for (int i = 0; i < from.ndim; i++) {
            if ((axes >> i & 1) != reduced) continue;
            r.shape[n] = from.shape[i];
            r.stride[n++] = from.stride[i];
        }
    return r;
}

/* Plan through copies that have one dimension of each kind: there are more dimensions than kernels take. */
int plan_packed(plan *p) {
    ad_fold_arrays *a = &p->arrays;
    const ad::array x = kept_first(a->x, a->axes), mask = kept_first(a->mask, a->axes);
    int status = ad_call_packed(&p->call, &x, p->input, 0, &a->x), kept = a->out.ndim;
    if (!status && a->mask.data) status = ad_call_packed(&p->call, &mask, AD_BOOL, 0, &a->mask);
    if (status) return status;
    a->axes = ~uint64_t(0) << kept;
    ad::pack(&a->out);
    a->out.data =
        static_cast<char *>(ad_call_workspace(&p->call, uint64_t(ad::count(a->out) * ad::itemsize(p->natural))));
    return !a->out.data ? AD_E_MEMORY : 0;
}

int plan_dimensions(plan *p) {
    const bool ordered = is_ordered(p->row);
    if (!ad_fold_dimensions(&p->fold, &p->arrays, ordered)) {
        int status = plan_packed(p);
        if (status) return status;
        if (!ad_fold_dimensions(&p->fold, &p->arrays, ordered))
            return ad__fault(p->call.fault, AD_E_INTERNAL, "a packed array has too many dimensions");
    }
    if (p->nothing) p->fold.reduced = 0;
    p->nothing = p->fold.reduced == 0;
    return 0;
}

void plan_parameters(plan *p) {
    const ad_op *op = p->call.op;
    const ad_scalar *ddof = &op->param[1], *initial = &op->param[2];
    ad_fold *f = &p->fold;
    f->ddof = ad_scalar_number(ddof);
    f->divisor = double(f->reduced);
    f->narrow = uint8_t(narrowing(p->natural));
    if (initial->kind == AD_SCALAR_NIL) return;
    f->flags |= AD_FOLD_INITIAL;
    ad_scalar_store(initial, p->loop, f->initial);
    if (is_narrow(p->loop) && p->start == AD_FLOAT32) {
        float wide = 0;
        if (p->loop == AD_FLOAT16) {
            ad::half h;
            memcpy(&h, f->initial, sizeof h);
            wide = float(h);
        } else {
            ad::bfloat16 h;
            memcpy(&h, f->initial, sizeof h);
            wide = float(h);
        }
        memcpy(f->initial, &wide, sizeof wide);
    }
}

/* ---- the launch ---- */

/* Plan how the elements are read, and the blocks that share the work: groups of outputs, times f->blocks. */
int plan_way(plan *p, int64_t *groups) {
    ad_fold *f = &p->fold;
    unsigned has = 0;
    for (unsigned i = 0; i < AD_FOLD_WAYS; i++) has |= p->ways[i].function ? 1u << i : 0;
    const int way = ad_fold_way(f, has, ad::itemsize(p->input));
    ad_fold_divide(f, way, p->call.stream->device->multiprocessors);
    *groups = (f->outputs + (int64_t(1) << f->log_x) - 1) >> f->log_x;
    return way;
}

int launch(plan *p) {
    int64_t groups;
    ad_fold *f = &p->fold;
    const int way = plan_way(p, &groups), side = way == AD_FOLD_SIDE ? int(8 / ad::itemsize(p->input)) : 1;
    const ad_fold_kernel *kernel = &p->ways[way];
    const int listed = ad_cuda_list_fold(&p->call, f, p->family, way, p->input, groups);
    if (listed > 0 && p->call.op->operand[0].desc.form == AD_VIEW) p->call.run->wrote = true;
    if (listed != 0) return listed > 0 ? 0 : listed;
    int status = ad_fold_scratch(&p->call, f, groups, kernel->state * side);
    if (status) return status;
    if (groups * f->blocks > INT32_MAX)
        return ad__fault(p->call.fault, AD_E_UNSUPPORTED, "%s: too many results", ad__op_name(p->call.op));
    if (p->call.op->operand[0].desc.form == AD_VIEW) p->call.run->wrote = true;
    void *arguments[] = {f};
    return ad_cuda_status(cudaLaunchKernel(kernel->function, dim3(unsigned(groups * f->blocks)), dim3(AD_FOLD_THREADS),
                                           arguments, f->shared, p->call.stream->cuda),
                          "a reduction", p->call.fault);
}

/* Tell whether the operation takes its input as it is, whole, and gives its output as it comes. */
bool is_direct(const ad_op *op) {
    const int input = op->operand[1].desc.dtype, out = op->operand[0].desc.dtype;
    if (op->nin != 1 || op->operand[1].is_scalar) return false;
    if (is_truth(op->row) && input != op->loop) return false;
    return out == ad__code_dtype(ad__rules[ad__reduction(op->row)->rule].out[0], op->loop);
}

} // namespace

int ad_cuda_reduce(ad_stream *stream, const ad_op *op, ad_run *run, ad_fault *fault) {
    plan p = {};
    p.call = {stream, op, run, fault};
    int status = plan_operands(&p);
    if (!status) status = plan_dimensions(&p);
    if (status || p.fold.outputs == 0) return status;
    choose_kernel(&p);
    plan_parameters(&p);
    status = launch(&p);
    return status ? status : ad_call_finish(&p.call, 0, &p.arrays.out);
}

int ad_fold_scratch(ad_call *c, ad_fold *f, int64_t groups, int state) {
    if (f->blocks == 1) return 0;
    const int64_t blocks = groups * f->blocks, states = ((blocks << f->log_x) * state + 15) / 16 * 16;
    char *memory = static_cast<char *>(ad_call_workspace(c, uint64_t(states + blocks * 8)));
    if (!memory) return AD_E_MEMORY;
    f->partial = memory;
    f->tags = reinterpret_cast<uint64_t *>(memory + states);
    f->tag = ad_fold_tag();
    return 0;
}

bool ad_fold_lay(ad_call *c, ad_fold_layout *to) {
    plan p = {};
    if (!is_direct(c->op)) return false;
    p.call = *c;
    if (plan_operands(&p)) return false;
    p.arrays.x.data = nullptr;
    if (!ad_fold_dimensions(&p.fold, &p.arrays, is_ordered(p.row)) || p.fold.outputs == 0 || p.fold.reduced == 0)
        return false;
    choose_kernel(&p);
    if (p.family == AD_FOLD_NO_FAMILY) return false;
    plan_parameters(&p);
    to->way = plan_way(&p, &to->groups);
    to->family = p.family;
    to->input = p.input;
    to->loop = p.loop;
    to->state = p.ways[to->way].state * (to->way == AD_FOLD_SIDE ? int(8 / ad::itemsize(p.input)) : 1);
    to->fold = p.fold;
    return to->groups * p.fold.blocks <= INT32_MAX;
}
