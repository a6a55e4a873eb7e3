/* System calls and allocations behind pointers, and the faults that tests inject there. See os.h. */
#include "server/common/os.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/stat.h>
#include <unistd.h>

static int dup_close_on_exec(int fd) { return fcntl(fd, F_DUPFD_CLOEXEC, 3); }

ad_os ad__os = {
    .malloc = malloc,
    .calloc = calloc,
    .realloc = realloc,
    .recv = recv,
    .send = send,
    .sendmsg = sendmsg,
    .recvmsg = recvmsg,
    .accept = accept4,
    .socketpair = socketpair,
    .dup = dup_close_on_exec,
};

/* The calls that can be made to fail: member of ad_os, errno, parameters, arguments, result type, result of a
 * failure. */
#define FAULT_SITES(X)                                                                                            \
    X(malloc, ENOMEM, (size_t size), (size), void *, NULL)                                                        \
    X(calloc, ENOMEM, (size_t n, size_t size), (n, size), void *, NULL)                                           \
    X(realloc, ENOMEM, (void *old, size_t size), (old, size), void *, NULL)                                       \
    X(recv, ECONNRESET, (int fd, void *data, size_t size, int flags), (fd, data, size, flags), ssize_t, -1)       \
    X(send, EPIPE, (int fd, const void *data, size_t size, int flags), (fd, data, size, flags), ssize_t, -1)      \
    X(sendmsg, ECONNRESET, (int fd, const struct msghdr *m, int flags), (fd, m, flags), ssize_t, -1)              \
    X(recvmsg, ECONNRESET, (int fd, struct msghdr *m, int flags), (fd, m, flags), ssize_t, -1)                    \
    X(accept, EMFILE, (int fd, struct sockaddr *a, socklen_t *n, int flags), (fd, a, n, flags), int, -1)          \
    X(socketpair, EMFILE, (int family, int type, int protocol, int fd[2]), (family, type, protocol, fd), int, -1) \
    X(dup, EMFILE, (int fd), (fd), int, -1)

static ad_os plain;      /* the calls as they are without faults */
static const char *once; /* a file that exists once a fault was injected; NULL: every process injects */
static bool deadly;      /* the fault kills the process */

static void report_injected_fault(const char *call) {
    int fd = once ? open(once, O_CREAT | O_WRONLY | O_CLOEXEC, 0600) : -1;
    if (fd >= 0) close(fd);
    dprintf(STDERR_FILENO, "fault injected: %s\n", call);
    if (deadly) raise(SIGKILL);
}

#define X(name, error, parameters, arguments, type, failure) \
    static atomic_long left_##name;                          \
    static long each_##name;                                 \
    static type fault_##name parameters {                    \
        if (atomic_fetch_sub(&left_##name, 1) == 1) {        \
            atomic_store(&left_##name, each_##name);         \
            report_injected_fault(#name);                    \
            errno = error;                                   \
            return failure;                                  \
        }                                                    \
        return plain.name arguments;                         \
    }
FAULT_SITES(X)
#undef X

/* each: how many uses further the call fails again; 0: never. */
static void arm_fault(const char *call, long n, long each) {
#define X(name, ...)                   \
    if (!strcmp(call, #name)) {        \
        atomic_store(&left_##name, n); \
        each_##name = each;            \
        ad__os.name = fault_##name;    \
    }
    FAULT_SITES(X)
#undef X
}

void ad__os_init(const char *program) {
    const char *text = getenv("ARRAYD_FAULT_OS");
    char copy[512], *rest = copy, *item;
    once = getenv("ARRAYD_FAULT_ONCE");
    if (!text || strlen(text) >= sizeof copy || (once && access(once, F_OK) == 0)) return;
    strcpy(copy, text);
    plain = ad__os;
    while ((item = strsep(&rest, ","))) {
        const char *name = strsep(&item, ":"), *call = strsep(&item, ":");
        if (!call || !item || strcmp(name, program)) continue;
        deadly = strstr(item, ":killed");
        const char *each = strstr(item, ":each=");
        arm_fault(call, strtol(item, NULL, 10), each ? strtol(each + strlen(":each="), NULL, 10) : 0);
    }
}

int64_t ad__os_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

int ad__os_thread(pthread_t *thread, void *(*run)(void *user), void *user) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before);
    int error = pthread_create(thread, NULL, run, user);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

void *ad__os_grow(void *list, size_t count, size_t *capacity, size_t element) {
    if (count < *capacity) return list;
    size_t more = *capacity ? 2 * *capacity : 16;
    void *grown = ad__os.realloc(list, more * element);
    if (grown) *capacity = more;
    return grown;
}

int ad__os_write(int fd, const void *data, size_t size) {
    for (const char *at = data; size;) {
        ssize_t n = write(fd, at, size);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return -1;
        at += n;
        size -= (size_t)n;
    }
    return 0;
}

void ad__os_make_parents(char *path, char *from) {
    for (char *p = from; (p = strchr(p, '/')); *p++ = '/') {
        *p = 0;
        mkdir(path, 0700);
    }
}

int ad__os_make_folder(char *path) {
    ad__os_make_parents(path, path + 1);
    return mkdir(path, 0700) && errno != EEXIST ? -1 : 0;
}
