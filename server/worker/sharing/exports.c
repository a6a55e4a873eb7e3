#include "server/worker/sharing/exports.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/common/discard.h"
#include "server/common/fdpass.h"
#include "server/common/log.h"
#include "server/common/os.h"
#include "server/worker/handlers.h"
#include "server/worker/engine/background.h"
#include "server/worker/exec/job.h"
#include "server/worker/spill/quota.h"
#include "server/worker/spill/spill.h"
#include "server/worker/session.h"
#include "server/worker/io/reply.h"

struct ad_exported {
    ad_held_lease lease;
    ad_holder holder;
    ad_exported *next, **link; /* neighbours in the worker's list of leases */
    uint64_t id;
    unsigned importer; /* process id of the lease's maker, as it is known in this namespace */
    bool plain;        /* the other process has a handle of the memory, and no descriptor */
    bool reads;        /* the other process only reads the memory, which stays as it is: the lease counts in readers */
};

/* ---- leases ---- */

static unsigned get_importer(int fd) {
    struct ucred peer = {0};
    socklen_t size = sizeof peer;
    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) ? 0 : (unsigned)peer.pid;
}

static void link_export(ad_worker *w, ad_exported *l) {
    ad_sharing *all = w->sharing;
    l->link = &all->out;
    l->next = all->out;
    if (l->next) l->next->link = &l->next;
    all->out = l;
    all->exports++;
    all->exported += l->holder.shared->size;
}

static void unlink_export(ad_worker *w, ad_exported *l) {
    *l->link = l->next;
    if (l->next) l->next->link = l->link;
    w->sharing->exports--;
    w->sharing->exported -= l->holder.shared->size;
}

static void end_export(ad_worker *w, ad_exported *l) {
    ad__log(export_ends, l->id, l->holder.principal, l->holder.shared->size, l->importer);
    unlink_export(w, l);
    if (l->reads && l->holder.shared->readers != AD_READERS_UNKNOWN) l->holder.shared->readers--;
    ad__lease_close(w, l->holder.principal, &l->lease);
    ad__holder_end(w, &l->holder);
    free(l);
}

static void handle_lease_end(ad_worker *w, ad_held_lease *l) { end_export(w, (ad_exported *)l); }

void ad__exports_close(ad_worker *w) {
    while (w->sharing->out) end_export(w, w->sharing->out);
}

void ad__exports_part(ad_worker *w, const char *principal) {
    for (ad_exported *l = w->sharing->out, *next; l; l = next) {
        next = l->next;
        if (!strcmp(l->holder.principal, principal)) end_export(w, l);
    }
}

/* ---- memory ---- */

/* True if the lease's socket is closed at the other end, even if the I/O thread has not seen it yet. */
static bool is_lease_over(const ad_exported *l) {
    struct pollfd end = {.fd = l->lease.fd, .events = POLLRDHUP};
    return poll(&end, 1, 0) == 1;
}

/* True if a process has the memory by a handle, and it is wanted by a descriptor, or the reverse. That process would
 * not see the memory move. */
static bool is_exported_otherwise(const ad_worker *w, const ad_shared *m, bool plain) {
    const ad_exported *l = m ? w->sharing->out : NULL;
    while (l && (l->holder.shared != m || l->plain == plain || is_lease_over(l))) l = l->next;
    return l;
}

/* Check that the buffer can be exported. A receiver of its memory could write it even if it is to read only, so the
 * memory must be in a slab of the session's principal. */
static int check_export(ad_worker_session *s, ad_buffer *b, uint64_t flags, ad_fault *fault) {
    const char *whose = b->home && b->block.slab ? s->principal : NULL;
    const bool plain = flags & AD_EXPORT_HANDLE;
    if (b->readonly && !(flags & AD_EXPORT_READONLY))
        return ad__fault(fault, AD_E_VALUE, "export: the array is read-only, and who gets its memory could write it");
    if (b->import)
        return ad__fault(fault, AD_E_VALUE, "export: the array is memory of its program: export a copy of it");
    if (b->shared) whose = ad__shared_owner(b->shared);
    if (!whose) return ad__fault(fault, AD_E_VALUE, "export: the array has no elements");
    if (strcmp(whose, s->principal))
        return ad__fault(fault, AD_E_VALUE, "export: the array lies in memory of %s: export a copy of it", whose);
    if (is_exported_otherwise(s->worker, b->shared, plain))
        return ad__fault(fault, AD_E_VALUE,
                         "export: programs have the array's memory by %s, so it cannot be had by %s "
                         "as well: export a copy of it",
                         plain ? "a descriptor" : "a handle", plain ? "a handle" : "a descriptor");
    const char *who = s->principal;
    uint64_t n = 0;
    for (const ad_exported *l = s->worker->sharing->out; l; l = l->next) n += !strcmp(l->holder.principal, who);
    if (n < AD_LEASES) return 0;
    return ad__fault(fault, AD_E_LIMIT, "export: %s has %d exports, as many as it may have at a time", who, AD_LEASES);
}

