#include "server/worker/engine.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "server/common/os.h"
#include "server/worker/session.h"

#define QUANTUM 50000       /* ns of a turn */
#define PUMP_LIMIT 200000   /* ns that the I/O thread runs before it looks at its sockets again */
#define LIGHT 50000         /* ns that an operation may take for the I/O thread to execute it ... */
#define LIGHT_ALONE 2000000 /* ... while there is nobody whom that could keep waiting */

static void attend_locked(ad_session *s) {
    ad_engine *e = &s->worker->engine;
    if (s->attended) return;
    s->attended = true;
    s->next_attention = e->attention;
    e->attention = s;
    if (e->in_thread) uv_async_send(&s->worker->wake);
}

void ad__engine_attend(ad_session *s) {
    ad_engine *e = &s->worker->engine;
    pthread_mutex_lock(&e->lock);
    attend_locked(s);
    pthread_mutex_unlock(&e->lock);
}

ad_session *ad__engine_attended(ad_worker *w) {
    ad_engine *e = &w->engine;
    pthread_mutex_lock(&e->lock);
    ad_session *s = e->attention;
    if (s) {
        e->attention = s->next_attention;
        s->attended = false;
    }
    pthread_mutex_unlock(&e->lock);
    return s;
}

static ad_session *session_of(ad_drr_node *n) { return (ad_session *)(void *)((char *)n - offsetof(ad_session, turn)); }

/* One turn, entered and left with the lock held. */
static ad_turn run_turn(ad_engine *e, ad_session *s, double limit) {
    ad_turn turn = AD_TURN_OVER;
    int64_t budget = s->turn.credit, start = ad__os_now();
    bool over = s->over;
    pthread_mutex_unlock(&e->lock);
    if (!over) turn = ad__session_turn(s, budget, limit);
    if (turn == AD_TURN_OVER) ad__session_drop(s);
    bool stuck = ad__output_flush(&s->output);
    pthread_mutex_lock(&e->lock);
    ad__drr_charge(&e->turns, &s->turn, ad__os_now() - start);
    if (turn == AD_TURN_OVER) {
        s->over = s->dropped = true;
        ad__drr_remove(&e->turns, &s->turn);
    } else if (turn == AD_TURN_EMPTY && !s->queue.count && !s->over) {
        ad__drr_remove(&e->turns, &s->turn);
    } else if (turn == AD_TURN_STALLED && !s->over && !atomic_load(&s->output.broken) &&
               atomic_load(&s->output.queued) >= AD_OUTPUT_HIGH) {
        s->stalled = true;
        ad__drr_remove(&e->turns, &s->turn);
    }
    if (stuck || turn == AD_TURN_OVER) attend_locked(s);
    return turn;
}

/* Run until nothing is left, `until` has come, or an operation is above limit. With the lock held. */
static void run(ad_engine *e, int64_t until, double limit) {
    ad_drr_node *n;
    while ((n = ad__drr_next(&e->turns))) {
        if (run_turn(e, session_of(n), limit) == AD_TURN_HEAVY) {
            e->heavy = true;
            return;
        }
        if (e->stop || ad__os_now() >= until) return;
    }
}

bool ad__engine_pump(ad_worker *w) {
    ad_engine *e = &w->engine;
    bool more = false;
    pthread_mutex_lock(&e->lock);
    if (!e->running && !e->heavy && e->turns.head) {
        e->running = true;
        run(e, ad__os_now() + PUMP_LIMIT, atomic_load(&w->nsessions) > 1 ? LIGHT : LIGHT_ALONE);
        e->running = false;
        if (e->heavy) pthread_cond_signal(&e->work);
        else more = e->turns.head != NULL;
    }
    pthread_mutex_unlock(&e->lock);
    return more;
}

static void *engine_thread(void *argument) {
    ad_engine *e = argument;
    pthread_mutex_lock(&e->lock);
    while (!e->stop) {
        if (!e->heavy || e->running) {
            pthread_cond_wait(&e->work, &e->lock);
            continue;
        }
        e->running = e->in_thread = true;
        run(e, INT64_MAX, 1e300);
        e->running = e->in_thread = e->heavy = false;
    }
    pthread_mutex_unlock(&e->lock);
    return NULL;
}

int ad__engine_start(ad_worker *w, ad_fault *fault) {
    ad_engine *e = &w->engine;
    sigset_t all, before;
    *e = (ad_engine){.turns = {.quantum = QUANTUM}};
    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->work, NULL);
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &before); /* signals are the loop's */
    int error = pthread_create(&e->thread, NULL, engine_thread, e);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error) return ad__fault(fault, AD_E_SYSTEM, "cannot start the engine's thread: %s", strerror(error));
    e->started = true;
    return 0;
}

void ad__engine_stop(ad_worker *w) {
    ad_engine *e = &w->engine;
    if (!e->started) return;
    pthread_mutex_lock(&e->lock);
    e->stop = true;
    pthread_cond_signal(&e->work);
    pthread_mutex_unlock(&e->lock);
    pthread_join(e->thread, NULL);
    e->started = false;
    ad__bytes_free(&e->scratch);
}

int ad__engine_give(ad_session *s, ad_input_frame *f, int n) {
    ad_engine *e = &s->worker->engine;
    int status = 0;
    pthread_mutex_lock(&e->lock);
    for (int i = 0; i < n; i++) {
        if (!status && !s->over) status = ad__input_push(&s->queue, &f[i]);
        if (status || s->over) ad__input_release(&f[i]);
    }
    if (s->queue.count && !s->stalled && !s->dropped) ad__drr_add(&e->turns, &s->turn);
    pthread_mutex_unlock(&e->lock);
    return status;
}

void ad__engine_end(ad_session *s) {
    ad_engine *e = &s->worker->engine;
    pthread_mutex_lock(&e->lock);
    s->over = s->hangup = true;
    s->stalled = false;
    if (s->dropped) attend_locked(s);
    else ad__drr_add(&e->turns, &s->turn);
    pthread_mutex_unlock(&e->lock);
    uv_async_send(&s->worker->wake); /* the loop may be about to sleep */
}

void ad__engine_unstall(ad_session *s) {
    ad_engine *e = &s->worker->engine;
    pthread_mutex_lock(&e->lock);
    if (s->stalled && atomic_load(&s->output.queued) < AD_OUTPUT_HIGH) {
        s->stalled = false;
        ad__drr_add(&e->turns, &s->turn);
    }
    pthread_mutex_unlock(&e->lock);
}
