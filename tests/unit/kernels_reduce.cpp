#include "tests/unit/kernels_op.h"
#include "protocol/rows_reduction.h"
#include "protocol/rows_ufunc.h"

#include <cmath>
#include <limits>

static void open_two_threads() { ad_cpu_parallel_open(2, nullptr); }
TestSuite(kernels_reduce, .init = open_two_threads, .fini = ad_cpu_parallel_close);

/* ---- every row over every axis of a (4, 37, 5) array, in several layouts, against a plain double loop ---- */

struct plain { /* what a reduction of whole numbers must give */
    double sum = 0, prod = 1, min = INFINITY, max = -INFINITY, squares = 0;
    int64_t n = 0, nonzero = 0, argmin = -1, argmax = -1, count = 0;
    void take(double x) {
        if (!std::isnan(x)) {
            sum += x, prod *= x, squares += x * x, n++;
            if (x < min) min = x, argmin = count;
            if (x > max) max = x, argmax = count;
        }
        nonzero += x != 0;
        count++;
    }
    double var(double ddof) const { return (squares - sum * sum / double(n)) / (double(n) - ddof); }
    double value(const std::string &name, double ddof) const {
        std::string base = name.rfind("nan", 0) == 0 ? name.substr(3) : name;
        return base == "sum"      ? sum
               : base == "prod"   ? prod
               : base == "min"    ? min
               : base == "max"    ? max
               : base == "any"    ? nonzero > 0
               : base == "all"    ? nonzero == count
               : base == "mean"   ? sum / double(n)
               : base == "var"    ? var(ddof)
               : base == "std"    ? std::sqrt(var(ddof))
               : base == "argmin" ? double(argmin)
               : base == "argmax" ? double(argmax)
                                  : double(nonzero);
    }
};

static int result_dtype(const ad_rule_row *rule, int loop) {
    int real = loop == AD_COMPLEX64 ? AD_FLOAT32 : loop == AD_COMPLEX128 ? AD_FLOAT64 : loop;
    return rule->out[0] == AD_CODE_B   ? AD_BOOL
           : rule->out[0] == AD_CODE_L ? AD_INT64
           : rule->out[0] == AD_CODE_R ? real
                                       : loop;
}

static const int64_t SHAPE[3] = {4, 37, 5};

static void check_axes(int row, int loop, uint64_t axes, int layout) {
    const ad_reduction_row *r = ad__reduction(uint64_t(row));
    const int out_dtype = result_dtype(&ad__rules[r->rule], loop);
    const std::string name = r->name;
    const bool inexact = ad__dtypes[loop].kind == 'f';
    alignas(16) static char memory[4 * 37 * 5 * 16];
    std::vector<double> value(4 * 37 * 5);
    numbers random(uint64_t(row) + axes);
    for (size_t i = 0; i < value.size(); i++) {
        value[i] = name.find("prod") != std::string::npos ? 1 : double(random.next() % (loop == AD_BOOL ? 2 : 6));
        if (inexact && name.rfind("nan", 0) == 0 && random.next() % 5 == 0) value[i] = NAN;
    }
    view whole(loop, memory, {4 * 37 * 5}), numbers_in(AD_FLOAT64, value.data(), {4 * 37 * 5});
    cr_assert_eq(call().add(whole).add(numbers_in).ufunc(AD_UFUNC_copy, AD_FLOAT64), 0);
    const int64_t size = ad__dtypes[loop].size, strides[][3] = {{185, 5, 1}, {1, 4, 148}, {-185, 5, -1}};
    const int64_t start[] = {0, 0, 3 * 185 + 4};
    std::vector<int64_t> t = {strides[layout][0] * size, strides[layout][1] * size, strides[layout][2] * size}, kept;
    view in(loop, memory + start[layout] * size, {SHAPE[0], SHAPE[1], SHAPE[2]}, t);
    int64_t outputs = 1;
    for (int d = 0; d < 3; d++)
        if (!(axes >> d & 1)) kept.push_back(SHAPE[d]), outputs *= SHAPE[d];
    std::vector<plain> want{};
    want.resize(size_t(outputs));
    for (int64_t a = 0; a < SHAPE[0]; a++)
        for (int64_t b = 0; b < SHAPE[1]; b++)
            for (int64_t c = 0; c < SHAPE[2]; c++) {
                int64_t at[3] = {a, b, c}, o = 0, from = start[layout];
                for (int d = 0; d < 3; d++) {
                    if (!(axes >> d & 1)) o = o * SHAPE[d] + at[d];
                    from += at[d] * strides[layout][d];
                }
                want[size_t(o)].take(value[size_t(from)]);
            }
    alignas(16) static char made[740 * 16];
    view out(out_dtype, made, kept);
    call c;
    cr_assert_eq(c.add(out).add(in).with(int64_t(axes)).with(1).without().reduce(row, loop), 0);
    std::vector<double> got(static_cast<size_t>(outputs));
    view vg(AD_FLOAT64, got.data(), {outputs}), vm(out_dtype, made, {outputs});
    cr_assert_eq(call().add(vg).add(vm).ufunc(AD_UFUNC_copy, out_dtype), 0);
    const double eps = loop == AD_FLOAT16 ? 2e-3 : loop == AD_BFLOAT16 ? 1e-2 : 2e-5;
    for (int64_t i = 0; i < outputs; i++) {
        const plain &p = want[size_t(i)];
        if (p.n <= 1) continue; /* all NaN: below */
        double w = p.value(name, 1);
        cr_assert(std::fabs(got[size_t(i)] - w) <= eps * (std::fabs(w) + 1e-3), "%s %s axes %d layout %d: %g, not %g",
                  r->name, ad__dtypes[loop].name, int(axes), layout, got[size_t(i)], w);
    }
}

