/* Loans: arrays of the server that are memory of this process's GPU.
 *
 *   this process                            server's worker
 *     lent->socket  <---- socket pair ---->  reads the memory's name, a descriptor or a handle, which lies ready
 *     watch_loans: waits until it is closed  closes its end when it uses the memory no more
 *
 * This process keeps the memory until then. One thread waits for all loans, and runs while there are any. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client-c/interop/export.h"
#include "client-c/interop/lend.h"
#include "protocol/rows_request.h"

#define STACK_SIZE (256u << 10)

struct ad_lent {
    ad_lent *next, **link; /* list of the loans that a server may use */
    atomic_uint refs;
    int generation;
    int socket;
    uint64_t serial, number; /* serial of the session; number of the allocation in it */
    uint64_t base, whole;    /* allocation that the memory lies in */
    uint64_t offset, size;   /* the array's buffer: its offset in the allocation and its size */
    int device;
    ad_loan loan;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards all variables here */
static ad_lent *lents;
static ad_lease *mapped; /* list of mapped exports, whose memory cannot be lent */
static uint64_t numbers;
static unsigned watched;
static int epoll_fd = -1; /* epoll's descriptor; -1: there is none yet */
static bool watching;     /* the thread runs */

/* ---- references ---- */

static bool is_own(const ad_lent *l) { return l->generation == atomic_load(&ad__generation); }

ad_lent *ad__lent_of(const ad_array *a) {
    ad_lent *l = a->base ? a->base->lent : a->lent;
    if (!l || !is_own(l)) return NULL; /* a fork's child has a copy of the elements */
    atomic_fetch_add(&l->refs, 1);
    return l;
}

void ad__lent_release(ad_lent *l) {
    if (!l || atomic_fetch_sub(&l->refs, 1) > 1) return;
    if (is_own(l) && l->loan.release) l->loan.release(l->loan.argument);
    free(l);
}

int ad__lent_device(const ad_lent *l) { return l->device; }

void *ad__lent_address(const ad_lent *l) { return l && is_own(l) ? (void *)(uintptr_t)(l->base + l->offset) : NULL; }

static void link_loan(ad_lent *l) {
    l->link = &lents;
    l->next = lents;
    if (l->next) l->next->link = &l->next;
    lents = l;
}

/* Remove a loan from the list, and close its socket. The caller holds the lock. */
static void unlink_loan(ad_lent *l) {
    *l->link = l->next;
    if (l->next) l->next->link = l->link;
    if (l->socket >= 0) close(l->socket);
}

/* ---- the end of a loan ---- */

/* End a loan. The socket is removed from epoll first: a forked process may have it, too, so that closing it does not
 * remove it. */
static void end_loan(ad_lent *l) {
    pthread_mutex_lock(&lock);
    epoll_ctl(epoll_fd, EPOLL_CTL_DEL, l->socket, NULL);
    unlink_loan(l);
    watched--;
    pthread_mutex_unlock(&lock);
    ad__lent_release(l);
}

/* Tell whether the thread has loans to watch, else record its end. A new thread may be started as soon as the lock is
 * free. */
static bool must_keep_watching(void) {
    pthread_mutex_lock(&lock);
    const bool on = watching = watched != 0;
    pthread_mutex_unlock(&lock);
    return on;
}

static void *watch_loans(void *unused) {
    struct epoll_event event[16];
    prctl(PR_SET_NAME, "arrayd-lent");
    do {
        int n = epoll_wait(epoll_fd, event, 16, -1);
        for (int i = 0; i < n; i++) end_loan(event[i].data.ptr);
    } while (must_keep_watching());
    return unused;
}

/* Start the thread with all signals blocked: signals are for the program's threads. The caller holds the lock. */
static bool start_watcher(void) {
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all, before;
    if (pthread_attr_init(&attributes) != 0) return false;
    pthread_attr_setstacksize(&attributes, STACK_SIZE);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    watching = (errno = pthread_create(&thread, &attributes, watch_loans, NULL)) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return watching;
}

/* Watch a loan's socket. The thread then has a reference to the loan. AD_E_SYSTEM. */
static int watch_loan(ad_lent *l) {
    struct epoll_event event = {.events = EPOLLIN | EPOLLRDHUP, .data.ptr = l};
    pthread_mutex_lock(&lock);
    atomic_fetch_add(&l->refs, 1);
    if (epoll_fd < 0) epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    bool good = epoll_fd >= 0 && epoll_ctl(epoll_fd, EPOLL_CTL_ADD, l->socket, &event) == 0;
    watched += good;
    if (good && !watching && !start_watcher()) {
        epoll_ctl(epoll_fd, EPOLL_CTL_DEL, l->socket, NULL);
        watched--;
        good = false;
    }
    if (!good) atomic_fetch_sub(&l->refs, 1);
    pthread_mutex_unlock(&lock);
    return good ? 0 : ad__fail(AD_E_SYSTEM, "lend: no thread can wait for the server: %s", strerror(errno));
}

