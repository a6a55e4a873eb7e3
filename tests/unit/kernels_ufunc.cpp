#include "tests/unit/kernels_op.h"

#include <cmath>
#include <limits>
#include <limits.h>
#include <string.h>

#include "kernels/ufunc.h"
#include "protocol/infer.h"
#include "protocol/rows_ufunc.h"

static void open_two_threads() { ad_cpu_parallel_open(2, nullptr); }
TestSuite(kernels_ufunc, .init = open_two_threads, .fini = ad_cpu_parallel_close);

/* ---- every row, every loop, every instruction set: against the expression itself, element by element ---- */

static double low_of(const std::string &domain) {
    return domain == "POS" || domain == "POWER" || domain == "SHIFT" || domain == "NZ" ? 1
           : domain == "GE1"                                                           ? 1.5
           : domain == "UNIT" || domain == "OPEN"                                      ? -0.9
                                                                                       : -4;
}
static double high_of(const std::string &domain) { return domain == "UNIT" || domain == "OPEN" ? 0.9 : 4; }

template <class T> static bool close(T a, T b, int loop) {
    if constexpr (ad::is_complex<T>) {
        double size = hypot(b.re, b.im), eps = sizeof(b.re) == 4 ? 1e-5 : 1e-13;
        return hypot(double(a.re) - b.re, double(a.im) - b.im) <= eps * (size + 1) || (adm::isnan(a) && adm::isnan(b));
    } else if constexpr (ad::is_float<T>) {
        double eps = loop == AD_FLOAT16 ? 1e-3 : loop == AD_BFLOAT16 ? 1e-2 : sizeof(T) == 4 ? 2e-6 : 1e-14;
        return a == b || (a != a && b != b) || std::fabs(double(a) - double(b)) <= eps * (std::fabs(double(b)) + 0.1);
    } else {
        return a == b;
    }
}

static bool close_element(int dtype, const char *a, const char *b, size_t i, int loop) {
    return ad::visit(dtype, [&](auto t) {
        using S = typename decltype(t)::type;
        return close(ad::load(reinterpret_cast<const S *>(a)[i]), ad::load(reinterpret_cast<const S *>(b)[i]), loop);
    });
}

static void fill(int dtype, char *to, size_t n, double low, double high, numbers *random) {
    ad::visit(dtype, [&](auto t) {
        using S = typename decltype(t)::type;
        for (size_t i = 0; i < n; i++) reinterpret_cast<S *>(to)[i] = random->element<S>(low, high);
    });
}

/* The expression of a row, over arrays. */
template <class U> static void evaluate(char *const *p, size_t n) {
    for (size_t i = 0; i < n; i++) {
        typename U::A a = ad::load(reinterpret_cast<typename U::X *>(p[2])[i]);
        typename U::B b{};
        typename U::C c{};
        typename U::R0 r0;
        typename U::R1 r1;
        if constexpr (U::nin > 1) b = ad::load(reinterpret_cast<typename U::Y *>(p[3])[i]);
        if constexpr (U::nin > 2) c = ad::load(reinterpret_cast<typename U::Z *>(p[4])[i]);
        U::apply(a, b, c, r0, r1);
        reinterpret_cast<typename U::O0 *>(p[0])[i] = typename U::O0(r0);
        if constexpr (U::nout > 1) reinterpret_cast<typename U::O1 *>(p[1])[i] = typename U::O1(r1);
    }
}

constexpr int64_t N = 67; /* whole vectors and a rest */

static void check_row(int row, int loop, const char *domain, void (*reference)(char *const *, size_t)) {
    alignas(16) static char memory[7][N * 16];
    const ad_ufunc_row *u = ad__ufunc(uint64_t(row));
    const ad_rule_row *rule = &ad__rules[u->rule];
    char *want[5] = {memory[5], memory[6], memory[2], memory[3], memory[4]};
    numbers random{uint64_t(row)};
    std::vector<view> views;
    std::vector<int> dtype;
    for (int k = 0; k < u->nout + u->nin; k++) {
        int place = k < u->nout ? k : k - u->nout + 2;
        dtype.push_back(ad__code_dtype(k < u->nout ? rule->out[k] : rule->in[k - u->nout], loop));
        views.emplace_back(dtype.back(), memory[place], std::vector<int64_t>{N});
        if (k >= u->nout) fill(dtype.back(), memory[place], N, low_of(domain), high_of(domain), &random);
    }
    call c;
    for (const view &v : views) c.add(v);
    cr_assert_eq(c.ufunc(row, loop, u->nout), 0, "%s %s: %s", u->name, ad__dtypes[loop].name, c.fault.text);
    reference(want, N);
    for (int k = 0; k < u->nout; k++)
        for (size_t i = 0; i < N; i++)
            cr_assert(close_element(dtype[size_t(k)], memory[k], want[k], i, loop), "%s %s output %d element %zu",
                      u->name, ad__dtypes[loop].name, k, i);
}

