/* The relay of a TLS connection: see relay.h. */
#include "server/front/net/relay.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/common/log.h"
#include "server/common/os.h"

#define ROOM (128u << 10)      /* bytes of the buffer of each direction */
#define ROUNDS 8               /* times that both directions are served before other connections get a turn */
#define STRANGER (65536u + 16) /* bytes that a client may send before it is admitted */
#define AWAY 1000              /* ms within which a client must close after the end was announced */
#define LINGER 3000            /* ms within which a client must take the last bytes of its session */

/* Bytes of one direction: data[begin] to data[end]. */
typedef struct stretch {
    size_t begin, end;
    uint8_t data[ROOM];
} stretch;

struct ad_relay {
    ad_relay *next, *prev;
    ad_front *front;
    ad_relay **link;
    uv_poll_t outer_poll, inner_poll;
    uv_timer_t timer;
    int outer, inner, handles;
    int outer_events, inner_events;
    ad_tls *tls;
    bool secure;     /* the TLS handshake is done */
    bool admitted;   /* the client has been admitted */
    bool outer_over; /* the client's side is over: it sends nothing and can be sent nothing */
    bool inner_over; /* the worker's side is over: it sends nothing */
    bool leaving;    /* the worker has closed, but bytes of it may be left to read */
    bool told;       /* the open side was told that the other one is over */
    bool again;      /* bytes may be moved although no socket says so */
    bool closing;
    uint64_t taken; /* bytes that the client has sent */
    bool has_certificate;
    char certificate[AD_TLS_NAME], from[64];
    ad_fault nameless; /* why the certificate has no name */
    stretch in, out;   /* in: from the client; out: from the worker */
};

/* ---- its end ---- */

static void free_relay(ad_relay *r) {
    ad__tls_close(r->tls);
    close(r->outer);
    if (r->inner >= 0) close(r->inner);
    free(r);
}

static void on_relay_closed(uv_handle_t *handle) {
    ad_relay *r = handle->data;
    if (--r->handles == 0) free_relay(r);
}

static void close_relay(ad_relay *r) {
    r->closing = true;
    if (r->link) *r->link = NULL;
    if (r->prev) r->prev->next = r->next;
    else r->front->relays = r->next;
    if (r->next) r->next->prev = r->prev;
    shutdown(r->inner, SHUT_RDWR); /* at once, before the loop closes the descriptor */
    uv_close((uv_handle_t *)&r->outer_poll, on_relay_closed);
    uv_close((uv_handle_t *)&r->inner_poll, on_relay_closed);
    uv_close((uv_handle_t *)&r->timer, on_relay_closed);
}

static void on_relay_timeout(uv_timer_t *timer) { close_relay(timer->data); }

/* End the client's side, which has failed or was closed. */
static void end_client_side(ad_relay *r, const ad_fault *fault) {
    r->outer_over = true;
    r->out.begin = r->out.end = 0;
    if (fault->code == AD_E_TLS && r->admitted) ad__log(connection_broken, r->from, fault->text);
    else if (fault->code == AD_E_TLS) ad__entrance_refused(r->front, "", r->from, fault->text);
}

/* ---- the four directions of moving bytes; each function says whether it has moved any ---- */

static size_t get_room(const stretch *s) { return ROOM - s->end; }
static size_t count_bytes(const stretch *s) { return s->end - s->begin; }

static void drop_bytes(stretch *s, size_t n) {
    s->begin += n;
    if (s->begin == s->end) s->begin = s->end = 0;
}

static size_t count_acceptable_bytes(const ad_relay *r) {
    if (r->outer_over || !r->secure) return 0;
    if (r->inner_over) return ROOM; /* read and discard, so that the client sees the end and not a reset */
    if (r->admitted) return get_room(&r->in);
    return r->taken < STRANGER ? STRANGER - r->taken : 0; /* the buffer has room for more than this */
}

static bool read_client(ad_relay *r) {
    ad_fault fault = {0};
    bool moved = false;
    size_t most;
    while ((most = count_acceptable_bytes(r))) {
        if (r->inner_over) r->in.begin = r->in.end = 0;
        ssize_t n = ad__tls_read(r->tls, r->in.data + r->in.end, most, &fault);
        if (n < 0) end_client_side(r, &fault);
        if (n <= 0) break;
        moved = true;
        r->taken += (uint64_t)n;
        if (r->inner_over) break;
        r->in.end += (size_t)n;
    }
    return moved;
}

