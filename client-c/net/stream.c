/* Output: from requests to bytes on the connection.
 *
 *   requests --encode--> gathered ----move_to_sending----> sending --transmit_message--> socket
 *                        [frame|frame|open frame           [sent | on its way]
 *                                    ^output.frame               ^output.sent
 *
 * A call that finds the connection idle sends its request itself, so a lone operation starts at once. Further requests
 * gather until the flusher, a full buffer or a call that waits sends them, so a busy program makes no system calls. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "client-c/client.h"

#define IDLE_NS 50000            /* time without a send after which the connection is idle */
#define SEND_SIZE (8u << 10)     /* gathered bytes from which on the caller sends them */
#define FULL_SIZE (64u << 10)    /* gathered bytes from which on the caller waits for the writing thread */
#define SMALL_PAYLOAD (4u << 10) /* payloads up to this size gather with the requests */
#define PATIENCE 20              /* waits for another thread to read the last words of a server that has ended */
#define ROUNDS 4                 /* rounds that a writer sends before it leaves the rest to the flusher */

/* ---- the window ---- */

/* Limits for all messages but frees, below the server's. Frees join a frame without asking. A message's size is known
 * only when it has been encoded. */
static uint64_t get_usable_ops(const ad_session *s) { return s->window.ops - s->window.ops / 8; }
static uint64_t get_usable_bytes(const ad_session *s) { return s->window.bytes - s->window.bytes / 4; }

static inline bool has_room(const ad_session *s) {
    return s->encoded.ops - s->window.acked < get_usable_ops(s) && s->output.gathered.size < FULL_SIZE &&
           s->encoded.bytes + s->output.gathered.size - s->window.acked_bytes < get_usable_bytes(s);
}

/* Record that all operations so far end at this byte. A mark covers a group of frames, so that marks are few. A group's
 * size is limited, so that acknowledgements stay fine enough for the server, which counts quarters of the window. */
static void record_sent(ad_session *s) {
    ad_send_window *w = &s->window;
    unsigned last = (w->first + w->count - 1) % AD_WINDOW_MARKS,
             before = (last + AD_WINDOW_MARKS - 1) % AD_WINDOW_MARKS;
    uint64_t start = w->count > 1 ? w->mark[before].bytes : w->acked_bytes;
    if (w->count == 0 || (s->encoded.bytes - start > w->bytes / 64 && w->count < AD_WINDOW_MARKS))
        last = (w->first + w->count++) % AD_WINDOW_MARKS;
    w->mark[last].op = s->encoded.ops;
    w->mark[last].bytes = s->encoded.bytes;
}

void ad__record_ack(ad_session *s, uint64_t done) {
    ad_send_window *w = &s->window;
    if (done > s->encoded.ops) {
        ad__kill_session_locked(s, "protocol violated: the server acknowledged what was not sent");
        return;
    }
    if (done < w->acked) return;
    w->acked = done;
    ad__unacked_release(&s->unacked, done, s->input.replied);
    while (w->count && w->mark[w->first].op <= done) {
        w->acked_bytes = w->mark[w->first].bytes;
        w->first = (w->first + 1) % AD_WINDOW_MARKS;
        w->count--;
    }
    ad__wake_all(s);
}

/* ---- frames ---- */

/* Tell whether there is room for frees, which may use what get_usable_ops and get_usable_bytes keep from others. */
static bool has_room_for_frees(const ad_session *s) {
    return s->output.gathered.size < 2 * FULL_SIZE && s->encoded.ops - s->window.acked < s->window.ops &&
           s->encoded.bytes + s->output.gathered.size - s->window.acked_bytes < s->window.bytes - s->window.bytes / 8;
}

