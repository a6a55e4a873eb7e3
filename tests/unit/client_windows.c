/* Memory shared with a server: what goes through it, who may have it when, and its end. */
#include <criterion/criterion.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client-c/client.h"
#include "protocol/rows_request.h"
#include "tests/unit/client_fake.h"

enum { N = 200000 }; /* float64: 1.6 MB */

static double *make_numbers(int64_t n, unsigned seed) {
    double *x = malloc((size_t)n * sizeof *x);
    srand(seed);
    for (int64_t i = 0; i < n; i++) x[i] = rand();
    return x;
}

static ad_array *upload_array(ad_session *s, const double *x, int64_t n) {
    ad_array *a = NULL;
    cr_assert_eq(ad_upload(s, AD_FLOAT64, 1, &n, x, (size_t)n * 8, &a), 0, "%s", ad_error_message());
    return a;
}

static ad_host *fetch_array(const ad_array *a) {
    ad_host *host = NULL;
    cr_assert_eq(ad_download_host(a, &host), 0, "%s", ad_error_message());
    return host;
}

static void end_session(ad_session *s, fake *f) {
    ad_session_close(s);
    fake_stop(f);
}

static int count_and_interrupt(void *asked) {
    ++*(int *)asked;
    return 1;
}

Test(client_windows, arrays_go_through_them) {
    ad_session *s;
    fake *f = fake_open(NULL, &s);
    double *x = make_numbers(N, 1), *y = calloc(N, 8);
    ad_array *a = upload_array(s, x, N), *part;
    cr_assert_eq(ad_sync(s), 0);
    cr_assert(f->loads > 1 && f->loaded_bytes == N * 8 && !f->misplaced);
    cr_assert_eq(ad_download(a, y, N * 8), 0);
    cr_assert_eq(memcmp(x, y, N * 8), 0);
    ad_host *host = fetch_array(a);
    cr_assert_eq(memcmp(x, ad_host_data(host), N * 8), 0);
    cr_assert_eq(ad_slice(a, 0, 10, N, 2, &part), 0); /* the view is not contiguous */
    ad_host *half = fetch_array(part);
    for (int i = 0; i < (N - 10) / 2; i++) cr_assert_eq(((double *)ad_host_data(half))[i], x[10 + 2 * i]);
    ad_host_release(half);
    ad_host_release(host);
    ad_array_release(part);
    ad_array_release(a);
    free(x);
    free(y);
    end_session(s, f);
}

Test(client_windows, a_descriptor_comes_with_the_first_byte) {
    for (size_t piece = 1; piece < 40; piece += 6) {
        ad_session *s;
        fake *f = fake_open(&(fake_options){.piece = piece}, &s);
        double *x = make_numbers(16384, 2), *y = calloc(16384, 8);
        ad_array *few = NULL, *a;
        int64_t n = 3;
        cr_assert_eq(ad_upload(s, AD_FLOAT64, 1, &n, x, 24, &few), 0); /* another operation comes first in the stream */
        a = upload_array(s, x, 16384);
        cr_assert_eq(ad_download(a, y, 16384 * 8), 0);
        cr_assert(memcmp(x, y, 16384 * 8) == 0 && f->nwindows == 1 && !f->misplaced);
        ad_array_release(few);
        ad_array_release(a);
        free(x);
        free(y);
        end_session(s, f);
    }
}

Test(client_windows, what_lies_in_one_is_loaded_from_there) {
    ad_session *s;
    fake *f = fake_open(NULL, &s);
    double *x = make_numbers(N, 3), *y = calloc(N, 8);
    ad_host *host;
    cr_assert_eq(ad_host_alloc(s, N * 8, &host), 0, "%s", ad_error_message());
    memcpy(ad_host_data(host), x, N * 8);
    ad_array *a = upload_array(s, ad_host_data(host), N);
    cr_assert(f->loads == 1 && f->loaded_bytes == N * 8);
    memset(ad_host_data(host), 0, N * 8); /* the memory is the program's again */
    cr_assert_eq(ad_download(a, y, N * 8), 0);
    cr_assert_eq(memcmp(x, y, N * 8), 0);
    ad_host_release(host);
    ad_array_release(a);
    free(x);
    free(y);
    end_session(s, f);
}

