#include "server/ctl/peer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#include "protocol/frame.h"
#include "protocol/rows_request.h"

static int report_lost_connection(ad_peer *p, ssize_t n) {
    return ad__fault(&p->fault, AD_E_CONNECTION, "the connection is lost%s%s", n < 0 ? ": " : "",
                     n < 0 ? strerror(errno) : "");
}

static int send_bytes(ad_peer *p, const void *data, size_t size) {
    for (const char *at = data; size;) {
        ssize_t n = send(p->fd, at, size, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return report_lost_connection(p, n);
        at += n;
        size -= (size_t)n;
    }
    return 0;
}

static int receive_bytes(ad_peer *p, uint8_t *to, size_t size) {
    while (size) {
        ssize_t n = recv(p->fd, to, size, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return report_lost_connection(p, n);
        to += n;
        size -= (size_t)n;
    }
    return 0;
}

int ad__peer_send(ad_peer *p, const void *payload, size_t size) {
    uint8_t head[AD_FRAME_HEADER];
    if (p->control.failed) return ad__fault(&p->fault, AD_E_MEMORY, "out of memory");
    ad__frame_encode(&(ad_frame){.control = (uint32_t)p->control.size, .payload = size}, head);
    int status = send_bytes(p, head, sizeof head);
    if (!status) status = send_bytes(p, p->control.data, p->control.size);
    if (!status) status = send_bytes(p, payload, size);
    p->control.size = 0;
    return status;
}

/* ---- answers ---- */

static int report_text(ad_peer *p, const char *what, ad_string text) {
    return ad__fault(&p->fault, AD_E_CONNECTION, "%s%.*s", what, (int)text.size, text.data);
}

/* Handlers of messages. 1: the message answers the last request; negative: the server has refused. */

static int handle_welcome(ad_peer *p, const ad_message *m) {
    snprintf(p->backend, sizeof p->backend, "%s", m->welcome->backend);
    snprintf(p->device, sizeof p->device, "%s", m->welcome->device_name);
    snprintf(p->server, sizeof p->server, "%s", m->welcome->server);
    return 1;
}

static int handle_reply(ad_peer *p, const ad_message *m) { return m->u[0] == p->requests; }

static int handle_fail(ad_peer *p, const ad_message *m) { return report_text(p, "", m->s[1]); }

static int handle_bye(ad_peer *p, const ad_message *m) {
    return report_text(p, "the server has closed the connection: ", m->s[0]);
}

static int dispatch_message(ad_peer *p, const ad_message *m) {
    static int (*const handlers[AD_REQUEST_LIMIT])(ad_peer *, const ad_message *) = {
        [AD_REQ_WELCOME] = handle_welcome,
        [AD_REQ_REPLY] = handle_reply,
        [AD_REQ_FAIL] = handle_fail,
        [AD_REQ_BYE] = handle_bye,
    };
    return handlers[m->opcode] ? handlers[m->opcode](p, m) : 0;
}

/* Receive the next frame. 1: it has the answer or a part of it. */
static int receive_frame(ad_peer *p, ad_frame *frame) {
    uint8_t head[AD_FRAME_HEADER];
    ad_message m;
    int answered = 0, result = receive_bytes(p, head, sizeof head);
    if (!result) result = ad__frame_decode(head, AD_MAX_CONTROL, AD_MAX_PAYLOAD, frame, &p->fault);
    if (!result) result = receive_bytes(p, p->input, frame->control);
    if (!result) result = ad__reader_begin(p->reader, p->input, frame->control, &p->fault);
    while (result >= 0 && (result = ad__reader_next(p->reader, &p->arena, AD_BIT(AD_CLASS_TELL), &m, &p->fault)) > 0) {
        int taken = dispatch_message(p, &m);
        if (taken < 0) result = taken;
        else answered |= taken;
    }
    ad__arena_reset(&p->arena);
    if (!result) result = receive_bytes(p, p->input, frame->payload);
    return result ? result : answered;
}

static int64_t receive_answer(ad_peer *p) {
    ad_frame frame;
    int64_t size = 0;
    for (;;) {
        int result = receive_frame(p, &frame);
        if (result < 0) return result;
        if (!result) continue;
        size += (int64_t)frame.payload;
        if (!(frame.flags & AD_FRAME_MORE)) return size;
    }
}

int64_t ad__peer_answer(ad_peer *p) {
    int status = ad__peer_send(p, NULL, 0);
    return status ? status : receive_answer(p);
}

int ad__peer_sync(ad_peer *p) {
    ad__encode_sync(&p->control, ++p->requests);
    int64_t got = ad__peer_answer(p);
    return got < 0 ? (int)got : 0;
}

/* ---- opening ---- */

static int exchange_hello(ad_peer *p) {
    ad__encode_hello(&p->control, AD_PROTOCOL_VERSION, AD_PROTOCOL_VERSION, 0, "arrayctl bench", NULL, 0);
    int64_t got = ad__peer_answer(p);
    return got < 0 ? (int)got : 0;
}

int ad__peer_open(ad_peer *p, const ad_ctl *c) {
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    *p = (ad_peer){.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), .input = malloc(AD_MAX_PAYLOAD)};
    if (!p->input || ad__reader_new(&p->reader)) return ad__ctl_error(c, AD_CTL_BAD, "out of memory");
    if (!ad__ctl_server_path(c, a.sun_path, sizeof a.sun_path))
        return ad__ctl_error(c, AD_CTL_USAGE, "the path of the socket is longer than %zu bytes", sizeof a.sun_path - 1);
    if (p->fd < 0 || connect(p->fd, (struct sockaddr *)&a, sizeof a))
        return ad__ctl_fail_unreachable(c, a.sun_path, errno);
    return exchange_hello(p) ? ad__ctl_error(c, AD_CTL_NO_SERVER, "%s", p->fault.text) : AD_CTL_GOOD;
}

void ad__peer_close(ad_peer *p) {
    if (p->fd >= 0) close(p->fd);
    ad__reader_free(p->reader);
    ad__arena_free(&p->arena);
    ad__bytes_free(&p->control);
    free(p->input);
}
