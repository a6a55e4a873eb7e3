/* The connection: buffering, windows, partial reads and writes, order of replies, interrupts, threads. */
#include <criterion/criterion.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "client-c/client.h"
#include "tests/unit/client_connection.h"
#include "tests/unit/client_fake.h"
#include "protocol/rows_call.h"

#define N 16

static ad_array *upload_array(ad_session *s, const double *data, int64_t n) {
    ad_array *a = NULL;
    cr_assert_eq(ad_upload(s, AD_FLOAT64, 1, &n, data, (size_t)n * 8, &a), 0, "%s", ad_error_message());
    return a;
}

static double *make_numbers(int64_t n, unsigned seed) {
    double *data = malloc((size_t)n * sizeof *data);
    for (int64_t i = 0; i < n; i++) data[i] = (double)(seed = seed * 1664525u + 1013904223u) / 65536;
    return data;
}

static void check_round_trip(ad_session *s, int64_t n) {
    double *data = make_numbers(n, (unsigned)n), *back = malloc((size_t)n * 8);
    ad_array *a = upload_array(s, data, n);
    cr_assert_eq(ad_download(a, back, (size_t)n * 8), 0, "%s", ad_error_message());
    cr_assert_eq(memcmp(data, back, (size_t)n * 8), 0);
    ad_array_release(a);
    free(data);
    free(back);
}

Test(client_stream, any_size_comes_back) {
    ad_session *s;
    fake *f = fake_open(&(fake_options){.max_payload = 100000, .part = 70000}, &s);
    const int64_t sizes[] = {1, 2, 511, 512, 513, 12500, 12501, 40000, 300000};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) check_round_trip(s, sizes[i]);
    ad_session_close(s);
    fake_stop(f);
}

Test(client_stream, payloads_may_be_as_small_as_the_server_wants) {
    for (uint64_t resume = 0; resume < 2; resume++) {
        ad_session *s;
        fake *f = fake_open(&(fake_options){.max_payload = 1000, .resume = resume * 60000}, &s);
        const int64_t sizes[] = {1, 125, 126, 500, 700};
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) check_round_trip(s, sizes[i]);
        ad_session_close(s);
        fake_stop(f);
    }
}

/* ---- what other threads ask for while one sends ---- */

static ad_session *busy;
static pthread_t asking; /* the test's own thread, not the session's */
static ad_array *summand;
static unsigned sums;
static bool flushes;

static void ask_meanwhile(int fd) {
    ad_array *b = NULL;
    if (fd != busy->connection.fd || !pthread_equal(pthread_self(), asking)) return;
    cr_assert_eq(ad_add(ad_of(summand), ad_float(1), &b), 0, "%s", ad_error_message());
    ad_array_release(b);
    sums++;
    if (flushes) cr_assert_eq(ad_flush(busy), 0);
}

/* A thread that sends does not send for others without end: it leaves the rest to the session's own thread. */
Test(client_stream, what_gathers_while_a_thread_sends_goes_later) {
    static const double numbers[1200];
    for (int i = 0; i < 2; i++) {
        fake *f = fake_open(NULL, &busy);
        ad_array *b = NULL;
        asking = pthread_self();
        flushes = connection.threadless = i == 0;
        ad_array *large = upload_array(busy, numbers, 1200);
        summand = upload_array(busy, numbers, N);
        cr_assert_eq(ad_sync(busy), 0);
        sums = 1;
        connection.on_sent = ask_meanwhile;
        cr_assert_eq(ad_add(ad_of(summand), ad_float(1), &b), 0);
        cr_assert_eq(ad_write(large, numbers, sizeof numbers), 0);
        connection.on_sent = NULL;
        cr_expect_gt(sums, 1);
        cr_assert_eq(ad_sync(busy), 0);
        cr_expect_eq(f->ufuncs, sums);
        ad_array_release(b);
        ad_array_release(large);
        ad_array_release(summand);
        ad_session_close(busy);
        fake_stop(f);
        connection.threadless = false;
    }
}

