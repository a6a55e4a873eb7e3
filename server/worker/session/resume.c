#include "server/worker/session/resume.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "server/common/discard.h"
#include "server/common/log.h"
#include "server/common/os.h"
#include "server/common/report.h"
#include "server/common/secret.h"
#include "server/worker/engine/background.h"
#include "server/worker/session.h"
#include "server/worker/session/rings.h"

static int open_comeback(ad_worker_session *s, const ad_note *note) {
    ad_comeback *c = &s->comeback;
    c->able = note->resumable;
    c->key = note->id & AD_FORKED_SESSION ? note->size : 0;
    c->process = note->process;
    c->process_fd = -1;
    memcpy(c->secret, note->secret, sizeof c->secret);
    if (c->able) ad__output_keep(&s->output);
    return 0;
}

static void close_process(ad_worker_session *s) {
    if (s->comeback.process_fd >= 0) close(s->comeback.process_fd);
    s->comeback.process_fd = -1;
}

const ad_component ad__component_comeback = {.name = "comeback", .open = open_comeback, .close = close_process};

/* ---- waiting for a client ---- */

/* Tell whether the client's process is alive, or unknown. A local client that has ended cannot come back. */
static bool is_process_alive(ad_comeback *c) {
    if (!c->process) return true;
    if (c->process_fd < 0) c->process_fd = (int)syscall(SYS_pidfd_open, (pid_t)c->process, 0);
    if (c->process_fd < 0) return errno != ESRCH;
    struct pollfd p = {.fd = c->process_fd, .events = POLLIN};
    return poll(&p, 1, 0) == 0;
}

bool ad__session_client_ended(const ad_worker_session *s) {
    ad_comeback c = {.process = __atomic_load_n(&s->comeback.process, __ATOMIC_RELAXED), .process_fd = -1};
    const bool ended = !is_process_alive(&c);
    if (c.process_fd >= 0) close(c.process_fd);
    return ended;
}

static bool is_session_over(ad_worker_session *s) {
    ad_engine *e = &s->worker->engine;
    pthread_mutex_lock(&e->lock);
    bool over = ad__run_is_over(s);
    pthread_mutex_unlock(&e->lock);
    return over || s->socket.phase >= AD_SOCKET_ENDING || atomic_load(&s->output.broken);
}

static void report_away(const ad_worker_session *s, uint64_t away) {
    ad__worker_tell(s->worker, &(ad_note){.kind = AD_NOTE_AWAY, .id = s->id, .size = away}, -1);
}

static void set_process(ad_worker_session *s, uint64_t process) {
    __atomic_store_n(&s->comeback.process, process, __ATOMIC_RELAXED);
    if (s->checkpoint.at) ad__journal_store(&s->checkpoint.at->process, process);
}

/* Learn the client's process from the bytes that it sends, which is the only way on a socket pair. */
static void learn_sender(ad_worker_session *s) {
    if (!s->comeback.native || s->comeback.process || !s->input.process) return;
    set_process(s, s->input.process);
    ad__input_ask_sender(s->socket.fd, false);
}

/* Tell whether the client may come back. A socket pair only closes when its client closes it or ends, so an unknown
 * process counts as ended. */
static bool may_return(ad_worker_session *s) {
    ad_comeback *c = &s->comeback;
    learn_sender(s);
    return c->able && !c->left && (c->process || !c->native) && is_process_alive(c);
}

bool ad__session_await_client(ad_worker_session *s, const char *why) {
    ad_comeback *c = &s->comeback;
    if (is_session_over(s) || s->worker->ending.stopping || !may_return(s)) return false;
    if (s->socket.phase == AD_SOCKET_AWAY) return true;
    ad__socket_enter(s, AD_SOCKET_AWAY);
    c->until = ad__os_now() + (int64_t)(s->worker->config.resume_time * 1e9);
    ad__output_away(&s->output);
    shutdown(s->socket.fd, SHUT_RDWR); /* the descriptor is reused for the next connection */
    report_away(s, 1);
    ad__log(session_waits, s->id, s->principal, why);
    return true;
}

bool ad__session_is_forsaken(ad_worker_session *s, int64_t now) {
    ad_comeback *c = &s->comeback;
    if (s->socket.phase != AD_SOCKET_AWAY || is_session_over(s)) return false;
    const char *why = now > c->until         ? "resume-time: its client has not come back"
                      : !is_process_alive(c) ? "its client has ended"
                                             : NULL;
    if (why) ad__log(session_forsaken, s->id, s->principal, why);
    return why;
}

/* ---- messages from the client ---- */

/* Confirm a secret that the client has shown. Its previous secret and all other offers are void from now on. */
static void confirm_secret(ad_worker_session *s, const uint8_t secret[AD_SECRET]) {
    ad_comeback *c = &s->comeback;
    ad_journal_session *at = s->checkpoint.at;
    memcpy(c->secret, secret, sizeof c->secret);
    c->offers.over = c->offers.made;
    if (!at) return;
    memcpy(at->secret, c->secret, sizeof at->secret); /* as an offer it is valid until stored here */
    ad__journal_store(&at->offers.over, c->offers.made);
}

/* A client that sends anything has read the answer to its latest resume, so it has that secret. */
void ad__session_confirm_client(ad_worker_session *s) {
    const ad_offers *o = &s->comeback.offers;
    learn_sender(s);
    if (o->over < o->made) confirm_secret(s, o->secret[(o->made - 1) % AD_OFFERS]);
}

