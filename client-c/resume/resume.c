/* Resuming: a session whose connection broke goes on over another one.
 *
 *   CONNECTED --ad__lose_connection--> LOST --ad__reconnect--> CONNECTED
 *                                       |
 *                                       +--the server refuses, the time is over, or the session is closed--> DEAD
 *
 * Both directions are streams of bytes that each end counts, and another connection continues at the byte where the
 * last one ended. The thread that notices the loss only records it and waits; the flusher connects. So an interrupt
 * ends a thread's waiting, and never an attempt. */
#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "client-c/client.h"
#include "protocol/rows_request.h"

#define ATTEMPT_NS 3000000000u /* time for one connection and the server's answer */
#define STEP_MS 50             /* time between two checks whether the session is over */
#define PAUSE_FIRST 10000000u  /* pause in ns after the first failed attempt; it then doubles */
#define PAUSE_MOST 1000000000u /* longest pause */
#define LEAVE_NS 1000000000u   /* time in which a session that is closed may send what is left */
#define MOST_ANSWER 4096       /* largest control block of an answer, in bytes */

/* An attempt to resume a session. */
typedef struct attempt {
    ad_session *session;
    int *fd;
    ad_secure *secure;
    uint64_t deadline, received; /* received: bytes that this end has received, then those that the server has */
    uint8_t secret[AD_SECRET];
    bool final; /* another attempt cannot succeed */
} attempt;

/* ---- losing the connection ---- */

void ad__lose_connection(ad_session *s, const char *format, ...) {
    char text[AD_FAULT_TEXT];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    pthread_mutex_lock(&s->lock);
    if (!s->dead && !s->resume.lost) {
        if (!s->resume.enabled) {
            ad__kill_session_locked(s, text);
        } else {
            s->resume.lost = true;
            s->resume.deadline = ad__now() + s->welcome.resume * 1000000u;
            memcpy(s->resume.why, text, sizeof text);
            shutdown(s->connection.fd, SHUT_RDWR);
            ad__wake_all(s);
            pthread_cond_signal(&s->flusher.work);
            if (!ad__flusher_wake(s)) ad__kill_session_locked(s, text);
        }
    }
    pthread_mutex_unlock(&s->lock);
}

static void give_up_session(ad_session *s, const char *why) {
    char text[AD_FAULT_TEXT];
    snprintf(text, sizeof text, "%.80s; the session could not be taken up again: %.120s", s->resume.why, why);
    ad__kill_session_locked(s, text);
}

/* ---- bytes of the handshake ---- */

static bool is_dead(ad_session *s) {
    pthread_mutex_lock(&s->lock);
    bool dead = s->dead;
    pthread_mutex_unlock(&s->lock);
    return dead;
}

static int fail_attempt(const attempt *a, const char *why) {
    return ad__fail(AD_E_CONNECTION, "%s: %s", a->session->connection.address.url, why);
}

static int await_socket(attempt *a, short events) {
    struct pollfd p = {.fd = *a->fd, .events = events};
    if (ad__now() >= a->deadline) return fail_attempt(a, "no answer");
    if (is_dead(a->session)) return fail_attempt(a, "the session is closed");
    poll(&p, 1, STEP_MS);
    return 0;
}

static int send_exactly(attempt *a, const uint8_t *data, size_t size) {
    int status = 0;
    while (size && !status) {
        struct iovec part = {(void *)(uintptr_t)data, size};
        ssize_t n =
            a->secure ? ad__secure_send(a->secure, &part) : send(*a->fd, data, size, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n >= 0) {
            data += n;
            size -= (size_t)n;
        } else if (errno == EAGAIN || errno == EINTR) {
            status = await_socket(a, POLLOUT);
        } else {
            status = fail_attempt(a, strerror(errno));
        }
    }
    return status;
}

/* Receive exactly size bytes: the bytes behind them belong to the stream. */
static int receive_exactly(attempt *a, uint8_t *data, size_t size) {
    int status = 0;
    while (size && !status) {
        ssize_t n = a->secure ? ad__secure_receive(a->secure, data, size, MSG_DONTWAIT)
                              : recv(*a->fd, data, size, MSG_DONTWAIT);
        if (n > 0) {
            data += n;
            size -= (size_t)n;
        } else if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
            status = await_socket(a, POLLIN);
        } else {
            status = fail_attempt(a, n ? strerror(errno) : "the server has gone");
        }
    }
    return status;
}

/* ---- the handshake ---- */

