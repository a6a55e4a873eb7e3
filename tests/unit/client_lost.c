/* Sessions whose connection is lost for longer than a moment: what a program asks for meanwhile, forks and descriptors
 * among it, is sent when the connection is there again, or given up when the time is over, and leaves nothing behind.
 */
#include <criterion/criterion.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>

#include "tests/unit/client_program.h"

static int kill_session(void *unused) {
    (void)unused;
    ad__kill_session(program.s, "that was it");
    return 0;
}

Test(client_lost, descriptors_wait_for_each_other) {
    int first, second;
    program_begin(&(fake_options){.resume = RESUME_MS});
    program_lose();
    cr_assert_eq(program_pass_window(&first), 0, "it goes over the next connection");
    ad_session_set_interrupt(program.s, program_interrupt, NULL);
    cr_expect_eq(program_pass_window(&second), AD_E_INTERRUPTED);
    cr_expect(program_has(first) && !program_has(second));
    ad_session_set_interrupt(program.s, kill_session, NULL);
    cr_expect_eq(program_pass_window(&second), AD_E_CONNECTION);
    cr_expect_not_null(strstr(ad_error_message(), "that was it"));
    cr_expect(!program_has(first) && !program_has(second));
    cr_expect_eq(program_pass_window(NULL), AD_E_CONNECTION);
    pthread_mutex_lock(&program.s->lock);
    ad__resume_check(program.s); /* a session that is over is left alone */
    pthread_mutex_unlock(&program.s->lock);
    program_end();
}

Test(client_lost, a_full_window_is_waited_for) {
    static uint8_t bytes[9000];
    const int64_t n = sizeof bytes;
    ad_array *b = NULL, *large = NULL;
    int status = 0;
    program_begin(&(fake_options){.resume = RESUME_MS, .window_ops = 16});
    cr_assert_eq(ad_empty(program.s, AD_INT8, 1, &n, &large), 0);
    cr_assert_eq(ad_sync(program.s), 0);
    program_lose();
    pthread_mutex_lock(&program.s->lock);
    ad__resume_check(program.s); /* nothing is read of a lost connection */
    pthread_mutex_unlock(&program.s->lock);
    ad_session_set_interrupt(program.s, program_interrupt, NULL);
    cr_expect_eq(ad_write(large, bytes, sizeof bytes), AD_E_INTERRUPTED, "a large payload goes when nothing else does");
    for (int made = 0; !status && made < 20; made++) {
        status = ad_add(ad_of(program.a), ad_float(1), &b);
        if (!status) ad_array_release(b);
    }
    cr_expect_eq(status, AD_E_INTERRUPTED);
    cr_expect_eq(ad_write(large, bytes, sizeof bytes), AD_E_INTERRUPTED);
    ad_session_set_interrupt(program.s, NULL, NULL);
    fake_return(program.f, program.f->taken);
    program_check();
    ad_array_release(large);
    program_end();
}

/* Descriptors that are on their way, a window's and those of two forks, are sent again over the next connection. */
Test(client_lost, forks_meanwhile) {
    program_begin(&(fake_options){.resume = RESUME_MS});
    program_lose();
    cr_assert_eq(program_pass_window(NULL), 0);
    ad_array *b = NULL;
    cr_assert_eq(ad_add(ad_of(program.a), ad_float(1), &b), 0);
    for (int i = 0; i < 3; i++) program_fork();
    fake_return(program.f, program.f->taken);
    program_check();
    ad_array_release(b);
    cr_expect(program.f->nwindows == 1 && program.f->forks == 3, "%d windows, %d forks", (int)program.f->nwindows,
              (int)program.f->forks);
    program_end();
}

/* The bytes that have to be sent again fill more than a block, and the descriptor comes behind them. */
Test(client_lost, a_descriptor_behind_much) {
    static uint8_t bytes[50000];
    const int64_t n = sizeof bytes;
    ad_array *large = NULL;
    program_begin(&(fake_options){.resume = RESUME_MS});
    const uint64_t before = program.f->taken;
    program.f->options.no_ack = true;
    cr_assert_eq(ad_empty(program.s, AD_INT8, 1, &n, &large), 0);
    for (int i = 0; i < 3; i++) cr_assert_eq(ad_write(large, bytes, sizeof bytes), 0);
    cr_assert_eq(program_pass_window(NULL), 0);
    while (program.f->nwindows < 1) sched_yield();
    program_lose();
    fake_return(program.f, before);
    program_check();
    cr_expect_eq(program.f->nwindows, 2, "it came again");
    cr_expect_not(program.f->misplaced);
    ad_array_release(large);
    program_end();
}

static void expect_lost(const char *why) {
    int status = 0;
    while (!status) status = ad_sync(program.s);
    cr_expect_eq(status, AD_E_CONNECTION);
    cr_expect_not_null(strstr(ad_error_message(), why), "%s", ad_error_message());
}

