/* Runs client-c/interop/export_cuda.c and client-c/interop/lend_cuda.c beside a driver made for tests (fake_libcuda.c).
 * With each call failing in turn nothing is left behind. Without a failure the memory is there. Prints how many calls
 * there were. */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client-c/interop/export.h"
#include "client-c/interop/lend.h"

static char said[500];

int ad__fail(int code, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(said, sizeof said, format, arguments);
    va_end(arguments);
    return code;
}

static int *find_counter(void *library, const char *name) {
    int *c = dlsym(library, name);
    if (!c) exit(90);
    return c;
}

static int nothing_left(void *library) {
    static const char *const names[] = {"fake_contexts", "fake_pushed", "fake_handles", "fake_reserved",
                                        "fake_mapped",   "fake_events", "fake_wrong"};
    int wrong = 0;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (!*find_counter(library, names[i])) continue;
        printf("%s is %d\n", names[i], *find_counter(library, names[i]));
        wrong = 1;
    }
    return !wrong;
}

/* Into the memory, with each call failing in turn. */
static bool copies_bytes(void *library, const ad_lease *l, char *at) {
    int all;
    *find_counter(library, "fake_calls") = 0;
    if (ad__cuda_copy(l, 1, at + 10, "abc", 3) || memcmp(at + 10, "abc", 3) != 0) return false;
    all = *find_counter(library, "fake_calls");
    for (int i = 1; i <= all; i++) {
        *find_counter(library, "fake_calls") = 0;
        *find_counter(library, "fake_fail") = i;
        if (ad__cuda_copy(l, 1, at + 20, "abc", 3) != AD_E_DEVICE) return false;
    }
    *find_counter(library, "fake_fail") = 0;
    return all == 6 && ad__cuda_copy(l, 0, at, "abc", 3) == AD_E_VALUE &&
           ad__cuda_copy(l, -1, at + 20, "abc", 3) == 0 && *find_counter(library, "fake_contexts") == 1 &&
           *find_counter(library, "fake_pushed") == 0;
}

static int export_once(void *library, int fail, int fd, bool event, int *calls) {
    ad_lease l = {.fd = fd, .size = 1 << 20, .cuda = true, .device = -1};
    strcpy(l.id, "GPU-01112131-4151-6171-8191-a1b1c1d1e1f1");
    for (int i = 0; event && i < 64; i++) l.event[i] = (unsigned char)(i + 1);
    *find_counter(library, "fake_calls") = 0;
    *find_counter(library, "fake_fail") = fail;
    int status = ad__cuda_map(&l, (void *)0x2);
    *calls = *find_counter(library, "fake_calls");
    *find_counter(library, "fake_fail") = 0;
    if (status) {
        if (fail && status == AD_E_DEVICE && !l.base && strstr(said, "invalid argument (CUDA error 1)") &&
            nothing_left(library))
            return 0;
        printf("call %d: status %d: %s\n", fail, status, said);
        return 1;
    }
    char *at = l.base;
    int waited = *find_counter(library, "fake_waits"), good = !fail && l.device == 1 && at[0] == 'x' && waited == event;
    at[1] = 'y';
    good = good && copies_bytes(library, &l, at);
    *find_counter(library, "fake_freeing") = 1; /* then nobody can be told */
    ad__cuda_unmap(&l);
    *find_counter(library, "fake_freeing") = 0;
    char back = 0;
    good = good && pread(fd, &back, 1, 1) == 1 && back == 'y' && *find_counter(library, "fake_synchronized") > 0;
    return !(good && nothing_left(library));
}

/* Memory that is only read is mapped so, and nothing can be written there. */
static bool maps_to_read(void *library, int fd) {
    ad_lease l = {.fd = fd, .size = 1 << 20, .cuda = true, .device = -1, .readonly = true};
    strcpy(l.id, "GPU-01112131-4151-6171-8191-a1b1c1d1e1f1");
    *find_counter(library, "fake_calls") = 0;
    *find_counter(library, "fake_reader") = 1;
    if (ad__cuda_map(&l, NULL)) return false;
    *find_counter(library, "fake_reader") = 0;
    int fd_of_zero = open("/dev/zero", O_RDONLY);
    const bool good = *(const char *)l.base == 'x' && read(fd_of_zero, l.base, 1) < 0 && errno == EFAULT;
    close(fd_of_zero);
    ad__cuda_unmap(&l);
    return good && nothing_left(library);
}

