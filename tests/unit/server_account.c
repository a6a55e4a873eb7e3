/* Accounts of principals: what is charged to whom, what is reserved, and what those are told who get nothing. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/worker/memory/memory.h"

#define MIB (1ull << 20)

static uint64_t has = UINT64_MAX; /* bytes of the device; slabs of more fail */

static int slab_create(ad_device *device, uint64_t size, ad_slab_map *out, ad_fault *f) {
    (void)device;
    if (size > has) return ad__fault(f, AD_E_MEMORY, "no");
    *out = (ad_slab_map){calloc(1, size), size, dup(0)};
    return 0;
}
static void slab_close(ad_device *device, ad_slab_map *slab) {
    (void)device;
    free(slab->base);
    close(slab->fd);
}
static void announce_slab(void *user, const char *principal, uint64_t id, uint64_t size, int fd) {
    (void)user, (void)principal, (void)id, (void)size;
    if (fd >= 0) close(fd);
}

static const ad_backend backend = {.slab_create = slab_create, .slab_close = slab_close};

static ad_memory open_memory(uint64_t limit) {
    static uint64_t last_id;
    return (ad_memory){
        .backend = &backend, .next_id = &last_id, .slab_size = 8 * MIB, .limit = limit, .announce = announce_slab};
}

static ad_fault fault;

static void expect_text(const char *text) { cr_expect_not_null(strstr(fault.text, text), "%s", fault.text); }

Test(account, all_of_a_principal_is_limited_together_and_by_what_it_is_for) {
    ad_memory m = open_memory(256 * MIB);
    ad_stream_arena *a = ad__stream_arena_open(&m, "uid:1", NULL), *b = ad__stream_arena_open(&m, "uid:1", NULL),
                    *c = ad__stream_arena_open(&m, "uid:2", NULL);
    ad_account *account = ad__stream_arena_account(a);
    ad_block x, y, z;
    cr_assert_eq(account, ad__stream_arena_account(b));
    ad__account_grant(account, &(ad_grants){.memory = 20 * MIB});
    cr_assert_eq(ad__memory_take(a, 8 * MIB, &x, &fault), 0);
    cr_assert_eq(ad__memory_borrow(b, 6 * MIB, &y, &fault), 0);
    ad__account_charge(account, AD_USE_WINDOW, 2 * MIB);
    cr_assert_eq(account->total, 16 * MIB);
    cr_assert_eq(ad__memory_take(b, 4 * MIB + 1, &z, &fault), AD_E_MEMORY);
    expect_text("4.0 MiB more are above the 20 MiB of a device that uid:1 may have (grant memory)");
    expect_text("8.0 MiB in buffers, 6.0 MiB in workspaces, 2.0 MiB in windows");
    cr_assert_eq(ad__memory_take(b, UINT64_MAX, &z, &fault), AD_E_MEMORY);
    cr_assert_eq(ad__memory_take(c, 100 * MIB, &z, &fault), 0, "nobody else is limited by that");
    ad__memory_give(c, &z);
    ad__memory_give(b, &y);
    cr_assert_eq(account->used[AD_USE_WORKSPACE], 0);
    cr_assert_eq(ad__memory_take(b, 4 * MIB + 1, &z, &fault), 0, "after freeing it goes: %s", fault.text);
    ad__memory_give(a, &x);
    ad__memory_give(b, &z);
    ad__account_return(account, AD_USE_WINDOW, 2 * MIB);
    ad__stream_arena_close(a);
    ad__stream_arena_close(b);
    ad__stream_arena_close(c);
    cr_assert_null(m.accounts, "nothing is left of them");
}

