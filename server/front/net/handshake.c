/* The handshake with a new connection. Exactly one frame with hello is read, never a byte more, as the worker reads the
 * rest.
 *
 *     accepted --hello--> admitted --worker ready--> note SESSION --BEGUN--> welcome, end
 *                            |                        (or RESUME: the worker answers)
 *                            +-- wait_for_worker: its worker is starting
 *     any state --error or timeout--> bye, end */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "protocol/message.h"
#include "protocol/rows_request.h"
#include "server/common/discard.h"
#include "server/common/log.h"
#include "server/common/os.h"
#include "server/common/rights.h"
#include "server/front/front.h"
#include "server/front/net/relay.h"
#include "server/front/peers/peers.h"

#define MOST_CONTROL 65536u /* most bytes of hello */
#define WORKER_PATIENCE \
    60000 /* ms that a client waits for a worker: GPUs, and a disk that is read for the first time, take long */

struct ad_handshake {
    ad_handshake *next, *prev;
    ad_front *front;
    uv_poll_t poll;
    uv_timer_t timer;
    int fd, handles; /* handles: how many of the loop's are open */
    bool closing, waiting, welcomed;
    ad_way way;
    ad_relay *relay;         /* relay of a TLS connection, whose inner end is fd; NULL: there is none (any more) */
    uint64_t session;        /* session that a worker was given; 0: none */
    const ad_domain *domain; /* the domain of that worker */
    bool admitted;           /* entrant has the principal */
    bool introduced;         /* entrant had it from the beginning: this is a program of ours */
    ad_entrant entrant;
    char from[64], client[AD_FAULT_TEXT];
    uint64_t version, features, process;
    uint8_t secret[AD_SECRET];
    bool resumes; /* the client comes back to `session`, with `secret`, and has received so many bytes */
    uint64_t received, instance;
    uint8_t head[AD_FRAME_HEADER];
    ad_frame frame;
    uint8_t *control;
    size_t got; /* bytes of header and control block so far */
};

/* ---- its life ---- */

/* A worker may have another descriptor of the connection, which must not be shut down then. */
static void close_connection(const ad_handshake *h) {
    if (!h->session) ad__discard_connection(h->from, h->fd);
    else if (h->way == AD_WAY_UNIX) ad__discard(h->from, h->fd);
    else close(h->fd);
}

static void on_handshake_closed(uv_handle_t *handle) {
    ad_handshake *h = handle->data;
    if (--h->handles) return;
    close_connection(h);
    free(h->control);
    free(h);
}

/* Erase hello, which may hold a token and is not needed any more. */
static void erase_hello(ad_handshake *h) {
    if (h->control) explicit_bzero(h->control, h->frame.control);
}

static const char *get_principal_name(const ad_handshake *h) { return h->admitted ? h->entrant.who : ""; }

static void end_handshake(ad_handshake *h) {
    ad_front *f = h->front;
    if (h->closing) return;
    h->closing = true;
    erase_hello(h);
    ad__relay_unlink(h->relay);
    if (h->prev) h->prev->next = h->next;
    else f->handshakes = h->next;
    if (h->next) h->next->prev = h->prev;
    uv_close((uv_handle_t *)&h->poll, on_handshake_closed);
    uv_close((uv_handle_t *)&h->timer, on_handshake_closed);
    if (f->embedded && !h->welcomed && !h->resumes) ad__front_stop(f, 1, "the connection is over");
}

static int send_control_frame(int fd, const ad_bytes *b) {
    uint8_t frame[AD_FRAME_HEADER + 2048];
    if (b->failed || b->size > sizeof frame - AD_FRAME_HEADER) return AD_E_MEMORY;
    ad__frame_encode(&(ad_frame){.control = (uint32_t)b->size}, frame);
    memcpy(frame + AD_FRAME_HEADER, b->data, b->size);
    size_t size = AD_FRAME_HEADER + b->size;
    /* A new socket has room for this. A client that has filled it is not waited for. */
    return ad__os.send(fd, frame, size, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)size ? 0 : AD_E_CONNECTION;
}