/* Encode queued frees into the open frame. */
static void append_frees(ad_session *s) {
    while (s->frees.count && !s->frees.held && has_room_for_frees(s)) {
        size_t n = s->frees.count < AD_FREES ? s->frees.count : AD_FREES, mark;
        ad__open_frame(s);
        mark = s->output.gathered.size;
        if (ad__encode_free(&s->output.gathered, n, s->frees.ids) != 0) {
            s->output.gathered.size = mark;
            s->output.gathered.failed = false;
            return;
        }
        s->encoded.ops++;
        s->counts.frees++;
        s->frees.count -= n;
        s->frees.bytes = 0;
        memmove(s->frees.ids, s->frees.ids + n, s->frees.count * sizeof *s->frees.ids);
    }
}

void ad__seal_frame(ad_session *s, uint64_t payload) {
    size_t control = s->output.gathered.size - s->output.frame;
    if (control <= AD_FRAME_HEADER) {
        s->output.gathered.size = s->output.frame;
        return;
    }
    control -= AD_FRAME_HEADER;
    uint8_t *frame = s->output.gathered.data + s->output.frame;
    ad__frame_encode(&(ad_frame){.control = (uint32_t)control, .payload = payload}, frame);
    if (s->tracing.on)
        ad__trace_messages(s, "->", s->tracing.reader, &s->tracing.arena, frame + AD_FRAME_HEADER, control);
    s->output.frame = s->output.gathered.size;
    ad__frame_sealed(s);
}

/* Move all that has gathered to output.sending. The caller sends the payload behind it. */
static void move_to_sending(ad_session *s, const void *payload, size_t size) {
    ad_bytes empty = s->output.sending;
    s->encoded.bytes += s->output.gathered.size + size;
    record_sent(s);
    s->output.sending = s->output.gathered;
    s->output.sent = 0;
    s->output.sending_pass = s->output.gathered_pass;
    s->output.gathered_pass.fd = -1;
    ad__save_unacked(s, payload, size);
    s->output.loaded = s->encoded.bytes;
    empty.size = 0;
    s->output.gathered = empty;
    s->output.frame = 0;
    s->frees.end = 0;
}

void ad__save_gathered(ad_session *s) {
    if (s->output.gathered.size > s->output.frame) ad__seal_frame(s, 0);
    if (s->output.sending_pass.fd >= 0) close(s->output.sending_pass.fd);
    move_to_sending(s, NULL, 0);
}

/* ---- writing ---- */

/* Wait for room in the socket, and read meanwhile, as the server may be waiting for room, too. */
static void wait_writable(ad_session *s) {
    struct pollfd p = {.fd = s->connection.fd, .events = POLLOUT};
    pthread_mutex_lock(&s->lock);
    bool reader = !s->input.reading;
    if (reader) s->input.reading = true;
    pthread_mutex_unlock(&s->lock);
    if (reader) p.events |= POLLIN;
    if (reader && ad__ring_has_input(s)) ad__receiver_run(s, MSG_DONTWAIT);
    else if (poll(&p, 1, reader ? 50 : 5) > 0 && reader && p.revents & (POLLIN | POLLHUP | POLLERR))
        ad__receiver_run(s, MSG_DONTWAIT);
    if (reader) {
        pthread_mutex_lock(&s->lock);
        s->input.reading = false;
        ad__wake_all(s);
        pthread_mutex_unlock(&s->lock);
    }
}

static void skip_sent_bytes(struct msghdr *m, size_t n) {
    while (m->msg_iovlen && n >= m->msg_iov->iov_len) {
        n -= m->msg_iov->iov_len;
        m->msg_iov++;
        m->msg_iovlen--;
    }
    if (m->msg_iovlen) {
        m->msg_iov->iov_base = (uint8_t *)m->msg_iov->iov_base + n;
        m->msg_iov->iov_len -= n;
    }
}

/* Tell whether the calling thread must stop sending, at most every 50 ms. *checked: time of the last check. */
static bool is_interrupted(ad_session *s, uint64_t *checked) {
    uint64_t now = ad__now();
    if (now - *checked < 50000000) return false;
    *checked = now;
    pthread_mutex_lock(&s->lock);
    int (*check)(void *) = s->calls.interrupt.check;
    void *argument = s->calls.interrupt.argument;
    bool dead = s->dead || (s->resume.leave_deadline && now > s->resume.leave_deadline);
    if (s->flusher.runs && pthread_equal(pthread_self(), s->flusher.thread)) check = NULL;
    pthread_mutex_unlock(&s->lock);
    if (ad__fork_deadline) return dead || now > ad__fork_deadline; /* a program's function must not run during a fork */
    return dead || (check && check(argument));
}

