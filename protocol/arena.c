#include "protocol/op.h"

#include <stdlib.h>

enum { BLOCK_SIZE = 32768 }; /* what some sixty operations take */

struct ad_arena_block {
    struct ad_arena_block *next;
    size_t size; /* a multiple of the alignment */
    _Alignas(AD_ARENA_ALIGN) unsigned char data[];
};

static struct ad_arena_block *block_new(size_t size) {
    struct ad_arena_block *block;

    if (size > SIZE_MAX - sizeof *block) return NULL;
    block = malloc(sizeof *block + size);
    if (block != NULL) *block = (struct ad_arena_block){.size = size};
    return block;
}

static void use(ad_arena *arena, struct ad_arena_block *block) {
    arena->block = block;
    arena->at = block->data;
    arena->end = block->data + block->size;
}

void *ad__arena_grow(ad_arena *arena, size_t size) {
    struct ad_arena_block *block;

    if (size == 0) size = 1;
    if (size > SIZE_MAX - AD_ARENA_ALIGN) return NULL;
    size = (size + AD_ARENA_ALIGN - 1) & ~(size_t)(AD_ARENA_ALIGN - 1);
    if (size > (size_t)(arena->end - arena->at)) {
        block = block_new(size > BLOCK_SIZE ? size : BLOCK_SIZE);
        if (block == NULL) return NULL;
        block->next = arena->block;
        use(arena, block);
    }
    arena->at += size;
    return arena->at - size;
}

static void free_blocks(struct ad_arena_block *block) {
    while (block != NULL) {
        struct ad_arena_block *next = block->next;
        free(block);
        block = next;
    }
}

void ad__arena_reset(ad_arena *arena) {
    struct ad_arena_block *keep = arena->block;

    if (keep == NULL) return;
    if (keep->size > BLOCK_SIZE) { /* one hostile message does not pin its memory for ever */
        ad__arena_free(arena);
        return;
    }
    if (keep->next != NULL) free_blocks(keep->next);
    keep->next = NULL;
    use(arena, keep);
}

void ad__arena_free(ad_arena *arena) {
    free_blocks(arena->block);
    *arena = (ad_arena)AD_ARENA_INIT;
}