/* Move the elements to a new slab of their own. All holders use that from now on, and the old memory is given back
 * in the order of its own stream. */
static int move_to_own_slab(ad_worker_session *s, ad_stream_queue *queue, ad_shared *m, bool plain, ad_fault *fault) {
    const ad_backend *backend = s->worker->backend;
    ad_block own, old = m->block;
    int status = ad__quota_take_apart(s, m->home, m->size, plain, &own, fault);
    if (status) return status;
    status = backend->move(queue->stream, own.address, m->address, m->size, fault);
    if (status) {
        ad__memory_give(m->home->stream_arena, &own);
        return ad__session_status(s, status, fault);
    }
    if (queue != m->home) ad__shared_home_waits(backend, m->home, queue);
    ad__memory_charge(&own, old.payer);
    m->block = own;
    m->address = own.address;
    for (ad_buffer *b = m->buffers; b; b = b->sharing.next) b->address = own.address;
    if (s->checkpoint.late && (status = backend->stream_wait(queue->stream, fault)))
        return ad__session_status(s, status, fault);
    ad__checkpoint_mark_moved(m);
    ad__holders_write(s->worker, m);
    if (!s->checkpoint.late || !ad__checkpoint_defer_free(s, m->home->stream_arena, &old, NULL))
        ad__memory_give(m->home->stream_arena, &old);
    return 0;
}

static bool has_own_slab(const ad_shared *m, bool plain) {
    return ad__memory_is_apart(&m->block) && ad__memory_is_plain(&m->block) == plain;
}

/* Ensure that the elements have a slab of their own, with nothing else to be seen in it. */
static int ensure_own_slab(ad_worker_session *s, ad_stream_queue *queue, ad_shared *m, bool plain, ad_fault *fault) {
    const ad_backend *backend = s->worker->backend;
    if (!has_own_slab(m, plain)) return move_to_own_slab(s, queue, m, plain, fault);
    uint64_t behind = m->block.size - m->size;
    if (!behind || ad__memory_is_exposed(&m->block)) return 0;
    return ad__session_status(s, backend->zero(queue->stream, (char *)m->address + m->size, behind, fault), fault);
}

/* Let the stream queue wait for all that uses the buffer's memory, and ensure that the memory has a slab of its own.
 * Memory that stays in its place and is only read waits for what writes it. */
static int prepare_memory(ad_worker_session *s, ad_stream_queue *queue, ad_buffer *b, const ad_exported *l,
                          ad_fault *fault) {
    const bool stays = l->reads && has_own_slab(b->shared, l->plain);
    int status = ad__stream_queue_uses(s, queue, b, !stays, fault);
    if (!status) status = ensure_own_slab(s, queue, b->shared, l->plain, fault);
    if (!status) status = ad__session_enqueued(s, queue, fault);
    return status;
}

/* ---- the request ---- */

/* Mark the holders' rows, which must say that other processes may write the memory. If the worker is killed before
 * they are committed, the export is executed again: it is not answered before. */
static void mark_holders(ad_worker *w, ad_shared *m) {
    for (ad_buffer *b = m->buffers; b; b = b->sharing.next) ad__checkpoint_mark_buffer(b->sharing.holder, b);
    ad__holders_write(w, m);
}

/* Prepare the memory of a buffer for a lease that reads or writes it. No holder gets a copy when it moves. */
static int prepare_shared(ad_worker_session *s, ad_buffer *b, ad_exported *l, ad_fault *fault) {
    ad_shared *m = b->shared;
    const bool common = m->common;
    m->moving = true;
    m->common = common || !l->reads;
    int status = prepare_memory(s, b->home, b, l, fault);
    m->moving = false;
    if (status) m->common = common;
    return status;
}

