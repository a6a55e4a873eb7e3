/* Trust domains, each with one worker: starting its process, talking to it, and replacing it when it dies.
 *
 *     FAILED --start_worker--> STARTING --note READY--> READY
 *       ^                         |                       |
 *       +---- on_worker_exit -----+-----------------------+ */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/common/discard.h"
#include "server/common/log.h"
#include "server/common/os.h"
#include "server/common/rights.h"
#include "server/front/peers/peers.h"
#include "server/front/workers/domain_inside.h"
#include "server/worker/journal/journal.h"

#define BACKOFF_FIRST 100000000LL /* ns until a worker that died young twice is started again; doubled each time */
#define BACKOFF_MOST 10000000000LL
#define RETRY_MOST 2000000000LL /* most ns that clients wait for such a worker */
#define RETRY_AFTER 100000000LL /* ns until a message is sent again that a channel did not take */
#define YOUNG 10000000000LL
#define WORKER_FD 3 /* descriptor of the channel in the worker */
#define MOST_OPTIONS 127

ad_front *ad__domain_front(const ad_domain *d) { return d->front; }

const ad_note *ad__domain_offer(const ad_domain *d) { return &d->offer; }

/* ---- the channel ---- */

static void on_channel_event(uv_poll_t *poll, int status, int events);

void ad__domain_watch(ad_domain *d) {
    if (!d->channel_open) return;
    uv_poll_start(&d->poll, UV_READABLE | (ad__channel_waiting(&d->channel) ? UV_WRITABLE : 0), on_channel_event);
}

static void on_channel_closed(uv_handle_t *handle) {
    ad_domain *d = handle->data;
    ad__channel_close(&d->channel);
    d->polled = false;
    ad__domain_restart(d);
    ad__handshake_wake(d->front);
    ad__upgrade_advance(d->front);
}

static void close_channel(ad_domain *d) {
    if (!d->channel_open) return;
    d->channel_open = false;
    uv_close((uv_handle_t *)&d->poll, on_channel_closed);
}

static void fail_domain(ad_domain *d, const char *why) {
    if (d->state == AD_DOMAIN_FAILED) return;
    d->state = AD_DOMAIN_FAILED;
    ad__fault(&d->why, AD_E_CONNECTION, "%s", why);
}

/* Tell a worker what the previous one was doing. Sessions follow, as nobody gets a session before. */
void ad__domain_recover(ad_domain *d) {
    if (d->files.old < 0) return;
    ad__migration_tell(d);
    if (!ad__worker_files_tell(&d->files, &d->channel, d->slabs)) return;
    ad__log(worker_killed, d->name, (int)d->process.pid, "it cannot be told what the one before was doing");
    uv_process_kill(&d->process, SIGKILL);
}

static void handle_ready(ad_domain *d, const ad_note *note) {
    ad_fault fault;
    if (d->state != AD_DOMAIN_STARTING) return;
    d->front->device_memory = note->size;
    if (!d->front->ready && ad__reserved_check(d->front, d->front->principals, &fault)) {
        ad__log(cannot_start, fault.text);
        ad__front_stop(d->front, 1, fault.text);
        return;
    }
    d->state = AD_DOMAIN_READY;
    d->was_ready = true;
    d->offer = *note;
    ad__log(worker_ready, d->name, (int)d->process.pid, note->who, note->text, note->size,
            (long)((ad__os_now() - d->started) / 1000000));
    ad__domain_recover(d);
    ad__migration_is_ready(d);
    ad__front_ready(d->front);
}

/* Count a session that a fork has opened, as any other session. */
static void add_forked_session(ad_domain *d, const ad_note *note) {
    ad_front *f = d->front;
    if (ad__session_entry_is_of(f, note->id, d)) return; /* the previous worker has told of it */
    if (ad__session_entry_add(f, note, d)) ad__log(forked_session_not_counted, d->name, note->who);
    d->sessions++;
    f->sessions++;
}

static void remove_session(ad_domain *d, uint64_t session) {
    if (ad__session_entry_is_of(d->front, session, d)) ad__pull_end(d->front, session);
    if (!ad__session_entry_remove(d->front, session, d) || !d->sessions) return;
    d->sessions--;
    d->front->sessions--;
}

