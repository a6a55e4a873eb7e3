/* gather, scatter, iota against loops over every element. */
#include "kernels_call.h"
#include "protocol/rows_call.h"

namespace {

using namespace ad;

std::mt19937_64 random_bits(2);

int64_t below(int64_t n) { return int64_t(random_bits() % uint64_t(n)); }

nd<int64_t> indices(const dims &shape, int64_t size, int layout) {
    nd<int64_t> r = laid_out<int64_t>(shape, layout);
    for (int64_t i = 0; i < r.size(); i++) r[i] = below(2 * size) - size;
    return r;
}

template <class S> void count_up(const nd<S> &a) {
    for (int64_t i = 0; i < a.size(); i++) a[i] = cast<S>(i + 1);
}

/* Place in x that the i-th block's j-th element comes from. */
dims place_of(const dims &x_shape, const std::vector<nd<int64_t>> &index, int64_t i, int64_t j) {
    dims at(x_shape.size());
    for (size_t a = 0; a < index.size(); a++) at[a] = index[a][i] < 0 ? index[a][i] + x_shape[a] : index[a][i];
    for (size_t d = x_shape.size(); d-- > index.size(); j /= x_shape[d]) at[d] = j % x_shape[d];
    return at;
}

dims result_shape(const dims &x, const dims &b, size_t k) {
    dims r = b;
    r.insert(r.end(), x.begin() + int64_t(k), x.end());
    return r;
}

std::vector<arg> with(arg first, const std::vector<nd<int64_t>> &index) {
    std::vector<arg> r{first};
    r.insert(r.end(), index.begin(), index.end());
    return r;
}

template <class S> void check_gather(host &h, const dims &shape, const dims &b, size_t k, int layout) {
    nd<S> x = laid_out<S>(shape, layout);
    count_up(x);
    std::vector<nd<int64_t>> index;
    for (size_t a = 0; a < k; a++) index.push_back(indices(b, shape[a], (layout + int(a)) % 4));
    nd<S> out = laid_out<S>(result_shape(shape, b, k), (layout + 1) % 4);
    ASSERT_OK(h.call(AD_CALL_gather, dtype_of<S>::value, {out}, with(x, index)));
    const int64_t blocks = index[0].size(), inner = blocks > 0 ? out.size() / blocks : 0;
    for (int64_t i = 0; i < blocks * inner; i++)
        cr_assert_eq(memcmp(&out[i], &x.at(place_of(shape, index, i / inner, i % inner)), sizeof(S)), 0);
}

template <class S> S combined(int mode, S old, S v) {
    switch (mode) {
    case 0: return v;
    case 1: return S(old + v);
    case 2: return old > v ? old : v;
    default: return old < v ? old : v;
    }
}

template <class S> void check_scatter(host &h, const dims &shape, const dims &b, size_t k, int layout, int mode) {
    nd<S> x = laid_out<S>(shape, layout);
    count_up(x);
    nd<S> want = x.copy(), v = laid_out<S>(result_shape(shape, b, k), (layout + 2) % 4);
    for (int64_t i = 0; i < v.size(); i++) v[i] = S(below(100));
    std::vector<nd<int64_t>> index;
    for (size_t a = 0; a < k; a++) index.push_back(indices(b, shape[a], (layout + int(a)) % 4));
    const int64_t blocks = index[0].size(), inner = blocks > 0 ? v.size() / blocks : 0;
    for (int64_t i = 0; i < blocks * inner; i++) {
        S &to = want.at(place_of(shape, index, i / inner, i % inner));
        to = combined(mode, to, v[i]);
    }
    ASSERT_OK(h.call(AD_CALL_scatter, dtype_of<S>::value, {x}, with(v, index), {integer(mode)}));
    for (int64_t i = 0; i < x.size(); i++) cr_assert_eq(x[i], want[i], "mode %d, element %ld", mode, long(i));
}

} // namespace

Test(kernels_call, gather) {
    host h;
    for (int layout = 0; layout < 4; layout++) {
        check_gather<int8_t>(h, {50}, {7}, 1, layout);
        check_gather<half>(h, {5, 6}, {2, 3}, 2, layout);
        check_gather<float>(h, {5, 6, 7}, {40}, 1, layout);
        check_gather<double>(h, {5, 6, 7}, {3, 4, 2}, 2, layout);
        check_gather<complex<double>>(h, {4, 3}, {30}, 1, layout);
        check_gather<int32_t>(h, {9, 5}, {}, 1, layout);
        check_gather<int32_t>(h, {9, 5}, {0, 3}, 1, layout);
        check_gather<int64_t>(h, {1000}, {70000}, 1, layout);
        check_gather<int16_t>(h, {3, 70000}, {5}, 1, layout);
    }
}

Test(kernels_call, gather_converts) {
    host h;
    nd<int16_t> x({4});
    nd<double> out({2});
    nd<int64_t> i({2});
    count_up(x);
    i[0] = 3, i[1] = -4;
    ASSERT_OK(h.call(AD_CALL_gather, AD_INT16, {out}, {x, i}));
    cr_assert_eq(out[0], 4);
    cr_assert_eq(out[1], 1);
}

