/* The table of buffers against an array of what must be in it. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

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

/* Three sessions of a principal have at most three batches together. The end of one makes room for others. */
Test(buffers, limit_of_a_principal) {
    enum { EACH = 64, MOST = 3 * EACH };
    ad_buffer_total *list = NULL, *total = ad__buffer_total_open(&list, "uid:2001", MOST);
    ad_buffers t[2];
    ad_buffer *b;
    ad_fault fault;
    for (int i = 0; i < 2; i++) {
        ad__buffers_init(&t[i], 1u << 20);
        t[i].total = total;
    }
    cr_assert_eq(ad__buffer_total_open(&list, "uid:2001", MOST), total);
    for (uint64_t id = 1; id <= 2 * EACH; id++) cr_assert_eq(ad__buffers_add(&t[0], id, &b, &fault), 0);
    for (uint64_t id = 1; id <= EACH; id++) cr_assert_eq(ad__buffers_add(&t[1], id, &b, &fault), 0);
    cr_assert_eq(ad__buffers_add(&t[1], MOST, &b, &fault), AD_E_LIMIT);
    cr_assert_not_null(strstr(fault.text, "uid:2001"));
    cr_assert_null(ad__buffers_find(&t[1], MOST));
    ad__buffers_clear(&t[0], visit_buffer, NULL);
    cr_assert_eq(total->room, EACH);
    cr_assert_eq(ad__buffers_add(&t[1], MOST, &b, &fault), 0);
    ad__buffers_clear(&t[1], visit_buffer, NULL);
    ad__buffer_total_close(&list, total);
    ad__buffer_total_close(&list, total);
    cr_assert_null(list);
}

static void *add_buffers(void *table) {
    ad_buffer *b;
    ad_fault fault;
    for (uint64_t id = 1; id <= IDS; id++) cr_assert_eq(ad__buffers_add(table, id, &b, &fault), 0);
    return NULL;
}

/* Sessions of a principal begin while another one of it adds buffers (the thread sanitizer looks). */
Test(buffers, a_limit_is_set_while_another_session_adds_buffers) {
    ad_buffer_total *list = NULL, *total = ad__buffer_total_open(&list, "uid:2001", IDS + 64);
    ad_buffers t;
    pthread_t thread;
    ad__buffers_init(&t, IDS);
    t.total = total;
    cr_assert_eq(pthread_create(&thread, NULL, add_buffers, &t), 0);
    for (int i = 0; i < 100; i++) {
        cr_assert_eq(ad__buffer_total_open(&list, "uid:2001", 2 * IDS), total);
        ad__buffer_total_close(&list, total);
    }
    pthread_join(thread, NULL);
    cr_assert_eq(total->most, 2 * IDS);
    ad__buffers_clear(&t, visit_buffer, NULL);
    ad__buffer_total_close(&list, total);
}

/* A table that is cleared by parts visits each buffer once, and no part visits more than its slots have. */
Test(buffers, clearing_by_parts) {
    ad_buffers t;
    ad_buffer *b;
    uint64_t parts = 0, before;
    ad__buffers_init(&t, 1u << 20);
    for (uint64_t id = 1; id <= 5000; id++) cr_assert_eq(ad__buffers_add(&t, id, &b, NULL), 0);
    bool more;
    do {
        before = visited;
        more = ad__buffers_clear_part(&t, 1000, visit_buffer, NULL);
        cr_assert_leq(visited - before, 1000);
        parts++;
    } while (more);
    cr_assert_eq(visited, 5000);
    cr_assert_gt(parts, 5);
    cr_assert_eq(t.count, 0);
    ad__buffers_clear(&t, visit_buffer, NULL);
    cr_assert_eq(visited, 5000);
}
