/* What is read by HTTP: metrics, health, and a page for people. libmicrohttpd does the protocol; it has no thread of
 * its own, but a descriptor that the loop watches. Everybody who reaches the address may read, and nobody can change
 * anything. */
#include <arpa/inet.h>
#include <microhttpd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/common/log.h"
#include "server/common/os.h"
#include "server/front/front.h"
#include "server/front/observe/http_pages.h"

#define MOST 64                /* connections; one more, and the oldest goes: who says nothing keeps nobody out */
#define MOST_MEMORY (16 << 10) /* bytes of each, headers included */
#define IDLE 10                /* seconds */

typedef struct peer peer; /* a connection */
typedef struct request request;

struct peer {
    peer *next, *prev;
    int fd;
    bool listed; /* not told to go yet */
};

struct ad_http {
    ad_front *front;
    struct MHD_Daemon *daemon;
    uv_poll_t poll;
    uv_timer_t timer;
    int handles;
    bool loopback;
    bool resumed; /* a connection that waited is to go on */
    peer *links;  /* newest first */
    unsigned nlinks;
    request *waiting;
    char where[160];
};

typedef struct path {
    const char *path, *type;
    const char *data, *end; /* NULL: made by */
    void (*make)(request *r);
} path;

struct request {
    request *next; /* of those that wait */
    ad_observer observer;
    ad_rounds *rounds;
    ad_http *http;
    struct MHD_Connection *connection;
    const path *path;
    bool made;
    int status;
    ad_bytes body;
};

static request *request_of(ad_observer *w) { return (request *)(void *)((char *)w - offsetof(request, observer)); }

/* ---- the loop ---- */

static void on_timer(uv_timer_t *timer);

/* Let it work, and see when it wants to be called again. */
static void turn(ad_http *h) {
    MHD_UNSIGNED_LONG_LONG ms;
    h->resumed = false;
    MHD_run(h->daemon);
    if (h->resumed) uv_timer_start(&h->timer, on_timer, 0, 0);
    else if (MHD_get_timeout(h->daemon, &ms) == MHD_YES) uv_timer_start(&h->timer, on_timer, ms, 0);
    else uv_timer_stop(&h->timer);
}

static void on_timer(uv_timer_t *timer) { turn(timer->data); }

static void on_event(uv_poll_t *poll, int status, int events) {
    (void)status, (void)events;
    turn(poll->data);
}

/* ---- connections ---- */

static void unlink_peer(ad_http *h, peer *l) {
    if (!l->listed) return;
    l->listed = false;
    if (l->prev) l->prev->next = l->next;
    else h->links = l->next;
    if (l->next) l->next->prev = l->prev;
    h->nlinks--;
}

static void on_link(void *user, struct MHD_Connection *connection, void **context,
                    enum MHD_ConnectionNotificationCode code) {
    ad_http *h = user;
    peer *l = *context;
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        if (l) unlink_peer(h, l);
        free(l);
        return;
    }
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (!info || !(l = *context = ad__os.calloc(1, sizeof *l))) return;
    if (h->nlinks == MOST) {
        peer *oldest = h->links;
        while (oldest->next) oldest = oldest->next;
        shutdown(oldest->fd, SHUT_RDWR); /* it is closed when that has been noticed */
        unlink_peer(h, oldest);
    }
    l->fd = info->connect_fd;
    l->listed = true;
    l->next = h->links;
    if (l->next) l->next->prev = l;
    h->links = l;
    h->nlinks++;
}

/* ---- answers ---- */

static void unlink_waiting(request *r) {
    request **at = &r->http->waiting;
    while (*at && *at != r) at = &(*at)->next;
    if (*at) *at = r->next;
}

static void go_on(request *r) {
    unlink_waiting(r);
    r->made = true;
    MHD_resume_connection(r->connection);
    r->http->resumed = true;
    uv_timer_start(&r->http->timer, on_timer, 0, 0); /* it may be that this is called by MHD_run */
}

static void on_metrics(ad_observer *w) {
    request *r = request_of(w);
    ad__metrics_text(r->http->front, &r->body);
    go_on(r);
}

static void on_status(ad_observer *w) {
    request *r = request_of(w);
    ad__status_json(r->http->front, &r->body);
    go_on(r);
}

static void on_health(ad_observer *w) {
    request *r = request_of(w);
    ad__health_json(r->http->front, &r->body);
    if (!ad__health_good(r->http->front)) r->status = MHD_HTTP_SERVICE_UNAVAILABLE;
    go_on(r);
}

static void wait_for(request *r, ad_rounds *rounds, void (*ask)(ad_front *f, ad_observer *w),
                     void (*done)(ad_observer *w)) {
    r->next = r->http->waiting;
    r->http->waiting = r;
    r->rounds = rounds;
    r->observer.done = done;
    MHD_suspend_connection(r->connection);
    ask(r->http->front, &r->observer);
}

