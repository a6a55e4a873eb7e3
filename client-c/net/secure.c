/* TLS over a session's socket. Threads read and write at the same time, which OpenSSL forbids. Its calls do not block
 * here, so a lock around each of them is held for one record at the most. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "client-c/client.h"
#include "protocol/tls/tls.h"

struct ad_secure {
    pthread_mutex_t lock;
    ad_tls *tls;
    const int *fd;
    ad_fault fault;
};

static int open_tls(ad_secure *s, const ad_server_address *address, const ad_credentials *c, ad_fault *fault) {
    ad_tls_files files = ad__tls_files(c->cert, c->key, c->ca);
    ad_tls_context *context;
    if (address->pinned) files.pin = address->pin;
    int status = ad__tls_client(&files, &context, fault);
    if (status) return status;
    status = ad__tls_open(context, s->fd, address->host, &s->tls, fault);
    ad__tls_context_free(context);
    return status;
}

/* Wait until the socket is ready for TLS; false: the time is over. */
static bool await_socket(const ad_secure *s, bool write, int ms) {
    struct pollfd p = {.fd = *s->fd, .events = write ? POLLOUT : POLLIN};
    return poll(&p, 1, ms) != 0;
}

static int shake_hands(ad_secure *s, uint64_t deadline, ad_fault *fault) {
    int result;
    while ((result = ad__tls_handshake(s->tls, fault)) == 0) {
        uint64_t now = ad__now();
        if (now >= deadline) return ad__fault(fault, AD_E_TIMEOUT, "no answer");
        await_socket(s, ad__tls_wants_write(s->tls), (int)((deadline - now) / 1000000 + 1));
    }
    return result < 0 ? result : 0;
}

int ad__secure_open(const ad_server_address *address, const ad_credentials *c, uint64_t deadline, const int *fd,
                    ad_secure **out) {
    ad_fault fault = {0};
    ad_secure *s = calloc(1, sizeof *s);
    if (!s) return ad__fail_memory();
    pthread_mutex_init(&s->lock, NULL);
    s->fd = fd;
    int status = open_tls(s, address, c, &fault);
    if (!status) status = shake_hands(s, deadline, &fault);
    if (status) {
        ad__secure_close(s);
        return ad__fail(status, "%s: %s", address->url, fault.text);
    }
    *out = s;
    return 0;
}

void ad__secure_close(ad_secure *s) {
    if (!s) return;
    ad__tls_close(s->tls);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

/* Translate the result of a TLS call to that of a system call with errno. */
static ssize_t translate_result(ad_secure *s, ssize_t n, const ad_fault *fault, bool *wants_write) {
    *wants_write = n == 0 && ad__tls_wants_write(s->tls);
    if (n < 0) s->fault = *fault;
    if (n <= 0) errno = n < 0 ? EPROTO : EAGAIN;
    return n > 0 ? n : -1;
}

static ssize_t receive_now(ad_secure *s, void *data, size_t size, bool *wants_write) {
    ad_fault fault = {0};
    pthread_mutex_lock(&s->lock);
    ssize_t n = translate_result(s, ad__tls_read(s->tls, data, size, &fault), &fault, wants_write);
    pthread_mutex_unlock(&s->lock);
    return n;
}

ssize_t ad__secure_receive(ad_secure *s, void *data, size_t size, int flags) {
    bool write;
    ssize_t n = receive_now(s, data, size, &write);
    if (n > 0 || errno != EAGAIN || flags & MSG_DONTWAIT) return n;
    if (await_socket(s, write, AD_WAIT_STEP_US / 1000)) return receive_now(s, data, size, &write);
    errno = EAGAIN;
    return -1;
}

ssize_t ad__secure_send(ad_secure *s, const struct iovec *part) {
    ad_fault fault = {0};
    bool write;
    pthread_mutex_lock(&s->lock);
    ssize_t n = translate_result(s, ad__tls_write(s->tls, part->iov_base, part->iov_len, &fault), &fault, &write);
    pthread_mutex_unlock(&s->lock);
    return n;
}

void ad__secure_error(ad_secure *s, char *out, size_t size) {
    pthread_mutex_lock(&s->lock);
    snprintf(out, size, "%s", s->fault.text);
    pthread_mutex_unlock(&s->lock);
}
