/* Reading and replacing the file of tokens: see token_file.h. */
#include "server/ctl/token_file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/common/os.h"

#define BLANKS " \t\r"

static int fail_file(const ad_ctl *c, const char *path) {
    return ad__ctl_error(c, AD_CTL_BAD, "%s: %s", path, strerror(errno));
}

/* Read the whole file, with a NUL behind it. */
static int load_text(const ad_ctl *c, const char *path, ad_bytes *out, struct stat *st) {
    char part[4096];
    ssize_t n = -1;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, st)) n = -1;
    else
        while ((n = read(fd, part, sizeof part)) > 0) ad__bytes_append(out, part, (size_t)n);
    int status = n < 0 ? fail_file(c, path) : AD_CTL_GOOD;
    if (fd >= 0) close(fd);
    ad__bytes_append(out, "", 1);
    if (!status && out->failed) status = ad__ctl_error(c, AD_CTL_BAD, "out of memory");
    return status;
}

/* Tell whether a line, which ends at \n or NUL, is that of a name. */
static bool is_line_of(const char *line, const char *name) {
    const char *at = line + strspn(line, BLANKS);
    const size_t n = strlen(name);
    return strncmp(at, name, n) == 0 && (strchr(BLANKS, at[n]) || at[n] == '\n');
}

int ad__token_file_read(const ad_ctl *c, const char *path, void (*f)(void *argument, char *line), void *argument) {
    ad_bytes text = AD_BYTES_INIT;
    struct stat st;
    int status = load_text(c, path, &text, &st);
    char *rest = NULL;
    for (char *line = status ? NULL : strtok_r((char *)text.data, "\n", &rest); line;
         line = strtok_r(NULL, "\n", &rest)) {
        line[strcspn(line, "#\r")] = 0;
        if (line[strspn(line, BLANKS)]) f(argument, line);
    }
    ad__bytes_free(&text);
    return status;
}

/* Copy the lines but those of `name`. Returns how many those were. */
static unsigned copy_others(const char *text, const char *name, ad_bytes *out) {
    unsigned removed = 0;
    for (const char *line = text; *line;) {
        const char *end = strchr(line, '\n'), *next = end ? end + 1 : line + strlen(line);
        if (is_line_of(line, name)) removed++;
        else ad__bytes_append(out, line, (size_t)(next - line));
        if (!end && *line && !is_line_of(line, name)) ad__bytes_append(out, "\n", 1);
        line = next;
    }
    return removed;
}

static bool write_text(int fd, const ad_bytes *text, const struct stat *like) {
    return !ad__os_write(fd, text->data, text->size) && !fchmod(fd, like->st_mode & 0777) &&
           (geteuid() != 0 || !fchown(fd, like->st_uid, like->st_gid)) && !fsync(fd);
}

static int replace_file(const ad_ctl *c, const char *path, const ad_bytes *text, const struct stat *like) {
    char fresh[PATH_MAX + 16];
    snprintf(fresh, sizeof fresh, "%s.XXXXXX", path);
    const int fd = mkstemp(fresh);
    if (fd < 0) return fail_file(c, fresh);
    bool good = write_text(fd, text, like);
    good = !close(fd) && good;
    if (good && rename(fresh, path) == 0) return AD_CTL_GOOD;
    const int status = fail_file(c, path);
    unlink(fresh);
    return status;
}

/* Lock the folder of a file for as long as the descriptor is open: two administrators do not overwrite each other's
 * lines. -1: it cannot be opened. */
static int lock_folder(const char *path) {
    char copy[PATH_MAX];
    snprintf(copy, sizeof copy, "%s", path);
    const int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd >= 0) flock(fd, LOCK_EX);
    return fd;
}

int ad__token_file_change(const ad_ctl *c, const char *path, const char *name, const char *line, unsigned *removed) {
    ad_bytes text = AD_BYTES_INIT, fresh = AD_BYTES_INIT;
    char real[PATH_MAX];
    struct stat st;
    if (!realpath(path, real)) return fail_file(c, path);
    const int lock = lock_folder(real);
    int status = lock < 0 ? fail_file(c, real) : load_text(c, real, &text, &st);
    *removed = status ? 0 : copy_others((const char *)text.data, name, &fresh);
    if (!status && line && *removed)
        status = ad__ctl_error(c, AD_CTL_BAD, "%s has a token already: arrayctl revoke %s takes it back", name, name);
    if (line) ad__bytes_append(&fresh, line, strlen(line));
    if (!status && fresh.failed) status = ad__ctl_error(c, AD_CTL_BAD, "out of memory");
    if (!status && (line || *removed)) status = replace_file(c, real, &fresh, &st);
    if (lock >= 0) close(lock);
    ad__bytes_free(&text);
    ad__bytes_free(&fresh);
    return status;
}
