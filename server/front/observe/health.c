/* Health: every worker computes a small sum for the front, which opens a session for this as a client does. So the
 * probe tests the socket, the scheduling among sessions, memory and the device. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "protocol/frame.h"
#include "protocol/rows_reduction.h"
#include "protocol/rows_request.h"
#include "protocol/rows_ufunc.h"
#include "server/common/log.h"
#include "server/common/os.h"
#include "server/front/front.h"

#define ELEMENTS 64
#define ADDEND 1.5
#define PAUSE 100000000 /* least ns between two rounds */
#define MOST_OPEN 4     /* most probes of a worker that are not done; no more are begun */

struct ad_probe {
    ad_probe *next;
    ad_front *front;
    ad_domain *domain;
    uv_poll_t poll;
    uv_timer_t timer;
    int fd, handles;
    int64_t began;
    unsigned wanted; /* answers that are missing */
    size_t got;
    uint8_t input[8192];
};

/* ---- what is computed ---- */

static void put_probe_work(ad_bytes *b, uint64_t device) {
    static const int64_t shape[1] = {ELEMENTS};
    uint64_t first = 3 * device + 1;
    ad_desc zeros = {.buffer = first, .shape = shape, .dtype = AD_FLOAT64, .ndim = 1, .form = AD_FRESH}, all = zeros;
    static const int64_t strides[1] = {8};
    ad_desc more = zeros, sum = {.buffer = first + 2, .dtype = AD_FLOAT64, .form = AD_FRESH};
    all.form = AD_VIEW;
    all.strides = strides;
    more.buffer = first + 1;
    ad_operand add[] = {
        {.desc = more}, {.desc = all}, {.is_scalar = 1, .scalar = {.kind = AD_SCALAR_FLOAT, .as.f = ADDEND}}};
    all.buffer = first + 1;
    ad_operand reduce[] = {{.desc = sum}, {.desc = all}};
    ad_scalar parameters[] = {{.kind = AD_SCALAR_INT, .as.i = 1}, {.kind = AD_SCALAR_NIL}, {.kind = AD_SCALAR_NIL}};
    const ad_op ops[] = {{AD_REQ_UFUNC, AD_FLOAT64, 1, 2, 0, AD_UFUNC_add, add, NULL},
                         {AD_REQ_REDUCE, AD_FLOAT64, 1, 1, 3, AD_REDUCTION_sum, reduce, parameters}};
    ad__encode_numbers(b, AD_REQ_ON, 1, &device);
    ad__encode_new(b, &zeros, true);
    ad__encode_op(b, &ops[0]);
    ad__encode_op(b, &ops[1]);
    sum.form = AD_VIEW;
    ad__encode_read(b, device + 1, &sum);
}

/* Write the work for every device in use, and return how many there are. Devices that are not in use are not woken. */
static unsigned put_all_probe_work(ad_bytes *b, const ad_report *r) {
    unsigned n = 1;
    put_probe_work(b, 0);
    for (uint32_t i = 0; r->head && i < r->head->devices; i++) {
        if (!r->devices[i].open || !r->devices[i].index || r->devices[i].index >= AD_REPORT_DEVICES) continue;
        put_probe_work(b, r->devices[i].index);
        n++;
    }
    return n;
}

static int send_probe_work(int fd, const ad_bytes *b) {
    uint8_t head[AD_FRAME_HEADER];
    if (b->failed) return AD_E_MEMORY;
    ad__frame_encode(&(ad_frame){.control = (uint32_t)b->size}, head);
    struct iovec parts[2] = {{head, sizeof head}, {b->data, b->size}};
    const struct msghdr m = {.msg_iov = parts, .msg_iovlen = 2};
    ssize_t n = ad__os.sendmsg(fd, &m, MSG_NOSIGNAL | MSG_DONTWAIT);
    return n == (ssize_t)(sizeof head + b->size) ? 0 : AD_E_SYSTEM;
}

/* ---- its life ---- */

static void on_probe_closed(uv_handle_t *handle) {
    ad_probe *p = handle->data;
    if (--p->handles) return;
    close(p->fd);
    free(p);
}