static void make_metrics(request *r) { wait_for(r, &r->http->front->observability.reports, ad__collect, on_metrics); }
static void make_status(request *r) { wait_for(r, &r->http->front->observability.reports, ad__collect, on_status); }
static void make_health(request *r) { wait_for(r, &r->http->front->observability.health, ad__health, on_health); }

static const path paths[] = {
    {"/", "text/html; charset=utf-8", ad_page_html, ad_page_html_end, NULL},
    {"/page.js", "text/javascript; charset=utf-8", ad_page_js, ad_page_js_end, NULL},
    {"/page.css", "text/css; charset=utf-8", ad_page_css, ad_page_css_end, NULL},
    {"/metrics", "text/plain; version=0.0.4; charset=utf-8", NULL, NULL, make_metrics},
    {"/status.json", "application/json", NULL, NULL, make_status},
    {"/health", "application/json", NULL, NULL, make_health},
};

static const path *path_of(const char *url) {
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if (!strcmp(paths[i].path, url)) return &paths[i];
    return NULL;
}

/* Takes the response. */
static enum MHD_Result send_response(struct MHD_Connection *c, int status, const char *type, struct MHD_Response *r) {
    static const char *const headers[][2] = {
        {"Cache-Control", "no-store"},
        {"X-Content-Type-Options", "nosniff"},
        {"X-Frame-Options", "DENY"},
        {"Referrer-Policy", "no-referrer"},
        {"Content-Security-Policy", "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
                                    "img-src data:; base-uri 'none'; form-action 'none'"},
    };
    if (!r) return MHD_NO;
    MHD_add_response_header(r, "Content-Type", type);
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        MHD_add_response_header(r, headers[i][0], headers[i][1]);
    if (status == MHD_HTTP_METHOD_NOT_ALLOWED) MHD_add_response_header(r, "Allow", "GET, HEAD");
    enum MHD_Result sent = MHD_queue_response(c, (unsigned)status, r);
    MHD_destroy_response(r);
    return sent;
}

static enum MHD_Result say(struct MHD_Connection *c, int status, const char *text) {
    return send_response(
        c, status, "text/plain; charset=utf-8",
        MHD_create_response_from_buffer(strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_PERSISTENT));
}

static enum MHD_Result send_made(request *r) {
    if (r->body.failed) return say(r->connection, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory\n");
    struct MHD_Response *response = MHD_create_response_from_buffer(r->body.size, r->body.data, MHD_RESPMEM_MUST_FREE);
    if (response) r->body = (ad_bytes)AD_BYTES_INIT;
    return send_response(r->connection, r->status, r->path->type, response);
}

/* ---- requests ---- */

/* On a loopback address only what names this machine: a page from elsewhere could have its own name lead here, and
 * would be let read the answer by the browser of whoever looks at it. */
static bool host_is_good(const ad_http *h, const char *host) {
    struct in6_addr unused;
    char name[256];
    if (!h->loopback || !host) return true;
    size_t n = *host == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":");
    if (n >= sizeof name) return false;
    snprintf(name, sizeof name, "%.*s", (int)n, host);
    if (*name != '[') return !strcmp(name, "localhost") || inet_pton(AF_INET, name, &unused) == 1;
    name[n - 1] = 0;
    return inet_pton(AF_INET6, name + 1, &unused) == 1;
}

static const char *header(struct MHD_Connection *c, const char *name) {
    return MHD_lookup_connection_value(c, MHD_HEADER_KIND, name);
}

/* What is refused before anything is done. 0: nothing. */
static int objection(const ad_http *h, struct MHD_Connection *c, const char *method, const char **text) {
    const char *length = header(c, "Content-Length");
    *text = "expected GET\n";
    if (strcmp(method, "GET") && strcmp(method, "HEAD")) return MHD_HTTP_METHOD_NOT_ALLOWED;
    *text = "expected no body\n";
    if ((length && strcmp(length, "0")) || header(c, "Transfer-Encoding")) return MHD_HTTP_BAD_REQUEST;
    *text = "expected the name or address of this machine in the header Host\n";
    return host_is_good(h, header(c, "Host")) ? 0 : MHD_HTTP_FORBIDDEN;
}

static enum MHD_Result begin_request(ad_http *h, struct MHD_Connection *c, const char *url, const char *method,
                                     void **context) {
    const char *text;
    int status = objection(h, c, method, &text);
    if (status) return say(c, status, text);
    const path *p = path_of(url);
    if (!p) return say(c, MHD_HTTP_NOT_FOUND, "there are /, /metrics, /health and /status.json\n");
    request *r = ad__os.calloc(1, sizeof *r);
    if (!r) return MHD_NO;
    r->http = h;
    r->connection = c;
    r->path = p;
    r->status = MHD_HTTP_OK;
    *context = r;
    return MHD_YES;
}

