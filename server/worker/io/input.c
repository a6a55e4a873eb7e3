#include "server/worker/io/input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "server/common/discard.h"
#include "server/common/os.h"
#include "server/worker/session.h"

#define LEAST_ROOM 4096 /* bytes of free room below which a block is not read into any further */

/* A free block for the next reader, so that the memory that busy sockets are read into stays in the cache. */
static _Atomic(ad_input_block *) kept_block;

static ad_input_block *take_block(const ad_input *in, size_t capacity) {
    ad_input_block *b = capacity == AD_INPUT_BLOCK ? atomic_exchange(&kept_block, NULL) : NULL;
    if (b && b->journal == in->journal) return b;
    if (b) ad__journal_free(b->journal, b);
    return ad__journal_alloc(in->journal, sizeof *b + capacity);
}

static void release_block(ad_input_block *b) {
    if (atomic_fetch_sub(&b->users, 1) != 1) return;
    if (b->capacity == AD_INPUT_BLOCK) b = atomic_exchange(&kept_block, b);
    if (b) ad__journal_free(b->journal, b);
}

/* Append the block to the session's list in the journal. */
static void record_block(ad_input *in, ad_input_block *b) {
    if (!in->at) return;
    atomic_fetch_add(&b->users, 1);
    b->own.data = ad__journal_at(in->journal, b->data);
    ad__journal_store(in->last ? &in->last->own.next : &in->at->input, ad__journal_at(in->journal, b));
    if (in->last) in->last->next = b;
    else in->first = b;
    in->last = b;
}

/* Create the next block, which begins with the last `size` bytes that were received. */
static ad_input_block *create_block(ad_input *in, size_t capacity, const void *data, size_t size) {
    ad_input_block *b = take_block(in, capacity);
    if (!b) return NULL;
    *b = (ad_input_block){
        .own = {.base = in->received - size, .size = size}, .journal = in->journal, .capacity = capacity, .used = size};
    atomic_init(&b->users, 1);
    if (size) memcpy(b->data, data, size);
    record_block(in, b);
    return b;
}

static void count_received(ad_input *in, size_t n) {
    ad_input_block *b = in->block;
    b->used += n;
    in->received += n;
    ad__journal_store(&b->own.size, b->used);
    if (in->at) ad__journal_store(&in->at->received, in->received);
}

void ad__input_ask_sender(int fd, bool ask) {
    const int on = ask;
    setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof on);
}

static int take_descriptors(const struct cmsghdr *c, ad_descriptors *d) {
    size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    int status = 0;
    for (size_t i = 0; i < n; i++) {
        int fd;
        memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
        int put = ad__descriptors_put(d, fd);
        if (!status) status = put;
    }
    return status;
}

/* Take the descriptors and the sender's process that came beside the bytes. AD_E_LIMIT. */
static int take_control(ad_input *in, struct msghdr *m, ad_descriptors *d) {
    int status = m->msg_flags & MSG_CTRUNC ? AD_E_LIMIT : 0;
    struct ucred sender;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level != SOL_SOCKET) continue;
        if (c->cmsg_type == SCM_CREDENTIALS) {
            memcpy(&sender, CMSG_DATA(c), sizeof sender);
            in->process = sender.pid > 0 ? (uint64_t)sender.pid : 0;
        } else if (c->cmsg_type == SCM_RIGHTS) {
            int taken = take_descriptors(c, d);
            if (!status) status = taken;
        }
    }
    return status;
}

/* Copy all records that are there, and fit the block, out of the ring. 1: bytes have come; 0: *size bytes at most are
 * to be received from the socket (0: none that the client has announced); AD_E_PROTOCOL. */
static int read_ring(ad_input *in, uint64_t *size) {
    ad_input_block *b = in->block;
    int came = 0, source;
    while (b->used < b->capacity && (source = ad__ring_look(in->ring, size)) == AD_RING_RECORD) {
        const size_t room = b->capacity - b->used, n = *size < room ? (size_t)*size : room;
        ad__ring_take(in->ring, b->data + b->used, n);
        count_received(in, n);
        came = 1;
    }
    return came ? came : source < 0 ? AD_E_PROTOCOL : 0;
}

/* Find out what a socket has of which the client has announced nothing. 0: nothing; 1: it has announced it meanwhile.
 */
static int look_at_socket(const ad_input *in, int fd) {
    char byte;
    uint64_t size;
    ssize_t n = ad__os.recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    if (n < 0) return errno == EAGAIN || errno == EINTR ? 0 : AD_E_CONNECTION;
    if (n == 0) return AD_E_CONNECTION;
    return ad__ring_look(in->ring, &size) > AD_RING_EMPTY ? 1 : AD_E_PROTOCOL;
}

static int read_socket(ad_input *in, int fd, uint64_t most, ad_descriptors *d) {
    ad_input_block *b = in->block;
    const size_t room = b->capacity - b->used;
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(AD_DISCARD_MOST * sizeof(int)) + CMSG_SPACE(sizeof(struct ucred))];
    struct iovec space = {b->data + b->used, most < room ? (size_t)most : room};
    struct msghdr m = {.msg_iov = &space, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    if (ad__discard_is_full(d->who)) return AD_E_LIMIT;
    ssize_t n = ad__os.recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0) return errno == EAGAIN || errno == EINTR ? 0 : AD_E_CONNECTION;
    int status = m.msg_controllen ? take_control(in, &m, d) : 0; /* before the bytes count as received */
    count_received(in, (size_t)n);
    if (in->ring) ad__ring_count_received(in->ring, (uint64_t)n);
    return status ? status : n ? 1 : AD_E_CONNECTION;
}

