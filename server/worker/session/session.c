/* The I/O thread's side of a session: its socket.
 *
 *     open ──▶ reads and sends ──connection closes──▶ away (resume.h) ──client comes back──▶ reads and sends
 *                     │                                  │
 *                     └───────────────┬──────────────────┘
 *                                     ▼
 *                        over ──runner frees all──▶ dropped ──bye sent and read──▶ closed */
#include "server/worker/session/session.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/common/discard.h"
#include "server/common/log.h"
#include "server/common/os.h"
#include "server/common/rights.h"
#include "server/worker/engine/background.h"
#include "server/worker/io/spin.h"
#include "server/worker/io/trace.h"
#include "server/worker/session/rings.h"

#define GIVE 64           /* frames queued for the engine at a time */
#define LINGER 1000000000 /* ns that a client has to read bye */

static void on_poll(uv_poll_t *poll, int status, int events);

/* ---- opening and closing ---- */

/* Set options of a TCP socket: a dead host is noticed within 45 s, and replies are not delayed. */
static void tune_tcp(int fd) {
    struct sockaddr_storage a;
    socklen_t size = sizeof a;
    int on = 1, idle = 15, interval = 10, probes = 3;
    if (getsockname(fd, (struct sockaddr *)&a, &size) || a.ss_family == AF_UNIX) return;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof idle);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval, sizeof interval);
    setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof probes);
}

void ad__session_watch(ad_worker_session *s, int events) {
    if (atomic_load(&s->move.halted)) events &= ~UV_READABLE;
    if (s->socket.phase == AD_SOCKET_NEW || s->socket.phase == AD_SOCKET_CLOSED || events == s->socket.events) return;
    s->socket.events = events;
    if (events) uv_poll_start(&s->socket.poll, events, on_poll);
    else uv_poll_stop(&s->socket.poll);
}

ad_worker_session *ad__session_new(ad_worker *w, const ad_note *note, int fd) {
    ad_worker_session *s = ad__os.calloc(1, sizeof *s);
    if (!s) {
        ad__discard_connection(note->who, fd);
        return NULL;
    }
    s->worker = w;
    s->id = note->id;
    s->socket.fd = fd;
    memcpy(s->principal, note->who, sizeof s->principal);
    memcpy(s->client, note->text, sizeof s->client);
    s->grants = note->grants;
    s->turns.since = ad__os_now();
    s->rights.may_run_kernels = ad__may_run_kernels(&w->config, s->principal, &s->grants, w->backend->name);
    s->rights.must_migrate = w->shared && s->rights.may_run_kernels;
    s->rights.kernel_limit = ad__kernel_limit(&w->config, s->principal, &s->grants);
    if (!ad__components_open(s, note)) return s;
    ad__discard_connection(note->who, fd);
    free(s);
    return NULL;
}

int ad__session_begin(ad_worker_session *s) {
    ad_worker *w = s->worker;
    int status = uv_poll_init(&w->io.loop, &s->socket.poll, s->socket.fd) ? AD_E_SYSTEM : 0;
    s->socket.poll.data = s;
    if (!status) ad__socket_enter(s, AD_SOCKET_OPEN);
    ad__checkpoint_list(s);
    pthread_mutex_lock(&w->sessions_lock);
    s->next = w->sessions;
    if (s->next) s->next->prev = s;
    w->sessions = s;
    pthread_mutex_unlock(&w->sessions_lock);
    atomic_fetch_add(&w->nsessions, 1);
    ad__session_watch(s, UV_READABLE);
    ad__log(session_begins, s->id, s->principal, s->client);
    return status;
}

int ad__session_open(ad_worker *w, const ad_note *note, int fd) {
    ad_worker_session *s = ad__session_new(w, note, fd);
    if (!s) return AD_E_MEMORY;
    tune_tcp(fd);
    int status = ad__session_begin(s);
    if (!status) return 0;
    s->socket.forked = true; /* the caller tells arrayd of the end */
    ad__engine_end(s);
    return status;
}

