#include "server/worker/engine/background.h"

#include "protocol/infer.h"
#include "server/common/os.h"
#include "server/worker/session.h"
#include "server/worker/memory/shared.h"
#include "server/worker/io/cancel.h"

#define ALONE_MOST 4 /* background operations at a time of a principal that has the engine to itself */

/* ---- releasing and retaking the engine ---- */

static void release_engine(ad_worker_session *s) {
    ad_engine *e = &s->worker->engine;
    pthread_mutex_lock(&e->lock);
    ad__engine_give_up(e);
    pthread_mutex_unlock(&e->lock);
    uv_async_send(&s->worker->io.wake); /* the I/O thread executes cheap operations, and checks operation-time */
}

/* Wait until nobody runs the engine, then run it. The engine's lock is held. */
static void retake_engine(ad_engine *e) {
    e->returning++;
    while (e->running) pthread_cond_wait(&e->back, &e->lock);
    e->returning--;
    e->running = e->in_thread = true;
}

/* ---- a background operation ---- */

/* Tell whether no other principal has a background operation or waits for a turn. The engine's lock is held. */
static bool is_alone(const ad_engine *e, const ad_party *own) {
    const ad_party *p = e->turns.first;
    while (p && (p == own || (!p->in_background && !p->node.queued))) p = p->next;
    return !p;
}

/* Tell whether a thread can run the engine meanwhile. The engine's lock is held. */
static bool has_thread(const ad_engine *e) { return !e->stop && (e->idle || e->nthreads < AD_ENGINE_THREADS); }

/* Tell whether the session may begin a background operation now. The engine's lock is held. */
static bool may_begin(const ad_worker_session *s) {
    const ad_engine *e = &s->worker->engine;
    const ad_party *own = s->turns.share.party;
    if (!has_thread(e)) return false;
    return !own->in_background || (own->in_background < ALONE_MOST && is_alone(e, own));
}

bool ad__background_has_room(ad_worker_session *s, int64_t ns) {
    ad_engine *e = &s->worker->engine;
    if (ns < AD_BACKGROUND_NS || s->worker->backend->asynchronous) return true;
    pthread_mutex_lock(&e->lock);
    const bool room = may_begin(s);
    pthread_mutex_unlock(&e->lock);
    return room;
}

/* Tell whether what the session executes is a computation, which its client may cancel: not a read, say. */
static bool is_computing(const ad_worker_session *s) {
    return !s->messages.at_hand || s->fusion.draining || ad__cancel_concerns_message(s);
}

/* Find out whether the operation that begins is cancelled already. The engine's lock is held. */
static int find_reason(const ad_worker_session *s) {
    if (ad__run_is_over(s)) return AD_CANCEL_OVER;
    return ad__cancel_covers(s, s->messages.place) && is_computing(s) ? AD_CANCEL_ASKED : AD_CANCEL_NOT;
}

/* Name what the session executes, by a text of the tables. */
static const char *name_work(const ad_worker_session *s) {
    const ad_message *m = &s->messages.message;
    if (s->fusion.draining) return "fused operations";
    if (!s->messages.at_hand || !m->row) return "operations";
    return m->op.opcode ? ad__op_name(&m->op) : m->row->name;
}

/* Note what is executed from now on, and that it may be cancelled. */
static void note_begin(ad_worker_session *s) {
    __atomic_store_n(&s->turns.cancelled, find_reason(s), __ATOMIC_RELAXED);
    atomic_store(&s->turns.doing, name_work(s));
    atomic_store(&s->turns.background_since, ad__os_now());
}

bool ad__background_begin(ad_worker_session *s, int64_t ns) {
    ad_engine *e = &s->worker->engine;
    if (s->checkpoint.suspect.careful) note_begin(s); /* the operation keeps the engine, and can still be cancelled */
    if (ns < AD_BACKGROUND_NS || s->worker->backend->asynchronous || s->checkpoint.suspect.careful) return false;
    pthread_mutex_lock(&e->lock);
    /* Whether it may begin has been asked before (ad__background_has_room). Another principal may have come since; in
     * the engine the operation would keep it waiting to the end. */
    const bool begins = e->in_thread && has_thread(e);
    if (begins) {
        s->turns.in_background = true;
        s->turns.share.party->in_background++;
        e->in_background++;
        ad__share_remove(&e->turns, &s->turns.share);
        note_begin(s);
    }
    pthread_mutex_unlock(&e->lock);
    if (begins) release_engine(s);
    return begins;
}

void ad__background_exempt(ad_worker_session *s) { atomic_store(&s->turns.background_since, 0); }

void ad__background_end(ad_worker_session *s) {
    ad_engine *e = &s->worker->engine;
    pthread_mutex_lock(&e->lock);
    retake_engine(e);
    e->in_background--;
    e->returns++;
    s->turns.share.party->in_background--;
    s->turns.in_background = false;
    atomic_store(&s->turns.background_since, 0);
    ad__share_add(&e->turns, &s->turns.share);
    pthread_mutex_unlock(&e->lock);
}

void ad__background_take_engine(ad_worker_session *s) {
    ad_engine *e = &s->worker->engine;
    if (!s->turns.in_background) return;
    pthread_mutex_lock(&e->lock);
    retake_engine(e);
    pthread_mutex_unlock(&e->lock);
}

void ad__background_release_engine(ad_worker_session *s) {
    if (s->turns.in_background) release_engine(s);
}

bool ad__background_holds(const ad_shared *m) {
    const ad_buffer *b = m ? m->buffers : NULL;
    while (b && !b->sharing.holder->turns.in_background) b = b->sharing.next;
    return b;
}

/* ---- long ones ---- */

void ad__background_cancel_before(ad_worker_session *s, uint64_t place) {
    ad_engine *e = &s->worker->engine;
    pthread_mutex_lock(&e->lock);
    atomic_store(&s->turns.cancelled_before, place);
    if (s->turns.in_background && is_computing(s)) ad__engine_cancel(s, AD_CANCEL_ASKED);
    pthread_mutex_unlock(&e->lock);
}

bool ad__background_tick(ad_worker *w) {
    ad_engine *e = &w->engine;
    const double limit = w->config.operation_time;
    const int64_t now = ad__os_now();
    for (ad_worker_session *s = w->sessions; s && limit > 0; s = s->next) {
        const int64_t since = atomic_load(&s->turns.background_since);
        if (since && (double)(now - since) > limit * 1e9) ad__engine_cancel(s, AD_CANCEL_TIME);
    }
    pthread_mutex_lock(&e->lock);
    const bool some = e->in_background;
    pthread_mutex_unlock(&e->lock);
    return some;
}
