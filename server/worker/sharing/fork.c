/* Sessions of forked processes. Before a client forks it sends one end of a socket pair, and all its buffers become the
 * child's as well: snapshots, as its other memory is. The child goes on at the other end; should it end, or become
 * another program, that is closed. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/common/log.h"
#include "server/common/os.h"
#include "server/common/report.h"
#include "server/common/rights.h"
#include "server/worker/sharing/sharing.h"
#include "server/worker/memory/spill/spill.h"

bool ad__is_stream_socket(int fd) {
    int domain = 0, type = 0;
    socklen_t size = sizeof domain;
    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) || domain != AF_UNIX) return false;
    size = sizeof type;
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM;
}

/* The server's instance is not said: it is the parent's. */
static int welcome(ad_session *child, ad_fault *fault) {
    const ad_worker *w = child->worker;
    const ad_config *c = &w->config;
    ad_welcome hello = {.version = AD_PROTOCOL_VERSION,
                        .features = child->may_run_kernels ? AD_FEATURE_KERNELS : 0,
                        .session = child->id,
                        .window_ops = ad__window_ops(c, &child->grants),
                        .window_bytes = ad__window_bytes(c, &child->grants),
                        .max_payload = AD_MAX_PAYLOAD,
                        .max_control = AD_MAX_CONTROL,
                        .max_buffers = child->buffers.most,
                        .devices = (uint64_t)w->devices,
                        .memory = w->gpu[0].info.memory,
                        .pid = (uint64_t)getppid()};
    ad_bytes b = AD_BYTES_INIT;
    memcpy(hello.secret, child->comeback.secret, sizeof hello.secret);
    if (child->comeback.able) {
        hello.features |= AD_FEATURE_RESUME;
        hello.resume = (uint64_t)(c->resume_time * 1e3);
    }
    snprintf(hello.backend, sizeof hello.backend, "%.15s", w->backend->name);
    snprintf(hello.device_name, sizeof hello.device_name, "%.63s", w->gpu[0].info.name);
    snprintf(hello.server, sizeof hello.server, "arrayd %s", AD_VERSION);
    int status = ad__encode_welcome(&b, &hello);
    if (!status) status = ad__output_frame(&child->output, b.data, b.size, 0, NULL, 0);
    ad__bytes_free(&b);
    return status ? ad__fault(fault, status, "fork: no welcome: %s", ad__error_text(status)) : 0;
}

typedef struct heritage {
    ad_session *parent, *child;
    ad_fault *fault;
    int status;
} heritage;

static int leave_poisoned(const heritage *h, uint64_t id, ad_poison *why) {
    ad_buffer *own;
    int status = ad__buffers_add(&h->child->buffers, id, &own, h->fault);
    if (status) return status;
    own->poison = ad__poison_share(why);
    ad__checkpoint_mark_buffer(h->child, own);
    return 0;
}

static int leave_error(const heritage *h, uint64_t id, const ad_fault *why) {
    ad_poison *poison = ad__poison_new(why, h->parent->done + 1, "fork");
    int status = leave_poisoned(h, id, poison);
    ad__poison_release(poison);
    return status;
}

/* Its memory goes with the module, which the child does not have. */
static int leave_variable(const heritage *h, uint64_t id) {
    ad_fault why = {0};
    ad__fault(&why, AD_E_STALE, "the array was a variable of a module, and modules are not passed on in a fork");
    return leave_error(h, id, &why);
}

/* What was moved to host memory comes back, as long as there is room for all of it. */
static int bring_back(const heritage *h, ad_buffer *b, ad_fault *why) {
    if (!b->is_moved) return 0;
    int status = ad__spill_begin(h->parent, b->home, &b, 1, why);
    ad__spill_end(h->parent, &b, 1);
    return status;
}

static void end_after_forks(void *user, ad_buffer *b) {
    heritage *h = user;
    ad_fault why = {0};
    if (h->status) return;
    if (b->poison || b->module) {
        h->status = b->poison ? leave_poisoned(h, b->id, b->poison) : leave_variable(h, b->id);
        return;
    }
    if (bring_back(h, b, &why)) {
        h->status = leave_error(h, b->id, &why);
        return;
    }
    ad_shared *shared = ad__shared_give(h->parent, b, &why);
    if (!shared) {
        h->status = leave_error(h, b->id, &why);
        return;
    }
    h->status = ad__shared_join(h->child, shared, b->id, b->readonly, h->fault);
    ad__shared_release(h->parent->worker, shared, h->parent->principal);
}

/* From here on another worker would find the child: before its parent's state says that there is one, so that the fork,
 * executed again, finds it, too. */
static int write_down(const ad_session *parent, ad_session *child, ad_fault *fault) {
    ad__checkpoint_commit(child);
    if (ad__session_is_recoverable(parent) && !ad__session_is_recoverable(child))
        return ad__fault(fault, AD_E_MEMORY, "fork: no memory to write the session down");
    ad__checkpoint_list(child);
    return 0;
}

static ad_session *child_new(ad_session *s, const ad_message *m, int fd) {
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
    ad_session *child = ad__session_new(w, &note, fd);
    if (!child) return NULL;
    child->forked = true;
    child->comeback.native = connected;
    return child;
}

