/* Memory that several sessions hold: who sees whose writes, who pays, and when it is given back. */
#include <criterion/criterion.h>

#include "server/worker/handlers.h"
#include "server/worker/io/input.h"
#include "server/worker/io/output.h"
#include "server/worker/sharing/sharing.h"
#include "tests/unit/worker/ops.h"

static const ad_component *const components[] = {&ad__component_turn,
                                                 &ad__component_input,
                                                 &ad__component_output,
                                                 &ad__component_fusion,
                                                 &ad__component_checkpoint,
                                                 &ad__component_buffers,
                                                 &ad__component_sharing,
                                                 &ad__component_checks,
                                                 &ops_streams,
                                                 NULL};

static ad_worker *w;
static ad_worker_session *a, *b;
static ad_fault fault;

static void start_sessions(void) {
    w = fake_worker(false, false, components);
    w->hooks.checkpoint = &ad__checkpoint_hooks;
    w->hooks.sharing = &ad__sharing_hooks;
    cr_assert_eq(ad__sharing_open(w), 0);
    a = fake_session(w, 1, "alice");
    b = fake_session(w, 2, "bob");
    cr_assert_not_null(make_buffer(a, 1, 10));
    cr_assert_not_null(make_buffer(b, 9, 1));
}

/* Let b have the memory of a's buffer 1 as its buffer 1. */
static ad_shared *share_buffer(bool readonly) {
    ad_shared *m = ad__shared_of(a, ad__buffers_find(&a->buffers, 1));
    cr_assert_not_null(m);
    cr_assert_eq(ad__shared_join(b, m, 1, readonly, &fault), 0, "%s", fault.text);
    return m;
}

static void stop_sessions(void) {
    end_session(b);
    end_session(a);
    ad__sharing_close(w);
    cr_assert_eq(w->device.gpu[0].memory.used, 0);
    cr_assert_eq(fake.open_slabs + fake.open_streams + fake.open_events, 0);
    fake_worker_close(w);
}

Test(sharing, a_writer_of_a_snapshot_gets_a_copy) {
    sum x;
    start_sessions();
    const ad_shared *m = share_buffer(false);
    const void *address = ad__buffers_find(&a->buffers, 1)->address;
    cr_assert_eq(ad__buffers_find(&b->buffers, 1)->address, address, "sharing has copied");
    cr_assert_eq(m->holders, 2);
    cr_assert_eq(ad__stream_queue_uses(b, b->streams.current, ad__buffers_find(&b->buffers, 1), true, &fault), 0);
    cr_assert_neq(ad__buffers_find(&b->buffers, 1)->address, address);
    cr_assert_null(ad__buffers_find(&b->buffers, 1)->shared);
    cr_assert_eq(run_op(b, make_sum(&x, 1, false, 1, 0, 5)), 0);
    cr_assert_eq(get_value(a, 1), 10);
    cr_assert_eq(get_value(b, 1), 15);
    cr_assert_null(ad__buffers_find(&a->buffers, 1)->shared, "one holder alone shares nothing");
    cr_assert_eq(w->sharing->bytes, 0);
    stop_sessions();
}

Test(sharing, common_memory_is_one) {
    sum x;
    start_sessions();
    ad_shared *m = share_buffer(false);
    m->common = true;
    b->sharing.shares = 1;
    cr_assert_eq(run_op(b, make_sum(&x, 1, false, 1, 0, 5)), 0);
    cr_assert_eq(get_value(a, 1), 15);
    cr_assert_eq(m->holders, 2);
    stop_sessions();
}

Test(sharing, a_reader_may_not_write) {
    start_sessions();
    share_buffer(true);
    cr_assert_eq(ad__stream_queue_uses(b, b->streams.current, ad__buffers_find(&b->buffers, 1), true, &fault),
                 AD_E_VALUE);
    cr_assert_eq(ad__stream_queue_uses(b, b->streams.current, ad__buffers_find(&b->buffers, 1), false, &fault), 0);
    stop_sessions();
}

Test(sharing, memory_outlives_the_session_that_made_it) {
    start_sessions();
    const uint64_t bytes = b->held.buffer_bytes;
    const ad_shared *m = share_buffer(false);
    cr_assert_eq(m->payer, a);
    cr_assert_eq(b->held.buffer_bytes, bytes);
    end_session(a);
    cr_assert_eq(m->payer, b, "nobody pays for what b holds");
    cr_assert_eq(b->held.buffer_bytes, bytes + ELEMENTS * 8);
    cr_assert_eq(get_value(b, 1), 10);
    cr_assert_eq(w->sharing->orphans, 1);
    end_session(b);
    ad__sharing_sweep(w);
    cr_assert_eq(w->sharing->orphans, 0);
    cr_assert_eq(w->sharing->bytes, 0);
    ad__sharing_close(w);
    cr_assert_eq(w->device.gpu[0].memory.used, 0);
    fake_worker_close(w);
}

