#include "server/worker/memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/common/os.h"

#define OWN_GRAIN (2u << 20) /* a slab of one array is a multiple of this, so that it fits the next one as well */
#define EMPTIES 4            /* cut slabs without arrays that an estate keeps */
#define SPARE_SHARE                                                                               \
    8 /* one part of so many of all memory may be in an estate's spare own slabs: the first touch \
         of a page costs several times what it costs to compute with it */

struct ad_slab {
    ad_slab *next, *prev; /* in its estate's list of slabs, or of spare own ones */
    ad_slab_map map;
    uint64_t id;
    uint64_t high;   /* no byte from here on has ever been handed out: they are zero */
    ad_chunk *whole; /* cut slabs: set while it holds nothing */
    bool own;
};

struct ad_estate {
    ad_estate *next;
    ad_memory *memory;
    ad_heap *heap;
    ad_slab *cut;          /* slabs that are cut into blocks */
    ad_slab *spare;        /* own slabs without an array, to be used again */
    unsigned users, empty; /* sessions; cut slabs that hold nothing */
    uint64_t used, spare_bytes;
    char principal[64];
};

void ad__bytes_text(uint64_t n, char out[16]) {
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    double x = (double)n;
    int u = 0;
    for (; x >= 1024 && u < 5; u++) x /= 1024;
    snprintf(out, 16, x < 10 && u ? "%.1f %s" : "%.0f %s", x, units[u]);
}

static void link_slab(ad_slab **list, ad_slab *s) {
    s->prev = NULL;
    s->next = *list;
    if (*list) (*list)->prev = s;
    *list = s;
}

static void unlink_slab(ad_slab **list, ad_slab *s) {
    if (s->next) s->next->prev = s->prev;
    if (s->prev) s->prev->next = s->next;
    else *list = s->next;
}

/* ---- slabs ---- */

static void slab_close(ad_estate *e, ad_slab *s) {
    ad_memory *m = e->memory;
    m->slab_bytes -= s->map.size;
    m->slabs--;
    m->announce(m->user, e->principal, s->id, s->map.size, -1);
    m->backend->slab_close(m->device, &s->map);
    free(s);
}

static void take_spare(ad_estate *e, ad_slab *s) {
    unlink_slab(&e->spare, s);
    e->spare_bytes -= s->map.size;
}

static void drop_spare(ad_estate *e, ad_slab *s) {
    take_spare(e, s);
    slab_close(e, s);
}

static void drop_empty(ad_estate *e, ad_slab *s) {
    unlink_slab(&e->cut, s);
    ad__heap_remove(e->heap, s->whole);
    e->empty--;
    slab_close(e, s);
}

static void trim(ad_estate *e, unsigned keep) {
    while (e->spare) drop_spare(e, e->spare);
    for (ad_slab *s = e->cut, *next; s && e->empty > keep; s = next) {
        next = s->next;
        if (s->whole) drop_empty(e, s);
    }
}

/* Everybody's spare slabs go before somebody is told that there is no memory. */
static bool make_room(ad_memory *m, uint64_t size) {
    for (ad_estate *e = m->estates; e && m->slab_bytes + size > m->limit; e = e->next) trim(e, 0);
    return m->slab_bytes + size <= m->limit;
}

static int no_room(ad_estate *e, uint64_t size, ad_fault *fault) {
    char want[16], limit[16], mine[16], others[16];
    ad_memory *m = e->memory;
    ad__bytes_text(size, want);
    ad__bytes_text(m->limit, limit);
    ad__bytes_text(e->used, mine);
    ad__bytes_text(m->used - e->used, others);
    return ad__fault(fault, AD_E_MEMORY,
                     "out of device memory: %s more do not fit in %s, of which %s holds %s and "
                     "others %s",
                     want, limit, e->principal, mine, others);
}

static ad_slab *slab_create(ad_estate *e, uint64_t size, bool own, ad_fault *fault) {
    ad_memory *m = e->memory;
    if (size > m->limit || !make_room(m, size)) {
        no_room(e, size, fault);
        return NULL;
    }
    ad_slab *s = ad__os.calloc(1, sizeof *s);
    if (!s) {
        ad__fault(fault, AD_E_MEMORY, "out of host memory");
        return NULL;
    }
    ad_fault why = {0};
    int status = m->backend->slab_create(m->device, size, &s->map, &why);
    if (status) {
        free(s);
        ad__fault(fault, status, "%s", *why.text ? why.text : ad__error_text(status));
        return NULL;
    }
    s->id = ++m->next_id;
    s->own = own;
    m->slab_bytes += s->map.size;
    m->slabs++;
    int fd = ad__os.dup(s->map.fd);
    if (fd >= 0) m->announce(m->user, e->principal, s->id, s->map.size, fd);
    return s;
}

