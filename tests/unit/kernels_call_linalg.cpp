/* Decompositions into outputs of any layout, with scratch memory that runs out, on several threads. What they give is
 * multiplied out; NumPy checks them in tests/ops. */
#include <cmath>
#include <sys/mman.h>

#include "kernels/call_linalg.h"
#include "kernels/cpu/isa/factor.h"
#include "kernels_call.h"
#include "kernels_isa.h"
#include "protocol/rows_call.h"

namespace {

using namespace ad;

std::mt19937_64 random_bits(8);

template <class S> nd<S> numbers(const dims &shape, int layout) {
    nd<S> x = laid_out<S>(shape, layout);
    for (int64_t i = 0; i < x.size(); i++) {
        const real_t<S> re = real_t<S>(double(random_bits() % 2001) / 1000 - 1);
        if constexpr (is_complex<S>) x[i] = S(re, real_t<S>(double(random_bits() % 2001) / 1000 - 1));
        else x[i] = re;
    }
    return x;
}

template <class S> double distance(S a, S b) {
    if constexpr (is_complex<S>) return fabs(double(a.re - b.re)) + fabs(double(a.im - b.im));
    else return fabs(double(a - b));
}

template <class S> nd<S> item(const nd<S> &a, int64_t i) {
    nd<S> r = a;
    r.first += i * a.stride[0];
    r.shape.erase(r.shape.begin());
    r.stride.erase(r.stride.begin());
    return r;
}

/* a @ b is c, for stacks. */
template <class S> void assert_product(const nd<S> &a, const nd<S> &b, const nd<S> &c) {
    const double bound = 1e3 * (sizeof(real_t<S>) == 4 ? 0x1p-23 : 0x1p-52);
    for (int64_t n = 0; n < c.shape[0]; n++) {
        const nd<S> x = item(a, n), y = item(b, n), z = item(c, n);
        for (int64_t i = 0; i < z.shape[0]; i++)
            for (int64_t j = 0; j < z.shape[1]; j++) {
                S sum = S(0);
                for (int64_t k = 0; k < x.shape[1]; k++) sum = sum + x.at({i, k}) * y.at({k, j});
                cr_assert_leq(distance(sum, z.at({i, j})), bound, "%ld: %ld %ld", long(n), long(i), long(j));
            }
    }
}

/* Columns of m times s. */
template <class S> nd<S> scaled(const nd<S> &m, const nd<real_t<S>> &s) {
    nd<S> r = m.copy();
    for (int64_t n = 0; n < m.shape[0]; n++)
        for (int64_t i = 0; i < m.shape[1]; i++)
            for (int64_t j = 0; j < m.shape[2]; j++) r.at({n, i, j}) = m.at({n, i, j}) * S(s.at({n, j}));
    return r;
}

/* Workspaces that end where a slab ends, each in a slab of its own; above it, as mmap goes downwards, is nothing. */
struct at_the_end : host {
    static constexpr size_t NOTHING = 1 << 20;
    static at_the_end *now;
    std::vector<ad_slab_map> slabs;
    std::vector<void *> nothing;

