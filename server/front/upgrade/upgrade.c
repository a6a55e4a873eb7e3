/* The steps of an upgrade: see upgrade.h. */
#include "server/front/upgrade/upgrade.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/common/log.h"
#include "server/common/os.h"
#include "server/common/put.h"
#include "server/front/front.h"
#include "server/front/peers/peers.h"

#define CHECK_PATIENCE 10000      /* ms within which the new program must say whether it can take over */
#define ASK_PATIENCE 2000         /* ms within which workers must say what would be lost */
#define QUIET_PATIENCE 1000000000 /* ns within which handshakes should end */
#define QUIET_LOOK 2              /* ms between two checks whether they have ended */
#define LEAVE_PATIENCE 5000       /* ms within which workers must leave before they are killed */
#define SAID 1024                 /* most bytes of the new program's output */

static void on_upgrade_timer(uv_timer_t *timer);

/* ---- what comes of it ---- */

static void stop_upgrade(ad_front *f) {
    uv_timer_stop(&f->upgrade.timer);
    f->upgrade.step = AD_UPGRADE_NONE;
}

/* Refuse an upgrade before anything has changed for clients. */
static void refuse_upgrade(ad_front *f, const char *why) {
    stop_upgrade(f);
    ad__log(not_upgraded, f->upgrade.by, why);
    ad__control_upgraded(f, why, NULL);
}

/* Finish an upgrade: the new front has taken over all that could be taken over. */
static void finish_upgrade(ad_front *f) {
    ad_upgrade *u = &f->upgrade;
    ad_bytes text = AD_BYTES_INIT;
    int64_t now = ad__os_now();
    u->took_over = false;
    uint64_t lost = u->lost > u->declared ? u->lost : u->declared, over = u->sessions > lost ? u->sessions - lost : 0;
    ad__log(upgraded, u->from, AD_VERSION, u->by, over, lost, (long)((now - u->began) / 1000000));
    ad__put(&text, "{\"upgraded\":");
    ad__put_json(&text, AD_VERSION);
    ad__put(&text, ",\"from\":");
    ad__put_json(&text, u->from);
    ad__put(&text, ",\"sessions\":%" PRIu64 ",\"lost\":%" PRIu64 ",\"seconds\":%.3f,\"leaving_seconds\":%.3f}\n", over,
            lost, (double)(now - u->began) / 1e9, (double)(u->ended - u->began) / 1e9);
    ad__control_upgraded(f, NULL, &text);
    ad__bytes_free(&text);
}

/* ---- the exec ---- */

/* Hand over to the new program. This returns only if that cannot be executed; then this front goes on as if its
 * workers had been killed. */
static void hand_over_front(ad_front *f) {
    ad_fault fault = {0};
    uv_timer_stop(&f->upgrade.timer);
    f->upgrade.ended = ad__os_now();
    ad__handover_exec(f, &fault);
    f->upgrade.step = AD_UPGRADE_NONE;
    ad__listen_pause(f, false);
    ad__handshake_pause(f, false);
    ad__domain_restart_all(f);
    refuse_upgrade(f, fault.text);
}

void ad__upgrade_advance(ad_front *f) {
    ad_upgrade *u = &f->upgrade;
    if (u->step == AD_UPGRADE_LEAVING && !f->stopping && !ad__domain_is_any_running(f)) hand_over_front(f);
    else if (u->took_over && !ad__domain_recovers(f)) finish_upgrade(f);
}

/* ---- from step to step ---- */

static void begin_leaving(ad_front *f) {
    f->upgrade.step = AD_UPGRADE_LEAVING;
    f->upgrade.sessions = f->sessions;
    ad__handshake_end_busy(f);
    uv_timer_start(&f->upgrade.timer, on_upgrade_timer, LEAVE_PATIENCE, 0);
    ad__pull_end(f, 0);
    ad__domain_leave_all(f);
    ad__upgrade_advance(f);
}

