/* The journal's memory: pieces that do not overlap, found again by another mapping, used again, given back. */
#include <criterion/criterion.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "random.h"
#include "server/worker/journal/journal.h"

enum { PIECES = 200 };

static ad_journal *open_journal(void) {
    ad_journal *l = NULL;
    ad_fault fault = {0};
    cr_assert_eq(ad__journal_open(&l, &fault), 0, "%s", fault.text);
    return l;
}

static size_t some_size(uint64_t *seed) {
    uint64_t power = random64(seed) % 18;
    return (size_t)(random64(seed) % (2ull << power)) + 1;
}

static bool is_filled(const uint8_t *bytes, size_t n, uint8_t with) {
    return !n || (bytes[0] == with && !memcmp(bytes, bytes + 1, n - 1));
}

Test(journal, pieces_do_not_overlap) {
    ad_journal *l = open_journal();
    uint8_t *piece[PIECES] = {0}, mark[PIECES];
    size_t size[PIECES];
    uint64_t seed = 3;
    for (int i = 0; i < 5000; i++) {
        size_t k = random64(&seed) % PIECES;
        if (piece[k]) {
            cr_assert(is_filled(piece[k], size[k], mark[k]), "%d: %zu bytes", i, size[k]);
            ad__journal_free(l, piece[k]);
        }
        size[k] = some_size(&seed);
        mark[k] = (uint8_t)random64(&seed);
        piece[k] = ad__journal_alloc(l, size[k]);
        cr_assert_not_null(piece[k]);
        cr_assert_eq((uintptr_t)piece[k] % 16, 0);
        memset(piece[k], mark[k], size[k]);
    }
    ad__journal_close(l);
}

Test(journal, another_mapping_shows_the_same) {
    ad_journal *l = open_journal();
    char *text = ad__journal_alloc(l, 6);
    memcpy(text, "hello", 6);
    ad_at at = ad__journal_at(l, text);
    cr_assert_eq(ad__journal_get(l, at), text);
    cr_assert_null(ad__journal_get(l, 0));
    cr_assert_eq(ad__journal_at(l, NULL), 0);
    char *other = mmap(NULL, 1 << 20, PROT_READ, MAP_SHARED, ad__journal_descriptor(l), 0);
    cr_assert_neq(other, MAP_FAILED);
    cr_assert_eq(((ad_journal_head *)(void *)other)->magic, AD_JOURNAL_MAGIC);
    cr_assert_str_eq(other + at, "hello");
    munmap(other, 1 << 20);
    ad__journal_close(l);
}

Test(journal, large_pieces_go_back_to_the_system) {
    ad_journal *l = open_journal();
    struct stat before, full, after;
    fstat(ad__journal_descriptor(l), &before);
    for (int i = 0; i < 2; i++) {
        void *p = ad__journal_alloc(l, 16 << 20);
        memset(p, 1, 16 << 20);
        fstat(ad__journal_descriptor(l), &full);
        ad__journal_free(l, p);
    }
    fstat(ad__journal_descriptor(l), &after);
    cr_assert_geq(full.st_blocks - before.st_blocks, (16 << 20) / 512);
    cr_assert_leq(after.st_blocks - before.st_blocks, 64);
    cr_assert_null(ad__journal_alloc(l, AD_JOURNAL_ADDRESSES));
    ad__journal_close(l);
}

/* Count the bytes of memory that a journal takes. */
static uint64_t count_memory(const ad_journal *l) {
    struct stat st;
    cr_assert_eq(fstat(ad__journal_descriptor(l), &st), 0);
    return (uint64_t)st.st_blocks * 512;
}

Test(journal, some_large_pieces_keep_their_pages) {
    enum { COUNT = 32, SIZE = 1 << 20 };
    ad_journal *l = open_journal();
    void *piece[COUNT];
    for (int again = 0; again < 3; again++) {
        for (int i = 0; i < COUNT; i++) {
            piece[i] = ad__journal_alloc(l, SIZE);
            memset(piece[i], 1, SIZE);
        }
        for (int i = 0; i < COUNT; i++) ad__journal_free(l, piece[i]);
        cr_expect_geq(count_memory(l), 12 << 20, "they are used again without pages of the system's");
        cr_expect_leq(count_memory(l), 17 << 20, "and there is an end to it");
    }
    ad__journal_close(l);
}

Test(journal, holders_keep_their_places) {
    ad_journal *l = open_journal();
    uint32_t place[300];
    for (uint64_t i = 0; i < 300; i++) {
        ad_journal_holder *h = ad__journal_alloc(l, sizeof *h);
        *h = (ad_journal_holder){.uses = i};
        place[i] = ad__journal_hold(l, h);
        cr_assert_neq(place[i], 0);
    }
    for (uint64_t i = 0; i < 300; i += 2) ad__journal_release(l, place[i]);
    for (uint64_t i = 0; i < 300; i++) {
        const ad_journal_holder *h = ad__journal_holder(l, place[i]);
        if (i % 2 == 0) cr_assert_null(h);
        else cr_assert_eq(h->uses, i);
    }
    ad_journal_holder *again = ad__journal_alloc(l, sizeof *again);
    *again = (ad_journal_holder){0};
    cr_assert_eq(ad__journal_hold(l, again), place[298], "a place that was given back");
    ad__journal_release(l, 0);
    ad__journal_close(l);
}

Test(journal, without_one_it_is_any_memory) {
    void *p = ad__journal_alloc(NULL, 100);
    cr_assert_not_null(p);
    ad__journal_free(NULL, p);
}
