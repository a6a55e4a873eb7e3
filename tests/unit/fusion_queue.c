/* The fusion queue: operations wait for others, are executed in their order, and temporaries that nobody reads go. */
#include <criterion/criterion.h>

#include "server/common/os.h"
#include "server/worker/device/cost.h"
#include "server/worker/fusion/queue.h"
#include "server/worker/io/input.h"
#include "server/worker/io/output.h"
#include "tests/unit/worker/ops.h"

static const ad_component *const components[] = {&ad__component_turn,
                                                 &ad__component_input,
                                                 &ad__component_output,
                                                 &ad__component_fusion,
                                                 &ad__component_checkpoint,
                                                 &ad__component_buffers,
                                                 &ad__component_checks,
                                                 &ops_streams,
                                                 NULL};

static ad_worker_session *start_session_on(bool asynchronous) {
    ad_worker *w = fake_worker(asynchronous, false, components);
    w->hooks.checkpoint = &ad__checkpoint_hooks;
    w->fuses = AD_FUSE_ALWAYS;
    ad_worker_session *s = fake_session(w, 1, "alice");
    cr_assert_not_null(make_buffer(s, 1, 10));
    cr_assert_not_null(make_buffer(s, 2, 20));
    s->fusion.turn_until = INT64_MAX;
    return s;
}

static ad_worker_session *start_session(void) {
    ad_worker_session *s = start_session_on(false);
    ad_input_frame more = {0}; /* more is at hand, so it is worth waiting */
    cr_assert_eq(ad__engine_queue_frames(s, &more, 1), 0);
    return s;
}

/* Keep the device busy with work of so many expected ns. */
static void enqueue_work(ad_worker_session *s, int64_t ns) {
    ad_fault fault = {0};
    ad_stream_queue *queue = ad__stream_queue_current(s, &fault);
    cr_assert_not_null(queue);
    cr_assert_eq(s->worker->backend->stream_follow(queue->stream, NULL, &fault), 0); /* anything that is enqueued */
    ad__stream_queue_expect(queue, ns, ns);
    cr_assert_eq(ad__session_enqueued(s, queue, &fault), 0);
}

static ad_fusion_offer offer_sum_of_cost(ad_worker_session *s, ad_op *op, int64_t ns) {
    s->messages.cost = ns;
    ad_fusion_offer taken = ad__fusion_offer(s, op);
    if (taken == AD_FUSION_REFUSED) return taken;
    s->progress.done++;
    return taken;
}

static ad_fusion_offer offer_sum(ad_worker_session *s, ad_op *op) { return offer_sum_of_cost(s, op, 1); }

Test(fusion, operations_wait_and_run_in_order) {
    ad_worker_session *s = start_session();
    sum x[4];
    cr_assert_eq(offer_sum(s, make_sum(&x[0], 3, true, 1, 2, 0)), AD_FUSION_QUEUED);
    cr_assert_eq(offer_sum(s, make_sum(&x[1], 4, true, 3, 0, 1)), AD_FUSION_QUEUED);
    cr_assert_eq(offer_sum(s, make_sum(&x[2], 5, true, 4, 3, 0)), AD_FUSION_QUEUED);
    cr_assert_eq(fake.runs, 0);
    cr_assert_eq(s->fusion.count, 3);
    cr_assert(ad__buffers_find(&s->buffers, 5)->promised);
    ad__fusion_flush(s);
    cr_assert_eq(fake.runs, 3);
    cr_assert_eq(s->fusion.count, 0);
    cr_assert_eq(get_value(s, 3), 30);
    cr_assert_eq(get_value(s, 4), 31);
    cr_assert_eq(get_value(s, 5), 61);
    end_worker(s);
}

