/* Sessions: finding a server, the handshake, its death, fork, closing. */
#include <criterion/criterion.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client-c/client.h"
#include "tests/unit/client_fake.h"
#include "protocol/rows_call.h"
#include "protocol/rows_request.h"

Test(client_session, urls) {
    static const struct {
        const char *url;
        int status;
        ad_transport transport;
        const char *host, *port;
    } rows[] = {
        {"unix:/tmp/x", 0, AD_URL_UNIX, "/tmp/x", ""},
        {"tcp:localhost:7311", 0, AD_URL_TCP, "localhost", "7311"},
        {"tcp:[::1]:7311", 0, AD_URL_TCP, "::1", "7311"},
        {"tls:example.org:7312", 0, AD_URL_TLS, "example.org", "7312"},
        {"tls:[2001:db8::1]:7312", 0, AD_URL_TLS, "2001:db8::1", "7312"},
        {"tls:example.org", AD_E_URL, 0, NULL, NULL},
        {"tls:token@example.org:7312", AD_E_URL, 0, NULL, NULL},
        {"tls://tok@example.org:7312", 0, AD_URL_TLS, "example.org", "7312"},
        {"tls://tok@[::1]:7312#sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", 0, AD_URL_TLS,
         "::1", "7312"},
        {"tls://tok@example.org:7312#sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde", AD_E_URL,
         0, NULL, NULL},
        {"tls://tok@example.org:7312#sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdeG", AD_E_URL,
         0, NULL, NULL},
        {"tls://@example.org:7312", AD_E_URL, 0, NULL, NULL},
        {"tcp://tok@example.org:7312", AD_E_URL, 0, NULL, NULL},
        {"embedded:cpu", 0, AD_URL_EMBEDDED, "cpu", ""},
        {"embedded:auto", 0, AD_URL_EMBEDDED, "auto", ""},
        {"unix:", AD_E_URL, 0, NULL, NULL},
        {"tcp:localhost", AD_E_URL, 0, NULL, NULL},
        {"tcp::7311", AD_E_URL, 0, NULL, NULL},
        {"tcp:[::1:7311", AD_E_URL, 0, NULL, NULL},
        {"embedded:tpu", AD_E_URL, 0, NULL, NULL},
        {"http://x", AD_E_URL, 0, NULL, NULL},
        {"", AD_E_URL, 0, NULL, NULL},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ad_server_address a;
        cr_expect_eq(ad__url_parse(rows[i].url, &a), rows[i].status, "%s", rows[i].url);
        if (rows[i].status == 0)
            cr_expect(a.transport == rows[i].transport && !strcmp(a.host, rows[i].host) &&
                      !strcmp(a.port, rows[i].port));
    }
}

Test(client_session, long_urls_are_refused) {
    char url[600] = "unix:";
    ad_server_address a;
    for (size_t n = 6; n < sizeof url - 1; n++) {
        url[n - 1] = 'x';
        cr_expect_eq(ad__url_parse(url, &a), n - 5 > 107 ? AD_E_URL : 0, "%zu", n);
    }
}

Test(client_session, a_missing_server_is_named) {
    ad_session *s = NULL;
    cr_assert_eq(ad_session_open("unix:/nonexistent/socket", &s), AD_E_CONNECTION);
    cr_assert_not_null(strstr(ad_error_message(), "unix:/nonexistent/socket"));
    cr_assert_eq(ad_session_open("tcp:127.0.0.1:1", &s), AD_E_CONNECTION);
    cr_assert_eq(ad_session_open("nowhere", &s), AD_E_URL);
    cr_assert_null(s);
}

Test(client_session, the_environment_names_a_server) {
    fake *f = fake_start(NULL);
    ad_session *s = NULL;
    ad_session_info info;
    setenv("ARRAYD_URL", f->url, 1);
    cr_assert_eq(ad_session_open(NULL, &s), 0, "%s", ad_error_message());
    ad_session_get_info(s, &info);
    cr_assert_str_eq(info.url, f->url);
    cr_assert_str_eq(info.backend, "fake");
    cr_assert_eq(info.session, 5);
    ad_session_close(s);
    fake_stop(f);
}

