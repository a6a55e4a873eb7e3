/* How a program finds a server and shows who it is: every part of an address, of the environment and of the files that
 * is wrong, and calls of the system that fail meanwhile. The linker gives these calls of the library to this file
 * (Makefile, WRAPS_client). */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client-c/client.h"
#include "protocol/text.h"
#include "tests/unit/client_fake.h"
#include "tests/unit/text_file.h"

/* ---- the calls ---- */

/* Some calls do what they seldom do instead of failing, where the error is 0. */
static int connect_at_once(int fd, const struct sockaddr *address, socklen_t size);
static int find_several(const char *host, const char *port, const struct addrinfo *hints, struct addrinfo **out);
static int tell_own_file(Dl_info *out);

/* X(call, result, parameters, arguments, what a failure returns) */
#define CALLS(X)                                                                                                     \
    X(socket, int, (int a, int b, int c), (a, b, c), -1)                                                             \
    X(connect, int, (int a, const struct sockaddr *b, socklen_t c), (a, b, c),                                       \
      failing.error ? -1 : connect_at_once(a, b, c))                                                                 \
    X(poll, int, (struct pollfd * a, nfds_t b, int c), (a, b, c), failing.error ? -1 : 0)                            \
    X(getsockopt, int, (int a, int b, int c, void *d, socklen_t *e), (a, b, c, d, e), -1)                            \
    X(fcntl, int, (int a, int b, long c), (a, b, c), -1)                                                             \
    X(fstat, int, (int a, struct stat *b), (a, b), -1)                                                               \
    X(stat, int, (const char *a, struct stat *b), (a, b), -1)                                                        \
    X(read, ssize_t, (int a, void *b, size_t c), (a, b, c), -1)                                                      \
    X(faccessat, int, (int a, const char *b, int c, int d), (a, b, c, d), -1)                                        \
    X(dladdr, int, (const void *a, Dl_info *b), (a, b), tell_own_file(b))                                            \
    X(realloc, void *, (void *a, size_t b), (a, b), NULL)                                                            \
    X(readlink, ssize_t, (const char *a, char *b, size_t c), (a, b, c), -1)                                          \
    X(socketpair, int, (int a, int b, int c, int d[2]), (a, b, c, d), -1)                                            \
    X(syscall, long, (long a, long b, long c), (a, b, c), -1)                                                        \
    X(getaddrinfo, int, (const char *a, const char *b, const struct addrinfo *c, struct addrinfo **d), (a, b, c, d), \
      failing.error ? EAI_FAIL : find_several(a, b, c, d))

#include "tests/unit/failing_calls.h"

static _Thread_local bool concerned; /* the test's own thread */

static bool must_fail(call c) {
    if (!concerned) return false;
    if (failing.call == CALL_dladdr && c == CALL_readlink) return true; /* neither says where the library is */
    if (failing.call == CALL_poll && c == CALL_poll) return !failing.error || is_due(c); /* no wait sees anything */
    if (failing.call == CALL_syscall && c == CALL_syscall) return true;                  /* no process can be watched */
    return is_due(c);
}

static int connect_at_once(int fd, const struct sockaddr *address, socklen_t size) {
    const int flags = __real_fcntl(fd, F_GETFL, 0);
    __real_fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
    const int result = __real_connect(fd, address, size);
    __real_fcntl(fd, F_SETFL, flags);
    return result;
}

static int find_several(const char *host, const char *port, const struct addrinfo *hints, struct addrinfo **out) {
    struct addrinfo any = *hints;
    any.ai_socktype = 0; /* one for each kind of socket */
    return __real_getaddrinfo(host, port, &any, out);
}

static const char *own_file; /* the file that the library seems to come from. "": the system does not say; NULL: fail */

static int tell_own_file(Dl_info *out) {
    if (own_file) out->dli_fname = *own_file ? own_file : NULL;
    return own_file != NULL;
}

