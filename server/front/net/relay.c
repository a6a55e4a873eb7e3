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

#define ROOM (128u << 10)      /* of a direction */
#define ROUNDS 8               /* times that both directions are looked at before other connections get a turn */
#define STRANGER (65536u + 16) /* bytes that are taken from a client that has not been let in */
#define AWAY 1000              /* ms for it to go, when it has been told that nothing more comes */
#define LINGER 3000            /* ms for a client to take what is left when its session is over */

/* Bytes on their way. */
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
    bool secure;     /* the handshake is done */
    bool admitted;   /* its client has been let in */
    bool outer_over; /* nothing more comes from the client, or can be told it */
    bool inner_over; /* nothing more comes from the worker */
    bool leaving;    /* the worker has closed, but there may be something left to read */
    bool told;       /* either side has been told that the other one is over */
    bool again;      /* there is more to do, of which no socket tells */
    bool closing;
    uint64_t taken; /* bytes from the client */
    bool has_certificate;
    char certificate[AD_TLS_NAME], from[64];
    ad_fault nameless; /* the certificate has no name */
    stretch in, out;   /* from the client; from the worker */
};

/* ---- its end ---- */

static void destroy(ad_relay *r) {
    ad__tls_close(r->tls);
    close(r->outer);
    if (r->inner >= 0) close(r->inner);
    free(r);
}

static void on_closed(uv_handle_t *handle) {
    ad_relay *r = handle->data;
    if (--r->handles == 0) destroy(r);
}

static void let_go(ad_relay *r) {
    if (r->closing) return;
    r->closing = true;
    if (r->link) *r->link = NULL;
    if (r->prev) r->prev->next = r->next;
    else r->front->relays = r->next;
    if (r->next) r->next->prev = r->prev;
    shutdown(r->inner, SHUT_RDWR); /* now, not when the loop comes to closing it */
    uv_close((uv_handle_t *)&r->outer_poll, on_closed);
    uv_close((uv_handle_t *)&r->inner_poll, on_closed);
    uv_close((uv_handle_t *)&r->timer, on_closed);
}

static void on_timer(uv_timer_t *timer) { let_go(timer->data); }

/* The client's side has failed or been closed. */
static void end_outer(ad_relay *r, const ad_fault *fault) {
    if (r->outer_over) return;
    r->outer_over = true;
    r->out.begin = r->out.end = 0;
    if (fault->code == AD_E_TLS && r->admitted)
        ad__log(AD_LOG_WARN, "connection broken", "from=%s why=%s", r->from, fault->text);
    else if (fault->code == AD_E_TLS) ad__entrance_refused(r->front, "", r->from, fault->text);
}

/* ---- the four movements; each says whether bytes have moved ---- */

static size_t room(const stretch *s) { return ROOM - s->end; }
static size_t filled(const stretch *s) { return s->end - s->begin; }

static void drop(stretch *s, size_t n) {
    s->begin += n;
    if (s->begin == s->end) s->begin = s->end = 0;
}

static size_t may_take(const ad_relay *r) {
    if (r->outer_over || !r->secure) return 0;
    if (r->inner_over) return ROOM; /* read away, so that the client sees the end and not a reset */
    if (r->admitted) return room(&r->in);
    size_t left = r->taken < STRANGER ? STRANGER - r->taken : 0;
    return left < room(&r->in) ? left : room(&r->in);
}

static bool from_client(ad_relay *r) {
    ad_fault fault = {0};
    bool moved = false;
    size_t most;
    while ((most = may_take(r))) {
        if (r->inner_over) r->in.begin = r->in.end = 0;
        ssize_t n = ad__tls_read(r->tls, r->in.data + r->in.end, most, &fault);
        if (n < 0) end_outer(r, &fault);
        if (n <= 0) break;
        moved = true;
        r->taken += (uint64_t)n;
        if (r->inner_over) break;
        r->in.end += (size_t)n;
    }
    return moved;
}

static bool to_worker(ad_relay *r) {
    size_t n = filled(&r->in);
    if (!n || r->inner_over) return false;
    ssize_t sent = ad__os.send(r->inner, r->in.data + r->in.begin, n, MSG_DONTWAIT | MSG_NOSIGNAL);
    if (sent > 0) drop(&r->in, (size_t)sent);
    else if (sent < 0 && errno != EAGAIN && errno != EINTR && errno != ENOBUFS) r->in.begin = r->in.end = 0;
    return sent > 0;
}

