/* dct: cosine and sine transforms by Fourier transforms of cuFFT. Here x has n points, F is a Fourier transform, and
 * w(a) is exp(-i pi a):
 * - cosine 1: the real parts of F of x and its mirror image, of 2 (n - 1) points
 * - sine 1: the negative imaginary parts of F of 0, x, 0, -x mirrored, of 2 (n + 1) points
 * - cosine 2: F of every second point and then the others backwards, times w(k / 2n): twice its real parts, and twice
 *   its negative imaginary parts backwards
 * - cosine 3: those steps in reverse
 * - cosine 4: F of x[i] w(i / 2n) and as many zeros, times w((2k + 1) / 4n): twice its real parts
 *
 * Those of sines are those of cosines, with one side backwards and every other sign of the other one changed. */
#include "kernels/call.h"
#include "kernels/cuda/backend/device.h"
#include "kernels/cuda/call/fft/plans.h"

#include <algorithm>

namespace {

using namespace ad;

constexpr int THREADS = 256;
constexpr int64_t MOST_BLOCKS = int64_t(1) << 30;
constexpr double ROOT_2 = 1.41421356237309504880, ROOT_HALF = 0.70710678118654752440;

/* Lines of n points that lie behind each other, and what is transformed. */
template <class T> struct line_plan {
    const T *x;
    T *out;
    void *before, *after; /* points of the Fourier transform and its result, for each line so many: */
    int64_t n, lines, nbefore, nafter;
    int type;
    bool sine, ortho;
    double factor, quarter; /* 1 / 4n */
};

/* The line that a point's number is in, and its place there. Divisions of 64 bits take several times as long as those
 * of 32. */
struct line_place {
    int64_t line, at;
};

__device__ inline line_place find_place(int64_t number, int64_t each) {
    if ((uint64_t(number) | uint64_t(each)) >> 32) return {number / each, number % each};
    return {int64_t(uint32_t(number) / uint32_t(each)), int64_t(uint32_t(number) % uint32_t(each))};
}

/* The point i of a line as the transform of cosines takes it. */
template <class T> __device__ T take_point(const line_plan<T> &p, const T *x, int64_t i) {
    const bool backwards = p.sine && p.type > 2, alternates = p.sine && p.type == 2;
    T v = x[backwards ? p.n - 1 - i : i];
    if (alternates && i % 2 != 0) v = -v;
    const bool scaled = p.ortho && ((p.type == 3 && i == 0) || (p.type == 1 && !p.sine && (i == 0 || i == p.n - 1)));
    return scaled ? T(v * ROOT_2) : v;
}

/* exp(i pi angle). Single precision is as good as its angle, which is at most 1/2. */
template <class T> __device__ complex<T> turn(double angle) {
    T s, c;
    if constexpr (sizeof(T) == 4) sincospif(T(angle), &s, &c);
    else sincospi(angle, &s, &c);
    return {c, s};
}

/* ---- the points of the Fourier transform ---- */

template <class T> __device__ T make_real(const line_plan<T> &p, const T *x, int64_t i) {
    if (p.type == 2) return take_point(p, x, 2 * i < p.n ? 2 * i : 2 * p.n - 1 - 2 * i);
    const int64_t mirrored = p.nbefore - i;
    if (!p.sine) return take_point(p, x, i < p.n ? i : mirrored);
    if (i == 0 || i == p.n + 1) return T(0);
    return i <= p.n ? take_point(p, x, i - 1) : -take_point(p, x, mirrored - 1);
}

template <class T> __device__ complex<T> make_complex(const line_plan<T> &p, const T *x, int64_t i) {
    if (p.type == 4) {
        if (i >= p.n) return {T(0), T(0)};
        const complex<T> w = turn<T>(-double(2 * i) * p.quarter);
        const T v = take_point(p, x, i);
        return {v * w.re, v * w.im};
    }
    const T a = take_point(p, x, i), b = i == 0 ? T(0) : take_point(p, x, p.n - i);
    const complex<T> w = turn<T>(double(2 * i) * p.quarter);
    const bool real = i == 0 || 2 * i == p.n;
    return {a * w.re + b * w.im, real ? T(0) : a * w.im - b * w.re};
}

template <class T> __global__ void __launch_bounds__(THREADS) make_points(const __grid_constant__ line_plan<T> p) {
    const int64_t step = int64_t(gridDim.x) * THREADS;
    for (int64_t u = int64_t(blockIdx.x) * THREADS + threadIdx.x; u < p.lines * p.nbefore; u += step) {
        const line_place place = find_place(u, p.nbefore);
        const T *x = p.x + place.line * p.n;
        if (p.type < 3) static_cast<T *>(p.before)[u] = make_real(p, x, place.at);
        else static_cast<complex<T> *>(p.before)[u] = make_complex(p, x, place.at);
    }
}

/* ---- the result ---- */

/* Frequency k of cosines, of what the Fourier transform has made of a line. */
template <class T> __device__ T find_frequency(const line_plan<T> &p, const void *after, int64_t line, int64_t k) {
    if (p.type == 3) return static_cast<const T *>(after)[line * p.nafter + (k % 2 == 0 ? k / 2 : p.n - 1 - k / 2)];
    const complex<T> *f = static_cast<const complex<T> *>(after) + line * p.nafter;
    if (p.type == 1) return p.sine ? -f[k + 1].im : f[k].re;
    const int64_t j = p.type == 2 && 2 * k > p.n ? p.n - k : k;
    const complex<T> w = turn<T>(-double(p.type == 2 ? 2 * j : 2 * k + 1) * p.quarter);
    return j == k ? T(2) * (f[j].re * w.re - f[j].im * w.im) : T(-2) * (f[j].re * w.im + f[j].im * w.re);
}

template <class T> __global__ void __launch_bounds__(THREADS) make_result(const __grid_constant__ line_plan<T> p) {
    const int64_t step = int64_t(gridDim.x) * THREADS;
    for (int64_t u = int64_t(blockIdx.x) * THREADS + threadIdx.x; u < p.lines * p.n; u += step) {
        const auto [line, i] = find_place(u, p.n);
        const int64_t k = p.sine && p.type == 2 ? p.n - 1 - i : i;
        double factor = p.factor;
        if (p.ortho && ((p.type == 2 && k == 0) || (p.type == 1 && !p.sine && (k == 0 || k == p.n - 1))))
            factor *= ROOT_HALF;
        if (p.sine && p.type > 2 && i % 2 != 0) factor = -factor;
        p.out[u] = T(double(find_frequency(p, p.after, line, k)) * factor);
    }
}

/* Lines of one point, of which cuFFT has no transform: types 2 and 3. */
template <class T> __global__ void __launch_bounds__(THREADS) scale_points(const __grid_constant__ line_plan<T> p) {
    const int64_t step = int64_t(gridDim.x) * THREADS;
    const double ends = !p.ortho ? 1.0 : p.type == 2 ? ROOT_HALF : ROOT_2;
    const double factor = p.factor * ends * (p.type == 2 ? 2 : 1);
    for (int64_t u = int64_t(blockIdx.x) * THREADS + threadIdx.x; u < p.lines; u += step) p.out[u] = T(p.x[u] * factor);
}

unsigned count_blocks(int64_t threads) { return unsigned(std::min((threads + THREADS - 1) / THREADS, MOST_BLOCKS)); }

/* Run cuFFT over all lines. */
template <class T> int run_fourier(ad_call *c, const line_plan<T> &p) {
    ad_cuda_fft_plan plan;
    int handle = 0;
    memset(&plan, 0, sizeof plan);
    plan.kind = p.type == 4 ? AD_CUDA_FFT_COMPLEX : p.type == 3 ? AD_CUDA_FFT_TO_REAL : AD_CUDA_FFT_FROM_REAL;
    plan.wide = sizeof(T) == 8;
    plan.rank = 1;
    plan.n[0] = p.type == 3 ? p.nafter : p.nbefore;
    plan.batch = p.lines;
    plan.from.embed[0] = plan.from.dist = p.nbefore;
    plan.to.embed[0] = plan.to.dist = p.nafter;
    plan.from.stride = plan.to.stride = 1;
    const int status = ad_cuda_fft_prepare(c, &plan, &handle);
    return status ? status : ad_cuda_fft_run(c, handle, p.before, p.after, p.type == 3 ? 1 : -1);
}

/* Make room for the points of the Fourier transform and for its result. AD_E_MEMORY. */
template <class T> int open_lines(ad_call *c, line_plan<T> *p) {
    const int64_t points = 2 * (p->n + (p->sine ? 1 : -1));
    p->nbefore = p->type == 1 ? points : p->type == 2 ? p->n : p->type == 3 ? p->n / 2 + 1 : 2 * p->n;
    p->nafter = p->type == 3 ? p->n : p->type == 4 ? 2 * p->n : p->nbefore / 2 + 1;
    const uint64_t before = p->type < 3 ? sizeof(T) : 2 * sizeof(T), after = p->type == 3 ? sizeof(T) : 2 * sizeof(T);
    p->before = ad_call_workspace(c, uint64_t(p->lines) * uint64_t(p->nbefore) * before);
    p->after =
        p->before && p->type == 4 ? p->before : ad_call_workspace(c, uint64_t(p->lines) * uint64_t(p->nafter) * after);
    return p->before && p->after ? 0 : AD_E_MEMORY;
}

template <class T> int transform_lines(ad_call *c, line_plan<T> p) {
    const ad_scalar *param = c->op->param;
    p.type = int(param[1].as.i);
    p.sine = param[2].as.b;
    p.ortho = param[3].as.b;
    p.factor = ad_scalar_number(&param[4]);
    int status = 0;
    if (p.n == 1 && (p.type == 2 || p.type == 3))
        scale_points<T><<<count_blocks(p.lines), THREADS, 0, c->stream->cuda>>>(p);
    else {
        if ((status = open_lines(c, &p))) return status;
        make_points<T><<<count_blocks(p.lines * p.nbefore), THREADS, 0, c->stream->cuda>>>(p);
        if ((status = run_fourier(c, p))) return status;
        make_result<T><<<count_blocks(p.lines * p.n), THREADS, 0, c->stream->cuda>>>(p);
    }
    return ad_cuda_launched("dct", c->fault);
}

/* The array with that axis as its last one. */
array move_last(const array &x, int axis) {
    array r = x;
    for (int i = axis; i + 1 < x.ndim; i++) {
        r.shape[i] = x.shape[i + 1];
        r.stride[i] = x.stride[i + 1];
    }
    r.shape[x.ndim - 1] = x.shape[axis];
    r.stride[x.ndim - 1] = x.stride[axis];
    return r;
}

/* A row-major array of that shape: itself, or scratch memory. AD_E_MEMORY. */
int open_packed(ad_call *c, const array &x, array *out) {
    *out = x;
    if (is_packed(x)) return 0;
    const int64_t size = pack(out);
    out->data = static_cast<char *>(ad_call_workspace(c, uint64_t(size)));
    return !out->data ? AD_E_MEMORY : 0;
}

template <class T> line_plan<T> plan_lines(const array &from, const array &to) {
    line_plan<T> p = {};
    p.x = reinterpret_cast<const T *>(from.data);
    p.out = reinterpret_cast<T *>(to.data);
    p.n = from.shape[from.ndim - 1];
    p.lines = count(from) / p.n;
    p.quarter = 1 / (4 * double(p.n));
    return p;
}

} // namespace

int ad_call_dct(ad_call *c) {
    const int axis = int(c->op->param[0].as.i), dtype = c->op->loop;
    array x, out, from, to;
    int status;
    if ((status = ad_call_input(c, 0, dtype, &x)) || (status = ad_call_output(c, 0, dtype, &out))) return status;
    if (count(out) == 0) return 0;
    from = move_last(x, axis);
    const array turned = move_last(out, axis);
    if (!is_packed(from) && (status = ad_call_packed(c, &from, dtype, 0, &from))) return status;
    if ((status = open_packed(c, turned, &to))) return status;
    c->run->wrote = true;
    status = dtype == AD_FLOAT64 ? transform_lines(c, plan_lines<double>(from, to))
                                 : transform_lines(c, plan_lines<float>(from, to));
    if (status || (to.data != turned.data && (status = ad_call_copy(c, &turned, &to)))) return status;
    return ad_call_finish(c, 0, &out);
}
