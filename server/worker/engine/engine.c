#include "server/worker/engine/engine.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "server/common/os.h"
#include "server/worker/engine/background.h"
#include "server/worker/checkpoint/blame.h"
#include "server/worker/session.h"
#include "server/worker/io/reply.h"

/* Turns are short while clients wait for answers. One that takes 20 us by itself should not take 100 because another
 * session has much to enqueue. */
#define HURRY 1000000 /* ns after the latest such wait in which turns are short */
#define SLICE 5000    /* ns of a short turn */

#define QUEUE_BYTES (4u << 20) /* bytes queued by a session above which its client is not read */
#define QUEUE_FRAMES 4096

/* The time of turns on end. Where the runner executes operations itself, a session with many small ones gets several
 * turns on end. Its arrays are in the processor's cache after the first. A session that has used little more than its
 * share ends this at once. The session pays by a longer wait for its next turns. */
#define STAY 2000000 /* ns that a session may have turns on end */
#define STAY_OPS 10  /* least operations of a turn that is worth another */

#define QUANTUM 50000       /* ns of an ordinary turn */
#define WEIGHT 4            /* ratio of quanta: high to normal priority, and normal to low */
#define DEVICE_MOST 200000  /* most device time, in ns, that a turn is charged for */
#define PUMP_LIMIT 200000   /* ns that the I/O thread runs the engine between two looks at its sockets */
#define LIGHT 50000         /* longest operation, in ns, that the I/O thread executes itself */
#define LIGHT_ALONE 2000000 /* longest such operation while there is no other session */
#define POLL_EVERY 20000    /* ns between two polls of devices while turns are wanted */
#define SEIZE_LOOKS 200     /* us between two checks whether the engine is free */
#define LOOKS 8             /* polls of devices in a row before the I/O thread looks at its sockets again */

/* The I/O thread sleeps between two polls of a device that is busy for long. The sleep is a small part of the time
 * waited, so an end is noticed only that much late. On an H200 in a virtual machine the driver's own notifications
 * (callback, blocking event) come 0.5 to 0.9 ms late. */
#define PATIENCE 2000000  /* ns of waiting before which polls never sleep */
#define LATE_PART 256     /* the sleep is the time waited divided by this */
#define LATE_MOST 1000000 /* ns that a sleep takes at most */

static void request_attention(ad_worker_session *s) {
    ad_engine *e = &s->worker->engine;
    if (s->turns.attended) return;
    s->turns.attended = true;
    s->turns.next_attention = e->attention;
    e->attention = s;
    if (!pthread_equal(pthread_self(), s->worker->io.thread)) uv_async_send(&s->worker->io.wake);
}

void ad__engine_request_attention(ad_worker_session *s) {
    ad_engine *e = &s->worker->engine;
    pthread_mutex_lock(&e->lock);
    request_attention(s);
    pthread_mutex_unlock(&e->lock);
}

ad_worker_session *ad__engine_next_attended(ad_worker *w) {
    ad_engine *e = &w->engine;
    pthread_mutex_lock(&e->lock);
    ad_worker_session *s = e->attention;
    if (s) {
        e->attention = s->turns.next_attention;
        s->turns.attended = false;
    }
    pthread_mutex_unlock(&e->lock);
    return s;
}

/* Choose the quantum (ns per round) of a priority. */
static int64_t choose_quantum(int64_t priority) {
    return priority < AD_PRIORITY_NORMAL   ? QUANTUM / WEIGHT
           : priority > AD_PRIORITY_NORMAL ? QUANTUM * WEIGHT
                                           : QUANTUM;
}

static int open_turn(ad_worker_session *s, const ad_note *note) {
    ad_engine *e = &s->worker->engine;
    pthread_mutex_lock(&e->lock);
    int status = ad__share_open(&e->turns, &s->turns.share, note->who, choose_quantum(note->grants.priority));
    pthread_mutex_unlock(&e->lock);
    return status;
}

static void close_turn(ad_worker_session *s) {
    ad_engine *e = &s->worker->engine;
    pthread_mutex_lock(&e->lock);
    ad__share_close(&e->turns, &s->turns.share);
    pthread_mutex_unlock(&e->lock);
}

