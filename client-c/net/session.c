/* Sessions: opening with the handshake, closing, and the end of a connection. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "client-c/client.h"

#define CONNECT_NS 10000000000ull /* time for a connection and its TLS handshake */
#define WELCOME_NS 70000000000ull /* time for welcome: more than a server waits for its worker to start */
#define LEAST_CONTROL (256u << 10)
#define LEAST_WINDOW (64u << 10)

static atomic_uint_fast64_t serials = 1;

uint64_t ad__session_next_serial(void) { return atomic_fetch_add(&serials, 1); }

uint64_t ad__now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* ---- death ---- */

/* Close the descriptors that have not been sent. A child must see that its connection is closed. */
static void close_unsent(ad_session *s) {
    if (s->output.gathered_pass.fd >= 0) close(s->output.gathered_pass.fd);
    s->output.gathered_pass.fd = -1;
    if (s->output.sending_pass.fd < 0 || s->output.writing) return; /* the writing thread closes it */
    close(s->output.sending_pass.fd);
    s->output.sending_pass.fd = -1;
}

void ad__kill_session_locked(ad_session *s, const char *text) {
    if (!s->dead) {
        s->dead = true;
        snprintf(s->why, sizeof s->why, "%s", text);
        shutdown(s->connection.fd, SHUT_RDWR);
        close_unsent(s);
    }
    ad__wake_all(s);
    pthread_cond_signal(&s->flusher.work);
}

void ad__kill_session(ad_session *s, const char *text) {
    pthread_mutex_lock(&s->lock);
    ad__kill_session_locked(s, text);
    pthread_mutex_unlock(&s->lock);
}

int ad__fail_dead(const ad_session *s) {
    return ad__fail(s->handshake.refused ? s->handshake.refused : AD_E_CONNECTION, "%s%s", s->why,
                    s->handshake.welcomed ? "; the session and its arrays are lost: connect again for a new one" : "");
}

int ad__fail_foreign(void) {
    return ad__fail(AD_E_CONNECTION, "the session is the parent process's, and this one could not go on with its "
                                     "arrays; open one after fork()");
}

/* Fail if the session is over. */
static int check_alive(ad_session *s) {
    if (ad__is_foreign(s)) return 0;
    pthread_mutex_lock(&s->lock);
    int status = s->dead ? ad__fail_dead(s) : 0;
    pthread_mutex_unlock(&s->lock);
    return status;
}

int ad__fail_strangers(ad_session *a, ad_session *b) {
    int status = check_alive(a);
    if (!status) status = check_alive(b);
    if (status) return status;
    return ad__fail(AD_E_VALUE,
                    "the arrays belong to different sessions: %llu of %.150s and %llu of %.150s; fetch the elements of "
                    "one and send them to the other",
                    (unsigned long long)a->welcome.session, a->connection.address.url,
                    (unsigned long long)b->welcome.session, b->connection.address.url);
}

/* ---- making and unmaking ---- */

void ad__session_init_conditions(ad_session *s) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&s->waiting.changed, &attributes);
    pthread_cond_init(&s->flusher.work, &attributes);
    pthread_condattr_destroy(&attributes);
}

static void destroy_session(ad_session *s) {
    ad__sessions_remove(s);
    ad__pool_detach(s);
    ad__ring_leave(s);
    if (!ad__is_foreign(s))
        ad__secure_close(s->connection.secure); /* in a fork's child its lock may be held by a thread of the parent */
    if (s->output.sending_pass.fd >= 0) close(s->output.sending_pass.fd);
    ad__resume_end(s);
    if (s->connection.fd >= 0) close(s->connection.fd);
    if (s->connection.embedded.door >= 0) close(s->connection.embedded.door);
    ad__bytes_free(&s->output.gathered);
    ad__bytes_free(&s->output.sending);
    ad__receiver_close(&s->input.receiver);
    if (s->tracing.reader) ad__reader_free(s->tracing.reader);
    ad__arena_free(&s->tracing.arena);
    free(s->frees.ids);
    ad__mirrors_drop(s);
    if (!ad__is_foreign(s)) { /* in a fork's child the threads that waited for them do not exist */
        pthread_cond_destroy(&s->flusher.work);
        pthread_cond_destroy(&s->waiting.changed);
        pthread_mutex_destroy(&s->lock);
    }
    free(s);
}

