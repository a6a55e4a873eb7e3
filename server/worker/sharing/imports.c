#include "server/worker/sharing/imports.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/common/discard.h"
#include "server/common/fdpass.h"
#include "server/common/log.h"
#include "server/common/os.h"
#include "server/worker/handlers.h"
#include "server/worker/exec/job.h"
#include "server/worker/sharing/leases.h"
#include "server/worker/spill/quota.h"
#include "server/worker/sharing/sharing.h"
#include "server/worker/session.h"
#include "server/worker/io/reply.h"

/* An allocation of a client that is mapped in this worker. */
typedef struct ad_allocation ad_allocation;
struct ad_allocation {
    ad_allocation *next, **link; /* neighbours in the session's list of allocations */
    ad_worker_session *session;
    uint64_t number; /* number that the client has given it */
    ad_gpu *gpu;
    ad_slab_map map;
    bool plain; /* the client has sent a handle */
    uint64_t users;
    ad_buffer order; /* buffer without memory that says which stream queues use any piece of the allocation */
};

/* A piece of an allocation that a buffer stands for. */
struct ad_import_use {
    ad_held_lease lease;
    ad_import_use *next, **link; /* neighbours in the worker's list of imports */
    ad_allocation *of;
    uint64_t offset, size;
    bool leaving;     /* the buffer is gone */
    ad_event *passed; /* event after the last use by the buffer's home stream */
};

ad_buffer *ad__import_order(const ad_buffer *b) { return &b->import->of->order; }

bool ad__imports_meet(const ad_buffer *a, const ad_buffer *b, int64_t *distance) {
    if (a->import->of != b->import->of) return false;
    *distance = (int64_t)(b->import->offset - a->import->offset);
    return true;
}

int ad__import_check_write(const ad_buffer *b, ad_fault *fault) {
    if (!b->import || !b->readonly) return 0;
    return ad__fault(fault, AD_E_VALUE, "buffer %" PRIu64 " is read-only, as its program wants it", b->id);
}

/* ---- allocations ---- */

static ad_allocation *find_mapped(const ad_worker_session *s, uint64_t number) {
    ad_allocation *a = s->sharing.allocations;
    while (a && a->number != number) a = a->next;
    return a;
}

/* Check that handles may be taken. Where principals share a worker, memory must not go with a client. */
static int check_handle(const ad_worker_session *s, ad_fault *fault) {
    if (!s->worker->shared) return 0;
    return ad__fault(fault, AD_E_DENIED,
                     "import: memory that has only a handle is taken where a user has a worker to himself (option "
                     "domains, grant kernels)");
}

static int map_allocation(ad_worker_session *s, ad_gpu *gpu, const uint8_t handle[AD_SLAB_HANDLE], int fd,
                          uint64_t size, ad_slab_map *out, ad_fault *fault) {
    const ad_backend *backend = s->worker->backend;
    int status = fd < 0 ? backend->slab_import(gpu->device, handle, out, fault)
                        : backend->slab_attach(gpu->device, fd, size, out, fault);
    return ad__session_status(s, status, fault);
}

/* Map an allocation. fd: its descriptor, or -1: it has a handle. */
static int open_allocation(ad_worker_session *s, ad_stream_queue *queue, const ad_message *m, const uint8_t *handle,
                           int fd, ad_allocation **out, ad_fault *fault) {
    int status = fd < 0 ? check_handle(s, fault) : 0;
    if (status) return status;
    ad_allocation *a = ad__os.calloc(1, sizeof *a);
    if (!a) return ad__fault(fault, AD_E_MEMORY, "out of host memory");
    if ((status = map_allocation(s, queue->gpu, handle, fd, m->u[4], &a->map, fault))) {
        free(a);
        return status;
    }
    a->session = s;
    a->number = m->u[3];
    a->gpu = queue->gpu;
    a->plain = fd < 0;
    a->order.home = queue;
    a->next = s->sharing.allocations;
    a->link = &s->sharing.allocations;
    if (a->next) a->next->link = &a->next;
    s->sharing.allocations = a;
    *out = a;
    return 0;
}

static void release_allocation(ad_worker *w, ad_allocation *a) {
    if (--a->users) return;
    *a->link = a->next;
    if (a->next) a->next->link = a->link;
    w->backend->slab_close(a->gpu->device, &a->map);
    free(a);
}

/* ---- the end ---- */

/* Free an import, and close its lease, which allows the client to free the memory. */
static void free_import(ad_worker *w, ad_import_use *i) {
    const ad_worker_session *s = i->of->session;
    ad__log(import_ends, s->id, s->principal, i->size);
    *i->link = i->next;
    if (i->next) i->next->link = i->link;
    w->sharing->imports--;
    w->sharing->imported -= i->size;
    if (i->passed) w->backend->event_close(i->passed);
    release_allocation(w, i->of);
    shutdown(i->lease.fd, SHUT_RDWR); /* arrayd may have the socket as well */
    ad__lease_close(w, s->principal, &i->lease);
    free(i);
}

