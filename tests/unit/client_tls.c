/* TLS at the client's end, against the other end of the same library: bytes both ways at the same time, and servers
 * that are none. Passed over where there is no openssl command to make a certificate with, or no OpenSSL. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client-c/client.h"
#include "protocol/tls/tls.h"
#include "tests/unit/client_connection.h"

#define BYTES (6u << 20)

static char folder[] = "/tmp/arrayd-test-XXXXXX", pem[64];
static ad_server_address address = {.transport = AD_URL_TLS, .host = "127.0.0.1"};
static ad_credentials credentials;
static ad_tls_context *server;

static void set_up(void) {
    char command[600];
    ad_fault fault;
    strcpy(folder, "/tmp/arrayd-test-XXXXXX");
    cr_assert_not_null(mkdtemp(folder));
    snprintf(pem, sizeof pem, "%s/all.pem", folder);
    snprintf(command, sizeof command,
             "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=test "
             "-addext subjectAltName=IP:127.0.0.1,DNS:localhost -keyout %s/key -out %s/cert 2>/dev/null && "
             "cat %s/key %s/cert >%s && chmod 600 %s",
             folder, folder, folder, folder, pem, pem);
    if (system(command) != 0) cr_skip_test("no openssl command");
    const int status = ad__tls_server(&(ad_tls_files){.certificate = pem}, &server, &fault);
    if (status == AD_E_UNSUPPORTED) cr_skip_test("no OpenSSL");
    cr_assert_eq(status, 0, "%s", fault.text);
    snprintf(address.url, sizeof address.url, "tls:127.0.0.1:1");
    snprintf(credentials.ca, sizeof credentials.ca, "%s", pem);
}

static void tear_down(void) {
    char command[100];
    ad__tls_context_free(server);
    snprintf(command, sizeof command, "rm -rf %s", folder);
    cr_assert_eq(system(command), 0);
}

TestSuite(client_tls, .init = set_up, .fini = tear_down);

static uint8_t byte_at(size_t i) { return (uint8_t)(i * 2654435761u >> 13); }

static void await_socket(int fd, bool write) {
    struct pollfd p = {.fd = fd, .events = write ? POLLOUT : POLLIN};
    poll(&p, 1, 1000);
}

/* Send back what comes, until the client closes the connection. */
static void *run_echo(void *argument) {
    const int *fd = argument;
    static uint8_t data[100000];
    ad_tls *t = NULL;
    ad_fault fault;
    int status = ad__tls_open(server, fd, NULL, &t, &fault);
    ssize_t n = 0;
    while (!status && (status = ad__tls_handshake(t, &fault)) == 0) await_socket(*fd, ad__tls_wants_write(t));
    while (status > 0 && (n = ad__tls_read(t, data, sizeof data, &fault)) >= 0) {
        if (n == 0) await_socket(*fd, ad__tls_wants_write(t));
        for (ssize_t at = 0, sent; at < n; at += sent) {
            if ((sent = ad__tls_write(t, data + at, (size_t)(n - at), &fault)) < 0) break;
            if (sent == 0) await_socket(*fd, true);
        }
    }
    ad__tls_close(t);
    shutdown(*fd, SHUT_RDWR);
    return NULL;
}

/* Make connected sockets with little room, so that both ends meet a full one. */
static void open_pair(int fd[2]) {
    const int room = 20000;
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd), 0);
    for (int i = 0; i < 2; i++) setsockopt(fd[i], SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
}

typedef struct sending {
    ad_secure *secure;
    int fd;
    size_t sent;
} sending;

static void *run_sender(void *argument) {
    sending *s = argument;
    static uint8_t data[BYTES];
    for (size_t i = 0; i < BYTES; i++) data[i] = byte_at(i);
    while (s->sent < BYTES) {
        struct iovec part = {data + s->sent, BYTES - s->sent < 70000 ? BYTES - s->sent : 70000};
        ssize_t n = ad__secure_send(s->secure, &part);
        if (n < 0 && errno != EAGAIN) break;
        if (n < 0) await_socket(s->fd, true);
        else s->sent += (size_t)n;
    }
    return NULL;
}

Test(client_tls, both_directions_at_once) {
    int fd[2];
    pthread_t other, sender;
    ad_secure *secure = NULL;
    static uint8_t got[65536];
    size_t received = 0, wrong = 0;
    open_pair(fd);
    cr_assert_eq(pthread_create(&other, NULL, run_echo, &fd[1]), 0);
    cr_assert_eq(ad__secure_open(&address, &credentials, ad__now() + 5000000000, &fd[0], &secure), 0, "%s",
                 ad_error_message());
    sending s = {secure, fd[0], 0};
    cr_assert_eq(pthread_create(&sender, NULL, run_sender, &s), 0);
    for (uint64_t end = ad__now() + 20000000000; received < BYTES && ad__now() < end;) {
        ssize_t n = ad__secure_receive(secure, got, sizeof got, received & 1 ? MSG_DONTWAIT : 0);
        if (n < 0 && errno == EAGAIN) continue;
        cr_assert_gt(n, 0);
        for (ssize_t i = 0; i < n; i++) wrong += got[i] != byte_at(received++);
    }
    cr_expect_eq(wrong, 0);
    if (received < BYTES) shutdown(fd[0], SHUT_RDWR); /* the sender, and so this test, ends all the same */
    pthread_join(sender, NULL);
    cr_expect_eq(received, BYTES);
    cr_expect_eq(s.sent, BYTES);
    shutdown(fd[0], SHUT_RDWR);
    pthread_join(other, NULL);
    char why[AD_FAULT_TEXT];
    cr_expect_eq(ad__secure_receive(secure, got, sizeof got, 0), -1);
    ad__secure_error(secure, why, sizeof why);
    cr_expect_neq(*why, 0);
    ad__secure_close(secure);
    close(fd[0]);
    close(fd[1]);
}