int ad__session_take_note(ad_worker_session *s, const ad_frame *note, ad_fault *fault) {
    if (note->flags == AD_FRAME_LEAVE) s->comeback.left = true;
    else if (note->flags == AD_FRAME_CANCEL) ad__background_cancel_before(s, s->input.note_place);
    else if (ad__output_taken(&s->output, note->payload))
        return ad__fault(fault, AD_E_PROTOCOL, "the client has taken more bytes than the server sent");
    return 0;
}

/* ---- coming back ---- */

static int encode_frame(ad_bytes *control, uint8_t *out, size_t room, size_t *size) {
    *size = AD_FRAME_HEADER + control->size;
    if (control->failed || *size > room) return AD_E_MEMORY;
    ad__frame_encode(&(ad_frame){.control = (uint32_t)control->size}, out);
    memcpy(out + AD_FRAME_HEADER, control->data, control->size);
    return 0;
}

void ad__session_refuse(const char *who, int fd, int code, const char *why) {
    uint8_t frame[AD_FRAME_HEADER + 512];
    size_t size;
    ad_bytes b = AD_BYTES_INIT;
    if (!ad__encode_bye(&b, code, why) && !encode_frame(&b, frame, sizeof frame, &size))
        ad__os.send(fd, frame, size, MSG_NOSIGNAL | MSG_DONTWAIT);
    ad__bytes_free(&b);
    ad__discard_connection(who, fd);
}

static void refuse_resume(const ad_note *note, int fd, int code, const char *why) {
    ad__log_other(code == AD_E_CONNECTION, session_not_resumed, note->id, note->who, why);
    ad__session_refuse(note->who, fd, code, why);
}

/* Tell whether the secret is an offer made since the client last sent anything. Not only the latest counts: an attempt
 * that the client has given up may arrive after the successful one, by another connection. */
static bool is_offered(const ad_offers *o, const uint8_t secret[AD_SECRET]) {
    bool is = false;
    for (uint64_t n = o->made < AD_OFFERS ? 0 : o->made - AD_OFFERS; n < o->made; n++)
        if (!ad__secret_differs(secret, o->secret[n % AD_OFFERS], AD_SECRET)) is |= n >= o->over;
    return is;
}

/* Check whether the note may resume the session: it needs the client's secret, or one offered since. Returns why not;
 * NULL: it may. All comparisons are made, so that the time tells nothing. */
static const char *check_resume(ad_worker_session *s, const ad_note *note) {
    if (!s || strcmp(s->principal, note->who)) return "this client has no such session";
    ad_comeback *c = &s->comeback;
    bool old = !ad__secret_differs(note->secret, c->secret, sizeof c->secret);
    bool offered = is_offered(&c->offers, note->secret);
    if (!c->able || !(old || offered)) return "the secret is not the session's, or has been used before";
    if (is_session_over(s) || c->left) return "the session is over";
    if (offered) confirm_secret(s, note->secret);
    return NULL;
}

static int encode_answer(const ad_worker_session *s, uint8_t next[AD_SECRET], uint8_t *frame, size_t room,
                         size_t *size) {
    ad_bytes b = AD_BYTES_INIT;
    if (getrandom(next, AD_SECRET, 0) != AD_SECRET) return AD_E_SYSTEM;
    int status = ad__encode_resumed(&b, next, s->input.received);
    if (!status) status = encode_frame(&b, frame, room, size);
    ad__bytes_free(&b);
    return status;
}

/* Let another connection take the place of the session's, which may still look open: a laptop slept, an address
 * changed. */
static int take_connection(ad_worker_session *s, int fd, const ad_note *note, const char **why) {
    ad_comeback *c = &s->comeback;
    uint8_t frame[AD_FRAME_HEADER + 64], next[AD_SECRET];
    size_t size;
    int status = encode_answer(s, next, frame, sizeof frame, &size);
    if (status) return status;
    if (s->checkpoint.at) { /* the journal has the offer before the client can have it */
        ad_offers *o = &s->checkpoint.at->offers;
        memcpy(o->secret[c->offers.made % AD_OFFERS], next, sizeof next);
        ad__journal_store(&o->made, c->offers.made + 1);
    }
    int old = dup(s->socket.fd);
    status = ad__output_take_up(&s->output, fd, frame, size, note->size, why);
    if (old >= 0) {
        if (status) close(old); /* it is open as the session's */
        else ad__discard_connection(s->principal, old);
    }
    if (status) return status;
    ad__ring_close(s); /* it was the old connection's */
    memcpy(c->offers.secret[c->offers.made++ % AD_OFFERS], next, sizeof next);
    if (s->socket.phase == AD_SOCKET_AWAY) ad__socket_enter(s, AD_SOCKET_OPEN);
    c->native = false;
    c->count++;
    close_process(s);
    if (note->process) set_process(s, note->process);
    report_away(s, 0);
    ad__log(session_resumed, s->id, s->principal);
    ad__output_flush(&s->output);
    ad__engine_unstall(s);
    return 0;
}

void ad__session_take_up(ad_worker_session *s, const ad_note *note, int fd) {
    const char *why = check_resume(s, note);
    int status = why ? AD_E_RESUME : take_connection(s, fd, note, &why);
    if (status) refuse_resume(note, fd, status, why ? why : ad__error_text(status));
}

void ad__session_forsake(ad_worker_session *s) {
    if (is_session_over(s)) return;
    if (s->socket.phase != AD_SOCKET_AWAY) {
        report_away(s, 0); /* the client has come back in the meantime */
        return;
    }
    ad__log(session_forsaken, s->id, s->principal, "sessions: its place is wanted");
    ad__engine_end(s);
}