/* End a probe and record its result. why NULL: the worker works. */
static void end_probe(ad_probe *p, const char *why) {
    ad_front *f = p->front;
    ad_domain_facts facts;
    ad__domain_facts(p->domain, &facts);
    facts.observation->probed = true;
    facts.observation->works = !why;
    facts.observation->took = (double)(ad__os_now() - p->began) / 1e9;
    snprintf(facts.observation->trouble, sizeof facts.observation->trouble, "%s", why ? why : "");
    if (why) ad__log(worker_not_healthy, facts.name, facts.pid, why);
    ad_probe **at = &f->observability.probing;
    while (*at != p) at = &(*at)->next;
    *at = p->next;
    uv_close((uv_handle_t *)&p->poll, on_probe_closed);
    uv_close((uv_handle_t *)&p->timer, on_probe_closed);
    if (!f->observability.probing) ad__round_over(&f->observability.health);
}

static void on_probe_timeout(uv_timer_t *timer) { end_probe(timer->data, "no answer within health-seconds"); }

/* ---- answers ---- */

static const char *check_probe_message(ad_probe *p, const ad_message *m, const uint8_t *payload, size_t size) {
    double sum;
    if (m->opcode == AD_REQ_ACK) return NULL;
    if (m->opcode == AD_REQ_FAIL && m->u[2] == -AD_E_MEMORY) { /* a worker without free memory works all the same */
        p->wanted--;
        return NULL;
    }
    if (m->opcode == AD_REQ_FAIL) return m->s[1].size ? m->s[1].data : "the operation failed";
    if (m->opcode == AD_REQ_BYE) return m->s[0].size ? m->s[0].data : "the session was refused";
    if (m->opcode != AD_REQ_REPLY || size != sizeof sum) return "an answer of another kind";
    memcpy(&sum, payload, sizeof sum);
    if (sum != ELEMENTS * ADDEND) return "the result is wrong";
    p->wanted--;
    return NULL;
}

/* Read the first frame, which is complete; why stays "" unless it shows that something is wrong. */
static void read_probe_frame(ad_probe *p, const ad_frame *frame, char why[AD_FAULT_TEXT]) {
    const uint8_t *control = p->input + AD_FRAME_HEADER;
    ad_reader *r = NULL;
    ad_arena arena = AD_ARENA_INIT;
    ad_message m;
    ad_fault fault = {0};
    int result = ad__reader_new(&r);
    if (!result) result = ad__reader_begin(r, control, frame->control, &fault);
    while (!result && !*why && (result = ad__reader_next(r, &arena, AD_BIT(AD_CLASS_TELL), &m, &fault)) > 0) {
        const char *wrong = check_probe_message(p, &m, control + frame->control, frame->payload);
        /* Texts of messages do not end with a NUL. */
        if (wrong)
            snprintf(why, AD_FAULT_TEXT, "%.*s",
                     wrong == m.s[1].data   ? (int)m.s[1].size
                     : wrong == m.s[0].data ? (int)m.s[0].size
                                            : AD_FAULT_TEXT,
                     wrong);
        result = 0;
    }
    if (result < 0) snprintf(why, AD_FAULT_TEXT, "%s", *fault.text ? fault.text : ad__error_text(result));
    ad__arena_free(&arena);
    ad__reader_free(r);
}

static void read_probe_frames(ad_probe *p, char why[AD_FAULT_TEXT]) {
    ad_frame frame;
    ad_fault fault = {0};
    while (!*why && p->wanted && p->got >= AD_FRAME_HEADER) {
        if (ad__frame_decode(p->input, 2048, 2048, &frame, &fault)) {
            snprintf(why, AD_FAULT_TEXT, "%s", fault.text);
            return;
        }
        size_t size = AD_FRAME_HEADER + frame.control + frame.payload;
        if (p->got < size) return;
        read_probe_frame(p, &frame, why);
        memmove(p->input, p->input + size, p->got -= size);
    }
}

static void on_probe_readable(uv_poll_t *poll, int status, int events) {
    ad_probe *p = poll->data;
    char why[AD_FAULT_TEXT] = "";
    (void)events;
    ssize_t n = status ? 0 : ad__os.recv(p->fd, p->input + p->got, sizeof p->input - p->got, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n > 0) {
        p->got += (size_t)n;
        read_probe_frames(p, why);
    } else {
        snprintf(why, sizeof why, "the worker has closed the connection");
    }
    if (*why) end_probe(p, why);
    else if (!p->wanted) end_probe(p, NULL);
}

