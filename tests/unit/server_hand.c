/* The record that one front hands over to the next: everything that is written is read again, and nothing else is. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/front/upgrade/record.h"
#include "tests/unit/random.h"

typedef struct things {
    uint64_t number;
    bool flag;
    char text[16];
    char *string, *none;
    int fd, nowhere;
    size_t count;
    uint64_t list[5];
} things;

static void hand_things(ad_hand *h, things *t) {
    ad__hand_number(h, &t->number);
    ad__hand_flag(h, &t->flag);
    ad__hand_text(h, t->text, sizeof t->text);
    ad__hand_string(h, &t->string);
    ad__hand_string(h, &t->none);
    ad__hand_fd(h, &t->fd);
    ad__hand_fd(h, &t->nowhere);
    t->count = ad__hand_count(h, t->count);
    for (size_t i = 0; i < t->count && i < 5; i++) ad__hand_number(h, &t->list[i]);
}

static things make_things(void) {
    things t = {.number = UINT64_MAX - 3, .flag = true, .text = "some text", .nowhere = -1, .count = 5};
    t.string = strdup("of any length");
    t.fd = open("/dev/null", O_RDONLY);
    for (uint64_t i = 0; i < 5; i++) t.list[i] = i * i;
    return t;
}

static ad_hand begin_reading(const ad_bytes *b, size_t size) {
    return (ad_hand){.reading = true, .at = b->data, .end = b->data + size};
}

static void drop_things(things *t) {
    free(t->string);
    free(t->none);
    if (t->fd >= 0) close(t->fd);
}

Test(hand, is_read_as_it_was_written) {
    ad_hand out = {.out = AD_BYTES_INIT};
    things t = make_things(), again = {.fd = -1};
    hand_things(&out, &t);
    cr_assert(!out.failed && out.count == 1 && out.fd[0] == t.fd);
    ad_hand in = begin_reading(&out.out, out.out.size);
    hand_things(&in, &again);
    cr_assert(!in.failed && in.at == in.end);
    cr_assert(again.number == t.number && again.flag && !strcmp(again.text, t.text));
    cr_assert_str_eq(again.string, t.string);
    cr_assert(!again.none && again.fd == t.fd && again.nowhere == -1 && again.count == 5);
    cr_assert_arr_eq(again.list, t.list, sizeof t.list);
    cr_assert(fcntl(again.fd, F_GETFD) & FD_CLOEXEC, "it would go to workers");
    again.fd = -1;
    drop_things(&again);
    drop_things(&t);
    ad__hand_free(&out);
}

Test(hand, a_descriptor_is_taken_once_and_only_if_it_was_let_through) {
    const int closed = 900;
    for (int own = 0; own < 3; own++) {
        int fd = own == 1 ? open("/dev/null", O_RDONLY | O_CLOEXEC) : own == 2 ? closed : 1;
        ad_hand out = {.out = AD_BYTES_INIT};
        ad__hand_fd(&out, &fd);
        ad_hand in = begin_reading(&out.out, out.out.size);
        int got = 7;
        ad__hand_fd(&in, &got);
        cr_assert(in.failed && got == -1, "%d", own);
        ad__hand_free(&out);
    }
    int fd = open("/dev/null", O_RDONLY), first = -1, second = -1;
    ad_hand out = {.out = AD_BYTES_INIT};
    ad__hand_fd(&out, &fd);
    ad__hand_fd(&out, &fd);
    ad_hand in = begin_reading(&out.out, out.out.size);
    ad__hand_fd(&in, &first);
    ad__hand_fd(&in, &second);
    cr_assert(in.failed && first == fd && second == -1);
    ad__hand_free(&out);
}

Test(hand, what_is_cut_off_or_damaged_fails_within_bounds) {
    ad_hand out = {.out = AD_BYTES_INIT};
    things t = make_things();
    uint64_t seed = 3;
    hand_things(&out, &t);
    const size_t size = out.out.size;
    uint8_t *copy = malloc(size);
    for (size_t n = 0; n < size; n++) { /* exactly so many bytes, for a sanitizer to see more */
        uint8_t *part = malloc(n ? n : 1);
        memcpy(part, out.out.data, n);
        ad_hand in = {.reading = true, .at = part, .end = part + n};
        things again = {.fd = -1};
        fcntl(t.fd, F_SETFD, 0);
        hand_things(&in, &again);
        cr_assert(in.failed, "%zu", n);
        again.fd = -1;
        drop_things(&again);
        free(part);
    }
    for (int i = 0; i < 20000; i++) {
        memcpy(copy, out.out.data, size);
        for (int k = 0; k < 3; k++) copy[random64(&seed) % size] = (uint8_t)random64(&seed);
        ad_hand in = {.reading = true, .at = copy, .end = copy + size};
        things again = {.fd = -1};
        fcntl(t.fd, F_SETFD, 0);
        hand_things(&in, &again);
        cr_assert(memchr(again.text, 0, sizeof again.text) && in.at <= in.end);
        again.fd = -1;
        drop_things(&again);
    }
    free(copy);
    drop_things(&t);
    ad__hand_free(&out);
}
