/* What a front opens when it starts, and calls of the system that fail meanwhile: each use of each call in turn. A
 * start that does not succeed says why and leaves no descriptor. The linker gives these calls of the server to this
 * file (Makefile, WRAPS_server). */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "server/common/os.h"
#include "server/front/front.h"
#include "server/front/net/address.h"
#include "tests/unit/server_front.h"

/* ---- the calls ---- */

static const char *host; /* the name of the machine, where it has another one */

/* What a failure returns, and what a call returns that succeeds (error 0) by something else than usual. */
#define FAILS(otherwise, failure) (failing.error ? (failure) : (otherwise))

/* X(call, result, parameters, arguments, what a failure returns) */
#define CALLS(X)                                                                                        \
    X(socket, int, (int a, int b, int c), (a, b, c), -1)                                                \
    X(bind, int, (int a, const struct sockaddr *b, socklen_t c), (a, b, c), -1)                         \
    X(listen, int, (int a, int b), (a, b), -1)                                                          \
    X(connect, int, (int a, const struct sockaddr *b, socklen_t c), (a, b, c), -1)                      \
    X(getsockname, int, (int a, struct sockaddr *b, socklen_t *c), (a, b, c), -1)                       \
    X(setsockopt, int, (int a, int b, int c, const void *d, socklen_t e), (a, b, c, d, e), -1)          \
    X(flock, int, (int a, int b), (a, b), -1)                                                           \
    X(ftruncate, int, (int a, off_t b), (a, b), -1)                                                     \
    X(pwrite, ssize_t, (int a, const void *b, size_t c, off_t d), (a, b, c, d), -1)                     \
    X(pread, ssize_t, (int a, void *b, size_t c, off_t d), (a, b, c, d), -1)                            \
    X(open, int, (const char *a, int b, unsigned c), (a, b, c), -1)                                     \
    X(fopen, FILE *, (const char *a, const char *b), (a, b), FAILS(__real_fopen("/dev/null", b), NULL)) \
    X(mkstemp, int, (char *a), (a), -1)                                                                 \
    X(write, ssize_t, (int a, const void *b, size_t c), (a, b, c), -1)                                  \
    X(fsync, int, (int a), (a), -1)                                                                     \
    X(link, int, (const char *a, const char *b), (a, b), -1)                                            \
    X(gethostname, int, (char *a, size_t b), (a, b), FAILS((snprintf(a, b, "%s", host), 0), -1))        \
    X(geteuid, uid_t, (void), (), 54321)                                                                \
    X(uv_poll_init, int, (uv_loop_t * a, uv_poll_t * b, int c), (a, b, c), UV_ENOMEM)

#include "tests/unit/failing_calls.h"

static bool must_fail(call c) { return is_due(c); }

void fail_poll_init(int n) { arm_failure(CALL_uv_poll_init, 0, n); }
unsigned count_open(void) { return count_descriptors(); }

/* ---- a front that starts ---- */

static char folder[] = "/tmp/arrayd-test-XXXXXX";
static ad_front front;
static ad_fault fault;

