/* Memory of arrays in this process, from the real server, embedded; passed over where it has not been built. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "protocol/counters.h"
#include "tests/unit/embedded.h"

#define N 50000

static ad_array *make_array(ad_session *s, int64_t n) {
    ad_array *a;
    cr_assert_eq(ad_arange(s, ad_int(0), ad_int(n), ad_int(1), AD_FLOAT64, &a), 0, "%s", ad_error_message());
    return a;
}

static double read_element(const ad_array *a, int64_t i) {
    ad_array *one;
    double value = -1;
    cr_assert_eq(ad_slice(a, 0, i, i + 1, 1, &one), 0);
    cr_assert_eq(ad_download(one, &value, sizeof value), 0, "%s", ad_error_message());
    ad_array_release(one);
    return value;
}

static uint64_t count_exports(ad_session *s) {
    uint64_t counters[64];
    int got = 0;
    cr_assert_eq(ad_stat(s, 64, counters, &got), 0);
    cr_assert_gt(got, AD_COUNTER_exports);
    return counters[AD_COUNTER_exports];
}

static void await_exports(ad_session *s, uint64_t n) {
    while (count_exports(s) != n) /* the test's own time limit ends it */
        ;
}

Test(embedded_export, both_write) {
    ad_session *s = open_embedded();
    ad_array *a = make_array(s, N), *odd;
    ad_lease *lease, *second;
    ad_lease_info info;
    double *x = NULL, *y = NULL;
    cr_assert_eq(ad_slice(a, 0, 1, N, 2, &odd), 0);
    cr_assert_eq(ad_export(a, &lease), 0, "%s", ad_error_message());
    ad_export_get_info(lease, &info);
    cr_expect(info.fd >= 0 && !info.cuda && info.device == -1 && !info.base && info.size >= N * sizeof *x);
    cr_assert_eq(ad_import(lease, NULL, (void **)&x), 0, "%s", ad_error_message());
    cr_assert_eq(ad_export(odd, &second), 0, "%s", ad_error_message());
    cr_assert_eq(ad_import(second, NULL, (void **)&y), 0);
    ad_export_get_info(second, &info);
    cr_expect(info.fd == -1 && info.offset == 8 && y == (double *)info.base + 1);
    cr_expect(x[N - 1] == N - 1 && y[0] == 1 && count_exports(s) == 2);
    x[1] = 50;
    cr_expect(y[0] == 50 && read_element(a, 1) == 50);
    cr_assert_eq(ad_copy_into(odd, ad_float(3), 4), 0);
    cr_assert_eq(ad_sync(s), 0);
    cr_expect(x[0] == 0 && x[1] == 3 && x[N - 1] == 3);
    ad_export_close(ad_export_retain(second));
    ad_export_close(second);
    await_exports(s, 1);
    x[2] = 60;
    cr_expect_eq(read_element(a, 2), 60);
    ad_export_close(lease);
    await_exports(s, 0);
    ad_array_release(odd);
    ad_array_release(a);
    ad_session_close(s);
}

Test(embedded_export, what_is_read_stays) {
    ad_session *s = open_embedded();
    ad_array *a = make_array(s, N), *view;
    ad_lease *lease, *second;
    const double *x = NULL, *y = NULL;
    cr_assert_eq(ad_slice(a, 0, 1, N, 1, &view), 0);
    ad_freeze(view);
    cr_expect_eq(ad_copy_into(view, ad_float(3), 4), AD_E_VALUE);
    cr_assert_eq(ad_export(view, &lease), 0, "%s", ad_error_message());
    cr_assert_eq(ad_import(lease, NULL, (void **)&x), 0, "%s", ad_error_message());
    cr_assert_eq(ad_export(view, &second), 0, "%s", ad_error_message());
    cr_assert_eq(ad_import(second, NULL, (void **)&y), 0);
    cr_expect(x == y && x[0] == 1 && count_exports(s) == 2);
    ad_export_close(lease);
    await_exports(s, 1);
    cr_assert_eq(ad_copy_into(a, ad_float(3), 4), 0);
    cr_assert_eq(ad_sync(s), 0);
    cr_expect(y[0] == 1 && y[N - 2] == N - 1 && read_element(a, 5) == 3 && read_element(view, 0) == 3);
    *(double *)(uintptr_t)y = 9;
    cr_expect(read_element(view, 0) == 3 && read_element(a, 1) == 3);
    ad_export_close(second);
    await_exports(s, 0);
    ad_array_release(view);
    ad_array_release(a);
    ad_session_close(s);
}

Test(embedded_export, memory_outlives_array_and_session) {
    ad_session *s = open_embedded();
    ad_array *a = make_array(s, N);
    ad_lease *lease;
    double *x;
    cr_assert_eq(ad_export(a, &lease), 0);
    cr_assert_eq(ad_import(lease, NULL, (void **)&x), 0);
    ad_array_release(a);
    ad_session_close(s);
    cr_expect_eq(x[N - 1], N - 1);
    x[0] = 1;
    ad_export_close(lease);
}

