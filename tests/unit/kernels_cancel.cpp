/* Operations that are given up half-way. */
#include <atomic>
#include <criterion/criterion.h>
#include <new>

#include "kernels/cpu/backend/parallel.h"
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