/* No descriptor is left for a copy of one that may have to be sent again: the session cannot be taken up. */
Test(client_lost, no_descriptor_is_left_for_a_copy) {
    program_begin(&(fake_options){.resume = RESUME_MS});
    program_lose();
    cr_assert_eq(program_pass_window(NULL), 0);
    program_take_descriptors();
    program_fork();
    program_give_descriptors();
    fake_return(program.f, program.f->taken);
    expect_lost("what has to be sent again is not there");
    program_end();
}

Test(client_lost, a_server_that_has_forgotten_what_it_had) {
    program_begin(&(fake_options){.resume = RESUME_MS});
    program_lose();
    fake_return(program.f, 0);
    expect_lost("the server has received what was not sent, or too little");
    program_end();
}

/* ---- while a session comes back ---- */

/* Wait until the server has agreed that the session is taken up. False: something else was sent. */
static bool await_answer(int fd) {
    return !fake_is_here() && fd == program.s->resume.place[program.s->resume.next] &&
           poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 60000) > 0;
}

static void run_out_of_descriptors(int fd) {
    if (await_answer(fd)) program_take_descriptors();
}

Test(client_lost, no_descriptor_is_left_to_send_one_again) {
    program_begin(&(fake_options){.resume = RESUME_MS});
    connection.on_sent = run_out_of_descriptors;
    program_lose();
    cr_assert_eq(program_pass_window(NULL), 0);
    program_fork(); /* the window's descriptor is a copy now */
    fake_return(program.f, program.f->taken);
    expect_lost("no descriptor is left");
    program_give_descriptors();
    program_end();
}

static void kill_behind_answer(int fd) {
    if (await_answer(fd)) ad__kill_session(program.s, "that was it");
}

Test(client_lost, a_session_that_is_over_when_it_comes_back) {
    program_begin(&(fake_options){.resume = RESUME_MS});
    fake_return(program.f, program.f->taken);
    connection.on_sent = kill_behind_answer;
    program_lose();
    expect_lost("that was it");
    program_end();
}

Test(client_lost, servers_that_take_connections_and_answer_nothing) {
    program_begin(&(fake_options){.resume = RESUME_MS});
    program_lose();
    for (bool dead = false; !dead; sched_yield()) {
        connection.ahead += 1000000000;
        pthread_mutex_lock(&program.s->lock);
        dead = program.s->dead;
        pthread_cond_signal(&program.s->flusher.work); /* it may sleep by the real clock */
        pthread_mutex_unlock(&program.s->lock);
    }
    expect_lost("could not be taken up again");
    cr_expect_not_null(strstr(ad_error_message(), "no answer"), "%s", ad_error_message());
    program_end();
}

/* Each attempt is made later behind the one before, until the time is over. */
Test(client_lost, servers_that_take_no_connections) {
    program_begin(&(fake_options){.resume = RESUME_MS});
    shutdown(program.f->listener, SHUT_RDWR);
    program_lose();
    unsigned before = connection.looks;
    for (bool dead = false; !dead; sched_yield()) {
        if (connection.looks != before) connection.ahead += 700000000; /* the session's thread has gone on */
        before = connection.looks;
        pthread_mutex_lock(&program.s->lock);
        dead = program.s->dead;
        pthread_cond_signal(&program.s->flusher.work); /* it may sleep by the real clock */
        pthread_mutex_unlock(&program.s->lock);
    }
    expect_lost("could not be taken up again");
    program_end();
}

/* Nobody connects as long as a thread reads from the old connection. */
Test(client_lost, a_session_that_ends_while_a_thread_still_reads) {
    program_begin(&(fake_options){.resume = RESUME_MS});
    pthread_mutex_lock(&program.s->lock);
    program.s->input.reading = true;
    pthread_mutex_unlock(&program.s->lock);
    ad__lose_connection(program.s, "it broke");
    for (bool waits = false; !waits; sched_yield()) {
        pthread_mutex_lock(&program.s->lock);
        waits = program.s->waiting.threads > 0;
        pthread_mutex_unlock(&program.s->lock);
    }
    ad__kill_session(program.s, "that was it");
    pthread_join(program.s->flusher.thread, NULL);
    pthread_mutex_lock(&program.s->lock);
    program.s->flusher.runs = program.s->input.reading = false;
    pthread_mutex_unlock(&program.s->lock);
    expect_lost("that was it");
    program_end();
}

/* An idle connection over a network is looked at again and again, ever more seldom. */
Test(client_lost, an_idle_connection_is_looked_at) {
    program_begin(&(fake_options){.resume = RESUME_MS, .tcp = true});
    connection.ahead = (uint_fast64_t)-10000000000; /* each time to look is over already */
    connection.looks = 0;
    ad_array_release(program.a); /* wakes the session's thread */
    program.a = NULL;
    while (connection.looks < 300) sched_yield();
    program_end();
}