/* Lose the connection after reading the server's last words, which tell why. Another thread may be reading them. */
static int read_last_words(ad_session *s, int why) {
    pthread_mutex_lock(&s->lock);
    for (int i = 0; i < PATIENCE && s->input.reading && !s->resume.lost; i++) ad__wait_changed(s);
    const bool reader = !s->input.reading;
    s->input.reading = true;
    pthread_mutex_unlock(&s->lock);
    while (reader && !s->input.receiver.closed && ad__receiver_run(s, MSG_DONTWAIT))
        ;
    ad__lose_connection(s, "connection lost: %s", strerror(why));
    pthread_mutex_lock(&s->lock);
    if (reader) s->input.reading = false;
    ad__wake_all(s);
    pthread_mutex_unlock(&s->lock);
    return AD_E_CONNECTION;
}

/* Tell whether the system passes no descriptors, as in a sandbox of gVisor or under a security module that forbids it.
 */
static bool is_passing_refused(const struct msghdr *m, int error) {
    return m->msg_controllen &&
           (error == EINVAL || error == EOPNOTSUPP || error == EACCES || error == EPERM || error == ETOOMANYREFS);
}

/* Send all of m; an interrupt leaves the rest in m. Where no descriptor can be passed, its byte goes alone: the server
 * refuses what needs it. The caller has set output.writing, and does not hold the lock. */
static int transmit_message(ad_session *s, struct msghdr *m) {
    uint64_t checked = 0;
    while (m->msg_iovlen) {
        if (ad__ring_send(s, m)) {
            m->msg_iovlen = 0;
            return 0;
        }
        ssize_t n = s->connection.secure ? ad__secure_send(s->connection.secure, m->msg_iov)
                                         : sendmsg(s->connection.fd, m, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (n >= 0) {
            ad__ring_count_socket(s, (uint64_t)n);
            skip_sent_bytes(m, (size_t)n);
        } else if (errno == EAGAIN) {
            if (checked == 0) checked = ad__now();
            wait_writable(s);
            if (is_interrupted(s, &checked)) return AD_E_INTERRUPTED;
        } else if (is_passing_refused(m, errno)) {
            m->msg_controllen = 0;
            atomic_store(&s->connection.passes_nothing, true);
        } else if (errno != EINTR) {
            return read_last_words(s, errno);
        }
    }
    return 0;
}

/* Record that all has been sent or never will be. Bytes that a lost connection took are sent again when the session is
 * resumed. */
static int end_sending(ad_session *s, int status) {
    s->output.sent_at = ad__now();
    s->output.sent = s->output.sending.size;
    return s->resume.lost && !s->dead ? 0 : status;
}

/* Append the unsent rest of a payload to output.sending after an interrupt, as the frame must be completed. */
static int append_unsent_payload(ad_session *s, const void *payload, size_t size) {
    if (size) ad__bytes_append(&s->output.sending, payload, size);
    if (s->output.sending.failed) ad__kill_session_locked(s, "connection lost: out of memory in the middle of a frame");
    return AD_E_INTERRUPTED;
}

/* Send one byte with a descriptor in a call of its own, so that the kernel keeps the two together. */
static int transmit_descriptor(ad_session *s, void *byte, int fd) {
    union {
        char space[CMSG_SPACE(sizeof(int))];
        struct cmsghdr header;
    } control;
    struct iovec iov = {byte, 1};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    memset(&control, 0, sizeof control);
    control.header =
        (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof fd)};
    memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
    return transmit_message(s, &m);
}