/* An operation that only frees stand before begins to be sent at once. */
Test(client_stream, an_operation_behind_released_arrays_needs_no_flush) {
    enum { MANY = 400 };
    ad_session *s;
    fake *f = fake_open(NULL, &s);
    ad_array *all[MANY], *b = NULL;
    connection.threadless = true;
    for (int i = 0; i < MANY; i++) cr_assert_eq(ad_empty(s, AD_FLOAT64, 0, NULL, &all[i]), 0);
    cr_assert_eq(ad_sync(s), 0);
    const uint64_t ops = s->encoded.ops;
    for (int i = MANY - 20; i < MANY; i++) ad_array_release(all[i]);
    cr_assert_gt(s->frees.end, 30, "they are encoded, and nobody sends them");
    cr_assert_eq(ad_add(ad_of(all[0]), ad_float(1), &b), 0);
    while (f->ops < ops + 2) sched_yield();
    for (int i = 0; i < MANY - 20; i++) ad_array_release(all[i]);
    ad_array_release(b);
    ad_session_close(s);
    fake_stop(f);
}

Test(client_stream, bytes_may_come_in_any_pieces) {
    const size_t pieces[] = {1, 7, 15, 16, 17, 4093};
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        ad_session *s;
        fake *f = fake_open(&(fake_options){.piece = pieces[i], .part = 1000}, &s);
        check_round_trip(s, 1);
        check_round_trip(s, 700);
        ad_session_close(s);
        fake_stop(f);
    }
}

Test(client_stream, empty_arrays_have_no_bytes) {
    ad_session *s;
    fake *f = fake_open(NULL, &s);
    ad_array *a = upload_array(s, NULL, 0);
    cr_assert_eq(ad_download(a, NULL, 0), 0, "%s", ad_error_message());
    ad_array_release(a);
    ad_session_close(s);
    fake_stop(f);
}

Test(client_stream, many_small_operations_share_few_frames) {
    ad_session *s;
    fake *f = fake_open(NULL, &s);
    double x[N] = {0};
    ad_array *a = upload_array(s, x, N), *b;
    for (int i = 0; i < 20000; i++) {
        cr_assert_eq(ad_add(ad_of(a), ad_float(1), &b), 0);
        ad_array_release(b);
    }
    cr_assert_eq(ad_sync(s), 0);
    cr_assert_eq(f->ufuncs, 20000);
    cr_assert_lt(f->frames, 5000);
    ad_array_release(a);
    cr_assert_eq(ad_sync(s), 0);
    cr_assert_eq(f->frees, 20001); /* each buffer is freed once */
    ad_session_close(s);
    fake_stop(f);
}

Test(client_stream, large_memory_is_released_before_the_next_operation) {
    enum { LARGE = 1 << 18 }; /* elements: 2 MiB */
    ad_session *s;
    fake *f = fake_open(NULL, &s);
    ad_array *a, *b;
    cr_assert_eq(ad_empty(s, AD_FLOAT64, 1, (int64_t[]){LARGE}, &a), 0);
    for (int i = 0; i < 20; i++) {
        cr_assert_eq(ad_add(ad_of(a), ad_float(1), &b), 0);
        ad_array_release(b);
    }
    cr_assert_eq(ad_sync(s), 0);
    cr_assert_eq(f->ufuncs, 20);
    cr_assert_eq(f->most_bytes, 2 * LARGE * sizeof(double)); /* two arrays: a and one result */
    ad_array_release(a);
    ad_session_close(s);
    fake_stop(f);
}

Test(client_stream, a_lone_operation_needs_no_flush) {
    ad_session *s;
    fake *f = fake_open(NULL, &s);
    ad_array *a;
    cr_assert_eq(ad_empty(s, AD_FLOAT64, 0, NULL, &a), 0);
    ad_array_release(a);
    while (f->ops < 1 || f->frees < 1) /* the loop ends, or the test's time limit does */
        sched_yield();
    ad_session_close(s);
    fake_stop(f);
}

