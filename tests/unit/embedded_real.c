/* The client with the real server, embedded; passed over where that has not been built. */
#include <criterion/criterion.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "protocol/counters.h"
#include "tests/unit/embedded.h"
#include "protocol/rows_call.h"
#include "protocol/rows_ufunc.h"

static double read_scalar(ad_array *a) {
    double x = NAN;
    cr_expect_eq(ad_download(a, &x, sizeof x), 0, "%s", ad_error_message());
    ad_array_release(a);
    return x;
}

Test(embedded_real, sums) {
    ad_session *s = open_embedded();
    ad_array *x, *y, *sum;
    cr_assert_eq(ad_arange(s, ad_int(0), ad_int(10), ad_int(1), AD_FLOAT64, &x), 0, "%s", ad_error_message());
    cr_assert_eq(ad_multiply(ad_of(x), ad_float(2), &y), 0);
    cr_assert_eq(ad_sum(ad_of(y), &sum), 0);
    cr_assert_eq(read_scalar(sum), 90);
    ad_array_release(x);
    ad_array_release(y);
    ad_session_close(s);
}

/* Tell whether kernels are allowed and can be compiled. */
static bool has_kernels(ad_session *s) {
    ad_session_info info;
    ad_module *m = NULL;
    ad_session_get_info(s, &info);
    int status = info.kernels ? ad_module_build(s, "", 0, 0, NULL, 0, NULL, &m, NULL) : AD_E_DENIED;
    ad_module_release(m);
    cr_assert(status == 0 || status == AD_E_DENIED || status == AD_E_UNSUPPORTED, "%s", ad_error_message());
    return status == 0;
}

static const char kernels[] = "__device__ int calls;\n"
                              "template <class T> __global__ void shift(T *x, T by) { x[threadIdx.x] += by; }\n"
                              "extern \"C\" __global__ void twice(const double *x, double *y, int n) {\n"
                              "    int i = blockIdx.x * blockDim.x + threadIdx.x;\n"
                              "    if (i < n) y[i] = 2 * x[i];\n"
                              "    if (i == 0) calls++;\n"
                              "}\n";

static void check_launches(ad_session *s, ad_module *m) {
    const ad_grid grid = {{4, 1, 1}, {3, 1, 1}, 0}, one = {{1, 1, 1}, {10, 1, 1}, 0};
    const int n = 10;
    const double by = 0.5;
    ad_array *x, *y, *sum, *calls;
    cr_assert_eq(ad_arange(s, ad_int(0), ad_int(10), ad_int(1), AD_FLOAT64, &x), 0);
    cr_assert_eq(ad_zeros(s, AD_FLOAT64, 1, (int64_t[]){10}, &y), 0);
    const ad_parameter p[] = {{.array = x}, {.array = y, .written = true}, {.data = &n, .size = sizeof n}};
    const ad_parameter q[] = {{.array = y, .written = true}, {.data = &by, .size = sizeof by}};
    cr_assert_eq(ad_launch(m, "twice", &grid, 3, p), 0, "%s", ad_error_message());
    cr_assert_eq(ad_launch(m, "shift<double>", &one, 2, q), 0, "%s", ad_error_message());
    cr_assert_eq(ad_sum(ad_of(y), &sum), 0);
    cr_assert_eq(read_scalar(sum), 95);
    cr_assert_eq(ad_module_get_global(m, "calls", &calls), 0, "%s", ad_error_message());
    int count = 0;
    cr_assert_eq(ad_download(calls, &count, sizeof count), 0);
    cr_assert_eq(count, 1);
    cr_assert_eq(ad_launch(m, "twice", &grid, 2, p), 0);
    cr_assert_eq(ad_sync(s), AD_E_VALUE);
    cr_assert(strstr(ad_error_message(), "3 parameters, not 2"));
    ad_array_release(x);
    ad_array_release(y);
    ad_array_release(calls);
}