/* ---- forks ---- */

void ad__lend_before_fork(void) { pthread_mutex_lock(&lock); }

/* Unlock, and in a child drop all loans: it has neither the thread nor the memory. Its copies of the sockets must not
 * keep the parent's loans. */
void ad__lend_forked(bool child) {
    while (child && lents) {
        ad_lent *l = lents;
        unlink_loan(l);
        ad__lent_release(l); /* the parent's memory is not released: is_own is false */
    }
    if (child) {
        if (epoll_fd >= 0) close(epoll_fd);
        epoll_fd = -1;
        watched = 0;
        watching = false;
    }
    pthread_mutex_unlock(&lock);
}

/* ---- exports in this process ---- */

void ad__lend_mapped(ad_lease *l) {
    pthread_mutex_lock(&lock);
    l->next_mapped = mapped;
    mapped = l;
    pthread_mutex_unlock(&lock);
}

void ad__lend_unmapped(ad_lease *l) {
    pthread_mutex_lock(&lock);
    ad_lease **at = &mapped;
    while (*at && *at != l) at = &(*at)->next_mapped;
    if (*at) *at = l->next_mapped;
    pthread_mutex_unlock(&lock);
}

/* Refuse memory that the server has exported: two arrays of one memory would not know of each other. */
static int check_not_exported(uint64_t data) {
    pthread_mutex_lock(&lock);
    const ad_lease *l = mapped;
    while (l && data - (uint64_t)(uintptr_t)l->base >= l->size) l = l->next_mapped;
    pthread_mutex_unlock(&lock);
    return l ? ad__fail(AD_E_UNSUPPORTED, "lend: the memory is that of an array of the server") : 0;
}

/* ---- lending ---- */

/* Find the extent of the elements in bytes, from *before (0 or negative) to *behind the first element.
 * AD_E_UNSUPPORTED: there are no elements; AD_E_VALUE. */
static int measure_extent(const ad_layout *o, int64_t *before, int64_t *behind) {
    *before = 0;
    *behind = ad__dtypes[o->dtype].size;
    for (int i = 0; i < o->ndim; i++) {
        int64_t reach;
        if (o->shape[i] == 0) return ad__fail(AD_E_UNSUPPORTED, "lend: the array has no elements");
        if (__builtin_mul_overflow(o->strides[i], o->shape[i] - 1, &reach) ||
            __builtin_add_overflow(reach < 0 ? *before : *behind, reach, reach < 0 ? before : behind))
            return ad__fail(AD_E_VALUE, "lend: the array is too big");
    }
    return 0;
}

/* Return the allocation's number: the same for all loans of it in one session. The caller holds the lock. */
static uint64_t find_allocation_number(const ad_lent *l) {
    const ad_lent *other = lents;
    while (other && (other->serial != l->serial || other->base != l->base || other->whole != l->whole))
        other = other->next;
    return other ? other->number : ++numbers;
}

/* Remove a loan of which the server does not know. */
static void discard_loan(ad_lent *l) {
    pthread_mutex_lock(&lock);
    unlink_loan(l);
    pthread_mutex_unlock(&lock);
}

/* Make a loan, and add it to the list; NULL with a failure. */
static ad_lent *create_loan(const ad_session *s, const ad_loan *loan, const ad_place *p, uint64_t first,
                            uint64_t size) {
    ad_lent *l = calloc(1, sizeof *l);
    if (!l) {
        ad__fail_memory();
        return NULL;
    }
    atomic_init(&l->refs, 1);
    l->generation = atomic_load(&ad__generation);
    l->serial = s->serial;
    l->base = p->base;
    l->whole = p->size;
    l->offset = (first - p->base) & ~(uint64_t)(AD_IMPORT_ALIGN - 1);
    l->size = first - p->base + size - l->offset;
    l->device = p->device;
    l->loan = *loan;
    l->socket = -1;
    pthread_mutex_lock(&lock);
    l->number = find_allocation_number(l);
    link_loan(l);
    pthread_mutex_unlock(&lock);
    return l;
}

/* Send the memory's descriptor or handle, which the server will read. AD_E_SYSTEM. */
static int send_memory_name(int socket, const ad_place *p) {
    union {
        char space[CMSG_SPACE(sizeof(int))];
        struct cmsghdr header;
    } control;
    struct iovec part = {(void *)(uintptr_t)p->message, sizeof p->message};
    struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1};
    if (p->fd >= 0) {
        memset(&control, 0, sizeof control);
        control.header =
            (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof p->fd)};
        memcpy(CMSG_DATA(&control.header), &p->fd, sizeof p->fd);
        m.msg_control = &control;
        m.msg_controllen = sizeof control;
    }
    if (sendmsg(socket, &m, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof p->message) return 0;
    return ad__fail(AD_E_SYSTEM, "lend: %s", strerror(errno));
}

