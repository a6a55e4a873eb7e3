/* sort, argsort, sort_places, searchsorted, merge and merge_pairs against std::stable_sort and the like, with an order
 * written anew here. */
#include <algorithm>
#include <math.h>
#include <numeric>

#include "kernels_call.h"
#include "kernels_isa.h"
#include "protocol/rows_call.h"

namespace {

using namespace ad;

std::mt19937_64 random_bits(4);

template <class T> bool before(T a, T b) {
    using C = compute_t<T>;
    if constexpr (is_complex<T>) {
        int ka = (isnan(a.re) ? 2 : 0) + (isnan(a.im) ? 1 : 0), kb = (isnan(b.re) ? 2 : 0) + (isnan(b.im) ? 1 : 0);
        if (ka != kb) return ka < kb;
        if (!isnan(a.re) && a.re != b.re) return a.re < b.re;
        return !isnan(a.im) && a.im < b.im;
    } else if constexpr (is_float<C>) {
        C x = C(a), y = C(b);
        return !isnan(x) && (isnan(y) || x < y);
    } else return C(a) < C(b);
}

bool minus_zeros = true; /* among random numbers */

double random_real() {
    switch (random_bits() % 12) {
    case 0: return NAN;
    case 1: return INFINITY;
    case 2: return -INFINITY;
    case 3: return minus_zeros ? -0.0 : 0.0;
    case 4: return 0.0;
    case 5: return double(int64_t(random_bits() % 7) - 3);
    default: return double(int64_t(random_bits() % 200001) - 100000) / 64;
    }
}

template <class S> S random_value() {
    if constexpr (is_complex<S>) return S(real_t<S>(random_real()), real_t<S>(random_real()));
    else if constexpr (is_float<compute_t<S>>) return cast<S>(random_real());
    else if (random_bits() % 2) return cast<S>(int64_t(random_bits() % 9) - 4);
    else return cast<S>(int64_t(random_bits()));
}

template <class S> bool same_value(S a, S b) {
    if constexpr (is_complex<S>) return same_value(a.re, b.re) && same_value(a.im, b.im);
    else if constexpr (is_float<compute_t<S>>)
        return (isnan(double(a)) && isnan(double(b))) || memcmp(&a, &b, sizeof a) == 0;
    else return compute_t<S>(a) == compute_t<S>(b);
}

/* Lanes along `axis` of a shape, as lists of places. */
std::vector<std::vector<dims>> lanes_of(const dims &shape, size_t axis) {
    std::vector<std::vector<dims>> lanes;
    dims outer = shape;
    outer[axis] = 1;
    int64_t n = 1;
    for (int64_t s : outer) n *= s;
    for (int64_t i = 0; i < n; i++) {
        dims at(shape.size());
        int64_t rest = i;
        for (size_t d = shape.size(); d-- > 0; rest /= outer[d]) at[d] = rest % outer[d];
        lanes.emplace_back();
        for (int64_t k = 0; k < shape[axis]; k++) {
            at[axis] = k;
            lanes.back().push_back(at);
        }
    }
    return lanes;
}

template <class S> void check_sort(host &h, const dims &shape, size_t axis, int layout) {
    nd<S> x = laid_out<S>(shape, layout), out = laid_out<S>(shape, (layout + 1) % 4);
    nd<int64_t> order = laid_out<int64_t>(shape, (layout + 2) % 4);
    for (int64_t i = 0; i < x.size(); i++) x[i] = random_value<S>();
    ASSERT_OK(h.call(AD_CALL_sort, dtype_of<S>::value, {out}, {x}, {integer(int64_t(axis))}));
    ASSERT_OK(h.call(AD_CALL_argsort, dtype_of<S>::value, {order}, {x}, {integer(int64_t(axis))}));
    for (const std::vector<dims> &lane : lanes_of(shape, axis)) {
        std::vector<int64_t> want(lane.size());
        std::iota(want.begin(), want.end(), 0);
        std::stable_sort(want.begin(), want.end(),
                         [&](int64_t a, int64_t b) { return before(x.at(lane[size_t(a)]), x.at(lane[size_t(b)])); });
        for (size_t i = 0; i < lane.size(); i++) {
            cr_assert_eq(order.at(lane[i]), want[i], "dtype %d, layout %d", dtype_of<S>::value, layout);
            cr_assert(same_value(out.at(lane[i]), x.at(lane[size_t(want[i])])), "dtype %d", dtype_of<S>::value);
        }
    }
}

template <class S> void check_places(host &h, int64_t n, int layout) {
    nd<S> x = laid_out<S>({n}, layout), out = laid_out<S>({n}, (layout + 1) % 4);
    nd<int64_t> order = laid_out<int64_t>({n}, layout), places = laid_out<int64_t>({n}, (layout + 2) % 4);
    for (int64_t i = 0; i < n; i++) x[i] = random_value<S>();
    ASSERT_OK(h.call(AD_CALL_argsort, dtype_of<S>::value, {order}, {x}, {integer(0)}));
    ASSERT_OK(h.call(AD_CALL_sort_places, dtype_of<S>::value, {out, places}, {x}, {integer(7000000000)}));
    for (int64_t i = 0; i < n; i++) {
        cr_assert_eq(places[i], order[i] + 7000000000, "dtype %d, layout %d", dtype_of<S>::value, layout);
        cr_assert(same_value(out[i], x[order[i]]), "dtype %d, layout %d", dtype_of<S>::value, layout);
    }
}

template <class S> void check_sorts(host &h) {
    for (int layout = 0; layout < 4; layout++) {
        check_sort<S>(h, {40, 3}, 0, layout);
        check_sort<S>(h, {2, 3, 5}, 1, layout);
        check_sort<S>(h, {3, 900}, 1, layout);
        check_sort<S>(h, {0}, 0, layout);
        check_sort<S>(h, {4, 0}, 0, layout);
    }
    check_sort<S>(h, {1}, 0, 0);
}

template <class S> void check_search(host &h, int64_t n, int layout) {
    nd<S> x = laid_out<S>({n}, layout), v = laid_out<S>({5, 9}, layout);
    std::vector<S> sorted;
    sorted.resize(size_t(n));
    for (S &e : sorted) e = random_value<S>();
    std::stable_sort(sorted.begin(), sorted.end(), before<S>);
    for (int64_t i = 0; i < n; i++) x[i] = sorted[size_t(i)];
    for (int64_t i = 0; i < v.size(); i++) v[i] = random_value<S>();
    for (bool right : {false, true}) {
        nd<int64_t> out = laid_out<int64_t>({5, 9}, (layout + 1) % 4);
        ASSERT_OK(h.call(AD_CALL_searchsorted, dtype_of<S>::value, {out}, {x, v}, {boolean(right)}));
        for (int64_t i = 0; i < v.size(); i++) {
            auto at = right ? std::upper_bound(sorted.begin(), sorted.end(), v[i], before<S>)
                            : std::lower_bound(sorted.begin(), sorted.end(), v[i], before<S>);
            cr_assert_eq(out[i], at - sorted.begin(), "dtype %d, n %ld", dtype_of<S>::value, long(n));
        }
    }
}

template <class S> nd<S> random_sorted(int64_t n, int layout) {
    std::vector<S> values;
    values.resize(size_t(n));
    for (S &e : values) e = random_value<S>();
    std::stable_sort(values.begin(), values.end(), before<S>);
    nd<S> x = laid_out<S>({n}, layout);
    for (int64_t i = 0; i < n; i++) x[i] = values[size_t(i)];
    return x;
}

template <class S> void check_merge(host &h, int64_t na, int64_t nb, int layout) {
    nd<S> a = random_sorted<S>(na, layout), b = random_sorted<S>(nb, (layout + 1) % 4);
    nd<S> alone = laid_out<S>({na + nb}, (layout + 2) % 4), out = laid_out<S>({na + nb}, layout);
    nd<int64_t> a_places = laid_out<int64_t>({na}, layout), b_places({nb}),
                places = laid_out<int64_t>({na + nb}, layout);
    std::vector<S> want;
    for (int64_t i = 0; i < na; i++) a_places[i] = i, want.push_back(a[i]);
    for (int64_t i = 0; i < nb; i++) b_places[i] = na + i, want.push_back(b[i]);
    std::vector<int64_t> order(want.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(),
                     [&](int64_t i, int64_t j) { return before(want[size_t(i)], want[size_t(j)]); });
    ASSERT_OK(h.call(AD_CALL_merge, dtype_of<S>::value, {alone}, {a, b}, {}));
    ASSERT_OK(h.call(AD_CALL_merge_pairs, dtype_of<S>::value, {out, places}, {a, b, a_places, b_places}, {}));
    for (int64_t i = 0; i < na + nb; i++) {
        const int64_t from = order[size_t(i)];
        cr_assert_eq(places[i], from, "dtype %d, %ld and %ld", dtype_of<S>::value, long(na), long(nb));
        cr_assert(same_value(out[i], want[size_t(from)]) && same_value(alone[i], want[size_t(from)]), "dtype %d",
                  dtype_of<S>::value);
    }
}

} // namespace

