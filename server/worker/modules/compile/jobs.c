/* The compile service's thread: the cache on disk, processes that compile, and pipes to them. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/common/log.h"
#include "server/common/os.h"
#include "server/compile/scratch.h"
#include "server/compile/toolkit.h"
#include "server/worker/modules/compile/inside.h"

#define SECOND 1000000000LL
#define BACKSTOP 5      /* seconds after its own time limit at which arrayd-compile is killed */
#define PATIENCE SECOND /* ns after which a compilation does not delay others any more */
#define OVERTAKING 3    /* multiples of `most` that may run together with such compilations */
#define IN_ROW 3 /* users' jobs that are started before one of a backend's, which waits */
#define POLLED 256

/* A process that compiles, and the pipes to it. */
typedef struct ad_compilation {
    struct ad_compilation *next;
    ad_entry *entry;
    pid_t pid;
    int in, out; /* -1: the pipe is closed */
    ad_bytes job, said;
    size_t sent;
    int64_t begin;
    bool over;
} compilation;

/* ---- this machine ---- */

static void find_program(ad_service *s) {
    static const char *const places[] = {"", "/../lib/arrayd", "/../bin"};
    char self[2048];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n < 0 ? 0 : n] = 0;
    const char *slash = strrchr(self, '/');
    for (size_t i = 0; slash && i < sizeof places / sizeof *places; i++) {
        snprintf(s->program, sizeof s->program, "%.*s%s/arrayd-compile", (int)(slash - self), self, places[i]);
        if (!access(s->program, X_OK)) return;
    }
    s->program[0] = 0;
}

void ad__compile_prepare(ad_service *s) {
    char host[AD_TOOLKIT_PATH];
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    find_program(s);
    if (!ad__toolkit_nvrtc(s->program, s->nvrtc)) s->nvrtc[0] = 0;
    memcpy(s->identity[AD_COMPILE_CUDA], "nvrtc ", 7);
    memcpy(s->identity[AD_COMPILE_HOST], "host ", 6);
    if (*s->nvrtc) ad__toolkit_identity(s->nvrtc, s->identity[AD_COMPILE_CUDA] + 6, sizeof s->identity[0] - 6);
    if (ad__toolkit_host(host)) ad__toolkit_identity(host, s->identity[AD_COMPILE_HOST] + 5, sizeof s->identity[0] - 5);
    s->most = s->config->compilers ? (unsigned)s->config->compilers : processors > 4 ? (unsigned)processors / 2 : 2;
    if (s->most > POLLED / OVERTAKING / 2 - 1) s->most = POLLED / OVERTAKING / 2 - 1;
    ad__disk_open(&s->disk, s->config->kernels_cache, s->config->cache_size);
    ad__scratch_sweep();
}

/* Compute the key of the result on disk. Without libcrypto nothing is stored. */
static void set_key(ad_service *s, ad_entry *e) {
    static const char format[] = "arrayd kernel 1";
    const char *identity = s->identity[e->target];
    const ad_digest_part parts[] = {
        {format, sizeof format}, {identity, strlen(identity) + 1}, {e->job.data, e->job.size}};
    ad_fault fault;
    if (*s->disk.folder && ad__sha256(parts, 3, e->key, &fault)) ad__disk_give_up(&s->disk, fault.text);
}

/* ---- starting a process ---- */

static uint32_t get_seconds(const ad_service *s) {
    const uint64_t seconds = s->config->compile_seconds;
    return (uint32_t)(seconds < AD_COMPILE_SECONDS ? seconds : AD_COMPILE_SECONDS);
}

/* Make the frame that is sent: the job with limits and NVRTC's path. */
static int make_frame(const ad_service *s, const ad_entry *e, ad_bytes *out, ad_fault *fault) {
    ad_compile_request r;
    void *lists;
    int status = ad__compile_get_request(e->job.data, e->job.size, &r, &lists, fault);
    r.seconds = get_seconds(s);
    r.memory = s->config->compile_memory;
    r.open = !s->config->compile_jail;
    r.nvrtc = s->nvrtc;
    if (!status && ad__compile_put_request(out, &r)) status = ad__fault(fault, AD_E_MEMORY, "out of host memory");
    free(lists);
    return status;
}

