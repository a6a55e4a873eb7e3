#include "server/worker/memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/common/os.h"

#define OWN_GRAIN (2u << 20)  /* a slab of one array is a multiple of this, so that it fits the next one as well */
#define FIRST_SLAB (2u << 20) /* size of an estate's first cut slab; each next one is as large as all before */
#define SHARES 16             /* of a shared slab, which is as large */
#define SHARE (FIRST_SLAB / SHARES)
#define EMPTIES 4 /* cut slabs without arrays that an estate keeps */

/* One part of so many of all memory may be in an estate's spare own slabs: the first touch of a page costs several
 * times what it costs to compute with it. */
#define SPARE_SHARE 8

struct ad_slab {
    ad_slab *next, *prev; /* in its estate's list of slabs, or of spare own ones */
    ad_slab_map map;
    uint64_t id;
    uint64_t high;         /* no byte from here on has ever been handed out: they are zero */
    ad_chunk *whole;       /* cut slabs: set while it holds nothing */
    ad_slab *parent;       /* a share: of this shared slab */
    unsigned place;        /* and the number of the share */
    uint32_t taken, dirty; /* a shared slab: shares that somebody has, or has had */
    char principal[64];    /* a shared slab: whose */
};

struct ad_estate {
    ad_estate *next;
    ad_memory *memory;
    ad_heap *heap;
    ad_stream *stream;
    ad_slab *cut;      /* slabs that are cut into blocks */
    ad_slab *spare;    /* own slabs without an array, to be used again */
    ad_slab *doomed;   /* to be closed once the stream has passed ... */
    ad_slab *expected; /* ... and those for which `passed` has been recorded */
    ad_event *passed;
    unsigned empty; /* cut slabs that hold nothing */
    uint64_t used, spare_bytes, cut_bytes, bytes;
    uint64_t away; /* moved to host memory */
    uint64_t most; /* that the principal may have in use; 0: no limit of its own */
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

static void slab_drop(ad_memory *m, const char *principal, ad_slab *s) {
    m->slab_bytes -= s->map.size;
    m->slabs--;
    m->announce(m->user, principal, s->id, s->map.size, -1);
    m->backend->slab_close(m->device, &s->map);
    free(s);
}

static void share_drop(ad_memory *m, ad_slab *share) {
    ad_slab *parent = share->parent;
    parent->taken &= ~(1u << share->place);
    if (!parent->taken) {
        unlink_slab(&m->shared, parent);
        slab_drop(m, parent->principal, parent);
    }
    free(share);
}

static void slab_close(ad_estate *e, ad_slab *s) {
    e->bytes -= s->map.size;
    if (s->parent) share_drop(e->memory, s);
    else slab_drop(e->memory, e->principal, s);
}

static void close_all(ad_estate *e, ad_slab **list) {
    for (ad_slab *s = *list, *next; s; s = next) {
        next = s->next;
        slab_close(e, s);
    }
    *list = NULL;
}

/* Ask for the point in the stream at which the doomed slabs are no longer used. False: that is not possible. */
static bool expect(ad_estate *e) {
    const ad_backend *b = e->memory->backend;
    if (!e->passed && b->event_open(e->memory->device, false, &e->passed, NULL)) return false;
    if (b->event_record(e->passed, e->stream, NULL)) return false;
    e->expected = e->doomed;
    e->doomed = NULL;
    return true;
}

bool ad__estate_reap(ad_estate *e) {
    if (e->expected && e->memory->backend->event_done(e->passed, NULL) == 1) close_all(e, &e->expected);
    if (e->doomed && !e->expected) expect(e);
    return e->expected || e->doomed;
}

/* Close a slab that is on no list, when it may be. */
static void doom(ad_estate *e, ad_slab *s) {
    if (e->stream && e->memory->backend->asynchronous) {
        link_slab(&e->doomed, s);
        ad__estate_reap(e);
    } else {
        slab_close(e, s);
    }
}

static void take_spare(ad_estate *e, ad_slab *s) {
    unlink_slab(&e->spare, s);
    e->spare_bytes -= s->map.size;
}

static void drop_spare(ad_estate *e, ad_slab *s) {
    take_spare(e, s);
    doom(e, s);
}

static void drop_empty(ad_estate *e, ad_slab *s) {
    unlink_slab(&e->cut, s);
    ad__heap_remove(e->heap, s->whole);
    e->empty--;
    e->cut_bytes -= s->map.size;
    doom(e, s);
}

void ad__estate_trim(ad_estate *e) {
    while (e->spare) drop_spare(e, e->spare);
    for (ad_slab *s = e->cut, *next; s && e->empty; s = next) {
        next = s->next;
        if (s->whole) drop_empty(e, s);
    }
}

void ad__estate_count(const ad_estate *e, uint64_t *bytes, uint64_t *free_blocks) {
    *bytes = e->bytes;
    *free_blocks = e->empty;
    for (const ad_slab *s = e->spare; s; s = s->next) ++*free_blocks;
}

/* Everybody's spare slabs go before somebody is told that there is no memory, and then it is worth while to wait until
 * the device has let go of them. */
static void give_back_all(ad_memory *m, uint64_t size) {
    for (ad_estate *e = m->estates; e && m->slab_bytes + size > m->limit; e = e->next) {
        ad__estate_trim(e);
        if (!e->doomed && !e->expected) continue;
        if (m->backend->stream_wait(e->stream, NULL)) continue; /* a lost device is found by the next who asks */
        close_all(e, &e->expected);
        close_all(e, &e->doomed);
    }
}

static bool make_room(ad_memory *m, uint64_t size) {
    if (m->slab_bytes + size > m->limit) give_back_all(m, size);
    return m->slab_bytes + size <= m->limit;
}

static uint64_t principal_used(const ad_estate *mine, bool and_away) {
    uint64_t used = 0;
    for (const ad_estate *e = mine->memory->estates; e; e = e->next)
        if (!strcmp(e->principal, mine->principal)) used += e->used + (and_away ? e->away : 0);
    return used;
}

static int no_room(ad_estate *e, uint64_t size, ad_fault *fault) {
    char want[16], limit[16], mine[16], others[16];
    ad_memory *m = e->memory;
    uint64_t used = principal_used(e, false);
    ad__bytes_text(size, want);
    ad__bytes_text(m->limit, limit);
    ad__bytes_text(used, mine);
    ad__bytes_text(m->used - used, others);
    return ad__fault(fault, AD_E_MEMORY,
                     "out of device memory: %s more do not fit in %s, of which %s holds %s and "
                     "others %s",
                     want, limit, e->principal, mine, others);
}

static ad_slab *slab_create(ad_estate *e, uint64_t size, ad_fault *fault) {
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
    if (status == AD_E_MEMORY) { /* somebody else may have taken what the limit left */
        give_back_all(m, m->limit);
        status = m->backend->slab_create(m->device, size, &s->map, &why);
    }
    if (status) {
        free(s);
        ad__fault(fault, status, "%s", *why.text ? why.text : ad__error_text(status));
        return NULL;
    }
    s->id = ++*m->next_id;
    m->slab_bytes += s->map.size;
    m->slabs++;
    int fd = ad__os.dup(s->map.fd);
    if (fd >= 0) m->announce(m->user, e->principal, s->id, s->map.size, fd);
    return s;
}

/* A shared slab of this principal with room, if need be a new one. */
static ad_slab *shared_slab(ad_estate *e, ad_fault *fault) {
    ad_memory *m = e->memory;
    ad_slab *s = m->shared;
    while (s && (s->taken == (1u << SHARES) - 1 || strcmp(s->principal, e->principal))) s = s->next;
    if (s || !(s = slab_create(e, FIRST_SLAB, fault))) return s;
    snprintf(s->principal, sizeof s->principal, "%s", e->principal);
    link_slab(&m->shared, s);
    return s;
}

/* What an estate gets first. */
static ad_slab *share_create(ad_estate *e, ad_fault *fault) {
    ad_slab *share = ad__os.calloc(1, sizeof *share), *parent = share ? shared_slab(e, fault) : NULL;
    if (!parent) {
        if (!share) ad__fault(fault, AD_E_MEMORY, "out of host memory");
        free(share);
        return NULL;
    }
    unsigned place = (unsigned)__builtin_ctz(~parent->taken);
    share->parent = parent;
    share->place = place;
    share->map = (ad_slab_map){.base = (char *)parent->map.base + place * SHARE, .size = SHARE, .fd = -1};
    share->high = parent->dirty >> place & 1 ? SHARE : 0;
    parent->taken |= 1u << place;
    parent->dirty |= 1u << place;
    return share;
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
    } else if (!(s = slab_create(e, rounded, &why))) {
        return ad__fault(fault, why.code, "%s", why.text);
    } else {
        e->bytes += s->map.size;
    }
    *out = (ad_block){.slab = s, .address = s->map.base, .size = s->map.size, .clean = s->high == 0};
    s->high = s->map.size;
    charge(e, out->size);
    return 0;
}