static int begin(ad_session *s, const ad_message *m, int fd, ad_fault *fault) {
    ad_worker *w = s->worker;
    ad__checkpoint_commit(s); /* what is passed on counts */
    ad_session *child = child_new(s, m, fd);
    if (!child) return ad__fault(fault, AD_E_MEMORY, "out of host memory");
    heritage h = {s, child, fault, 0};
    h.status = welcome(child, fault);
    ad__buffers_each(&s->buffers, end_after_forks, &h);
    if (!h.status) h.status = ad__spill_arrive(s, fault);
    if (!h.status) h.status = write_down(s, child, fault);
    if (h.status) ad__checkpoint_give_up(child);
    /* One that is not whole is taken over as well, and ended there. */
    pthread_mutex_lock(&w->engine.lock);
    child->failed_start = h.status != 0;
    child->next = w->sharing->births;
    w->sharing->births = child;
    pthread_mutex_unlock(&w->engine.lock);
    uv_async_send(&w->wake);
    return h.status;
}

static bool is_child(const ad_session *s, const ad_session *parent, uint64_t key) {
    return s->comeback.key == key && !strcmp(s->principal, parent->principal);
}

/* The worker before has executed the fork. */
static bool is_born(const ad_session *parent, uint64_t key) {
    ad_worker *w = parent->worker;
    pthread_mutex_lock(&w->sessions_lock);
    const ad_session *s = w->sessions;
    while (s && !is_child(s, parent, key)) s = s->next;
    pthread_mutex_unlock(&w->sessions_lock);
    if (s) return true;
    pthread_mutex_lock(&w->engine.lock);
    s = w->sharing->births;
    while (s && !is_child(s, parent, key)) s = s->next;
    pthread_mutex_unlock(&w->engine.lock);
    return s;
}

/* So many sessions there are, in all or of the principal. Not those whose client has ended, where that is asked for: it
 * may not have been noticed. */
static uint64_t count_sessions(ad_worker *w, const char *principal, bool living) {
    uint64_t n = 0;
    pthread_mutex_lock(&w->sessions_lock);
    for (const ad_session *s = w->sessions; s; s = s->next)
        n += (!principal || !strcmp(s->principal, principal)) && !(living && ad__session_client_ended(s));
    pthread_mutex_unlock(&w->sessions_lock);
    pthread_mutex_lock(&w->engine.lock);
    for (const ad_session *born = w->sharing->births; born; born = born->next)
        n += !principal || !strcmp(born->principal, principal);
    pthread_mutex_unlock(&w->engine.lock);
    return n;
}

/* There are so many; a child that has ended just now does not keep the next one out. */
static bool is_full(ad_worker *w, const char *principal, uint64_t most) {
    return count_sessions(w, principal, false) >= most && count_sessions(w, principal, true) >= most;
}

/* Is there room for one more session, in the server and of this principal? */
static int check_room(const ad_session *s, ad_fault *fault) {
    ad_worker *w = s->worker;
    const uint64_t most = s->grants.sessions;
    if (is_full(w, NULL, w->config.sessions))
        return ad__fault(fault, AD_E_LIMIT,
                         "fork: the server has %" PRIu64 " sessions, as many as it takes (option sessions)",
                         (uint64_t)w->config.sessions);
    if (!most || !is_full(w, s->principal, most)) return 0;
    return ad__fault(fault, AD_E_LIMIT,
                     "fork: %s has %" PRIu64
                     " sessions, as many as it may have at a time (grant sessions=N in the file of option "
                     "principals or tokens, or option sessions-each)",
                     s->principal, most);
}

static int check(const ad_message *m, int fd, ad_fault *fault) {
    if (m->u[0]) return ad__fault(fault, AD_E_VALUE, "fork: there are no flags, so not %" PRIu64, m->u[0]);
    if (!(m->u[1] & AD_FORK_KEY))
        return ad__fault(fault, AD_E_VALUE, "fork: a key is 2^63 or above, not %" PRIu64, m->u[1]);
    if (!ad__is_stream_socket(fd)) return ad__fault(fault, AD_E_VALUE, "fork: the descriptor is no Unix socket");
    return 0;
}

int ad__fork(ad_session *s, const ad_message *m, ad_fault *fault) {
    uint64_t number;
    int fd = ad__descriptors_take(&s->windows.descriptors, &number), status;
    if (fd < 0) return ad__fault(fault, AD_E_VALUE, "fork: no descriptor came with it");
    ad__checkpoint_release_descriptor(s, number);
    s->forked_at = s->done + 1;
    status = check(m, fd, fault);
    if (!status && is_born(s, m->u[1])) {
        close(fd);
        return 0;
    }
    if (!status) status = check_room(s, fault);
    if (!status) return begin(s, m, fd, fault);
    ad__session_refuse(fd, status, fault->text);
    return status;
}

void ad__fork_tell(ad_session *s) {
    ad_note note = {.kind = AD_NOTE_FORKED, .id = s->id, .size = s->comeback.key, .resumable = s->comeback.able};
    memcpy(note.who, s->principal, sizeof note.who);
    ad__worker_tell(s->worker, &note, -1);
    s->forked = false;
}

void ad__fork_births(ad_worker *w) {
    ad_engine *e = &w->engine;
    pthread_mutex_lock(&e->lock);
    ad_session *first = w->sharing->births;
    w->sharing->births = NULL;
    pthread_mutex_unlock(&e->lock);
    for (ad_session *s = first, *next; s; s = next) {
        next = s->next;
        s->next = NULL;
        int status = ad__session_begin(s);
        ad__fork_tell(s);
        if (w->stopping) ad__session_bye(s, AD_E_CONNECTION, "the server is shutting down");
        else if (status || s->failed_start) ad__session_bye(s, AD_E_MEMORY, "the forked process could not be taken up");
        else if (ad__output_flush(&s->output)) ad__session_attend(s);
    }
}
