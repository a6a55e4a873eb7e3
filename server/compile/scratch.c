/* Private folders for compilations: see scratch.h. */
#include "server/compile/scratch.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "server/common/os.h"

#define NAME "arrayd-compile-"
#define DEPTH 8
#define TRIES 8 /* attempts in one place, as another process may sweep a folder away before it is locked */

static const char *const places[] = {"/tmp", "/dev/shm", "/var/tmp"};
#define NPLACE (sizeof places / sizeof *places)

/* Open and lock a folder. -1: it cannot be, or it was removed before it was locked. */
static int open_locked_folder(const char *path) {
    struct stat st;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0) return -1;
    if (!flock(fd, LOCK_EX | LOCK_NB) && !fstat(fd, &st) && st.st_uid == geteuid() && st.st_nlink) return fd;
    close(fd);
    return -1;
}

int ad__scratch_make(char out[AD_SCRATCH_PATH], int *lock, ad_fault *fault) {
    for (size_t i = 0; i < NPLACE * TRIES; i++) {
        snprintf(out, AD_SCRATCH_PATH, "%s/" NAME "%d-XXXXXX", places[i / TRIES], (int)getpid());
        if (mkdtemp(out) && (*lock = open_locked_folder(out)) >= 0) return 0;
    }
    *out = 0;
    return ad__fault(fault, AD_E_SYSTEM, "cannot make a folder in %s: %s", places[0], strerror(errno));
}

int ad__scratch_write(const char *folder, const char *name, const void *data, size_t size, ad_fault *fault) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    ad__os_make_parents(path, path + strlen(folder) + 1);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    int status = fd < 0 ? -1 : ad__os_write(fd, data, size);
    if (status) ad__fault(fault, AD_E_SYSTEM, "cannot write %s: %s", name, strerror(errno));
    if (fd >= 0) close(fd);
    return status ? AD_E_SYSTEM : 0;
}

/* Remove all that is in a folder, and close fd. */
static void empty_folder(int fd, int depth) {
    DIR *d = fdopendir(fd);
    struct dirent *e;
    if (!d) close(fd);
    while (d && (e = readdir(d))) {
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
        if (!unlinkat(fd, e->d_name, 0)) continue;
        int below = depth < DEPTH ? openat(fd, e->d_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
        if (below >= 0) empty_folder(below, depth + 1);
        unlinkat(fd, e->d_name, AT_REMOVEDIR);
    }
    if (d) closedir(d);
}

void ad__scratch_remove(const char *folder) {
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd >= 0) empty_folder(fd, 0);
    rmdir(folder);
}

/* Remove the folders in a place that nobody has locked. Locks tell, as process ids of another container that shares
 * /tmp mean nothing here. */
static void sweep_place(const char *place) {
    DIR *d = opendir(place);
    struct dirent *e;
    while (d && (e = readdir(d))) {
        char path[512];
        if (strncmp(e->d_name, NAME, strlen(NAME)) != 0) continue;
        snprintf(path, sizeof path, "%s/%s", place, e->d_name);
        int lock = open_locked_folder(path);
        if (lock < 0) continue;
        ad__scratch_remove(path);
        close(lock);
    }
    if (d) closedir(d);
}

void ad__scratch_sweep(void) {
    for (size_t i = 0; i < NPLACE; i++) sweep_place(places[i]);
}
