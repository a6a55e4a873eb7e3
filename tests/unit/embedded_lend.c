/* Memory of this process as an array, as far as that goes without a GPU: what is refused, and that nothing is kept
 * then. The rest is in tests/fault/test_lending.py. Passed over where the server has not been built. */
#include <criterion/criterion.h>
#include <string.h>

#include "protocol/counters.h"
#include "tests/unit/embedded.h"

static int released;

static void count_release(void *argument) {
    (void)argument;
    released++;
}

static const int64_t shape[] = {2, 3}, strides[] = {24, 8};

static void check_refused(ad_session *s, ad_loan loan, ad_layout layout, int status, const char *text) {
    ad_array *a = NULL;
    cr_expect_eq(ad_lend(s, &loan, &layout, &a), status, "%s", ad_error_message());
    cr_expect(strstr(ad_error_message(), text), "%s", ad_error_message());
    cr_expect(!a && !released);
}

Test(embedded_lend, what_is_refused) {
    double memory[6] = {0};
    ad_session *s = open_embedded();
    ad_session_info info;
    const ad_loan loan = {.data = memory, .device = -1, .release = count_release},
                  careless = {.data = memory, .device = -1};
    check_refused(s, loan, (ad_layout){AD_FLOAT64, 2, 0, shape, strides}, AD_E_UNSUPPORTED, "uses no GPU");
    check_refused(s, careless, (ad_layout){AD_FLOAT64, 2, 0, shape, strides}, AD_E_VALUE,
                  "a release function is needed");
    check_refused(s, loan, (ad_layout){99, 2, 0, shape, strides}, AD_E_TYPE, "99");
    check_refused(s, loan, (ad_layout){AD_FLOAT64, 2, 0, (int64_t[]){2, -3}, strides}, AD_E_VALUE, "negative");
    ad_session_get_info(s, &info);
    cr_expect(info.lent == 0 && info.copied == 0);
    ad_session_close(s);
}

Test(embedded_lend, settling_waits) {
    ad_session *s = open_embedded();
    ad_session_info info;
    ad_array *a, *b;
    uint64_t counters[64];
    int got = 0;
    cr_assert_eq(ad_arange(s, ad_int(0), ad_int(300000), ad_int(1), AD_FLOAT64, &a), 0);
    cr_assert_eq(ad_sin(ad_of(a), &b), 0, "%s", ad_error_message());
    cr_assert_eq(ad_settle(s), 0, "%s", ad_error_message());
    ad_session_get_info(s, &info);
    cr_assert_eq(ad_stat(s, 64, counters, &got), 0);
    cr_expect_eq(counters[AD_COUNTER_ops_done], info.operations);
    ad_array_release(a);
    ad_array_release(b);
    ad_session_close(s);
}
