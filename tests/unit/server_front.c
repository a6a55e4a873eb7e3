/* A front in the test's own process: see server_front.h. */
#include "tests/unit/server_front.h"

#include <criterion/criterion.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/common/os.h"

void (*on_front_stop)(ad_front *f);

/* ---- what the server's main file has ---- */

void ad__front_stop(ad_front *f, int status, const char *why) {
    (void)status, (void)why;
    if (on_front_stop) on_front_stop(f);
}

void ad__front_ready(ad_front *f) { (void)f; }

int ad__front_reload(ad_front *f, ad_fault *fault) { return (void)f, ad__fault(fault, AD_E_UNSUPPORTED, "no"); }

/* ---- the front ---- */

void begin_front(ad_front *f, const char *const *options) {
    char *argv[12] = {"arrayd"};
    int argc = 1;
    ad_config_action action;
    ad_fault fault = {0};
    while (options && *options) argv[argc++] = (char *)(uintptr_t)*options++;
    memset(f, 0, sizeof *f);
    f->lock = f->door.fd = -1;
    f->ready = true;
    f->instance = 7;
    cr_assert_eq(ad__config_load(&f->config, argc, argv, NULL, &action, &fault), 0, "%s", fault.text);
    cr_assert_eq(uv_loop_init(&f->loop), 0);
    uv_timer_init(&f->loop, &f->timers.retry);
    uv_timer_init(&f->loop, &f->timers.expiry);
    f->timers.retry.data = f;
    ad__spin_init(f);
    ad__observability_init(f);
    cr_assert_eq(ad__entrance_load(f, &fault), 0, "%s", fault.text);
}

static void close_handle(uv_handle_t *handle, void *user) {
    (void)user;
    if (!uv_is_closing(handle)) uv_close(handle, NULL);
}

void end_front(ad_front *f) {
    ad__handshake_close_all(f, "the test is over");
    ad__observability_close(f);
    run_front(f);
    for (ad_domain *d = f->domains; d; d = d->next)
        if (d->channel_open) ad__channel_close(&d->channel);
    uv_walk(&f->loop, close_handle, NULL);
    uv_run(&f->loop, UV_RUN_DEFAULT);
    cr_expect_eq(uv_loop_close(&f->loop), 0);
    ad__session_entry_remove_all(f, NULL);
    ad__domain_free_all(f);
    ad__entrance_free(f);
    ad__config_free(&f->config);
}

void run_front(ad_front *f) {
    for (int i = 0; i < 20; i++) uv_run(&f->loop, UV_RUN_NOWAIT);
}

void send_to_front(ad_front *f, int fd, const void *bytes, size_t size) {
    cr_assert_eq(send(fd, bytes, size, MSG_NOSIGNAL), (ssize_t)size);
    run_front(f);
}

/* ---- workers ---- */

ad_domain *add_domain(ad_front *f, const char *name, ad_channel *worker) {
    int fd[2];
    ad_fault fault;
    ad_domain *d = ad__domain_new(f, name);
    cr_assert_not_null(d);
    cr_assert_eq(ad__channel_pair(fd, &fault), 0);
    ad__channel_init(&d->channel, fd[0], AD_TO_FRONT);
    ad__channel_init(worker, fd[1], AD_TO_WORKER);
    cr_assert_eq(uv_poll_init(&f->loop, &d->poll, fd[0]), 0);
    d->poll.data = d;
    d->channel_open = d->polled = true;
    d->state = AD_DOMAIN_READY;
    snprintf(d->offer.who, sizeof d->offer.who, "cpu");
    ad__domain_watch(d);
    return d;
}

ad_note take_note(ad_channel *worker, uint32_t kind, int *fd) {
    ad_note note = {0};
    int got = -1;
    cr_assert_eq(ad__channel_receive(worker, &note, &got), 1, "there is no note");
    cr_assert_eq(note.kind, kind, "a note %s and not %s", ad__note_name(note.kind), ad__note_name(kind));
    if (fd) *fd = got;
    else if (got >= 0) close(got);
    return note;
}

bool is_told_nothing(ad_channel *worker) {
    ad_note note;
    int fd;
    return ad__channel_receive(worker, &note, &fd) <= 0;
}

/* ---- TLS ---- */

void make_tls(ad_front *f) {
    char path[] = "/tmp/arrayd-test-XXXXXX";
    ad_bytes pem = AD_BYTES_INIT;
    ad_fault fault = {0};
    const int fd = mkstemp(path);
    if (ad__tls_make_certificate("localhost", &pem, &fault)) cr_skip_test("no OpenSSL");
    cr_assert_eq(write(fd, pem.data, pem.size), (ssize_t)pem.size);
    cr_assert_eq(ad__tls_server(&(ad_tls_files){.certificate = path}, &f->tls, &fault), 0, "%s", fault.text);
    close(fd);
    unlink(path);
    ad__bytes_free(&pem);
}

/* ---- calls that fail ---- */

static int left; /* allocations until one fails */
static void *(*real_calloc)(size_t n, size_t size);

static void *fail_or_calloc(size_t n, size_t size) { return --left ? real_calloc(n, size) : NULL; }

void fail_calloc(int n) {
    left = n;
    real_calloc = ad__os.calloc;
    ad__os.calloc = fail_or_calloc;
}

void restore_calls(void) { ad__os.calloc = real_calloc; }

static atomic_int closes;
static atomic_bool held;
static _Atomic(pthread_t) holder;
static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;

int __real_close(int fd);
int __wrap_close(int fd);
int __wrap_close(int fd) {
    if (held && !pthread_equal(pthread_self(), holder)) {
        pthread_mutex_lock(&gate);
        pthread_mutex_unlock(&gate);
    }
    const int result = __real_close(fd);
    if (!closes || --closes) return result;
    errno = EIO;
    return -1;
}

void fail_close(int n) { closes = n; }

void hold_closing(bool hold) {
    holder = pthread_self();
    if (hold) pthread_mutex_lock(&gate);
    else pthread_mutex_unlock(&gate);
    held = hold;
}

/* ---- clients ---- */

void make_connection(int fd[2]) {
    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fd), 0);
}

size_t fill_socket(int fd) {
    static const char zeros[65536];
    size_t total = 0;
    for (ssize_t n; (n = send(fd, zeros, sizeof zeros, MSG_DONTWAIT | MSG_NOSIGNAL)) > 0;) total += (size_t)n;
    return total;
}

ssize_t read_text(int fd, char *text, size_t room) {
    size_t size = 0;
    ssize_t n = -1;
    while (size < room - 1 && (n = recv(fd, text + size, room - 1 - size, MSG_DONTWAIT)) > 0) size += (size_t)n;
    text[size] = 0;
    return size || (n < 0 && errno == EAGAIN) ? (ssize_t)size : -1;
}