/* ---- beginning ---- */

static int send_probe_session(ad_probe *p, int fd) {
    ad_note note = {.kind = AD_NOTE_SESSION,
                    .id = AD_PROBE_SESSION | ++p->front->observability.probes,
                    .grants = {.may = AD_GRANT_CONNECT, .named = AD_GRANT_KERNELS, .devices = AD_GRANT_ALL_DEVICES},
                    .who = "arrayd:health",
                    .text = "health"};
    return ad__domain_tell_if_ready(p->domain, &note, fd);
}

static int connect_probe(ad_probe *p, ad_observation *observation) {
    int pair[2];
    ad_bytes work = AD_BYTES_INIT;
    if (ad__os.socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair)) return AD_E_SYSTEM;
    p->fd = pair[0];
    p->wanted = put_all_probe_work(&work, &observation->report);
    int status = send_probe_session(p, pair[1]);
    if (!status) observation->probes_open++;
    if (!status) status = send_probe_work(p->fd, &work);
    if (!status && uv_poll_init(&p->front->loop, &p->poll, p->fd)) status = AD_E_SYSTEM;
    ad__bytes_free(&work);
    if (status) close(p->fd);
    return status;
}

static void record_trouble(ad_observation *observation, const char *why) {
    observation->probed = true;
    observation->works = false;
    snprintf(observation->trouble, sizeof observation->trouble, "%s", why);
}

static void probe_worker(ad_front *f, ad_domain *d, ad_observation *observation) {
    ad_probe *p = observation->probes_open < MOST_OPEN ? ad__os.calloc(1, sizeof *p) : NULL;
    if (!p) {
        record_trouble(observation,
                       observation->probes_open < MOST_OPEN ? "out of host memory" : "earlier looks are still waiting");
        return;
    }
    p->front = f;
    p->domain = d;
    p->began = ad__os_now();
    int status = connect_probe(p, observation);
    if (status) {
        free(p);
        record_trouble(observation, ad__error_text(status));
        return;
    }
    uv_timer_init(&f->loop, &p->timer);
    p->handles = 2;
    p->poll.data = p->timer.data = p;
    p->next = f->observability.probing;
    f->observability.probing = p;
    uv_poll_start(&p->poll, UV_READABLE, on_probe_readable);
    uv_timer_start(&p->timer, on_probe_timeout, (uint64_t)(f->config.health_seconds * 1000), 0);
}

/* Start the worker of the server's own user if it is not there, as for a client. Other principals' workers are
 * started when their clients come back. */
static void start_own_domain(ad_front *f) {
    ad_entrant own = {0};
    ad_domain_state state;
    ad_fault fault = {0};
    ad_domain_facts facts;
    const gid_t group = getegid();
    ad__principals_user(f->principals, geteuid(), 1, &group, own.who, &own.grants);
    ad_domain *d = ad__domain_of(f, &own, &state, &fault);
    if (!d || state == AD_DOMAIN_READY) return;
    ad__domain_facts(d, &facts);
    record_trouble(facts.observation, state == AD_DOMAIN_STARTING ? "the worker is starting" : fault.text);
}

static void begin_probes(ad_front *f) {
    ad_domain_facts facts;
    for (ad_domain *d = NULL; (d = ad__domain_next(f, d));) {
        ad__domain_facts(d, &facts);
        facts.observation->probed = false;
        if (facts.ready) probe_worker(f, d, facts.observation);
    }
    start_own_domain(f);
    if (!f->observability.probing) ad__round_over(&f->observability.health);
}

void ad__health_init(ad_front *f) { ad__rounds_init(f, &f->observability.health, begin_probes, PAUSE); }

void ad__health(ad_front *f, ad_observer *w) { ad__round_join(&f->observability.health, w); }

bool ad__health_good(ad_front *f) {
    ad_domain_facts facts;
    bool any = false, good = true;
    for (ad_domain *d = NULL; (d = ad__domain_next(f, d));) {
        ad__domain_facts(d, &facts);
        any = any || facts.observation->probed;
        good = good && (!facts.observation->probed || facts.observation->works);
    }
    return any && good;
}

void ad__health_close(ad_front *f) {
    ad__rounds_close(&f->observability.health);
    while (f->observability.probing) end_probe(f->observability.probing, "the server is shutting down");
}