Test(embedded_real, kernels) {
    ad_session *s = open_embedded();
    ad_module *m = NULL;
    ad_kernel_facts facts;
    char *log = NULL;
    if (!has_kernels(s)) {
        ad_session_close(s);
        cr_skip_test("no kernels here");
    }
    cr_assert_eq(ad_module_build(s, "int x = y;", 10, 0, NULL, 0, NULL, &m, &log), AD_E_COMPILE);
    cr_assert(log && strstr(log, "'y'"));
    cr_assert_null(m);
    free(log);
    cr_assert_eq(ad_module_build(s, kernels, sizeof kernels - 1, 1, (const char *[]){"-DUNUSED"}, 1,
                                 (const char *[]){"shift<double>"}, &m, NULL),
                 0, "%s", ad_error_message());
    check_launches(s, m);
    cr_assert_eq(ad_kernel_set(m, "twice", 65536, -1), 0);
    cr_assert_eq(ad_kernel_get_facts(m, "twice", &facts), 0);
    cr_assert_eq(facts.max_dynamic_shared_size, 65536);
    cr_assert_eq(ad_kernel_get_facts(m, "none", &facts), AD_E_VALUE);
    ad_module_release(m);
    cr_assert_eq(ad_sync(s), 0);
    ad_session_close(s);
}

Test(embedded_real, constant_comparisons) {
    static const struct {
        int ufunc, value, first, truth; /* first: the value is the first operand */
    } rows[] = {
        {AD_UFUNC_less, 300, 0, 1},         {AD_UFUNC_less, 300, 1, 0},       {AD_UFUNC_less, -1, 0, 0},
        {AD_UFUNC_less, -1, 1, 1},          {AD_UFUNC_equal, 300, 0, 0},      {AD_UFUNC_equal, -1, 1, 0},
        {AD_UFUNC_not_equal, 300, 1, 1},    {AD_UFUNC_not_equal, -1, 0, 1},   {AD_UFUNC_greater, 300, 0, 0},
        {AD_UFUNC_greater, 300, 1, 1},      {AD_UFUNC_greater, -1, 0, 1},     {AD_UFUNC_greater, -1, 1, 0},
        {AD_UFUNC_greater_equal, -1, 0, 1}, {AD_UFUNC_less_equal, 300, 0, 1}, {AD_UFUNC_less_equal, 255, 0, 1},
    };
    ad_session *s = open_embedded();
    ad_array *a, *r;
    uint8_t data[3] = {0, 7, 255}, got[3];
    cr_assert_eq(ad_upload(s, AD_UINT8, 1, (int64_t[]){3}, data, 3, &a), 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ad_in in[2] = {ad_of(a), ad_of(a)};
        in[!rows[i].first] = ad_int(rows[i].value);
        cr_assert_eq(ad_ufunc_call(NULL, rows[i].ufunc, in, NULL, &r), 0);
        cr_assert_eq(ad_download(r, got, 3), 0);
        for (int k = 0; k < 3; k++) cr_expect_eq(got[k], rows[i].truth, "row %zu", i);
        ad_array_release(r);
    }
    ad_array_release(a);
    ad_session_close(s);
}

Test(embedded_real, questions_and_errors) {
    ad_session *s = open_embedded();
    ad_array *x, *where, *bad, *i;
    ad_array_info info;
    int64_t values[8], got[6], index = 9;
    double data[6] = {0, 1, 0, 2, 3, 0};
    cr_assert_eq(ad_upload(s, AD_FLOAT64, 2, (int64_t[]){2, 3}, data, sizeof data, &x), 0);
    cr_assert_eq(ad_call_call(NULL, AD_CALL_nonzero, -1, 1, (ad_in[]){ad_of(x)}, 0, NULL, NULL, &where, values), 0,
                 "%s", ad_error_message());
    ad_array_get_info(where, &info);
    cr_assert(info.ndim == 2 && info.shape[0] == 2 && info.shape[1] == 3 && values[0] == 3);
    cr_assert_eq(ad_download(where, got, sizeof got), 0);
    cr_expect_eq(memcmp(got, (int64_t[]){0, 1, 1, 1, 0, 1}, sizeof got), 0);
    cr_assert_eq(ad_upload(s, AD_INT64, 1, (int64_t[]){1}, &index, 8, &i), 0);
    cr_assert_eq(ad_call_call(NULL, AD_CALL_gather, -1, 2, (ad_in[]){ad_of(x), ad_of(i)}, 0, NULL, NULL, &bad, NULL),
                 0);
    cr_expect_eq(ad_download(bad, data, 24), AD_E_INDEX, "%s", ad_error_message());
    const char *name;
    cr_expect_neq(ad_error_operation(&name), 0);
    cr_expect_str_eq(name, "gather");
    cr_expect_eq(ad_sync(s), 0, "%s", ad_error_message());
    ad_array *all[] = {x, where, bad, i};
    for (int k = 0; k < 4; k++) ad_array_release(all[k]);
    ad_session_close(s);
}

