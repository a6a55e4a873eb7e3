/* The I/O thread's loop. Each turn of it:
 *
 *     sockets, channel ──▶ on_polled: engine (cheap operations) ──▶ attention ──▶ sleep, spin or turn again */
#include "server/worker/worker.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "server/common/log.h"
#include "server/common/os.h"
#include "server/worker/engine/background.h"
#include "server/worker/io/spin.h"
#include "server/worker/sharing/leases.h"
#include "server/worker/migrate/migration.h"
#include "server/worker/report.h"
#include "server/worker/session/rings.h"
#include "server/worker/session/session.h"
#include "server/worker/sharing/pull.h"
#include "server/worker/sharing/sharing.h"

/* ---- the channel to arrayd ---- */

static void on_channel(uv_poll_t *poll, int status, int events);

static void watch_channel(ad_worker *w) {
    uv_poll_start(&w->arrayd.poll, UV_READABLE | (atomic_load(&w->arrayd.full) ? UV_WRITABLE : 0), on_channel);
}

static void set_wakeable(ad_worker *w, bool wakeable) {
    pthread_mutex_lock(&w->io.wake_lock);
    w->io.wakeable = wakeable;
    pthread_mutex_unlock(&w->io.wake_lock);
}

void ad__worker_compiled(void *worker) {
    ad_worker *w = worker;
    pthread_mutex_lock(&w->io.wake_lock);
    if (w->io.wakeable) uv_async_send(&w->io.wake);
    pthread_mutex_unlock(&w->io.wake_lock);
}

void ad__worker_lost(ad_worker *w, const char *why) {
    ad_note note = {.kind = AD_NOTE_LOST, .size = w->journal != NULL};
    snprintf(note.text, sizeof note.text, "%s", why);
    ad__log(device_lost, why);
    pthread_mutex_lock(&w->sessions_lock);
    if (w->journal) memcpy(ad__journal_head(w->journal)->why, note.text, sizeof note.text);
    for (ad_worker_session *s = w->sessions; s; s = s->next) ad__components_device_lost(s, why);
    ad__worker_tell(w, &note, -1);
    _exit(AD_EXIT_DEVICE_LOST);
}

static void end_overdue(void *worker, const char *why) { ad__worker_lost(worker, why); }

/* ns within which sessions must end at a stop, unless a background operation cannot be cancelled */
#define STOP_TIME 500000000LL

static void begin_stop(ad_worker *w) {
    if (w->ending.stopping) return;
    w->ending.stopping = true;
    w->ending.stop_by = ad__os_now() + STOP_TIME;
    for (ad_worker_session *s = w->sessions; s; s = s->next)
        ad__session_bye(s, AD_E_CONNECTION, "the server is shutting down");
    if (!w->sessions) uv_stop(&w->io.loop);
}

/* Take arrayd's reservation of memory. Without it other principals would get what one has reserved, so the worker ends.
 */
static void take_reservation(ad_worker *w, const ad_note *note) {
    int status = ad__reserved_take(&w->reserved, note);
    if (!status) return;
    ad__log(memory_not_reserved, note->who, ad__error_text(status));
    _exit(AD_EXIT_ASTRAY);
}

static void take_session(ad_worker *w, const ad_note *note, int fd) {
    int status = fd < 0 ? AD_E_SYSTEM : ad__session_open(w, note, fd);
    if (!status) {
        ad__worker_tell(w, &(ad_note){.kind = AD_NOTE_BEGUN, .id = note->id}, -1);
        return;
    }
    ad__log(session_not_opened, note->id, ad__error_text(status));
    ad__worker_tell(w, &(ad_note){.kind = AD_NOTE_SESSION_END, .id = note->id}, -1);
}

