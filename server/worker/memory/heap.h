/* Where in a slab something lies: two-level segregated fit with metadata outside the memory that it divides.
 *
 * An ad_heap divides any number of ranges (slabs) into chunks. Not for several threads at a time. */
#ifndef AD_SERVER_WORKER_MEMORY_HEAP_H
#define AD_SERVER_WORKER_MEMORY_HEAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define AD_HEAP_GRAIN 64          /* every chunk begins and ends at a multiple */
#define AD_HEAP_MOST (1ull << 40) /* largest range and chunk */

typedef struct ad_chunk ad_chunk;

/* A used or free piece of a range. Others read range, offset and size only. */
struct ad_chunk {
    void *range;              /* as given to ad__heap_add */
    uint64_t offset, size;    /* bytes, multiples of the grain */
    ad_chunk *before, *after; /* neighbours in the range */
    ad_chunk *next, *prev;    /* list of free chunks of this class; next also links spare metadata */
    bool free;
};

typedef struct ad_heap ad_heap;

ad_heap *ad__heap_new(void);    /* NULL: no memory */
void ad__heap_free(ad_heap *h); /* whatever is still used in it */
/* Divide size bytes of range from now on. AD_E_MEMORY. */
int ad__heap_add(ad_heap *h, void *range, uint64_t size);
/* A piece of a range that is in use already. */
typedef struct ad_piece {
    uint64_t offset, size;
    ad_chunk *chunk;
} ad_piece;

/* The same where n pieces are in use, in the order of their offsets; sets their chunks. AD_E_EXTENT: they cannot be. */
int ad__heap_add_used(ad_heap *h, void *range, uint64_t size, ad_piece *piece, size_t n);
/* size bytes (not 0), rounded up to the grain; NULL: no range has that much in one piece, or no memory for metadata. */
ad_chunk *ad__heap_take(ad_heap *h, uint64_t size);
/* Give a chunk back. When that leaves its whole range free: the chunk of all of it, which the caller may hand to
 * ad__heap_remove; else NULL. */
ad_chunk *ad__heap_give(ad_heap *h, ad_chunk *c);
/* Forget the range of a chunk that is all of it, and free. */
void ad__heap_remove(ad_heap *h, ad_chunk *whole);

#endif
