/* Running sums and products against the loop that defines them. */
#include <math.h>

#include "kernels_call.h"
#include "protocol/rows_call.h"

namespace {

using namespace ad;

std::mt19937_64 random_bits(5);

/* How far apart elements of a lane are, in row-major numbers. */
int64_t step_of(const dims &shape, size_t axis) {
    int64_t step = 1;
    for (size_t d = axis + 1; d < shape.size(); d++) step *= shape[d];
    return step;
}

template <class S, class In> void check_scan(host &h, int row, const nd<In> &x, size_t axis, int layout) {
    using C = compute_t<S>;
    const bool product = row == AD_CALL_cumprod || row == AD_CALL_nancumprod;
    const bool skip = row == AD_CALL_nancumsum || row == AD_CALL_nancumprod;
    nd<S> out = laid_out<S>(x.shape, layout), want(x.shape);
    ASSERT_OK(h.call(row, dtype_of<S>::value, {out}, {x}, {integer(int64_t(axis))}));
    const int64_t step = step_of(x.shape, axis);
    for (int64_t i = 0; i < x.size(); i++) {
        C v = C(cast<S>(x[i]));
        if (skip && v != v) v = C(product);
        if (i / step % x.shape[axis] > 0) v = product ? C(want[i - step]) * v : C(want[i - step]) + v;
        want[i] = cast<S>(v);
        cr_assert(memcmp(&out[i], &want[i], sizeof(S)) == 0 || (want[i] != want[i] && out[i] != out[i]),
                  "row %d dtype %d element %ld", row, dtype_of<S>::value, long(i));
    }
}

template <class In> nd<In> numbers(const dims &shape, int layout) {
    nd<In> x = laid_out<In>(shape, layout);
    for (int64_t i = 0; i < x.size(); i++) x[i] = cast<In>(int64_t(random_bits() % 7) - 3);
    return x;
}

template <class S, class In> void check_scans(host &h) {
    for (int layout = 0; layout < 4; layout++)
        for (int row : {AD_CALL_cumsum, AD_CALL_cumprod, AD_CALL_nancumsum, AD_CALL_nancumprod}) {
            check_scan<S>(h, row, numbers<In>({5}, layout), 0, layout);
            check_scan<S>(h, row, numbers<In>({4, 300}, layout), 0, (layout + 1) % 4);
            check_scan<S>(h, row, numbers<In>({3, 4, 5}, layout), 1, (layout + 2) % 4);
            check_scan<S>(h, row, numbers<In>({2, 1100}, layout), 1, (layout + 3) % 4);
            check_scan<S>(h, row, numbers<In>({0, 3}, layout), 0, layout);
        }
}

} // namespace

Test(kernels_call, scan_types) {
    host h;
    check_scans<int64_t, int8_t>(h);
    check_scans<uint64_t, bool8>(h);
    check_scans<half, half>(h);
    check_scans<bfloat16, float>(h);
    check_scans<float, float>(h);
    check_scans<double, int32_t>(h);
    check_scans<complex<float>, complex<float>>(h);
    check_scans<complex<double>, double>(h);
}

Test(kernels_call, scan_nan_and_signs) {
    host h;
    nd<double> x({6});
    const double values[] = {-0.0, -0.0, NAN, 3, INFINITY, -INFINITY};
    for (int64_t i = 0; i < 6; i++) x[i] = values[i];
    for (int row : {AD_CALL_cumsum, AD_CALL_cumprod, AD_CALL_nancumsum, AD_CALL_nancumprod})
        check_scan<double>(h, row, x, 0, 0);
}

/* Long enough to be divided: exact for integers, but for rounding with floats. */
Test(kernels_call, scan_long) {
    host h;
    check_scan<int64_t>(h, AD_CALL_cumsum, numbers<int64_t>({150001}, 2), 0, 0);
    check_scan<uint64_t>(h, AD_CALL_cumprod, numbers<uint16_t>({140000}, 0), 0, 3);
    nd<float> x = numbers<float>({200000}, 0), out({200000});
    double sum = 0;
    for (int64_t i = 0; i < x.size(); i++) x[i] += 0.37f;
    ASSERT_OK(h.call(AD_CALL_cumsum, AD_FLOAT32, {out}, {x}, {integer(0)}));
    for (int64_t i = 0; i < x.size(); i++) {
        sum += double(x[i]);
        cr_assert_lt(fabs(double(out[i]) - sum), 1 + fabs(sum) * 1e-3);
    }
}

/* What overflows on the way stays so, as it does one element after another. */
Test(kernels_call, scan_long_overflow) {
    host h;
    for (int64_t at : {5, 100000, 199999}) {
        nd<double> x({200000});
        x[at] = 1.7e308;
        if (at + 2 < 200000) x[at + 1] = 1e308, x[at + 2] = -1e308;
        check_scan<double>(h, AD_CALL_cumsum, x, 0, 0);
    }
    nd<double> x({200000});
    x[10] = -1.7e308, x[5000] = 1.5e308, x[5001] = 1.5e308;
    check_scan<double>(h, AD_CALL_cumsum, x, 0, 0);
}
