/* HTTP: metrics, health, and a page for people. libmicrohttpd does the protocol without a thread of its own: the loop
 * watches its descriptor. Everybody who reaches the address may read, and nobody can change anything.
 *
 *     on_http_request -> suspend_request -> (round of reports or health) -> on_..._ready
 *                                                                               |
 *     on_http_request again: send_body <-- run_daemon <-- resume_request <------+ */
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

#define MOST 64                /* most connections; one more ends the oldest, so that silent ones keep nobody out */
#define MOST_MEMORY (16 << 10) /* bytes of memory of each connection, headers included */
#define IDLE 10                /* seconds that a connection may be idle */

typedef struct peer peer; /* a connection */
typedef struct request request;

struct peer {
    peer *next, *prev;
    int fd;
    bool listed; /* the connection has not been told to end */
};

struct ad_http {
    ad_front *front;
    struct MHD_Daemon *daemon;
    uv_poll_t poll;
    uv_timer_t timer;
    int handles;
    bool loopback;
    bool resumed; /* a suspended request is to go on */
    peer *links;  /* newest first */
    unsigned nlinks;
    request *waiting;
    char where[160];
};

typedef struct path {
    const char *path, *type;
    const char *data, *end; /* the file's bytes; NULL: `make` makes the body */
    void (*make)(request *r);
} path;

struct request {
    request *next; /* the next of those that wait */
    ad_observer observer;
    ad_rounds *rounds;
    ad_http *http;
    struct MHD_Connection *connection;
    const path *path;
    bool made;
    int status;
    ad_bytes body;
};

static request *get_request(ad_observer *w) { return (request *)(void *)((char *)w - offsetof(request, observer)); }

/* ---- the loop ---- */

static void on_http_timer(uv_timer_t *timer);

/* Let the daemon work, and set the timer for its next call. */
static void run_daemon(ad_http *h) {
    MHD_UNSIGNED_LONG_LONG ms;
    h->resumed = false;
    MHD_run(h->daemon);
    if (h->resumed) uv_timer_start(&h->timer, on_http_timer, 0, 0);
    else if (MHD_get_timeout(h->daemon, &ms) == MHD_YES) uv_timer_start(&h->timer, on_http_timer, ms, 0);
    else uv_timer_stop(&h->timer);
}

static void on_http_timer(uv_timer_t *timer) { run_daemon(timer->data); }

