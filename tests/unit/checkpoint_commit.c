/* Checkpoints: rows that the journal has after a commit, and when one is pending, committed or invalid. */
#include <criterion/criterion.h>

#include "random.h"
#include "server/worker/checkpoint/buffer_free.h"
#include "server/worker/io/input.h"
#include "server/worker/io/output.h"
#include "server/worker/spill/quota.h"
#include "server/worker/spill/spill.h"
#include "tests/unit/worker/end.h"

enum { IDS = 40 };

static const ad_component streams = {.name = "streams", .drop = ad__stream_queues_close};
static const ad_component *const components[] = {&ad__component_input,
                                                 &ad__component_output,
                                                 &ad__component_checkpoint,
                                                 &ad__component_buffers,
                                                 &ad__component_checks,
                                                 &streams,
                                                 NULL};

static ad_worker_session *start_session(bool asynchronous) {
    ad_worker *w = fake_worker(asynchronous, true, components);
    w->hooks.checkpoint = &ad__checkpoint_hooks;
    ad_worker_session *s = fake_session(w, 1, "alice");
    ad__checkpoint_list(s);
    ad__checkpoint_commit(s);
    return s;
}

/* Make a buffer by an operation on the current stream. */
static ad_buffer *add_buffer(ad_worker_session *s, uint64_t id, uint64_t size) {
    ad_buffer *b = NULL;
    ad_fault fault = {0};
    ad_stream_queue *queue = ad__stream_queue_current(s, &fault);
    cr_assert_eq(ad__buffers_add(&s->buffers, id, &b, &fault), 0, "%s", fault.text);
    ad__checkpoint_mark_buffer(s, b);
    b->home = queue;
    cr_assert_eq(ad__quota_take(s, queue, size, &b->block, &fault), 0, "%s", fault.text);
    b->address = b->block.address;
    b->size = size;
    s->held.buffer_bytes += size;
    cr_assert_eq(s->worker->backend->zero(queue->stream, b->address, size, &fault), 0);
    cr_assert_eq(ad__session_enqueued(s, queue, &fault), 0);
    s->progress.done++;
    ad__checkpoint_mark_executed(&s->checkpoint);
    return b;
}

static void remove_buffer(ad_worker_session *s, uint64_t id) {
    ad_buffer *b = ad__buffers_find(&s->buffers, id);
    ad__buffers_detach(&s->buffers, b);
    ad__buffer_free(s, b);
    s->progress.done++;
    ad__checkpoint_mark_executed(&s->checkpoint);
}

static const ad_journal_checkpoint *get_committed(const ad_worker_session *s) {
    return &s->checkpoint.at->checkpoint[s->checkpoint.at->current];
}

/* Find the row of a buffer. NULL: there is none. More than one fails. */
static const ad_journal_row *find_row(const ad_worker_session *s, uint64_t id) {
    const ad_journal_table *t = ad__journal_get(s->checkpoint.journal, s->checkpoint.at->table);
    const ad_journal_row *found = NULL;
    for (uint64_t i = 0; i < t->capacity; i++) {
        if (t->row[i].kind != AD_JOURNAL_BUFFER || t->row[i].id != id) continue;
        cr_assert_null(found, "buffer %lu has two rows", (unsigned long)id);
        found = &t->row[i];
    }
    return found;
}

Test(checkpoint, rows_are_those_of_the_buffers) {
    ad_worker_session *s = start_session(false);
    uint64_t seed = 9, size[IDS] = {0};
    for (int round = 0; round < 200; round++) {
        for (uint64_t n = random64(&seed) % 8; n; n--) {
            const uint64_t id = 1 + random64(&seed) % (IDS - 1);
            if (size[id]) remove_buffer(s, id);
            else add_buffer(s, id, 8 + random64(&seed) % 5000);
            size[id] = size[id] ? 0 : ad__buffers_find(&s->buffers, id)->size;
        }
        ad__checkpoint_commit(s);
        cr_assert_eq(get_committed(s)->operations, s->progress.done);
        for (uint64_t id = 1; id < IDS; id++) {
            const ad_journal_row *row = find_row(s, id);
            cr_assert_eq(row != NULL, size[id] != 0, "round %d: buffer %lu", round, (unsigned long)id);
            if (!row) continue;
            const ad_buffer *b = ad__buffers_find(&s->buffers, id);
            cr_assert_eq(row->size, size[id]);
            uint64_t slab, offset;
            ad__memory_place(&b->block, &slab, &offset);
            cr_assert(row->slab == slab && row->offset == offset && row->block == b->block.size);
        }
    }
    end_worker(s);
}

Test(checkpoint, a_late_one_waits_for_the_device) {
    ad_worker_session *s = start_session(true);
    add_buffer(s, 1, 64);
    ad__checkpoint_commit(s);
    cr_assert(s->checkpoint.pending_checkpoint.open);
    cr_assert_eq(get_committed(s)->operations, 0);
    cr_assert_null(find_row(s, 1));
    ad__session_poll(s);
    ad__checkpoint_commit(s);
    cr_assert_null(find_row(s, 1), "it was committed before the device had passed");
    fake_pass();
    ad__session_poll(s);
    ad__checkpoint_commit(s);
    cr_assert_not_null(find_row(s, 1));
    cr_assert_eq(get_committed(s)->operations, 1);
    cr_assert_eq(s->progress.complete, 1);
    end_worker(s);
}