Test(fusion, a_drain_goes_on_in_the_next_turn_where_operations_are_long) {
    ad_worker_session *s = start_session();
    sum x[3];
    for (unsigned i = 0; i < 3; i++)
        cr_assert_eq(offer_sum_of_cost(s, make_sum(&x[i], 3 + i, true, 1, 2, 0), 1000 * AD_CHEAP), AD_FUSION_QUEUED);
    s->fusion.turn_until = 0; /* each turn is over after its first operation */
    cr_assert(!ad__fusion_drain(s));
    cr_assert_eq(fake.runs, 1);
    cr_assert(!ad__fusion_continue(s));
    cr_assert_eq(fake.runs, 2);
    while (!ad__fusion_continue(s)) cr_assert_leq(fake.runs, 3);
    cr_assert_eq(fake.runs, 3);
    cr_assert_eq(s->fusion.count, 0);
    cr_assert_eq(get_value(s, 5), 30);
    end_worker(s);
}

Test(fusion, operations_wait_while_the_device_is_busy) {
    const int64_t hour = 3600000000000;
    ad_worker_session *s = start_session_on(true);
    sum x[3];
    cr_assert_eq(offer_sum(s, make_sum(&x[0], 3, true, 1, 2, 0)), AD_FUSION_REFUSED, "the device is idle");
    enqueue_work(s, AD_MARK_NS + 1);
    cr_assert_eq(offer_sum(s, make_sum(&x[0], 3, true, 1, 2, 0)), AD_FUSION_REFUSED, "it will soon be idle");
    enqueue_work(s, hour);
    cr_assert_eq(offer_sum(s, make_sum(&x[0], 3, true, 1, 2, 0)), AD_FUSION_QUEUED);
    cr_assert_eq(offer_sum(s, make_sum(&x[1], 4, true, 3, 0, 1)), AD_FUSION_QUEUED);
    const int64_t wait = ad__fusion_time_to_wait(s);
    cr_assert(hour / 2 < wait && wait < hour, "%ld ns", (long)wait);
    ad__session_await_more(s, wait);
    cr_assert(!ad__session_poll(s));
    cr_assert_eq(fake.runs, 0);
    fake_pass();
    cr_assert(ad__session_poll(s), "the device has nothing to do");
    cr_assert_eq(ad__fusion_time_to_wait(s), 0);
    cr_assert(ad__fusion_drain(s));
    cr_assert_eq(fake.runs, 2);
    cr_assert_eq(get_value(s, 4), 31);
    fake_pass();
    end_worker(s);
}

/* The sum of the first elements of two arrays, as often as it takes to keep a device busy for long. */
static ad_op *make_long_sum(sum *x, uint64_t out) {
    static const int64_t shape[1] = {1 << 28}, strides[1] = {8}, none[1] = {0};
    ad_op *op = make_sum(x, out, true, 1, 2, 0);
    for (int i = 0; i < 3; i++) {
        x->operand[i].desc.shape = shape;
        x->operand[i].desc.strides = i ? none : strides;
    }
    return op;
}

Test(fusion, long_operations_wait_for_others_though_the_device_is_idle) {
    ad_worker_session *s = start_session_on(true);
    sum x[2];
    const int64_t ns = ad__device_cost(make_long_sum(&x[0], 3));
    cr_assert_eq(offer_sum(s, &x[0].op), AD_FUSION_QUEUED);
    cr_assert(ns > AD_FUSION_LONG_NS && s->fusion.patience == ns / AD_FUSION_PATIENCE);
    cr_assert_eq(offer_sum(s, make_long_sum(&x[1], 4)), AD_FUSION_QUEUED);
    cr_assert_leq(s->fusion.patient_until, s->fusion.patient_most);
    s->fusion.patient_until = ad__os_now() + 3600000000000;
    const int64_t wait = ad__fusion_time_to_wait(s);
    cr_assert_gt(wait, 0);
    ad__session_await_more(s, wait);
    cr_assert(!ad__session_poll(s), "the device is idle, and others may come");
    s->fusion.patient_until = ad__os_now();
    cr_assert(ad__session_poll(s));
    cr_assert_eq(ad__fusion_time_to_wait(s), 0);
    for (uint64_t id = 3; id < 5; id++) cr_assert(ad__fusion_defer_buffer(s, ad__buffers_find(&s->buffers, id)));
    cr_assert(ad__fusion_drain(s));
    cr_assert_eq(s->fusion.dropped, 2);
    cr_assert_eq(offer_sum(s, make_sum(&x[0], 5, true, 1, 2, 0)), AD_FUSION_REFUSED, "what is short runs at once");
    end_worker(s);
}

