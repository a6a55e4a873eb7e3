/* The worker leaves because another one is to go on with its sessions: arrayd is upgraded.
 *
 * All that another worker needs is in the journal at any instant (journal/checkpoint.h); so there is not much to
 * do but to choose one at which nothing is half done: no operation is held, and the device has done what it was given.
 * What clients have sent and is not executed by then the next worker executes. */
#include <unistd.h>

#include "server/common/log.h"
#include "server/common/os.h"
#include "server/common/report.h"
#include "server/worker/engine/background.h"
#include "server/worker/net/session.h"
#include "server/worker/worker.h"

#define LAST_WORDS 2000000000LL /* ns for telling those that cannot go over, and for their clients to read it */

/* ---- what would be lost ---- */

static bool is_over(ad_session *s) {
    ad_engine *e = &s->worker->engine;
    pthread_mutex_lock(&e->lock);
    bool over = s->over || s->dropped;
    pthread_mutex_unlock(&e->lock);
    return over || s->closing || s->linger_until;
}

static void say(ad_worker *w) {
    ad_note note = {.kind = AD_NOTE_LEAVING};
    for (ad_session *s = w->sessions; s; s = s->next)
        note.id += !ad__session_is_recoverable(s) && !ad__session_is_probe(s->id) && !is_over(s);
    ad__worker_tell(w, &note, -1);
}

/* ---- leaving ---- */

/* The next worker executes again what is still in the background, as if this one had been killed. */
static void settle(ad_session *s) {
    if (!ad__session_is_recoverable(s) || s->in_background) return;
    ad__fusion_flush(s);
    ad__checkpoint_flush(s, true);
    s->checkpoint.at->lives = 0; /* this one has not died of it */
}

/* The process ends as when it is killed: closing things one by one would write down that they are closed. */
static void __attribute__((noreturn)) leave(ad_worker *w) {
    ad__engine_seize(w, LAST_WORDS); /* from here on this is the only thread that changes anything of a session */
    for (ad_session *s = w->sessions; s; s = s->next) settle(s);
    pthread_mutex_lock(&w->channel_lock);
    ad__channel_drain(&w->channel);
    ad__log(AD_LOG_DEBUG, "left", "sessions=%u", atomic_load(&w->nsessions));
    _exit(0);
}

static bool all_go_over(const ad_worker *w) {
    const ad_session *s = w->sessions;
    while (s && ad__session_is_recoverable(s)) s = s->next;
    return !s;
}

void ad__worker_leave_if_done(ad_worker *w) {
    if (all_go_over(w) || ad__os_now() > w->leaving) leave(w);
}

void ad__worker_leave(ad_worker *w, const ad_note *note) {
    if (!note->id) {
        say(w);
        return;
    }
    if (w->leaving || w->stopping) return;
    w->leaving = ad__os_now() + LAST_WORDS;
    for (ad_session *s = w->sessions; s; s = s->next)
        if (!ad__session_is_recoverable(s))
            ad__session_bye(s, AD_E_CONNECTION, "the server is being upgraded, and this session cannot go over");
    ad__sessions_watch(w); /* time passes */
}
