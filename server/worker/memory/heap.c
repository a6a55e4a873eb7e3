#include "server/worker/memory/heap.h"

#include <stdlib.h>

#include "protocol/base.h"
#include "server/common/os.h"

#define STEPS 16 /* classes between two powers of two */
#define STEP_BITS 4
#define POWERS 32
#define BATCH 128 /* metadata is allocated for so many chunks at a time */

/* Its chunks follow, each from the beginning of a line of the cache. */
typedef struct batch {
    struct batch *next;
} batch;

struct ad_heap {
    ad_chunk *list[POWERS][STEPS];
    uint32_t powers;        /* bit p: some list[p] is not empty */
    uint32_t steps[POWERS]; /* bit s: list[p][s] is not empty */
    ad_chunk *spare;
    batch *batches;
};

typedef struct place {
    unsigned power, step;
} place;

/* The class that holds free chunks of n grains. */
static place place_of(uint64_t n) {
    if (n < STEPS) return (place){0, (unsigned)n};
    unsigned top = 63 - (unsigned)__builtin_clzll(n);
    return (place){top - STEP_BITS + 1, (unsigned)(n >> (top - STEP_BITS)) & (STEPS - 1)};
}

/* The least class all of whose chunks have at least n grains. */
static place place_for(uint64_t n) {
    if (n < STEPS) return place_of(n);
    unsigned top = 63 - (unsigned)__builtin_clzll(n);
    return place_of(n + (1ull << (top - STEP_BITS)) - 1);
}

static void link_free(ad_heap *h, ad_chunk *c) {
    place p = place_of(c->size / AD_HEAP_GRAIN);
    ad_chunk **head = &h->list[p.power][p.step];
    c->free = true;
    c->prev = NULL;
    c->next = *head;
    if (*head) (*head)->prev = c;
    *head = c;
    h->powers |= 1u << p.power;
    h->steps[p.power] |= 1u << p.step;
}

static void unlink_free(ad_heap *h, ad_chunk *c) {
    place p = place_of(c->size / AD_HEAP_GRAIN);
    c->free = false;
    if (c->next) c->next->prev = c->prev;
    if (c->prev) {
        c->prev->next = c->next;
        return;
    }
    h->list[p.power][p.step] = c->next;
    if (c->next) return;
    h->steps[p.power] &= ~(1u << p.step);
    if (!h->steps[p.power]) h->powers &= ~(1u << p.power);
}

static ad_chunk *find(ad_heap *h, place p) {
    uint32_t steps = h->steps[p.power] & (~0u << p.step);
    if (!steps) {
        uint32_t powers = p.power + 1 < POWERS ? h->powers & (~0u << (p.power + 1)) : 0;
        if (!powers) return NULL;
        p.power = (unsigned)__builtin_ctz(powers);
        steps = h->steps[p.power];
    }
    return h->list[p.power][__builtin_ctz(steps)];
}

/* A chunk large enough in the class below the one that surely fits: only when nothing else is left. */
static ad_chunk *find_tight(ad_heap *h, uint64_t n) {
    place p = place_of(n);
    for (ad_chunk *c = h->list[p.power][p.step]; c; c = c->next)
        if (c->size >= n * AD_HEAP_GRAIN) return c;
    return NULL;
}

static void forget(ad_heap *h, ad_chunk *c) {
    c->next = h->spare;
    h->spare = c;
}

static bool refill(ad_heap *h) {
    batch *b = ad__os.malloc(sizeof *b + AD_LINE + BATCH * sizeof(ad_chunk));
    if (!b) return false;
    b->next = h->batches;
    h->batches = b;
    ad_chunk *chunk = ad__os_line(b + 1);
    for (int i = BATCH - 1; i >= 0; i--) forget(h, &chunk[i]);
    return true;
}

static ad_chunk *metadata(ad_heap *h) {
    if (!h->spare && !refill(h)) return NULL;
    ad_chunk *c = h->spare;
    h->spare = c->next;
    return c;
}

ad_heap *ad__heap_new(void) { return ad__os.calloc(1, sizeof(ad_heap)); }

void ad__heap_free(ad_heap *h) {
    while (h && h->batches) {
        batch *b = h->batches;
        h->batches = b->next;
        free(b);
    }
    free(h);
}

