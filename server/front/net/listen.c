/* Listening sockets: opening them, and accepting connections. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "server/common/log.h"
#include "server/common/os.h"
#include "server/front/net/address.h"
#include "server/front/front.h"

#define BACKLOG 511
#define AT_ONCE 64 /* connections accepted before other handles get a turn */
#define REST 100   /* ms without accepting after descriptors have run out */

struct ad_listener {
    ad_listener *next;
    ad_front *front;
    uv_poll_t poll;
    uv_timer_t rest;
    int fd, handles;
    ad_way way;
    char where[160];
};

/* ---- accepting ---- */

static void on_listener_connection(uv_poll_t *poll, int status, int events);

static void on_accept_pause_over(uv_timer_t *timer) {
    ad_listener *l = timer->data;
    uv_poll_start(&l->poll, UV_READABLE, on_listener_connection);
}

static void on_listener_connection(uv_poll_t *poll, int status, int events) {
    ad_listener *l = poll->data;
    (void)status;
    (void)events;
    for (int i = 0; i < AT_ONCE; i++) {
        int fd = ad__os.accept(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0) {
            ad__handshake_begin(l->front, fd, l->way);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
            ad__log(cannot_accept, l->where, strerror(errno));
            uv_poll_stop(&l->poll);
            uv_timer_start(&l->rest, on_accept_pause_over, REST, 0);
            return;
        } else if (errno == EAGAIN) {
            return;
        }
    }
}

int ad__listen_add(ad_front *f, int fd, ad_way way, const char *where, ad_fault *fault) {
    ad_listener *l = ad__os.calloc(1, sizeof *l);
    int status = l ? uv_poll_init(&f->loop, &l->poll, fd) : UV_ENOMEM;
    if (status) {
        free(l);
        close(fd);
        return ad__fault(fault, AD_E_SYSTEM, "cannot listen on %s: %s", where, uv_strerror(status));
    }
    uv_timer_init(&f->loop, &l->rest);
    l->front = f;
    l->fd = fd;
    l->handles = 2;
    l->way = way;
    l->poll.data = l->rest.data = l;
    snprintf(l->where, sizeof l->where, "%s", where);
    l->next = f->listeners;
    f->listeners = l;
    uv_poll_start(&l->poll, UV_READABLE, on_listener_connection);
    return 0;
}

void ad__listen_pause(ad_front *f, bool pause) {
    for (ad_listener *l = f->listeners; l; l = l->next) {
        uv_timer_stop(&l->rest);
        if (pause) uv_poll_stop(&l->poll);
        else uv_poll_start(&l->poll, UV_READABLE, on_listener_connection);
    }
}

int ad__listen_offer(ad_front *f) {
    int status = f->lock >= 0 ? ad__inherit_offer(f, "lock", f->socket, f->lock) : 0;
    for (const ad_listener *l = f->listeners; l && !status; l = l->next) {
        if (l->way == AD_WAY_TCP) status = ad__inherit_offer(f, "tcp", f->config.tcp, l->fd);
        else if (l->way == AD_WAY_TLS) status = ad__inherit_offer(f, "tls", f->config.tls, l->fd);
        else if (f->lock >= 0) status = ad__inherit_offer(f, "socket", f->socket, l->fd);
        else status = ad__inherit_offer(f, "activation", l->where, l->fd);
    }
    return status;
}

/* ---- the Unix socket ---- */

void ad__listen_default(char out[AD_SOCKET_PATH]) {
    const char *runtime = getenv("XDG_RUNTIME_DIR");
    const bool own = geteuid() != 0 && runtime && *runtime;
    snprintf(out, AD_SOCKET_PATH, "%s/arrayd.sock", own ? runtime : "/run/arrayd");
}

/* Lock the socket, as only one arrayd may serve it: whoever has the lock may replace the socket. The kernel drops
 * the lock with the process, so that a killed server's socket can be taken over, and two starts cannot race. The
 * file stays, as otherwise two processes could lock two files of that name. AD_E_SYSTEM, AD_E_LIMIT. */
static int lock_socket(ad_front *f, ad_fault *fault) {
    char path[4200], pid[32] = "";
    snprintf(path, sizeof path, "%s.lock", f->socket);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) return ad__fault(fault, AD_E_SYSTEM, "option socket: cannot open %.150s: %s", path, strerror(errno));
    if (flock(fd, LOCK_EX | LOCK_NB)) {
        ssize_t n = pread(fd, pid, sizeof pid - 1, 0);
        while (n > 0 && (pid[n - 1] < '0' || pid[n - 1] > '9')) pid[--n] = 0;
        close(fd);
        return ad__fault(fault, AD_E_LIMIT, "already running: process %s serves %.150s", *pid ? pid : "?", f->socket);
    }
    int n = snprintf(pid, sizeof pid, "%d\n", (int)getpid());
    if (ftruncate(fd, 0) || pwrite(fd, pid, (size_t)n, 0) != n) ad__log(lock_file_not_written, path);
    f->lock = fd;
    return 0;
}

