/* Slabs and who holds them, over a backend of the test. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kernels/redzone.h"
#include "server/worker/memory/memory.h"

#define MIB (1ull << 20)

static int created, closed, announced, gone;
static char last_principal[64];

static int slab_create(ad_device *device, uint64_t size, ad_slab_map *out, ad_fault *fault) {
    (void)device;
    if (size >= 1ull << 50) return ad__fault(fault, AD_E_DEVICE, "no");
    *out = (ad_slab_map){calloc(1, size), size, open("/dev/null", O_RDONLY)};
    created++;
    return 0;
}

static void slab_close(ad_device *device, ad_slab_map *slab) {
    (void)device;
    free(slab->base);
    close(slab->fd);
    closed++;
}

static void announce_slab(void *user, const char *principal, uint64_t id, uint64_t size, int fd) {
    (void)user;
    cr_assert_gt(id, 0);
    cr_assert_gt(size, 0);
    strcpy(last_principal, principal);
    if (fd >= 0) {
        close(fd);
        announced++;
    } else {
        gone++;
    }
}

static const ad_backend backend = {.slab_create = slab_create, .slab_close = slab_close};

/* A device that works behind the host's back: its stream passes when the test says so. */
static bool passed;
static int waits, records;
static char the_event, the_stream;

static int event_open(ad_device *device, bool timed, ad_event **out, ad_fault *fault) {
    (void)device, (void)timed, (void)fault;
    *out = (ad_event *)(void *)&the_event;
    return 0;
}
static void event_close(ad_event *event) { (void)event; }
static int event_record(ad_event *event, ad_stream *stream, ad_fault *fault) {
    (void)event, (void)stream, (void)fault;
    records++;
    passed = false;
    return 0;
}
static int event_done(ad_event *event, ad_fault *fault) {
    (void)event, (void)fault;
    return passed;
}
static int stream_wait(ad_stream *stream, ad_fault *fault) {
    (void)stream, (void)fault;
    waits++;
    return 0;
}
static const ad_backend slow_backend = {.asynchronous = true,
                                        .slab_create = slab_create,
                                        .slab_close = slab_close,
                                        .event_open = event_open,
                                        .event_close = event_close,
                                        .event_record = event_record,
                                        .event_done = event_done,
                                        .stream_wait = stream_wait};

static ad_memory open_memory(uint64_t slab, uint64_t limit) {
    created = closed = announced = gone = 0;
    static uint64_t last_id;
    last_id = 0;
    return (ad_memory){
        .backend = &backend, .next_id = &last_id, .slab_size = slab, .limit = limit, .announce = announce_slab};
}

Test(memory, small_blocks_share_a_slab_and_large_ones_do_not) {
    ad_memory m = open_memory(8 * MIB, 64 * MIB);
    ad_stream_arena *e = ad__stream_arena_open(&m, "uid:1", NULL);
    ad_block a, b, c, d;
    cr_assert_eq(ad__memory_take(e, 100, &a, NULL), 0);
    cr_assert_eq(ad__memory_take(e, 200, &d, NULL), 0);
    cr_assert_eq(a.slab, d.slab);
    cr_assert_eq(m.slab_bytes, 2 * MIB, "the first slab is small");
    cr_assert_eq(ad__memory_take(e, 2 * MIB, &b, NULL), 0);
    cr_assert_neq(a.slab, b.slab);
    cr_assert_eq(ad__memory_take(e, 2 * MIB + 1, &c, NULL), 0);
    cr_assert_neq(a.slab, c.slab);
    cr_assert_eq(m.slabs, 3);
    cr_assert_eq(m.slab_bytes, 2 * MIB + 4 * MIB + 4 * MIB);
    cr_assert_eq(m.used, 128 + 256 + 2 * MIB + 4 * MIB);
    ad__memory_give(e, &a);
    ad__memory_give(e, &b);
    ad__memory_give(e, &c);
    ad__memory_give(e, &d);
    cr_assert_eq(m.used, 0);
    ad__stream_arena_close(e);
    cr_assert_eq(created, closed);
    cr_assert_eq(announced, 3);
    cr_assert_eq(gone, 3);
    cr_assert_eq(m.slab_bytes, 0);
}

