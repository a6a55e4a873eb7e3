/* Forks at bad moments: of a session that is over or full, in the middle of a call, while other threads read or write,
 * and where no descriptor goes through. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/client_program.h"

/* Fork, and return whether the child can use the array. */
static bool child_has_array(void) {
    int state = -1;
    const pid_t pid = fork();
    if (pid == 0) {
        ad_array *b = NULL;
        program_become_child();
        _exit(ad_add(ad_of(program.a), ad_float(1), &b) == 0);
    }
    cr_assert_eq(waitpid(pid, &state, 0), pid);
    cr_assert(WIFEXITED(state), "%d", state);
    return WEXITSTATUS(state);
}

Test(client_forks, forks_of_sessions_that_are_over) {
    program_begin(NULL);
    ad__kill_session(program.s, "that was it");
    cr_expect_not(child_has_array());
    cr_expect_eq(ad_settle(program.s), AD_E_CONNECTION);
    program_end();
}

/* The session finds that out as it sends what comes before the fork. One that may be resumed waits for its server,
 * until the clock leaps. */
Test(client_forks, forks_whose_server_has_just_gone) {
    for (int resumable = 0; resumable < 2; resumable++) {
        ad_array *b = NULL;
        program_begin_full(&(fake_options){.resume = resumable ? RESUME_MS : 0});
        ad_add(ad_of(program.a), ad_float(1), &b); /* a call that would wait for the connection is interrupted */
        cr_assert(ad__has_unsent(program.s) || program.s->output.gathered.size);
        shutdown(program.f->fd, SHUT_RDWR);
        connection.room = ANY;
        connection_leap = resumable ? 4 : 0;
        cr_expect_not(child_has_array());
        connection_leap = 0;
        ad_array_release(b);
        program_end();
    }
}

Test(client_forks, forks_without_arrays) {
    int state = -1;
    program_begin(NULL);
    ad_array_release(program.a);
    program.a = NULL;
    const pid_t pid = fork();
    if (pid == 0) _exit(ad_session_usable(program.s));
    cr_assert_eq(waitpid(pid, &state, 0), pid);
    cr_expect_eq(state, 0, "there is nothing that the child could use");
    program_end();
}

Test(client_forks, forks_with_a_full_window) {
    enum { FEW = 24 };
    ad_array *all[FEW], *sums[16];
    int n = 0;
    program_begin(&(fake_options){.window_ops = 16});
    for (int i = 0; i < FEW; i++) {
        cr_assert_eq(ad_empty(program.s, AD_INT8, 0, NULL, &all[i]), 0);
        cr_assert_eq(ad_sync(program.s), 0);
    }
    program.f->options.no_ack = true;
    while (program.s->encoded.ops - program.s->window.acked < 14)
        cr_assert_eq(ad_add(ad_of(program.a), ad_of(program.a), &sums[n++]), 0);
    for (int i = 0; i < FEW; i++) ad_array_release(all[i]);
    while (program.s->encoded.ops - program.s->window.acked < 16) cr_assert_eq(ad_flush(program.s), 0);
    cr_expect_not(child_has_array());
    program.f->options.no_ack = false;
    fake_acknowledge(program.f);
    program_check();
    while (n) ad_array_release(sums[--n]);
    program_end();
}

/* Wait until a thread waits for what the session does. */
static void await_waiting(void) {
    for (bool waits = false; !waits; sched_yield()) {
        pthread_mutex_lock(&program.s->lock);
        waits = program.s->waiting.threads > 0;
        pthread_mutex_unlock(&program.s->lock);
    }
}

static void begin_writing(void) {
    for (bool begun = false; !begun; sched_yield()) {
        pthread_mutex_lock(&program.s->lock);
        begun = !program.s->output.writing;
        program.s->output.writing = true;
        pthread_mutex_unlock(&program.s->lock);
    }
}

static void end_writing(void) {
    pthread_mutex_lock(&program.s->lock);
    program.s->output.writing = false;
    ad__wake_all(program.s); /* who has read the other clock would sleep for seconds */
    pthread_mutex_unlock(&program.s->lock);
}

/* A fork waits for a thread that writes, for some time. The session's thread waits for it, too: between two attempts
 * to connect it would sleep by the clock that leaps. */
Test(client_forks, forks_while_a_thread_writes_for_long) {
    program_begin(&(fake_options){.resume = RESUME_MS});
    begin_writing();
    program_lose();
    await_waiting();
    cr_assert_eq(program_pass_window(NULL), 0);
    connection_leap = 2;
    cr_expect_not(child_has_array());
    connection_clear();
    fake_return(program.f, program.f->taken);
    end_writing();
    program_check();
    program_end();
}

static atomic_bool fork_is_over;

/* Take the session up again once a thread waits for that. */
static void *return_once_awaited(void *unused) {
    bool awaited = false;
    while (!awaited && !atomic_load(&fork_is_over)) {
        pthread_mutex_lock(&program.s->lock);
        awaited = program.s->waiting.threads > 0;
        pthread_mutex_unlock(&program.s->lock);
        sched_yield();
    }
    fake_return(program.f, program.f->taken);
    return unused;
}