/* What an operation has read may not change before the operation is in the committed checkpoint. All else may. */
Test(checkpoint, bytes_beside_those_that_were_read_may_change) {
    ad_worker_session *s = start_session(true);
    ad_buffer *b = add_buffer(s, 1, 64);
    cr_assert(ad__checkpoint_is_repeatable_write(s, b, (ad_extent){0, 64}), "nothing has been read");
    ad__checkpoint_note_read(s, b, (ad_extent){16, 24});
    s->progress.done++;
    ad__checkpoint_note_read(s, b, (ad_extent){24, 32});
    s->progress.done++;
    cr_assert(ad__checkpoint_is_repeatable_write(s, b, (ad_extent){0, 16}));
    cr_assert(ad__checkpoint_is_repeatable_write(s, b, (ad_extent){32, 64}));
    cr_assert(!ad__checkpoint_is_repeatable_write(s, b, (ad_extent){0, 17}));
    cr_assert(!ad__checkpoint_is_repeatable_write(s, b, (ad_extent){31, 64}));
    ad__checkpoint_note_read(s, b, (ad_extent){0, 8});
    s->progress.done++;
    cr_assert(!ad__checkpoint_is_repeatable_write(s, b, (ad_extent){8, 16}), "bytes between two that were read");
    s->checkpoint.committed = s->progress.done;
    cr_assert(ad__checkpoint_is_repeatable_write(s, b, (ad_extent){0, 64}));
    ad__checkpoint_note_read(s, b, (ad_extent){40, 48});
    cr_assert(ad__checkpoint_is_repeatable_write(s, b, (ad_extent){0, 40}), "that read is committed");
    cr_assert(!ad__checkpoint_is_repeatable_write(s, b, (ad_extent){40, 48}));
    end_worker(s);
}

Test(checkpoint, memory_stays_until_a_checkpoint_without_it) {
    ad_worker_session *s = start_session(true);
    add_buffer(s, 1, 64);
    ad__checkpoint_flush(s, true);
    cr_assert_not_null(find_row(s, 1));
    const uint64_t used = s->worker->device.gpu[0].memory.used;
    remove_buffer(s, 1);
    cr_assert_eq(s->worker->device.gpu[0].memory.used, used, "a block of the committed checkpoint was freed");
    cr_assert_eq(s->checkpoint.frees.count, 1);
    cr_assert(ad__checkpoint_flush(s, true));
    cr_assert_null(find_row(s, 1));
    cr_assert_lt(s->worker->device.gpu[0].memory.used, used);
    end_worker(s);
}

Test(checkpoint, an_invalid_one_is_begun_again) {
    ad_worker_session *s = start_session(true);
    add_buffer(s, 1, 64);
    ad__checkpoint_commit(s);
    cr_assert(s->checkpoint.pending_checkpoint.open);
    add_buffer(s, 2, 64);
    ad__checkpoint_invalidate(&s->checkpoint);
    fake_pass();
    ad__session_poll(s);
    ad__checkpoint_commit(s);
    fake_pass();
    ad__session_poll(s);
    ad__checkpoint_commit(s);
    cr_assert(find_row(s, 1) && find_row(s, 2), "changes of the invalid checkpoint are lost");
    cr_assert_eq(get_committed(s)->operations, 2);
    end_worker(s);
}

/* The next worker would have told the client that all had succeeded. */
Test(checkpoint, a_failure_that_cannot_be_written_ends_recovery) {
    for (int asynchronous = 0; asynchronous < 2; asynchronous++) {
        ad_worker_session *s = start_session(asynchronous);
        ad_fault fault = {.code = AD_E_VALUE, .text = "a bad value"};
        ad_poison *p = ad__poison_new(&fault, 1, "add");
        fake_exhaust_journal(s->worker, NULL, 0);
        s->progress.pending = p;
        s->progress.done++;
        ad__checkpoint_mark_executed(&s->checkpoint);
        ad__checkpoint_commit(s);
        cr_assert_not(ad__session_is_recoverable(s));
        s->progress.pending = NULL; /* no message of the test is told it */
        ad__poison_release(p);
        end_worker(s);
    }
}

Test(checkpoint, a_session_that_is_given_up_keeps_nothing) {
    ad_worker_session *s = start_session(false);
    add_buffer(s, 1, 64);
    ad__checkpoint_commit(s);
    const uint64_t used = s->worker->device.gpu[0].memory.used;
    add_buffer(s, 2, 64);
    remove_buffer(s, 1);
    cr_assert_gt(s->worker->device.gpu[0].memory.used, used, "the committed checkpoint has it");
    ad__checkpoint_give_up(s);
    cr_assert_not(ad__session_is_recoverable(s));
    ad__checkpoint_commit(s);
    cr_assert_eq(s->worker->device.gpu[0].memory.used, used);
    cr_assert_eq(s->checkpoint.at->alive, 0);
    end_worker(s);
}

Test(checkpoint, what_is_used_again_is_lost_alone) {
    ad_worker_session *s = start_session(false);
    add_buffer(s, 1, 64);
    add_buffer(s, 2, 64);
    ad__checkpoint_commit(s);
    add_buffer(s, 3, 64);
    remove_buffer(s, 1);
    const uint64_t used = s->worker->device.gpu[0].memory.used;
    s->fusion.count = 1; /* what is queued forbids a checkpoint */
    cr_assert(ad__checkpoint_give_released_memory(s));
    cr_assert_lt(s->worker->device.gpu[0].memory.used, used);
    cr_assert_eq(find_row(s, 1)->writing, (get_committed(s)->operations + 1) | AD_JOURNAL_REUSED,
                 "the next worker would read other bytes, or another buffer with that row would be lost");
    cr_assert_not(find_row(s, 2)->writing);
    cr_assert(ad__session_is_recoverable(s) && ad__checkpoint_is_full(&s->checkpoint));
    s->fusion.count = 0;
    ad__checkpoint_commit(s);
    cr_assert_null(find_row(s, 1));
    cr_assert_not(find_row(s, 2)->writing);
    end_worker(s);
}
