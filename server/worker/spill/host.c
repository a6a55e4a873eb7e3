/* Host memory for buffers that leave a device: how much, and where it comes from. A slab is a memory file, which the
 * device's copies reach as they reach a client's window. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "protocol/memfd.h"
#include "server/common/os.h"
#include "server/worker/spill/spill.h"

#define HOST_PART 4 /* one part in so many of the machine's memory */
#define HOST_SLAB (64u << 20)
#define LEAST_SLAB (1u << 20)
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

/* Measure the memory of this machine, or of the container. */
static uint64_t measure_host_memory(void) {
    uint64_t bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    unsigned long long limit;
    FILE *f = fopen("/sys/fs/cgroup/memory.max", "re");
    if (!f) return bytes;
    if (fscanf(f, "%llu", &limit) == 1 && limit < bytes) bytes = limit;
    fclose(f);
    return bytes;
}

/* Choose the limit of host memory. The cpu backend needs none, because its arrays are in host memory already. */
static uint64_t choose_limit(const ad_worker *w) {
    if (w->config.host_memory != UINT64_MAX) return w->config.host_memory;
    return strcmp(w->backend->name, "cpu") ? measure_host_memory() / HOST_PART : 0;
}

/* ---- a backend of slabs in host memory; its device is the worker ---- */

static ad_worker *get_worker(ad_device *device) { return (ad_worker *)(void *)device; }

static int report_errno(uint64_t size, const char *what, ad_fault *fault) {
    int code = errno == ENOMEM || errno == ENOSPC || errno == EFBIG ? AD_E_MEMORY : AD_E_SYSTEM;
    return ad__fault(fault, code, "%" PRIu64 " bytes of host memory: %s: %s", size, what, strerror(errno));
}

/* Map the memory file fd. The map owns fd, unless this fails. */
static int map_slab(ad_worker *w, int fd, uint64_t size, ad_slab_map *out, ad_fault *fault) {
    void *base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED) return report_errno(size, "mmap", fault);
    madvise(base, size, MADV_HUGEPAGE); /* advice that some kernels ignore */
    int status = w->backend->host_register(w->device.gpu[0].device, base, size, fault);
    if (status) {
        munmap(base, size);
        return status;
    }
    *out = (ad_slab_map){.base = base, .size = size, .fd = fd};
    return 0;
}

static int create_slab(ad_device *device, uint64_t size, ad_slab_map *out, ad_fault *fault) {
    int status, fd = memfd_create("arrayd-host", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0) return report_errno(size, "memfd_create", fault);
    if (ftruncate(fd, (off_t)size)) status = report_errno(size, "ftruncate", fault);
    else if (fcntl(fd, F_ADD_SEALS, SEALS)) status = report_errno(size, "sealing", fault);
    else status = map_slab(get_worker(device), fd, size, out, fault);
    if (status) close(fd);
    return status;
}

static void close_slab(ad_device *device, ad_slab_map *slab) {
    ad_worker *w = get_worker(device);
    w->backend->host_unregister(w->device.gpu[0].device, slab->base);
    munmap(slab->base, slab->size);
    close(slab->fd);
}

int ad__spill_attach(ad_worker *w, int fd, uint64_t size, ad_slab_map *out, ad_fault *fault) {
    int own, status = ad__memfd_check("a slab of host memory", fd, size, fault);
    if (status) return status;
    if ((own = ad__os.dup(fd)) < 0) return report_errno(size, "dup", fault);
    status = map_slab(w, own, size, out, fault);
    if (status) close(own);
    return status;
}

static uint64_t choose_slab_size(uint64_t limit) {
    uint64_t slab = limit / 4;
    return slab > HOST_SLAB ? HOST_SLAB : slab < LEAST_SLAB ? LEAST_SLAB : slab;
}

int ad__spill_open(ad_worker *w, ad_fault *fault) {
    uint64_t limit = choose_limit(w);
    const char *every = getenv("ARRAYD_SPILL_EVERY");
    if (!limit) return 0;
    ad_spill *all = ad__os.calloc(1, sizeof *all);
    if (!all) return ad__fault(fault, AD_E_MEMORY, "out of host memory");
    all->table = (ad_backend){.slab_create = create_slab, .slab_close = close_slab};
    all->host = (ad_memory){.backend = &all->table,
                            .device = (ad_device *)(void *)w,
                            .slab_size = choose_slab_size(limit),
                            .limit = limit,
                            .next_id = &w->device.next_slab,
                            .announce = ad__slab_announce,
                            .user = w};
    all->limit = limit;
    all->every = every ? strtoull(every, NULL, 10) : 0;
    all->least = all->every ? 1 : AD_SPILL_LEAST;
    if (!(all->stream_arena = ad__stream_arena_open(&all->host, AD_SPILL_NOBODY, NULL))) {
        free(all);
        return ad__fault(fault, AD_E_MEMORY, "out of host memory");
    }
    w->spill = all;
    return 0;
}