/* A copy of many elements from one array. */
static ad_op *make_long_copy(sum *x, uint64_t out) {
    make_long_sum(x, out);
    x->op.row = AD_UFUNC_copy;
    x->op.nin = 1;
    return &x->op;
}

/* While a large copy between devices waited, the link between them had nothing to do. */
Test(fusion, a_large_copy_from_another_device_does_not_wait_for_others) {
    ad_worker_session *s = start_session_on(true);
    ad_buffer *from = ad__buffers_find(&s->buffers, 1);
    const uint64_t size = from->size;
    ad_fault fault = {0};
    sum x;
    s->worker->device.count = 2;
    cr_assert_eq(ad__stream_queue_open(s, 100, 1, false, &fault), 0, "%s", fault.text);
    from->size = 1 << 30;
    cr_assert_eq(offer_sum(s, make_long_copy(&x, 3)), AD_FUSION_QUEUED, "a copy within a device");
    ad__fusion_flush(s);
    s->streams.current = ad__stream_queue_known(s, 100);
    cr_assert_eq(offer_sum(s, make_long_copy(&x, 4)), AD_FUSION_REFUSED);
    from->size = 1 << 20;
    cr_assert_eq(offer_sum(s, make_long_copy(&x, 4)), AD_FUSION_QUEUED, "a copy of few bytes");
    from->size = size;
    ad__fusion_flush(s);
    fake_pass();
    end_worker(s);
}

Test(fusion, what_nobody_reads_is_not_computed) {
    ad_worker_session *s = start_session();
    sum x[2];
    cr_assert_eq(offer_sum(s, make_sum(&x[0], 3, true, 1, 2, 0)), AD_FUSION_QUEUED);
    ad_buffer *b = ad__buffers_find(&s->buffers, 3);
    cr_assert(ad__fusion_defer_buffer(s, b), "a queued buffer is freed at once");
    cr_assert_null(ad__buffers_find(&s->buffers, 3));
    cr_assert_eq(offer_sum(s, make_sum(&x[1], 4, true, 1, 0, 1)), AD_FUSION_QUEUED);
    ad__fusion_flush(s);
    cr_assert_eq(get_value(s, 4), 11);
    cr_assert_eq(fake.runs, 1, "%d operations ran", fake.runs);
    cr_assert_eq(s->fusion.dropped, 1);
    end_worker(s);
}

Test(fusion, a_failure_poisons_the_right_outputs) {
    ad_worker_session *s = start_session();
    sum x[3];
    cr_assert_eq(offer_sum(s, make_sum(&x[0], 3, true, 1, 2, 0)), AD_FUSION_QUEUED);
    cr_assert_eq(offer_sum(s, make_sum(&x[1], 4, true, 3, 0, 1)), AD_FUSION_QUEUED);
    cr_assert_eq(offer_sum(s, make_sum(&x[2], 5, true, 2, 0, 1)), AD_FUSION_QUEUED);
    fake.fail = AD_E_VALUE;
    ad__fusion_flush(s);
    cr_assert_not_null(ad__buffers_find(&s->buffers, 3)->poison);
    cr_assert_not_null(ad__buffers_find(&s->buffers, 4)->poison);
    cr_assert_eq(get_value(s, 5), 21);
    end_worker(s);
}

Test(fusion, a_dropped_session_forgets_its_queue) {
    ad_worker_session *s = start_session();
    sum x;
    cr_assert_eq(offer_sum(s, make_sum(&x, 3, true, 1, 2, 0)), AD_FUSION_QUEUED);
    end_worker(s);
    cr_assert_eq(fake.runs, 0);
}
