/* Rings: what one end writes is what the other end reads, in the order of the stream, whatever goes by the ring and
 * whatever over the socket; and an end that breaks the ring is found. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "protocol/ring.h"
#include "tests/unit/random.h"

static ad_ring_memory *memory;
static ad_ring_writer writer;
static ad_ring_reader reader;
static int end[2]; /* the socket: of the writer, of the reader */
#define PLACE 1000 /* of the stream when the ring is made */

static void open_ring(void) {
    int fd;
    ad_ring_memory *other;
    cr_assert_eq(ad__ring_create(&memory, &fd), 0);
    cr_assert_eq(ad__ring_map(fd, &other), 0);
    close(fd);
    ad__ring_write_begin(&writer, &memory->up, memory->bytes[0], PLACE);
    ad__ring_read_begin(&reader, &other->up, other->bytes[0], PLACE);
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, end), 0);
}

static bool put_bytes(const void *data, size_t size) {
    return ad__ring_put(&writer, &(struct iovec){(void *)(uintptr_t)data, size}, 1);
}

/* ---- a stream through both ---- */

#define BYTES (64u << 20)

static uint8_t byte_at(uint64_t place) { return (uint8_t)(place * 31 + (place >> 8) * 7); }

static void fill_bytes(uint8_t *to, uint64_t place, size_t size) {
    for (size_t i = 0; i < size; i++) to[i] = byte_at(place + i);
}

static void send_all(const uint8_t *data, size_t size) {
    ad__ring_announce(&writer, size);
    for (ssize_t n; size; data += n, size -= (size_t)n) {
        n = send(end[0], data, size, 0);
        cr_assert_gt(n, 0);
        ad__ring_count_sent(&writer, (uint64_t)n);
    }
}

/* Write pieces of all sizes: some by the ring, and some, chosen by chance or for want of room, over the socket. */
static void *write_stream(void *seed) {
    static uint8_t piece[100000];
    uint64_t chance = *(uint64_t *)seed, by_ring = 0;
    for (uint64_t at = 0; at < BYTES;) {
        const uint64_t kind = random64(&chance) % 16;
        size_t size = 1 + random64(&chance) % (kind == 0 ? sizeof piece : kind < 4 ? 5000 : 100);
        if (size > BYTES - at) size = BYTES - at;
        fill_bytes(piece, PLACE + at, size);
        struct iovec part[2] = {{piece, size / 3}, {piece + size / 3, size - size / 3}};
        if (random64(&chance) % 8 && ad__ring_put(&writer, part, 2)) by_ring++;
        else send_all(piece, size);
        at += size;
    }
    return (void *)(uintptr_t)by_ring;
}

/* Read some bytes as a client or a worker does: what the ring has, else the socket, asleep or awake. */
static size_t read_some(uint8_t *to, size_t room, uint64_t *chance) {
    uint64_t size;
    int source = ad__ring_look(&reader, &size);
    cr_assert_geq(source, 0);
    if (source == AD_RING_EMPTY && random64(chance) % 4 == 0) {
        ad__ring_sleep(&reader);
        source = ad__ring_look(&reader, &size);
    }
    if (source == AD_RING_EMPTY) return 0;
    if (size > room) size = room;
    if (source == AD_RING_RECORD) {
        ad__ring_take(&reader, to, size);
        return size;
    }
    ssize_t n = recv(end[1], to, size, reader.asleep ? 0 : MSG_DONTWAIT);
    if (n <= 0) return 0;
    ad__ring_count_received(&reader, (uint64_t)n);
    if (random64(chance) % 2) ad__ring_wake(&reader);
    return (size_t)n;
}

static void pass_stream(uint64_t seed) {
    static uint8_t got[70000];
    uint64_t chance = seed + 1;
    void *by_ring;
    pthread_t thread;
    open_ring();
    ad__ring_wake(&reader);
    cr_assert_eq(pthread_create(&thread, NULL, write_stream, &seed), 0);
    for (uint64_t at = 0; at < BYTES;) {
        size_t n = read_some(got, 1 + random64(&chance) % sizeof got, &chance);
        size_t same = 0;
        while (same < n && got[same] == byte_at(PLACE + at + same)) same++;
        cr_assert_eq(same, n, "seed %lu: byte %lu", seed, at + same);
        at += n;
    }
    pthread_join(thread, &by_ring);
    cr_expect_gt((uintptr_t)by_ring, 1000);
    cr_expect_eq(reader.place, PLACE + BYTES);
    cr_expect_eq(writer.place, reader.place);
}