/* The address that the other end of a connection seems to have. NULL: its own. */
static const char *peer;
int __real_getpeername(int fd, struct sockaddr *out, socklen_t *size);
int __wrap_getpeername(int fd, struct sockaddr *out, socklen_t *size);
int __wrap_getpeername(int fd, struct sockaddr *out, socklen_t *size) {
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    if (!peer) return __real_getpeername(fd, out, size);
    if (strchr(peer, ':')) {
        inet_pton(AF_INET6, peer, &v6.sin6_addr);
        memcpy(out, &v6, sizeof v6);
    } else {
        inet_pton(AF_INET, peer, &v4.sin_addr);
        memcpy(out, &v4, sizeof v4);
    }
    return 0;
}

/* ---- the environment ---- */

static char folder[] = "/tmp/arrayd-test-XXXXXX", file[64], text[5000];
static const char *const variables[] = {"ARRAYD_URL",  "ARRAYD_TOKEN", "ARRAYD_TOKEN_FILE", "ARRAYD_CA",
                                        "ARRAYD_CERT", "ARRAYD_KEY",   "ARRAYD_NAME",       "XDG_CONFIG_HOME",
                                        "HOME",        "AD_TRACE",     "XDG_RUNTIME_DIR"};

static void set_up(void) {
    strcpy(folder, "/tmp/arrayd-test-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    snprintf(file, sizeof file, "%s/token", folder);
    memset(text, 'x', sizeof text - 1);
    for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) unsetenv(variables[i]);
    concerned = true;
}

static void tear_down(void) {
    char command[100];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    setenv("PATH", "/bin:/usr/bin", 1);
    cr_expect_eq(system(command), 0);
}

TestSuite(client_finding, .init = set_up, .fini = tear_down);

static void write_token(const char *path, const char *token) {
    FILE *f = fopen(path, "w");
    cr_assert_not_null(f);
    fputs(token, f);
    fclose(f);
    chmod(path, 0600);
}

/* ---- urls ---- */

