/* A stream of bytes to a client whose connections break: what arrives, put together, is what was appended. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/worker/io/output.h"
#include "tests/unit/random.h"

#define LIMIT (1u << 20)
#define MOST (64u << 20)

static uint64_t seed = 1;

static ad_output output;
static int client;
static uint8_t *expected, *scratch;
static uint64_t appended, received, told;

static void open_pair(int end[2]) {
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, end), 0);
}

static void start_output(bool keeps) {
    int end[2];
    open_pair(end);
    client = end[1];
    ad__output_init(&output, end[0], LIMIT);
    if (keeps) ad__output_keep(&output);
    expected = malloc(MOST);
    scratch = malloc(1u << 20);
    appended = received = told = 0;
}

static void finish_output(void) {
    ad__output_close(&output);
    close(output.fd);
    close(client);
    free(expected);
    free(scratch);
}

static void append_bytes(void) {
    const size_t control = random64(&seed) % 60,
                 size = random64(&seed) % 4 ? random64(&seed) % 300 : random64(&seed) % 60000;
    for (size_t i = 0; i < control + size; i++) scratch[i] = (uint8_t)random64(&seed);
    ad__frame_encode(&(ad_frame){(uint32_t)control, 0, size}, expected + appended);
    memcpy(expected + appended + AD_FRAME_HEADER, scratch, control + size);
    appended += AD_FRAME_HEADER + control + size;
    if (random64(&seed) % 2 && size) {
        ad_output_block *b = ad__output_block(&output, size);
        b->own.size = size;
        memcpy(b->data, scratch + control, size);
        cr_assert_eq(ad__output_chunk(&output, scratch, control, 0, b), 0);
    } else {
        cr_assert_eq(ad__output_frame(&output, scratch, control, 0, scratch + control, size), 0);
    }
}

/* Takes some of what has come, and compares. */
static void take_bytes(size_t most) {
    static uint8_t data[1 << 20];
    ssize_t n = recv(client, data, most < sizeof data ? most : sizeof data, MSG_DONTWAIT);
    if (n <= 0) return;
    cr_assert_leq(received + (uint64_t)n, appended);
    cr_assert_eq(memcmp(data, expected + received, (size_t)n), 0, "at %lu", (unsigned long)received);
    received += (uint64_t)n;
}

static void take_up(void) {
    uint8_t head[50], got[50];
    int end[2];
    const char *why;
    if (random64(&seed) % 2) ad__output_away(&output);
    open_pair(end);
    for (size_t i = 0; i < sizeof head; i++) head[i] = (uint8_t)random64(&seed);
    cr_assert_eq(ad__output_take_up(&output, end[0], head, sizeof head, received, &why), 0, "%s", why);
    cr_assert_eq(fcntl(end[0], F_GETFD), -1, "the descriptor is closed");
    close(client);
    client = end[1];
    cr_assert_eq(recv(client, got, sizeof got, MSG_DONTWAIT), sizeof got);
    cr_assert_eq(memcmp(head, got, sizeof got), 0);
    ad__output_flush(&output);
}

Test(output, what_arrives_is_what_was_appended) {
    start_output(true);
    for (int i = 0; i < 6000 && appended < MOST - (1 << 20); i++) {
        switch (random64(&seed) % 8) {
        case 0:
        case 1:
        case 2:
            if (appended - received < LIMIT / 8) append_bytes();
            ad__output_flush(&output);
            break;
        case 3: take_up(); break;
        case 4:
            told = received - random64(&seed) % (received - told + 1);
            cr_assert_eq(ad__output_taken(&output, told), 0);
            break;
        case 5: ad__output_resume(&output); break;
        default: take_bytes(random64(&seed) % 2 ? 1 + random64(&seed) % 100 : 1 << 18); break;
        }
        if (received - told > LIMIT / 8) {
            told = received;
            cr_assert_eq(ad__output_taken(&output, told), 0);
        }
    }
    cr_expect_eq(ad__output_taken(&output, output.sent + 1), AD_E_PROTOCOL);
    while (received < appended) {
        take_bytes(1 << 20);
        ad__output_resume(&output);
    }
    finish_output();
}

Test(output, what_is_too_far_back_is_refused) {
    uint8_t head[4] = {0};
    const char *why = NULL;
    start_output(true);
    while (appended < LIMIT) {
        append_bytes();
        ad__output_resume(&output);
        take_bytes(1 << 20);
    }
    while (received < appended) {
        take_bytes(1 << 20);
        ad__output_resume(&output);
    }
    int end[2];
    open_pair(end);
    cr_expect_eq(ad__output_take_up(&output, end[0], head, sizeof head, 0, &why), AD_E_RESUME);
    cr_expect_not_null(why);
    cr_expect_eq(ad__output_take_up(&output, end[0], head, sizeof head, received + 1, &why), AD_E_RESUME);
    cr_expect_eq(ad__output_taken(&output, received), 0);
    cr_expect_eq(ad__output_take_up(&output, end[0], head, sizeof head, received - 1, &why), AD_E_RESUME);
    cr_expect_eq(ad__output_take_up(&output, end[0], head, sizeof head, received, &why), 0);
    close(end[1]);
    finish_output();
}

Test(output, without_a_way_back_a_lost_connection_breaks_it) {
    uint8_t head[4] = {0};
    const char *why = NULL;
    int end[2];
    start_output(false);
    append_bytes();
    cr_expect_not(ad__output_flush(&output));
    close(client);
    append_bytes();
    cr_expect(ad__output_flush(&output));
    cr_expect(atomic_load(&output.broken) && !atomic_load(&output.away));
    open_pair(end);
    cr_expect_eq(ad__output_take_up(&output, end[0], head, sizeof head, 0, &why), AD_E_RESUME);
    close(end[0]);
    client = end[1];
    finish_output();
}