/* End the session of a client that has closed its lease too early. */
static void handle_client_end(ad_worker *w, ad_held_lease *l) {
    const ad_import_use *i = (ad_import_use *)l;
    ad_worker_session *s = i->of->session;
    (void)w;
    if (i->leaving) return;
    ad__log(session_ended, s->id, s->principal,
            "the memory of an imported array goes with its client, who has closed its lease");
    ad__engine_end(s);
}

static bool has_passed(const ad_worker *w, const ad_import_use *i) {
    return !i->passed || w->backend->event_done(i->passed, NULL) != 0;
}

bool ad__imports_settle(ad_worker *w) {
    bool all = true;
    for (ad_import_use *i = w->sharing->in, *next; i; i = next) {
        next = i->next;
        if (!i->leaving) continue;
        if (has_passed(w, i)) free_import(w, i);
        else all = false;
    }
    return all;
}

static void record_last_use(ad_worker *w, ad_import_use *i, const ad_stream_queue *home) {
    const ad_backend *backend = w->backend;
    if (backend->event_open(home->gpu->device, false, &i->passed, NULL)) i->passed = NULL;
    if (i->passed && !backend->event_record(i->passed, home->stream, NULL)) return;
    backend->stream_wait(home->stream, NULL);
    if (i->passed) backend->event_close(i->passed);
    i->passed = NULL;
}

void ad__import_gone(ad_worker_session *s, ad_buffer *b) {
    ad_import_use *i = b->import;
    ad__quota_leave(b->home, AD_USE_IMPORT, i->size);
    if (s->worker->backend->asynchronous && !ad__run_is_dropping(s)) {
        ad__stream_queue_frees(s, b, NULL);
        record_last_use(s->worker, i, b->home);
    }
    b->import = NULL;
    i->leaving = true;
    if (has_passed(s->worker, i)) free_import(s->worker, i);
    else ad__sharing_due_soon(s->worker);
}

void ad__imports_end(ad_worker_session *s) {
    for (ad_import_use *i = s->worker->sharing->in, *next; i; i = next) {
        next = i->next;
        if (i->of->session == s) free_import(s->worker, i);
    }
}

/* ---- the request ---- */

/* Receive the descriptor or the handle that the client has sent on the socket. */
static int receive_memory(const char *who, int fd, bool plain, uint8_t message[AD_IMPORT_MESSAGE], int *memory,
                          ad_fault *fault) {
    *memory = -1;
    if (!ad__is_stream_socket(fd)) return ad__fault(fault, AD_E_VALUE, "import: the descriptor is not a Unix socket");
    ssize_t n = ad__fdpass_receive(who, fd, message, AD_IMPORT_MESSAGE, memory);
    if (n == AD_IMPORT_MESSAGE && (*memory >= 0) != plain && *memory != AD_FD_LOST) return 0;
    if (*memory == AD_FD_LOST) return ad__fault(fault, AD_E_SYSTEM, "import: this process has too many descriptors");
    return ad__fault(fault, AD_E_VALUE, "import: no %s lay ready on its socket", plain ? "handle" : "descriptor");
}

static int check_request(const ad_worker_session *s, const ad_message *m, ad_fault *fault) {
    const uint64_t whole = m->u[4], offset = m->u[5], size = m->u[6];
    if (m->u[2] & ~(uint64_t)(AD_IMPORT_HANDLE | AD_IMPORT_READONLY))
        return ad__fault(fault, AD_E_VALUE, "import: there are no flags %" PRIu64, m->u[2]);
    if (!size || whole > INT64_MAX || offset > whole || size > whole - offset)
        return ad__fault(fault, AD_E_EXTENT,
                         "import: %" PRIu64 " bytes at %" PRIu64 " are no piece of an allocation of %" PRIu64 " bytes",
                         size, offset, whole);
    if (offset % AD_IMPORT_ALIGN)
        return ad__fault(fault, AD_E_VALUE, "import: the offset, %" PRIu64 ", is no multiple of %u", offset,
                         AD_IMPORT_ALIGN);
    uint64_t n = 0;
    for (const ad_import_use *i = s->worker->sharing->in; i; i = i->next)
        n += !strcmp(i->of->session->principal, s->principal);
    if (n < AD_LEASES) return 0;
    return ad__fault(fault, AD_E_LIMIT, "import: %s has %d imports, as many as it may have at a time", s->principal,
                     AD_LEASES);
}

static bool is_named(const ad_gpu *gpu, const ad_string *id) {
    return gpu && strlen(gpu->info.id) == id->size && !memcmp(gpu->info.id, id->data, id->size);
}

/* Find the stream queue with that id; a device's id stands for the current one, if that is on the device. */
static ad_stream_queue *find_stream_queue(ad_worker_session *s, const ad_string *id, ad_fault *fault) {
    ad_stream_queue *queue = ad__stream_queue_current(s, fault);
    if (!queue || is_named(queue->gpu, id)) return queue;
    for (int i = 0; i < s->worker->device.count && i < AD_DEVICES; i++) {
        ad_fault other = {0};
        if (is_named(ad__session_gpu(s, (uint64_t)i, &other), id)) return ad__stream_queue_find(s, (uint64_t)i, fault);
    }
    ad__fault(fault, AD_E_VALUE, "import: the server uses no device %.*s", (int)id->size, id->data);
    return NULL;
}

