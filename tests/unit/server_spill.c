/* The choice of the buffer that is moved first, against a model that looks at all of them; and the limits of
 * principals. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "server/worker/memory/buffers.h"
#include "server/worker/memory/memory.h"
#include "server/worker/memory/lru.h"

#define MIB (1ull << 20)
#define BUFFERS 200
#define OWNERS 4

static unsigned long state;
static unsigned draw_number(unsigned n) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % n;
}

typedef struct model {
    ad_spill_owner *owner[OWNERS];
    ad_account account[OWNERS];
    ad_buffer buffer[BUFFERS];
    int owner_of[BUFFERS]; /* -1: not listed */
    uint64_t used[BUFFERS], clock;
} model;

/* Choose the buffer that the header describes, by looking at everything. */
static ad_buffer *choose_expected(model *m, uint64_t limit) {
    uint64_t bytes[OWNERS] = {0}, sharers = 0;
    int greedy = -1, coldest = -1;
    for (int i = 0; i < BUFFERS; i++)
        if (m->owner_of[i] >= 0) bytes[m->owner_of[i]] += m->buffer[i].block.size;
    for (int o = 0; o < OWNERS; o++) {
        sharers += bytes[o] != 0;
        if (bytes[o] && (greedy < 0 || bytes[o] > bytes[greedy])) greedy = o;
    }
    bool above = sharers > 1 && bytes[greedy] > limit / sharers;
    for (int i = 0; i < BUFFERS; i++) {
        if (m->owner_of[i] < 0 || (above && m->owner_of[i] != greedy)) continue;
        if (coldest < 0 || m->used[i] < m->used[coldest]) coldest = i;
    }
    return coldest < 0 ? NULL : &m->buffer[coldest];
}

static void make_step(model *m) {
    int i = (int)draw_number(BUFFERS);
    ad__spill_remove(&m->buffer[i]);
    m->owner_of[i] = -1;
    if (draw_number(3) == 0) return;
    m->owner_of[i] = draw_number(4) ? 0 : (int)draw_number(OWNERS);
    m->buffer[i].block.size = 64 * (1 + draw_number(1000)) + i; /* no two owners are alike */
    m->used[i] = ++m->clock;
    ad__spill_add(m->owner[m->owner_of[i]], &m->buffer[i]);
}

Test(spill, the_coldest_of_who_has_more_than_a_share_goes_first) {
    static model m;
    ad_spill_list list = {0};
    uint64_t bytes = 0;
    int fair = 0;
    state = 7;
    for (int o = 0; o < OWNERS; o++) {
        m.owner[o] = ad__spill_owner_open(&list, &m.account[o]);
        m.account[o].slab_bytes = 1;
        cr_assert(m.owner[o]);
    }
    for (int i = 0; i < BUFFERS; i++) m.owner_of[i] = -1;
    cr_assert_null(ad__spill_coldest(&list, 1, NULL));
    for (int n = 0; n < 20000; n++) {
        uint64_t limit = draw_number(2) ? 1 : 1ull << 40;
        make_step(&m);
        ad_buffer *out = choose_expected(&m, limit);
        cr_assert_eq(ad__spill_coldest(&list, limit, NULL), out, "at step %d", n);
        fair += out && out != choose_expected(&m, 1ull << 40);
    }
    cr_assert_gt(fair, 1000, "the two rules differ often enough to be told apart");
    for (int i = 0; i < BUFFERS; i++) bytes += m.owner_of[i] < 0 ? 0 : m.buffer[i].block.size;
    cr_assert_eq(list.bytes, bytes);
    for (ad_buffer *b; (b = ad__spill_coldest(&list, 1, NULL));) ad__spill_remove(b);
    cr_assert_eq(list.bytes, 0);
    for (int o = 0; o < OWNERS; o++) ad__spill_owner_close(m.owner[o]);
    cr_assert_null(list.owners);
}

Test(spill, stream_queues_of_a_principal_have_one_list) {
    ad_spill_list list = {0};
    ad_account account = {0};
    ad_spill_owner *a = ad__spill_owner_open(&list, &account), *b = ad__spill_owner_open(&list, &account);
    cr_assert_eq(a, b);
    ad__spill_owner_close(a);
    cr_assert_eq(list.owners, b);
    ad__spill_owner_close(b);
    cr_assert_null(list.owners);
    ad__spill_owner_close(NULL);
}

Test(spill, what_others_have_reserved_stays) {
    ad_spill_list list = {0};
    ad_account a = {.slab_bytes = 10, .reserve = 10}, b = {.slab_bytes = 10};
    ad_spill_owner *one = ad__spill_owner_open(&list, &a), *two = ad__spill_owner_open(&list, &b);
    ad_buffer x = {.block = {.size = 1000}}, y = {.block = {.size = 64}};
    ad__spill_add(one, &x);
    ad__spill_add(two, &y);
    cr_assert_eq(ad__spill_coldest(&list, 1, two), &y, "although the other has more");
    cr_assert_eq(ad__spill_coldest(&list, 1, one), &x);
    ad__spill_remove(&y);
    cr_assert_null(ad__spill_coldest(&list, 1, two));
    a.slab_bytes = 11;
    cr_assert_eq(ad__spill_coldest(&list, 1, two), &x, "more than that was taken");
    ad__spill_remove(&x);
    ad__spill_owner_close(one);
    ad__spill_owner_close(two);
}

/* ---- accounts ---- */

static int slab_create(ad_device *device, uint64_t size, ad_slab_map *out, ad_fault *fault) {
    (void)device, (void)fault;
    *out = (ad_slab_map){calloc(1, size), size, -1};
    return out->base ? 0 : AD_E_MEMORY;
}

static void slab_close(ad_device *device, ad_slab_map *slab) {
    (void)device;
    free(slab->base);
}

static void announce_slab(void *user, const char *principal, uint64_t id, uint64_t size, int fd) {
    (void)user, (void)principal, (void)id, (void)size, (void)fd;
}

static const ad_backend backend = {.slab_create = slab_create, .slab_close = slab_close};

Test(spill, what_is_away_counts_as_held) {
    uint64_t id = 0;
    ad_memory m = {
        .backend = &backend, .next_id = &id, .slab_size = 8 * MIB, .limit = 64 * MIB, .announce = announce_slab};
    ad_stream_arena *one = ad__stream_arena_open(&m, "uid:1", NULL), *two = ad__stream_arena_open(&m, "uid:1", NULL);
    ad_block a, b;
    ad_fault fault = {0};
    ad_account *account = ad__stream_arena_account(one);
    account->most = 10 * MIB;
    cr_assert_eq(ad__memory_take(one, 6 * MIB, &a, NULL), 0);
    ad__memory_give(one, &a);
    ad__account_charge(account, AD_USE_MOVED, 6 * MIB);
    cr_assert_eq(ad__account_check(account, 4 * MIB, NULL), 0);
    cr_assert_eq(ad__account_check(account, 4 * MIB + 1, NULL), AD_E_MEMORY);
    cr_assert_eq(ad__memory_take(two, 6 * MIB, &b, &fault), AD_E_MEMORY);
    cr_assert_str_eq(fault.text, "out of memory: 6.0 MiB more are above the 10 MiB of a device that uid:1 may have "
                                 "(grant memory); it has 6.0 MiB in host memory");
    ad__account_return(account, AD_USE_MOVED, 6 * MIB);
    cr_assert_eq(ad__memory_take(two, 6 * MIB, &b, NULL), 0);
    ad__memory_give(two, &b);
    ad__stream_arena_close(one);
    ad__stream_arena_close(two);
    cr_assert_eq(m.slab_bytes, 0);
}
