#include "tests/sim/loop.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "tests/sim/calls.h"

#define MOST_READY 256
#define MOST_ARGUMENTS 64

typedef enum part { ASYNC, CHECK, IDLE, POLL, TIMER, SIGNAL, PROCESS } part;

/* What the simulator knows of a handle, which is the program's memory. */
typedef struct entry {
    struct entry *next;
    uv_handle_t *handle;
    part role;
    bool active, closing, no_keeping;
    void *call; /* the function to call */
    uv_close_cb on_close;
    int fd;              /* POLL */
    unsigned events;     /* POLL: POLLIN ... */
    int64_t due, repeat; /* TIMER, ns */
    int number;          /* SIGNAL */
    bool sent;           /* ASYNC, SIGNAL: to be called; PROCESS: it has ended */
    int64_t status;
    int signal;
} entry;

typedef struct sim_loop {
    struct sim_loop *next;
    uv_loop_t *loop;
    sim_process *process;
    entry *entries;
    bool stop;
} sim_loop;

static sim_loop *find_loop(const uv_loop_t *loop) {
    sim_loop *l = sim_self()->loops;
    while (l && l->loop != loop) l = l->next;
    return l;
}

static entry *find_in_loop(const sim_loop *l, const void *handle) {
    entry *e = l->entries;
    while (e && e->handle != handle) e = e->next;
    return e;
}

static entry *find_entry(const void *handle) {
    for (const sim_loop *l = sim_self()->loops; l; l = l->next) {
        entry *e = find_in_loop(l, handle);
        if (e) return e;
    }
    return NULL;
}

static entry *add_entry(uv_loop_t *loop, void *handle, part role) {
    sim_loop *l = find_loop(loop);
    entry *e = calloc(1, sizeof *e), **at = &l->entries;
    e->handle = handle;
    e->role = role;
    e->handle->loop = loop;
    while (*at) at = &(*at)->next;
    *at = e;
    return e;
}

void sim_loops_free(sim_process *p) {
    while (p->loops) {
        sim_loop *l = p->loops;
        p->loops = l->next;
        while (l->entries) {
            entry *e = l->entries;
            l->entries = e->next;
            free(e);
        }
        free(l);
    }
}

void sim_send_signal(sim_process *p, int signal) {
    p->signals |= 1u << signal; /* kept while the program has no handler */
    for (const sim_loop *l = p->loops; l; l = l->next)
        for (entry *e = l->entries; e; e = e->next)
            if (e->role == SIGNAL && e->active && e->number == signal) {
                e->sent = true;
                p->signals &= ~(1u << signal);
            }
}

/* ---- loops ---- */

int uv_loop_init(uv_loop_t *loop) {
    sim_process *p = sim_self();
    sim_loop *l = calloc(1, sizeof *l);
    *l = (sim_loop){.next = p->loops, .loop = loop, .process = p};
    p->loops = l;
    return 0;
}

int uv_loop_close(uv_loop_t *loop) { return find_loop(loop)->entries ? UV_EBUSY : 0; }

void uv_stop(uv_loop_t *loop) { find_loop(loop)->stop = true; }

void uv_walk(uv_loop_t *loop, uv_walk_cb call, void *argument) {
    for (entry *e = find_loop(loop)->entries, *next; e; e = next) {
        next = e->next;
        call(e->handle, argument);
    }
}

const char *uv_strerror(int error) { return strerror(-error); }
int uv_translate_sys_error(int error) { return error <= 0 ? error : -error; }

/* ---- handles ---- */

int uv_is_active(const uv_handle_t *h) {
    const entry *e = find_entry(h);
    return e && e->active && !e->closing;
}

int uv_is_closing(const uv_handle_t *h) {
    const entry *e = find_entry(h);
    return !e || e->closing;
}

void uv_close(uv_handle_t *h, uv_close_cb call) {
    entry *e = find_entry(h);
    e->active = false;
    e->closing = true;
    e->on_close = call;
}

void uv_unref(uv_handle_t *h) { find_entry(h)->no_keeping = true; }

static int start_entry(void *handle, void *call) {
    entry *e = find_entry(handle);
    if (!e || e->closing) return UV_EINVAL;
    e->call = call;
    e->active = true;
    return 0;
}

static int stop_entry(const void *handle) {
    entry *e = find_entry(handle);
    if (e) e->active = false;
    return 0;
}

/* A function as the pointer that an entry keeps. */
#define AS_CALL(f) (*(void **)&(f))