static void set_up(void) {
    strcpy(folder, "/tmp/arrayd-test-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    cr_assert_eq(uv_loop_init(&front.loop), 0); /* the first loop opens what stays open */
    uv_loop_close(&front.loop);
}

static void tear_down(void) {
    char command[100];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    cr_expect_eq(system(command), 0);
}

TestSuite(listen, .init = set_up, .fini = tear_down);

/* Load a configuration: options as of the command line, with %s for the folder. */
static void load_options(const char *const *options) {
    char text[8][300];
    char *argv[10] = {"arrayd"};
    int argc = 1;
    ad_config_action action;
    memset(&front, 0, sizeof front);
    front.lock = front.door.fd = -1;
    for (; *options; options++, argc++) {
        const char *mark = strstr(*options, "%s");
        snprintf(text[argc], sizeof text[argc], "%.*s%s%s", mark ? (int)(mark - *options) : 299, *options,
                 mark ? folder : "", mark ? mark + 2 : "");
        argv[argc] = text[argc];
    }
    cr_assert_eq(ad__config_load(&front.config, argc, argv, NULL, &action, &fault), 0, "%s", fault.text);
    fault = (ad_fault){0};
    cr_assert_eq(uv_loop_init(&front.loop), 0);
}
#define CONFIGURE(...) load_options((const char *const[]){__VA_ARGS__, NULL})

static void close_front(void) {
    ad__control_close(&front);
    ad__http_close(&front);
    ad__listen_close(&front);
    uv_run(&front.loop, UV_RUN_DEFAULT);
    uv_loop_close(&front.loop);
    if (front.lock >= 0) close(front.lock);
    free(front.socket);
    ad__config_free(&front.config);
}

/* Open what the configuration names, and close it. */
static int open_and_close(char where[300]) {
    int status = ad__listen_open(&front, &fault);
    if (!status) status = ad__http_open(&front, &fault);
    if (!status) status = ad__control_open(&front, &fault);
    cr_expect_not(ad__listen_tls(&front, where, 300));
    ad__listen_text(&front, where, 6); /* a text that does not fit is cut */
    cr_expect_lt(strlen(where), 6u);
    ad__listen_text(&front, where, 300);
    ad__listen_pause(&front, true);
    ad__listen_pause(&front, false);
    close_front();
    return status;
}

static int start_front(const char *const *options, char where[300]) {
    load_options(options);
    return open_and_close(where);
}

/* ---- tests ---- */

Test(listen, each_call_that_fails_is_told_or_does_no_harm) {
    static const char *const options[] = {"--socket=%s/s", "--tcp=127.0.0.1:0", "--tcp-open=yes",
                                          "--metrics=127.0.0.1:0", NULL};
    char where[300], path[100];
    unsigned failures = 0;
    cr_assert_eq(start_front(options, where), 0, "%s", fault.text);
    cr_expect(strstr(where, "unix:") && strstr(where, "tcp:127.0.0.1:"), "%s", where);
    snprintf(path, sizeof path, "%s/s", folder);
    for (int c = 0; c < CALLS_ALL; c++)
        for (int n = 1; n < 20; n++) {
            const unsigned before = count_descriptors();
            arm_failure(c, c == CALL_flock ? EWOULDBLOCK : EACCES, n);
            const int status = start_front(options, where);
            disarm_failure();
            cr_expect(status == 0 || (status == fault.code && *fault.text), "call %d, use %d", c, n);
            cr_expect_eq(count_descriptors(), before, "call %d, use %d: %s", c, n, fault.text);
            failures += status != 0;
            unlink(path);
            if (failing.left > 0) break;
        }
    cr_expect_gt(failures, 10);
}

static void check_refused(const char *const *options, const char *expected) {
    char where[300];
    const unsigned before = count_descriptors();
    cr_expect_neq(start_front(options, where), 0, "%s %s", options[0], options[1] ? options[1] : "");
    cr_expect_not_null(strstr(fault.text, expected), "%s: %s", options[0], fault.text);
    cr_expect_eq(count_descriptors(), before, "%s", options[0]);
}
#define REFUSED(expected, ...) check_refused((const char *const[]){__VA_ARGS__, NULL}, expected)

Test(listen, addresses_that_are_none) {
    static const char *const bad[] = {"",          ":",          ":7311",        "127.0.0.1",      "127.0.0.1:",
                                      "here:7311", "1.2.3:7311", "127.0.0.1:/1", "127.0.0.1:x",    "127.0.0.1:5x",
                                      "[::1:7311", "[x]:7311",   "::1]:7311",    "127.0.0.1:99999"};
    char option[200], longest[100];
    for (size_t i = 1; i < sizeof bad / sizeof *bad; i++) {
        snprintf(option, sizeof option, "--tcp=%s", bad[i]);
        REFUSED("option tcp: ", "--socket=none", option, "--tcp-open=yes");
    }
    memset(longest, '1', sizeof longest);
    longest[sizeof longest - 1] = 0;
    snprintf(option, sizeof option, "--tcp=%s:1", longest);
    REFUSED("expected an address and port", "--socket=none", option, "--tcp-open=yes");
    REFUSED("is not a loopback address", "--socket=none", "--tcp=[::2]:0", "--tcp-open=yes");
    REFUSED("is not a loopback address", "--socket=none", "--tcp=[2001:db8::1]:0", "--tcp-open=yes");
    REFUSED("is not a loopback address", "--socket=none", "--tcp=[0:0:1::1]:0", "--tcp-open=yes");
    REFUSED("is not a loopback address", "--socket=none", "--tcp=[::1:0:1]:0", "--tcp-open=yes");
    REFUSED("is not a loopback address", "--socket=none", "--tcp=192.0.2.1:0", "--tcp-open=yes");
    REFUSED("TCP connections do not tell users apart", "--socket=none", "--tcp=localhost:0");
    REFUSED("nobody could come in", "--socket=none", "--tls=127.0.0.1:0");
    REFUSED("nothing to listen on", "--socket=none");
    ad_address a;
    CONFIGURE("--metrics=0.0.0.0:1");
    cr_expect_eq(ad__address_metrics(&front.config, &a, &fault), AD_E_VALUE);
    close_front();
    CONFIGURE("--metrics=0.0.0.0:1", "--metrics-open=yes", "--tls=[::]:1", "--tls-ca=x");
    cr_expect_eq(ad__address_metrics(&front.config, &a, &fault), 0);
    cr_expect_eq(ad__address_tls(&front.config, &a, &fault), 0);
    close_front();
    CONFIGURE("--tls=[::]:1", "--self-signed=yes");
    cr_expect_eq(ad__address_tls(&front.config, &a, &fault), 0);
    close_front();
}

/* Open a front while the n-th use of a call fails, or takes place otherwise. */
static int start_failing(const char *const *options, int c, int error, int n) {
    char where[300];
    load_options(options);
    arm_failure(c, error, n);
    const int status = open_and_close(where);
    disarm_failure();
    return status;
}

Test(listen, sockets_whose_folders_are_missing_or_none) {
    static const char *const usual[] = {"--metrics=", NULL};
    static const char *const made[] = {"--socket=%s/new/s", NULL};
    static const char *const here[] = {"--socket=s", NULL};
    static const char *const root[] = {"--socket=/arrayd-test", NULL};
    char path[100];
    if (geteuid()) cr_skip_test("folders are made for root");
    cr_expect_eq(start_failing(made, -1, 0, 1), 0, "%s", fault.text);
    cr_assert_eq(chdir(folder), 0);
    cr_expect_eq(start_failing(here, -1, 0, 1), 0, "%s", fault.text);
    cr_expect_eq(start_failing(root, CALL_bind, EACCES, 1), AD_E_SYSTEM);
    unlink("/arrayd-test.lock");
    setenv("XDG_RUNTIME_DIR", folder, 1);
    cr_expect_eq(start_failing(usual, CALL_geteuid, 0, 1), 0, "%s", fault.text);
    snprintf(path, sizeof path, "%s/arrayd.sock.lock", folder);
    cr_expect_eq(access(path, F_OK), 0, "another user's socket lies in its own folder");
}

Test(listen, sockets_that_are_busy_or_dead) {
    static const char *const options[] = {"--socket=%s/s", NULL};
    char path[100];
    int fd = -1;
    snprintf(path, sizeof path, "%s/s", folder);
    cr_assert_eq(ad__listen_at_path("socket", path, 0600, &fd, &fault), 0, "%s", fault.text);
    cr_expect_eq(start_failing(options, CALL_connect, EAGAIN, 1), AD_E_LIMIT, "somebody has many waiting");
    cr_expect_eq(start_failing(options, CALL_connect, ECONNREFUSED, 1), 0, "nobody answers");
    close(fd);
    cr_assert_eq(ad__listen_at_path("socket", path, 0600, &fd, &fault), 0, "%s", fault.text);
    close(fd);
    cr_expect_eq(start_failing(options, CALL_socket, EMFILE, 1), 0, "whether anybody answers cannot be asked");
    snprintf(path, sizeof path, "%s/s.lock", folder);
    FILE *file = fopen(path, "w");
    fputs("12 :x\n", file);
    fclose(file);
    cr_expect_eq(start_failing(options, CALL_flock, EWOULDBLOCK, 1), AD_E_LIMIT);
    cr_expect_not_null(strstr(fault.text, "process 12 serves"), "%s", fault.text);
}

/* ---- accepting ---- */

static int accept_error;

static int fail_to_accept(int fd, struct sockaddr *address, socklen_t *size, int flags) {
    (void)fd, (void)address, (void)size, (void)flags;
    errno = accept_error;
    return -1;
}

Test(listen, connections_that_cannot_be_accepted) {
    static const int errors[] = {EMFILE, ENFILE, ENOMEM, ENOBUFS, ECONNABORTED, EAGAIN};
    char path[100];
    CONFIGURE("--socket=%s/s");
    snprintf(path, sizeof path, "%s/s", folder);
    cr_assert_eq(ad__listen_open(&front, &fault), 0, "%s", fault.text);
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    strcpy(a.sun_path, path);
    const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    cr_assert_eq(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    ad__os.accept = fail_to_accept;
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        accept_error = errors[i];
        ad__listen_pause(&front, false);
        uv_run(&front.loop, UV_RUN_NOWAIT);
        cr_expect_null(front.handshakes, "%s", strerror(errors[i]));
    }
    ad__os.accept = accept4;
    ad__listen_pause(&front, false);
    uv_run(&front.loop, UV_RUN_NOWAIT);
    cr_expect_eq(ad__handshake_count(&front), 1, "it comes in when it can");
    ad__handshake_close_all(&front, "the test is over");
    close(fd);
    close_front();
}

Test(listen, sockets_that_cannot_be_offered_or_taken_over) {
    char where[300];
    CONFIGURE("--socket=%s/s", "--tcp=127.0.0.1:0", "--tcp-open=yes");
    cr_assert_eq(ad__listen_open(&front, &fault), 0, "%s", fault.text);
    for (int n = 1; n < 4; n++) {
        fail_calloc(n);
        cr_expect_eq(ad__listen_offer(&front), AD_E_MEMORY, "%d", n);
        restore_calls();
        while (ad__inherit_any(&front, "lock", where, sizeof where) >= 0) {}
        while (ad__inherit_any(&front, "socket", where, sizeof where) >= 0) {}
        while (ad__inherit_any(&front, "tcp", where, sizeof where) >= 0) {}
    }
    close_front();
    CONFIGURE("--metrics=127.0.0.1:0");
    cr_assert_eq(ad__inherit_offer(&front, "metrics", front.config.metrics, open("/dev/null", O_RDONLY)), 0);
    const unsigned before = count_descriptors();
    cr_expect_eq(ad__http_open(&front, &fault), AD_E_SYSTEM, "it is no socket");
    cr_expect_eq(count_descriptors(), before - 1);
    close_front();
}

Test(listen, sockets_that_cannot_be) {
    char option[300], where[300], path[200];
    memset(path, 'p', sizeof path);
    path[sizeof path - 1] = 0;
    snprintf(option, sizeof option, "--socket=/tmp/%s", path);
    REFUSED("longer than", option);
    snprintf(path, sizeof path, "%s/file", folder);
    fclose(fopen(path, "w"));
    REFUSED("is there and is not a socket", "--socket=%s/file");
    REFUSED("cannot open", "--socket=/no/such/folder\x01/s/t");
    REFUSED("socket-mode", "--socket=%s/s", "--socket-mode=rw");
    REFUSED("socket-mode", "--socket=%s/s", "--socket-mode=0999");
    REFUSED("socket-mode", "--socket=%s/s", "--socket-mode=77777");
    REFUSED("socket-mode", "--socket=%s/s", "--socket-mode=");
    int fd = -1;
    snprintf(path, sizeof path, "%s/busy", folder);
    cr_assert_eq(ad__listen_at_path("socket", path, 0600, &fd, &fault), 0, "%s", fault.text);
    REFUSED("already running: somebody answers", "--socket=%s/busy");
    close(fd); /* the server is dead now, and its socket is there */
    const char *const options[] = {"--socket=%s/busy", NULL};
    cr_expect_eq(start_front(options, where), 0, "%s", fault.text);
    memset(path, 'p', sizeof path);
    path[sizeof path - 1] = 0;
    cr_expect_eq(ad__listen_at_path("control", path, 0600, &fd, &fault), AD_E_VALUE);
    cr_expect_not_null(strstr(fault.text, "option control: longer than"), "%s", fault.text);
}

Test(listen, service_managers_that_are_none) {
    static const char *const counts[] = {"", "x", "-1", "1x", "99999999999999999999", "0"};
    char pid[20];
    int passed;
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        setenv("LISTEN_PID", pid, 1);
        setenv("LISTEN_FDS", counts[i], 1);
        cr_expect_eq(ad__activation_take(&front, &passed, &fault), 0);
        cr_expect(passed == 0 && !getenv("LISTEN_FDS"));
    }
    setenv("LISTEN_PID", "1", 1);
    setenv("LISTEN_FDS", "1", 1);
    cr_expect_eq(ad__activation_take(&front, &passed, &fault), 0);
    setenv("LISTEN_PID", pid, 1);
    setenv("LISTEN_FDS", "17", 1);
    cr_expect_eq(ad__activation_take(&front, &passed, &fault), AD_E_LIMIT);
}

