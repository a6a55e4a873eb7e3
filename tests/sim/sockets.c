/* Sockets: queues of bytes and packets that carry descriptors, between processes that the scheduler interleaves. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/un.h>

#include "tests/sim/director.h"
#include "tests/sim/sim.h"

#define ATOM 4096           /* bytes that a socket with room takes in one piece, as Linux does */
#define DELAY_MOST 20000000 /* ns that bytes are on their way for */

static sim_file *listeners;

static struct ucred get_own_credentials(void) {
    const sim_process *p = sim_self();
    return (struct ucred){p->number, p->user, p->user};
}

static sim_file *make_socket(int type) {
    sim_file *f = sim_file_new(SIM_SOCKET);
    f->type = type & 0xf;
    f->flags = type & SOCK_NONBLOCK ? O_NONBLOCK : 0;
    f->receive_wait = f->send_wait = INT64_MAX;
    if (sim_self()) f->owner = f->other = get_own_credentials();
    return f;
}

void sim_pair_make(int type, sim_file *end[2]) {
    end[0] = make_socket(type);
    end[1] = make_socket(type);
    end[0]->peer = end[1];
    end[1]->peer = end[0];
}

/* ---- the end of one ---- */

static void free_piece(sim_piece *p) {
    for (size_t i = 0; i < p->count; i++)
        if (p->files[i]) sim_file_drop(p->files[i]);
    free(p->files);
    free(p);
}

static void drop_queue(sim_file *f) {
    while (f->first) {
        sim_piece *p = f->first;
        f->first = p->next;
        free_piece(p);
    }
    f->last = &f->first;
    f->queued = 0;
}

static void unlist_listener(sim_file *f) {
    for (sim_file **at = &listeners; *at; at = &(*at)->next_listener)
        if (*at == f) {
            *at = f->next_listener;
            return;
        }
}

static void part_ends(sim_file *f) {
    sim_file *peer = f->peer;
    f->peer = NULL;
    if (!peer) return;
    peer->peer = NULL;
    peer->read_shut = peer->write_shut = true;
    if (f->first) peer->error = ECONNRESET; /* what it had sent was not read */
}

void sim_socket_close(sim_file *f) {
    if (f->kind == SIM_LISTENER) unlist_listener(f);
    while (f->kind == SIM_LISTENER && f->pending) {
        sim_file *waiting = f->pending;
        f->pending = waiting->next_listener;
        sim_file_drop(waiting);
    }
    part_ends(f);
    drop_queue(f);
    free(f);
}

static void break_end(sim_file *f, bool noticed) {
    drop_queue(f);
    f->read_shut = f->write_shut = true;
    if (noticed) f->error = ECONNRESET;
    f->peer = NULL;
}

void sim_socket_break(sim_file *f) {
    sim_file *peer = f->peer;
    const bool here = sim_draw_case(500000), there = sim_draw_case(500000);
    sim_note("broken", (long)f->queued, peer ? (long)peer->queued : -1);
    break_end(f, here);
    if (peer) break_end(peer, there);
}

int sim_sockets_of_clients(sim_file **out, int most) {
    int n = 0;
    for (const sim_process *p = sim_processes; p; p = p->next)
        for (int fd = 0; fd < SIM_DESCRIPTORS && !strcmp(p->program, "client"); fd++)
            if (p->file[fd] && p->file[fd]->of_client && p->file[fd]->peer && n < most) out[n++] = p->file[fd];
    return n;
}

/* ---- what is ready ---- */

static bool has_arrived(const sim_file *f) { return f->first && f->first->due <= sim_time; }

static size_t get_room(const sim_file *f) {
    const sim_file *to = f->peer;
    return to && to->queued < sim_planned.room ? sim_planned.room - to->queued : 0;
}

unsigned sim_socket_poll(const sim_file *f) {
    if (f->kind == SIM_LISTENER) return f->pending ? POLLIN : 0;
    if (f->type == SOCK_STREAM && !f->peer && !f->read_shut) return POLLOUT | POLLHUP; /* never connected */
    unsigned events = 0;
    const bool over = f->read_shut && !f->first;
    if (has_arrived(f) || over) events |= POLLIN;
    if (f->read_shut && (over || has_arrived(f))) events |= POLLRDHUP;
    if (over && f->write_shut) events |= POLLHUP;
    if (f->error) events |= POLLERR | POLLIN;
    if (f->write_shut || get_room(f) > sim_planned.room / 4) events |= POLLOUT;
    return events;
}

int64_t sim_socket_due(const sim_file *f) { return f->first && f->first->due > sim_time ? f->first->due : INT64_MAX; }