static bool write_worker(ad_relay *r) {
    size_t n = count_bytes(&r->in);
    if (!n) return false;
    ssize_t sent = ad__os.send(r->inner, r->in.data + r->in.begin, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent > 0) drop_bytes(&r->in, (size_t)sent);
    else if (sent < 0 && errno != EAGAIN && errno != EINTR && errno != ENOBUFS) r->in.begin = r->in.end = 0;
    return sent > 0;
}

static bool read_worker(ad_relay *r) {
    if (r->inner_over || !get_room(&r->out)) return false;
    ssize_t n = ad__os.recv(r->inner, r->out.data + r->out.end, get_room(&r->out), MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (n <= 0) r->inner_over = true;
    else if (!r->outer_over) r->out.end += (size_t)n;
    return n > 0;
}

static bool write_client(ad_relay *r) {
    ad_fault fault = {0};
    bool moved = false;
    while (count_bytes(&r->out) && r->secure) {
        ssize_t n = ad__tls_write(r->tls, r->out.data + r->out.begin, count_bytes(&r->out), &fault);
        if (n < 0) end_client_side(r, &fault);
        if (n <= 0) break;
        moved = true;
        drop_bytes(&r->out, (size_t)n);
    }
    return moved;
}

/* ---- going on ---- */

static void on_client_event(uv_poll_t *poll, int status, int events);
static void on_worker_event(uv_poll_t *poll, int status, int events);

static void set_poll_events(uv_poll_t *poll, int *before, int events, uv_poll_cb callback) {
    if (events == *before) return;
    *before = events;
    if (events) uv_poll_start(poll, events, callback);
    else uv_poll_stop(poll);
}

/* Wait for what each socket can do next. The worker's close must be noticed even while nothing is read from it, as
 * the client reads nothing. */
static void update_polls(ad_relay *r) {
    int outer = 0, inner = 0;
    if (!r->secure) {
        outer = ad__tls_wants_write(r->tls) ? UV_WRITABLE : UV_READABLE;
    } else if (!r->outer_over) {
        outer = (count_acceptable_bytes(r) ? UV_READABLE : 0) | (count_bytes(&r->out) ? UV_WRITABLE : 0);
    }
    if (!r->inner_over)
        inner = (get_room(&r->out) ? UV_READABLE : 0) | (count_bytes(&r->in) || r->again ? UV_WRITABLE : 0) |
                (r->leaving ? 0 : UV_DISCONNECT);
    set_poll_events(&r->outer_poll, &r->outer_events, outer, on_client_event);
    set_poll_events(&r->inner_poll, &r->inner_events, inner, on_worker_event);
}

static void start_linger_timer(ad_relay *r) {
    if (!uv_is_active((uv_handle_t *)&r->timer)) uv_timer_start(&r->timer, on_relay_timeout, LINGER, 0);
}

/* Tell the open side that the other one is over, once all its bytes were passed on, and close the relay after that. */
static void finish_open_side(ad_relay *r) {
    if (r->outer_over && (r->inner_over || !r->secure)) {
        close_relay(r);
    } else if (r->outer_over && !count_bytes(&r->in) && !r->told) {
        r->told = true;
        shutdown(r->inner, SHUT_WR);
    } else if (r->inner_over) {
        start_linger_timer(r);
        if (!r->secure) close_relay(r);
        else if (!count_bytes(&r->out) && !r->told && ad__tls_say_goodbye(r->tls)) {
            r->told = true;
            shutdown(r->outer, SHUT_WR);
            uv_timer_start(&r->timer, on_relay_timeout, AWAY, 0);
        }
    }
}

/* Tell a client that does not speak TLS that this port does, by the fatal alert protocol_version: libarrayd knows it.
 */
static void alert_stranger(const ad_relay *r) {
    static const uint8_t alert[] = {21, 3, 3, 0, 2, 2, 70};
    ad__os.send(r->outer, alert, sizeof alert, MSG_DONTWAIT | MSG_NOSIGNAL);
}

static void continue_tls_handshake(ad_relay *r) {
    ad_fault fault = {0};
    int result = ad__tls_handshake(r->tls, &fault);
    if (result < 0 && ad__tls_met_other_protocol(r->tls)) alert_stranger(r);
    if (result < 0) end_client_side(r, &fault);
    if (result <= 0) return;
    r->secure = true;
    r->has_certificate = ad__tls_peer(r->tls, r->certificate, &r->nameless);
}

static void advance_relay(ad_relay *r) {
    bool moved = true;
    if (!r->secure && !r->outer_over) continue_tls_handshake(r);
    for (int i = 0; moved && i < ROUNDS; i++) {
        moved = read_client(r);
        moved |= write_worker(r);
        moved |= read_worker(r);
        moved |= write_client(r);
        if (moved && i == 0) ad__spin_heard(r->front);
    }
    r->again = moved;
    if (r->outer_over || r->inner_over) finish_open_side(r);
    if (!r->closing) update_polls(r);
}

/* Handle events of the client's socket. libuv stops watching a socket that has failed. */
static void on_client_event(uv_poll_t *poll, int status, int events) {
    ad_relay *r = poll->data;
    (void)events;
    if (status) {
        r->outer_events = 0;
        end_client_side(r, &(ad_fault){AD_E_CONNECTION, "the connection has failed"});
    }
    advance_relay(r);
}

static void on_worker_event(uv_poll_t *poll, int status, int events) {
    ad_relay *r = poll->data;
    if (!status && events & UV_DISCONNECT) {
        r->leaving = true;
        start_linger_timer(r);
    }
    if (status) {
        r->inner_events = 0;
        while (read_worker(r) && get_room(&r->out)) {}
        r->inner_over = true;
    }
    advance_relay(r);
}

/* ---- the beginning ---- */

/* Let the kernel notice a dead host within 45 s, and send replies without delay. */
static void tune_tcp_socket(int fd) {
    int on = 1, idle = 15, interval = 10, probes = 3;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

/* Add the relay's handles to the loop. Once one is open, the loop closes it, and the last one frees the relay.
 * AD_E_SYSTEM. */
static int init_relay_handles(ad_relay *r) {
    uv_loop_t *loop = &r->front->loop;
    if (uv_poll_init(loop, &r->outer_poll, r->outer)) {
        free_relay(r);
        return AD_E_SYSTEM;
    }
    r->outer_poll.data = r->inner_poll.data = r->timer.data = r;
    r->handles = 1;
    if (uv_poll_init(loop, &r->inner_poll, r->inner)) {
        uv_close((uv_handle_t *)&r->outer_poll, on_relay_closed);
        return AD_E_SYSTEM;
    }
    uv_timer_init(loop, &r->timer);
    r->handles = 3;
    return 0;
}

/* Begin TLS on the client's socket, and make the pair of sockets to the worker; *inner is the worker's end.
 * AD_E_SYSTEM, AD_E_MEMORY. */
static int init_relay_sockets(ad_relay *r, int *inner) {
    int pair[2], status = ad__tls_open(r->front->tls, &r->outer, NULL, &r->tls, NULL);
    if (status) return status;
    if (ad__os.socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair)) return AD_E_SYSTEM;
    tune_tcp_socket(r->outer);
    r->inner = pair[0];
    *inner = pair[1];
    return 0;
}

int ad__relay_open(ad_front *f, int fd, const char *from, ad_relay **link, int *inner) {
    ad_relay *r = ad__os.calloc(1, sizeof *r);
    int other = -1;
    if (!r) {
        close(fd);
        return AD_E_MEMORY;
    }
    r->front = f;
    r->outer = fd;
    r->inner = -1;
    int status = init_relay_sockets(r, &other);
    if (status) free_relay(r);
    else status = init_relay_handles(r);
    if (status) {
        if (other >= 0) close(other);
        return status;
    }
    snprintf(r->from, sizeof r->from, "%s", from);
    r->next = f->relays;
    if (r->next) r->next->prev = r;
    f->relays = r;
    r->link = link;
    *link = r;
    *inner = other;
    update_polls(r);
    return 0;
}

const char *ad__relay_certificate(const ad_relay *r, ad_fault *fault) {
    if (!r || !r->has_certificate) return NULL;
    *fault = r->nameless;
    return r->certificate;
}

void ad__relay_admit(ad_relay *r) {
    if (!r) return;
    r->admitted = true;
    if (!count_bytes(&r->in)) explicit_bzero(r->in.data, STRANGER); /* the buffer held a token */
    update_polls(r);
}

void ad__relay_unlink(ad_relay *r) {
    if (r) r->link = NULL;
}
