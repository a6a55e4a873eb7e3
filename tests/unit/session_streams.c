/* Streams, events and windows of clients, on a device whose streams pass when the test says so. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "protocol/rows_request.h"
#include "server/worker/handlers.h"
#include "server/worker/io/input.h"
#include "server/worker/io/output.h"
#include "server/worker/session/session.h"
#include "server/worker/session/streams.h"
#include "server/worker/session/windows.h"
#include "tests/unit/worker/ops.h"

#define SEALS (F_SEAL_SHRINK | F_SEAL_SEAL)

static const ad_component *const components[] = {&ad__component_turn,    &ad__component_input,
                                                 &ad__component_output,  &ad__component_checkpoint,
                                                 &ad__component_buffers, &ad__component_checks,
                                                 &ad__component_events,  &ad__component_windows,
                                                 &ad__component_streams, NULL};

static ad_worker_session *start_session(bool asynchronous) {
    ad_worker *w = fake_worker(asynchronous, true, components);
    w->hooks.checkpoint = &ad__checkpoint_hooks;
    ad_worker_session *s = fake_session(w, 1, "alice");
    cr_assert_not_null(make_buffer(s, 1, 10));
    return s;
}

static int send_request(ad_worker_session *s, uint8_t opcode, uint64_t u0, uint64_t u1, uint64_t u2) {
    static ad_handler *const handlers[AD_REQUEST_LIMIT] = {
        [AD_REQ_STREAM] = ad__handle_stream, [AD_REQ_STREAM_DROP] = ad__handle_stream_drop,
        [AD_REQ_ON] = ad__handle_on,         [AD_REQ_EVENT] = ad__handle_event,
        [AD_REQ_WAIT] = ad__handle_wait,     [AD_REQ_EVENT_DROP] = ad__handle_event_drop,
        [AD_REQ_AFTER] = ad__handle_after,   [AD_REQ_ELAPSED] = ad__handle_elapsed};
    ad_message m = {.opcode = opcode, .row = ad__request(opcode), .u = {u0, u1, u2}};
    ad_fault fault = {0};
    return handlers[opcode](s, &m, &fault);
}

Test(streams, are_opened_and_dropped) {
    ad_worker_session *s = start_session(true);
    cr_assert_eq(send_request(s, AD_REQ_STREAM, 100, 0, 0), 0);
    cr_assert_eq(send_request(s, AD_REQ_STREAM, 100, 0, 0), AD_E_VALUE, "an id was used twice");
    cr_assert_eq(send_request(s, AD_REQ_STREAM, 101, 7, 0), AD_E_VALUE, "there is no device 7");
    cr_assert_eq(send_request(s, AD_REQ_ON, 100, 0, 0), 0);
    cr_assert_eq(s->streams.current, ad__stream_queue_known(s, 100));
    const int open = fake.open_streams;
    cr_assert_eq(send_request(s, AD_REQ_STREAM_DROP, 100, 0, 0), 0);
    cr_assert_null(s->streams.current);
    cr_assert_eq(send_request(s, AD_REQ_STREAM_DROP, 100, 0, 0), AD_E_STALE);
    cr_assert_eq(send_request(s, AD_REQ_STREAM, 102, 0, 0), 0);
    cr_assert_eq(fake.open_streams, open, "a dropped stream was not used again");
    end_worker(s);
}

Test(streams, an_event_is_reached_when_its_stream_has_passed) {
    ad_worker_session *s = start_session(true);
    sum x;
    cr_assert_eq(send_request(s, AD_REQ_STREAM, 100, 0, 0), 0);
    cr_assert_eq(send_request(s, AD_REQ_ON, 100, 0, 0), 0);
    cr_assert_eq(run_op(s, make_sum(&x, 3, true, 1, 0, 1)), 0);
    cr_assert_eq(send_request(s, AD_REQ_EVENT, 5, 100, 0), 0);
    cr_assert_eq(send_request(s, AD_REQ_EVENT, 6, 99, 0), AD_E_STALE);
    cr_assert_eq(send_request(s, AD_REQ_WAIT, 1, 1, 5), AD_WAITS, "the event is reached before its stream has passed");
    cr_assert_eq(s->wait.kind, AD_WAIT_EVENT);
    fake_pass();
    cr_assert(ad__session_poll(s));
    cr_assert_eq(send_request(s, AD_REQ_EVENT_DROP, 5, 0, 0), 0);
    cr_assert_eq(send_request(s, AD_REQ_EVENT_DROP, 5, 0, 0), AD_E_STALE);
    end_worker(s);
}

/* A mark launches the few operations of a device's list by themselves. A session that goes on comes to one soon. */
Test(streams, are_not_marked_for_a_session_that_has_its_next_turn) {
    ad_worker_session *s = start_session(true);
    sum x;
    cr_assert_eq(run_op(s, make_sum(&x, 3, true, 1, 0, 1)), 0);
    s->turns.goes_on = true;
    cr_assert(ad__session_poll(s));
    cr_assert_eq(s->streams.current->nmarks, 0);
    ad__session_await(s, AD_WAIT_ALL, NULL, NULL);
    cr_assert_not(ad__session_poll(s), "a session that waits for its stream does not wait");
    cr_assert_eq(s->streams.current->nmarks, 1);
    fake_pass();
    cr_assert(ad__session_poll(s));
    cr_assert_eq(run_op(s, make_sum(&x, 4, true, 1, 0, 1)), 0);
    s->turns.goes_on = false;
    cr_assert(ad__session_poll(s));
    cr_assert_eq(s->streams.current->nmarks, 1);
    end_worker(s);
}