static bool can_receive(sim_task *t, void *file) {
    const sim_file *f = file;
    (void)t;
    return has_arrived(f) || f->error || (f->read_shut && !f->first);
}

static bool can_send(sim_task *t, void *file) {
    const sim_file *f = file;
    (void)t;
    return f->write_shut || f->error || get_room(f) > 0;
}

static int64_t add_time(int64_t wait) { return wait == INT64_MAX ? wait : sim_time + wait; }

/* Wait for a socket until it can receive, taking into account that bytes are on their way. */
static bool await_bytes(sim_file *f) {
    const int64_t until = add_time(f->receive_wait);
    while (!can_receive(NULL, f)) {
        const int64_t due = sim_socket_due(f), next = due < until ? due : until;
        if (!sim_wait("recv", can_receive, f, next) && sim_time >= until) return false;
    }
    return true;
}

/* ---- sending ---- */

static void append_piece(sim_file *to, const struct iovec *parts, size_t n, size_t size, sim_file **files,
                         size_t count) {
    sim_piece *p = calloc(1, sizeof *p + size);
    const sim_piece *before = NULL;
    for (const sim_piece *at = to->first; at; at = at->next) before = at;
    for (size_t i = 0, done = 0; i < n && done < size; i++) {
        const size_t some = parts[i].iov_len < size - done ? parts[i].iov_len : size - done;
        memcpy(p->data + done, parts[i].iov_base, some);
        done += some;
    }
    p->size = size;
    p->files = files;
    p->count = count;
    p->sender = get_own_credentials();
    p->due = sim_time + (to->of_client && sim_draw_case(sim_planned.delays) ? (int64_t)sim_draw_below(DELAY_MOST) : 0);
    if (before && before->due > p->due) p->due = before->due;
    *to->last = p;
    to->last = &p->next;
    to->queued += size;
}

/* Take references to the files of the descriptors in a control message. False: one is none. */
static bool take_files(const struct msghdr *m, sim_file ***files, size_t *count) {
    *files = NULL;
    *count = 0;
    if (!m->msg_control) return true;
    struct msghdr copy = *m;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(&copy); c; c = CMSG_NXTHDR(&copy, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
        const size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        *files = calloc(n, sizeof **files);
        for (size_t i = 0; i < n; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
            sim_file *f = sim_file_get(fd);
            if (!f) return false;
            (*files)[(*count)++] = sim_file_keep(f);
        }
    }
    return true;
}

static ssize_t fail_call(int error) {
    errno = error;
    return -1;
}

static ssize_t take_error(sim_file *f) {
    const int error = f->error;
    f->error = 0;
    return fail_call(error);
}

/* Tell whether the other end was closed behind bytes that have not arrived. Until they have, nobody here knows of it,
 * and what is sent is lost. */
static bool is_end_on_its_way(const sim_file *f) {
    const sim_piece *last = f->first;
    while (last && last->next) last = last->next;
    return !f->peer && f->write_shut && last && last->due > sim_time;
}

static ssize_t send_parts(sim_file *f, const struct msghdr *m, int flags) {
    size_t size = 0, count;
    sim_file **files;
    for (size_t i = 0; i < m->msg_iovlen; i++) size += m->msg_iov[i].iov_len;
    if (f->error) return take_error(f);
    if (is_end_on_its_way(f)) return (ssize_t)size;
    if (f->write_shut) return fail_call(EPIPE);
    if (!f->peer) return fail_call(ENOTCONN);
    const bool whole = f->type == SOCK_SEQPACKET, waits = !(flags & MSG_DONTWAIT) && !(f->flags & O_NONBLOCK);
    if (!get_room(f) || (whole && f->peer->queued && get_room(f) < size)) {
        if (!waits || !sim_wait("send", can_send, f, add_time(f->send_wait))) return fail_call(EAGAIN);
        return send_parts(f, m, flags);
    }
    if (!whole && size > ATOM) {
        if (size > get_room(f)) size = get_room(f) > ATOM ? get_room(f) : ATOM;
        if (sim_draw_case(sim_planned.splits)) size = ATOM + sim_draw_below(size - ATOM);
    }
    if (!take_files(m, &files, &count)) return fail_call(EBADF);
    append_piece(f->peer, m->msg_iov, m->msg_iovlen, size, files, count);
    return (ssize_t)size;
}

