/* Fourier transforms: what cuFFT can do with the arrays as they lie, and which copies make the rest so.
 *
 * A plan takes up to three axes, each of whose strides is a multiple of the next one's, and one batch axis more.
 * Several batches that do not lie behind each other are as many runs of it, unless they would be many and small. Where
 * that does not fit, the input or the output or both go through a copy in which the axes stand last. */
#include <stdint.h>

#include "kernels/cuda/backend/device.h"
#include "kernels/cuda/call/fft/plans.h"
#include "protocol/rows_request.h"
#include "protocol/rows_ufunc.h"

namespace {

using namespace ad;

constexpr int64_t FEW_RUNS = 8;          /* of one plan, when each is small */
constexpr int64_t FEW_BESIDE = 8;        /* elements that are worth reading together */
constexpr int64_t LONG_APART = 32 << 10; /* bytes of an axis whose points lie apart that one kernel transforms */
constexpr int64_t LARGE_RUN = 4 << 20;   /* bytes beyond which a run costs more than starting it */

/* Axes to transform, outermost first. Of a real transform the last one is the one that is halved. */
struct axis_list {
    int count, axis[AD_MAX_NDIM];

    bool has(int i) const {
        for (int k = 0; k < count; k++)
            if (axis[k] == i) return true;
        return false;
    }
};

struct transform {
    int kind, direction;
    axis_list axes; /* at most AD_CUDA_FFT_RANK */
};

/* A plan, and the batches for which it is run. */
struct fitted {
    ad_cuda_fft_plan plan;
    walk<2> batch; /* from, to; the last axis is the plan's own where `inside` says so */
    bool inside;
};

int64_t magnitude(int64_t v) { return v < 0 ? -v : v; }

/* ---- does it fit? ---- */

bool aligned(const array &x, int64_t offset) {
    const int64_t pair = x.dtype == AD_FLOAT32 || x.dtype == AD_COMPLEX64 ? 8 : 16;
    return (int64_t(reinterpret_cast<uintptr_t>(x.data)) + offset) % pair == 0;
}

bool fit_side(const array &x, const axis_list &axes, ad_cuda_fft_side *side) {
    const int64_t size = itemsize(x.dtype), inner = x.stride[axes.axis[axes.count - 1]];
    if (!aligned(x, 0) || inner <= 0 || inner % size != 0) return false;
    side->stride = inner / size;
    side->embed[0] = x.shape[axes.axis[0]];
    for (int i = axes.count - 1; i > 0; i--) {
        const int64_t step = x.stride[axes.axis[i]], outer = x.stride[axes.axis[i - 1]];
        if (outer <= 0 || outer % step != 0 || outer / step < x.shape[axes.axis[i]]) return false;
        side->embed[i] = outer / step;
    }
    return true;
}

/* Choose the axis of the batch for a plan, among those that both sides can step along. It is one whose elements lie
 * beside each other where the points do not, else the longest. -1: none. */
int best_batch(const walk<2> &w, const int64_t (&size)[2], bool apart) {
    int best = -1;
    bool best_beside = false;
    for (int i = 0; i < w.ndim; i++) {
        const int64_t(&s)[2] = w.stride[i];
        if (s[0] <= 0 || s[1] <= 0 || s[0] % size[0] != 0 || s[1] % size[1] != 0) continue;
        const bool beside = apart && w.shape[i] >= FEW_BESIDE && (s[0] == size[0] || s[1] == size[1]);
        if (best >= 0 && (beside != best_beside ? best_beside : w.shape[i] <= w.shape[best])) continue;
        best = i;
        best_beside = beside;
    }
    return best;
}

/* Put it last: false if there is none. */
bool choose_batch(walk<2> *w, const int64_t (&size)[2], bool apart) {
    const int best = best_batch(*w, size, apart), last = w->ndim - 1;
    if (best < 0) return false;
    const int64_t n = w->shape[best], s0 = w->stride[best][0], s1 = w->stride[best][1];
    for (int i = best; i < last; i++) {
        w->shape[i] = w->shape[i + 1];
        w->stride[i][0] = w->stride[i + 1][0];
        w->stride[i][1] = w->stride[i + 1][1];
    }
    w->shape[last] = n;
    w->stride[last][0] = s0;
    w->stride[last][1] = s1;
    return true;
}

/* Points that lie apart are read together with those beside them; what cuFFT does well for one axis of complex numbers
 * and no other. Axes that one kernel does not transform take longer so than with a copy before and after: on an H200
 * 1.4 ms instead of 0.9 for 2^13 x 2^13 complex64, and 6.2 instead of 1.3 for 2^20 x 2^6. */
bool coalesced(const ad_cuda_fft_plan &p, const ad_cuda_fft_side &side) {
    if (side.stride == 1) return true;
    if (p.n[0] * (p.wide ? 16 : 8) > LONG_APART) return false;
    return p.kind == AD_CUDA_FFT_COMPLEX && p.rank == 1 && side.dist == 1 && p.batch >= FEW_BESIDE;
}

bool cheap(const fitted &f, const array &from, const array &to) {
    const int64_t runs = f.inside ? f.batch.count / f.batch.length() : f.batch.count;
    const int64_t bytes = count(from) * itemsize(from.dtype);
    const int outer = f.batch.ndim - (f.inside ? 1 : 0);
    for (int i = 0; i < outer; i++)
        if (!aligned(from, f.batch.stride[i][0]) || !aligned(to, f.batch.stride[i][1])) return false;
    return runs <= FEW_RUNS || bytes / runs >= LARGE_RUN;
}

bool fit(const transform &t, const array &from, const array &to, fitted *f) {
    *f = fitted();
    ad_cuda_fft_plan &p = f->plan;
    const array &points = t.kind == AD_CUDA_FFT_TO_REAL ? to : from;
    p.kind = t.kind;
    p.wide = from.dtype == AD_FLOAT64 || from.dtype == AD_COMPLEX128;
    p.rank = t.axes.count;
    for (int i = 0; i < t.axes.count; i++) p.n[i] = points.shape[t.axes.axis[i]];
    if (!fit_side(from, t.axes, &p.from) || !fit_side(to, t.axes, &p.to)) return false;
    for (int i = 0; i < from.ndim; i++)
        if (!t.axes.has(i)) f->batch.add(from.shape[i], {from.stride[i], to.stride[i]});
    const int64_t size[2] = {itemsize(from.dtype), itemsize(to.dtype)};
    f->inside = choose_batch(&f->batch, size, p.from.stride > 1 || p.to.stride > 1);
    p.batch = f->inside ? f->batch.length() : 1;
    p.from.dist = f->inside ? f->batch.inner(0) / size[0] : 1;
    p.to.dist = f->inside ? f->batch.inner(1) / size[1] : 1;
    if (!coalesced(p, p.from) || !coalesced(p, p.to)) return false; /* copies cost less */
    return cheap(*f, from, to);
}

int run(ad_call *c, const transform &t, const fitted &f, const array &from, const array &to) {
    int handle = 0, status = ad_cuda_fft_prepare(c, &f.plan, &handle);
    if (status) return status;
    c->run->wrote = true;
    f.batch.runs(0, f.batch.count, [&](const int64_t(&at)[2], int64_t n, int64_t) {
        for (int64_t i = 0; i < (f.inside ? 1 : n) && !status; i++)
            status = ad_cuda_fft_run(c, handle, from.data + at[0] + i * f.batch.inner(0),
                                     to.data + at[1] + i * f.batch.inner(1), t.direction);
        return !status;
    });
    return status;
}

/* ---- copies ---- */

/* Strides as if the axes of the transform stood last; no data yet. */
array gathered(const array &x, const axis_list &axes) {
    array r = x;
    int64_t step = itemsize(x.dtype);
    auto take = [&](int i) {
        r.stride[i] = step;
        step *= r.shape[i];
    };
    r.data = nullptr;
    for (int k = axes.count - 1; k >= 0; k--) take(axes.axis[k]);
    for (int i = x.ndim - 1; i >= 0; i--)
        if (!axes.has(i)) take(i);
    return r;
}

int allocate(ad_call *c, array *x) {
    x->data = static_cast<char *>(ad_call_workspace(c, uint64_t(count(*x)) * uint64_t(itemsize(x->dtype))));
    return !x->data ? AD_E_MEMORY : 0;
}

int real_of(int dtype) { return dtype == AD_COMPLEX64 ? AD_FLOAT32 : dtype == AD_COMPLEX128 ? AD_FLOAT64 : dtype; }

ad_operand operand_of(const array &x) {
    ad_operand o = {};
    o.data = x.data;
    o.desc.dtype = uint8_t(x.dtype);
    o.desc.ndim = uint8_t(x.ndim);
    o.desc.form = AD_VIEW;
    o.desc.shape = x.shape;
    o.desc.strides = x.stride;
    return o;
}

/* Compute to = from * factor, both of one type. Complex numbers are taken as pairs of real ones, so that no infinity
 * becomes a NaN. */
int scale(ad_call *c, const array &to, const array &from, double factor) {
    if (factor == 1 && to.data == from.data) return 0;
    c->run->wrote = true;
    if (factor == 1) return ad_call_copy(c, &to, &from);
    const walk<2> w = walk_of(to, from);
    const bool pairs = real_of(to.dtype) != to.dtype && w.ndim < AD_MAX_NDIM;
    array side[2] = {to, from};
    for (int k = 0; k < 2; k++) {
        side[k].ndim = w.ndim;
        for (int i = 0; i < w.ndim; i++) {
            side[k].shape[i] = w.shape[i];
            side[k].stride[i] = w.stride[i][k];
        }
        if (!pairs) continue;
        side[k].dtype = real_of(to.dtype);
        side[k].shape[side[k].ndim] = 2;
        side[k].stride[side[k].ndim++] = itemsize(side[k].dtype);
    }
    ad_operand operands[3] = {operand_of(side[0]), operand_of(side[1]), {}};
    operands[2].is_scalar = 1;
    operands[2].scalar.kind = AD_SCALAR_FLOAT;
    operands[2].scalar.as.f = factor;
    ad_op op = {};
    op.opcode = AD_REQ_UFUNC;
    op.row = AD_UFUNC_multiply;
    op.loop = uint8_t(side[0].dtype);
    op.nout = 1;
    op.nin = 2;
    op.operand = operands;
    return ad__call_ufunc(c, &op);
}

/* ---- one plan's work ---- */

/* Transform from a copy, or to one, or both, whichever the plan needs. */
int through_copies(ad_call *c, const transform &t, const array &from, const array &to, double factor) {
    const bool in_place = from.data == to.data;
    array before = gathered(from, t.axes), after = gathered(to, t.axes);
    fitted f;
    int status;
    if (!in_place && fit(t, from, after, &f)) {
        if ((status = allocate(c, &after)) || (status = run(c, t, f, from, after))) return status;
        return scale(c, to, after, factor);
    }
    if ((status = allocate(c, &before)) || (status = ad_call_copy(c, &before, &from))) return status;
    if (fit(t, before, to, &f)) {
        if ((status = run(c, t, f, before, to))) return status;
        return scale(c, to, to, factor);
    }
    if (t.kind == AD_CUDA_FFT_COMPLEX) after = before;
    else if ((status = allocate(c, &after))) return status;
    if (!fit(t, before, after, &f)) return ad__fault(c->fault, AD_E_INTERNAL, "fft: no plan for a packed array");
    if ((status = run(c, t, f, before, after))) return status;
    return scale(c, to, after, factor);
}

/* Transform one axis from the input to the output, and the others within the output, if that needs no copies. 0: it
 * does; 1: it is done. */
int in_turn(ad_call *c, const transform &t, const array &from, const array &to, double factor) {
    transform first = t, others = t;
    fitted f, g;
    const int n = t.axes.count - 1;
    if (n < 1) return 0;
    const int pick = t.kind == AD_CUDA_FFT_COMPLEX ? 0 : n; /* the axis that is halved comes first */
    first.axes = {1, {t.axes.axis[pick]}};
    others.kind = AD_CUDA_FFT_COMPLEX;
    others.axes.count = n;
    for (int i = 0; i < n; i++) others.axes.axis[i] = t.axes.axis[i < pick ? i : i + 1];
    if (!fit(first, from, to, &f) || !fit(others, to, to, &g)) return 0;
    int status = run(c, first, f, from, to);
    if (!status) status = run(c, others, g, to, to);
    if (!status) status = scale(c, to, to, factor);
    return status ? status : 1;
}

int apply(ad_call *c, const transform &t, const array &from, const array &to, double factor) {
    fitted f;
    if (!fit(t, from, to, &f)) {
        const int done = in_turn(c, t, from, to, factor);
        return done != 0 ? (done < 0 ? done : 0) : through_copies(c, t, from, to, factor);
    }
    const int status = run(c, t, f, from, to);
    return status ? status : scale(c, to, to, factor);
}

/* ---- any number of axes ---- */

/* The axes of a bit mask along which there is anything to do, those with the longest strides first. */
axis_list axes_of(int64_t mask, const array &x) {
    axis_list r = {};
    for (int i = 0; i < x.ndim; i++) {
        if (!(mask >> i & 1) || x.shape[i] == 1) continue;
        int at = r.count++;
        for (; at > 0 && magnitude(x.stride[r.axis[at - 1]]) < magnitude(x.stride[i]); at--)
            r.axis[at] = r.axis[at - 1];
        r.axis[at] = i;
    }
    return r;
}

/* The last `most` axes, which *axes loses. */
axis_list take(axis_list *axes, int most) {
    axis_list r = {};
    r.count = axes->count < most ? axes->count : most;
    axes->count -= r.count;
    for (int i = 0; i < r.count; i++) r.axis[i] = axes->axis[axes->count + i];
    return r;
}

/* Complex transforms; from may be to. */
int apply_all(ad_call *c, int direction, const array &from, const array &to, axis_list axes, double factor) {
    if (axes.count == 0) return scale(c, to, from, factor);
    const array *source = &from;
    while (axes.count > 0) {
        const transform t = {AD_CUDA_FFT_COMPLEX, direction, take(&axes, AD_CUDA_FFT_RANK)};
        const int status = apply(c, t, *source, to, axes.count == 0 ? factor : 1);
        if (status) return status;
        source = &to;
    }
    return 0;
}

int from_real(ad_call *c, const array &x, const array &out) {
    const int axis = int(c->op->param[0].as.i);
    axis_list others = axes_of(c->op->param[1].as.i, out);
    const double factor = ad_scalar_number(&c->op->param[2]);
    int status;
    if (x.shape[axis] == 1) {
        c->run->wrote = true;
        if ((status = ad_call_copy(c, &out, &x))) return status;
    } else {
        transform t = {AD_CUDA_FFT_FROM_REAL, -1, take(&others, AD_CUDA_FFT_RANK - 1)};
        t.axes.axis[t.axes.count++] = axis;
        if (others.count == 0) return apply(c, t, x, out, factor);
        if ((status = apply(c, t, x, out, 1))) return status;
    }
    return apply_all(c, -1, out, out, others, factor);
}

/* Clear the imaginary parts that a transform to real numbers ignores. They are at frequency zero and, for an even
 * number of points, at half the number. */
int clear_imaginary(ad_call *c, const array &x, int axis, int64_t n) {
    static const char nothing[16] = {};
    array parts = x, zero;
    parts.dtype = real_of(x.dtype);
    parts.data += itemsize(parts.dtype);
    parts.shape[axis] = n % 2 == 0 ? 2 : 1;
    parts.stride[axis] *= n / 2;
    zero = parts;
    if (!(zero.data = static_cast<char *>(ad_call_workspace(c, 16)))) return AD_E_MEMORY;
    const int status = ad__call_store(c, zero.data, nothing, 16);
    if (status) return status;
    for (int i = 0; i < zero.ndim; i++) zero.stride[i] = 0;
    return ad_call_copy(c, &parts, &zero);
}

/* The transform to real numbers works on a copy, as it overwrites its input. Where imaginary parts are to be ignored it
 * does not. */
int to_real(ad_call *c, const array &x, const array &out) {
    const int axis = int(c->op->param[0].as.i);
    const int64_t n = c->op->param[2].as.i;
    const axis_list others = axes_of(c->op->param[1].as.i, x);
    transform t = {AD_CUDA_FFT_TO_REAL, 1, {1, {axis}}};
    array copy = gathered(x, t.axes);
    int status;
    if ((status = allocate(c, &copy)) || (status = apply_all(c, 1, x, copy, others, 1))) return status;
    if (n == 1) {
        copy.dtype = real_of(copy.dtype); /* the real parts */
        return scale(c, out, copy, ad_scalar_number(&c->op->param[3]));
    }
    if ((status = clear_imaginary(c, copy, axis, n))) return status;
    return apply(c, t, copy, out, ad_scalar_number(&c->op->param[3]));
}

int operands(ad_call *c, int in_dtype, int out_dtype, array *in, array *out) {
    const int status = ad_call_input(c, 0, in_dtype, in);
    return status ? status : ad_call_output(c, 0, out_dtype, out);
}

} // namespace

int ad_call_fft(ad_call *c) {
    array x, out;
    int status = operands(c, c->op->loop, c->op->loop, &x, &out);
    if (status || count(out) == 0) return status;
    status = apply_all(c, int(c->op->param[1].as.i), x, out, axes_of(c->op->param[0].as.i, out),
                       ad_scalar_number(&c->op->param[2]));
    return status ? status : ad_call_finish(c, 0, &out);
}

int ad_call_rfft(ad_call *c) {
    array x, out;
    int status = operands(c, real_of(c->op->loop), c->op->loop, &x, &out);
    if (status || count(out) == 0) return status;
    status = from_real(c, x, out);
    return status ? status : ad_call_finish(c, 0, &out);
}

int ad_call_irfft(ad_call *c) {
    array x, out;
    int status = operands(c, c->op->loop, real_of(c->op->loop), &x, &out);
    if (status || count(out) == 0) return status;
    status = to_real(c, x, out);
    return status ? status : ad_call_finish(c, 0, &out);
}