static int send_resume(attempt *a) {
    const ad_session *s = a->session;
    const char *token = s->resume.credentials->token;
    const uint64_t numbers[] = {AD_PROTOCOL_VERSION, s->welcome.instance, s->welcome.session, a->received};
    ad_bytes b = AD_BYTES_INIT;
    int status = *token ? ad__check_confidential(s, *a->fd, a->secure) : 0;
    a->final = status != 0;
    if (status) return status;
    ad__bytes_append(&b, (uint8_t[AD_FRAME_HEADER]){0}, AD_FRAME_HEADER);
    status = ad__encode_resume(&b, numbers, s->welcome.secret, *token ? token : NULL, ad__get_own_process(s));
    if (!status) {
        ad__frame_encode(&(ad_frame){.control = (uint32_t)(b.size - AD_FRAME_HEADER)}, b.data);
        status = send_exactly(a, b.data, b.size);
    }
    if (b.data) explicit_bzero(b.data, b.size);
    ad__bytes_free(&b);
    return status;
}

/* Fail as the server's bye says. A server that is out of something for the moment may be asked again. */
static int report_refusal(attempt *a, const ad_message *m) {
    const int status = -(int)m->u[0];
    a->final = status != AD_E_TIMEOUT && status != AD_E_LIMIT;
    return ad__fail(AD_E_CONNECTION, "%.*s", (int)(m->s[0].size < 200 ? m->s[0].size : 200), m->s[0].data);
}

static int parse_answer(attempt *a, ad_reader *reader, ad_arena *arena, const uint8_t *control, size_t size) {
    ad_message m = {0};
    a->final = true;
    if (ad__reader_begin(reader, control, size, NULL) ||
        ad__reader_next(reader, arena, AD_BIT(AD_CLASS_TELL), &m, NULL) != 1)
        return fail_attempt(a, "protocol violated: no answer to resume");
    if (m.opcode == AD_REQ_BYE) return report_refusal(a, &m);
    if (m.opcode != AD_REQ_RESUMED || m.size != size)
        return fail_attempt(a, "protocol violated: another answer to resume");
    a->final = false;
    memcpy(a->secret, m.s[0].data, AD_SECRET);
    a->received = m.u[0];
    return 0;
}

static int receive_answer(attempt *a) {
    uint8_t head[AD_FRAME_HEADER], control[MOST_ANSWER];
    ad_frame frame;
    ad_reader *reader = NULL;
    ad_arena arena = AD_ARENA_INIT;
    int status = receive_exactly(a, head, sizeof head);
    if (!status && (ad__frame_decode(head, sizeof control, 0, &frame, NULL) || frame.flags)) {
        a->final = true;
        status = fail_attempt(a, "protocol violated: no answer to resume");
    }
    if (!status) status = receive_exactly(a, control, frame.control);
    if (!status && ad__reader_new(&reader)) status = ad__fail_memory();
    if (!status) status = parse_answer(a, reader, &arena, control, frame.control);
    ad__reader_free(reader);
    ad__arena_free(&arena);
    return status;
}

/* ---- connecting ---- */

/* Make a connection over which the server agrees to resume. */
static int try_connection(attempt *a) {
    ad_session *s = a->session;
    int status = ad__connect(&s->connection.address, a->deadline, a->fd, &s->connection.embedded);
    if (status) {
        a->final = s->resume.direct && status == AD_E_CONNECTION; /* the server has ended, and its sessions with it */
        return status;
    }
    ad__tune_socket(s, *a->fd);
    if (s->connection.address.transport == AD_URL_TLS)
        status = ad__secure_open(&s->connection.address, s->resume.credentials, a->deadline, a->fd, &a->secure);
    if (!status) status = send_resume(a);
    if (!status) status = receive_answer(a);
    if (!status) return 0;
    ad__secure_close(a->secure);
    close(*a->fd);
    *a->fd = -1;
    return status;
}

/* Wait until no thread reads from or writes to the old connection. */
static void await_idle_connection(ad_session *s) {
    while ((s->input.reading || s->output.writing) && !s->dead) ad__wait_changed(s);
}

static void adopt_connection(ad_session *s, const attempt *a) {
    ad_resume *c = &s->resume;
    ad__secure_close(s->connection.secure);
    close(s->connection.fd);
    ad__ring_leave(s);
    s->connection.fd = *a->fd;
    s->connection.secure = a->secure;
    c->next ^= 1;
    c->place[c->next] = -1;
    memcpy(s->welcome.secret, a->secret, AD_SECRET);
    s->input.receiver.closed = false;
    s->input.receiver.spin_credit = 0;
    s->input.reported = atomic_load(&s->input.received);
    if (s->output.sending_pass.fd >= 0) close(s->output.sending_pass.fd);
    s->output.sending_pass.fd = -1;
    s->output.sending.size = s->output.sent = 0;
    s->output.loaded = s->output.place = a->received;
    c->lost = false;
    c->confirm = true;
    atomic_store(&s->resume.windows_doubtful, true);
    if (a->received < s->unacked.begin || a->received > s->encoded.bytes) {
        ad__kill_session_locked(s, "protocol violated: the server has received what was not sent, or too little");
        return;
    }
    ad__wake_all(s);
    ad__push_output(s); /* a failure ends the session or loses this connection, too */
}