Test(kernels_call, sort_every_type) {
    host h;
    for (int dtype = 0; dtype < AD_NDTYPE; dtype++)
        visit(dtype, [&](auto t) { check_sorts<typename decltype(t)::type>(h); });
}

/* Lanes that are sorted many at once: as many as a vector has, fewer and more, with and without what must not be. */
Test(kernels_call, sort_short) {
    host h;
    every_instruction_set([&] {
        for (int64_t n : {1, 2, 7, 16, 17, 40, 64, 100, 130, 257, 1000, 1024}) {
            minus_zeros = n % 2 == 0 && n < 100;
            for (int64_t lanes : {1, 5, 20, 67})
                for (int dtype = 0; dtype < AD_NDTYPE && n * lanes < 9000; dtype++)
                    visit(dtype, [&](auto t) {
                        using S = typename decltype(t)::type;
                        check_sort<S>(h, {lanes, n}, 1, int(n % 4));
                        check_sort<S>(h, {n, lanes}, 0, int(n % 3));
                    });
        }
    });
    minus_zeros = true;
}

/* Long enough to be divided among threads. */
Test(kernels_call, sort_long) {
    host h;
    check_sort<float>(h, {80000}, 0, 0);
    check_sort<int64_t>(h, {70000}, 0, 2);
    check_sort<uint8_t>(h, {70000}, 0, 3);
    check_sort<complex<float>>(h, {66000}, 0, 0);
}