const ad_component ad__component_turn = {.name = "turns", .open = open_turn, .close = close_turn};

/* ---- several turns on end ---- */

static bool is_staying(const ad_engine *e, int64_t now) { return e->turns.staying && now < e->stay_until; }

static ad_share *choose_next(ad_engine *e, int64_t now) {
    return is_staying(e, now) ? e->turns.staying : ad__share_next(&e->turns);
}

/* Decide after a turn of so many operations whether the session has the next turn as well. */
static void update_stay(ad_engine *e, ad_worker_session *s, ad_turn turn, uint64_t operations, int64_t now) {
    const bool stayed = e->turns.staying == &s->turns.share;
    if (turn != AD_TURN_MORE || s->worker->backend->asynchronous || operations < STAY_OPS ||
        (stayed && !is_staying(e, now))) {
        e->turns.staying = NULL; /* the next turn goes by shares again */
    } else if (!stayed) {
        e->turns.staying = &s->turns.share;
        e->stay_until = now + STAY;
    }
}

static ad_worker_session *get_session(ad_share *n) {
    return (ad_worker_session *)(void *)((char *)n - offsetof(ad_worker_session, turns.share));
}

/* ---- polling what is under way ---- */

/* Add the session to, or remove it from, the list of sessions with something under way. */
static void update_under_way(ad_engine *e, ad_worker_session *s, bool finished) {
    bool busy = !finished && (s->wait.kind || !ad__stream_queues_idle(s));
    if (busy == s->turns.busy) return;
    s->turns.busy = busy;
    if (busy) {
        s->turns.next_busy = e->under_way;
        e->under_way = s;
        return;
    }
    ad_worker_session **at = &e->under_way;
    while (*at != s) at = &(*at)->turns.next_busy;
    *at = s->turns.next_busy;
}

/* Poll all sessions with something under way. True: some session can go on. The lock is not held. */
static bool poll_under_way(ad_engine *e) {
    bool ready = false;
    for (ad_worker_session *s = e->under_way, *next; s; s = next) {
        next = s->turns.next_busy;
        bool waited = s->wait.kind != AD_WAIT_NONE;
        bool can_go_on = ad__session_poll(s);
        if (s->checkpoint.late) ad__checkpoint_commit(s);
        /* The worker that a halted session goes to may have its answers already, and must have all of them. */
        if (can_go_on && !atomic_load(&s->move.halted)) ad__reply_ack(s, true);
        if (s->checkpoint.late) ad__checkpoint_commit(s);
        if (ad__output_flush(&s->output)) ad__engine_request_attention(s);
        if (!can_go_on) continue;
        update_under_way(e, s, false);
        if (!waited) continue;
        ready = true;
        pthread_mutex_lock(&e->lock);
        if (ad__run_phase(s) != AD_RUN_DROPPED && !s->turns.in_background) ad__share_add(&e->turns, &s->turns.share);
        pthread_mutex_unlock(&e->lock);
    }
    return ready;
}

/* Find when devices must be polled next: in so many ns, or AD_PUMP_NEVER. */
static int64_t find_next_poll(const ad_engine *e) {
    if (!e->under_way) return AD_PUMP_NEVER;
    int64_t now = ad__os_now(), soonest = LATE_MOST;
    for (const ad_worker_session *s = e->under_way; s; s = s->turns.next_busy) {
        int64_t waited = now - s->wait.since;
        if (s->wait.kind >= AD_WAIT_COMPILER) continue;
        if (s->wait.kind == AD_WAIT_MORE) {
            if (s->wait.until <= now) return AD_PUMP_AT_ONCE;
            if (s->wait.until - now < soonest) soonest = s->wait.until - now;
            continue;
        }
        if (s->wait.kind && waited < PATIENCE) return AD_PUMP_AT_ONCE;
        if (s->wait.kind && waited / LATE_PART < soonest) soonest = waited / LATE_PART;
    }
    return soonest;
}

static bool is_in_hurry(const ad_engine *e, int64_t now) { return now - e->hurried < HURRY; }

/* Take the device time that the turn has enqueued, which is charged, too. A limit keeps the device busy while other
 * sessions use the runner. */