Test(client_finding, parts_of_urls_that_are_too_long_or_missing) {
    char url[1200];
    ad_server_address a;
    static const char *const forms[] = {"tcp:%s:1",     "tcp:h:%s",     "tls:%s:1",     "%s:1", "embedded:%s",
                                        "tls://%s@h:1", "tls://t@%s:1", "tls://t@h:%s", "%s"};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
        for (size_t n = 1; n < 600; n += n < 40 ? 1 : 37) {
            snprintf(url, sizeof url, forms[i], text + sizeof text - 1 - n);
            const int status = ad__url_parse(url, &a);
            cr_expect(status == 0 || (status == AD_E_URL && *ad_error_message()), "%s", url);
        }
    static const char *const bad[] = {
        "tcp::",      "tcp:h:",    "tcp://t@h:1", "x//y@z", "tls://t@h:1#", "tls://t@h:1/#sha256:0",
        "tls:[::1:1", ":1",        "1:",          "h:1x",   "cpu:",         "tls://t@:1",
        "/x@//y",     "tls://h:1", "tcp:h:1/x",   "gpu",    "cpu",          "/tmp/x",
        "./x",        "unx:/x",    "tcq://h:1",   "tcp",    "h:1",          "http:x"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        cr_expect_eq(ad__url_parse(bad[i], &a), AD_E_URL, "%s", bad[i]);
    cr_expect_eq(ad__url_parse("unix:/a//b@c", &a), 0);
}

Test(client_finding, runtime_folders) {
    ad_server_address found[AD_URL_CANDIDATES];
    cr_expect_eq(ad__url_candidates(found), 2);
    setenv("XDG_RUNTIME_DIR", "", 1);
    cr_expect_eq(ad__url_candidates(found), 2);
    setenv("XDG_RUNTIME_DIR", text, 1);
    cr_expect_eq(ad__url_candidates(found), 2);
    setenv("XDG_RUNTIME_DIR", text + sizeof text - 200, 1);
    cr_expect_eq(ad__url_candidates(found), 2);
    setenv("XDG_RUNTIME_DIR", folder, 1);
    cr_expect_eq(ad__url_candidates(found), 3);
    for (int i = 0; i < 4; i++) { /* it may not be searched: it is this user's, somebody else's, or none */
        setenv("XDG_RUNTIME_DIR", i == 2 ? "/proc/1" : i == 3 ? "/no/such/folder" : folder, 1);
        arm_failure(CALL_faccessat, i == 0 ? ENOENT : EACCES, 1);
        const int n = ad__url_candidates(found);
        disarm_failure();
        if (i < 2) cr_expect_eq(n, 3);
        if (i == 3) cr_expect_eq(n, 2);
    }
}

/* ---- who a program is ---- */

static int find_credentials(const char *url, const ad_connection *options, ad_credentials *c) {
    ad_server_address a;
    cr_assert_eq(ad__url_parse(url, &a), 0);
    return ad__credentials_find(&a, options, c);
}

Test(client_finding, tokens_that_are_none) {
    static const char *const bad[] = {"", " ", "\n", "two words", "t\x7f", "\xc3\xa4", "a\tb"};
    ad_credentials c;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        cr_expect_eq(find_credentials("tcp:h:1", &(ad_connection){.token = bad[i]}, &c), AD_E_VALUE);
        cr_expect_not_null(strstr(ad_error_message(), "option token: not a token"));
        write_token(file, bad[i]);
        setenv("ARRAYD_TOKEN_FILE", file, 1);
        cr_expect_eq(find_credentials("tcp:h:1", NULL, &c), AD_E_VALUE);
        unsetenv("ARRAYD_TOKEN_FILE");
    }
    cr_expect_eq(find_credentials("tcp:h:1", &(ad_connection){.token = text}, &c), AD_E_VALUE);
    cr_expect_eq(find_credentials("unix:/x", &(ad_connection){.token = text}, &c), 0, "a Unix socket needs none");
}

Test(client_finding, places_of_tokens) {
    char path[200];
    ad_credentials c;
    setenv("ARRAYD_TOKEN", "", 1);
    setenv("ARRAYD_TOKEN_FILE", "", 1);
    setenv("HOME", "", 1);
    cr_expect(find_credentials("tcp:h:1", NULL, &c) == 0 && !*c.token);
    setenv("HOME", text, 1);
    cr_expect(find_credentials("tcp:h:1", NULL, &c) == 0 && !*c.token);
    setenv("HOME", folder, 1);
    cr_expect(find_credentials("tcp:h:1", NULL, &c) == 0 && !*c.token);
    snprintf(path, sizeof path, "mkdir -p %s/.config/arrayd", folder);
    cr_assert_eq(system(path), 0);
    snprintf(path, sizeof path, "%s/.config/arrayd/token", folder);
    write_token(path, "of_home\r\n");
    cr_expect(find_credentials("tcp:h:1", NULL, &c) == 0 && !strcmp(c.token, "of_home"));
    setenv("XDG_CONFIG_HOME", "", 1);
    cr_expect(find_credentials("tcp:h:1", NULL, &c) == 0 && !strcmp(c.token, "of_home"));
    setenv("XDG_CONFIG_HOME", folder, 1);
    cr_expect(find_credentials("tcp:h:1", NULL, &c) == 0 && !*c.token);
    unsetenv("XDG_CONFIG_HOME");
    cr_expect(find_credentials("tls:h:1", &(ad_connection){.cert = "/x"}, &c) == 0 && !*c.token,
              "a certificate is shown instead");
    setenv("ARRAYD_CERT", "/x", 1);
    cr_expect(find_credentials("tls:h:1", NULL, &c) == 0 && !*c.token);
    cr_expect(find_credentials("tls://word@h:1", NULL, &c) == 0 && !strcmp(c.token, "word"));
    for (int i = 0; i < 3; i++) {
        const ad_connection options = {
            .ca = i == 0 ? text : NULL, .cert = i == 1 ? text : NULL, .key = i == 2 ? text : NULL};
        cr_expect_eq(find_credentials("tls:h:1", &options, &c), AD_E_VALUE);
        cr_expect_not_null(strstr(ad_error_message(), "longer than"), "%s", ad_error_message());
    }
    setenv("ARRAYD_TOKEN_FILE", path, 1);
    for (int n = 0; n < 2; n++) {
        arm_failure(n ? CALL_read : CALL_fstat, EIO, 1);
        cr_expect_eq(find_credentials("tcp:h:1", NULL, &c), n ? AD_E_SYSTEM : 0);
        disarm_failure();
    }
    setenv("ARRAYD_TOKEN_FILE", "/no/such/file", 1);
    cr_expect_eq(find_credentials("tcp:h:1", NULL, &c), AD_E_SYSTEM);
}

