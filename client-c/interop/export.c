/* Exports: a lease gives this process the memory of an array.
 *
 *   this process                            server's worker
 *     lease->socket  <--- socket pair --->  the export: it lasts until the pair is closed
 *     lease->fd      <--- descriptor or handle of the memory, sent through the pair before the reply
 *
 * The lease ends with this process at the latest. The memory of a read-only array is only read: it stays as it is, and
 * who writes to the array gets a copy. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client-c/interop/export.h"
#include "client-c/interop/lend.h"
#include "client-c/interop/ranges.h"
#include "protocol/rows_request.h"

/* Receive 64 bytes, and the descriptor that comes with them, in place of those before. 0: no more are there. */
static ssize_t receive_part(ad_lease *l, int *flags) {
    union {
        char space[CMSG_SPACE(sizeof(int))];
        struct cmsghdr header;
    } control;
    struct iovec part = {l->event, sizeof l->event};
    struct msghdr m = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control.space};
    const ssize_t n = recvmsg(l->socket, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n <= 0) return 0;
    const struct cmsghdr *h = CMSG_FIRSTHDR(&m);
    if (l->fd >= 0) close(l->fd);
    l->fd = -1;
    if (h && h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS && h->cmsg_len == CMSG_LEN(sizeof l->fd))
        memcpy(&l->fd, CMSG_DATA(h), sizeof l->fd);
    *flags = m.msg_flags;
    return n;
}

/* Receive what the server has sent before its reply: 64 bytes, and with them a descriptor unless the bytes are a
 * handle. A worker that was killed before it replied may have sent memory, too, which the array no longer has: what
 * came last is of the worker that has replied. */
static int receive_message(ad_lease *l) {
    int flags = 0;
    ssize_t last = 0;
    for (ssize_t n; (n = receive_part(l, &flags)) > 0;) last = n;
    if ((l->fd >= 0) != l->by_handle && last == (ssize_t)sizeof l->event) return 0;
    return ad__fail(flags & MSG_CTRUNC ? AD_E_SYSTEM : AD_E_PROTOCOL, "export: no %s came with the reply%s",
                    l->by_handle ? "handle" : "descriptor",
                    flags & MSG_CTRUNC ? ": this process has too many open" : "");
}

static int ask_export(const ad_array *a, ad_lease *l, int theirs) {
    const uint64_t fields[] = {a->buffer, l->by_handle ? AD_EXPORT_HANDLE : l->readonly ? AD_EXPORT_READONLY : 0};
    ad_slot slot;
    ad__slot_init(&slot, l->id, sizeof l->id - 1);
    slot.variable = true;
    int status = ad__pass_ask(a->session, AD_REQ_EXPORT, 2, fields, NULL, theirs, &slot, NULL);
    if (status) return status;
    if (slot.nvalues == 3 && !slot.values[0] && l->lent) return 0; /* the memory is this process's own */
    if (slot.nvalues < 3 || slot.values[0] <= 0) return ad__fail(AD_E_PROTOCOL, "export: a reply of another form");
    l->size = (uint64_t)slot.values[0];
    for (int i = 0; i < 2 && slot.nvalues == 5; i++) l->memory[i] = (uint64_t)slot.values[3 + i];
    return receive_message(l);
}

static bool is_on_gpu(const ad_array *a) { return strcmp(a->session->welcome.backend, "cuda") == 0; }

static int check_exportable(const ad_array *a, bool by_handle) {
    if (ad__is_remote(&a->session->connection.address))
        return ad__fail(AD_E_UNSUPPORTED,
                        "export: memory can be had over a Unix socket only, and this session is at %s",
                        a->session->connection.address.url);
    if (!a->count) return ad__fail(AD_E_UNSUPPORTED, "export: the array has no elements");
    return by_handle ? ad__check_writable(a, "ipc_handle: the array") : 0;
}

static int export_array(const ad_array *a, bool by_handle, ad_lease **lease) {
    int end[2], status = check_exportable(a, by_handle);
    if (status) return status;
    ad__array_disown(a);
    ad_lease *l = calloc(1, sizeof *l);
    if (!l) return ad__fail_memory();
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, end)) {
        free(l);
        return ad__fail(AD_E_SYSTEM, "export: no socket pair: %s", strerror(errno));
    }
    atomic_init(&l->refs, 1);
    pthread_mutex_init(&l->mapping, NULL);
    l->generation = atomic_load(&ad__generation);
    l->socket = end[0];
    l->fd = -1;
    l->offset = a->offset;
    l->device = -1;
    l->cuda = is_on_gpu(a);
    l->by_handle = by_handle;
    l->readonly = a->readonly;
    if ((l->lent = by_handle ? NULL : ad__lent_of(a))) {
        l->base = ad__lent_address(l->lent);
        l->device = ad__lent_device(l->lent);
        l->size = (uint64_t)(a->base ? a->base : a)->size;
    }
    status = ask_export(a, l, end[1]);
    if (status) ad_export_close(l);
    else *lease = l;
    return status;
}

