/* System calls and allocations of the server behind function pointers, so that tests can make the n-th one fail.
 *
 * ARRAYD_FAULT_OS=PROGRAM:CALL:N (comma-separated for several) in the environment makes the N-th use of CALL in
 * PROGRAM (arrayd, arrayd-worker) fail with the error that the kernel would give, as in "arrayd-worker:malloc:17".
 * It fails once in each process; with ":killed" behind it the process is killed instead, and with ":each=M" it
 * fails again at each M-th use after that. With ARRAYD_FAULT_ONCE=FILE no process that starts later fails again. */
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

/* The calls that all code of the server uses. They are replaced only before threads start. */
extern ad_os ad__os;

/* Arm the faults that the environment asks for in this program. */
void ad__os_init(const char *program);
/* Nanoseconds of the monotonic clock. */
int64_t ad__os_now(void);
/* Start a thread with all signals blocked: only the loop's thread takes them. 0, or an errno. */
int ad__os_thread(pthread_t *thread, void *(*run)(void *user), void *user);
/* Make room in a list for one element behind `count`; *capacity is how many fit. NULL: no memory, and the list is as
 * it was. */
void *ad__os_grow(void *list, size_t count, size_t *capacity, size_t element);
/* Round p up to the start of a line of the processor's cache. */
#define AD_LINE 64
static inline void *ad__os_line(void *p) { return (char *)p + (-(uintptr_t)p & (AD_LINE - 1)); }
/* Write all bytes. -1: errno says why not. */
int ad__os_write(int fd, const void *data, size_t size);
/* Make the folders of mode 0700 that are missing on the way to a path. from: the part of the path to look at. */
void ad__os_make_parents(char *path, char *from);
/* Make a folder, and those on the way to it. -1: errno says why not. */
int ad__os_make_folder(char *path);

#endif