/* A cut slab in which there is room for size bytes. */
static int add_cut_slab(ad_estate *e, uint64_t size, ad_fault *fault) {
    ad_fault why = {0};
    uint64_t bytes = FIRST_SLAB;
    while (bytes < 2 * size || bytes < e->cut_bytes) bytes *= 2;
    if (bytes > e->memory->slab_size) bytes = e->memory->slab_size;
    bool first = !e->cut_bytes && size <= SHARE / 4 && e->memory->slab_size >= FIRST_SLAB;
    ad_slab *s = first ? share_create(e, &why) : slab_create(e, bytes, &why);
    if (!s) return ad__fault(fault, why.code, "%s", why.text);
    e->bytes += s->map.size;
    if (ad__heap_add(e->heap, s, s->map.size)) {
        slab_close(e, s);
        return ad__fault(fault, AD_E_MEMORY, "out of host memory");
    }
    link_slab(&e->cut, s);
    e->cut_bytes += s->map.size;
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

void ad__estate_away(ad_estate *e, int64_t more) { e->away += (uint64_t)more; }

bool ad__memory_allows(const ad_estate *e, uint64_t size) {
    return !e->most || (size <= e->most && principal_used(e, true) <= e->most - size);
}

static int over_quota(const ad_estate *e, uint64_t size, ad_fault *fault) {
    char want[16], limit[16], mine[16];
    ad__bytes_text(size, want);
    ad__bytes_text(e->most, limit);
    ad__bytes_text(principal_used(e, true), mine);
    return ad__fault(fault, AD_E_MEMORY,
                     "out of memory: %s more are above the %s of a device that %s may have, of which it holds %s", want,
                     limit, e->principal, mine);
}

int ad__memory_take(ad_estate *e, uint64_t size, ad_block *out, ad_fault *fault) {
    if (!ad__memory_allows(e, size)) return over_quota(e, size, fault);
    if (size > e->memory->slab_size / 4) return take_own(e, size, out, fault);
    ad_chunk *c = ad__heap_take(e->heap, size);
    if (!c) {
        int status = add_cut_slab(e, size, fault);
        if (status) return status;
        if (!(c = ad__heap_take(e->heap, size))) return ad__fault(fault, AD_E_MEMORY, "out of host memory");
    }
    hand_out(e, c, out);
    return 0;
}

static void give_own(ad_estate *e, ad_slab *s) {
    if (e->spare_bytes + s->map.size > e->memory->limit / SPARE_SHARE) {
        doom(e, s);
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

ad_estate *ad__estate_open(ad_memory *m, const char *principal, ad_stream *stream) {
    ad_estate *e = ad__os.calloc(1, sizeof *e);
    if (!e) return NULL;
    if (!(e->heap = ad__heap_new())) {
        free(e);
        return NULL;
    }
    snprintf(e->principal, sizeof e->principal, "%s", principal);
    e->memory = m;
    e->stream = stream;
    e->next = m->estates;
    m->estates = e;
    return e;
}

void ad__estate_limit(ad_estate *e, uint64_t most) { e->most = most; }

void ad__estate_close(ad_estate *e) {
    ad__estate_trim(e);
    close_all(e, &e->expected);
    close_all(e, &e->doomed);
    if (e->passed) e->memory->backend->event_close(e->passed);
    ad_estate **at = &e->memory->estates;
    while (*at != e) at = &(*at)->next;
    *at = e->next;
    ad__heap_free(e->heap);
    free(e);
}