Test(sharing, a_capability_is_used_up) {
    ad_message m = {.u = {0, 1, 2}}; /* buffer 1, two uses */
    start_sessions();
    a->grants.may = AD_GRANT_EXPORTS;
    ad_worker_session *other = fake_session(w, 3, "alice");
    cr_assert_eq(ad__handle_share(a, &m, &fault), 0, "%s", fault.text);
    const ad_issued_capability *c = NULL;
    for (int i = 0; i < AD_CAPABILITY_BUCKETS && !c; i++) c = w->sharing->capability[i];
    cr_assert_not_null(c);
    ad_message attach = {.u = {0, 5, c->half[0], c->half[1]}}, wrong = {.u = {0, 6, c->half[0], c->half[1] ^ 1}};
    cr_assert_eq(ad__handle_attach(other, &wrong, &fault), AD_E_STALE);
    cr_assert_eq(ad__handle_attach(b, &attach, &fault), AD_E_STALE, "another principal has used it");
    cr_assert_eq(ad__handle_attach(other, &attach, &fault), 0, "%s", fault.text);
    attach.u[1] = 4;
    cr_assert_eq(ad__handle_attach(other, &attach, &fault), 0);
    cr_assert_eq(c->uses, 1, "a message that is executed again counts once");
    attach.u[1] = 6;
    other->messages.place++;
    cr_assert_eq(ad__handle_attach(other, &attach, &fault), 0);
    attach.u[1] = 7;
    other->messages.place++;
    cr_assert_eq(ad__handle_attach(other, &attach, &fault), AD_E_STALE, "it was used three times");
    cr_assert_eq(w->sharing->capabilities, 0);
    cr_assert_eq(get_value(other, 6), 10);
    end_session(other);
    stop_sessions();
}

/* A holder that the test writes into no journal. It says how often it should have been written. */
typedef struct written {
    ad_holder holder;
    int times;
} written;

static void count_write(ad_worker *worker, ad_holder *h) {
    (void)worker; /* h->place stays as it is, as where the journal has no memory */
    ((written *)h)->times++;
}

static const char *who_pays(const ad_shared *m) { return m->block.payer->principal; }

Test(sharing, whoever_holds_the_memory_pays) {
    start_sessions();
    ad_shared *m = share_buffer(false);
    written name = {.holder = {.shared = m, .write = count_write, .principal = "carol"}};
    ad_holder lease = {.shared = m, .principal = "carol"};
    ad__shared_hold(m, "carol");
    ad__holder_begin(w, &name.holder);
    ad__shared_hold(m, "carol");
    ad__holder_begin(w, &lease);
    cr_assert_str_eq(who_pays(m), "alice");
    free_buffer(a, 1);
    cr_assert_str_eq(who_pays(m), "bob", "a buffer comes before what holds without one");
    free_buffer(b, 1);
    cr_assert_str_eq(who_pays(m), "carol");
    cr_assert_eq(m->paying, 2);
    ad__holder_end(w, &name.holder);
    cr_assert_str_eq(who_pays(m), "carol");
    cr_assert_eq(m->paying, 1);
    cr_assert_eq(name.times, 0, "without a journal nothing is written");
    ad__holder_end(w, &lease);
    cr_assert_eq(w->sharing->bytes, 0);
    stop_sessions();
}

static void start_journaled_session(void) {
    w = fake_worker(false, true, components);
    w->hooks.checkpoint = &ad__checkpoint_hooks;
    w->hooks.sharing = &ad__sharing_hooks;
    cr_assert_eq(ad__sharing_open(w), 0);
    a = fake_session(w, 1, "alice");
    cr_assert_not_null(make_buffer(a, 1, 10));
}

static void stop_journaled_session(void) {
    end_session(a);
    ad__sharing_close(w);
    fake_worker_close(w);
}

/* A row without the error would give its reader an array of no elements. */
Test(sharing, a_failed_array_is_written_with_its_error_or_not_at_all) {
    static const size_t size[] = {sizeof(ad_journal_holder), sizeof(ad_journal_poison)};
    for (int pieces = 1; pieces <= 2; pieces++) {
        start_journaled_session();
        ad_shared *m = ad__shared_of(a, ad__buffers_find(&a->buffers, 1));
        fault = (ad_fault){.code = AD_E_VALUE, .text = "a bad value"};
        m->poison = ad__poison_new(&fault, 1, "add");
        ad_holder name = {.shared = m, .principal = "alice"};
        fake_exhaust_journal(w, size, pieces);
        ad_journal_holder *row = ad__holder_make_row(w, &name, AD_HOLDER_NAME);
        cr_assert_eq(row != NULL, pieces == 2);
        if (row) cr_assert_neq(row->memory.poison, 0);
        stop_journaled_session();
    }
}

Test(sharing, a_holder_that_could_not_be_written_has_no_place) {
    start_journaled_session();
    ad_shared *m = ad__shared_of(a, ad__buffers_find(&a->buffers, 1));
    ad_journal_holder *row = ad__journal_alloc(w->journal, sizeof *row);
    *row = (ad_journal_holder){0};
    written name = {.holder = {.shared = m, .write = count_write, .principal = "alice"}};
    ad__shared_hold(m, "alice");
    ad__holder_begin(w, &name.holder);
    name.holder.place = ad__journal_hold(w->journal, row);
    cr_assert_neq(name.holder.place, 0);
    ad__holders_write(w, m);
    cr_assert_eq(name.times, 2);
    cr_assert_eq(name.holder.place, 0, "it would be released twice");
    ad__holder_end(w, &name.holder);
    stop_journaled_session();
}