static void check_everything() {
    for (int row = 0; row < AD_REDUCTION_LIMIT; row++) {
        const ad_reduction_row *r = ad__reduction(uint64_t(row));
        for (int loop = 0; r && loop < AD_NDTYPE; loop++)
            for (uint64_t axes = 1; axes < 8 && ad__rules[r->rule].loops >> loop & 1; axes++)
                for (int layout = 0; layout < 3; layout++) check_axes(row, loop, axes, layout);
    }
}

Test(kernels_reduce, every_row_type_and_axis) { check_everything(); }

Test(kernels_reduce, every_instruction_set) { every_instruction_set(check_everything); }

/* ---- particular cases ---- */

template <class S> static double reduce_all(int row, int loop, std::vector<S> x, int out_dtype) {
    alignas(16) char made[16];
    double r;
    view in(ad::dtype_of<S>::value, x.data(), {int64_t(x.size())}), out(out_dtype, made, {}), vr(AD_FLOAT64, &r, {});
    cr_assert_eq(call().add(out).add(in).with(1).without().without().reduce(row, loop), 0);
    cr_assert_eq(call().add(vr).add(out).ufunc(AD_UFUNC_copy, out_dtype), 0);
    return r;
}

Test(kernels_reduce, nan_is_the_extreme_unless_passed_over) {
    std::vector<float> x(1000, 1.0f);
    x[3] = -5, x[500] = NAN, x[700] = 9, x[900] = NAN;
    cr_assert(std::isnan(reduce_all(AD_REDUCTION_min, AD_FLOAT32, x, AD_FLOAT32)));
    cr_assert(std::isnan(reduce_all(AD_REDUCTION_max, AD_FLOAT32, x, AD_FLOAT32)));
    cr_assert_eq(reduce_all(AD_REDUCTION_argmin, AD_FLOAT32, x, AD_INT64), 500);
    cr_assert_eq(reduce_all(AD_REDUCTION_argmax, AD_FLOAT32, x, AD_INT64), 500);
    cr_assert_eq(reduce_all(AD_REDUCTION_nanmin, AD_FLOAT32, x, AD_FLOAT32), -5);
    cr_assert_eq(reduce_all(AD_REDUCTION_nanargmin, AD_FLOAT32, x, AD_INT64), 3);
    cr_assert_eq(reduce_all(AD_REDUCTION_nanargmax, AD_FLOAT32, x, AD_INT64), 700);
    std::vector<float> none(10, NAN);
    cr_assert(std::isnan(reduce_all(AD_REDUCTION_nanmax, AD_FLOAT32, none, AD_FLOAT32)));
    cr_assert_eq(reduce_all(AD_REDUCTION_nanargmax, AD_FLOAT32, none, AD_INT64), -1);
    cr_assert_eq(reduce_all(AD_REDUCTION_nansum, AD_FLOAT32, none, AD_FLOAT32), 0);
}

