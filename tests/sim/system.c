/* Calls about processes, signals and the machine. */
#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/sim/calls.h"
#include "tests/sim/loop.h"
#include "tests/sim/sim.h"

#define MACHINE_PAGES 262144 /* of 4096 bytes */

pid_t __wrap_getpid(void) { return sim_self()->number; }
pid_t __wrap_getppid(void) { return sim_self()->parent ? sim_self()->parent->number : 1; }
uid_t __wrap_geteuid(void) { return sim_self()->user; }
gid_t __wrap_getegid(void) { return sim_self()->user; }

int __wrap_kill(pid_t pid, int signal) {
    sim_process *p = sim_find_process(pid);
    if (!p || p->dying) return errno = ESRCH, -1;
    if (signal == SIGKILL) sim_kill_process(p, signal);
    else if (signal) sim_send_signal(p, signal);
    return 0;
}

int __wrap_raise(int signal) {
    sim_kill_process(sim_self(), signal);
    return 0;
}

void __wrap__exit(int status) { sim_exit_process(status); }

static int open_process(int number) {
    if (!sim_find_process(number)) return errno = ESRCH, -1;
    sim_file *f = sim_file_new(SIM_PID);
    f->process = number;
    return sim_file_put(f, 0, true);
}

/* Every descriptor from the first on ends with the program. */
static int mark_closing(long first) {
    for (long fd = first; fd < SIM_DESCRIPTORS; fd++) sim_self()->close_on_exec[fd] = true;
    return 0;
}

long __wrap_syscall(long number, ...) {
    va_list arguments;
    va_start(arguments, number);
    const long first = va_arg(arguments, long);
    va_end(arguments);
    sim_pass_call("syscall");
    if (number == SYS_pidfd_open) return open_process((int)first);
    if (number == SYS_close_range) return mark_closing(first);
    if (number == SYS_seccomp) return 0; /* calls are ours here already */
    return errno = ENOSYS, -1;
}

int __wrap_prctl(int option, ...) {
    (void)option;
    return 0;
}

int __wrap_sigaction(int number, const struct sigaction *new, struct sigaction *old) {
    (void)number, (void)new;
    if (old) *old = (struct sigaction){.sa_handler = SIG_DFL};
    return 0;
}

sighandler_t __wrap_signal(int number, sighandler_t handler) {
    (void)number, (void)handler;
    return SIG_DFL;
}

static int keep_mask(sigset_t *old) {
    if (old) sigemptyset(old);
    return 0;
}

int __wrap_sigprocmask(int how, const sigset_t *set, sigset_t *old) {
    (void)how, (void)set;
    return keep_mask(old);
}
int __wrap_pthread_sigmask(int how, const sigset_t *set, sigset_t *old) {
    (void)how, (void)set;
    return keep_mask(old);
}
int __wrap_setrlimit(__rlimit_resource_t resource, const struct rlimit *limit) {
    (void)resource, (void)limit;
    return 0;
}
int __wrap_pthread_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void)) {
    (void)parent;
    sim_self()->before_fork = prepare;
    sim_self()->in_child = child;
    return 0;
}

void sim_become_child(void) {
    sim_process *p = sim_self();
    if (p->before_fork) p->before_fork();
    sim_end_other_tasks();
    if (p->in_child) p->in_child();
}

ssize_t __wrap_readlink(const char *path, char *out, size_t size) {
    if (strcmp(path, "/proc/self/exe")) return readlink(path, out, size);
    const char *own = sim_program_path(sim_self()->program);
    const size_t n = strlen(own) < size ? strlen(own) : size;
    memcpy(out, own, n);
    return (ssize_t)n;
}

/* The late backend has threads and globals of its own, so each worker has a copy. */
void *__wrap_dlopen(const char *path, int mode) {
    const bool backend = path && strstr(path, "libarrayd-cpu");
    if (backend && sim_planned.late) return sim_self()->backend = sim_load_copy(path);
    return dlopen(path, mode);
}

int __wrap_dlclose(void *library) {
    (void)library;
    return 0;
}

long __wrap_sysconf(int name) {
    switch (name) {
    case _SC_NPROCESSORS_ONLN:
    case _SC_NPROCESSORS_CONF: return 1;
    case _SC_PHYS_PAGES:
    case _SC_AVPHYS_PAGES: return MACHINE_PAGES;
    default: return sysconf(name);
    }
}

int __wrap_sched_getaffinity(pid_t pid, size_t size, cpu_set_t *out) {
    (void)pid;
    memset(out, 0, size);
    CPU_SET(0, out);
    return 0;
}

ssize_t __wrap_getrandom(void *out, size_t size, unsigned flags) {
    (void)flags;
    sim_pass_call("getrandom");
    sim_draw_bytes(out, size);
    return (ssize_t)size;
}

int __wrap_posix_spawn(pid_t *pid, const char *path, const posix_spawn_file_actions_t *files,
                       const posix_spawnattr_t *attributes, char *const argv[], char *const env[]) {
    (void)pid, (void)path, (void)files, (void)attributes, (void)argv, (void)env;
    return ENOENT;
}

int __wrap_execv(const char *path, char *const argv[]) {
    const char *slash = strrchr(path, '/');
    sim_replace_process(slash ? slash + 1 : path, argv);
}

int __wrap_execve(const char *path, char *const argv[], char *const env[]) {
    (void)env;
    return __wrap_execv(path, argv);
}

/* ---- standard output ---- */

static int print_text(const char *format, va_list arguments) {
    char text[1024];
    const int n = vsnprintf(text, sizeof text, format, arguments);
    return (int)__wrap_write(1, text, (size_t)n < sizeof text ? (size_t)n : sizeof text - 1);
}

int __wrap_printf(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    const int n = print_text(format, arguments);
    va_end(arguments);
    return n;
}

int __wrap___printf_chk(int flag, const char *format, ...) {
    va_list arguments;
    (void)flag;
    va_start(arguments, format);
    const int n = print_text(format, arguments);
    va_end(arguments);
    return n;
}

/* ---- */

pid_t __wrap_waitpid(pid_t pid, int *status, int options) {
    (void)pid, (void)status, (void)options;
    return errno = ECHILD, -1;
}

int __wrap_waitid(idtype_t type, id_t id, siginfo_t *info, int options) {
    (void)type, (void)id, (void)info, (void)options;
    return errno = ECHILD, -1;
}
