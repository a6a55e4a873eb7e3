#include "tests/unit/client_fake.h"
#include "protocol/rows_request.h"
#include "protocol/rows_ufunc.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sched.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* ---- bytes ---- */

static ssize_t receive_some(fake *f, void *out, size_t size, bool first) {
    union {
        char space[CMSG_SPACE(8 * sizeof(int))];
        struct cmsghdr header;
    } control;
    struct iovec iov = {out, size};
    struct msghdr m = {.msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t n = recvmsg(f->fd, &m, MSG_CMSG_CLOEXEC);
    struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;
    if (!c || c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) return n;
    memcpy(&f->passed[f->npassed++], CMSG_DATA(c), sizeof(int));
    if (!first) f->misplaced = true;
    return n;
}

/* Receive exactly size bytes. first: they begin a frame. */
static bool receive_exactly(fake *f, void *out, size_t size, bool first) {
    uint8_t *p = out;
    while (size) {
        size_t n = f->options.piece && f->options.piece < size ? f->options.piece : size;
        ssize_t got = receive_some(f, p, n, first && p == out);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        p += got;
        size -= (size_t)got;
        f->bytes += (size_t)got;
        if (f->options.die_after_bytes && f->bytes >= f->options.die_after_bytes) return false;
    }
    return true;
}

/* Let the client read a piece before the next one comes, or it would get both at once. */
static void await_reader(const fake *f) {
    int left = 1;
    for (int i = 0; left && i < 10000 && !f->stopping; i++) {
        if (ioctl(f->fd, SIOCOUTQ, &left)) return;
        if (left) sched_yield();
    }
}

static bool send_all_bytes(fake *f, const void *data, size_t size) {
    const uint8_t *p = data;
    while (size) {
        size_t n = f->options.piece && f->options.piece < size ? f->options.piece : size;
        ssize_t sent = send(f->fd, p, n, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent <= 0) return false;
        p += sent;
        size -= (size_t)sent;
        if (f->options.piece) await_reader(f);
    }
    return true;
}

static void append_frame(ad_bytes *out, const ad_bytes *control, uint32_t flags, const void *payload, size_t size) {
    ad_frame header = {.control = (uint32_t)control->size, .flags = flags, .payload = size};
    uint8_t bytes[AD_FRAME_HEADER];
    ad__frame_encode(&header, bytes);
    ad__bytes_append(out, bytes, sizeof bytes);
    ad__bytes_append(out, control->data, control->size);
    ad__bytes_append(out, payload, size);
}

/* Damage one of the first answers, and send nothing after it. */
static bool garble_answer(fake *f, ad_bytes *frames) {
    unsigned seed = f->options.garble * 2654435761u;
    if (!f->options.garble || f->answers++ < (int)(seed >> 8 & 3)) return true;
    frames->data[(seed >> 10) % (frames->size < 64 ? frames->size : 64)] ^= (uint8_t)(1 + seed % 255);
    send_all_bytes(f, frames->data, frames->size);
    return false;
}

/* Send an answer, or hold it until there are enough, and send those last first. */
static bool send_answer(fake *f, ad_bytes *frames) {
    bool ok = true;
    if (f->options.mute) {
        ad__bytes_free(frames);
        return true;
    }
    if (!garble_answer(f, frames)) {
        ad__bytes_free(frames);
        return false;
    }
    f->held[f->nheld++] = *frames;
    if (f->options.reverse && f->nheld < f->options.hold) return true;
    ad_bytes all = AD_BYTES_INIT;
    while (f->nheld) {
        ad_bytes *b = &f->held[--f->nheld];
        ad__bytes_append(&all, b->data, b->size);
        ad__bytes_free(b);
    }
    ok = ok && send_all_bytes(f, all.data, all.size);
    ad__bytes_free(&all);
    return ok;
}

/* ---- messages ---- */

static bool send_ack(fake *f) {
    ad_bytes control = AD_BYTES_INIT, out = AD_BYTES_INIT;
    f->acked = f->ops;
    f->unacked_bytes = 0;
    ad__encode_ack(&control, f->acked);
    append_frame(&out, &control, 0, NULL, 0);
    bool ok = send_all_bytes(f, out.data, out.size);
    ad__bytes_free(&control);
    ad__bytes_free(&out);
    return ok;
}

static bool send_reply(fake *f, uint64_t request, size_t n, const ad_scalar *values) {
    ad_bytes control = AD_BYTES_INIT, out = AD_BYTES_INIT;
    if (!f->options.no_ack) {
        f->acked = f->ops;
        f->unacked_bytes = 0;
    }
    ad__encode_reply(&control, request, f->acked, n, values);
    append_frame(&out, &control, 0, NULL, 0);
    ad__bytes_free(&control);
    return send_answer(f, &out);
}

static bool send_fail(fake *f, uint64_t request) {
    ad_bytes control = AD_BYTES_INIT, out = AD_BYTES_INIT;
    ad__encode_fail(&control, request, f->acked, f->options.fail_reads, 7, "divide", "it went wrong");
    append_frame(&out, &control, 0, NULL, 0);
    ad__bytes_free(&control);
    return send_answer(f, &out);
}

static int64_t count_elements(const ad_desc *d) {
    int64_t n = 1;
    for (int i = 0; i < d->ndim; i++) n *= d->shape[i];
    return n;
}

static void create_buffer(fake *f, const ad_desc *d) {
    if (d->form != AD_FRESH || d->buffer >= FAKE_BUFFERS) return;
    if (f->buffers[d->buffer].data) f->held_bytes -= f->buffers[d->buffer].size; /* it is sent again */
    free(f->buffers[d->buffer].data);
    f->buffers[d->buffer].size = (size_t)(count_elements(d) * ad__dtypes[d->dtype].size);
    f->buffers[d->buffer].data = calloc(1, f->buffers[d->buffer].size + 1);
    f->held_bytes += f->buffers[d->buffer].size;
    if (f->held_bytes > f->most_bytes) f->most_bytes = f->held_bytes;
}

/* Copy elements in row-major order, whatever the strides. */
static void gather_elements(const fake *f, const ad_desc *d, uint8_t *out) {
    const uint8_t *data = f->buffers[d->buffer].data;
    size_t item = ad__dtypes[d->dtype].size;
    for (int64_t i = 0, n = count_elements(d); i < n; i++) {
        int64_t rest = i, at = d->offset;
        for (int k = d->ndim - 1; k >= 0; k--) {
            at += rest % d->shape[k] * d->strides[k];
            rest /= d->shape[k];
        }
        memcpy(out + (size_t)i * item, data + at, item);
    }
}

static bool read_reply(fake *f, uint64_t request, const ad_desc *d) {
    size_t size = (size_t)(count_elements(d) * ad__dtypes[d->dtype].size), at = 0;
    size_t part = f->options.part ? f->options.part : f->options.max_payload;
    uint8_t *data = malloc(size + 1);
    ad_bytes out = AD_BYTES_INIT;
    if (!f->options.no_ack) f->acked = f->ops;
    gather_elements(f, d, data);
    do {
        size_t n = size - at < part ? size - at : part;
        ad_bytes control = AD_BYTES_INIT;
        ad_scalar values[2] = {{AD_SCALAR_INT, {.i = (int64_t)size}}, {AD_SCALAR_INT, {.i = (int64_t)at}}};
        ad__encode_reply(&control, request, f->acked, 2, values);
        append_frame(&out, &control, at + n < size ? AD_FRAME_MORE : 0, data + at, n);
        ad__bytes_free(&control);
        at += n;
    } while (at < size);
    free(data);
    return send_answer(f, &out);
}

static void compute_op(fake *f, const ad_op *op) {
    const ad_operand *in = op->operand + op->nout;
    double x = 0, y = 0;
    if (op->operand[0].desc.buffer < FAKE_BUFFERS) create_buffer(f, &op->operand[0].desc);
    const ad_desc *d = &op->operand[0].desc;
    if (d->buffer >= FAKE_BUFFERS || d->dtype != AD_FLOAT64) return;
    for (int k = 0; k < op->nin; k++)
        if (!in[k].is_scalar && (in[k].desc.dtype != AD_FLOAT64 || count_elements(&in[k].desc) != count_elements(d)))
            return;
    double *out = (double *)(void *)f->buffers[d->buffer].data;
    for (int64_t i = 0; i < count_elements(d); i++) {
        for (int k = 0; k < op->nin && k < 2; k++) {
            double v = in[k].scalar.as.f;
            if (!in[k].is_scalar) memcpy(&v, f->buffers[in[k].desc.buffer].data + 8 * i, 8);
            *(k ? &y : &x) = v;
        }
        out[i] = op->row == AD_UFUNC_add ? x + y : x;
    }
}

static bool acknowledge_some(fake *f) {
    uint64_t ahead = f->ops - f->acked;
    if (ahead > f->most_ahead) f->most_ahead = ahead;
    if (ahead > f->options.window_ops || f->unacked_bytes > f->options.window_bytes) f->violated = true;
    if (f->options.no_ack || f->options.mute) return true;
    return ahead < f->options.window_ops / 4 && f->unacked_bytes < f->options.window_bytes / 4 ? true : send_ack(f);
}

static void forget_buffers(fake *f, const ad_message *m) {
    f->frees += m->nids;
    for (size_t i = 0; i < m->nids; i++) {
        if (m->ids[i] >= FAKE_BUFFERS) continue;
        free(f->buffers[m->ids[i]].data);
        f->held_bytes -= f->buffers[m->ids[i]].size;
        f->buffers[m->ids[i]].data = NULL;
    }
}

/* ---- windows and streams ---- */

static int find_window(const fake *f, uint64_t id) {
    for (int i = 0; i < FAKE_WINDOWS && !f->options.lose_windows; i++)
        if (f->windows[i].base && f->windows[i].id == id) return i;
    return -1;
}

static void defer_fail(fake *f, int code) {
    if (f->pending.code) return;
    ad__fault(&f->pending, code, "no");
    f->pending_number = f->ops;
}

static void open_window(fake *f, uint64_t id, uint64_t size) {
    int fd = f->npassed ? f->passed[0] : -1, place = 0;
    if (fd < 0) f->misplaced = true;
    else memmove(f->passed, f->passed + 1, (size_t)--f->npassed * sizeof *f->passed);
    while (place < FAKE_WINDOWS && f->windows[place].base) place++;
    int seals = fcntl(fd, F_GET_SEALS);
    if (f->options.refuse_windows || place == FAKE_WINDOWS || seals < 0 || !(seals & F_SEAL_SHRINK)) {
        defer_fail(f, f->options.refuse_windows ? f->options.refuse_windows : AD_E_VALUE);
    } else {
        void *base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        f->windows[place].id = id;
        f->windows[place].base = base == MAP_FAILED ? NULL : base;
        f->windows[place].size = size;
        f->nwindows++;
    }
    if (fd >= 0) close(fd);
}

static void drop_window(fake *f, uint64_t id) {
    int i = find_window(f, id);
    if (i < 0) {
        defer_fail(f, AD_E_STALE);
        return;
    }
    munmap(f->windows[i].base, f->windows[i].size);
    f->windows[i].base = NULL;
    f->nwindows--;
}

static void load_window(fake *f, const uint64_t *u) {
    int i = find_window(f, u[2]);
    if (i < 0 || u[0] >= FAKE_BUFFERS || u[1] + u[4] > f->buffers[u[0]].size || u[3] + u[4] > f->windows[i].size) {
        defer_fail(f, AD_E_EXTENT);
        return;
    }
    memcpy(f->buffers[u[0]].data + u[1], f->windows[i].base + u[3], u[4]);
    f->loads++;
    f->loaded_bytes += u[4];
}

static bool send_pending_fail(fake *f, uint64_t request) {
    ad_bytes control = AD_BYTES_INIT, out = AD_BYTES_INIT;
    ad__encode_fail(&control, request, f->acked, f->pending.code, f->pending_number, "early", f->pending.text);
    f->pending.code = 0;
    append_frame(&out, &control, 0, NULL, 0);
    ad__bytes_free(&control);
    return send_answer(f, &out);
}

static bool fetch_into_window(fake *f, const ad_message *m) {
    int i = find_window(f, m->u[1]);
    size_t size = (size_t)(count_elements(&m->operand.desc) * ad__dtypes[m->operand.desc.dtype].size);
    if (f->pending.code) return send_pending_fail(f, m->u[0]);
    if (f->options.fail_reads && size) return send_fail(f, m->u[0]);
    if (i < 0 || m->u[2] + size > f->windows[i].size) {
        ad__fault(&f->pending, AD_E_STALE, "no window");
        f->pending_number = 0;
        return send_pending_fail(f, m->u[0]);
    }
    gather_elements(f, &m->operand.desc, f->windows[i].base + m->u[2]);
    f->fetches++;
    return (f->options.ignore_fetches && size) || send_reply(f, m->u[0], 0, NULL);
}

static bool handle_more(fake *f, const ad_message *m) {
    const ad_scalar ms = {AD_SCALAR_FLOAT, {.f = 1.5}}, yes = {AD_SCALAR_BOOL, {.b = true}};
    ad_scalar numbers[6];
    for (int i = 0; i < 6; i++) numbers[i] = (ad_scalar){AD_SCALAR_INT, {.i = 10 * (i + 1)}};
    switch (m->opcode) {
    case AD_REQ_WINDOW: open_window(f, m->u[0], m->u[1]); break;
    case AD_REQ_WINDOW_DROP: drop_window(f, m->u[0]); break;
    case AD_REQ_FORK: /* the child's connection is closed */
        if (f->npassed) close(f->passed[--f->npassed]);
        f->forks++;
        break;
    case AD_REQ_LOAD: load_window(f, m->u); break;
    case AD_REQ_ON:
        f->ons++;
        f->stream = m->u[0];
        break;
    case AD_REQ_FETCH: return fetch_into_window(f, m);
    case AD_REQ_WAIT: return f->pending.code ? send_pending_fail(f, m->u[0]) : send_reply(f, m->u[0], 0, NULL);
    case AD_REQ_DONE: return send_reply(f, m->u[0], 1, &yes);
    case AD_REQ_ELAPSED: return send_reply(f, m->u[0], 1, &ms);
    case AD_REQ_POOL: return send_reply(f, m->u[0], 4, numbers);
    case AD_REQ_DEVICE: return send_reply(f, m->u[0], 6, numbers);
    default: break;
    }
    return true;
}

static bool handle_message(fake *f, const ad_message *m, const uint8_t *payload, size_t size) {
    f->messages++;
    if (m->row->cls == AD_CLASS_OP) f->ops++;
    switch (m->opcode) {
    case AD_REQ_NEW:
    case AD_REQ_EMPTY: create_buffer(f, &m->operand.desc); break;
    case AD_REQ_FREE: forget_buffers(f, m); break;
    case AD_REQ_WRITE:
        if (m->u[0] < FAKE_BUFFERS && m->u[1] + size <= f->buffers[m->u[0]].size)
            memcpy(f->buffers[m->u[0]].data + m->u[1], payload, size);
        break;
    case AD_REQ_UFUNC:
        f->ufuncs++;
        compute_op(f, &m->op);
        break;
    case AD_REQ_SYNC: return f->pending.code ? send_pending_fail(f, m->u[0]) : send_reply(f, m->u[0], 0, NULL);
    case AD_REQ_STAT:
        return send_reply(f, m->u[0], 2, (ad_scalar[]){{AD_SCALAR_INT, {.i = 41}}, {AD_SCALAR_INT, {.i = 42}}});
    case AD_REQ_QUERY: return send_reply(f, m->u[0], 1, (ad_scalar[]){{AD_SCALAR_INT, {.i = 3}}});
    case AD_REQ_READ: return f->options.fail_reads ? send_fail(f, m->u[0]) : read_reply(f, m->u[0], &m->operand.desc);
    default:
        if (!handle_more(f, m)) return false;
    }
    return acknowledge_some(f);
}

/* ---- the connection ---- */

static void say_bye(fake *f, int status, const char *why) {
    ad_bytes control = AD_BYTES_INIT, out = AD_BYTES_INIT;
    ad__encode_bye(&control, status, why);
    append_frame(&out, &control, 0, NULL, 0);
    send_all_bytes(f, out.data, out.size);
    ad__bytes_free(&control);
    ad__bytes_free(&out);
}

static bool send_welcome(fake *f) {
    ad_bytes control = AD_BYTES_INIT, out = AD_BYTES_INIT;
    ad_welcome w = {.version = 1,
                    .session = 5,
                    .window_ops = f->options.window_ops,
                    .window_bytes = f->options.window_bytes,
                    .max_payload = f->options.max_payload,
                    .max_control = AD_MAX_CONTROL,
                    .max_buffers = 1000,
                    .features = f->options.resume ? AD_FEATURE_RESUME : 0,
                    .resume = f->options.resume,
                    .backend = "fake",
                    .devices = 2,
                    .server = "fake 1.0"};
    if (f->options.greeting) return send_all_bytes(f, f->options.greeting, strlen(f->options.greeting));
    if (f->options.refuse) {
        say_bye(f, f->options.refuse, "not you");
        return false;
    }
    ad__encode_welcome(&control, &w);
    append_frame(&out, &control, 0, NULL, 0);
    bool ok = send_all_bytes(f, out.data, out.size);
    ad__bytes_free(&control);
    ad__bytes_free(&out);
    return ok;
}

static bool send_resumed(fake *f) {
    static const uint8_t secret[AD_SECRET] = "another secret";
    ad_bytes control = AD_BYTES_INIT, out = AD_BYTES_INIT;
    ad__encode_resumed(&control, secret, f->taken);
    append_frame(&out, &control, 0, NULL, 0);
    bool ok = send_all_bytes(f, out.data, out.size);
    ad__bytes_free(&control);
    ad__bytes_free(&out);
    return ok;
}

static bool is_handshake(const ad_message *m) { return m->opcode == AD_REQ_HELLO || m->opcode == AD_REQ_RESUME; }

static bool answer_message(fake *f, const ad_message *m, const uint8_t *payload, size_t size) {
    if (!is_handshake(m)) return handle_message(f, m, payload, size);
    f->unacked_bytes = 0;
    return m->opcode == AD_REQ_HELLO ? send_welcome(f) : send_resumed(f);
}

static bool serve_frame(fake *f, ad_reader *reader, ad_arena *arena) {
    uint8_t header[AD_FRAME_HEADER];
    ad_frame h;
    bool ok = receive_exactly(f, header, sizeof header, true) &&
              ad__frame_decode(header, AD_MAX_CONTROL, AD_MAX_PAYLOAD, &h, NULL) == 0;
    if (!ok) return false;
    if (h.flags) { /* a note has nothing behind it */
        f->taken += AD_FRAME_HEADER;
        return true;
    }
    uint8_t *bytes = malloc(h.control + h.payload + 1);
    ad_message m = {0};
    ok = receive_exactly(f, bytes, h.control + h.payload, false) &&
         ad__reader_begin(reader, bytes, h.control, NULL) == 0;
    f->unacked_bytes += AD_FRAME_HEADER + h.control + h.payload;
    f->frames++;
    int next = 1;
    uint64_t taken = 0; /* bytes of this frame, once they count: the program may ask as soon as it has an answer */
    while (ok && (next = ad__reader_next(reader, arena, ~0u, &m, NULL)) == 1) {
        if (!taken && !is_handshake(&m)) {
            taken = AD_FRAME_HEADER + h.control + h.payload;
            f->taken += taken;
        }
        ok = answer_message(f, &m, bytes + h.control, h.payload);
        if (f->options.die_after && f->messages >= (unsigned)f->options.die_after) ok = false;
    }
    if (!ok) f->taken -= taken;
    ad__arena_reset(arena);
    free(bytes);
    return ok && next >= 0;
}

static void wait_listening(fake *f) {
    pthread_mutex_lock(&f->lock);
    while (f->options.deaf && !f->listening) pthread_cond_wait(&f->changed, &f->lock);
    pthread_mutex_unlock(&f->lock);
}

/* Wait until it may take another connection; false: the test is over. */
static bool await_return(fake *f) {
    pthread_mutex_lock(&f->lock);
    while (f->options.resume && !f->returns && !f->stopping) pthread_cond_wait(&f->changed, &f->lock);
    bool back = f->returns-- > 0;
    pthread_mutex_unlock(&f->lock);
    return back;
}

/* Serve another connection, behind those that the session has given up meanwhile. */
static void serve_again(fake *f, ad_reader *reader, ad_arena *arena) {
    int frames = 0;
    while (frames < 2) {
        close(f->fd);
        f->fd = accept(f->listener, NULL, NULL);
        if (f->fd < 0) return;
        for (frames = 0; serve_frame(f, reader, arena);) frames++;
    }
}

static _Thread_local bool is_fake;

bool fake_is_here(void) { return is_fake; }

static void *run_fake(void *argument) {
    fake *f = argument;
    is_fake = true;
    ad_reader *reader;
    ad_arena arena = AD_ARENA_INIT;
    f->fd = accept(f->listener, NULL, NULL);
    if (f->fd < 0 || ad__reader_new(&reader) != 0) return NULL;
    bool ok = serve_frame(f, reader, &arena);
    wait_listening(f);
    while (ok) ok = serve_frame(f, reader, &arena);
    while (f->options.resume) {
        shutdown(f->fd, SHUT_RDWR);
        if (!await_return(f)) break;
        serve_again(f, reader, &arena);
    }
    if (f->options.farewell) {
        say_bye(f, f->options.farewell, "farewell");
        close(f->fd);
        f->fd = -1;
    } else shutdown(f->fd, SHUT_RDWR);
    ad__reader_free(reader);
    ad__arena_free(&arena);
    return NULL;
}

static bool listen_unix(fake *f) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(f->url, sizeof f->url, "unix:%s/arrayd.sock", f->folder);
    strcpy(address.sun_path, f->url + 5);
    f->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    return bind(f->listener, (struct sockaddr *)&address, sizeof address) == 0 && listen(f->listener, 4) == 0;
}

