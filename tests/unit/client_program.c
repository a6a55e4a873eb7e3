#include "tests/unit/client_program.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define WINDOW 65536

struct program program;

void program_begin(const fake_options *options) {
    const double x[3] = {0, 1, 2};
    const int64_t n = 3;
    program.f = fake_open(options, &program.s);
    cr_assert_not_null(program.f, "%s", ad_error_message());
    connection.threadless = program.alone;
    cr_assert_eq(ad_upload(program.s, AD_FLOAT64, 1, &n, x, sizeof x, &program.a), 0);
    cr_assert_eq(ad_sync(program.s), 0);
}

void program_begin_full(const fake_options *options) {
    program.alone = true;
    program_begin(options);
    ad_session_set_interrupt(program.s, program_interrupt, NULL);
    connection.room = 0;
}

void program_end(void) {
    connection.on_sent = NULL;
    ad_array_release(program.a);
    ad_session_close(program.s);
    fake_stop(program.f);
    connection_clear();
    connection.threadless = program.alone = false;
}

void program_check(void) {
    double x[3] = {0};
    cr_assert_eq(ad_download(program.a, x, sizeof x), 0, "%s", ad_error_message());
    cr_expect(x[0] == 0 && x[1] == 1 && x[2] == 2);
}

static bool notice_loss(ad_session *s) {
    pthread_mutex_lock(&s->lock);
    ad__resume_check(s); /* does nothing while the session's thread reads, which needs the lock then */
    const bool noticed = s->resume.lost || s->dead;
    pthread_mutex_unlock(&s->lock);
    return noticed;
}

void program_lose(void) {
    shutdown(program.f->fd, SHUT_RDWR);
    while (!notice_loss(program.s)) sched_yield();
    program_move_loss(-LONG);
}

void program_move_loss(int64_t ns) {
    pthread_mutex_lock(&program.s->lock);
    program.s->resume.deadline += (uint64_t)ns;
    pthread_mutex_unlock(&program.s->lock);
}

int program_pass_window(int *fd) {
    static uint64_t window = 100;
    uint64_t number;
    const int made = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    cr_assert(made >= 0 && ftruncate(made, WINDOW) == 0);
    cr_assert_eq(fcntl(made, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
    if (fd) *fd = made;
    return ad__pass_window(program.s, window++, WINDOW, made, &number);
}

bool program_has(int fd) { return fcntl(fd, F_GETFD) >= 0; }

int program_interrupt(void *unused) { return unused == NULL; }

static struct rlimit usual; /* descriptors that this process may have */

void program_take_descriptors(void) {
    getrlimit(RLIMIT_NOFILE, &usual);
    setrlimit(RLIMIT_NOFILE, &(struct rlimit){3, usual.rlim_max});
}

void program_give_descriptors(void) {
    if (usual.rlim_cur) setrlimit(RLIMIT_NOFILE, &usual);
}

void program_become_child(void) {
    connection_clear();
#ifdef __SANITIZE_THREAD__
    connection.threadless = true; /* the sanitizer knows no thread that a child of several threads begins */
#endif
}

void program_fork(void) {
    int state = -1;
    const pid_t pid = fork();
    if (pid == 0) {
        program_become_child();
        program_give_descriptors();
        ad_array_release(program.a);
        ad_session_close(program.s);
        _exit(0);
    }
    cr_assert_eq(waitpid(pid, &state, 0), pid);
    cr_expect_eq(state, 0);
}