static void take_note(ad_worker *w, const ad_note *note, int fd) {
    ad_worker_session *s;
    switch (note->kind) {
    case AD_NOTE_STOP: begin_stop(w); break;
    case AD_NOTE_KNOCK: ad__worker_tell(w, &(ad_note){.kind = AD_NOTE_HEARD, .id = note->id}, -1); break;
    case AD_NOTE_LEAVE: ad__worker_leave(w, note); break;
    case AD_NOTE_RESERVE: take_reservation(w, note); break;
    case AD_NOTE_RESUME:
        if (fd >= 0) ad__session_resume(w, note, fd);
        break; /* without a descriptor the client finds the connection closed, and comes again */
    case AD_NOTE_OLD_SLAB:
    case AD_NOTE_OLD_DESCRIPTOR: ad__recovery_take(w, note, fd); break;
    case AD_NOTE_RECOVER: ad__recovery_run(w, note, fd); break;
    case AD_NOTE_MIGRATE:
    case AD_NOTE_MIGRATION_REFUSED:
    case AD_NOTE_MIGRATION_DONE: ad__migration_take_note(w, note); break;
    case AD_NOTE_FORSAKE:
        if ((s = ad__session_find(w, note->id))) ad__session_forsake(s);
        break;
    case AD_NOTE_PULLED:
        if ((s = ad__session_find(w, note->id))) ad__pull_take_answer(s, note);
        break;
    case AD_NOTE_REPORT: ad__engine_report(w, note->id, note->size); break;
    case AD_NOTE_KILL: ad__report_kill_session(w, note); break;
    case AD_NOTE_TRACE:
        if (fd >= 0) ad__report_trace_session(w, note, fd);
        break;
    default: take_session(w, note, fd); break;
    }
}

static void flush_channel(ad_worker *w) {
    pthread_mutex_lock(&w->arrayd.lock);
    ad__channel_flush(&w->arrayd.channel);
    atomic_store(&w->arrayd.full, ad__channel_waiting(&w->arrayd.channel));
    pthread_mutex_unlock(&w->arrayd.lock);
    watch_channel(w);
}

static void on_channel(uv_poll_t *poll, int status, int events) {
    ad_worker *w = poll->data;
    ad_note note;
    int fd, got;
    if (events & UV_WRITABLE) flush_channel(w);
    while ((got = ad__channel_receive(&w->arrayd.channel, &note, &fd)) > 0) take_note(w, &note, fd);
    if (got < 0 || status) {
        /* Without arrayd this process cannot be reached, and its clients look for another one. */
        if (!w->ending.stopping) ad__log(arrayd_has_gone, atomic_load(&w->nsessions));
        _exit(0);
    }
}

/* ---- the loop ---- */

#define RINGS_TIME 200000 /* ns that rings are served between two looks at sockets */

/* Run the engine, and look at the sessions that it has changed. Returns when it must run again, as ad__engine_pump. */
static int64_t run_engine(ad_worker *w) {
    ad_worker_session *s;
    const int64_t again = ad__engine_pump(w);
    while ((s = ad__engine_next_attended(w))) ad__session_attend(s);
    return again;
}

/* Serve clients by their rings without looking at sockets, as long as messages come within a moment. */
static void serve_rings(ad_worker *w) {
    const int64_t until = ad__os_now() + RINGS_TIME;
    while (ad__worker_must_spin(w) && ad__rings_await(w)) {
        ad__rings_read(w, ad__session_read);
        if (run_engine(w) != AD_PUMP_NEVER || w->io.heard > until) return;
    }
}

static void on_busy(uv_idle_t *idle) {
    ad_worker *w = idle->data;
    if (w->io.rings && !w->io.pressed && !w->ending.stopping) serve_rings(w);
    sched_yield();
}

/* Read the timer, which only makes the loop turn. */
static void on_engine_timer(uv_poll_t *poll, int status, int events) {
    uint64_t times;
    (void)status, (void)events;
    if (read(((ad_worker *)poll->data)->io.timer, &times, sizeof times) < 0) return;
}

static void on_leases(uv_poll_t *poll, int status, int events) {
    (void)status, (void)events;
    ad__leases_look(poll->data);
}

static void set_timer(ad_worker *w, int64_t ns) {
    struct itimerspec t = {.it_value = {.tv_sec = ns / 1000000000, .tv_nsec = ns % 1000000000}};
    timerfd_settime(w->io.timer, 0, &t, NULL);
}

static void on_polled(uv_check_t *check) {
    ad_worker *w = check->data;
    ad__migration_advance(w); /* first of all: otherwise an engine thread would be asked for again */
    ad__rings_read(w, ad__session_read);
    int64_t again = run_engine(w);
    w->io.pressed = again == AD_PUMP_AT_ONCE;
    if (again == AD_PUMP_AT_ONCE || ad__worker_must_spin(w) || !ad__rings_sleep(w)) uv_idle_start(&w->io.busy, on_busy);
    else uv_idle_stop(&w->io.busy);
    if (again != AD_PUMP_AT_ONCE && again != AD_PUMP_NEVER) set_timer(w, again);
    if (w->ending.stopping && !w->sessions) uv_stop(&w->io.loop);
    if (w->ending.stopping && ad__os_now() > w->ending.stop_by && ad__background_tick(w))
        _exit(0); /* no session needs its result any more */
    if (w->ending.leaving) ad__worker_leave_if_done(w);
}