Test(memory, principals_never_share) {
    ad_memory m = open_memory(8 * MIB, 64 * MIB);
    ad_stream_arena *x = ad__stream_arena_open(&m, "uid:1", NULL), *y = ad__stream_arena_open(&m, "uid:2", NULL);
    ad_block a, b;
    cr_assert_eq(ad__memory_take(x, 64, &a, NULL), 0);
    cr_assert_str_eq(last_principal, "uid:1");
    cr_assert_eq(ad__memory_take(y, 64, &b, NULL), 0);
    cr_assert_str_eq(last_principal, "uid:2");
    cr_assert_neq(a.slab, b.slab);
    ad__memory_give(x, &a);
    ad__memory_give(y, &b);
    ad__stream_arena_close(x);
    ad__stream_arena_close(y);
    cr_assert_eq(m.slabs, 0);
}

Test(memory, a_spare_large_slab_is_used_again_and_is_not_clean) {
    ad_memory m = open_memory(8 * MIB, 256 * MIB);
    ad_stream_arena *e = ad__stream_arena_open(&m, "uid:1", NULL);
    ad_block a, b;
    cr_assert_eq(ad__memory_take(e, 16 * MIB, &a, NULL), 0);
    cr_assert(a.clean);
    void *address = a.address;
    ad__memory_give(e, &a);
    cr_assert_eq(ad__memory_take(e, 15 * MIB, &b, NULL), 0);
    cr_assert_eq(b.address, address);
    cr_assert_not(b.clean);
    ad__memory_give(e, &b);
    cr_assert_eq(ad__memory_take(e, 5 * MIB, &b, NULL), 0);
    cr_assert_neq(b.address, address, "much too large");
    ad__memory_give(e, &b);
    ad__stream_arena_close(e);
    cr_assert_eq(created, closed);
}

Test(memory, spare_slabs_of_another_size_make_way_for_those_in_use) {
    ad_memory m = open_memory(8 * MIB, 128 * MIB); /* so that 32 MiB may be spare */
    ad_stream_arena *e = ad__stream_arena_open(&m, "uid:1", NULL);
    ad_block a, b;
    cr_assert_eq(ad__memory_take(e, 30 * MIB, &a, NULL), 0);
    ad__memory_give(e, &a);
    for (int i = 0; i < 5; i++) {
        cr_assert_eq(ad__memory_take(e, 10 * MIB, &a, NULL), 0);
        cr_assert_eq(ad__memory_take(e, 10 * MIB, &b, NULL), 0);
        ad__memory_give(e, &a);
        ad__memory_give(e, &b);
    }
    cr_assert_eq(created, 3, "each of the sizes was made once, not %d slabs", created);
    cr_assert_eq(closed, 1, "the one of 30 MiB");
    cr_assert_eq(ad__memory_take(e, 40 * MIB, &a, NULL), 0);
    ad__memory_give(e, &a);
    cr_assert_eq(closed, 2, "larger than all that may be spare");
    ad__stream_arena_close(e);
    cr_assert_eq(created, closed);
}

Test(memory, clean_means_zero) {
    ad_memory m = open_memory(8 * MIB, 64 * MIB);
    ad_stream_arena *e = ad__stream_arena_open(&m, "uid:1", NULL);
    ad_block b[64] = {0};
    unsigned long state = 5;
    int clean = 0;
    for (int step = 0; step < 20000; step++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        ad_block *x = &b[(state >> 33) % 64];
        if (x->slab) {
            ad__memory_give(e, x);
            continue;
        }
        cr_assert_eq(ad__memory_take(e, 1 + (state >> 40) % 3000, x, NULL), 0);
        for (uint64_t i = 0; x->clean && i < x->size; i++) cr_assert_eq(((char *)x->address)[i], 0);
        clean += x->clean;
        memset(x->address, 0xff, x->size);
    }
    cr_assert_gt(clean, 10);
    for (int i = 0; i < 64; i++) ad__memory_give(e, &b[i]);
    ad__stream_arena_close(e);
}

