/* Closing descriptors that clients have passed: see discard.h. */
#include "server/common/discard.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "server/common/channel.h"
#include "server/common/os.h"

#define INTERRUPT_NS 2000000 /* ns for which closing one socket may wait */
#define INTERRUPT (SIGRTMIN + 4)

/* The descriptors of one client and one kind, and the thread that closes them. It ends when there are none. */
typedef struct closer {
    struct closer *next;
    char who[AD_PRINCIPAL_SIZE];
    bool useful;
    int *fd;
    size_t count, capacity;
} closer;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static closer *closers;
static atomic_uint nclosers; /* for those who only look whether there are any, before each receive */

static closer **find_closer(const char *who, bool useful) {
    closer **at = &closers;
    while (*at && ((*at)->useful != useful || strncmp((*at)->who, who, sizeof(*at)->who - 1))) at = &(*at)->next;
    return at;
}

static void ignore_signal(int number) { (void)number; }

/* Interrupt the calling thread's system calls again and again. Without a timer they take what they take. */
static void interrupt_calls(timer_t *timer) {
    const struct sigaction action = {.sa_handler = ignore_signal};
    const struct itimerspec often = {{0, INTERRUPT_NS}, {0, INTERRUPT_NS}};
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = INTERRUPT};
    sigset_t set;
    event._sigev_un._tid = (pid_t)syscall(SYS_gettid);
    sigaction(INTERRUPT, &action, NULL);
    sigemptyset(&set);
    sigaddset(&set, INTERRUPT);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    if (!timer_create(CLOCK_MONOTONIC, &event, timer)) timer_settime(*timer, 0, &often, NULL);
}

/* Take the next descriptor. -1: there is none, and the closer is removed. */
static int take_next(closer *c) {
    int fd = -1;
    pthread_mutex_lock(&lock);
    if (c->count) {
        fd = c->fd[--c->count];
    } else {
        *find_closer(c->who, c->useful) = c->next;
        atomic_fetch_sub(&nclosers, 1);
    }
    pthread_mutex_unlock(&lock);
    return fd;
}

static void *close_all(void *user) {
    closer *c = user;
    timer_t timer = NULL;
    interrupt_calls(&timer);
    for (int fd; (fd = take_next(c)) >= 0;) close(fd);
    if (timer) timer_delete(timer);
    free(c->fd);
    free(c);
    return NULL;
}

/* Begin a closer. NULL: no memory or no thread. The caller has the lock. */
static closer *start_closer(const char *who, bool useful) {
    closer *c = ad__os.calloc(1, sizeof *c);
    pthread_t thread;
    if (!c) return NULL;
    strncpy(c->who, who, sizeof c->who - 1);
    c->useful = useful;
    if (ad__os_thread(&thread, close_all, c)) {
        free(c);
        return NULL;
    }
    pthread_detach(thread);
    c->next = closers;
    atomic_fetch_add(&nclosers, 1);
    return closers = c;
}

bool ad__discard_is_useful(int fd) {
    int domain = 0;
    socklen_t size = sizeof domain;
    return fcntl(fd, F_GET_SEALS) >= 0 || (!getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) && domain == AF_UNIX);
}

void ad__discard(const char *who, int fd) {
    if (!*who) {
        close(fd);
        return;
    }
    const bool useful = ad__discard_is_useful(fd);
    pthread_mutex_lock(&lock);
    closer *c = *find_closer(who, useful);
    if (!c) c = start_closer(who, useful);
    int *list = c ? ad__os_grow(c->fd, c->count, &c->capacity, sizeof *list) : NULL;
    if (list) {
        c->fd = list;
        list[c->count++] = fd;
    }
    pthread_mutex_unlock(&lock);
    if (!list) close(fd);
}

/* Tell whether the queue of a connection is empty, and stays so: nothing can be sent to it after shutdown(). */
static bool is_queue_empty(int fd) {
    int unread = 0;
    shutdown(fd, SHUT_RDWR);
    return !ioctl(fd, FIONREAD, &unread) && !unread;
}

void ad__discard_connection(const char *who, int fd) {
    if (is_queue_empty(fd)) close(fd);
    else ad__discard(who, fd);
}

bool ad__discard_is_full(const char *who) {
    if (!atomic_load(&nclosers)) return false;
    pthread_mutex_lock(&lock);
    const closer *c = *find_closer(who, false);
    const bool full = c && c->count >= AD_DISCARD_LIMIT;
    pthread_mutex_unlock(&lock);
    return full;
}

int ad__discard_others(const char *who, struct msghdr *m) {
    int first = -1;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
        const size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < n; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
            if (first < 0) first = fd;
            else ad__discard(who, fd);
        }
    }
    return first;
}

ssize_t ad__discard_receive(const char *who, int socket, void *data, size_t size) {
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(AD_DISCARD_MOST * sizeof(int))];
    struct iovec space = {data, size};
    struct msghdr m = {.msg_iov = &space, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    if (ad__discard_is_full(who)) {
        errno = EDQUOT;
        return -1;
    }
    const ssize_t n = ad__os.recvmsg(socket, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    const int first = n >= 0 ? ad__discard_others(who, &m) : -1;
    if (first >= 0) ad__discard(who, first);
    return n;
}
