#include "server/worker/memory/heap.h"

#include <stdlib.h>

#include "protocol/base.h"
#include "server/common/os.h"

#define STEPS 16 /* size classes between two powers of two */
#define STEP_BITS 4
#define POWERS 32
#define BATCH 128 /* number of chunks whose metadata is allocated at a time */

/* Header of a batch of metadata. The chunks follow, each at the beginning of a cache line. */
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

typedef struct size_class {
    unsigned power, step;
} size_class;

/* Find the class that holds free chunks of n grains. */
static size_class find_class(uint64_t n) {
    if (n < STEPS) return (size_class){0, (unsigned)n};
    unsigned top = 63 - (unsigned)__builtin_clzll(n);
    return (size_class){top - STEP_BITS + 1, (unsigned)(n >> (top - STEP_BITS)) & (STEPS - 1)};
}

/* Find the lowest class in which every chunk has at least n grains. */
static size_class find_class_above(uint64_t n) {
    if (n < STEPS) return find_class(n);
    unsigned top = 63 - (unsigned)__builtin_clzll(n);
    return find_class(n + (1ull << (top - STEP_BITS)) - 1);
}

static void link_free(ad_heap *h, ad_chunk *c) {
    size_class p = find_class(c->size / AD_HEAP_GRAIN);
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
    size_class p = find_class(c->size / AD_HEAP_GRAIN);
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

static ad_chunk *find_free(ad_heap *h, size_class p) {
    uint32_t steps = h->steps[p.power] & (~0u << p.step);
    if (!steps) {
        uint32_t powers = p.power + 1 < POWERS ? h->powers & (~0u << (p.power + 1)) : 0;
        if (!powers) return NULL;
        p.power = (unsigned)__builtin_ctz(powers);
        steps = h->steps[p.power];
    }
    return h->list[p.power][__builtin_ctz(steps)];
}

/* Find a large enough chunk in the class of n grains, not all of whose chunks are. For when no class above has any. */
static ad_chunk *find_tight(ad_heap *h, uint64_t n) {
    size_class p = find_class(n);
    for (ad_chunk *c = h->list[p.power][p.step]; c; c = c->next)
        if (c->size >= n * AD_HEAP_GRAIN) return c;
    return NULL;
}

static void recycle_metadata(ad_heap *h, ad_chunk *c) {
    c->next = h->spare;
    h->spare = c;
}

static bool refill_metadata(ad_heap *h) {
    batch *b = ad__os.malloc(sizeof *b + AD_LINE + BATCH * sizeof(ad_chunk));
    if (!b) return false;
    b->next = h->batches;
    h->batches = b;
    ad_chunk *chunk = ad__os_line(b + 1);
    for (int i = BATCH - 1; i >= 0; i--) recycle_metadata(h, &chunk[i]);
    return true;
}

static ad_chunk *take_metadata(ad_heap *h) {
    if (!h->spare && !refill_metadata(h)) return NULL;
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

static ad_chunk *add_range(ad_heap *h, void *range, uint64_t size) {
    ad_chunk *c = take_metadata(h);
    if (!c) return NULL;
    *c = (ad_chunk){.range = range, .size = size / AD_HEAP_GRAIN * AD_HEAP_GRAIN};
    link_free(h, c);
    return c;
}

int ad__heap_add(ad_heap *h, void *range, uint64_t size) { return add_range(h, range, size) ? 0 : AD_E_MEMORY; }

/* Cut off what chunk c has above `size`, as a chunk in no list. NULL: nothing is above, or no memory for metadata; c
 * is unchanged. */
static ad_chunk *cut_chunk(ad_heap *h, ad_chunk *c, uint64_t size) {
    ad_chunk *rest = c->size > size ? take_metadata(h) : NULL;
    if (!rest) return NULL;
    *rest = (ad_chunk){
        .range = c->range, .offset = c->offset + size, .size = c->size - size, .before = c, .after = c->after};
    if (c->after) c->after->before = rest;
    c->after = rest;
    c->size = size;
    return rest;
}

/* Cut off what chunk c has above `size`, and list it as free. */
static void split_chunk(ad_heap *h, ad_chunk *c, uint64_t size) {
    ad_chunk *rest = cut_chunk(h, c, size);
    if (rest) link_free(h, rest);
}

/* Take the end of the free chunk c, or all of it. The end was given back last, so it is the likeliest part to be in
 * the cache. */
static ad_chunk *take_end(ad_heap *h, ad_chunk *c, uint64_t size) {
    unlink_free(h, c);
    ad_chunk *end = c->size > size ? cut_chunk(h, c, c->size - size) : NULL;
    if (!end) return c;
    link_free(h, c);
    return end;
}

ad_chunk *ad__heap_take(ad_heap *h, uint64_t size) {
    if (size > AD_HEAP_MOST) return NULL;
    uint64_t n = (size + AD_HEAP_GRAIN - 1) / AD_HEAP_GRAIN;
    ad_chunk *c = find_free(h, find_class_above(n));
    if (!c) c = find_tight(h, n);
    return c ? take_end(h, c, n * AD_HEAP_GRAIN) : NULL;
}

static bool has_piece(const ad_chunk *c, const ad_piece *p) {
    return c && c->free && p->size && p->offset % AD_HEAP_GRAIN == 0 && p->size % AD_HEAP_GRAIN == 0 &&
           p->offset >= c->offset && p->size <= c->size && p->offset - c->offset <= c->size - p->size;
}

/* Take the piece p out of the free chunk c. AD_E_EXTENT: it is not all in c; AD_E_MEMORY. */
static int take_piece(ad_heap *h, ad_chunk *c, ad_piece *p) {
    if (!has_piece(c, p)) return AD_E_EXTENT;
    unlink_free(h, c);
    if (p->offset > c->offset) {
        split_chunk(h, c, p->offset - c->offset);
        link_free(h, c);
        if (c->offset + c->size > p->offset) return AD_E_MEMORY;
        c = c->after;
        unlink_free(h, c);
    }
    split_chunk(h, c, p->size);
    p->chunk = c;
    return 0;
}

int ad__heap_add_used(ad_heap *h, void *range, uint64_t size, ad_piece *piece, size_t n) {
    ad_chunk *first = add_range(h, range, size), *rest = first;
    int status = first ? 0 : AD_E_MEMORY;
    size_t taken = 0;
    while (!status && taken < n) {
        status = take_piece(h, rest, &piece[taken]);
        if (!status) rest = piece[taken++].chunk->after;
    }
    if (!status || !first) return status;
    while (taken) ad__heap_give(h, piece[--taken].chunk);
    ad__heap_remove(h, first); /* merging keeps the metadata of the first chunk */
    return status;
}

/* Merge the chunk c, which is in no list, with the free chunk after it. */
static void merge_next(ad_heap *h, ad_chunk *c) {
    ad_chunk *gone = c->after;
    c->size += gone->size;
    c->after = gone->after;
    if (c->after) c->after->before = c;
    recycle_metadata(h, gone);
}

ad_chunk *ad__heap_give(ad_heap *h, ad_chunk *c) {
    if (c->after && c->after->free) {
        unlink_free(h, c->after);
        merge_next(h, c);
    }
    if (c->before && c->before->free) {
        c = c->before;
        unlink_free(h, c);
        merge_next(h, c);
    }
    link_free(h, c);
    return c->before || c->after ? NULL : c;
}

void ad__heap_remove(ad_heap *h, ad_chunk *whole) {
    unlink_free(h, whole);
    recycle_metadata(h, whole);
}
