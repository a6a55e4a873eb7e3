/* Sessions of forked processes. Before a client forks it sends one end of a socket pair, and all its buffers become the
 * child's as well: snapshots, as its other memory is. The child goes on at the other end; should it end, or become
 * another program, that is closed. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/common/log.h"
#include "server/common/os.h"
#include "server/common/report.h"
#include "server/common/rights.h"
#include "server/worker/sharing.h"
#include "server/worker/spill.h"

bool ad__is_stream_socket(int fd) {
    int domain = 0, type = 0;
    socklen_t size = sizeof domain;
    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) || domain != AF_UNIX) return false;
    size = sizeof type;
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM;
}

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
    if (getrandom(hello.secret, sizeof hello.secret, 0) != (ssize_t)sizeof hello.secret)
        return ad__fault(fault, AD_E_SYSTEM, "no random numbers");
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
    if (!status) own->poison = ad__poison_share(why);
    return status;
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
    if (!b->moved) return 0;
    int status = ad__spill_begin(h->parent, b->home, &b, 1, why);
    ad__spill_end(h->parent, &b, 1);
    return status;
}

static void bequeath(void *user, ad_buffer *b) {
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

static int begin(ad_session *s, int fd, ad_fault *fault) {
    ad_worker *w = s->worker;
    ad_note note = {.kind = AD_NOTE_SESSION, .id = AD_FORKED_SESSION | ++w->sharing->forked, .grants = s->grants};
    memcpy(note.who, s->principal, sizeof s->principal);
    memcpy(note.text, s->client, sizeof s->client);
    ad_session *child = ad__session_new(w, &note, fd);
    if (!child) return ad__fault(fault, AD_E_MEMORY, "out of host memory");
    child->forked = true;
    heritage h = {s, child, fault, 0};
    h.status = welcome(child, fault);
    ad__buffers_each(&s->buffers, bequeath, &h);
    if (!h.status) h.status = ad__spill_arrive(s, fault);
    /* One that is not whole is taken over as well, and ended there. */
    pthread_mutex_lock(&w->engine.lock);
    child->stillborn = h.status != 0;
    child->next = w->sharing->births;
    w->sharing->births = child;
    pthread_mutex_unlock(&w->engine.lock);
    uv_async_send(&w->wake);
    return h.status;
}

/* Is there room for one more session, in the server and of this principal? */
static int check_room(const ad_session *s, ad_fault *fault) {
    ad_worker *w = s->worker;
    uint64_t all = atomic_load(&w->nsessions), own = 0, most = s->grants.sessions;
    pthread_mutex_lock(&w->sessions_lock);
    for (const ad_session *other = w->sessions; other && most; other = other->next)
        own += !strcmp(other->principal, s->principal);
    pthread_mutex_unlock(&w->sessions_lock);
    pthread_mutex_lock(&w->engine.lock);
    for (const ad_session *born = w->sharing->births; born; born = born->next, all++)
        own += !strcmp(born->principal, s->principal);
    pthread_mutex_unlock(&w->engine.lock);
    if (all >= w->config.sessions)
        return ad__fault(fault, AD_E_LIMIT, "fork: the server has as many sessions as it takes");
    if (!most || own < most) return 0;
    return ad__fault(fault, AD_E_LIMIT, "fork: %s has %" PRIu64 " sessions, as many as it may have at a time",
                     s->principal, own);
}

int ad__fork(ad_session *s, const ad_message *m, ad_fault *fault) {
    int fd = ad__descriptors_take(&s->windows.descriptors), status = 0;
    if (fd < 0) return ad__fault(fault, AD_E_VALUE, "fork: no descriptor came with it");
    ad__survival_passed(s);
    if (m->u[0]) status = ad__fault(fault, AD_E_VALUE, "fork: there are no flags, so not %" PRIu64, m->u[0]);
    else if (!ad__is_stream_socket(fd)) status = ad__fault(fault, AD_E_VALUE, "fork: the descriptor is no Unix socket");
    else status = check_room(s, fault);
    if (!status) return begin(s, fd, fault);
    close(fd);
    return status;
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
        ad_note note = {.kind = AD_NOTE_FORKED, .id = s->id};
        memcpy(note.who, s->principal, sizeof note.who);
        int status = ad__session_begin(s);
        ad__worker_tell(w, &note, -1);
        s->forked = false;
        if (w->stopping) ad__session_bye(s, AD_E_CONNECTION, "the server is shutting down");
        else if (status || s->stillborn) ad__session_bye(s, AD_E_MEMORY, "the forked process could not be taken up");
        else if (ad__output_flush(&s->output)) ad__session_attend(s);
    }
}
