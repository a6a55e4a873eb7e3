/* Descriptors of a worker's slabs, which keep device memory alive when the worker has died. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/common/os.h"
#include "server/front/front.h"

typedef struct slab {
    uint64_t id, size;
    int fd;
    char who[AD_PRINCIPAL_SIZE];
} slab;

/* Slabs in order of their ids, which is the order in which they come. */
struct ad_slabs {
    slab *list;
    size_t count, capacity;
    uint64_t last;
};

ad_slabs *ad__slabs_new(void) { return ad__os.calloc(1, sizeof(ad_slabs)); }

int ad__slabs_add(ad_slabs *s, const ad_note *note, int fd) {
    int status = note->id <= s->last ? AD_E_PROTOCOL : fd < 0 ? AD_E_SYSTEM : 0;
    slab *list = status ? NULL : ad__os_grow(s->list, s->count, &s->capacity, sizeof *list);
    if (list) s->list = list;
    else if (!status) status = AD_E_MEMORY;
    if (status && fd >= 0) close(fd);
    if (status) return status;
    s->list[s->count] = (slab){.id = s->last = note->id, .size = note->size, .fd = fd};
    memcpy(s->list[s->count++].who, note->who, sizeof note->who);
    return 0;
}

void ad__slabs_remove(ad_slabs *s, uint64_t id) {
    size_t low = 0, high = s->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (s->list[middle].id < id) low = middle + 1;
        else high = middle;
    }
    if (low == s->count || s->list[low].id != id) return;
    close(s->list[low].fd);
    for (s->count--; low < s->count; low++) s->list[low] = s->list[low + 1];
}

size_t ad__slabs_count(const ad_slabs *s, uint64_t *bytes) {
    *bytes = 0;
    for (size_t i = 0; i < s->count; i++) *bytes += s->list[i].size;
    return s->count;
}

uint64_t ad__slabs_last(const ad_slabs *s) { return s->last; }

int ad__slabs_tell(const ad_slabs *s, ad_channel *c) {
    for (size_t i = 0; i < s->count; i++) {
        ad_note note = {.kind = AD_NOTE_OLD_SLAB, .id = s->list[i].id, .size = s->list[i].size};
        memcpy(note.who, s->list[i].who, sizeof note.who);
        int fd = ad__os.dup(s->list[i].fd);
        int status = fd < 0 ? AD_E_SYSTEM : ad__channel_send(c, &note, fd);
        if (status) return status;
    }
    return 0;
}

/* The owner of a slab after the migration of a principal; NULL: the slab stays. */
static const char *get_new_owner(const slab *s, const char *who) {
    if (!strcmp(s->who, who)) return who;
    return *s->who == AD_PARTED && !strcmp(s->who + 1, who) ? "" : NULL;
}

int ad__slabs_migrate(ad_slabs *from, ad_slabs *to, const char *who) {
    size_t n = 0, kept = 0;
    if (to->count || to->last) return AD_E_PROTOCOL;
    for (size_t i = 0; i < from->count; i++) {
        if (!get_new_owner(&from->list[i], who)) continue;
        slab *list = ad__os_grow(to->list, n++, &to->capacity, sizeof *list);
        if (!list) return AD_E_MEMORY;
        to->list = list;
    }
    for (size_t i = 0; i < from->count; i++) {
        slab *s = &from->list[i];
        const char *whose = get_new_owner(s, who);
        if (whose) {
            to->list[to->count] = *s;
            snprintf(to->list[to->count++].who, sizeof s->who, "%s", whose);
        } else {
            from->list[kept++] = *s;
        }
    }
    from->count = kept;
    to->last = from->last; /* none of these ids is given to another slab there */
    return 0;
}

static void transfer_slab(slab *s, ad_hand *h) {
    ad__hand_number(h, &s->id);
    ad__hand_number(h, &s->size);
    ad__hand_text(h, s->who, sizeof s->who);
    ad__hand_fd(h, &s->fd);
    if (s->fd < 0) h->failed = true;
}

void ad__slabs_hand_over(ad_slabs *s, ad_hand *h) {
    ad__hand_number(h, &s->last);
    size_t count = ad__hand_count(h, s->count);
    for (size_t i = 0; i < count && !h->failed; i++) {
        slab *list = h->reading ? ad__os_grow(s->list, s->count, &s->capacity, sizeof *list) : s->list;
        if (!list) {
            h->failed = true;
            return;
        }
        s->list = list;
        if (h->reading) list[s->count++] = (slab){.fd = -1};
        transfer_slab(&list[i], h);
        if (list[i].id > s->last || (i && list[i].id <= list[i - 1].id)) h->failed = true;
    }
}

void ad__slabs_free(ad_slabs *s) {
    if (!s) return;
    for (size_t i = 0; i < s->count; i++) close(s->list[i].fd);
    free(s->list);
    free(s);
}
