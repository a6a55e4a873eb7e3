/* Parts of a device: when multiprocessors are reserved, whose operations leave them alone, and when that is over. */
#include <criterion/criterion.h>

#include "server/common/os.h"
#include "server/worker/device/parts.h"
#include "tests/unit/worker/ops.h"

#define SHARE 8
#define SHORT 10000
#define LONG 3000000 /* more than a session may have in its window and stay light */

static const ad_component *const components[] = {&ad__component_turn,    &ad__component_input, &ad__component_output,
                                                 &ad__component_buffers, &ops_streams,         NULL};

typedef struct pair {
    ad_worker *worker;
    ad_worker_session *light, *heavy;
    ad_gpu *gpu;
} pair;

static pair start_pair(int share) {
    pair p;
    p.worker = fake_worker(true, false, components);
    p.worker->config.sm_share = (uint64_t)share;
    p.light = fake_session(p.worker, 1, "alice");
    p.heavy = fake_session(p.worker, 2, "bob");
    p.gpu = &p.worker->device.gpu[0];
    fake.parts = share;
    fake.splits = 0;
    return p;
}

static void end_pair(pair p) {
    fake_pass();
    p.worker->engine.under_way = NULL;
    end_session(p.light);
    end_session(p.heavy);
    fake_worker_close(p.worker);
}

/* Let so much time pass for the device's parts: what they remember is that much longer ago. */
static void pass_time(const pair *p, int64_t ns) {
    p->gpu->parts.light.at -= ns;
    p->gpu->parts.heavy.at -= ns;
    p->gpu->parts.decided -= ns;
}

/* Enqueue an operation of `ns`, a millisecond after the one before. Returns how many multiprocessors it leaves alone.
 */
static int enqueue_work(const pair *p, ad_worker_session *s, int64_t ns) {
    pass_time(p, 1000000);
    const int64_t corrected = ad__stream_queue_charge(s, ns);
    ad_stream_queue *queue = ad__stream_queue_current(s, NULL);
    ad__stream_queue_expect(queue, ns, corrected);
    cr_assert_eq(ad__session_enqueued(s, queue, NULL), 0);
    return fake_confined(queue->stream);
}

static int get_reserved(const pair *p) { return ad__parts_reserved(p->gpu, ad__os_now()); }

Test(parts, begin_with_the_second_session) {
    pair p = start_pair(SHARE);
    cr_assert_eq(enqueue_work(&p, p.heavy, LONG), 0);
    cr_assert_eq(enqueue_work(&p, p.heavy, LONG), 0, "nobody else is there");
    cr_assert_eq(get_reserved(&p), 0);
    cr_assert_eq(enqueue_work(&p, p.light, SHORT), 0, "they are reserved for it");
    cr_assert_eq(get_reserved(&p), SHARE);
    cr_assert_eq(enqueue_work(&p, p.heavy, LONG), SHARE);
    cr_assert_eq(enqueue_work(&p, p.light, SHORT), 0);
    cr_assert_eq(fake.splits, 1);
    end_pair(p);
}

Test(parts, end_when_the_light_session_is_gone) {
    pair p = start_pair(SHARE);
    enqueue_work(&p, p.heavy, LONG);
    enqueue_work(&p, p.light, SHORT);
    cr_assert_eq(enqueue_work(&p, p.heavy, LONG), SHARE);
    pass_time(&p, AD_PARTS_HOLD);
    cr_assert_eq(get_reserved(&p), 0);
    cr_assert_eq(enqueue_work(&p, p.heavy, LONG), 0);
    enqueue_work(&p, p.light, SHORT);
    cr_assert_eq(enqueue_work(&p, p.heavy, LONG), SHARE, "they do not come again");
    end_pair(p);
}

Test(parts, end_when_the_heavy_session_has_nothing_left) {
    pair p = start_pair(SHARE);
    enqueue_work(&p, p.heavy, LONG);
    enqueue_work(&p, p.light, SHORT);
    p.worker->engine.under_way = p.heavy;
    pass_time(&p, AD_PARTS_HOLD);
    enqueue_work(&p, p.light, SHORT);
    cr_assert_eq(get_reserved(&p), SHARE, "the device still works for the heavy session");
    fake_pass();
    cr_assert_eq(ad__stream_queues_mark(p.heavy, NULL), 0);
    cr_assert_eq(ad__stream_queues_poll(p.heavy, NULL), 0);
    enqueue_work(&p, p.light, SHORT);
    cr_assert_eq(get_reserved(&p), 0);
    end_pair(p);
}

