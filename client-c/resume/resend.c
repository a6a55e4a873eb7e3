/* What is sent is kept, and sent again over another connection: see unacknowledged.h and resume.c. */
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client-c/client.h"

void ad__frame_sealed(ad_session *s) {
    s->before_sealed_ops = s->sealed_ops;
    s->before_sealed_requests = s->sealed_requests;
    s->sealed_ops = s->ops;
    s->sealed_requests = s->next_request - 1;
}

/* A header alone: how much has come, so that the server need not keep that. */
void ad__append_receipt(ad_session *s) {
    uint8_t header[AD_FRAME_HEADER];
    s->reported = atomic_load(&s->received);
    s->resume.confirm = false;
    ad__frame_encode(&(ad_frame){.flags = AD_FRAME_TAKEN, .payload = s->reported}, header);
    ad__bytes_append(&s->out, header, sizeof header);
    s->frame = s->out.size;
    ad__frame_sealed(s);
    s->before_sealed_ops = s->ops; /* there is nothing in it that could be answered */
    s->before_sealed_requests = s->next_request - 1;
}

/* Keeps a copy of what is about to be sent. Without memory, or a descriptor, for that the session is one that cannot be
 * resumed. */
void ad__save_unacked(ad_session *s, const void *payload, size_t size) {
    ad_unacked *u = &s->unacked;
    int status = 0;
    if (!s->resume.enabled) return;
    if (s->carry.fd >= 0) status = ad__unacked_pass(u, u->end + s->carry.at, s->carry.once ? -1 : s->carry.fd);
    if (!status) status = ad__unacked_add(u, s->sending.data, s->sending.size);
    if (!status) status = ad__unacked_add(u, payload, size);
    ad__unacked_mark(u, s->before_sealed_ops, s->before_sealed_requests);
    if (!status) return;
    s->resume.enabled = false;
    ad__unacked_clear(u);
}

/* In place of a descriptor that is gone: the child that had the other end comes by itself. */
static int make_unconnected_socket(void) { return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0); }

/* The next bytes that have to be sent again, with one descriptor at the most. */
void ad__load_unacked(ad_session *s) {
    const ad_unacked *u = &s->unacked;
    int next = ad__unacked_next_descriptor(u, s->loaded);
    uint64_t to = next >= 0 && (unsigned)next + 1 < u->npassed ? u->passed[next + 1].at : s->bytes;
    s->sending.size = s->sent = 0;
    size_t n = ad__unacked_read(u, s->loaded, to, &s->sending);
    if (n == 0) {
        s->loaded = s->bytes;
        ad__kill_session_locked(s, "connection lost: what has to be sent again is not there");
    } else if (next >= 0 && u->passed[next].at < s->loaded + n) {
        s->carry.at = (size_t)(u->passed[next].at - s->loaded);
        s->carry.fd =
            u->passed[next].fd < 0 ? make_unconnected_socket() : fcntl(u->passed[next].fd, F_DUPFD_CLOEXEC, 3);
        if (s->carry.fd < 0) ad__kill_session_locked(s, "connection lost: no descriptor is left to send one again");
    }
    s->loaded += n;
}

/* What the server has done with need not be kept any longer. */
void ad__read_acks(ad_session *s) {
    if (s->reading || s->resume.lost || s->unacked.end - s->unacked.begin < 4 * AD_UNACKED_PAYLOAD) return;
    ad__read_now(s, false);
}
