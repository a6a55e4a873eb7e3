/* Fourier transforms against the sum that defines them. */
#include "kernels_call.h"
#include "protocol/rows_call.h"

#include <complex>

namespace {

using namespace ad;

typedef std::complex<double> value;

std::mt19937_64 random_bits(7);

double noise() { return double(random_bits() % 2001) / 1000 - 1; }

template <class S> nd<S> numbers(const dims &shape, int layout) {
    nd<S> x = laid_out<S>(shape, layout);
    for (int64_t i = 0; i < x.size(); i++)
        if constexpr (is_complex<S>) x[i] = S(real_t<S>(noise()), real_t<S>(noise()));
        else x[i] = S(noise());
    return x;
}

template <class S> std::vector<value> values(const nd<S> &x) {
    std::vector<value> v(size_t(x.size()));
    for (int64_t i = 0; i < x.size(); i++)
        if constexpr (is_complex<S>) v[size_t(i)] = value(double(x[i].re), double(x[i].im));
        else v[size_t(i)] = double(x[i]);
    return v;
}

/* Of every line along an axis of row-major v, make `out` frequencies of what is taken for n points. A half of them
 * implies the other, and then parts that cannot be are left out. */
std::vector<value> sums(const std::vector<value> &v, dims shape, size_t axis, int64_t n, int64_t out, int direction,
                        bool half) {
    int64_t outer = 1, inner = 1;
    for (size_t i = 0; i < axis; i++) outer *= shape[i];
    for (size_t i = axis + 1; i < shape.size(); i++) inner *= shape[i];
    const int64_t in = shape[axis];
    std::vector<value> r(size_t(outer * out * inner));
    for (int64_t i = 0; i < outer * inner; i++) {
        const int64_t at = i / inner * in * inner + i % inner, to = i / inner * out * inner + i % inner;
        for (int64_t k = 0; k < out; k++) {
            value sum = 0;
            for (int64_t j = 0; j < n; j++) {
                const bool mirrored = half && j > n / 2;
                value x = v[size_t(at + (mirrored ? n - j : j) * inner)];
                if (mirrored) x = std::conj(x);
                if (half && j * 2 % n == 0) x = x.real();
                sum += x * std::polar(1.0, direction * 2 * M_PI * double(j * k % n) / double(n));
            }
            r[size_t(to + k * inner)] = sum;
        }
    }
    return r;
}

template <class S> void check(const std::vector<value> &want, double factor, const nd<S> &out, const char *what) {
    const double limit = (same<real_t<S>, float> ? 1e-5 : 1e-13) * double(out.size());
    const std::vector<value> is = values(out);
    for (size_t i = 0; i < want.size(); i++)
        cr_assert(std::abs(is[i] - want[i] * factor) < limit, "%s: element %zu: %g %g, not %g %g", what, i,
                  is[i].real(), is[i].imag(), want[i].real() * factor, want[i].imag() * factor);
}

template <class R> void check_axis(host &h, const dims &shape, size_t axis, int layouts) {
    using C = complex<R>;
    const int loop = dtype_of<C>::value;
    const int64_t n = shape[axis];
    dims half = shape;
    half[axis] = n / 2 + 1;
    nd<C> x = numbers<C>(shape, layouts % 4), out = laid_out<C>(shape, layouts / 4);
    ASSERT_OK(h.call(AD_CALL_fft, loop, {out}, {x}, {integer(1 << axis), integer(-1), number(1)}));
    check(sums(values(x), shape, axis, n, n, -1, false), 1, out, "fft");
    ASSERT_OK(h.call(AD_CALL_fft, loop, {out}, {x}, {integer(1 << axis), integer(1), number(0.5)}));
    check(sums(values(x), shape, axis, n, n, 1, false), 0.5, out, "inverse");
    nd<R> real = numbers<R>(shape, layouts % 4), real_out = laid_out<R>(shape, layouts / 4);
    nd<C> some = laid_out<C>(half, layouts / 4), from = numbers<C>(half, layouts % 4);
    ASSERT_OK(h.call(AD_CALL_fft, loop, {out}, {real}, {integer(1 << axis), integer(1), number(0.5)}));
    check(sums(values(real), shape, axis, n, n, 1, false), 0.5, out, "inverse of real numbers");
    ASSERT_OK(h.call(AD_CALL_rfft, loop, {some}, {real}, {integer(int64_t(axis)), integer(0), integer(2)}));
    check(sums(values(real), shape, axis, n, n / 2 + 1, -1, false), 2, some, "rfft");
    const std::vector<value> before = values(from);
    ASSERT_OK(
        h.call(AD_CALL_irfft, loop, {real_out}, {from}, {integer(int64_t(axis)), integer(0), integer(n), number(3)}));
    check(sums(before, half, axis, n, n, 1, true), 3, real_out, "irfft");
    cr_assert(values(from) == before, "irfft changed its input");
}

} // namespace

