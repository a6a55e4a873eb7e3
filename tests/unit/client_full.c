/* Sessions whose connection takes nothing for longer than a moment, as the server reads nothing: interrupts,
 * descriptors and forks meanwhile, the server's end, and the session's. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "protocol/rows_request.h"
#include "tests/unit/client_program.h"

static int hang_up(void *unused) {
    (void)unused;
    shutdown(program.f->fd, SHUT_RDWR);
    return 0;
}

/* A program that waits for a full connection is told that the server has gone, not that it was interrupted. */
Test(client_full, servers_that_end_while_the_connection_is_full) {
    static uint8_t bytes[9000];
    const int64_t n = sizeof bytes;
    for (int i = 0; i < 2; i++) {
        int fd = -1;
        ad_array *large = NULL;
        program_begin_full(NULL);
        connection_clear();
        ad_session_set_interrupt(program.s, NULL, NULL);
        cr_assert_eq(ad_empty(program.s, AD_INT8, 1, &n, &large), 0);
        cr_assert_eq(ad_sync(program.s), 0);
        ad_session_set_interrupt(program.s, hang_up, NULL);
        connection.room = 0;
        cr_expect_eq(i ? program_pass_window(&fd) : ad_write(large, bytes, sizeof bytes), AD_E_CONNECTION, "%s",
                     ad_error_message());
        cr_expect_not_null(strstr(ad_error_message(), "the server has gone"), "%s", ad_error_message());
        cr_expect_eq(ad_write(large, bytes, sizeof bytes), AD_E_CONNECTION);
        ad_array_release(large);
        program_end();
        cr_expect_not(program_has(fd));
    }
}

/* A descriptor that could not be sent goes with its byte later, and a child has no copy of it. */
Test(client_full, forks_behind_descriptors_that_have_not_gone) {
    for (int resume = 0; resume < 2; resume++)
        for (int windows = 1; windows < 4; windows++) {
            int fd[3], state = -1;
            program_begin_full(&(fake_options){.resume = resume ? RESUME_MS : 0});
            for (int i = 0; i < windows; i++) cr_assert_eq(program_pass_window(&fd[i]), AD_E_INTERRUPTED);
            cr_expect_eq(windows < 3 || !program_has(fd[2]), true, "only two are kept");
            const pid_t pid = fork();
            if (pid == 0) _exit(program_has(fd[0]) || (windows > 1 && program_has(fd[1])));
            cr_assert_eq(waitpid(pid, &state, 0), pid);
            cr_expect_eq(state, 0);
            connection_clear();
            ad_session_set_interrupt(program.s, NULL, NULL);
            program_check();
            cr_expect(program.f->nwindows == (windows == 1 ? 1u : 2u) && !program.f->misplaced);
            program_end();
        }
}

Test(client_full, descriptors_that_have_not_gone_when_the_session_ends) {
    int fd;
    program_begin_full(NULL);
    cr_assert_eq(program_pass_window(&fd), AD_E_INTERRUPTED);
    cr_expect(program_has(fd));
    ad__kill_session(program.s, "that was it");
    cr_expect_not(program_has(fd));
    program_end();
}

/* What an interrupt has left is sent over the next connection. */
Test(client_full, descriptors_that_have_not_gone_when_the_connection_breaks) {
    for (int forks = 0; forks < 2; forks++) {
        program_begin_full(&(fake_options){.resume = RESUME_MS});
        cr_assert_eq(program_pass_window(NULL), AD_E_INTERRUPTED);
        connection.threadless = false;
        program_lose();
        if (forks) cr_assert_eq(program_pass_window(NULL), 0);
        if (forks) program_fork();
        connection_clear();
        ad_session_set_interrupt(program.s, NULL, NULL);
        fake_return(program.f, program.f->taken);
        program_check();
        cr_expect_eq((int)program.f->nwindows, forks + 1);
        program_end();
    }
}

Test(client_full, a_full_window_of_what_has_not_gone) {
    ad_array *b = NULL;
    int status = 0;
    program_begin_full(&(fake_options){.window_ops = 16, .no_ack = true});
    connection_clear();
    while (program.s->encoded.ops < 13) {
        cr_assert_eq(ad_add(ad_of(program.a), ad_float(1), &b), 0);
        ad_array_release(b);
    }
    connection.room = 0;
    for (int i = 0; i < 3; i++) cr_expect_eq(ad_add(ad_of(program.a), ad_float(1), &b), AD_E_INTERRUPTED);
    connection_clear();
    ad_session_set_interrupt(program.s, NULL, NULL);
    program.f->options.no_ack = false;
    status = ad_sync(program.s);
    cr_expect_eq(status, 0);
    program_end();
}

