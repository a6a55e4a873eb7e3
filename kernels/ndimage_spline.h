/* Splines on both backends. How coordinates beyond the edges are mapped, the weights of a coordinate's neighbours, and
 * the recursive filter that makes coefficients of samples. */
#ifndef AD_KERNELS_NDIMAGE_SPLINE_H
#define AD_KERNELS_NDIMAGE_SPLINE_H

#include "kernels/ndimage.h"

/* Modes of `sample`. They are those of filters, where reflect and wrap are between the outermost elements' middles, and
 * two whose edges are those of a grid of cells. */
enum { AD_EDGE_GRID_WRAP = AD_EDGE_WRAP + 1, AD_EDGE_GRID_CONSTANT, AD_NSAMPLE_MODES };

constexpr int AD_SPLINE_MOST = 5;       /* order */
constexpr int64_t AD_SPLINE_REACH = 56; /* elements after which the slowest pole's part is below 1e-20 */

namespace ad {
inline namespace AD_ISA {

/* c into the line of n elements, as the mode has it. False: the constant stands there, as it does where c is NaN. */
AD_HD bool map_coordinate(double *c, int64_t n, int mode) {
    if (*c != *c) return false;
    const double last = double(n - 1);
    if (mode == AD_EDGE_GRID_CONSTANT || mode == AD_EDGE_NEAREST) return true; /* elements are found beyond the edges */
    if (*c >= 0 && *c <= last) return true;
    if (mode == AD_EDGE_CONSTANT) return !(*c < 0 || *c > last);
    if (n == 1) {
        *c = 0;
        return true;
    }
    double v = *c, period;
    switch (mode) {
    case AD_EDGE_MIRROR:
        period = 2 * last;
        v = v < 0 ? -v : v;
        v -= period * trunc(v / period);
        v = v > last ? period - v : v;
        break;
    case AD_EDGE_WRAP: v = v < 0 ? v + last * (trunc(-v / last) + 1) : v - last * trunc(v / last); break;
    case AD_EDGE_REFLECT:
        period = 2.0 * double(n);
        v = v < 0 ? -v - 1 : v;
        v -= period * trunc(v / period);
        v = v >= double(n) ? period - v - 1 : v;
        break;
    default: /* AD_EDGE_GRID_WRAP */
        v = v < 0 ? v + double(n) * (trunc((-1 - v) / double(n)) + 1) : v - double(n) * trunc(v / double(n));
        break;
    }
    *c = v;
    return true;
}

/* The mode of the elements around a coordinate that has been mapped. */
AD_HD int spline_edge(int mode) {
    switch (mode) {
    case AD_EDGE_REFLECT:
    case AD_EDGE_MIRROR: return mode;
    case AD_EDGE_NEAREST: return AD_EDGE_REFLECT;
    case AD_EDGE_GRID_WRAP: return AD_EDGE_WRAP;
    default: return AD_EDGE_MIRROR;
    }
}

/* Find the first of the order+1 elements that a coordinate depends on, and their weights. The B-splines of each order
 * come from those of the one below. */
template <class T> AD_HD int64_t weigh_neighbours(double c, int order, T *w) {
    const double shifted = order % 2 == 0 ? c + 0.5 : c, whole = floor(shifted);
    const T t = T(shifted - whole);
    w[0] = T(1);
    for (int d = 1; d <= order; d++) {
        T saved = T(0);
        for (int r = 0; r < d; r++) {
            const T part = w[r] * T(1.0 / d);
            w[r] = saved + (T(r + 1) - t) * part;
            saved = (t + T(d - 1 - r)) * part;
        }
        w[d] = saved;
    }
    return float_to_int64(whole) - order / 2;
}

/* ---- coefficients ---- */

struct spline {
    double pole[2], gain;
    int poles, mode; /* mode: reflect, mirror or wrap */
};

inline spline make_spline(int order, int mode) {
    static const double pole[AD_SPLINE_MOST + 1][2] = {{},
                                                       {},
                                                       {-0.17157287525380990, 0},
                                                       {-0.26794919243112270, 0},
                                                       {-0.36134122590022018, -0.013725429297339121},
                                                       {-0.43057534709997397, -0.043096288203264654}};
    spline s = {{pole[order][0], pole[order][1]}, 1, order > 3 ? 2 : order > 1 ? 1 : 0, spline_edge(mode)};
    for (int i = 0; i < s.poles; i++) s.gain *= (1 - s.pole[i]) * (1 - 1 / s.pole[i]);
    return s;
}

/* Compute the first value of the forward filter with a pole, on a line that goes on as the mode says. It is the sum of
 * the elements before the first, weighted by the pole's powers, and multiplied by a factor where they repeat. f(i):
 * element i. */
template <class F> AD_HD double begin_forward(int64_t n, double z, int mode, F f) {
    const double all = n < 2 * AD_SPLINE_REACH ? pow(z, double(n)) : 0;
    const int64_t most = n < AD_SPLINE_REACH ? n : AD_SPLINE_REACH;
    double power = 1, sum = 0;
    if (mode == AD_EDGE_REFLECT) { /* f[0], f[0], f[1] ... f[n-1], f[n-1] ... f[0] */
        for (int64_t i = 0; i < most; i++, power *= z) sum += power * (f(i) + all * f(n - 1 - i));
        return f(0) + z * sum / (1 - all * all);
    }
    if (mode == AD_EDGE_WRAP) {
        for (int64_t i = 0; i < most; i++, power *= z) sum += power * f(i > 0 ? n - i : 0);
        return sum / (1 - all);
    }
    const double turned = all / z; /* of n-1 elements */
    sum = f(0) + turned * f(n - 1);
    power = z;
    for (int64_t i = 1; i < most && i < n - 1; i++, power *= z) sum += power * (f(i) + turned * f(n - 1 - i));
    return sum / (1 - turned * turned);
}

/* Compute the last value of the backward filter of f, which the forward filter has made. */
template <class F> AD_HD double begin_backward(int64_t n, double z, int mode, F f) {
    if (mode == AD_EDGE_REFLECT) return f(n - 1) * z / (z - 1);
    if (mode == AD_EDGE_MIRROR) return z * (z * f(n - 2) + f(n - 1)) / (z * z - 1);
    const double all = n < 2 * AD_SPLINE_REACH ? pow(z, double(n)) : 0;
    const int64_t most = n < AD_SPLINE_REACH ? n : AD_SPLINE_REACH;
    double power = z, sum = f(n - 1);
    for (int64_t i = 0; i < most - (most == n); i++, power *= z) sum += power * f(i);
    return sum * z / (all - 1);
}

/* ---- samples ---- */

/* Coefficients, or elements, in an array without gaps. */
template <class T> struct samples {
    const T *x;
    T value;
    int ndim, order, mode;
    int64_t shape[AD_MAX_NDIM], step[AD_MAX_NDIM]; /* step: elements */
};

/* Elements that a coordinate of an axis depends on: their places, -1 where the constant stands. */
template <class T> AD_HD bool find_neighbours(const samples<T> &s, int axis, double c, int order, T *w, int64_t *at) {
    const int64_t n = s.shape[axis];
    if (!map_coordinate(&c, n, s.mode)) return false;
    const int64_t first = limit_offset(weigh_neighbours(c, order, w));
    if (first >= 0 && first < n - order) {
        for (int j = 0; j <= order; j++) at[j] = (first + j) * s.step[axis];
        return true;
    }
    const int edge = s.mode == AD_EDGE_NEAREST ? AD_EDGE_NEAREST : spline_edge(s.mode);
    for (int j = 0; j <= order; j++) {
        const int64_t i = first + j;
        const bool out = s.mode == AD_EDGE_GRID_CONSTANT && uint64_t(i) >= uint64_t(n);
        at[j] = out ? -1 : find_edge(i, n, edge) * s.step[axis];
    }
    return true;
}

/* Neighbours of a point of N axes with an order known to the compiler. */
template <int N, int O, class T> struct neighbours {
    T w[N][O + 1];
    int64_t at[N][O + 1];
    bool any; /* false: the constant stands there */

    AD_HD void find(const samples<T> &s, const double *c) {
#ifdef __CUDACC__
#pragma unroll
#endif
        for (int d = 0; d < N; d++) {
            any = find_neighbours(s, d, c[d], O, w[d], at[d]);
            if (!any) return;
        }
    }
    AD_HD T add(const samples<T> &s) const {
        if (!any) return s.value;
#ifndef __CUDACC__
        if (s.mode != AD_EDGE_GRID_CONSTANT) return add_from<0, false>(s, 0);
#endif
        return add_from<0, true>(s, 0);
    }

  private:
    /* Add axes from D on. Holes: places may be -1. */
    template <int D, bool Holes> AD_HD T add_from(const samples<T> &s, int64_t from) const {
        if constexpr (D == N) return Holes && from < 0 ? s.value : s.x[from];
        else {
            T sum = T(0);
#ifdef __CUDACC__
#pragma unroll
#endif
            for (int j = 0; j <= O; j++)
                sum = sum +
                      w[D][j] * add_from<D + 1, Holes>(s, Holes && (from < 0 || at[D][j] < 0) ? -1 : from + at[D][j]);
            return sum;
        }
    }
};

/* Sample any number of axes with any order. */
template <class T> AD_HD T sample_any(const samples<T> &s, const double *c) {
    T w[AD_MAX_NDIM][AD_SPLINE_MOST + 1], sum = T(0);
    int64_t at[AD_MAX_NDIM][AD_SPLINE_MOST + 1];
    int turn[AD_MAX_NDIM];
    for (int d = 0; d < s.ndim; d++) {
        turn[d] = 0;
        if (!find_neighbours(s, d, c[d], s.order, w[d], at[d])) return s.value;
    }
    for (int d = 0; d >= 0;) {
        T product = T(1);
        int64_t from = 0;
        for (int i = 0; i < s.ndim; i++) {
            product = product * w[i][turn[i]];
            from = from < 0 || at[i][turn[i]] < 0 ? -1 : from + at[i][turn[i]];
        }
        sum = sum + product * (from < 0 ? s.value : s.x[from]);
        for (d = s.ndim - 1; d >= 0 && ++turn[d] > s.order; d--) turn[d] = 0;
    }
    return sum;
}

} // namespace AD_ISA
} // namespace ad
#endif