/* Remove a socket that nobody answers on. One that somebody answers on stays, whatever its lock file says.
 * AD_E_SYSTEM, AD_E_LIMIT. */
static int remove_dead_socket(const char *option, const struct sockaddr_un *a, ad_fault *fault) {
    struct stat st;
    if (lstat(a->sun_path, &st)) return 0;
    if (!S_ISSOCK(st.st_mode))
        return ad__fault(fault, AD_E_SYSTEM, "option %s: %s is there and is not a socket", option, a->sun_path);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    bool alive = fd >= 0 && (connect(fd, (const struct sockaddr *)a, sizeof *a) == 0 || errno == EAGAIN);
    if (fd >= 0) close(fd);
    if (alive) return ad__fault(fault, AD_E_LIMIT, "already running: somebody answers on %s", a->sun_path);
    unlink(a->sun_path);
    return 0;
}

/* Make the socket's folder for root when it is missing, as /run is empty after a boot. */
static void make_socket_folder(const char *socket_path) {
    char folder[4096];
    snprintf(folder, sizeof folder, "%s", socket_path);
    char *slash = strrchr(folder, '/');
    if (!slash || slash == folder || geteuid() != 0) return;
    *slash = 0;
    if (mkdir(folder, 0750) == 0) ad__log(folder_made, folder);
}

static int parse_mode(const char *text, mode_t *out, ad_fault *fault) {
    char *end;
    unsigned long mode = strtoul(text, &end, 8);
    if (*text < '0' || *text > '7' || *end || mode > 0777)
        return ad__fault(fault, AD_E_VALUE, "option socket-mode: \"%.60s\": expected octal digits, as 0660", text);
    *out = (mode_t)mode;
    return 0;
}

int ad__listen_at_path(const char *option, const char *path, mode_t mode, int *out, ad_fault *fault) {
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof a.sun_path)
        return ad__fault(fault, AD_E_VALUE, "option %s: longer than the %zu bytes that the kernel takes", option,
                         sizeof a.sun_path - 1);
    strcpy(a.sun_path, path);
    int status = remove_dead_socket(option, &a, fault);
    if (status) return status;
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    mode_t before = umask(0777 & ~mode); /* the socket must not be open to others, even for a moment */
    bool ok = fd >= 0 && bind(fd, (struct sockaddr *)&a, sizeof a) == 0 && listen(fd, BACKLOG) == 0;
    umask(before);
    if (ok) {
        *out = fd;
        return 0;
    }
    ad__fault(fault, AD_E_SYSTEM, "option %s: cannot listen on %s: %s", option, a.sun_path, strerror(errno));
    if (fd >= 0) close(fd);
    return AD_E_SYSTEM;
}

static int open_unix_listener(ad_front *f, ad_fault *fault) {
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    char where[160], usual[AD_SOCKET_PATH];
    mode_t mode = 0;
    int status = parse_mode(f->config.socket_mode, &mode, fault);
    if (status) return status;
    ad__listen_default(usual);
    f->socket = strdup(*f->config.socket ? f->config.socket : usual);
    if (!f->socket) return ad__fault(fault, AD_E_MEMORY, "out of host memory");
    if (strlen(f->socket) >= sizeof a.sun_path)
        return ad__fault(fault, AD_E_VALUE, "option socket: longer than the %zu bytes that the kernel takes",
                         sizeof a.sun_path - 1);
    strcpy(a.sun_path, f->socket);
    make_socket_folder(f->socket);
    f->lock = ad__inherit(f, "lock", f->socket);
    int fd = ad__inherit(f, "socket", f->socket);
    if (fd >= 0) chmod(f->socket, mode);
    if (f->lock < 0 && (status = lock_socket(f, fault))) return status;
    if (fd < 0 && (status = ad__listen_at_path("socket", f->socket, mode, &fd, fault))) return status;
    snprintf(where, sizeof where, "unix:%s", a.sun_path);
    return ad__listen_add(f, fd, AD_WAY_UNIX, where, fault);
}

/* ---- TCP ---- */