/* Read buffer 1 on another stream, which must wait for all that the first one holds. */
static void expect_whole_wait(ad_worker_session *s, const ad_stream_queue *home) {
    sum x;
    cr_assert_eq(send_request(s, AD_REQ_STREAM, 100, 0, 0), 0);
    cr_assert_eq(send_request(s, AD_REQ_ON, 100, 0, 0), 0);
    cr_assert_eq(run_op(s, make_sum(&x, 3, true, 1, 0, 1)), 0);
    cr_assert_eq(ad__stream_queue_known(s, 100)->followed[home->slot], home->sequence,
                 "the other stream reads the array before it is written");
}

/* A read may be recorded before the session has enqueued anything, as the first request to a new worker is. Operations
 * of the session's only stream queue are not recorded. Another stream queue must wait for them all the same. */
Test(streams, another_one_waits_for_writes_after_a_read_before_everything) {
    ad_worker_session *s = start_session(true);
    ad_buffer *b = ad__buffers_find(&s->buffers, 1);
    ad_stream_queue *home = b->home;
    ad_fault fault = {0};
    sum x;
    cr_assert_eq(home->sequence, 0);
    cr_assert_eq(ad__stream_queue_uses(s, home, b, false, &fault), 0);
    cr_assert_eq(run_op(s, make_sum(&x, 1, false, 1, 0, 1)), 0);
    expect_whole_wait(s, home);
    end_worker(s);
}

