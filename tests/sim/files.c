/* Descriptors of simulated processes, and the calls that are the same for all kinds. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "tests/sim/calls.h"
#include "tests/sim/sim.h"

#define LOG (-2)  /* standard error of all processes */
#define NAMED 900 /* descriptors of this process from here on are files that programs have opened by name */

/* ---- the table ---- */

sim_file *sim_file_new(sim_kind kind) {
    sim_file *f = calloc(1, sizeof *f);
    f->kind = kind;
    f->uses = 1;
    f->real = -1;
    f->last = &f->first;
    return f;
}

sim_file *sim_file_keep(sim_file *f) {
    f->uses++;
    return f;
}

void sim_file_drop(sim_file *f) {
    if (--f->uses) return;
    if (f->kind == SIM_SOCKET || f->kind == SIM_LISTENER) {
        sim_socket_close(f);
        return;
    }
    if (f->real >= 0) close(f->real);
    while (f->watches) {
        sim_watch *w = f->watches;
        f->watches = w->next;
        free(w);
    }
    free(f);
}

sim_file *sim_file_get(int fd) {
    sim_process *p = sim_self();
    if (fd >= 0 && fd < SIM_DESCRIPTORS && p->file[fd]) return p->file[fd];
    errno = EBADF;
    return NULL;
}

int sim_file_put(sim_file *f, int least, bool close_on_exec) {
    sim_process *p = sim_self();
    int fd = least;
    while (fd < SIM_DESCRIPTORS && p->file[fd]) fd++;
    if (fd >= SIM_DESCRIPTORS || sim_must_fail(SIM_DESCRIPTOR) ||
        (sim_serving && strcmp(p->program, "client") && sim_draw_case(sim_planned.no_descriptor))) {
        sim_file_drop(f);
        errno = EMFILE;
        return -1;
    }
    p->file[fd] = f;
    p->close_on_exec[fd] = close_on_exec;
    return fd;
}

/* Remove the descriptor from what the process's pollers watch when its last reference goes. */
static void unwatch_file(sim_process *p, const sim_file *f) {
    if (f->uses > 1) return;
    for (int i = 0; i < SIM_DESCRIPTORS; i++)
        for (sim_watch **at = p->file[i] ? &p->file[i]->watches : NULL; at && *at;) {
            sim_watch *w = *at;
            if (w->file == f) {
                *at = w->next;
                free(w);
            } else {
                at = &w->next;
            }
        }
}

int sim_file_close(sim_process *p, int fd) {
    sim_file *f = p->file[fd];
    unwatch_file(p, f);
    p->file[fd] = NULL;
    sim_file_drop(f);
    return 0;
}

static unsigned poll_watched(const sim_file *f) {
    for (const sim_watch *w = f->watches; w; w = w->next)
        if (sim_file_poll(w->file) & (w->events | POLLERR | POLLHUP)) return POLLIN;
    return 0;
}

unsigned sim_file_poll(const sim_file *f) {
    switch (f->kind) {
    case SIM_SOCKET:
    case SIM_LISTENER: return sim_socket_poll(f);
    case SIM_COUNTER: return POLLOUT | (f->counter ? POLLIN : 0);
    case SIM_TIMER: return f->due && f->due <= sim_time ? POLLIN : 0;
    case SIM_POLLER: return poll_watched(f);
    case SIM_PID: return sim_find_process(f->process) ? 0 : POLLIN;
    default: return POLLIN | POLLOUT;
    }
}

int64_t sim_file_due(const sim_file *f) {
    if (f->kind == SIM_TIMER && f->due > sim_time) return f->due;
    return f->kind == SIM_SOCKET ? sim_socket_due(f) : INT64_MAX;
}

/* ---- calls ---- */

int __wrap_close(int fd) {
    sim_pass_call("close");
    if (!sim_file_get(fd)) return -1;
    sim_note("close", fd, 0);
    return sim_file_close(sim_self(), fd);
}

int __wrap_dup(int fd) {
    sim_file *f = sim_file_get(fd);
    return f ? sim_file_put(sim_file_keep(f), 0, false) : -1;
}

