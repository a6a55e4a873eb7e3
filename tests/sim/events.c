/* Counters, timers, pollers and descriptors of processes. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>

#include "tests/sim/calls.h"
#include "tests/sim/sim.h"

int __wrap_eventfd(unsigned first, int flags) {
    sim_file *f = sim_file_new(SIM_COUNTER);
    f->counter = first;
    f->flags = flags & EFD_NONBLOCK ? O_NONBLOCK : 0;
    return sim_file_put(f, 0, flags & EFD_CLOEXEC);
}

static bool has_counted(sim_task *t, void *file) {
    (void)t;
    return sim_file_poll(file) & POLLIN;
}

ssize_t sim_read_event(sim_file *f, void *data) {
    if (!has_counted(NULL, f) && f->flags & O_NONBLOCK) {
        errno = EAGAIN;
        return -1;
    }
    while (!has_counted(NULL, f)) sim_wait("read", has_counted, f, sim_file_due(f));
    const uint64_t value = f->kind == SIM_TIMER ? 1 : f->counter;
    memcpy(data, &value, sizeof value);
    f->counter = 0;
    f->due = 0;
    return sizeof value;
}

int __wrap_eventfd_read(int fd, eventfd_t *value) { return __wrap_read(fd, value, sizeof *value) < 0 ? -1 : 0; }

int __wrap_eventfd_write(int fd, eventfd_t value) {
    sim_file *f = sim_file_get(fd);
    sim_pass_call("eventfd_write");
    if (!f) return -1;
    f->counter += value;
    return 0;
}

/* There are no timers that send signals: no call waits so that it must be interrupted. */
int __wrap_timer_create(clockid_t clock, struct sigevent *event, timer_t *timer) {
    (void)clock, (void)event, (void)timer;
    errno = ENOTSUP;
    return -1;
}

int __wrap_timerfd_create(int clock, int flags) {
    sim_file *f = sim_file_new(SIM_TIMER);
    (void)clock;
    f->flags = flags & TFD_NONBLOCK ? O_NONBLOCK : 0;
    return sim_file_put(f, 0, flags & TFD_CLOEXEC);
}

int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *t, struct itimerspec *old) {
    sim_file *f = sim_file_get(fd);
    (void)flags, (void)old;
    if (!f) return -1;
    const int64_t ns = (int64_t)t->it_value.tv_sec * 1000000000 + t->it_value.tv_nsec;
    f->due = ns ? sim_time + ns : 0;
    return 0;
}

/* ---- pollers ---- */

int __wrap_epoll_create1(int flags) { return sim_file_put(sim_file_new(SIM_POLLER), 0, flags & EPOLL_CLOEXEC); }

int __wrap_epoll_ctl(int poller, int command, int fd, struct epoll_event *event) {
    sim_file *p = sim_file_get(poller), *f = sim_file_get(fd);
    if (!p || !f) return -1;
    sim_watch **at = &p->watches;
    while (*at && (*at)->file != f) at = &(*at)->next;
    if (command == EPOLL_CTL_DEL) {
        sim_watch *gone = *at;
        if (!gone) return errno = ENOENT, -1;
        *at = gone->next;
        free(gone);
        return 0;
    }
    if (!*at) *at = calloc(1, sizeof **at);
    (*at)->file = f;
    (*at)->events = event->events;
    (*at)->data = event->data.u64;
    return 0;
}

static bool has_event(sim_task *t, void *file) {
    (void)t;
    return sim_file_poll(file);
}

int __wrap_epoll_wait(int poller, struct epoll_event *out, int most, int milliseconds) {
    sim_file *p = sim_file_get(poller);
    int n = 0;
    sim_pass_call("epoll_wait");
    if (!p) return -1;
    if (milliseconds)
        sim_wait("epoll_wait", has_event, p, milliseconds < 0 ? INT64_MAX : sim_time + milliseconds * 1000000LL);
    for (const sim_watch *w = p->watches; w && n < most; w = w->next) {
        const unsigned events = sim_file_poll(w->file) & (w->events | POLLERR | POLLHUP);
        if (events) out[n++] = (struct epoll_event){.events = events, .data.u64 = w->data};
    }
    return n;
}

typedef struct poll_list {
    struct pollfd *list;
    nfds_t n;
    sim_process *process;
} poll_list;

static int look_at_list(const poll_list *l) {
    int ready = 0;
    for (nfds_t i = 0; i < l->n; i++) {
        struct pollfd *p = &l->list[i];
        p->revents = 0;
        if (p->fd < 0) continue;
        const sim_file *f = p->fd < SIM_DESCRIPTORS ? l->process->file[p->fd] : NULL;
        const unsigned events = f ? sim_file_poll(f) & ((unsigned)p->events | POLLERR | POLLHUP) : POLLNVAL;
        p->revents = (short)events;
        ready += events != 0;
    }
    return ready;
}

static bool has_ready(sim_task *t, void *list) {
    (void)t;
    return look_at_list(list) > 0;
}

static int64_t find_due(const poll_list *l) {
    int64_t due = INT64_MAX;
    for (nfds_t i = 0; i < l->n; i++) {
        const int fd = l->list[i].fd;
        const sim_file *f = fd >= 0 && fd < SIM_DESCRIPTORS ? l->process->file[fd] : NULL;
        if (f && sim_file_due(f) < due) due = sim_file_due(f);
    }
    return due;
}

int __wrap_poll(struct pollfd *list, nfds_t n, int milliseconds) {
    poll_list l = {list, n, sim_self()};
    const int64_t until = milliseconds < 0 ? INT64_MAX : sim_time + milliseconds * 1000000LL;
    sim_pass_call("poll");
    while (!look_at_list(&l) && sim_time < until) {
        const int64_t due = find_due(&l);
        sim_wait("poll", has_ready, &l, due < until ? due : until);
    }
    return look_at_list(&l);
}
