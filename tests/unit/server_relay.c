/* The relay of a TLS connection between a client and a worker that are both the test: what either may do at any time.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/common/os.h"
#include "server/front/net/relay.h"
#include "tests/unit/server_front.h"

static ad_front front;
static ad_relay *relay;
static ad_tls *tls;       /* the client's end */
static int client, outer; /* the client's socket, and the front's */
static int inner;         /* the worker's socket */
static char text[1u << 20];

static void set_up(void) {
    begin_front(&front, NULL);
    make_tls(&front);
}

static void tear_down(void) {
    ad__tls_close(tls);
    if (client >= 0) close(client);
    if (inner >= 0) close(inner);
    run_front(&front);
    end_front(&front);
    cr_expect_null(front.relays);
}

TestSuite(relay, .init = set_up, .fini = tear_down);

/* ---- a connection ---- */

static void open_relay(void) {
    static uint8_t pin[AD_SHA256_SIZE]; /* as long as the context, which refers to it */
    ad_tls_context *context;
    ad_fault fault;
    int fd[2];
    make_connection(fd);
    client = fd[0];
    outer = fd[1];
    cr_assert_eq(ad__relay_open(&front, outer, "tls:test", &relay, &inner), 0);
    cr_assert_eq(ad__tls_pin(front.tls, pin, &fault), 0);
    cr_assert_eq(ad__tls_client(&(ad_tls_files){.pin = pin}, &context, &fault), 0, "%s", fault.text);
    cr_assert_eq(ad__tls_open(context, &client, "localhost", &tls, &fault), 0, "%s", fault.text);
    ad__tls_context_free(context);
}

static void open_secure_relay(void) {
    ad_fault fault = {0};
    int done = 0;
    open_relay();
    for (int i = 0; i < 100 && !(done = ad__tls_handshake(tls, &fault)); i++) run_front(&front);
    cr_assert_eq(done, 1, "%s", fault.text);
    run_front(&front);
}

/* Read all that the client is sent, until the relay has nothing more. -1: the connection is over. */
static ssize_t read_client_end(void) {
    size_t size = 0;
    ssize_t n = 0;
    for (int i = 0; i < 200; i++) {
        n = ad__tls_read(tls, text + size, sizeof text - size, NULL);
        if (n > 0) size += (size_t)n;
        if (n < 0) break;
        run_front(&front);
    }
    return size ? (ssize_t)size : n;
}

static void expect_relayed(void) {
    cr_assert_eq(ad__tls_write(tls, "question", 8, NULL), 8);
    run_front(&front);
    cr_expect_eq(read_text(inner, text, sizeof text), 8);
    cr_assert_eq(send(inner, "answer", 6, MSG_NOSIGNAL), 6);
    run_front(&front);
    cr_expect_eq(read_client_end(), 6);
}

/* ---- calls of the system ---- */

static ssize_t (*real_send)(int fd, const void *data, size_t size, int flags);

static ssize_t refuse_to_send(int fd, const void *data, size_t size, int flags) {
    (void)fd, (void)data, (void)size, (void)flags;
    errno = EAGAIN;
    return -1;
}

static void let_worker_take_nothing(void) {
    real_send = ad__os.send;
    ad__os.send = refuse_to_send;
}

static void let_worker_take_all(void) { ad__os.send = real_send; }

/* ---- the beginning ---- */

Test(relay, without_a_context_there_is_none) {
    int fd[2];
    ad_tls_context *context = front.tls;
    make_connection(fd);
    client = fd[0];
    inner = -1;
    front.tls = NULL; /* as if there were no memory for the connection */
    cr_expect_eq(ad__relay_open(&front, fd[1], "tls:test", &relay, &inner), AD_E_MEMORY);
    front.tls = context;
}

/* A client of another protocol gets the alert of a wrong version. One that breaks TLS gets the alert that TLS has. */
Test(relay, what_is_not_tls) {
    static const struct {
        const char *says;
        size_t size;
        bool told;
    } rows[] = {{"GET / HTTP/1.1\r\n\r\n", 18, true},
                {"CONNECT x:1 HTTP/1.1\r\n\r\n", 24, true},
                {"SSH-2.0-OpenSSH_9.2\r\n", 21, true},
                {"\x15\x03\x03\0\0\0\0\0\0\0\0\0", 12, false}};
    static const char alert[] = {21, 3, 3, 0, 2, 2, 70};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        open_relay();
        cr_assert_eq(send(client, rows[i].says, rows[i].size, 0), (ssize_t)rows[i].size);
        run_front(&front);
        const ssize_t n = read_text(client, text, sizeof text);
        cr_expect_eq(n > 0 && memmem(text, (size_t)n, alert, sizeof alert), rows[i].told, "%zu", i);
        ad__tls_close(tls);
        close(client);
        close(inner);
        run_front(&front);
    }
    tls = NULL;
    client = inner = -1;
}