static int64_t take_device_time(ad_worker_session *s) {
    int64_t ns = s->usage.turn_ns < DEVICE_MOST ? s->usage.turn_ns : DEVICE_MOST;
    s->usage.turn_ns = 0;
    return ns;
}

/* Tell whether the session needs a checkpoint before other turns. A session with more to execute waits with that,
 * unless it shares memory with others. */
static bool needs_checkpoint(const ad_worker_session *s, ad_turn turn) {
    return s->checkpoint.late || (s->checkpoint.behind && (turn != AD_TURN_MORE || s->sharing.shares));
}

/* Run one turn of a session, at the time *now, which becomes that of the turn's end. The lock is held at entry and
 * return, not in between. */
static ad_turn run_turn(ad_engine *e, ad_worker_session *s, int64_t limit, int64_t *now) {
    ad_turn turn = AD_TURN_OVER;
    const int64_t start = s->turns.since = *now;
    int64_t budget = s->turns.share.node.credit;
    bool over = ad__run_is_over(s);
    const uint64_t done = s->progress.done;
    if (e->turns.staying == &s->turns.share) budget = QUANTUM;
    if (budget > SLICE && is_in_hurry(e, start)) budget = SLICE;
    pthread_mutex_unlock(&e->lock);
    ad__reserved_apply(s->worker);
    ad__blame_begin_turn(s);
    if (!over) turn = s->worker->hooks.engine->turn(s, budget, limit);
    ad__blame_update(s);
    bool ended = turn == AD_TURN_OVER;
    if (!ended && needs_checkpoint(s, turn)) ad__checkpoint_commit(s);
    if (ended) turn = s->worker->hooks.engine->drop(s);
    s->turns.goes_on = turn == AD_TURN_MORE;
    update_under_way(e, s, turn == AD_TURN_OVER);
    bool stuck = ad__output_flush(&s->output);
    *now = ad__os_now();
    const int64_t used = *now - start;
    if (!s->worker->backend->asynchronous) s->usage.device_ns += used;
    pthread_mutex_lock(&e->lock);
    ad__share_charge(&e->turns, &s->turns.share, used + take_device_time(s));
    if (turn == AD_TURN_OVER) {
        if (ad__run_phase(s) != AD_RUN_DROPPED) ad__run_enter(s, AD_RUN_DROPPED);
        ad__share_remove(&e->turns, &s->turns.share);
    } else if (turn == AD_TURN_EMPTY && !s->turns.queue.count && !ad__run_is_over(s)) {
        ad__share_remove(&e->turns, &s->turns.share);
    } else if (turn == AD_TURN_WAITING) {
        ad__share_remove(&e->turns, &s->turns.share);
    } else if (turn == AD_TURN_STALLED && !ad__run_is_over(s) && !atomic_load(&s->output.broken) &&
               atomic_load(&s->output.queued) >= AD_OUTPUT_HIGH) {
        if (ad__run_phase(s) == AD_RUN_LIVE) ad__run_enter(s, AD_RUN_STALLED);
        ad__share_remove(&e->turns, &s->turns.share);
    }
    update_stay(e, s, turn, s->progress.done - done, *now);
    if (stuck || turn == AD_TURN_OVER) request_attention(s);
    return turn;
}

/* Send the report that arrayd has asked for. The lock is held, but released meanwhile. */
static void send_report(ad_engine *e) {
    ad_worker *w = (ad_worker *)(void *)((char *)e - offsetof(ad_worker, engine));
    uint64_t question = e->question, what = e->asked;
    e->question = 0;
    pthread_mutex_unlock(&e->lock);
    w->hooks.engine->report(w, question, what);
    pthread_mutex_lock(&e->lock);
}

void ad__engine_report(ad_worker *w, uint64_t question, uint64_t what) {
    ad_engine *e = &w->engine;
    pthread_mutex_lock(&e->lock);
    e->question = question; /* arrayd asks again only after an answer, or after giving up */
    e->asked = what;
    pthread_mutex_unlock(&e->lock);
}

static void *run_engine_thread(void *argument);