/* ---- names of memory for others ---- */

static int count_descriptors(void) {
    int n = 0;
    DIR *d = opendir("/proc/self/fd");
    while (d && readdir(d)) n++;
    if (d) closedir(d);
    return n;
}

static void *(*alloc)(size_t size, int kind, void *there);

/* With each call failing: another name, or a failure, and nothing is left. *all: calls without a failure. */
static bool finds_memory(void *library, const char *data, size_t size, void *stream, const char *refusal,
                         bool described, int *all) {
    const int before = count_descriptors();
    for (int fail = 0; fail == 0 || fail <= *all; fail++) {
        ad_place p;
        *find_counter(library, "fake_calls") = 0;
        *find_counter(library, "fake_fail") = fail;
        *find_counter(library, "fake_synchronized") = 0;
        int status = ad__cuda_find(data, size, 1, stream, &p);
        if (!fail) *all = *find_counter(library, "fake_calls");
        *find_counter(library, "fake_fail") = 0;
        if (!fail && (status == 0) == (refusal != NULL)) return false;
        if (!fail && status && (status != AD_E_UNSUPPORTED || !strstr(said, refusal))) return false;
        if (!status && (p.device != 1 || strcmp(p.id, "GPU-01112131-4151-6171-8191-a1b1c1d1e1f1") != 0)) return false;
        if (!status && *find_counter(library, "fake_synchronized") != 1) return false;
        if (!status && !fail && (p.fd >= 0) != described) return false;
        if (!status && (p.base > (uintptr_t)data || (uintptr_t)data + size > p.base + p.size)) return false;
        if (!status && p.fd >= 0) close(p.fd);
        if (!nothing_left(library) || count_descriptors() != before) return false;
    }
    return true;
}

static int check_lending(void *library) {
    int all[4];
    void (*release)(void *);
    *(void **)&alloc = dlsym(library, "fake_alloc");
    *(void **)&release = dlsym(library, "fake_free");
    char *plain = alloc(1 << 20, 1, NULL), *shareable = alloc(2 << 20, 2, NULL), *pool = alloc(4096, 3, NULL),
         *managed = alloc(4096, 4, NULL);
    char *hole = alloc(2 << 20, 1, NULL);
    release(hole);
    if (alloc(1 << 20, 1, hole) != hole || alloc(1 << 20, 1, hole + (1 << 20)) != hole + (1 << 20)) return 20;
    if (!finds_memory(library, plain + 64, 100, NULL, NULL, false, &all[0])) return 21;
    if (!finds_memory(library, shareable, 2 << 20, (void *)2, NULL, true, &all[1])) return 22;
    if (!finds_memory(library, pool, 10, NULL, "no other process", false, &all[2])) return 23;
    if (!finds_memory(library, managed, 10, NULL, "moves", false, &all[3])) return 24;
    ad_place p;
    if (ad__cuda_find(hole + (1 << 20) - 10, 20, 1, NULL, &p) != AD_E_UNSUPPORTED || !strstr(said, "several"))
        return 25;
    if (ad__cuda_find(plain, 20, 0, NULL, &p) != AD_E_VALUE || !strstr(said, "not 0")) return 26;
    if (ad__cuda_find(plain, 20, -1, NULL, &p) != 0 || p.device != 1) return 27;
    printf("%d %d %d %d\n", all[0], all[1], all[2], all[3]);
    return 0;
}

int main(int argc, char **argv) {
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL); /* by its soname it is found from now on */
    int fd = memfd_create("memory", 0), calls = 0, all = 0;
    bool event = argc > 2 && !strcmp(argv[2], "event");
    if (!library || ftruncate(fd, 1 << 20) || pwrite(fd, "x", 1, 0) != 1) return 91;
    if (argc > 2 && !strcmp(argv[2], "lend")) return check_lending(library);
    if (export_once(library, 0, fd, event, &all)) return 1;
    for (int i = 1; i <= all; i++)
        if (export_once(library, i, fd, event, &calls)) return 2;
    if (!maps_to_read(library, fd)) return 4;
    ad_lease other = {.fd = fd, .size = 1 << 20, .cuda = true};
    strcpy(other.id, "GPU-0");
    if (ad__cuda_map(&other, NULL) != AD_E_UNSUPPORTED || !strstr(said, "does not see") || !nothing_left(library))
        return 3;
    printf("%d\n", all);
    return 0;
}