Test(client_finding, a_token_file_that_others_may_read) {
    ad_credentials c;
    write_token(file, "word");
    setenv("ARRAYD_TOKEN_FILE", file, 1);
    cr_expect_eq(find_credentials("tcp:h:1", NULL, &c), 0);
    chmod(file, 0644);
    cr_expect_eq(find_credentials("tcp:h:1", NULL, &c), AD_E_DENIED);
    cr_expect_not_null(strstr(ad_error_message(), "chmod 600"), "%s", ad_error_message());
}

Test(client_finding, names_are_cut_between_characters) {
    char name[400];
    ad_credentials c;
    for (size_t n = 0; n + 3 < sizeof name; n++) {
        memset(name, 'n', n);
        strcpy(name + n, "\xe2\x82\xac");
        cr_expect_eq(find_credentials("unix:/x", &(ad_connection){.name = name}, &c), 0);
        cr_expect(ad__is_utf8(c.name, strlen(c.name)), "%zu", n);
    }
    memset(name, '\x80', sizeof name - 1);
    name[sizeof name - 1] = 0;
    setenv("ARRAYD_NAME", name, 1);
    cr_expect(find_credentials("unix:/x", NULL, &c) == 0 && !*c.name);
    setenv("ARRAYD_NAME", "", 1);
    cr_expect(find_credentials("unix:/x", NULL, &c) == 0 && *c.name);
}

/* ---- connections ---- */

Test(client_finding, tokens_stay_on_this_machine) {
    static const struct {
        const char *peer;
        bool local;
    } rows[] = {{"127.0.0.1", true}, {"127.9.9.9", true}, {"128.0.0.1", false}, {"::1", true},
                {"::2", false},      {"1::1", false},     {"0:1::1", false},    {"0:0:1::1", false},
                {"::1:0:1", false},  {"::1:0:0:1", false}};
    ad_session *s;
    fake *f = fake_open(NULL, &s);
    cr_assert_not_null(f);
    cr_expect_eq(ad__check_confidential(s, s->connection.fd, NULL), 0);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        peer = rows[i].peer;
        cr_expect_eq(ad__check_confidential(s, s->connection.fd, NULL), rows[i].local ? 0 : AD_E_DENIED, "%s", peer);
        cr_expect_eq(ad__check_confidential(s, s->connection.fd, (const ad_secure *)(const void *)s), 0);
    }
    peer = NULL;
    cr_expect_eq(ad__check_confidential(s, -1, NULL), 0);
    ad_session_close(s);
    fake_stop(f);
}

