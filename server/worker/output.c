#include "server/worker/output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include "server/common/os.h"

#define SMALL_BLOCK (16u << 10)
#define PARTS 16

void ad__output_init(ad_output *o, int fd, uint64_t limit) {
    memset(o, 0, sizeof *o);
    pthread_mutex_init(&o->lock, NULL);
    o->fd = fd;
    o->limit = limit;
    o->last = &o->first;
}

static void clear(ad_output *o) {
    while (o->first) {
        ad_output_block *b = o->first;
        o->first = b->next;
        free(b);
    }
    o->last = &o->first;
    o->tail = NULL;
    atomic_store(&o->queued, 0);
}

void ad__output_close(ad_output *o) {
    clear(o);
    pthread_mutex_destroy(&o->lock);
}

static int break_off(ad_output *o, int status, const char *why) {
    o->why = why;
    o->status = status;
    atomic_store(&o->broken, true);
    clear(o);
    return status;
}

ad_output_block *ad__output_block(size_t size) {
    ad_output_block *b = ad__os.malloc(sizeof *b + size);
    if (b) *b = (ad_output_block){.capacity = size};
    return b;
}

static void link_block(ad_output *o, ad_output_block *b) {
    *o->last = b;
    o->last = &b->next;
    o->tail = b;
}

static int append(ad_output *o, const void *data, size_t size) {
    if (!size) return 0;
    if (!o->tail || o->tail->capacity - o->tail->size < size) {
        ad_output_block *b = ad__output_block(size > SMALL_BLOCK ? size : SMALL_BLOCK);
        if (!b) return break_off(o, AD_E_MEMORY, "out of host memory");
        link_block(o, b);
    }
    memcpy(o->tail->data + o->tail->size, data, size);
    o->tail->size += size;
    atomic_fetch_add(&o->queued, size);
    return 0;
}

static int append_head(ad_output *o, const void *control, size_t size, uint32_t flags, size_t bytes) {
    uint8_t head[AD_FRAME_HEADER];
    if (atomic_load(&o->broken)) return AD_E_CONNECTION;
    if (atomic_load(&o->queued) + size + bytes + sizeof head > o->limit)
        return break_off(o, AD_E_LIMIT, "output-limit: the client does not read");
    ad__frame_encode(&(ad_frame){(uint32_t)size, flags, bytes}, head);
    int status = append(o, head, sizeof head);
    return status ? status : append(o, control, size);
}

int ad__output_frame(ad_output *o, const void *control, size_t size, uint32_t flags, const void *payload,
                     size_t bytes) {
    pthread_mutex_lock(&o->lock);
    int status = append_head(o, control, size, flags, bytes);
    if (!status) status = append(o, payload, bytes);
    pthread_mutex_unlock(&o->lock);
    return status;
}

int ad__output_chunk(ad_output *o, const void *control, size_t size, uint32_t flags, ad_output_block *b) {
    pthread_mutex_lock(&o->lock);
    int status = append_head(o, control, size, flags, b->size);
    if (status) {
        free(b);
    } else {
        atomic_fetch_add(&o->queued, b->size);
        link_block(o, b);
    }
    pthread_mutex_unlock(&o->lock);
    return status;
}

static void take_off(ad_output *o, size_t n) {
    atomic_fetch_sub(&o->queued, n);
    atomic_fetch_add(&o->total, n);
    while (o->first && n >= o->first->size - o->first->sent) {
        ad_output_block *b = o->first;
        n -= b->size - b->sent;
        if (b == o->tail && b->capacity == SMALL_BLOCK) {
            b->size = b->sent = 0; /* kept for the next replies */
            return;
        }
        o->first = b->next;
        if (!o->first) {
            o->last = &o->first;
            o->tail = NULL;
        }
        free(b);
    }
    if (o->first) o->first->sent += n;
}

static ssize_t send_some(ad_output *o) {
    struct iovec part[PARTS];
    struct msghdr m = {.msg_iov = part};
    for (ad_output_block *b = o->first; b && m.msg_iovlen < PARTS; b = b->next)
        if (b->size > b->sent) part[m.msg_iovlen++] = (struct iovec){b->data + b->sent, b->size - b->sent};
    ssize_t n = ad__os.sendmsg(o->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
    return n < 0 && errno == EINTR ? 0 : n;
}

static void send_all(ad_output *o) {
    while (atomic_load(&o->queued) && !atomic_load(&o->broken)) {
        ssize_t n = send_some(o);
        if (n < 0 && errno != EAGAIN && errno != ENOBUFS) {
            break_off(o, AD_E_CONNECTION, "the client has gone");
            return;
        }
        if (n >= 0 || !atomic_load(&o->blocked)) atomic_store(&o->progress, ad__os_now());
        if (n < 0) {
            atomic_store(&o->blocked, true);
            return;
        }
        take_off(o, (size_t)n);
    }
    atomic_store(&o->blocked, false);
}

bool ad__output_flush(ad_output *o) {
    bool stuck = false;
    if (!atomic_load(&o->queued) && !atomic_load(&o->broken)) return false;
    pthread_mutex_lock(&o->lock);
    if (atomic_load(&o->broken)) {
        stuck = true;
    } else if (!atomic_load(&o->blocked)) {
        send_all(o);
        stuck = atomic_load(&o->blocked) || atomic_load(&o->broken);
    }
    pthread_mutex_unlock(&o->lock);
    return stuck;
}

void ad__output_resume(ad_output *o) {
    pthread_mutex_lock(&o->lock);
    if (!atomic_load(&o->broken)) send_all(o);
    pthread_mutex_unlock(&o->lock);
}
