/* Splines: spline1d makes their coefficients, sample evaluates them. */
#include "kernels/call.h"

#include <algorithm>
#include <string.h>

#include "kernels/cpu/backend/parallel.h"
#include "kernels/ndimage_spline.h"

namespace {

using namespace ad;

constexpr int64_t LANES = 16;      /* filtered side by side */
constexpr int64_t ROW_LANES = 4;   /* where elements of a lane are neighbours: more would share sets of the cache */
constexpr int64_t GRAIN = 1 << 12; /* points */
constexpr int64_t LANE_GRAIN = 1 << 14; /* elements */

/* ---- spline1d ---- */

/* Some neighbouring lanes of n elements. */
template <class T> struct lanes {
    T *x;
    int64_t lanes, apart, n, step;

    T &at(int64_t lane, int64_t i) const { return x[lane * apart + i * step]; }
};

template <class T> void filter_pole(const lanes<T> *l, double z, int mode) {
    double last[LANES];
    for (int64_t k = 0; k < l->lanes; k++) {
        last[k] = begin_forward(l->n, z, mode, [&](int64_t i) { return double(l->at(k, i)); });
        l->at(k, 0) = T(last[k]);
    }
    for (int64_t i = 1; i < l->n; i++)
        for (int64_t k = 0; k < l->lanes; k++) {
            last[k] = double(l->at(k, i)) + z * last[k];
            l->at(k, i) = T(last[k]);
        }
    for (int64_t k = 0; k < l->lanes; k++) {
        last[k] = begin_backward(l->n, z, mode, [&](int64_t i) { return double(l->at(k, i)); });
        l->at(k, l->n - 1) = T(last[k]);
    }
    for (int64_t i = l->n - 2; i >= 0; i--)
        for (int64_t k = 0; k < l->lanes; k++) {
            last[k] = z * (last[k] - double(l->at(k, i)));
            l->at(k, i) = T(last[k]);
        }
}

template <class T> void filter_lanes(const lanes<T> *l, const spline *s) {
    for (int64_t i = 0; i < l->n; i++)
        for (int64_t k = 0; k < l->lanes; k++) l->at(k, i) = T(double(l->at(k, i)) * s->gain);
    for (int p = 0; p < s->poles; p++) {
        ad_cpu_check_cancelled();
        filter_pole(l, s->pole[p], s->mode);
    }
}

/* Filter an array without gaps along an axis, in place. */
template <class T> void filter_axis(const array *x, int axis, const spline *s) {
    const int64_t n = x->shape[axis], inner = count(*x, axis + 1, x->ndim), outer = count(*x, 0, axis);
    const int64_t apart = inner > 1 ? 1 : n, row = inner > 1 ? inner : outer;
    const int64_t most = inner > 1 ? LANES : ROW_LANES, groups = (row + most - 1) / most;
    ad_cpu_parallel(groups * (inner > 1 ? outer : 1), std::max(int64_t(1), LANE_GRAIN / (n * most)),
                    [&](int64_t begin, int64_t end) {
                        for (int64_t g = begin; g < end; g++) {
                            const int64_t first = g % groups * most;
                            T *x0 = reinterpret_cast<T *>(x->data) + g / groups * n * inner + first * apart;
                            const lanes<T> l = {x0, std::min(most, row - first), apart, n, inner};
                            filter_lanes(&l, s);
                        }
                    });
}

/* ---- sample ---- */

/* The points: coordinates of an array, or those that a matrix makes of places in the result. */
struct points {
    const char *where; /* packed */
    bool affine;
    int dtype, ndim, out_ndim;
    int64_t count, shape[AD_MAX_NDIM];
    double pad;
};

/* Place of a point in the result. */
void split_point(const points *p, int64_t i, int64_t *at) {
    for (int d = p->out_ndim - 1; d >= 0; d--) {
        at[d] = i % p->shape[d];
        i /= p->shape[d];
    }
}

void find_point(const points *p, int64_t i, const int64_t *at, double *c) {
    if (!p->affine) {
        for (int d = 0; d < p->ndim; d++) {
            const int64_t from = d * p->count + i;
            c[d] = p->pad + (p->dtype == AD_FLOAT32 ? double(reinterpret_cast<const float *>(p->where)[from])
                                                    : reinterpret_cast<const double *>(p->where)[from]);
        }
        return;
    }
    const double *m = reinterpret_cast<const double *>(p->where);
    for (int d = 0; d < p->ndim; d++) {
        double sum = 0;
        for (int k = 0; k < p->out_ndim; k++) sum += *m++ * double(at[k]);
        c[d] = sum + *m++ + p->pad;
    }
}

/* f(i, coordinates) for points [begin, end), in order. */
template <class F> void each_point(const points *p, int64_t begin, int64_t end, F f) {
    int64_t at[AD_MAX_NDIM];
    double c[AD_MAX_NDIM];
    split_point(p, begin, at);
    for (int64_t i = begin; i < end; i++) {
        find_point(p, i, at, c);
        f(i, c);
        for (int d = p->out_ndim - 1; d >= 0 && ++at[d] == p->shape[d]; d--) at[d] = 0;
    }
}

template <class T> void sample_any_axes(const samples<T> *s, const points *p, T *out) {
    ad_cpu_parallel(p->count, GRAIN, [&](int64_t begin, int64_t end) {
        each_point(p, begin, end, [&](int64_t i, const double *c) {
            if (i % 256 == 0) ad_cpu_check_cancelled();
            out[i] = sample_any(*s, c);
        });
    });
}

/* Ask for the memory of a point's neighbours: one of each row, or two where they are on two lines of the cache. */
template <int N, int O, class T> void prefetch(const samples<T> &s, const neighbours<N, O, T> &point) {
    constexpr int ROWS = N == 1 ? 1 : N == 2 ? O + 1 : (O + 1) * (O + 1);
    for (int row = 0; row < ROWS; row++) {
        int64_t from = N > 1 ? point.at[N - 2 + (N == 1)][row % (O + 1)] : 0;
        if (N > 2) from += point.at[0][row / (O + 1)];
        const T *first = s.x + from + point.at[N - 1][0], *last = s.x + from + point.at[N - 1][O];
        __builtin_prefetch(first);
        if ((uintptr_t(first) ^ uintptr_t(last)) >= 64) __builtin_prefetch(last);
    }
}

/* Random reads of a large array wait for memory. So the neighbours of some points are asked for before the first of
 * them are read. */
template <int N, int O, class T> void sample_some_axes(const samples<T> *s, const points *p, T *out) {
    constexpr int64_t BLOCK = 32;
    ad_cpu_parallel(p->count, GRAIN, [&](int64_t begin, int64_t end) {
        neighbours<N, O, T> found[BLOCK]; /* for the 3 axes of order 3 12 KiB */
        each_point(p, begin, end, [&](int64_t i, const double *c) {
            neighbours<N, O, T> &one = found[(i - begin) % BLOCK];
            one.find(*s, c);
            if (one.any) prefetch(*s, one);
            if ((i - begin) % BLOCK < BLOCK - 1 && i < end - 1) return;
            ad_cpu_check_cancelled();
            const int64_t first = i - (i - begin) % BLOCK;
            for (int64_t k = first; k <= i; k++) out[k] = found[k - first].add(*s);
        });
    });
}

template <class T, int N> bool sample_axes(const samples<T> *s, const points *p, T *out) {
    switch (s->order) {
    case 0: return sample_some_axes<N, 0>(s, p, out), true;
    case 1: return sample_some_axes<N, 1>(s, p, out), true;
    case 3: return sample_some_axes<N, 3>(s, p, out), true;
    default: return false;
    }
}

template <class T> void sample_array(const samples<T> *s, const points *p, T *out) {
    const bool done = s->ndim == 1   ? sample_axes<T, 1>(s, p, out)
                      : s->ndim == 2 ? sample_axes<T, 2>(s, p, out)
                      : s->ndim == 3 ? sample_axes<T, 3>(s, p, out)
                                     : false;
    if (!done) sample_any_axes(s, p, out);
}

template <class T> samples<T> make_samples(const ad_call *c, const array *x) {
    const ad_scalar *param = c->op->param;
    samples<T> s;
    s.x = reinterpret_cast<const T *>(x->data);
    ad_scalar_store(&param[3], c->op->loop, &s.value);
    s.ndim = x->ndim;
    s.order = int(param[1].as.i);
    s.mode = int(param[2].as.i);
    for (int d = 0; d < x->ndim; d++) {
        s.shape[d] = x->shape[d];
        s.step[d] = x->stride[d] / int64_t(sizeof(T));
    }
    return s;
}

int make_packed_output(ad_call *c, array *out) {
    int status = ad_call_output(c, 0, c->op->loop, out);
    if (status || is_packed(*out)) return status;
    out->data = static_cast<char *>(ad_call_workspace(c, uint64_t(pack(out))));
    return !out->data ? AD_E_MEMORY : 0;
}

} // namespace

