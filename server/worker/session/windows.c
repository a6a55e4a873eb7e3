#include "server/worker/session/windows.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "protocol/memfd.h"
#include "server/common/discard.h"
#include "server/common/log.h"
#include "server/common/os.h"
#include "server/worker/handlers.h"
#include "server/worker/exec/job.h"
#include "server/worker/spill/quota.h"
#include "server/worker/session.h"
#include "server/worker/session/ops.h"

void ad__descriptor_skip(ad_worker_session *s) {
    uint64_t number;
    int fd = ad__descriptors_take(&s->windows.descriptors, &number);
    if (fd < 0) return;
    ad__discard(s->principal, fd);
    ad__checkpoint_release_descriptor(s, number);
}

/* ---- windows by id ---- */

static ad_window *find_known(ad_worker_session *s, uint64_t id) {
    for (size_t i = 0; i < s->windows.count; i++)
        if (s->windows.list[i].id == id) return &s->windows.list[i];
    return NULL;
}

/* Fail with the reason why a window was refused. False: it was not, or that is long ago. */
static bool report_refusal(const ad_worker_session *s, uint64_t id, const char *what, ad_fault *fault) {
    for (size_t i = 0; i < AD_REFUSED_WINDOWS; i++) {
        const ad_refused_window *r = &s->windows.refused[i];
        if (!r->why || r->id != id) continue;
        ad__fault(fault, r->why->code, "%s: there is no window %" PRIu64 ": %s", what, id, r->why->text);
        return true;
    }
    return false;
}

ad_window *ad__window_find(ad_worker_session *s, uint64_t id, uint64_t offset, uint64_t size, const char *what,
                           ad_fault *fault) {
    ad_window *w = find_known(s, id);
    if (!w && report_refusal(s, id, what, fault)) return NULL;
    if (!w) {
        ad__fault(fault, AD_E_STALE, "%s: there is no window %" PRIu64, what, id);
        return NULL;
    }
    if (w->lost) {
        ad__fault(fault, AD_E_STALE,
                  "%s: window %" PRIu64 " was lost with a worker, as no descriptor was left to keep it: open another",
                  what, id);
        return NULL;
    }
    if (offset <= w->size && size <= w->size - offset) return w;
    ad__fault(fault, AD_E_EXTENT,
              "%s: %" PRIu64 " bytes at %" PRIu64 " reach beyond window %" PRIu64 " of %" PRIu64 " bytes", what, size,
              offset, id, w->size);
    return NULL;
}

static void close_window(ad_worker_session *s, const ad_window *w) {
    const ad_worker *worker = s->worker;
    if (w->pinned) worker->backend->host_unregister(worker->device.gpu[0].device, w->base);
    munmap(w->base, w->size);
    ad__discard(s->principal, w->fd);
    s->windows.bytes -= w->size;
    ad__quota_window_gone(s, w->size);
}

static void close_windows(ad_worker_session *s) {
    while (s->windows.count) close_window(s, &s->windows.list[--s->windows.count]);
    for (size_t i = 0; i < AD_REFUSED_WINDOWS; i++) ad__poison_release(s->windows.refused[i].why);
    memset(s->windows.refused, 0, sizeof s->windows.refused);
    free(s->windows.list);
    s->windows.list = NULL;
    s->windows.capacity = 0;
}

/* ---- opening ---- */

static int prepare_window(ad_worker_session *s, uint64_t id, uint64_t size, ad_fault *fault) {
    ad_windows *all = &s->windows;
    uint64_t limit = s->worker->config.windows;
    if (!id || find_known(s, id)) return ad__fault(fault, AD_E_VALUE, "window: id %" PRIu64 " is 0 or in use", id);
    if (!size || size > INT64_MAX) return ad__fault(fault, AD_E_VALUE, "window: not a size: %" PRIu64, size);
    if (all->count == AD_WINDOWS) return ad__fault(fault, AD_E_LIMIT, "a session has at most %d windows", AD_WINDOWS);
    if (size > limit || all->bytes > limit - size)
        return ad__fault(fault, AD_E_LIMIT,
                         "window: %" PRIu64 " bytes more than option windows allows a session, %" PRIu64,
                         all->bytes + size - limit, limit);
    ad_window *list = ad__os_grow(all->list, all->count, &all->capacity, sizeof *list);
    if (!list) return ad__fault(fault, AD_E_MEMORY, "out of host memory");
    all->list = list;
    return 0;
}

/* Add a window of the descriptor with that number; on success it owns fd. */
static int add_window(ad_worker_session *s, uint64_t id, uint64_t size, int fd, uint64_t number, ad_fault *fault) {
    int status = ad__memfd_check("window", fd, size, fault);
    if (!status) status = prepare_window(s, id, size, fault);
    if (status) return status;
    void *base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED)
        return ad__fault(fault, AD_E_MEMORY, "window: cannot map %" PRIu64 " bytes: %s", size, strerror(errno));
    if ((status = ad__quota_window(s, size, fault))) {
        munmap(base, size);
        return status;
    }
    ad_fault why = {0};
    int pinned = s->worker->backend->host_register(s->worker->device.gpu[0].device, base, size, &why);
    ad__session_status(s, pinned, &why);
    if (pinned) ad__log(window_not_pinned, s->id, size, why.text);
    s->windows.list[s->windows.count++] =
        (ad_window){.id = id, .size = size, .base = base, .fd = fd, .descriptor = number, .pinned = !pinned};
    s->windows.bytes += size;
    ad__checkpoint_mark_row(s, AD_JOURNAL_WINDOW, id);
    return 0;
}

