/* The channel between arrayd and a worker: see channel.h. */
#include "server/common/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/common/discard.h"
#include "server/common/fdpass.h"
#include "server/common/os.h"
#include "server/common/report.h"

#define DRAIN_MS 1000 /* how long ad__channel_drain waits for the peer to read */

struct ad_queued_note {
    ad_queued_note *next;
    ad_note note;
    int fd;
};

typedef struct note_row {
    uint32_t kind;
    const char *name;
    ad_note_to to;
    int descriptors;
} note_row;

static const note_row note_rows[] = {
#define AD_NOTE(id, NAME, name, to, descriptors, doc) {(id), #name, AD_TO_##to, (descriptors)},
#include "server/common/channel.def"
#undef AD_NOTE
};

static const note_row *find_note_row(uint32_t kind) {
    for (size_t i = 0; i < sizeof note_rows / sizeof *note_rows; i++)
        if (note_rows[i].kind == kind) return &note_rows[i];
    return NULL;
}

/* Add a text to a hash (FNV-1a). */
static uint32_t add_text(uint32_t hash, const char *text) {
    for (; *text; text++) hash = (hash ^ (unsigned char)*text) * 16777619u;
    return hash;
}

int ad__channel_form(const char *layout) {
    char sizes[128];
    uint32_t hash = add_text(2166136261u, layout);
    snprintf(sizes, sizeof sizes, "%zu %zu %zu %zu %zu %zu %d", sizeof(ad_note), sizeof(ad_report_head),
             sizeof(ad_report_session), sizeof(ad_report_principal), sizeof(ad_report_device), sizeof(ad_report_name),
             AD_NCOUNTER);
    hash = add_text(hash, sizes);
    for (size_t i = 0; i < sizeof note_rows / sizeof *note_rows; i++) {
        snprintf(sizes, sizeof sizes, " %u %s %d", note_rows[i].kind, note_rows[i].name, note_rows[i].descriptors);
        hash = add_text(hash, sizes);
    }
    return (int)(hash & 0x7fffffff);
}

const char *ad__note_name(uint32_t kind) {
    const note_row *row = find_note_row(kind);
    return row ? row->name : "?";
}

int ad__channel_pair(int fd[2], ad_fault *fault) {
    if (ad__os.socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd) == 0) return 0;
    return ad__fault(fault, AD_E_SYSTEM, "socketpair: %s", strerror(errno));
}

void ad__channel_init(ad_channel *c, int fd, ad_note_to from_peer) {
    *c = (ad_channel){.fd = fd, .from_peer = from_peer};
    c->last = &c->first;
}

static void drop_first_note(ad_channel *c) {
    ad_queued_note *q = c->first;
    c->first = q->next;
    if (!c->first) c->last = &c->first;
    if (q->fd >= 0) ad__discard(q->note.who, q->fd);
    free(q);
}

void ad__channel_close(ad_channel *c) {
    while (c->first) drop_first_note(c);
    if (c->fd >= 0) close(c->fd);
    c->fd = -1;
}

/* Send one note. 1: sent; 0: the socket is full; AD_E_CONNECTION. */
static int try_sending(ad_channel *c, const ad_note *note, int fd) {
    ssize_t n;
    do n = ad__fdpass_send(c->fd, note, sizeof *note, fd);
    while (n < 0 && errno == EINTR);
    if (n == (ssize_t)sizeof *note) return 1;
    return n < 0 && (errno == EAGAIN || errno == ENOBUFS || errno == ETOOMANYREFS) ? 0 : AD_E_CONNECTION;
}

int ad__channel_send(ad_channel *c, const ad_note *note, int fd) {
    int result = c->first ? 0 : try_sending(c, note, fd);
    if (result == 0) {
        ad_queued_note *q = ad__os.malloc(sizeof *q);
        if (q) {
            *q = (ad_queued_note){.note = *note, .fd = fd};
            *c->last = q;
            c->last = &q->next;
            return 0;
        }
        result = AD_E_MEMORY;
    }
    if (fd >= 0 && result > 0) close(fd); /* it is on its way */
    else if (fd >= 0) ad__discard(note->who, fd);
    return result < 0 ? result : 0;
}

int ad__channel_flush(ad_channel *c) {
    int result = 1;
    while (c->first && (result = try_sending(c, &c->first->note, c->first->fd)) > 0) drop_first_note(c);
    return result < 0 ? result : 0;
}

bool ad__channel_waiting(const ad_channel *c) { return c->first != NULL; }

void ad__channel_drain(ad_channel *c) {
    struct pollfd p = {.fd = c->fd, .events = POLLOUT};
    while (ad__channel_waiting(c) && poll(&p, 1, DRAIN_MS) == 1 && !ad__channel_flush(c)) {}
}

/* A note has its kind's direction and descriptors, and its texts end with a NUL. */
static bool is_well_formed(const ad_channel *c, const ad_note *note, ssize_t size, int fd) {
    const note_row *row = size == (ssize_t)sizeof *note ? find_note_row(note->kind) : NULL;
    return row && row->to == c->from_peer && row->descriptors == (fd != -1) && note->zero == 0 &&
           memchr(note->who, 0, sizeof note->who) && memchr(note->text, 0, sizeof note->text);
}

/* A peer that ends with unread notes causes ECONNRESET once, before the notes that it had sent: read again then. */
int ad__channel_receive(ad_channel *c, ad_note *note, int *fd) {
    ssize_t n;
    do n = ad__fdpass_receive("", c->fd, note, sizeof *note, fd);
    while (n < 0 && (errno == EINTR || errno == ECONNRESET));
    if (n < 0 && errno == EAGAIN) return 0;
    if (n < 0 && errno == EMSGSIZE) return AD_E_PROTOCOL;
    if (n <= 0) return AD_E_CONNECTION;
    int result = is_well_formed(c, note, n, *fd) ? 1 : AD_E_PROTOCOL;
    if (result < 0 && *fd >= 0) close(*fd);
    if (result < 0 || *fd == AD_FD_LOST) *fd = -1;
    return result;
}