Test(ring, a_stream_by_ring_and_socket_keeps_its_order) { pass_stream(1); }
Test(ring, another_stream_does) { pass_stream(20261126); }

/* ---- rules ---- */

Test(ring, nothing_is_put_for_a_sleeping_reader) {
    uint64_t size;
    open_ring();
    cr_expect_not(put_bytes("abc", 3));
    cr_expect_eq(ad__ring_look(&reader, &size), AD_RING_SOCKET);
    ad__ring_wake(&reader);
    cr_expect_eq(ad__ring_look(&reader, &size), AD_RING_EMPTY);
    cr_expect(put_bytes("abc", 3));
    cr_expect_not(ad__ring_sleep(&reader), "a record has come");
    cr_expect_eq(ad__ring_look(&reader, &size), AD_RING_RECORD);
    cr_expect_eq(size, 3);
    cr_expect_not(ad__ring_sleep(&reader), "the record has not been taken");
    char to[3];
    ad__ring_take(&reader, to, 3);
    cr_expect_eq(memcmp(to, "abc", 3), 0);
    cr_expect(ad__ring_sleep(&reader));
    cr_expect_not(put_bytes("abc", 3));
}

Test(ring, what_does_not_fit_is_not_put) {
    static uint8_t all[AD_RING_DATA + 1];
    uint64_t size;
    open_ring();
    ad__ring_wake(&reader);
    cr_expect_not(put_bytes(all, 0));
    cr_expect_not(put_bytes(all, AD_RING_DATA + 1));
    cr_expect_not(put_bytes(all, AD_RING_DATA), "its head needs room");
    cr_expect(put_bytes(all, AD_RING_DATA - 16));
    cr_expect_not(put_bytes(all, 1));
    cr_expect_eq(ad__ring_look(&reader, &size), AD_RING_RECORD);
    ad__ring_take(&reader, all, AD_RING_DATA - 100);
    cr_expect(put_bytes(all, 1));
}

Test(ring, announced_bytes_go_over_the_socket_first) {
    uint64_t size;
    open_ring();
    ad__ring_wake(&reader);
    ad__ring_announce(&writer, 10);
    ad__ring_count_sent(&writer, 4);
    cr_expect_not(put_bytes("x", 1), "six bytes are missing");
    cr_expect_eq(ad__ring_look(&reader, &size), AD_RING_SOCKET);
    cr_expect_eq(size, 10);
    ad__ring_count_sent(&writer, 6);
    cr_expect(put_bytes("x", 1));
    cr_expect_eq(ad__ring_look(&reader, &size), AD_RING_SOCKET);
    cr_expect_eq(size, 10);
    ad__ring_count_received(&reader, 10);
    cr_expect_eq(ad__ring_look(&reader, &size), AD_RING_RECORD);
}

/* ---- the other end as an enemy ---- */

/* Let the reader look at a record whose head an enemy has written. */
static int look_at(uint64_t place, uint64_t record, uint64_t tail) {
    uint64_t size;
    const uint64_t head[2] = {place, record};
    open_ring();
    ad__ring_wake(&reader);
    memcpy(memory->bytes[0], head, sizeof head);
    atomic_store(&memory->up.tail, tail << 1);
    return ad__ring_look(&reader, &size);
}

