/* Fetching arrays of peers. The work is done by a program, arrayd-pull, which is a client of both servers:
 *
 *     worker --PULL--> find the peer --start--> arrayd-pull --connects--> the peer
 *                                       |  door: its sessions here, of the principal that wants the array
 *     worker <--PULLED-- answer <-------+
 *
 * An answer is kept until its session asks for something else or ends, as another worker may ask again. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/common/fdpass.h"
#include "server/common/log.h"
#include "server/common/os.h"
#include "server/front/peers/peers.h"

#define MOST_PULLS 64      /* arrays that are fetched at a time */
#define MOST_PULLS_EACH 16 /* the same for one principal */
#define FIRST_FD 3         /* descriptors of the program: the job and its answer, then the door */

struct ad_pull {
    ad_pull *next; /* the list of the front */
    ad_front *front;
    uint64_t session, place; /* the session that asks, and the place of its message */
    ad_entrant entrant;      /* who the program is in its sessions here */
    char peer[AD_PRINCIPAL_SIZE];
    int64_t began;
    uv_process_t process;
    uv_poll_t job, door;
    uv_timer_t patience;
    int job_fd, door_fd, handles; /* handles: how many of the loop's are open */
    bool alive, running, dropped; /* alive: the process runs; running: it is to answer; dropped: nobody waits */
    char line[AD_FAULT_TEXT + 64];
    size_t got;
    ad_note answer;
};

/* ---- its life ---- */

static void free_if_unused(ad_pull *p) {
    if (p->handles || !p->dropped) return;
    free(p);
}

static void on_closed(uv_handle_t *handle) {
    ad_pull *p = handle->data;
    p->handles--;
    free_if_unused(p);
}

/* Close a handle, unless the loop has not taken it: then it has no data. */
static void close_handle(uv_handle_t *handle) {
    if (handle->data) uv_close(handle, on_closed);
}

/* Stop listening to the program. */
static void close_sockets(ad_pull *p) {
    if (!p->running) return;
    p->running = false;
    close_handle((uv_handle_t *)&p->job);
    close_handle((uv_handle_t *)&p->door);
    close_handle((uv_handle_t *)&p->patience);
    close(p->job_fd);
    close(p->door_fd);
}

static void drop_pull(ad_pull *p) {
    ad_pull **link = &p->front->peers.pulls;
    while (*link != p) link = &(*link)->next;
    *link = p->next;
    if (p->running && p->alive) uv_process_kill(&p->process, SIGKILL);
    close_sockets(p);
    p->dropped = true;
    free_if_unused(p);
}

void ad__pull_end(ad_front *f, uint64_t session) {
    for (ad_pull *p = f->peers.pulls, *next; p; p = next) {
        next = p->next;
        if (!session || p->session == session) drop_pull(p);
    }
}

/* ---- the answer ---- */

/* Tell the worker that has the session. One that is about to take the session over asks again. */
static void send_answer(const ad_pull *p) {
    bool own;
    ad_domain *d = ad__session_entry_find(p->front, p->session, p->entrant.who, &own);
    if (d && own && ad__domain_is_ready(d)) ad__domain_tell(d, &p->answer, -1);
}

static void set_answer(ad_pull *p, int code, const char *text, const uint64_t half[2]) {
    p->answer =
        (ad_note){.kind = AD_NOTE_PULLED, .id = p->session, .size = p->place, .process = (uint64_t) - (int64_t)code};
    if (half) memcpy(p->answer.secret, half, sizeof p->answer.secret);
    snprintf(p->answer.text, sizeof p->answer.text, "%s", text);
    ad__log_other(code != 0, pulled, p->session, p->entrant.who, p->peer, (long)((ad__os_now() - p->began) / 1000000),
                  text);
    close_sockets(p);
    send_answer(p);
}

/* Answer with an error. The text may be another server's, and gets to clients and their terminals. */
static void set_failure(ad_pull *p, int code, const char *text) {
    char why[AD_FAULT_TEXT];
    snprintf(why, sizeof why, "pull from %s: %.180s", p->peer, text);
    for (char *at = why; *at; at++)
        if ((unsigned char)*at < ' ' || *at == 127) *at = '?';
    set_answer(p, code, why, NULL);
}

/* Give up a program that has not answered. */
static void fail_pull(ad_pull *p, int code, const char *text) {
    if (p->running && p->alive) uv_process_kill(&p->process, SIGKILL);
    set_failure(p, code, text);
}

