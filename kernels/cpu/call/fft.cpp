/* Fourier transforms by pocketfft, one axis after the other: the first from the input to the output, the others in
 * place. The lines along the axis are divided among the threads in groups. Between groups the operation can be given
 * up. The lines of a group are transformed side by side (kernels/cpu/isa/fft.cpp). */
#include <algorithm>

#include "kernels/call.h"
#include "kernels/cpu/call/fft_mirror.h"
#include "kernels/cpu/call/fft_plans.h"
#include "kernels/cpu/backend/device.h"
#include "kernels/cpu/backend/parallel.h"

namespace {

using namespace ad;

constexpr int64_t PIECE = 4096; /* points of a group, at least */
constexpr int64_t FEW_LINES =
    16; /* lines of a group, at least: of the narrowest numbers the widest vector has so many */
constexpr int64_t MOST_LINES = 256;
constexpr int64_t GRAIN = 32768; /* points that are worth a thread */

int64_t magnitude(int64_t v) { return v < 0 ? -v : v; }

int real_of(int dtype) { return dtype == AD_COMPLEX64 ? AD_FLOAT32 : dtype == AD_COMPLEX128 ? AD_FLOAT64 : dtype; }

/* The lines along one axis of `from`, transformed to those of `to`. */
struct pass {
    ad_fft_kind kind;
    int axis;
    array from, to;
    double factor;
    int type; /* of a transform of cosines or sines, and what it does besides (kernels/cpu/isa/fft.h) */
    bool sine, ortho;
    walk<2> lines; /* the last axis of it is cut into groups */
    int64_t length, group, groups;
    ad_fft_plan plan;
};

/* The axis of the batch along which lines are closest comes last. */
void closest_last(walk<2> *w) {
    int best = 0;
    for (int i = 1; i < w->ndim; i++)
        if (magnitude(w->stride[i][0]) + magnitude(w->stride[i][1]) <=
            magnitude(w->stride[best][0]) + magnitude(w->stride[best][1]))
            best = i;
    for (int i = best; i + 1 < w->ndim; i++) {
        std::swap(w->shape[i], w->shape[i + 1]);
        std::swap(w->stride[i], w->stride[i + 1]);
    }
}

/* Choose how many lines are transformed side by side: few enough that each thread has some. */
int64_t group_of(int64_t length, int64_t all, int64_t points) {
    const int64_t many = std::max(PIECE / points, FEW_LINES) / FEW_LINES * FEW_LINES;
    const int64_t each = (all + ad_cpu_parallel_threads() - 1) / ad_cpu_parallel_threads();
    return std::max<int64_t>(1, std::min({many, MOST_LINES, length, points * each < GRAIN ? length : each}));
}

void prepare(pass *p) {
    const int64_t points = std::max(p->from.shape[p->axis], p->to.shape[p->axis]);
    p->lines = walk_of(p->from, p->to, p->axis);
    closest_last(&p->lines);
    p->plan.form = ad_fft_form_of(p->kind);
    p->plan.wide = real_of(p->from.dtype) == AD_FLOAT64;
    p->plan.n = points;
    p->length = p->lines.length();
    p->group = group_of(p->length, p->lines.count, points);
    p->groups = (p->length + p->group - 1) / p->group;
}

void transform_groups(const pass *p, const ad_fft_kept *plan, int64_t begin, int64_t end) {
    for (int64_t u = begin; u < end; u++) {
        const int64_t done = u % p->groups * p->group, first = u / p->groups * p->length + done;
        p->lines.runs(first, first + 1, [&](const int64_t(&at)[2], int64_t, int64_t) {
            const ad_fft_lines lines = {p->kind,
                                        p->from.data + at[0],
                                        p->to.data + at[1],
                                        p->from.stride[p->axis],
                                        p->to.stride[p->axis],
                                        std::min(p->length - done, p->group),
                                        p->lines.inner(0),
                                        p->lines.inner(1),
                                        p->factor,
                                        p->type,
                                        p->sine,
                                        p->ortho};
            ad_fft_run(plan, &lines);
            return false;
        });
    }
}

/* A plan, held while this lives. */
struct held_plan {
    ad_fft_kept *kept = nullptr;
    int acquire(const ad_call *c, const ad_fft_plan *p) {
        return ad_fft_acquire(c->stream->device, p, &kept, c->fault);
    }
    held_plan() = default;
    held_plan(const held_plan &) = delete;
    ~held_plan() {
        if (kept) ad_fft_release(kept);
    }
};

int transform(ad_call *c, pass *p) {
    held_plan plan;
    prepare(p);
    const int status = plan.acquire(c, &p->plan);
    if (status) return status;
    const int64_t grain = std::max<int64_t>(1, GRAIN / (p->plan.n * p->group));
    ad_cpu_parallel(p->lines.count / p->length * p->groups, grain,
                    [&](int64_t begin, int64_t end) { transform_groups(p, plan.kept, begin, end); });
    return 0;
}

/* ---- several axes ---- */

template <class R> void scale_row(char *at, int64_t step, int64_t n, int parts, R factor) {
    for (int64_t i = 0; i < n; i++)
        for (int k = 0; k < parts; k++) reinterpret_cast<R *>(at + i * step)[k] *= factor;
}

/* Compute to = from * factor. */
int scale(ad_call *c, const array &to, const array &from, double factor) {
    const int status = to.data == from.data ? 0 : ad_call_copy(c, &to, &from);
    if (status || factor == 1) return status;
    const walk<1> w = walk_of(to);
    ad_cpu_parallel(w.count, GRAIN, [&](int64_t begin, int64_t end) {
        w.runs(begin, end, [&](const int64_t(&at)[1], int64_t n, int64_t) {
            const int parts = real_of(to.dtype) == to.dtype ? 1 : 2;
            if (real_of(to.dtype) == AD_FLOAT64) scale_row<double>(to.data + at[0], w.inner(0), n, parts, factor);
            else scale_row<float>(to.data + at[0], w.inner(0), n, parts, float(factor));
            return true;
        });
    });
    return 0;
}

/* Complex transforms along the axes of a mask; from may be to. */
int transform_all(ad_call *c, ad_fft_kind kind, const array &from, const array &to, int64_t mask, double factor) {
    const array *source = &from;
    int last = -1;
    for (int i = 0; i < to.ndim; i++)
        if (to.shape[i] == 1) mask &= ~(int64_t(1) << i);
        else if (mask >> i & 1) last = last < 0 ? i : last;
    if (last < 0) return scale(c, to, from, factor);
    for (int i = to.ndim - 1; i >= 0; i--) {
        if (!(mask >> i & 1)) continue;
        pass p = {};
        p.kind = kind;
        p.axis = i;
        p.from = *source;
        p.to = to;
        p.factor = i == last ? factor : 1;
        const int status = transform(c, &p);
        if (status) return status;
        source = &to;
    }
    return 0;
}

int one_pass(ad_call *c, ad_fft_kind kind, const array &from, const array &to, int axis, double factor) {
    pass p = {};
    p.kind = kind;
    p.axis = axis;
    p.from = from;
    p.to = to;
    p.factor = factor;
    return transform(c, &p);
}

/* The axis of a mask that lies furthest behind and has more than one element; -1: none. */
int last_axis(const array &x, int64_t mask) {
    for (int i = x.ndim - 1; i >= 0; i--)
        if ((mask >> i & 1) && x.shape[i] > 1) return i;
    return -1;
}

/* All frequencies of real numbers. Half of them are computed, and the others are their conjugates. */
int all_from_real(ad_call *c, const array &x, const array &out) {
    const int64_t mask = c->op->param[0].as.i;
    const bool forward = c->op->param[1].as.i < 0;
    const double factor = ad_scalar_number(&c->op->param[2]);
    const int axis = last_axis(x, mask);
    if (axis < 0) return scale(c, out, x, factor);
    const int64_t others = mask & ~(int64_t(1) << axis);
    const bool alone = last_axis(x, others) < 0;
    array half = out;
    half.shape[axis] = out.shape[axis] / 2 + 1;
    int status = one_pass(c, forward ? AD_FFT_FROM_REAL : AD_FFT_FROM_REAL_INVERSE, x, half, axis, alone ? factor : 1);
    if (!status && !alone)
        status = transform_all(c, forward ? AD_FFT_FORWARD : AD_FFT_INVERSE, half, half, others, factor);
    if (!status) ad_fft_mirror(out, axis, others);
    return status;
}

int all_from_complex(ad_call *c, const array &x, const array &out) {
    const ad_fft_kind kind = c->op->param[1].as.i < 0 ? AD_FFT_FORWARD : AD_FFT_INVERSE;
    return transform_all(c, kind, x, out, c->op->param[0].as.i, ad_scalar_number(&c->op->param[2]));
}

int from_real(ad_call *c, const array &x, const array &out) {
    const int axis = int(c->op->param[0].as.i);
    const int64_t others = c->op->param[1].as.i;
    const double factor = ad_scalar_number(&c->op->param[2]);
    if (others == 0 && x.shape[axis] > 1) return one_pass(c, AD_FFT_FROM_REAL, x, out, axis, factor);
    const int status = x.shape[axis] == 1 ? ad_call_copy(c, &out, &x) : one_pass(c, AD_FFT_FROM_REAL, x, out, axis, 1);
    return status ? status : transform_all(c, AD_FFT_FORWARD, out, out, others, factor);
}

int to_real(ad_call *c, const array &x, const array &out) {
    const int axis = int(c->op->param[0].as.i);
    const int64_t others = c->op->param[1].as.i;
    array between = x;
    int status;
    if (others != 0) {
        const int64_t size = pack(&between);
        between.data = static_cast<char *>(ad_call_workspace(c, uint64_t(size)));
        if (!between.data) return AD_E_MEMORY;
        if ((status = transform_all(c, AD_FFT_INVERSE, x, between, others, 1))) return status;
    }
    if (c->op->param[2].as.i > 1)
        return one_pass(c, AD_FFT_TO_REAL, between, out, axis, ad_scalar_number(&c->op->param[3]));
    between.dtype = real_of(between.dtype); /* the real parts */
    return scale(c, out, between, ad_scalar_number(&c->op->param[3]));
}

/* Transform to cosines or sines. */
int to_cosines(ad_call *c, const array &x, const array &out) {
    const ad_scalar *param = c->op->param;
    pass p = {};
    p.axis = int(param[0].as.i);
    p.type = int(param[1].as.i);
    p.sine = param[2].as.b;
    p.ortho = param[3].as.b;
    p.kind = p.type == 4   ? AD_FFT_TRIGONOMETRIC_4
             : p.type != 1 ? AD_FFT_TRIGONOMETRIC_23
             : p.sine      ? AD_FFT_SINE_1
                           : AD_FFT_COSINE_1;
    p.from = x;
    p.to = out;
    p.factor = ad_scalar_number(&param[4]);
    return transform(c, &p);
}

/* Elements lie where the processor can read them, and their parts as well. */
bool whole_steps(const array &x) {
    const int64_t size = itemsize(x.dtype), real = itemsize(real_of(x.dtype));
    bool yes = int64_t(reinterpret_cast<uintptr_t>(x.data)) % real == 0;
    for (int i = 0; i < x.ndim; i++) yes = yes && (x.shape[i] == 1 || x.stride[i] % size == 0);
    return yes;
}

int run(ad_call *c, int in_dtype, int out_dtype, int (*work)(ad_call *c, const array &x, const array &out)) {
    array x, out;
    int status;
    if ((status = ad_call_input(c, 0, in_dtype, &x)) || (status = ad_call_output(c, 0, out_dtype, &out))) return status;
    if (count(out) == 0) return 0;
    if (!whole_steps(x) && (status = ad_call_packed(c, &x, x.dtype, 0, &x))) return status;
    if (!whole_steps(out)) {
        const int64_t size = pack(&out);
        if (!(out.data = static_cast<char *>(ad_call_workspace(c, uint64_t(size))))) return AD_E_MEMORY;
    }
    c->run->wrote = true;
    if ((status = work(c, x, out))) return status;
    return ad_call_finish(c, 0, &out);
}

} // namespace

int ad_call_fft(ad_call *c) {
    const ad_operand *x = &c->op->operand[c->op->nout];
    if (x->is_scalar || real_of(x->desc.dtype) != x->desc.dtype)
        return run(c, c->op->loop, c->op->loop, all_from_complex);
    return run(c, real_of(c->op->loop), c->op->loop, all_from_real);
}

int ad_call_rfft(ad_call *c) { return run(c, real_of(c->op->loop), c->op->loop, from_real); }

int ad_call_irfft(ad_call *c) { return run(c, c->op->loop, real_of(c->op->loop), to_real); }

int ad_call_dct(ad_call *c) { return run(c, c->op->loop, c->op->loop, to_cosines); }