Test(kernels_reduce, the_first_of_equal_elements) {
    std::vector<int32_t> x(300000, 7);
    x[123456] = 9, x[250000] = 9, x[77] = -1, x[299999] = -1;
    cr_assert_eq(reduce_all(AD_REDUCTION_argmax, AD_INT32, x, AD_INT64), 123456);
    cr_assert_eq(reduce_all(AD_REDUCTION_argmin, AD_INT32, x, AD_INT64), 77);
    std::vector<float> infinite(100, -INFINITY);
    cr_assert_eq(reduce_all(AD_REDUCTION_argmax, AD_FLOAT32, infinite, AD_INT64), 0);
}

/* Compare with a plain loop: rows of n with many equal elements, the least and the greatest of the type, zeros of both
 * signs, and in some rows NaN and infinities. */
template <class S> static void check_places(int64_t n, numbers &random) {
    using L = std::numeric_limits<S>;
    constexpr int64_t ROWS = 6;
    std::vector<S> x;
    int64_t want[ROWS][2], got[ROWS];
    for (int64_t r = 0; r < ROWS; r++) {
        for (int64_t i = 0; i < n; i++) {
            const uint32_t c = random.next() % 64;
            S v = S(random.next() % 7);
            if (r % 2 && c == 0) v = L::has_infinity ? S(-L::infinity()) : L::lowest();
            if (r % 2 && c == 1) v = L::has_infinity ? L::infinity() : L::max();
            if (r % 3 == 2 && c == 2) v = L::has_quiet_NaN ? L::quiet_NaN() : S(1);
            if (c > 60) v = S(-v);
            x.push_back(v);
        }
        const S *row = x.data() + r * n;
        want[r][0] = want[r][1] = 0;
        for (int64_t i = 1; i < n; i++) {
            const S least = row[want[r][0]], greatest = row[want[r][1]];
            if (least == least && (row[i] != row[i] || row[i] < least)) want[r][0] = i;
            if (greatest == greatest && (row[i] != row[i] || row[i] > greatest)) want[r][1] = i;
        }
    }
    view in(ad::dtype_of<S>::value, x.data(), {ROWS, n}), out(AD_INT64, got, {ROWS});
    for (int greatest = 0; greatest < 2; greatest++) {
        const int row = greatest ? AD_REDUCTION_argmax : AD_REDUCTION_argmin;
        cr_assert_eq(call().add(out).add(in).with(2).without().without().reduce(row, ad::dtype_of<S>::value), 0);
        for (int64_t r = 0; r < ROWS; r++)
            cr_assert_eq(got[r], want[r][greatest], "%s, row %d of %d of type %d: %d, not %d",
                         greatest ? "argmax" : "argmin", int(r), int(n), ad::dtype_of<S>::value, int(got[r]),
                         int(want[r][greatest]));
    }
}

Test(kernels_reduce, places_in_rows_of_any_length) {
    every_instruction_set([] {
        numbers random(11);
        std::vector<int64_t> lengths = {511,  512,  513,  1023, 1024, 1025, 2047, 2048,
                                        2049, 4095, 4097, 8191, 8192, 8193, 20000};
        for (int64_t n = 1; n < 300; n++) lengths.push_back(n);
        for (int64_t n : lengths) {
            check_places<int8_t>(n, random), check_places<uint16_t>(n, random), check_places<int32_t>(n, random);
            check_places<uint64_t>(n, random), check_places<float>(n, random), check_places<double>(n, random);
        }
    });
}