static void remove_files(void) {
    char made[300];
    for (int i = 0; i < 2; i++) {
        snprintf(made, sizeof made, "%s/arrayd/%s", folder, i ? "tokens" : "server.pem");
        unlink(made);
    }
}

/* Names of the machine that are none, files that somebody else makes at the same time, and a disk that refuses what it
 * was given when the file is closed. */
static void make_files_otherwise(void) {
    static const struct {
        const char *host;
        int call, error, close, expected;
    } rows[] = {{"", CALL_gethostname, 0, 0, 0},
                {"not\xffutf-8", CALL_gethostname, 0, 0, AD_E_TLS},
                {"", CALL_link, EEXIST, 0, 0},
                {"", -1, 0, 1, AD_E_SYSTEM}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        CONFIGURE("--self-signed=yes", "--tls=127.0.0.1:0");
        host = rows[i].host;
        arm_failure(rows[i].call, rows[i].error, 1);
        fail_close(rows[i].close);
        cr_expect_eq(ad__self_signed_prepare(&front.config, &fault), rows[i].expected, "%zu: %s", i, fault.text);
        disarm_failure();
        fail_close(0);
        close_front();
        remove_files();
    }
}

Test(listen, a_server_makes_its_own_files_or_says_why_not) {
    static const char *const variables[] = {"STATE_DIRECTORY", "XDG_STATE_HOME", "HOME"};
    char where[1200];
    for (int v = 0; v < 3; v++) unsetenv(variables[v]);
    setenv("XDG_STATE_HOME", folder, 1);
    for (int c = -1; c < CALLS_ALL; c++)
        for (int n = 1; n < 8; n++) {
            CONFIGURE("--self-signed=yes", "--tls=127.0.0.1:0");
            arm_failure(c, EACCES, n);
            const int status = ad__self_signed_prepare(&front.config, &fault);
            disarm_failure();
            cr_expect(status == 0 || (status == fault.code && *fault.text), "call %d, use %d: %d", c, n, status);
            close_front();
            remove_files();
            if (failing.left > 0) break;
        }
    make_files_otherwise();
    memset(where, 'p', sizeof where);
    where[0] = '/';
    where[sizeof where - 1] = 0;
    for (int v = 0; v < 3; v++) {
        for (int u = 0; u < 3; u++) unsetenv(variables[u]);
        for (int kind = 0; kind < 4; kind++) {
            if (kind < 3) setenv(variables[v], kind == 0 ? where : kind == 1 ? folder : "relative", 1);
            else unsetenv(variables[v]);
            CONFIGURE("--self-signed=yes", "--tls=127.0.0.1:0");
            arm_failure(CALL_geteuid, 0, 1); /* root's files lie elsewhere */
            const int status = ad__self_signed_prepare(&front.config, &fault);
            disarm_failure();
            cr_expect_eq(status != 0, kind != 1, "%s: %s", variables[v], fault.text);
            close_front();
        }
    }
    static const char *const named[][4] = {
        {"--self-signed=yes", "--tls=127.0.0.1:0", "--tls-cert=%s/c.pem", "--tokens=%s"}, /* what is there stays */
        {"--self-signed=yes", "--tls=127.0.0.1:0", "--tls-cert=%s/c.pem", NULL},
        {"--self-signed=yes", "--tls=127.0.0.1:0", "--tokens=%s/t", NULL}};
    setenv("HOME", folder, 1);
    for (size_t i = 0; i < sizeof named / sizeof *named; i++) {
        CONFIGURE(named[i][0], named[i][1], named[i][2], named[i][3]);
        arm_failure(CALL_geteuid, 0, 1);
        cr_expect_eq(ad__self_signed_prepare(&front.config, &fault), 0, "%s", fault.text);
        disarm_failure();
        close_front();
    }
}