Test(memory, the_limit_says_who_holds_what_and_spares_go_first) {
    ad_memory m = open_memory(8 * MIB, 64 * MIB);
    ad_stream_arena *x = ad__stream_arena_open(&m, "uid:1", NULL), *y = ad__stream_arena_open(&m, "uid:2", NULL);
    ad_block a, b, c;
    ad_fault fault = {0};
    cr_assert_eq(ad__memory_take(x, 40 * MIB, &a, NULL), 0);
    cr_assert_eq(ad__memory_take(y, 6 * MIB, &b, NULL), 0);
    cr_assert_eq(ad__memory_take(y, 24 * MIB, &c, &fault), AD_E_MEMORY);
    cr_assert_str_eq(fault.text,
                     "out of device memory for 24 MiB more: they do not fit in 64 MiB (option memory); uid:2 "
                     "holds 6.0 MiB in buffers, others 40 MiB");
    ad__memory_give(y, &b);
    cr_assert_eq(ad__memory_take(x, 24 * MIB, &c, &fault), 0, "uid:2's spare slab is in the way: %s", fault.text);
    cr_assert_eq(ad__memory_take(x, 1ull << 45, &b, &fault), AD_E_MEMORY);
    cr_assert_eq(ad__memory_take(x, UINT64_MAX, &b, &fault), AD_E_MEMORY);
    ad__memory_give(x, &a);
    ad__memory_give(x, &c);
    ad__stream_arena_close(x);
    ad__stream_arena_close(y);
    cr_assert_eq(created, closed);
}

Test(memory, no_slab_is_closed_before_its_stream_has_passed) {
    ad_memory m = open_memory(8 * MIB, 64 * MIB);
    m.backend = &slow_backend;
    ad_stream_arena *e = ad__stream_arena_open(&m, "uid:1", (ad_stream *)(void *)&the_stream);
    ad_block a, b;
    waits = records = 0;
    cr_assert_eq(ad__memory_take(e, 40 * MIB, &a, NULL), 0);
    ad__memory_give(e, &a); /* more than is kept */
    cr_assert_eq(closed, 0);
    cr_assert_eq(records, 1);
    cr_assert(ad__stream_arena_reap(e));
    cr_assert_eq(closed, 0);
    passed = true;
    cr_assert_not(ad__stream_arena_reap(e));
    cr_assert_eq(closed, 1);
    cr_assert_eq(waits, 0);
    cr_assert_eq(ad__memory_take(e, 40 * MIB, &a, NULL), 0);
    ad__memory_give(e, &a);
    cr_assert_eq(ad__memory_take(e, 50 * MIB, &b, NULL), 0, "who needs room waits for it");
    cr_assert_eq(waits, 1);
    cr_assert_eq(closed, 2);
    ad__memory_give(e, &b);
    ad__stream_arena_close(e);
    cr_assert_eq(created, closed);
    cr_assert_eq(m.slab_bytes, 0);
}

