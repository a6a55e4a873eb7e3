/* The watcher: it starts the jailed process, reads its output, and ends it when its time is over or nobody waits for
 * it. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server/common/os.h"
#include "server/compile/run.h"

/* ---- starting it ---- */

/* In the jailed process: detach, connect the output, and compile. */
static void run_jailed(const ad_watch *watch, int output) {
    sigset_t none;
    sigemptyset(&none);
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0 || dup2(null, 0) < 0 || dup2(output, 1) < 0 || dup2(watch->both ? output : null, 2) < 0) _exit(2);
    close_range(3, ~0u, 0);
    signal(SIGPIPE, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    watch->inside(watch->request, watch->user);
    _exit(0);
}

static pid_t start_jailed(const ad_watch *watch, int *output, ad_fault *fault) {
    int ends[2];
    pid_t pid = -1;
    if (pipe2(ends, O_CLOEXEC) || (pid = fork()) < 0) {
        ad__fault(fault, AD_E_SYSTEM, "cannot start the compiler: %s", strerror(errno));
        return -1;
    }
    if (!pid) run_jailed(watch, ends[1]);
    setpgid(pid, pid);
    close(ends[1]);
    *output = ends[0];
    return pid;
}

/* ---- watching it ---- */

typedef struct watching {
    const ad_watch *watch;
    ad_watched *out;
    pid_t pid;
    int output, signals;
    int64_t deadline;
    bool open, running;
} watching;

/* Kill the jailed process and all that it started. */
static void end_group(watching *w) { kill(-w->pid, SIGKILL); }

static void read_output(watching *w) {
    uint8_t lost[4096];
    ad_bytes *said = &w->out->said;
    size_t room = w->watch->most - said->size, want = room < 65536 ? room : 65536;
    if (want && ad__bytes_reserve(said, want)) want = 0;
    ssize_t n = want ? read(w->output, said->data + said->size, want) : read(w->output, lost, sizeof lost);
    if (n < 0 && errno == EINTR) return;
    if (n <= 0) w->open = false;
    else if (want) said->size += (size_t)n;
    else if (w->watch->strict && !w->out->flood) {
        w->out->flood = true;
        end_group(w);
    }
}

/* Handle SIGCHLD, or a signal to end, which also the end of the parent process causes. */
static void handle_signals(watching *w) {
    struct signalfd_siginfo s;
    int status;
    pid_t pid;
    if (read(w->signals, &s, sizeof s) == sizeof s && s.ssi_signo != SIGCHLD) {
        w->out->orphan = true;
        end_group(w);
    }
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid != w->pid) continue;
        w->out->status = status;
        w->running = false;
        end_group(w); /* end the processes that it may have left */
    }
}

/* Wait for output, a signal, the reader's end or the deadline, and handle it. */
static void wait_for_event(watching *w) {
    int64_t left = (w->deadline - ad__os_now()) / 1000000 + 1;
    struct pollfd p[3] = {
        {.fd = w->open ? w->output : -1, .events = POLLIN},
        {.fd = w->signals, .events = POLLIN},
        {.fd = STDOUT_FILENO, .events = 0}, /* POLLERR: the reader of the result has gone */
    };
    if (left <= 0 && !w->out->late) {
        w->out->late = true;
        end_group(w);
    }
    poll(p, 3, w->out->late ? 100 : (int)left);
    if (p[0].revents) read_output(w);
    if (p[1].revents) handle_signals(w);
    if (p[2].revents & POLLERR && !w->out->orphan) {
        w->out->orphan = true;
        end_group(w);
    }
}

int ad__compile_watch(const ad_watch *watch, ad_watched *out, ad_fault *fault) {
    watching w = {.watch = watch, .out = out, .open = true, .running = true};
    sigset_t set;
    *out = (ad_watched){0};
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    w.signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (w.signals < 0) return ad__fault(fault, AD_E_SYSTEM, "signalfd: %s", strerror(errno));
    w.deadline = ad__os_now() + (int64_t)watch->request->seconds * AD_COMPILE_CLOCK * 1000000000;
    if ((w.pid = start_jailed(watch, &w.output, fault)) < 0) return AD_E_SYSTEM;
    while (w.open || w.running) wait_for_event(&w);
    close(w.output);
    close(w.signals);
    return 0;
}

/* ---- what to say of it ---- */

void ad__compile_stopped(const ad_compile_request *r, const ad_watched *w, ad_compile_result *out) {
    static char text[256];
    int signal_number = WIFSIGNALED(w->status) ? WTERMSIG(w->status) : 0;
    unsigned mib = (unsigned)(r->memory >> 20);
    if (w->late)
        snprintf(text, sizeof text, "the compiler was stopped: it took longer than %u s by the clock",
                 r->seconds * AD_COMPILE_CLOCK);
    else if (w->flood) snprintf(text, sizeof text, "the compiler was stopped: it made more than 64 MiB");
    else if (signal_number == SIGXCPU || signal_number == SIGKILL)
        snprintf(text, sizeof text, "the compiler was stopped: it used more than %u s of processor time", r->seconds);
    else if (signal_number == SIGXFSZ)
        snprintf(text, sizeof text, "the compiler was stopped: it made more than 64 MiB");
    else
        snprintf(text, sizeof text,
                 "the compiler failed (%s %d): the source is nested too deeply, or needs more than %u MiB",
                 signal_number ? "signal" : "status", signal_number ? signal_number : WEXITSTATUS(w->status), mib);
    *out = (ad_compile_result){.kind = AD_COMPILE_STOPPED, .binary.log = text};
}