Test(client_session, the_users_socket_is_found) {
    fake *f = fake_start(NULL);
    ad_session *s = NULL;
    ad_session_info info;
    unsetenv("ARRAYD_URL");
    setenv("XDG_RUNTIME_DIR", f->folder, 1);
    cr_assert_eq(ad_session_open(NULL, &s), 0, "%s", ad_error_message());
    ad_session_get_info(s, &info);
    cr_assert_str_eq(info.url, f->url);
    ad_session_close(s);
    fake_stop(f);
}

Test(client_session, an_embedded_server_that_is_not_there_is_named) {
    ad_session *s = NULL;
    setenv("ARRAYD_BIN", "/nonexistent/arrayd", 1);
    cr_assert_eq(ad_session_open("embedded:cpu", &s), AD_E_CONNECTION);
    cr_assert_not_null(strstr(ad_error_message(), "/nonexistent/arrayd"));
    setenv("ARRAYD_BIN", "/bin/false", 1); /* a program that ends without a word */
    cr_assert_eq(ad_session_open("embedded:cpu", &s), AD_E_CONNECTION);
    cr_assert_null(s);
}

Test(client_session, a_refusal_keeps_its_status) {
    ad_session *s = NULL;
    fake *f = fake_start(&(fake_options){.refuse = AD_E_VERSION});
    cr_assert_eq(ad_session_open(f->url, &s), AD_E_VERSION);
    cr_assert_not_null(strstr(ad_error_message(), "not you"));
    fake_stop(f);
}

Test(client_session, anything_else_that_answers_is_no_server) {
    static const char *const greetings[] = {"HTTP/1.1 400 Bad Request\r\n\r\n", "x", "SSH-2.0-OpenSSH_9.2p1 Debian\r\n",
                                            "\x03\x03\x03\x03\x01\x01\x01\x01\x02\x02\x02\x02\x02\x02\x02\x02zzz"};
    for (size_t i = 0; i < sizeof greetings / sizeof *greetings; i++) {
        ad_session *s = NULL;
        fake *f = fake_start(&(fake_options){.greeting = greetings[i], .die_after_bytes = 30});
        cr_assert_eq(ad_session_open(f->url, &s), AD_E_CONNECTION, "%s", ad_error_message());
        fake_stop(f);
    }
}

/* Use every kind of request in turn; returns the first failure. */
static int use_session(ad_session *s) {
    int64_t n = 40000;
    double *x = calloc((size_t)n, 8);
    ad_array *a = NULL, *b = NULL;
    int status = ad_upload(s, AD_FLOAT64, 1, &n, x, 320, &a);
    cr_expect(status == AD_E_VALUE || status == AD_E_CONNECTION);
    status = ad_upload(s, AD_FLOAT64, 1, &n, x, (size_t)n * 8, &a);
    for (int i = 0; i < 5 && status == 0; i++) {
        status = ad_add(ad_of(a), ad_float(1), &b);
        if (status == 0) ad_array_release(b);
    }
    if (status == 0) status = ad_sync(s);
    if (status == 0) status = ad_download(a, x, (size_t)n * 8);
    if (status == 0) status = ad_flush(s);
    ad_array_release(a);
    free(x);
    return status;
}

static void check_dies(const fake_options *options, int *survived) {
    ad_session *s;
    fake *f = fake_open(options, &s);
    cr_assert_not_null(f, "%s", ad_error_message());
    int status = use_session(s);
    cr_assert(status == 0 || status == AD_E_CONNECTION, "%d", status);
    if (status) {
        uint64_t counters[1];
        int got;
        cr_expect_eq(use_session(s), AD_E_CONNECTION);
        cr_expect_eq(ad_sync(s), AD_E_CONNECTION);
        cr_expect_eq(ad_stat(s, 1, counters, &got), AD_E_CONNECTION);
        cr_expect_neq(ad_error_message()[0], 0);
    }
    *survived += status == 0;
    ad_session_close(s);
    fake_stop(f);
}

