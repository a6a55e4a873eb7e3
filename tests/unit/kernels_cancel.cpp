/* Operations that are given up half-way. */
#include <atomic>
#include <criterion/criterion.h>
#include <new>

#include "kernels/cpu/backend/parallel.h"
#include "kernels/cpu/isa/pairs.h"
#include "kernels/cpu/kernels.h"
#include "tests/unit/kernels_call.h"
#include "protocol/rows_call.h"

namespace {

constexpr int64_t MANY = int64_t(1) << 45; /* of one element in memory */

int cancelled_call(int row, int dtype, std::vector<arg> outputs, std::vector<arg> inputs,
                   std::vector<ad_scalar> parameters = {}) {
    static const int now = 1;
    host h(2);
    h.run.cancelled = &now;
    return h.call(row, dtype, std::move(outputs), std::move(inputs), std::move(parameters));
}

} // namespace

Test(kernels_cancel, products_that_would_take_days) {
    nd<float> x({1, 1}), out({1, 1});
    cr_assert_eq(
        cancelled_call(AD_CALL_matmul, AD_FLOAT32, {out}, {x.repeated(1, MANY), x.repeated(0, MANY)}, {boolean(false)}),
        AD_E_INTERRUPTED);
    nd<int64_t> n({1, 1}), whole({1, 1});
    cr_assert_eq(
        cancelled_call(AD_CALL_matmul, AD_INT64, {whole}, {n.repeated(1, MANY), n.repeated(0, MANY)}, {boolean(false)}),
        AD_E_INTERRUPTED);
}

Test(kernels_cancel, counts_that_would_take_days) {
    nd<int64_t> x({1}), out({1});
    cr_assert_eq(cancelled_call(AD_CALL_bincount, AD_INT64, {out}, {x.repeated(0, MANY)}), AD_E_INTERRUPTED);
}

Test(kernels_cancel, nothing_is_left_of_it) {
    nd<float> a({300, 200}), b({200, 300}), out({300, 300});
    cr_assert_eq(cancelled_call(AD_CALL_matmul, AD_FLOAT32, {out}, {a, b}, {boolean(false)}), AD_E_INTERRUPTED);
    host h(2);
    cr_assert_eq(h.call(AD_CALL_matmul, AD_FLOAT32, {out}, {a, b}, {boolean(false)}), 0, "%s", h.fault.text);
}

/* Few points, whose distances are one piece of work, may have any number of coordinates. */
Test(kernels_cancel, distances_of_long_points) {
    nd<double> x({1, 1500}), y({1, 1500}), out({1, 1});
    for (int metric : {1, 4}) /* in vectors, and number by number */
        cr_assert_eq(cancelled_call(AD_CALL_pair_distances, AD_FLOAT64, {out}, {x, y}, {integer(metric), number(1.5)}),
                     AD_E_INTERRUPTED);
}

/* One query may look at any number of points. */
Test(kernels_cancel, a_query_of_many_points) {
    static const int now = 1;
    constexpr int64_t blocks = 1100, points = blocks * AD_PAIR_LANES;
    host h(1);
    std::vector<double> coordinates(points, 1.0);
    std::vector<int64_t> place(points);
    const double x = 0;
    double far;
    int64_t found;
    ad_near_tree tree = {1, {coordinates.data()}, {blocks}, points, 1, place.data(), 2};
    const ad_near_query query = {&x, 1, __builtin_huge_val(), &far, &found};
    bool thrown = false;
    const ad_cpu_cancel_scope scope(&now);
    try {
        ad_cpu_kernels_get()->pairs->find(&tree, &query);
    } catch (const ad_cpu_cancelled &) {
        thrown = true;
    }
    cr_assert(thrown);
}

/* Points are put in order by places, which lie in the second piece of scratch memory. When the first place has changed,
 * all points are not halved yet. */
Test(kernels_cancel, an_order_of_many_points) {
    constexpr int64_t points = 6 << 20, queries = 1000;
    static std::vector<int64_t> place;
    nd<double> x({points, 1}), q({queries, 1}), far({queries, 1});
    nd<int64_t> found({queries, 1});
    host h(1);
    place.assign(points + AD_PAIR_LANES + 1, 0);
    for (int64_t i = 0; i < points; i++) x[i] = double(i * 1000003 % points);
    h.run.cancelled = reinterpret_cast<const int *>(place.data());
    h.run.workspace = [](ad_run *r, uint64_t size) -> void * {
        host::engine *e = static_cast<host::engine *>(r);
        if (e->scratch.size() == 1) {
            e->scratch.emplace_back();
            return place.data();
        }
        e->scratch.emplace_back(new char[size]);
        return e->scratch.back().get();
    };
    cr_assert_eq(h.call(AD_CALL_nearest_points, AD_FLOAT64, {far, found}, {x, q},
                        {integer(1), number(2), number(__builtin_huge_val())}),
                 AD_E_INTERRUPTED);
    int64_t before = 0;
    for (int64_t i = 0; i < points / 2; i++) before += x[place[size_t(i)]] < double(points / 2);
    cr_assert_neq(place[0], 0);
    cr_assert_neq(before, points / 2);
}