int __wrap_dup3(int from, int to, int flags) {
    sim_file *f = sim_file_get(from);
    if (!f) return -1;
    sim_file_keep(f);
    if (sim_self()->file[to]) sim_file_close(sim_self(), to);
    sim_self()->file[to] = f;
    sim_self()->close_on_exec[to] = flags & O_CLOEXEC;
    return to;
}

static int get_status_flags(const sim_file *f) {
    return f->real >= 0 ? fcntl(f->real, F_GETFL) | (f->flags & O_NONBLOCK) : f->flags | O_RDWR;
}

int __wrap_fcntl(int fd, int command, ...) {
    va_list arguments;
    va_start(arguments, command);
    const long argument = va_arg(arguments, long);
    va_end(arguments);
    sim_file *f = sim_file_get(fd);
    if (!f) return -1;
    switch (command) {
    case F_DUPFD:
    case F_DUPFD_CLOEXEC: return sim_file_put(sim_file_keep(f), (int)argument, command == F_DUPFD_CLOEXEC);
    case F_GETFD: return sim_self()->close_on_exec[fd] ? FD_CLOEXEC : 0;
    case F_SETFD: sim_self()->close_on_exec[fd] = argument & FD_CLOEXEC; return 0;
    case F_GETFL: return get_status_flags(f);
    case F_SETFL: f->flags = (int)argument & O_NONBLOCK; return 0;
    default: return f->real >= 0 ? fcntl(f->real, command, argument) : (errno = EINVAL, -1);
    }
}

/* Find the descriptor of the system that stands behind one of a process. */
static int find_real(int fd) {
    const sim_file *f = sim_file_get(fd);
    if (f && f->real < 0) errno = EINVAL;
    return f ? f->real : -1;
}

int __wrap_fstat(int fd, struct stat *st) { return fstat(fd >= NAMED ? fd : find_real(fd), st); }
int __wrap_ftruncate(int fd, off_t size) { return ftruncate(find_real(fd), size); }
int __wrap_futimens(int fd, const struct timespec times[2]) { return futimens(find_real(fd), times); }
int __wrap_fstatfs(int fd, struct statfs *of) { return fstatfs(find_real(fd), of); }
int __wrap_fsync(int fd) { return fsync(find_real(fd)); }
int __wrap_flock(int fd, int operation) { return flock(find_real(fd), operation); }
ssize_t __wrap_pread(int fd, void *data, size_t size, off_t at) { return pread(find_real(fd), data, size, at); }
ssize_t __wrap_pwrite(int fd, const void *data, size_t size, off_t at) { return pwrite(find_real(fd), data, size, at); }

ssize_t __wrap_read(int fd, void *data, size_t size) {
    sim_file *f = sim_file_get(fd);
    sim_pass_call("read");
    if (!f) return -1;
    if (f->kind == SIM_SOCKET) return __wrap_recv(fd, data, size, 0);
    if (f->kind == SIM_TIMER || f->kind == SIM_COUNTER) return sim_read_event(f, data);
    return read(f->real, data, size);
}

ssize_t __wrap_write(int fd, const void *data, size_t size) {
    sim_file *f = sim_file_get(fd);
    sim_pass_call("write");
    if (!f) return -1;
    if (f->kind == SIM_SOCKET) return __wrap_send(fd, data, size, 0);
    if (f->real != LOG) return write(f->real, data, size);
    sim_note_text("log", data, size);
    return (ssize_t)size;
}

static int put_real(int real, int flags) {
    if (real < 0) return -1;
    sim_file *f = sim_file_new(SIM_REAL);
    f->real = real;
    f->flags = flags & O_NONBLOCK;
    return sim_file_put(f, 0, flags & O_CLOEXEC);
}

sim_file *sim_log_file(void) {
    sim_file *f = sim_file_new(SIM_REAL);
    f->real = LOG;
    return f;
}

/* What the system has of itself is not the same on every machine. */
static bool is_of_system(const char *path) { return !strncmp(path, "/proc/", 6) || !strncmp(path, "/sys/", 5); }

int __wrap_open(const char *path, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    const mode_t mode = flags & O_CREAT ? va_arg(arguments, mode_t) : 0;
    va_end(arguments);
    sim_pass_call("open");
    if (is_of_system(path)) {
        errno = ENOENT;
        return -1;
    }
    if (!strncmp(path, "/sim/", 5)) return put_real(memfd_create(path, MFD_CLOEXEC), flags);
    return put_real(open(path, flags | O_CLOEXEC, mode), flags);
}