static void subtract_lost_sessions(ad_domain *d, uint64_t sessions) {
    if (sessions > d->sessions) sessions = d->sessions;
    d->sessions -= sessions;
    d->front->sessions -= sessions;
    ad__upgrade_lost(d->front, sessions);
}

/* The worker has recovered all that it can; what it does not have of the previous one is lost. */
static void finish_recovery(ad_domain *d) {
    subtract_lost_sessions(d, ad__session_entry_remove_lost(d->front, d));
    d->backoff = 0;
    ad__worker_files_finish_recovery(d->front, &d->files, d);
    ad__upgrade_advance(d->front);
}

static void end_session(ad_domain *d, uint64_t session) {
    ad_front *f = d->front;
    if (ad__session_is_probe(session)) { /* sessions of probes are counted nowhere */
        d->observation.probes_open -= d->observation.probes_open > 0;
        return;
    }
    if (!session) return; /* a damaged journal may give 0, which means all sessions below */
    ad__worker_files_end_session(&d->files, session);
    remove_session(d, session);
    ad__handshake_lost(f, d, session); /* the session may not have begun */
    if (f->embedded && session <= f->last_session) ad__front_stop(f, 0, "the session is over");
}

static void handle_note(ad_domain *d, const ad_note *note, int fd) {
    switch (note->kind) {
    case AD_NOTE_READY: handle_ready(d, note); break;
    case AD_NOTE_SESSION_END: end_session(d, note->id); break;
    case AD_NOTE_FORKED: add_forked_session(d, note); break;
    case AD_NOTE_BEGUN: ad__handshake_begun(d->front, note->id); break;
    case AD_NOTE_AWAY: ad__session_entry_set_away(d->front, note->id, d, note->size != 0); break;
    case AD_NOTE_REPORTED: ad__collect_answer(d->front, &d->observation, note, fd); break;
    case AD_NOTE_JOURNAL: ad__worker_files_set_journal(&d->files, fd); break;
    case AD_NOTE_DESCRIPTOR:
    case AD_NOTE_DESCRIPTOR_GONE: ad__worker_files_take_descriptor(&d->files, note, fd); break;
    case AD_NOTE_RECOVERED: finish_recovery(d); break;
    case AD_NOTE_SLAB_GONE: ad__slabs_remove(d->slabs, note->id); break;
    case AD_NOTE_HEARD: ad__silence_heard(d, note); break;
    case AD_NOTE_LEAVING: ad__domain_leaving(d, note); break;
    case AD_NOTE_MIGRATION_ASKED: ad__migration_is_asked(d, note); break;
    case AD_NOTE_MIGRATION_FAILED: ad__migration_fail(d, note); break;
    case AD_NOTE_MIGRATED: ad__migration_complete(d, note, fd); break;
    case AD_NOTE_PULL: ad__pull_handle(d, note); break;
    case AD_NOTE_SLAB:
        if (ad__slabs_add(d->slabs, note, fd)) ad__log(slab_not_kept, d->name, note->id);
        break;
    default: /* AD_NOTE_LOST */
        d->device_lost = !note->size;
        fail_domain(d, note->text);
        break;
    }
}

static void on_channel_event(uv_poll_t *poll, int status, int events) {
    ad_domain *d = poll->data;
    ad_note note;
    int fd, got;
    if (events & UV_WRITABLE) {
        ad__channel_flush(&d->channel);
        ad__domain_watch(d);
    }
    while ((got = ad__channel_receive(&d->channel, &note, &fd)) > 0) handle_note(d, &note, fd);
    if (got == 0 && !status) return; /* otherwise the channel is not watched any more */
    /* The worker closes its end only by dying, and its exit is waited for, as it says more. A worker that sends
     * nonsense is killed. */
    fail_domain(d, "the worker died");
    close_channel(d);
    if (got == AD_E_PROTOCOL && d->alive) uv_process_kill(&d->process, SIGKILL);
}

/* Tell the worker what memory is reserved. One that cannot be told is killed, as it would give this memory to
 * others. */