Test(listen, where_the_usual_socket_is) {
    static const char *const folders[] = {NULL, "", "/tmp"};
    for (int root = 0; root < 2; root++)
        for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
            if (folders[i]) setenv("XDG_RUNTIME_DIR", folders[i], 1);
            else unsetenv("XDG_RUNTIME_DIR");
            arm_failure(root ? -1 : CALL_geteuid, 0, 1);
            char usual[AD_SOCKET_PATH];
            ad__listen_default(usual);
            disarm_failure();
            cr_expect_not_null(strstr(usual, "/arrayd.sock"));
            if (!root) cr_expect_eq(!strcmp(usual, "/tmp/arrayd.sock"), i == 2, "%s", usual);
        }
}

Test(listen, sockets_of_ipv6) {
    const char *const options[] = {"--socket=none", "--tcp=[::1]:0", "--tcp-open=yes", NULL};
    char where[300];
    if (!start_front(options, where)) cr_expect_not_null(strstr(where, "tcp:[::1]:"), "%s", where);
    else cr_expect_not_null(strstr(fault.text, "cannot listen on"), "%s", fault.text);
}

Test(listen, users_that_the_kernel_cannot_tell_apart) {
    for (int n = 0; n < 3; n++) {
        for (int empty = 0; empty < 2; empty++) {
            arm_failure(CALL_fopen, empty ? 0 : ENOENT, n);
            ad__users_are_distinct(65534);
            disarm_failure();
        }
        cr_expect(ad__users_are_distinct(getuid()));
    }
}