ssize_t __wrap_sendmsg(int fd, const struct msghdr *m, int flags) {
    sim_file *f = sim_file_get(fd);
    sim_pass_call("sendmsg");
    if (!f) return -1;
    if (f->kind != SIM_SOCKET) return fail_call(ENOTSOCK);
    const ssize_t n = send_parts(f, m, flags);
    sim_note("sendmsg", fd, (long)n);
    return n;
}

ssize_t __wrap_send(int fd, const void *data, size_t size, int flags) {
    struct iovec part = {(void *)(uintptr_t)data, size};
    return __wrap_sendmsg(fd, &(struct msghdr){.msg_iov = &part, .msg_iovlen = 1}, flags);
}

ssize_t __wrap_sendto(int fd, const void *data, size_t size, int flags, const struct sockaddr *to, socklen_t n) {
    (void)fd, (void)data, (void)flags, (void)to, (void)n;
    return (ssize_t)size; /* to systemd */
}

/* ---- receiving ---- */

/* Give the files of a piece to the process, or drop them where there is no room. */
static void give_files(struct msghdr *m, size_t *used, sim_piece *p, int flags) {
    int fd[64];
    size_t n = 0, room = 0;
    if (*used + CMSG_SPACE(0) <= m->msg_controllen) room = (m->msg_controllen - *used - CMSG_LEN(0)) / sizeof *fd;
    for (size_t i = 0; i < p->count; i++) {
        sim_file *f = p->files[i];
        p->files[i] = NULL;
        const int put = n < room ? sim_file_put(f, 0, flags & MSG_CMSG_CLOEXEC) : -1;
        if (n >= room) sim_file_drop(f);
        if (put < 0) m->msg_flags |= MSG_CTRUNC;
        else fd[n++] = put;
    }
    p->count = 0;
    if (!n) return;
    struct cmsghdr *c = (struct cmsghdr *)(void *)((char *)m->msg_control + *used);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(n * sizeof *fd);
    memcpy(CMSG_DATA(c), fd, n * sizeof *fd);
    *used += CMSG_SPACE(n * sizeof *fd);
    if (*used > m->msg_controllen) *used = m->msg_controllen;
}

static void give_sender(struct msghdr *m, size_t *used, const struct ucred *sender) {
    struct cmsghdr *c = (struct cmsghdr *)(void *)((char *)m->msg_control + *used);
    if (*used + CMSG_SPACE(sizeof *sender) > m->msg_controllen) {
        m->msg_flags |= MSG_CTRUNC;
        return;
    }
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_CREDENTIALS;
    c->cmsg_len = CMSG_LEN(sizeof *sender);
    memcpy(CMSG_DATA(c), sender, sizeof *sender);
    *used += CMSG_SPACE(sizeof *sender);
}

/* Copy from a piece to where the parts are filled up to `done`. */
static size_t copy_out(const struct msghdr *m, size_t done, const char *from, size_t size) {
    size_t copied = 0;
    for (size_t i = 0; i < m->msg_iovlen && copied < size; i++) {
        const struct iovec *part = &m->msg_iov[i];
        if (done >= part->iov_len) {
            done -= part->iov_len;
            continue;
        }
        const size_t room = part->iov_len - done, n = room < size - copied ? room : size - copied;
        sim_copy_as_kernel((char *)part->iov_base + done, from + copied, n);
        copied += n;
        done = 0;
    }
    return copied;
}

static void remove_first(sim_file *f) {
    sim_piece *p = f->first;
    f->first = p->next;
    if (!f->first) f->last = &f->first;
    free_piece(p);
}

static ssize_t receive_packet(sim_file *f, struct msghdr *m, int flags, size_t *used) {
    sim_piece *p = f->first;
    const size_t n = copy_out(m, 0, p->data, p->size);
    if (n < p->size) m->msg_flags |= MSG_TRUNC;
    give_files(m, used, p, flags);
    f->queued -= p->size;
    remove_first(f);
    return (ssize_t)n;
}

static ssize_t receive_bytes(sim_file *f, struct msghdr *m, int flags, size_t most, size_t *used) {
    size_t done = 0;
    const struct ucred sender = f->first->sender;
    if (f->told_sender) give_sender(m, used, &sender);
    while (has_arrived(f) && done < most) {
        sim_piece *p = f->first;
        const size_t left = p->size - p->used, n = left < most - done ? left : most - done;
        if (f->told_sender && memcmp(&p->sender, &sender, sizeof sender)) break;
        const bool carries = p->count;
        if (carries) give_files(m, used, p, flags);
        copy_out(m, done, p->data + p->used, n);
        done += n;
        p->used += n;
        f->queued -= n;
        if (p->used == p->size) remove_first(f);
        if (carries) break;
    }
    return (ssize_t)done;
}