Test(client_stream, the_window_is_never_exceeded) {
    ad_session *s;
    fake *f = fake_open(&(fake_options){.window_ops = 64, .window_bytes = 64 << 10, .max_payload = 30000}, &s);
    double *data = make_numbers(9000, 1);
    ad_array *a = upload_array(s, data, N), *b;
    for (int i = 0; i < 5000; i++) {
        cr_assert_eq(ad_add(ad_of(a), ad_of(a), &b), 0);
        ad_array_release(b);
        if (i % 500 == 0) check_round_trip(s, 9000);
    }
    cr_assert_eq(ad_sync(s), 0);
    cr_assert_not(f->violated);
    cr_assert_gt(f->most_ahead, 8);
    ad_array_release(a);
    free(data);
    ad_session_close(s);
    fake_stop(f);
}

/* Make arrays, release them while the server acknowledges nothing, and let it go on. `held`: bytes sent before, which
 * wait for an acknowledgement as well. */
static void release_without_room(const fake_options *options, int held) {
    enum { MANY = 6000 };
    static ad_array *all[MANY];
    static uint8_t bytes[4000];
    const int64_t n = sizeof bytes;
    ad_session *s;
    fake *f = fake_open(options, &s);
    ad_array *a = NULL;
    for (int i = 0; i < MANY; i++) cr_assert_eq(ad_empty(s, AD_INT8, 0, NULL, &all[i]), 0);
    cr_assert_eq(ad_empty(s, AD_INT8, 1, &n, &a), 0);
    cr_assert_eq(ad_sync(s), 0);
    f->options.no_ack = true;
    for (int i = 0; i < held; i++) cr_assert_eq(ad_write(a, bytes, sizeof bytes), 0, "%s", ad_error_message());
    for (int i = 0; i < MANY; i++) ad_array_release(all[i]);
    cr_expect_gt(s->frees.count, 0, "some wait for room");
    f->options.no_ack = false;
    fake_acknowledge(f);
    while (f->frees < MANY) cr_assert_eq(ad_sync(s), 0);
    cr_expect_eq(f->frees, MANY);
    cr_expect_not(f->violated);
    ad_array_release(a);
    ad_session_close(s);
    fake_stop(f);
}

Test(client_stream, released_arrays_wait_for_room_in_the_window) {
    release_without_room(&(fake_options){.window_ops = 16}, 0);
    release_without_room(&(fake_options){.window_bytes = 64 << 10}, 11);
}

static int interrupt_always(void *argument) {
    *(int *)argument += 1;
    return 1;
}

Test(client_stream, a_full_window_blocks_until_acknowledged_or_interrupted) {
    ad_session *s;
    fake *f = fake_open(&(fake_options){.window_ops = 256, .no_ack = true}, &s);
    ad_array *a;
    int asked = 0, status = 0, made = 0;
    ad_session_set_interrupt(s, interrupt_always, &asked);
    while (status == 0 && made < 1000) {
        status = ad_empty(s, AD_INT8, 0, NULL, &a);
        if (status == 0) {
            made++;
            ad_array_release(a);
        }
    }
    cr_assert_eq(status, AD_E_INTERRUPTED);
    cr_assert(asked > 0 && made <= 256);
    while (f->messages < (unsigned)made) /* all accepted operations arrive */
        sched_yield();
    ad_session_set_interrupt(s, NULL, NULL);
    fake_acknowledge(f);
    cr_assert_eq(ad_empty(s, AD_INT8, 0, NULL, &a), 0);
    ad_array_release(a);
    ad_session_close(s);
    fake_stop(f);
}

Test(client_stream, an_interrupted_wait_leaves_the_session_usable) {
    ad_session *s;
    fake *f = fake_open(&(fake_options){.reverse = true, .hold = 2, .part = 64}, &s);
    double x[N], y[N] = {0};
    int asked = 0;
    for (int i = 0; i < N; i++) x[i] = i;
    ad_array *a = upload_array(s, x, N);
    ad_session_set_interrupt(s, interrupt_always, &asked);
    cr_assert_eq(ad_download(a, y, sizeof y), AD_E_INTERRUPTED);
    ad_session_set_interrupt(s, NULL, NULL);
    cr_assert_eq(y[1], 0);
    cr_assert_eq(ad_sync(s), 0); /* the server now answers both, the dropped one last */
    f->options.hold = 1;
    cr_assert_eq(ad_download(a, y, sizeof y), 0);
    cr_assert_eq(memcmp(x, y, sizeof x), 0);
    ad_array_release(a);
    ad_session_close(s);
    fake_stop(f);
}

