/* The remains of the worker before: descriptors that arrayd has kept, and its journal's bytes. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "server/common/discard.h"
#include "server/common/os.h"
#include "server/worker/recover/inside.h"

ad_recovery *ad__recovery_left(ad_worker *w) {
    if (!w->before.left) w->before.left = ad__os.calloc(1, sizeof *w->before.left);
    return w->before.left;
}

void ad__recovery_take(ad_worker *w, const ad_note *note, int fd) {
    ad_recovery *r = ad__recovery_left(w);
    /* A row that needs the descriptor finds it missing. Of a slab arrayd must hear that nobody uses it. */
    if (fd < 0 && note->kind != AD_NOTE_OLD_SLAB) return;
    if (r && note->kind == AD_NOTE_OLD_SLAB) {
        ad_old_slab *list = ad__os_grow(r->slab, r->nslabs, &r->slab_room, sizeof *list);
        if (list) {
            r->slab = list;
            r->slab[r->nslabs] = (ad_old_slab){.id = note->id, .size = note->size, .fd = fd};
            memcpy(r->slab[r->nslabs++].who, note->who, sizeof note->who);
            return;
        }
    } else if (r) {
        ad_old_descriptor *list = ad__os_grow(r->passed, r->npassed, &r->passed_room, sizeof *list);
        if (list) {
            r->passed = list;
            r->passed[r->npassed++] = (ad_old_descriptor){note->id, note->size, note->process, fd};
            return;
        }
    }
    if (note->kind == AD_NOTE_OLD_SLAB && w->before.nmissed < AD_MISSED_SLABS)
        w->before.missed[w->before.nmissed++] = note->id;
    if (fd >= 0) close(fd);
}

void ad__recovery_without(ad_worker *w, const char *who) {
    ad_recovery *r = ad__recovery_left(w);
    char(*list)[AD_PRINCIPAL_SIZE] = r ? ad__os_grow(r->without, r->nwithout, &r->without_room, sizeof *list) : NULL;
    if (!list) _exit(AD_EXIT_ASTRAY); /* two workers would recover the same memory */
    r->without = list;
    snprintf(list[r->nwithout++], sizeof *list, "%s", who);
}

bool ad__recovery_skips(const ad_recovery *r, const char *who) {
    size_t i = 0;
    while (i < r->nwithout && strncmp(r->without[i], who, sizeof *r->without)) i++;
    return i < r->nwithout;
}

void *ad__recovery_get(const ad_recovery *r, ad_at at, uint64_t size) {
    if (!at || at % 8 || at > r->size || size > r->size - at || size > r->memory) return NULL;
    return r->base + at;
}

void ad__recovery_close(ad_worker *w) {
    ad_recovery *r = w->before.left;
    if (!r) return;
    for (size_t i = 0; i < r->nslabs; i++)
        if (r->slab[i].fd >= 0) close(r->slab[i].fd);
    for (size_t i = 0; i < r->npassed; i++)
        if (r->passed[i].fd >= 0) ad__discard("recovery", r->passed[i].fd);
    if (r->base) munmap(r->base, r->size);
    free(r->slab);
    free(r->passed);
    free(r->common);
    free(r->without);
    free(r);
    w->before.left = NULL;
}
