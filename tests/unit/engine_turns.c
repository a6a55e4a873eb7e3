/* The engine: whose turn it is, how turns end, and what runs besides them. */
#include <criterion/criterion.h>
#include <semaphore.h>

#include "server/worker/engine/background.h"
#include "server/worker/engine/engine.h"
#include "server/worker/io/output.h"
#include "tests/unit/worker/fake.h"

enum { SESSIONS = 12 };

static const ad_component *const components[] = {&ad__component_turn, &ad__component_input, &ad__component_output,
                                                 NULL};

static struct {
    int turns, drops;
    int most; /* turns after which the session has nothing more */
    ad_turn end;
} script[SESSIONS];
static ad_worker_session *sessions[SESSIONS]; /* by id */
static uint64_t reported;
static int sweeps;
static int64_t due = INT64_MAX;
static sem_t done;

/* Execute what the session has queued. */
static void empty_queue(ad_worker_session *s) {
    ad_input_frame f;
    pthread_mutex_lock(&s->worker->engine.lock);
    while (ad__input_pop(&s->turns.queue, &f)) {}
    pthread_mutex_unlock(&s->worker->engine.lock);
}

static ad_turn take_turn(ad_worker_session *s, int64_t budget, int64_t limit) {
    const bool in_thread = !pthread_equal(pthread_self(), s->worker->io.thread);
    cr_assert_gt(budget, 0);
    if (script[s->id].end == AD_TURN_HEAVY) {
        cr_assert_eq(in_thread, limit == INT64_MAX);
        if (!in_thread) return AD_TURN_HEAVY;
        script[s->id].turns++;
        empty_queue(s);
        sem_post(&done);
        return AD_TURN_EMPTY;
    }
    if (++script[s->id].turns < script[s->id].most || !script[s->id].most) return script[s->id].end;
    empty_queue(s);
    return AD_TURN_EMPTY;
}

/* At first something is under way, then there is too much for one turn. */
static ad_turn drop_session(ad_worker_session *s) {
    switch (++script[s->id].drops) {
    case 1: ad__session_await(s, AD_WAIT_BACKGROUND, NULL, NULL); return AD_TURN_WAITING;
    case 2: ad__run_enter(s, AD_RUN_DROPPING); return AD_TURN_MORE;
    default: return AD_TURN_OVER;
    }
}

static void send_report(ad_worker *w, uint64_t question, uint64_t what) {
    (void)w;
    cr_assert_eq(what, 3);
    reported = question;
}

static int64_t get_due(const ad_worker *w) {
    (void)w;
    return due;
}

static void sweep_worker(ad_worker *w) {
    (void)w;
    sweeps += due != INT64_MAX;
    due = INT64_MAX;
}

static const ad_engine_hooks hooks = {take_turn, drop_session, send_report, get_due, sweep_worker};

static ad_worker *start_worker(void) {
    ad_fault fault = {0};
    ad_worker *w = fake_worker(false, false, components);
    w->hooks.engine = &hooks;
    sem_init(&done, 0, 0);
    cr_assert_eq(ad__engine_start(w, &fault), 0, "%s", fault.text);
    return w;
}

/* Create a session of a principal, which stop_worker closes. */
static ad_worker_session *start_session(ad_worker *w, uint64_t id, const char *principal) {
    return sessions[id] = fake_session(w, id, principal);
}

static void stop_worker(ad_worker *w) {
    ad__engine_stop(w);
    for (int i = 0; i < SESSIONS; i++)
        if (sessions[i]) fake_session_close(sessions[i]);
    fake_worker_close(w);
    sem_destroy(&done);
}

static void queue_frame(ad_worker_session *s) {
    ad_input_frame f = {0};
    cr_assert_eq(ad__engine_queue_frames(s, &f, 1), 0);
}

/* Pump until nothing wants a turn. */
static void pump_engine(ad_worker *w) {
    while (ad__engine_pump(w) != AD_PUMP_NEVER) {}
}

Test(engine, each_session_has_its_turns) {
    ad_worker *w = start_worker();
    ad_worker_session *s[SESSIONS];
    static const char *const who[] = {"a", "b", "c"};
    for (int i = 0; i < SESSIONS; i++) {
        script[i].most = 20 + i;
        script[i].end = AD_TURN_MORE;
        s[i] = start_session(w, (uint64_t)i, who[i < 9 ? 0 : i % 3]);
        queue_frame(s[i]);
    }
    pump_engine(w);
    for (int i = 0; i < SESSIONS; i++) cr_assert_eq(script[i].turns, 20 + i, "session %d: %d", i, script[i].turns);
    pump_engine(w);
    cr_assert_eq(script[0].turns, 20, "a session without frames has turns");
    queue_frame(s[0]);
    pump_engine(w);
    cr_assert_eq(script[0].turns, 21);
    stop_worker(w);
}

Test(engine, a_heavy_operation_goes_to_a_thread) {
    ad_worker *w = start_worker();
    ad_worker_session *s = start_session(w, 0, "a");
    script[0].end = AD_TURN_HEAVY;
    queue_frame(s);
    ad__engine_pump(w);
    sem_wait(&done);
    stop_worker(w);
    cr_assert_eq(script[0].turns, 1);
}

