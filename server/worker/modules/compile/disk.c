#include "server/worker/modules/compile/disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "server/common/log.h"
#include "server/common/os.h"
#include "server/compile/frame.h"

#define MAGIC "arrayd-kernel-1\n"
#define SUFFIX ".kernel"
#define TEMPORARY ".new-"
#define FORGOTTEN 3600 /* seconds after which a temporary file belongs to no process any more */
#define RECOUNT 64     /* stores after which the folder is counted again, because other processes write there, too */

/* The head of a file, before the result and the job. */
typedef struct head {
    char magic[16];
    uint64_t result_size, job_size;
    uint8_t result_hash[AD_SHA256_SIZE]; /* hash of magic, sizes, key and result */
    uint8_t job_hash[AD_SHA256_SIZE];
} head;

/* ---- the folder ---- */

/* Tell whether the log should have the first trouble with the folder, which is now. */
static bool is_first_failure(ad_disk *d) {
    const bool first = !d->complained;
    d->complained = true;
    return first;
}

static void choose_folder(ad_disk *d, const char *option) {
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME"), *service = getenv("CACHE_DIRECTORY");
    size_t room = sizeof d->folder - 128;
    d->folder[0] = 0;
    if (!strcmp(option, "none")) return;
    if (*option) snprintf(d->folder, room, "%s", option);
    else if (service && *service == '/') snprintf(d->folder, room, "%s/kernels", service); /* set by systemd */
    else if (cache && *cache == '/') snprintf(d->folder, room, "%s/arrayd/kernels", cache);
    else if (geteuid() == 0) snprintf(d->folder, room, "/var/cache/arrayd/kernels");
    else if (home && *home == '/') snprintf(d->folder, room, "%s/.cache/arrayd/kernels", home);
}

void ad__disk_give_up(ad_disk *d, const char *why) {
    if (*d->folder && is_first_failure(d)) ad__log(kernels_are_not_kept_on_disk, d->folder, why);
    d->folder[0] = 0;
}

/* Check that only this user can write to a folder, from which this process executes code. Returns why not, or NULL. */
static const char *check_private(const char *path) {
    struct stat st;
    if (stat(path, &st)) return strerror(errno);
    if (!S_ISDIR(st.st_mode)) return "it is not a folder";
    if (st.st_uid != geteuid()) return "it belongs to another user";
    return st.st_mode & 022 ? "others can write to it (chmod go-w)" : NULL;
}

/* ---- the limit of bytes ---- */

typedef struct file {
    char name[2 * AD_SHA256_SIZE + 16];
    struct timespec used;
    uint64_t size;
} file;

static int compare_ages(const void *a, const void *b) {
    const struct timespec *x = &((const file *)a)->used, *y = &((const file *)b)->used;
    if (x->tv_sec != y->tv_sec) return x->tv_sec < y->tv_sec ? -1 : 1;
    return x->tv_nsec < y->tv_nsec ? -1 : x->tv_nsec > y->tv_nsec;
}

static bool is_entry(const char *name) {
    size_t n = strspn(name, "0123456789abcdef");
    return n == 2 * AD_SHA256_SIZE && !strcmp(name + n, SUFFIX);
}

/* List all entries in *out, which the caller frees. Old temporary files are removed. */
static size_t list_entries(ad_disk *d, file **out) {
    DIR *folder = opendir(d->folder);
    struct dirent *e;
    struct stat st;
    size_t n = 0, room = 0;
    *out = NULL;
    while (folder && (e = readdir(folder))) {
        if (fstatat(dirfd(folder), e->d_name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode)) continue;
        if (!strncmp(e->d_name, TEMPORARY, strlen(TEMPORARY)) && st.st_mtime < time(NULL) - FORGOTTEN)
            unlinkat(dirfd(folder), e->d_name, 0);
        if (!is_entry(e->d_name)) continue;
        file *more = ad__os_grow(*out, n, &room, sizeof *more);
        if (!more) break;
        *out = more;
        file *f = &(*out)[n++];
        *f = (file){.used = st.st_atim, .size = (uint64_t)st.st_size};
        memcpy(f->name, e->d_name, 2 * AD_SHA256_SIZE + sizeof SUFFIX);
    }
    if (folder) closedir(folder);
    return n;
}

/* Count the folder's bytes. Above the limit, remove what was not used for longest, down to nine tenths of it. */
static void bound_folder(ad_disk *d) {
    file *files;
    char path[sizeof d->folder + 128];
    size_t n = list_entries(d, &files), i = 0;
    d->used = 0;
    for (size_t k = 0; k < n; k++) d->used += files[k].size;
    if (d->used > d->limit) {
        qsort(files, n, sizeof *files, compare_ages);
        for (; i < n && d->used > d->limit - d->limit / 10; i++) {
            snprintf(path, sizeof path, "%s/%s", d->folder, files[i].name);
            if (!unlink(path) || errno == ENOENT) d->used -= files[i].size;
        }
    }
    free(files);
}

void ad__disk_open(ad_disk *d, const char *option, uint64_t limit) {
    *d = (ad_disk){.limit = limit};
    choose_folder(d, option);
    if (!*d->folder) return;
    const char *why = ad__os_make_folder(d->folder) ? strerror(errno) : check_private(d->folder);
    if (why) ad__disk_give_up(d, why);
    else bound_folder(d);
}