/* ---- blocks ---- */

static void charge(ad_estate *e, uint64_t size) {
    e->used += size;
    e->memory->used += size;
}

/* The tightest spare slab that is not much too large. */
static ad_slab *fitting_spare(ad_estate *e, uint64_t size) {
    ad_slab *best = NULL;
    for (ad_slab *s = e->spare; s; s = s->next)
        if (s->map.size >= size && s->map.size - size <= size / 4 && (!best || s->map.size < best->map.size)) best = s;
    return best;
}

static int take_own(ad_estate *e, uint64_t size, ad_block *out, ad_fault *fault) {
    ad_fault why = {0};
    if (size > AD_HEAP_MOST) return no_room(e, size, fault);
    uint64_t rounded = (size + OWN_GRAIN - 1) / OWN_GRAIN * OWN_GRAIN;
    ad_slab *s = fitting_spare(e, rounded);
    if (s) {
        take_spare(e, s);
    } else if (!(s = slab_create(e, rounded, true, &why))) {
        return ad__fault(fault, why.code, "%s", why.text);
    }
    *out = (ad_block){.slab = s, .address = s->map.base, .size = s->map.size, .clean = s->high == 0};
    s->high = s->map.size;
    charge(e, out->size);
    return 0;
}

static int add_cut_slab(ad_estate *e, ad_fault *fault) {
    ad_fault why = {0};
    ad_slab *s = slab_create(e, e->memory->slab_size, false, &why);
    if (!s) return ad__fault(fault, why.code, "%s", why.text);
    if (ad__heap_add(e->heap, s, s->map.size)) {
        slab_close(e, s);
        return ad__fault(fault, AD_E_MEMORY, "out of host memory");
    }
    link_slab(&e->cut, s);
    return 0;
}

static void hand_out(ad_estate *e, ad_chunk *c, ad_block *out) {
    ad_slab *s = c->range;
    if (s->whole) {
        s->whole = NULL;
        e->empty--;
    }
    *out = (ad_block){.slab = s,
                      .chunk = c,
                      .address = (char *)s->map.base + c->offset,
                      .size = c->size,
                      .clean = c->offset >= s->high};
    if (c->offset + c->size > s->high) s->high = c->offset + c->size;
    charge(e, c->size);
}

int ad__memory_take(ad_estate *e, uint64_t size, ad_block *out, ad_fault *fault) {
    if (size > e->memory->slab_size / 4) return take_own(e, size, out, fault);
    ad_chunk *c = ad__heap_take(e->heap, size);
    if (!c) {
        int status = add_cut_slab(e, fault);
        if (status) return status;
        if (!(c = ad__heap_take(e->heap, size))) return ad__fault(fault, AD_E_MEMORY, "out of host memory");
    }
    hand_out(e, c, out);
    return 0;
}

static void give_own(ad_estate *e, ad_slab *s) {
    if (e->spare_bytes + s->map.size > e->memory->limit / SPARE_SHARE) {
        slab_close(e, s);
        return;
    }
    link_slab(&e->spare, s);
    e->spare_bytes += s->map.size;
}

void ad__memory_give(ad_estate *e, ad_block *b) {
    if (!b->slab) return;
    e->used -= b->size;
    e->memory->used -= b->size;
    if (!b->chunk) {
        give_own(e, b->slab);
    } else {
        ad_chunk *whole = ad__heap_give(e->heap, b->chunk);
        if (whole) {
            b->slab->whole = whole;
            if (++e->empty > EMPTIES) drop_empty(e, b->slab);
        }
    }
    b->slab = NULL;
}

/* ---- estates ---- */

ad_estate *ad__estate_open(ad_memory *m, const char *principal) {
    ad_estate *e = m->estates;
    while (e && strcmp(e->principal, principal)) e = e->next;
    if (!e) {
        if (!(e = ad__os.calloc(1, sizeof *e))) return NULL;
        if (!(e->heap = ad__heap_new())) {
            free(e);
            return NULL;
        }
        snprintf(e->principal, sizeof e->principal, "%s", principal);
        e->memory = m;
        e->next = m->estates;
        m->estates = e;
    }
    e->users++;
    return e;
}

void ad__estate_close(ad_estate *e) {
    if (--e->users) {
        trim(e, 1);
        return;
    }
    trim(e, 0);
    ad_estate **at = &e->memory->estates;
    while (*at != e) at = &(*at)->next;
    *at = e->next;
    ad__heap_free(e->heap);
    free(e);
}