/* Create a listening socket, or inherit it from the previous front; *a gets the port that the kernel has chosen. */
static int create_tcp_socket(ad_front *f, const char *name, const char *text, ad_address *a, int *out,
                             ad_fault *fault) {
    int on = 1;
    socklen_t size = a->any.sa_family == AF_INET ? sizeof a->v4 : sizeof a->v6;
    int fd = ad__inherit(f, name, text);
    bool ok = fd >= 0 || ((fd = socket(a->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) >= 0 &&
                          setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
                          bind(fd, &a->any, size) == 0 && listen(fd, BACKLOG) == 0);
    if (ok && getsockname(fd, &a->any, &size) == 0) {
        *out = fd;
        return 0;
    }
    ad__fault(fault, AD_E_SYSTEM, "option %s: cannot listen on %.60s: %s", name, text, strerror(errno));
    if (fd >= 0) close(fd);
    return AD_E_SYSTEM;
}

/* Format an address for the log: "tcp:127.0.0.1:7311". */
static void format_address(const char *name, const ad_address *a, char *out, size_t size) {
    char host[64];
    bool v4 = a->any.sa_family == AF_INET;
    inet_ntop(a->any.sa_family, v4 ? (const void *)&a->v4.sin_addr : (const void *)&a->v6.sin6_addr, host, sizeof host);
    snprintf(out, size, v4 ? "%s:%s:%u" : "%s:[%s]:%u", name, host, ntohs(v4 ? a->v4.sin_port : a->v6.sin6_port));
}

int ad__listen_metrics(ad_front *f, int *out, char *where, size_t size, ad_fault *fault) {
    ad_address a;
    int status = ad__address_metrics(&f->config, &a, fault);
    if (!status) status = create_tcp_socket(f, "metrics", f->config.metrics, &a, out, fault);
    if (!status) format_address("metrics", &a, where, size);
    return status;
}

static int open_listener(ad_front *f, const char *name, const char *text, ad_address *a, ad_way way, ad_fault *fault) {
    char where[160];
    int fd, status = create_tcp_socket(f, name, text, a, &fd, fault);
    if (status) return status;
    format_address(name, a, where, sizeof where);
    if (way == AD_WAY_TCP && f->config.tcp_open)
        ad__log(tcp_without_credentials, where,
                "every user of this machine may connect; use the Unix socket where that is not wanted");
    return ad__listen_add(f, fd, way, where, fault);
}

static int open_tcp_listener(ad_front *f, ad_fault *fault) {
    ad_address a;
    int status = ad__address_tcp(&f->config, &a, fault);
    return status ? status : open_listener(f, "tcp", f->config.tcp, &a, AD_WAY_TCP, fault);
}

static int open_tls_listener(ad_front *f, ad_fault *fault) {
    ad_address a;
    int status = ad__address_tls(&f->config, &a, fault);
    return status ? status : open_listener(f, "tls", f->config.tls, &a, AD_WAY_TLS, fault);
}

/* ---- both ---- */

static void adopt_activated_sockets(ad_front *f, int *passed, ad_fault *fault) {
    char where[160];
    int fd;
    while ((fd = ad__inherit_any(f, "activation", where, sizeof where)) >= 0)
        *passed += !ad__upgrade_tolerate(f, ad__listen_add(f, fd, AD_WAY_UNIX, where, fault), fault);
}

int ad__listen_open(ad_front *f, ad_fault *fault) {
    int passed = 0, status = ad__activation_take(f, &passed, fault);
    adopt_activated_sockets(f, &passed, fault);
    if (!status && !passed && strcmp(f->config.socket, "none"))
        status = ad__upgrade_tolerate(f, open_unix_listener(f, fault), fault);
    if (!status && *f->config.tcp) status = ad__upgrade_tolerate(f, open_tcp_listener(f, fault), fault);
    if (!status && *f->config.tls) status = ad__upgrade_tolerate(f, open_tls_listener(f, fault), fault);
    if (!status && !f->listeners)
        status = ad__fault(fault, AD_E_VALUE, "option socket: none, and no tcp or tls: there is nothing to listen on");
    return status;
}

static void on_listener_closed(uv_handle_t *handle) {
    ad_listener *l = handle->data;
    if (--l->handles) return;
    close(l->fd);
    free(l);
}

void ad__listen_close(ad_front *f) {
    /* The file is removed first: whoever finds it gone can start a new arrayd, and whoever finds it can still
     * connect. */
    if (f->listeners && f->lock >= 0) unlink(f->socket);
    while (f->listeners) {
        ad_listener *l = f->listeners;
        f->listeners = l->next;
        uv_close((uv_handle_t *)&l->poll, on_listener_closed);
        uv_close((uv_handle_t *)&l->rest, on_listener_closed);
    }
}

bool ad__listen_tls(const ad_front *f, char *out, size_t size) {
    const ad_listener *l = f->listeners;
    while (l && l->way != AD_WAY_TLS) l = l->next;
    if (l) snprintf(out, size, "%s", l->where + strlen("tls:"));
    return l;
}

void ad__listen_text(const ad_front *f, char *out, size_t size) {
    size_t n = 0;
    *out = 0;
    for (const ad_listener *l = f->listeners; l && n < size; l = l->next)
        n += (size_t)snprintf(out + n, size - n, "%s%s", n ? " " : "", l->where);
}