/* Two streams that exchange arrays must not wait for each other's latest operations. */
Test(streams, another_one_waits_for_a_write_and_not_for_what_comes_after_it) {
    ad_worker_session *s = start_session(true);
    ad_stream_queue *home = ad__buffers_find(&s->buffers, 1)->home;
    const uint64_t before = home->sequence;
    ad_fault fault = {0};
    sum x;
    cr_assert_eq(send_request(s, AD_REQ_STREAM, 100, 0, 0), 0);
    cr_assert_eq(send_request(s, AD_REQ_STREAM, 101, 0, 0), 0);
    cr_assert_eq(run_op(s, make_sum(&x, 3, true, 1, 0, 1)), 0);
    cr_assert_eq(ad__stream_queues_mark(s, &fault), 0);
    cr_assert_eq(run_op(s, make_sum(&x, 4, true, 1, 0, 1)), 0);
    cr_assert_eq(send_request(s, AD_REQ_ON, 100, 0, 0), 0);
    const ad_stream_queue *other = ad__stream_queue_known(s, 100);
    cr_assert_eq(run_op(s, make_sum(&x, 5, true, 3, 0, 1)), 0);
    cr_assert_eq(other->followed[home->slot], before + 1, "it waits for the second sum, or for none");
    cr_assert_eq(run_op(s, make_sum(&x, 6, true, 4, 0, 1)), 0);
    cr_assert_eq(other->followed[home->slot], before + 2, "it reads the second sum before that is written");
    fake_pass();
    cr_assert_eq(ad__stream_queues_mark(s, &fault), 0);
    cr_assert_eq(ad__stream_queues_poll(s, &fault), 0);
    cr_assert_eq(send_request(s, AD_REQ_ON, 101, 0, 0), 0);
    cr_assert_eq(run_op(s, make_sum(&x, 7, true, 4, 0, 1)), 0);
    cr_assert_eq(ad__stream_queue_known(s, 101)->followed[home->slot], 0, "it waits for what is complete");
    end_worker(s);
}

/* A large part of an array comes from another device. What was enqueued before can be waited for without it. */
Test(streams, what_comes_before_much_of_another_device_is_marked) {
    ad_worker_session *s = start_session(true);
    ad_buffer *b = ad__buffers_find(&s->buffers, 1);
    const uint64_t size = b->size;
    sum x;
    s->worker->device.count = 2;
    cr_assert_eq(send_request(s, AD_REQ_STREAM, 100, 1, 0), 0);
    cr_assert_eq(send_request(s, AD_REQ_ON, 100, 0, 0), 0);
    const ad_stream_queue *queue = ad__stream_queue_known(s, 100);
    cr_assert_eq(run_op(s, make_sum(&x, 3, true, 1, 0, 1)), 0);
    cr_assert_eq(queue->nmarks, 0, "a small operation was marked");
    b->size = 1 << 30;
    cr_assert_eq(run_op(s, make_sum(&x, 4, true, 1, 0, 1)), 0);
    b->size = size;
    cr_assert_eq(queue->nmarks, 1);
    cr_assert_eq(queue->mark[queue->first_mark].sequence, 1);
    cr_assert_eq(queue->unmarked, 1);
    end_worker(s);
}

/* Two devices that copied from each other did so in turn where they had many operations under way: nothing marked what
 * the second one needed, so it waited for the first one's copy. */
Test(streams, a_fence_stands_for_a_mark_where_none_is_left) {
    ad_worker_session *s = start_session(true);
    ad_buffer *b = ad__buffers_find(&s->buffers, 1);
    const uint64_t size = b->size;
    ad_fault fault = {0};
    sum x;
    s->worker->device.count = 2;
    cr_assert_eq(send_request(s, AD_REQ_STREAM, 100, 1, 0), 0);
    cr_assert_eq(send_request(s, AD_REQ_ON, 100, 0, 0), 0);
    const ad_stream_queue *queue = ad__stream_queue_known(s, 100);
    for (uint64_t i = 0; i < AD_MARKS; i++) {
        cr_assert_eq(run_op(s, make_sum(&x, 3 + i, true, 1, 0, 1)), 0);
        cr_assert_eq(ad__stream_queues_mark(s, &fault), 0);
    }
    cr_assert_eq(run_op(s, make_sum(&x, 20, true, 1, 0, 1)), 0);
    b->size = 1 << 30;
    cr_assert_eq(run_op(s, make_sum(&x, 21, true, 1, 0, 1)), 0);
    b->size = size;
    cr_assert_eq(queue->fenced, AD_MARKS + 1);
    cr_assert_eq(send_request(s, AD_REQ_STREAM, 101, 1, 0), 0);
    cr_assert_eq(send_request(s, AD_REQ_ON, 101, 0, 0), 0);
    const ad_stream_queue *other = ad__stream_queue_known(s, 101);
    cr_assert_eq(run_op(s, make_sum(&x, 22, true, 20, 0, 1)), 0);
    cr_assert_eq(other->followed[queue->slot], AD_MARKS + 1, "it waits for what comes after the array, or for nothing");
    cr_assert_eq(run_op(s, make_sum(&x, 23, true, 21, 0, 1)), 0);
    cr_assert_eq(other->followed[queue->slot], AD_MARKS + 2);
    fake_pass();
    end_worker(s);
}