/* Find the allocation with the client's number, or map it. */
static int get_allocation(ad_worker_session *s, ad_stream_queue *queue, const ad_message *m, const uint8_t *handle,
                          int memory, ad_allocation **out, ad_fault *fault) {
    ad_allocation *a = find_mapped(s, m->u[3]);
    int status = a ? 0 : open_allocation(s, queue, m, handle, memory, &a, fault);
    if (status) return status;
    a->users++;
    *out = a;
    if (a->gpu == queue->gpu && m->u[5] <= a->map.size && m->u[6] <= a->map.size - m->u[5]) return 0;
    release_allocation(s->worker, a);
    return ad__fault(fault, AD_E_EXTENT,
                     "import: allocation %" PRIu64 " has not so many bytes, or is of another device", m->u[3]);
}

static void link_import(ad_worker *w, ad_import_use *i) {
    ad_sharing *all = w->sharing;
    i->link = &all->in;
    i->next = all->in;
    if (i->next) i->next->link = &i->next;
    all->in = i;
    all->imports++;
    all->imported += i->size;
}

static int make_buffer(ad_worker_session *s, ad_stream_queue *queue, ad_import_use *i, const ad_message *m,
                       ad_fault *fault) {
    ad_buffer *b;
    int status = ad__quota_adopt(s, queue, AD_USE_IMPORT, i->size, fault);
    if (status) return status;
    if ((status = ad__buffers_add(&s->buffers, m->u[1], &b, fault))) {
        ad__quota_leave(queue, AD_USE_IMPORT, i->size);
        return status;
    }
    b->import = i;
    b->address = (char *)i->of->map.base + i->offset;
    b->size = i->size;
    b->home = queue;
    b->readonly = m->u[2] & AD_IMPORT_READONLY;
    s->held.buffer_bytes += b->size;
    ad__checkpoint_mark_buffer(s, b);
    return 0;
}

/* Make an import with its buffer. The callee owns fd, also on failure. */
static int take_import(ad_worker_session *s, const ad_message *m, int fd, ad_stream_queue **queue, ad_fault *fault) {
    uint8_t message[AD_IMPORT_MESSAGE];
    int memory = -1, received = receive_memory(s->principal, fd, m->u[2] & AD_IMPORT_HANDLE, message, &memory, fault),
        status = check_request(s, m, fault);
    ad_import_use *i = NULL;
    _Static_assert(AD_SLAB_HANDLE == AD_IMPORT_MESSAGE, "a handle is the message");
    if (!status) status = received;
    if (!status && !(*queue = find_stream_queue(s, &m->s[0], fault))) status = fault->code;
    if (!status && !(i = ad__os.calloc(1, sizeof *i))) status = ad__fault(fault, AD_E_MEMORY, "out of host memory");
    if (!status) status = get_allocation(s, *queue, m, message, memory, &i->of, fault);
    if (memory >= 0) ad__discard(s->principal, memory);
    if (status) {
        free(i);
        ad__discard(s->principal, fd);
        return status;
    }
    i->lease = (ad_held_lease){.fd = fd, .over = handle_client_end};
    i->offset = m->u[5];
    i->size = m->u[6];
    link_import(s->worker, i);
    if (i->of->plain) status = ad__lease_watch(s->worker, &i->lease, fault);
    if (!status) status = make_buffer(s, *queue, i, m, fault);
    if (status) free_import(s->worker, i);
    return status;
}

/* Add a buffer without contents: another worker has answered the import, and its memory is lost. */
static void add_lost_buffer(ad_worker_session *s, uint64_t id) {
    ad_fault why = {0};
    ad_buffer *b;
    if (ad__buffers_add(&s->buffers, id, &b, &why)) return;
    ad__fault(&why, AD_E_DEVICE_LOST, AD_IMPORT_LOST);
    b->poison = ad__poison_new(&why, 0, "");
    ad__checkpoint_mark_buffer(s, b);
}

int ad__handle_import(ad_worker_session *s, ad_message *m, ad_fault *fault) {
    ad_stream_queue *queue = NULL;
    uint64_t number;
    int fd = ad__descriptors_take(&s->windows.descriptors, &number), status;
    if (fd < 0) {
        status = ad__fault(fault, AD_E_VALUE, "import: no descriptor came with it, for which it takes a Unix socket");
    } else {
        ad__checkpoint_release_descriptor(s, number);
        status = take_import(s, m, fd, &queue, fault);
    }
    if (status && s->checkpoint.resumed.silent) add_lost_buffer(s, m->u[1]);
    if (status) return status;
    ad__log(import_begins, s->id, s->principal, m->u[6]);
    ad__reply_ints(s, m->u[0], 1, (int64_t[]){queue->gpu->index});
    return 0;
}
