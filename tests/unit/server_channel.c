/* The channel between arrayd and a worker, and descriptors over it. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/common/channel.h"
#include "server/common/fdpass.h"

static ad_channel front, worker;

static void open_pair(void) {
    int fd[2];
    cr_assert_eq(ad__channel_pair(fd, NULL), 0);
    ad__channel_init(&front, fd[0], AD_TO_FRONT);
    ad__channel_init(&worker, fd[1], AD_TO_WORKER);
}

static void close_pair(void) {
    ad__channel_close(&front);
    ad__channel_close(&worker);
}

TestSuite(channel, .init = open_pair, .fini = close_pair);

static int open_descriptors(void) {
    int n = 0;
    for (int fd = 0; fd < 256; fd++) n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

Test(channel, a_note_arrives_with_its_descriptor) {
    ad_note out = {.kind = AD_NOTE_SESSION, .id = 7, .size = 9, .who = "uid:1000", .text = "a client"}, in;
    struct stat sent, got;
    int pipe_fd[2], fd, before = open_descriptors();
    cr_assert_eq(pipe(pipe_fd), 0);
    cr_assert_eq(fstat(pipe_fd[0], &sent), 0);
    cr_assert_eq(ad__channel_send(&front, &out, pipe_fd[0]), 0);
    cr_assert_eq(fcntl(pipe_fd[0], F_GETFD), -1, "sending takes the descriptor");
    cr_assert_eq(ad__channel_receive(&worker, &in, &fd), 1);
    cr_assert_eq(memcmp(&in, &out, sizeof in), 0);
    cr_assert_eq(fstat(fd, &got), 0);
    cr_assert_eq(got.st_ino, sent.st_ino);
    cr_assert(fcntl(fd, F_GETFD) & FD_CLOEXEC);
    close(fd);
    close(pipe_fd[1]);
    cr_assert_eq(open_descriptors(), before);
    cr_assert_eq(ad__channel_receive(&worker, &in, &fd), 0);
}

Test(channel, what_does_not_fit_waits_in_order) {
    ad_note note = {.kind = AD_NOTE_SESSION_END}, in;
    uint64_t sent = 0, got = 0;
    int fd;
    while (!ad__channel_waiting(&worker) || sent < 3000) {
        note.id = ++sent;
        cr_assert_eq(ad__channel_send(&worker, &note, -1), 0);
    }
    while (got < sent) {
        int status = ad__channel_receive(&front, &in, &fd);
        cr_assert_geq(status, 0);
        if (status) cr_assert_eq(in.id, ++got);
        else cr_assert_eq(ad__channel_flush(&worker), 0);
    }
    cr_assert_not(ad__channel_waiting(&worker));
}

Test(channel, only_what_the_table_has_is_taken) {
    ad_note good = {.kind = AD_NOTE_STOP}, bad, in;
    int fd, before = open_descriptors();
    struct {
        ad_note note;
        char more;
    } longer = {good, 0};
#define REFUSED(size, descriptor)                                            \
    do {                                                                     \
        cr_assert_gt(ad__fdpass_send(front.fd, &bad, size, descriptor), 0);  \
        cr_assert_eq(ad__channel_receive(&worker, &in, &fd), AD_E_PROTOCOL); \
        cr_assert_eq(fd, -1);                                                \
    } while (0)
    bad = good, bad.kind = 99;
    REFUSED(sizeof bad, -1);
    bad = good, bad.kind = AD_NOTE_READY; /* of the other direction */
    REFUSED(sizeof bad, -1);
    bad = good, bad.zero = 1;
    REFUSED(sizeof bad, -1);
    bad = good, memset(bad.text, 'x', sizeof bad.text);
    REFUSED(sizeof bad, -1);
    bad = good;
    REFUSED(sizeof bad - 1, -1);
    REFUSED(sizeof bad, 2); /* a descriptor that is none of its business */
    bad.kind = AD_NOTE_SESSION;
    REFUSED(sizeof bad, -1); /* one that is missing */
    cr_assert_gt(ad__fdpass_send(front.fd, &longer, sizeof longer, 2), 0);
    cr_assert_eq(ad__channel_receive(&worker, &in, &fd), AD_E_PROTOCOL);
    cr_assert_eq(open_descriptors(), before);
}

Test(channel, several_descriptors_are_not_leaked) {
    union {
        char bytes[CMSG_SPACE(3 * sizeof(int))];
        struct cmsghdr align;
    } control = {0};
    ad_note note = {.kind = AD_NOTE_STOP}, in;
    int fds[3] = {0, 1, 2}, fd, before = open_descriptors();
    struct iovec part = {&note, sizeof note};
    struct msghdr m = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    struct cmsghdr *head = CMSG_FIRSTHDR(&m);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof fds);
    memcpy(CMSG_DATA(head), fds, sizeof fds);
    cr_assert_gt(sendmsg(front.fd, &m, 0), 0);
    cr_assert_eq(ad__channel_receive(&worker, &in, &fd), AD_E_PROTOCOL);
    cr_assert_eq(open_descriptors(), before);
}

/* A process with as many descriptors as it may have hears what is said, and does not take it for nonsense. */
Test(channel, a_descriptor_that_is_lost) {
    ad_note note = {.kind = AD_NOTE_SLAB, .id = 7}, in;
    struct rlimit usual, few;
    int fd, next = dup(0), before = open_descriptors();
    close(next);
    cr_assert_eq(getrlimit(RLIMIT_NOFILE, &usual), 0);
    few = (struct rlimit){.rlim_cur = (rlim_t)next, .rlim_max = usual.rlim_max};
    cr_assert_eq(ad__channel_send(&worker, &note, dup(0)), 0);
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &few), 0);
    int status = ad__channel_receive(&front, &in, &fd);
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &usual), 0);
    cr_assert_eq(status, 1);
    cr_assert(in.kind == AD_NOTE_SLAB && in.id == 7 && fd == -1);
    cr_assert_eq(open_descriptors(), before - 1);
}

Test(channel, what_the_peer_has_said_before_its_end_is_heard) {
    ad_note note = {.kind = AD_NOTE_SESSION, .who = "a", .text = "b"}, said = {.kind = AD_NOTE_SESSION_END};
    int fd, unread = open("/dev/null", O_RDONLY);
    cr_assert_eq(ad__channel_send(&front, &note, unread), 0);
    for (said.id = 1; said.id <= 3; said.id++) cr_assert_eq(ad__channel_send(&worker, &said, -1), 0);
    ad__channel_close(&worker); /* the close leaves a reset behind, as the note has not been read */
    for (uint64_t id = 1; id <= 3; id++) {
        cr_assert_eq(ad__channel_receive(&front, &note, &fd), 1);
        cr_assert_eq(note.id, id);
    }
    cr_assert_eq(ad__channel_receive(&front, &note, &fd), AD_E_CONNECTION);
}

Test(channel, the_peers_end_is_told) {
    ad_note note = {.kind = AD_NOTE_STOP}, in;
    int fd;
    ad__channel_close(&worker);
    cr_assert_eq(ad__channel_receive(&front, &in, &fd), AD_E_CONNECTION);
    cr_assert_eq(ad__channel_send(&front, &note, -1), AD_E_CONNECTION);
}

Test(channel, programs_with_other_journals_have_another_form) {
    cr_assert_eq(ad__channel_form("3.304"), ad__channel_form("3.304"));
    cr_assert_neq(ad__channel_form("3.304"), ad__channel_form("3.312"));
    cr_assert_geq(ad__channel_form(""), 0);
}