static ssize_t receive_parts(sim_file *f, struct msghdr *m, int flags) {
    size_t size = 0, used = 0;
    m->msg_flags = 0;
    for (size_t i = 0; i < m->msg_iovlen; i++) size += m->msg_iov[i].iov_len;
    const bool waits = !(flags & MSG_DONTWAIT) && !(f->flags & O_NONBLOCK);
    if (!f->peer && !f->read_shut) return fail_call(f->type == SOCK_STREAM ? EINVAL : ENOTCONN);
    if (!can_receive(NULL, f) && (!waits || !await_bytes(f))) return fail_call(EAGAIN);
    if (f->error && (f->type == SOCK_SEQPACKET || !f->first)) return take_error(f);
    if (!has_arrived(f)) {
        m->msg_controllen = 0;
        return 0;
    }
    /* The kernel does not cut what one call has sent with a descriptor. */
    if (size > 1 && f->type == SOCK_STREAM && !f->first->count && sim_draw_case(sim_planned.splits))
        size = 1 + sim_draw_below(size);
    const ssize_t n =
        f->type == SOCK_SEQPACKET ? receive_packet(f, m, flags, &used) : receive_bytes(f, m, flags, size, &used);
    m->msg_controllen = used;
    return n;
}

ssize_t __wrap_recvmsg(int fd, struct msghdr *m, int flags) {
    sim_file *f = sim_file_get(fd);
    sim_pass_call("recvmsg");
    if (!f) return -1;
    if (f->kind != SIM_SOCKET) return fail_call(ENOTSOCK);
    const ssize_t n = receive_parts(f, m, flags);
    sim_note("recvmsg", fd, (long)n);
    return n;
}

ssize_t __wrap_recv(int fd, void *data, size_t size, int flags) {
    struct iovec part = {data, size};
    return __wrap_recvmsg(fd, &(struct msghdr){.msg_iov = &part, .msg_iovlen = 1}, flags);
}

/* ---- making and connecting ---- */

int __wrap_socket(int family, int type, int protocol) {
    (void)protocol;
    sim_pass_call("socket");
    return family == AF_UNIX ? sim_file_put(make_socket(type), 0, type & SOCK_CLOEXEC) : (int)fail_call(EAFNOSUPPORT);
}

int __wrap_socketpair(int family, int type, int protocol, int fd[2]) {
    sim_file *end[2];
    (void)family, (void)protocol;
    sim_pass_call("socketpair");
    sim_pair_make(type, end);
    const int first = sim_file_put(end[0], 0, type & SOCK_CLOEXEC);
    const int second = first < 0 ? -1 : sim_file_put(end[1], 0, type & SOCK_CLOEXEC);
    if (first < 0) sim_file_drop(end[1]);
    if (first >= 0 && second < 0) sim_file_close(sim_self(), first);
    if (second < 0) return (int)fail_call(EMFILE);
    fd[0] = first;
    fd[1] = second;
    return 0;
}

int __wrap_pipe2(int fd[2], int flags) {
    return __wrap_socketpair(
        AF_UNIX, SOCK_STREAM | (flags & O_NONBLOCK ? SOCK_NONBLOCK : 0) | (flags & O_CLOEXEC ? SOCK_CLOEXEC : 0), 0,
        fd);
}

int __wrap_bind(int fd, const struct sockaddr *address, socklen_t size) {
    sim_file *f = sim_file_get(fd);
    (void)size;
    if (!f) return -1;
    memcpy(f->path, ((const struct sockaddr_un *)(const void *)address)->sun_path, sizeof f->path);
    return 0;
}

int __wrap_listen(int fd, int most) {
    sim_file *f = sim_file_get(fd);
    (void)most;
    if (!f) return -1;
    f->kind = SIM_LISTENER;
    f->owner = get_own_credentials();
    f->next_listener = listeners;
    listeners = f;
    return 0;
}

int __wrap_connect(int fd, const struct sockaddr *address, socklen_t size) {
    sim_file *f = sim_file_get(fd), *l = listeners;
    const char *path = ((const struct sockaddr_un *)(const void *)address)->sun_path;
    (void)size;
    sim_pass_call("connect");
    if (!f) return -1;
    while (l && strncmp(l->path, path, sizeof l->path)) l = l->next_listener;
    if (!l) return (int)fail_call(ENOENT);
    sim_file *end = make_socket(f->type), **at = &l->pending;
    end->peer = f;
    f->peer = end;
    end->owner = f->other = l->owner;
    end->other = get_own_credentials();
    end->of_client = f->of_client = true;
    while (*at) at = &(*at)->next_listener;
    *at = end;
    return 0;
}

