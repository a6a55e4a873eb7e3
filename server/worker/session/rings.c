#include "server/worker/session/rings.h"

#include <string.h>

#include "server/common/os.h"
#include "server/worker/io/spin.h"

#define QUIET 200000 /* ns without a message after which a ring is not looked at any more */

/* ---- a session's ring ---- */

static bool is_local(int fd) {
    struct sockaddr_storage a;
    socklen_t size = sizeof a;
    return !getsockname(fd, (struct sockaddr *)&a, &size) && a.ss_family == AF_UNIX;
}

/* Make a ring, whose descriptor the client gets with the next bytes. */
static void offer_ring(ad_worker_session *s) {
    ad_session_ring *r = &s->ring;
    int fd;
    if (r->refused) return;
    r->refused = !is_local(s->socket.fd) || ad__ring_create(&r->memory, &fd);
    if (r->refused) return;
    ad__ring_read_begin(&r->reader, &r->memory->up, r->memory->bytes[0], s->input.received);
    s->input.ring = &r->reader;
    ad__output_use_ring(&s->output, &r->writer, r->memory, fd);
}

static void wake_ring(ad_worker_session *s) {
    ad_session_ring *r = &s->ring;
    if (!atomic_load_explicit(&r->memory->joined, memory_order_acquire)) return;
    ad__ring_wake(&r->reader);
    r->heard = ad__os_now();
    r->starved = false;
    if (r->listed) return;
    r->listed = true;
    r->next = s->worker->io.rings;
    s->worker->io.rings = s;
}

void ad__ring_attend(ad_worker_session *s) {
    s->ring.starved = false;
    if (!strcmp(s->worker->config.ring, "no") || !ad__worker_spins(s->worker)) return;
    if (!s->ring.memory) offer_ring(s);
    else if (s->ring.reader.asleep) wake_ring(s);
}

void ad__ring_note_nothing(ad_worker_session *s) {
    ad_session_ring *r = &s->ring;
    uint64_t size;
    r->starved = r->listed && ad__ring_look(&r->reader, &size) == AD_RING_SOCKET;
}

static void unlist_ring(ad_worker_session *s) {
    ad_worker_session **at = &s->worker->io.rings;
    if (!s->ring.listed) return;
    while (*at != s) at = &(*at)->ring.next;
    *at = s->ring.next;
    s->ring.listed = false;
}

void ad__ring_close(ad_worker_session *s) {
    ad_session_ring *r = &s->ring;
    unlist_ring(s);
    if (r->memory) {
        ad__output_leave_ring(&s->output);
        s->input.ring = NULL;
        ad__ring_unmap(r->memory);
    }
    *r = (ad_session_ring){0};
}

/* ---- all rings that are awake ---- */

/* Tell whether the ring has something that may be read. */
static bool is_ready(const ad_worker_session *s) {
    return s->socket.events & UV_READABLE && !s->ring.starved && ad__ring_has_record(&s->ring.reader);
}

/* Let the writer use the socket from now on. False: something has come before that. Bytes of a session that is not read
 * at present, or whose next bytes come over the socket, need no sleep. */
static bool sleep_ring(ad_worker_session *s) {
    if (!(s->socket.events & UV_READABLE) || s->ring.starved) return true;
    if (!ad__ring_sleep(&s->ring.reader)) return false;
    unlist_ring(s);
    return true;
}

void ad__rings_read(ad_worker *w, void (*read)(ad_worker_session *s)) {
    for (ad_worker_session *s = w->io.rings, *next; s; s = next) {
        next = s->ring.next;
        if (is_ready(s)) {
            read(s);
            s->ring.heard = w->io.heard;
        } else if (w->io.heard - s->ring.heard > QUIET) {
            sleep_ring(s);
        }
    }
}

static bool is_any_ready(const ad_worker *w) {
    for (const ad_worker_session *s = w->io.rings; s; s = s->ring.next)
        if (is_ready(s)) return true;
    return false;
}

bool ad__rings_await(ad_worker *w) {
    bool came = false;
    for (unsigned left = ad__ring_begin_wait(&w->io.patience); left && !(came = is_any_ready(w)); left--)
        ad__ring_pause();
    return ad__ring_end_wait(&w->io.patience, came);
}

bool ad__rings_sleep(ad_worker *w) {
    bool all = true;
    for (ad_worker_session *s = w->io.rings, *next; s; s = next) {
        next = s->ring.next;
        all = sleep_ring(s) && all;
    }
    return all;
}