/* Send the bytes up to the one that takes a descriptor along. The lock is released meanwhile. */
static int send_with_descriptor(ad_session *s) {
    struct iovec iov = {s->output.sending.data + s->output.sent, s->output.sending_pass.at - s->output.sent};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = iov.iov_len != 0};
    const int fd = s->output.sending_pass.fd;
    pthread_mutex_unlock(&s->lock);
    int status = transmit_message(s, &m);
    if (!status) status = transmit_descriptor(s, s->output.sending.data + s->output.sending_pass.at, fd);
    if (status != AD_E_INTERRUPTED) close(fd);
    pthread_mutex_lock(&s->lock);
    s->output.sent = m.msg_iovlen ? s->output.sending_pass.at - iov.iov_len
                                  : s->output.sending_pass.at + (status != AD_E_INTERRUPTED);
    if (status != AD_E_INTERRUPTED) s->output.sending_pass.fd = -1;
    return status;
}

/* Send output.sending and a payload of the program's behind it. The lock is released meanwhile. */
static int send_loaded(ad_session *s, const uint8_t *payload, size_t size) {
    if (s->output.sending_pass.fd >= 0) {
        int passed = send_with_descriptor(s);
        if (passed && passed != AD_E_INTERRUPTED) return end_sending(s, passed);
        if (passed) return append_unsent_payload(s, payload, size);
    }
    struct iovec iov[2] = {{s->output.sending.data + s->output.sent, s->output.sending.size - s->output.sent},
                           {(void *)(uintptr_t)payload, size}};
    struct msghdr m = {.msg_iov = iov, .msg_iovlen = size ? 2 : 1};
    pthread_mutex_unlock(&s->lock);
    int status = transmit_message(s, &m);
    pthread_mutex_lock(&s->lock);
    if (status != AD_E_INTERRUPTED) return end_sending(s, status);
    s->output.sent_at = ad__now();
    const bool whole = m.msg_iovlen == (size ? 2u : 1u); /* part of output.sending, and the whole payload, are left */
    s->output.sent = s->output.sending.size - (whole ? iov[0].iov_len : 0);
    return append_unsent_payload(s, iov[1].iov_base, size ? iov[1].iov_len : 0);
}

/* A writer that finds the session over stops as one that is interrupted does. */
static int fail_send(const ad_session *s, int status) {
    return status == AD_E_INTERRUPTED && !s->dead ? ad__fail(status, "interrupted") : ad__fail_dead(s);
}

static void end_writing(ad_session *s) {
    s->output.writing = false;
    ad__wake_all(s);
}

/* Fill output.sending with the next bytes; false: there are none. */
static bool load_sending(ad_session *s) {
    if (s->output.sent < s->output.sending.size) { /* left by an interrupt; what has gathered since goes next */
        s->output.recheck = true;
        return true;
    }
    if (s->output.loaded < s->encoded.bytes) {
        ad__load_unacked(s);
        return !s->dead;
    }
    append_frees(s);
    if (s->output.gathered.size > s->output.frame) ad__seal_frame(s, 0);
    if (s->output.gathered.size == 0 && ad__must_send_receipt(s)) ad__append_receipt(s);
    if (s->output.gathered.size == 0) return false;
    move_to_sending(s, NULL, 0);
    return true;
}

int ad__push_output(ad_session *s) {
    int status = 0;
    if (s->resume.lost) return 0; /* resuming the session sends it */
    if (s->output.writing) {      /* the writing thread sends the gathered bytes, too */
        s->output.recheck = true;
        return 0;
    }
    s->output.writing = true;
    s->output.recheck = true;
    for (int round = 0; s->output.recheck && !status && round < ROUNDS; round++) {
        s->output.recheck = false;
        if (!load_sending(s)) break;
        status = send_loaded(s, NULL, 0);
        if (s->output.loaded < s->encoded.bytes || ad__must_send_receipt(s)) s->output.recheck = true;
        if (s->resume.lost) break;
    }
    end_writing(s);
    if (s->output.recheck || ad__has_unsent(s)) ad__flusher_wake(s);
    return status ? fail_send(s, status) : 0;
}

