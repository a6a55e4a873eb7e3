#include "tests/unit/client_connection.h"

#include <errno.h>
#include <pthread.h>
#include <sys/socket.h>

#include "client-c/client.h"

#define LEAP 5000000000u

struct connection connection = {.room = ANY};
_Thread_local unsigned connection_leap;
static _Thread_local bool sending; /* on_sent has been called, and may send */

static ssize_t end_send(int fd, ssize_t n) {
    const int error = errno;
    void (*const on_sent)(int fd) = connection.on_sent;
    if (n > 0 && on_sent && !sending) {
        sending = true;
        on_sent(fd);
        sending = false;
    }
    errno = error;
    return n;
}

ssize_t __real_sendmsg(int fd, const struct msghdr *m, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags) {
    long left = connection.room;
    struct iovec part = m->msg_iov[0];
    struct msghdr some = *m;
    if (connection.refuses && m->msg_controllen) {
        errno = EPERM;
        return -1;
    }
    if (left == 0) atomic_compare_exchange_strong(&connection.room, &left, FULL);
    if (left == 0 || left == FULL) {
        errno = EAGAIN;
        return -1;
    }
    if (left > 0) {
        if (part.iov_len > (size_t)left) part.iov_len = (size_t)left;
        some.msg_iov = &part;
        some.msg_iovlen = 1;
    }
    const ssize_t n = __real_sendmsg(fd, &some, flags);
    if (n > 0) connection.sent += n;
    if (n > 0 && left > 0) atomic_compare_exchange_strong(&connection.room, &left, left - n);
    return end_send(fd, n);
}

ssize_t __real_send(int fd, const void *data, size_t size, int flags);
ssize_t __wrap_send(int fd, const void *data, size_t size, int flags);
ssize_t __wrap_send(int fd, const void *data, size_t size, int flags) {
    unsigned later = connection.later;
    while (later && !atomic_compare_exchange_weak(&connection.later, &later, later - 1)) {}
    if (later) {
        errno = EAGAIN;
        return -1;
    }
    if (flags & MSG_MORE) connection.followed++;
    return end_send(fd, __real_send(fd, data, size, flags));
}

ssize_t __real_recv(int fd, void *data, size_t size, int flags);
ssize_t __wrap_recv(int fd, void *data, size_t size, int flags);
ssize_t __wrap_recv(int fd, void *data, size_t size, int flags) {
    void (*const on_peek)(void) = connection.on_peek;
    if (flags & MSG_PEEK && on_peek) on_peek();
    return __real_recv(fd, data, size, flags);
}

uint64_t __real_ad__now(void);
uint64_t __wrap_ad__now(void);
uint64_t __wrap_ad__now(void) {
    connection.looks++;
    if (connection.room == FULL) connection.ahead += 60000000;
    if (connection_leap && --connection_leap == 0) connection.ahead += LEAP;
    return __real_ad__now() + connection.ahead;
}

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *a, void *(*run)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *a, void *(*run)(void *), void *argument);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *a, void *(*run)(void *), void *argument) {
    return connection.threadless ? EAGAIN : __real_pthread_create(thread, a, run, argument);
}

void connection_clear(void) {
    connection.room = ANY;
    connection.ahead = 0;
}