static void on_http_event(uv_poll_t *poll, int status, int events) {
    (void)status, (void)events;
    run_daemon(poll->data);
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

static void on_connection_change(void *user, struct MHD_Connection *connection, void **context,
                                 enum MHD_ConnectionNotificationCode code) {
    ad_http *h = user;
    peer *l = *context;
    if (code == MHD_CONNECTION_NOTIFY_CLOSED) {
        if (l) unlink_peer(h, l);
        free(l);
        return;
    }
    const union MHD_ConnectionInfo *info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (!(l = *context = ad__os.calloc(1, sizeof *l))) return;
    if (h->nlinks == MOST) {
        peer *oldest = h->links;
        while (oldest->next) oldest = oldest->next;
        shutdown(oldest->fd, SHUT_RDWR); /* the daemon closes the connection when it notices this */
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

static void unlink_waiting_request(request *r) {
    request **at = &r->http->waiting;
    while (*at && *at != r) at = &(*at)->next;
    if (*at) *at = r->next;
}

static void resume_request(request *r) {
    unlink_waiting_request(r);
    r->made = true;
    MHD_resume_connection(r->connection);
    r->http->resumed = true;
    uv_timer_start(&r->http->timer, on_http_timer, 0,
                   0); /* MHD_run may be the caller, and must not be called again here */
}

static void on_metrics_ready(ad_observer *w) {
    request *r = get_request(w);
    ad__metrics_text(r->http->front, &r->body);
    resume_request(r);
}

static void on_status_ready(ad_observer *w) {
    request *r = get_request(w);
    ad__status_json(r->http->front, &r->body);
    resume_request(r);
}

static void on_health_ready(ad_observer *w) {
    request *r = get_request(w);
    ad__health_json(r->http->front, &r->body);
    if (!ad__health_good(r->http->front)) r->status = MHD_HTTP_SERVICE_UNAVAILABLE;
    resume_request(r);
}

static void suspend_request(request *r, ad_rounds *rounds, void (*ask)(ad_front *f, ad_observer *w),
                            void (*done)(ad_observer *w)) {
    r->next = r->http->waiting;
    r->http->waiting = r;
    r->rounds = rounds;
    r->observer.done = done;
    MHD_suspend_connection(r->connection);
    ask(r->http->front, &r->observer);
}

static void make_metrics(request *r) {
    suspend_request(r, &r->http->front->observability.reports, ad__collect, on_metrics_ready);
}
static void make_status(request *r) {
    suspend_request(r, &r->http->front->observability.reports, ad__collect, on_status_ready);
}
static void make_health(request *r) {
    suspend_request(r, &r->http->front->observability.health, ad__health, on_health_ready);
}

static const path paths[] = {
    {"/", "text/html; charset=utf-8", ad_page_html, ad_page_html_end, NULL},
    {"/page.js", "text/javascript; charset=utf-8", ad_page_js, ad_page_js_end, NULL},
    {"/page.css", "text/css; charset=utf-8", ad_page_css, ad_page_css_end, NULL},
    {"/metrics", "text/plain; version=0.0.4; charset=utf-8", NULL, NULL, make_metrics},
    {"/status.json", "application/json", NULL, NULL, make_status},
    {"/health", "application/json", NULL, NULL, make_health},
};

static const path *find_path(const char *url) {
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++)
        if (!strcmp(paths[i].path, url)) return &paths[i];
    return NULL;
}

/* Queue a response with the headers of all answers. Owns and releases the response. */
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

static enum MHD_Result send_text(struct MHD_Connection *c, int status, const char *text) {
    return send_response(
        c, status, "text/plain; charset=utf-8",
        MHD_create_response_from_buffer(strlen(text), (void *)(uintptr_t)text, MHD_RESPMEM_PERSISTENT));
}

static enum MHD_Result send_body(request *r) {
    if (r->body.failed) return send_text(r->connection, MHD_HTTP_INTERNAL_SERVER_ERROR, "out of memory\n");
    struct MHD_Response *response = MHD_create_response_from_buffer(r->body.size, r->body.data, MHD_RESPMEM_MUST_FREE);
    if (response) r->body = (ad_bytes)AD_BYTES_INIT;
    return send_response(r->connection, r->status, r->path->type, response);
}

/* ---- requests ---- */

/* Tell whether the header Host is allowed: on a loopback address only a name of this machine. A foreign page could
 * point its own name here, and a visitor's browser would let it read the answers. */
static bool is_host_allowed(const ad_http *h, const char *host) {
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

static const char *get_header(struct MHD_Connection *c, const char *name) {
    return MHD_lookup_connection_value(c, MHD_HEADER_KIND, name);
}

/* Find the status with which a request is refused before all else, and its text. 0: it is not refused. */
static int find_objection(const ad_http *h, struct MHD_Connection *c, const char *method, const char **text) {
    const char *length = get_header(c, "Content-Length");
    *text = "expected GET\n";
    if (strcmp(method, "GET") && strcmp(method, "HEAD")) return MHD_HTTP_METHOD_NOT_ALLOWED;
    *text = "expected no body\n";
    if ((length && strcmp(length, "0")) || get_header(c, "Transfer-Encoding")) return MHD_HTTP_BAD_REQUEST;
    *text = "expected the name or address of this machine in the header Host\n";
    return is_host_allowed(h, get_header(c, "Host")) ? 0 : MHD_HTTP_FORBIDDEN;
}

static enum MHD_Result begin_request(ad_http *h, struct MHD_Connection *c, const char *url, const char *method,
                                     void **context) {
    const char *text;
    int status = find_objection(h, c, method, &text);
    if (status) return send_text(c, status, text);
    const path *p = find_path(url);
    if (!p) return send_text(c, MHD_HTTP_NOT_FOUND, "there are /, /metrics, /health and /status.json\n");
    request *r = ad__os.calloc(1, sizeof *r);
    if (!r) return MHD_NO;
    r->http = h;
    r->connection = c;
    r->path = p;
    r->status = MHD_HTTP_OK;
    *context = r;
    return MHD_YES;
}

/* Handle a request. The daemon calls this with the headers, when the request is complete, and when it resumes. */
static enum MHD_Result on_http_request(void *user, struct MHD_Connection *c, const char *url, const char *method,
                                       const char *version, const char *upload, size_t *size, void **context) {
    request *r = *context;
    (void)version, (void)upload, (void)size; /* requests with a body are refused */
    if (!r) return begin_request(user, c, url, method, context);
    if (r->made) return send_body(r);
    if (!r->path->make) {
        size_t n = (size_t)(r->path->end - r->path->data);
        return send_response(
            c, MHD_HTTP_OK, r->path->type,
            MHD_create_response_from_buffer(n, (void *)(uintptr_t)r->path->data, MHD_RESPMEM_PERSISTENT));
    }
    r->path->make(r);
    return MHD_YES;
}

static void on_request_completed(void *user, struct MHD_Connection *c, void **context,
                                 enum MHD_RequestTerminationCode code) {
    request *r = *context;
    (void)user, (void)c, (void)code;
    if (!r) return;
    if (r->rounds) ad__observer_remove(r->rounds, &r->observer);
    unlink_waiting_request(r);
    ad__bytes_free(&r->body);
    free(r);
    *context = NULL;
}

/* ---- opening and closing ---- */

static void on_daemon_message(void *user, const char *format, va_list list) __attribute__((format(printf, 2, 0)));
static void on_daemon_message(void *user, const char *format, va_list list) {
    char text[256];
    (void)user;
    vsnprintf(text, sizeof text, format, list);
    text[strcspn(text, "\n")] = 0;
    ad__log(http, text);
}

static struct MHD_Daemon *start_daemon(ad_http *h, int fd) {
    return MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, NULL, NULL,
                            on_http_request, h, MHD_OPTION_EXTERNAL_LOGGER, on_daemon_message, NULL,
                            MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, 2u * MOST,
                            MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)IDLE, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                            (size_t)MOST_MEMORY, MHD_OPTION_NOTIFY_CONNECTION, on_connection_change, h,
                            MHD_OPTION_NOTIFY_COMPLETED, on_request_completed, NULL, MHD_OPTION_END);
}

static void on_http_closed(uv_handle_t *handle) {
    ad_http *h = handle->data;
    if (!--h->handles) free(h);
}

static int start_http(ad_http *h, int fd) {
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
    uv_poll_start(&h->poll, UV_READABLE, on_http_event);
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
        status = start_http(h, fd);
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
    const size_t n = strlen(out);
    if (f->observability.http) snprintf(out + n, size - n, " %s", f->observability.http->where);
}

void ad__http_close(ad_front *f) {
    ad_http *h = f->observability.http;
    if (!h) return;
    f->observability.http = NULL;
    while (h->waiting) { /* the daemon must not be stopped while requests are suspended */
        request *r = h->waiting;
        ad__observer_remove(r->rounds, &r->observer);
        r->body.failed = true;
        resume_request(r);
    }
    uv_close((uv_handle_t *)&h->poll, on_http_closed);
    uv_close((uv_handle_t *)&h->timer, on_http_closed);
    MHD_stop_daemon(h->daemon);
}