Test(client_windows, refusals_and_remote_servers_are_no_errors) {
    const fake_options options[] = {
        {.refuse_windows = AD_E_UNSUPPORTED}, {.refuse_windows = AD_E_LIMIT}, {.tcp = true}};
    for (int k = 0; k < 3; k++) {
        ad_session *s;
        fake *f = fake_open(&options[k], &s);
        double *x = make_numbers(N, 4), *y = calloc(N, 8);
        ad_host *host;
        for (int i = 0; i < 3; i++) {
            ad_array *a = upload_array(s, x, N);
            cr_assert_eq(ad_download_host(a, &host), AD_E_UNSUPPORTED);
            cr_assert_eq(ad_download(a, y, N * 8), 0);
            cr_assert_eq(memcmp(x, y, N * 8), 0);
            ad_array_release(a);
        }
        cr_assert_eq(ad_host_alloc(s, 4096, &host), AD_E_UNSUPPORTED);
        cr_assert_eq(ad_sync(s), 0, "%s", ad_error_message());
        cr_assert_eq(f->loads, 0);
        free(x);
        free(y);
        end_session(s, f);
    }
}

/* A worker that takes over may lack windows of the one before. */
Test(client_windows, lost_ones_are_not_used_again) {
    ad_session *s;
    fake *f = fake_open(NULL, &s);
    double *x = make_numbers(N, 8), *y = calloc(N, 8);
    ad_host *host, *more;
    cr_assert_eq(ad_host_alloc(s, N * 8, &host), 0, "%s", ad_error_message());
    memcpy(ad_host_data(host), x, N * 8);
    ad_array *a = upload_array(s, ad_host_data(host), N);
    atomic_store(&s->resume.windows_doubtful, true);
    ad_array *b = upload_array(s, ad_host_data(host), N);
    cr_assert_eq(f->loads, 2, "a window that is there is used on");
    f->options.lose_windows = true;
    atomic_store(&s->resume.windows_doubtful, true);
    ad_array *c = upload_array(s, ad_host_data(host), N);
    cr_assert_eq(f->loads, 2);
    cr_assert_eq(ad_download(c, y, N * 8), 0, "%s", ad_error_message());
    cr_assert_eq(memcmp(x, y, N * 8), 0);
    cr_assert_eq(ad_host_alloc(s, N * 8, &more), AD_E_UNSUPPORTED);
    cr_assert_eq(ad_sync(s), 0, "%s", ad_error_message());
    ad_host_release(host);
    ad_array_release(a);
    ad_array_release(b);
    ad_array_release(c);
    free(x);
    free(y);
    end_session(s, f);
}

/* The library asks for things of its own; what an earlier operation did wrong is still for the program to hear. */
Test(client_windows, failures_of_the_program_are_not_lost) {
    ad_session *s;
    fake *f = fake_open(NULL, &s);
    double *x = make_numbers(N, 5);
    uint64_t unknown = 999;
    const char *name;
    for (int i = 0; i < 2; i++) { /* when a window is opened, and when it is used */
        cr_assert_eq(ad__send_numbers(s, AD_REQ_WINDOW_DROP, 1, &unknown), 0);
        ad_array *a = upload_array(s, x, N);
        cr_assert_eq(ad_sync(s), AD_E_STALE);
        cr_assert(ad_error_operation(&name) != 0 && strcmp(name, "early") == 0);
        cr_assert_eq(ad_sync(s), 0);
        ad_array_release(a);
    }
    free(x);
    end_session(s, f);
}

Test(client_windows, memory_outlives_session_and_server) {
    ad_session *s;
    fake *f = fake_open(NULL, &s);
    double *x = make_numbers(N, 6);
    ad_array *a = upload_array(s, x, N);
    ad_host *host = fetch_array(a), *second = fetch_array(a);
    ad_array_release(a);
    ad_host_release(second);
    end_session(s, f);
    cr_assert_eq(memcmp(x, ad_host_data(host), N * 8), 0);
    memset(ad_host_data(host), 1, N * 8);
    ad_host_release(host);
    free(x);
}

