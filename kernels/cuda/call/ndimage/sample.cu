/* Splines: spline1d makes their coefficients, sample evaluates them.
 *
 * A lane is filtered in segments, each by one thread. Elements further away than AD_SPLINE_REACH have no part in a
 * result. So a thread begins that far before its segment, or at the lane's end, where the mode says what comes before.
 */
#include "kernels/cuda/backend/divide.h"
#include "kernels/cuda/call/ndimage/ndimage.h"
#include "kernels/ndimage_spline.h"

#include <algorithm>

namespace {

using namespace ad;

constexpr int THREADS = 128;
constexpr int64_t ENOUGH = 1 << 17; /* lanes that are not cut */
constexpr int64_t SEGMENT = 256;
constexpr int64_t MOST_BLOCKS = int64_t(1) << 30, SMALL = int64_t(1) << 31;

/* ---- spline1d ---- */

/* Lanes of n elements, `inner` of which lie side by side. */
template <class T> struct filtering {
    const T *from;
    T *to;
    double z, gain;
    int64_t n, inner, lanes, segment, segments;
    int mode;
};

template <class T> __global__ void __launch_bounds__(THREADS) filter_forward(const __grid_constant__ filtering<T> f) {
    const int64_t step = int64_t(gridDim.x) * THREADS;
    for (int64_t i = int64_t(blockIdx.x) * THREADS + threadIdx.x; i < f.lanes * f.segments; i += step) {
        const int64_t lane = i % f.lanes, begin = i / f.lanes * f.segment;
        const int64_t base = lane / f.inner * f.n * f.inner + lane % f.inner;
        const int64_t end = min(begin + f.segment, f.n), before = begin - AD_SPLINE_REACH;
        const T *x = f.from + base;
        double last = 0;
        int64_t at = before;
        if (before <= 0) {
            last = begin_forward(f.n, f.z, f.mode, [&](int64_t k) { return double(x[k * f.inner]) * f.gain; });
            if (begin == 0) f.to[base] = T(last);
            at = 1;
        }
        for (; at < end; at++) {
            last = double(x[at * f.inner]) * f.gain + f.z * last;
            if (at >= begin) f.to[base + at * f.inner] = T(last);
        }
    }
}

template <class T> __global__ void __launch_bounds__(THREADS) filter_backward(const __grid_constant__ filtering<T> f) {
    const int64_t step = int64_t(gridDim.x) * THREADS;
    for (int64_t i = int64_t(blockIdx.x) * THREADS + threadIdx.x; i < f.lanes * f.segments; i += step) {
        const int64_t lane = i % f.lanes, begin = i / f.lanes * f.segment;
        const int64_t base = lane / f.inner * f.n * f.inner + lane % f.inner;
        const int64_t end = min(begin + f.segment, f.n), behind = end - 1 + AD_SPLINE_REACH;
        const T *x = f.from + base;
        double last = 0;
        int64_t at = behind;
        if (behind >= f.n - 1) {
            last = begin_backward(f.n, f.z, f.mode, [&](int64_t k) { return double(x[k * f.inner]); });
            if (end == f.n) f.to[base + (f.n - 1) * f.inner] = T(last);
            at = f.n - 2;
        }
        for (; at >= begin; at--) {
            last = f.z * (last - double(x[at * f.inner]));
            if (at < end) f.to[base + at * f.inner] = T(last);
        }
    }
}

/* Filter from x, which is not changed, by way of scratch memory to out. All have (outer, n, inner) elements without
 * gaps. */
template <class T>
int filter_axis(ad_call *c, const char *x, char *between, char *out, filtering<T> f, const spline *s) {
    f.segment = f.lanes >= ENOUGH ? f.n : SEGMENT;
    f.segments = (f.n + f.segment - 1) / f.segment;
    f.mode = s->mode;
    const int64_t blocks = std::min((f.lanes * f.segments + THREADS - 1) / THREADS, MOST_BLOCKS);
    for (int p = 0; p < s->poles; p++) {
        f.from = reinterpret_cast<const T *>(p == 0 ? x : out);
        f.to = reinterpret_cast<T *>(between);
        f.z = s->pole[p];
        f.gain = p == 0 ? s->gain : 1;
        filter_forward<T><<<unsigned(blocks), THREADS, 0, c->stream->cuda>>>(f);
        f.from = reinterpret_cast<const T *>(between);
        f.to = reinterpret_cast<T *>(out);
        filter_backward<T><<<unsigned(blocks), THREADS, 0, c->stream->cuda>>>(f);
    }
    return ad_cuda_launched("spline coefficients", c->fault);
}

/* Get a as a view with that axis as its first one. */
array move_axis(const array &a, int axis) {
    array b = a;
    b.shape[0] = a.shape[axis];
    b.stride[0] = a.stride[axis];
    for (int i = 0, k = 1; i < a.ndim; i++)
        if (i != axis) {
            b.shape[k] = a.shape[i];
            b.stride[k++] = a.stride[i];
        }
    return b;
}

template <class T> int make_coefficients(ad_call *c, const array *x, const array *out, int axis, const spline *s) {
    array from = *x, to = *out, between = *out, turned;
    filtering<T> f = {};
    int status;
    f.n = x->shape[axis];
    f.inner = count(*x, axis + 1, x->ndim);
    f.lanes = count(*x) / f.n;
    const bool turn = f.inner == 1 && f.lanes > 1; /* neighbouring threads go by neighbouring elements */
    if (turn) {
        turned = move_axis(*x, axis);
        if ((status = ad_call_packed(c, &turned, c->op->loop, 0, &from))) return status;
        f.inner = f.lanes;
        to = from;
        to.data = static_cast<char *>(ad_call_workspace(c, uint64_t(pack(&to))));
    }
    between.data = static_cast<char *>(ad_call_workspace(c, uint64_t(pack(&between))));
    if (!between.data || !to.data) return AD_E_MEMORY;
    if ((status = filter_axis<T>(c, from.data, between.data, to.data, f, s)) || !turn) return status;
    turned = move_axis(*out, axis);
    return ad_call_copy(c, &turned, &to);
}

/* ---- sample ---- */

/* The points: coordinates of an array, or those that a matrix makes of places in the result. */
struct points {
    const char *where; /* packed */
    bool affine, single;
    int ndim, out_ndim;
    int64_t count, shape[AD_MAX_NDIM];
    ad_divisor divisor[AD_MAX_NDIM]; /* of the shape, if there are fewer than SMALL points */
    double pad;
};

template <int N> __device__ void split_point(const points &p, int64_t i, double *at) {
    constexpr int M = N < 0 ? AD_MAX_NDIM : N;
    uint32_t few = uint32_t(i), rest;
#pragma unroll(N < 0 ? 1 : M)
    for (int d = M - 1; d >= 0; d--) {
        if (d >= p.out_ndim) continue;
        if (p.count < SMALL) {
            few = p.divisor[d].divide(few, &rest);
            at[d] = double(rest);
        } else {
            at[d] = double(i % p.shape[d]);
            i /= p.shape[d];
        }
    }
}

/* N: axes, or -1. A number known to the compiler keeps coordinates in registers. Coordinates of an array are read once,
 * so they leave the cache to the elements that are sampled. */
template <int N> __device__ void find_point(const points &p, int64_t i, double *c) {
    constexpr int M = N < 0 ? AD_MAX_NDIM : N;
    const int ndim = N < 0 ? p.ndim : N;
    if (!p.affine) {
#pragma unroll(N < 0 ? 1 : M)
        for (int d = 0; d < ndim; d++) {
            const int64_t from = d * p.count + i;
            c[d] = p.pad + (p.single ? double(__ldcs(reinterpret_cast<const float *>(p.where) + from))
                                     : __ldcs(reinterpret_cast<const double *>(p.where) + from));
        }
        return;
    }
    const double *m = reinterpret_cast<const double *>(p.where);
    double at[M];
    split_point<N>(p, i, at);
#pragma unroll(N < 0 ? 1 : M)
    for (int d = 0; d < ndim; d++) {
        double sum = 0;
#pragma unroll(N < 0 ? 1 : M)
        for (int k = 0; k < M; k++)
            if (k < p.out_ndim) sum += *m++ * at[k];
        c[d] = sum + *m++ + p.pad;
    }
}

/* N: axes, and O: order, or both -1: any. */
template <class T, int N, int O> __global__ void __launch_bounds__(THREADS)
    sample_points(const __grid_constant__ samples<T> s, const __grid_constant__ points p, T *out) {
    constexpr int M = N < 0 ? AD_MAX_NDIM : N;
    const int64_t step = int64_t(gridDim.x) * THREADS;
    for (int64_t i = int64_t(blockIdx.x) * THREADS + threadIdx.x; i < p.count; i += step) {
        double c[M];
        find_point<N>(p, i, c);
        if constexpr (N < 0) __stcs(out + i, sample_any(s, c));
        else {
            neighbours<N, O, T> found;
            found.find(s, c);
            __stcs(out + i, found.add(s));
        }
    }
}

template <class T, int N, int O> int launch_points(ad_call *c, const samples<T> *s, const points *p, T *out) {
    const int64_t blocks = std::min((p->count + THREADS - 1) / THREADS, MOST_BLOCKS);
    sample_points<T, N, O><<<unsigned(blocks), THREADS, 0, c->stream->cuda>>>(*s, *p, out);
    return ad_cuda_launched("sample", c->fault);
}

template <class T, int N> int sample_axes(ad_call *c, const samples<T> *s, const points *p, T *out) {
    switch (s->order) {
    case 0: return launch_points<T, N, 0>(c, s, p, out);
    case 1: return launch_points<T, N, 1>(c, s, p, out);
    case 3: return launch_points<T, N, 3>(c, s, p, out);
    default: return launch_points<T, -1, -1>(c, s, p, out);
    }
}

template <class T> int sample_array(ad_call *c, const array *x, const points *p, char *to) {
    const ad_scalar *param = c->op->param;
    T *out = reinterpret_cast<T *>(to);
    samples<T> s = {};
    s.x = reinterpret_cast<const T *>(x->data);
    ad_scalar_store(&param[3], c->op->loop, &s.value);
    s.ndim = x->ndim;
    s.order = int(param[1].as.i);
    s.mode = int(param[2].as.i);
    for (int d = 0; d < x->ndim; d++) {
        s.shape[d] = x->shape[d];
        s.step[d] = x->stride[d] / int64_t(sizeof(T));
    }
    if (p->affine && p->out_ndim > p->ndim) return launch_points<T, -1, -1>(c, &s, p, out);
    switch (x->ndim) {
    case 1: return sample_axes<T, 1>(c, &s, p, out);
    case 2: return sample_axes<T, 2>(c, &s, p, out);
    case 3: return sample_axes<T, 3>(c, &s, p, out);
    default: return launch_points<T, -1, -1>(c, &s, p, out);
    }
}

} // namespace

