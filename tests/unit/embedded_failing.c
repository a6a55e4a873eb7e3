/* Calls of the system that fail: each use of each call in turn, while a program opens a session with a real server,
 * uses it, loses its connection, forks and closes it. The program is told by an error or need not know, nothing crashes
 * or waits for ever, and no descriptor is left. The linker gives these calls of the library to this file (Makefile,
 * WRAPS_embedded). */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client-c/client.h"
#include "tests/unit/embedded.h"

/* ---- the calls ---- */

/* X(call, result, parameters, arguments, what a failure returns) */
#define CALLS(X)                                                                                                       \
    X(socket, int, (int a, int b, int c), (a, b, c), -1)                                                               \
    X(connect, int, (int a, const struct sockaddr *b, socklen_t c), (a, b, c), -1)                                     \
    X(socketpair, int, (int a, int b, int c, int d[2]), (a, b, c, d), -1)                                              \
    X(getsockopt, int, (int a, int b, int c, void *d, socklen_t *e), (a, b, c, d, e), failing.error ? -1 : 0)          \
    X(poll, int, (struct pollfd * a, nfds_t b, int c), (a, b, c), -1)                                                  \
    X(send, ssize_t, (int a, const void *b, size_t c, int d), (a, b, c, d), -1)                                        \
    X(sendmsg, ssize_t, (int a, const struct msghdr *b, int c), (a, b, c), -1)                                         \
    X(recv, ssize_t, (int a, void *b, size_t c, int d), (a, b, c, d), -1)                                              \
    X(recvmsg, ssize_t, (int a, struct msghdr *b, int c), (a, b, c), -1)                                               \
    X(fcntl, int, (int a, int b, long c), (a, b, c), -1)                                                               \
    X(getrandom, ssize_t, (void *a, size_t b, unsigned c), (a, b, c), -1)                                              \
    X(malloc, void *, (size_t a), (a), NULL)                                                                           \
    X(calloc, void *, (size_t a, size_t b), (a, b), NULL)                                                              \
    X(realloc, void *, (void *a, size_t b), (a, b), NULL)                                                              \
    X(mmap, void *, (void *a, size_t b, int c, int d, int e, off_t f), (a, b, c, d, e, f), MAP_FAILED)                 \
    X(memfd_create, int, (const char *a, unsigned b), (a, b), -1)                                                      \
    X(waitpid, pid_t, (pid_t a, int *b, int c), (a, b, c), -1)                                                         \
    X(waitid, int, (idtype_t a, id_t b, siginfo_t * c, int d), (a, b, c, d), -1)                                       \
    X(pthread_mutex_init, int, (pthread_mutex_t * a, const pthread_mutexattr_t *b), (a, b), failing.error)             \
    X(pthread_attr_init, int, (pthread_attr_t * a), (a), failing.error)                                                \
    X(pthread_create, int, (pthread_t * a, const pthread_attr_t *b, void *(*c)(void *), void *d), (a, b, c, d),        \
      failing.error)                                                                                                   \
    X(posix_spawn, int,                                                                                                \
      (pid_t * a, const char *b, const posix_spawn_file_actions_t *c, const posix_spawnattr_t *d, char *const *e,      \
       char *const *f),                                                                                                \
      (a, b, c, d, e, f), failing.error)                                                                               \
    X(posix_spawn_file_actions_init, int, (posix_spawn_file_actions_t * a), (a), failing.error)                        \
    X(posix_spawn_file_actions_adddup2, int, (posix_spawn_file_actions_t * a, int b, int c), (a, b, c), failing.error) \
    X(posix_spawn_file_actions_addopen, int, (posix_spawn_file_actions_t * a, int b, const char *c, int d, mode_t e),  \
      (a, b, c, d, e), failing.error)                                                                                  \
    X(posix_spawn_file_actions_addclosefrom_np, int, (posix_spawn_file_actions_t * a, int b), (a, b), failing.error)   \
    X(posix_spawnattr_init, int, (posix_spawnattr_t * a), (a), failing.error)                                          \
    X(posix_spawnattr_setsigmask, int, (posix_spawnattr_t * a, const sigset_t *b), (a, b), failing.error)              \
    X(posix_spawnattr_setsigdefault, int, (posix_spawnattr_t * a, const sigset_t *b), (a, b), failing.error)           \
    X(posix_spawnattr_setflags, int, (posix_spawnattr_t * a, short b), (a, b), failing.error)

#include "tests/unit/failing_calls.h"

static bool must_fail(call c) { return is_due(c); }

/* ---- the server ---- */

static char folder[] = "/tmp/arrayd-test-XXXXXX", url[64];
static pid_t server;

static void find_server(char *out, size_t size) {
    ssize_t n = readlink("/proc/self/exe", out, size - 20);
    cr_assert_gt(n, 0);
    out[n] = 0;
    strcpy(strrchr(out, '/'), "/../bin/arrayd");
    if (access(out, X_OK)) cr_skip_test("no arrayd beside this test");
}