Test(client_session, a_dying_server_is_an_error_at_any_message) {
    int survived = 0;
    for (int i = 1; i <= 14; i++) check_dies(&(fake_options){.die_after = i}, &survived);
    cr_assert_lt(survived, 6);
}

Test(client_session, a_dying_server_is_an_error_at_any_byte) {
    int survived = 0;
    for (size_t i = 65; i < 320900; i += i < 180 ? 3 : i / 3)
        check_dies(&(fake_options){.die_after_bytes = i, .tcp = true}, &survived);
    cr_assert_lt(survived, 2);
}

/* A worker whose device is lost says why and is gone, with requests unread: writing fails before that has been read. */
Test(client_session, what_the_server_said_last_is_heard_when_writing_fails) {
    for (int tcp = 0; tcp < 2; tcp++) {
        ad_session *s;
        ad_array *a, *b;
        fake *f = fake_open(&(fake_options){.farewell = AD_E_DEVICE_LOST, .die_after = 1, .tcp = tcp}, &s);
        cr_assert_not_null(f, "%s", ad_error_message());
        int status = ad_empty(s, AD_FLOAT64, 1, (int64_t[]){4}, &a);
        for (int i = 0; status == 0; i++) {
            status = ad_add(ad_of(a), ad_float(1), &b);
            if (status == 0) ad_array_release(b);
            if (i == 0 && status == 0) status = ad_flush(s);
            if (i == 0) fake_wait(f);
        }
        cr_expect_eq(status, AD_E_DEVICE_LOST, "%d", status);
        cr_expect_not_null(strstr(ad_error_message(), "farewell"), "%s", ad_error_message());
        ad_array_release(a);
        ad_session_close(s);
        fake_stop(f);
    }
}

static void *use_until_dead(void *session) {
    int status = 0;
    while (status == 0) status = use_session(session);
    return (void *)(intptr_t)(status != AD_E_CONNECTION);
}

Test(client_session, every_thread_notices_that_the_server_has_gone) {
    for (int i = 10; i < 130; i += 40) {
        ad_session *s;
        fake *f = fake_open(&(fake_options){.die_after = i, .part = 100000}, &s);
        pthread_t thread[4];
        for (int k = 0; k < 4; k++) cr_assert_eq(pthread_create(&thread[k], NULL, use_until_dead, s), 0);
        for (int k = 0; k < 4; k++) {
            void *wrong;
            pthread_join(thread[k], &wrong);
            cr_expect_null(wrong);
        }
        ad_session_close(s);
        fake_stop(f);
    }
}

Test(client_session, tcp_does_the_same) {
    ad_session *s;
    fake *f = fake_open(&(fake_options){.tcp = true, .part = 100000}, &s);
    cr_assert_not_null(f, "%s", ad_error_message());
    for (int i = 0; i < 3; i++) cr_assert_eq(use_session(s), 0, "%s", ad_error_message());
    ad_session_close(s);
    fake_stop(f);
}

/* Ask for every kind of answer shortly; returns how many came. */
static int ask_everything(ad_session *s) {
    double x[4] = {1, 2, 3, 4};
    uint64_t counters[2];
    ad_array *a = NULL, *found = NULL;
    int got, came = ad_sync(s) == 0;
    if (ad_upload(s, AD_FLOAT64, 1, (int64_t[]){4}, x, sizeof x, &a) != 0) return came;
    came += ad_download(a, x, sizeof x) == 0;
    came += ad_stat(s, 2, counters, &got) == 0;
    came += ad_call_call(NULL, AD_CALL_nonzero, -1, 1, (ad_in[]){ad_of(a)}, 0, NULL, NULL, &found, NULL) == 0;
    ad_array_release(a);
    ad_array_release(found);
    return came;
}

