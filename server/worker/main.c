/* arrayd-worker: a program that arrayd starts with a channel to itself. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "server/common/log.h"
#include "server/common/os.h"
#include "server/worker/checkpoint/blame.h"
#include "server/worker/confine.h"
#include "server/worker/spill/spill.h"

static ad_worker worker;

static void raise_limits(void) {
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files)) return;
    files.rlim_cur = files.rlim_max;
    setrlimit(RLIMIT_NOFILE, &files);
}

/* Ignore interrupts: arrayd tells its workers to stop. */
static void set_signals(void) {
    signal(SIGPIPE, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
}

/* Tell arrayd why the worker cannot start. Returns the exit status. */
static int report_failure(int channel, const ad_fault *fault) {
    ad_channel c;
    ad_note note = {.kind = AD_NOTE_LOST};
    memcpy(note.text, fault->text, sizeof note.text);
    ad__log(cannot_start, fault->text);
    ad__channel_init(&c, channel, AD_TO_WORKER);
    ad__channel_send(&c, &note, -1);
    ad__channel_close(&c);
    return 1;
}

/* Tell whether this program can continue a journal of that layout, for "--can-take-over=LAYOUT". Returns the exit
 * status. */
static int can_take_over(const char *theirs) {
    char ours[AD_JOURNAL_LAYOUT_SIZE];
    ad__journal_layout(ours);
    if (!strcmp(theirs, ours)) return 0;
    fprintf(stderr, "arrayd-worker: sessions are written down in another way (layout %s, not %s)\n", ours, theirs);
    return 1;
}

/* Tell whether arrayd has the same notes, reports and journals as this program: after an installation the program of
 * workers may be newer than the arrayd that runs. form: what arrayd says; negative: it says nothing. */
static bool is_fit(int form) {
    char layout[AD_JOURNAL_LAYOUT_SIZE];
    ad__journal_layout(layout);
    if (form == ad__channel_form(layout)) return true;
    ad__log(cannot_start,
            "this arrayd-worker is of another build than the arrayd that starts it: have that go on as the "
            "new program (arrayctl upgrade), or restart it");
    return false;
}

/* Find the value of an option before all others are read, as one of another build may have options that are not known
 * here. Negative: it is not there. */
static int find_form(int argc, char **argv) {
    static const char name[] = "--form=";
    for (int i = 1; i < argc; i++)
        if (!strncmp(argv[i], name, sizeof name - 1)) return atoi(argv[i] + sizeof name - 1);
    return -1;
}

int main(int argc, char **argv) {
    static const char question[] = "--can-take-over=";
    if (argc == 2 && !strncmp(argv[1], question, sizeof question - 1))
        return can_take_over(argv[1] + sizeof question - 1);
    ad_fault fault = {0};
    int channel = -1, shared = 0, embedded = 0, form = find_form(argc, argv);
    ad_config_action action;
    const ad_config_private private[] = {
        {"channel-fd", &channel}, {"shared", &shared}, {"embedded", &embedded}, {"form", &form}, {NULL, NULL}};
    char program[4096];
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 1);
    program[n < 0 ? 0 : n] = 0;
    ad__log_name("worker");
    ad__os_init("arrayd-worker");
    ad__worker_connect(&worker);
    if (form >= 0 && !is_fit(form)) return AD_EXIT_UNFIT;
    if (ad__config_load(&worker.config, argc, argv, private, &action, &fault) || channel < 0) {
        fprintf(stderr, "arrayd-worker is started by arrayd. %s\n", fault.text);
        return 2;
    }
    if (form < 0 && !is_fit(form)) return AD_EXIT_UNFIT;
    worker.shared = shared;
    worker.embedded = embedded;
    ad__log_set(ad__log_level(worker.config.log_level));
    fcntl(channel, F_SETFD, FD_CLOEXEC);
    set_signals();
    ad__blame_catch_signals();
    raise_limits();
    pthread_mutex_init(&worker.io.wake_lock, NULL);
    ad__reserved_init(&worker.reserved);
    if (ad__compile_open(&worker.config, ad__worker_compiled, &worker, &worker.compiler, &fault) ||
        ad__backend_load(&worker, program, &fault) || ad__spill_open(&worker, &fault))
        return report_failure(channel, &fault);
    if (ad__confine_worker(&worker, &fault)) ad__log(not_confined, fault.text);
    int status = ad__worker_run(&worker, channel);
    ad__spill_close(&worker);
    ad__gpus_close(&worker);
    ad__reserved_close(&worker.reserved);
    ad__compile_close(worker.compiler);
    ad__config_free(&worker.config);
    return status;
}