/* ---- closing ---- */

/* A session is closed whose connection takes nothing: by itself, and behind what has gathered. */
Test(client_full, full_connections_are_closed) {
    for (int operations = 1; operations < 3; operations++) {
        ad_array *b = NULL;
        program_begin_full(&(fake_options){.resume = RESUME_MS});
        for (int i = 0; i < operations; i++) cr_expect_eq(ad_add(ad_of(program.a), ad_float(1), &b), AD_E_INTERRUPTED);
        ad_session_set_interrupt(program.s, NULL, NULL);
        program_end();
    }
}

static bool is_writing(void) {
    pthread_mutex_lock(&program.s->lock);
    const bool writing = program.s->output.writing;
    pthread_mutex_unlock(&program.s->lock);
    return writing;
}

Test(client_full, a_session_is_closed_while_its_thread_writes) {
    enum { FEW = 20 };
    static uint8_t bytes[9000];
    const int64_t n = sizeof bytes;
    ad_array *all[FEW], *large = NULL;
    program_begin(&(fake_options){.resume = RESUME_MS});
    cr_assert_eq(ad_empty(program.s, AD_INT8, 1, &n, &large), 0);
    for (int i = 0; i < FEW; i++) cr_assert_eq(ad_empty(program.s, AD_INT8, 0, NULL, &all[i]), 0);
    cr_assert_eq(ad_sync(program.s), 0);
    connection.room = 0;
    for (int i = 0; i < FEW; i++) ad_array_release(all[i]);
    while (!is_writing()) sched_yield();
    ad_session_set_interrupt(program.s, program_interrupt, NULL);
    cr_expect_eq(ad_write(large, bytes, sizeof bytes), AD_E_INTERRUPTED);
    ad_session_set_interrupt(program.s, NULL, NULL);
    ad_array_release(large);
    connection_leap = 2;
    program_end();
}

Test(client_full, a_session_is_closed_while_its_childs_waits_for_a_connection) {
    program_begin(&(fake_options){.resume = RESUME_MS});
    program_lose();
    program_fork();
    connection_leap = 4;
    program_end();
}

/* ---- interrupts ---- */

/* The server makes what a program asks for that does not wait for the answer: it is freed. */
Test(client_full, what_nobody_waits_for_is_freed) {
    const uint64_t fields[5] = {0};
    uint64_t buffer = 0;
    ad_slot slot;
    program_begin(NULL);
    ad_session_set_interrupt(program.s, program_interrupt, NULL);
    ad__slot_init(&slot, NULL, 0);
    const int fd = dup(program.f->listener);
    cr_expect_eq(ad__pass_ask(program.s, AD_REQ_IMPORT, 5, fields, "name", fd, &slot, &buffer), AD_E_INTERRUPTED);
    cr_expect_gt(buffer, 0);
    ad_session_set_interrupt(program.s, NULL, NULL);
    while (program.f->frees < 1) cr_assert_eq(ad_sync(program.s), 0);
    program_check();
    program_end();
}

static void *finish_piece(void *slot) {
    for (bool waits = false; !waits; sched_yield()) {
        pthread_mutex_lock(&program.s->lock);
        waits = program.s->waiting.threads > 0;
        if (waits) ((ad_slot *)slot)->receiving = false;
        ad__wake_all(program.s);
        pthread_mutex_unlock(&program.s->lock);
    }
    return NULL;
}

static pthread_t reader;

/* Interrupt a call into whose memory another thread is just writing a piece of the answer. */
static int interrupt_amid_piece(void *unused) {
    (void)unused;
    pthread_mutex_lock(&program.s->lock);
    ad_slot *slot = program.s->input.slots;
    slot->receiving = true;
    pthread_mutex_unlock(&program.s->lock);
    return pthread_create(&reader, NULL, finish_piece, slot) == 0;
}

Test(client_full, a_piece_is_written_before_its_memory_is_given_back) {
    program_begin(NULL);
    program.f->options.mute = true;
    ad_session_set_interrupt(program.s, interrupt_amid_piece, NULL);
    cr_expect_eq(ad_sync(program.s), AD_E_INTERRUPTED);
    pthread_join(reader, NULL);
    ad_session_set_interrupt(program.s, NULL, NULL);
    program_end();
}
