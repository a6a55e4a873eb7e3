#include "server/worker/memory/reserved.h"

#include <stdlib.h>
#include <string.h>

#include "server/common/log.h"
#include "server/common/os.h"
#include "server/worker/worker.h"

#define MOST 131072 /* entries; two files have no more */

void ad__reserved_init(ad_reserved *r) { pthread_mutex_init(&r->lock, NULL); }

void ad__reserved_close(ad_reserved *r) {
    free(r->list);
    free(r->coming);
    pthread_mutex_destroy(&r->lock);
}

/* Put the list in force, when its last entry has come. */
static void replace_list(ad_reserved *r, uint64_t count) {
    pthread_mutex_lock(&r->lock);
    free(r->list);
    r->list = r->coming;
    r->count = count;
    r->coming = NULL;
    atomic_store(&r->changed, true);
    pthread_mutex_unlock(&r->lock);
}

int ad__reserved_take(ad_reserved *r, const ad_note *note) {
    if (note->size > MOST || (note->size && note->id >= note->size)) return AD_E_PROTOCOL;
    if (note->id == 0) {
        free(r->coming);
        r->coming = note->size ? ad__os.calloc(note->size, sizeof *r->coming) : NULL;
        r->expected = note->size;
        if (note->size && !r->coming) return AD_E_MEMORY;
    }
    if (note->size && (!r->coming || note->size != r->expected)) return AD_E_PROTOCOL;
    if (note->size) {
        ad_reservation *to = &r->coming[note->id];
        *to = (ad_reservation){.bytes = note->grants.reserve, .devices = note->grants.devices};
        memcpy(to->who, note->who, sizeof to->who);
    }
    if (note->id + 1 >= note->size) replace_list(r, note->size);
    return 0;
}

void ad__reserved_open(ad_worker *w, ad_gpu *g) {
    ad_reserved *r = &w->reserved;
    bool done = true;
    pthread_mutex_lock(&r->lock);
    for (uint64_t i = 0; i < r->count; i++)
        if (r->list[i].devices >> g->index & 1)
            done = ad__account_reserve(&g->memory.accounts, r->list[i].who, r->list[i].bytes) && done;
    pthread_mutex_unlock(&r->lock);
    if (done) return;
    ad__log(memory_not_reserved_yet, "out of host memory");
    atomic_store(&r->changed, true); /* the next ad__reserved_apply tries again */
}

void ad__reserved_apply(ad_worker *w) {
    if (!atomic_load_explicit(&w->reserved.changed, memory_order_relaxed)) return;
    atomic_store(&w->reserved.changed, false);
    for (int i = 0; i < w->device.count && i < AD_DEVICES; i++) {
        if (!w->device.gpu[i].device) continue;
        ad__accounts_unreserve(&w->device.gpu[i].memory.accounts);
        ad__reserved_open(w, &w->device.gpu[i]);
    }
}
