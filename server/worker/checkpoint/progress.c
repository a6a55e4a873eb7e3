/* The progress of a session: operations under way, and what their completion means for it. */
#include "server/common/log.h"
#include "server/common/os.h"
#include "server/worker/checkpoint/blame.h"
#include "server/worker/io/cancel.h"
#include "server/worker/session.h"

static bool is_wait_over(ad_worker_session *s) {
    ad_fault fault = {0};
    int64_t now;
    int done;
    switch (s->wait.kind) {
    case AD_WAIT_STREAM: return ad__stream_queue_idle(s->wait.stream_queue);
    case AD_WAIT_ALL: return ad__stream_queues_idle(s);
    case AD_WAIT_ROOM: return !ad__stream_queue_full(s->wait.stream_queue);
    case AD_WAIT_EVENT:
        done = s->worker->backend->event_done(s->wait.event, &fault);
        if (done < 0) ad__session_status(s, done, &fault);
        return done != 0; /* the next call reports the error */
    case AD_WAIT_USE: return ad__checkpoint_has_message(s->worker, s->wait.session, s->wait.place);
    case AD_WAIT_MORE:
        now = ad__os_now();
        return now >= s->wait.until || (now >= s->fusion.patient_until && ad__stream_queues_idle(s));
    case AD_WAIT_COMPILER: return s->worker->hooks.modules->built(s);
    case AD_WAIT_BACKGROUND: return s->worker->engine.returns != s->wait.returns || !s->worker->engine.in_background;
    case AD_WAIT_MIGRATION: return !atomic_load(&s->move.halted) && atomic_load(&s->move.state) != AD_SESSION_MIGRATES;
    case AD_WAIT_PULL:
        return atomic_load(&s->sharing.pull.state) == AD_PULL_ANSWERED || ad__cancel_covers(s, s->messages.place);
    default: return true;
    }
}

/* Tell whether the session has its next turn, which marks what it enqueues. A mark before that would launch the few
 * operations of a list by themselves. */
static bool has_next_turn(const ad_worker_session *s) { return s->turns.goes_on && !s->wait.kind; }

bool ad__session_poll(ad_worker_session *s) {
    ad_fault fault;
    fault.code = 0;
    fault.text[0] = 0;
    if (s->streams.count &&
        ((!has_next_turn(s) && ad__stream_queues_mark(s, &fault)) || ad__stream_queues_poll(s, &fault)))
        ad__log(cannot_see_how_far_a_session_is, s->id, fault.text);
    if (!s->fusion.count)
        ad__deferred_checks_read(s, ad__stream_queues_idle(s)); /* a queue begins a new epoch only for want of places */
    if (s->modules.dropped) s->worker->hooks.modules->reap(s);
    if (s->checkpoint.late) ad__blame_update(s);
    if (!is_wait_over(s)) return false;
    s->wait.kind = AD_WAIT_NONE;
    return true;
}

bool ad__checkpoint_await_commit(ad_worker_session *s) {
    ad_checkpoint *v = &s->checkpoint;
    ad__session_await(s, AD_WAIT_ALL, NULL, NULL);
    if (!ad__session_poll(s)) return false;
    if (v->late) ad__checkpoint_commit(s);
    return true;
}

bool ad__checkpoint_is_committed(ad_worker_session *s) {
    return !ad__session_commits_late(s) || ad__checkpoint_await_commit(s);
}

/* The checks that queued operations depend on have been read by then. So a new epoch may begin before they run. */
bool ad__checkpoint_await_place(ad_worker_session *s) {
    if (!ad__deferred_checks_full(&s->deferred_checks)) return true;
    ad__session_await(s, AD_WAIT_ALL, NULL, NULL);
    if (!ad__session_poll(s)) return false;
    ad__deferred_checks_read(s, true);
    return true;
}