template <int Id, class S> static void check_one(const char *domain) {
    if constexpr ((ad::ufunc_row<Id>::loops >> ad::dtype_of<S>::value & 1) && !ad::is_special<Id, S>())
        check_row(Id, ad::dtype_of<S>::value, domain, evaluate<ad::ufunc<Id, S>>);
}
template <class S> static void check_rows() {
#define AD_UFUNC(id, name, nin, nout, rule, domain, cost, traits, test, doc, ...) check_one<id, S>(#domain);
#include "protocol/ufunc.def"
#undef AD_UFUNC
}

static void check_everything() {
#define AD_DTYPE(id, NAME, name, size, kind, letter) check_rows<ad::t_##name>();
#include "protocol/dtype.def"
#undef AD_DTYPE
}

Test(kernels_ufunc, every_row_and_loop) { check_everything(); }

Test(kernels_ufunc, every_instruction_set) { every_instruction_set(check_everything); }

/* ---- against the C library and exact integers ---- */

template <class F> static void check_libm(int row, double (*exact)(double), double low, double high, double ulps) {
    numbers random(uint64_t(row) + 1000);
    auto x = random.elements<F>(5001, low, high), out = x;
    view vx(ad::dtype_of<F>::value, x.data(), {5001}), vo(ad::dtype_of<F>::value, out.data(), {5001});
    cr_assert_eq(call().add(vo).add(vx).ufunc(row, ad::dtype_of<F>::value), 0);
    const double eps = sizeof(F) == 4 ? 0x1p-23 : 0x1p-52;
    for (size_t i = 0; i < x.size(); i++) {
        double want = exact(double(x[i]));
        cr_assert(std::fabs(double(out[i]) - want) <= ulps * eps * std::fabs(want), "row %d of %g: %.17g, not %.17g",
                  row, double(x[i]), double(out[i]), want);
    }
}

Test(kernels_ufunc, transcendental_functions_are_within_4_ulp) {
    const struct {
        int row;
        double (*f)(double);
        double low, high;
    } rows[] = {{AD_UFUNC_exp, std::exp, -80, 80},   {AD_UFUNC_log, std::log, 1e-30, 1e5},
                {AD_UFUNC_sin, std::sin, -100, 100}, {AD_UFUNC_cos, std::cos, -100, 100},
                {AD_UFUNC_tan, std::tan, -1.5, 1.5}, {AD_UFUNC_tanh, std::tanh, -5, 5},
                {AD_UFUNC_arctan, std::atan, -9, 9}, {AD_UFUNC_arcsin, std::asin, -1, 1},
                {AD_UFUNC_sqrt, std::sqrt, 0, 1e9},  {AD_UFUNC_cbrt, std::cbrt, -1e3, 1e3},
                {AD_UFUNC_expm1, std::expm1, -2, 2}, {AD_UFUNC_log1p, std::log1p, -0.9, 9},
                {AD_UFUNC_exp2, std::exp2, -80, 80}, {AD_UFUNC_log2, std::log2, 1e-30, 1e5},
                {AD_UFUNC_sinh, std::sinh, -5, 5},   {AD_UFUNC_arcsinh, std::asinh, -50, 50}};
    for (const auto &r : rows) {
        check_libm<float>(r.row, r.f, r.low, r.high, 4.5);
        check_libm<double>(r.row, r.f, r.low, r.high, 4.5);
    }
}

template <class F> static F apply2(int row, F x, F y) {
    F r;
    view vx(ad::dtype_of<F>::value, &x, {}), vy(ad::dtype_of<F>::value, &y, {}), vr(ad::dtype_of<F>::value, &r, {});
    cr_assert_eq(call().add(vr).add(vx).add(vy).ufunc(row, ad::dtype_of<F>::value), 0);
    return r;
}

