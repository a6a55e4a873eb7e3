/* The unacknowledged bytes: whatever the server has received and answered, the stream can go on from there. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "client-c/resume/unacknowledged.h"
#include "tests/unit/random.h"

#define FRAMES 3000
#define MOST (32u << 20)

static uint64_t seed = 1;

static struct { uint64_t end, ops, requests; /* counts at the end of the frame */ } sent[FRAMES];
static uint8_t *stream;
static ad_unacked unacked;

/* Read all bytes from `from` on in pieces of any size, and compare them with what was added. */
static void check_from(uint64_t from) {
    ad_bytes out = AD_BYTES_INIT;
    cr_assert_leq(unacked.begin, from, "bytes from %lu on are wanted", (unsigned long)from);
    for (uint64_t at = from; at < unacked.end;) {
        uint64_t to = at + 1 + random64(&seed) % (unacked.end - at);
        size_t n = ad__unacked_read(&unacked, at, to, &out);
        cr_assert(n > 0 && n <= to - at);
        at += n;
    }
    cr_assert_eq(out.size, unacked.end - from);
    cr_assert(out.size == 0 || memcmp(out.data, stream + from, out.size) == 0);
    ad__bytes_free(&out);
}

static void add_frame(int n) {
    static uint8_t data[300000];
    const size_t size = 1 + (random64(&seed) % 50 ? random64(&seed) % 200 : random64(&seed) % sizeof data);
    const uint64_t ops = n ? sent[n - 1].ops : 0, requests = n ? sent[n - 1].requests : 0;
    for (size_t i = 0; i < size; i++) data[i] = (uint8_t)random64(&seed);
    memcpy(stream + unacked.end, data, size);
    const size_t first = random64(&seed) % (size + 1);
    cr_assert_eq(ad__unacked_add(&unacked, data, first), 0);
    cr_assert_eq(ad__unacked_add(&unacked, data + first, size - first), 0);
    if (first < size) cr_expect_eq(memcmp(ad__unacked_last(&unacked, size - first), data + first, size - first), 0);
    ad__unacked_mark(&unacked, ops, requests);
    sent[n].end = unacked.end;
    sent[n].ops = ops + random64(&seed) % 3;
    sent[n].requests = requests + (sent[n].ops == ops ? 1 : random64(&seed) % 2);
}

Test(unacked, what_the_server_may_not_have_is_there) {
    uint64_t received = 0, ops = 0, requests = 0, most = 0;
    int n = 0, whole = 0; /* frames that were sent; that the server has whole */
    stream = malloc(MOST);
    while (n < FRAMES && unacked.end < MOST - 400000) {
        switch (random64(&seed) % 6) {
        case 0:
        case 1: add_frame(n++); break;
        case 2:
            received += random64(&seed) % 4 ? (sent[whole < n ? whole : n - 1].end - received) * (whole < n)
                                            : random64(&seed) % (unacked.end - received + 1);
            break;
        case 3: /* the server answers some of what it has received */
            while (whole < n && sent[whole].end <= received) whole++;
            if (!whole) break;
            if (random64(&seed) % 2) ops = ops + random64(&seed) % (sent[whole - 1].ops - ops + 1);
            else requests = requests + random64(&seed) % (sent[whole - 1].requests - requests + 1);
            ad__unacked_release(&unacked, ops, requests);
            break;
        case 4:
            if (random64(&seed) % 20 == 0) check_from(received);
            break;
        default: cr_assert_leq(unacked.begin, received); break;
        }
        if (unacked.end - unacked.begin > most) most = unacked.end - unacked.begin;
    }
    while (whole < n) whole++;
    ad__unacked_release(&unacked, sent[n - 1].ops, sent[n - 1].requests);
    cr_expect_leq(unacked.end - unacked.begin, 64u << 10, "nothing much is left when all has been answered");
    check_from(unacked.begin);
    ad__unacked_clear(&unacked);
    free(stream);
}

