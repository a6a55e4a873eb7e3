/* Calls of the system as the programs see them: the linker's --wrap sends them here (Makefile, SIM_CALLS). */
#ifndef AD_SIM_CALLS_H
#define AD_SIM_CALLS_H

#include <dirent.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <time.h>

#include "tests/sim/sim.h"

int __wrap_close(int fd);
int __wrap_dup(int fd);
int __wrap_dup3(int from, int to, int flags);
int __wrap_fcntl(int fd, int command, ...);
int __wrap_fstat(int fd, struct stat *st);
int __wrap_ftruncate(int fd, off_t size);
int __wrap_futimens(int fd, const struct timespec times[2]);
int __wrap_fstatfs(int fd, struct statfs *of);
int __wrap_fsync(int fd);
int __wrap_flock(int fd, int operation);
ssize_t __wrap_pread(int fd, void *data, size_t size, off_t at);
ssize_t __wrap_pwrite(int fd, const void *data, size_t size, off_t at);
ssize_t __wrap_read(int fd, void *data, size_t size);
ssize_t __wrap_write(int fd, const void *data, size_t size);
int __wrap_open(const char *path, int flags, ...);
DIR *__wrap_opendir(const char *path);
FILE *__wrap_fopen(const char *path, const char *mode);
int __wrap_memfd_create(const char *name, unsigned flags);
void *__wrap_mmap(void *hint, size_t size, int protection, int flags, int fd, off_t at);
int __wrap_madvise(void *begin, size_t size, int advice);
int __wrap_munmap(void *begin, size_t size);
void *__wrap_mremap(void *old, size_t before, size_t size, int flags, ...);

int __wrap_socket(int family, int type, int protocol);
int __wrap_socketpair(int family, int type, int protocol, int fd[2]);
int __wrap_bind(int fd, const struct sockaddr *address, socklen_t size);
int __wrap_listen(int fd, int most);
int __wrap_connect(int fd, const struct sockaddr *address, socklen_t size);
int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *size, int flags);
int __wrap_shutdown(int fd, int how);
int __wrap_ioctl(int fd, unsigned long request, ...);
int __wrap_getsockopt(int fd, int level, int option, void *value, socklen_t *size);
int __wrap_setsockopt(int fd, int level, int option, const void *value, socklen_t size);
int __wrap_getsockname(int fd, struct sockaddr *address, socklen_t *size);
int __wrap_getpeername(int fd, struct sockaddr *address, socklen_t *size);
ssize_t __wrap_recv(int fd, void *data, size_t size, int flags);
ssize_t __wrap_recvmsg(int fd, struct msghdr *m, int flags);
ssize_t __wrap_send(int fd, const void *data, size_t size, int flags);
ssize_t __wrap_sendto(int fd, const void *data, size_t size, int flags, const struct sockaddr *to, socklen_t n);
ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags);
int __wrap_pipe2(int fd[2], int flags);

int __wrap_eventfd(unsigned first, int flags);
int __wrap_eventfd_read(int fd, eventfd_t *value);
int __wrap_eventfd_write(int fd, eventfd_t value);
int __wrap_timer_create(clockid_t clock, struct sigevent *event, timer_t *timer);
int __wrap_timerfd_create(int clock, int flags);
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *t, struct itimerspec *old);
int __wrap_epoll_create1(int flags);
int __wrap_epoll_ctl(int poller, int command, int fd, struct epoll_event *event);
int __wrap_epoll_wait(int poller, struct epoll_event *out, int most, int milliseconds);
int __wrap_poll(struct pollfd *list, nfds_t n, int milliseconds);

pid_t __wrap_getpid(void);
pid_t __wrap_getppid(void);
uid_t __wrap_geteuid(void);
gid_t __wrap_getegid(void);
int __wrap_kill(pid_t pid, int signal);
int __wrap_raise(int signal);
void __wrap__exit(int status);
long __wrap_syscall(long number, ...);
int __wrap_prctl(int option, ...);
int __wrap_sigaction(int number, const struct sigaction *new, struct sigaction *old);
sighandler_t __wrap_signal(int number, sighandler_t handler);
int __wrap_sigprocmask(int how, const sigset_t *set, sigset_t *old);
int __wrap_pthread_sigmask(int how, const sigset_t *set, sigset_t *old);
int __wrap_setrlimit(__rlimit_resource_t resource, const struct rlimit *limit);
ssize_t __wrap_readlink(const char *path, char *out, size_t size);
void *__wrap_dlopen(const char *path, int mode);
int __wrap_dlclose(void *library);
long __wrap_sysconf(int name);
int __wrap_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *out);
ssize_t __wrap_getrandom(void *out, size_t size, unsigned flags);
int __wrap_posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *files,
                       const posix_spawnattr_t *attributes, char *const argv[], char *const env[]);
int __wrap_execv(const char *path, char *const argv[]);
int __wrap_execve(const char *path, char *const argv[], char *const env[]);
int __wrap_printf(const char *format, ...) __attribute__((format(printf, 1, 2)));
int __wrap___printf_chk(int flag, const char *format, ...) __attribute__((format(printf, 2, 3)));
pid_t __wrap_waitpid(pid_t pid, int *status, int options);
int __wrap_waitid(idtype_t type, id_t id, siginfo_t *info, int options);
int __wrap_pthread_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void));

/* Read a timer or a counter. */
ssize_t sim_read_event(sim_file *f, void *data);
/* Standard error of a process: it goes to the trace. */
sim_file *sim_log_file(void);

#endif
