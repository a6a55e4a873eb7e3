/* Allocation from an arena: see op.h. */
#include "protocol/arena.h"

#include <stdlib.h>

enum { BLOCK_SIZE = 32768 }; /* bytes of a block: about sixty operations */

static struct ad_arena_block *allocate_block(size_t size) {
    struct ad_arena_block *block;

    if (size > SIZE_MAX - sizeof *block) return NULL;
    block = malloc(sizeof *block + size);
    if (block) *block = (struct ad_arena_block){.size = size};
    return block;
}

void *ad__arena_alloc(ad_arena *arena, size_t size) {
    struct ad_arena_block *block = arena->block;

    if (size > SIZE_MAX - AD_ARENA_ALIGN) return NULL;
    size = (size + AD_ARENA_ALIGN - 1) & ~(size_t)(AD_ARENA_ALIGN - 1);
    if (!block || block->size - block->used < size) {
        block = allocate_block(size > BLOCK_SIZE ? size : BLOCK_SIZE);
        if (!block) return NULL;
        block->next = arena->block;
        arena->block = block;
    }
    block->used += size;
    return block->data + (block->used - size);
}

static void free_blocks(struct ad_arena_block *block) {
    while (block) {
        struct ad_arena_block *next = block->next;
        free(block);
        block = next;
    }
}

void ad__arena_reset(ad_arena *arena) {
    struct ad_arena_block *keep = arena->block;

    if (!keep) return;
    /* A large block is freed: one hostile message must not hold its memory for ever. */
    if (keep->size > BLOCK_SIZE) {
        ad__arena_free(arena);
        return;
    }
    free_blocks(keep->next);
    keep->next = NULL;
    keep->used = 0;
}

void ad__arena_free(ad_arena *arena) {
    free_blocks(arena->block);
    arena->block = NULL;
}
