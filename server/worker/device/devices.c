#include "server/worker/device/devices.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "server/common/log.h"
#include "server/worker/worker.h"

void ad__slab_announce(void *user, const char *principal, uint64_t id, uint64_t size, int fd) {
    ad_note note = {.kind = fd >= 0 ? AD_NOTE_SLAB : AD_NOTE_SLAB_GONE, .id = id, .size = size};
    snprintf(note.who, sizeof note.who, "%s", principal);
    ad__worker_tell(user, &note, fd);
}

static void init_memory(ad_worker *w, ad_gpu *g) {
    const ad_config *c = &w->config;
    uint64_t sharing = strcmp(w->backend->name, "cpu") ? 1 : (uint64_t)w->device.count; /* devices of one memory */
    uint64_t limit = c->memory ? c->memory : g->info.memory / sharing / 4 * 3, slab = c->slab;
    if (slab > limit / 4) slab = limit / 4;
    if (slab < 1u << 20) slab = 1u << 20;
    if (slab > AD_HEAP_MOST) slab = AD_HEAP_MOST;
    g->memory = (ad_memory){.backend = w->backend,
                            .device = g->device,
                            .slab_size = slab,
                            .limit = limit,
                            .next_id = &w->device.next_slab,
                            .announce = ad__slab_announce,
                            .user = w};
}

void ad__gpu_measure(const ad_worker *w, ad_gpu *g) {
    w->backend->device_info(g->device, &g->info);
    if (w->device.count < AD_DEVICES) g->info.peers &= ((uint64_t)1 << w->device.count) - 1;
}

static int report_lost(const ad_gpu *g, ad_fault *fault) {
    return ad__fault(fault, AD_E_DEVICE, "device %d cannot be used: %.160s", g->index, g->lost);
}

static int open_device(ad_worker *w, ad_gpu *g, ad_fault *fault) {
    ad_fault why = {0};
    if (*g->lost) return report_lost(g, fault);
    const int status = w->backend->device_open(g->index, (int)w->config.threads, w->compiler, &g->device, &why);
    if (!status) return 0;
    g->device = NULL;
    if (status == AD_E_MEMORY) return ad__fault(fault, status, "%s", why.text);
    snprintf(g->lost, sizeof g->lost, "%s", why.text);
    if (g->index) ad__log(device_cannot_be_used, g->index, why.text); /* without device 0 nothing begins, which is said */
    return report_lost(g, fault);
}

ad_gpu *ad__gpu_get(ad_worker *w, uint64_t index, ad_fault *fault) {
    if (index >= (uint64_t)w->device.count || index >= AD_DEVICES) {
        ad__fault(fault, AD_E_VALUE, "device %" PRIu64 " does not exist: the server has %d, numbered from 0", index,
                  w->device.count);
        return NULL;
    }
    ad_gpu *g = &w->device.gpu[index];
    if (g->device) return g;
    g->index = (int)index;
    if (open_device(w, g, fault)) return NULL;
    ad__gpu_measure(w, g);
    init_memory(w, g);
    ad__reserved_open(w, g);
    ad__parts_prepare(w, g);
    return g;
}

void ad__gpus_close(ad_worker *w) {
    for (int i = 0; i < AD_DEVICES; i++)
        if (w->device.gpu[i].device) {
            ad__accounts_unreserve(&w->device.gpu[i].memory.accounts);
            w->backend->device_close(w->device.gpu[i].device);
        }
}

bool ad__gpu_can_reach(const ad_gpu *from, const ad_gpu *to) {
    return from == to || (from->info.peers >> to->index & 1);
}
