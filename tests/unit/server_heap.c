/* Places of blocks in slabs: random operations against a map of every grain. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "protocol/base.h"
#include "server/worker/memory/heap.h"
#include "tests/unit/random.h"

#define RANGES 3
#define GRAINS 4096
#define LIVE 600

static uint64_t seed;

static char owner[RANGES][GRAINS]; /* owner of each grain; 0: nobody */

static void mark_block(const ad_chunk *c, uint64_t asked, char from, char to) {
    char *range = c->range;
    cr_assert_eq(c->offset % AD_HEAP_GRAIN, 0);
    cr_assert_geq(c->size, asked);
    cr_assert_lt(c->size, asked + AD_HEAP_GRAIN);
    cr_assert_leq(c->offset + c->size, (uint64_t)GRAINS * AD_HEAP_GRAIN);
    for (uint64_t g = c->offset / AD_HEAP_GRAIN; g < (c->offset + c->size) / AD_HEAP_GRAIN; g++) {
        cr_assert_eq(range[g], from, "grain %lu belongs to %d", (unsigned long)g, range[g]);
        range[g] = to;
    }
}

static uint64_t random_size(void) {
    uint64_t bits = random64(&seed) % 17;
    return 1 + random64(&seed) % (1ull << bits);
}

static uint64_t largest_gap(void) {
    uint64_t best = 0;
    for (int r = 0; r < RANGES; r++)
        for (uint64_t g = 0, run = 0; g < GRAINS; g++) {
            run = owner[r][g] ? 0 : run + 1;
            if (run > best) best = run;
        }
    return best * AD_HEAP_GRAIN;
}

Test(heap, random_operations_never_overlap) {
    ad_chunk *live[LIVE] = {0};
    uint64_t asked[LIVE] = {0};
    unsigned refused = 0;
    ad_heap *h = ad__heap_new();
    seed = 2024;
    memset(owner, 0, sizeof owner);
    for (int r = 0; r < RANGES; r++) cr_assert_eq(ad__heap_add(h, owner[r], GRAINS * AD_HEAP_GRAIN), 0);
    for (int step = 0; step < 200000; step++) {
        int i = (int)(random64(&seed) % LIVE);
        if (live[i]) {
            mark_block(live[i], asked[i], 1, 0);
            ad__heap_give(h, live[i]);
            live[i] = NULL;
        } else if ((live[i] = ad__heap_take(h, asked[i] = random_size()))) {
            mark_block(live[i], asked[i], 0, 1);
        } else {
            refused++;
        }
    }
    cr_assert_gt(refused, 0, "the test never filled the heap");
    int wholes = 0;
    for (int i = 0; i < LIVE; i++)
        if (live[i]) wholes += ad__heap_give(h, live[i]) != NULL;
    cr_assert_eq(wholes, RANGES, "all free chunks of a range must have become one");
    ad__heap_free(h);
}

Test(heap, what_fits_is_given) {
    ad_heap *h = ad__heap_new();
    ad_chunk *live[LIVE] = {0};
    seed = 7;
    memset(owner, 0, sizeof owner);
    cr_assert_eq(ad__heap_add(h, owner[0], GRAINS * AD_HEAP_GRAIN), 0);
    memset(owner[1], 1, sizeof owner[1] + sizeof owner[2]);
    for (int step = 0; step < 1500; step++) {
        int i = (int)(random64(&seed) % LIVE);
        uint64_t size = random_size(), gap = largest_gap();
        if (live[i]) {
            mark_block(live[i], live[i]->size, 1, 0);
            ad__heap_give(h, live[i]);
            live[i] = NULL;
        } else {
            live[i] = ad__heap_take(h, size);
            cr_assert_eq(live[i] != NULL, size <= gap, "%lu bytes, and a gap of %lu", (unsigned long)size,
                         (unsigned long)gap);
            if (live[i]) mark_block(live[i], size, 0, 1);
        }
    }
    ad__heap_free(h);
}