/* A token that is none, or is not sent, is told before anything is. */
Test(client_finding, tokens_that_are_not_sent) {
    ad_session *s = NULL;
    fake *f = fake_start(&(fake_options){.tcp = true});
    cr_expect_eq(ad_session_open_with(f->url, &(ad_connection){.token = "two words"}, &s), AD_E_VALUE);
    peer = "128.0.0.1";
    cr_expect_eq(ad_session_open_with(f->url, &(ad_connection){.token = "word"}, &s), AD_E_DENIED);
    cr_expect_not_null(strstr(ad_error_message(), "use tls:"), "%s", ad_error_message());
    cr_expect_null(s);
    cr_expect_eq(f->messages, 0);
    peer = NULL;
    fake_stop(f);
}

/* A session whose server seems to have moved to another machine does not come back with its token. */
Test(client_finding, tokens_are_not_sent_again_elsewhere) {
    ad_session *s = NULL;
    int status = 0;
    fake *f = fake_start(&(fake_options){.tcp = true, .resume = 60000});
    cr_assert_eq(ad_session_open_with(f->url, &(ad_connection){.token = "word"}, &s), 0, "%s", ad_error_message());
    peer = "128.0.0.1";
    shutdown(f->fd, SHUT_RDWR);
    while (!status) status = ad_sync(s);
    cr_expect_eq(status, AD_E_CONNECTION);
    cr_expect_not_null(strstr(ad_error_message(), "a token is not sent"), "%s", ad_error_message());
    peer = NULL;
    ad_session_close(s);
    fake_stop(f);
}

Test(client_finding, addresses_of_which_the_first_or_none_answers) {
    static const struct {
        call call;
        int n, status;
    } rows[] = {{CALL_getaddrinfo, 1, 0}, {CALL_connect, 1, 0}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ad_session *s = NULL;
        fake *f = fake_start(&(fake_options){.tcp = true});
        arm_failure((int)rows[i].call, 0, rows[i].n);
        cr_expect_eq(ad_session_open(f->url, &s), rows[i].status, "%s", ad_error_message());
        disarm_failure();
        ad_session_close(s);
        fake_stop(f);
    }
}

Test(client_finding, sockets_that_may_not_be_opened) {
    ad_server_address a = {.transport = AD_URL_UNIX, .url = "unix:it"};
    snprintf(a.host, sizeof a.host, "%s/token", folder);
    cr_expect_eq(ad__fail_denied(&a, EACCES), AD_E_DENIED);
    cr_expect_not_null(strstr(ad_error_message(), strerror(EACCES)), "nobody knows why: %s", ad_error_message());
    write_token(file, "");
    cr_expect_eq(ad__fail_denied(&a, EACCES), AD_E_DENIED);
    cr_expect_not_null(strstr(ad_error_message(), "may not open the socket"), "%s", ad_error_message());
    arm_failure(CALL_stat, ENOENT, 2);
    cr_expect_eq(ad__fail_denied(&a, EACCES), AD_E_DENIED);
    arm_failure(CALL_faccessat, EACCES, 3);
    chmod(folder, 0710);
    cr_expect_eq(ad__fail_denied(&a, EACCES), AD_E_DENIED);
    cr_expect_not_null(strstr(ad_error_message(), "the folder /tmp"), "%s", ad_error_message());
    disarm_failure();
}

Test(client_finding, nothing_is_said_of_a_server) {
    static const char *const none[] = {NULL, ""};
    setenv("ARRAYD_BIN", "/no/such/program", 1);
    for (size_t i = 0; i < 2; i++) {
        ad_session *s = NULL;
        if (ad_session_open(none[i], &s) == 0) cr_expect_not_null(s, "a server of this machine");
        else cr_expect_not_null(strstr(ad_error_message(), "ARRAYD_BIN"), "%s", ad_error_message());
        ad_session_close(s);
    }
}

Test(client_finding, traces_that_are_not_wanted) {
    static const char *const words[] = {"", "0"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        ad_session *s = NULL;
        setenv("AD_TRACE", words[i], 1);
        fake *f = fake_open(NULL, &s);
        cr_assert_not_null(f);
        cr_expect_not(s->tracing.on);
        ad_session_close(s);
        fake_stop(f);
    }
}

