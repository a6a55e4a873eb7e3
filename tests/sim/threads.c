/* Threads as tasks: the functions of pthread and the clocks. They stand before the C library's for all that is loaded,
 * so that the late backend's threads are tasks, too. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/sim/sim.h"

#define EPOCH 1700000000 /* seconds of the calendar at which a run begins */

/* What stands at the beginning of a mutex, and of a condition. All zero is the state of both at first. */
typedef struct mutex {
    int owner;
} mutex;

static bool is_unlocked(sim_task *t, void *m) {
    (void)t;
    return !((mutex *)m)->owner;
}

int pthread_mutex_init(pthread_mutex_t *m, const pthread_mutexattr_t *attributes) {
    (void)attributes;
    memset(m, 0, sizeof *m);
    return 0;
}

int pthread_mutex_destroy(pthread_mutex_t *m) {
    (void)m;
    return 0;
}

int pthread_mutex_lock(pthread_mutex_t *lock) {
    mutex *m = (mutex *)(void *)lock;
    if (!sim_current) return 0;
    sim_pass_call("lock");
    if (m->owner == sim_current->number) sim_fail("task %d locks what it has locked", sim_current->number);
    while (m->owner) sim_wait("lock", is_unlocked, m, INT64_MAX);
    m->owner = sim_current->number;
    return 0;
}

int pthread_mutex_trylock(pthread_mutex_t *lock) {
    mutex *m = (mutex *)(void *)lock;
    if (!sim_current) return 0;
    if (m->owner) return EBUSY;
    m->owner = sim_current->number;
    return 0;
}

int pthread_mutex_unlock(pthread_mutex_t *lock) {
    mutex *m = (mutex *)(void *)lock;
    if (!sim_current) return 0;
    if (m->owner != sim_current->number) sim_fail("task %d unlocks what it has not locked", sim_current->number);
    m->owner = 0;
    sim_pass_call("unlock");
    return 0;
}

/* ---- conditions ---- */

static bool is_signalled(sim_task *t, void *condition) {
    (void)condition;
    return !t->condition;
}

int pthread_condattr_init(pthread_condattr_t *a) {
    (void)a;
    return 0;
}
int pthread_condattr_destroy(pthread_condattr_t *a) {
    (void)a;
    return 0;
}
int pthread_condattr_setclock(pthread_condattr_t *a, clockid_t clock) {
    (void)a, (void)clock;
    return 0;
}
int pthread_cond_init(pthread_cond_t *c, const pthread_condattr_t *a) {
    (void)a;
    memset(c, 0, sizeof *c);
    return 0;
}
int pthread_cond_destroy(pthread_cond_t *c) {
    (void)c;
    return 0;
}

static int wait_for_condition(pthread_cond_t *c, pthread_mutex_t *m, int64_t until) {
    sim_task *t = sim_current;
    t->condition = c;
    ((mutex *)(void *)m)->owner = 0;
    if (sim_draw_case(sim_planned.spurious)) until = sim_time + 1 + (int64_t)sim_draw_below(100000);
    const bool told = sim_wait("condition", is_signalled, c, until);
    t->condition = NULL;
    while (((mutex *)(void *)m)->owner) sim_wait("lock", is_unlocked, m, INT64_MAX);
    ((mutex *)(void *)m)->owner = t->number;
    return told ? 0 : ETIMEDOUT;
}

int pthread_cond_wait(pthread_cond_t *c, pthread_mutex_t *m) {
    wait_for_condition(c, m, INT64_MAX);
    return 0;
}

int pthread_cond_timedwait(pthread_cond_t *c, pthread_mutex_t *m, const struct timespec *t) {
    return wait_for_condition(c, m, (int64_t)t->tv_sec * 1000000000 + t->tv_nsec);
}

int pthread_cond_clockwait(pthread_cond_t *c, pthread_mutex_t *m, clockid_t clock, const struct timespec *t) {
    (void)clock;
    return pthread_cond_timedwait(c, m, t);
}

int pthread_cond_signal(pthread_cond_t *c) {
    if (sim_current) sim_signal_condition(c, false);
    return 0;
}

int pthread_cond_broadcast(pthread_cond_t *c) {
    if (sim_current) sim_signal_condition(c, true);
    return 0;
}

/* ---- threads ---- */

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *), void *argument) {
    sim_pass_call("pthread_create");
    int state = PTHREAD_CREATE_JOINABLE;
    if (attributes) pthread_attr_getdetachstate(attributes, &state);
    sim_task *t = sim_add_task(sim_self(), run, argument);
    t->detached = state == PTHREAD_CREATE_DETACHED;
    *thread = (pthread_t)t->number;
    sim_note("thread", t->number, 0);
    return 0;
}

static bool has_ended(sim_task *t, void *other) {
    (void)t;
    return ((sim_task *)other)->done;
}

int pthread_join(pthread_t thread, void **result) {
    sim_task *t = sim_find_task((int)thread);
    if (!t) return ESRCH;
    sim_wait("join", has_ended, t, INT64_MAX);
    if (result) *result = t->result;
    t->detached = true;
    return 0;
}

int pthread_detach(pthread_t thread) {
    sim_task *t = sim_find_task((int)thread);
    if (t) t->detached = true;
    return 0;
}

pthread_t pthread_self(void) { return sim_current ? (pthread_t)sim_current->number : 1; }

int pthread_once(pthread_once_t *once, void (*run)(void)) {
    if (*once) return 0;
    *once = 1;
    run();
    return 0;
}

int sched_yield(void) {
    sim_pass_call("sched_yield");
    if (sim_current) sim_wait("sched_yield", NULL, NULL, sim_time + 1 + (int64_t)sim_draw_below(2000));
    return 0;
}

/* ---- the clock ---- */

int clock_gettime(clockid_t clock, struct timespec *t) {
    sim_pass_call("clock_gettime");
    *t = (struct timespec){sim_time / 1000000000, sim_time % 1000000000};
    if (clock == CLOCK_REALTIME) t->tv_sec += EPOCH;
    return 0;
}

time_t time(time_t *out) {
    const time_t now = EPOCH + sim_time / 1000000000;
    if (out) *out = now;
    return now;
}

int nanosleep(const struct timespec *t, struct timespec *left) {
    (void)left;
    if (sim_current) sim_wait("nanosleep", NULL, NULL, sim_time + 1 + (int64_t)t->tv_sec * 1000000000 + t->tv_nsec);
    return 0;
}

int usleep(useconds_t us) { return nanosleep(&(struct timespec){us / 1000000, (long)(us % 1000000) * 1000}, NULL); }