Test(client_session, damaged_answers_end_the_session_and_nothing_else) {
    int came = 0;
    for (unsigned i = 1; i <= 80; i++) {
        ad_session *s;
        fake *f = fake_open(&(fake_options){.garble = i}, &s);
        came += ask_everything(s);
        cr_expect_eq(ask_everything(s), 0);
        cr_expect_eq(ad_sync(s), AD_E_CONNECTION);
        ad_session_close(s);
        fake_stop(f);
    }
    cr_assert_gt(came, 80); /* whole answers are taken */
    cr_assert_lt(came, 200);
}

Test(client_session, failures_carry_their_operation) {
    ad_session *s;
    fake *f = fake_open(&(fake_options){.fail_reads = AD_E_DEVICE}, &s);
    ad_array *a;
    const char *name;
    char byte;
    cr_assert_eq(ad_empty(s, AD_INT8, 0, NULL, &a), 0);
    cr_assert_eq(ad_download(a, &byte, 1), AD_E_DEVICE);
    cr_assert_str_eq(ad_error_message(), "it went wrong");
    cr_assert_eq(ad_error_operation(&name), 7);
    cr_assert_str_eq(name, "divide");
    ad_array_release(a);
    cr_assert_eq(ad_sync(s), 0);
    ad_session_close(s);
    fake_stop(f);
}

Test(client_session, arrays_outlive_their_session) {
    ad_session *s;
    fake *f = fake_open(NULL, &s);
    ad_array *a, *v, *b = NULL;
    ad_array_info info;
    char byte[4];
    cr_assert_eq(ad_empty(s, AD_INT8, 1, (int64_t[]){4}, &a), 0);
    cr_assert_eq(ad_slice(a, 0, 1, 3, 1, &v), 0);
    ad_session_close(s);
    ad_array_release(a);
    ad_array_get_info(v, &info);
    cr_assert_eq(info.count, 2);
    cr_assert_eq(ad_add(ad_of(v), ad_of(v), &b), AD_E_CONNECTION);
    cr_assert_eq(ad_download(v, byte, 2), AD_E_CONNECTION);
    cr_assert_null(b);
    ad_array_release(v);
    fake_stop(f);
}

Test(client_session, a_forked_child_leaves_the_connection_alone) {
    ad_session *s;
    fake *f = fake_open(NULL, &s);
    ad_array *a, *b;
    int state;
    cr_assert_eq(ad_empty(s, AD_FLOAT64, 0, NULL, &a), 0);
    cr_assert_eq(ad_sync(s), 0);
    pid_t pid = fake_fork(f);
    if (pid == 0) {
        /* This server takes up no children: the other end of the child's connection is closed. */
        int ok = ad_sync(s) == AD_E_CONNECTION && ad_add(ad_of(a), ad_of(a), &b) == AD_E_CONNECTION &&
                 ad_flush(s) == AD_E_CONNECTION;
        ad_array_release(a);
        ad_session_close(s);
        _exit(ok ? 0 : 1);
    }
    cr_assert_eq(waitpid(pid, &state, 0), pid);
    cr_assert_eq(state, 0);
    cr_assert_eq(ad_add(ad_of(a), ad_of(a), &b), 0);
    cr_assert_eq(ad_sync(s), 0);
    cr_assert_eq(f->frees, 0); /* the child has freed none of its parent's buffers */
    ad_array_release(a);
    ad_array_release(b);
    ad_session_close(s);
    fake_stop(f);
}