Test(kernels_call, sort_places) {
    host h;
    for (int64_t n : {0, 1, 900, 70000})
        for (int dtype = 0; dtype < AD_NDTYPE; dtype++)
            visit(dtype, [&](auto t) { check_places<typename decltype(t)::type>(h, n, (int(n) + dtype) % 4); });
}

Test(kernels_call, merge) {
    host h;
    const int64_t sizes[][2] = {{0, 0}, {0, 7}, {7, 0}, {1, 1}, {900, 30}, {30, 900}, {20000, 21000}};
    for (const auto &n : sizes)
        for (int dtype = 0; dtype < AD_NDTYPE; dtype++)
            visit(dtype, [&](auto t) { check_merge<typename decltype(t)::type>(h, n[0], n[1], int(n[0] % 4)); });
}

/* The elements of arrays that are not sorted go anywhere, but come from there. */
Test(kernels_call, merge_unsorted) {
    host h;
    nd<int32_t> a({30000}), b({20011}), out({50011});
    for (int64_t i = 0; i < a.size(); i++) a[i] = int32_t(random_bits() % 1000);
    for (int64_t i = 0; i < b.size(); i++) b[i] = int32_t(1000 + random_bits() % 1000);
    ASSERT_OK(h.call(AD_CALL_merge, AD_INT32, {out}, {a, b}, {}));
    for (int64_t i = 0; i < out.size(); i++) cr_assert(out[i] >= 0 && out[i] < 2000);
}

Test(kernels_call, searchsorted) {
    host h;
    for (int layout = 0; layout < 4; layout++)
        for (int64_t n : {0, 1, 2, 7, 1000}) {
            check_search<double>(h, n, layout);
            check_search<float>(h, n, layout);
            check_search<half>(h, n, layout);
            check_search<int32_t>(h, n, layout);
            check_search<uint64_t>(h, n, layout);
            check_search<complex<double>>(h, n, layout);
        }
    nd<double> x({3});
    nd<int64_t> out{dims{}};
    x[0] = 1, x[1] = 2, x[2] = 2;
    ASSERT_OK(h.call(AD_CALL_searchsorted, AD_FLOAT64, {out}, {x, number(2)}, {boolean(true)}));
    cr_assert_eq(out[0], 3);
}
