/* Connecting to servers: Unix sockets, TCP, embedded servers. */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "client-c/client.h"

static int fail_connect(const ad_server_address *a, const char *why) {
    return ad__fail(AD_E_CONNECTION, "no arrayd at %s: %s", a->url, why);
}

/* Fail with AD_E_CONNECTION only where there is no server, as the next address is then tried. */
static int fail_unix(const ad_server_address *a, int error) {
    switch (error) {
    case EAGAIN: return ad__fail(AD_E_TIMEOUT, "no answer from %s", a->url);
    case EACCES:
    case EPERM: return ad__fail_denied(a, error);
    case ENOENT:
    case ENOTDIR:
    case ECONNREFUSED: return fail_connect(a, strerror(error));
    default: return ad__fail(AD_E_SYSTEM, "%s cannot be opened: %s", a->url, strerror(error));
    }
}

/* Connect to a Unix socket. A full backlog makes connect wait, which the send timeout limits. */
static int connect_unix(const ad_server_address *a, uint64_t deadline, int *out) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    uint64_t now = ad__now(), left = deadline > now ? (deadline - now) / 1000 : 1;
    struct timeval limit = {(time_t)(left / 1000000), (suseconds_t)(left % 1000000)};
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), status = 0;
    if (fd < 0) return ad__fail(AD_E_SYSTEM, "socket: %s", strerror(errno));
    strcpy(address.sun_path, a->host);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
    while (!status && connect(fd, (struct sockaddr *)&address, sizeof address) != 0)
        if (errno != EINTR) status = fail_unix(a, errno);
    if (status) close(fd);
    else *out = fd;
    return status;
}

/* Wait until a connection in progress is made or has failed; returns 0 or an errno. */
static int finish_connect(int fd, uint64_t deadline) {
    struct pollfd p = {.fd = fd, .events = POLLOUT};
    int error = 0;
    socklen_t size = sizeof error;
    for (;;) {
        uint64_t now = ad__now();
        if (now >= deadline) return ETIMEDOUT;
        int n = poll(&p, 1, (int)((deadline - now) / 1000000 + 1));
        if (n < 0 && errno != EINTR) return errno;
        if (n > 0) return getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
    }
}

/* Set TCP options. A peer that has vanished is noticed within 45 s. */
static void tune_tcp(int fd) {
    static const struct {
        int level, name, value;
    } options[] = {{IPPROTO_TCP, TCP_NODELAY, 1},   {SOL_SOCKET, SO_KEEPALIVE, 1},
                   {IPPROTO_TCP, TCP_KEEPIDLE, 15}, {IPPROTO_TCP, TCP_KEEPINTVL, 10},
                   {IPPROTO_TCP, TCP_KEEPCNT, 3},   {IPPROTO_TCP, TCP_USER_TIMEOUT, 45000}};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof options[i].value);
}

/* Connect to one address; returns 0 or an errno. */
static int try_tcp(const struct addrinfo *i, uint64_t deadline, int *out) {
    int fd = socket(i->ai_family, i->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, i->ai_protocol), error = 0;
    if (fd < 0) return errno;
    if (connect(fd, i->ai_addr, i->ai_addrlen) != 0)
        error = errno == EINPROGRESS || errno == EINTR ? finish_connect(fd, deadline) : errno;
    if (error == 0 && fcntl(fd, F_SETFL, 0) != 0) error = errno;
    if (error) {
        close(fd);
        return error;
    }
    tune_tcp(fd);
    *out = fd;
    return 0;
}

static int connect_tcp(const ad_server_address *a, uint64_t deadline, int *out) {
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG}, *list;
    int error = getaddrinfo(a->host, a->port, &hints, &list);
    if (error) return fail_connect(a, gai_strerror(error));
    error = EADDRNOTAVAIL;
    for (struct addrinfo *i = list; i && error; i = i->ai_next) error = try_tcp(i, deadline, out);
    freeaddrinfo(list);
    if (error == ETIMEDOUT) return ad__fail(AD_E_TIMEOUT, "no answer from %s", a->url);
    return error ? fail_connect(a, strerror(error)) : 0;
}

int ad__connect(const ad_server_address *address, uint64_t deadline, int *fd, ad_embedded *embedded) {
    switch (address->transport) {
    case AD_URL_UNIX: return connect_unix(address, deadline, fd);
    case AD_URL_TCP:
    case AD_URL_TLS: return connect_tcp(address, deadline, fd);
    case AD_URL_EMBEDDED:
        return embedded->door >= 0 ? ad__embedded_connect(embedded, fd)
                                   : ad__embedded_start(address->host, fd, embedded);
    }
    return ad__fail(AD_E_URL, "unknown transport");
}
