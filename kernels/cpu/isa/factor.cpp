/* Cholesky factors, linear systems and determinants of small matrices. LAPACK takes longer to find out what to do with
 * a matrix of 4 x 4 than to do it. Here a vector has the same element of as many matrices as it has lanes, so every
 * step is the same for all of them. Only rows change places lane by lane. */
#include "kernels/cpu/isa/factor.h"
#include "kernels/cpu/isa/isa.h"
#include "kernels/types.h"

#include <math.h>
#include <string.h>
#include <utility>

namespace ad {
inline namespace AD_ISA {
namespace {

template <class R> using vec [[gnu::vector_size(AD_VECTOR_BYTES)]] = R;
template <class R> using integers = decltype(vec<R>{} < vec<R>{}); /* of the size of R, all bits for true */
template <class R> constexpr int LANES = AD_VECTOR_BYTES / int(sizeof(R));

/* Pivots between these have reciprocals and squares that are normal numbers. */
template <class R> constexpr R TINY = sizeof(R) == 4 ? R(0x1p-60) : R(0x1p-500);
template <class R> constexpr R HUGE_PIVOT = sizeof(R) == 4 ? R(0x1p60) : R(0x1p500);

/* An element of all lanes. */
template <class T> struct element {
    using R = T;
    vec<R> re;
    element operator*(element o) const { return {re * o.re}; }
    element conj() const { return *this; }
    void subtract(element a, element b) { re -= a.re * b.re; }
    element inverse() const { return {1 / re}; }
    vec<R> size() const { return re < 0 ? -re : re; }
    void scale(vec<R> by) { re *= by; }
    static element repeat_number(R v) { return {vec<R>{} + v}; }
};
template <class U> struct element<complex<U>> {
    using R = U;
    vec<R> re, im;
    element operator*(element o) const { return {re * o.re - im * o.im, re * o.im + im * o.re}; }
    element conj() const { return {re, -im}; }
    void subtract(element a, element b) {
        re = re - a.re * b.re + a.im * b.im;
        im = im - a.re * b.im - a.im * b.re;
    }
    element inverse() const {
        const vec<R> part = 1 / (re * re + im * im);
        return {re * part, -im * part};
    }
    vec<R> size() const { return (re < 0 ? -re : re) + (im < 0 ? -im : im); }
    void scale(vec<R> by) { re *= by, im *= by; }
    static element repeat_number(R v) { return {vec<R>{} + v, vec<R>{}}; }
};

/* Numbers of an element by lanes: the real parts, then the imaginary ones. */
template <class T> using numbers = real_t<T>[sizeof(T) / sizeof(real_t<T>)][LANES<real_t<T>>];
template <class T> numbers<T> &numbers_of(element<T> &e) { return reinterpret_cast<numbers<T> &>(e); }

template <class T> T get(const char *from) {
    T value;
    memcpy(&value, from, sizeof value);
    return value;
}

template <class T> T take_lane(element<T> &from, int lane) {
    numbers<T> &n = numbers_of(from);
    if constexpr (is_complex<T>) return {n[0][lane], n[1][lane]};
    else return n[0][lane];
}

/* Columns [first, first + columns) of `to`, whose rows have `width` elements. */
template <class T> void load(element<T> *to, int width, int first, const ad_factor_stack &s, int rows, int columns) {
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++) {
            element<T> &e = to[i * width + first + j];
            numbers<T> all;
            for (int lane = 0; lane < LANES<real_t<T>>; lane++) {
                const T value = get<T>(s.at[lane] + i * s.row + j * s.column);
                if constexpr (is_complex<T>) all[0][lane] = value.re, all[1][lane] = value.im;
                else all[0][lane] = value;
            }
            memcpy(&e, all, sizeof e);
        }
}

template <class T>
void store(element<T> *from, int width, int first, const ad_factor_stack &s, int count, int rows, int columns) {
    for (int lane = 0; lane < count; lane++)
        for (int i = 0; i < rows; i++)
            for (int j = 0; j < columns; j++) {
                const T value = take_lane(from[i * width + first + j], lane);
                memcpy(s.at[lane] + i * s.row + j * s.column, &value, sizeof value);
            }
}

template <class R> bool are_pivots(vec<R> size) {
    const auto good = (size > TINY<R>)&(size < HUGE_PIVOT<R>);
    return !any(~good);
}

/* ---- cholesky ---- */

template <class R> vec<R> find_roots(vec<R> squares) {
    R all[LANES<R>];
    memcpy(all, &squares, sizeof all);
    for (R &one : all) one = sqrt(one);
    memcpy(&squares, all, sizeof all);
    return squares;
}

/* The lower factor in place, by rows. */
template <class T> bool factor_cholesky(element<T> *a, int n, int width) {
    using R = real_t<T>;
    for (int j = 0; j < n; j++) {
        element<T> &pivot = a[j * width + j];
        vec<R> root = pivot.re;
        if (!are_pivots<R>(root)) return false;
        root = find_roots<R>(root);
        const vec<R> part = 1 / root;
        pivot = element<T>::repeat_number(0);
        pivot.re = root;
        for (int i = j + 1; i < n; i++) a[i * width + j].scale(part);
        for (int i = j + 1; i < n; i++) {
            const element<T> factor = a[i * width + j];
            for (int k = j + 1; k <= i; k++) a[i * width + k].subtract(factor, a[k * width + j].conj());
        }
    }
    return true;
}

/* The upper factor is the lower one of the transpose, both conjugate. That of a triangle by columns is in place again.
 */
template <class T>
bool cholesky(const ad_factor_stack *a, const ad_factor_stack *out, int count, int n, bool upper, void *scratch) {
    element<T> *m = static_cast<element<T> *>(scratch);
    const int width = int(ad_factor_width(n));
    ad_factor_stack in = *a, to = *out;
    if (upper) std::swap(in.row, in.column), std::swap(to.row, to.column);
    load(m, width, 0, in, n, n);
    for (int i = 0; upper && i < n * width; i++) m[i] = m[i].conj();
    if (!factor_cholesky(m, n, width)) return false;
    for (int i = 0; i < n; i++)
        for (int j = i + 1; j < n; j++) m[i * width + j] = element<T>::repeat_number(0);
    for (int i = 0; upper && i < n * width; i++) m[i] = m[i].conj();
    store(m, width, 0, to, count, n, n);
    return true;
}

/* ---- elimination ---- */

/* The row of each lane's pivot for column k. */
template <class T> bool find_pivots(const element<T> *a, int n, int width, int k, integers<real_t<T>> *row) {
    using R = real_t<T>;
    vec<R> best = a[k * width + k].size();
    *row = integers<R>{} + k;
    for (int i = k + 1; i < n; i++) {
        const vec<R> size = a[i * width + k].size();
        const auto larger = size > best;
        best = larger ? size : best;
        *row = larger ? integers<R>{} + i : *row;
    }
    return are_pivots<R>(best);
}

/* Let row k change places with another one in each lane, from column k on. */
template <class T> void exchange_rows(element<T> *a, int columns, int width, int k, integers<real_t<T>> row) {
    for (int lane = 0; lane < LANES<real_t<T>>; lane++) {
        if (row[lane] == k) continue;
        element<T> *one = a + k * width, *other = a + int(row[lane]) * width;
        for (int j = k; j < columns; j++)
            for (size_t part = 0; part < sizeof(T) / sizeof(real_t<T>); part++)
                std::swap(numbers_of(one[j])[part][lane], numbers_of(other[j])[part][lane]);
    }
}

/* Eliminate what is below the diagonal of the first n columns, in all columns. The diagonal becomes its reciprocals.
 * take(pivots, exchanged) for each column. */
template <class T, class F> bool eliminate(element<T> *a, int n, int columns, int width, F take) {
    for (int k = 0; k < n; k++) {
        integers<real_t<T>> row;
        if (!find_pivots(a, n, width, k, &row)) return false;
        exchange_rows(a, columns, width, k, row);
        take(a[k * width + k], row != k);
        const element<T> inverse = a[k * width + k] = a[k * width + k].inverse();
        for (int i = k + 1; i < n; i++) {
            const element<T> factor = a[i * width + k] * inverse;
            for (int j = k + 1; j < columns; j++) a[i * width + j].subtract(factor, a[k * width + j]);
        }
    }
    return true;
}

/* ---- solve ---- */

/* Replace the columns behind the first n by the solution. */
template <class T> void substitute(element<T> *a, int n, int columns, int width) {
    for (int i = n - 1; i >= 0; i--)
        for (int j = n; j < columns; j++) {
            element<T> sum = a[i * width + j];
            for (int k = i + 1; k < n; k++) sum.subtract(a[i * width + k], a[k * width + j]);
            a[i * width + j] = sum * a[i * width + i];
        }
}

template <class T> bool solve(const ad_factor_stack *a, const ad_factor_stack *b, const ad_factor_stack *out, int count,
                              int n, int k, void *scratch) {
    element<T> *m = static_cast<element<T> *>(scratch);
    const int columns = n + k, width = int(ad_factor_width(columns));
    load(m, width, 0, *a, n, n);
    if (b) load(m, width, n, *b, n, k);
    else
        for (int i = 0; i < n; i++)
            for (int j = 0; j < k; j++) m[i * width + n + j] = element<T>::repeat_number(i == j);
    if (!eliminate(m, n, columns, width, [](element<T>, integers<real_t<T>>) {})) return false;
    substitute(m, n, columns, width);
    store(m, width, n, *out, count, n, k);
    return true;
}

/* ---- slogdet ---- */

/* Products of pivots: numbers whose size is between 1 and 2, and powers of two. One logarithm at the end does then. */
template <class T> struct product {
    using R = real_t<T>;
    static constexpr int FRACTION = sizeof(R) == 4 ? 23 : 52, BIAS = sizeof(R) == 4 ? 127 : 1023;
    element<T> value = element<T>::repeat_number(1);
    integers<R> power = {};

    void take(element<T> pivot, integers<R> exchanged) {
        value = value * pivot;
        const integers<R> exponent = (integers<R>(value.size()) >> FRACTION) - BIAS;
        const vec<R> sign = exchanged ? vec<R>{} - 1 : vec<R>{} + 1;
        value.scale(sign * vec<R>((BIAS - exponent) << FRACTION));
        power += exponent;
    }
    void store(int lane, T *sign, R *size) {
        const T v = take_lane(value, lane);
        double length;
        if constexpr (is_complex<T>) length = sqrt(double(v.re) * double(v.re) + double(v.im) * double(v.im));
        else length = fabs(double(v));
        if constexpr (is_complex<T>) *sign = {R(double(v.re) / length), R(double(v.im) / length)};
        else *sign = v < 0 ? R(-1) : R(1);
        const bool large = length > 1.5; /* so that the logarithm of a product near 1 is precise */
        *size = R(log(large ? length / 2 : length) + double(power[lane] + large) * 0x1.62e42fefa39efp-1);
    }
};

template <class T> bool slogdet(const ad_factor_stack *a, void *sign, void *size, int count, int n, void *scratch) {
    using R = real_t<T>;
    element<T> *m = static_cast<element<T> *>(scratch);
    const int width = int(ad_factor_width(n));
    product<T> all;
    load(m, width, 0, *a, n, n);
    if (!eliminate(m, n, n, width, [&](element<T> pivot, integers<R> exchanged) { all.take(pivot, exchanged); }))
        return false;
    for (int lane = 0; lane < count; lane++)
        all.store(lane, static_cast<T *>(sign) + lane, static_cast<R *>(size) + lane);
    return true;
}

template <class T> constexpr ad_factor_kernel kernel = {LANES<real_t<T>>, cholesky<T>, solve<T>, slogdet<T>};

} // namespace

extern const ad_factor_kernel factor_kernels[AD_NDTYPE];
const ad_factor_kernel factor_kernels[AD_NDTYPE] = {
#define AD_DTYPE(id, NAME, name, size, kind, letter)       \
    AD_##NAME == AD_FLOAT32      ? kernel<float>           \
    : AD_##NAME == AD_FLOAT64    ? kernel<double>          \
    : AD_##NAME == AD_COMPLEX64  ? kernel<complex<float>>  \
    : AD_##NAME == AD_COMPLEX128 ? kernel<complex<double>> \
                                 : ad_factor_kernel{},
#include "protocol/dtype.def"
#undef AD_DTYPE
};

} // namespace AD_ISA
} // namespace ad
