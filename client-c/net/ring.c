/* The client's ends of a ring: memory that a worker on this machine offers to clients which often wait for answers.
 * docs/internals/ring.md. The offer is a descriptor that comes with bytes over the socket. */
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client-c/client.h"

/* ---- the offer ---- */

/* Take a descriptor that came behind the bytes that have been counted. */
static void take_offer(ad_session *s, int fd, uint64_t place) {
    ad_ring_memory *m = NULL;
    if (!ad__ring_map(fd, &m)) {
        ad__ring_read_begin(&s->ring.reader, &m->down, m->bytes[1], place);
        atomic_store_explicit(&s->ring.memory, m, memory_order_release);
    }
    close(fd);
}

/* Take the first descriptor of a message, and close the others. -1: there is none. Nothing else comes along, as no
 * option of the socket asks for it. */
static int take_descriptor(struct msghdr *m) {
    const struct cmsghdr *c = CMSG_FIRSTHDR(m);
    int first = -1, fd;
    for (size_t i = 0; c && i < (c->cmsg_len - CMSG_LEN(0)) / sizeof fd; i++) {
        memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
        if (first < 0) first = fd;
        else close(fd);
    }
    return first;
}

/* Receive bytes, with which the server may offer a ring. */
static ssize_t receive_with_offer(ad_session *s, void *data, size_t size, int flags) {
    union {
        char space[CMSG_SPACE(4 * sizeof(int))];
        struct cmsghdr align;
    } control;
    struct iovec part = {data, size};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t n = recvmsg(s->connection.fd, &m, flags | MSG_CMSG_CLOEXEC);
    const int fd = n >= 0 ? take_descriptor(&m) : -1;
    if (fd >= 0) take_offer(s, fd, atomic_load_explicit(&s->input.received, memory_order_relaxed) + (uint64_t)n);
    return n;
}

/* ---- reading ---- */

static ssize_t receive_from_socket(ad_session *s, void *data, size_t size, int flags) {
    ssize_t n = recv(s->connection.fd, data, size, flags);
    if (n > 0) ad__ring_count_received(&s->ring.reader, (uint64_t)n);
    return n;
}

/* Look at the socket where nothing has come: it may have ended, or the server may use no ring any more. Bytes that are
 * not announced are next in the stream only as long as no record can be put before them. */
static ssize_t receive_unannounced(ad_session *s, void *data, size_t size, int flags) {
    ssize_t n = recv(s->connection.fd, data, 1, flags | MSG_PEEK);
    if (n <= 0) return n;
    if (ad__ring_sleep(&s->ring.reader)) return receive_from_socket(s, data, size, flags);
    errno = EAGAIN;
    return -1;
}

ssize_t ad__ring_receive(ad_session *s, void *data, size_t size, int flags) {
    ad_ring_reader *r = &s->ring.reader;
    uint64_t most;
    if (!atomic_load_explicit(&s->ring.memory, memory_order_relaxed)) return receive_with_offer(s, data, size, flags);
    int source = ad__ring_look(r, &most);
    while (source == AD_RING_EMPTY && !(flags & MSG_DONTWAIT)) {
        ad__ring_sleep(r);
        source = ad__ring_look(r, &most);
    }
    if (source < 0) {
        errno = EPROTO;
        return -1;
    }
    if (source == AD_RING_EMPTY) return receive_unannounced(s, data, size, flags);
    if (most > size) most = size;
    if (source == AD_RING_RECORD) {
        ad__ring_take(r, data, most);
        return (ssize_t)most;
    }
    return receive_from_socket(s, data, most, flags);
}

bool ad__ring_await(ad_session *s) {
    ad_ring_reader *r = &s->ring.reader;
    bool came = false;
    ad__ring_wake(r);
    for (unsigned left = ad__ring_begin_wait(&s->ring.patience); left && !(came = ad__ring_has_news(r)); left--)
        ad__ring_pause();
    return ad__ring_end_wait(&s->ring.patience, came);
}

bool ad__ring_has_input(const ad_session *s) {
    return atomic_load_explicit(&s->ring.memory, memory_order_relaxed) && !s->ring.reader.asleep &&
           ad__ring_has_news(&s->ring.reader);
}

/* ---- writing ---- */

/* Begin to announce what goes over the socket; then the server may look at the ring. */
static void join_ring(ad_session *s, ad_ring_memory *m) {
    ad__ring_write_begin(&s->ring.writer, &m->up, m->bytes[0], s->output.place);
    s->ring.joined = true;
    atomic_store_explicit(&m->joined, 1, memory_order_release);
}

bool ad__ring_send(ad_session *s, const struct msghdr *m) {
    ad_ring_memory *memory = atomic_load_explicit(&s->ring.memory, memory_order_acquire);
    if (!memory) return false;
    if (!s->ring.joined) join_ring(s, memory);
    const uint64_t size = ad__ring_measure(m->msg_iov, (size_t)m->msg_iovlen);
    if (!m->msg_controllen && ad__ring_put(&s->ring.writer, m->msg_iov, (size_t)m->msg_iovlen)) {
        s->output.place += size;
        return true;
    }
    ad__ring_announce(&s->ring.writer, size);
    return false;
}

void ad__ring_count_socket(ad_session *s, uint64_t size) {
    s->output.place += size;
    if (s->ring.joined) ad__ring_count_sent(&s->ring.writer, size);
}

/* ---- the end ---- */

void ad__ring_forget(ad_session *s) {
    atomic_store(&s->ring.memory, NULL);
    s->ring.joined = false;
}

void ad__ring_leave(ad_session *s) {
    ad_ring_memory *m = atomic_load(&s->ring.memory);
    ad__ring_forget(s);
    if (m) ad__ring_unmap(m);
}