/* Start a server, and wait until it says that it is ready. */
static void set_up(void) {
    char program[1024], option[100], said[64];
    struct sockaddr_un ready = {.sun_family = AF_UNIX};
    strcpy(folder, "/tmp/arrayd-test-XXXXXX");
    find_server(program, sizeof program);
    cr_assert_not_null(mkdtemp(folder));
    snprintf(url, sizeof url, "unix:%s/s", folder);
    snprintf(ready.sun_path, sizeof ready.sun_path, "%s/ready", folder);
    snprintf(option, sizeof option, "--socket=%s", url + 5);
    const int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    cr_assert_eq(bind(fd, (struct sockaddr *)&ready, sizeof ready), 0);
    setenv("NOTIFY_SOCKET", ready.sun_path, 1);
    server = fork();
    if (server == 0) {
        execl(program, "arrayd", option, "--backend=cpu", "--kernels-cache=none", (char *)NULL);
        _exit(127);
    }
    unsetenv("NOTIFY_SOCKET");
    cr_assert_gt(recv(fd, said, sizeof said, 0), 0);
    close(fd);
    unlink(ready.sun_path);
}

static void tear_down(void) {
    int status = -1;
    kill(server, SIGTERM);
    waitpid(server, &status, 0);
    cr_expect_eq(status, 0);
    char command[100];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    cr_expect_eq(system(command), 0);
}

TestSuite(embedded_failing, .init = set_up, .fini = tear_down);

/* ---- what a program does ---- */

#define N 20000 /* elements: enough for shared memory */

static int use_session(ad_session *s) {
    static double data[N];
    const int64_t n = N, few = 4;
    uint64_t counters[4];
    int got;
    ad_array *a = NULL, *b = NULL, *c = NULL;
    int status = ad_upload(s, AD_FLOAT64, 1, &n, data, sizeof data, &a);
    if (!status) status = ad_upload(s, AD_FLOAT64, 1, &few, data, 32, &b);
    if (!status) status = ad_add(ad_of(a), ad_float(1), &c);
    if (!status) status = ad_stat(s, 4, counters, &got);
    if (!status) status = ad_download(c, data, sizeof data);
    if (!status) status = ad_download(b, data, 32);
    if (!status) status = ad_cancel(s);
    if (!status) status = ad_sync(s);
    ad_array_release(a);
    ad_array_release(b);
    ad_array_release(c);
    return status;
}

static int use_usual(ad_session *s) { return use_session(s); }

/* Cut the connection, which another thread may just be replacing. */
static void cut_connection(ad_session *s) {
    pthread_mutex_lock(&s->lock);
    shutdown(s->connection.fd, SHUT_RDWR);
    pthread_mutex_unlock(&s->lock);
}

/* Lose the connection twice: with nothing on its way, and with operations that have to be sent again. */
static int use_again(ad_session *s) {
    double data[4];
    ad_array *a = NULL, *b = NULL;
    int status = ad_arange(s, ad_int(0), ad_int(4), ad_int(1), AD_FLOAT64, &a);
    if (!status) status = ad_sync(s);
    cut_connection(s);
    if (!status) status = ad_download(a, data, sizeof data);
    if (!status) status = ad_add(ad_of(a), ad_float(1), &b);
    cut_connection(s);
    if (!status) status = ad_download(b, data, sizeof data);
    if (!status) cr_expect_eq(data[3], 4);
    ad_array_release(a);
    ad_array_release(b);
    return status;
}

static int use_in_fork(ad_session *s) {
    double data[4];
    ad_array *a = NULL;
    int state = -1, status = ad_arange(s, ad_int(0), ad_int(4), ad_int(1), AD_FLOAT64, &a);
    const pid_t pid = status ? -1 : fork();
    if (pid == 0) {
        disarm_failure(); /* only the parent's calls fail */
        const int said = ad_download(a, data, sizeof data);
        _exit(said ? said != AD_E_CONNECTION : data[3] != 3);
    }
    while (pid > 0 && waitpid(pid, &state, 0) < 0) cr_assert_eq(errno, EINTR);
    if (pid > 0) cr_expect_eq(state, 0, "the child: %d", state);
    if (!status) status = ad_download(a, data, sizeof data);
    ad_array_release(a);
    return status;
}

static int use_nothing(ad_session *s) { return ad_sync(s); }

/* ---- the test ---- */

/* Open, use and close a session; its status, and what the program was told. */
static int run_program(const char *where, int (*use)(ad_session *), char told[600]) {
    ad_session *s = NULL;
    int status = ad_session_open(where, &s);
    if (!status) status = use(s);
    snprintf(told, 600, "%s", status ? ad_error_message() : "");
    ad_session_close(s);
    return status;
}

/* Run a program in which the n-th use of a call fails. An interrupted call changes nothing: usual is the status without
 * a failure. False: the program has fewer uses. */