/* Start the program with two pipes, no environment, no other descriptors, and default signals. */
static int spawn_process(const char *program, int in, int out, pid_t *pid) {
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    char *argv[] = {(char *)(uintptr_t)program, NULL}, *environment[] = {NULL};
    sigemptyset(&none);
    sigfillset(&all);
    int error = posix_spawn_file_actions_init(&files);
    if (error) return error;
    if (!(error = posix_spawnattr_init(&attributes))) {
        error = posix_spawn_file_actions_adddup2(&files, in, 0);
        if (!error) error = posix_spawn_file_actions_adddup2(&files, out, 1);
        if (!error) error = posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
        if (!error) error = posix_spawn_file_actions_addclosefrom_np(&files, 3);
        posix_spawnattr_setsigmask(&attributes, &none);
        posix_spawnattr_setsigdefault(&attributes, &all);
        posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
        if (!error) error = posix_spawn(pid, program, &files, &attributes, argv, environment);
        posix_spawnattr_destroy(&attributes);
    }
    posix_spawn_file_actions_destroy(&files);
    return error;
}

static void close_fd(int *fd) {
    if (*fd >= 0) close(*fd);
    *fd = -1;
}

static int start_process(const ad_service *s, compilation *c, ad_fault *fault) {
    int in[2] = {-1, -1}, out[2] = {-1, -1}, error = 0;
    if (!*s->program) return ad__fault(fault, AD_E_UNSUPPORTED, "arrayd-compile is not beside this program");
    if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC)) error = errno;
    if (!error) error = spawn_process(s->program, in[0], out[1], &c->pid);
    close_fd(&in[0]);
    close_fd(&out[1]);
    c->in = in[1];
    c->out = out[0];
    if (error) return ad__fault(fault, AD_E_SYSTEM, "cannot start %s: %s", s->program, strerror(error));
    fcntl(c->in, F_SETFL, O_NONBLOCK);
    fcntl(c->out, F_SETFL, O_NONBLOCK);
    return 0;
}

static void free_compilation(compilation *c) {
    close_fd(&c->in);
    close_fd(&c->out);
    ad__bytes_free(&c->job);
    ad__bytes_free(&c->said);
    free(c);
}

/* Start a job. False: that failed, and the job is finished. */
static bool start_job(ad_service *s, ad_entry *e) {
    ad_fault fault = {0};
    compilation *c = ad__os.calloc(1, sizeof *c);
    if (!c) {
        ad__fault(&fault, AD_E_MEMORY, "out of host memory");
        ad__compile_finish(s, e, NULL, &fault);
        return false;
    }
    *c = (compilation){.entry = e, .in = -1, .out = -1, .begin = ad__os_now(), .next = s->running};
    if (make_frame(s, e, &c->job, &fault) || start_process(s, c, &fault)) {
        free_compilation(c);
        ad__compile_finish(s, e, NULL, &fault);
        return false;
    }
    s->running = c;
    return true;
}

/* Choose the job to start next. NULL: none may start. Users' jobs come first, but of IN_ROW + 1 jobs one is a
 * backend's, which no flood of users' jobs keeps waiting. Otherwise the backends' leave one place free. Compilations
 * older than PATIENCE take no place. A backend asks again for a kernel that a loop uses, but not for one that a program
 * used once: a thousand of those do not delay the loop's. */
static ad_entry *choose_job(ad_service *s) {
    unsigned running = 0, young = 0;
    int64_t now = ad__os_now();
    for (const compilation *c = s->running; c; c = c->next) {
        running++;
        young += now - c->begin < PATIENCE;
    }
    if (running >= s->most * OVERTAKING || young >= s->most) return NULL;
    const bool backends_turn = s->in_row >= IN_ROW && s->waiting[1].first;
    if (s->waiting[0].first && !backends_turn) {
        s->in_row++;
        return ad__queue_take(&s->waiting[0]);
    }
    if (!backends_turn && young && young + 1 >= s->most) return NULL;
    s->in_row = 0;
    return ad__queue_take_wanted(&s->waiting[1]);
}

/* ---- reading results ---- */

static void send_job(compilation *c) {
    ssize_t n = write(c->in, c->job.data + c->sent, c->job.size - c->sent);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n > 0) c->sent += (size_t)n;
    if (n <= 0 || c->sent == c->job.size) close_fd(&c->in);
}

static void read_result(compilation *c) {
    ssize_t n = ad__bytes_reserve(&c->said, 65536) ? -1 : read(c->out, c->said.data + c->said.size, 65536);
    if (n < 0 && !c->said.failed && (errno == EAGAIN || errno == EINTR)) return;
    if (n > 0) c->said.size += (size_t)n;
    if (n <= 0 || c->said.size > AD_COMPILE_FRAME) c->over = true;
}