static int create_session(ad_session **out) {
    ad_watch_forks();
    ad_session *s = calloc(1, sizeof *s);
    if (!s) return ad__fail_memory();
    const char *trace = getenv("AD_TRACE");
    s->connection.fd = s->output.gathered_pass.fd = s->output.sending_pass.fd = s->connection.embedded.door = -1;
    s->references.all = 1;
    s->next_id.buffer = s->next_id.request = s->next_id.stream = s->next_id.event = s->next_id.window =
        s->next_id.module = 1;
    s->serial = ad__session_next_serial();
    s->generation = atomic_load(&ad__generation);
    s->tracing.on = trace && *trace && strcmp(trace, "0") != 0;
    s->window.ops = s->window.bytes = UINT64_MAX / 4;
    if (pthread_mutex_init(&s->lock, NULL) != 0) {
        free(s);
        return ad__fail_memory();
    }
    ad__session_init_conditions(s);
    ad__sessions_add(s);
    if (ad__receiver_open(&s->input.receiver) != 0 || (s->tracing.on && ad__reader_new(&s->tracing.reader))) {
        destroy_session(s);
        return ad__fail_memory();
    }
    *out = s;
    return 0;
}

ad_session *ad__session_retain(ad_session *s) {
    atomic_fetch_add_explicit(&s->references.all, 1, memory_order_relaxed);
    return s;
}

void ad__session_release(ad_session *s) {
    if (atomic_fetch_sub_explicit(&s->references.all, 1, memory_order_acq_rel) == 1) destroy_session(s);
}

/* ---- opening ---- */

/* Refuse a server of another version, and one whose limits leave no room for one message. */
static int check_welcome(const ad_session *s) {
    const ad_welcome *w = &s->welcome;
    if (w->version != AD_PROTOCOL_VERSION)
        return ad__fail(AD_E_VERSION, "the server chose protocol version %llu", (unsigned long long)w->version);
    if (w->max_control < LEAST_CONTROL || w->max_payload == 0 || w->window_ops < 16 || w->window_bytes < LEAST_WINDOW)
        return ad__fail(AD_E_PROTOCOL, "the server's limits are too small");
    return 0;
}

static int fail_handshake(ad_session *s) {
    char fate[80];
    ad__embedded_describe_exit(s->connection.embedded.pid, fate, sizeof fate);
    return ad__fail(s->handshake.refused ? s->handshake.refused : AD_E_CONNECTION, "%s: %s%s",
                    s->connection.address.url, s->why, fate);
}

/* Tokens are sent over TLS, or within this machine. */
int ad__check_confidential(const ad_session *s, int fd, const ad_secure *secure) {
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } a = {0};
    socklen_t size = sizeof a;
    if (secure || getpeername(fd, &a.any, &size) != 0) return 0;
    bool local = a.any.sa_family == AF_INET    ? ntohl(a.v4.sin_addr.s_addr) >> 24 == 127
                 : a.any.sa_family == AF_INET6 ? IN6_IS_ADDR_LOOPBACK(&a.v6.sin6_addr)
                                               : true;
    return local ? 0
                 : ad__fail(AD_E_DENIED, "%s: a token is not sent without encryption beyond this machine; use tls:",
                            s->connection.address.url);
}

uint64_t ad__get_own_process(const ad_session *s) {
    return ad__is_remote(&s->connection.address) ? 0 : (uint64_t)getpid();
}