int ad_call_spline1d(ad_call *c) {
    const int axis = int(c->op->param[0].as.i);
    const spline s = make_spline(int(c->op->param[1].as.i), int(c->op->param[2].as.i));
    array x, out;
    int status;
    if ((status = ad_call_input(c, 0, c->op->loop, &x)) || (status = make_packed_output(c, &out))) return status;
    if (count(out) == 0) return 0;
    c->run->wrote = true;
    if ((status = ad_call_copy(c, &out, &x))) return status;
    if (out.shape[axis] > 1 && s.poles > 0) {
        if (c->op->loop == AD_FLOAT32) filter_axis<float>(&out, axis, &s);
        else filter_axis<double>(&out, axis, &s);
    }
    return ad_call_finish(c, 0, &out);
}

int ad_call_sample(ad_call *c) {
    const ad_scalar *param = c->op->param;
    array x, where, out;
    points p;
    int status;
    p.affine = param[0].as.b;
    p.dtype = c->op->operand[2].desc.dtype;
    if ((status = ad_call_input_packed(c, 0, c->op->loop, &x)) ||
        (status = ad_call_input_packed(c, 1, p.dtype, &where)) || (status = make_packed_output(c, &out)))
        return status;
    if (count(out) == 0) return 0;
    pack(&x);
    p.where = where.data;
    p.ndim = x.ndim;
    p.out_ndim = out.ndim;
    p.count = count(out);
    p.pad = double(param[4].as.i);
    for (int d = 0; d < out.ndim; d++) p.shape[d] = out.shape[d];
    c->run->wrote = true;
    if (c->op->loop == AD_FLOAT32) {
        const samples<float> s = make_samples<float>(c, &x);
        sample_array(&s, &p, reinterpret_cast<float *>(out.data));
    } else {
        const samples<double> s = make_samples<double>(c, &x);
        sample_array(&s, &p, reinterpret_cast<double *>(out.data));
    }
    return ad_call_finish(c, 0, &out);
}