static void free_session(ad_worker_session *s) {
    if (s->move.done) close(s->socket.fd); /* it is open elsewhere */
    else ad__discard_connection(s->principal, s->socket.fd);
    ad__components_close(s);
    if (!s->socket.forked) ad__worker_tell(s->worker, &(ad_note){.kind = AD_NOTE_SESSION_END, .id = s->id}, -1);
    free(s);
}

static void on_session_closed(uv_handle_t *handle) { free_session(handle->data); }

static void close_session(ad_worker_session *s) {
    ad_worker *w = s->worker;
    const bool begun = s->socket.phase != AD_SOCKET_NEW;
    if (s->socket.phase == AD_SOCKET_CLOSED) return;
    ad__socket_enter(s, AD_SOCKET_CLOSED);
    ad__ring_close(s);
    pthread_mutex_lock(&w->sessions_lock);
    if (s->prev) s->prev->next = s->next;
    else w->sessions = s->next;
    if (s->next) s->next->prev = s->prev;
    pthread_mutex_unlock(&w->sessions_lock);
    atomic_fetch_sub(&w->nsessions, 1);
    bool quiet = !s->output.why || s->output.status == AD_E_CONNECTION;
    ad__log_other(!quiet, session_ends, s->id, s->principal, s->progress.done, s->output.why ? s->output.why : "");
    if (begun) uv_close((uv_handle_t *)&s->socket.poll, on_session_closed);
    else free_session(s);
}

static void on_clock(uv_timer_t *timer) {
    if (!ad__sessions_tick(timer->data)) uv_timer_stop(timer);
}

void ad__sessions_watch(ad_worker *w) {
    if (!uv_is_active((uv_handle_t *)&w->io.clock)) uv_timer_start(&w->io.clock, on_clock, 100, 100);
}

static bool is_ending(const ad_worker_session *s) {
    return s->socket.phase == AD_SOCKET_ENDING || s->socket.phase == AD_SOCKET_LINGERING;
}

/* Close the session when bye has been sent and read, or the time for that is over. */
static void finish_closing(ad_worker_session *s) {
    if (s->turns.hangup || s->socket.phase == AD_SOCKET_NEW || atomic_load(&s->output.broken) ||
        atomic_load(&s->output.away)) {
        close_session(s);
        return;
    }
    if (!is_ending(s)) {
        ad__socket_enter(s, AD_SOCKET_ENDING);
        ad__ring_close(s);
        s->socket.linger_until = ad__os_now() + LINGER;
    }
    if (atomic_load(&s->output.queued)) {
        ad__session_watch(s, UV_WRITABLE | UV_READABLE);
    } else if (s->socket.phase == AD_SOCKET_ENDING) {
        ad__socket_enter(s, AD_SOCKET_LINGERING);
        shutdown(s->socket.fd, SHUT_WR);
        ad__session_watch(s, UV_READABLE);
    }
    ad__sessions_watch(s->worker);
}

static int queue_frames(ad_worker_session *s, ad_fault *fault);

/* Read what the client sent before the connection closed, which sending may have noticed first. The last of it may say
 * that the client leaves. */
static void read_remaining(ad_worker_session *s) {
    ad_fault fault = {0};
    while (ad__input_read(&s->input, s->socket.fd, &s->windows.descriptors) > 0 && !queue_frames(s, &fault)) {}
    ad__input_release_used(&s->input);
}

void ad__session_drain(ad_worker_session *s) {
    if (s->socket.phase != AD_SOCKET_OPEN) return;
    shutdown(s->socket.fd, SHUT_RD);
    read_remaining(s);
}

/* The descriptors tell whether forks are still to come: nobody else has asked for them. */
void ad__session_end_after_forks(ad_worker_session *s) {
    if (!ad__descriptors_has_unclaimed(&s->windows.descriptors)) {
        ad__engine_end(s);
        return;
    }
    atomic_store(&s->socket.ends_after_forks, true);
    ad__output_break(&s->output);
    ad__engine_finish(s);
}

