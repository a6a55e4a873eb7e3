/* Which files there are, for a library that asks the C library. Landlock keeps a file from being read, but not from
 * being asked for: `__has_include` of another user's file would tell whether it is there. So NVRTC's calls, which come
 * here because a program's own functions go before those of its libraries, find only what it may know of. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "server/compile/run.h"

static const char *const *open_folders; /* NULL: everything is there */

void ad__paths_close(const char *const *folders) { open_folders = folders; }

/* A path that goes up is none of CUDA's own. */
static bool known(const char *path) {
    if (!open_folders) return true;
    if (path && !strstr(path, "/../"))
        for (const char *const *f = open_folders; *f; f++) {
            size_t n = strlen(*f);
            if (!strncmp(path, *f, n) && (path[n] == '/' || !path[n])) return true;
        }
    errno = ENOENT;
    return false;
}

/* The C library's function of that name. */
#define NEXT(pointer, name) *(void **)&(pointer) = dlsym(RTLD_NEXT, name)

/* Each is the C library's function that its label names. */
int ad__paths_open(const char *path, int flags, ...) __asm__("open");
int ad__paths_open(const char *path, int flags, ...) {
    mode_t mode = 0;
    if (flags & (O_CREAT | O_TMPFILE)) {
        va_list list;
        va_start(list, flags);
        mode = va_arg(list, mode_t);
        va_end(list);
    }
    return known(path) ? (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode) : -1;
}

FILE *ad__paths_fopen(const char *path, const char *mode) __asm__("fopen");
FILE *ad__paths_fopen(const char *path, const char *mode) {
    FILE *(*next)(const char *, const char *);
    NEXT(next, "fopen");
    return known(path) ? next(path, mode) : NULL;
}

FILE *ad__paths_fopen64(const char *path, const char *mode) __asm__("fopen64");
FILE *ad__paths_fopen64(const char *path, const char *mode) { return ad__paths_fopen(path, mode); }

static int status_of(const char *path, struct stat *st, int flags) {
    return known(path) ? fstatat(AT_FDCWD, path, st, flags) : -1;
}

int ad__paths_stat(const char *path, struct stat *st) __asm__("stat");
int ad__paths_stat(const char *path, struct stat *st) { return status_of(path, st, 0); }

int ad__paths_lstat(const char *path, struct stat *st) __asm__("lstat");
int ad__paths_lstat(const char *path, struct stat *st) { return status_of(path, st, AT_SYMLINK_NOFOLLOW); }

int ad__paths_xstat(int version, const char *path, struct stat *st) __asm__("__xstat");
int ad__paths_xstat(int version, const char *path, struct stat *st) { return (void)version, status_of(path, st, 0); }

int ad__paths_lxstat(int version, const char *path, struct stat *st) __asm__("__lxstat");
int ad__paths_lxstat(int version, const char *path, struct stat *st) {
    return (void)version, status_of(path, st, AT_SYMLINK_NOFOLLOW);
}

int ad__paths_access(const char *path, int mode) __asm__("access");
int ad__paths_access(const char *path, int mode) { return known(path) ? faccessat(AT_FDCWD, path, mode, 0) : -1; }

ssize_t ad__paths_readlink(const char *path, char *out, size_t size) __asm__("readlink");
ssize_t ad__paths_readlink(const char *path, char *out, size_t size) {
    return known(path) ? readlinkat(AT_FDCWD, path, out, size) : -1;
}

char *ad__paths_realpath(const char *path, char *out) __asm__("realpath");
char *ad__paths_realpath(const char *path, char *out) {
    char *(*next)(const char *, char *);
    NEXT(next, "realpath");
    return known(path) ? next(path, out) : NULL;
}

DIR *ad__paths_opendir(const char *path) __asm__("opendir");
DIR *ad__paths_opendir(const char *path) {
    DIR *(*next)(const char *);
    NEXT(next, "opendir");
    return known(path) ? next(path) : NULL;
}
