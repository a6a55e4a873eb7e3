#include "server/worker/io/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "server/common/os.h"
#include "server/worker/session.h"

#define SMALL_BLOCK (16u << 10)
#define PARTS 16
#define KEEP_PART 4 /* the limit divided by this is how many sent bytes are held until the client has them */

void ad__output_init(ad_output *o, int fd, uint64_t limit) {
    memset(o, 0, sizeof *o);
    pthread_mutex_init(&o->lock, NULL);
    o->fd = fd;
    o->pass = -1;
    o->limit = limit;
    o->last = &o->first;
    atomic_init(&o->settled, UINT64_MAX);
}

static void clear_blocks(ad_output *o) {
    while (o->first) {
        ad_output_block *b = o->first;
        o->first = b->next;
        if (o->written) ad__journal_store(&o->written->output, b->own.next);
        ad__journal_free(o->journal, b);
    }
    o->last = &o->first;
    o->tail = o->at = NULL;
    atomic_store(&o->queued, 0);
}

static void drop_ring(ad_output *o) {
    if (o->pass >= 0) close(o->pass);
    o->pass = -1;
    o->ring = NULL;
}

void ad__output_close(ad_output *o) {
    clear_blocks(o);
    drop_ring(o);
    pthread_mutex_destroy(&o->lock);
}

static int break_output(ad_output *o, int status, const char *why) {
    o->why = why;
    o->status = status;
    atomic_store(&o->broken, true);
    clear_blocks(o);
    return status;
}

ad_output_block *ad__output_block(const ad_output *o, size_t size) {
    ad_output_block *b = ad__journal_alloc(o->journal, sizeof *b + size);
    if (b) *b = (ad_output_block){.capacity = size};
    return b;
}

void ad__output_block_free(const ad_output *o, ad_output_block *b) { ad__journal_free(o->journal, b); }

static void link_block(ad_output *o, ad_output_block *b) {
    b->own.base = o->appended;
    if (o->written) {
        b->own.data = ad__journal_at(o->journal, b->data);
        ad__journal_store(o->tail ? &o->tail->own.next : &o->written->output, ad__journal_at(o->journal, b));
    }
    *o->last = b;
    o->last = &b->next;
    o->tail = b;
    if (!o->at) o->at = b;
}

static int append_bytes(ad_output *o, const void *data, size_t size) {
    if (!size) return 0;
    if (!o->tail || o->tail->capacity - o->tail->own.size < size) {
        ad_output_block *b = ad__output_block(o, size > SMALL_BLOCK ? size : SMALL_BLOCK);
        if (!b) return break_output(o, AD_E_MEMORY, "out of host memory");
        link_block(o, b);
    }
    memcpy(o->tail->data + o->tail->own.size, data, size);
    o->tail->own.size += size;
    o->appended += size;
    atomic_fetch_add(&o->queued, size);
    return 0;
}

static int append_head(ad_output *o, const void *control, size_t size, uint32_t flags, size_t bytes) {
    uint8_t head[AD_FRAME_HEADER];
    if (atomic_load(&o->broken)) return AD_E_CONNECTION;
    if (atomic_load(&o->queued) + size + bytes + sizeof head > o->limit)
        return break_output(o, AD_E_LIMIT, "output-limit: the client does not read");
    ad__frame_encode(&(ad_frame){(uint32_t)size, flags, bytes}, head);
    int status = append_bytes(o, head, sizeof head);
    return status ? status : append_bytes(o, control, size);
}

int ad__output_frame(ad_output *o, const void *control, size_t size, uint32_t flags, const void *payload,
                     size_t bytes) {
    pthread_mutex_lock(&o->lock);
    int status = append_head(o, control, size, flags, bytes);
    if (!status) status = append_bytes(o, payload, bytes);
    pthread_mutex_unlock(&o->lock);
    return status;
}

int ad__output_chunk(ad_output *o, const void *control, size_t size, uint32_t flags, ad_output_block *b) {
    pthread_mutex_lock(&o->lock);
    int status = append_head(o, control, size, flags, b->own.size);
    if (status) {
        ad__output_block_free(o, b);
    } else {
        atomic_fetch_add(&o->queued, b->own.size);
        link_block(o, b);
        o->appended += b->own.size;
    }
    pthread_mutex_unlock(&o->lock);
    return status;
}

/* ---- bytes that have been sent ---- */

/* Free the blocks that the client has. A client that never says what it has must not make the server hold bytes without
 * bound. Beyond a part of the limit they are freed, and the client cannot come back. */
