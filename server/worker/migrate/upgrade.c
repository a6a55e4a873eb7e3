/* Leaving for an upgrade of arrayd: another worker goes on with the sessions.
 *
 * All that it needs is in the journal at any time (checkpoint/checkpoint.h). So this worker only chooses a time when no
 * operation is queued and the device is idle. The next worker executes messages that clients have sent and that are not
 * executed by then. */
#include <unistd.h>

#include "server/common/log.h"
#include "server/common/os.h"
#include "server/common/report.h"
#include "server/worker/engine/background.h"
#include "server/worker/session/session.h"
#include "server/worker/worker.h"

#define LAST_WORDS 2000000000LL /* ns in which clients that cannot go on read why */

/* ---- sessions that would be lost ---- */

static bool is_session_over(ad_worker_session *s) {
    ad_engine *e = &s->worker->engine;
    pthread_mutex_lock(&e->lock);
    bool over = ad__run_is_over(s);
    pthread_mutex_unlock(&e->lock);
    return over || s->socket.phase >= AD_SOCKET_ENDING;
}

/* Tell whether no worker goes on with the session. One that has moved to another worker is over here. */
static bool is_lost(ad_worker_session *s) {
    return !ad__session_is_recoverable(s) && !ad__session_is_probe(s->id) && !is_session_over(s);
}

static void report_losses(ad_worker *w) {
    ad_note note = {.kind = AD_NOTE_LEAVING};
    for (ad_worker_session *s = w->sessions; s; s = s->next) note.id += is_lost(s);
    ad__worker_tell(w, &note, -1);
}

/* ---- leaving ---- */

/* Commit what the session has executed. The next worker executes a background operation again, as if this one had
 * been killed. */
static void commit_session(ad_worker_session *s) {
    if (!ad__session_is_recoverable(s) || s->turns.in_background) return;
    ad__fusion_flush(s);
    ad__checkpoint_flush(s, true);
    s->checkpoint.at->lives = 0; /* this worker has not died of the session */
}

/* End the process as if it was killed: closing sessions would record that they are closed. */
static void __attribute__((noreturn)) leave_process(ad_worker *w) {
    ad__engine_seize(w, LAST_WORDS); /* from here on only this thread changes sessions */
    for (ad_worker_session *s = w->sessions; s; s = s->next) commit_session(s);
    pthread_mutex_lock(&w->arrayd.lock);
    ad__channel_drain(&w->arrayd.channel);
    ad__log(left, atomic_load(&w->nsessions));
    _exit(0);
}

static bool can_all_go_over(const ad_worker *w) {
    const ad_worker_session *s = w->sessions;
    while (s && ad__session_is_recoverable(s)) s = s->next;
    return !s;
}

void ad__worker_leave_if_done(ad_worker *w) {
    if (can_all_go_over(w) || ad__os_now() > w->ending.leaving) leave_process(w);
}

void ad__worker_leave(ad_worker *w, const ad_note *note) {
    if (!note->id) {
        report_losses(w);
        return;
    }
    if (w->ending.leaving || w->ending.stopping) return;
    w->ending.leaving = ad__os_now() + LAST_WORDS;
    for (ad_worker_session *s = w->sessions; s; s = s->next)
        if (is_lost(s))
            ad__session_bye(s, AD_E_CONNECTION, "the server is being upgraded, and this session cannot go over");
    ad__sessions_watch(w); /* time passes until the clients have read why */
}
