/* How tests end sessions and workers, so that the leak sanitizer finds what the product forgets to free. The tests are
 * those of the rooms from checkpoint on. */
#ifndef AD_TESTS_UNIT_WORKER_END_H
#define AD_TESTS_UNIT_WORKER_END_H

#include <criterion/criterion.h>

#include "server/worker/checkpoint/checkpoint.h"
#include "tests/unit/worker/fake.h"

/* Drop and close a session, whose streams have passed. */
static inline void end_session(ad_worker_session *s) {
    fake_pass();
    ad__session_poll(s);
    ad__checkpoint_give_up(s);
    pthread_mutex_lock(&s->worker->engine.lock);
    if (!ad__run_is_over(s)) ad__run_enter(s, AD_RUN_OVER);
    ad__run_enter(s, AD_RUN_DROPPING);
    pthread_mutex_unlock(&s->worker->engine.lock);
    while (!ad__components_drop(s)) continue;
    fake_session_close(s);
}

/* End the only session of a worker, and the worker. The device has nothing of them then. */
static inline void end_worker(ad_worker_session *s) {
    ad_worker *w = s->worker;
    end_session(s);
    cr_assert_eq(w->device.gpu[0].memory.used, 0);
    cr_assert_eq(fake.open_slabs + fake.open_streams + fake.open_events, 0);
    fake_worker_close(w);
}

#endif
