/* Copies of sent bytes, and sending them again over another connection: see unacknowledged.h and resume.c. */
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client-c/client.h"

void ad__frame_sealed(ad_session *s) {
    s->sealed.before_ops = s->sealed.ops;
    s->sealed.before_requests = s->sealed.requests;
    s->sealed.ops = s->encoded.ops;
    s->sealed.requests = s->next_id.request - 1;
}

void ad__append_note(ad_session *s, uint32_t flag, uint64_t number) {
    uint8_t header[AD_FRAME_HEADER];
    ad__frame_encode(&(ad_frame){.flags = flag, .payload = number}, header);
    ad__bytes_append(&s->output.gathered, header, sizeof header);
    s->output.frame = s->output.gathered.size;
    ad__frame_sealed(s);
    s->sealed.before_ops = s->encoded.ops; /* the server answers no note */
    s->sealed.before_requests = s->next_id.request - 1;
}

void ad__append_receipt(ad_session *s) {
    s->input.reported = atomic_load(&s->input.received);
    s->resume.confirm = false;
    ad__append_note(s, AD_FRAME_TAKEN, s->input.reported);
}

void ad__save_unacked(ad_session *s, const void *payload, size_t size) {
    ad_unacked *u = &s->unacked;
    int status = 0;
    if (!s->resume.enabled) return;
    if (s->output.sending_pass.fd >= 0)
        status = ad__unacked_pass(u, u->end + s->output.sending_pass.at,
                                  s->output.sending_pass.once ? -1 : s->output.sending_pass.fd);
    if (!status) status = ad__unacked_add(u, s->output.sending.data, s->output.sending.size);
    if (!status) status = ad__unacked_add(u, payload, size);
    ad__unacked_mark(u, s->sealed.before_ops, s->sealed.before_requests);
    if (!status) return;
    s->resume.enabled = false;
    ad__unacked_clear(u);
}

/* Make a socket in place of a fork's descriptor, which is gone. Its child resumes the session by itself. */
static int make_unconnected_socket(void) { return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0); }

void ad__load_unacked(ad_session *s) {
    const ad_unacked *u = &s->unacked;
    int next = ad__unacked_next_descriptor(u, s->output.loaded);
    uint64_t to = next >= 0 && (unsigned)next + 1 < u->npassed ? u->passed[next + 1].at : s->encoded.bytes;
    s->output.sending.size = s->output.sent = 0;
    size_t n = ad__unacked_read(u, s->output.loaded, to, &s->output.sending);
    if (n == 0) {
        s->output.loaded = s->encoded.bytes;
        ad__kill_session_locked(s, "connection lost: what has to be sent again is not there");
    } else if (next >= 0 && u->passed[next].at < s->output.loaded + n) {
        s->output.sending_pass.at = (size_t)(u->passed[next].at - s->output.loaded);
        s->output.sending_pass.fd =
            u->passed[next].fd < 0 ? make_unconnected_socket() : fcntl(u->passed[next].fd, F_DUPFD_CLOEXEC, 3);
        if (s->output.sending_pass.fd < 0)
            ad__kill_session_locked(s, "connection lost: no descriptor is left to send one again");
    }
    s->output.loaded += n;
}

void ad__read_acks(ad_session *s) {
    if (s->input.reading || s->unacked.end - s->unacked.begin < 4 * AD_UNACKED_PAYLOAD) return;
    ad__read_now(s, false);
}
