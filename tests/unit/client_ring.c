/* The client's ends of a ring: what comes by ring and by socket in turn, a ring that its other end breaks, and one
 * beside a socket that is full. The test is the server's end. */
#include <criterion/criterion.h>
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client-c/client.h"
#include "tests/unit/client_connection.h"
#include "tests/unit/client_fake.h"

static ad_ring_memory *memory; /* the server's */
static ad_ring_writer writer;
static fake *f;
static ad_session *s;

/* Give the session a ring, as if the server had offered one with the bytes that have come. */
static void set_up(void) {
    ad_ring_memory *m = NULL;
    int fd = -1;
    f = fake_open(NULL, &s);
    cr_assert_not_null(f);
    cr_assert(ad__ring_create(&memory, &fd) == 0 && ad__ring_map(fd, &m) == 0);
    close(fd);
    const uint64_t place = s->input.received;
    ad__ring_read_begin(&s->ring.reader, &m->down, m->bytes[1], place);
    s->ring.memory = m;
    ad__ring_write_begin(&writer, &memory->down, memory->bytes[1], place);
}

static void tear_down(void) {
    connection.on_peek = NULL;
    ad_session_close(s);
    fake_stop(f);
    ad__ring_unmap(memory);
}

TestSuite(client_ring, .init = set_up, .fini = tear_down);

static bool put_text(const char *text) {
    const struct iovec part = {(void *)(uintptr_t)text, strlen(text)};
    return ad__ring_put(&writer, &part, 1);
}

static void put_two(void) { cr_assert(put_text("two")); }

static void expect_text(const char *text) {
    char got[16] = "";
    const ssize_t n = ad__ring_receive(s, got, sizeof got - 1, MSG_DONTWAIT);
    cr_expect_eq(n, (ssize_t)strlen(text), "%s: %s", text, strerror(errno));
    cr_expect_str_eq(got, text);
}

static void send_text(const char *text) {
    cr_assert_eq(send(f->fd, text, strlen(text), 0), (ssize_t)strlen(text));
    ad__ring_count_sent(&writer, strlen(text));
}

Test(client_ring, a_socket_that_has_bytes_beside_an_empty_ring) {
    cr_expect_not(put_text("nobody looks there"));
    cr_expect_not(ad__ring_has_input(s), "the reader sleeps");
    ad__ring_wake(&s->ring.reader);
    cr_expect_not(ad__ring_has_input(s));
    send_text("one");
    expect_text("one");
    cr_expect(s->ring.reader.asleep, "the writer may go on over the socket");
    ad__ring_wake(&s->ring.reader);
    put_two();
    cr_expect(ad__ring_has_input(s));
    expect_text("two");
}

/* Bytes that are seen at the socket may be behind a record that was put there meanwhile. */
Test(client_ring, a_record_that_comes_during_a_look_at_the_socket) {
    char got[16];
    ad__ring_wake(&s->ring.reader);
    connection.on_peek = put_two;
    cr_assert_eq(send(f->fd, "three", 5, 0), 5);
    cr_expect_eq(ad__ring_receive(s, got, sizeof got, MSG_DONTWAIT), -1);
    cr_expect_eq(errno, EAGAIN);
    connection.on_peek = NULL;
    expect_text("two");
    ad__ring_count_sent(&writer, 5);
    expect_text("three");
}

Test(client_ring, a_ring_that_is_broken) {
    char got[16];
    ad__ring_wake(&s->ring.reader);
    atomic_store(&memory->down.tail, 1000u << 1); /* a record without a size */
    cr_expect_eq(ad__ring_receive(s, got, sizeof got, MSG_DONTWAIT), -1);
    cr_expect_eq(errno, EPROTO);
    cr_expect_eq(ad_sync(s), AD_E_CONNECTION);
}

/* Put the server's acknowledgement of nothing. */
static void put_frame(void) {
    uint8_t bytes[64];
    ad_bytes control = AD_BYTES_INIT;
    ad__encode_ack(&control, 0);
    ad__frame_encode(&(ad_frame){.control = (uint32_t)control.size}, bytes);
    memcpy(bytes + AD_FRAME_HEADER, control.data, control.size);
    ad__ring_wake(&s->ring.reader);
    cr_assert(ad__ring_put(&writer, &(struct iovec){bytes, AD_FRAME_HEADER + control.size}, 1));
    ad__bytes_free(&control);
}

static int interrupt_when_read(void *unused) {
    (void)unused;
    return !ad__ring_has_input(s);
}

/* A socket is full, and nobody looks at the other direction of the ring: the writer reads there while it waits. */
Test(client_ring, a_writer_reads_the_ring) {
    ad_array *a = NULL;
    connection.threadless = true;
    put_frame();
    ad_session_set_interrupt(s, interrupt_when_read, NULL);
    connection.room = 0;
    cr_expect_eq(ad_empty(s, AD_INT8, 0, NULL, &a), AD_E_INTERRUPTED);
    cr_expect_not(s->dead, "%s", s->why);
    cr_expect_eq(s->ring.reader.place, writer.place);
    connection_clear();
}

Test(client_ring, an_idle_connection_with_a_ring_is_looked_at) {
    put_frame();
    pthread_mutex_lock(&s->lock);
    ad__resume_check(s);
    pthread_mutex_unlock(&s->lock);
    cr_expect_eq(s->ring.reader.place, writer.place);
    cr_expect_not(s->dead, "%s", s->why);
}
