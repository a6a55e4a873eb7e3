/* Heaps divide slabs: two-level segregated fit, with metadata outside the memory that is divided.
 *
 *     range   ├── chunk ──┼─ chunk ─┼───── chunk ─────┼── chunk ──┤
 *                  used      free          used           free
 *                             │                            │
 *     lists by size   ────────┴────────────────────────────┘
 *
 * An ad_heap divides any number of ranges (slabs) into chunks. Neighbours that are free are merged. One thread at a
 * time may use a heap. */
#ifndef AD_SERVER_WORKER_MEMORY_HEAP_H
#define AD_SERVER_WORKER_MEMORY_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AD_HEAP_GRAIN 64          /* bytes; every chunk begins and ends at a multiple of it */
#define AD_HEAP_MOST (1ull << 40) /* bytes; the largest range and the largest chunk */

typedef struct ad_chunk ad_chunk;

/* A used or free piece of a range. Other files read range, offset and size only. */
struct ad_chunk {
    void *range;              /* range as it was given to ad__heap_add */
    uint64_t offset, size;    /* bytes; multiples of AD_HEAP_GRAIN */
    ad_chunk *before, *after; /* neighbours in the range */
    ad_chunk *next, *prev;    /* neighbours in the list of free chunks of this class; next also links spare metadata */
    bool free;
};

typedef struct ad_heap ad_heap;

ad_heap *ad__heap_new(void);    /* Make a heap without ranges. NULL: no memory. */
void ad__heap_free(ad_heap *h); /* Free a heap, with the metadata of chunks that are still used. */
/* Add a range of so many bytes, all free. AD_E_MEMORY. */
int ad__heap_add(ad_heap *h, void *range, uint64_t size);
/* A piece of a range that is in use when the range is added. */
typedef struct ad_piece {
    uint64_t offset, size;
    ad_chunk *chunk;
} ad_piece;

/* Add a range of which n pieces are in use, in the order of their offsets, and set their chunks. AD_E_EXTENT: pieces
 * overlap or leave the range; AD_E_MEMORY. */
int ad__heap_add_used(ad_heap *h, void *range, uint64_t size, ad_piece *piece, size_t n);
/* Take a chunk of `size` bytes (not 0), rounded up to the grain. NULL: no range has so much in one piece, or no
 * memory for metadata. */
ad_chunk *ad__heap_take(ad_heap *h, uint64_t size);
/* Give a chunk back. Returns the chunk that is its whole range if that is free now, for ad__heap_remove; else NULL. */
ad_chunk *ad__heap_give(ad_heap *h, ad_chunk *c);
/* Remove a range, given its only chunk, which is free. */
void ad__heap_remove(ad_heap *h, ad_chunk *whole);

#endif
