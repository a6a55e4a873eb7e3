/* Sockets that a service manager has opened: systemd's protocol of socket activation, without its library. */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "server/front/front.h"

#define FIRST 3 /* the first descriptor, as the protocol says */
#define MOST 16

/* Read a whole number from the environment; -1: it is not there, or not one. */
static long get_environment_number(const char *name) {
    const char *text = getenv(name);
    char *end;
    if (!text || *text < '0' || *text > '9') return -1;
    errno = 0;
    long n = strtol(text, &end, 10);
    return *end || errno ? -1 : n;
}

static bool has_socket_option(int fd, int option, int value) {
    int there;
    socklen_t size = sizeof there;
    return getsockopt(fd, SOL_SOCKET, option, &there, &size) == 0 && there == value;
}

static int adopt_passed_socket(ad_front *f, int fd, ad_fault *fault) {
    struct sockaddr_un a = {0};
    socklen_t size = sizeof a;
    char where[160];
    if (getsockname(fd, (struct sockaddr *)&a, &size) || a.sun_family != AF_UNIX ||
        !has_socket_option(fd, SO_TYPE, SOCK_STREAM) || !has_socket_option(fd, SO_ACCEPTCONN, 1)) {
        close(fd);
        return ad__fault(fault, AD_E_VALUE,
                         "descriptor %d of the service manager: expected a listening Unix stream socket; others are "
                         "opened by the options tcp and tls",
                         fd);
    }
    if (fcntl(fd, F_SETFD, FD_CLOEXEC) || fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK)) {
        close(fd);
        return ad__fault(fault, AD_E_SYSTEM, "descriptor %d of the service manager: %s", fd, strerror(errno));
    }
    /* The kernel lets no socket listen without a name. One in the abstract namespace begins with a zero byte and ends
     * with the address. */
    if (!*a.sun_path)
        snprintf(where, sizeof where, "unix:@%.*s", (int)(size - offsetof(struct sockaddr_un, sun_path) - 1),
                 a.sun_path + 1);
    else snprintf(where, sizeof where, "unix:%.*s", (int)sizeof a.sun_path, a.sun_path);
    return ad__listen_add(f, fd, AD_WAY_UNIX, where, fault);
}

int ad__activation_take(ad_front *f, int *passed, ad_fault *fault) {
    long count = get_environment_number("LISTEN_FDS");
    bool ours = get_environment_number("LISTEN_PID") == getpid();
    int status = 0;
    *passed = 0;
    /* Programs that this one starts must not see these variables. */
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
    if (!ours || count <= 0) return 0;
    if (count > MOST)
        return ad__fault(fault, AD_E_LIMIT, "the service manager passes %ld sockets, of which at most %d are taken",
                         count, MOST);
    for (int i = 0; i < count && !status; i++) status = adopt_passed_socket(f, FIRST + i, fault);
    if (!status) *passed = (int)count;
    return status;
}
