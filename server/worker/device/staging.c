#include "server/worker/device/staging.h"

#include "server/worker/worker.h"

static void push_piece(void **list, void *piece) {
    *(void **)piece = *list;
    *list = piece;
}

static void *pop_piece(void **list) {
    void *piece = *list;
    if (piece) *list = *(void **)piece;
    return piece;
}

static void **choose_list(ad_staging *s, uint64_t size) { return size <= AD_STAGING_SMALL ? &s->small : &s->parts; }

void *ad__staging_take(ad_worker *w, uint64_t size, ad_fault *fault) {
    void **list = choose_list(&w->device.staging, size), *memory = pop_piece(list);
    if (memory) return memory;
    if (w->backend->host_alloc(w->device.gpu[0].device, AD_STAGING_PART, &memory, fault)) return NULL;
    if (list == &w->device.staging.small)
        for (uint64_t at = AD_STAGING_SMALL; at < AD_STAGING_PART; at += AD_STAGING_SMALL)
            push_piece(list, (char *)memory + at);
    return memory;
}

void ad__staging_give(ad_worker *w, void *memory, uint64_t size) {
    push_piece(choose_list(&w->device.staging, size), memory);
}