/* Read what has come: unread bytes would make the kernel reset a TCP connection, and the client would not read the
 * reason. */
static void drop_unread(const ad_handshake *h) {
    char away[4096];
    for (int i = 0; i < 32 && ad__discard_receive(h->from, h->fd, away, sizeof away) > 0; i++) {}
    shutdown(h->fd, SHUT_RDWR);
}

static void refuse_client(ad_handshake *h, int code, const char *text) {
    ad_bytes b = AD_BYTES_INIT;
    ad__entrance_refused(h->front, get_principal_name(h), h->from, text);
    ad__encode_bye(&b, code, text);
    send_control_frame(h->fd, &b);
    ad__bytes_free(&b);
    drop_unread(h);
    end_handshake(h);
}

/* Answer a browser, or another program that speaks HTTP, in its language. */
static void refuse_browser(ad_handshake *h) {
    static const char answer[] =
        "HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n"
        "This is the port of arrayd for programs (arrayd.connect, ARRAYD_URL). Its page for people and metrics are at "
        "the address of option metrics.\n";
    ad__entrance_refused(h->front, "", h->from, "a browser: HTTP is spoken at the address of option metrics");
    ad__os.send(h->fd, answer, sizeof answer - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
    drop_unread(h);
    end_handshake(h);
}

static void on_hello_readable(uv_poll_t *poll, int status, int events);

/* ---- handing on ---- */

static bool can_resume(const ad_handshake *h) { return h->features & AD_FEATURE_RESUME && ad__front_resumes(h->front); }

static int send_welcome(ad_handshake *h) {
    const ad_config *c = &h->front->config;
    const ad_note *offer = ad__domain_offer(h->domain);
    ad_welcome w = {.version = h->version,
                    .session = h->session,
                    .window_ops = ad__window_ops(c, &h->entrant.grants),
                    .window_bytes = ad__window_bytes(c, &h->entrant.grants),
                    .max_payload = AD_MAX_PAYLOAD,
                    .max_control = AD_MAX_CONTROL,
                    .max_buffers = ad__most_buffers(c, &h->entrant.grants),
                    .devices = offer->id,
                    .memory = offer->size,
                    .pid = (uint64_t)getpid(),
                    .instance = h->front->instance};
    ad_bytes b = AD_BYTES_INIT;
    memcpy(w.secret, h->secret, sizeof w.secret);
    if (can_resume(h)) w.resume = (uint64_t)(c->resume_time * 1e3);
    if (ad__may_run_kernels(c, h->entrant.who, &h->entrant.grants, offer->who))
        w.features = h->features & AD_FEATURE_KERNELS;
    if (can_resume(h)) w.features |= AD_FEATURE_RESUME;
    w.features |= h->features & (AD_FEATURE_CANCEL | AD_FEATURE_INSIDE);
    snprintf(w.backend, sizeof w.backend, "%.15s", offer->who);
    snprintf(w.device_name, sizeof w.device_name, "%.63s", offer->text);
    snprintf(w.server, sizeof w.server, "arrayd %s", AD_VERSION);
    snprintf(w.name, sizeof w.name, "%s", c->server_name);
    snprintf(w.principal, sizeof w.principal, "%s", h->entrant.who);
    ad__peers_names(h->front->peers.known, w.peers, sizeof w.peers);
    ad__encode_welcome(&b, &w);
    int status = send_control_frame(h->fd, &b);
    ad__bytes_free(&b);
    return status;
}

/* Give the client to a worker with a duplicate of its socket. The original stays until the worker says that it has
 * begun. AD_E_SYSTEM, AD_E_CONNECTION, AD_E_MEMORY. */
static int send_to_worker(ad_handshake *h, ad_domain *d) {
    if (getrandom(h->secret, sizeof h->secret, 0) != (ssize_t)sizeof h->secret) return AD_E_SYSTEM;
    int fd = ad__os.dup(h->fd);
    if (fd < 0) return AD_E_SYSTEM;
    h->waiting = false;
    h->domain = d;
    h->session = ++h->front->last_session;
    uv_poll_stop(&h->poll);
    ad_note note = {.kind = AD_NOTE_SESSION,
                    .id = h->session,
                    .grants = h->entrant.grants,
                    .process = ad__entrance_process(h->way, h->fd, h->process),
                    .resumable = can_resume(h)};
    memcpy(note.secret, h->secret, sizeof note.secret);
    memcpy(note.who, h->entrant.who, sizeof note.who);
    memcpy(note.text, h->client, sizeof note.text);
    const int status = ad__domain_give(d, &note, fd);
    if (!status) ad__session_entry_set_token(h->front, h->session, d, &h->entrant);
    return status;
}

static void wait_for_worker(ad_handshake *h) {
    if (!h->waiting) uv_poll_stop(&h->poll);
    h->waiting = true;
}

/* Pass a returning client on to the worker that has its session, which checks the rest and answers. */
static void resume_session(ad_handshake *h) {
    ad_front *f = h->front;
    ad_domain *d = NULL;
    const bool by_key = h->session & AD_FORK_KEY;
    bool own;
    if (by_key) h->session = ad__session_entry_by_key(f, h->session, h->entrant.who);
    if (h->instance != f->instance) {
        refuse_client(h, AD_E_RESUME, "the server has been started anew since");
    } else if (by_key &&
               !h->session) { /* the parent's messages may be on their way, or wait for the parent to come back */
        refuse_client(h, AD_E_TIMEOUT, "the session has not begun: the fork has not been executed");
    } else if (!(d = ad__session_entry_find(f, h->session, h->entrant.who, &own))) {
        refuse_client(h, AD_E_RESUME, "the session is over: it has ended, its resume-time is, or its worker died");
    } else if (!own) {
        refuse_client(h, AD_E_RESUME, "the session is another principal's");
    } else {
        ad_note note = {.kind = AD_NOTE_RESUME,
                        .id = h->session,
                        .size = h->received,
                        .process = ad__entrance_process(h->way, h->fd, h->process)};
        memcpy(note.secret, h->secret, sizeof note.secret);
        memcpy(note.who, h->entrant.who, sizeof note.who);
        const bool ready = ad__domain_is_ready(d) && !ad__migration_is_under_way(f, h->entrant.who);
        int fd = ready ? ad__os.dup(h->fd) : -1;
        if (fd >= 0 && !ad__domain_tell(d, &note, fd)) end_handshake(h);
        else wait_for_worker(h); /* the worker was killed or the session is migrating; another worker goes on with it */
    }
}

void ad__handshake_begun(ad_front *f, uint64_t session) {
    ad_handshake *h = f->handshakes;
    while (h && (h->session != session || h->resumes)) h = h->next;
    if (!h) return;
    int status = send_welcome(h);
    if (status) ad__log(client_lost, session, h->entrant.who, h->from, h->client);
    else ad__log(client, session, h->entrant.who, h->from, h->client);
    if (status) shutdown(h->fd, SHUT_RDWR);
    else h->welcomed = true;
    end_handshake(h);
}

static void on_handshake_timeout(uv_timer_t *timer) {
    ad_handshake *h = timer->data;
    refuse_client(h, AD_E_TIMEOUT,
                  h->session   ? "the worker does not answer"
                  : h->waiting ? "the worker has not started within 60 s; the server's log says why"
                               : "hello-timeout: no hello has come");
}

static ad_clients get_clients(const ad_handshake *h) {
    return h->entrant.grants.may & AD_GRANT_PEER ? AD_CLIENTS_PEERS : AD_CLIENTS_OWN;
}

/* Count the sessions that there are, and the other clients that wait for a worker to get new ones: of a principal, or
 * (NULL) of all. */
static uint64_t count_sessions(const ad_handshake *but, const char *who, ad_clients clients) {
    uint64_t n = ad__session_entry_count(but->front, who, clients);
    for (const ad_handshake *h = but->front->handshakes; h; h = h->next)
        n += h != but && h->waiting && !h->resumes && (!who || !strcmp(h->entrant.who, who)) &&
             (clients == AD_CLIENTS_ALL || clients == get_clients(h));
    return n;
}

/* Check that the server may have one more session. Sessions that wait for their clients are given up, as these may have
 * ended. Servers that come for others have a quarter of all sessions, and make room among themselves. AD_E_LIMIT. */
static int check_all_sessions(const ad_handshake *h, ad_fault *fault) {
    ad_front *f = h->front;
    const uint64_t most = f->config.sessions, all = count_sessions(h, NULL, AD_CLIENTS_ALL),
                   peers = count_sessions(h, NULL, AD_CLIENTS_PEERS);
    const bool for_other = get_clients(h) == AD_CLIENTS_PEERS, fits = !for_other || peers < (most + 3) / 4;
    if ((all < most && fits) || ad__session_entry_make_room(f, NULL, for_other ? AD_CLIENTS_PEERS : AD_CLIENTS_ALL))
        return 0;
    return ad__fault(
        fault, AD_E_LIMIT, "sessions: the server has %lu sessions%s, as many as it takes (option sessions)",
        (unsigned long)(fits ? all : peers), fits ? "" : " of servers that come for others, a quarter of all");
}

/* Check that server and principal may have one more session, as above. AD_E_LIMIT. */
static int check_session_limits(const ad_handshake *h, ad_fault *fault) {
    const char *who = h->entrant.who;
    const uint64_t most = h->entrant.grants.sessions;
    int status = check_all_sessions(h, fault);
    if (status || !most || count_sessions(h, who, get_clients(h)) < most ||
        ad__session_entry_make_room(h->front, who, get_clients(h)))
        return status;
    return ad__fault(
        fault, AD_E_LIMIT,
        "sessions: %s has %lu, as many as it may have at a time (grant sessions=N in the file of option principals "
        "or tokens, or option sessions-each)",
        who, (unsigned long)most);
}

static void find_worker(ad_handshake *h) {
    ad_front *f = h->front;
    ad_fault fault = {0};
    ad_domain_state state;
    if (check_session_limits(h, &fault)) {
        refuse_client(h, fault.code, fault.text);
        return;
    }
    ad_domain *d = ad__domain_of(f, &h->entrant, &state, &fault);
    if (!d || state == AD_DOMAIN_FAILED) {
        refuse_client(h, AD_E_CONNECTION, fault.text);
    } else if (state == AD_DOMAIN_READY) {
        int status = send_to_worker(h, d);
        if (status) h->session = 0;
        if (status == AD_E_CONNECTION) wait_for_worker(h); /* the worker is dying: wait for another one */
        else if (status) refuse_client(h, AD_E_SYSTEM, "out of descriptors or host memory: try again");
    } else {
        wait_for_worker(h);
    }
}

void ad__handshake_lost(ad_front *f, const ad_domain *d, uint64_t session) {
    for (ad_handshake *h = f->handshakes, *next; h; h = next) {
        next = h->next;
        if (!h->session || h->domain != d || (session && h->session != session)) continue;
        if (!session) ad__domain_forget(f, d, h->session);
        h->session = 0;
        if (session || f->stopping) refuse_client(h, AD_E_CONNECTION, "the worker could not take the session");
        else find_worker(h);
    }
}

void ad__handshake_wake(ad_front *f) {
    for (ad_handshake *h = f->handshakes, *next; h; h = next) {
        next = h->next;
        if (h->waiting) (h->resumes ? resume_session : find_worker)(h);
    }
}

uint64_t ad__handshake_count(const ad_front *f) {
    uint64_t n = 0;
    for (const ad_handshake *h = f->handshakes; h; h = h->next) n++;
    return n;
}

/* Tell whether to tell a client why its connection ends. A client on this machine is told even before its hello, which
 * may be on its way. */
static bool must_tell_reason(const ad_handshake *h) { return h->waiting || h->session || h->way == AD_WAY_UNIX; }

void ad__handshake_close_all(ad_front *f, const char *why) {
    while (f->handshakes) {
        if (must_tell_reason(f->handshakes)) refuse_client(f->handshakes, AD_E_CONNECTION, why);
        else end_handshake(f->handshakes);
    }
}

void ad__handshake_refuse_all(ad_front *f, const char *who, const char *why) {
    for (ad_handshake *h = f->handshakes, *next; h; h = next) {
        next = h->next;
        if (h->admitted && h->waiting && (!strcmp(h->entrant.who, who) || !strcmp(h->entrant.token, who)))
            refuse_client(h, AD_E_DENIED, why);
    }
}

void ad__handshake_refuse_expired(ad_front *f, int64_t now, const char *why) {
    for (ad_handshake *h = f->handshakes, *next; h; h = next) {
        next = h->next;
        if (h->admitted && h->waiting && h->entrant.expires && h->entrant.expires <= now)
            refuse_client(h, AD_E_DENIED, why);
    }
}

/* ---- an upgrade ---- */

/* Tell whether the client has sent nothing, so that the next front can begin with it. */
static bool has_said_nothing(const ad_handshake *h) { return !h->got && !h->introduced && h->way != AD_WAY_TLS; }

unsigned ad__handshake_pause(ad_front *f, bool pause) {
    unsigned busy = 0;
    for (ad_handshake *h = f->handshakes; h; h = h->next) {
        if (!has_said_nothing(h)) busy++;
        else if (pause) uv_poll_stop(&h->poll);
        else uv_poll_start(&h->poll, UV_READABLE, on_hello_readable);
    }
    return busy;
}

void ad__handshake_end_busy(ad_front *f) {
    for (ad_handshake *h = f->handshakes, *next; h; h = next) {
        next = h->next;
        if (!has_said_nothing(h)) end_handshake(h);
    }
}

int ad__handshake_offer(ad_front *f) {
    static const char *const names[] = {"hello-unix", "hello-tcp"};
    int status = 0;
    for (const ad_handshake *h = f->handshakes; h && !status; h = h->next)
        if (has_said_nothing(h)) status = ad__inherit_offer(f, names[h->way], "", h->fd);
    return status;
}

void ad__handshake_adopt(ad_front *f) {
    char unused[8];
    int fd;
    while ((fd = ad__inherit_any(f, "hello-unix", unused, sizeof unused)) >= 0) ad__handshake_begin(f, fd, AD_WAY_UNIX);
    while ((fd = ad__inherit_any(f, "hello-tcp", unused, sizeof unused)) >= 0) ad__handshake_begin(f, fd, AD_WAY_TCP);
}

/* ---- hello ---- */

/* Append the process's name and id from the kernel, as most clients call themselves the same. */
static void append_process_name(ad_handshake *h) {
    char path[64], comm[32] = "";
    struct ucred peer;
    socklen_t size = sizeof peer;
    if (h->way != AD_WAY_UNIX || getsockopt(h->fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) || peer.pid <= 0) return;
    snprintf(path, sizeof path, "/proc/%d/comm", (int)peer.pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, comm, sizeof comm - 1);
    if (fd >= 0) close(fd);
    comm[n > 0 ? strcspn(comm, "\n") : 0] = 0;
    size_t at = strlen(h->client);
    snprintf(h->client + at, sizeof h->client - at, " (%s%s%d)", comm, *comm ? " " : "", (int)peer.pid);
}

static int read_new_client(ad_handshake *h, const ad_message *m, ad_fault *fault) {
    if (m->u[0] > AD_PROTOCOL_VERSION || m->u[1] < AD_PROTOCOL_VERSION)
        return ad__fault(fault, AD_E_VERSION, "the client speaks versions %lu to %lu, this server %d",
                         (unsigned long)m->u[0], (unsigned long)m->u[1], AD_PROTOCOL_VERSION);
    h->version = AD_PROTOCOL_VERSION;
    h->features = m->u[2];
    h->process = m->u[3];
    snprintf(h->client, sizeof h->client, "%.*s", (int)(m->s[0].size < 100 ? m->s[0].size : 100), m->s[0].data);
    append_process_name(h);
    return 0;
}

static int read_returning_client(ad_handshake *h, const ad_message *m, ad_fault *fault) {
    if (m->u[0] != AD_PROTOCOL_VERSION)
        return ad__fault(fault, AD_E_VERSION, "the client speaks version %lu, this server %d", (unsigned long)m->u[0],
                         AD_PROTOCOL_VERSION);
    memcpy(h->secret, m->s[0].data, sizeof h->secret);
    h->resumes = true;
    h->instance = m->u[1];
    h->session = m->u[2];
    h->received = m->u[3];
    h->process = m->u[4];
    return 0;
}

static int admit_client(ad_handshake *h, const ad_message *m, ad_fault *fault) {
    ad_fault nameless = {0};
    if (h->introduced) {
        h->admitted = true;
        return 0;
    }
    const char *certificate = ad__relay_certificate(h->relay, &nameless);
    if (nameless.code) return ad__fault(fault, AD_E_DENIED, "%s", nameless.text);
    int status = ad__entrance_check(h->front, h->way, h->fd, m->s[1], certificate, &h->entrant, fault);
    if (m->s[1].size) explicit_bzero((char *)(uintptr_t)m->s[1].data, m->s[1].size);
    if (status) return status;
    h->admitted = true;
    ad__relay_admit(h->relay);
    return 0;
}

static int read_hello(ad_handshake *h, ad_reader *r, ad_arena *arena, ad_fault *fault) {
    ad_message m;
    int status = ad__reader_begin(r, h->control, h->frame.control, fault);
    if (status) return status;
    const int result = ad__reader_next(r, arena, AD_BIT(AD_CLASS_HELLO), &m, fault);
    if (result < 0) return result; /* the frame has something, so there is a message or an error */
    if (m.size != h->frame.control) return ad__fault(fault, AD_E_PROTOCOL, "the first frame is not one hello");
    status = m.opcode == AD_REQ_HELLO ? read_new_client(h, &m, fault) : read_returning_client(h, &m, fault);
    return status ? status : admit_client(h, &m, fault);
}

static void handle_hello(ad_handshake *h) {
    ad_reader *r = NULL;
    ad_arena arena = AD_ARENA_INIT;
    ad_fault fault = {0};
    int status = ad__reader_new(&r);
    if (!status) status = read_hello(h, r, &arena, &fault);
    ad__reader_free(r);
    ad__arena_free(&arena);
    erase_hello(h);
    uv_timer_start(&h->timer, on_handshake_timeout, WORKER_PATIENCE, 0);
    if (status) refuse_client(h, status, *fault.text ? fault.text : ad__error_text(status));
    else if (h->resumes) resume_session(h);
    else find_worker(h);
}

static int read_hello_header(ad_handshake *h, ad_fault *fault) {
    int status = ad__frame_decode(h->head, MOST_CONTROL, 0, &h->frame, fault);
    if (status) return status;
    if (h->frame.flags) return ad__fault(fault, AD_E_PROTOCOL, "not the frame of a hello");
    h->control = ad__os.malloc(h->frame.control);
    return h->control ? 0 : ad__fault(fault, AD_E_MEMORY, "out of host memory");
}

static void on_hello_readable(uv_poll_t *poll, int status, int events) {
    ad_handshake *h = poll->data;
    ad_fault fault = {0};
    (void)events;
    bool in_head = h->got < AD_FRAME_HEADER;
    uint8_t *to = in_head ? h->head + h->got : h->control + (h->got - AD_FRAME_HEADER);
    size_t want = in_head ? AD_FRAME_HEADER - h->got : h->frame.control + AD_FRAME_HEADER - h->got;
    ssize_t n = status ? 0 : ad__discard_receive(h->from, h->fd, to, want);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) {
        end_handshake(h);
        return;
    }
    h->got += (size_t)n;
    if ((size_t)n < want) return;
    if (!in_head) {
        handle_hello(h);
    } else if ((status = read_hello_header(h, &fault))) {
        const char *other = ad__frame_name_stranger(h->head, sizeof h->head);
        if (other && !strcmp(other, "HTTP")) refuse_browser(h);
        else if (other) refuse_client(h, AD_E_PROTOCOL, "TLS is spoken at a port without it (option tcp, url tcp:)");
        else refuse_client(h, status, fault.text);
    } else {
        on_hello_readable(poll, 0, UV_READABLE); /* hello has probably come with its header */
    }
}

