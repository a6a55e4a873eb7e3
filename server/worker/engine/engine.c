#include "server/worker/engine/engine.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "server/common/os.h"
#include "server/worker/engine/background.h"
#include "server/worker/engine/blame.h"
#include "server/worker/report.h"
#include "server/worker/net/session.h"
#include "server/worker/sharing/sharing.h"

/* Where a client has waited for its answer just now, turns are so short that the next such answer need not wait long:
 * one that takes 20 us by itself should not take 100 because another session has much to enqueue. */
#define HURRY 1000000 /* ns for which that is so */
#define SLICE 5000    /* ns of a turn then */

#define QUEUE_BYTES (4u << 20) /* of a session that wait here, above which its client is not read */
#define QUEUE_FRAMES 4096

/* Where this thread executes operations itself, whoever has many small ones has several turns on end, as its arrays are
 * in the processor's cache after the first of them: until somebody comes who has used little more than his share, who
 * does not wait for that. It pays for them by waiting longer for the next. */
#define STAY 2000000 /* ns */
#define STAY_OPS 10  /* at least, in a turn */

#define QUANTUM 50000       /* ns of a turn otherwise */
#define WEIGHT 4            /* of high beside normal priority, and of that beside low */
#define DEVICE_MOST 200000  /* ns of a device that a turn is charged for */
#define PUMP_LIMIT 200000   /* ns that the I/O thread runs before it looks at its sockets again */
#define LIGHT 50000         /* ns that an operation may take for the I/O thread to execute it ... */
#define LIGHT_ALONE 2000000 /* ... while there is nobody whom that could keep waiting */
#define POLL_EVERY 20000    /* ns between two looks at what is under way while there is work to do */
#define SEIZE_LOOKS 200     /* us between two looks whether nobody runs the engine any more */
#define LOOKS 8             /* at what somebody waits for, before this thread looks at its sockets again */

/* This thread sleeps between two looks at a device when that is busy for long, so that nobody learns of an end later
 * than by a part of the time that it took. On an H200 in a virtual machine the driver's own ways to be told, a callback
 * or an event that blocks, come 0.5 to 0.9 ms late. */
#define PATIENCE 2000000  /* ns that somebody has waited by then */
#define LATE_SHARE 256    /* one part of so many of the time that has been waited ... */
#define LATE_MOST 1000000 /* ... but no longer, ns */

static void request_attention(ad_session *s) {
    ad_engine *e = &s->worker->engine;
    if (s->attended) return;
    s->attended = true;
    s->next_attention = e->attention;
    e->attention = s;
    if (!pthread_equal(pthread_self(), s->worker->io_thread)) uv_async_send(&s->worker->wake);
}

void ad__engine_request_attention(ad_session *s) {
    ad_engine *e = &s->worker->engine;
    pthread_mutex_lock(&e->lock);
    request_attention(s);
    pthread_mutex_unlock(&e->lock);
}

