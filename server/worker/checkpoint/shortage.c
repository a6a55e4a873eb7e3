/* Checkpoints that are committed because memory is short: what they free can be taken. */
#include "server/worker/checkpoint/inside.h"

static bool flush_session(ad_worker_session *s, bool judge) {
    const ad_checkpoint *v = &s->checkpoint;
    const size_t before = v->frees.count + v->kept.count;
    if (!before) return false;
    ad__checkpoint_flush(s, judge);
    return v->frees.count + v->kept.count < before;
}

static bool flush_other_sessions(const ad_worker_session *s) {
    ad_worker *w = s->worker;
    bool done = false;
    pthread_mutex_lock(&w->sessions_lock);
    for (ad_worker_session *other = w->sessions; other; other = other->next)
        if (other != s && !ad__run_is_dropping(other) && !other->turns.in_background)
            done = flush_session(other, true) || done;
    pthread_mutex_unlock(&w->sessions_lock);
    return done;
}

bool ad__checkpoint_free_all_deferred(ad_worker_session *s) {
    return s->worker->journal && (flush_other_sessions(s) || flush_session(s, false));
}

bool ad__checkpoint_give_released_memory(ad_worker_session *s) {
    ad_checkpoint *v = &s->checkpoint;
    if (!v->kept.count) return false;
    ad__checkpoint_flush(s, true);
    if (!v->kept.count) return true;
    ad__journal_store(&v->at->uncertain, 1); /* a queued operation may read the memory */
    ad__checkpoint_give_released(s);
    return true;
}