Test(memory, small_arenas_of_a_principal_share_a_slab) {
    ad_memory m = open_memory(8 * MIB, 64 * MIB);
    ad_stream_arena *e[20], *other = ad__stream_arena_open(&m, "uid:2", NULL);
    ad_block b[20], c;
    for (int i = 0; i < 20; i++) {
        e[i] = ad__stream_arena_open(&m, "uid:1", NULL);
        cr_assert_eq(ad__memory_take(e[i], 1000, &b[i], NULL), 0);
        cr_assert(b[i].clean);
        memset(b[i].address, i + 1, 1000);
    }
    cr_assert_eq(m.slabs, 2);
    cr_assert_eq(ad__memory_take(other, 1000, &c, NULL), 0);
    cr_assert_eq(m.slabs, 3, "no slab of another principal");
    ad__memory_give(other, &c);
    ad__stream_arena_close(other);
    for (int i = 0; i < 20; i++)
        for (int k = 0; k < 1000; k++) cr_assert_eq(((char *)b[i].address)[k], i + 1);
    ad__memory_give(e[3], &b[3]);
    ad__stream_arena_close(e[3]);
    e[3] = ad__stream_arena_open(&m, "uid:1", NULL);
    cr_assert_eq(ad__memory_take(e[3], 1000, &b[3], NULL), 0);
    cr_assert_eq(m.slabs, 2);
    cr_assert(!b[3].clean || ((char *)b[3].address)[0] == 0, "a piece that somebody has had is not clean");
    for (int i = 0; i < 20; i++) {
        ad__memory_give(e[i], &b[i]);
        ad__stream_arena_close(e[i]);
    }
    cr_assert_eq(m.slab_bytes, 0);
    cr_assert_eq(created, closed);
}

/* A slab of another worker, of which more blocks may be restored. */
static ad_slab *begin_slab(ad_memory *m) {
    ad_slab_map map;
    m->backend->slab_create(m->device, 4 * MIB, &map, NULL);
    return ad__memory_adopt(m, "uid:1", 7, &map);
}

/* A slab of another worker, with blocks of the first MiB in use as `used` says. */
static ad_slab *adopt_slab(ad_memory *m, ad_stream_arena *e, const uint64_t (*used)[2], size_t n, ad_block *block) {
    ad_slab *s = begin_slab(m);
    for (size_t i = 0; i < n; i++) cr_assert_eq(ad__memory_restore(e, s, used[i][0], used[i][1], &block[i]), 0);
    ad__memory_adopted(m, s);
    return s;
}

/* A holder of memory may not be restored, for want of memory, where the next one is. */
Test(memory, a_slab_of_another_worker_stays_while_more_of_it_may_be_restored) {
    ad_memory m = open_memory(4 * MIB, 64 * MIB);
    ad_stream_arena *e = ad__stream_arena_open(&m, "uid:1", NULL);
    ad_slab *s = begin_slab(&m);
    ad_block b;
    closed = 0;
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(ad__memory_restore(e, s, 0, MIB, &b), 0);
        ad__memory_give(e, &b);
        cr_assert_eq(closed, 0);
    }
    ad__memory_adopted(&m, s);
    cr_assert_eq(closed, 1);
    ad__stream_arena_close(e);
    cr_assert_eq(m.slab_bytes, 0);
}

Test(memory, what_another_worker_has_left_is_used_again) {
    static const uint64_t used[][2] = {{64, 128}, {1024, 512}, {2 * MIB, MIB}};
    ad_memory m = open_memory(4 * MIB, 64 * MIB);
    ad_stream_arena *e = ad__stream_arena_open(&m, "uid:1", NULL);
    ad_block b[3], *list[] = {&b[0], &b[1], &b[2]}, c[5];
    ad_slab *s = adopt_slab(&m, e, used, 3, b);
    created = 0;
    ad__memory_cut(e, list, 3);
    for (int i = 0; i < 5; i++) {
        cr_assert_eq(ad__memory_take(e, 256 << 10, &c[i], NULL), 0);
        cr_assert_eq(c[i].slab, s);
        cr_assert(!c[i].clean);
        for (int k = 0; k < 3; k++)
            cr_assert((char *)c[i].address + c[i].size <= (char *)b[k].address ||
                      (char *)b[k].address + b[k].size <= (char *)c[i].address);
    }
    cr_assert_eq(created, 0);
    for (int i = 0; i < 5; i++) ad__memory_give(e, &c[i]);
    for (int i = 0; i < 3; i++) ad__memory_give(e, &b[i]);
    cr_assert_eq(m.used, 0);
    ad__stream_arena_close(e);
    cr_assert_eq(m.slab_bytes, 0);
}