Test(unacked, descriptors_go_with_their_byte) {
    int end[2], more[2];
    ad_unacked u = {0};
    cr_assert_eq(pipe2(end, O_CLOEXEC), 0);
    cr_assert_eq(pipe2(more, O_CLOEXEC), 0);
    cr_assert_eq(ad__unacked_pass(&u, 0, end[1]), 0);
    cr_assert_eq(ad__unacked_add(&u, "one", 3), 0);
    ad__unacked_mark(&u, 0, 0);
    cr_assert_eq(ad__unacked_pass(&u, 3, -1), 0);
    cr_assert_eq(ad__unacked_add(&u, "two", 3), 0);
    cr_expect_eq(ad__unacked_next_descriptor(&u, 0), 0);
    cr_expect_eq(ad__unacked_next_descriptor(&u, 1), 1);
    cr_expect_eq(ad__unacked_next_descriptor(&u, 4), -1);
    close(end[1]);
    uint8_t byte;
    cr_expect_eq(write(u.passed[0].fd, "x", 1), 1, "it is a duplicate");
    cr_expect_eq(read(end[0], &byte, 1), 1);
    ad__unacked_release(&u, 1, 0);
    cr_expect_eq(u.begin, 3);
    cr_expect_eq(read(end[0], &byte, 1), 0, "it is closed with what it went with");
    cr_expect_eq(ad__unacked_next_descriptor(&u, 0), 0);
    cr_expect_eq(u.passed[0].fd, -1);
    for (int i = 0; i < 100; i++) cr_assert_eq(ad__unacked_pass(&u, 6, i % 10 ? -1 : more[1]), 0);
    ad__unacked_clear(&u);
    close(more[1]);
    cr_expect_eq(read(more[0], &byte, 1), 0);
    close(more[0]);
    close(end[0]);
}

Test(unacked, a_descriptor_that_cannot_be_kept) {
    int end[2];
    ad_unacked u = {0};
    cr_assert_eq(pipe2(end, O_CLOEXEC), 0);
    const struct rlimit none_left = {(rlim_t)end[1] + 1, (rlim_t)end[1] + 1};
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &none_left), 0);
    cr_expect_eq(ad__unacked_pass(&u, 0, end[1]), AD_E_SYSTEM, "it would be sent again as another");
    cr_expect_eq(u.npassed, 0);
    cr_expect_eq(ad__unacked_pass(&u, 0, -1), 0, "and a fork's is not kept");
    ad__unacked_clear(&u);
    close(end[0]);
    close(end[1]);
}

Test(unacked, more_groups_than_there_are_marks) {
    enum { GROUP = 40000, GROUPS = 3 * AD_UNACKED_MARKS };
    static uint8_t data[GROUP];
    ad_unacked u = {0};
    ad_bytes out = AD_BYTES_INIT;
    for (unsigned i = 0; i < GROUPS; i++) {
        cr_assert_eq(ad__unacked_add(&u, data, sizeof data), 0);
        ad__unacked_mark(&u, i, i);
    }
    cr_expect_eq(u.marks, AD_UNACKED_MARKS);
    ad__unacked_release(&u, AD_UNACKED_MARKS - 1, AD_UNACKED_MARKS - 1);
    cr_expect_eq(u.begin, (AD_UNACKED_MARKS - 1) * GROUP, "the last mark stands for all that came later");
    cr_expect_eq(ad__unacked_read(&u, u.begin - GROUP, u.end, &out), 0, "what was released is gone");
    cr_expect_eq(ad__unacked_read(&u, u.end, u.end, &out), 0);
    cr_expect_eq(ad__unacked_read(&u, u.begin, u.begin, &out), 0);
    ad__unacked_release(&u, GROUPS, GROUPS);
    cr_expect_eq(u.begin, u.end);
    ad__unacked_clear(&u);
}
