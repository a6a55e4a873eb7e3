/* matmul against three loops. All values are small whole numbers, so that every order of adding gives the same. */
#include "kernels_call.h"
#include "protocol/rows_call.h"

namespace {

using namespace ad;

std::mt19937_64 random_bits(6);

template <class S> nd<S> numbers(const dims &shape, int layout) {
    nd<S> x = laid_out<S>(shape, layout);
    for (int64_t i = 0; i < x.size(); i++)
        if constexpr (is_complex<S>) x[i] = S(real_t<S>(random_bits() % 5), real_t<S>(random_bits() % 5));
        else x[i] = cast<S>(int64_t(random_bits() % 5) - 2);
    return x;
}

template <class C> C product(C a, C b) {
    if constexpr (same<C, bool>) return a && b;
    else return C(a * b);
}
template <class C> C sum(C a, C b) {
    if constexpr (same<C, bool>) return a || b;
    else return C(a + b);
}

template <class S> void check_matrix(const nd<S> &a, const nd<S> &b, const nd<S> &out) {
    using C = compute_t<S>;
    for (int64_t i = 0; i < out.shape[0]; i++)
        for (int64_t j = 0; j < out.shape[1]; j++) {
            C want = C(0);
            for (int64_t k = 0; k < a.shape[1]; k++) want = sum(want, product(C(a.at({i, k})), C(b.at({k, j}))));
            cr_assert(cast<S>(want) == out.at({i, j}), "dtype %d, %ld %ld", dtype_of<S>::value, long(i), long(j));
        }
}

template <class S> void check_shape(host &h, int64_t m, int64_t k, int64_t n) {
    for (int layouts = 0; layouts<64; layouts += m * k * n> 1000 ? 7 : 1) {
        nd<S> a = numbers<S>({m, k}, layouts % 4), b = numbers<S>({k, n}, layouts / 4 % 4);
        nd<S> out = laid_out<S>({m, n}, layouts / 16);
        ASSERT_OK(h.call(AD_CALL_matmul, dtype_of<S>::value, {out}, {a, b}, {boolean(false)}));
        check_matrix(a, b, out);
    }
}

template <class S> nd<S> item(const nd<S> &a, int64_t i, int64_t j) {
    nd<S> r = a;
    r.first += (a.shape[0] > 1 ? i : 0) * a.stride[0] + (a.shape[1] > 1 ? j : 0) * a.stride[1];
    r.shape.erase(r.shape.begin(), r.shape.begin() + 2);
    r.stride.erase(r.stride.begin(), r.stride.begin() + 2);
    return r;
}

} // namespace

Test(kernels_call, matmul_every_type) {
    host h;
    for (int dtype = 0; dtype < AD_NDTYPE; dtype++)
        visit(dtype, [&](auto t) {
            using S = typename decltype(t)::type;
            check_shape<S>(h, 3, 4, 5);
            check_shape<S>(h, 17, 9, 13);
            check_shape<S>(h, 5, 70, 6);
            check_shape<S>(h, 1, 40, 1);
        });
}

Test(kernels_call, matmul_vectors_and_nothing) {
    host h;
    check_shape<float>(h, 60, 30, 1);
    check_shape<float>(h, 1, 30, 60);
    check_shape<double>(h, 40, 1, 40);
    check_shape<complex<double>>(h, 1, 50, 30);
    check_shape<complex<float>>(h, 50, 30, 1);
    check_shape<float>(h, 0, 3, 4);
    check_shape<int32_t>(h, 3, 4, 0);
    nd<float> a({2, 0}), b({0, 3}), out({2, 3});
    out[4] = 7;
    ASSERT_OK(h.call(AD_CALL_matmul, AD_FLOAT32, {out}, {a, b}, {boolean(false)}));
    for (int64_t i = 0; i < 6; i++) cr_assert_eq(out[i], 0);
}

Test(kernels_call, matmul_repeated_rows) {
    host h;
    nd<float> a = numbers<float>({20, 1}, 0).repeated(1, 30), b = numbers<float>({1, 25}, 0).repeated(0, 30),
              out({20, 25});
    ASSERT_OK(h.call(AD_CALL_matmul, AD_FLOAT32, {out}, {a, b}, {boolean(false)}));
    check_matrix(a, b, out);
}

Test(kernels_call, matmul_batches) {
    host h;
    for (int64_t side : {3, 20}) {
        nd<double> a = numbers<double>({2, 1, side, side + 1}, 1), b = numbers<double>({1, 3, side + 1, side}, 2);
        nd<double> out({2, 3, side, side});
        ASSERT_OK(h.call(AD_CALL_matmul, AD_FLOAT64, {out}, {a, b}, {boolean(false)}));
        for (int64_t i = 0; i < 6; i++)
            check_matrix(item(a, i / 3, i % 3), item(b, i / 3, i % 3), item(out, i / 3, i % 3));
    }
}

/* Large enough to be cut into tiles, by number of threads and shape. */
Test(kernels_call, matmul_tiles) {
    host h(4);
    nd<float> a = numbers<float>({300, 200}, 0), b = numbers<float>({200, 1000}, 1), out({300, 1000});
    ASSERT_OK(h.call(AD_CALL_matmul, AD_FLOAT32, {out}, {a, b}, {boolean(false)}));
    check_matrix(a.every(0, 37), b, out.every(0, 37));
    check_matrix(a, b.every(1, 53), out.every(1, 53));
}

Test(kernels_call, matmul_converts) {
    host h;
    nd<int8_t> a = numbers<int8_t>({6, 7}, 0);
    nd<float> b = numbers<float>({7, 8}, 0);
    nd<double> out({6, 8}), wide_a({6, 7}), wide_b({7, 8});
    for (int64_t i = 0; i < a.size(); i++) wide_a[i] = a[i];
    for (int64_t i = 0; i < b.size(); i++) wide_b[i] = double(b[i]);
    ASSERT_OK(h.call(AD_CALL_matmul, AD_FLOAT32, {out}, {a, b}, {boolean(false)}));
    check_matrix(wide_a, wide_b, out);
}