static void tell_reserved(ad_domain *d) {
    if (!ad__reserved_tell(d->front, &d->channel)) return;
    fail_domain(d, "the worker could not be told what is reserved");
    uv_process_kill(&d->process, SIGKILL);
}

void ad__domain_reserve_all(ad_front *f) {
    for (ad_domain *d = f->domains; d; d = d->next) {
        if (!d->alive || !d->channel_open) continue;
        tell_reserved(d);
        ad__domain_watch(d);
    }
}

/* ---- the process ---- */

static void on_process_closed(uv_handle_t *handle) {
    ad_domain *d = handle->data;
    d->processed = false;
    ad__domain_restart(d);
    ad__handshake_wake(d->front); /* waiting clients may get a new worker */
    ad__upgrade_advance(d->front);
}

static void drop_slabs(ad_domain *d) {
    uint64_t bytes = 0;
    size_t n = d->slabs ? ad__slabs_count(d->slabs, &bytes) : 0;
    if (n) ad__log(slabs_dropped, d->name, (unsigned long)n, bytes);
    ad__slabs_free(d->slabs);
    d->slabs = NULL;
}

static void set_backoff(ad_domain *d) {
    int64_t now = ad__os_now();
    if (ad__upgrade_leaves(d->front)) return; /* the next worker belongs to another program */
    if (now - d->started > YOUNG) d->backoff = 0;
    d->not_before = now + d->backoff;
    d->backoff = !d->backoff ? BACKOFF_FIRST : 2 * d->backoff < BACKOFF_MOST ? 2 * d->backoff : BACKOFF_MOST;
}

static void drop_worker_state(ad_domain *d) {
    drop_slabs(d);
    ad__worker_files_clear(&d->files);
    subtract_lost_sessions(d, d->sessions);
    ad__session_entry_remove_all(d->front, d);
}

/* Tell whether others send this signal: a crash sends its own, and a worker that does not answer counts as crashed. */
static bool is_sent_signal(int number) {
    return number == SIGKILL || number == SIGTERM || number == SIGINT || number == SIGHUP || number == SIGQUIT;
}

static ad_death classify_death(const ad_domain *d, int64_t code, int number, char how[AD_DEATH_TEXT]) {
    const char *name = sigabbrev_np(number);
    *how = 0;
    if (ad__upgrade_leaves(d->front) && (number ? is_sent_signal(number) : !code)) return AD_DEATH_LEFT;
    if (is_sent_signal(number) && !d->silenced) return AD_DEATH_KILLED;
    if (d->silenced) snprintf(how, AD_DEATH_TEXT, "it did not answer any more");
    else if (number) snprintf(how, AD_DEATH_TEXT, "SIG%s", name ? name : "?");
    else snprintf(how, AD_DEATH_TEXT, "exit status %d", (int)code);
    return AD_DEATH_CRASHED;
}

static void prepare_successor(ad_domain *d, bool unfit, int64_t code, int number) {
    char how[AD_DEATH_TEXT] = "";
    const ad_death death = unfit ? AD_DEATH_UNFIT : classify_death(d, code, number, how);
    if (!ad__worker_files_lose_worker(&d->files, death, how)) {
        ad__log(worker_not_recovered, d->name, "others die of what it left");
        drop_worker_state(d);
        return;
    }
    subtract_lost_sessions(d, ad__session_entry_lose_all(d->front, d));
}

