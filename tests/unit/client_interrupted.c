/* A program that is interrupted while it sends. At each byte of what it sends the connection takes no more until then.
 * The call that was interrupted is made again, and everything comes out as without an interrupt: the rest of a frame is
 * sent by whoever sends next, and a descriptor goes with its byte. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client-c/client.h"
#include "tests/unit/client_connection.h"
#include "tests/unit/client_fake.h"

static bool alone; /* sessions have no thread of their own */

/* Open a session with a server made for tests, which has a thread. */
static fake *open_fake(ad_session **s) {
    connection.threadless = false;
    fake *f = fake_open(NULL, s);
    cr_assert_not_null(f);
    connection.threadless = alone;
    return f;
}

static bool stays_full; /* also after an interrupt */

/* Interrupt the program once, after which the connection takes everything. */
static int interrupt_when_full(void *interrupts) {
    if (connection.room != FULL) return 0;
    if (!stays_full) connection_clear();
    ++*(int *)interrupts;
    return 1;
}

/* ---- programs ---- */

/* Make a call again that was interrupted. */
#define AGAIN(call)                                                          \
    do {                                                                     \
        int status = (call);                                                 \
        if (status == AD_E_INTERRUPTED) status = (call);                     \
        cr_assert_eq(status, 0, "%ld bytes: %s", limit, ad_error_message()); \
    } while (0)

static ad_array *upload_numbers(ad_session *s, int64_t n, long limit) {
    double *x = malloc((size_t)n * sizeof *x);
    ad_array *a = NULL;
    for (int64_t i = 0; i < n; i++) x[i] = (double)i;
    AGAIN(ad_upload(s, AD_FLOAT64, 1, &n, x, (size_t)n * sizeof *x, &a));
    free(x);
    return a;
}

static void check_numbers(const ad_array *a, int64_t n, double more, long limit) {
    double *x = malloc((size_t)n * sizeof *x);
    AGAIN(ad_download(a, x, (size_t)n * sizeof *x));
    for (int64_t i = 0; i < n; i++) cr_assert_eq(x[i], (double)i + more, "%ld bytes: element %d", limit, (int)i);
    free(x);
}

static void send_over_the_socket(ad_session *s, long limit) {
    enum { FEW = 3, MANY = 1000 };
    ad_array *few = upload_numbers(s, FEW, limit), *more = NULL, *many = upload_numbers(s, MANY, limit);
    AGAIN(ad_add(ad_of(few), ad_float(1), &more));
    check_numbers(more, FEW, 1, limit);
    check_numbers(many, MANY, 0, limit);
    ad_array_release(few);
    ad_array_release(many);
    ad_array_release(more);
}

static void send_by_a_window(ad_session *s, long limit) {
    enum { MANY = 16384 };
    ad_array *few = upload_numbers(s, 1, limit), *many = upload_numbers(s, MANY, limit);
    check_numbers(many, MANY, 0, limit);
    ad_array_release(few);
    ad_array_release(many);
}

static void send_without_end(ad_session *s, long limit) {
    enum { OPERATIONS = 9000, FEW = 3 };
    ad_array *a = upload_numbers(s, FEW, limit), *b = NULL;
    for (int i = 0; i < OPERATIONS; i++) {
        AGAIN(ad_add(ad_of(a), ad_float(1), &b));
        if (i + 1 < OPERATIONS) ad_array_release(b);
    }
    check_numbers(b, FEW, 1, limit);
    ad_array_release(a);
    ad_array_release(b);
}

/* Run a program whose connection is full after `limit` bytes. Returns the bytes that it has sent. */
static long run_program(void (*program)(ad_session *, long), long limit, int *interrupts) {
    ad_session *s;
    fake *f = open_fake(&s);
    ad_session_set_interrupt(s, interrupt_when_full, interrupts);
    connection.sent = 0;
    connection.room = limit;
    program(s, limit);
    connection_clear();
    cr_assert_eq(ad_sync(s), 0, "%ld bytes: %s", limit, ad_error_message());
    cr_assert_not(f->misplaced, "%ld bytes", limit);
    ad_session_close(s);
    fake_stop(f);
    return connection.sent;
}

/* Interrupt a program at each of the first and of the last bytes, and at some between them. */
static void interrupt_everywhere(void (*program)(ad_session *, long), long ends, long ends_step, long step) {
    int interrupts = 0, runs = 0;
    const long all = run_program(program, ANY, &interrupts);
    cr_assert_eq(interrupts, 0);
    for (long limit = 0; limit < all; runs++, limit += limit < ends || limit > all - ends ? ends_step : step)
        run_program(program, limit, &interrupts);
    cr_expect(interrupts > runs / 2, "%d of %d", interrupts, runs);
}

Test(client_interrupted, at_each_byte_of_a_frame) { interrupt_everywhere(send_over_the_socket, 150, 3, 1999); }