ad_session *ad__engine_next_attended(ad_worker *w) {
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

/* ns of a round. */
static int64_t choose_quantum(int64_t priority) {
    return priority < AD_PRIORITY_NORMAL   ? QUANTUM / WEIGHT
           : priority > AD_PRIORITY_NORMAL ? QUANTUM * WEIGHT
                                           : QUANTUM;
}

int ad__engine_add_session(ad_worker *w, ad_session *s, const ad_note *note) {
    ad_engine *e = &w->engine;
    pthread_mutex_lock(&e->lock);
    int status = ad__share_open(&e->turns, &s->turn, note->who, choose_quantum(note->grants.priority));
    pthread_mutex_unlock(&e->lock);
    return status;
}

void ad__engine_remove_session(ad_session *s) {
    ad_engine *e = &s->worker->engine;
    pthread_mutex_lock(&e->lock);
    ad__share_close(&e->turns, &s->turn);
    pthread_mutex_unlock(&e->lock);
}

/* ---- several turns on end ---- */

static bool is_staying(const ad_engine *e) { return e->turns.staying && ad__os_now() < e->stay_until; }

static ad_share *choose_next(ad_engine *e) { return is_staying(e) ? e->turns.staying : ad__share_next(&e->turns); }

/* s has had a turn of so many operations. */
static void update_stay(ad_engine *e, ad_session *s, ad_turn turn, uint64_t operations) {
    const bool stayed = e->turns.staying == &s->turn;
    if (turn != AD_TURN_MORE || s->worker->backend->asynchronous || operations < STAY_OPS ||
        (stayed && !is_staying(e))) {
        e->turns.staying = NULL; /* the next turn is somebody else's, or its own again */
    } else if (!stayed) {
        e->turns.staying = &s->turn;
        e->stay_until = ad__os_now() + STAY;
    }
}

static ad_session *get_session(ad_share *n) { return (ad_session *)(void *)((char *)n - offsetof(ad_session, turn)); }

/* ---- what is under way ---- */

/* Keep the list of sessions with something under way. */
static void update_under_way(ad_engine *e, ad_session *s, bool finished) {
    bool busy = !finished && (s->wait.kind || !ad__stream_queues_idle(s));
    if (busy == s->busy) return;
    s->busy = busy;
    if (busy) {
        s->next_busy = e->under_way;
        e->under_way = s;
        return;
    }
    ad_session **at = &e->under_way;
    while (*at != s) at = &(*at)->next_busy;
    *at = s->next_busy;
}

/* Look at all of them, without the lock; true: somebody can go on. */
static bool poll_under_way(ad_engine *e) {
    bool ready = false;
    for (ad_session *s = e->under_way, *next; s; s = next) {
        next = s->next_busy;
        bool waited = s->wait.kind != AD_WAIT_NONE;
        bool can_go_on = ad__session_poll(s);
        if (s->checkpoint.late) ad__checkpoint_commit(s);
        if (can_go_on) ad__reply_ack(s, true);
        if (s->checkpoint.late) ad__checkpoint_commit(s);
        if (ad__output_flush(&s->output)) ad__engine_request_attention(s);
        if (!can_go_on) continue;
        update_under_way(e, s, false);
        if (!waited) continue;
        ready = true;
        pthread_mutex_lock(&e->lock);
        if (!s->dropped && !s->in_background) ad__share_add(&e->turns, &s->turn);
        pthread_mutex_unlock(&e->lock);
    }
    return ready;
}

/* When to look at what is under way: in so many ns, or AD_PUMP_NEVER. */
static int64_t find_next_poll(const ad_engine *e) {
    int64_t now = ad__os_now(), soonest = LATE_MOST;
    for (const ad_session *s = e->under_way; s; s = s->next_busy) {
        int64_t waited = now - s->wait.since;
        if (s->wait.kind >= AD_WAIT_COMPILER) continue;
        if (s->wait.kind && waited < PATIENCE) return AD_PUMP_AT_ONCE;
        if (s->wait.kind && waited / LATE_SHARE < soonest) soonest = waited / LATE_SHARE;
    }
    return e->under_way ? soonest : AD_PUMP_NEVER;
}

static bool is_in_hurry(const ad_engine *e, int64_t now) { return now - e->hurried < HURRY; }

/* What the turn has given a device to do counts as well, but not so much that a device stands still because others keep
 * this thread busy. */
static int64_t take_device_time(ad_session *s) {
    int64_t ns = s->turn_ns < DEVICE_MOST ? s->turn_ns : DEVICE_MOST;
    s->turn_ns = 0;
    return ns;
}

/* What it has executed is to be written down before others have their turns: not while it has more to execute, unless
 * it has memory in common with some of them. */
static bool needs_checkpoint(const ad_session *s, ad_turn turn) {
    return s->checkpoint.late || (s->checkpoint.behind && (turn != AD_TURN_MORE || s->shares));
}

/* One turn, entered and left with the lock held. */
static ad_turn run_turn(ad_engine *e, ad_session *s, int64_t limit) {
    ad_turn turn = AD_TURN_OVER;
    int64_t budget = s->turn.node.credit, start = s->active = ad__os_now();
    bool over = s->over;
    const uint64_t done = s->done;
    if (e->turns.staying == &s->turn) budget = QUANTUM;
    if (budget > SLICE && is_in_hurry(e, start)) budget = SLICE;
    pthread_mutex_unlock(&e->lock);
    ad__reserved_apply(s->worker);
    ad__blame_begin_turn(s);
    if (!over) turn = ad__session_turn(s, budget, limit);
    ad__blame_update(s);
    bool ended = turn == AD_TURN_OVER;
    if (!ended && needs_checkpoint(s, turn)) ad__checkpoint_commit(s);
    if (ended && !ad__session_drop(s)) turn = AD_TURN_WAITING;
    update_under_way(e, s, turn == AD_TURN_OVER);
    bool stuck = ad__output_flush(&s->output);
    int64_t used = ad__os_now() - start;
    if (!s->worker->backend->asynchronous) s->device_ns += used;
    pthread_mutex_lock(&e->lock);
    ad__share_charge(&e->turns, &s->turn, used + take_device_time(s));
    if (turn == AD_TURN_OVER) {
        s->dropped = true;
        ad__share_remove(&e->turns, &s->turn);
    } else if (turn == AD_TURN_EMPTY && !s->queue.count && !s->over) {
        ad__share_remove(&e->turns, &s->turn);
    } else if (turn == AD_TURN_WAITING) {
        ad__share_remove(&e->turns, &s->turn);
    } else if (turn == AD_TURN_STALLED && !s->over && !atomic_load(&s->output.broken) &&
               atomic_load(&s->output.queued) >= AD_OUTPUT_HIGH) {
        s->stalled = true;
        ad__share_remove(&e->turns, &s->turn);
    }
    update_stay(e, s, turn, s->done - done);
    if (stuck || turn == AD_TURN_OVER) request_attention(s);
    return turn;
}

/* Tell arrayd what it has asked for. With the lock held. */
static void send_report(ad_engine *e) {
    ad_worker *w = (ad_worker *)(void *)((char *)e - offsetof(ad_worker, engine));
    uint64_t question = e->question, what = e->asked;
    e->question = 0;
    pthread_mutex_unlock(&e->lock);
    ad__report_send(w, question, what);
    pthread_mutex_lock(&e->lock);
}

void ad__engine_report(ad_worker *w, uint64_t question, uint64_t what) {
    ad_engine *e = &w->engine;
    pthread_mutex_lock(&e->lock);
    e->question = question; /* arrayd asks again only when it has been answered, or has given up waiting */
    e->asked = what;
    pthread_mutex_unlock(&e->lock);
}

static void *run_engine_thread(void *argument);

/* With the lock held: one more; false: it cannot be. */
static bool start_engine_thread(ad_engine *e) {
    ad_worker *w = (ad_worker *)(void *)((char *)e - offsetof(ad_worker, engine));
    if (e->nthreads == AD_ENGINE_THREADS || ad__os_thread(&e->thread[e->nthreads], run_engine_thread, w)) return false;
    e->nthreads++;
    return true;
}

/* With the lock held: an engine thread is to go on. Where there is none the session waits until one is back. */
static bool call_engine_thread(ad_engine *e, ad_session *s) {
    e->heavy = e->idle || start_engine_thread(e);
    if (e->heavy) return true;
    ad__share_remove(&e->turns, &s->turn);
    ad__session_await(s, AD_WAIT_BACKGROUND, NULL, NULL);
    update_under_way(e, s, false);
    return false;
}

/* Run until nothing is left, `until` has come, or an operation is above limit. With the lock held. */
static void run_turns(ad_engine *e, int64_t until, int64_t limit) {
    int64_t now = ad__os_now(), polled = now;
    int looks = 0;
    do {
        if (e->question) send_report(e);
        ad_share *n = choose_next(e);
        if (n && run_turn(e, get_session(n), limit) == AD_TURN_HEAVY && call_engine_thread(e, get_session(n))) return;
        now = ad__os_now();
        if (e->under_way && (!n || now - polled > (is_in_hurry(e, now) ? SLICE : POLL_EVERY))) {
            pthread_mutex_unlock(&e->lock);
            bool ready = poll_under_way(e);
            pthread_mutex_lock(&e->lock);
            polled = now;
            if (!n && !ready && !ad__share_wanted(&e->turns) &&
                (looks++ == LOOKS || find_next_poll(e) != AD_PUMP_AT_ONCE))
                return;
        } else if (!n) {
            return;
        }
    } while (!e->stop && !e->claimed && !e->returning && now < until);
}

/* With the lock held: nobody runs the engine any more. */
static void stop_running(ad_engine *e) {
    e->running = false;
    if (e->returning) pthread_cond_signal(&e->back);
}

void ad__engine_give_up(ad_engine *e) {
    e->in_thread = e->heavy = false;
    stop_running(e);
}

/* What others were to take is over when its time is, if nobody does anything as well. */
static int64_t limit_to_expiry(ad_worker *w, int64_t again) {
    int64_t due = w->sharing->due, now = ad__os_now();
    if (due == INT64_MAX || again == AD_PUMP_AT_ONCE) return again;
    if (due <= now) return AD_PUMP_AT_ONCE;
    return due - now < again ? due - now : again;
}

int64_t ad__engine_pump(ad_worker *w) {
    ad_engine *e = &w->engine;
    int64_t again = AD_PUMP_NEVER;
    pthread_mutex_lock(&e->lock);
    if (!e->running && !e->heavy && !e->returning &&
        (ad__share_wanted(&e->turns) || e->under_way || e->question || ad__sharing_due(w))) {
        e->running = true;
        pthread_mutex_unlock(&e->lock);
        ad__sharing_sweep(w);
        pthread_mutex_lock(&e->lock);
        bool alone = atomic_load(&w->nsessions) <= 1;
        int64_t now = ad__os_now();
        run_turns(e, now + (is_in_hurry(e, now) && !alone ? 2 * SLICE : PUMP_LIMIT), alone ? LIGHT_ALONE : LIGHT);
        stop_running(e);
        if (e->heavy) pthread_cond_signal(&e->work);
        else again = limit_to_expiry(w, ad__share_wanted(&e->turns) ? AD_PUMP_AT_ONCE : find_next_poll(e));
    }
    pthread_mutex_unlock(&e->lock);
    return again;
}

static void *run_engine_thread(void *argument) {
    ad_worker *worker = argument;
    ad_engine *e = &worker->engine;
    pthread_mutex_lock(&e->lock);
    while (!e->stop) {
        if (!e->heavy || e->running || e->returning) {
            e->idle++;
            pthread_cond_wait(&e->work, &e->lock);
            e->idle--;
            continue;
        }
        e->running = e->in_thread = true;
        run_turns(e, INT64_MAX, INT64_MAX);
        ad__engine_give_up(e);
        if (e->under_way || e->question || e->claimed || ad__sharing_due(worker))
            uv_async_send(&worker->wake); /* the I/O thread waits for it */
    }
    pthread_mutex_unlock(&e->lock);
    return NULL;
}

bool ad__engine_claim(ad_worker *w) {
    ad_engine *e = &w->engine;
    pthread_mutex_lock(&e->lock);
    const bool free = !e->running && !e->heavy && !e->returning;
    e->claimed = !free;
    if (free) e->running = true;
    pthread_mutex_unlock(&e->lock);
    return free;
}

void ad__engine_release(ad_worker *w) {
    ad_engine *e = &w->engine;
    pthread_mutex_lock(&e->lock);
    stop_running(e);
    pthread_mutex_unlock(&e->lock);
}

int ad__engine_start(ad_worker *w, ad_fault *fault) {
    ad_engine *e = &w->engine;
    *e = (ad_engine){.turns = {.parties.quantum = QUANTUM}};
    pthread_mutex_init(&e->lock, NULL);
    pthread_cond_init(&e->work, NULL);
    pthread_cond_init(&e->back, NULL);
    w->io_thread = pthread_self();
    pthread_mutex_lock(&e->lock);
    const bool started = start_engine_thread(e);
    pthread_mutex_unlock(&e->lock);
    return started ? 0 : ad__fault(fault, AD_E_SYSTEM, "cannot start a thread for the engine");
}

void ad__engine_stop(ad_worker *w) {
    ad_engine *e = &w->engine;
    pthread_mutex_lock(&e->lock);
    e->stop = true;
    pthread_cond_broadcast(&e->work);
    pthread_mutex_unlock(&e->lock);
    for (unsigned i = 0; i < e->nthreads; i++) pthread_join(e->thread[i], NULL); /* none is started after `stop` */
    e->nthreads = 0;
    ad__bytes_free(&e->scratch);
}

void ad__engine_seize(ad_worker *w, int64_t patience) {
    ad_engine *e = &w->engine;
    const int64_t until = ad__os_now() + patience;
    pthread_mutex_lock(&e->lock);
    e->stop = true; /* turns end, and none begins */
    pthread_cond_broadcast(&e->work);
    while (e->running || (e->in_background && ad__os_now() < until)) {
        pthread_mutex_unlock(&e->lock);
        usleep(SEIZE_LOOKS);
        pthread_mutex_lock(&e->lock);
    }
    e->running = true;
    pthread_mutex_unlock(&e->lock);
}

bool ad__engine_is_full(const ad_session *s) {
    const ad_party *p = s->turn.party;
    const ad_grants *g = &s->grants;
    if (s->queue.bytes > QUEUE_BYTES || s->queue.count > QUEUE_FRAMES) return true;
    if (!s->queue.count) return false; /* whatever others of its principal have there, and be it for hours */
    return (g->operations && p->operations > g->operations) || (g->bytes && p->bytes > g->bytes);
}

uint64_t ad__engine_counter(const ad_session *s, int index) {
    ad_engine *e = &s->worker->engine;
    if (!s->turn.party) return 0; /* no session, but what stands for none of them */
    pthread_mutex_lock(&e->lock);
    uint64_t value = index == AD_COUNTER_queued_bytes ? s->turn.bytes
                     : index == AD_COUNTER_put_off    ? s->put_off
                                                      : s->turn.party->bytes;
    pthread_mutex_unlock(&e->lock);
    return value;
}

int ad__engine_queue_frames(ad_session *s, ad_input_frame *f, int n) {
    ad_engine *e = &s->worker->engine;
    int status = 0;
    for (int i = 0; i < n && s->grants.operations; i++)
        f[i].operations = ad__scan_messages(f[i].control, f[i].control_size);
    pthread_mutex_lock(&e->lock);
    for (int i = 0; i < n; i++) {
        if (!status && !s->over) status = ad__input_push(&s->queue, &f[i]);
        if (status || s->over) ad__input_release(&f[i]);
    }
    ad__share_set_waiting(&s->turn, s->queue.operations, s->queue.bytes);
    if (s->queue.count && !s->stalled && !s->dropped && !s->in_background) ad__share_add(&e->turns, &s->turn);
    pthread_mutex_unlock(&e->lock);
    return status;
}

static void request_end(ad_session *s, bool over) {
    ad_engine *e = &s->worker->engine;
    pthread_mutex_lock(&e->lock);
    s->over = s->over || over;
    s->hangup = true;
    s->stalled = false;
    if (s->dropped) request_attention(s);
    else if (!s->in_background) ad__share_add(&e->turns, &s->turn);
    pthread_mutex_unlock(&e->lock);
    uv_async_send(&s->worker->wake); /* the loop may be about to sleep */
}

void ad__engine_end(ad_session *s) {
    request_end(s, true);
    ad__background_cancel(s, AD_CANCEL_OVER);
}

void ad__engine_finish(ad_session *s) { request_end(s, false); }

void ad__engine_unstall(ad_session *s) {
    ad_engine *e = &s->worker->engine;
    pthread_mutex_lock(&e->lock);
    if (s->stalled && atomic_load(&s->output.queued) < AD_OUTPUT_HIGH) {
        s->stalled = false;
        if (!s->in_background) ad__share_add(&e->turns, &s->turn);
    }
    pthread_mutex_unlock(&e->lock);
}