static void on_worker_exit(uv_process_t *process, int64_t code, int signal_number) {
    ad_domain *d = process->data;
    ad_front *f = d->front;
    ad_note note;
    int fd;
    /* The worker's last notes may still be in the channel. */
    while (d->channel_open && ad__channel_receive(&d->channel, &note, &fd) > 0) handle_note(d, &note, fd);
    d->alive = false;
    bool wanted = f->stopping || ad__upgrade_leaves(f);
    /* ad__domain_leave_all() has killed it. */
    bool killed = wanted && d->state != AD_DOMAIN_READY && signal_number == SIGKILL;
    const bool unfit = !d->was_ready && !signal_number && code == AD_EXIT_UNFIT;
    fail_domain(d, "the worker died");
    if (unfit)
        ad__fault(&d->why, AD_E_CONNECTION,
                  "the program of workers is of another build than this arrayd; the server's "
                  "administrator must run `arrayctl upgrade` or restart it");
    ad__log_other(!wanted || code || (signal_number && !killed), worker_exited, d->name, (int)process->pid, (long)code,
                  signal_number, d->sessions, wanted ? "" : d->why.text);
    close_channel(d);
    ad__collect_gone(f, &d->observation);
    set_backoff(d);
    if (!f->stopping && ad__front_resumes(f) && !d->device_lost && !d->migration &&
        ad__worker_files_can_recover(&d->files))
        prepare_successor(d, unfit, code, signal_number);
    else drop_worker_state(d);
    uv_close((uv_handle_t *)process, on_process_closed);
    ad__domain_leaving(d, &(ad_note){.kind = AD_NOTE_LEAVING}); /* a worker that was asked has nothing more to lose */
    ad__migration_lose(d);
    ad__handshake_lost(f, d, 0);
    if ((f->embedded && d->files.old < 0) || !f->ready) ad__front_stop(f, 1, d->why.text);
}

void ad__domain_lose_worker(ad_domain *d) {
    ad__log(worker_not_reaped, d->name, (int)d->process.pid);
    on_worker_exit(&d->process, 0, SIGKILL);
}

void ad__domain_worker_path(const ad_front *f, char *out, size_t size) {
    const char *slash = strrchr(f->started.program, '/');
    int n = slash ? (int)(slash - f->started.program) : 0;
    if (*f->config.worker) {
        snprintf(out, size, "%s", f->config.worker);
        return;
    }
    snprintf(out, size, "%.*s/arrayd-worker", n, f->started.program);
    if (access(out, X_OK)) snprintf(out, size, "%.*s/../lib/arrayd/arrayd-worker", n, f->started.program);
}

/* Make the worker's environment: its waiting threads must not spin, as they would take the processor from the
 * client. */
static char **make_environment(void) {
    static const char *const passive[] = {"OMP_WAIT_POLICY=passive", "OPENBLAS_THREAD_TIMEOUT=4", "GOMP_SPINCOUNT=0"};
    extern char **environ;
    size_t n = 0, more = sizeof passive / sizeof *passive;
    while (environ[n]) n++;
    char **list = ad__os.calloc(n + more + 1, sizeof *list);
    if (!list) return NULL;
    for (size_t i = 0; i < more; i++) list[i] = (char *)(uintptr_t)passive[i];
    memcpy(list + more, environ, n * sizeof *list);
    return list;
}

static int spawn_process(ad_domain *d, const char *path, char **options, char **env, int channel) {
    char fd_option[32], form_option[32], layout[AD_JOURNAL_LAYOUT_SIZE];
    char *argv[MOST_OPTIONS + 1] = {(char *)(uintptr_t)path, fd_option, form_option};
    int argc = 3;
    ad__journal_layout(layout);
    snprintf(fd_option, sizeof fd_option, "--channel-fd=%d", WORKER_FD);
    snprintf(form_option, sizeof form_option, "--form=%d", ad__channel_form(layout));
    if (ad__domain_is_shared(d)) argv[argc++] = (char *)(uintptr_t) "--shared=1";
    if (d->front->embedded) argv[argc++] = (char *)(uintptr_t) "--embedded=1";
    while (*options && argc < MOST_OPTIONS) argv[argc++] = *options++;
    uv_stdio_container_t stdio[WORKER_FD + 1] = {
        {.flags = UV_IGNORE},
        {.flags = UV_IGNORE},
        {.flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO},
        {.flags = UV_INHERIT_FD, .data.fd = channel},
    };
    uv_process_options_t o = {.exit_cb = on_worker_exit,
                              .file = path,
                              .args = argv,
                              .env = env,
                              .stdio_count = WORKER_FD + 1,
                              .stdio = stdio};
    d->process.data = d;
    return uv_spawn(&d->front->loop, &d->process, &o);
}

