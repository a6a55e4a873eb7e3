/* Workers that are there and do not answer, as they are stopped or deadlocked. Such a worker is killed, and its
 * successor goes on with its sessions.
 *
 *     every interval:  heard == knocked -> KNOCK    silence = 0
 *                      heard <  knocked -> it used processor time: silence = 0
 *                                          it sleeps or is stopped: silence grows
 *                      silence >= worker-silence -> kill
 *
 * A worker that has sessions is knocked at, and its I/O thread answers, whatever the engine does. Workers that are
 * busy, that the kernel does not let run (a starved machine, a slow disk) or that a debugger holds are not silent.
 * Only time in which this process itself ran its timer counts, so that nobody is killed after a machine was
 * suspended.
 *
 * A worker may have ended and the kernel not report it, as one of its threads still closes a file of a FUSE file system
 * whose daemon does not answer. Nothing of it runs any more, and its successor need not wait for that daemon. Clients
 * of the old worker do: its sockets are open as long as that thread is there. */
#include <signal.h>

#include "server/common/log.h"
#include "server/common/os.h"
#include "server/front/workers/domain_inside.h"

#define ENDED 3 /* checks in a row after which an exit that was not reported is taken for one */
#define LOOKS 8 /* checks within the time of option worker-silence */
#define LOOK_MOST 1000000000LL
#define LOOK_LEAST 20000000LL

static int64_t get_silence_limit(const ad_front *f) { return (int64_t)(f->config.worker_silence * 1e9); }

static int64_t get_look_interval(const ad_front *f) {
    const int64_t pause = get_silence_limit(f) / LOOKS;
    return pause > LOOK_MOST ? LOOK_MOST : pause < LOOK_LEAST ? LOOK_LEAST : pause;
}

static void knock_at_worker(ad_domain *d) {
    ad_silence *s = &d->silence;
    s->ns = 0;
    s->knocked++;
    ad__domain_tell(d, &(ad_note){.kind = AD_NOTE_KNOCK, .id = s->knocked}, -1);
}

/* Add `ns` without an answer to the worker's silence, if it could have answered. */
static void add_silence(ad_silence *s, const ad_pulse *now, int64_t ns) {
    const ad_pulse before = s->pulse;
    s->pulse = *now;
    if (now->ticks != before.ticks) s->ns = 0;
    else if (now->state == 'S' || now->state == 'T') s->ns += ns;
}

/* Count a check at which the worker's main thread had ended. Returns whether there were enough in a row. */
static bool count_ended(ad_silence *s, const ad_pulse *now) {
    s->ended = now->state == 'Z' ? s->ended + 1 : 0;
    return s->ended >= ENDED;
}

static void check_worker(ad_domain *d, int64_t ns) {
    ad_silence *s = &d->silence;
    ad_pulse now = {0};
    const bool seen = d->alive && ad__process_pulse((int)d->process.pid, &now);
    if (count_ended(s, &now)) {
        ad__domain_lose_worker(d);
        return;
    }
    if (!ad__domain_is_ready(d) || !d->sessions || d->silenced) {
        *s = (ad_silence){.ended = s->ended};
        return;
    }
    if (s->heard == s->knocked) {
        knock_at_worker(d);
        return;
    }
    if (seen) add_silence(s, &now, ns);
    if (s->ns < get_silence_limit(d->front)) return;
    d->silenced = true;
    ad__log(worker_killed, d->name, (int)d->process.pid, "it does not answer (option worker-silence)");
    uv_process_kill(&d->process, SIGKILL);
}

static void on_liveness_timer(uv_timer_t *timer) {
    ad_front *f = timer->data;
    const int64_t now = ad__os_now(), most = 2 * get_look_interval(f);
    const int64_t passed = now - f->timers.looked < most ? now - f->timers.looked : most;
    f->timers.looked = now;
    for (ad_domain *d = f->domains; d; d = d->next) check_worker(d, passed);
}

void ad__silence_heard(ad_domain *d, const ad_note *note) {
    if (note->id == d->silence.knocked) d->silence.heard = note->id;
}

int ad__silence_watch(ad_front *f) {
    int status = uv_timer_init(&f->loop, &f->timers.silence);
    if (status || get_silence_limit(f) <= 0) return status;
    f->timers.silence.data = f;
    f->timers.looked = ad__os_now();
    const uint64_t ms = (uint64_t)(get_look_interval(f) / 1000000);
    uv_timer_start(&f->timers.silence, on_liveness_timer, ms, ms);
    uv_unref((uv_handle_t *)&f->timers.silence);
    return 0;
}