static void begin_quiet(ad_front *f) {
    ad_upgrade *u = &f->upgrade;
    u->step = AD_UPGRADE_QUIET;
    u->began = ad__os_now();
    u->quiet_until = u->began + QUIET_PATIENCE;
    ad__log(upgrading, AD_VERSION, u->to, u->by, f->sessions, u->declared);
    ad__listen_pause(f, true);
    uv_timer_start(&u->timer, on_upgrade_timer, 0, QUIET_LOOK);
}

static void decide_upgrade(ad_front *f) {
    ad_upgrade *u = &f->upgrade;
    char why[AD_FAULT_TEXT];
    if (u->force || !u->declared) {
        begin_quiet(f);
        return;
    }
    snprintf(why, sizeof why, "%" PRIu64 " sessions cannot go over; with --force they are given up", u->declared);
    refuse_upgrade(f, why);
}

void ad__upgrade_answer(ad_front *f, uint64_t lost) {
    ad_upgrade *u = &f->upgrade;
    if (u->step != AD_UPGRADE_ASKING) return;
    u->declared += lost;
    if (!ad__domain_find_silent(f)) decide_upgrade(f);
}

static void ask_workers(ad_front *f) {
    f->upgrade.step = AD_UPGRADE_ASKING;
    uv_timer_start(&f->upgrade.timer, on_upgrade_timer, ASK_PATIENCE, 0);
    if (!ad__domain_ask_leaving(f)) decide_upgrade(f);
}

static void handle_silent_workers(ad_front *f) {
    char why[AD_FAULT_TEXT];
    const char *domain = ad__domain_find_silent(f);
    if (f->upgrade.force || !domain) {
        begin_quiet(f);
        return;
    }
    snprintf(why, sizeof why,
             "the worker of domain %s does not say what would be lost; with --force it is not waited for", domain);
    refuse_upgrade(f, why);
}

static void on_upgrade_timer(uv_timer_t *timer) {
    ad_front *f = timer->data;
    ad_upgrade *u = &f->upgrade;
    switch (u->step) {
    case AD_UPGRADE_CHECKING:
        u->too_late = true;
        uv_process_kill(&u->check, SIGKILL);
        break;
    case AD_UPGRADE_ASKING: handle_silent_workers(f); break;
    case AD_UPGRADE_QUIET:
        if (!ad__handshake_pause(f, true) || ad__os_now() > u->quiet_until) begin_leaving(f);
        break;
    case AD_UPGRADE_LEAVING: ad__domain_kill_all(f); break;
    default: break;
    }
}

/* ---- the check ---- */

static void on_check_closed(uv_handle_t *handle) { ((ad_front *)handle->data)->upgrade.checked = false; }

/* Read the first or last line of the new program's output, and close the pipe. */
static const char *read_check_output(ad_upgrade *u, char text[SAID], bool first) {
    ssize_t n = read(u->said, text, SAID - 1);
    close(u->said);
    for (text[n = n > 0 ? n : 0] = 0; n && text[n - 1] == '\n';) text[--n] = 0;
    if (first) text[strcspn(text, "\n")] = 0;
    const char *end = strrchr(text, '\n');
    for (char *p = text; *p; p++)
        if (*p < ' ' || *p > '~') *p = '?';
    return end ? end + 1 : text;
}

static void on_check_exit(uv_process_t *process, int64_t status, int signal_number) {
    ad_front *f = process->data;
    ad_upgrade *u = &f->upgrade;
    static const char name[] = "arrayd ";
    const bool can = !status && !signal_number;
    char text[SAID], why[2 * AD_FAULT_TEXT];
    const char *line = read_check_output(u, text, can);
    uv_close((uv_handle_t *)process, on_check_closed);
    if (u->step != AD_UPGRADE_CHECKING) return; /* the server is stopping */
    if (can && !strncmp(line, name, sizeof name - 1)) {
        snprintf(u->to, sizeof u->to, "%.*s", AD_UPGRADE_VERSION - 1, line + sizeof name - 1);
        ask_workers(f);
        return;
    }
    snprintf(why, sizeof why, "%.200s cannot take over: %.200s", f->started.path,
             u->too_late ? "it does not answer"
             : *line     ? line
                         : "it does not say that it can");
    refuse_upgrade(f, why);
}