/* Folders of the machine hold what other programs have left there. */
DIR *__wrap_opendir(const char *path) {
    (void)path;
    errno = ENOENT;
    return NULL;
}

/* Make the file that says what users may do. */
static FILE *open_principals(void) {
    const int made = memfd_create("principals", MFD_CLOEXEC), fd = fcntl(made, F_DUPFD_CLOEXEC, NAMED);
    close(made);
    if (sim_planned.quota) dprintf(fd, "uid:%d memory=%u\n", SIM_OTHER, sim_planned.quota);
    lseek(fd, 0, SEEK_SET);
    fchmod(fd, 0600);
    return fdopen(fd, "r");
}

FILE *__wrap_fopen(const char *path, const char *mode) {
    if (!strcmp(path, SIM_PRINCIPALS)) return open_principals();
    if (is_of_system(path) && strcmp(path, "/proc/self/uid_map") && strcmp(path, "/proc/sys/kernel/overflowuid")) {
        errno = ENOENT;
        return NULL;
    }
    return fopen(path, mode);
}

int __wrap_memfd_create(const char *name, unsigned flags) {
    sim_pass_call("memfd_create");
    const int fd = put_real(memfd_create(name, flags | MFD_CLOEXEC), O_CLOEXEC);
    if (fd >= 0) sim_file_get(fd)->journal = !strcmp(name, "arrayd-journal");
    return fd;
}

/* ---- mappings ---- */

static void add_mapping(void *begin, size_t size, bool journal) {
    sim_process *p = sim_self();
    sim_mapping *m = calloc(1, sizeof *m);
    *m = (sim_mapping){.next = p->mappings, .begin = begin, .end = (char *)begin + size, .journal = journal};
    p->mappings = m;
    if (journal) sim_watch_stores(m);
}

/* Take a range out of the list; what is left of a mapping on both sides stays there. */
static void remove_mapping(char *begin, char *end) {
    for (sim_mapping **at = &sim_self()->mappings; *at;) {
        sim_mapping *m = *at;
        if (m->end <= begin || m->begin >= end) {
            at = &m->next;
            continue;
        }
        *at = m->next;
        if (m->begin < begin) add_mapping(m->begin, (size_t)(begin - m->begin), false);
        if (m->end > end) add_mapping(end, (size_t)(m->end - end), false);
        free(m);
        at = &sim_self()->mappings;
    }
}

void *__wrap_mmap(void *hint, size_t size, int protection, int flags, int fd, off_t at) {
    sim_file *f = fd < 0 ? NULL : sim_file_get(fd);
    sim_pass_call("mmap");
    if (fd >= 0 && (!f || f->real < 0)) {
        errno = f ? EACCES : EBADF;
        return MAP_FAILED;
    }
    if (sim_must_fail(SIM_MAPPING)) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    void *p = mmap(hint, size, protection, flags, f ? f->real : -1, at);
    if (p == MAP_FAILED) return p;
    if (flags & MAP_FIXED) remove_mapping(p, (char *)p + size);
    add_mapping(p, size, f && f->journal && protection & PROT_WRITE && flags & MAP_SHARED);
    return p;
}

/* Advice changes no contents, but for that which gives pages back. Memory is not filled beforehand: that takes time. */
int __wrap_madvise(void *begin, size_t size, int advice) {
    return advice == MADV_REMOVE || advice == MADV_DONTNEED ? madvise(begin, size, advice) : 0;
}

int __wrap_munmap(void *begin, size_t size) {
    const size_t page = 4096, whole = (size + page - 1) / page * page;
    remove_mapping(begin, (char *)begin + whole);
    return munmap(begin, size);
}

void *__wrap_mremap(void *old, size_t before, size_t size, int flags, ...) {
    va_list arguments;
    va_start(arguments, flags);
    void *to = flags & MREMAP_FIXED ? va_arg(arguments, void *) : NULL;
    va_end(arguments);
    void *p = to ? mremap(old, before, size, flags, to) : mremap(old, before, size, flags);
    if (p == MAP_FAILED) return p;
    remove_mapping(old, (char *)old + before);
    if (to) remove_mapping(to, (char *)to + size);
    add_mapping(p, size, false);
    return p;
}
