/* Sessions of forked processes.
 *
 *     parent's client ─── socket ─── session ── its buffers
 *          │ fork                        │         │ snapshots, with the same ids
 *     child's client ─── pair ────── session ── its buffers
 *
 * Before a client forks, it sends one end of a socket pair. The child's session has all buffers of the parent's
 * session, as snapshots, like the rest of its memory. The child goes on at the other end, which the kernel closes if
 * the child ends or becomes another program. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/common/discard.h"
#include "server/common/log.h"
#include "server/common/os.h"
#include "server/common/report.h"
#include "server/common/rights.h"
#include "server/worker/handlers.h"
#include "server/worker/sharing/sharing.h"
#include "server/worker/sharing/leases.h"
#include "server/worker/spill/spill.h"
#include "server/worker/session/session.h"

/* Send the child's welcome. It does not name the server's instance, which the child knows from its parent. */
static int send_welcome(ad_worker_session *child, ad_fault *fault) {
    const ad_worker *w = child->worker;
    const ad_config *c = &w->config;
    ad_welcome hello = {.version = AD_PROTOCOL_VERSION,
                        .features = (child->rights.may_run_kernels ? AD_FEATURE_KERNELS : 0) | AD_FEATURE_CANCEL,
                        .session = child->id,
                        .window_ops = ad__window_ops(c, &child->grants),
                        .window_bytes = ad__window_bytes(c, &child->grants),
                        .max_payload = AD_MAX_PAYLOAD,
                        .max_control = AD_MAX_CONTROL,
                        .max_buffers = child->buffers.most,
                        .devices = (uint64_t)w->device.count,
                        .memory = w->device.gpu[0].info.memory,
                        .pid = (uint64_t)getppid()};
    ad_bytes b = AD_BYTES_INIT;
    memcpy(hello.secret, child->comeback.secret, sizeof hello.secret);
    if (child->comeback.able) {
        hello.features |= AD_FEATURE_RESUME;
        hello.resume = (uint64_t)(c->resume_time * 1e3);
    }
    snprintf(hello.backend, sizeof hello.backend, "%.15s", w->backend->name);
    snprintf(hello.device_name, sizeof hello.device_name, "%.63s", w->device.gpu[0].info.name);
    snprintf(hello.server, sizeof hello.server, "arrayd %s", AD_VERSION);
    int status = ad__encode_welcome(&b, &hello);
    if (!status) status = ad__output_frame(&child->output, b.data, b.size, 0, NULL, 0);
    ad__bytes_free(&b);
    return status ? ad__fault(fault, status, "fork: no welcome: %s", ad__error_text(status)) : 0;
}

typedef struct inheritance {
    ad_worker_session *parent, *child;
    ad_fault *fault;
    int status;
} inheritance;

static int pass_poison(const inheritance *h, uint64_t id, ad_poison *why) {
    ad_buffer *own;
    int status = ad__buffers_add(&h->child->buffers, id, &own, h->fault);
    if (status) return status;
    own->poison = ad__poison_hold(why);
    ad__checkpoint_mark_buffer(h->child, own);
    return 0;
}

static int pass_error(const inheritance *h, uint64_t id, const ad_fault *why) {
    ad_poison *poison = ad__poison_new(why, h->parent->progress.done + 1, "fork");
    int status = pass_poison(h, id, poison);
    ad__poison_release(poison);
    return status;
}

/* Give the child a poisoned buffer instead of a module's variable: a child has no modules. */
static int pass_variable(const inheritance *h, uint64_t id) {
    ad_fault why = {0};
    ad__fault(&why, AD_E_STALE, "the array was a variable of a module, and modules are not passed on in a fork");
    return pass_error(h, id, &why);
}

/* Bring a moved buffer back, while there is room for all of them. */
static int bring_back_buffer(const inheritance *h, ad_buffer *b, ad_fault *why) {
    if (!b->is_moved) return 0;
    int status = ad__spill_begin(h->parent, b->home, &b, 1, why);
    ad__spill_end(h->parent, &b, 1);
    return status;
}

static void pass_buffer(void *user, ad_buffer *b) {
    inheritance *h = user;
    ad_fault why = {0};
    if (h->status) return;
    if (b->poison || b->module) {
        h->status = b->poison ? pass_poison(h, b->id, b->poison) : pass_variable(h, b->id);
        return;
    }
    if (bring_back_buffer(h, b, &why)) {
        h->status = pass_error(h, b->id, &why);
        return;
    }
    ad_shared *shared = ad__shared_give(h->parent, b, &why);
    if (!shared) {
        h->status = pass_error(h, b->id, &why);
        return;
    }
    h->status = ad__shared_join(h->child, shared, b->id, b->readonly, h->fault);
    ad__shared_release(h->parent->worker, shared, h->parent->principal);
}

