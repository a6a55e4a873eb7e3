/* nonzero, compress, place and bincount against loops over every element. */
#include "kernels_call.h"
#include "protocol/rows_call.h"

namespace {

using namespace ad;

std::mt19937_64 random_bits(3);

nd<bool8> random_mask(const dims &shape, int layout, int percent) {
    nd<bool8> m = laid_out<bool8>(shape, layout);
    for (int64_t i = 0; i < m.size(); i++) m[i].bits = int(random_bits() % 100) < percent ? uint8_t(1 + i % 255) : 0;
    return m;
}

template <class S> void count_up(const nd<S> &a) {
    for (int64_t i = 0; i < a.size(); i++) a[i] = cast<S>(i + 1);
}

/* Elements of x where the mask, of its first axes, is true. */
template <class S> std::vector<S> selected(const nd<S> &x, const nd<bool8> &m) {
    std::vector<S> r;
    const int64_t inner = m.size() > 0 ? x.size() / m.size() : 0;
    for (int64_t i = 0; i < x.size(); i++)
        if (m[i / inner]) r.push_back(x[i]);
    return r;
}

template <class S> void check_compress(host &h, const dims &shape, size_t axes, int layout, int percent) {
    nd<S> x = laid_out<S>(shape, layout);
    count_up(x);
    nd<bool8> m = random_mask(dims(shape.begin(), shape.begin() + int64_t(axes)), (layout + 1) % 4, percent);
    std::vector<S> want = selected(x, m);
    ASSERT_OK(h.call(AD_CALL_compress, dtype_of<S>::value, {arg::sized(dtype_of<S>::value)}, {x, m}));
    int64_t inner = 1, n = 0;
    for (size_t i = axes; i < shape.size(); i++) inner *= shape[i];
    for (int64_t i = 0; i < m.size(); i++) n += bool(m[i]);
    cr_assert_eq(h.run.nvalues, 1);
    cr_assert_eq(h.run.reply[0], n);
    cr_assert_eq(h.run.sized.size(), size_t(n * inner) * sizeof(S) + 16);
    for (size_t i = 0; i < want.size(); i++)
        cr_assert_eq(memcmp(h.run.sized.data() + i * sizeof(S), &want[i], sizeof(S)), 0);
}

template <class S> void check_place(host &h, const dims &shape, size_t axes, int layout, int percent) {
    nd<S> x = laid_out<S>(shape, layout);
    count_up(x);
    nd<bool8> m = random_mask(dims(shape.begin(), shape.begin() + int64_t(axes)), (layout + 1) % 4, percent);
    dims v_shape(shape.begin() + int64_t(axes) - 1, shape.end());
    v_shape[0] = 0;
    for (int64_t i = 0; i < m.size(); i++) v_shape[0] += bool(m[i]);
    nd<S> v = laid_out<S>(v_shape, (layout + 2) % 4), want = x.copy();
    for (int64_t i = 0; i < v.size(); i++) v[i] = cast<S>(-i);
    const int64_t inner = m.size() > 0 ? x.size() / m.size() : 0;
    for (int64_t i = 0, next = 0; i < x.size(); i++)
        if (m[i / inner]) want[i] = v[next++];
    ASSERT_OK(h.call(AD_CALL_place, dtype_of<S>::value, {x}, {m, v}));
    for (int64_t i = 0; i < x.size(); i++) cr_assert_eq(memcmp(&x[i], &want[i], sizeof(S)), 0);
}

} // namespace

Test(kernels_call, compress) {
    host h;
    for (int layout = 0; layout < 4; layout++)
        for (int percent : {0, 3, 50, 100}) {
            check_compress<int8_t>(h, {1000}, 1, layout, percent);
            check_compress<float>(h, {50000}, 1, layout, percent);
            check_compress<double>(h, {20, 30}, 2, layout, percent);
            check_compress<complex<double>>(h, {20, 3, 5}, 1, layout, percent);
            check_compress<half>(h, {7, 5, 3}, 2, layout, percent);
            check_compress<int32_t>(h, {0, 3}, 1, layout, percent);
            check_compress<int32_t>(h, {5}, 0, layout, percent);
            check_compress<int32_t>(h, {}, 0, layout, percent);
        }
}