static ad_chunk *add(ad_heap *h, void *range, uint64_t size) {
    ad_chunk *c = metadata(h);
    if (!c) return NULL;
    *c = (ad_chunk){.range = range, .size = size / AD_HEAP_GRAIN * AD_HEAP_GRAIN};
    link_free(h, c);
    return c;
}

int ad__heap_add(ad_heap *h, void *range, uint64_t size) { return add(h, range, size) ? 0 : AD_E_MEMORY; }

/* Cut what c has above size off, as a chunk that is listed nowhere. NULL: that is nothing, or there is no metadata for
 * it, and c stays as it is. */
static ad_chunk *cut(ad_heap *h, ad_chunk *c, uint64_t size) {
    ad_chunk *rest = c->size > size ? metadata(h) : NULL;
    if (!rest) return NULL;
    *rest = (ad_chunk){
        .range = c->range, .offset = c->offset + size, .size = c->size - size, .before = c, .after = c->after};
    if (c->after) c->after->before = rest;
    c->after = rest;
    c->size = size;
    return rest;
}

/* The same, and it is free. */
static void split(ad_heap *h, ad_chunk *c, uint64_t size) {
    ad_chunk *rest = cut(h, c, size);
    if (rest) link_free(h, rest);
}

/* The end of the free chunk c, or all of it. What lies there was given back last, and is the likeliest to be in the
 * processor's cache. */
static ad_chunk *take_end(ad_heap *h, ad_chunk *c, uint64_t size) {
    unlink_free(h, c);
    ad_chunk *end = c->size > size ? cut(h, c, c->size - size) : NULL;
    if (!end) return c;
    link_free(h, c);
    return end;
}

ad_chunk *ad__heap_take(ad_heap *h, uint64_t size) {
    if (size > AD_HEAP_MOST) return NULL;
    uint64_t n = (size + AD_HEAP_GRAIN - 1) / AD_HEAP_GRAIN;
    ad_chunk *c = find(h, place_for(n));
    if (!c) c = find_tight(h, n);
    return c ? take_end(h, c, n * AD_HEAP_GRAIN) : NULL;
}

static bool has(const ad_chunk *c, const ad_piece *p) {
    return c && c->free && p->size && p->offset % AD_HEAP_GRAIN == 0 && p->size % AD_HEAP_GRAIN == 0 &&
           p->offset >= c->offset && p->size <= c->size && p->offset - c->offset <= c->size - p->size;
}

/* Take a piece of the free chunk c. */
static int take_piece(ad_heap *h, ad_chunk *c, ad_piece *p) {
    if (!has(c, p)) return AD_E_EXTENT;
    unlink_free(h, c);
    if (p->offset > c->offset) {
        split(h, c, p->offset - c->offset);
        link_free(h, c);
        if (c->offset + c->size > p->offset) return AD_E_MEMORY;
        c = c->after;
        unlink_free(h, c);
    }
    split(h, c, p->size);
    p->chunk = c;
    return 0;
}

int ad__heap_add_used(ad_heap *h, void *range, uint64_t size, ad_piece *piece, size_t n) {
    ad_chunk *first = add(h, range, size), *rest = first;
    int status = first ? 0 : AD_E_MEMORY;
    size_t taken = 0;
    while (!status && taken < n) {
        status = take_piece(h, rest, &piece[taken]);
        if (!status) rest = piece[taken++].chunk->after;
    }
    if (!status || !first) return status;
    while (taken) ad__heap_give(h, piece[--taken].chunk);
    ad__heap_remove(h, first); /* what is merged is the foremost */
    return status;
}

/* c, which is free and listed nowhere, and the free chunk after it become one. */
static void merge(ad_heap *h, ad_chunk *c) {
    ad_chunk *gone = c->after;
    c->size += gone->size;
    c->after = gone->after;
    if (c->after) c->after->before = c;
    forget(h, gone);
}

ad_chunk *ad__heap_give(ad_heap *h, ad_chunk *c) {
    if (c->after && c->after->free) {
        unlink_free(h, c->after);
        merge(h, c);
    }
    if (c->before && c->before->free) {
        c = c->before;
        unlink_free(h, c);
        merge(h, c);
    }
    link_free(h, c);
    return c->before || c->after ? NULL : c;
}

void ad__heap_remove(ad_heap *h, ad_chunk *whole) {
    unlink_free(h, whole);
    forget(h, whole);
}