Test(memory, what_is_not_one_arenas_stays_as_it_is) {
    static const uint64_t used[][2] = {{0, 128}, {64, 512}, {2 * MIB, MIB}}, all[][2] = {{0, 4 * MIB}};
    ad_memory m = open_memory(4 * MIB, 64 * MIB);
    ad_stream_arena *e = ad__stream_arena_open(&m, "uid:1", NULL), *other = ad__stream_arena_open(&m, "uid:2", NULL);
    ad_block b[3], *list[] = {&b[0], &b[1], &b[2]}, c;
    adopt_slab(&m, e, used, 3, b);
    ad__memory_cut(e, list, 3);     /* one in the other */
    ad__memory_cut(e, &list[1], 2); /* not all */
    ad__memory_cut(other, list, 3); /* of another principal */
    cr_assert_eq(ad__memory_take(e, 256 << 10, &c, NULL), 0);
    cr_assert_neq(c.slab, b[0].slab);
    ad__memory_give(e, &c);
    closed = 0;
    for (int i = 0; i < 3; i++) ad__memory_give(e, &b[i]);
    cr_assert_eq(closed, 1, "it goes with the last of them");
    adopt_slab(&m, e, all, 1, b);
    ad__memory_cut(e, list, 1);
    ad__memory_give(e, &b[0]);
    cr_assert_eq(closed, 2, "so does one that is all of it");
    ad__stream_arena_close(e);
    ad__stream_arena_close(other);
    cr_assert_eq(m.slab_bytes, 0);
}

/* A stream may still use what it gives back, and blocks of one slab may be of several streams. */
Test(memory, a_slab_of_another_worker_stays_until_streams_have_passed) {
    static const uint64_t used[][2] = {{0, 128}, {1024, 512}};
    ad_memory m = open_memory(4 * MIB, 64 * MIB);
    ad_stream *stream = (ad_stream *)(void *)&the_stream;
    m.backend = &slow_backend;
    ad_stream_arena *e = ad__stream_arena_open(&m, "uid:1", stream),
                    *other = ad__stream_arena_open(&m, "uid:1", stream);
    ad_block b[2];
    ad_slab *s = adopt_slab(&m, e, used, 1, b);
    cr_assert_eq(ad__memory_restore(other, s, used[1][0], used[1][1], &b[1]), 0);
    closed = 0;
    ad__memory_give(e, &b[0]);
    ad__memory_give(other, &b[1]);
    cr_assert(ad__stream_arena_reap(e) && ad__stream_arena_reap(other));
    cr_assert_eq(closed, 0);
    passed = true;
    cr_assert_not(ad__stream_arena_reap(e));
    cr_assert_eq(closed, 0, "the block of the other stream arena is still in it");
    cr_assert_not(ad__stream_arena_reap(other));
    cr_assert_eq(closed, 1);
    ad__stream_arena_close(e);
    ad__stream_arena_close(other);
    cr_assert_eq(m.slab_bytes, 0);
}

/* A device whose slabs are multiples of 4 MiB. */
static int create_coarse_slab(ad_device *device, uint64_t size, ad_slab_map *out, ad_fault *fault) {
    return slab_create(device, (size + 4 * MIB - 1) / (4 * MIB) * (4 * MIB), out, fault);
}

