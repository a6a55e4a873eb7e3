/* What is sent is kept, and sent again over another connection: see unacknowledged.h and resume.c. */
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client-c/client.h"

void ad__frame_seen(ad_session *s) {
    s->before_ops = s->seen_ops;
    s->before_requests = s->seen_requests;
    s->seen_ops = s->ops;
    s->seen_requests = s->next_request - 1;
}

/* A header alone: how much has come, so that the server need not keep that. */
void ad__note_taken(ad_session *s) {
    uint8_t header[AD_FRAME_HEADER];
    s->told = atomic_load(&s->received);
    s->comeback.confirm = false;
    ad__frame_encode(&(ad_frame){.flags = AD_FRAME_TAKEN, .payload = s->told}, header);
    ad__bytes_append(&s->out, header, sizeof header);
    s->frame = s->out.size;
    ad__frame_seen(s);
    s->before_ops = s->ops; /* there is nothing in it that could be answered */
    s->before_requests = s->next_request - 1;
}

/* Keeps a copy of what is about to be sent. Without memory, or a descriptor, for that the session is one that cannot be
 * resumed. */
void ad__keep(ad_session *s, const void *payload, size_t size) {
    ad_kept *k = &s->kept;
    int status = 0;
    if (!s->comeback.able) return;
    if (s->carry.fd >= 0) status = ad__kept_pass(k, k->end + s->carry.at, s->carry.once ? -1 : s->carry.fd);
    if (!status) status = ad__kept_add(k, s->sending.data, s->sending.size);
    if (!status) status = ad__kept_add(k, payload, size);
    ad__kept_mark(k, s->before_ops, s->before_requests);
    if (!status) return;
    s->comeback.able = false;
    ad__kept_clear(k);
}

/* In place of a descriptor that is gone: the child that had the other end comes by itself. */
static int make_unconnected_socket(void) { return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0); }

/* The next bytes that have to be sent again, with one descriptor at the most. */
void ad__load_kept(ad_session *s) {
    const ad_kept *k = &s->kept;
    int next = ad__kept_next(k, s->loaded);
    uint64_t to = next >= 0 && (unsigned)next + 1 < k->npassed ? k->passed[next + 1].at : s->bytes;
    s->sending.size = s->sent = 0;
    size_t n = ad__kept_read(k, s->loaded, to, &s->sending);
    if (n == 0) {
        s->loaded = s->bytes;
        ad__die_locked(s, "connection lost: what has to be sent again is not there");
    } else if (next >= 0 && k->passed[next].at < s->loaded + n) {
        s->carry.at = (size_t)(k->passed[next].at - s->loaded);
        s->carry.fd =
            k->passed[next].fd < 0 ? make_unconnected_socket() : fcntl(k->passed[next].fd, F_DUPFD_CLOEXEC, 3);
        if (s->carry.fd < 0) ad__die_locked(s, "connection lost: no descriptor is left to send one again");
    }
    s->loaded += n;
}

/* What the server has done with need not be kept any longer. */
void ad__read_acks(ad_session *s) {
    if (s->reading || s->comeback.lost || s->kept.end - s->kept.begin < 4 * AD_KEPT_PAYLOAD) return;
    ad__read_now(s, false);
}