/* Let the session wait for another connection, or end it. */
static void lose_connection(ad_worker_session *s, const char *why) {
    ad__session_watch(s, 0);
    if (s->socket.phase != AD_SOCKET_AWAY) read_remaining(s);
    ad__ring_close(s);
    if (ad__session_await_client(s, why)) ad__sessions_watch(s->worker);
    else ad__session_end_after_forks(s);
}

void ad__session_attend(ad_worker_session *s) {
    ad_engine *e = &s->worker->engine;
    if (s->socket.phase == AD_SOCKET_CLOSED) return;
    pthread_mutex_lock(&e->lock);
    bool dropped = ad__run_phase(s) == AD_RUN_DROPPED, over = ad__run_is_over(s), room = !s->turns.want_room;
    pthread_mutex_unlock(&e->lock);
    if (dropped) {
        finish_closing(s);
        return;
    }
    if (s->socket.paused && room) s->socket.paused = false;
    bool blocked = atomic_load(&s->output.blocked);
    if (blocked) ad__sessions_watch(s->worker);
    if (atomic_load(&s->output.broken) && !over && !atomic_load(&s->socket.ends_after_forks)) ad__engine_end(s);
    else if (atomic_load(&s->output.away) && !over) lose_connection(s, "the client has gone");
    if (s->socket.phase == AD_SOCKET_AWAY) return;
    ad__session_watch(s, (s->socket.paused ? 0 : UV_READABLE) | (blocked ? UV_WRITABLE : 0));
}

void ad__session_resume(ad_worker *w, const ad_note *note, int fd) {
    ad_worker_session *s = ad__session_find(w, note->id);
    tune_tcp(fd);
    if (s) ad__session_watch(s, 0); /* its socket may become another one */
    ad__session_take_up(s, note, fd);
    if (s) ad__session_attend(s);
}

void ad__session_say_bye(ad_worker_session *s, int code, const char *text) {
    ad_bytes b = AD_BYTES_INIT;
    if (ad__encode_bye(&b, code, text) == 0) {
        if (ad__is_traced(s)) ad__trace(s, "->", b.data, b.size);
        ad__output_frame(&s->output, b.data, b.size, 0, NULL, 0);
        ad__output_settle(&s->output, UINT64_MAX);
        ad__output_flush(&s->output);
    }
    ad__bytes_free(&b);
}

void ad__session_bye(ad_worker_session *s, int code, const char *text) {
    ad__session_say_bye(s, code, text);
    ad__engine_end(s);
}

/* ---- reading and writing ---- */

static void pause_if_full(ad_worker_session *s) {
    ad_engine *e = &s->worker->engine;
    pthread_mutex_lock(&e->lock);
    s->socket.paused = s->turns.want_room = ad__engine_is_full(s);
    s->turns.put_off += s->socket.paused;
    pthread_mutex_unlock(&e->lock);
    if (s->socket.paused) ad__session_attend(s);
}

/* Queue every complete frame for the engine. Returns 0 or AD_E_... */
static int queue_frames(ad_worker_session *s, ad_fault *fault) {
    ad_input_frame f[GIVE];
    for (;;) {
        int n = 0, result = 1;
        while (n < GIVE && (result = ad__input_next(&s->input, &f[n], fault)) == 1) n++;
        int given = n ? ad__engine_queue_frames(s, f, n) : 0;
        if (given) return ad__fault(fault, given, "out of host memory");
        if (result == AD_INPUT_NOTE) result = ad__session_take_note(s, &s->input.note, fault) ? fault->code : 1;
        if (result <= 0) return result;
    }
}

/* Refuse an invalid frame. The engine finds an empty frame in its place, and says bye after executing what came before.
 */
static void refuse_frame(ad_worker_session *s, const ad_fault *fault) {
    ad_input_frame mark = {0};
    s->socket.refusal = *fault;
    ad__session_watch(s, 0);
    s->socket.paused = true;
    if (ad__engine_queue_frames(s, &mark, 1)) ad__engine_end(s);
}