/* Read what the program has said: a code, and two halves or a text. */
static void parse_answer(ad_pull *p) {
    uint64_t half[2];
    char *rest;
    const unsigned long code = strtoul(p->line, &rest, 10);
    if (*rest == '\t' && code && code < 100) set_failure(p, -(int)code, rest + 1);
    else if (*rest == '\t' && !code && sscanf(rest, "\t%" SCNx64 "\t%" SCNx64, &half[0], &half[1]) == 2)
        set_answer(p, 0, "", half);
    else fail_pull(p, AD_E_INTERNAL, "arrayd-pull has answered nonsense");
}

static void on_job_readable(uv_poll_t *poll, int status, int events) {
    ad_pull *p = poll->data;
    (void)events;
    const ssize_t n = status ? 0 : ad__os.recv(p->job_fd, p->line + p->got, sizeof p->line - 1 - p->got, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) {
        fail_pull(p, AD_E_SYSTEM, "arrayd-pull ended without an answer");
        return;
    }
    p->got += (size_t)n;
    char *end = memchr(p->line, '\n', p->got);
    if (!end && p->got < sizeof p->line - 1) return;
    p->line[end ? (size_t)(end - p->line) : p->got] = 0;
    parse_answer(p);
}

static void on_patience_over(uv_timer_t *timer) {
    fail_pull(timer->data, AD_E_TIMEOUT, "it took longer than operation-time");
}

/* ---- the program ---- */

/* Begin a session of the principal for the program. */
static void on_door_readable(uv_poll_t *poll, int status, int events) {
    ad_pull *p = poll->data;
    char byte;
    int fd = -1;
    (void)status, (void)events; /* the call says the same */
    const ssize_t n = ad__fdpass_receive("", p->door_fd, &byte, 1, &fd);
    if (!n) uv_poll_stop(poll);
    if (fd < 0) return;
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    ad__handshake_begin_as(p->front, fd, &p->entrant);
}

static void on_exit_of_program(uv_process_t *process, int64_t code, int signal_number) {
    ad_pull *p = process->data;
    (void)code, (void)signal_number; /* the end of its socket says that it has ended */
    p->alive = false;
    uv_close((uv_handle_t *)process, on_closed);
}

static void find_pull_program(const ad_front *f, char *out, size_t size) {
    char worker[4200];
    ad__domain_worker_path(f, worker, sizeof worker);
    const char *slash = strrchr(worker, '/');
    snprintf(out, size, "%.*sarrayd-pull", slash ? (int)(slash + 1 - worker) : 0, worker);
}

static int spawn_program(ad_pull *p, int job, int door, ad_fault *fault) {
    char path[4224], *argv[] = {path, NULL}, *env[] = {NULL};
    uv_stdio_container_t stdio[FIRST_FD + 2] = {
        {.flags = UV_IGNORE},
        {.flags = UV_IGNORE},
        {.flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO},
        {.flags = UV_INHERIT_FD, .data.fd = job},
        {.flags = UV_INHERIT_FD, .data.fd = door},
    };
    find_pull_program(p->front, path, sizeof path);
    uv_process_options_t o = {.exit_cb = on_exit_of_program,
                              .file = path,
                              .args = argv,
                              .env = env,
                              .stdio_count = FIRST_FD + 2,
                              .stdio = stdio};
    p->process.data = p;
    p->handles++;
    const int status = uv_spawn(&p->front->loop, &p->process, &o);
    p->alive = !status;
    if (!status) return 0;
    uv_close((uv_handle_t *)&p->process, on_closed);
    return ad__fault(fault, AD_E_SYSTEM, "cannot start %.150s: %s", path, uv_strerror(status));
}

/* Watch this end of a socket. A status of libuv's. */
static int watch_socket(ad_pull *p, uv_poll_t *poll, int fd, uv_poll_cb callback) {
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    int status = uv_poll_init(&p->front->loop, poll, fd);
    if (status) return status;
    p->handles++;
    poll->data = p;
    return uv_poll_start(poll, UV_READABLE, callback);
}

static void watch_program(ad_pull *p, int job, int door) {
    const double most = p->front->config.operation_time;
    p->job_fd = job;
    p->door_fd = door;
    p->running = true;
    p->handles++;
    p->patience.data = p;
    uv_timer_init(&p->front->loop, &p->patience);
    if (most > 0) uv_timer_start(&p->patience, on_patience_over, (uint64_t)(most * 1000), 0);
    if (watch_socket(p, &p->job, job, on_job_readable) | watch_socket(p, &p->door, door, on_door_readable))
        fail_pull(p, AD_E_SYSTEM, "out of descriptors");
}

static int send_job(int fd, const char *url, const ad_note *note) {
    char line[1024];
    uint64_t half[2];
    _Static_assert(sizeof line > AD_PEER_URL + sizeof note->who + 40, "a job fits into its line");
    memcpy(half, note->secret, sizeof half);
    const int n = snprintf(line, sizeof line, "%s\t%s\t%" PRIx64 "\t%" PRIx64 "\n", url, note->who, half[0], half[1]);
    const bool sent = ad__os.send(fd, line, (size_t)n, MSG_NOSIGNAL) == n;
    explicit_bzero(line, sizeof line);
    return sent ? 0 : AD_E_SYSTEM;
}