template <class F> static void check_special_powers() {
    using L = std::numeric_limits<F>;
    std::vector<F> special = {
        0, 1, 2, F(0.5), 3, 7, 8, F(2.5), F(1e30), L::max(), L::min(), L::denorm_min(), F(1 - L::epsilon())};
    for (size_t i = special.size(); i-- > 0;) special.push_back(-special[i]);
    for (F x : {L::infinity(), -L::infinity(), L::quiet_NaN()}) special.push_back(x);
    std::vector<F> x, y, r;
    for (F one : special)
        for (F other : special) x.push_back(one), y.push_back(other);
    r = x;
    const int64_t n = int64_t(x.size());
    const int dtype = ad::dtype_of<F>::value;
    view vx(dtype, x.data(), {n}), vy(dtype, y.data(), {n}), vr(dtype, r.data(), {n});
    cr_assert_eq(call().add(vr).add(vx).add(vy).ufunc(AD_UFUNC_power, dtype), 0);
    for (size_t i = 0; i < x.size(); i++) {
        const F got = r[i], want = std::pow(x[i], y[i]);
        const F away = std::fabs(got - want), allowed = std::fabs(want) * L::epsilon() + L::denorm_min();
        cr_assert(got == want || away <= allowed || (std::isnan(got) && std::isnan(want)), "%g ** %g: %g, not %g",
                  double(x[i]), double(y[i]), double(got), double(want));
        cr_assert(std::isnan(want) || std::signbit(got) == std::signbit(want), "sign of %g ** %g", double(x[i]),
                  double(y[i]));
    }
}

Test(kernels_ufunc, powers_of_special_values_are_as_in_c) {
    every_instruction_set([] { check_special_powers<float>(), check_special_powers<double>(); });
}

/* Powers of all sizes, of numbers of all sizes and of those near 1: how many units in the last place they are off. */
template <class F, class Wide> static double worst_power(double most) {
    constexpr int64_t COUNT = 4096;
    const int dtype = ad::dtype_of<F>::value, digits = std::numeric_limits<F>::digits;
    const int sizes = std::numeric_limits<F>::max_exponent - 2;
    numbers random(17);
    double worst = 0;
    for (int round = 0; round < 40; round++) {
        std::vector<F> x, y, r(COUNT);
        for (int64_t i = 0; i < COUNT; i++) {
            const double near = 1 + random.uniform(-0.5, 0.5) * std::pow(2.0, -(round % 20));
            x.push_back(F(round % 2 ? near : std::ldexp(random.uniform(1, 2), int(random.uniform(-sizes, sizes)))));
            y.push_back(F(random.uniform(-most, most) / std::fabs(std::log2(double(x.back())) + 1e-30)));
        }
        view vx(dtype, x.data(), {COUNT}), vy(dtype, y.data(), {COUNT}), vr(dtype, r.data(), {COUNT});
        cr_assert_eq(call().add(vr).add(vx).add(vy).ufunc(AD_UFUNC_power, dtype), 0);
        for (size_t i = 0; i < size_t(COUNT); i++) {
            const Wide want = std::pow(Wide(x[i]), Wide(y[i]));
            worst = std::max(worst,
                             double(std::fabs(Wide(r[i]) - want) / std::ldexp(Wide(1), std::ilogb(want) + 1 - digits)));
        }
    }
    return worst;
}

Test(kernels_ufunc, powers_are_close) {
    every_instruction_set([] {
        const char *name = ad_cpu_kernels_get()->name;
        const double own = strcmp(name, "v4") == 0 ? 1.1 : 4; /* elsewhere it is the C library's vector form */
        const double single = worst_power<float, double>(125);
        const double twice = worst_power<double, long double>(1020);
        cr_expect_leq(single, 0.65, "float32 on %s: %g", name, single);
        cr_expect_leq(twice, own, "float64 on %s: %g", name, twice);
    });
}

