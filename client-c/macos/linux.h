/* Functions that Linux has and macOS has not, for the client alone: the compiler reads this file before every other.
 *
 * On macOS servers are reached by tcp: and tls: only, so what serves a connection within one machine (memory that two
 * processes map, descriptors that are passed on, loans of a GPU's memory) is refused with ENOSYS. The rest behaves as
 * on Linux. */
#ifndef AD_MACOS_LINUX_H
#define AD_MACOS_LINUX_H

#define __STDC_WANT_LIB_EXT1__ 1 /* memset_s */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <spawn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* ---- sockets ---- */

#define SOCK_CLOEXEC 0x1000000
#define SOCK_NONBLOCK 0x2000000
#undef MSG_NOSIGNAL /* only the newest systems have it: the sockets made here are SO_NOSIGPIPE instead */
#define MSG_NOSIGNAL 0
#define MSG_CMSG_CLOEXEC 0
#define MSG_MORE 0
#define POLLRDHUP 0 /* poll tells POLLHUP unasked */
#define TCP_KEEPIDLE TCP_KEEPALIVE
#define TCP_USER_TIMEOUT (-1) /* refused: what has vanished is noticed by TCP_KEEPALIVE */

static inline int ad_macos_set_flags(int fd, int type) {
    const int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on);
    if (type & SOCK_CLOEXEC && fcntl(fd, F_SETFD, FD_CLOEXEC) != 0) return -1;
    return type & SOCK_NONBLOCK ? fcntl(fd, F_SETFL, O_NONBLOCK) : 0;
}

static inline int ad_macos_socket(int family, int type, int protocol) {
    const int fd = socket(family, type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK), protocol);
    if (fd < 0 || ad_macos_set_flags(fd, type) == 0) return fd;
    close(fd);
    return -1;
}

static inline int ad_macos_socketpair(int family, int type, int protocol, int end[2]) {
    if (socketpair(family, type & ~(SOCK_CLOEXEC | SOCK_NONBLOCK), protocol, end)) return -1;
    if (ad_macos_set_flags(end[0], type) == 0 && ad_macos_set_flags(end[1], type) == 0) return 0;
    close(end[0]), close(end[1]);
    return -1;
}

static inline int ad_macos_pipe(int end[2], int flags) {
    if (pipe(end) != 0) return -1;
    for (int i = 0; i < 2 && flags & O_CLOEXEC; i++) fcntl(end[i], F_SETFD, FD_CLOEXEC);
    return 0;
}

#define socket ad_macos_socket
#define socketpair ad_macos_socketpair
#define pipe2 ad_macos_pipe /* the newest systems alone have their own */

/* ---- time, threads, processes ---- */

/* Conditions wait by the monotonic clock, as all callers have asked: macOS takes the time that is left. */
static inline int ad_macos_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *lock,
                                          const struct timespec *until) {
    const int64_t second = 1000000000, now = (int64_t)clock_gettime_nsec_np(CLOCK_MONOTONIC);
    int64_t left = (int64_t)until->tv_sec * second + until->tv_nsec - now;
    if (left < 0) left = 0;
    const struct timespec wait = {.tv_sec = left / second, .tv_nsec = left % second};
    return pthread_cond_timedwait_relative_np(condition, lock, &wait);
}

#define pthread_cond_timedwait ad_macos_cond_timedwait
#define pthread_condattr_setclock(attributes, clock) ((void)(attributes), (void)(clock), 0)

typedef struct {
    int count;
} cpu_set_t;

static inline int sched_getaffinity(int process, size_t size, cpu_set_t *set) {
    (void)process, (void)size;
    set->count = (int)sysconf(_SC_NPROCESSORS_ONLN);
    return 0;
}

#define CPU_COUNT(set) ((set)->count)
#define program_invocation_short_name getprogname()

static inline int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *files, int from) {
    (void)files, (void)from;
    return ENOSYS; /* embedded servers are not started */
}

/* ---- secrets ---- */

static inline void explicit_bzero(void *memory, size_t size) { memset_s(memory, size, 0, size); }

static inline ssize_t getrandom(void *memory, size_t size, unsigned flags) {
    (void)flags;
    return getentropy(memory, size) == 0 ? (ssize_t)size : -1;
}

/* ---- memory that processes share ---- */

#define MFD_CLOEXEC 0
#define MFD_ALLOW_SEALING 0
#define F_ADD_SEALS (-1)
#define F_GET_SEALS (-1)
#define F_SEAL_SEAL 1
#define F_SEAL_SHRINK 2
#define F_SEAL_GROW 4
#define F_SEAL_WRITE 8
#define F_SEAL_FUTURE_WRITE 16
#define MADV_HUGEPAGE (-1)
#define MADV_POPULATE_WRITE (-1) /* refused with EINVAL, as by an old Linux */
#define MREMAP_MAYMOVE 1
#define MREMAP_FIXED 2

static inline int memfd_create(const char *name, unsigned flags) {
    (void)name, (void)flags;
    errno = ENOSYS;
    return -1;
}

static inline void *mremap(void *from, size_t before, size_t after, int flags, ...) {
    (void)from, (void)before, (void)after, (void)flags;
    errno = ENOSYS;
    return MAP_FAILED;
}

/* ---- who the other end of a Unix socket is ---- */

#define SO_PEERCRED (-1)
#define SO_PASSCRED (-1)

struct ucred {
    pid_t pid;
    uid_t uid;
    gid_t gid;
};

#endif