static int start_program(ad_pull *p, const char *url, const ad_note *note, ad_fault *fault) {
    int job[2], door[2];
    if (ad__os.socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, job))
        return ad__fault(fault, AD_E_SYSTEM, "socketpair: %s", strerror(errno));
    if (ad__os.socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, door)) {
        close(job[0]), close(job[1]);
        return ad__fault(fault, AD_E_SYSTEM, "socketpair: %s", strerror(errno));
    }
    int status = send_job(job[0], url, note);
    if (status) ad__fault(fault, status, "the job does not fit into a socket");
    else status = spawn_program(p, job[1], door[1], fault);
    close(job[1]), close(door[1]);
    if (status) close(job[0]), close(door[0]);
    else watch_program(p, job[0], door[0]);
    return status;
}

/* ---- asking ---- */

static unsigned count_running(const ad_front *f, const char *who) {
    unsigned n = 0;
    for (const ad_pull *p = f->peers.pulls; p; p = p->next) n += p->running && (!who || !strcmp(p->entrant.who, who));
    return n;
}

/* A principal's name must not be able to end the line of a job. */
static bool is_line(const char *text) {
    for (; *text; text++)
        if (*text < ' ' || *text == 127) return false;
    return true;
}

static int check_pull(const ad_pull *p, const char *url, const ad_note *note, ad_fault *fault) {
    const ad_front *f = p->front;
    if (!url) return ad__fault(fault, AD_E_NAME, "it is no peer of this server (its administrator: option peers)");
    if (!is_line(note->who)) return ad__fault(fault, AD_E_VALUE, "principal has letters that no principal has");
    if (f->stopping || ad__upgrade_leaves(f)) return ad__fault(fault, AD_E_CONNECTION, "the server is shutting down");
    if (count_running(f, NULL) >= MOST_PULLS || count_running(f, p->entrant.who) >= MOST_PULLS_EACH)
        return ad__fault(fault, AD_E_LIMIT, "at most %d arrays are fetched at a time, and %d for one principal",
                         MOST_PULLS, MOST_PULLS_EACH);
    return 0;
}

static ad_pull *add_pull(ad_front *f, const ad_note *note, const char *who) {
    ad_pull *p = ad__os.calloc(1, sizeof *p);
    if (!p) return NULL;
    p->front = f;
    p->session = note->id;
    p->place = note->size;
    p->began = ad__os_now();
    p->entrant.grants = note->grants;
    p->entrant.grants.may = AD_GRANT_CONNECT | AD_GRANT_EXPORTS;
    snprintf(p->entrant.who, sizeof p->entrant.who, "%s", who);
    snprintf(p->peer, sizeof p->peer, "%.*s", AD_PRINCIPAL_SIZE - 1, note->text);
    p->next = f->peers.pulls;
    f->peers.pulls = p;
    return p;
}

/* Drop what was fetched for sessions that were lost with their worker. */
static void drop_orphans(ad_front *f) {
    for (ad_pull *p = f->peers.pulls, *next; p; p = next) {
        bool own;
        next = p->next;
        if (!ad__session_entry_find(f, p->session, p->entrant.who, &own)) drop_pull(p);
    }
}

static void begin_pull(ad_domain *d, const ad_note *note, const char *who) {
    ad_front *f = ad__domain_front(d);
    ad_fault fault = {0};
    ad_pull *p = add_pull(f, note, who);
    if (!p) {
        ad__domain_tell(d,
                        &(ad_note){.kind = AD_NOTE_PULLED,
                                   .id = note->id,
                                   .size = note->size,
                                   .process = -AD_E_MEMORY,
                                   .text = "out of host memory"},
                        -1);
        return;
    }
    const char *url = ad__peers_url(f->peers.known, p->peer);
    int status = check_pull(p, url, note, &fault);
    if (!status) status = start_program(p, url, note, &fault);
    if (status) fail_pull(p, status, fault.text);
}

void ad__pull_handle(ad_domain *d, const ad_note *note) {
    ad_front *f = ad__domain_front(d);
    const char *who = ad__session_entry_who(f, note->id, d);
    ad_pull *p = f->peers.pulls;
    if (!who) return;
    while (p && p->session != note->id) p = p->next;
    if (p && p->place == note->size && !note->process) {
        if (!p->running) send_answer(p);
        return;
    }
    if (p) drop_pull(p);
    drop_orphans(f);
    if (!note->process) begin_pull(d, note, who);
}