int uv_async_init(uv_loop_t *loop, uv_async_t *h, uv_async_cb call) {
    add_entry(loop, h, ASYNC);
    return start_entry(h, AS_CALL(call));
}
int uv_async_send(uv_async_t *h) {
    sim_pass_call("uv_async_send");
    find_entry(h)->sent = true;
    return 0;
}
int uv_check_init(uv_loop_t *loop, uv_check_t *h) { return add_entry(loop, h, CHECK) ? 0 : UV_ENOMEM; }
int uv_check_start(uv_check_t *h, uv_check_cb call) { return start_entry(h, AS_CALL(call)); }
int uv_idle_init(uv_loop_t *loop, uv_idle_t *h) { return add_entry(loop, h, IDLE) ? 0 : UV_ENOMEM; }
int uv_idle_start(uv_idle_t *h, uv_idle_cb call) { return start_entry(h, AS_CALL(call)); }
int uv_idle_stop(uv_idle_t *h) { return stop_entry(h); }

int uv_poll_init(uv_loop_t *loop, uv_poll_t *h, int fd) {
    sim_file *f = sim_file_get(fd);
    if (!f) return UV_EBADF;
    if (sim_must_fail(SIM_WATCH)) return UV_ENOMEM;
    f->flags |= 04000; /* O_NONBLOCK, as libuv sets it */
    add_entry(loop, h, POLL)->fd = fd;
    return 0;
}
int uv_poll_start(uv_poll_t *h, int events, uv_poll_cb call) {
    entry *e = find_entry(h);
    const int status = start_entry(h, AS_CALL(call));
    if (status) return status;
    e->events = (events & UV_READABLE ? POLLIN : 0u) | (events & UV_WRITABLE ? POLLOUT : 0u) |
                (events & UV_DISCONNECT ? (unsigned)POLLRDHUP : 0u);
    e->active = events != 0;
    return 0;
}
int uv_poll_stop(uv_poll_t *h) { return stop_entry(h); }

int uv_timer_init(uv_loop_t *loop, uv_timer_t *h) { return add_entry(loop, h, TIMER) ? 0 : UV_ENOMEM; }
int uv_timer_start(uv_timer_t *h, uv_timer_cb call, uint64_t ms, uint64_t repeat) {
    entry *e = find_entry(h);
    const int status = start_entry(h, AS_CALL(call));
    if (status) return status;
    e->due = sim_time + (int64_t)ms * 1000000;
    e->repeat = (int64_t)repeat * 1000000;
    return 0;
}
int uv_timer_stop(uv_timer_t *h) { return stop_entry(h); }
uint64_t uv_timer_get_due_in(const uv_timer_t *h) {
    const entry *e = find_entry(h);
    return e->due > sim_time ? (uint64_t)(e->due - sim_time) / 1000000 : 0;
}

int uv_signal_init(uv_loop_t *loop, uv_signal_t *h) { return add_entry(loop, h, SIGNAL) ? 0 : UV_ENOMEM; }
int uv_signal_start(uv_signal_t *h, uv_signal_cb call, int number) {
    find_entry(h)->number = number;
    const int status = start_entry(h, AS_CALL(call));
    if (!status && sim_self()->signals >> number & 1) sim_send_signal(sim_self(), number);
    return status;
}

/* ---- processes ---- */

static void note_exit(void *uv, int64_t status, int signal) {
    entry *e = uv;
    e->status = status;
    e->signal = signal;
    e->sent = true;
}

int uv_spawn(uv_loop_t *loop, uv_process_t *h, const uv_process_options_t *o) {
    sim_file *files[16] = {NULL}, *log = sim_log_file();
    const char *slash = strrchr(o->file, '/');
    int argc = 0;
    sim_pass_call("uv_spawn");
    entry *e = add_entry(loop, h, PROCESS);
    if (sim_serving && sim_draw_case(sim_planned.no_descriptor)) return UV_EMFILE;
    while (o->args[argc] && argc < MOST_ARGUMENTS) argc++;
    for (int i = 0; i < o->stdio_count && i < 16; i++)
        files[i] = o->stdio[i].flags == UV_INHERIT_FD ? sim_self()->file[o->stdio[i].data.fd] : log;
    sim_process *p =
        sim_start_process(slash ? slash + 1 : o->file, sim_self()->user, argc, o->args, o->stdio_count, files);
    sim_file_drop(log);
    start_entry(h, AS_CALL(o->exit_cb));
    p->uv = e;
    p->on_exit = note_exit;
    h->pid = p->number;
    return 0;
}

int uv_process_kill(uv_process_t *h, int signal) { return __wrap_kill(h->pid, signal) ? UV_ESRCH : 0; }

/* ---- turns ---- */

static bool is_alive(const sim_loop *l) {
    for (const entry *e = l->entries; e; e = e->next)
        if (e->closing || (e->active && !e->no_keeping)) return true;
    return false;
}

static const sim_file *get_polled(const sim_loop *l, const entry *e) {
    return e->role == POLL && e->active ? l->process->file[e->fd] : NULL;
}