/* List the child in the journal, before its parent's checkpoint has the fork. So the fork finds the child if it is
 * executed again. Arrays of the child may have moved to host memory by then, on its own stream. */
static int list_child(const ad_worker_session *parent, ad_worker_session *child, ad_fault *fault) {
    ad__checkpoint_flush(child, true);
    if (ad__session_is_recoverable(parent) && !ad__session_is_recoverable(child))
        return ad__fault(fault, AD_E_MEMORY, "fork: no memory to write the session down");
    ad__checkpoint_list(child);
    return 0;
}

static ad_worker_session *create_child(ad_worker_session *s, const ad_message *m, int fd) {
    ad_worker *w = s->worker;
    struct sockaddr_storage peer;
    socklen_t size = sizeof peer;
    const bool connected = getpeername(fd, (struct sockaddr *)&peer, &size) == 0;
    ad_note note = {.kind = AD_NOTE_SESSION,
                    .id = ad__session_forked(s->id, ++w->sharing->forked),
                    .size = m->u[1],
                    .resumable = s->comeback.able,
                    .grants = s->grants};
    if (w->journal) ad__journal_head(w->journal)->forked = w->sharing->forked;
    memcpy(note.secret, m->s[0].data, sizeof note.secret);
    memcpy(note.who, s->principal, sizeof s->principal);
    memcpy(note.text, s->client, sizeof s->client);
    ad__input_ask_sender(fd, true);
    ad_worker_session *child = ad__session_new(w, &note, fd);
    if (!child) return NULL;
    child->socket.forked = true;
    child->comeback.native = connected;
    return child;
}

static int begin_child(ad_worker_session *s, const ad_message *m, int fd, ad_fault *fault) {
    ad_worker *w = s->worker;
    ad__checkpoint_commit(s); /* the child's snapshots are of committed contents */
    ad_worker_session *child = create_child(s, m, fd);
    if (!child) return ad__fault(fault, AD_E_MEMORY, "out of host memory");
    inheritance h = {s, child, fault, 0};
    h.status = send_welcome(child, fault);
    ad__buffers_each(&s->buffers, pass_buffer, &h);
    if (!h.status) h.status = ad__spill_arrive(s, fault);
    if (!h.status) h.status = list_child(s, child, fault);
    if (h.status) ad__checkpoint_give_up(child);
    /* The I/O thread takes over a child that is not complete as well, and ends it. */
    pthread_mutex_lock(&w->engine.lock);
    child->socket.failed_start = h.status != 0;
    child->next = w->sharing->births;
    w->sharing->births = child;
    pthread_mutex_unlock(&w->engine.lock);
    uv_async_send(&w->io.wake);
    return h.status;
}

static bool is_child(const ad_worker_session *s, const ad_worker_session *parent, uint64_t key) {
    return s->comeback.key == key && !strcmp(s->principal, parent->principal);
}

/* True if the child exists, because the worker before has executed the fork. */
static bool has_child(const ad_worker_session *parent, uint64_t key) {
    ad_worker *w = parent->worker;
    pthread_mutex_lock(&w->sessions_lock);
    const ad_worker_session *s = w->sessions;
    while (s && !is_child(s, parent, key)) s = s->next;
    pthread_mutex_unlock(&w->sessions_lock);
    if (s) return true;
    pthread_mutex_lock(&w->engine.lock);
    s = w->sharing->births;
    while (s && !is_child(s, parent, key)) s = s->next;
    pthread_mutex_unlock(&w->engine.lock);
    return s;
}

/* Tell whether two sessions count together: those of one principal do, and apart from them those of servers that come
 * for it. */
static bool counts_with(const ad_worker_session *s, const ad_worker_session *of) {
    return !strcmp(s->principal, of->principal) && !((s->grants.may ^ of->grants.may) & AD_GRANT_PEER);
}

/* Count the sessions that count together with one (NULL: all). living: leave out those whose client has ended, even if
 * that was not noticed yet. */