static bool from_worker(ad_relay *r) {
    if (r->inner_over || !room(&r->out)) return false;
    ssize_t n = ad__os.recv(r->inner, r->out.data + r->out.end, room(&r->out), MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (n <= 0) r->inner_over = true;
    else if (!r->outer_over) r->out.end += (size_t)n;
    return n > 0;
}

static bool to_client(ad_relay *r) {
    ad_fault fault = {0};
    bool moved = false;
    while (filled(&r->out) && r->secure && !r->outer_over) {
        ssize_t n = ad__tls_write(r->tls, r->out.data + r->out.begin, filled(&r->out), &fault);
        if (n < 0) end_outer(r, &fault);
        if (n <= 0) break;
        moved = true;
        drop(&r->out, (size_t)n);
    }
    return moved;
}

/* ---- going on ---- */

static void on_outer(uv_poll_t *poll, int status, int events);
static void on_inner(uv_poll_t *poll, int status, int events);

static void listen_to(uv_poll_t *poll, int *before, int events, uv_poll_cb callback) {
    if (events == *before) return;
    *before = events;
    if (events) uv_poll_start(poll, events, callback);
    else uv_poll_stop(poll);
}

/* That the worker closes must be noticed even while the client takes nothing and so nothing is read. */
static void watch(ad_relay *r) {
    int outer = 0, inner = 0;
    if (!r->secure && !r->outer_over) {
        outer = ad__tls_wants_write(r->tls) ? UV_WRITABLE : UV_READABLE;
    } else if (!r->outer_over) {
        outer = (may_take(r) ? UV_READABLE : 0) | (filled(&r->out) ? UV_WRITABLE : 0);
    }
    if (!r->inner_over)
        inner = (room(&r->out) ? UV_READABLE : 0) | (filled(&r->in) || r->again ? UV_WRITABLE : 0) |
                (r->leaving ? 0 : UV_DISCONNECT);
    listen_to(&r->outer_poll, &r->outer_events, outer, on_outer);
    listen_to(&r->inner_poll, &r->inner_events, inner, on_inner);
}

static void linger(ad_relay *r) {
    if (!uv_is_active((uv_handle_t *)&r->timer)) uv_timer_start(&r->timer, on_timer, LINGER, 0);
}

/* One side is over: the other one is told when it has got what there is for it. */
static void wind_up(ad_relay *r) {
    if (r->outer_over && (r->inner_over || !r->secure)) {
        let_go(r);
    } else if (r->outer_over && !filled(&r->in) && !r->told) {
        r->told = true;
        shutdown(r->inner, SHUT_WR);
    } else if (r->inner_over) {
        linger(r);
        if (!r->secure) let_go(r);
        else if (!filled(&r->out) && !r->told && ad__tls_say_goodbye(r->tls)) {
            r->told = true;
            shutdown(r->outer, SHUT_WR);
            uv_timer_start(&r->timer, on_timer, AWAY, 0);
        }
    }
}

static void shake_hands(ad_relay *r) {
    ad_fault fault = {0};
    int status = ad__tls_handshake(r->tls, &fault);
    if (status < 0) end_outer(r, &fault);
    if (status <= 0) return;
    r->secure = true;
    r->has_certificate = ad__tls_peer(r->tls, r->certificate, &r->nameless);
}

static void go_on(ad_relay *r) {
    bool moved = true;
    if (r->closing) return;
    if (!r->secure && !r->outer_over) shake_hands(r);
    for (int i = 0; moved && i < ROUNDS; i++) {
        moved = from_client(r);
        moved |= to_worker(r);
        moved |= from_worker(r);
        moved |= to_client(r);
        if (moved && i == 0) ad__spin_heard(r->front);
    }
    r->again = moved;
    if (r->outer_over || r->inner_over) wind_up(r);
    if (!r->closing) watch(r);
}

/* libuv stops watching what has failed. */
static void on_outer(uv_poll_t *poll, int status, int events) {
    ad_relay *r = poll->data;
    (void)events;
    if (status < 0) {
        r->outer_events = 0;
        end_outer(r, &(ad_fault){AD_E_CONNECTION, "the connection has failed"});
    }
    go_on(r);
}

static void on_inner(uv_poll_t *poll, int status, int events) {
    ad_relay *r = poll->data;
    if (status >= 0 && events & UV_DISCONNECT) {
        r->leaving = true;
        linger(r);
    }
    if (status < 0) {
        r->inner_events = 0;
        while (from_worker(r) && room(&r->out)) {}
        r->inner_over = true;
    }
    go_on(r);
}

/* ---- the beginning ---- */

/* A dead host is noticed within 45 s, and replies are not held back. */
static void tune(int fd) {
    int on = 1, idle = 15, interval = 10, probes = 3;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

/* A handle that is open is closed by the loop, and the relay with the last one. */
static int init_handles(ad_relay *r) {
    uv_loop_t *loop = &r->front->loop;
    if (uv_poll_init(loop, &r->outer_poll, r->outer)) {
        destroy(r);
        return AD_E_SYSTEM;
    }
    r->outer_poll.data = r->inner_poll.data = r->timer.data = r;
    r->handles = 1;
    if (uv_poll_init(loop, &r->inner_poll, r->inner)) {
        uv_close((uv_handle_t *)&r->outer_poll, on_closed);
        return AD_E_SYSTEM;
    }
    uv_timer_init(loop, &r->timer);
    r->handles = 3;
    return 0;
}

/* The relay's sockets: TLS over one, and one end of a pair, of which *inner is the other. */
static int init_sockets(ad_relay *r, int *inner) {
    int pair[2], status = ad__tls_open(r->front->tls, &r->outer, NULL, &r->tls, NULL);
    if (status) return status;
    if (ad__os.socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair)) return AD_E_SYSTEM;
    tune(r->outer);
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
    int status = init_sockets(r, &other);
    if (status) destroy(r);
    else status = init_handles(r);
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
    watch(r);
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
    if (!filled(&r->in)) explicit_bzero(r->in.data, STRANGER); /* there was a token in it */
    if (!r->closing) watch(r);
}

void ad__relay_unlink(ad_relay *r) {
    if (r) r->link = NULL;
}
