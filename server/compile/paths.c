/* Which files there are, for compilers that ask the C library. Landlock keeps a file from being read, but not from
 * being asked for: `__has_include` of another user's file would tell whether it is there. So their calls come here, and
 * what they may not know of is not there. NVRTC's do as a program's own functions go before those of its libraries, the
 * host's compiler's as arrayd-paths.so, which is loaded before its libraries (preload.c). */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "server/compile/run.h"

static char
    *open_folders[2 * AD_PATHS_MOST + 1]; /* as they are written and as links lead there; none: everything is there */
static char home[PATH_MAX];               /* where relative paths begin; "": there are none */

/* The C library's function of that name. */
#define NEXT(pointer, name) *(void **)&(pointer) = dlsym(RTLD_NEXT, name)

static bool append_part(char out[PATH_MAX], size_t *n, const char *part, size_t size) {
    if (*n + size + 2 > PATH_MAX) return false;
    out[(*n)++] = '/';
    memcpy(out + *n, part, size);
    *n += size;
    return true;
}

static bool append_clean(char out[PATH_MAX], size_t *n, const char *path) {
    for (size_t part; *path; path += part) {
        while (*path == '/') path++;
        part = strcspn(path, "/");
        if (part == 2 && !strncmp(path, "..", 2)) {
            if (!*n) return false;
            while (out[--*n] != '/') continue;
        } else if (part && !(part == 1 && *path == '.') && !append_part(out, n, path, part)) {
            return false;
        }
    }
    return true;
}

/* The path from the root without parts that go up, as it is written. False: it goes above the root, or is too long. */
static bool clean_path(const char *path, char out[PATH_MAX]) {
    size_t n = 0;
    if (!path || !*path || (*path != '/' && !(*home && append_clean(out, &n, home)))) return false;
    if (!append_clean(out, &n, path)) return false;
    out[n] = 0;
    return true;
}

static bool is_inside(const char *path) {
    for (char *const *f = open_folders; *f; f++) {
        size_t n = strlen(*f);
        if (!strncmp(path, *f, n) && (path[n] == '/' || !path[n])) return true;
    }
    return false;
}

static char *resolve_path(const char *path, char out[PATH_MAX]) {
    char *(*next)(const char *, char *);
    NEXT(next, "realpath");
    return next(path, out);
}

/* Links lead nowhere else either, of what is there or, where something is to be made, of its folder. */
static bool leads_inside(const char *path) {
    char real[PATH_MAX], folder[PATH_MAX];
    if (resolve_path(path, real)) return is_inside(real);
    char *slash = errno == ENOENT ? strrchr(strcpy(folder, path), '/') : NULL;
    if (!slash || slash == folder) return false;
    *slash = 0;
    return resolve_path(folder, real) && is_inside(real);
}

/* The path, or another one of the same file; NULL: nobody may know of it. CUDA's own headers include some with "..". */
static const char *known(const char *path, char own[PATH_MAX]) {
    if (!*open_folders) return path;
    if (clean_path(path, own) && is_inside(own) && leads_inside(own)) return own;
    errno = ENOENT;
    return NULL;
}

void ad__paths_close(const char *const *folders, const char *from) {
    char *list[2 * AD_PATHS_MOST + 1] = {0}, path[PATH_MAX];
    int n = 0;
    for (; *folders && n < 2 * AD_PATHS_MOST - 1; folders++) {
        if (!clean_path(*folders, path)) continue;
        list[n++] = strdup(path);
        if (resolve_path(*folders, path)) list[n++] = strdup(path);
        if (!list[n - 1]) n--; /* out of memory: what lies there is not seen */
    }
    if (from) snprintf(home, sizeof home, "%s", from);
    memcpy(open_folders, list, sizeof list);
    if (!n) open_folders[0] = strdup("/nowhere");
}

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

int ad__paths_open64(const char *path, int flags, ...) __asm__("open64");
int ad__paths_open64(const char *path, int flags, ...) {
    va_list list;
    va_start(list, flags);
    mode_t mode = flags & (O_CREAT | O_TMPFILE) ? va_arg(list, mode_t) : 0;
    va_end(list);
    return ad__paths_open(path, flags, mode);
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
    return path ? (int)syscall(SYS_newfstatat, AT_FDCWD, path, st, flags) : -1;
}

int ad__paths_stat(const char *path, struct stat *st) __asm__("stat");
int ad__paths_stat(const char *path, struct stat *st) { return status_of(path, st, 0); }

int ad__paths_lstat(const char *path, struct stat *st) __asm__("lstat");
int ad__paths_lstat(const char *path, struct stat *st) { return status_of(path, st, AT_SYMLINK_NOFOLLOW); }

int ad__paths_stat64(const char *path, struct stat *st) __asm__("stat64");
int ad__paths_stat64(const char *path, struct stat *st) { return status_of(path, st, 0); }

int ad__paths_lstat64(const char *path, struct stat *st) __asm__("lstat64");
int ad__paths_lstat64(const char *path, struct stat *st) { return status_of(path, st, AT_SYMLINK_NOFOLLOW); }

/* With a descriptor of a folder and a relative path, the folder has been opened, and so is known. */
int ad__paths_fstatat(int at, const char *path, struct stat *st, int flags) __asm__("fstatat");
int ad__paths_fstatat(int at, const char *path, struct stat *st, int flags) {
    if (at == AT_FDCWD || *path == '/') return status_of(path, st, flags);
    return (int)syscall(SYS_newfstatat, at, path, st, flags);
}

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
    return path ? (int)syscall(SYS_faccessat, AT_FDCWD, path, mode) : -1;
}

ssize_t ad__paths_readlink(const char *path, char *out, size_t size) __asm__("readlink");
ssize_t ad__paths_readlink(const char *path, char *out, size_t size) {
    char own[PATH_MAX];
    path = known(path, own);
    return path ? syscall(SYS_readlinkat, AT_FDCWD, path, out, size) : -1;
}

char *ad__paths_realpath(const char *path, char *out) __asm__("realpath");
char *ad__paths_realpath(const char *path, char *out) {
    char own[PATH_MAX];
    path = known(path, own);
    return path ? resolve_path(path, out) : NULL;
}

DIR *ad__paths_opendir(const char *path) __asm__("opendir");
DIR *ad__paths_opendir(const char *path) {
    DIR *(*next)(const char *);
    char own[PATH_MAX];
    NEXT(next, "opendir");
    path = known(path, own);
    return path ? next(path) : NULL;
}