/* A session with a server on another machine is its process's alone: each call of a child says so. */
Test(client_session, a_child_has_no_part_in_a_remote_session) {
    ad_session *s;
    fake *f = fake_open(&(fake_options){.tcp = true}, &s);
    ad_array *a, *b = NULL;
    ad_session_info info;
    double x[1000] = {0};
    int64_t n = 1000;
    int state;
    cr_assert_eq(ad_upload(s, AD_FLOAT64, 1, &n, x, sizeof x, &a), 0, "%s", ad_error_message());
    cr_assert_eq(ad_sync(s), 0);
    const pid_t pid = fork();
    if (pid == 0) {
        ad_session_set_interrupt(s, NULL, NULL);
        ad_session_get_info(s, &info);
        bool ok = !ad_session_usable(s) && info.url && ad_cancel(s) == AD_E_CONNECTION &&
                  ad_flush(s) == AD_E_CONNECTION && ad_sync(s) == AD_E_CONNECTION &&
                  ad_write(a, x, sizeof x) == AD_E_CONNECTION && ad_download(a, x, sizeof x) == AD_E_CONNECTION &&
                  ad_upload(s, AD_FLOAT64, 1, &n, x, sizeof x, &b) == AD_E_CONNECTION && !b;
        const pid_t own = fork();
        if (own == 0) _exit(ad_sync(s) == AD_E_CONNECTION ? 0 : 1);
        ok = ok && waitpid(own, &state, 0) == own && state == 0;
        ad_array_release(a);
        ad_session_close(s);
        _exit(ok ? 0 : 1);
    }
    cr_assert_eq(waitpid(pid, &state, 0), pid);
    cr_expect_eq(state, 0);
    cr_expect_eq(ad_download(a, x, sizeof x), 0, "the parent's goes on: %s", ad_error_message());
    ad_array_release(a);
    ad_session_close(s);
    fake_stop(f);
}

/* Add arrays of two sessions; returns what the program is told. */
static const char *add_strangers(const ad_array *a, const ad_array *b, int status) {
    ad_array *sum = NULL;
    cr_expect_eq(ad_add(ad_of(a), ad_of(b), &sum), status);
    return ad_error_message();
}

Test(client_session, arrays_of_two_sessions) {
    ad_session *s[2];
    fake *f[2];
    ad_array *a[2];
    int state = -1;
    for (int i = 0; i < 2; i++) {
        f[i] = fake_open(&(fake_options){.tcp = i == 1}, &s[i]);
        cr_assert_eq(ad_empty(s[i], AD_FLOAT64, 0, NULL, &a[i]), 0);
        cr_assert_eq(ad_sync(s[i]), 0);
    }
    cr_expect_not_null(strstr(add_strangers(a[0], a[1], AD_E_VALUE), "different sessions"));
    const pid_t pid = fork();
    if (pid == 0) _exit(strstr(add_strangers(a[1], a[0], AD_E_VALUE), "different sessions") ? 0 : 1);
    cr_assert_eq(waitpid(pid, &state, 0), pid);
    cr_expect_eq(state, 0);
    ad__kill_session(s[1], "it broke");
    for (int i = 0; i < 2; i++)
        cr_expect_not_null(strstr(add_strangers(a[i], a[1 - i], AD_E_CONNECTION), "it broke"),
                           "a session that is over");
    for (int i = 0; i < 2; i++) {
        ad_array_release(a[i]);
        ad_session_close(s[i]);
        fake_stop(f[i]);
    }
}

/* The library's own questions fail where operations of the program have failed: the first failure is kept for it. */
Test(client_session, the_first_failure_is_deferred) {
    ad_session *s;
    fake *f = fake_open(NULL, &s);
    ad_array *a;
    cr_assert_eq(ad_empty(s, AD_FLOAT64, 0, NULL, &a), 0);
    for (uint64_t window = 7; window < 9; window++) {
        cr_assert_eq(ad__send_numbers(s, AD_REQ_WINDOW_DROP, 1, &window), 0);
        cr_assert_eq(ad_settle(s), 0);
    }
    const char *name;
    cr_expect_eq(ad_sync(s), AD_E_STALE);
    cr_expect_eq(ad_error_operation(&name), 2, "of the operations that failed it is the first");
    cr_expect_eq(ad_sync(s), 0);
    ad_array_release(a);
    ad_session_close(s);
    fake_stop(f);
}