/* Tell whether the lease must have a copy of a snapshot: the program is to write it, or it could, and others than its
 * user hold the snapshot. */
static bool needs_copy(const ad_buffer *b, const ad_exported *l) {
    return b->shared && ad__shared_is_kept(b->shared) && (!l->reads || ad__shared_has_strangers(b->shared));
}

/* Let a lease hold the buffer's memory, in a slab of its own. Memory that is only read stays what it was: a snapshot
 * of all that hold it, or common memory, whose changes the reader sees. */
static int hold_memory(ad_worker_session *s, ad_buffer *b, ad_exported *l, ad_fault *fault) {
    int status = needs_copy(b, l) ? ad__shared_detach(s, b, fault) : 0;
    if (status) return status;
    ad_shared *m = ad__shared_of(s, b);
    if (!m) return ad__fault(fault, AD_E_MEMORY, "out of host memory");
    ad__shared_hold(m, s->principal);
    status = prepare_shared(s, b, l, fault);
    if (status) {
        ad__shared_release(s->worker, m, s->principal);
        return status;
    }
    l->reads = l->reads && !m->common;
    if (l->reads && m->readers != AD_READERS_UNKNOWN) m->readers++;
    ad__memory_expose(&m->block);
    mark_holders(s->worker, m);
    l->holder.shared = m;
    return 0;
}

/* The next worker must know what programs may do with the memory. Memory that has a handle goes with this one. */
static void write_lease(ad_worker *w, ad_holder *holder) {
    ad_journal_holder *h = ad__holder_make_row(w, holder, AD_HOLDER_LEASE);
    if (h) holder->place = ad__journal_hold(w->journal, h);
}

/* Begin an export: make its lease on the socket fd. The callee owns fd. */
static int begin_export(ad_worker_session *s, ad_buffer *b, int fd, uint64_t flags, ad_fault *fault) {
    ad_sharing *all = s->worker->sharing;
    ad_exported *l = NULL;
    int status = ad__is_stream_socket(fd) ? check_export(s, b, flags, fault)
                                          : ad__fault(fault, AD_E_VALUE, "export: the descriptor is not a Unix socket");
    if (!status && !(l = ad__os.calloc(1, sizeof *l))) status = ad__fault(fault, AD_E_MEMORY, "out of host memory");
    if (!status) {
        l->plain = flags & AD_EXPORT_HANDLE;
        l->reads = flags & AD_EXPORT_READONLY;
        status = hold_memory(s, b, l, fault);
    }
    if (status) {
        free(l);
        ad__discard(s->principal, fd);
        return status;
    }
    l->lease = (ad_held_lease){.fd = fd, .over = handle_lease_end};
    l->id = ++all->exported_so_far;
    l->importer = get_importer(fd);
    memcpy(l->holder.principal, s->principal, sizeof l->holder.principal);
    if (!l->plain) l->holder.write = write_lease;
    link_export(s->worker, l);
    ad__holder_begin(s->worker, &l->holder);
    s->sharing.exporting = l;
    return 0;
}

/* Send the descriptor or the handle, when all before is complete, and answer the request. */
static int send_memory(ad_worker_session *s, ad_exported *l, uint64_t request, ad_fault *fault) {
    _Static_assert(AD_SLAB_HANDLE == AD_EXPORT_MESSAGE, "a handle is the message");
    uint8_t message[AD_EXPORT_MESSAGE] = {0};
    const ad_shared *m = l->holder.shared;
    const ad_gpu *gpu = m->home->gpu;
    int status = l->plain ? ad__memory_handle(m->home->stream_arena, &m->block, message, fault) : 0;
    if (status) return ad__session_status(s, status, fault);
    if (ad__fdpass_send(l->lease.fd, message, sizeof message, ad__memory_descriptor(&m->block)) !=
        (ssize_t)sizeof message)
        return ad__fault(fault, AD_E_SYSTEM, "export: the descriptor could not be passed: %s", strerror(errno));
    if ((status = ad__lease_watch(s->worker, &l->lease, fault))) return status;
    ad__log(export_begins, l->id, s->id, s->principal, m->size, l->importer);
    uint64_t slab, offset;
    ad__memory_place(&m->block, &slab, &offset);
    const ad_scalar values[] = {{.kind = AD_SCALAR_INT, .as.i = (int64_t)m->block.size},
                                {.kind = AD_SCALAR_INT, .as.i = gpu->index},
                                {.kind = AD_SCALAR_INT, .as.i = (int64_t)l->id},
                                {.kind = AD_SCALAR_INT, .as.i = (int64_t)slab},
                                {.kind = AD_SCALAR_INT, .as.i = (int64_t)s->worker->sharing->number}};
    ad__reply_text(s, request, 5, values, gpu->info.id, strlen(gpu->info.id));
    return 0;
}