static int spawn_worker(ad_domain *d, int channel, ad_fault *fault) {
    char path[4200];
    char **options = ad__config_arguments(&d->front->config), **env = make_environment();
    int status = UV_ENOMEM;
    ad__domain_worker_path(d->front, path, sizeof path);
    if (options && env) {
        d->processed = true;
        status = spawn_process(d, path, options, env, channel);
        if (status) uv_close((uv_handle_t *)&d->process, on_process_closed);
    }
    free(options);
    free(env);
    return status ? ad__fault(fault, AD_E_SYSTEM, "cannot start %s: %s", path, uv_strerror(status)) : 0;
}

static int start_worker(ad_domain *d, ad_fault *fault) {
    int fd[2], status = ad__channel_pair(fd, fault);
    if (status) return status;
    d->started = ad__os_now();
    d->device_lost = d->silenced = false;
    d->silence = (ad_silence){0};
    if (!d->slabs && !(d->slabs = ad__slabs_new())) status = ad__fault(fault, AD_E_MEMORY, "out of host memory");
    if (!status) status = spawn_worker(d, fd[1], fault);
    close(fd[1]);
    if (status) {
        close(fd[0]);
        set_backoff(d);
        return status;
    }
    d->alive = true;
    d->observation.starts++;
    ad__channel_init(&d->channel, fd[0], AD_TO_FRONT);
    uv_poll_init(&d->front->loop, &d->poll, fd[0]);
    d->poll.data = d;
    d->channel_open = d->polled = true;
    d->state = AD_DOMAIN_STARTING;
    d->was_ready = false;
    ad__log(worker_starting, d->name, (int)d->process.pid, d->front->config.backend);
    if (ad__reserved_any(d->front)) tell_reserved(d);
    ad__domain_watch(d);
    return 0;
}

/* ---- finding one ---- */

ad_domain *ad__domain_new(ad_front *f, const char *name) {
    ad_domain *d = ad__os.calloc(1, sizeof *d);
    if (!d) return NULL;
    snprintf(d->name, sizeof d->name, "%s", name);
    d->front = f;
    d->state = AD_DOMAIN_FAILED;
    ad__worker_files_init(&d->files);
    d->next = f->domains;
    f->domains = d;
    return d;
}

static void on_retry_timer(uv_timer_t *timer);

/* Try again after so many ns, or earlier if that is scheduled already. */
static void schedule_retry(ad_front *f, int64_t wait) {
    uint64_t ms = wait > 0 ? (uint64_t)(wait / 1000000 + 1) : 1;
    bool sooner = uv_is_active((uv_handle_t *)&f->timers.retry) && uv_timer_get_due_in(&f->timers.retry) <= ms;
    if (!sooner) uv_timer_start(&f->timers.retry, on_retry_timer, ms, 0);
}

static void on_retry_timer(uv_timer_t *timer) {
    ad_front *f = timer->data;
    for (ad_domain *d = f->domains; d; d = d->next) ad__domain_restart(d);
    ad__handshake_wake(f);
}

/* If the worker may be started again soon, let clients wait for that, and return true. */
static bool retry_soon(ad_domain *d) {
    int64_t wait = d->not_before - ad__os_now();
    if (wait <= 0 || wait > RETRY_MOST || !d->front->ready) return false;
    schedule_retry(d->front, wait);
    return true;
}

/* Tell whether the domain has no worker and may get one, now or later. */
static bool needs_worker(const ad_domain *d) {
    return d->state == AD_DOMAIN_FAILED && !ad__domain_is_ending(d) && !d->front->stopping &&
           !ad__upgrade_leaves(d->front);
}

static void restart_worker(ad_domain *d) {
    if (!needs_worker(d) || ad__os_now() < d->not_before) return;
    if (start_worker(d, &d->why)) ad__log(worker_not_started, d->name, d->why.text);
}

/* Sessions, or a migrating principal, need the worker. */
void ad__domain_restart(ad_domain *d) {
    if (d->files.old < 0 && d->migration != AD_MIGRATION_COMING) return;
    restart_worker(d);
    if (needs_worker(d)) schedule_retry(d->front, d->not_before - ad__os_now());
}

/* Tell whether principals can migrate: only journals make that possible. */
static bool may_migrate(const ad_front *f) { return f->config.survive && f->config.resume_time > 0 && !f->embedded; }