static bool fail_once(const char *where, int (*use)(ad_session *), int usual, call c, int error, int n) {
    const unsigned before = count_descriptors();
    char told[600];
    arm_failure((int)c, error, n);
    const int status = run_program(where, use, told);
    disarm_failure();
    cr_expect(status == 0 || (status < 0 && *told), "call %d, error %d, use %d: %d", (int)c, error, n, status);
    if (error == EINTR && c != CALL_connect) cr_expect_eq(status, usual, "call %d, use %d: %s", (int)c, n, told);
    cr_expect_eq(count_descriptors(), before, "call %d, error %d, use %d: %s", (int)c, error, n, told);
    return failing.left <= 0;
}

typedef struct row {
    call call;
    int error;
} row;

/* Let each use of each call fail once; returns how many there were. */
static unsigned fail_all(const char *where, int (*use)(ad_session *), size_t count, const row *rows, int most) {
    char told[600];
    const int usual = run_program(where, use, told);
    unsigned all = 0;
    for (size_t i = 0; i < count; i++)
        for (int n = 1; n <= most && fail_once(where, use, usual, rows[i].call, rows[i].error, n); n++) all++;
    return all;
}

#define ROWS(rows) sizeof rows / sizeof *rows, rows

static const row transfers[] = {
    {CALL_sendmsg, EINTR},      {CALL_sendmsg, EAGAIN}, {CALL_sendmsg, EPIPE},      {CALL_sendmsg, EINVAL},
    {CALL_sendmsg, EPERM},      {CALL_sendmsg, EACCES}, {CALL_sendmsg, EOPNOTSUPP}, {CALL_sendmsg, ETOOMANYREFS},
    {CALL_recv, EINTR},         {CALL_recv, EAGAIN},    {CALL_recv, ECONNRESET},    {CALL_recvmsg, EINTR},
    {CALL_recvmsg, ECONNRESET}, {CALL_send, EINTR},     {CALL_send, EAGAIN},        {CALL_send, EPIPE},
    {CALL_poll, EINTR},
};
static const row resources[] = {
    {CALL_malloc, ENOMEM},
    {CALL_calloc, ENOMEM},
    {CALL_realloc, ENOMEM},
    {CALL_mmap, ENOMEM},
    {CALL_memfd_create, EMFILE},
    {CALL_socket, EMFILE},
    {CALL_socketpair, EMFILE},
    {CALL_fcntl, EMFILE},
    {CALL_getrandom, EAGAIN},
    {CALL_getsockopt, ENOTSUP},
    {CALL_getsockopt, 0},
    {CALL_pthread_create, EAGAIN},
    {CALL_pthread_mutex_init, EAGAIN},
    {CALL_pthread_attr_init, ENOMEM},
};
static const row connections[] = {
    {CALL_connect, EINTR},  {CALL_connect, EAGAIN},  {CALL_connect, EACCES},       {CALL_connect, EPERM},
    {CALL_connect, ENOENT}, {CALL_connect, ENOTDIR}, {CALL_connect, ECONNREFUSED}, {CALL_connect, ENOMEM},
};
static const row beginnings[] = {
    {CALL_posix_spawn, EAGAIN},
    {CALL_posix_spawn_file_actions_init, ENOMEM},
    {CALL_posix_spawn_file_actions_adddup2, ENOMEM},
    {CALL_posix_spawn_file_actions_addopen, ENOMEM},
    {CALL_posix_spawn_file_actions_addclosefrom_np, ENOMEM},
    {CALL_posix_spawnattr_init, ENOMEM},
    {CALL_posix_spawnattr_setsigmask, EINVAL},
    {CALL_posix_spawnattr_setsigdefault, EINVAL},
    {CALL_posix_spawnattr_setflags, EINVAL},
    {CALL_socketpair, EMFILE},
    {CALL_waitpid, EINTR},
    {CALL_waitpid, ECHILD},
    {CALL_malloc, ENOMEM},
    {CALL_waitid, ECHILD},
};

Test(embedded_failing, while_a_session_is_used) {
    cr_expect_gt(fail_all(url, use_usual, ROWS(transfers), 40), 20);
    cr_expect_gt(fail_all(url, use_usual, ROWS(resources), 60), 20);
    cr_expect_gt(fail_all(url, use_nothing, ROWS(connections), 1), 7);
}

Test(embedded_failing, while_a_session_comes_back) {
    cr_expect_gt(fail_all(url, use_again, ROWS(transfers), 30), 20);
    cr_expect_gt(fail_all(url, use_again, ROWS(resources), 40), 10);
    cr_expect_gt(fail_all(url, use_again, ROWS(connections), 3), 15);
}

Test(embedded_failing, while_a_process_forks) {
    cr_expect_gt(fail_all(url, use_in_fork, ROWS(transfers), 20), 10);
    cr_expect_gt(fail_all(url, use_in_fork, ROWS(resources), 30), 10);
}

Test(embedded_failing, while_a_server_is_embedded) {
    char program[1024];
    find_server(program, sizeof program);
    setenv("ARRAYD_BIN", program, 1);
    cr_expect_gt(fail_all("embedded:cpu", use_nothing, ROWS(beginnings), 4), 12);
    setenv("ARRAYD_BIN", "/bin/false", 1); /* a program that ends without a word */
    cr_expect_gt(fail_all("embedded:cpu", use_nothing, ROWS(beginnings), 4), 12);
}