void ad__exports_end(ad_worker_session *s) {
    if (s->sharing.exporting) end_export(s->worker, s->sharing.exporting);
    s->sharing.exporting = NULL;
}

/* Accept an export. The descriptor of its message is taken even if it fails, or the next message would get it. */
static int accept_export(ad_worker_session *s, const ad_message *m, ad_buffer *b, ad_fault *fault) {
    uint64_t number;
    int fd = ad__descriptors_take(&s->windows.descriptors, &number);
    if (fd < 0)
        return ad__fault(fault, AD_E_VALUE, "export: no descriptor came with it, for which it takes a Unix socket");
    ad__checkpoint_release_descriptor(s, number);
    int status = fault->code;
    if (!status && !(s->grants.may & AD_GRANT_EXPORTS))
        status = ad__fault(fault, AD_E_DENIED, "export: %s may not hand arrays out of the server (grant exports)",
                           s->principal);
    if (!status && m->u[2] > AD_EXPORT_READONLY) /* who opens a handle can write */
        status = ad__fault(fault, AD_E_VALUE, "export: there are no flags %" PRIu64, m->u[2]);
    if (!status && !b->poison) return begin_export(s, b, fd, m->u[2], fault);
    ad__discard(s->principal, fd);
    return status;
}

/* Answer the export of the client's own memory, when all before is complete. The client needs nothing else. */
static int answer_own_memory(ad_worker_session *s, const ad_message *m) {
    ad__session_await(s, AD_WAIT_ALL, NULL, NULL);
    if (!ad__session_poll(s)) return AD_WAITS;
    uint64_t number;
    int fd = ad__descriptors_take(&s->windows.descriptors, &number);
    if (fd >= 0) {
        ad__discard(s->principal, fd);
        ad__checkpoint_release_descriptor(s, number);
    }
    ad__reply_ints(s, m->u[0], 3, (int64_t[]){0, 0, 0});
    return 0;
}

/* Begin an export, once all before it is committed and complete. AD_WAITS. *answered: the request is answered. */
static int prepare_export(ad_worker_session *s, const ad_message *m, bool *answered, ad_fault *fault) {
    ad_buffer *b = NULL;
    if (!ad__checkpoint_is_committed(s)) return AD_WAITS;
    if (ad__shared_buffer(s, m->u[1], "export", &b, fault) == AD_WAITS) return AD_WAITS;
    if (b && ad__background_holds(b->shared)) { /* a background operation may move the memory */
        ad__session_await(s, AD_WAIT_BACKGROUND, NULL, NULL);
        return AD_WAITS;
    }
    *answered = true;
    if (b && b->import && !b->poison && !(m->u[2] & AD_EXPORT_HANDLE)) return answer_own_memory(s, m);
    int status = accept_export(s, m, b, fault);
    if (status) return status;
    if (b->poison) {
        ad__reply_fail(s, m->u[0], b->poison);
        return 0;
    }
    *answered = false;
    ad__session_await(s, AD_WAIT_ALL, NULL, NULL);
    return ad__session_poll(s) ? 0 : AD_WAITS;
}

int ad__handle_export(ad_worker_session *s, ad_message *m, ad_fault *fault) {
    bool answered = false;
    int status = s->sharing.exporting ? 0 : prepare_export(s, m, &answered, fault);
    if (status == AD_WAITS || (answered && !status)) return status;
    if (s->sharing.exporting) status = send_memory(s, s->sharing.exporting, m->u[0], fault);
    if (status) ad__exports_end(s);
    s->sharing.exporting = NULL;
    return status;
}
