/* The control socket of arrayctl: one line in, one line of JSON out. Its mode 0600 lets in root and the server's user,
 * and those that they let through; all the same the grant admin is required.
 *
 *     begin_visit -> handle_request -> (round of reports or health, or upgrade) -> send_answer -> end_visit */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/common/discard.h"
#include "server/common/fdpass.h"
#include "server/common/log.h"
#include "server/common/os.h"
#include "server/common/put.h"
#include "server/front/front.h"

#define MOST 32    /* most connections; one more ends the oldest */
#define LINE 512   /* bytes of a request */
#define REASON 200 /* bytes of a request that may be the reason for killing a session */
#define TIME 10000 /* ms that a connection may last, besides the time for health */

typedef struct visitor visitor;

struct ad_control {
    ad_front *front;
    uv_poll_t poll;
    int fd;
    char *path;
    visitor *visitors; /* newest first */
    visitor *upgrades; /* the visitor that waits for an upgrade; NULL: none */
    unsigned count;
};

struct visitor {
    visitor *next, *prev;
    ad_observer observer;
    ad_rounds *rounds; /* the rounds in which the observer waits */
    ad_front *front;
    uv_poll_t poll;
    uv_timer_t timer;
    int fd, passed, handles; /* passed: the descriptor that came with the request; -1: none */
    bool admin;
    ad_entrant who;
    char line[LINE];
    const char *name, *why; /* parts of line: a session, and the reason for killing it */
    bool kills;
    size_t got;
    ad_bytes answer;
    size_t sent;
};

static visitor *get_visitor(ad_observer *w) { return (visitor *)(void *)((char *)w - offsetof(visitor, observer)); }

/* ---- the end of a visit ---- */

static void on_visitor_closed(uv_handle_t *handle) {
    visitor *v = handle->data;
    if (--v->handles) return;
    ad__discard_connection(v->who.who, v->fd);
    if (v->passed >= 0) ad__discard(v->who.who, v->passed);
    ad__bytes_free(&v->answer);
    free(v);
}

static void end_visit(visitor *v) {
    ad_control *c = v->front->observability.control;
    if (v->rounds) ad__observer_remove(v->rounds, &v->observer);
    if (c->upgrades == v) c->upgrades = NULL;
    if (v->prev) v->prev->next = v->next;
    else c->visitors = v->next;
    if (v->next) v->next->prev = v->prev;
    c->count--;
    uv_close((uv_handle_t *)&v->poll, on_visitor_closed);
    uv_close((uv_handle_t *)&v->timer, on_visitor_closed);
}

static void on_visit_timeout(uv_timer_t *timer) { end_visit(timer->data); }

/* ---- answering ---- */

static void on_answer_writable(uv_poll_t *poll, int status, int events) {
    visitor *v = poll->data;
    (void)events;
    ssize_t n =
        status ? -1
               : ad__os.send(v->fd, v->answer.data + v->sent, v->answer.size - v->sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && !status && (errno == EAGAIN || errno == EINTR)) return;
    if (n > 0) v->sent += (size_t)n;
    if (n <= 0 || v->sent == v->answer.size) end_visit(v);
}

static void send_answer(visitor *v) {
    if (v->answer.failed) end_visit(v);
    else uv_poll_start(&v->poll, UV_WRITABLE, on_answer_writable);
}

static void send_refusal(visitor *v, const char *what, const char *why) {
    char text[LINE + 128], away[4096];
    /* Unread bytes would reset the connection, and the answer would be lost. */
    for (int i = 0; i < 32 && ad__discard_receive(v->who.who, v->fd, away, sizeof away) > 0; i++) {}
    snprintf(text, sizeof text, "%s%s", what, why);
    ad__put(&v->answer, "{\"error\":");
    ad__put_json(&v->answer, text);
    ad__put(&v->answer, "}\n");
    send_answer(v);
}

/* ---- requests ---- */

/* Cut the next word off the line; "" at its end. */
static const char *take_word(char **at) {
    char *from = *at + strspn(*at, " ");
    *at = from + strcspn(from, " ");
    if (**at) *(*at)++ = 0;
    return from;
}

