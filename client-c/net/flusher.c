/* The flusher: a thread of each session that sends what other threads have left in output.gathered, and resumes the
 * session.
 *
 *   first request --> RUNNING: looks every TICK_NS --- IDLE_TICKS without traffic ---> ASLEEP
 *                        ^                                                               |
 *                        +--------------------- ad__flusher_wake ------------------------+
 *
 * Asleep it has no timer, except where no other thread would notice that the connection broke. */
#include <errno.h>
#include <signal.h>
#include <sys/prctl.h>
#include <time.h>

#include "client-c/client.h"

#define TICK_NS 60000
#define DEEP 4096 /* operations in flight from which on the ticks are long: they keep the server busy for longer */
#define DEEP_TICK_NS 1000000 /* long tick: shorter ones would take processor time from other threads */
#define IDLE_TICKS 12
#define STACK_SIZE (256u << 10)
#define LOOK_NS 1000000000u /* time between two checks of an idle connection */
#define SOON_NS 5000000u    /* time before the first check after a fork; it then doubles up to LOOK_NS */

static bool has_work(const ad_session *s) { return s->output.gathered.size || s->frees.count || ad__has_unsent(s); }

/* Read acknowledgements when many operations are in flight. A program that waits for no reply then need not stop at a
 * full window to read them. The unacknowledged bytes stay few enough for the cache. */
static void read_due_acks(ad_session *s) {
    const uint64_t in_flight = s->encoded.ops - s->window.acked;
    if (s->input.reading || s->resume.lost || (in_flight < DEEP && in_flight < s->window.ops / 32)) return;
    ad__read_now(s, false);
}

/* Sleep until there is work, or until the connection is to be checked. Two kinds of connections are checked. The server
 * waits only for a limited time for those over a network. Others have a fork message on its way. That message must be
 * sent again when the connection breaks: the parent may wait for its child, and the child for the server. *look: time
 * until the next check. */
static void sleep_until_signal(ad_session *s, uint64_t *look) {
    const bool forked = ad__has_pending_fork(s);
    if (!forked && (!s->resume.enabled || !ad__is_remote(&s->connection.address))) {
        pthread_cond_wait(&s->flusher.work, &s->lock);
        return;
    }
    uint64_t until = ad__now() + (forked ? *look : LOOK_NS);
    struct timespec t = {(time_t)(until / 1000000000u), (long)(until % 1000000000u)};
    if (pthread_cond_timedwait(&s->flusher.work, &s->lock, &t) == ETIMEDOUT) ad__resume_check(s);
    *look = *look < LOOK_NS / 2 ? 2 * *look : LOOK_NS;
}

static void await_work(ad_session *s) {
    uint64_t look = SOON_NS;
    s->flusher.asleep = true;
    while (s->flusher.asleep && !s->dead) sleep_until_signal(s, &look);
    s->flusher.asleep = false;
}

static void *run_flusher(void *argument) {
    ad_session *s = argument;
    int idle = 0;
    long tick = TICK_NS;
    prctl(PR_SET_TIMERSLACK, 1000);
    prctl(PR_SET_NAME, "arrayd-flush");
    pthread_mutex_lock(&s->lock);
    while (!s->dead) {
        pthread_mutex_unlock(&s->lock);
        nanosleep(&(struct timespec){.tv_nsec = tick}, NULL);
        pthread_mutex_lock(&s->lock);
        if (s->resume.lost) ad__reconnect(s);
        idle = has_work(s) ? 0 : idle + 1;
        if (idle == 0 && !s->output.writing)
            ad__push_output(s); /* a failure ends the session, and the next call reports it */
        read_due_acks(s);
        tick = s->encoded.ops - s->window.acked < DEEP ? TICK_NS : DEEP_TICK_NS;
        if (idle == IDLE_TICKS) {
            await_work(s);
            idle = 0;
        }
    }
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* Start the thread with all signals blocked: signals are for the program's threads. */
static bool start_flusher(ad_session *s) {
    pthread_attr_t attributes;
    sigset_t all, before;
    if (pthread_attr_init(&attributes) != 0) return false;
    pthread_attr_setstacksize(&attributes, STACK_SIZE);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    s->flusher.runs = pthread_create(&s->flusher.thread, &attributes, run_flusher, s) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return s->flusher.runs;
}

bool ad__flusher_wake(ad_session *s) {
    if (s->dead) return true;
    if (!s->flusher.runs) return start_flusher(s);
    if (s->flusher.asleep) {
        s->flusher.asleep = false;
        pthread_cond_signal(&s->flusher.work);
    }
    return true;
}

void ad__flusher_stop(ad_session *s) {
    pthread_mutex_lock(&s->lock);
    bool runs = s->flusher.runs;
    pthread_mutex_unlock(&s->lock);
    if (runs) pthread_join(s->flusher.thread, NULL);
}