static void pause_until(ad_session *s, uint64_t until) {
    struct timespec t = {(time_t)(until / 1000000000u), (long)(until % 1000000000u)};
    while (!s->dead && ad__now() < until) pthread_cond_timedwait(&s->flusher.work, &s->lock, &t);
}

void ad__reconnect(ad_session *s) {
    ad_resume *c = &s->resume;
    uint64_t pause = PAUSE_FIRST;
    while (c->lost && !s->dead) {
        await_idle_connection(s); /* no thread begins to read or write while the connection is lost */
        attempt a = {.session = s, .fd = &c->place[c->next], .received = atomic_load(&s->input.received)};
        a.deadline = ad__now() + ATTEMPT_NS;
        pthread_mutex_unlock(&s->lock);
        int status = try_connection(&a);
        pthread_mutex_lock(&s->lock);
        if (!status && s->dead) {
            ad__secure_close(a.secure);
            close(*a.fd);
        } else if (!status) {
            adopt_connection(s, &a);
        } else if (a.final || ad__now() > c->deadline) {
            give_up_session(s, ad_error_message());
        } else {
            pause_until(s, ad__now() + pause);
            pause = pause < PAUSE_MOST / 2 ? 2 * pause : PAUSE_MOST;
        }
    }
}

/* ---- before and after ---- */

/* Tell whether the server itself is the socket's peer: it has ended when no process accepts connections. A peer in
 * another process namespace has the id 0. */
static bool is_direct(const ad_session *s) {
    struct ucred peer = {0};
    socklen_t size = sizeof peer;
    if (s->connection.address.transport == AD_URL_EMBEDDED) return true;
    if (s->connection.address.transport != AD_URL_UNIX ||
        getsockopt(s->connection.fd, SOL_SOCKET, SO_PEERCRED, &peer, &size))
        return false;
    return peer.pid == 0 || (uint64_t)peer.pid == s->welcome.pid;
}

void ad__resume_begin(ad_session *s, ad_credentials *credentials) {
    ad_resume *c = &s->resume;
    c->place[0] = c->place[1] = -1;
    s->input.received = s->input.receiver.end - s->input.receiver.begin; /* the bytes that came behind welcome */
    s->sealed.ops = s->sealed.requests = s->sealed.before_ops = s->sealed.before_requests = 0;
    if (!(s->welcome.features & AD_FEATURE_RESUME) || !s->welcome.resume) return;
    if (!(c->credentials = malloc(sizeof *c->credentials))) return;
    *c->credentials = *credentials;
    c->direct = is_direct(s);
    c->enabled = true;
}

void ad__resume_check(ad_session *s) {
    struct pollfd p = {.fd = s->connection.fd, .events = POLLRDHUP};
    if (ad__has_pending_fork(s)) p.events |= POLLIN; /* an acknowledgement of the fork may have come */
    if (s->input.reading || s->dead || s->resume.lost || (poll(&p, 1, 0) <= 0 && !ad__ring_has_input(s))) return;
    ad__read_now(s, true);
}

void ad__send_leave(ad_session *s) {
    pthread_mutex_lock(&s->lock);
    s->resume.leave_deadline = ad__now() + LEAVE_NS;
    while (s->resume.enabled && !s->dead && ad__now() < s->resume.leave_deadline &&
           (s->resume.lost ? ad__has_pending_fork(s)
                           : s->output.writing || s->output.gathered.size || ad__has_unsent(s))) {
        if (s->output.writing || s->resume.lost) ad__wait_changed(s);
        else if (ad__push_output(s)) break;
    }
    if (s->resume.enabled && !s->resume.lost && !s->dead && !s->output.writing && !s->output.gathered.size &&
        !ad__has_unsent(s)) {
        ad__append_note(s, AD_FRAME_LEAVE, 0);
        ad__push_output(s);
    }
    pthread_mutex_unlock(&s->lock);
}

void ad__resume_end(ad_session *s) {
    ad__unacked_clear(&s->unacked);
    if (!s->resume.credentials) return;
    ad__credentials_forget(s->resume.credentials);
    free(s->resume.credentials);
    s->resume.credentials = NULL;
}

void ad__resume_disown(ad_session *s) {
    ad_resume *c = &s->resume;
    if (c->credentials && c->lost && c->place[c->next] >= 0) close(c->place[c->next]);
    ad__unacked_clear(&s->unacked);
    c->enabled = c->lost = c->confirm = false;
}

void ad__resume_renew(ad_session *s) {
    ad_resume *c = &s->resume;
    ad__resume_disown(s);
    c->place[0] = c->place[1] = -1;
    c->enabled = c->credentials != NULL;
    s->welcome.session = s->child.key;
    memcpy(s->welcome.secret, s->child.secret, AD_SECRET);
    s->sealed.before_ops = s->sealed.ops = 0;
    s->sealed.before_requests = s->sealed.requests = s->next_id.request - 1;
}
