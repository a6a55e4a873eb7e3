/* The table of buffers against an array of what must be in it. */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "server/worker/memory/buffers.h"

#define IDS 5000

static uint64_t visited;
static void visit_buffer(void *user, ad_buffer *b) {
    (void)user;
    (void)b;
    visited++;
}

/* Ids as clients choose them: counting, far apart, all in one place of the table. */
static uint64_t id_of(int i) {
    switch (i % 3) {
    case 0: return (uint64_t)i + 1;
    case 1: return UINT64_MAX - (uint64_t)i * 4096;
    default: return (uint64_t)i << 40;
    }
}

Test(buffers, random_operations) {
    ad_buffers t;
    static ad_buffer *there[IDS];
    uint64_t count = 0;
    unsigned long state = 11;
    ad__buffers_init(&t, 1u << 20);
    for (int step = 0; step < 300000; step++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        int i = (int)((state >> 33) % IDS);
        ad_buffer *made = NULL;
        cr_assert_eq(ad__buffers_find(&t, id_of(i)), there[i]);
        int status = ad__buffers_add(&t, id_of(i), &made, NULL);
        cr_assert_eq(status, there[i] ? AD_E_VALUE : 0);
        if (!there[i]) {
            cr_assert_eq(made->id, id_of(i));
            there[i] = made;
            count++;
        } else {
            ad__buffers_remove(&t, there[i]);
            there[i] = NULL;
            count--;
        }
        cr_assert_eq(t.count, count);
    }
    for (int i = 0; i < IDS; i++) cr_assert_eq(ad__buffers_find(&t, id_of(i)), there[i]);
    ad__buffers_clear(&t, visit_buffer, NULL);
    cr_assert_eq(visited, count);
    cr_assert_null(ad__buffers_find(&t, id_of(0)));
}

/* Whatever a client says that it frees. */
Test(buffers, prefetching_changes_nothing) {
    ad_buffers t;
    ad_buffer *b;
    uint64_t ids[100];
    ad__buffers_init(&t, 1000);
    for (int i = 0; i < 100; i++) ids[i] = i % 3 ? id_of(i) : i % 2 ? 0 : 7;
    ad__buffers_prefetch(&t, ids, 100);
    for (int i = 0; i < 50; i++) cr_assert_eq(ad__buffers_add(&t, id_of(i), &b, NULL), 0);
    for (size_t n = 0; n <= 100; n++) ad__buffers_prefetch(&t, ids + 100 - n, n);
    for (int i = 0; i < 100; i++) cr_assert_eq(ad__buffers_find(&t, id_of(i)) != NULL, i < 50);
    cr_assert_eq(t.count, 50);
    ad__buffers_clear(&t, visit_buffer, NULL);
}

Test(buffers, limits) {
    ad_buffers t;
    ad_buffer *b;
    ad_fault fault;
    ad__buffers_init(&t, 2);
    cr_assert_null(ad__buffers_find(&t, 1));
    cr_assert_eq(ad__buffers_add(&t, 0, &b, &fault), AD_E_VALUE);
    cr_assert_eq(ad__buffers_add(&t, 1, &b, &fault), 0);
    cr_assert_eq(ad__buffers_add(&t, 2, &b, &fault), 0);
    cr_assert_eq(ad__buffers_add(&t, 3, &b, &fault), AD_E_LIMIT);
    cr_assert_null(ad__buffers_find(&t, 0));
    ad__buffers_clear(&t, visit_buffer, NULL);
}