Test(account, what_is_reserved_is_nobody_elses) {
    ad_memory m = open_memory(64 * MIB);
    cr_assert(ad__account_reserve(&m.accounts, "uid:1", 24 * MIB));
    cr_assert(ad__account_reserve(&m.accounts, "uid:3", 8 * MIB));
    ad_stream_arena *other = ad__stream_arena_open(&m, "uid:2", NULL);
    ad_block x, y, z;
    cr_assert_eq(ad__memory_take(other, 34 * MIB, &x, &fault), AD_E_MEMORY);
    expect_text("uid:2 holds nothing, others 0 B, reserved for others 32 MiB");
    cr_assert_eq(ad__memory_take(other, 32 * MIB, &x, &fault), 0, "%s", fault.text);
    ad_stream_arena *mine = ad__stream_arena_open(&m, "uid:1", NULL);
    cr_assert_eq(ad__memory_take(mine, 24 * MIB, &y, &fault), 0, "its own it gets: %s", fault.text);
    cr_assert_eq(ad__memory_take(mine, 4 * MIB, &z, &fault), AD_E_MEMORY, "and no more where there is none");
    expect_text("reserved for others 8.0 MiB");
    ad__memory_give(other, &x);
    cr_assert_eq(ad__memory_take(mine, 32 * MIB, &z, &fault), 0, "beyond it, what nobody has: %s", fault.text);
    ad__memory_give(mine, &y);
    ad__memory_give(mine, &z);
    ad__stream_arena_close(mine);
    cr_assert_eq(ad__memory_take(other, 34 * MIB, &x, &fault), AD_E_MEMORY, "it stays when its principal has gone");
    ad__accounts_unreserve(&m.accounts);
    cr_assert_eq(ad__memory_take(other, 64 * MIB, &x, &fault), 0, "%s", fault.text);
    ad__memory_give(other, &x);
    ad__stream_arena_close(other);
    cr_assert_null(m.accounts);
}

Test(account, spares_of_others_make_way_for_a_reservation_that_came_later) {
    ad_memory m = open_memory(64 * MIB);
    ad_stream_arena *other = ad__stream_arena_open(&m, "uid:2", NULL), *mine;
    ad_block x, y;
    cr_assert_eq(ad__memory_take(other, 8 * MIB, &x, &fault), 0);
    cr_assert_eq(ad__memory_take(other, 40 * MIB, &y, &fault), 0);
    ad__memory_give(other, &x); /* kept for it */
    cr_assert_eq(m.slab_bytes, 48 * MIB);
    cr_assert(ad__account_reserve(&m.accounts, "uid:1", 24 * MIB));
    mine = ad__stream_arena_open(&m, "uid:1", NULL);
    cr_assert_eq(ad__memory_take(mine, 24 * MIB, &x, &fault), 0, "%s", fault.text);
    cr_assert_eq(m.slab_bytes, 64 * MIB);
    ad__memory_give(mine, &x);
    ad__memory_give(other, &y);
    ad__stream_arena_close(mine);
    ad__stream_arena_close(other);
    ad__accounts_unreserve(&m.accounts);
    cr_assert_null(m.accounts);
}

Test(account, only_an_admin_is_told_who_the_others_are) {
    ad_memory m = open_memory(64 * MIB);
    ad_stream_arena *e[4];
    ad_block b[4], x;
    static const char *const who[] = {"uid:1", "uid:2", "uid:3", "uid:4"};
    static const uint64_t size[] = {10, 6, 14, 22};
    for (int i = 0; i < 4; i++) {
        e[i] = ad__stream_arena_open(&m, who[i], NULL);
        cr_assert_eq(ad__memory_take(e[i], size[i] * MIB, &b[i], &fault), 0);
    }
    cr_assert_eq(ad__memory_take(e[0], 20 * MIB, &x, &fault), AD_E_MEMORY);
    expect_text("20 MiB more: they do not fit in 64 MiB (option memory); uid:1 holds 10 MiB in buffers, others 42 MiB");
    for (int i = 1; i < 4; i++) cr_expect_null(strstr(fault.text, who[i]), "%s", fault.text);
    ad__account_grant(ad__stream_arena_account(e[0]), &(ad_grants){.may = AD_GRANT_ADMIN});
    cr_assert_eq(ad__memory_take(e[0], 20 * MIB, &x, &fault), AD_E_MEMORY);
    expect_text("uid:1 holds 10 MiB in buffers, uid:4 22 MiB, uid:3 14 MiB, others 6.0 MiB");
    for (int i = 0; i < 4; i++) {
        ad__memory_give(e[i], &b[i]);
        ad__stream_arena_close(e[i]);
    }
}

Test(account, a_device_that_has_less_than_was_thought) {
    ad_memory m = open_memory(64 * MIB);
    ad_stream_arena *e = ad__stream_arena_open(&m, "uid:1", NULL);
    ad_block b, x;
    cr_assert_eq(ad__memory_take(e, 10 * MIB, &b, &fault), 0);
    has = 10 * MIB;
    cr_assert_eq(ad__memory_take(e, 20 * MIB, &x, &fault), AD_E_MEMORY);
    expect_text(
        "out of device memory for 20 MiB more: the device has no more; uid:1 holds 10 MiB in buffers, others 0 B");
    cr_assert_eq(ad__stream_arena_account(e)->total, 10 * MIB);
    cr_assert_eq(ad__memory_take(e, 6 * MIB, &x, &fault), 0, "what it has is to be had: %s", fault.text);
    ad__memory_give(e, &x);
    ad__memory_give(e, &b);
    ad__stream_arena_close(e);
    cr_assert_null(m.accounts);
    has = UINT64_MAX;
}