    at_the_end() {
        now = this;
        run.workspace = [](ad_run *, uint64_t size) -> void * {
            ad_slab_map slab = {};
            now->nothing.push_back(mmap(nullptr, NOTHING, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
            if (now->backend->slab_create(now->device, size, &slab, &now->fault) < 0) return nullptr;
            now->slabs.push_back(slab);
            return static_cast<char *>(slab.base) + (slab.size - size) / 256 * 256;
        };
    }
    ~at_the_end() {
        for (ad_slab_map &slab : slabs) backend->slab_close(device, &slab);
        for (void *p : nothing) munmap(p, NOTHING);
    }
};
at_the_end *at_the_end::now;

template <class S> void check(host &h, int layout) {
    using R = real_t<S>;
    constexpr int loop = dtype_of<S>::value;
    const int other = (layout + 1) % 4;
    nd<S> a = numbers<S>({7, 5, 3}, layout), q = laid_out<S>({7, 5, 3}, other), r = laid_out<S>({7, 3, 3}, layout);
    ASSERT_OK(h.call(AD_CALL_qr, loop, {q, r}, {a}, {boolean(false)}));
    assert_product(q, r, a);
    nd<S> u = laid_out<S>({7, 5, 3}, other), vh = laid_out<S>({7, 3, 3}, layout);
    nd<R> s = laid_out<R>({7, 3}, other);
    ASSERT_OK(h.call(AD_CALL_svd, loop, {u, s, vh}, {a}, {boolean(false)}));
    assert_product(scaled(u, s), vh, a);
    using C = complex<R>;
    nd<S> any = numbers<S>({7, 4, 4}, layout);
    nd<C> vectors = laid_out<C>({7, 4, 4}, other), wide({7, 4, 4}), stretched({7, 4, 4});
    nd<C> values = laid_out<C>({7, 4}, layout), alone = laid_out<C>({7, 4}, other);
    ASSERT_OK(h.call(AD_CALL_eig, loop, {values, vectors}, {any}));
    ASSERT_OK(h.call(AD_CALL_eigvals, loop, {alone}, {any}));
    for (int64_t n = 0; n < 7; n++)
        for (int64_t i = 0; i < 4; i++) {
            cr_assert_leq(distance(values.at({n, i}), alone.at({n, i})), 1e-4);
            for (int64_t j = 0; j < 4; j++) {
                wide.at({n, i, j}) = cast<C>(any.at({n, i, j}));
                stretched.at({n, i, j}) = vectors.at({n, i, j}) * values.at({n, j});
            }
        }
    assert_product(wide, vectors, stretched);
    nd<S> square = numbers<S>({3, 4, 4}, other), x = laid_out<S>({3, 4, 2}, layout), b = numbers<S>({3, 4, 2}, other);
    for (int64_t n = 0; n < 3; n++)
        for (int64_t i = 0; i < 4; i++) square.at({n, i, i}) = square.at({n, i, i}) + S(R(4));
    ASSERT_OK(h.call(AD_CALL_solve, loop, {x}, {square, b}));
    assert_product(square, x, b);
    nd<S> inverse = laid_out<S>({3, 4, 4}, other), one = nd<S>({3, 4, 4});
    for (int64_t n = 0; n < 3; n++)
        for (int64_t i = 0; i < 4; i++) one.at({n, i, i}) = S(R(1));
    ASSERT_OK(h.call(AD_CALL_inv, loop, {inverse}, {square}));
    assert_product(square, inverse, one);
}

} // namespace

Test(kernels_call, linalg_layouts) {
    host h;
    for (int layout = 0; layout < 4; layout++) {
        check<float>(h, layout);
        check<double>(h, layout);
        check<complex<float>>(h, layout);
        check<complex<double>>(h, layout);
    }
}

/* ---- small matrices, one in each lane ---- */

/* Determinants are products of the diagonals of LU factors. */
template <class S> void check_slogdet(host &h, const nd<S> &a, int layout) {
    using R = real_t<S>;
    constexpr int loop = dtype_of<S>::value;
    const int64_t many = a.shape[0], n = a.shape[1];
    nd<S> sign = laid_out<S>({many}, layout), factors({many, n, n});
    nd<R> size = laid_out<R>({many}, layout);
    nd<int64_t> pivots({many, n});
    ASSERT_OK(h.call(AD_CALL_slogdet, loop, {sign, size}, {a}));
    ASSERT_OK(h.call(AD_CALL_lu, loop, {factors, pivots}, {a}));
    for (int64_t i = 0; i < many; i++) {
        determinant<S> d;
        for (int64_t j = 0; j < n; j++) d.take(factors.at({i, j, j}), pivots.at({i, j}) != j);
        const double bound = 1e3 * double(n) * (sizeof(R) == 4 ? 0x1p-23 : 0x1p-52);
        cr_assert_leq(distance(sign.at({i}), d.find_sign()), bound, "%ld of %ld", long(i), long(n));
        cr_assert_leq(distance(size.at({i}), d.find_size()), bound, "%ld of %ld", long(i), long(n));
    }
}

/* A stack with as many matrices as there are lanes, and one more, so that some lanes have none. */
template <class S> void check_many(host &h, int64_t size, int layout) {
    constexpr int loop = dtype_of<S>::value;
    const int64_t many = ad_cpu_kernels_get()->factor[loop].lanes + 1;
    nd<S> a = numbers<S>({many, size, size}, layout), b = numbers<S>({many, size, 3}, layout), one({many, size, size});
    for (int64_t n = 0; n < many; n++)
        for (int64_t i = 0; i < size; i++) { /* the largest of each column is not on the diagonal */
            a.at({n, (i + 1) % size, i}) = a.at({n, (i + 1) % size, i}) + S(real_t<S>(3 * size));
            one.at({n, i, i}) = S(real_t<S>(1));
        }
    nd<S> x = laid_out<S>({many, size, 3}, layout), inverse = laid_out<S>({many, size, size}, layout);
    ASSERT_OK(h.call(AD_CALL_solve, loop, {x}, {a, b}));
    assert_product(a, x, b);
    ASSERT_OK(h.call(AD_CALL_inv, loop, {inverse}, {a}));
    assert_product(a, inverse, one);
    check_slogdet(h, a, layout);
}

Test(kernels_call, linalg_of_many_small_matrices) {
    every_instruction_set([] {
        host h;
        for (int64_t size : {1, 2, 3, 8, 33})
            for (int layout = 0; layout < 4; layout++) {
                check_many<float>(h, size, layout);
                check_many<double>(h, size, layout);
                check_many<complex<float>>(h, size, layout);
                check_many<complex<double>>(h, size, layout);
            }
    });
}

/* One matrix among others that only LAPACK can do, or that nobody can. */
Test(kernels_call, linalg_of_many_with_an_odd_one) {
    every_instruction_set([] {
        host h;
        nd<double> a({20, 2, 2}), out({20, 2, 2}), b({20, 2, 1}), x({20, 2, 1});
        for (int64_t n = 0; n < 20; n++) a.at({n, 0, 0}) = a.at({n, 1, 1}) = b.at({n, 0, 0}) = b.at({n, 1, 0}) = 4;
        a.at({13, 0, 0}) = 0x1p-1000;
        ASSERT_OK(h.call(AD_CALL_solve, AD_FLOAT64, {x}, {a, b}));
        cr_assert_eq(x.at({13, 0, 0}), 0x1p1002);
        cr_assert_eq(x.at({12, 0, 0}), 1);
        ASSERT_OK(h.call(AD_CALL_cholesky, AD_FLOAT64, {out}, {a}, {boolean(false)}));
        cr_assert_eq(out.at({13, 0, 0}), 0x1p-500);
        a.at({13, 0, 0}) = 0;
        cr_assert_eq(h.call(AD_CALL_solve, AD_FLOAT64, {x}, {a, b}), AD_E_LINALG);
        cr_assert_eq(h.call(AD_CALL_inv, AD_FLOAT64, {out}, {a}), AD_E_LINALG);
        cr_assert_eq(h.call(AD_CALL_cholesky, AD_FLOAT64, {out}, {a}, {boolean(false)}), AD_E_LINALG);
        a.at({13, 0, 0}) = NAN;
        ASSERT_OK(h.call(AD_CALL_solve, AD_FLOAT64, {x}, {a, b}));
        cr_assert(std::isnan(x.at({13, 0, 0})));
        cr_assert_eq(x.at({12, 0, 0}), 1);
    });
}

/* The kernels themselves do the usual matrices, and leave the odd ones alone. */
Test(kernels_call, linalg_by_lanes) {
    every_instruction_set([] {
        const ad_factor_kernel &k = ad_cpu_kernels_get()->factor[AD_FLOAT64];
        double a[AD_FACTOR_LANES][4], x[AD_FACTOR_LANES][4] = {};
        alignas(64) double scratch[2 * 5 * AD_FACTOR_LANES];
        ad_factor_stack in = {{}, 16, 8}, out = in;
        for (int i = 0; i < k.lanes; i++) {
            in.at[i] = reinterpret_cast<char *>(a[i]);
            out.at[i] = reinterpret_cast<char *>(x[i]);
            for (int j = 0; j < 4; j++) a[i][j] = j % 3 ? 0 : 4;
        }
        cr_assert(k.cholesky(&in, &out, 1, 2, false, scratch));
        cr_assert_eq(x[0][0], 2);
        cr_assert_eq(x[1][0], 0, "only one is asked for");
        cr_assert(k.solve(&in, nullptr, &out, k.lanes, 2, 2, scratch));
        cr_assert_eq(x[k.lanes - 1][3], 0.25);
        double sign[AD_FACTOR_LANES] = {}, size[AD_FACTOR_LANES] = {};
        cr_assert(k.slogdet(&in, sign, size, 1, 2, scratch));
        cr_assert_float_eq(size[0], log(16), 1e-15);
        cr_assert(sign[0] == 1 && sign[1] == 0 && size[1] == 0, "only one is asked for");
        for (double odd : {0.0, 0x1p-600, 0x1p600, double(NAN), double(INFINITY)}) {
            a[k.lanes - 1][3] = odd;
            x[0][0] = 7;
            cr_assert_not(k.cholesky(&in, &out, k.lanes, 2, false, scratch));
            cr_assert_not(k.solve(&in, nullptr, &out, k.lanes, 2, 2, scratch));
            cr_assert_not(k.slogdet(&in, sign, size, k.lanes, 2, scratch));
            cr_assert_eq(x[0][0], 7, "nothing is written");
        }
    });
}

/* OpenBLAS reads one element too many of a vector that is a row of the matrix: almost a column beyond its end. */
Test(kernels_call, linalg_at_the_end_of_slabs) {
    at_the_end h;
    for (int64_t n = 401; n < 405; n++) { /* of 400 the matrix would be the output, which is no workspace */
        /* of that layout q is made in a workspace, too, and not in the test's memory, which has an end of its own */
        nd<complex<double>> a = numbers<complex<double>>({1, 400, n}, 0),
                            q = laid_out<complex<double>>({1, 400, 400}, 1), r({1, 400, n});
        ASSERT_OK(h.call(AD_CALL_qr, AD_COMPLEX128, {q, r}, {a}, {boolean(true)}));
    }
}

Test(kernels_call, linalg_failures) {
    host h;
    nd<double> zero({2, 2, 2}), out({2, 2, 2});
    cr_assert_eq(h.call(AD_CALL_inv, AD_FLOAT64, {out}, {zero}), AD_E_LINALG);
    cr_assert_str_eq(h.fault.text, "Singular matrix");
    cr_assert_eq(h.call(AD_CALL_cholesky, AD_FLOAT64, {out}, {zero}, {boolean(true)}), AD_E_LINALG);
    cr_assert_str_eq(h.fault.text, "Matrix is not positive definite");
}

Test(kernels_call, linalg_without_memory) {
    host h;
    nd<double> a = numbers<double>({4, 3, 3}, 2), q = laid_out<double>({4, 3, 3}, 1),
               r = laid_out<double>({4, 3, 3}, 3);
    nd<double> s = laid_out<double>({4, 3}, 1);
    int failed = 0;
    for (int allowed = 0;; allowed++) {
        h.run.allowed = allowed;
        const int one = h.call(AD_CALL_qr, AD_FLOAT64, {q, r}, {a}, {boolean(true)});
        h.run.allowed = allowed;
        const int other = h.call(AD_CALL_svd, AD_FLOAT64, {q, s, r}, {a}, {boolean(true)});
        if (one == 0 && other == 0) break;
        failed++;
        cr_assert(one == 0 || one == AD_E_MEMORY, "%s", h.fault.text);
        cr_assert(other == 0 || other == AD_E_MEMORY, "%s", h.fault.text);
        cr_assert_lt(failed, 50);
    }
    cr_assert_geq(failed, 3);
}