Test(client_windows, a_child_has_memory_of_its_own) {
#ifdef __SANITIZE_THREAD__
    cr_skip_test("the thread sanitizer knows no threads in a child of a process that had some");
#endif
    ad_session *s;
    fake *f = fake_open(NULL, &s);
    double *x = make_numbers(N, 7);
    ad_array *a = upload_array(s, x, N);
    ad_host *host = fetch_array(a);
    double *data = ad_host_data(host);
    int go[2], status;
    cr_assert_eq(pipe(go), 0);
    pid_t child = fork();
    if (child == 0) {
        char byte;
        int wrong = read(go[0], &byte, 1) != 1 || memcmp(x, data, N * 8) != 0;
        memset(data, 2, N * 8);
        ad_host_release(host);
        ad_array_release(a);
        ad_session_close(s);
        _exit(wrong);
    }
    memset(data, 3, N * 8);
    cr_assert_eq(write(go[1], "", 1), 1);
    cr_assert(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    for (size_t i = 0; i < N * 8; i++) cr_assert_eq(((uint8_t *)data)[i], 3);
    ad_host_release(host);
    cr_assert_eq(ad_download_host(a, &host), 0); /* the parent's session goes on */
    cr_assert_eq(memcmp(x, ad_host_data(host), N * 8), 0);
    ad_host_release(host);
    ad_array_release(a);
    free(x);
    end_session(s, f);
}

static bool is_filled(const uint8_t *bytes, size_t n, int with) {
    return bytes[0] == with && !memcmp(bytes, bytes + 1, n - 1);
}

Test(client_windows, an_interrupted_download_keeps_its_memory_from_others) {
    ad_session *s;
    fake *f = fake_open(NULL, &s);
    double *x = make_numbers(N, 8);
    int asked = 0;
    ad_array *a = upload_array(s, x, N);
    ad_host *host = NULL, *others[8];
    cr_assert_eq(ad_sync(s), 0);
    f->options.ignore_fetches = true;
    ad_session_set_interrupt(s, count_and_interrupt, &asked);
    cr_assert_eq(ad_download_host(a, &host), AD_E_INTERRUPTED);
    cr_assert_null(host);
    ad_session_set_interrupt(s, NULL, NULL);
    cr_assert_geq(ad__pool_draining_bytes(s), N * 8);
    cr_assert_eq(ad_sync(s), 0); /* the server has come to what it ignores */
    f->options.ignore_fetches = false;
    for (int i = 0; i < 8; i++) {
        others[i] = fetch_array(a);
        cr_assert_eq(memcmp(x, ad_host_data(others[i]), N * 8), 0);
        memset(ad_host_data(others[i]), i, N * 8);
    }
    for (int i = 0; i < 8; i++) {
        cr_assert(is_filled(ad_host_data(others[i]), N * 8, i));
        ad_host_release(others[i]);
    }
    cr_assert_geq(ad__pool_draining_bytes(s), N * 8); /* the server has never said that it has finished with the part */
    ad_array_release(a);
    free(x);
    end_session(s, f);
}

typedef struct worker {
    ad_session *session;
    pthread_t thread;
    unsigned seed;
    int wrong;
} worker;

static void *move_about(void *argument) {
    worker *w = argument;
    for (int i = 0; i < 6 && !w->wrong; i++) {
        int64_t n = 10000 + 9973 * ((i + w->seed) % 13);
        double *x = malloc((size_t)n * 8);
        for (int64_t k = 0; k < n; k++) x[k] = (double)(k * (int64_t)w->seed + i);
        ad_array *a = NULL;
        ad_host *host = NULL;
        w->wrong = ad_upload(w->session, AD_FLOAT64, 1, &n, x, (size_t)n * 8, &a) != 0;
        if (!w->wrong) w->wrong = ad_download_host(a, &host) != 0 || memcmp(x, ad_host_data(host), (size_t)n * 8) != 0;
        if (!w->wrong)
            w->wrong = ad_download(a, x, (size_t)n * 8) != 0 || memcmp(x, ad_host_data(host), (size_t)n * 8) != 0;
        ad_host_release(host);
        ad_array_release(a);
        free(x);
    }
    return NULL;
}

Test(client_windows, threads_share_them) {
    ad_session *s;
    fake *f = fake_open(NULL, &s);
    worker w[6];
    for (unsigned i = 0; i < 6; i++) {
        w[i] = (worker){.session = s, .seed = i + 1};
        cr_assert_eq(pthread_create(&w[i].thread, NULL, move_about, &w[i]), 0);
    }
    for (int i = 0; i < 6; i++) {
        pthread_join(w[i].thread, NULL);
        cr_expect_eq(w[i].wrong, 0);
    }
    cr_assert(!f->misplaced && !f->violated);
    end_session(s, f);
}

Test(client_windows, what_is_not_used_is_given_back) {
    ad_session *s;
    fake *f = fake_open(NULL, &s);
    double *x = make_numbers(N, 9);
    uint64_t blocks, bytes;
    ad_host_count(s, &blocks, &bytes);
    cr_assert(blocks == 0 && bytes == 0);
    ad_array *a = upload_array(s, x, N);
    ad_host *host = fetch_array(a);
    ad_host_count(s, &blocks, &bytes);
    cr_assert(bytes >= N * 8);
    cr_assert_eq(ad_host_trim(s), 0); /* parts in use stay */
    cr_assert_eq(memcmp(x, ad_host_data(host), N * 8), 0);
    ad_host_release(host);
    cr_assert_eq(ad_sync(s), 0);
    cr_assert_eq(ad_host_trim(s), 0);
    ad_host_count(s, &blocks, &bytes);
    cr_assert(blocks == 0 && bytes == 0);
    cr_assert_eq(ad_sync(s), 0);
    cr_assert_eq(f->nwindows, 0);
    host = fetch_array(a);
    cr_assert_eq(memcmp(x, ad_host_data(host), N * 8), 0);
    ad_host_release(host);
    ad_array_release(a);
    free(x);
    end_session(s, f);
}

Test(client_windows, parts_never_meet) {
    ad_session *s;
    fake *f = fake_open(NULL, &s);
    enum { MANY = 64 };
    ad_host *host[MANY] = {NULL};
    size_t size[MANY] = {0};
    srand(10);
    for (int round = 0; round < 2000; round++) {
        int i = rand() % MANY;
        for (size_t k = 0; host[i] && k < size[i]; k += 97) cr_assert_eq(((uint8_t *)ad_host_data(host[i]))[k], i);
        ad_host_release(host[i]);
        size[i] = (size_t)(rand() % 3 ? rand() % 3000 : rand() % 300000) + 1;
        cr_assert_eq(ad_host_alloc(s, size[i], &host[i]), 0, "%s", ad_error_message());
        memset(ad_host_data(host[i]), i, size[i]);
    }
    for (int i = 0; i < MANY; i++) ad_host_release(host[i]);
    uint64_t blocks, bytes;
    ad_host_count(s, &blocks, &bytes);
    cr_assert_eq(blocks, f->nwindows); /* free neighbours are one block */
    end_session(s, f);
}

static int use_session(ad_session *s, const double *x) {
    int64_t n = N;
    ad_array *a = NULL;
    ad_host *host = NULL;
    int status = ad_upload(s, AD_FLOAT64, 1, &n, x, N * 8, &a);
    if (status == 0) status = ad_download_host(a, &host);
    if (status == 0) cr_assert_eq(memcmp(x, ad_host_data(host), N * 8), 0);
    ad_host_release(host);
    ad_array_release(a);
    return status;
}

Test(client_windows, a_dying_server_is_an_error) {
    double *x = make_numbers(N, 11);
    int survived = 0;
    for (size_t i = 111; i < 600; i += 23) { /* in every message of a session behind its greeting */
        ad_session *s;
        fake *f = fake_open(&(fake_options){.die_after_bytes = i}, &s);
        int status = use_session(s, x);
        cr_assert(status == 0 || status == AD_E_CONNECTION, "%d: %s", status, ad_error_message());
        if (status) cr_assert_eq(use_session(s, x), AD_E_CONNECTION);
        survived += status == 0;
        end_session(s, f);
    }
    cr_assert_lt(survived, 22);
    free(x);
}
