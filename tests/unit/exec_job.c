/* One operation: operands, memory, failures, and checks that fail later, on a device in this process. */
#include <criterion/criterion.h>

#include "protocol/rows_call.h"
#include "server/worker/device/cost.h"
#include "server/worker/io/input.h"
#include "server/worker/io/output.h"
#include "tests/unit/worker/ops.h"

static const ad_component *const components[] = {
    &ad__component_turn,    &ad__component_input,  &ad__component_output, &ad__component_checkpoint,
    &ad__component_buffers, &ad__component_checks, &ops_streams,          NULL};

static ad_worker_session *start_session(bool asynchronous, bool journaled) {
    ad_worker *w = fake_worker(asynchronous, journaled, components);
    w->hooks.checkpoint = &ad__checkpoint_hooks;
    ad_worker_session *s = fake_session(w, 1, "alice");
    cr_assert_not_null(make_buffer(s, 1, 10));
    cr_assert_not_null(make_buffer(s, 2, 20));
    return s;
}

Test(exec, a_sum_is_computed) {
    ad_worker_session *s = start_session(false, false);
    sum x;
    cr_assert_eq(run_op(s, make_sum(&x, 3, true, 1, 2, 0)), 0);
    cr_assert_eq(get_value(s, 3), 30);
    cr_assert_eq(run_op(s, make_sum(&x, 3, false, 3, 0, 5)), 0);
    cr_assert_eq(get_value(s, 3), 35);
    cr_assert_eq(s->held.buffer_bytes, 3 * ELEMENTS * 8);
    cr_assert_eq(s->held.workspace_bytes, 0);
    free_buffer(s, 3);
    cr_assert_eq(s->held.buffer_bytes, 2 * ELEMENTS * 8);
    end_worker(s);
}

Test(exec, a_failure_spreads_to_what_depends_on_it) {
    ad_worker_session *s = start_session(false, false);
    sum x;
    fake.fail = AD_E_VALUE;
    const uint64_t number = s->progress.done + 1;
    cr_assert_eq(run_op(s, make_sum(&x, 3, true, 1, 2, 0)), AD_E_VALUE);
    cr_assert_eq(run_op(s, make_sum(&x, 4, true, 3, 2, 0)), AD_E_VALUE);
    cr_assert_eq(run_op(s, make_sum(&x, 5, true, 1, 2, 0)), 0);
    const ad_buffer *first = ad__buffers_find(&s->buffers, 3), *second = ad__buffers_find(&s->buffers, 4);
    cr_assert(first->poison && first->poison == second->poison);
    cr_assert_eq(first->poison->number, number);
    cr_assert_str_eq(first->poison->name, "add");
    cr_assert_eq(get_value(s, 5), 30);
    cr_assert_eq(s->progress.failed, 2);
    cr_assert_eq(fake.runs, 2, "an operation on a poisoned array ran");
    end_worker(s);
}

Test(exec, operands_are_checked) {
    ad_worker_session *s = start_session(false, false);
    sum x;
    cr_assert_eq(run_op(s, make_sum(&x, 3, true, 9, 2, 0)), AD_E_STALE);
    ad_op *op = make_sum(&x, 4, true, 1, 2, 0);
    x.operand[1].desc.offset = 8;
    cr_assert_eq(run_op(s, op), AD_E_EXTENT);
    op = make_sum(&x, 1, true, 1, 2, 0);
    cr_assert_eq(run_op(s, op), AD_E_VALUE, "an id was used twice");
    cr_assert_eq(get_value(s, 1), 10);
    cr_assert_eq(fake.runs, 0);
    cr_assert_not_null(s->progress.pending);
    ad__poison_release(s->progress.pending);
    end_worker(s);
}

/* Estimate the ns that distances between rows, or neighbours of others, take a device. */
static int64_t estimate_points(int row, int64_t points, int64_t others, int64_t columns) {
    const int64_t shape[3][2] = {{points, others}, {points, columns}, {others, columns}}, strides[2] = {0, 0};
    ad_operand operand[3] = {0};
    for (int i = 0; i < 3; i++)
        operand[i].desc =
            (ad_desc){.dtype = AD_FLOAT64, .form = AD_VIEW, .ndim = 2, .shape = shape[i], .strides = strides};
    ad_op op = {
        .opcode = AD_REQ_CALL, .row = (uint16_t)row, .loop = AD_FLOAT64, .nout = 1, .nin = 2, .operand = operand};
    return ad__device_cost(&op);
}

/* One block of threads goes through all coordinates of a few pairs, and one through all points for a query, so a GPU
 * takes as long as for as many as it computes at a time. */
Test(exec, a_device_is_not_divided_among_few_points) {
    const int64_t many = 1 << 30, tile = 1 << 9, second = 1000000000;
    const int64_t full = estimate_points(AD_CALL_pair_distances, tile, 2 * tile, many);
    const int64_t alone = estimate_points(AD_CALL_pair_distances, 1, 1, many);
    cr_expect(alone > 100 * second && alone <= full && full < 2 * alone, "%ld ns", (long)alone);
    cr_expect_gt(estimate_points(AD_CALL_nearest_points, many, 1, 10), second);
    cr_expect_lt(estimate_points(AD_CALL_pair_distances, 1000, 1000, 3), second / 10000);
}

