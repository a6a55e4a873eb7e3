/* Capabilities, names and forks, with a real server. */
#include <criterion/criterion.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/embedded.h"

#define N 1000

static ad_array *make_array(ad_session *s) {
    ad_array *a;
    cr_assert_eq(ad_arange(s, ad_int(0), ad_int(N), ad_int(1), AD_FLOAT64, &a), 0, "%s", ad_error_message());
    return a;
}

static double read_last(const ad_array *a) {
    double data[N];
    cr_assert_eq(ad_download(a, data, sizeof data), 0, "%s", ad_error_message());
    return data[N - 1];
}

Test(embedded_sharing, capabilities) {
    const int64_t shape[] = {N}, strides[] = {8};
    const ad_layout layout = {AD_FLOAT64, 1, 0, shape, strides}, beyond = {AD_FLOAT64, 1, 8, shape, strides};
    ad_session *s = open_embedded();
    ad_array *a = make_array(s), *b;
    ad_capability c, used;
    cr_assert_eq(ad_capability_make(a, 0, 0, 0, &c), 0, "%s", ad_error_message());
    cr_assert_eq(ad_capability_make(a, 1, 0, 0, &used), 0, "%s", ad_error_message());
    cr_assert_eq(ad_capability_attach(s, &used, &layout, &b), 0, "%s", ad_error_message());
    cr_assert_eq(ad_copy_into(b, ad_float(1.5), 4), 0, "%s", ad_error_message());
    cr_expect(read_last(a) == N - 1 && read_last(b) == 1.5);
    ad_array_release(b);
    cr_expect_eq(ad_capability_attach(s, &used, &layout, &b), AD_E_STALE);
    cr_expect_eq(ad_capability_attach(s, &c, &beyond, &b), AD_E_EXTENT);
    cr_expect_eq(ad_capability_revoke(s, &c), 0);
    cr_expect_eq(ad_capability_attach(s, &c, &layout, &b), AD_E_STALE);
    cr_expect_eq(ad_sync(s), 0, "%s", ad_error_message());
    ad_array_release(a);
    ad_session_close(s);
}

Test(embedded_sharing, names) {
    ad_session *s = open_embedded();
    ad_array *a = make_array(s), *b;
    ad_array_info info;
    char *text;
    cr_assert_eq(ad_publish(a, "a.b/c", false, NULL), 0, "%s", ad_error_message());
    cr_expect_eq(ad_publish(a, "a b", false, NULL), AD_E_VALUE);
    cr_assert_eq(ad_attach(s, NULL, "a.b/c", &b), 0, "%s", ad_error_message());
    ad_array_get_info(b, &info);
    cr_expect(!info.writable && info.dtype == AD_FLOAT64 && info.ndim == 1 && info.shape[0] == N);
    cr_expect_eq(ad_copy_into(b, ad_float(1), 4), AD_E_VALUE);
    cr_expect_eq(ad_write(b, &info, 0), AD_E_VALUE);
    cr_expect(read_last(b) == N - 1);
    cr_assert_eq(ad_names(s, &text), 0, "%s", ad_error_message());
    cr_expect(strncmp(text, "a.b/c\t", 6) == 0 && strchr(text, '\n') == text + strlen(text) - 1);
    free(text);
    cr_expect_eq(ad_unpublish(s, "a.b/c"), 0);
    cr_expect_eq(ad_unpublish(s, "a.b/c"), AD_E_NAME);
    cr_expect_eq(ad_attach(s, NULL, "a.b/c", &b), AD_E_NAME);
    cr_assert_eq(ad_names(s, &text), 0, "%s", ad_error_message());
    cr_expect_str_eq(text, "");
    free(text);
    ad_array_release(b);
    ad_array_release(a);
    ad_session_close(s);
}

Test(embedded_sharing, a_child_goes_on) {
    ad_session *s = open_embedded();
    ad_array *a = make_array(s);
    int status = 1;
    pid_t pid = fork();
    if (pid == 0) {
        double data[N];
        bool good = ad_session_usable(s) && ad_copy_into(a, ad_float(2), 4) == 0 &&
                    ad_download(a, data, sizeof data) == 0 && data[N - 1] == 2;
        ad_array_release(a);
        ad_session_close(s);
        _exit(good ? 0 : 3);
    }
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    cr_expect(read_last(a) == N - 1);
    ad_array_release(a);
    ad_session_close(s);
}