int __wrap_accept4(int fd, struct sockaddr *address, socklen_t *size, int flags) {
    sim_file *l = sim_file_get(fd);
    (void)address;
    sim_pass_call("accept");
    if (!l) return -1;
    sim_file *end = l->pending;
    if (!end) return (int)fail_call(EAGAIN);
    const int got = sim_file_put(sim_file_keep(end), 0, flags & SOCK_CLOEXEC);
    if (got < 0) return -1;
    l->pending = end->next_listener;
    end->next_listener = NULL;
    sim_file_drop(end);
    end->flags = flags & SOCK_NONBLOCK ? O_NONBLOCK : 0;
    if (size) *size = sizeof(sa_family_t);
    return got;
}

int __wrap_shutdown(int fd, int how) {
    sim_file *f = sim_file_get(fd);
    sim_pass_call("shutdown");
    if (!f) return -1;
    if (f->kind != SIM_SOCKET) return (int)fail_call(ENOTSOCK);
    if (how != SHUT_WR) f->read_shut = true;
    if (how != SHUT_RD) f->write_shut = true;
    if (f->peer && how != SHUT_RD) f->peer->read_shut = true;
    if (f->peer && how != SHUT_WR) f->peer->write_shut = true;
    sim_note("shutdown", fd, how);
    return 0;
}

/* ---- options and names ---- */

int __wrap_ioctl(int fd, unsigned long request, ...) {
    sim_file *f = sim_file_get(fd);
    va_list rest;
    va_start(rest, request);
    int *argument = va_arg(rest, int *);
    va_end(rest);
    if (!f) return -1;
    if (request == FIONREAD && f->kind == SIM_SOCKET) *argument = (int)f->queued;
    else if (request == FIONBIO) f->flags = (f->flags & ~O_NONBLOCK) | (*argument ? O_NONBLOCK : 0);
    else return (int)fail_call(ENOTTY);
    return 0;
}

int __wrap_getsockopt(int fd, int level, int option, void *value, socklen_t *size) {
    const sim_file *f = sim_file_get(fd);
    int number = 0;
    if (!f) return -1;
    if (f->kind != SIM_SOCKET && f->kind != SIM_LISTENER) return (int)fail_call(ENOTSOCK);
    if (level != SOL_SOCKET) return (int)fail_call(ENOPROTOOPT);
    switch (option) {
    case SO_PEERCRED: memcpy(value, &f->other, sizeof f->other); return 0;
    case SO_PEERGROUPS: *size = 0; return 0;
    case SO_DOMAIN: number = AF_UNIX; break;
    case SO_TYPE: number = f->type; break;
    case SO_ACCEPTCONN: number = f->kind == SIM_LISTENER; break;
    default: break;
    }
    memcpy(value, &number, sizeof number);
    return 0;
}

int __wrap_setsockopt(int fd, int level, int option, const void *value, socklen_t size) {
    sim_file *f = sim_file_get(fd);
    struct timeval t;
    (void)size;
    if (!f) return -1;
    if (level != SOL_SOCKET) return 0;
    if (option == SO_PASSCRED) f->told_sender = *(const int *)value;
    if (option != SO_RCVTIMEO && option != SO_SNDTIMEO) return 0;
    memcpy(&t, value, sizeof t);
    const int64_t ns = (int64_t)t.tv_sec * 1000000000 + t.tv_usec * 1000;
    *(option == SO_RCVTIMEO ? &f->receive_wait : &f->send_wait) = ns ? ns : INT64_MAX;
    return 0;
}

static int give_address(const sim_file *f, struct sockaddr *address, socklen_t *size) {
    if (!f) return -1;
    if (f->kind != SIM_SOCKET && f->kind != SIM_LISTENER) return (int)fail_call(ENOTSOCK);
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    memcpy(address, &a, *size < sizeof a ? *size : sizeof a);
    *size = sizeof(sa_family_t);
    return 0;
}

int __wrap_getsockname(int fd, struct sockaddr *address, socklen_t *size) {
    return give_address(sim_file_get(fd), address, size);
}

int __wrap_getpeername(int fd, struct sockaddr *address, socklen_t *size) {
    const sim_file *f = sim_file_get(fd);
    if (f && f->kind == SIM_SOCKET && !f->peer) return (int)fail_call(ENOTCONN);
    return give_address(f, address, size);
}

bool sim_is_listening(const char *path) {
    const sim_file *l = listeners;
    while (l && strncmp(l->path, path, sizeof l->path)) l = l->next_listener;
    return l;
}