/* The parent may end behind the fork, and then nobody would send its message again. */
Test(client_forks, forks_wait_for_a_connection_that_was_just_lost) {
    pthread_t thread;
    program_begin(&(fake_options){.resume = RESUME_MS});
    program_lose();
    program_move_loss(LONG);
    cr_assert_eq(pthread_create(&thread, NULL, return_once_awaited, NULL), 0);
    const pid_t pid = fork();
    if (pid == 0) _exit(0);
    pthread_mutex_lock(&program.s->lock);
    const bool lost = program.s->resume.lost;
    pthread_mutex_unlock(&program.s->lock);
    atomic_store(&fork_is_over, true);
    pthread_join(thread, NULL);
    cr_expect_not(lost);
    cr_expect_eq(waitpid(pid, NULL, 0), pid);
    program_check();
    program_end();
}

/* The server breaks the protocol while a fork waits for it. */
Test(client_forks, forks_during_which_the_session_ends) {
    static const uint8_t nonsense[16] = {255, 255, 255, 255};
    ad_array *b = NULL;
    program_begin_full(&(fake_options){.resume = RESUME_MS});
    cr_assert_eq(ad_add(ad_of(program.a), ad_float(1), &b), AD_E_INTERRUPTED);
    cr_assert_eq(send(program.f->fd, nonsense, sizeof nonsense, 0), sizeof nonsense);
    cr_expect_not(child_has_array());
    connection_clear();
    cr_expect_eq(ad_sync(program.s), AD_E_CONNECTION);
    program_end();
}

/* End the session behind the rest of a fork message, whose first byte goes alone. */
static void kill_behind_fork(int fd) {
    static int sends;
    if (fd == program.s->connection.fd && program.s->child.operation && ++sends == 2)
        ad__kill_session(program.s, "that was it");
}

Test(client_forks, forks_whose_message_is_the_last_one) {
    program_begin(NULL);
    connection.on_sent = kill_behind_fork;
    cr_expect_not(child_has_array());
    connection.on_sent = NULL;
    cr_expect_eq(ad_sync(program.s), AD_E_CONNECTION);
    program_end();
}

/* Where no descriptor can be passed the server refuses the fork, or has gone before it could. */
Test(client_forks, forks_that_pass_nothing) {
    for (int gone = 0; gone < 2; gone++) {
        program_begin(NULL);
        connection.refuses = true;
        if (gone) program.f->options.die_after = (int)program.f->messages + 1;
        cr_expect_not(child_has_array());
        if (gone) fake_wait(program.f);
        cr_expect_not(child_has_array(), "it is not tried again");
        connection.refuses = false;
        if (gone) cr_expect_eq(ad_sync(program.s), AD_E_CONNECTION);
        else program_check();
        program_end();
    }
}

static void *sync_session(void *s) { return (void *)(intptr_t)ad_sync(s); }

static int interrupt_later(void *stop) { return *(atomic_bool *)stop; }

Test(client_forks, forks_while_another_thread_reads) {
    static atomic_bool stop;
    pthread_t thread;
    void *status;
    int state = -1;
    program_begin(NULL);
    program.f->options.mute = true;
    ad_session_set_interrupt(program.s, interrupt_later, &stop);
    cr_assert_eq(pthread_create(&thread, NULL, sync_session, program.s), 0);
    for (bool reads = false; !reads; sched_yield()) {
        pthread_mutex_lock(&program.s->lock);
        reads = program.s->input.reading;
        if (reads) ad__resume_check(program.s); /* the other thread sees all that there is to see */
        pthread_mutex_unlock(&program.s->lock);
    }
    const pid_t pid = fake_fork(program.f);
    if (pid == 0) _exit(ad_sync(program.s) == AD_E_CONNECTION ? 0 : 1); /* this server takes up no children */
    cr_assert_eq(waitpid(pid, &state, 0), pid);
    cr_expect_eq(state, 0);
    stop = true;
    pthread_join(thread, &status);
    cr_expect_eq((intptr_t)status, AD_E_INTERRUPTED);
    program_end();
}

static pid_t forked;

static int fork_once(void *unused) {
    (void)unused;
    forked = fake_fork(program.f);
    return 1;
}

/* A program's handler of a signal forks while a call waits: the child's call is interrupted as its parent's. */
Test(client_forks, forks_in_the_middle_of_a_call) {
    int state = -1;
    program_begin(NULL);
    program.f->options.mute = true;
    ad_session_set_interrupt(program.s, fork_once, NULL);
    const int status = ad_sync(program.s);
    if (forked == 0) _exit(status == AD_E_INTERRUPTED ? 0 : 1);
    cr_assert_eq(waitpid(forked, &state, 0), forked);
    cr_expect_eq(state, 0);
    cr_expect_eq(status, AD_E_INTERRUPTED);
    program_end();
}