static void free_taken(ad_output *o) {
    const uint64_t most = o->limit / KEEP_PART;
    uint64_t from = o->keeps ? o->taken : o->sent;
    if (o->sent - from > most) from = o->sent - most;
    while (o->first && o->first->own.base + o->first->own.size <= from) {
        ad_output_block *b = o->first;
        if (b == o->tail && b->capacity == SMALL_BLOCK) { /* reused for the next replies */
            b->own.size = 0;
            b->own.base = o->appended;
            return;
        }
        o->first = b->next;
        if (o->written) ad__journal_store(&o->written->output, b->own.next);
        if (o->at == b) o->at = b->next;
        if (!o->first) {
            o->last = &o->first;
            o->tail = NULL;
        }
        ad__output_block_free(o, b);
    }
}

static void count_sent(ad_output *o, size_t n) {
    o->sent += n;
    atomic_fetch_sub(&o->queued, n);
    atomic_fetch_add(&o->total, n);
    while (o->at && o->at->next && o->sent >= o->at->own.base + o->at->own.size) o->at = o->at->next;
    if (!o->keeps || o->sent - o->taken > o->limit / KEEP_PART) free_taken(o);
}

/* Send the ring's descriptor with the bytes. Where none can be passed, the bytes go alone, and the ring stays unused.
 */
static ssize_t send_with_ring(ad_output *o, struct msghdr *m) {
    union {
        char space[CMSG_SPACE(sizeof(int))];
        struct cmsghdr header;
    } control = {0};
    control.header =
        (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof o->pass)};
    memcpy(CMSG_DATA(&control.header), &o->pass, sizeof o->pass);
    m->msg_control = &control;
    m->msg_controllen = sizeof control;
    ssize_t n = ad__os.sendmsg(o->fd, m, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR || errno == ENOBUFS)) return n;
    m->msg_control = NULL;
    m->msg_controllen = 0;
    if (n < 0) n = ad__os.sendmsg(o->fd, m, MSG_NOSIGNAL | MSG_DONTWAIT);
    const int error = errno;
    close(o->pass);
    o->pass = -1;
    errno = error;
    return n;
}

static ssize_t send_blocks(ad_output *o) {
    struct iovec part[PARTS];
    struct msghdr m = {.msg_iov = part};
    for (ad_output_block *b = o->at; b && m.msg_iovlen < PARTS; b = b->next) {
        uint64_t settled = atomic_load(&o->settled);
        if (b->own.base >= settled) break;
        size_t size = b->own.size < settled - b->own.base ? b->own.size : (size_t)(settled - b->own.base);
        size_t done = o->sent > b->own.base ? (size_t)(o->sent - b->own.base) : 0;
        if (size > done) part[m.msg_iovlen++] = (struct iovec){b->data + done, size - done};
    }
    if (o->ring) {
        const uint64_t size = ad__ring_measure(part, m.msg_iovlen);
        if (ad__ring_put(o->ring, part, m.msg_iovlen)) return (ssize_t)size;
        ad__ring_announce(o->ring, size);
    }
    ssize_t n = o->pass >= 0 ? send_with_ring(o, &m) : ad__os.sendmsg(o->fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n > 0 && o->ring) ad__ring_count_sent(o->ring, (uint64_t)n);
    return n < 0 && errno == EINTR ? 0 : n;
}

static void lose_connection(ad_output *o) {
    if (!o->keeps) {
        break_output(o, AD_E_CONNECTION, "the client has gone");
        return;
    }
    atomic_store(&o->blocked, false);
    atomic_store(&o->away, true);
}

static bool can_send(const ad_output *o) {
    return !atomic_load(&o->broken) && !atomic_load(&o->away) && o->sent < atomic_load(&o->settled);
}

static void send_queued(ad_output *o) {
    while (atomic_load(&o->queued) && can_send(o)) {
        ssize_t n = send_blocks(o);
        if (n < 0 && errno != EAGAIN && errno != ENOBUFS) {
            lose_connection(o);
            return;
        }
        if ((n < 0) != atomic_load(&o->blocked)) atomic_store(&o->progress, ad__os_now());
        if (n < 0) {
            atomic_store(&o->blocked, true);
            return;
        }
        count_sent(o, (size_t)n);
    }
    atomic_store(&o->blocked, false);
}

bool ad__output_flush(ad_output *o) {
    bool stuck = false;
    if ((!atomic_load(&o->queued) && !atomic_load(&o->broken)) || atomic_load(&o->away)) return false;
    pthread_mutex_lock(&o->lock);
    if (atomic_load(&o->broken)) {
        stuck = true;
    } else if (!atomic_load(&o->blocked)) {
        send_queued(o);
        stuck = atomic_load(&o->blocked) || atomic_load(&o->broken) || atomic_load(&o->away);
    }
    pthread_mutex_unlock(&o->lock);
    return stuck;
}