Test(kernels_call, scatter) {
    host h;
    for (int layout = 0; layout < 4; layout++)
        for (int mode = 0; mode < 4; mode++) {
            check_scatter<int32_t>(h, {20}, {100}, 1, layout, mode);
            check_scatter<double>(h, {5, 6}, {4, 9}, 2, layout, mode);
            check_scatter<float>(h, {5, 6, 7}, {9}, 1, layout, mode);
            check_scatter<uint8_t>(h, {5, 6}, {}, 1, layout, mode);
            check_scatter<int64_t>(h, {3, 40000}, {4}, 1, layout, mode);
        }
}

Test(kernels_call, scatter_broadcasts_and_converts) {
    host h;
    nd<float> x({3, 4});
    nd<int64_t> i({2});
    nd<int8_t> v({4});
    i[0] = 0, i[1] = 2;
    count_up(v);
    ASSERT_OK(h.call(AD_CALL_scatter, AD_FLOAT32, {x}, {v, i}, {integer(0)}));
    ASSERT_OK(h.call(AD_CALL_scatter, AD_FLOAT32, {x}, {number(0.5), i}, {integer(1)}));
    cr_assert(h.run.wrote);
    for (int64_t k = 0; k < 12; k++) cr_assert_float_eq(x[k], k / 4 == 1 ? 0 : float(k % 4) + 1.5f, 0);
}

Test(kernels_call, index_out_of_bounds) {
    host h;
    nd<int32_t> x({4, 3}), out({2});
    nd<int64_t> i({2}), j({2});
    count_up(x);
    j[1] = 10;
    cr_assert_eq(h.call(AD_CALL_gather, AD_INT32, {out}, {x, i, j}), AD_E_INDEX);
    cr_assert_str_eq(h.fault.text, "index 10 is out of bounds for axis 1 with size 3");
    cr_assert_not(h.run.wrote);
    i[0] = -5;
    cr_assert_eq(h.call(AD_CALL_scatter, AD_INT32, {x}, {out, i, j}, {integer(0)}), AD_E_INDEX);
    cr_assert_str_eq(h.fault.text, "index -5 is out of bounds for axis 0 with size 4");
    cr_assert_not(h.run.wrote);
    for (int64_t k = 0; k < 12; k++) cr_assert_eq(x[k], k + 1);
    nd<int64_t> many({100000});
    many[99999] = INT64_MIN, many[60000] = INT64_MAX;
    nd<int32_t> big({100000, 3});
    cr_assert_eq(h.call(AD_CALL_gather, AD_INT32, {big}, {x, many}), AD_E_INDEX);
    cr_assert_str_eq(h.fault.text, "index 9223372036854775807 is out of bounds for axis 0 with size 4");
}

/* Sizes up to the largest that there is: sums with them, and twice them, are beyond int64. */
Test(kernels_call, index_of_an_axis_without_end) {
    host h;
    nd<int8_t> x({1}), out({3});
    nd<int64_t> i({3});
    x[0] = 5;
    for (int64_t size : {int64_t(1) << 61, (int64_t(1) << 62) - 1, (int64_t(1) << 62) + 1, INT64_MAX}) {
        const nd<int8_t> wide = x.repeated(0, size);
        i[0] = size - 1, i[1] = -size, i[2] = 2;
        ASSERT_OK(h.call(AD_CALL_gather, AD_INT8, {out}, {wide, i}));
        for (int64_t k = 0; k < 3; k++) cr_assert_eq(out[k], 5);
        for (int64_t bad : {-size - 1, size == INT64_MAX ? INT64_MIN : size, INT64_MIN}) {
            i[1] = bad;
            cr_assert_eq(h.call(AD_CALL_gather, AD_INT8, {out}, {wide, i}), AD_E_INDEX, "%ld of %ld", bad, size);
            const std::string text = "index " + std::to_string(bad) + " is out of bounds for axis 0 with size ";
            cr_assert_eq(std::string(h.fault.text), text + std::to_string(size));
        }
    }
}

Test(kernels_call, iota) {
    host h;
    for (int layout = 0; layout < 4; layout++)
        for (int64_t n : {0, 1, 5, 70000}) {
            nd<int32_t> a = laid_out<int32_t>({n}, layout);
            nd<float> f = laid_out<float>({n}, layout);
            nd<complex<double>> z = laid_out<complex<double>>({n}, layout);
            ASSERT_OK(h.call(AD_CALL_iota, AD_INT32, {a}, {}, {integer(-7), integer(3)}));
            ASSERT_OK(h.call(AD_CALL_iota, AD_FLOAT32, {f}, {}, {number(0.5), number(0.25)}));
            ASSERT_OK(h.call(AD_CALL_iota, AD_COMPLEX128, {z}, {}, {number(1), number(-2)}));
            for (int64_t i = 0; i < n; i++) {
                cr_assert_eq(a[i], -7 + 3 * i);
                cr_assert_eq(f[i], 0.5f + float(i) * 0.25f);
                cr_assert_eq(z[i].re, 1.0 - 2.0 * double(i));
            }
        }
    nd<uint8_t> u({300});
    ASSERT_OK(h.call(AD_CALL_iota, AD_UINT8, {u}, {}, {integer(250), integer(1)}));
    for (int64_t i = 0; i < 300; i++) cr_assert_eq(u[i], uint8_t(250 + i));
    nd<int64_t> wide({3});
    ASSERT_OK(h.call(AD_CALL_iota, AD_INT64, {wide}, {}, {integer(INT64_MAX - 2), integer(1)}));
    cr_assert_eq(wide[2], INT64_MAX);
}