Test(ring, a_broken_ring_is_found) {
    cr_expect_eq(look_at(PLACE, 16, 32), AD_RING_RECORD);
    cr_expect_eq(look_at(PLACE + 1, 16, 32), AD_RING_SOCKET);
    cr_expect_eq(look_at(PLACE, 16, 16), AD_E_PROTOCOL, "the record goes beyond the tail");
    cr_expect_eq(look_at(PLACE, 17, 32), AD_E_PROTOCOL);
    cr_expect_eq(look_at(PLACE, 0, 32), AD_E_PROTOCOL);
    cr_expect_eq(look_at(PLACE, UINT64_MAX, 32), AD_E_PROTOCOL);
    cr_expect_eq(look_at(PLACE, UINT64_MAX - 14, AD_RING_DATA), AD_E_PROTOCOL);
    cr_expect_eq(look_at(PLACE, AD_RING_DATA, AD_RING_DATA), AD_E_PROTOCOL);
    cr_expect_eq(look_at(PLACE - 1, 16, 32), AD_E_PROTOCOL, "the stream goes back");
    cr_expect_eq(look_at(PLACE, 16, 1), AD_E_PROTOCOL);
    cr_expect_eq(look_at(PLACE, 16, AD_RING_DATA + 16), AD_E_PROTOCOL);
    cr_expect_eq(look_at(PLACE, 16, UINT64_MAX >> 1), AD_E_PROTOCOL, "the tail goes back");
}

Test(ring, indices_of_an_enemy_harm_no_writer) {
    open_ring();
    ad__ring_wake(&reader);
    cr_assert(put_bytes("abc", 3));
    for (uint64_t bad = 1; bad; bad <<= 1) {
        if (bad <= 32) continue; /* it looks as if the reader were there */
        atomic_store(&memory->up.head, bad);
        cr_expect_not(put_bytes("abc", 3), "head %lu", bad);
    }
    atomic_store(&memory->up.head, 32);
    const uint64_t tail = atomic_load(&memory->up.tail);
    for (uint64_t bad = 1; bad; bad <<= 1) {
        atomic_store(&memory->up.tail, tail ^ bad);
        cr_expect_not(put_bytes("abc", 3), "tail %lu", tail ^ bad);
    }
    atomic_store(&memory->up.tail, tail);
    cr_expect(put_bytes("abc", 3));
}

Test(ring, other_memory_is_refused) {
    ad_ring_memory *m = NULL;
    int fd;
    open_ring();
    cr_expect_eq(ad__ring_map(end[0], &m), AD_E_VALUE);
    cr_assert_eq(ad__ring_create(&memory, &fd), 0);
    cr_expect_eq(ftruncate(fd, AD_RING_SIZE - 1), -1, "it cannot be shrunk");
    cr_expect_eq(ftruncate(fd, AD_RING_SIZE + 1), -1);
    memory->layout = AD_RING_LAYOUT + 1;
    cr_expect_eq(ad__ring_map(fd, &m), AD_E_VALUE);
    cr_expect_null(m);
    ad__ring_unmap(memory);
    close(fd);
}

/* ---- how long an end looks ---- */

/* Wait so many times, and return how often the end has looked in the longest of these waits. */
static unsigned wait_often(ad_ring_patience *p, unsigned waits, bool came) {
    unsigned most = 0;
    for (unsigned i = 0; i < waits; i++) {
        const unsigned looks = ad__ring_begin_wait(p);
        if (looks > most) most = looks;
        cr_assert_eq(ad__ring_end_wait(p, came), came);
    }
    return most;
}

Test(ring, an_end_to_which_bytes_come_looks_for_long) {
    ad_ring_patience p = {0};
    cr_assert_eq(wait_often(&p, 1, true), AD_RING_LOOKS_LEAST);
    wait_often(&p, AD_RING_TRIAL, true);
    for (int i = 0; i < 1000; i++) {
        cr_assert_eq(ad__ring_begin_wait(&p), AD_RING_LOOKS_MOST);
        ad__ring_end_wait(&p, true);
    }
}

Test(ring, an_end_that_waits_for_others_looks_for_a_moment) {
    ad_ring_patience p = {.looks = AD_RING_LOOKS_MOST};
    wait_often(&p, 2, false);
    cr_assert_eq(wait_often(&p, AD_RING_TRIAL - 3, false), AD_RING_LOOKS_LEAST);
    cr_assert_eq(wait_often(&p, 1, false), AD_RING_LOOKS_MOST, "one wait is a trial");
    wait_often(&p, 2, false);
    cr_assert_eq(wait_often(&p, AD_RING_TRIAL / 2, false), AD_RING_LOOKS_LEAST);
}