Test(relay, what_the_loop_does_not_take_is_closed) {
    for (int n = 1; n < 3; n++) {
        int fd[2];
        const unsigned before = count_open();
        make_connection(fd);
        fail_poll_init(n);
        cr_expect_eq(ad__relay_open(&front, fd[1], "tls:test", &relay, &inner), AD_E_SYSTEM);
        fail_poll_init(0);
        close(fd[0]);
        run_front(&front);
        cr_expect_eq(count_open(), before);
    }
    client = inner = -1;
}

Test(relay, a_client_that_reads_nothing_in_its_handshake) {
    char junk[4096];
    open_relay();
    cr_assert_eq(ad__tls_handshake(tls, NULL), 0);
    const size_t filled = fill_socket(outer);
    run_front(&front);
    cr_assert_gt(filled, sizeof junk);
    for (size_t left = filled; left;) {
        const ssize_t n = recv(client, junk, left < sizeof junk ? left : sizeof junk, 0);
        cr_assert_gt(n, 0);
        left -= (size_t)n;
    }
    for (int i = 0; i < 100 && ad__tls_handshake(tls, NULL) == 0; i++) run_front(&front);
    expect_relayed();
}

Test(relay, one_who_is_admitted_with_more_than_hello) {
    open_secure_relay();
    let_worker_take_nothing();
    cr_assert_eq(ad__tls_write(tls, "question", 8, NULL), 8);
    run_front(&front);
    ad__relay_admit(relay);
    let_worker_take_all();
    run_front(&front);
    cr_expect_eq(read_text(inner, text, sizeof text), 8);
    cr_expect_str_eq(text, "question");
    expect_relayed();
}

/* ---- the end ---- */

Test(relay, records_that_are_none) {
    for (int admitted = 0; admitted < 2; admitted++) {
        open_secure_relay();
        if (admitted) ad__relay_admit(relay);
        cr_assert_eq(send(client, "\x17\x03\x03\0\x20it is not what the key has made of something", 37, 0), 37);
        run_front(&front);
        cr_expect_eq(read_text(inner, text, sizeof text), -1, "the worker is told that the client has gone");
        ad__tls_close(tls);
        close(client);
        close(inner);
        run_front(&front);
        cr_expect_null(relay);
    }
    tls = NULL;
    client = inner = -1;
}

Test(relay, a_worker_that_goes_before_it_has_read_all) {
    open_secure_relay();
    ad__relay_admit(relay);
    let_worker_take_nothing();
    cr_assert_eq(ad__tls_write(tls, "question", 8, NULL), 8);
    run_front(&front);
    cr_assert_eq(send(inner, "the last answer", 15, 0), 15);
    shutdown(inner, SHUT_WR);
    run_front(&front);
    let_worker_take_all();
    run_front(&front);
    cr_expect_eq(read_client_end(), 15);
    cr_expect_lt(read_client_end(), 0);
}

Test(relay, a_client_that_goes_before_the_worker_has_taken_all) {
    open_secure_relay();
    ad__relay_admit(relay);
    let_worker_take_nothing();
    cr_assert_eq(ad__tls_write(tls, "question", 8, NULL), 8);
    run_front(&front);
    close(client);
    client = -1;
    run_front(&front);
    let_worker_take_all();
    run_front(&front);
    cr_expect_eq(read_text(inner, text, sizeof text), 8, "what came before the end is passed on");
    cr_expect_eq(read_text(inner, text, sizeof text), -1, "and then the end");
}

/* Bytes that the worker has not read make its end one by an error. */
static void end_worker_by_an_error(size_t bytes) {
    open_secure_relay();
    ad__relay_admit(relay);
    cr_assert_eq(ad__tls_write(tls, "question", 8, NULL), 8);
    run_front(&front);
    for (size_t sent = 0; sent < bytes;) {
        const ssize_t n = send(inner, text, bytes - sent < 4096 ? bytes - sent : 4096, MSG_NOSIGNAL);
        cr_assert_gt(n, 0);
        sent += (size_t)n;
    }
    close(inner);
    inner = -1;
    run_front(&front);
}

Test(relay, a_worker_that_dies) {
    end_worker_by_an_error(100);
    cr_expect_eq(read_client_end(), 100);
    cr_expect_lt(read_client_end(), 0);
}

Test(relay, a_worker_that_dies_with_more_than_the_buffer_holds) {
    end_worker_by_an_error(140 << 10);
    cr_expect_geq(read_client_end(), 100 << 10);
    cr_expect_lt(read_client_end(), 0);
}

Test(relay, a_client_that_does_not_take_the_end) {
    for (int answered = 0; answered < 2; answered++) {
        open_secure_relay();
        ad__relay_admit(relay);
        fill_socket(outer);
        if (answered) cr_assert_eq(send(inner, "answer", 6, 0), 6);
        close(inner);
        run_front(&front);
        cr_expect_not_null(front.relays, "the client may read the rest yet");
        while (read_text(client, text, sizeof text) > 0) run_front(&front);
        ad__tls_close(tls);
        close(client);
        run_front(&front);
        cr_expect_null(front.relays);
    }
    tls = NULL;
    client = inner = -1;
}