template <class T> static void check_division() {
    const T low = ad::is_signed<T> ? T(ad::unsigned_t<T>(1) << (sizeof(T) * 8 - 1)) : T(0);
    const T edge[] = {low,
                      adm::add(low, T(1)),
                      T(~ad::unsigned_t<T>(0)),
                      adm::sub(low, T(1)),
                      0,
                      1,
                      2,
                      3,
                      7,
                      100,
                      T(-7),
                      T(-3),
                      T(-2),
                      11};
    for (T x : edge)
        for (T y : edge) {
            __int128 a = x, b = y, q = b == 0 ? 0 : a / b, r = b == 0 ? 0 : a % b;
            cr_assert_eq(apply2<T>(AD_UFUNC_fmod, x, y), T(r), "fmod");
            if (r != 0 && (r < 0) != (b < 0)) q--, r += b;
            cr_assert_eq(apply2<T>(AD_UFUNC_floor_divide, x, y), T(q), "%lld // %lld", (long long)x, (long long)y);
            cr_assert_eq(apply2<T>(AD_UFUNC_remainder, x, y), T(r), "%lld %% %lld", (long long)x, (long long)y);
            cr_assert_eq(apply2<T>(AD_UFUNC_add, x, y), T(a + b));
            cr_assert_eq(apply2<T>(AD_UFUNC_multiply, x, y), T(a * b));
        }
}

Test(kernels_ufunc, integers_divide_and_wrap_exactly) {
    check_division<int8_t>();
    check_division<int16_t>();
    check_division<int32_t>();
    check_division<int64_t>();
    check_division<uint8_t>();
    check_division<uint16_t>();
    check_division<uint32_t>();
}

Test(kernels_ufunc, all_int8_quotients) {
    std::vector<int8_t> x, y;
    for (int a = -128; a < 128; a++)
        for (int b = -128; b < 128; b++) x.push_back(int8_t(a)), y.push_back(int8_t(b));
    std::vector<int8_t> q(x.size());
    view vx(AD_INT8, x.data(), {65536}), vy(AD_INT8, y.data(), {65536}), vq(AD_INT8, q.data(), {65536});
    cr_assert_eq(call().add(vq).add(vx).add(vy).ufunc(AD_UFUNC_floor_divide, AD_INT8), 0);
    for (size_t i = 0; i < x.size(); i++)
        cr_assert_eq(q[i], y[i] == 0 ? 0 : int8_t(std::floor(double(x[i]) / y[i])), "%d // %d", x[i], y[i]);
}

Test(kernels_ufunc, negative_integer_powers_fail) {
    int32_t x[3] = {2, 3, 4}, y[3] = {2, -1, 2}, out[3];
    view vx(AD_INT32, x, {3}), vy(AD_INT32, y, {3}), vo(AD_INT32, out, {3});
    call bad, good;
    cr_assert_eq(bad.add(vo).add(vx).add(vy).ufunc(AD_UFUNC_power, AD_INT32), AD_E_VALUE);
    cr_assert_str_eq(bad.fault.text, "Integers to negative integer powers are not allowed.");
    cr_assert(bad.run.wrote);
    y[1] = 3;
    cr_assert_eq(good.add(vo).add(vx).add(vy).ufunc(AD_UFUNC_power, AD_INT32), 0);
    cr_assert(out[0] == 4 && out[1] == 27 && out[2] == 16);
}

/* ---- casts ---- */

Test(kernels_ufunc, every_float16_survives_and_rounding_is_to_even) {
    std::vector<uint16_t> bits(65536), back(65536);
    std::vector<float> wide(65536);
    for (size_t i = 0; i < bits.size(); i++) bits[i] = uint16_t(i);
    view vb(AD_FLOAT16, bits.data(), {65536}), vw(AD_FLOAT32, wide.data(), {65536}),
        vk(AD_FLOAT16, back.data(), {65536});
    cr_assert_eq(call().add(vw).add(vb).ufunc(AD_UFUNC_copy, AD_FLOAT16), 0);
    cr_assert_eq(call().add(vk).add(vw).ufunc(AD_UFUNC_copy, AD_FLOAT32), 0);
    for (size_t i = 0; i < bits.size(); i++) {
        int e = int(i >> 10 & 31), m = int(i & 1023);
        double want = e == 0 ? std::ldexp(m, -24) : e == 31 ? (m ? NAN : INFINITY) : std::ldexp(1024 + m, e - 25);
        if (i >> 15) want = -want;
        cr_assert(wide[i] == want || (std::isnan(wide[i]) && std::isnan(want)), "float16 %zx", i);
        cr_assert(back[i] == i || std::isnan(want), "float16 %zx back", i);
    }
    cr_assert_eq(ad::half(1.0f + 0x1p-11f).bits, 0x3c00);
    cr_assert_eq(ad::half(1.0f + 0x1.8p-10f).bits, 0x3c02);
    cr_assert_eq(ad::cast<ad::half>(1.0 + 0x1p-11 + 0x1p-40).bits, 0x3c01, "rounded once, not twice");
    cr_assert_eq(ad::half(65520.0f).bits, 0x7c00);
}