/* ---- messages ---- */

/* Wait until there is room for another message. The caller holds the lock, which is released meanwhile. */
static int wait_room(ad_session *s) {
    uint64_t checked = ad__now();
    int status = 0;
    while (!status && !s->dead && !has_room(s)) {
        if (s->output.writing) status = ad__wait_writer(s, &checked);
        else if (!s->resume.lost && (s->output.gathered.size > AD_FRAME_HEADER || ad__has_unsent(s)))
            status = ad__push_output(s);
        else status = ad__wait(s, &checked);
    }
    return s->dead ? ad__fail_dead(s) : status;
}

int ad__begin_telling(ad_session *s) {
    if (ad__is_foreign(s)) return ad__fail_foreign();
    pthread_mutex_lock(&s->lock);
    if (!AD_LIKELY(!s->dead && has_room(s))) {
        int status = wait_room(s);
        if (status) {
            pthread_mutex_unlock(&s->lock);
            return status;
        }
    }
    ad__open_frame(s);
    if (AD_LIKELY(!s->stream.used)) return 0;
    ad__switch_stream(s);
    return 0;
}

int ad__begin(ad_session *s) {
    int status = ad__begin_telling(s);
    if (!status) ad__mirrors_drop(s);
    return status;
}

int ad__begin_reading(ad_session *s) {
    int status = ad__begin_telling(s);
    if (!status && s->frees.count) {
        append_frees(s);
        ad__open_frame(s);
    }
    return status;
}

int ad__begin_ask(ad_session *s) {
    int status = ad__begin_reading(s);
    if (!status) ad__mirrors_drop(s);
    return status;
}

int ad__begin_alone(ad_session *s) {
    int status = ad__begin_ask(s);
    if (status) return status;
    ad__seal_frame(s, 0);
    ad__open_frame(s);
    return 0;
}

/* Send the first request that gathers: at once when the connection is idle, else by the flusher. */
static int start_sending(ad_session *s) {
    if (!s->output.writing && !ad__has_unsent(s) && ad__now() - s->output.sent_at > IDLE_NS) return ad__push_output(s);
    return ad__flusher_wake(s) ? 0 : ad__push_output(s);
}

int ad__roll_back(ad_session *s, size_t mark, int status) {
    bool memory = s->output.gathered.failed;
    s->output.gathered.size = mark;
    s->output.gathered.failed = false;
    pthread_mutex_unlock(&s->lock);
    return memory ? ad__fail_memory() : ad__fail(status, "%s", ad__error_text(status));
}

int ad__commit(ad_session *s, size_t mark, int status) {
    if (status || s->output.gathered.failed) return ad__roll_back(s, mark, status);
    s->encoded.ops++;
    if (mark <= AD_FRAME_HEADER + AD_SWITCH_SIZE || mark <= s->frees.end + AD_SWITCH_SIZE) status = start_sending(s);
    else if (s->output.gathered.size >= SEND_SIZE && !s->output.writing) status = ad__push_output(s);
    pthread_mutex_unlock(&s->lock);
    return status;
}

void ad__queue_free(ad_session *s, uint64_t buffer, int64_t size) {
    if (ad__is_foreign(s)) return;
    pthread_mutex_lock(&s->lock);
    if (!AD_LIKELY(!s->frees.graphs) && ad__graphs_take_free(s, buffer)) {
        pthread_mutex_unlock(&s->lock);
        return;
    }
    if (!s->dead && s->frees.count == s->frees.capacity) {
        size_t capacity = s->frees.capacity ? 2 * s->frees.capacity : 2 * AD_FREES;
        uint64_t *more = realloc(s->frees.ids, capacity * sizeof *more);
        if (more) {
            s->frees.ids = more;
            s->frees.capacity = capacity;
        }
    }
    if (!s->dead && s->frees.count < s->frees.capacity) { /* the server frees others when the session ends */
        s->frees.ids[s->frees.count++] = buffer;
        s->frees.bytes += size;
        /* Large memory must be free before the next operation needs some, so the free message is encoded now. */
        if (s->frees.count >= AD_FREES_GATHER || s->frees.bytes >= AD_FREE_BYTES) {
            bool first = s->output.gathered.size == 0 || s->output.gathered.size == s->frees.end;
            append_frees(s);
            if (first) s->frees.end = s->output.gathered.size;
        }
        ad__flusher_wake(s);
    }
    pthread_mutex_unlock(&s->lock);
}