Test(client_stream, bytes_are_asked_for_before_others_have_come) {
    ad_session *s;
    fake *f = fake_open(&(fake_options){.reverse = true, .hold = 2, .part = 64, .tcp = true}, &s);
    double x[N], y[N] = {0};
    ad_slot slot[2];
    uint8_t *to = (uint8_t *)y;
    for (int i = 0; i < N; i++) x[i] = i;
    ad_array *a = upload_array(s, x, N);
    for (size_t i = 0; i < 2; i++)
        cr_assert_eq(ad__ask_bytes(a, i * sizeof y / 2, to + i * sizeof y / 2, sizeof y / 2, &slot[i]), 0);
    for (size_t i = 0; i < 2; i++) cr_expect_eq(ad__await_ask(s, &slot[i]), 0, "%s", ad_error_message());
    cr_expect_eq(memcmp(x, y, sizeof x), 0);
    ad_array_release(a);
    ad_session_close(s);
    fake_stop(f);
}

Test(client_stream, pieces_may_end_in_the_middle_of_frames) {
    const size_t pieces[] = {17, 18, 23, 30};
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        ad_session *s;
        fake *f = fake_open(&(fake_options){.reverse = true, .hold = 1, .piece = pieces[i]}, &s);
        const double x[] = {1, 2, 3};
        double y[3] = {0};
        ad_slot slot;
        ad_array *a = upload_array(s, x, 3);
        cr_assert_eq(ad_sync(s), 0);
        f->options.hold = 2;
        cr_assert_eq(ad__ask_bytes(a, 0, y, sizeof y, &slot), 0);
        cr_assert_eq(ad_sync(s), 0);
        cr_expect_eq(ad__await_ask(s, &slot), 0, "%s", ad_error_message());
        cr_expect_eq(memcmp(x, y, sizeof x), 0);
        f->options.hold = 1;
        ad_array_release(a);
        ad_session_close(s);
        fake_stop(f);
    }
}

Test(client_stream, an_interrupted_upload_leaves_the_stream_whole) {
    ad_session *s;
    fake *f = fake_open(&(fake_options){.deaf = true, .tcp = true}, &s);
    int64_t n = 4000000;
    double *data = make_numbers(n, 3);
    int asked = 0;
    ad_array *a = NULL;
    ad_session_set_interrupt(s, interrupt_always, &asked);
    cr_assert_eq(ad_upload(s, AD_FLOAT64, 1, &n, data, (size_t)n * 8, &a), AD_E_INTERRUPTED);
    cr_assert_null(a);
    ad_session_set_interrupt(s, NULL, NULL);
    memset(data, 0xff, (size_t)n * 8); /* the bytes are the caller's again */
    fake_listen(f);
    check_round_trip(s, 1000);
    cr_assert_eq(ad_sync(s), 0);
    cr_assert_eq(f->frees, 2);
    free(data);
    ad_session_close(s);
    fake_stop(f);
}

typedef struct worker {
    ad_session *s;
    int number, rounds, failures;
} worker;

static void *run_work(void *argument) {
    worker *w = argument;
    int64_t n = 100 + w->number;
    double *x = make_numbers(n, (unsigned)w->number), *y = malloc((size_t)n * 8);
    for (int i = 0; i < w->rounds; i++) {
        ad_array *a = NULL, *b = NULL;
        int status = ad_upload(w->s, AD_FLOAT64, 1, &n, x, (size_t)n * 8, &a);
        if (status == 0) status = ad_add(ad_of(a), ad_float(w->number), &b);
        ad_array_release(a);
        if (status == 0) status = ad_download(b, y, (size_t)n * 8);
        ad_array_release(b);
        for (int64_t k = 0; k < n && status == 0; k++) status = y[k] == x[k] + w->number ? 0 : -1;
        w->failures += status != 0;
    }
    free(x);
    free(y);
    return NULL;
}