static bool listen_tcp(fake *f) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    f->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(f->listener, (struct sockaddr *)&address, size) || listen(f->listener, 4) ||
        getsockname(f->listener, (struct sockaddr *)&address, &size))
        return false;
    snprintf(f->url, sizeof f->url, "tcp:127.0.0.1:%d", ntohs(address.sin_port));
    return true;
}

static fake *forking;

/* Runs after the library's own handler, as it was registered before that. */
static void await_taken(void) {
    while (forking && !forking->forks) sched_yield();
}

static void watch_forks(void) { pthread_atfork(await_taken, NULL, NULL); }

pid_t fake_fork(fake *f) {
    f->forks = 0;
    forking = f;
    pid_t pid = fork();
    forking = NULL;
    return pid;
}

fake *fake_start(const fake_options *options) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    fake *f = calloc(1, sizeof *f);
    f->options = options ? *options : (fake_options){0};
    if (!f->options.window_ops) f->options.window_ops = 65536;
    if (!f->options.window_bytes) f->options.window_bytes = 64u << 20;
    if (!f->options.max_payload) f->options.max_payload = AD_MAX_PAYLOAD;
    f->fd = -1;
    pthread_mutex_init(&f->lock, NULL);
    pthread_cond_init(&f->changed, NULL);
    strcpy(f->folder, "/tmp/arrayd-test-XXXXXX");
    if (!mkdtemp(f->folder)) return NULL;
    if (!(f->options.tcp ? listen_tcp(f) : listen_unix(f)) || pthread_create(&f->thread, NULL, run_fake, f))
        return NULL;
    return f;
}