/* Find what a polled descriptor is ready for, as libuv tells it. */
static unsigned find_ready(const sim_loop *l, const entry *e) {
    const sim_file *f = get_polled(l, e);
    const unsigned got = f ? sim_file_poll(f) & (e->events | POLLERR | POLLHUP) : 0;
    return got == POLLERR || got == POLLHUP ? got | (e->events & sim_file_poll(f)) | (e->events & POLLIN) : got;
}

static bool has_something(sim_task *t, void *loop) {
    const sim_loop *l = loop;
    (void)t;
    for (const entry *e = l->entries; e; e = e->next)
        if (e->closing || (e->active && (e->role == IDLE || e->sent || find_ready(l, e)))) return true;
    return false;
}

static int64_t find_deadline(const sim_loop *l) {
    int64_t due = INT64_MAX;
    for (const entry *e = l->entries; e; e = e->next) {
        const sim_file *f = get_polled(l, e);
        if (e->active && e->role == TIMER && e->due < due) due = e->due;
        if (f && sim_file_due(f) < due) due = sim_file_due(f);
    }
    return due;
}

static void run_timer(entry *e) {
    uv_timer_cb call;
    AS_CALL(call) = e->call;
    e->active = e->repeat != 0;
    e->due = sim_time + e->repeat;
    call((uv_timer_t *)e->handle);
}

static void run_timers(const sim_loop *l) {
    const int64_t now = sim_time;
    for (;;) {
        entry *first = NULL;
        for (entry *e = l->entries; e; e = e->next)
            if (e->role == TIMER && e->active && e->due <= now && (!first || e->due < first->due)) first = e;
        if (!first) return;
        run_timer(first);
    }
}

/* Call what handles of a role want to be called in each turn. */
static void run_role(const sim_loop *l, part role) {
    for (entry *e = l->entries, *next; e; e = next) {
        void (*call)(uv_handle_t *);
        next = e->next;
        if (e->role != role || !e->active) continue;
        AS_CALL(call) = e->call;
        call(e->handle);
    }
}

static void tell_polled(entry *e, unsigned ready) {
    uv_poll_cb call;
    AS_CALL(call) = e->call;
    if (ready & POLLERR) {
        e->active = false;
        call((uv_poll_t *)e->handle, UV_EBADF, 0);
        return;
    }
    const int events = (ready & (POLLIN | POLLHUP) && e->events & POLLIN ? UV_READABLE : 0) |
                       (ready & POLLOUT ? UV_WRITABLE : 0) | (ready & POLLRDHUP ? UV_DISCONNECT : 0);
    call((uv_poll_t *)e->handle, 0, events);
}

static void tell_sent(entry *e) {
    e->sent = false;
    if (e->role == ASYNC) {
        uv_async_cb call;
        AS_CALL(call) = e->call;
        call((uv_async_t *)e->handle);
    } else if (e->role == SIGNAL) {
        uv_signal_cb call;
        AS_CALL(call) = e->call;
        call((uv_signal_t *)e->handle, e->number);
    } else {
        uv_exit_cb call;
        AS_CALL(call) = e->call;
        e->active = false;
        call((uv_process_t *)e->handle, e->status, e->signal);
    }
}

/* Tell of what is ready, in an order of the seed; what an earlier call has stopped is passed over. */
static void run_ready(sim_loop *l) {
    uv_handle_t *ready[MOST_READY];
    size_t n = 0;
    for (const entry *e = l->entries; e && n < MOST_READY; e = e->next)
        if (e->active && (e->sent || find_ready(l, e)) && !sim_draw_case(sim_planned.late_events))
            ready[n++] = e->handle;
    for (; n; n--) {
        const size_t i = sim_draw_below(n);
        entry *e = find_in_loop(l, ready[i]);
        ready[i] = ready[n - 1];
        if (!e || !e->active) continue;
        const unsigned now = find_ready(l, e);
        if (e->sent) tell_sent(e);
        else if (now) tell_polled(e, now);
    }
}

static void run_closing(sim_loop *l) {
    for (entry **at = &l->entries; *at;) {
        entry *e = *at;
        if (!e->closing) {
            at = &e->next;
            continue;
        }
        *at = e->next;
        if (e->on_close) e->on_close(e->handle);
        free(e);
        at = &l->entries;
    }
}

/* Run until nothing keeps the loop, or it is stopped. */
int uv_run(uv_loop_t *loop, uv_run_mode mode) {
    sim_loop *l = find_loop(loop);
    (void)mode;
    while (is_alive(l) && !l->stop) {
        run_timers(l);
        run_role(l, IDLE);
        sim_pass_call("uv_run");
        if (!has_something(NULL, l)) sim_wait("uv_run", has_something, l, find_deadline(l));
        run_ready(l);
        run_role(l, CHECK);
        run_closing(l);
    }
    l->stop = false;
    return is_alive(l);
}