int ad__input_read(ad_input *in, int fd, ad_descriptors *d) {
    uint64_t most = UINT64_MAX;
    if (!in->block) {
        if (!(in->block = create_block(in, AD_INPUT_BLOCK, NULL, 0))) return AD_E_MEMORY;
        in->start = 0;
    }
    for (int found = 1; in->ring && found > 0;) {
        const int came = read_ring(in, &most);
        if (came) return came;
        if (most) break;
        found = look_at_socket(in, fd);
        if (found <= 0) return found;
    }
    return read_socket(in, fd, most, d);
}

/* Continue a frame that does not fit its block in a block with room for all of it. Its size is from a checked header,
 * and memory that nothing was received into is not touched. AD_E_MEMORY. */
static int move_to_new_block(ad_input *in, size_t need) {
    ad_input_block *old = in->block;
    ad_input_block *b =
        create_block(in, need > AD_INPUT_BLOCK ? need : AD_INPUT_BLOCK, old->data + in->start, old->used - in->start);
    if (!b) return AD_E_MEMORY;
    release_block(old);
    in->block = b;
    in->start = 0;
    return 0;
}

int ad__input_put(ad_input *in, const void *data, size_t size) {
    ad_input_block *b = in->block;
    if (!b && !(b = in->block = create_block(in, size > AD_INPUT_BLOCK ? size : AD_INPUT_BLOCK, NULL, 0)))
        return AD_E_MEMORY;
    if (b->capacity - b->used < size) return AD_E_MEMORY;
    memcpy(b->data + b->used, data, size);
    count_received(in, size);
    return 0;
}

int ad__input_next(ad_input *in, ad_input_frame *f, ad_fault *fault) {
    ad_input_block *b = in->block;
    ad_frame head;
    size_t there = b ? b->used - in->start : 0, need = AD_FRAME_HEADER;
    if (there >= AD_FRAME_HEADER) {
        int status = ad__frame_decode(b->data + in->start, AD_MAX_CONTROL, AD_MAX_PAYLOAD, &head, fault);
        if (status) return status;
        if (head.flags & AD_FRAME_NOTES) {
            in->note_place = b->own.base + in->start;
            in->start += AD_FRAME_HEADER;
            in->note = head;
            return AD_INPUT_NOTE;
        }
        if (head.flags) return ad__fault(fault, AD_E_PROTOCOL, "flag MORE from a client");
        need += head.control + (size_t)head.payload;
    }
    if (there < need || there < AD_FRAME_HEADER) {
        bool fits = !b || in->start + need <= b->capacity;
        return there && !fits ? move_to_new_block(in, need) : 0;
    }
    const uint8_t *p = b->data + in->start + AD_FRAME_HEADER;
    *f = (ad_input_frame){b, p, p + head.control, head.control, (uint32_t)head.payload, 0};
    atomic_fetch_add(&b->users, 1);
    in->start += need;
    return 1;
}

void ad__input_release_used(ad_input *in) {
    ad_input_block *b = in->block;
    if (!b || in->start < b->used) return;
    if (atomic_load(&b->users) > (in->at ? 2u : 1u) && b->capacity - b->used >= LEAST_ROOM) return;
    release_block(b);
    in->block = NULL;
}

void ad__input_forget(ad_input *in, uint64_t before) {
    while (in->first && in->first != in->block && in->first->own.base + in->first->used <= before) {
        ad_input_block *b = in->first;
        in->first = b->next;
        if (!in->first) in->last = NULL;
        ad__journal_store(&in->at->input, b->own.next);
        release_block(b);
    }
}

void ad__input_close(ad_input *in) {
    if (in->block) release_block(in->block);
    in->block = NULL;
    if (in->at) ad__input_forget(in, UINT64_MAX);
}

void ad__input_release(ad_input_frame *f) {
    if (f->block) release_block(f->block);
    f->block = NULL;
}

int ad__input_push(ad_input_queue *q, const ad_input_frame *f) {
    if (q->count == q->capacity) {
        uint32_t more = q->capacity ? 2 * q->capacity : 16;
        ad_input_frame *ring = ad__os.malloc(more * sizeof *ring);
        if (!ring) return AD_E_MEMORY;
        for (uint32_t i = 0; i < q->count; i++) ring[i] = q->ring[(q->first + i) & (q->capacity - 1)];
        free(q->ring);
        q->ring = ring;
        q->capacity = more;
        q->first = 0;
    }
    q->ring[(q->first + q->count++) & (q->capacity - 1)] = *f;
    q->operations += f->operations;
    q->bytes += AD_FRAME_HEADER + f->control_size + (size_t)f->payload_size;
    return 0;
}

bool ad__input_pop(ad_input_queue *q, ad_input_frame *f) {
    if (!q->count) return false;
    *f = q->ring[q->first];
    q->first = (q->first + 1) & (q->capacity - 1);
    q->count--;
    q->operations -= f->operations;
    q->bytes -= AD_FRAME_HEADER + f->control_size + (size_t)f->payload_size;
    return true;
}

void ad__input_clear(ad_input_queue *q) {
    ad_input_frame f;
    while (ad__input_pop(q, &f)) ad__input_release(&f);
    free(q->ring);
    *q = (ad_input_queue){0};
}

/* ---- the input as a component ---- */

static int open_input(ad_worker_session *s, const ad_note *note) {
    (void)note;
    ad__descriptors_init(&s->windows.descriptors, s->principal);
    return 0;
}

static void close_input(ad_worker_session *s) {
    ad__input_close(&s->input);
    ad__descriptors_close(&s->windows.descriptors);
}

const ad_component ad__component_input = {.name = "input", .open = open_input, .close = close_input};