/* Start one more engine thread. False: the limit is reached, or the system refuses. The lock is held. */
static bool start_engine_thread(ad_engine *e) {
    ad_worker *w = (ad_worker *)(void *)((char *)e - offsetof(ad_worker, engine));
    if (e->nthreads == AD_ENGINE_THREADS || ad__os_thread(&e->thread[e->nthreads], run_engine_thread, w)) return false;
    e->nthreads++;
    return true;
}

/* Ask an engine thread to take over. Without a free one the session waits (AD_WAIT_BACKGROUND). The lock is held. */
static bool call_engine_thread(ad_engine *e, ad_worker_session *s) {
    e->heavy = e->idle || start_engine_thread(e);
    if (e->heavy) return true;
    ad__share_remove(&e->turns, &s->turns.share);
    ad__session_await(s, AD_WAIT_BACKGROUND, NULL, NULL);
    update_under_way(e, s, false);
    return false;
}

/* Run turns from now on until none is wanted, `until` has come, or an operation costs more than `limit`. The lock is
 * held. */
static void run_turns(ad_engine *e, int64_t now, int64_t until, int64_t limit) {
    int64_t polled = now;
    int looks = 0;
    do {
        if (e->question) send_report(e);
        ad_share *n = choose_next(e, now);
        if (!n) now = ad__os_now();
        else if (run_turn(e, get_session(n), limit, &now) == AD_TURN_HEAVY && call_engine_thread(e, get_session(n)))
            return;
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

/* Stop running the engine and wake those that take it back. The lock is held. */
static void stop_running(ad_engine *e) {
    e->running = false;
    if (e->returning) pthread_cond_signal(&e->back);
}

void ad__engine_give_up(ad_engine *e) {
    e->in_thread = e->heavy = false;
    stop_running(e);
}

void ad__engine_cancel(ad_worker_session *s, int why) {
    int not_yet = AD_CANCEL_NOT;
    __atomic_compare_exchange_n(&s->turns.cancelled, &not_yet, why, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
}

static bool has_chores(const ad_worker *w) { return w->hooks.engine->due(w) != INT64_MAX; }

/* Shorten the time until the next call, so that unclaimed capabilities expire in time. */
static int64_t limit_to_expiry(ad_worker *w, int64_t again) {
    const int64_t due = w->hooks.engine->due(w);
    if (due == INT64_MAX || again == AD_PUMP_AT_ONCE) return again;
    const int64_t now = ad__os_now();
    if (due <= now) return AD_PUMP_AT_ONCE;
    return due - now < again ? due - now : again;
}

int64_t ad__engine_pump(ad_worker *w) {
    ad_engine *e = &w->engine;
    int64_t again = AD_PUMP_NEVER;
    pthread_mutex_lock(&e->lock);
    if (!e->running && !e->heavy && !e->returning &&
        (ad__share_wanted(&e->turns) || e->under_way || e->question || has_chores(w))) {
        e->running = true;
        pthread_mutex_unlock(&e->lock);
        w->hooks.engine->sweep(w);
        pthread_mutex_lock(&e->lock);
        bool alone = atomic_load(&w->nsessions) <= 1;
        int64_t now = ad__os_now();
        run_turns(e, now, now + (is_in_hurry(e, now) && !alone ? 2 * SLICE : PUMP_LIMIT), alone ? LIGHT_ALONE : LIGHT);
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
        run_turns(e, ad__os_now(), INT64_MAX, INT64_MAX);
        ad__engine_give_up(e);
        if (e->under_way || e->question || e->claimed || has_chores(worker))
            uv_async_send(&worker->io.wake); /* the I/O thread waits for one of these */
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
    w->io.thread = pthread_self();
    pthread_mutex_lock(&e->lock);
    const bool started = start_engine_thread(e);
    pthread_mutex_unlock(&e->lock);
    return started ? 0 : ad__fault(fault, AD_E_SYSTEM, "cannot start a thread for the engine");
}

/* Join all engine threads. `stop` is set, so none is started any more. */
static void join_threads(ad_engine *e) {
    for (unsigned i = 0; i < e->nthreads; i++) pthread_join(e->thread[i], NULL);
    e->nthreads = 0;
}

void ad__engine_stop(ad_worker *w) {
    ad_engine *e = &w->engine;
    pthread_mutex_lock(&e->lock);
    e->stop = true;
    pthread_cond_broadcast(&e->work);
    pthread_mutex_unlock(&e->lock);
    join_threads(e);
    ad__bytes_free(&e->scratch);
}

void ad__engine_seize(ad_worker *w, int64_t patience) {
    ad_engine *e = &w->engine;
    const int64_t until = ad__os_now() + patience;
    pthread_mutex_lock(&e->lock);
    e->stop = true; /* running turns end, and no other begins */
    pthread_cond_broadcast(&e->work);
    while (e->running || (e->in_background && ad__os_now() < until)) {
        pthread_mutex_unlock(&e->lock);
        usleep(SEIZE_LOOKS);
        pthread_mutex_lock(&e->lock);
    }
    e->running = true;
    const bool abandoned = e->in_background > 0;
    pthread_mutex_unlock(&e->lock);
    if (!abandoned) join_threads(e); /* without a turn and a background operation a thread ends at once */
}

bool ad__engine_is_full(const ad_worker_session *s) {
    const ad_party *p = s->turns.share.party;
    const ad_grants *g = &s->grants;
    if (s->turns.queue.bytes > QUEUE_BYTES || s->turns.queue.count > QUEUE_FRAMES) return true;
    if (!s->turns.queue.count) return false; /* the other sessions of the principal may fill the queue for hours */
    return (g->operations && p->operations > g->operations) || (g->bytes && p->bytes > g->bytes);
}

uint64_t ad__engine_read(ad_worker *w, const uint64_t *number) {
    pthread_mutex_lock(&w->engine.lock);
    const uint64_t value = *number;
    pthread_mutex_unlock(&w->engine.lock);
    return value;
}

int ad__engine_queue_frames(ad_worker_session *s, ad_input_frame *f, int n) {
    ad_engine *e = &s->worker->engine;
    int status = 0;
    for (int i = 0; i < n && s->grants.operations; i++)
        f[i].operations = ad__scan_messages(f[i].control, f[i].control_size);
    pthread_mutex_lock(&e->lock);
    for (int i = 0; i < n; i++) {
        if (!status && !ad__run_is_over(s)) status = ad__input_push(&s->turns.queue, &f[i]);
        if (status || ad__run_is_over(s)) ad__input_release(&f[i]);
    }
    ad__share_set_waiting(&s->turns.share, s->turns.queue.operations, s->turns.queue.bytes);
    const ad_run_phase phase = ad__run_phase(s);
    if (s->turns.queue.count && phase != AD_RUN_STALLED && phase != AD_RUN_DROPPED && !s->turns.in_background)
        ad__share_add(&e->turns, &s->turns.share);
    pthread_mutex_unlock(&e->lock);
    return status;
}

static void request_end(ad_worker_session *s, bool over) {
    ad_engine *e = &s->worker->engine;
    pthread_mutex_lock(&e->lock);
    if (over && !ad__run_is_over(s)) ad__run_enter(s, AD_RUN_OVER);
    else if (ad__run_phase(s) == AD_RUN_STALLED) ad__run_enter(s, AD_RUN_LIVE);
    s->turns.hangup = true;
    if (ad__run_phase(s) == AD_RUN_DROPPED) request_attention(s);
    else if (!s->turns.in_background) ad__share_add(&e->turns, &s->turns.share);
    pthread_mutex_unlock(&e->lock);
    uv_async_send(&s->worker->io.wake); /* the loop may be about to sleep */
}

void ad__engine_end(ad_worker_session *s) {
    request_end(s, true);
    ad__engine_cancel(s, AD_CANCEL_OVER);
}

void ad__engine_finish(ad_worker_session *s) { request_end(s, false); }

void ad__engine_unstall(ad_worker_session *s) {
    ad_engine *e = &s->worker->engine;
    pthread_mutex_lock(&e->lock);
    if (ad__run_phase(s) == AD_RUN_STALLED && atomic_load(&s->output.queued) < AD_OUTPUT_HIGH) {
        ad__run_enter(s, AD_RUN_LIVE);
        if (!s->turns.in_background) ad__share_add(&e->turns, &s->turns.share);
    }
    pthread_mutex_unlock(&e->lock);
}