Test(heap, the_whole_range_and_not_a_byte_more) {
    ad_heap *h = ad__heap_new();
    char range;
    cr_assert_null(ad__heap_take(h, 1));
    cr_assert_eq(ad__heap_add(h, &range, 1 << 20), 0);
    cr_assert_null(ad__heap_take(h, (1 << 20) + 1));
    cr_assert_null(ad__heap_take(h, UINT64_MAX));
    ad_chunk *c = ad__heap_take(h, 1 << 20);
    cr_assert_not_null(c);
    cr_assert_null(ad__heap_take(h, 1));
    c = ad__heap_give(h, c);
    cr_assert_not_null(c);
    ad__heap_remove(h, c);
    cr_assert_null(ad__heap_take(h, 1));
    ad__heap_free(h);
}

Test(heap, largest_ranges_and_sizes) {
    ad_heap *h = ad__heap_new();
    char range;
    cr_assert_eq(ad__heap_add(h, &range, AD_HEAP_MOST), 0);
    for (uint64_t size = AD_HEAP_MOST; size; size /= 2) {
        ad_chunk *c = ad__heap_take(h, size);
        cr_assert_not_null(c, "%lu", (unsigned long)size);
        cr_assert_not_null(ad__heap_give(h, c));
    }
    ad__heap_free(h);
}

/* Pieces of a range at random, and the gaps between them are what is left of it. */
Test(heap, what_is_in_use_already) {
    seed = 11;
    for (int round = 0; round < 50; round++) {
        ad_piece piece[LIVE];
        size_t n = 0;
        ad_heap *h = ad__heap_new();
        memset(owner, 0, sizeof owner);
        for (uint64_t at = random64(&seed) % 3; n < LIVE; at += random64(&seed) % 9) {
            uint64_t grains = 1 + random64(&seed) % 40;
            if (at + grains > GRAINS) break;
            piece[n++] = (ad_piece){.offset = at * AD_HEAP_GRAIN, .size = grains * AD_HEAP_GRAIN};
            at += grains;
        }
        cr_assert_eq(ad__heap_add_used(h, owner[0], GRAINS * AD_HEAP_GRAIN, piece, n), 0);
        for (size_t i = 0; i < n; i++) {
            cr_assert_eq(piece[i].chunk->offset, piece[i].offset);
            cr_assert_eq(piece[i].chunk->size, piece[i].size);
            mark_block(piece[i].chunk, piece[i].size, 0, 1);
        }
        for (ad_chunk *c; (c = ad__heap_take(h, AD_HEAP_GRAIN));) mark_block(c, AD_HEAP_GRAIN, 0, 2);
        cr_assert_null(memchr(owner[0], 0, sizeof owner[0]), "all that is not in use is free");
        ad_chunk *whole = NULL;
        for (size_t i = 0; i < n; i++) whole = ad__heap_give(h, piece[i].chunk);
        cr_assert(!whole, "the gaps are in use by now");
        ad__heap_free(h);
    }
}

Test(heap, what_cannot_be_in_use) {
    ad_heap *h = ad__heap_new();
    char range;
    static const ad_piece bad[][3] = {{{0, 128, NULL}, {64, 64, NULL}, {256, 64, NULL}},  /* one in the other */
                                      {{128, 64, NULL}, {0, 64, NULL}, {256, 64, NULL}},  /* out of order */
                                      {{0, 64, NULL}, {128, 64, NULL}, {960, 128, NULL}}, /* beyond the end */
                                      {{0, 64, NULL}, {100, 64, NULL}, {256, 64, NULL}},  /* not at a grain */
                                      {{0, 64, NULL}, {128, 0, NULL}, {256, 64, NULL}},   /* nothing */
                                      {{0, 1024, NULL}, {1024, 64, NULL}, {2048, 64, NULL}},
                                      {{64, UINT64_MAX - 63, NULL}, {128, 64, NULL}, {256, 64, NULL}}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        ad_piece piece[3];
        memcpy(piece, bad[i], sizeof piece);
        cr_assert_eq(ad__heap_add_used(h, &range, 1024, piece, 3), AD_E_EXTENT, "%zu", i);
        cr_assert_null(ad__heap_take(h, 1), "nothing of it stays");
    }
    ad__heap_free(h);
}