/* ---- payloads ---- */

/* Send a small payload, which gathers with the requests around it. */
static int gather_bytes(ad_session *s, uint64_t buffer, uint64_t offset, const uint8_t *data, size_t size) {
    int status = ad__begin_telling(s);
    if (status) return status;
    ad__mirror_drop(s, buffer);
    size_t mark = s->output.gathered.size;
    status = ad__encode_write(&s->output.gathered, buffer, offset);
    ad__bytes_reserve(&s->output.gathered, size);
    if (!status && !s->output.gathered.failed) {
        ad__seal_frame(s, size);
        ad__bytes_append(&s->output.gathered, data, size);
        s->output.frame = s->output.gathered.size;
        s->sealed.ops = s->encoded.ops + 1; /* ad__commit counts the operation */
    }
    return ad__commit(s, mark, status);
}

/* Set output.writing when no other thread writes and nothing is on its way. On success the lock is held. */
static int begin_writing(ad_session *s) {
    uint64_t checked = ad__now();
    int status = 0;
    if (ad__is_foreign(s)) return ad__fail_foreign();
    pthread_mutex_lock(&s->lock);
    while (!status) {
        if (s->dead || !has_room(s)) status = wait_room(s);
        else if (s->output.writing) status = ad__wait_writer(s, &checked);
        else if (s->resume.lost) status = ad__wait(s, &checked);
        else if (ad__has_unsent(s)) status = ad__push_output(s);
        else break;
    }
    if (status) pthread_mutex_unlock(&s->lock);
    else s->output.writing = true;
    return status;
}

static int send_chunk(ad_session *s, uint64_t buffer, uint64_t offset, const uint8_t *data, size_t size) {
    int status = begin_writing(s);
    if (status) return status;
    if (s->resume.enabled) ad__read_acks(s);
    append_frees(s);
    ad__mirror_drop(s, buffer);
    ad__open_frame(s);
    if (s->stream.used) ad__switch_stream(s);
    size_t mark = s->output.gathered.size;
    status = ad__encode_write(&s->output.gathered, buffer, offset);
    if (status || s->output.gathered.failed) {
        end_writing(s);
        return ad__roll_back(s, mark, status);
    }
    s->encoded.ops++;
    ad__seal_frame(s, size);
    move_to_sending(s, data, size);
    if (s->resume.enabled) data = ad__unacked_last(&s->unacked, size); /* the copy is in the cache now */
    status = send_loaded(s, data, size);
    end_writing(s);
    if (status) status = fail_send(s, status);
    if (s->output.recheck || ad__has_unsent(s) || s->output.gathered.size) ad__flusher_wake(s);
    pthread_mutex_unlock(&s->lock);
    return status;
}

int ad__send_bytes(ad_session *s, uint64_t buffer, uint64_t offset, const uint8_t *data, size_t size) {
    uint64_t chunk = s->welcome.max_payload;
    int status = 0;
    if (s->resume.enabled && chunk > AD_UNACKED_PAYLOAD) chunk = AD_UNACKED_PAYLOAD;
    if (chunk > s->welcome.window_bytes / 8) chunk = s->welcome.window_bytes / 8;
    if (size <= SMALL_PAYLOAD && size <= chunk) return gather_bytes(s, buffer, offset, data, size);
    for (size_t at = 0; at < size && !status; at += chunk)
        status = send_chunk(s, buffer, offset + at, data + at, size - at < chunk ? size - at : chunk);
    return status;
}