/* Sparse matrices may have any number of rows without entries. */
Test(kernels_cancel, empty_rows) {
    constexpr int64_t rows = 20000;
    nd<double> data({2});
    nd<int32_t> indices({2}), indptr({rows + 1}), out({2});
    for (int64_t i = 1; i <= rows; i++) indptr[i] = i < rows ? 1 : 2;
    cr_assert_eq(cancelled_call(AD_CALL_spunion, AD_FLOAT64,
                                {arg::sized(AD_FLOAT64), arg::sized(AD_INT32), arg::sized(AD_INT32)},
                                {data, indices, indptr, data, indices, indptr}, {integer(0)}),
                 AD_E_INTERRUPTED);
    cr_assert_eq(cancelled_call(AD_CALL_sprows, AD_INT32, {out}, {indptr}, {integer(2)}), AD_E_INTERRUPTED);
    nd<int32_t> roots({rows});
    indices[0] = indices[1] = 0;
    cr_assert_eq(cancelled_call(AD_CALL_spcomponents, AD_FLOAT64, {roots}, {data, indices, indptr}, {}),
                 AD_E_INTERRUPTED);
}

/* One row may have any number of entries. */
Test(kernels_cancel, a_row_of_many_entries) {
    constexpr int64_t entries = (1 << 20) + 64;
    nd<double> data({entries}), diagonal({1});
    nd<int32_t> indices({entries}), indptr({2}), root({1});
    indptr[0] = 0;
    indptr[1] = entries;
    for (int64_t i = 0; i < entries; i++) indices[i] = 0;
    cr_assert_eq(cancelled_call(AD_CALL_spdiagonal, AD_FLOAT64, {diagonal}, {data, indices, indptr},
                                {integer(0), integer(0), integer(1)}),
                 AD_E_INTERRUPTED);
    cr_assert_eq(cancelled_call(AD_CALL_spcomponents, AD_FLOAT64, {root}, {data, indices, indptr}, {}),
                 AD_E_INTERRUPTED);
}

/* The first entry that is moved gives it up. */
Test(kernels_cancel, empty_rows_between_entries_that_are_moved) {
    constexpr int64_t rows = 20000;
    nd<int32_t> data({2}), indices({2}), indptr({rows + 1}), moved({2}), places({2}), columns({2});
    host h(2);
    data[0] = data[1] = 7;
    for (int64_t i = 1; i <= rows; i++) indptr[i] = i < rows ? 1 : 2;
    h.run.cancelled = &moved[0];
    cr_assert_eq(h.call(AD_CALL_sptranspose, AD_INT32, {moved, places, columns}, {data, indices, indptr}, {integer(1)}),
                 AD_E_INTERRUPTED);
    cr_assert(moved[0] == 7 && moved[1] == 0);
}

/* A piece that fails ends the others, and its exception reaches who asked. */
Test(kernels_cancel, what_a_piece_throws) {
    ad_fault fault;
    cr_assert_eq(ad_cpu_parallel_open(3, &fault), 0);
    std::atomic<int64_t> done{0};
    bool thrown = false;
    try {
        ad_cpu_parallel(1000, 1, [&](int64_t begin, int64_t end) {
            if (begin <= 500 && 500 < end) throw std::bad_alloc();
            done += end - begin;
        });
    } catch (const std::bad_alloc &) {
        thrown = true;
    }
    cr_assert(thrown && done < 1000);
    ad_cpu_parallel(1000, 1, [&](int64_t begin, int64_t end) { done += end - begin; }); /* as if nothing had been */
    cr_assert(done >= 1000);
    ad_cpu_parallel_close();
}

Test(kernels_cancel, pieces_of_any_number) {
    ad_fault fault;
    for (int threads : {1, 3}) {
        cr_assert_eq(ad_cpu_parallel_open(threads, &fault), 0);
        for (int64_t n : {int64_t(1), int64_t(7), int64_t(4097), (int64_t(1) << 62) - 1}) {
            std::atomic<int64_t> done{0};
            const int64_t grain = n > (1 << 20) ? n / 5000 : 3;
            ad_cpu_parallel(n, grain, [&](int64_t begin, int64_t end) {
                cr_assert(begin >= 0 && begin < end && end <= n);
                done += end - begin;
            });
            cr_assert_eq(done, n);
        }
        ad_cpu_parallel_close();
    }
}