static void run_threads(ad_session *s, int rounds) {
    pthread_t thread[8];
    worker w[8];
    for (int i = 0; i < 8; i++) {
        w[i] = (worker){.s = s, .number = i, .rounds = rounds};
        cr_assert_eq(pthread_create(&thread[i], NULL, run_work, &w[i]), 0);
    }
    for (int i = 0; i < 8; i++) {
        pthread_join(thread[i], NULL);
        cr_assert_eq(w[i].failures, 0, "thread %d: %d failures", i, w[i].failures);
    }
}

Test(client_stream, threads_share_a_session) {
    ad_session *s;
    fake *f = fake_open(&(fake_options){.part = 300}, &s);
    run_threads(s, 60);
    cr_assert_eq(ad_sync(s), 0);
    cr_assert_eq(f->frees, 8 * 60 * 2);
    ad_session_close(s);
    fake_stop(f);
}

Test(client_stream, replies_may_come_in_any_order) {
    ad_session *s;
    fake *f = fake_open(&(fake_options){.reverse = true, .hold = 8, .part = 100}, &s);
    run_threads(s, 1); /* no answer before all eight have asked, and then the last first */
    ad_session_close(s);
    fake_stop(f);
}

Test(client_stream, counters_come_as_numbers) {
    ad_session *s;
    fake *f = fake_open(NULL, &s);
    uint64_t counters[4] = {0};
    int got = 0;
    cr_assert_eq(ad_stat(s, 4, counters, &got), 0);
    cr_assert_eq(got, 2);
    cr_assert(counters[0] == 41 && counters[1] == 42);
    ad_session_close(s);
    fake_stop(f);
}

Test(client_stream, outputs_of_questions_are_sized_by_the_answer) {
    ad_session *s;
    fake *f = fake_open(NULL, &s);
    ad_array *x, *out = NULL;
    ad_array_info info;
    int64_t values[8];
    cr_assert_eq(ad_empty(s, AD_FLOAT32, 2, (int64_t[]){4, 5}, &x), 0);
    cr_assert_eq(ad_call_call(NULL, AD_CALL_nonzero, -1, 1, (ad_in[]){ad_of(x)}, 0, NULL, NULL, &out, values), 0, "%s",
                 ad_error_message());
    ad_array_get_info(out, &info);
    cr_assert(info.dtype == AD_INT64 && info.ndim == 2 && info.shape[0] == 2 && info.shape[1] == 3);
    cr_assert_eq(values[0], 3);
    ad_array_release(x);
    ad_array_release(out);
    ad_session_close(s);
    fake_stop(f);
}

/* Arrays that a graph reads or writes are freed once it is released, and others at once. */
Test(client_stream, what_a_graph_holds_is_freed_with_it) {
    static const double numbers[N];
    ad_session *s;
    ad_graph *g;
    fake *f = fake_open(NULL, &s);
    ad_array *held = upload_array(s, numbers, N), *other = upload_array(s, numbers, N), *sum = NULL;
    cr_assert_eq(ad_graph_new(s, &g), 0);
    ad_graph_record(g);
    cr_assert_eq(ad_add(ad_of(held), ad_float(1), &sum), 0, "%s", ad_error_message());
    ad_graph_record(NULL);
    ad_array_release(held);
    ad_array_release(other);
    cr_assert_eq(ad_sync(s), 0);
    cr_expect_eq(f->frees, 1, "%lu: the other one alone", (unsigned long)f->frees);
    cr_assert_eq(ad_graph_launch(g, 0, 1), 0, "%s", ad_error_message());
    cr_assert_eq(ad_sync(s), 0, "%s", ad_error_message());
    cr_expect_eq(f->ufuncs, 1);
    ad_graph_release(g);
    ad_array_release(sum);
    cr_assert_eq(ad_sync(s), 0);
    cr_expect_eq(f->frees, 3);
    ad_session_close(s);
    fake_stop(f);
}