Test(client_finding, each_call_that_fails_while_a_program_connects) {
    static const int errors[] = {EINTR, EACCES, ENETUNREACH, ETIMEDOUT};
    unsigned failures = 0;
    for (int c = 0; c < CALLS_ALL; c++)
        for (size_t e = 0; e < sizeof errors / sizeof *errors; e++)
            for (int n = 1, more = 1; more && n < 6; n++) {
                ad_session *s = NULL;
                fake *f = fake_start(&(fake_options){.tcp = true});
                arm_failure(c, errors[e], n);
                const int status = ad_session_open_with(f->url, &(ad_connection){.token = "word"}, &s);
                disarm_failure();
                more = failing.left <= 0;
                cr_expect(status == 0 || (status < 0 && *ad_error_message()), "call %d, use %d", c, n);
                failures += status != 0;
                ad_session_close(s);
                const int fd = status ? __real_socket(AF_INET, SOCK_STREAM, 0) : -1;
                if (fd >= 0) close(fd);
                fake_stop(f);
            }
    cr_expect_gt(failures, 8);
}

Test(client_finding, times_that_are_over) {
    ad_server_address a;
    ad_embedded none = {.door = -1};
    int fd = -1;
    fake *f = fake_start(&(fake_options){.tcp = true});
    cr_assert_eq(ad__url_parse(f->url, &a), 0);
    cr_expect_eq(ad__connect(&a, 1, &fd, &none), AD_E_TIMEOUT);
    fake_stop(f);
    f = fake_start(NULL);
    cr_assert_eq(ad__url_parse(f->url, &a), 0);
    cr_expect_eq(ad__connect(&a, 1, &fd, &none), 0, "a Unix socket has no way to go");
    close(fd);
    a.transport = (ad_transport)77;
    cr_expect_eq(ad__connect(&a, 1, &fd, &none), AD_E_URL);
    fake_stop(f);
}

/* ---- programs to embed ---- */

/* Try to embed a server where the library's own place is not known. */
static int try_embedding(const char *path, call c, int error, int n) {
    ad_session *s = NULL;
    if (path) setenv("PATH", path, 1);
    else unsetenv("PATH");
    arm_failure((int)c, error, n);
    const int status = ad_session_open("embedded:cpu", &s);
    disarm_failure();
    cr_expect(status < 0 && !s && *ad_error_message(), "%s", path);
    return status;
}

Test(client_finding, programs_that_may_be_embedded) {
    char program[100], path[300];
    static const char *const none[] = {NULL, "", ":::", "/nowhere:/no/such/folder:", "/bin/false"};
    unsetenv("ARRAYD_BIN");
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        cr_expect_eq(try_embedding(none[i], CALL_dladdr, 0, 1), AD_E_CONNECTION);
        cr_expect_not_null(strstr(ad_error_message(), "embed"), "%s", ad_error_message());
    }
    setenv("ARRAYD_BIN", "", 1);
    cr_expect_eq(try_embedding(text, CALL_dladdr, 0, 1), AD_E_CONNECTION);
    setenv("ARRAYD_BIN", text, 1);
    cr_expect_eq(try_embedding("", CALL_dladdr, 0, 1), AD_E_CONNECTION);
    snprintf(program, sizeof program, "%s/arrayd", folder);
    setenv("ARRAYD_BIN", program, 1);
    cr_assert_eq(mkdir(program, 0755), 0);
    cr_expect_eq(try_embedding("", CALL_dladdr, 0, 1), AD_E_CONNECTION, "a folder is no program");
    rmdir(program);
    write_text(program, "nothing", 0644);
    cr_expect_eq(try_embedding("", CALL_dladdr, 0, 1), AD_E_CONNECTION);
    static const struct {
        const char *script, *expected;
    } ends[] = {{"#!/bin/sh\nexit 7\n", "exited with status 7"}, {"#!/bin/sh\nkill -9 $$\n", "ended by signal 9"}};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        write_text(program, ends[i].script, 0755);
        cr_expect_eq(try_embedding("/bin", CALL_dladdr, 0, 1), AD_E_CONNECTION);
        cr_expect_not_null(strstr(ad_error_message(), ends[i].expected), "%s", ad_error_message());
        for (int error = 0; error < 2; error++) try_embedding("/bin", CALL_syscall, error ? ENOSYS : EMFILE, 1);
        try_embedding("/bin", CALL_poll, EINTR, 1);
        for (int n = 1; n <= 2; n++) try_embedding("/bin", CALL_socketpair, EMFILE, n);
    }
    unsetenv("ARRAYD_BIN");
    snprintf(path, sizeof path, "/nowhere:%s:/bin", folder);
    cr_expect_eq(try_embedding(path, CALL_dladdr, EACCES, 1), AD_E_CONNECTION);
    cr_expect_not_null(strstr(ad_error_message(), "signal 9"), "%s", ad_error_message());
}

