/* Packets with a descriptor over a Unix socket: see fdpass.h. */
#include "server/common/fdpass.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/common/discard.h"
#include "server/common/os.h"

typedef union control {
    char bytes[CMSG_SPACE(AD_DISCARD_MOST * sizeof(int))];
    struct cmsghdr align;
} control;

ssize_t ad__fdpass_send(int socket, const void *data, size_t size, int fd) {
    control c;
    struct iovec part = {.iov_base = (void *)(uintptr_t)data, .iov_len = size};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
    if (fd >= 0) {
        memset(&c, 0, sizeof c);
        m.msg_control = c.bytes;
        m.msg_controllen = CMSG_SPACE(sizeof(int));
        struct cmsghdr *head = CMSG_FIRSTHDR(&m);
        head->cmsg_level = SOL_SOCKET;
        head->cmsg_type = SCM_RIGHTS;
        head->cmsg_len = CMSG_LEN(sizeof(int));
        memcpy(CMSG_DATA(head), &fd, sizeof fd);
    }
    return ad__os.sendmsg(socket, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
}

ssize_t ad__fdpass_receive(const char *who, int socket, void *data, size_t size, int *fd) {
    control c;
    struct iovec part = {.iov_base = data, .iov_len = size};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = c.bytes, .msg_controllen = sizeof c.bytes};
    *fd = -1;
    ssize_t n = ad__os.recvmsg(socket, &m, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (n < 0) return n;
    *fd = ad__discard_others(who, &m);
    if (!(m.msg_flags & (MSG_TRUNC | MSG_CTRUNC))) return n;
    if (!(m.msg_flags & MSG_TRUNC) && *fd < 0) {
        *fd = AD_FD_LOST;
        return n;
    }
    if (*fd >= 0) ad__discard(who, *fd);
    *fd = -1;
    errno = EMSGSIZE;
    return -1;
}