/* Called once with the headers, again when all of the request is there, and again after it has waited. */
static enum MHD_Result on_request(void *user, struct MHD_Connection *c, const char *url, const char *method,
                                  const char *version, const char *upload, size_t *size, void **context) {
    request *r = *context;
    (void)version, (void)upload;
    if (!r) return begin_request(user, c, url, method, context);
    if (*size) return MHD_NO;
    if (r->made) return send_made(r);
    if (!r->path->make) {
        size_t n = (size_t)(r->path->end - r->path->data);
        return send_response(
            c, MHD_HTTP_OK, r->path->type,
            MHD_create_response_from_buffer(n, (void *)(uintptr_t)r->path->data, MHD_RESPMEM_PERSISTENT));
    }
    r->path->make(r);
    return MHD_YES;
}

static void on_completed(void *user, struct MHD_Connection *c, void **context, enum MHD_RequestTerminationCode code) {
    request *r = *context;
    (void)user, (void)c, (void)code;
    if (!r) return;
    if (r->rounds) ad__observer_remove(r->rounds, &r->observer);
    unlink_waiting(r);
    ad__bytes_free(&r->body);
    free(r);
    *context = NULL;
}

/* ---- opening and closing ---- */

static void on_complaint(void *user, const char *format, va_list list) __attribute__((format(printf, 2, 0)));
static void on_complaint(void *user, const char *format, va_list list) {
    char text[256];
    (void)user;
    int n = vsnprintf(text, sizeof text, format, list);
    if (n > 0 && (size_t)n < sizeof text && text[n - 1] == '\n') text[n - 1] = 0;
    ad__log(AD_LOG_DEBUG, "http", "why=%s", text);
}

static struct MHD_Daemon *start_daemon(ad_http *h, int fd) {
    return MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, NULL, NULL, on_request, h,
                            MHD_OPTION_EXTERNAL_LOGGER, on_complaint, NULL, MHD_OPTION_LISTEN_SOCKET, fd,
                            MHD_OPTION_CONNECTION_LIMIT, 2u * MOST, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE,
                            MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MOST_MEMORY, MHD_OPTION_NOTIFY_CONNECTION,
                            on_link, h, MHD_OPTION_NOTIFY_COMPLETED, on_completed, NULL, MHD_OPTION_END);
}

static void on_closed(uv_handle_t *handle) {
    ad_http *h = handle->data;
    if (!--h->handles) free(h);
}

static int start(ad_http *h, int fd) {
    h->daemon = start_daemon(h, fd);
    if (!h->daemon) {
        close(fd);
        return AD_E_SYSTEM;
    }
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    if (!info || uv_poll_init(&h->front->loop, &h->poll, info->epoll_fd)) {
        MHD_stop_daemon(h->daemon);
        return AD_E_SYSTEM;
    }
    uv_timer_init(&h->front->loop, &h->timer);
    h->poll.data = h->timer.data = h;
    h->handles = 2;
    uv_poll_start(&h->poll, UV_READABLE, on_event);
    return 0;
}

int ad__http_open(ad_front *f, ad_fault *fault) {
    int fd;
    if (!*f->config.metrics) return 0;
    ad_http *h = ad__os.calloc(1, sizeof *h);
    if (!h) return ad__fault(fault, AD_E_MEMORY, "out of host memory");
    int status = ad__listen_metrics(f, &fd, h->where, sizeof h->where, fault);
    if (!status) {
        h->front = f;
        h->loopback = !f->config.metrics_open;
        status = start(h, fd);
        if (status) ad__fault(fault, status, "option metrics: cannot serve %s", h->where);
    }
    if (status) {
        free(h);
        return status;
    }
    f->observability.http = h;
    return 0;
}

int ad__http_offer(ad_front *f) {
    const ad_http *h = f->observability.http;
    const union MHD_DaemonInfo *info = h ? MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_LISTEN_FD) : NULL;
    return info ? ad__inherit_offer(f, "metrics", f->config.metrics, info->listen_fd) : 0;
}

void ad__http_text(const ad_front *f, char *out, size_t size) {
    size_t n = strlen(out);
    if (f->observability.http && n < size) snprintf(out + n, size - n, " %s", f->observability.http->where);
}

void ad__http_close(ad_front *f) {
    ad_http *h = f->observability.http;
    if (!h) return;
    f->observability.http = NULL;
    while (h->waiting) { /* it must not be stopped while some wait */
        request *r = h->waiting;
        ad__observer_remove(r->rounds, &r->observer);
        r->body.failed = true;
        go_on(r);
    }
    uv_close((uv_handle_t *)&h->poll, on_closed);
    uv_close((uv_handle_t *)&h->timer, on_closed);
    MHD_stop_daemon(h->daemon);
}