/* Operations of the only stream queue are not recorded, so what was recorded before them is not the latest write. */
Test(streams, another_one_waits_for_writes_that_were_not_recorded) {
    ad_worker_session *s = start_session(true);
    ad_buffer *b = ad__buffers_find(&s->buffers, 1);
    ad_stream_queue *home = b->home;
    ad_fault fault = {0};
    sum x;
    cr_assert_eq(ad__stream_queue_uses(s, home, b, true, &fault), 0);
    cr_assert_eq(ad__session_enqueued(s, home, &fault), 0);
    cr_assert_eq(ad__stream_queues_mark(s, &fault), 0);
    cr_assert_eq(run_op(s, make_sum(&x, 1, false, 1, 0, 1)), 0);
    expect_whole_wait(s, home);
    end_worker(s);
}

Test(streams, a_lost_device_ends_the_worker) {
    static const struct {
        uint8_t opcode;
        uint64_t u[3];
    } requests[] = {
        {AD_REQ_EVENT, {5, 0, 1}}, {AD_REQ_EVENT, {7, 0, 0}}, {AD_REQ_AFTER, {0, 5}}, {AD_REQ_ELAPSED, {1, 5, 6}}};
    ad_worker_session *s = start_session(true);
    cr_assert_eq(send_request(s, AD_REQ_EVENT, 5, 0, 1), 0);
    cr_assert_eq(send_request(s, AD_REQ_EVENT, 6, 0, 1), 0);
    fake_pass();
    cr_assert_eq(send_request(s, AD_REQ_ELAPSED, 1, 5, 6), 0);
    fake.lost = true;
    for (size_t i = 0; i < sizeof requests / sizeof *requests; i++) {
        const uint64_t *u = requests[i].u;
        fake.losses = 0;
        cr_assert_eq(send_request(s, requests[i].opcode, u[0], u[1], u[2]), AD_E_DEVICE_LOST);
        cr_assert_gt(fake.losses, 0, "request %u says nothing of the device", requests[i].opcode);
    }
    fake.lost = false;
    end_worker(s);
}

Test(streams, rows_are_restored) {
    ad_worker_session *s = start_session(false);
    ad_journal_row stream = {.kind = AD_JOURNAL_STREAM}, event = {.kind = AD_JOURNAL_EVENT};
    ad_fault fault = {0};
    cr_assert_eq(send_request(s, AD_REQ_STREAM, 100, 0, 1), 0);
    cr_assert_eq(send_request(s, AD_REQ_EVENT, 5, 100, 1), 0);
    cr_assert_eq(ad__component_of(s->worker, AD_JOURNAL_STREAM)->save(s, 100, &stream), 1);
    cr_assert_eq(ad__component_of(s->worker, AD_JOURNAL_EVENT)->save(s, 5, &event), 1);
    cr_assert_eq(ad__component_of(s->worker, AD_JOURNAL_EVENT)->save(s, 6, &event), 0);
    ad_worker_session *next = fake_session(s->worker, 2, "alice");
    stream.id = 100;
    event.id = 5;
    cr_assert_eq(ad__component_streams.restore(next, &stream, NULL, &fault), 0, "%s", fault.text);
    cr_assert_eq(ad__component_events.restore(next, &event, NULL, &fault), 0, "%s", fault.text);
    cr_assert_not_null(ad__stream_queue_known(next, 100));
    cr_assert_not_null(ad__component_events.place(next, 5));
    cr_assert_null(ad__component_events.place(next, 6));
    end_session(next);
    end_worker(s);
}

