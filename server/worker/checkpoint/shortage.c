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

/* Another worker would execute again what came after the committed checkpoint, and some of that reads the buffers.
 * Their rows say that the bytes are lost. */
static void record_losses(ad_worker_session *s) {
    ad_checkpoint *v = &s->checkpoint;
    for (size_t i = 0; i < v->kept.count; i++) ad__checkpoint_record_loss(s, v->kept.list[i]->place);
    v->announced = true;
}

bool ad__checkpoint_give_released_memory(ad_worker_session *s) {
    ad_checkpoint *v = &s->checkpoint;
    if (!v->kept.count) return false;
    ad__checkpoint_flush(s, true);
    if (!v->kept.count) return true;
    record_losses(s);
    ad__checkpoint_give_released(s);
    return true;
}