Test(memory, an_account_pays_for_what_a_device_rounds_up) {
    const ad_backend coarse = {.slab_create = create_coarse_slab, .slab_close = slab_close};
    ad_memory m = open_memory(8 * MIB, 64 * MIB);
    ad_stream_arena *e = ad__stream_arena_open(&m, "uid:1", NULL);
    ad_account *account = ad__stream_arena_account(e);
    ad_block a, b, c;
    ad_fault fault = {0};
    m.backend = &coarse;
    ad__account_grant(account, &(ad_grants){.memory = 11 * MIB});
    cr_assert_eq(ad__memory_take_apart(e, 1000, &a, NULL), 0);
    cr_assert_eq(ad__memory_take_apart(e, 1000, &b, NULL), 0);
    cr_expect_eq(ad__memory_take_apart(e, 1000, &c, &fault), AD_E_MEMORY);
    cr_expect(strstr(fault.text, "4.0 MiB more are above the 11 MiB"), "%s", fault.text);
    ad__memory_give(e, &b);
    cr_expect_eq(ad__memory_take(e, 5 * MIB, &c, &fault), AD_E_MEMORY);
    cr_expect(strstr(fault.text, "8.0 MiB more"), "%s", fault.text);
    cr_expect_eq(account->total, 4 * MIB);
    ad__memory_give(e, &a);
    ad__stream_arena_close(e);
    cr_expect_eq(m.slab_bytes, 0);
    cr_expect_eq(created, closed);
}

Test(memory, what_was_exported_is_open_for_good) {
    ad_memory m = open_memory(8 * MIB, 64 * MIB);
    ad_stream_arena *e = ad__stream_arena_open(&m, "uid:1", NULL);
    ad_block a, b;
    cr_assert_eq(ad__memory_take_apart(e, 1000, &a, NULL), 0);
    cr_assert_not(a.open);
    ad__memory_expose(&a);
    cr_assert(a.open && ad__memory_is_exposed(&a));
    closed = 0;
    ad__memory_give(e, &a);
    cr_assert_eq(closed, 1, "nobody gets its slab");
    cr_assert_eq(ad__memory_take(e, 1000, &b, NULL), 0);
    cr_assert_not(b.open);
    ad__memory_give(e, &b);
    ad__stream_arena_close(e);
}

#ifdef AD_REDZONES
static bool is_closed(const ad_block *b, uint64_t at) { return __asan_address_is_poisoned((char *)b->address + at); }

/* AddressSanitizer is told that nobody may read or write between blocks, behind them, and where one was. */
Test(memory, red_zones_of_slabs) {
    static const uint64_t used[][2] = {{64, 128}, {1024, 512}, {2 * MIB, MIB}};
    for (uint64_t size = 8; size <= 4 * MIB; size = size * 3 + 5) {
        ad_memory m = open_memory(8 * MIB, 64 * MIB);
        ad_stream_arena *e = ad__stream_arena_open(&m, "uid:1", NULL);
        ad_block a, b;
        cr_assert_eq(ad__memory_take(e, size, &a, NULL), 0);
        cr_assert_eq(ad__memory_take(e, size, &b, NULL), 0);
        cr_assert_null(__asan_region_is_poisoned(a.address, size));
        cr_assert_null(__asan_region_is_poisoned(b.address, size));
        if (a.chunk) cr_assert(is_closed(&a, a.size) && is_closed(&b, b.size));
        ad_block was = a;
        ad__memory_give(e, &a);
        cr_assert(is_closed(&was, 0) && is_closed(&was, size - 1));
        cr_assert_null(__asan_region_is_poisoned(b.address, size));
        ad__memory_give(e, &b);
        ad__stream_arena_close(e);
    }
    ad_memory m = open_memory(4 * MIB, 64 * MIB);
    ad_stream_arena *e = ad__stream_arena_open(&m, "uid:1", NULL);
    ad_block left[3], *list[] = {&left[0], &left[1], &left[2]};
    adopt_slab(&m, e, used, 3, left);
    cr_assert_not(is_closed(&left[0], 128), "another worker's zones are not known");
    ad__memory_cut(e, list, 3);
    for (int i = 0; i < 3; i++) {
        cr_assert_null(__asan_region_is_poisoned(left[i].address, left[i].size));
        cr_assert(is_closed(&left[i], left[i].size));
    }
    for (int i = 0; i < 3; i++) ad__memory_give(e, &left[i]);
    ad__stream_arena_close(e);
}
#endif