static void expect_counter(ad_session *s, int counter, uint64_t expected) {
    uint64_t counters[AD_NCOUNTER];
    int got;
    cr_assert_eq(ad_stat(s, AD_NCOUNTER, counters, &got), 0, "%s", ad_error_message());
    cr_expect_eq(counters[counter], expected, "counter %d is %lu, not %lu", counter, (unsigned long)counters[counter],
                 (unsigned long)expected);
}

Test(embedded_real, a_query_that_fails_leaves_nothing_behind) {
    ad_session *s = open_embedded();
    ad_array *x, *i, *bad, *where;
    const int64_t index = 9;
    cr_assert_eq(ad_full(s, AD_FLOAT64, 1, (int64_t[]){3}, ad_float(1), &x), 0);
    cr_assert_eq(ad_upload(s, AD_INT64, 1, (int64_t[]){1}, &index, 8, &i), 0);
    cr_assert_eq(ad_call_call(NULL, AD_CALL_gather, -1, 2, (ad_in[]){ad_of(x), ad_of(i)}, 0, NULL, NULL, &bad, NULL),
                 0);
    for (int k = 0; k < 3; k++)
        cr_expect_eq(ad_call_call(NULL, AD_CALL_nonzero, -1, 1, (ad_in[]){ad_of(bad)}, 0, NULL, NULL, &where, NULL),
                     AD_E_INDEX);
    expect_counter(s, AD_COUNTER_buffers, 3);
    cr_expect_eq(ad_sync(s), 0, "%s", ad_error_message());
    ad_array *all[] = {x, i, bad};
    for (int k = 0; k < 3; k++) ad_array_release(all[k]);
    ad_session_close(s);
}

/* Let the next request fail with the failure of an earlier operation, although the server carries it out. */
static void defer_failure(ad_session *s) {
    cr_assert_eq(ad_event_drop(s, 12345), 0);
    cr_assert_eq(ad_settle(s), 0);
}

Test(embedded_real, an_answer_beside_an_earlier_failure_leaves_nothing_behind) {
    ad_session *s = open_embedded();
    ad_array *x, *out;
    ad_capability c, other;
    char *names = NULL;
    const int64_t shape = 3, stride = 8;
    const ad_layout layout = {.dtype = AD_FLOAT64, .ndim = 1, .shape = &shape, .strides = &stride};
    cr_assert_eq(ad_full(s, AD_FLOAT64, 1, &shape, ad_float(1), &x), 0);
    cr_assert_eq(ad_capability_make(x, 0, 0, 0, &c), 0);
    defer_failure(s);
    cr_expect_eq(ad_call_call(NULL, AD_CALL_nonzero, -1, 1, (ad_in[]){ad_of(x)}, 0, NULL, NULL, &out, NULL),
                 AD_E_STALE);
    defer_failure(s);
    cr_expect_eq(ad_capability_attach(s, &c, &layout, &out), AD_E_STALE);
    defer_failure(s);
    cr_expect_eq(ad_names(s, &names), AD_E_STALE);
    expect_counter(s, AD_COUNTER_buffers, 1);
    defer_failure(s);
    cr_expect_eq(ad_capability_make(x, 0, 0, 0, &other), AD_E_STALE);
    cr_expect_eq(ad_capability_revoke(s, &c), 0);
    ad_array_release(x);
    expect_counter(s, AD_COUNTER_buffers, 0);
    expect_counter(s, AD_COUNTER_shared_bytes, 0);
    cr_expect_eq(ad_sync(s), 0, "%s", ad_error_message());
    ad_session_close(s);
}

