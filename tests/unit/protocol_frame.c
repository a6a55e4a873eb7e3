#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/frame.h"
#include "protocol/message.h"

Test(frame, layout) {
    const ad_frame f = {0x01020304, 1, 0x1112131415161718};
    const uint8_t expected[AD_FRAME_HEADER] = {4, 3, 2, 1, 1, 0, 0, 0, 0x18, 0x17, 0x16, 0x15, 0x14, 0x13, 0x12, 0x11};
    uint8_t bytes[AD_FRAME_HEADER];
    ad_frame back = {0};

    ad__frame_encode(&f, bytes);
    cr_expect_eq(memcmp(bytes, expected, sizeof bytes), 0);
    cr_expect_eq(ad__frame_decode(bytes, UINT32_MAX, UINT64_MAX, &back, NULL), 0);
    cr_expect(back.control == f.control && back.flags == f.flags && back.payload == f.payload);
}

Test(frame, limits) {
    struct {
        ad_frame frame;
        bool good;
    } cases[] = {
        {{100, 0, 1000}, true}, {{1, 0, 0}, true},          {{0, 0, 1}, true},           {{101, 0, 0}, false},
        {{1, 0, 1001}, false},  {{0, 0, 0}, false},         {{0, 1, 0}, false},          {{1, 2, 0}, false},
        {{1, 3, 0}, false},     {{1, 1u << 31, 0}, false},  {{UINT32_MAX, 0, 0}, false}, {{1, 0, UINT64_MAX}, false},
        {{0, 2, 0}, true},      {{0, 2, UINT64_MAX}, true}, {{0, 4, 0}, true},           {{0, 6, 0}, false},
        {{0, 5, 0}, false},     {{1, 4, 0}, false},         {{0, 8, 0}, true},           {{0, 12, 0}, false},
        {{1, 8, 0}, false},     {{0, 16, 0}, false},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        uint8_t bytes[AD_FRAME_HEADER];
        ad_frame back = {77, 77, 77};
        ad_fault fault = {0};
        ad__frame_encode(&cases[i].frame, bytes);
        int status = ad__frame_decode(bytes, 100, 1000, &back, &fault);
        cr_expect_eq(status, cases[i].good ? 0 : AD_E_PROTOCOL, "case %zu", i);
        cr_expect_eq(fault.code, status, "case %zu", i);
        cr_expect_eq(back.control, cases[i].good ? cases[i].frame.control : 77, "case %zu", i);
    }
}

#define SCAN(bytes) ad__scan((const uint8_t *)(bytes), sizeof(bytes) - 1, NULL)

Test(scan, what_msgpack_has) {
    cr_expect_eq(ad__scan(NULL, 0, NULL), 0);
    cr_expect_eq(SCAN("\x90"), 0);
    cr_expect_eq(SCAN("\x90\x91\x01\x92\xc0\xc3"), 0);
    cr_expect_eq(
        SCAN("\x9f\x00\x7f\xe0\xff\xc2\xcc\x01\xcd\x01\x02\xce\x01\x02\x03\x04\xcf\x01\x02\x03\x04\x05\x06\x07\x08"
             "\xd0\x01\xd1\x01\x02\xd2\x01\x02\x03\x04\xd3\x01\x02\x03\x04\x05\x06\x07\x08\xca\x01\x02\x03\x04"
             "\xcb\x01\x02\x03\x04\x05\x06\x07\x08"),
        0);
    cr_expect_eq(
        SCAN("\x9a\xa0\xa1x\xd9\x01x\xda\x00\x01x\xdb\x00\x00\x00\x01x\xc4\x01x\xc5\x00\x01x\xc6\x00\x00\x00\x01x"
             "\xc7\x01\x05x\xc8\x00\x01\x05x"),
        0);
    cr_expect_eq(
        SCAN("\x96\xc9\x00\x00\x00\x01\x05x\xd4\x05x\xd5\x05xx\xd6\x05xxxx\xd7\x05xxxxxxxx\xd8\x05xxxxxxxxxxxxxxxx"),
        0);
    cr_expect_eq(SCAN("\x94\x80\x81\x01\x02\xde\x00\x01\x01\x02\xdf\x00\x00\x00\x01\x01\x02"), 0);
    cr_expect_eq(SCAN("\x92\xdc\x00\x02\x01\x02\xdd\x00\x00\x00\x01\x90"), 0);
}

Test(scan, every_cut_is_refused) {
    const char whole[] =
        "\x95\x81\xa1x\x92\x01\xcf\x01\x02\x03\x04\x05\x06\x07\x08\xc4\x02xy\xd4\x05x\xdc\x00\x02\x01\x02\x90";

    cr_expect_eq(SCAN(whole), 0);
    for (size_t size = 1; size < sizeof whole - 1; size++)
        cr_expect_eq(ad__scan((const uint8_t *)whole, size, NULL), AD_E_PROTOCOL, "%zu bytes", size);
}