static uint64_t count_sessions(ad_worker *w, const ad_worker_session *of, bool living) {
    uint64_t n = 0;
    pthread_mutex_lock(&w->sessions_lock);
    for (const ad_worker_session *s = w->sessions; s; s = s->next)
        n += (!of || counts_with(s, of)) && !(living && ad__session_client_ended(s));
    pthread_mutex_unlock(&w->sessions_lock);
    pthread_mutex_lock(&w->engine.lock);
    for (const ad_worker_session *born = w->sharing->births; born; born = born->next) n += !of || counts_with(born, of);
    pthread_mutex_unlock(&w->engine.lock);
    return n;
}

/* True if there are so many sessions. One whose client has just ended does not count. */
static bool is_full(ad_worker *w, const ad_worker_session *of, uint64_t most) {
    return count_sessions(w, of, false) >= most && count_sessions(w, of, true) >= most;
}

/* Check that the server and the principal may have one more session. */
static int check_session_limit(const ad_worker_session *s, ad_fault *fault) {
    ad_worker *w = s->worker;
    const uint64_t most = s->grants.sessions;
    if (is_full(w, NULL, w->config.sessions))
        return ad__fault(fault, AD_E_LIMIT,
                         "fork: the server has %" PRIu64 " sessions, as many as it takes (option sessions)",
                         (uint64_t)w->config.sessions);
    if (!most || !is_full(w, s, most)) return 0;
    return ad__fault(fault, AD_E_LIMIT,
                     "fork: %s has %" PRIu64
                     " sessions, as many as it may have at a time (grant sessions=N in the file of option "
                     "principals or tokens, or option sessions-each)",
                     s->principal, most);
}

/* Check that the child can have its buffers at once: others wait meanwhile. */
static int check_buffer_count(const ad_worker_session *s, ad_fault *fault) {
    if (s->buffers.count <= AD_FORK_BUFFERS) return 0;
    return ad__fault(fault, AD_E_LIMIT,
                     "fork: the session holds %" PRIu64 " arrays, and at most %d are passed on to a child",
                     s->buffers.count, AD_FORK_BUFFERS);
}

static int check_fork(const ad_message *m, int fd, ad_fault *fault) {
    if (m->u[0]) return ad__fault(fault, AD_E_VALUE, "fork: there are no flags, so not %" PRIu64, m->u[0]);
    if (!(m->u[1] & AD_FORK_KEY))
        return ad__fault(fault, AD_E_VALUE, "fork: a key is 2^63 or above, not %" PRIu64, m->u[1]);
    if (!ad__is_stream_socket(fd)) return ad__fault(fault, AD_E_VALUE, "fork: the descriptor is not a Unix socket");
    return 0;
}

int ad__handle_fork(ad_worker_session *s, ad_message *m, ad_fault *fault) {
    uint64_t number;
    int fd = ad__descriptors_take(&s->windows.descriptors, &number), status;
    if (fd < 0) return ad__fault(fault, AD_E_VALUE, "fork: no descriptor came with it");
    ad__checkpoint_release_descriptor(s, number);
    s->sharing.forked_at = s->progress.done + 1;
    status = check_fork(m, fd, fault);
    if (!status && has_child(s, m->u[1])) {
        ad__discard(s->principal, fd);
        return 0;
    }
    if (!status) status = check_session_limit(s, fault);
    if (!status) status = check_buffer_count(s, fault);
    if (!status) return begin_child(s, m, fd, fault);
    ad__session_refuse(s->principal, fd, status, fault->text);
    return status;
}

void ad__fork_tell(ad_worker_session *s) {
    ad_note note = {.kind = AD_NOTE_FORKED,
                    .id = s->id,
                    .size = s->comeback.key,
                    .resumable = s->comeback.able,
                    .grants = s->grants};
    memcpy(note.who, s->principal, sizeof note.who);
    ad__worker_tell(s->worker, &note, -1);
    s->socket.forked = false;
}

void ad__fork_births(ad_worker *w) {
    ad_engine *e = &w->engine;
    pthread_mutex_lock(&e->lock);
    ad_worker_session *first = w->sharing->births;
    w->sharing->births = NULL;
    pthread_mutex_unlock(&e->lock);
    for (ad_worker_session *s = first, *next; s; s = next) {
        next = s->next;
        s->next = NULL;
        int status = ad__session_begin(s);
        ad__fork_tell(s);
        if (w->ending.stopping) ad__session_bye(s, AD_E_CONNECTION, "the server is shutting down");
        else if (status || s->socket.failed_start)
            ad__session_bye(s, AD_E_MEMORY, "the forked process could not be taken up");
        else if (ad__output_flush(&s->output)) ad__session_attend(s);
    }
}