Test(embedded_real, released_arrays_leave_nothing_behind) {
    ad_session *s = open_embedded();
    ad_array *a, *b;
    uint64_t counters[AD_NCOUNTER];
    int got;
    cr_assert_eq(ad_full(s, AD_FLOAT32, 1, (int64_t[]){16}, ad_float(1), &a), 0);
    for (int i = 0; i < 3000; i++) {
        cr_assert_eq(ad_add(ad_of(a), ad_of(a), &b), 0);
        ad_array_release(b);
    }
    cr_assert_eq(ad_stat(s, AD_NCOUNTER, counters, &got), 0);
    cr_assert_eq(got, AD_NCOUNTER);
    cr_expect_eq(counters[AD_COUNTER_buffers], 1);
    ad_array_release(a);
    cr_assert_eq(ad_stat(s, AD_NCOUNTER, counters, &got), 0);
    cr_expect_eq(counters[AD_COUNTER_buffers], 0);
    cr_expect_eq(counters[AD_COUNTER_ops_failed], 0);
    ad_session_close(s);
}

Test(embedded_real, a_child_frees_what_was_released_before_the_fork) {
    ad_session *s = open_embedded();
    ad_array *a, *b;
    uint64_t counters[AD_NCOUNTER];
    int got, status = 0;
    cr_assert_eq(ad_full(s, AD_FLOAT32, 1, (int64_t[]){16}, ad_float(1), &a), 0);
    cr_assert_eq(ad_full(s, AD_FLOAT32, 1, (int64_t[]){16}, ad_float(2), &b), 0);
    cr_assert_eq(ad_sync(s), 0);
    ad_array_release(b);
    const pid_t child = fork();
    if (!child) {
        ad_session_info info;
        ad_session_get_info(s, &info);
        if (info.session) _exit(101); /* the server has not yet told this session's number */
        _exit(ad_stat(s, AD_NCOUNTER, counters, &got) ? 100 : (int)counters[AD_COUNTER_buffers]);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_expect(WIFEXITED(status) && WEXITSTATUS(status) == 1, "status %x", status);
    expect_counter(s, AD_COUNTER_buffers, 1);
    ad_array_release(a);
    ad_session_close(s);
}

static pid_t find_worker(ad_session *s) {
    uint64_t counters[AD_NCOUNTER] = {0};
    int got;
    cr_assert_eq(ad_stat(s, AD_NCOUNTER, counters, &got), 0);
    cr_assert_gt(counters[AD_COUNTER_worker_pid], 1);
    return (pid_t)counters[AD_COUNTER_worker_pid];
}

static pid_t find_parent(pid_t process) {
    char path[64];
    int parent = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)process);
    FILE *f = fopen(path, "r");
    cr_assert(f && fscanf(f, "%*d %*s %*c %d", &parent) == 1 && parent > 1);
    fclose(f);
    return parent;
}

Test(embedded_real, a_killed_worker_is_none) {
    ad_session *s = open_embedded();
    ad_array *a, *b;
    float values[16];
    cr_assert_eq(ad_full(s, AD_FLOAT32, 1, (int64_t[]){16}, ad_float(1), &a), 0);
    const pid_t worker = find_worker(s);
    kill(worker, SIGKILL);
    cr_assert_eq(ad_add(ad_of(a), ad_of(a), &b), 0);
    cr_assert_eq(ad_download(b, values, sizeof values), 0);
    for (int i = 0; i < 16; i++) cr_expect_eq(values[i], 2);
    cr_expect_neq(find_worker(s), worker);
    ad_array_release(a);
    ad_array_release(b);
    ad_session_close(s);
}

Test(embedded_real, a_killed_server_is_an_error) {
    ad_session *s = open_embedded();
    ad_array *a, *b;
    int status = 0;
    cr_assert_eq(ad_full(s, AD_FLOAT32, 1, (int64_t[]){16}, ad_float(1), &a), 0);
    kill(find_parent(find_worker(s)), SIGKILL);
    while (status == 0) {
        status = ad_add(ad_of(a), ad_of(a), &b);
        if (status == 0) ad_array_release(b);
    }
    cr_assert_eq(status, AD_E_CONNECTION);
    cr_assert_eq(ad_sync(s), AD_E_CONNECTION);
    cr_assert_eq(ad_cancel(s), AD_E_CONNECTION);
    ad_module *m = NULL;
    cr_assert_eq(ad_module_build(s, "", 0, 0, NULL, 0, NULL, &m, NULL), AD_E_CONNECTION);
    ad_array_release(a);
    ad_session_close(s);
}
