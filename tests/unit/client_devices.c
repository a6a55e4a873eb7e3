/* Streams, events and devices, as the server gets them. */
#include <criterion/criterion.h>
#include <pthread.h>

#include "tests/unit/client_fake.h"

static ad_array *make_array(ad_session *s) {
    ad_array *a = NULL;
    int64_t n = 4;
    cr_assert_eq(ad_empty(s, AD_FLOAT64, 1, &n, &a), 0);
    return a;
}

static int get_device(const ad_array *a) {
    ad_array_info info;
    ad_array_get_info(a, &info);
    return info.device;
}

static void *use_own_stream(void *session) {
    ad_array *a = make_array(session);
    int device = get_device(a);
    ad_array_release(a);
    return (void *)(intptr_t)(device != 0 || ad_stream_current(session) != 0);
}

Test(client_devices, a_stream_is_told_when_it_changes) {
    ad_session *s;
    fake *f = fake_open(NULL, &s);
    uint64_t stream = 0;
    pthread_t thread;
    void *wrong;
    ad_array *a = make_array(s), *b, *c, *v;
    cr_assert_eq(ad_sync(s), 0);
    cr_assert(f->ons == 0 && get_device(a) == 0);
    cr_assert_eq(ad_stream_open(s, 1, 0, &stream), 0);
    cr_assert(stream >= AD_DEFAULT_STREAMS && stream % AD_DEFAULT_STREAMS == 1);
    cr_assert_eq(ad_stream_use(s, stream), 0);
    b = make_array(s);
    c = make_array(s);
    cr_assert_eq(ad_sync(s), 0);
    cr_assert(f->ons == 1 && f->stream == stream && get_device(b) == 1 && get_device(c) == 1);
    cr_assert_eq(ad_slice(b, 0, 1, 3, 1, &v), 0);
    cr_assert_eq(get_device(v), 1);
    cr_assert_eq(pthread_create(&thread, NULL, use_own_stream, s), 0); /* each thread has its own */
    cr_assert_eq(pthread_join(thread, &wrong), 0);
    cr_assert_null(wrong);
    cr_assert_eq(ad_sync(s), 0);
    cr_assert(f->ons == 3 && f->stream == stream);
    cr_assert_eq(ad_stream_use(s, 0), 0);
    cr_assert_eq(ad_stream_drop(s, stream), 0);
    cr_assert_eq(ad_sync(s), 0);
    cr_assert_eq(f->ons, 4);
    ad_array_release(v);
    ad_array_release(a);
    ad_array_release(b);
    ad_array_release(c);
    ad_session_close(s);
    fake_stop(f);
}

Test(client_devices, another_session_has_another_stream) {
    ad_session *s, *t;
    fake *f = fake_open(NULL, &s), *g = fake_open(NULL, &t);
    cr_assert_eq(ad_stream_use(s, 1), 0);
    cr_assert(ad_stream_current(s) == 1 && ad_stream_current(t) == 0);
    ad_array *a = make_array(s), *b = make_array(t);
    cr_assert(get_device(a) == 1 && get_device(b) == 0);
    cr_assert(ad_sync(s) == 0 && ad_sync(t) == 0);
    cr_assert(f->ons == 1 && g->ons == 0);
    ad_array_release(a);
    ad_array_release(b);
    ad_session_close(s);
    ad_session_close(t);
    fake_stop(f);
    fake_stop(g);
}

Test(client_devices, events_and_facts) {
    ad_session *s;
    fake *f = fake_open(NULL, &s);
    uint64_t first = 0, second = 0, again;
    double ms = 0;
    bool done = false;
    ad_device_facts facts;
    ad_pool_facts pool;
    cr_assert_eq(ad_event_record(s, 0, true, &first), 0);
    cr_assert_eq(ad_event_record(s, 0, true, &second), 0);
    again = second;
    cr_assert_eq(ad_event_record(s, 0, true, &again), 0);
    cr_assert(first != second && again == second);
    cr_assert_eq(ad_event_elapsed(s, first, second, &ms), 0);
    cr_assert_eq(ms, 1.5);
    cr_assert(ad_event_done(s, first, &done) == 0 && done);
    done = false;
    cr_assert(ad_stream_done(s, 0, &done) == 0 && done);
    cr_assert(ad_stream_wait(s, 0) == 0 && ad_event_wait(s, second) == 0 && ad_stream_follow(s, 0, first) == 0);
    cr_assert(ad_event_drop(s, first) == 0 && ad_event_drop(s, second) == 0);
    cr_assert_eq(ad_device_get_facts(s, 1, &facts), 0);
    cr_assert(facts.memory == 10 && facts.free == 20 && facts.major == 30 && facts.minor == 40 &&
              facts.multiprocessors == 50 && facts.peers == 60);
    cr_assert_eq(ad_device_get_facts(s, 2, &facts), AD_E_VALUE);
    cr_assert_str_eq(ad_error_message(), "device 2 does not exist: the server has 2, numbered from 0");
    cr_assert_eq(ad_stream_open(s, -1, 0, &first), AD_E_VALUE);
    cr_assert_eq(ad_pool_ask(s, 0, AD_POOL_LIMIT, 5, &pool), 0);
    cr_assert(pool.used == 10 && pool.total == 20 && pool.free_blocks == 30 && pool.limit == 40);
    ad_session_close(s);
    cr_assert_eq(f->violated, false);
    fake_stop(f);
}