/* Send hello, and wait for welcome or bye. */
static int greet_server(ad_session *s, ad_credentials *credentials, uint64_t deadline) {
    uint64_t checked = ad__now();
    const char *token = credentials->token;
    char client[128];
    snprintf(client, sizeof client, "%s, libarrayd " AD_VERSION, credentials->name);
    int status = *token ? ad__check_confidential(s, s->connection.fd, s->connection.secure) : 0;
    if (status) return status;
    pthread_mutex_lock(&s->lock);
    size_t mark = s->output.gathered.size;
    ad__bytes_append(&s->output.gathered, (uint8_t[AD_FRAME_HEADER]){0}, AD_FRAME_HEADER);
    status = ad__encode_hello(&s->output.gathered, AD_PROTOCOL_VERSION, AD_PROTOCOL_VERSION,
                              AD_FEATURE_KERNELS | AD_FEATURE_RESUME | AD_FEATURE_CANCEL | AD_FEATURE_INSIDE, client,
                              *token ? token : NULL, ad__get_own_process(s));
    s->output.frame = mark;
    if (!status) status = ad__push_output(s);
    while (!status && !s->handshake.welcomed && !s->dead) {
        if (ad__now() >= deadline)
            status = ad__fail(AD_E_TIMEOUT,
                              "%s: the server took the connection, but has not said welcome within 70 seconds; its log "
                              "says what it does",
                              s->connection.address.url);
        else status = ad__wait(s, &checked);
    }
    if (s->dead) status = fail_handshake(s);
    else if (!status) status = check_welcome(s);
    s->window.ops = s->welcome.window_ops;
    s->window.bytes = s->welcome.window_bytes;
    s->encoded.bytes = s->output.loaded = s->output.place = 0; /* the window and the resumed stream begin after hello */
    s->window.count = 0;
    if (!status) ad__resume_begin(s, credentials);
    if (*token && s->output.sending.data) explicit_bzero(s->output.sending.data, s->output.sending.capacity);
    pthread_mutex_unlock(&s->lock);
    return status;
}

void ad__tune_socket(const ad_session *s, int fd) {
    const struct timeval step = {.tv_usec = AD_WAIT_STEP_US};
    const int room = AD_SEND_BUFFER;
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &step, sizeof step);
    if (!ad__is_remote(&s->connection.address)) /* TCP adapts the size of its buffer by itself */
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
}

/* door: a socket by which a server of this machine takes connections, which the session owns; -1: there is none.
 * *missing: no server listens at the address, so that the next one may be tried. */
static int open_with_credentials(const ad_server_address *address, ad_credentials *c, int door, ad_session **out,
                                 bool *missing) {
    const uint64_t deadline = ad__now() + CONNECT_NS;
    ad_session *s = NULL;
    int status = create_session(&s);
    if (status) return status;
    s->connection.embedded.door = door;
    s->connection.address = *address;
    explicit_bzero(s->connection.address.token, sizeof s->connection.address.token);
    status = ad__connect(address, deadline, &s->connection.fd, &s->connection.embedded);
    if (status) {
        *missing = status == AD_E_CONNECTION;
        ad__session_release(s);
        return status;
    }
    ad__tune_socket(s, s->connection.fd);
    if (address->transport == AD_URL_TLS)
        status = ad__secure_open(address, c, deadline, &s->connection.fd, &s->connection.secure);
    if (!status) status = greet_server(s, c, ad__now() + WELCOME_NS);
    if (status) ad_session_close(s);
    else *out = s;
    return status;
}

static int open_address(const ad_server_address *address, const ad_connection *options, ad_session **out,
                        bool *missing) {
    ad_credentials c = {0};
    int status = ad__credentials_find(address, options, &c);
    if (!status) status = open_with_credentials(address, &c, -1, out, missing);
    ad__credentials_forget(&c);
    return status;
}

int ad__session_open_by_door(int door, const char *name, ad_session **out) {
    const ad_server_address address = {.transport = AD_URL_EMBEDDED, .url = "the server that started this program"};
    ad_credentials c = {0};
    bool missing;
    snprintf(c.name, sizeof c.name, "%s", name);
    return open_with_credentials(&address, &c, door, out, &missing);
}

/* Say how a server is started where a program was told to find one. */
static int advise_start(const ad_server_address *a) {
    char why[300];
    snprintf(why, sizeof why, "%s", ad_error_message());
    if (a->transport == AD_URL_UNIX)
        return ad__fail(AD_E_CONNECTION, "%s; `arrayd --socket=%s &` starts one there", why, a->host);
    return ad__fail(AD_E_CONNECTION, "%s; a server listens there if it has the option %s, as 127.0.0.1:%s", why,
                    a->transport == AD_URL_TLS ? "tls" : "tcp", a->port);
}