Test(kernels_call, place) {
    host h;
    for (int layout = 0; layout < 4; layout++)
        for (int percent : {0, 3, 50, 100}) {
            check_place<int8_t>(h, {1000}, 1, layout, percent);
            check_place<float>(h, {50000}, 1, layout, percent);
            check_place<double>(h, {20, 30}, 2, layout, percent);
            check_place<int16_t>(h, {20, 3, 5}, 1, layout, percent);
            check_place<int32_t>(h, {0, 3}, 1, layout, percent);
        }
}

Test(kernels_call, place_counts_first) {
    host h;
    nd<int32_t> x({4}), v({3});
    nd<bool8> m({4});
    count_up(x);
    m[1].bits = m[2].bits = 1;
    cr_assert_eq(h.call(AD_CALL_place, AD_INT32, {x}, {m, v}), AD_E_VALUE);
    cr_assert_not(h.run.wrote);
    for (int64_t i = 0; i < 4; i++) cr_assert_eq(x[i], i + 1);
}

Test(kernels_call, nonzero) {
    host h;
    for (int layout = 0; layout < 4; layout++)
        for (const dims &shape : {dims{}, dims{0}, dims{40000}, dims{7, 11}, dims{30, 1, 20}}) {
            nd<float> x = laid_out<float>(shape, layout);
            std::vector<dims> want;
            for (int64_t i = 0; i < x.size(); i++) {
                x[i] = random_bits() % 3 == 0 ? 0.5f : -0.0f;
                if (x[i] == 0) continue;
                dims at(shape.size());
                int64_t rest = i;
                for (size_t d = shape.size(); d-- > 0; rest /= shape[d]) at[d] = rest % shape[d];
                want.push_back(at);
            }
            ASSERT_OK(h.call(AD_CALL_nonzero, AD_FLOAT32, {arg::sized(AD_INT64)}, {x}));
            cr_assert_eq(h.run.reply[0], int64_t(want.size()));
            cr_assert_eq(h.run.sized.size(), want.size() * shape.size() * 8 + 16);
            const int64_t *got = reinterpret_cast<const int64_t *>(h.run.sized.data());
            for (size_t d = 0; d < shape.size(); d++)
                for (size_t i = 0; i < want.size(); i++) cr_assert_eq(got[d * want.size() + i], want[i][d]);
        }
}

Test(kernels_call, bincount) {
    host h;
    for (int layout = 0; layout < 4; layout++)
        for (int64_t n : {0, 1, 1000, 200000}) {
            nd<int64_t> x = laid_out<int64_t>({n}, layout), out = laid_out<int64_t>({37}, layout);
            nd<double> weight = laid_out<double>({n}, layout), sum = laid_out<double>({37}, layout);
            std::vector<int64_t> counts(37);
            std::vector<double> sums(37);
            for (int64_t i = 0; i < n; i++) {
                x[i] = int64_t(random_bits() % 37), weight[i] = double(random_bits() % 1000) / 7;
                counts[size_t(x[i])]++, sums[size_t(x[i])] += weight[i];
            }
            ASSERT_OK(h.call(AD_CALL_bincount, AD_INT64, {out}, {x}));
            ASSERT_OK(h.call(AD_CALL_bincount, AD_FLOAT64, {sum}, {x, weight}));
            for (int64_t b = 0; b < 37; b++) {
                cr_assert_eq(out[b], counts[size_t(b)]);
                cr_assert_eq(sum[b], sums[size_t(b)]);
            }
        }
}

Test(kernels_call, bincount_checks_first) {
    host h;
    nd<int64_t> x({3}), out({2});
    out[0] = 5;
    x[2] = -1;
    cr_assert_eq(h.call(AD_CALL_bincount, AD_INT64, {out}, {x}), AD_E_VALUE);
    cr_assert_str_eq(h.fault.text, "'list' argument must have no negative elements");
    x[2] = 2;
    cr_assert_eq(h.call(AD_CALL_bincount, AD_INT64, {out}, {x}), AD_E_VALUE);
    cr_assert_not(h.run.wrote);
    cr_assert_eq(out[0], 5);
}