/* Choose the domain where a principal's sessions begin. A user's kernel can reach all of its process, so that
 * whoever may run kernels gets an own worker with the first one. The server's own user, who is often alone here, has
 * one from the beginning. */
static const char *choose_domain(const ad_front *f, const ad_entrant *who) {
    const ad_domain *own = ad__domain_named(f, who->who);
    if (!strcmp(f->config.domains, "principal")) return who->who;
    if (own && (own->migration == AD_MIGRATION_NONE || own->migration == AD_MIGRATION_GOING)) return who->who;
    if (!ad__may_run_kernels(&f->config, who->who, &who->grants, NULL)) return AD_DOMAIN_SHARED;
    return may_migrate(f) && !ad__is_server_user(who->who) ? AD_DOMAIN_SHARED : who->who;
}

ad_domain *ad__domain_of(ad_front *f, const ad_entrant *who, ad_domain_state *state, ad_fault *fault) {
    const char *name = choose_domain(f, who);
    ad_domain *d = ad__domain_named(f, name);
    if (!d && !(d = ad__domain_new(f, name))) {
        ad__fault(fault, AD_E_MEMORY, "out of host memory");
        return NULL;
    }
    if (d->migration == AD_MIGRATION_GOING) { /* the client waits until the principal has arrived */
        *state = AD_DOMAIN_STARTING;
        return d;
    }
    restart_worker(d);
    bool ending = ad__domain_is_ending(d) || ad__upgrade_leaves(f);
    *state = d->state;
    if (d->state != AD_DOMAIN_FAILED) return d;
    if (f->stopping) ad__fault(fault, AD_E_CONNECTION, "the server is shutting down");
    else if (ending || retry_soon(d)) *state = AD_DOMAIN_STARTING; /* waiting clients will get a worker */
    else ad__fault(fault, AD_E_CONNECTION, "no worker: %s", d->why.text);
    return d;
}

int ad__domain_tell(ad_domain *d, const ad_note *note, int fd) {
    if (!d->channel_open) {
        if (fd >= 0) ad__discard(note->who, fd);
        return AD_E_CONNECTION;
    }
    int status = ad__channel_send(&d->channel, note, fd);
    if (!status) ad__domain_watch(d);
    else schedule_retry(d->front, RETRY_AFTER); /* nothing that the worker sends would wake those who wait */
    return status;
}

int ad__domain_give(ad_domain *d, const ad_note *note, int fd) {
    int status = ad__session_entry_add(d->front, note, d);
    if (status) {
        ad__discard(note->who, fd);
        return status;
    }
    status = ad__domain_tell(d, note, fd);
    if (status) {
        ad__session_entry_remove(d->front, note->id, d);
        return status;
    }
    d->sessions++;
    d->front->sessions++;
    return 0;
}

bool ad__domain_is_ready(const ad_domain *d) { return d->state == AD_DOMAIN_READY && d->channel_open; }

void ad__domain_forget(ad_front *f, const ad_domain *gone, uint64_t session) {
    ad_domain *d = f->domains;
    while (d && d != gone) d = d->next;
    if (d) remove_session(d, session);
}

/* ---- being seen ---- */

ad_domain *ad__domain_next(const ad_front *f, const ad_domain *d) { return d ? d->next : f->domains; }

void ad__domain_facts(ad_domain *d, ad_domain_facts *out) {
    static const char *const states[] = {"starting", "ready", "failed"};
    *out = (ad_domain_facts){.name = d->name,
                             .state = states[d->state],
                             .why = d->state == AD_DOMAIN_FAILED ? d->why.text : "",
                             .pid = d->alive ? (int)d->process.pid : 0,
                             .ready = d->state == AD_DOMAIN_READY && d->channel_open && !d->migration,
                             .offer = &d->offer,
                             .sessions = d->sessions,
                             .started = d->started,
                             .observation = &d->observation};
    if (d->slabs) out->slabs = ad__slabs_count(d->slabs, &out->slab_bytes);
}

int ad__domain_tell_if_ready(ad_domain *d, const ad_note *note, int fd) {
    if (d->state == AD_DOMAIN_READY) return ad__domain_tell(d, note, fd);
    if (fd >= 0) close(fd);
    return AD_E_CONNECTION;
}