Test(parts, are_not_for_a_session_that_becomes_heavy_alone) {
    pair p = start_pair(SHARE);
    cr_assert_eq(enqueue_work(&p, p.light, SHORT), 0);
    cr_assert_eq(enqueue_work(&p, p.light, LONG), 0);
    cr_assert_eq(enqueue_work(&p, p.light, LONG), 0, "it leaves multiprocessors to itself");
    cr_assert_eq(fake.splits, 0);
    cr_assert_eq(fake.confines, 0);
    end_pair(p);
}

Test(parts, are_not_for_light_sessions_alone) {
    pair p = start_pair(SHARE);
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(enqueue_work(&p, p.light, SHORT), 0);
        cr_assert_eq(enqueue_work(&p, p.heavy, SHORT), 0);
    }
    cr_assert_eq(fake.splits, 0);
    end_pair(p);
}

Test(parts, are_as_large_as_a_grant_says) {
    pair p = start_pair(SHARE);
    p.light->grants.sm_share = AD_GRANT_NO_SHARE;
    enqueue_work(&p, p.heavy, LONG);
    enqueue_work(&p, p.light, SHORT);
    cr_assert_eq(get_reserved(&p), 0, "its share is none");
    p.light->grants.sm_share = 2 * SHARE;
    enqueue_work(&p, p.light, SHORT);
    cr_assert_eq(p.gpu->parts.asked, 2 * SHARE);
    p.light->grants.sm_share = 100;
    enqueue_work(&p, p.light, SHORT);
    cr_assert_eq(p.gpu->parts.asked, 132 / 8, "a grant takes the device from the others");
    p.light->grants.sm_share = 0;
    p.light->grants.priority = AD_PRIORITY_LOW;
    cr_assert_eq(enqueue_work(&p, p.light, SHORT), SHARE, "what is reserved for others is had by low priority");
    end_pair(p);
}

Test(parts, are_not_where_the_option_or_the_device_has_none) {
    pair p = start_pair(0);
    enqueue_work(&p, p.heavy, LONG);
    enqueue_work(&p, p.light, SHORT);
    cr_assert_eq(fake.splits, 0);
    p.worker->config.sm_share = SHARE;
    for (int i = 0; i < 3; i++) {
        enqueue_work(&p, p.light, SHORT);
        cr_assert_eq(enqueue_work(&p, p.heavy, LONG), 0);
    }
    cr_assert_eq(fake.splits, 1, "a device that cannot be divided is asked again and again");
    end_pair(p);
}

Test(parts, a_stream_that_cannot_be_confined_has_the_whole_device) {
    pair p = start_pair(SHARE);
    enqueue_work(&p, p.heavy, LONG);
    enqueue_work(&p, p.light, SHORT);
    fake.confine_fail = AD_E_MEMORY;
    cr_assert_eq(enqueue_work(&p, p.heavy, LONG), 0);
    fake.confine_fail = 0;
    cr_assert_eq(enqueue_work(&p, p.heavy, LONG), 0, "it tries again with each operation");
    cr_assert_eq(get_reserved(&p), 0);
    pass_time(&p, AD_PARTS_HOLD);
    enqueue_work(&p, p.heavy, LONG);
    enqueue_work(&p, p.light, SHORT);
    cr_assert_eq(enqueue_work(&p, p.heavy, LONG), SHARE);
    end_pair(p);
}

Test(parts, a_device_is_prepared_where_the_option_says_so) {
    pair p = start_pair(0);
    ad__parts_prepare(p.worker, p.gpu);
    cr_assert_eq(fake.splits, 0);
    p.worker->config.sm_share = SHARE;
    ad__parts_prepare(p.worker, p.gpu);
    cr_assert_eq(fake.splits, 1);
    p.worker->embedded = true;
    ad__parts_prepare(p.worker, p.gpu);
    cr_assert_eq(fake.splits, 1, "the server of one program waits for it as well");
    p.worker->embedded = false;
    cr_assert_eq(get_reserved(&p), 0);
    end_pair(p);
}