Test(kernels_ufunc, floats_out_of_range_become_some_integer) {
    double x[] = {NAN, INFINITY, -INFINITY, 1e300, -1e300, 3e9, -3e9, 1e19};
    alignas(8) char out[8 * 8];
    view vx(AD_FLOAT64, x, {8});
    for (int d = AD_INT8; d <= AD_UINT64; d++) {
        view vo(d, out, {8});
        cr_assert_eq(call().add(vo).add(vx).ufunc(AD_UFUNC_copy, AD_FLOAT64), 0);
    }
}

Test(kernels_ufunc, operands_of_other_types_are_cast) {
    int8_t x[5] = {1, -2, 3, -4, 5};
    double y[5] = {0.5, 0.5, 0.5, 0.5, 0.5};
    int32_t out[5];
    view vx(AD_INT8, x, {5}), vy(AD_FLOAT64, y, {5}), vo(AD_INT32, out, {5});
    cr_assert_eq(call().add(vo).add(vx).add(vy).ufunc(AD_UFUNC_multiply, AD_FLOAT32), 0);
    for (int i = 0; i < 5; i++) cr_assert_eq(out[i], int32_t(x[i] * 0.5f));
}

Test(kernels_ufunc, any_byte_but_zero_is_true) {
    uint8_t x[4] = {0, 1, 2, 255}, out[4];
    view vx(AD_BOOL, x, {4}), vo(AD_BOOL, out, {4});
    cr_assert_eq(call().add(vo).add(vx).ufunc(AD_UFUNC_logical_not, AD_BOOL), 0);
    cr_assert(out[0] == 1 && out[1] == 0 && out[2] == 0 && out[3] == 0);
}

/* ---- layouts ---- */

struct grid { /* a float32 array of shape (rows, columns) in one of several layouts */
    std::vector<float> memory;
    view v;
    grid(int64_t rows, int64_t columns, int layout)
        : memory(size_t(4 * rows * columns)), v(AD_FLOAT32, memory.data(), {rows, columns}) {
        const int64_t strides[][2] = {
            {columns * 4, 4}, {4, rows * 4}, {columns * 16, 8}, {-columns * 4, 4}, {columns * 4, -4}};
        v.strides = {strides[layout][0], strides[layout][1]};
        if (layout == 3) v.data = memory.data() + (rows - 1) * columns;
        if (layout == 4) v.data = memory.data() + columns - 1;
    }
    float &at(int64_t r, int64_t c) {
        return *reinterpret_cast<float *>(static_cast<char *>(v.data) + r * v.strides[0] + c * v.strides[1]);
    }
};

static void check_layouts(int64_t rows, int64_t columns) {
    numbers random(5);
    for (int a = 0; a < 5; a++)
        for (int b = 0; b < 5; b++)
            for (int o = 0; o < 5; o++) {
                grid x(rows, columns, a), y(rows, columns, b), out(rows, columns, o);
                for (int64_t r = 0; r < rows; r++)
                    for (int64_t c = 0; c < columns; c++)
                        x.at(r, c) = float(random.next() % 1000), y.at(r, c) = float(c);
                cr_assert_eq(call().add(out.v).add(x.v).add(y.v).ufunc(AD_UFUNC_subtract, AD_FLOAT32), 0);
                for (int64_t r = 0; r < rows; r++)
                    for (int64_t c = 0; c < columns; c++)
                        cr_assert_eq(out.at(r, c), x.at(r, c) - float(c), "layouts %d %d %d at %d, %d", a, b, o, int(r),
                                     int(c));
            }
}