/* Remember that there was no room for a window. It is no pending error, which another thread of the client would get:
 * whoever wants to use the window asks for it. */
static void refuse_window(ad_worker_session *s, uint64_t id, const ad_fault *why) {
    ad_refused_window *r = &s->windows.refused[s->windows.refusals++ % AD_REFUSED_WINDOWS];
    ad__poison_release(r->why);
    *r = (ad_refused_window){id, ad__poison_new(why, s->progress.done + 1, "window")};
    s->progress.failed++;
}

/* Tell whether a window was refused for want of room, and not because the request is wrong. */
static bool is_want_of_room(int status) {
    return status == AD_E_LIMIT || status == AD_E_MEMORY || status == AD_E_SYSTEM;
}

int ad__handle_window(ad_worker_session *s, ad_message *m, ad_fault *fault) {
    uint64_t number;
    int fd = ad__descriptors_take(&s->windows.descriptors, &number);
    if (fd < 0) return ad__fault(fault, AD_E_VALUE, "window: no descriptor came with it");
    int status = add_window(s, m->u[0], m->u[1], fd, number, fault);
    if (!status) return 0;
    ad__discard(s->principal, fd);
    ad__checkpoint_release_descriptor(s, number);
    if (!is_want_of_room(status)) return status;
    fault->code = status;
    refuse_window(s, m->u[0], fault);
    return 0;
}

/* ---- using them ---- */

static void release_window(ad_worker_session *s, void *window) {
    ad_window *w = window;
    ad__checkpoint_release_descriptor_now(s, w->descriptor);
    close_window(s, w);
    free(w);
}

/* Close a window that is not in the list any more: where operations are executed again later, after the next
 * checkpoint. */
static void defer_window(ad_worker_session *s, const ad_window *gone) {
    ad_window *w = s->checkpoint.late ? ad__os.malloc(sizeof *w) : NULL;
    if (w) {
        *w = *gone;
        if (ad__checkpoint_defer_release(s, release_window, w, false)) return;
        free(w);
    }
    ad__checkpoint_release_descriptor_now(s, gone->descriptor);
    close_window(s, gone);
}

int ad__handle_window_drop(ad_worker_session *s, ad_message *m, ad_fault *fault) {
    ad_window *w = find_known(s, m->u[0]);
    if (!w) return ad__fault(fault, AD_E_STALE, "window_drop: there is no window %" PRIu64, m->u[0]);
    int status = ad__stream_queues_wait(s, fault); /* copies from the window may be under way */
    if (status) return ad__session_status(s, status, fault);
    ad_window gone = *w;
    *w = s->windows.list[--s->windows.count];
    ad__checkpoint_remove_row(s, gone.place);
    defer_window(s, &gone);
    return 0;
}

int ad__handle_load(ad_worker_session *s, ad_message *m, ad_fault *fault) {
    ad_window *w = ad__window_find(s, m->u[2], m->u[3], m->u[4], "load", fault);
    if (!w) return ad__store_refuse(s, "load", m->u[0], fault);
    s->checkpoint.loaded = s->progress.done + 1;
    return ad__store(s, "load", m->u[0], m->u[1], (char *)w->base + m->u[3], m->u[4], w->pinned, fault);
}

/* ---- rows in the journal ---- */

static int save_window(ad_worker_session *s, uint64_t id, ad_journal_row *row) {
    const ad_window *w = find_known(s, id);
    if (!w) return 0;
    row->size = w->size;
    row->descriptor = w->descriptor;
    return 1;
}

static uint32_t *find_window_place(ad_worker_session *s, uint64_t id) {
    ad_window *w = find_known(s, id);
    return w ? &w->place : NULL;
}

/* Create memory for a window whose descriptor is gone. Mostly the request that removes the window is still to come.
 * Where arrayd had no descriptor left to keep this one, the client still uses the window: it must not read or write
 * other memory instead of its own. The memory is sealed as those of clients must be. */
static int create_empty_window(uint64_t size) {
    int fd = memfd_create("arrayd-window", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd >= 0 && (ftruncate(fd, (off_t)size) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK))) {
        close(fd);
        return -1;
    }
    return fd;
}

static int restore_window(ad_worker_session *s, const ad_journal_row *row, const ad_left_behind *left,
                          ad_fault *fault) {
    int fd = left->take_descriptor(left->user, s->id, row->descriptor);
    const bool lost = fd < 0;
    if (lost) fd = create_empty_window(row->size);
    if (fd < 0) return ad__fault(fault, AD_E_SYSTEM, "no memory for a window");
    int status = add_window(s, row->id, row->size, fd, row->descriptor, fault);
    if (status) ad__discard(s->principal, fd);
    else s->windows.list[s->windows.count - 1].lost = lost;
    return status;
}

const ad_component ad__component_windows = {.name = "windows",
                                            .drop = close_windows,
                                            .kind = AD_JOURNAL_WINDOW,
                                            .save = save_window,
                                            .place = find_window_place,
                                            .restore = restore_window};
