/* Slabs and who holds them, over a backend of the test. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "server/worker/memory.h"

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

static void announce(void *user, const char *principal, uint64_t id, uint64_t size, int fd) {
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

static ad_memory memory(uint64_t slab, uint64_t limit) {
    created = closed = announced = gone = 0;
    return (ad_memory){.backend = &backend, .slab_size = slab, .limit = limit, .announce = announce};
}

Test(memory, small_blocks_share_a_slab_and_large_ones_do_not) {
    ad_memory m = memory(8 * MIB, 64 * MIB);
    ad_estate *e = ad__estate_open(&m, "uid:1");
    ad_block a, b, c;
    cr_assert_eq(ad__memory_take(e, 100, &a, NULL), 0);
    cr_assert_eq(ad__memory_take(e, 2 * MIB, &b, NULL), 0);
    cr_assert_eq(a.slab, b.slab);
    cr_assert_eq(ad__memory_take(e, 2 * MIB + 1, &c, NULL), 0);
    cr_assert_neq(a.slab, c.slab);
    cr_assert_eq(m.slabs, 2);
    cr_assert_eq(m.slab_bytes, 12 * MIB);
    cr_assert_eq(m.used, 128 + 2 * MIB + 4 * MIB);
    ad__memory_give(e, &a);
    ad__memory_give(e, &b);
    ad__memory_give(e, &c);
    cr_assert_eq(m.used, 0);
    ad__estate_close(e);
    cr_assert_eq(created, closed);
    cr_assert_eq(announced, 2);
    cr_assert_eq(gone, 2);
    cr_assert_eq(m.slab_bytes, 0);
}

Test(memory, principals_never_share) {
    ad_memory m = memory(8 * MIB, 64 * MIB);
    ad_estate *x = ad__estate_open(&m, "uid:1"), *y = ad__estate_open(&m, "uid:2");
    ad_block a, b;
    cr_assert_eq(ad__estate_open(&m, "uid:1"), x);
    cr_assert_eq(ad__memory_take(x, 64, &a, NULL), 0);
    cr_assert_str_eq(last_principal, "uid:1");
    cr_assert_eq(ad__memory_take(y, 64, &b, NULL), 0);
    cr_assert_str_eq(last_principal, "uid:2");
    cr_assert_neq(a.slab, b.slab);
    ad__memory_give(x, &a);
    ad__memory_give(y, &b);
    ad__estate_close(x);
    ad__estate_close(y);
    cr_assert_eq(m.slabs, 1, "another session of uid:1 keeps one");
    ad__estate_close(x);
    cr_assert_eq(m.slabs, 0);
}

Test(memory, a_spare_large_slab_is_used_again_and_is_not_clean) {
    ad_memory m = memory(8 * MIB, 256 * MIB);
    ad_estate *e = ad__estate_open(&m, "uid:1");
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
    ad__estate_close(e);
    cr_assert_eq(created, closed);
}

Test(memory, clean_means_zero) {
    ad_memory m = memory(8 * MIB, 64 * MIB);
    ad_estate *e = ad__estate_open(&m, "uid:1");
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
    ad__estate_close(e);
}

Test(memory, the_limit_says_who_holds_what_and_spares_go_first) {
    ad_memory m = memory(8 * MIB, 64 * MIB);
    ad_estate *x = ad__estate_open(&m, "uid:1"), *y = ad__estate_open(&m, "uid:2");
    ad_block a, b, c;
    ad_fault fault = {0};
    cr_assert_eq(ad__memory_take(x, 40 * MIB, &a, NULL), 0);
    cr_assert_eq(ad__memory_take(y, 6 * MIB, &b, NULL), 0);
    cr_assert_eq(ad__memory_take(y, 24 * MIB, &c, &fault), AD_E_MEMORY);
    cr_assert_str_eq(fault.text, "out of device memory: 24 MiB more do not fit in 64 MiB, of which uid:2 holds 6.0 MiB "
                                 "and others 40 MiB");
    ad__memory_give(y, &b);
    cr_assert_eq(ad__memory_take(x, 24 * MIB, &c, &fault), 0, "uid:2's spare slab is in the way: %s", fault.text);
    cr_assert_eq(ad__memory_take(x, 1ull << 45, &b, &fault), AD_E_MEMORY);
    cr_assert_eq(ad__memory_take(x, UINT64_MAX, &b, &fault), AD_E_MEMORY);
    ad__memory_give(x, &a);
    ad__memory_give(x, &c);
    ad__estate_close(x);
    ad__estate_close(y);
    cr_assert_eq(created, closed);
}