Test(engine, an_ended_session_is_dropped_once_it_is_idle) {
    ad_worker *w = start_worker();
    ad_worker_session *s = start_session(w, 0, "a");
    script[0].end = AD_TURN_MORE;
    queue_frame(s);
    ad__engine_end(s);
    cr_assert(ad__run_is_over(s) && !ad__run_is_dropping(s));
    pump_engine(w);
    cr_assert_eq(script[0].turns, 0, "an operation was executed after the end");
    cr_assert_eq(script[0].drops, 3);
    cr_assert_eq(ad__run_phase(s), AD_RUN_DROPPED);
    cr_assert_eq(ad__engine_next_attended(w), s);
    cr_assert_null(ad__engine_next_attended(w));
    queue_frame(s);
    pump_engine(w);
    cr_assert_eq(script[0].drops, 3, "a dropped session has turns");
    stop_worker(w);
}

Test(engine, a_turn_over_ends_the_session) {
    ad_worker *w = start_worker();
    ad_worker_session *s = start_session(w, 0, "a");
    script[0].end = AD_TURN_OVER;
    script[0].drops = 1; /* nothing is under way */
    queue_frame(s);
    pthread_mutex_lock(&w->engine.lock);
    ad__run_enter(s, AD_RUN_OVER);
    pthread_mutex_unlock(&w->engine.lock);
    pump_engine(w);
    cr_assert_eq(ad__run_phase(s), AD_RUN_DROPPED);
    stop_worker(w);
}

Test(engine, a_stalled_session_waits_for_its_output) {
    ad_worker *w = start_worker();
    ad_worker_session *s = start_session(w, 0, "a");
    script[0].end = AD_TURN_STALLED;
    queue_frame(s);
    atomic_store(&s->output.away, true); /* nothing is sent */
    atomic_store(&s->output.queued, AD_OUTPUT_HIGH);
    pump_engine(w);
    cr_assert_eq(script[0].turns, 1);
    cr_assert_eq(ad__run_phase(s), AD_RUN_STALLED);
    ad__engine_unstall(s);
    queue_frame(s);
    pump_engine(w);
    cr_assert_eq(script[0].turns, 1, "a session had a turn with a full output");
    atomic_store(&s->output.queued, AD_OUTPUT_HIGH - 1);
    script[0].most = 2;
    ad__engine_unstall(s);
    pump_engine(w);
    cr_assert_eq(script[0].turns, 2);
    cr_assert_eq(ad__run_phase(s), AD_RUN_LIVE);
    stop_worker(w);
}

Test(engine, a_full_queue_is_not_read_any_further) {
    ad_worker *w = start_worker();
    ad_worker_session *s = start_session(w, 0, "a"), *other = start_session(w, 1, "b");
    for (int i = 0; i < 5000; i++) queue_frame(s);
    pthread_mutex_lock(&w->engine.lock);
    cr_assert(ad__engine_is_full(s));
    cr_assert_not(ad__engine_is_full(other));
    pthread_mutex_unlock(&w->engine.lock);
    script[0].most = 1;
    pump_engine(w);
    pthread_mutex_lock(&w->engine.lock);
    cr_assert_not(ad__engine_is_full(s));
    pthread_mutex_unlock(&w->engine.lock);
    stop_worker(w);
}

Test(engine, reports_and_chores_run_between_turns) {
    ad_worker *w = start_worker();
    ad__engine_report(w, 7, 3);
    pump_engine(w);
    cr_assert_eq(reported, 7);
    due = 0;
    pump_engine(w);
    cr_assert_eq(sweeps, 1);
    cr_assert(ad__engine_claim(w));
    cr_assert_eq(ad__engine_pump(w), AD_PUMP_NEVER, "the claimed engine runs");
    ad__engine_release(w);
    stop_worker(w);
}

/* ---- polling ---- */

static ad_turn wait_in_turn(ad_worker_session *s, int64_t budget, int64_t limit) {
    (void)budget, (void)limit;
    empty_queue(s);
    ad__session_await_more(s, 0); /* that is over at once */
    return AD_TURN_WAITING;
}

/* An answer that came behind the copy of the session's state was more than the next worker knew to have been sent, and
 * the session was lost. */
Test(engine, a_halted_session_acknowledges_nothing) {
    static const ad_engine_hooks waiting = {wait_in_turn, drop_session, send_report, get_due, sweep_worker};
    for (int halted = 0; halted < 2; halted++) {
        ad_worker *w = start_worker();
        ad_worker_session *s = start_session(w, 0, "a");
        w->hooks.engine = &waiting;
        s->progress.complete = 1000;
        atomic_store(&s->move.halted, halted);
        queue_frame(s);
        ad__engine_pump(w);
        cr_assert_eq(s->output.appended > 0, !halted);
        stop_worker(w);
    }
}

/* ---- leaving ---- */

Test(engine, a_worker_that_leaves_joins_its_threads) {
    ad_worker *w = start_worker();
    script[0].end = AD_TURN_HEAVY;
    queue_frame(start_session(w, 0, "a"));
    pump_engine(w);
    sem_wait(&done);
    ad__engine_seize(w, INT64_MAX / 2);
    cr_expect_eq(w->engine.nthreads, 0, "a thread that has ended and is not joined leaks");
    stop_worker(w);
}

Test(engine, a_background_operation_that_goes_on_is_abandoned) {
    ad_worker *w = start_worker();
    pthread_mutex_lock(&w->engine.lock);
    w->engine.in_background++; /* its thread is one that does not return */
    pthread_mutex_unlock(&w->engine.lock);
    ad__engine_seize(w, 0);
    cr_expect_gt(w->engine.nthreads, 0, "joining would wait for the operation");
    w->engine.in_background--;
    stop_worker(w);
}