static bool is_lasting(const ad_bytes *frame) {
    ad_compile_result r;
    ad_fault unused = {0};
    void *lists;
    int status = ad__compile_get_result(frame->data, frame->size, &r, &lists, &unused);
    free(lists);
    return !status && (r.kind == AD_COMPILE_MADE || r.kind == AD_COMPILE_WRONG);
}

/* End a compilation that has sent its result, or exceeded its time. */
static void end_compilation(ad_service *s, compilation *c) {
    ad_fault fault = {0};
    int status = 0;
    kill(-c->pid, SIGKILL);
    while (waitpid(c->pid, &status, 0) < 0 && errno == EINTR) continue;
    ad__fault(&fault, AD_E_SYSTEM, "arrayd-compile ended without a result (status %d)", status);
    ad__log(compiled, c->entry->own, (long)((ad__os_now() - c->begin) / 1000000), c->said.size);
    pthread_mutex_lock(&s->lock);
    s->counts.compiled++;
    pthread_mutex_unlock(&s->lock);
    if (is_lasting(&c->said)) ad__disk_store(&s->disk, c->entry->key, &c->said, &c->entry->job);
    ad__compile_finish(s, c->entry, c->said.size ? &c->said : NULL, &fault);
    free_compilation(c);
}

static bool end_finished(ad_service *s) {
    int64_t limit = (int64_t)(get_seconds(s) * AD_COMPILE_CLOCK + BACKSTOP) * SECOND, now = ad__os_now();
    bool any = false;
    for (compilation **p = &s->running; *p;) {
        compilation *c = *p;
        if (!c->over && now - c->begin < limit) {
            p = &c->next;
            continue;
        }
        *p = c->next;
        end_compilation(s, c);
        any = true;
    }
    return any;
}

/* ---- the loop ---- */

/* Take new jobs. Those in the cache on disk are finished at once; true: there was one. */
static bool take_fresh(ad_service *s) {
    bool any = false;
    for (;;) {
        pthread_mutex_lock(&s->lock);
        ad_entry *e = ad__queue_take(&s->fresh);
        pthread_mutex_unlock(&s->lock);
        if (!e || atomic_load(&s->stop)) return any;
        ad_bytes frame = AD_BYTES_INIT;
        set_key(s, e);
        if (ad__disk_load(&s->disk, e->key, &frame)) {
            pthread_mutex_lock(&s->lock);
            s->counts.hits_disk++;
            pthread_mutex_unlock(&s->lock);
            ad__compile_finish(s, e, &frame, NULL);
            any = true;
        } else {
            ad__queue_put(&s->waiting[e->own], e);
        }
        ad__bytes_free(&frame);
    }
}

static void poll_pipes(ad_service *s) {
    struct pollfd p[POLLED] = {{.fd = s->wake, .events = POLLIN}};
    compilation *c;
    nfds_t n = 1;
    eventfd_t unused;
    bool waiting = s->waiting[0].first || s->waiting[1].first;
    for (c = s->running; c && n + 2 <= POLLED; c = c->next) {
        p[n++] = (struct pollfd){.fd = c->in, .events = POLLOUT};
        p[n++] = (struct pollfd){.fd = c->out, .events = POLLIN};
    }
    poll(p, n, !s->running ? -1 : waiting ? 100 : 1000);
    if (p[0].revents) eventfd_read(s->wake, &unused);
    n = 1;
    for (c = s->running; c && n + 2 <= POLLED; c = c->next, n += 2) {
        if (p[n].revents) send_job(c);
        if (p[n + 1].revents) read_result(c);
    }
}

/* Stop all compilations. Each process ends what it has started. */
static void stop_compilations(ad_service *s) {
    for (compilation *c = s->running; c; c = c->next) kill(c->pid, SIGTERM);
    while (s->running) {
        compilation *c = s->running;
        s->running = c->next;
        while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR) continue;
        free_compilation(c);
    }
}

void *ad__compile_thread(void *service) {
    ad_service *s = service;
    ad_entry *e;
    ad__compile_prepare(s);
    while (!atomic_load(&s->stop)) {
        bool any = take_fresh(s);
        while ((e = choose_job(s))) any |= !start_job(s, e);
        if (any && s->done) s->done(s->user);
        poll_pipes(s);
        if (end_finished(s) && s->done) s->done(s->user);
    }
    stop_compilations(s);
    return NULL;
}