/* ---- the beginning ---- */

/* Find the oldest connection that has not been admitted: from one address, or (NULL) from any. NULL: there is none. */
static ad_handshake *find_oldest_stranger(ad_front *f, const char *from, uint64_t *count) {
    ad_handshake *oldest = NULL;
    *count = 0;
    for (ad_handshake *h = f->handshakes; h; h = h->next) {
        if (h->admitted || (from && strcmp(h->from, from))) continue;
        oldest = h;
        ++*count;
    }
    return oldest;
}

/* Make room for a connection by ending the oldest that has not been admitted, if there are too many. Clients that
 * say hello at once are admitted long before. An address that opens many connections loses its own ones first. */
static void evict_oldest_stranger(ad_front *f, const char *from, ad_way way) {
    uint64_t count, limit = f->config.handshakes_each;
    ad_handshake *oldest = way == AD_WAY_UNIX ? NULL : find_oldest_stranger(f, from, &count);
    if (!oldest || count < limit) {
        oldest = find_oldest_stranger(f, NULL, &count);
        limit = f->config.handshakes;
    }
    if (!oldest || count < limit) return;
    ad__entrance_refused(f, "", oldest->from, "too many have not said hello");
    end_handshake(oldest);
}

static ad_handshake *create_handshake(ad_front *f, int fd, ad_way way) {
    ad_handshake *h = ad__os.calloc(1, sizeof *h);
    if (!h) {
        ad__discard_connection(AD_DISCARD_STRANGER, fd);
        return NULL;
    }
    h->front = f;
    h->fd = fd;
    h->way = way;
    ad__entrance_from(fd, way, h->from, sizeof h->from);
    if (way == AD_WAY_TLS && ad__relay_open(f, fd, h->from, &h->relay, &h->fd)) {
        free(h);
        return NULL;
    }
    return h;
}

static void begin_handshake(ad_front *f, int fd, ad_way way, const ad_entrant *who) {
    ad_handshake *h = create_handshake(f, fd, way);
    if (!h) return;
    h->introduced = who != NULL;
    if (who) h->entrant = *who;
    if (uv_poll_init(&f->loop, &h->poll, h->fd)) {
        ad__relay_unlink(h->relay);
        ad__discard_connection(h->from, h->fd);
        free(h);
        return;
    }
    uv_timer_init(&f->loop, &h->timer);
    h->handles = 2;
    h->poll.data = h->timer.data = h;
    evict_oldest_stranger(f, h->from, way);
    h->next = f->handshakes;
    if (h->next) h->next->prev = h;
    f->handshakes = h;
    uv_timer_start(&h->timer, on_handshake_timeout, (uint64_t)(f->config.hello_timeout * 1000), 0);
    uv_poll_start(&h->poll, UV_READABLE, on_hello_readable);
}

void ad__handshake_begin(ad_front *f, int fd, ad_way way) { begin_handshake(f, fd, way, NULL); }

void ad__handshake_begin_as(ad_front *f, int fd, const ad_entrant *who) { begin_handshake(f, fd, AD_WAY_UNIX, who); }
