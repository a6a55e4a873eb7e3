/* The system calls and allocations of the server behind function pointers, so that tests can make the n-th one fail.
 *
 * ARRAYD_FAULT_OS=PROGRAM:CALL:N (comma-separated for several) in the environment makes the N-th use of CALL in
 * PROGRAM (arrayd, arrayd-worker) fail, once in a process, with the error that the kernel would give:
 * "arrayd-worker:malloc:17"; with ":killed" behind it the process is gone there and then. With ARRAYD_FAULT_ONCE=FILE
 * no process started later fails again. */
#ifndef AD_SERVER_OS_H
#define AD_SERVER_OS_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

typedef struct ad_os {
    void *(*malloc)(size_t size);
    void *(*calloc)(size_t n, size_t size);
    void *(*realloc)(void *old, size_t size);
    ssize_t (*recv)(int fd, void *data, size_t size, int flags);
    ssize_t (*send)(int fd, const void *data, size_t size, int flags);
    ssize_t (*sendmsg)(int fd, const struct msghdr *m, int flags);
    ssize_t (*recvmsg)(int fd, struct msghdr *m, int flags);
    int (*accept)(int fd, struct sockaddr *address, socklen_t *size, int flags);
    int (*socketpair)(int family, int type, int protocol, int fd[2]);
    int (*dup)(int fd);
} ad_os;

/* What everything calls. Replaced only before threads start. */
extern ad_os ad__os;

/* Arm the faults that the environment asks for; program is this program's name. */
void ad__os_init(const char *program);
/* Nanoseconds of the monotonic clock. */
int64_t ad__os_now(void);
/* Start a thread, to which no signals come: they are the loop's. 0, or an errno. */
int ad__os_thread(pthread_t *thread, void *(*run)(void *user), void *user);
/* A list of `count` elements with room for one more; *capacity is how many it can have. NULL: no memory, and the list
 * is as it was. */
void *ad__os_grow(void *list, size_t count, size_t *capacity, size_t element);
/* The first line of the processor's cache that begins at p or behind it. */
#define AD_LINE 64
static inline void *ad__os_line(void *p) { return (char *)p + (-(uintptr_t)p & (AD_LINE - 1)); }
/* Write all of it. -1: errno says why not. */
int ad__os_write(int fd, const void *data, size_t size);

#endif