Test(exec, a_check_fails_later) {
    ad_worker_session *s = start_session(true, false);
    sum x;
    fake.fail_late = true;
    fake.fail = AD_E_VALUE;
    cr_assert_eq(run_op(s, make_sum(&x, 3, true, 1, 2, 0)), 0);
    fake.fail_late = false;
    cr_assert_eq(run_op(s, make_sum(&x, 4, true, 3, 0, 1)), 0);
    cr_assert_eq(run_op(s, make_sum(&x, 5, true, 1, 0, 1)), 0);
    cr_assert_null(ad__buffers_find(&s->buffers, 3)->poison);
    ad__session_await(s, AD_WAIT_ALL, NULL, NULL);
    cr_assert_not(ad__session_poll(s), "the device has not passed");
    cr_assert_lt(s->progress.complete, s->progress.done);
    fake_pass();
    cr_assert(ad__session_poll(s));
    cr_assert_eq(s->progress.complete, s->progress.done);
    const ad_poison *p = ad__buffers_find(&s->buffers, 3)->poison;
    cr_assert(p && p == ad__buffers_find(&s->buffers, 4)->poison);
    cr_assert_str_eq(p->text, "found late");
    cr_assert_eq(get_value(s, 5), 11);
    end_worker(s);
}

Test(exec, changes_in_place_are_written_down_first) {
    ad_worker_session *s = start_session(false, true);
    sum x;
    ad__checkpoint_commit(s);
    const ad_checkpoint *v = &s->checkpoint;
    const ad_journal_table *t = ad__journal_get(v->journal, v->at->table);
    const ad_buffer *b = ad__buffers_find(&s->buffers, 1);
    cr_assert_neq(b->place, 0);
    cr_assert_eq(t->row[b->place].writing, 0);
    const uint64_t number = s->progress.done + 1;
    ad__buffers_find(&s->buffers, 1)->block.open = true; /* others see its memory, so it stays where it is */
    cr_assert_eq(run_op(s, make_sum(&x, 1, false, 1, 2, 0)), 0);
    cr_assert_eq(t->row[b->place].writing, number);
    cr_assert_str_eq(v->at->name, "add");
    cr_assert_eq(run_op(s, make_sum(&x, 2, false, 1, 1, 0)), 0);
    cr_assert_eq(t->row[ad__buffers_find(&s->buffers, 2)->place].writing, 0, "a repeatable write is written down");
    end_worker(s);
}

static const int64_t *get_committed_memory(const ad_worker_session *s, const ad_buffer *b) {
    const ad_journal_table *t = ad__journal_get(s->checkpoint.journal, s->checkpoint.at->table);
    uint64_t slab, offset;
    ad__memory_place(&b->block, &slab, &offset);
    cr_assert_eq(t->row[b->place].slab, slab);
    return (const int64_t *)(const void *)((const char *)b->address - offset + t->row[b->place].offset);
}

Test(exec, a_small_array_that_is_changed_in_place_stays_as_it_was_for_another_worker) {
    ad_worker_session *s = start_session(false, true);
    sum x;
    ad__checkpoint_commit(s);
    const uint64_t used = s->worker->device.gpu[0].memory.used;
    const ad_buffer *b = ad__buffers_find(&s->buffers, 1);
    const ad_journal_table *t = ad__journal_get(s->checkpoint.journal, s->checkpoint.at->table);
    for (int64_t value = 30; value < 300; value += 20) {
        cr_assert_eq(run_op(s, make_sum(&x, 1, false, 1, 2, 0)), 0);
        cr_assert_eq(get_value(s, 1), value);
        cr_assert_eq(t->row[b->place].writing, 0);
        cr_assert_eq(get_committed_memory(s, b)[ELEMENTS - 1], value - 20, "what a next worker begins with");
        ad__checkpoint_commit(s);
        cr_assert_eq(get_committed_memory(s, b), b->address);
        cr_assert_eq(s->worker->device.gpu[0].memory.used, used, "the memory of before is kept for too long");
    }
    cr_assert_eq(s->held.buffer_bytes, 2 * ELEMENTS * 8);
    end_worker(s);
}

Test(exec, an_array_without_other_memory_is_written_down_before_it_is_changed) {
    ad_worker_session *s = start_session(false, true);
    sum x;
    ad__checkpoint_commit(s);
    const ad_buffer *b = ad__buffers_find(&s->buffers, 1);
    const ad_journal_table *t = ad__journal_get(s->checkpoint.journal, s->checkpoint.at->table);
    ad_account *account = ad__stream_arena_account(b->home->stream_arena);
    const void *address = b->address;
    const uint64_t number = s->progress.done + 1;
    account->most = 1; /* less than there is already */
    cr_assert_eq(run_op(s, make_sum(&x, 1, false, 1, 2, 0)), 0);
    cr_assert_eq(get_value(s, 1), 30);
    cr_assert_eq(b->address, address);
    cr_assert_eq(t->row[b->place].writing, number);
    account->most = 0;
    end_worker(s);
}