int ad_session_open(const char *url, ad_session **session) { return ad_session_open_with(url, NULL, session); }

int ad_session_open_with(const char *url, const ad_connection *options, ad_session **session) {
    ad_server_address places[AD_URL_CANDIDATES];
    bool missing = true;
    int n = 1, status = 0;
    if (!url) url = getenv("ARRAYD_URL");
    if (url && *url) status = ad__url_parse(url, places);
    else n = ad__url_candidates(places);
    if (status) return status;
    if (n == 0)
        return ad__fail(AD_E_URL,
                        "no server is named, and there is none on this system: set ARRAYD_URL to the url that "
                        "arrayctl invite prints, tcp:host:port or tls:host:port");
    for (int i = 0; i < n && missing; i++) {
        missing = false;
        status = open_address(&places[i], options, session, &missing);
    }
    if (missing && url && *url && places[0].transport != AD_URL_EMBEDDED) status = advise_start(&places[0]);
    explicit_bzero(places, sizeof places); /* a url may hold a token */
    return status;
}

void ad_session_close(ad_session *s) {
    if (!s) return;
    if (!ad__is_foreign(s)) {
        ad__send_leave(s);
        ad__kill_session(s, "the session is closed");
        ad__flusher_stop(s);
        if (s->connection.embedded.pid > 0) ad__embedded_reap(&s->connection.embedded);
    }
    ad__session_release(s);
}

void ad_session_get_info(ad_session *s, ad_session_info *info) {
    bool foreign = ad__is_foreign(s);
    if (!foreign) pthread_mutex_lock(&s->lock);
    *info = (ad_session_info){
        .url = s->connection.address.url,
        .server = s->welcome.server,
        .backend = s->welcome.backend,
        .device_name = s->welcome.device_name,
        .session = s->handshake.inherited ? 0 : s->welcome.session,
        .version = s->welcome.version,
        .devices = s->welcome.devices,
        .memory = s->welcome.memory,
        .operations = s->encoded.ops,
        .round_trips = s->counts.round_trips,
        .frees = s->counts.frees,
        .lent = atomic_load(&s->counts.lent),
        .copied = atomic_load(&s->counts.copied),
        .messages_bytes = s->encoded.bytes + s->output.gathered.size,
        .name = s->welcome.name,
        .principal = s->welcome.principal,
        .peers = s->welcome.peers,
        .kernels = (s->welcome.features & AD_FEATURE_KERNELS) != 0,
    };
    if (!foreign) pthread_mutex_unlock(&s->lock);
}

void ad_session_set_interrupt(ad_session *s, int (*check)(void *), void *argument) {
    if (ad__is_foreign(s)) return;
    pthread_mutex_lock(&s->lock);
    s->calls.interrupt.check = check;
    s->calls.interrupt.argument = argument;
    pthread_mutex_unlock(&s->lock);
}

/* A note takes no room of the window: the program may be waiting for room. */
int ad_cancel(ad_session *s) {
    if (ad__is_foreign(s)) return ad__fail_foreign();
    if (!(s->welcome.features & AD_FEATURE_CANCEL))
        return ad__fail(AD_E_UNSUPPORTED, "this server cannot cancel what it has been sent");
    pthread_mutex_lock(&s->lock);
    if (s->dead) {
        int status = ad__fail_dead(s);
        pthread_mutex_unlock(&s->lock);
        return status;
    }
    ad__seal_frame(s, 0);
    ad__append_note(s, AD_FRAME_CANCEL, 0);
    int status = s->output.gathered.failed ? ad__fail_memory() : ad__push_output(s);
    pthread_mutex_unlock(&s->lock);
    return status;
}

int ad_flush(ad_session *s) {
    if (ad__is_foreign(s)) return ad__fail_foreign();
    pthread_mutex_lock(&s->lock);
    int status = s->dead ? ad__fail_dead(s) : ad__push_output(s);
    pthread_mutex_unlock(&s->lock);
    return status;
}
