#include "server/worker/input.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "server/common/os.h"

#define LEAST_ROOM 4096 /* a block with less left is not read into any further */

/* One block kept for the next reader, so that the memory that a busy socket is read into stays in the cache. */
static _Atomic(ad_input_block *) kept_block;

static ad_input_block *block_new(size_t capacity) {
    ad_input_block *b = capacity == AD_INPUT_BLOCK ? atomic_exchange(&kept_block, NULL) : NULL;
    if (!b && !(b = ad__os.malloc(sizeof *b + capacity))) return NULL;
    atomic_init(&b->users, 1);
    b->capacity = capacity;
    b->used = 0;
    return b;
}

static void block_release(ad_input_block *b) {
    if (atomic_fetch_sub(&b->users, 1) != 1) return;
    if (b->capacity == AD_INPUT_BLOCK) b = atomic_exchange(&kept_block, b);
    free(b);
}

static int take_descriptors(struct msghdr *m, ad_descriptors *d) {
    int status = m->msg_flags & MSG_CTRUNC ? AD_E_LIMIT : 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
        size_t n = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < n; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(c) + i * sizeof fd, sizeof fd);
            int put = ad__descriptors_put(d, fd);
            if (!status) status = put;
        }
    }
    return status;
}

int ad__input_read(ad_input *in, int fd, ad_descriptors *d) {
    ad_input_block *b = in->block;
    if (!b) {
        if (!(b = in->block = block_new(AD_INPUT_BLOCK))) return AD_E_MEMORY;
        in->start = 0;
    }
    _Alignas(struct cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))];
    struct iovec space = {b->data + b->used, b->capacity - b->used};
    struct msghdr m = {.msg_iov = &space, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control};
    ssize_t n = ad__os.recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (n < 0) return errno == EAGAIN || errno == EINTR ? 0 : AD_E_CONNECTION;
    b->used += (size_t)n;
    in->received += (uint64_t)n;
    int status = m.msg_controllen ? take_descriptors(&m, d) : 0;
    return status ? status : n ? 1 : AD_E_CONNECTION;
}

/* The rest of the frame that begins at start does not fit: go on in a block that has room for all of it. The size is
 * that of a checked header, and memory that nothing has been received into is not touched. */
static int move(ad_input *in, size_t need) {
    ad_input_block *old = in->block;
    ad_input_block *b = block_new(need > AD_INPUT_BLOCK ? need : AD_INPUT_BLOCK);
    if (!b) return AD_E_MEMORY;
    b->used = old->used - in->start;
    memcpy(b->data, old->data + in->start, b->used);
    block_release(old);
    in->block = b;
    in->start = 0;
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
            in->start += AD_FRAME_HEADER;
            in->note = head;
            return AD_INPUT_NOTE;
        }
        if (head.flags) return ad__fault(fault, AD_E_PROTOCOL, "flag MORE from a client");
        need += head.control + (size_t)head.payload;
    }
    if (there < need || there < AD_FRAME_HEADER) {
        bool fits = !b || in->start + need <= b->capacity;
        return there && !fits ? move(in, need) : 0;
    }
    const uint8_t *p = b->data + in->start + AD_FRAME_HEADER;
    *f = (ad_input_frame){b, p, p + head.control, head.control, (uint32_t)head.payload};
    atomic_fetch_add(&b->users, 1);
    in->start += need;
    return 1;
}

void ad__input_rest(ad_input *in) {
    ad_input_block *b = in->block;
    if (!b || in->start < b->used) return;
    if (atomic_load(&b->users) > 1 && b->capacity - b->used >= LEAST_ROOM) return;
    block_release(b);
    in->block = NULL;
}

void ad__input_close(ad_input *in) {
    if (in->block) block_release(in->block);
    in->block = NULL;
}

void ad__input_release(ad_input_frame *f) {
    if (f->block) block_release(f->block);
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
    q->bytes += AD_FRAME_HEADER + f->control_size + (size_t)f->payload_size;
    return 0;
}

bool ad__input_pop(ad_input_queue *q, ad_input_frame *f) {
    if (!q->count) return false;
    *f = q->ring[q->first];
    q->first = (q->first + 1) & (q->capacity - 1);
    q->count--;
    q->bytes -= AD_FRAME_HEADER + f->control_size + (size_t)f->payload_size;
    return true;
}

void ad__input_clear(ad_input_queue *q) {
    ad_input_frame f;
    while (ad__input_pop(q, &f)) ad__input_release(&f);
    free(q->ring);
    *q = (ad_input_queue){0};
}