/* Pass a descriptor of a memory file, and ask for a window of it. */
static int open_window(ad_worker_session *s, uint64_t id, uint64_t size, int seals) {
    ad_message m = {.opcode = AD_REQ_WINDOW, .u = {id, size}};
    ad_fault fault = {0};
    int fd = memfd_create("window", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    cr_assert(fd >= 0 && ftruncate(fd, 4096) == 0 && fcntl(fd, F_ADD_SEALS, seals) == 0);
    cr_assert_eq(ad__descriptors_put(&s->windows.descriptors, fd), 0);
    return ad__handle_window(s, &m, &fault);
}

Test(windows, are_checked) {
    ad_worker_session *s = start_session(false);
    ad_fault fault = {0};
    cr_assert_eq(open_window(s, 1, 4096, SEALS), 0);
    cr_assert_neq(open_window(s, 2, 4096, 0), 0, "the client can shrink it");
    cr_assert_neq(open_window(s, 3, 8192, SEALS), 0, "it is larger than its file");
    cr_assert_eq(open_window(s, 1, 4096, SEALS), AD_E_VALUE, "an id was used twice");
    cr_assert_eq(s->windows.count, 1);
    cr_assert_not_null(ad__window_find(s, 1, 4000, 96, "test", &fault));
    cr_assert_null(ad__window_find(s, 1, 4000, 97, "test", &fault));
    cr_assert_null(ad__window_find(s, 1, UINT64_MAX, 2, "test", &fault));
    cr_assert_eq(s->windows.descriptors.count, 0);
    end_worker(s);
}

static int take_no_descriptor(void *user, uint64_t session, uint64_t number) {
    (void)user, (void)session, (void)number;
    return -1;
}

/* A window whose descriptor went with a worker must not stand for other memory: the client's may still be in use. */
Test(windows, are_lost_without_their_descriptor) {
    ad_worker_session *s = start_session(false);
    const ad_left_behind left = {.take_descriptor = take_no_descriptor};
    ad_journal_row row = {.kind = AD_JOURNAL_WINDOW};
    ad_message load = {.opcode = AD_REQ_LOAD, .u = {1, 0, 7, 0, 8}}, drop = {.opcode = AD_REQ_WINDOW_DROP, .u = {7}};
    ad_fault fault = {0};
    cr_assert_eq(open_window(s, 7, 4096, SEALS), 0);
    cr_assert_eq(ad__component_windows.save(s, 7, &row), 1);
    row.id = 7;
    ad_worker_session *next = fake_session(s->worker, 2, "alice");
    cr_assert_eq(ad__component_windows.restore(next, &row, &left, &fault), 0, "%s", fault.text);
    cr_assert_null(ad__window_find(next, 7, 0, 8, "fetch", &fault));
    cr_assert_eq(fault.code, AD_E_STALE);
    cr_assert_eq(ad__handle_load(next, &load, &fault), AD_E_STALE);
    cr_assert_eq(ad__handle_window_drop(next, &drop, &fault), 0, "%s", fault.text);
    end_session(next);
    end_worker(s);
}

Test(windows, close_late_where_operations_may_be_repeated) {
    ad_worker_session *s = start_session(true);
    ad_message drop = {.opcode = AD_REQ_WINDOW_DROP, .u = {1}};
    ad_fault fault = {0};
    cr_assert_eq(open_window(s, 1, 4096, SEALS), 0);
    fake_pass();
    ad__session_poll(s);
    ad__checkpoint_commit(s);
    cr_assert_eq(s->windows.bytes, 4096);
    cr_assert_eq(ad__handle_window_drop(s, &drop, &fault), 0);
    cr_assert_eq(s->windows.count, 0);
    cr_assert_eq(s->windows.bytes, 4096, "the window was closed before a checkpoint without it");
    fake_pass();
    for (int i = 0; i < 3; i++) {
        ad__session_poll(s);
        ad__checkpoint_commit(s);
    }
    cr_assert_eq(s->windows.bytes, 0);
    end_worker(s);
}