/* Ask the server to import the memory. *device: the server's number of the GPU. */
static int ask_import(ad_session *s, const ad_lent *l, const ad_place *p, int theirs, uint64_t *buffer,
                      int64_t *device) {
    const uint64_t flags = (p->fd < 0 ? AD_IMPORT_HANDLE : 0) | (l->loan.readonly ? AD_IMPORT_READONLY : 0);
    const uint64_t fields[] = {flags, l->number, l->whole, l->offset, l->size};
    ad_slot slot;
    ad__slot_init(&slot, NULL, 0);
    int status = ad__pass_ask(s, AD_REQ_IMPORT, 5, fields, p->id, theirs, &slot, buffer);
    if (!status && slot.nvalues < 1) {
        ad__queue_free(s, *buffer, 0);
        status = ad__fail(AD_E_PROTOCOL, "lend: a reply of another form");
    }
    if (!status) *device = slot.values[0];
    return status;
}

/* Make the socket pair under the lock, so that a fork's child knows of this end and closes it. */
static int open_loan_sockets(ad_lent *l, int *theirs) {
    int end[2];
    pthread_mutex_lock(&lock);
    int status = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, end);
    if (!status) {
        l->socket = end[0];
        *theirs = end[1];
    }
    pthread_mutex_unlock(&lock);
    return status ? ad__fail(AD_E_SYSTEM, "lend: no socket pair: %s", strerror(errno)) : 0;
}

/* Offer the memory to the server, and make the array. From then on the loan ends when the server closes its end, also
 * after a failure. */
static int offer_memory(ad_session *s, ad_lent *l, const ad_place *p, const ad_layout *layout, ad_array **out) {
    int theirs = -1;
    uint64_t buffer;
    int64_t device;
    ad_array *a;
    int status = open_loan_sockets(l, &theirs);
    if (!status) status = send_memory_name(l->socket, p);
    if (!status) status = watch_loan(l);
    if (status) {
        if (theirs >= 0) close(theirs);
        discard_loan(l);
        return status;
    }
    if ((status = ask_import(s, l, p, theirs, &buffer, &device))) return status;
    status = ad__lay_out(s, buffer, (int64_t)l->size, (uint8_t)device, l->loan.readonly, layout, &a);
    if (status) return status;
    (a->base ? a->base : a)->lent = l;
    *out = a;
    return 0;
}

/* Lend `size` bytes from `first` on. */
static int lend_at(ad_session *s, const ad_loan *loan, const ad_place *p, uint64_t first, uint64_t size,
                   const ad_layout *o, ad_array **out) {
    ad_fault fault;
    ad_lent *l = create_loan(s, loan, p, first, size);
    if (!l) return AD_E_MEMORY;
    const int64_t before = (int64_t)((uint64_t)(uintptr_t)loan->data - p->base - l->offset);
    int64_t strides[AD_MAX_NDIM];
    ad__strides_walked(o->ndim, o->shape, o->strides, strides);
    const ad_layout layout = {o->dtype, o->ndim, before, o->shape, strides};
    const ad_desc d = {.offset = before,
                       .shape = o->shape,
                       .strides = strides,
                       .dtype = (uint8_t)o->dtype,
                       .ndim = (uint8_t)o->ndim,
                       .form = AD_VIEW};
    int status = ad__desc_check(&d, (int64_t)l->size, "lend: the array", &fault);
    if (status) {
        ad__fail_fault(&fault);
        discard_loan(l);
    } else {
        status = offer_memory(s, l, p, &layout, out);
    }
    if (!status) return 0;
    l->loan.release = NULL; /* the memory stays the caller's */
    ad__lent_release(l);
    return status;
}

static int check_lendable(const ad_session *s, const ad_loan *loan, const ad_layout *layout) {
    int status = ad__shape_check(layout->ndim, layout->shape, layout->dtype);
    if (status) return status;
    if (!loan->release)
        return ad__fail(AD_E_VALUE, "lend: a release function is needed, which is called when the server has let go");
    if (ad__is_remote(&s->connection.address))
        return ad__fail(AD_E_UNSUPPORTED, "lend: memory can be had over a Unix socket only, and this session is at %s",
                        s->connection.address.url);
    if (strcmp(s->welcome.backend, "cuda") != 0) return ad__fail(AD_E_UNSUPPORTED, "lend: the server uses no GPU");
    return 0;
}

int ad_lend(ad_session *s, const ad_loan *loan, const ad_layout *layout, ad_array **out) {
    int64_t before, behind;
    ad_place place;
    int status = check_lendable(s, loan, layout);
    if (!status) status = measure_extent(layout, &before, &behind);
    if (status) return status;
    const uint64_t first = (uint64_t)(uintptr_t)loan->data + (uint64_t)before, size = (uint64_t)(behind - before);
    if ((status = check_not_exported(first))) return status;
    status = ad__cuda_find((void *)(uintptr_t)first, size, loan->device, loan->stream, &place);
    if (status) return status;
    status = lend_at(s, loan, &place, first, size, layout, out);
    if (place.fd >= 0) close(place.fd);
    if (!status) atomic_fetch_add(&s->counts.lent, 1);
    return status;
}