void ad__output_resume(ad_output *o) {
    pthread_mutex_lock(&o->lock);
    send_queued(o);
    pthread_mutex_unlock(&o->lock);
}

void ad__output_break(ad_output *o) {
    pthread_mutex_lock(&o->lock);
    break_output(o, AD_E_CONNECTION, "the client has gone");
    atomic_store(&o->blocked, false);
    pthread_mutex_unlock(&o->lock);
}

/* ---- recording in the journal ---- */

void ad__output_write_down(ad_output *o, ad_journal *journal, ad_journal_session *at) {
    o->journal = journal;
    o->written = at;
    atomic_store(&o->settled, 0);
}

void ad__output_settle(ad_output *o, uint64_t bytes) {
    if (atomic_load_explicit(&o->settled, memory_order_relaxed) < bytes) atomic_store(&o->settled, bytes);
}

int ad__output_put(ad_output *o, uint64_t base, const void *data, size_t size) {
    pthread_mutex_lock(&o->lock);
    if (!o->first) o->appended = o->taken = base;
    int status = append_bytes(o, data, size);
    o->sent = o->appended;
    atomic_store(&o->queued, 0);
    while (o->at && o->at->next) o->at = o->at->next;
    pthread_mutex_unlock(&o->lock);
    return status;
}

/* ---- continuing over another connection ---- */

void ad__output_keep(ad_output *o) { o->keeps = true; }

void ad__output_use_ring(ad_output *o, ad_ring_writer *w, ad_ring_memory *memory, int pass) {
    pthread_mutex_lock(&o->lock);
    ad__ring_write_begin(w, &memory->down, memory->bytes[1], o->sent);
    o->ring = w;
    o->pass = pass;
    pthread_mutex_unlock(&o->lock);
}

void ad__output_leave_ring(ad_output *o) {
    pthread_mutex_lock(&o->lock);
    drop_ring(o);
    pthread_mutex_unlock(&o->lock);
}

int ad__output_taken(ad_output *o, uint64_t bytes) {
    int status = 0;
    pthread_mutex_lock(&o->lock);
    if (bytes > o->sent) {
        status = AD_E_PROTOCOL;
    } else if (bytes > o->taken) {
        o->taken = bytes;
        free_taken(o);
    }
    pthread_mutex_unlock(&o->lock);
    return status;
}

void ad__output_away(ad_output *o) {
    pthread_mutex_lock(&o->lock);
    lose_connection(o);
    pthread_mutex_unlock(&o->lock);
}

/* Find out why the stream cannot continue after so many bytes; NULL: it can. */
static const char *find_obstacle(const ad_output *o, uint64_t received) {
    if (!o->keeps || atomic_load(&o->broken)) return "it is over";
    if (received > o->sent) return "the client has more bytes than the server sent";
    if (received < o->taken) return "the client has fewer bytes than it said";
    if (received < (o->first ? o->first->own.base : o->appended))
        return "what the client has missed is too much to be kept";
    return NULL;
}

static int switch_connection(ad_output *o, int fd, const void *head, size_t size, uint64_t received) {
    if (ad__os.send(fd, head, size, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)size) return AD_E_CONNECTION;
    if (dup3(fd, o->fd, O_CLOEXEC) < 0) return AD_E_CONNECTION;
    drop_ring(o);
    o->sent = o->taken = received;
    atomic_store(&o->queued, (size_t)(o->appended - received));
    for (o->at = o->first; o->at && o->at->next && received >= o->at->own.base + o->at->own.size;) o->at = o->at->next;
    atomic_store(&o->blocked, false);
    atomic_store(&o->away, false);
    atomic_store(&o->progress, ad__os_now());
    return 0;
}

int ad__output_take_up(ad_output *o, int fd, const void *head, size_t size, uint64_t received, const char **why) {
    pthread_mutex_lock(&o->lock);
    *why = find_obstacle(o, received);
    int status = *why ? AD_E_RESUME : switch_connection(o, fd, head, size, received);
    pthread_mutex_unlock(&o->lock);
    if (!status) close(fd);
    return status;
}

/* ---- the output as a component ---- */

static int open_output(ad_worker_session *s, const ad_note *note) {
    (void)note;
    ad__output_init(&s->output, s->socket.fd, s->worker->config.output_limit);
    return 0;
}

static void close_output(ad_worker_session *s) { ad__output_close(&s->output); }

const ad_component ad__component_output = {.name = "output", .open = open_output, .close = close_output};