static void wait_for_round(visitor *v, ad_rounds *rounds, void (*ask)(ad_front *f, ad_observer *w),
                           void (*done)(ad_observer *w)) {
    v->rounds = rounds;
    v->observer.done = done;
    ask(v->front, &v->observer);
}

static void on_reports_done(ad_observer *w) {
    visitor *v = get_visitor(w);
    ad__status_json(v->front, &v->answer);
    send_answer(v);
}

static void on_health_done(ad_observer *w) {
    visitor *v = get_visitor(w);
    ad__health_json(v->front, &v->answer);
    send_answer(v);
}

/* Execute kill or trace, now that the sessions are known. */
static void on_sessions_known(ad_observer *w) {
    visitor *v = get_visitor(w);
    const char *name = v->name, *why = v->why;
    bool kills = v->kills, ending = false;
    ad_note note = {.kind = kills ? AD_NOTE_KILL : AD_NOTE_TRACE};
    ad_domain *d = ad__status_session(v->front, name, &note.id, &ending);
    if (!d || (ending && !kills)) {
        send_refusal(v, "there is no session ", name);
        return;
    }
    if (kills) snprintf(note.text, sizeof note.text, "ended by an administrator%s%.*s", *why ? ": " : "", REASON, why);
    int fd = kills ? -1 : v->passed, status = 0;
    if (!kills) v->passed = -1;
    status = ad__domain_tell_if_ready(d, &note, fd);
    if (kills) ad__log(session_killed_by, name, v->who.who, why);
    else ad__log(session_traced, name, v->who.who, why);
    if (status) {
        send_refusal(v, "cannot reach the worker of session ", name);
        return;
    }
    ad__put(&v->answer, "{\"%s\":", kills ? "killed" : "traced");
    ad__put_json(&v->answer, name);
    ad__put(&v->answer, "}\n");
    send_answer(v);
}

/* Let a visitor wait for the end of an upgrade, however long that takes. */
static void await_upgrade(visitor *v) {
    v->front->observability.control->upgrades = v;
    uv_poll_stop(&v->poll);
    uv_timer_stop(&v->timer);
}

static void begin_upgrade(visitor *v, const char *how) {
    ad_fault fault = {0};
    if (*how && strcmp(how, "force")) send_refusal(v, "upgrade: expected force or nothing, not ", how);
    else if (ad__upgrade_begin(v->front, *how, v->who.who, &fault)) send_refusal(v, "", fault.text);
    else await_upgrade(v);
}

void ad__control_upgraded(ad_front *f, const char *why, const ad_bytes *text) {
    visitor *v = f->observability.control ? f->observability.control->upgrades : NULL;
    if (!v) return;
    f->observability.control->upgrades = NULL;
    if (why) {
        send_refusal(v, "", why);
    } else {
        ad__bytes_append(&v->answer, text->data, text->size);
        send_answer(v);
    }
}

/* Say what arrayctl needs for an invitation: the file of tokens, the address that is served, and the pin of its key. */
static void answer_invite(visitor *v) {
    ad_front *f = v->front;
    uint8_t pin[AD_SHA256_SIZE];
    char digits[2 * AD_SHA256_SIZE + 1], where[160];
    ad_fault fault = {0};
    if (!ad__listen_tls(f, where, sizeof where)) {
        send_refusal(v, "this server is not reached over a network",
                     ": start it with --tls=0.0.0.0:7312 --self-signed");
    } else if (!*f->config.tokens) {
        send_refusal(v, "this server has no file of tokens", " (option tokens, or self-signed)");
    } else if (ad__tls_pin(f->tls, pin, &fault)) {
        send_refusal(v, "", fault.text);
    } else {
        ad__sha256_text(pin, digits);
        ad__put(&v->answer, "{\"tokens\":");
        ad__put_json(&v->answer, f->config.tokens);
        ad__put(&v->answer, ",\"address\":");
        ad__put_json(&v->answer, where);
        ad__put(&v->answer, ",\"pin\":\"%s\"}\n", digits);
        send_answer(v);
    }
}