Test(scan, bombs) {
    cr_expect_eq(SCAN("\xdd\x04\x00\x00\x00"), AD_E_PROTOCOL);
    cr_expect_eq(SCAN("\xdf\x04\x00\x00\x00"), AD_E_PROTOCOL);
    cr_expect_eq(SCAN("\x91\xdf\x80\x00\x00\x00\xc0\xc0\xc0"), AD_E_PROTOCOL); /* twice 2^31 is 0 in 32 bits */
    cr_expect_eq(SCAN("\x91\xdb\xff\xff\xff\xff"), AD_E_PROTOCOL);
    cr_expect_eq(SCAN("\x91\xc9\xff\xff\xff\xff\x01"), AD_E_PROTOCOL);
    cr_expect_eq(SCAN("\x91\xc1"), AD_E_PROTOCOL);
    cr_expect_eq(SCAN("\xc0"), AD_E_PROTOCOL);
    cr_expect_eq(SCAN("\x81\x01\x02"), AD_E_PROTOCOL);
    cr_expect_eq(SCAN("\x90\x01"), AD_E_PROTOCOL);
    uint8_t nested[31 * 5];
    for (int i = 0; i < 31; i++) memcpy(nested + 5 * i, "\xdd\x00\x80\x00\x00", 5);
    cr_expect_eq(ad__scan(nested, sizeof nested, NULL), AD_E_PROTOCOL);
}

Test(scan, depth) {
    cr_expect_eq(SCAN("\x91\x91\x91\x91\x91\x91\x91\x91\xc0"), 0);
    cr_expect_eq(SCAN("\x91\x91\x91\x91\x91\x91\x91\x90"), 0);
    cr_expect_eq(SCAN("\x91\x91\x91\x91\x91\x91\x91\x91\x90"), AD_E_PROTOCOL);
    cr_expect_eq(SCAN("\x91\x91\x91\x91\x91\x91\x91\x91\x80"), AD_E_PROTOCOL);
    cr_expect_eq(SCAN("\x91\x91\x91\x91\x91\x91\x91\x91\x90\x90"), AD_E_PROTOCOL);
    cr_expect_eq(SCAN("\x92\x91\x91\x91\x91\x91\x91\x90\x91\x91\x91\x91\x91\x91\x90"), 0); /* depth, not their number */
}

Test(scan, elements) {
    static uint8_t block[AD_SCAN_ELEMENTS + 6];

    block[0] = 0xdd;
    for (uint32_t n = AD_SCAN_ELEMENTS - 2; n <= AD_SCAN_ELEMENTS; n++) {
        for (int i = 0; i < 4; i++) block[1 + i] = (uint8_t)(n >> (24 - 8 * i));
        int expected = n < AD_SCAN_ELEMENTS ? 0 : AD_E_PROTOCOL;
        cr_expect_eq(ad__scan(block, 5 + n, NULL), expected, "%u", n);
    }
    memset(block, 0x90, sizeof block); /* over many messages too */
    cr_expect_eq(ad__scan(block, AD_SCAN_ELEMENTS, NULL), 0);
    cr_expect_eq(ad__scan(block, AD_SCAN_ELEMENTS + 1, NULL), AD_E_PROTOCOL);
}

Test(bytes, grow) {
    ad_bytes b = AD_BYTES_INIT;

    ad__bytes_append(&b, NULL, 0);
    cr_expect(b.size == 0 && !b.failed);
    for (int i = 0; i < 10000; i++) ad__bytes_append(&b, &i, sizeof i);
    cr_expect(b.size == 40000 && !b.failed);
    for (int i = 0; i < 10000; i++) cr_expect_eq(memcmp(b.data + 4 * i, &i, sizeof i), 0);
    cr_expect_eq(ad__bytes_reserve(&b, 100000), 0);
    cr_expect_geq(b.capacity, 140000);
    /* A failure stays, and what is there stays too. */
    cr_expect_eq(ad__bytes_reserve(&b, SIZE_MAX), AD_E_MEMORY);
    cr_expect(b.failed && b.size == 40000);
    ad__bytes_append(&b, "x", 1);
    cr_expect_eq(b.size, 40000);
    ad__bytes_free(&b);
    cr_expect(b.data == NULL && !b.failed);
}

Test(arena, alloc) {
    ad_arena arena = AD_ARENA_INIT;

    for (int round = 0; round < 3; round++) {
        for (size_t size = 0; size < 3000; size += 7) {
            unsigned char *p = ad__arena_alloc(&arena, size);
            cr_assert_not_null(p);
            cr_expect_eq((uintptr_t)p % 16, 0);
            memset(p, 0xff, size);
        }
        unsigned char *large = ad__arena_alloc(&arena, 1 << 20);
        cr_assert_not_null(large);
        memset(large, 1, 1 << 20);
        ad__arena_reset(&arena);
    }
    cr_expect_null(ad__arena_alloc(&arena, SIZE_MAX));
    cr_expect_null(ad__arena_alloc(&arena, SIZE_MAX - 20));
    ad__arena_free(&arena);
    ad__arena_reset(&arena);
    ad__arena_free(&arena);
}