/* Where the library lies its program may lie, too. */
Test(client_finding, places_beside_the_library) {
    static const char *const files[] = {"", "arrayd", "/no/such/folder/libarrayd.so"};
    unsetenv("ARRAYD_BIN");
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        own_file = files[i];
        cr_expect_eq(try_embedding("/nowhere", CALL_dladdr, 0, 1), AD_E_CONNECTION);
        cr_expect_eq(strstr(ad_error_message(), "/no/such/folder/../bin/arrayd") != NULL, i == 2, "%s",
                     ad_error_message());
    }
}

/* A program that does not end when its connection is closed is killed. */
Test(client_finding, a_program_that_does_not_end) {
    snprintf(text, sizeof text, "%s/arrayd", folder);
    write_text(text, "#!/bin/sh\nexec 3>&- 4>&-\nexec sleep 1000\n", 0755);
    setenv("ARRAYD_BIN", text, 1);
    for (int i = 0; i < 2; i++) {
        cr_expect_eq(try_embedding("/bin:/usr/bin", i ? CALL_syscall : CALL_poll, i ? EMFILE : 0, 1), AD_E_CONNECTION);
        cr_expect_null(strstr(ad_error_message(), "exited"), "%s", ad_error_message());
    }
}

/* Sockets for a server that come with its numbers are made again, where that is possible. */
Test(client_finding, a_program_without_its_first_descriptors) {
    setenv("ARRAYD_BIN", "/bin/false", 1);
    for (int n = 0; n < 3; n++) {
        int state = -1;
        const pid_t pid = fork();
        if (pid == 0) {
            ad_embedded e = {.door = -1};
            int fd = -1;
            close(3);
            close(4);
            if (n) arm_failure(CALL_fcntl, EMFILE, n);
            const int status = ad__embedded_start("auto", &fd, &e);
            disarm_failure();
            _exit(status == (n == 1 ? AD_E_SYSTEM : 0) ? 0 : 1);
        }
        cr_assert_eq(waitpid(pid, &state, 0), pid);
        cr_expect_eq(state, 0, "%d", n);
    }
}

Test(client_finding, doors_of_embedded_servers) {
    int door[2], fd = -1, status = 0, opened = 0;
    cr_assert_eq(__real_socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, door), 0);
    const ad_embedded e = {.door = door[0]};
    arm_failure(CALL_socketpair, EMFILE, 1);
    cr_expect_eq(ad__embedded_connect(&e, &fd), AD_E_SYSTEM);
    disarm_failure();
    while (!status && opened++ < 10000) {
        status = ad__embedded_connect(&e, &fd);
        if (!status) close(fd);
    }
    cr_expect_eq(status, AD_E_TIMEOUT, "it takes no more: %s", ad_error_message());
    close(door[1]);
    cr_expect_eq(ad__embedded_connect(&e, &fd), AD_E_CONNECTION);
    close(door[0]);
}