static void on_wake(uv_async_t *wake) {
    ad_worker *w = wake->data;
    if (atomic_load(&w->arrayd.full)) watch_channel(w);
    if (ad__background_tick(w)) ad__sessions_watch(w);
    ad__fork_births(w);
}

static int init_loop(ad_worker *w, int channel) {
    int status = uv_loop_init(&w->io.loop);
    if (status) return status;
    if ((status = uv_async_init(&w->io.loop, &w->io.wake, on_wake))) return status;
    if ((status = uv_check_init(&w->io.loop, &w->io.after_poll))) return status;
    if ((status = uv_idle_init(&w->io.loop, &w->io.busy))) return status;
    if ((status = uv_timer_init(&w->io.loop, &w->io.clock))) return status;
    if ((w->io.timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC)) < 0)
        return uv_translate_sys_error(errno);
    if ((status = uv_poll_init(&w->io.loop, &w->io.later, w->io.timer))) return status;
    if ((w->io.leases = epoll_create1(EPOLL_CLOEXEC)) < 0) return uv_translate_sys_error(errno);
    if ((status = uv_poll_init(&w->io.loop, &w->io.leases_poll, w->io.leases))) return status;
    if ((status = uv_poll_init(&w->io.loop, &w->arrayd.poll, channel))) return status;
    w->io.leases_poll.data = w;
    w->io.wake.data = w->io.after_poll.data = w->io.later.data = w->io.clock.data = w->io.busy.data =
        w->arrayd.poll.data = w;
    uv_check_start(&w->io.after_poll, on_polled);
    if ((status = uv_poll_start(&w->io.later, UV_READABLE, on_engine_timer))) return status;
    if ((status = uv_poll_start(&w->io.leases_poll, UV_READABLE, on_leases))) return status;
    return 0;
}

static void begin_journal(ad_worker *w) {
    ad_fault fault;
    if (!w->config.survive || w->config.resume_time <= 0) return;
    if (ad__journal_open(&w->journal, &fault)) ad__log(nothing_is_written_down, fault.text);
    else ad__journal_head(w->journal)->number = w->sharing->number;
}

static void send_journal(ad_worker *w) {
    int fd = w->journal ? ad__os.dup(ad__journal_descriptor(w->journal)) : -1;
    if (fd >= 0) ad__worker_tell(w, &(ad_note){.kind = AD_NOTE_JOURNAL}, fd);
}

static void send_ready(ad_worker *w) {
    const ad_device_info *info = &w->device.gpu[0].info;
    ad_note note = {.kind = AD_NOTE_READY, .id = (uint64_t)w->device.count, .size = info->memory};
    snprintf(note.who, sizeof note.who, "%s", w->backend->name);
    snprintf(note.text, sizeof note.text, "%s", info->name);
    ad__worker_tell(w, &note, -1);
}

static void close_handle(uv_handle_t *handle, void *unused) {
    (void)unused;
    if (!uv_is_closing(handle)) uv_close(handle, NULL);
}

int ad__worker_run(ad_worker *w, int channel) {
    ad_fault fault;
    pthread_mutex_init(&w->arrayd.lock, NULL);
    pthread_mutex_init(&w->sessions_lock, NULL);
    ad__watchdog_init(&w->device.watchdog, end_overdue, w);
    ad__channel_init(&w->arrayd.channel, channel, AD_TO_WORKER);
    int status = init_loop(w, channel);
    if (status) {
        ad__log(cannot_start, uv_strerror(status));
        return 1;
    }
    status = ad__sharing_open(w);
    if (status) {
        ad__log(cannot_start, ad__error_text(status));
        return 1;
    }
    if (ad__engine_start(w, &fault)) {
        ad__log(cannot_start, fault.text);
        return 1;
    }
    begin_journal(w);
    set_wakeable(w, true);
    watch_channel(w);
    send_ready(w);
    send_journal(w);
    uv_run(&w->io.loop, UV_RUN_DEFAULT);
    set_wakeable(w, false);
    ad__engine_stop(w);
    ad__watchdog_close(&w->device.watchdog);
    ad__migration_close(w);
    ad__sharing_close(w);
    ad__report_close(w);
    ad__recovery_close(w);
    uv_walk(&w->io.loop, close_handle, NULL);
    uv_run(&w->io.loop, UV_RUN_DEFAULT);
    uv_loop_close(&w->io.loop);
    close(w->io.timer);
    ad__journal_close(w->journal);
    close(w->io.leases);
    ad__channel_close(&w->arrayd.channel);
    return 0;
}