fake *fake_open(const fake_options *options, ad_session **session) {
    fake *f = fake_start(options);
    return f && ad_session_open(f->url, session) == 0 ? f : NULL;
}

void fake_acknowledge(fake *f) { send_ack(f); }

void fake_listen(fake *f) {
    pthread_mutex_lock(&f->lock);
    f->listening = true;
    pthread_cond_signal(&f->changed);
    pthread_mutex_unlock(&f->lock);
}

void fake_return(fake *f, uint64_t taken) {
    pthread_mutex_lock(&f->lock);
    f->options.die_after = 0;
    f->options.die_after_bytes = 0;
    f->taken = taken;
    f->returns++;
    pthread_cond_signal(&f->changed);
    pthread_mutex_unlock(&f->lock);
}

void fake_wait(fake *f) {
    if (!f->joined) pthread_join(f->thread, NULL);
    f->joined = true;
}

void fake_stop(fake *f) {
    shutdown(f->listener, SHUT_RDWR);
    f->stopping = true;
    fake_listen(f);
    fake_wait(f);
    close(f->listener);
    if (f->fd >= 0) close(f->fd);
    for (int i = 0; i < FAKE_BUFFERS; i++) free(f->buffers[i].data);
    for (int i = 0; i < FAKE_WINDOWS; i++)
        if (f->windows[i].base) munmap(f->windows[i].base, f->windows[i].size);
    while (f->npassed) close(f->passed[--f->npassed]);
    while (f->nheld) ad__bytes_free(&f->held[--f->nheld]);
    if (!f->options.tcp) unlink(f->url + 5);
    rmdir(f->folder);
    pthread_cond_destroy(&f->changed);
    pthread_mutex_destroy(&f->lock);
    free(f);
}