int ad_export(const ad_array *a, ad_lease **lease) { return export_array(a, false, lease); }

int ad_ipc_handle(const ad_array *a, void *handle, ad_lease **lease) {
    ad_lease *l;
    if (!is_on_gpu(a))
        return ad__fail(AD_E_UNSUPPORTED, "ipc_handle: the server uses no GPU, whose memory would have a handle");
    int status = export_array(a, true, &l);
    if (status) return status;
    memcpy(handle, l->event, sizeof l->event);
    *lease = l;
    return 0;
}

/* Map the memory. Memory that is only read is mapped privately: a library that writes there all the same, as it does
 * not know the flag of DLPack, changes its own pages. */
static int map_host(ad_lease *l) {
    void *base =
        mmap(NULL, l->size, PROT_READ | PROT_WRITE, l->readonly ? MAP_PRIVATE | MAP_NORESERVE : MAP_SHARED, l->fd, 0);
    if (base == MAP_FAILED)
        return ad__fail(AD_E_MEMORY, "export: cannot map %llu bytes: %s", (unsigned long long)l->size, strerror(errno));
    l->base = base;
    return 0;
}

static int map_lease(ad_lease *l, void *stream) {
    if (!ad__range_find(l)) {
        int status = l->cuda ? ad__cuda_map(l, stream) : map_host(l);
        if (status) return status;
        ad__range_add(l);
    }
    if (l->cuda) ad__lend_mapped(l);
    close(l->fd);
    l->fd = -1;
    return 0;
}

int ad_import(ad_lease *l, void *stream, void **data) {
    if (l->generation != atomic_load(&ad__generation)) return ad__fail_foreign();
    if (l->by_handle) return ad__fail(AD_E_UNSUPPORTED, "import: this lease's memory is to be opened by its handle");
    pthread_mutex_lock(&l->mapping);
    int status = l->base ? 0 : map_lease(l, stream);
    pthread_mutex_unlock(&l->mapping);
    if (!status) *data = (char *)l->base + l->offset;
    return status;
}

void ad_export_get_info(const ad_lease *lease, ad_lease_info *info) {
    ad_lease *l = (ad_lease *)(uintptr_t)lease; /* the lock is all that changes */
    const bool own =
        l->generation == atomic_load(&ad__generation); /* in a fork's child the lock may be held for ever */
    if (own) pthread_mutex_lock(&l->mapping);
    *info = (ad_lease_info){l->base, l->size, l->offset, l->fd, l->cuda, l->device, l->id};
    if (own) pthread_mutex_unlock(&l->mapping);
}

ad_lease *ad_export_retain(ad_lease *l) {
    atomic_fetch_add(&l->refs, 1);
    return l;
}

/* End the lease's mapping. In a fork's child there is none of a GPU's memory. */
static void unmap_lease(ad_lease *l, bool own) {
    if (l->cuda && own) ad__lend_unmapped(l);
    if (!ad__range_leave(l)) return;
    if (!l->cuda) munmap(l->base, l->size);
    else if (own) ad__cuda_unmap(l);
}

void ad_export_close(ad_lease *l) {
    if (!l || atomic_fetch_sub(&l->refs, 1) > 1) return;
    const bool own = l->generation == atomic_load(&ad__generation);
    if (l->lent) ad__lent_release(l->lent);
    else if (l->base) unmap_lease(l, own);
    if (l->fd >= 0) close(l->fd);
    /* A fork's children may have the socket, too, and must not keep the lease, unless they read what stays as it is. */
    if (own && (!l->readonly || l->cuda)) shutdown(l->socket, SHUT_RDWR);
    close(l->socket);
    pthread_mutex_destroy(&l->mapping);
    free(l);
}

static int check_device_write(const ad_array *a, size_t size) {
    const uint64_t own = (uint64_t)a->count * ad__dtypes[a->dtype].size;
    if (!is_on_gpu(a))
        return ad__fail(AD_E_UNSUPPORTED, "the server uses no GPU, so nothing can be copied there from one");
    if (!a->contiguous) return ad__fail(AD_E_VALUE, "the array is not contiguous");
    if (ad__check_writable(a, "the array")) return AD_E_VALUE;
    if (size == own) return 0;
    return ad__fail(AD_E_VALUE, "the array has %llu bytes, not %llu", (unsigned long long)own,
                    (unsigned long long)size);
}

int ad_write_device(const ad_array *a, int device, const void *data, size_t size) {
    ad_lease *l;
    void *to;
    int status = check_device_write(a, size);
    if (status || !size) return status;
    if ((status = ad_export(a, &l))) return status;
    status = ad_import(l, NULL, &to);
    if (!status) status = ad__cuda_copy(l, device, to, data, size);
    ad_export_close(l);
    if (!status) atomic_fetch_add(&a->session->counts.copied, 1);
    return status;
}