/* ---- entries ---- */

static bool hash_result(const head *h, const uint8_t *key, const uint8_t *result, uint8_t out[AD_SHA256_SIZE]) {
    const ad_digest_part parts[] = {{h, offsetof(head, result_hash)}, {key, AD_SHA256_SIZE}, {result, h->result_size}};
    return !ad__sha256(parts, 3, out, NULL);
}

static bool hash_job(const uint8_t *job, size_t size, uint8_t out[AD_SHA256_SIZE]) {
    return !ad__sha256(&(ad_digest_part){job, size}, 1, out, NULL);
}

static void make_path(const ad_disk *d, const uint8_t *key, char *out, size_t size) {
    char text[2 * AD_SHA256_SIZE + 1];
    ad__sha256_text(key, text);
    snprintf(out, size, "%s/%s" SUFFIX, d->folder, text);
}

/* Read the head of an entry, and check its sizes against the file's. */
static bool read_head(int fd, head *h) {
    struct stat st;
    if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid()) return false;
    if (pread(fd, h, sizeof *h, 0) != sizeof *h || memcmp(h->magic, MAGIC, sizeof h->magic)) return false;
    if (h->result_size > AD_COMPILE_FRAME || h->job_size > AD_COMPILE_FRAME) return false;
    return (uint64_t)st.st_size == sizeof *h + h->result_size + h->job_size;
}

static bool read_part(int fd, ad_bytes *out, size_t size, size_t at) {
    if (ad__bytes_reserve(out, size)) return false;
    for (size_t done = 0; done < size;) {
        ssize_t n = pread(fd, out->data + out->size, size - done, (off_t)(at + done));
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        out->size += (size_t)n;
        done += (size_t)n;
    }
    return true;
}

bool ad__disk_load(ad_disk *d, const uint8_t key[AD_SHA256_SIZE], ad_bytes *result) {
    char path[sizeof d->folder + 128];
    uint8_t hash[AD_SHA256_SIZE];
    head h;
    size_t before = result->size;
    if (!*d->folder) return false;
    make_path(d, key, path, sizeof path);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) return false;
    bool good = read_head(fd, &h) && read_part(fd, result, h.result_size, sizeof h);
    if (good) good = hash_result(&h, key, result->data + before, hash) && !memcmp(hash, h.result_hash, sizeof hash);
    if (good) {
        futimens(fd, (struct timespec[2]){{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_OMIT}});
    } else {
        ad__log(damaged_kernel_removed, path);
        unlink(path);
        result->size = before;
    }
    close(fd);
    return good;
}

static int write_file(const char *path, const head *h, const ad_bytes *result, const ad_bytes *job) {
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) return -1;
    int status = ad__os_write(fd, h, sizeof *h) || ad__os_write(fd, result->data, result->size) ||
                 ad__os_write(fd, job->data, job->size);
    return close(fd) || status ? -1 : 0;
}

void ad__disk_store(ad_disk *d, const uint8_t key[AD_SHA256_SIZE], const ad_bytes *result, const ad_bytes *job) {
    char path[sizeof d->folder + 128], temporary[sizeof d->folder + 128];
    head h = {.magic = MAGIC, .result_size = result->size, .job_size = job->size};
    uint64_t size = sizeof h + result->size + job->size;
    _Static_assert(sizeof MAGIC - 1 == sizeof h.magic, "the magic fills its place");
    if (!*d->folder || size > d->limit) return;
    d->stores++;
    if (d->used + size > d->limit || d->stores % RECOUNT == 0) bound_folder(d);
    if (!hash_result(&h, key, result->data, h.result_hash) || !hash_job(job->data, job->size, h.job_hash)) return;
    make_path(d, key, path, sizeof path);
    snprintf(temporary, sizeof temporary, "%s/" TEMPORARY "%d-%u", d->folder, (int)getpid(), d->stores);
    if (write_file(temporary, &h, result, job) || rename(temporary, path)) {
        if (is_first_failure(d)) ad__log(kernel_not_kept_on_disk, d->folder, strerror(errno));
        unlink(temporary);
        return;
    }
    d->used += size;
}

static bool load_job(const ad_disk *d, const char *name, ad_bytes *out) {
    char path[sizeof d->folder + 128];
    uint8_t hash[AD_SHA256_SIZE];
    head h;
    snprintf(path, sizeof path, "%s/%s", d->folder, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) return false;
    bool good = read_head(fd, &h) && read_part(fd, out, h.job_size, sizeof h + h.result_size);
    if (good) good = hash_job(out->data, out->size, hash) && !memcmp(hash, h.job_hash, sizeof hash);
    close(fd);
    return good;
}

size_t ad__disk_jobs(ad_disk *d, bool (*each)(void *user, const ad_bytes *job), void *user) {
    file *files = NULL;
    size_t n = *d->folder ? list_entries(d, &files) : 0, found = 0;
    bool more = true;
    for (size_t i = 0; more && i < n; i++) {
        ad_bytes job = AD_BYTES_INIT;
        if (load_job(d, files[i].name, &job)) {
            found++;
            more = each(user, &job);
        }
        ad__bytes_free(&job);
    }
    free(files);
    return found;
}