Test(account, a_block_that_is_rounded_up_stays_within_the_limit) {
    ad_memory m = open_memory(256 * MIB);
    ad_stream_arena *e = ad__stream_arena_open(&m, "uid:1", NULL);
    const ad_account *account = ad__stream_arena_account(e);
    ad_block x, y, z;
    ad__account_grant(ad__stream_arena_account(e), &(ad_grants){.memory = 11 * MIB});
    cr_assert_eq(ad__memory_take(e, 10 * MIB, &x, &fault), 0);
    cr_expect_eq(ad__memory_take(e, MIB + 1, &y, &fault), AD_E_MEMORY);
    ad__memory_give(e, &x);
    cr_assert_eq(ad__memory_take(e, MIB, &y, &fault), 0);
    cr_assert_eq(ad__memory_take(e, 6 * MIB, &x, &fault), 0);
    cr_expect_eq(ad__memory_take(e, 2 * MIB + 1, &z, &fault), 0, "four MiB are left");
    cr_expect_eq(account->total, 11 * MIB);
    ad__memory_give(e, &z);
    ad__memory_give(e, &x);
    cr_assert_eq(ad__memory_take(e, 9 * MIB, &x, &fault), 0, "the spare of 10 MiB fits");
    ad__memory_give(e, &y);
    ad__memory_give(e, &x);
    cr_assert_eq(ad__memory_take(e, 2 * MIB, &y, &fault), 0);
    cr_assert_eq(ad__memory_take(e, 8 * MIB, &x, &fault), 0, "the spare of 10 MiB is too large now, a new slab is not");
    cr_expect_eq(account->total, 10 * MIB);
    ad__memory_give(e, &x);
    ad__memory_give(e, &y);
    ad__stream_arena_close(e);
}

Test(account, another_can_be_made_to_pay) {
    ad_memory m = open_memory(64 * MIB);
    ad_stream_arena *e = ad__stream_arena_open(&m, "uid:1", NULL);
    ad_block b;
    cr_assert_eq(ad__memory_take(e, 6 * MIB, &b, &fault), 0);
    ad_account *other = ad__account_open(&m.accounts, "uid:2");
    ad__memory_charge(&b, other);
    ad__account_close(other);
    cr_assert_eq(ad__stream_arena_account(e)->total, 0);
    cr_assert_eq(ad__account_find(m.accounts, "uid:2")->used[AD_USE_BUFFER], 6 * MIB);
    cr_assert_eq(ad__stream_arena_account(e)->slab_bytes, 6 * MIB, "the slab stays whose it is");
    ad__memory_give(e, &b);
    cr_assert_null(ad__account_find(m.accounts, "uid:2"));
    ad__stream_arena_close(e);
    cr_assert_null(m.accounts);
}

Test(account, many_at_random_add_up) {
    ad_memory m = open_memory(512 * MIB);
    ad_stream_arena *e[3];
    ad_block b[200] = {0};
    char who[16];
    uint64_t state = 11;
    for (int i = 0; i < 3; i++) {
        snprintf(who, sizeof who, "uid:%d", i);
        e[i] = ad__stream_arena_open(&m, who, NULL);
        ad__account_grant(ad__stream_arena_account(e[i]), &(ad_grants){.memory = 48 * MIB});
    }
    for (int step = 0; step < 20000; step++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        unsigned i = (unsigned)(state >> 40) % 200;
        uint64_t size = 1 + (state >> 20) % (i % 8 ? 4096 : 6 * MIB), sum[3] = {0};
        ad_account *a = ad__stream_arena_account(e[i % 3]);
        if (b[i].slab) ad__memory_give(e[i % 3], &b[i]);
        else if (ad__memory_take(e[i % 3], size, &b[i], &fault)) cr_assert_gt(a->total + size, a->most);
        for (int k = 0; k < 200; k++) sum[k % 3] += b[k].slab ? b[k].size : 0;
        for (int k = 0; k < 3; k++) cr_assert_eq(ad__stream_arena_account(e[k])->total, sum[k]);
        cr_assert_eq(m.used, sum[0] + sum[1] + sum[2]);
    }
    for (int i = 0; i < 200; i++) ad__memory_give(e[i % 3], &b[i]);
    for (int i = 0; i < 3; i++) ad__stream_arena_close(e[i]);
    cr_assert_null(m.accounts);
    cr_assert_eq(m.slab_bytes, 0);
}