int ad_call_spline1d(ad_call *c) {
    const int axis = int(c->op->param[0].as.i);
    const spline s = make_spline(int(c->op->param[1].as.i), int(c->op->param[2].as.i));
    array x, out;
    int status;
    if ((status = ad_call_input_packed(c, 0, c->op->loop, &x)) ||
        (status = ad_cuda_packed_output(c, 0, c->op->loop, &out)))
        return status;
    if (count(out) == 0) return 0;
    c->run->wrote = true;
    if (out.shape[axis] == 1 || s.poles == 0) status = ad_call_copy(c, &out, &x);
    else if (c->op->loop == AD_FLOAT32) status = make_coefficients<float>(c, &x, &out, axis, &s);
    else status = make_coefficients<double>(c, &x, &out, axis, &s);
    return status ? status : ad_call_finish(c, 0, &out);
}

int ad_call_sample(ad_call *c) {
    const ad_scalar *param = c->op->param;
    const int dtype = c->op->operand[2].desc.dtype;
    array x, where, out;
    points p = {};
    int status;
    if ((status = ad_call_input_packed(c, 0, c->op->loop, &x)) ||
        (status = ad_call_input_packed(c, 1, dtype, &where)) ||
        (status = ad_cuda_packed_output(c, 0, c->op->loop, &out)))
        return status;
    if (count(out) == 0) return 0;
    pack(&x);
    p.affine = param[0].as.b;
    p.where = where.data;
    p.single = dtype == AD_FLOAT32;
    p.ndim = x.ndim;
    p.out_ndim = out.ndim;
    p.count = count(out);
    p.pad = double(param[4].as.i);
    for (int d = 0; d < out.ndim; d++) {
        p.shape[d] = out.shape[d];
        if (p.count < SMALL) p.divisor[d].set(out.shape[d]);
    }
    c->run->wrote = true;
    status = c->op->loop == AD_FLOAT32 ? sample_array<float>(c, &x, &p, out.data)
                                       : sample_array<double>(c, &x, &p, out.data);
    return status ? status : ad_call_finish(c, 0, &out);
}