static void discard_input(ad_worker_session *s) {
    char away[4096];
    ssize_t n = ad__discard_receive(s->principal, s->socket.fd, away, sizeof away);
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) close_session(s);
}

void ad__session_read(ad_worker_session *s) {
    ad_fault fault = {0};
    if (s->input.at) ad__input_forget(&s->input, __atomic_load_n(&s->checkpoint.executed, __ATOMIC_RELAXED));
    int result = ad__input_read(&s->input, s->socket.fd, &s->windows.descriptors);
    if (result == AD_E_CONNECTION) {
        lose_connection(s, "the client has gone");
        return;
    }
    if (result > 0) {
        ad__session_confirm_client(s);
        ad__worker_record_message(s->worker);
        result = queue_frames(s, &fault);
    } else if (!result) {
        ad__ring_note_nothing(s);
    }
    ad__input_release_used(&s->input);
    if (result < 0 && !fault.code) ad__fault(&fault, result, "%s", ad__error_text(result));
    if (result < 0) refuse_frame(s, &fault);
    else pause_if_full(s);
}

static void read_from_socket(ad_worker_session *s) {
    const uint64_t before = s->input.received;
    ad__session_read(s);
    if (s->socket.phase == AD_SOCKET_OPEN && s->input.received != before) ad__ring_attend(s);
}

void ad__session_go_on(ad_worker_session *s) {
    ad_fault fault = {0};
    int status = queue_frames(s, &fault);
    ad__input_release_used(&s->input); /* a full block would take nothing, which looks like a closed connection */
    if (status && !fault.code) ad__fault(&fault, status, "%s", ad__error_text(status));
    if (status) refuse_frame(s, &fault);
}

static void on_poll(uv_poll_t *poll, int status, int events) {
    ad_worker_session *s = poll->data;
    if (status) {
        lose_connection(s, "the connection has failed");
        return;
    }
    if (events & UV_WRITABLE) {
        ad__output_resume(&s->output);
        ad__engine_unstall(s);
        ad__session_attend(s);
    }
    if (s->socket.phase == AD_SOCKET_CLOSED || !(events & UV_READABLE)) return;
    if (is_ending(s)) discard_input(s);
    else read_from_socket(s);
}

/* ---- time-outs ---- */

static bool is_too_slow(const ad_worker_session *s, int64_t now) {
    double limit = s->worker->config.output_timeout;
    return atomic_load(&s->output.blocked) && limit > 0 &&
           (double)(now - atomic_load(&s->output.progress)) > limit * 1e9;
}

ad_worker_session *ad__session_find(ad_worker *w, uint64_t id) {
    ad_worker_session *s = w->sessions;
    while (s && s->id != id) s = s->next;
    return s;
}

bool ad__sessions_tick(ad_worker *w) {
    bool watched = ad__background_tick(w);
    int64_t now = ad__os_now();
    for (ad_worker_session *s = w->sessions, *next; s; s = next) {
        next = s->next;
        if (is_ending(s) && now > s->socket.linger_until) {
            close_session(s);
        } else if (is_too_slow(s, now)) {
            static const char why[] = "output-timeout: the client does not read";
            ad__log(connection_closed, s->id, s->principal, why);
            lose_connection(s, why);
        } else if (ad__session_is_forsaken(s, now)) {
            ad__session_end_after_forks(s);
        }
        watched = watched || is_ending(s) || s->socket.phase == AD_SOCKET_AWAY || atomic_load(&s->output.blocked);
    }
    return watched;
}

/* ---- the socket as a component ---- */

/* Say bye to the client, unless another worker goes on with the session. */
static void say_device_is_lost(ad_worker_session *s, const char *why) {
    if (!ad__session_is_recoverable(s)) ad__session_say_bye(s, AD_E_DEVICE_LOST, why);
}

const ad_component ad__component_socket = {.name = "socket", .device_lost = say_device_is_lost};