static void answer_reload(visitor *v) {
    ad_fault fault = {0};
    if (ad__front_reload(v->front, &fault)) {
        send_refusal(v, "", fault.text);
        return;
    }
    ad__put(&v->answer, "{\"reloaded\":true}\n");
    send_answer(v);
}

/* End the sessions of an owner of a token. */
static void answer_dismiss(visitor *v, const char *name) {
    char who[AD_PRINCIPAL_SIZE];
    if (!ad__principals_is_name(name)) {
        send_refusal(v, "dismiss: expected the name of a token's owner, not ", name);
        return;
    }
    snprintf(who, sizeof who, "token:%s", name);
    const uint64_t n = ad__entrance_dismiss(v->front, who, "an administrator has revoked the token");
    ad__put(&v->answer, "{\"dismissed\":%lu}\n", (unsigned long)n);
    send_answer(v);
}

static void handle_request(visitor *v) {
    char *at = v->line;
    for (char *p = at; *p; p++) /* the line goes into the log and to clients */
        if (*p < ' ' || *p > '~') *p = '?';
    ad_observability *s = &v->front->observability;
    const char *verb = take_word(&at);
    bool kills = !strcmp(verb, "kill"), traces = !strcmp(verb, "trace");
    uv_poll_stop(&v->poll);
    if (!v->admin) {
        send_refusal(v, v->who.who, " may not administer this server: the grant admin is missing");
    } else if (!strcmp(verb, "status") || !strcmp(verb, "names")) {
        v->observer.what = *verb == 'n' ? AD_REPORT_WITH_NAMES : 0;
        wait_for_round(v, &s->reports, ad__collect, on_reports_done);
    } else if (!strcmp(verb, "health")) {
        wait_for_round(v, &s->health, ad__health, on_health_done);
    } else if (!strcmp(verb, "upgrade")) {
        begin_upgrade(v, take_word(&at));
    } else if (!strcmp(verb, "invite")) {
        answer_invite(v);
    } else if (!strcmp(verb, "reload")) {
        answer_reload(v);
    } else if (!strcmp(verb, "dismiss")) {
        answer_dismiss(v, take_word(&at));
    } else if (kills || traces) {
        struct stat st;
        v->kills = kills;
        v->name = take_word(&at);
        v->why = at;
        if (!*v->name) send_refusal(v, verb, ": expected the name of a session");
        else if (traces && (v->passed < 0 || fstat(v->passed, &st) || !S_ISFIFO(st.st_mode)))
            send_refusal(v, verb, ": expected a pipe with the request");
        else wait_for_round(v, &s->reports, ad__collect, on_sessions_known);
    } else {
        send_refusal(v, "no such request: ", verb);
    }
}

static void on_request_readable(uv_poll_t *poll, int status, int events) {
    visitor *v = poll->data;
    int fd = -1;
    (void)events;
    if (ad__discard_is_full(v->who.who)) status = AD_E_LIMIT;
    ssize_t n = status ? 0 : ad__fdpass_receive(v->who.who, v->fd, v->line + v->got, LINE - 1 - v->got, &fd);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (fd >= 0 && v->passed >= 0) ad__discard(v->who.who, fd);
    else if (fd >= 0) v->passed = fd;
    if (n <= 0) {
        end_visit(v);
        return;
    }
    v->got += (size_t)n;
    char *end = memchr(v->line, '\n', v->got);
    if (end || v->got == LINE - 1) {
        memset(end ? end : v->line + v->got, 0, (size_t)(v->line + LINE - (end ? end : v->line + v->got)));
        if (end) handle_request(v);
        else send_refusal(v, "the request is too long", "");
    }
}

/* ---- visits ---- */