Test(kernels_reduce, no_elements) {
    cr_assert_eq(reduce_all(AD_REDUCTION_sum, AD_FLOAT64, std::vector<double>(), AD_FLOAT64), 0);
    cr_assert_eq(reduce_all(AD_REDUCTION_prod, AD_INT64, std::vector<int64_t>(), AD_INT64), 1);
    cr_assert_eq(reduce_all(AD_REDUCTION_all, AD_FLOAT64, std::vector<double>(), AD_BOOL), 1);
    cr_assert(std::isnan(reduce_all(AD_REDUCTION_mean, AD_FLOAT64, std::vector<double>(), AD_FLOAT64)));
    cr_assert(std::isnan(reduce_all(AD_REDUCTION_var, AD_FLOAT64, std::vector<double>(), AD_FLOAT64)));
}

Test(kernels_reduce, long_sums_keep_their_digits) {
    std::vector<float> x(3000001);
    numbers random(3);
    double exact = 0;
    for (float &v : x) v = float(random.uniform(0, 1)), exact += v;
    cr_assert_lt(std::fabs(reduce_all(AD_REDUCTION_sum, AD_FLOAT32, x, AD_FLOAT32) - exact) / exact, 3e-7);
    for (float &v : x) v += 10000;
    double mean = exact / double(x.size()) + 10000, square = 0;
    for (float v : x) square += (v - mean) * (v - mean);
    double var = reduce_all(AD_REDUCTION_var, AD_FLOAT32, x, AD_FLOAT32);
    cr_assert_lt(std::fabs(var - square / double(x.size())), 1e-3);
}

Test(kernels_reduce, threads_make_no_difference) {
    numbers random(4);
    auto x = random.elements<float>(1000003, -1, 1);
    double two = reduce_all(AD_REDUCTION_sum, AD_FLOAT32, x, AD_FLOAT32);
    ad_cpu_parallel_close();
    double one = reduce_all(AD_REDUCTION_sum, AD_FLOAT32, x, AD_FLOAT32);
    ad_cpu_parallel_open(2, nullptr);
    cr_assert_eq(one, two);
}

Test(kernels_reduce, mask_and_initial) {
    int64_t x[6] = {1, 2, 3, 4, 5, 6}, out[3];
    uint8_t mask[6] = {1, 0, 1, 0, 1, 1};
    view in(AD_INT64, x, {2, 3}), m(AD_BOOL, mask, {2, 3}), o(AD_INT64, out, {3});
    cr_assert_eq(call().add(o).add(in).add(m).with(1).without().with(100).reduce(AD_REDUCTION_sum, AD_INT64), 0);
    cr_assert(out[0] == 101 && out[1] == 105 && out[2] == 109);
    view row(AD_BOOL, mask, {3});
    cr_assert_eq(call().add(o).add(in).add(row).with(1).without().with(-5).reduce(AD_REDUCTION_max, AD_INT64), 0);
    cr_assert(out[0] == 4 && out[1] == -5 && out[2] == 6);
}

Test(kernels_reduce, any_stops_early_and_is_right) {
    std::vector<uint8_t> x(2000000, 0);
    std::vector<ad::bool8> b(x.size());
    memset(static_cast<void *>(b.data()), 0, b.size());
    cr_assert_eq(reduce_all(AD_REDUCTION_any, AD_BOOL, b, AD_BOOL), 0);
    b[1999999].bits = 200;
    cr_assert_eq(reduce_all(AD_REDUCTION_any, AD_BOOL, b, AD_BOOL), 1);
    cr_assert_eq(reduce_all(AD_REDUCTION_count_nonzero, AD_BOOL, b, AD_INT64), 1);
    cr_assert_eq(reduce_all(AD_REDUCTION_sum, AD_INT64, b, AD_INT64), 1);
}

Test(kernels_reduce, no_axes_reduce_nothing) {
    float x[4] = {1, 2, 3, 4}, out[4];
    view in(AD_FLOAT32, x, {4}), o(AD_FLOAT32, out, {4});
    cr_assert_eq(call().add(o).add(in).with(0).without().without().reduce(AD_REDUCTION_sum, AD_FLOAT32), 0);
    cr_assert_arr_eq(out, x, sizeof x);
}
