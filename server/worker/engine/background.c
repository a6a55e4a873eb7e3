#include "server/worker/engine/background.h"

#include "server/common/os.h"
#include "server/worker/net/session.h"
#include "server/worker/sharing/sharing.h"

#define ALONE_MOST 4 /* operations beside the engine at a time, of a principal that is alone */

/* ---- the engine changes hands ---- */

static void hand_over(ad_session *s) {
    ad_engine *e = &s->worker->engine;
    pthread_mutex_lock(&e->lock);
    ad__engine_give_up(e);
    pthread_mutex_unlock(&e->lock);
    uv_async_send(&s->worker->wake); /* the I/O thread executes what is cheap, and watches the clock */
}

/* With the lock held. */
static void take_back(ad_engine *e) {
    e->returning++;
    while (e->running) pthread_cond_wait(&e->back, &e->lock);
    e->returning--;
    e->running = e->in_thread = true;
}

/* ---- an operation ---- */

/* With the lock held: no other principal has an operation there or waits for a turn. */
static bool is_alone(const ad_engine *e, const ad_party *own) {
    const ad_party *p = e->turns.first;
    while (p && (p == own || (!p->beside && !p->node.queued))) p = p->next;
    return !p;
}

/* With the lock held. */
static bool may_begin(const ad_session *s) {
    const ad_engine *e = &s->worker->engine;
    const ad_party *own = s->turn.party;
    if (e->stop || (!e->idle && e->nthreads == AD_ENGINE_THREADS)) return false;
    return !own->beside || (own->beside < ALONE_MOST && is_alone(e, own));
}

bool ad__beside_has_room(ad_session *s, int64_t ns) {
    ad_engine *e = &s->worker->engine;
    if (ns < AD_BESIDE_NS || s->worker->backend->asynchronous) return true;
    pthread_mutex_lock(&e->lock);
    const bool room = may_begin(s);
    pthread_mutex_unlock(&e->lock);
    return room;
}

bool ad__beside_begin(ad_session *s, int64_t ns) {
    ad_engine *e = &s->worker->engine;
    if (s->checkpoint.careful)
        atomic_store(&s->beside_since, ad__os_now()); /* it keeps the engine, and can be cancelled */
    if (ns < AD_BESIDE_NS || s->worker->backend->asynchronous || s->checkpoint.careful) return false;
    pthread_mutex_lock(&e->lock);
    const bool begins = e->in_thread && may_begin(s);
    if (begins) {
        s->beside = true;
        s->turn.party->beside++;
        e->beside++;
        ad__share_remove(&e->turns, &s->turn);
        __atomic_store_n(&s->cancelled, s->over ? AD_CANCEL_OVER : AD_CANCEL_NOT, __ATOMIC_RELAXED);
        atomic_store(&s->beside_since, ad__os_now());
    }
    pthread_mutex_unlock(&e->lock);
    if (begins) hand_over(s);
    return begins;
}

void ad__beside_untimed(ad_session *s) { atomic_store(&s->beside_since, 0); }

void ad__beside_end(ad_session *s) {
    ad_engine *e = &s->worker->engine;
    pthread_mutex_lock(&e->lock);
    take_back(e);
    e->beside--;
    e->returns++;
    s->turn.party->beside--;
    s->beside = false;
    atomic_store(&s->beside_since, 0);
    ad__share_add(&e->turns, &s->turn);
    pthread_mutex_unlock(&e->lock);
}

void ad__beside_pause(ad_session *s) {
    ad_engine *e = &s->worker->engine;
    if (!s->beside) return;
    pthread_mutex_lock(&e->lock);
    take_back(e);
    pthread_mutex_unlock(&e->lock);
}

void ad__beside_go_on(ad_session *s) {
    if (s->beside) hand_over(s);
}

bool ad__beside_holds(const ad_shared *m) {
    const ad_buffer *b = m ? m->buffers : NULL;
    while (b && !b->holder->beside) b = b->next_holder;
    return b;
}

/* ---- cancelling ---- */

void ad__beside_cancel(ad_session *s, int why) {
    int not_yet = AD_CANCEL_NOT;
    __atomic_compare_exchange_n(&s->cancelled, &not_yet, why, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

bool ad__beside_tick(ad_worker *w) {
    ad_engine *e = &w->engine;
    const double limit = w->config.operation_time;
    const int64_t now = ad__os_now();
    for (ad_session *s = w->sessions; s && limit > 0; s = s->next) {
        const int64_t since = atomic_load(&s->beside_since);
        if (since && (double)(now - since) > limit * 1e9) ad__beside_cancel(s, AD_CANCEL_TIME);
    }
    pthread_mutex_lock(&e->lock);
    const bool some = e->beside;
    pthread_mutex_unlock(&e->lock);
    return some;
}