Test(kernels_ufunc, layouts) {
    check_layouts(3, 5);
    check_layouts(40, 3);
    check_layouts(70, 130);
}

Test(kernels_ufunc, broadcasting_and_scalars) {
    float x[6] = {1, 2, 3, 4, 5, 6}, row[3] = {10, 20, 30}, column[2] = {100, 200}, out[6];
    view vx(AD_FLOAT32, x, {2, 3}), vr(AD_FLOAT32, row, {3}), vc(AD_FLOAT32, column, {2, 1}),
        vo(AD_FLOAT32, out, {2, 3});
    cr_assert_eq(call().add(vo).add(vx).add(vr).ufunc(AD_UFUNC_add, AD_FLOAT32), 0);
    for (int i = 0; i < 6; i++) cr_assert_eq(out[i], x[i] + row[i % 3]);
    cr_assert_eq(call().add(vo).add(vx).add(vc).ufunc(AD_UFUNC_add, AD_FLOAT32), 0);
    for (int i = 0; i < 6; i++) cr_assert_eq(out[i], x[i] + column[i / 3]);
    cr_assert_eq(call().add(vo).add(2.5).add(vx).ufunc(AD_UFUNC_subtract, AD_FLOAT32), 0);
    for (int i = 0; i < 6; i++) cr_assert_eq(out[i], 2.5f - x[i]);
    cr_assert_eq(call().add(vo).add(7.0).ufunc(AD_UFUNC_copy, AD_FLOAT64), 0);
    for (int i = 0; i < 6; i++) cr_assert_eq(out[i], 7.0f);
}

Test(kernels_ufunc, masked_elements_are_not_written) {
    const int64_t n = 1000;
    numbers random(9);
    auto x = random.elements<double>(size_t(n), -4, 4);
    std::vector<double> out(size_t(n), -1.0);
    std::vector<uint8_t> mask(static_cast<size_t>(n));
    for (auto &m : mask) m = random.next() % 3 != 0;
    view vx(AD_FLOAT64, x.data(), {n}), vo(AD_FLOAT64, out.data(), {n}), vm(AD_BOOL, mask.data(), {n});
    cr_assert_eq(call().add(vo).add(vx).add(vx).add(vm).ufunc(AD_UFUNC_multiply, AD_FLOAT64), 0);
    for (size_t i = 0; i < size_t(n); i++) cr_assert_eq(out[i], mask[i] ? x[i] * x[i] : -1.0);
}

Test(kernels_ufunc, in_place) {
    std::vector<float> x(1001);
    for (size_t i = 0; i < x.size(); i++) x[i] = float(i);
    view v(AD_FLOAT32, x.data(), {1001});
    cr_assert_eq(call().add(v).add(v).add(v).ufunc(AD_UFUNC_add, AD_FLOAT32), 0);
    for (size_t i = 0; i < x.size(); i++) cr_assert_eq(x[i], 2 * float(i));
}

Test(kernels_ufunc, empty_and_zero_dimensional) {
    float x = 9, out = 0;
    view vx(AD_FLOAT32, &x, {}), vo(AD_FLOAT32, &out, {}), none(AD_FLOAT32, &out, {3, 0});
    cr_assert_eq(call().add(vo).add(vx).ufunc(AD_UFUNC_sqrt, AD_FLOAT32), 0);
    cr_assert_eq(out, 3.0f);
    call c;
    cr_assert_eq(c.add(none).add(vx).ufunc(AD_UFUNC_sqrt, AD_FLOAT32), 0);
    cr_assert(!c.run.wrote && out == 3.0f);
}

/* An element's value does not depend on where it stands, nor on the number of threads. */
Test(kernels_ufunc, place_makes_no_difference) {
    const int64_t n = 300001;
    std::vector<float> x(size_t(n), 0.7f), out(static_cast<size_t>(n));
    view vx(AD_FLOAT32, x.data(), {n}), vo(AD_FLOAT32, out.data(), {n});
    for (int row : {AD_UFUNC_exp, AD_UFUNC_sin, AD_UFUNC_log1p, AD_UFUNC_tanh}) {
        cr_assert_eq(call().add(vo).add(vx).ufunc(row, AD_FLOAT32), 0);
        for (float v : out) cr_assert_eq(memcmp(&v, &out[0], sizeof v), 0);
    }
}