Test(client_interrupted, around_a_descriptor) { interrupt_everywhere(send_by_a_window, 45, 4, 31); }

Test(client_interrupted, where_much_has_gathered) { interrupt_everywhere(send_without_end, 0, 1, 60001); }

Test(client_interrupted, where_each_call_sends_by_itself) {
    alone = true;
    interrupt_everywhere(send_over_the_socket, 150, 7, 1999);
    interrupt_everywhere(send_by_a_window, 45, 9, 31);
}

Test(client_interrupted, released_arrays_wait_for_the_connection) {
    enum { MANY = 60000 };
    static ad_array *all[MANY];
    ad_session *s;
    fake *f = open_fake(&s);
    for (int i = 0; i < MANY; i++) cr_assert_eq(ad_empty(s, AD_INT8, 0, NULL, &all[i]), 0);
    cr_assert_eq(ad_sync(s), 0);
    connection.room = 0;
    for (int i = 0; i < MANY; i++) ad_array_release(all[i]);
    connection_clear();
    while (f->frees < MANY) cr_assert_eq(ad_sync(s), 0);
    ad_session_close(s);
    fake_stop(f);
}

/* ---- forks ---- */

/* Fork, and use an array in the child. True: the child has it. */
static bool fork_and_use(const ad_array *a) {
    int state = -1;
    const pid_t pid = fork();
    if (pid == 0) {
        ad_array *b = NULL;
        connection_clear();
        int status = ad_add(ad_of(a), ad_float(1), &b);
        _exit(status == 0 ? 0 : status == AD_E_CONNECTION ? 1 : 2);
    }
    cr_assert_eq(waitpid(pid, &state, 0), pid);
    cr_assert(WIFEXITED(state) && WEXITSTATUS(state) < 2, "%d", state);
    return state == 0;
}

/* A session whose connection is full after some bytes of an addition. */
typedef struct addition {
    fake *f;
    ad_session *s;
    ad_array *a, *sum;
    int interrupts, status;
} addition;

static void begin_addition(addition *x, long limit) {
    *x = (addition){0};
    x->f = open_fake(&x->s);
    x->a = upload_numbers(x->s, 3, 0);
    cr_assert_eq(ad_sync(x->s), 0);
    ad_session_set_interrupt(x->s, interrupt_when_full, &x->interrupts);
    connection.room = limit;
    x->status = ad_add(ad_of(x->a), ad_float(1), &x->sum);
}

static void end_addition(addition *x) {
    ad_array_release(x->a);
    ad_array_release(x->sum);
    ad_session_close(x->s);
    fake_stop(x->f);
}

/* Fork while the connection takes nothing. The fork does not wait for ever; this process's session goes on. */
static void fork_while_full(bool gone) {
    addition x;
    stays_full = true;
    begin_addition(&x, 5);
    cr_assert(x.status == AD_E_INTERRUPTED || (x.status == 0 && !alone), "%d", x.status);
    while (connection.room != FULL) sched_yield(); /* the session's thread sends it */
    if (gone) {
        shutdown(x.f->fd, SHUT_RDWR);
        fake_wait(x.f);
    }
    cr_expect_not(fork_and_use(x.a));
    connection_clear();
    if (!gone) check_numbers(x.a, 3, 0, 0);
    end_addition(&x);
}

Test(client_interrupted, a_fork_while_the_connection_is_full) {
    fork_while_full(false);
    fork_while_full(true);
    alone = true;
    fork_while_full(false);
    fork_while_full(true);
}

Test(client_interrupted, a_fork_behind_an_interrupt) {
    alone = true;
    for (long limit = 0; limit < 60; limit += 5) {
        addition x;
        begin_addition(&x, limit);
        cr_expect(x.status == 0 || x.status == AD_E_INTERRUPTED);
        connection_clear();
        fork_and_use(x.a);
        check_numbers(x.a, 3, 0, limit);
        end_addition(&x);
    }
}

static void *open_session(void *f) {
    ad_session *s = NULL;
    const int status = ad_session_open(((fake *)f)->url, &s);
    return (void *)(intptr_t)status;
}

Test(client_interrupted, a_fork_while_another_thread_connects) {
    pthread_t thread;
    void *status;
    int state;
    fake *f = fake_start(&(fake_options){.greeting = ""});
    cr_assert_eq(pthread_create(&thread, NULL, open_session, f), 0);
    while (!f->frames) sched_yield();
    const pid_t pid = fork();
    if (pid == 0) _exit(0);
    cr_assert_eq(waitpid(pid, &state, 0), pid);
    shutdown(f->fd, SHUT_RDWR);
    pthread_join(thread, &status);
    cr_expect_eq((intptr_t)status, AD_E_CONNECTION);
    fake_stop(f);
}