static int spawn_check(ad_front *f, int out) {
    char layout[AD_HAND_LAYOUT], option[AD_HAND_LAYOUT + 32];
    ad__handover_layout(layout);
    snprintf(option, sizeof option, "--can-take-over=%s", layout);
    char **list = ad__handover_arguments(f, option);
    if (!list) return UV_ENOMEM;
    uv_stdio_container_t stdio[] = {
        {.flags = UV_IGNORE}, {.flags = UV_INHERIT_FD, .data.fd = out}, {.flags = UV_INHERIT_FD, .data.fd = out}};
    uv_process_options_t o = {
        .exit_cb = on_check_exit, .file = f->started.path, .args = list, .stdio_count = 3, .stdio = stdio};
    f->upgrade.check.data = f;
    f->upgrade.checked = true;
    int status = uv_spawn(&f->loop, &f->upgrade.check, &o);
    if (status) uv_close((uv_handle_t *)&f->upgrade.check, on_check_closed);
    free(list);
    return status;
}

static int start_check(ad_front *f, ad_fault *fault) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK)) return ad__fault(fault, AD_E_SYSTEM, "no pipe for the new program");
    int status = spawn_check(f, ends[1]);
    close(ends[1]);
    f->upgrade.said = ends[0];
    if (!status) return 0;
    close(ends[0]);
    return ad__fault(fault, AD_E_SYSTEM, "cannot start %.200s: %s", f->started.path, uv_strerror(status));
}

int ad__upgrade_begin(ad_front *f, bool force, const char *by, ad_fault *fault) {
    ad_upgrade *u = &f->upgrade;
    int status = 0;
    if (f->stopping) status = ad__fault(fault, AD_E_CONNECTION, "the server is shutting down");
    else if (u->step || u->checked) status = ad__fault(fault, AD_E_LIMIT, "an upgrade is under way");
    else status = start_check(f, fault);
    if (status) {
        ad__log(not_upgraded, by, fault->text);
        return status;
    }
    /* An earlier upgrade ends here, even if its workers have not recovered: those of the next program may be able
     * to. */
    if (u->took_over) ad__control_upgraded(f, "another upgrade has begun before all workers were there", NULL);
    u->took_over = false;
    u->step = AD_UPGRADE_CHECKING;
    u->force = force;
    u->too_late = false;
    u->lost = u->declared = 0;
    snprintf(u->by, sizeof u->by, "%s", by);
    uv_timer_start(&u->timer, on_upgrade_timer, CHECK_PATIENCE, 0);
    return 0;
}

/* ---- */

void ad__upgrade_init(ad_front *f) {
    uv_timer_init(&f->loop, &f->upgrade.timer);
    f->upgrade.timer.data = f;
    uv_unref((uv_handle_t *)&f->upgrade.timer);
}

void ad__upgrade_cancel(ad_front *f) {
    if (f->upgrade.step == AD_UPGRADE_CHECKING) uv_process_kill(&f->upgrade.check, SIGKILL);
    stop_upgrade(f);
    f->upgrade.took_over = false;
}

int ad__upgrade_tolerate(ad_front *f, int status, ad_fault *fault) {
    if (!status || !f->upgrade.took_over) return status;
    ad__log(cannot_listen, fault->text);
    *fault = (ad_fault){0};
    return 0;
}

bool ad__upgrade_leaves(const ad_front *f) { return f->upgrade.step == AD_UPGRADE_LEAVING; }

void ad__upgrade_lost(ad_front *f, uint64_t sessions) {
    if (f->upgrade.took_over || ad__upgrade_leaves(f)) f->upgrade.lost += sessions;
}
