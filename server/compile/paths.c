/* The files that compilers can see when they ask the C library. Landlock prevents reading a file, but not asking
 * whether it exists, as `__has_include` does. So these functions replace the C library's and hide all files outside the
 * open folders:
 *
 *     NVRTC:               a program's functions come before those of its libraries
 *     the host's compiler: arrayd-paths.so is loaded before its libraries (preload.c) */
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

static char *open_folders[2 * AD_PATHS_MOST + 1]; /* folders that may be seen, as written and with links resolved; none:
                                                     everything may be seen */
static char home[PATH_MAX];                       /* folder where relative paths begin; "": they are refused */

/* Find the C library's own function of that name. */
#define NEXT(pointer, name) *(void **)&(pointer) = dlsym(RTLD_NEXT, name)

static bool append_path_part(char out[PATH_MAX], size_t *n, const char *part, size_t size) {
    if (*n + size + 2 > PATH_MAX) return false;
    out[(*n)++] = '/';
    memcpy(out + *n, part, size);
    *n += size;
    return true;
}

/* Append the parts of a path, and remove one for each "..". False: it leads above the root, or is too long. */
static bool append_clean_path(char out[PATH_MAX], size_t *n, const char *path) {
    for (size_t part; *path; path += part) {
        while (*path == '/') path++;
        part = strcspn(path, "/");
        if (part == 2 && !strncmp(path, "..", 2)) {
            if (!*n) return false;
            while (out[--*n] != '/') continue;
        } else if (part && !(part == 1 && *path == '.') && !append_path_part(out, n, path, part)) {
            return false;
        }
    }
    return true;
}

/* Make a path absolute and remove its "." and ".." parts, without following links. False: it leads above the root,
 * or is too long. */
static bool clean_path(const char *path, char out[PATH_MAX]) {
    size_t n = 0;
    if (!path || !*path || (*path != '/' && !(*home && append_clean_path(out, &n, home)))) return false;
    if (!append_clean_path(out, &n, path)) return false;
    out[n] = 0;
    return true;
}

static bool is_in_open_folder(const char *path) {
    for (char *const *f = open_folders; *f; f++) {
        size_t n = strlen(*f);
        if (!strncmp(path, *f, n) && (path[n] == '/' || !path[n])) return true;
    }
    return false;
}

/* Call the C library's realpath. */
static char *resolve_path(const char *path, char out[PATH_MAX]) {
    char *(*next)(const char *, char *);
    NEXT(next, "realpath");
    return next(path, out);
}

/* Tell whether a path stays in the open folders when its links are followed. A file that does not exist yet counts as
 * its folder. */
static bool is_real_path_inside(const char *path) {
    char real[PATH_MAX], folder[PATH_MAX];
    if (resolve_path(path, real)) return is_in_open_folder(real);
    char *slash = errno == ENOENT ? strrchr(strcpy(folder, path), '/') : NULL;
    if (!slash || slash == folder) return false;
    *slash = 0;
    return resolve_path(folder, real) && is_in_open_folder(real);
}

/* Return the path, or its clean form as CUDA's headers include files with ".."; NULL and ENOENT: it may not be seen. */
static const char *find_known_path(const char *path, char own[PATH_MAX]) {
    if (!*open_folders) return path;
    if (clean_path(path, own) && is_in_open_folder(own) && is_real_path_inside(own)) return own;
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
        if (!list[n - 1]) n--; /* out of memory: this folder is hidden */
    }
    if (from) snprintf(home, sizeof home, "%s", from);
    memcpy(open_folders, list, sizeof list);
    if (!n) open_folders[0] = strdup("/nowhere");
}

/* Each function below replaces the C library's function that its label names. */
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
    path = find_known_path(path, own);
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
    path = find_known_path(path, own);
    return path ? next(path, mode) : NULL;
}

FILE *ad__paths_fopen64(const char *path, const char *mode) __asm__("fopen64");
FILE *ad__paths_fopen64(const char *path, const char *mode) { return ad__paths_fopen(path, mode); }

static int stat_known_path(const char *path, struct stat *st, int flags) {
    char own[PATH_MAX];
    path = find_known_path(path, own);
    return path ? (int)syscall(SYS_newfstatat, AT_FDCWD, path, st, flags) : -1;
}

int ad__paths_stat(const char *path, struct stat *st) __asm__("stat");
int ad__paths_stat(const char *path, struct stat *st) { return stat_known_path(path, st, 0); }

int ad__paths_lstat(const char *path, struct stat *st) __asm__("lstat");
int ad__paths_lstat(const char *path, struct stat *st) { return stat_known_path(path, st, AT_SYMLINK_NOFOLLOW); }

int ad__paths_stat64(const char *path, struct stat *st) __asm__("stat64");
int ad__paths_stat64(const char *path, struct stat *st) { return stat_known_path(path, st, 0); }

int ad__paths_lstat64(const char *path, struct stat *st) __asm__("lstat64");
int ad__paths_lstat64(const char *path, struct stat *st) { return stat_known_path(path, st, AT_SYMLINK_NOFOLLOW); }

/* A relative path below a folder's descriptor is allowed: the folder was opened here before. */
int ad__paths_fstatat(int at, const char *path, struct stat *st, int flags) __asm__("fstatat");
int ad__paths_fstatat(int at, const char *path, struct stat *st, int flags) {
    if (at == AT_FDCWD || *path == '/') return stat_known_path(path, st, flags);
    return (int)syscall(SYS_newfstatat, at, path, st, flags);
}

int ad__paths_xstat(int version, const char *path, struct stat *st) __asm__("__xstat");
int ad__paths_xstat(int version, const char *path, struct stat *st) {
    return (void)version, stat_known_path(path, st, 0);
}

int ad__paths_lxstat(int version, const char *path, struct stat *st) __asm__("__lxstat");
int ad__paths_lxstat(int version, const char *path, struct stat *st) {
    return (void)version, stat_known_path(path, st, AT_SYMLINK_NOFOLLOW);
}

int ad__paths_access(const char *path, int mode) __asm__("access");
int ad__paths_access(const char *path, int mode) {
    char own[PATH_MAX];
    path = find_known_path(path, own);
    return path ? (int)syscall(SYS_faccessat, AT_FDCWD, path, mode) : -1;
}

ssize_t ad__paths_readlink(const char *path, char *out, size_t size) __asm__("readlink");
ssize_t ad__paths_readlink(const char *path, char *out, size_t size) {
    char own[PATH_MAX];
    path = find_known_path(path, own);
    return path ? syscall(SYS_readlinkat, AT_FDCWD, path, out, size) : -1;
}

char *ad__paths_realpath(const char *path, char *out) __asm__("realpath");
char *ad__paths_realpath(const char *path, char *out) {
    char own[PATH_MAX];
    path = find_known_path(path, own);
    return path ? resolve_path(path, out) : NULL;
}

DIR *ad__paths_opendir(const char *path) __asm__("opendir");
DIR *ad__paths_opendir(const char *path) {
    DIR *(*next)(const char *);
    char own[PATH_MAX];
    NEXT(next, "opendir");
    path = find_known_path(path, own);
    return path ? next(path) : NULL;
}
