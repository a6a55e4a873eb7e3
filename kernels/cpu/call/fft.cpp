/* Fourier transforms by FFTW, one axis after the other: the first from the input to the output, the others in place.
 * Whatever lies beside the axis are lines, which are divided among the threads; FFTW takes some of them at a time, so
 * that lines along which memory is not contiguous share its cache lines. */
#include <algorithm>

#include "kernels/call.h"
#include "kernels/cpu/call/fft_plans.h"
#include "kernels/cpu/backend/parallel.h"

namespace {

using namespace ad;

constexpr int64_t PIECE = 4096;  /* points that FFTW should have at a time */
constexpr int64_t FEW_LINES = 8; /* lines side by side, at least where they share cache lines */
constexpr int64_t MOST_LINES = 256;
constexpr int64_t GRAIN = 32768; /* points that are worth a thread */

int64_t magnitude(int64_t v) { return v < 0 ? -v : v; }

int real_of(int dtype) { return dtype == AD_COMPLEX64 ? AD_FLOAT32 : dtype == AD_COMPLEX128 ? AD_FLOAT64 : dtype; }

/* The lines along one axis of `from`, transformed to those of `to`. */
struct pass {
    int kind, axis;
    array from, to;
    double factor;
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

/* How many lines FFTW takes at a time: a multiple of four, so that groups begin where its fastest code can read. */
int64_t group_of(const pass *p, int64_t points) {
    const bool contiguous = p->plan.from_step == 1 && p->plan.to_step == 1;
    const int64_t many = std::max(PIECE / points, contiguous ? 1 : FEW_LINES);
    const int64_t group = std::min(many > 4 ? many / 4 * 4 : many, MOST_LINES);
    return std::min(group, p->length);
}

void prepare(pass *p) {
    const int64_t from_size = itemsize(p->from.dtype), to_size = itemsize(p->to.dtype);
    const int64_t points = std::max(p->from.shape[p->axis], p->to.shape[p->axis]);
    p->lines = walk_of(p->from, p->to, p->axis);
    closest_last(&p->lines);
    p->plan = {};
    p->plan.kind = p->kind;
    p->plan.wide = real_of(p->from.dtype) == AD_FLOAT64;
    p->plan.n = points;
    p->plan.from_step = p->from.stride[p->axis] / from_size;
    p->plan.to_step = p->to.stride[p->axis] / to_size;
    p->plan.from_next = p->lines.inner(0) / from_size;
    p->plan.to_next = p->lines.inner(1) / to_size;
    p->plan.in_place = p->from.data == p->to.data;
    p->length = p->lines.length();
    p->group = group_of(p, points);
    p->groups = (p->length + p->group - 1) / p->group;
}

/* Whether all groups begin at what FFTW calls aligned. */
bool all_aligned(const pass *p) {
    bool yes = ad_fft_aligned(p->from.data, 0) && ad_fft_aligned(p->to.data, 0) &&
               ad_fft_aligned(nullptr, p->group * p->lines.inner(0)) &&
               ad_fft_aligned(nullptr, p->group * p->lines.inner(1));
    for (int i = 0; i + 1 < p->lines.ndim; i++)
        yes = yes && ad_fft_aligned(nullptr, p->lines.stride[i][0]) && ad_fft_aligned(nullptr, p->lines.stride[i][1]);
    return yes;
}

/* Elements n by lines from `at` on, times the factor; complex numbers as two real ones each. */
struct scaling {
    int dtype;
    double factor;
    int64_t n, step, lines, next;
};

template <class R> void scale_as(const scaling &s, char *at) {
    const int parts = real_of(s.dtype) == s.dtype ? 1 : 2;
    const R factor = R(s.factor);
    const bool across = s.lines > 1 && (s.n == 1 || magnitude(s.next) < magnitude(s.step));
    const int64_t outer = across ? s.n : s.lines, inner = across ? s.lines : s.n;
    const int64_t outer_step = across ? s.step : s.next, inner_step = across ? s.next : s.step;
    for (int64_t i = 0; i < outer; i++)
        for (int64_t j = 0; j < inner; j++) {
            R *x = reinterpret_cast<R *>(at + i * outer_step + j * inner_step);
            for (int k = 0; k < parts; k++) x[k] *= factor;
        }
}

void scale_lines(const scaling &s, char *at) {
    if (s.factor == 1) return;
    if (real_of(s.dtype) == AD_FLOAT64) scale_as<double>(s, at);
    else scale_as<float>(s, at);
}

void transform_lines(const pass *p, const ad_fft_kept *plan, char *from, char *to, int64_t lines) {
    ad_fft_run(plan, from, to);
    scale_lines({p->to.dtype, p->factor, p->to.shape[p->axis], p->to.stride[p->axis], lines, p->lines.inner(1)}, to);
}

void transform_groups(const pass *p, const ad_fft_kept *full, const ad_fft_kept *rest, int64_t begin, int64_t end) {
    for (int64_t u = begin; u < end; u++) {
        const int64_t first = u / p->groups * p->length + u % p->groups * p->group;
        p->lines.runs(first, first + 1, [&](const int64_t(&at)[2], int64_t, int64_t) {
            const int64_t left = p->length - u % p->groups * p->group;
            transform_lines(p, left < p->group ? rest : full, p->from.data + at[0], p->to.data + at[1],
                            std::min(left, p->group));
            return false;
        });
    }
}

/* A plan of FFTW, held while this lives. */
struct held_plan {
    ad_fft_kept *kept = nullptr;
    int acquire(const ad_fft_plan *p, ad_fault *fault) { return ad_fft_acquire(p, &kept, fault); }
    held_plan() = default;
    held_plan(const held_plan &) = delete;
    ~held_plan() {
        if (kept != nullptr) ad_fft_release(kept);
    }
};

int transform(ad_call *c, pass *p) {
    held_plan full, rest;
    prepare(p);
    p->plan.aligned = all_aligned(p);
    if ((p->plan.lines = p->group) == 1) p->plan.from_next = p->plan.to_next = 0;
    int rc = full.acquire(&p->plan, c->fault);
    if (rc < 0) return rc;
    if ((p->plan.lines = p->length % p->group) != 0) rc = rest.acquire(&p->plan, c->fault);
    if (rc < 0) return rc;
    const int64_t grain = std::max<int64_t>(1, GRAIN / (p->plan.n * p->group));
    ad_cpu_parallel(p->lines.count / p->length * p->groups, grain,
                    [&](int64_t begin, int64_t end) { transform_groups(p, full.kept, rest.kept, begin, end); });
    return 0;
}

/* ---- several axes ---- */

/* to = from * factor. */
int scale(ad_call *c, const array &to, const array &from, double factor) {
    const int rc = to.data == from.data ? 0 : ad_call_copy(c, &to, &from);
    if (rc < 0 || factor == 1) return rc;
    const walk<1> w = walk_of(to);
    ad_cpu_parallel(w.count, GRAIN, [&](int64_t begin, int64_t end) {
        w.runs(begin, end, [&](const int64_t(&at)[1], int64_t n, int64_t) {
            scale_lines({to.dtype, factor, 1, 0, n, w.inner(0)}, to.data + at[0]);
            return true;
        });
    });
    return 0;
}

/* Complex transforms along the axes of a mask; from may be to. */
int transform_all(ad_call *c, int kind, const array &from, const array &to, int64_t mask, double factor) {
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
        const int rc = transform(c, &p);
        if (rc < 0) return rc;
        source = &to;
    }
    return 0;
}

int one_pass(ad_call *c, int kind, const array &from, const array &to, int axis, double factor) {
    pass p = {};
    p.kind = kind;
    p.axis = axis;
    p.from = from;
    p.to = to;
    p.factor = factor;
    return transform(c, &p);
}

int from_real(ad_call *c, const array &x, const array &out) {
    const int axis = int(c->op->param[0].as.i);
    const int64_t others = c->op->param[1].as.i;
    const double factor = ad_scalar_number(&c->op->param[2]);
    if (others == 0 && x.shape[axis] > 1) return one_pass(c, AD_FFT_FROM_REAL, x, out, axis, factor);
    const int rc = x.shape[axis] == 1 ? ad_call_copy(c, &out, &x) : one_pass(c, AD_FFT_FROM_REAL, x, out, axis, 1);
    return rc < 0 ? rc : transform_all(c, AD_FFT_FORWARD, out, out, others, factor);
}

int to_real(ad_call *c, const array &x, const array &out) {
    const int axis = int(c->op->param[0].as.i);
    const int64_t others = c->op->param[1].as.i;
    array between = x;
    int rc;
    if (others != 0) {
        const int64_t size = pack(&between);
        between.data = static_cast<char *>(ad_call_workspace(c, uint64_t(size)));
        if (between.data == nullptr) return AD_E_MEMORY;
        if ((rc = transform_all(c, AD_FFT_INVERSE, x, between, others, 1)) < 0) return rc;
    }
    if (c->op->param[2].as.i > 1)
        return one_pass(c, AD_FFT_TO_REAL, between, out, axis, ad_scalar_number(&c->op->param[3]));
    between.dtype = real_of(between.dtype); /* the real parts */
    return scale(c, out, between, ad_scalar_number(&c->op->param[3]));
}

/* FFTW counts steps in elements. */
bool whole_steps(const array &x) {
    const int64_t size = itemsize(x.dtype), real = itemsize(real_of(x.dtype));
    bool yes = int64_t(reinterpret_cast<uintptr_t>(x.data)) % real == 0;
    for (int i = 0; i < x.ndim; i++) yes = yes && (x.shape[i] == 1 || x.stride[i] % size == 0);
    return yes;
}

int run(ad_call *c, int in_dtype, int out_dtype, int (*work)(ad_call *c, const array &x, const array &out)) {
    array x, out;
    int rc;
    if ((rc = ad_call_input(c, 0, in_dtype, &x)) < 0 || (rc = ad_call_output(c, 0, out_dtype, &out)) < 0) return rc;
    if (count(out) == 0) return 0;
    if (!whole_steps(x) && (rc = ad_call_packed(c, &x, x.dtype, 0, &x)) < 0) return rc;
    if (!whole_steps(out)) {
        const int64_t size = pack(&out);
        if ((out.data = static_cast<char *>(ad_call_workspace(c, uint64_t(size)))) == nullptr) return AD_E_MEMORY;
    }
    c->run->wrote = true;
    if ((rc = work(c, x, out)) < 0) return rc;
    return ad_call_finish(c, 0, &out);
}

} // namespace

int ad_call_fft(ad_call *c) {
    return run(c, c->op->loop, c->op->loop, [](ad_call *call, const array &x, const array &out) {
        const int kind = call->op->param[1].as.i < 0 ? AD_FFT_FORWARD : AD_FFT_INVERSE;
        return transform_all(call, kind, x, out, call->op->param[0].as.i, ad_scalar_number(&call->op->param[2]));
    });
}

int ad_call_rfft(ad_call *c) { return run(c, real_of(c->op->loop), c->op->loop, from_real); }

int ad_call_irfft(ad_call *c) { return run(c, c->op->loop, real_of(c->op->loop), to_real); }
