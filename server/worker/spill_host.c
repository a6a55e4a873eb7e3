/* Host memory for buffers that are moved out: how much, and where it comes from. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/common/os.h"
#include "server/worker/spill.h"

#define HOST_SHARE 4 /* one part of so many of the machine's memory */
#define HOST_SLAB (64u << 20)
#define LEAST_SLAB (1u << 20)

/* What this machine has, or the container. */
static uint64_t host_memory(void) {
    uint64_t bytes = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    unsigned long long limit;
    FILE *f = fopen("/sys/fs/cgroup/memory.max", "re");
    if (!f) return bytes;
    if (fscanf(f, "%llu", &limit) == 1 && limit < bytes) bytes = limit;
    fclose(f);
    return bytes;
}

/* Arrays of the cpu backend lie in host memory as it is. */
static uint64_t limit_of(const ad_worker *w) {
    if (w->config.host_memory != UINT64_MAX) return w->config.host_memory;
    return strcmp(w->backend->name, "cpu") ? host_memory() / HOST_SHARE : 0;
}

/* ---- a backend of slabs in host memory; its device is the worker ---- */

static ad_worker *worker_of(ad_device *device) { return (ad_worker *)(void *)device; }

static int slab_create(ad_device *device, uint64_t size, ad_slab_map *out, ad_fault *fault) {
    ad_worker *w = worker_of(device);
    *out = (ad_slab_map){.size = size, .fd = -1};
    return w->backend->host_alloc(w->gpu[0].device, size, &out->base, fault);
}

static void slab_close(ad_device *device, ad_slab_map *slab) {
    ad_worker *w = worker_of(device);
    w->backend->host_free(w->gpu[0].device, slab->base);
}

/* arrayd keeps device memory only. */
static void announce(void *user, const char *principal, uint64_t id, uint64_t size, int fd) {
    (void)user, (void)principal, (void)id, (void)size;
    if (fd >= 0) close(fd);
}

static uint64_t slab_size(uint64_t limit) {
    uint64_t slab = limit / 4;
    return slab > HOST_SLAB ? HOST_SLAB : slab < LEAST_SLAB ? LEAST_SLAB : slab;
}

int ad__spill_open(ad_worker *w, ad_fault *fault) {
    uint64_t limit = limit_of(w);
    const char *every = getenv("ARRAYD_SPILL_EVERY");
    if (!limit) return 0;
    ad_spill *all = ad__os.calloc(1, sizeof *all);
    if (!all) return ad__fault(fault, AD_E_MEMORY, "out of host memory");
    all->table = (ad_backend){.slab_create = slab_create, .slab_close = slab_close};
    all->host = (ad_memory){.backend = &all->table,
                            .device = (ad_device *)(void *)w,
                            .slab_size = slab_size(limit),
                            .limit = limit,
                            .next_id = &all->next_id,
                            .announce = announce};
    all->limit = limit;
    all->every = every ? strtoull(every, NULL, 10) : 0;
    all->least = all->every ? 1 : AD_SPILL_LEAST;
    if (!(all->estate = ad__estate_open(&all->host, "host", NULL))) {
        free(all);
        return ad__fault(fault, AD_E_MEMORY, "out of host memory");
    }
    w->spill = all;
    return 0;
}