static int open_with(const char *host, const char *ca, char *message, size_t size) {
    int fd[2];
    pthread_t other;
    ad_secure *secure = NULL;
    ad_server_address a = address;
    ad_credentials c = {0};
    snprintf(a.host, sizeof a.host, "%s", host);
    snprintf(c.ca, sizeof c.ca, "%s", ca);
    open_pair(fd);
    cr_assert_eq(pthread_create(&other, NULL, run_echo, &fd[1]), 0);
    int status = ad__secure_open(&a, &c, ad__now() + 5000000000, &fd[0], &secure);
    snprintf(message, size, "%s", status ? ad_error_message() : "");
    ad__secure_close(secure);
    shutdown(fd[0], SHUT_RDWR);
    pthread_join(other, NULL);
    close(fd[0]);
    close(fd[1]);
    return status;
}

Test(client_tls, the_certificate_is_checked) {
    char message[600];
    cr_expect_eq(open_with("127.0.0.1", pem, message, sizeof message), 0, "%s", message);
    cr_expect_eq(open_with("localhost", pem, message, sizeof message), 0, "%s", message);
    cr_expect_eq(open_with("test", pem, message, sizeof message), AD_E_TLS); /* the common name is no host's */
    cr_expect_eq(open_with("127.0.0.2", pem, message, sizeof message), AD_E_TLS);
    cr_expect_not_null(strstr(message, "the certificate is refused"), "%s", message);
    cr_expect_eq(open_with("127.0.0.1", "", message, sizeof message), AD_E_TLS, "the system's authorities know it not");
    cr_expect_eq(open_with("127.0.0.1", "/no/such/file", message, sizeof message), AD_E_TLS);
}

Test(client_tls, a_socket_that_is_full_in_the_handshake) {
    char message[600];
    connection.later = 3;
    cr_expect_eq(open_with("127.0.0.1", pem, message, sizeof message), 0, "%s", message);
    cr_expect_eq(connection.later, 0);
}

/* Records of TLS have 16 KiB, and a network card takes 64 KiB at a time. */
Test(client_tls, records_of_one_call_go_together) {
    static const char data[40000];
    int fd[2];
    pthread_t other;
    ad_secure *secure = NULL;
    open_pair(fd);
    cr_assert_eq(pthread_create(&other, NULL, run_echo, &fd[1]), 0);
    cr_assert_eq(ad__secure_open(&address, &credentials, ad__now() + 5000000000, &fd[0], &secure), 0);
    cr_expect_eq(connection.followed, 0, "nothing follows in a handshake");
    connection.later = 1; /* what is sent again says the same */
    for (size_t at = 0; at < sizeof data;) {
        struct iovec part = {(void *)(uintptr_t)(data + at), sizeof data - at};
        const ssize_t n = ad__secure_send(secure, &part);
        cr_assert(n > 0 || errno == EAGAIN);
        if (n < 0) await_socket(fd[0], true);
        else at += (size_t)n;
    }
    cr_expect_geq(connection.followed, 2);
    ad__secure_close(secure);
    shutdown(fd[0], SHUT_RDWR);
    pthread_join(other, NULL);
    close(fd[0]);
    close(fd[1]);
}

Test(client_tls, servers_that_are_none) {
    static const char garbage[] = "HTTP/1.1 400 Bad Request\r\n\r\n";
    int fd[2];
    ad_secure *secure = NULL;
    open_pair(fd);
    uint64_t begin = ad__now();
    cr_expect_eq(ad__secure_open(&address, &credentials, begin + 300000000, &fd[0], &secure), AD_E_TIMEOUT);
    cr_expect_lt(ad__now() - begin, 5000000000u);
    close(fd[1]);
    cr_expect_eq(ad__secure_open(&address, &credentials, ad__now() + 5000000000, &fd[0], &secure), AD_E_CONNECTION);
    close(fd[0]);
    open_pair(fd);
    cr_assert_eq(write(fd[1], garbage, sizeof garbage), (ssize_t)sizeof garbage);
    cr_expect_eq(ad__secure_open(&address, &credentials, ad__now() + 5000000000, &fd[0], &secure), AD_E_TLS, "%s",
                 ad_error_message());
    cr_expect_null(secure);
    close(fd[0]);
    close(fd[1]);
}