static void *import_lease(void *lease) {
    void *data = NULL;
    ad_lease_info info;
    ad_export_get_info(lease, &info);
    return ad_import(lease, NULL, &data) ? NULL : data;
}

Test(embedded_export, threads_import_it_at_once) {
    ad_session *s = open_embedded();
    ad_array *a = make_array(s, N);
    for (int round = 0; round < 50; round++) {
        pthread_t thread[4];
        ad_lease *lease;
        void *data;
        cr_assert_eq(ad_export(a, &lease), 0);
        for (int i = 0; i < 4; i++) cr_assert_eq(pthread_create(&thread[i], NULL, import_lease, lease), 0);
        cr_assert_eq(ad_import(lease, NULL, &data), 0);
        for (int i = 0; i < 4; i++) {
            void *other;
            pthread_join(thread[i], &other);
            cr_assert_eq(other, data);
        }
        ad_export_close(lease);
    }
    ad_array_release(a);
    ad_session_close(s);
}

Test(embedded_export, descriptors_are_not_mixed_up) {
    ad_session *s = open_embedded();
    ad_array *a = make_array(s, N);
    for (int i = 0; i < 100; i++) { /* those of windows go the same way */
        ad_array *b = make_array(s, 1 + i);
        ad_lease *lease;
        ad_host *host = NULL;
        double *x;
        int status = ad_host_alloc(s, (size_t)(1 + i % 3) << 20, &host);
        cr_assert(status == 0 || status == AD_E_UNSUPPORTED);
        cr_assert_eq(ad_export(b, &lease), 0, "%s", ad_error_message());
        cr_assert_eq(ad_import(lease, NULL, (void **)&x), 0);
        cr_assert_eq(x[i], i);
        ad_export_close(lease);
        ad_host_release(host);
        ad_host_trim(s);
        ad_array_release(b);
    }
    cr_expect_eq(read_element(a, N - 1), N - 1);
    ad_array_release(a);
    ad_session_close(s);
}

Test(embedded_export, a_child_has_no_part_in_it) {
    ad_session *s = open_embedded();
    ad_array *a = make_array(s, N);
    ad_lease *lease;
    double *x;
    int status = 1;
    cr_assert_eq(ad_export(a, &lease), 0);
    cr_assert_eq(ad_import(lease, NULL, (void **)&x), 0);
    pid_t pid = fork();
    if (pid == 0) {
        void *again;
        x[0] = 5;
        bool good =
            ad_copy_into(a, ad_float(7), 4) == 0 && ad_sync(s) == 0 && x[0] == 7 && ad_import(lease, NULL, &again) != 0;
        ad_export_close(lease);
        ad_array_release(a);
        ad_session_close(s);
        _exit(good ? 0 : 3);
    }
    cr_assert_eq(waitpid(pid, &status, 0), pid);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    cr_expect(x[N - 1] == 7 && count_exports(s) == 1 && read_element(a, 1) == 7);
    x[1] = 8;
    cr_expect_eq(read_element(a, 1), 8);
    ad_export_close(lease);
    await_exports(s, 0);
    ad_array_release(a);
    ad_session_close(s);
}

Test(embedded_export, refusals) {
    ad_session *s = open_embedded();
    const int64_t none = 0, much = (int64_t)1 << 44, two = 2;
    ad_array *empty, *poisoned, *mine, *theirs;
    ad_lease *lease = NULL;
    unsigned char handle[64] = {0};
    cr_assert_eq(ad_zeros(s, AD_INT8, 1, &none, &empty), 0);
    cr_expect(ad_export(empty, &lease) == AD_E_UNSUPPORTED && strstr(ad_error_message(), "no elements"));
    cr_assert_eq(ad_zeros(s, AD_FLOAT64, 1, &much, &poisoned), 0);
    cr_expect_eq(ad_export(poisoned, &lease), AD_E_MEMORY);
    cr_assert_eq(ad_zeros(s, AD_FLOAT64, 1, &two, &mine), 0);
    cr_assert_eq(ad_publish(mine, "exported", false, NULL), 0);
    cr_assert_eq(ad_attach(s, NULL, "exported", &theirs), 0);
    cr_expect(ad_ipc_handle(theirs, handle, &lease) == AD_E_UNSUPPORTED);
    cr_expect(ad_ipc_handle(mine, handle, &lease) == AD_E_UNSUPPORTED && strstr(ad_error_message(), "no GPU"));
    cr_expect(!lease && !handle[0]);
    cr_expect_eq(count_exports(s), 0);
    ad_export_close(NULL);
    ad_array_release(empty);
    ad_array_release(poisoned);
    ad_array_release(mine);
    ad_array_release(theirs);
    ad_session_close(s);
}