Test(kernels_call, fft_every_layout) {
    host h;
    for (int layouts = 0; layouts < 16; layouts++)
        for (const dims &shape : {dims{1}, dims{2}, dims{5}, dims{16}, dims{3, 4}, dims{7, 1, 6}, dims{4, 5, 3}})
            for (size_t axis = 0; axis < shape.size(); axis++) {
                check_axis<float>(h, shape, axis, layouts);
                check_axis<double>(h, shape, axis, layouts);
            }
}

Test(kernels_call, fft_several_axes) {
    host h(4);
    const dims shape = {6, 5, 8}, half = {6, 3, 8};
    nd<double> x = numbers<double>(shape, 1), back(shape);
    nd<complex<double>> out(half);
    ASSERT_OK(h.call(AD_CALL_rfft, AD_COMPLEX128, {out}, {x}, {integer(1), integer(5), number(1)}));
    std::vector<value> want = sums(values(x), shape, 1, 5, 3, -1, false);
    want = sums(sums(want, half, 0, 6, 6, -1, false), half, 2, 8, 8, -1, false);
    check(want, 1, out, "rfft");
    ASSERT_OK(
        h.call(AD_CALL_irfft, AD_COMPLEX128, {back}, {out}, {integer(1), integer(5), integer(5), number(1.0 / 240)}));
    check(values(x), 1, back, "irfft");
}

/* The second half of the frequencies is the first, mirrored along all the axes of the transform. */
Test(kernels_call, fft_of_real_numbers) {
    host h(4);
    const dims shape = {6, 5, 1, 4};
    for (int layouts = 0; layouts < 16; layouts++)
        for (int64_t mask = 0; mask < 16; mask++) {
            nd<double> x = numbers<double>(shape, layouts % 4);
            nd<complex<double>> out = laid_out<complex<double>>(shape, layouts / 4);
            ASSERT_OK(h.call(AD_CALL_fft, AD_COMPLEX128, {out}, {x}, {integer(mask), integer(-1), number(2)}));
            std::vector<value> want = values(x);
            for (size_t axis = 0; axis < shape.size(); axis++)
                if (mask >> axis & 1) want = sums(want, shape, axis, shape[axis], shape[axis], -1, false);
            check(want, 2, out, "fft of real numbers");
        }
}

/* More plans than are kept, and lines enough for several threads and groups. */
Test(kernels_call, fft_many_plans) {
    host h(4);
    for (int64_t n = 2; n < 100; n++) {
        nd<complex<float>> x = numbers<complex<float>>({n * 7, n}, 0), out({n * 7, n});
        ASSERT_OK(h.call(AD_CALL_fft, AD_COMPLEX64, {out}, {x}, {integer(2), integer(-1), number(1)}));
        if (n % 13 == 0) check(sums(values(x), x.shape, 1, n, n, -1, false), 1, out, "fft");
    }
}

Test(kernels_call, fft_no_memory) {
    host h;
    nd<complex<double>> x = numbers<complex<double>>({4, 3}, 0);
    nd<double> out({4, 4});
    h.run.allowed = 0;
    cr_assert_eq(h.call(AD_CALL_irfft, AD_COMPLEX128, {out}, {x}, {integer(1), integer(1), integer(4), number(1)}),
                 AD_E_MEMORY);
}