static void begin_visit(ad_control *c, int fd) {
    visitor *v = ad__os.calloc(1, sizeof *v);
    if (!v || uv_poll_init(&c->front->loop, &v->poll, fd)) {
        free(v);
        ad__discard_connection(AD_DISCARD_STRANGER, fd);
        return;
    }
    if (c->count == MOST) {
        visitor *oldest = c->visitors;
        while (oldest->next) oldest = oldest->next;
        end_visit(oldest);
    }
    uv_timer_init(&c->front->loop, &v->timer);
    v->front = c->front;
    v->fd = fd;
    v->passed = -1;
    v->handles = 2;
    v->poll.data = v->timer.data = v;
    v->next = c->visitors;
    if (v->next) v->next->prev = v;
    c->visitors = v;
    c->count++;
    uv_timer_start(&v->timer, on_visit_timeout, TIME + (uint64_t)(c->front->config.health_seconds * 1000), 0);
    v->admin = ad__entrance_admin(c->front, fd, &v->who);
    if (!v->admin) ad__entrance_refused(c->front, v->who.who, "control", "the grant admin is missing");
    uv_poll_start(&v->poll, UV_READABLE, on_request_readable);
}

void ad__control_adopt(ad_front *f, int fd) {
    ad_control *c = f->observability.control;
    if (!c) {
        close(fd);
        return;
    }
    begin_visit(c, fd);
    if (c->visitors && c->visitors->fd == fd) await_upgrade(c->visitors);
}

int ad__control_offer(ad_front *f) {
    const ad_control *c = f->observability.control;
    int status = c ? ad__inherit_offer(f, "control", c->path, c->fd) : 0;
    if (!status && c && c->upgrades) status = ad__inherit_offer(f, "upgrade", "", c->upgrades->fd);
    return status;
}

static void on_control_connection(uv_poll_t *poll, int status, int events) {
    ad_control *c = poll->data;
    (void)status, (void)events;
    int fd = ad__os.accept(c->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) begin_visit(c, fd);
    else if (errno != EAGAIN) ad__log_other(true, cannot_accept, c->path, strerror(errno));
}

/* ---- the socket ---- */

/* Find the path of the control socket: beside the server's socket, even if a service manager made that. NULL: no
 * memory. */
static char *get_control_path(const ad_front *f) {
    const ad_config *c = &f->config;
    char usual[AD_SOCKET_PATH], path[AD_SOCKET_PATH + sizeof ".ctl"];
    if (*c->control) return strdup(c->control);
    ad__listen_default(usual);
    snprintf(path, sizeof path, "%s.ctl", f->socket ? f->socket : *c->socket ? c->socket : usual);
    return strdup(path);
}

/* Tell whether a control socket is to be opened: not by default if there is no Unix socket. */
static bool is_control_wanted(const ad_config *c) {
    return *c->control ? strcmp(c->control, "none") != 0 : strcmp(c->socket, "none") != 0;
}

static int open_control_socket(ad_control *c, ad_fault *fault) {
    c->fd = ad__inherit(c->front, "control", c->path);
    int status = c->fd < 0 ? ad__listen_at_path("control", c->path, 0600, &c->fd, fault) : 0;
    if (!status && uv_poll_init(&c->front->loop, &c->poll, c->fd)) {
        close(c->fd);
        status = ad__fault(fault, AD_E_SYSTEM, "option control: cannot watch %s", c->path);
    }
    return status;
}

int ad__control_open(ad_front *f, ad_fault *fault) {
    if (!is_control_wanted(&f->config)) return 0;
    ad_control *c = ad__os.calloc(1, sizeof *c);
    if (!c || !(c->path = get_control_path(f))) {
        free(c);
        return ad__fault(fault, AD_E_MEMORY, "out of host memory");
    }
    c->front = f;
    int status = open_control_socket(c, fault);
    if (status) {
        free(c->path);
        free(c);
        if (*f->config.control) return status;
        /* Only a socket that the configuration names is required: clients are served without. */
        ad__log(no_control_socket, fault->text);
        *fault = (ad_fault){0};
        return 0;
    }
    c->poll.data = c;
    f->observability.control = c;
    uv_poll_start(&c->poll, UV_READABLE, on_control_connection);
    return 0;
}

static void on_control_closed(uv_handle_t *handle) {
    ad_control *c = handle->data;
    close(c->fd);
    free(c->path);
    free(c);
}

void ad__control_close(ad_front *f) {
    ad_control *c = f->observability.control;
    if (!c) return;
    while (c->visitors) end_visit(c->visitors);
    unlink(c->path);
    f->observability.control = NULL;
    uv_close((uv_handle_t *)&c->poll, on_control_closed);
}
