/* Inline allocation from an arena, for code that allocates for each field of a message. */
#ifndef AD_PROTOCOL_ARENA_H
#define AD_PROTOCOL_ARENA_H

#include "protocol/op.h"

#define AD_ARENA_ALIGN 16

struct ad_arena_block {
    struct ad_arena_block *next;
    size_t size, used; /* multiples of the alignment */
    _Alignas(AD_ARENA_ALIGN) unsigned char data[];
};

/* Allocate from the arena's block, or call ad__arena_alloc where that has no room. */
static inline void *ad__arena_take(ad_arena *arena, size_t size) {
    struct ad_arena_block *block = arena->block;
    const size_t used = (size + AD_ARENA_ALIGN - 1) & ~(size_t)(AD_ARENA_ALIGN - 1);

    if (!block || size > block->size - block->used) return ad__arena_alloc(arena, size);
    block->used += used;
    return block->data + (block->used - used);
}

#endif
