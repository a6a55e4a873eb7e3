/* Which files there are, for a library that asks the C library. Landlock keeps a file from being read, but not from
 * being asked for: `__has_include` of another user's file would tell whether it is there. So NVRTC's calls, which come
 * here because a program's own functions go before those of its libraries, find only what it may know of. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "server/compile/run.h"

static const char *const *open_folders; /* NULL: everything is there */

void ad__paths_close(const char *const *folders) { open_folders = folders; }

/* The path without parts that go up, as it is written: who asks for that one gets nothing outside by way of a link.
 * False: it is not from the root, goes above it, or is too long. */
static bool clean(const char *path, char out[PATH_MAX]) {
    size_t n = 0, part;
    if (!path || *path != '/' || strlen(path) >= PATH_MAX) return false;
    for (; *path; path += part) {
        while (*path == '/') path++;
        part = strcspn(path, "/");
        if (part == 2 && !strncmp(path, "..", 2)) {
            if (!n) return false;
            while (out[--n] != '/') continue;
        } else if (part && !(part == 1 && *path == '.')) {
            out[n++] = '/';
            memcpy(out + n, path, part);
            n += part;
        }
    }
    out[n] = 0;
    return true;
}

/* The path, or another one of the same file; NULL: nobody may know of it. CUDA's own headers include some with "..". */
static const char *known(const char *path, char own[PATH_MAX]) {
    if (!open_folders) return path;
    if (clean(path, own))
        for (const char *const *f = open_folders; *f; f++) {
            char folder[PATH_MAX];
            size_t n = clean(*f, folder) ? strlen(folder) : 0;
            if (n && !strncmp(own, folder, n) && (own[n] == '/' || !own[n])) return own;
        }
    errno = ENOENT;
    return NULL;
}

/* The C library's function of that name. */
#define NEXT(pointer, name) *(void **)&(pointer) = dlsym(RTLD_NEXT, name)

/* Each is the C library's function that its label names. */
int ad__paths_open(const char *path, int flags, ...) __asm__("open");
int ad__paths_open(const char *path, int flags, ...) {
    char own[PATH_MAX];
    mode_t mode = 0;
    if (flags & (O_CREAT | O_TMPFILE)) {
        va_list list;
        va_start(list, flags);
        mode = va_arg(list, mode_t);
        va_end(list);
    }
    path = known(path, own);
    return path ? (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode) : -1;
}

FILE *ad__paths_fopen(const char *path, const char *mode) __asm__("fopen");
FILE *ad__paths_fopen(const char *path, const char *mode) {
    FILE *(*next)(const char *, const char *);
    char own[PATH_MAX];
    NEXT(next, "fopen");
    path = known(path, own);
    return path ? next(path, mode) : NULL;
}

FILE *ad__paths_fopen64(const char *path, const char *mode) __asm__("fopen64");
FILE *ad__paths_fopen64(const char *path, const char *mode) { return ad__paths_fopen(path, mode); }

static int status_of(const char *path, struct stat *st, int flags) {
    char own[PATH_MAX];
    path = known(path, own);
    return path ? fstatat(AT_FDCWD, path, st, flags) : -1;
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
int ad__paths_access(const char *path, int mode) {
    char own[PATH_MAX];
    path = known(path, own);
    return path ? faccessat(AT_FDCWD, path, mode, 0) : -1;
}

ssize_t ad__paths_readlink(const char *path, char *out, size_t size) __asm__("readlink");
ssize_t ad__paths_readlink(const char *path, char *out, size_t size) {
    char own[PATH_MAX];
    path = known(path, own);
    return path ? readlinkat(AT_FDCWD, path, out, size) : -1;
}

char *ad__paths_realpath(const char *path, char *out) __asm__("realpath");
char *ad__paths_realpath(const char *path, char *out) {
    char *(*next)(const char *, char *);
    char own[PATH_MAX];
    NEXT(next, "realpath");
    path = known(path, own);
    return path ? next(path, out) : NULL;
}

DIR *ad__paths_opendir(const char *path) __asm__("opendir");
DIR *ad__paths_opendir(const char *path) {
    DIR *(*next)(const char *);
    char own[PATH_MAX];
    NEXT(next, "opendir");
    path = known(path, own);
    return path ? next(path) : NULL;
}
