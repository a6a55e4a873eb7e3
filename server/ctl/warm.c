/* The command warm: compile the kernels of a cache's jobs for other architectures. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "server/compile/frame.h"
#include "server/ctl/ctl.h"
#include "server/worker/modules/compile/service.h"
#include "server/worker/modules/compile/disk.h"

#define MOST_ARCHS 32
#define UNDER_WAY 64 /* most jobs at a time */

/* One compilation: a job for one architecture. */
typedef struct task {
    ad_bytes job; /* a copy of the job's frame, into which request points */
    void *lists;
    ad_compile_request request;
    bool over;
} task;

typedef struct work {
    const char *arch[MOST_ARCHS], *from;
    size_t narch;
    task *tasks;
    size_t ntasks, room;
    int wake; /* eventfd: a compilation is done */
    size_t made, wrong, refused;
} work;

/* ---- the jobs ---- */

static bool is_arch_of_job(const ad_compile_job *job, const char *arch) {
    return (strncmp(arch, "sm_", 3) == 0) == (job->target == AD_COMPILE_CUDA);
}

static bool add_task(work *w, const ad_bytes *job, const char *arch) {
    task t = {0};
    ad_fault fault = {0};
    if (w->ntasks == w->room) {
        task *more = realloc(w->tasks, (w->room = 2 * w->room + 64) * sizeof *more);
        if (!more) return false;
        w->tasks = more;
    }
    ad__bytes_append(&t.job, job->data, job->size);
    int status =
        t.job.failed ? AD_E_MEMORY : ad__compile_get_request(t.job.data, t.job.size, &t.request, &t.lists, &fault);
    if (!status && is_arch_of_job(&t.request.job, arch)) {
        t.request.job.arch = arch;
        w->tasks[w->ntasks++] = t;
        return true;
    }
    ad__bytes_free(&t.job);
    free(t.lists);
    return status != AD_E_MEMORY;
}

static bool add_job(void *user, const ad_bytes *job) {
    work *w = user;
    for (size_t i = 0; i < w->narch; i++)
        if (!add_task(w, job, w->arch[i])) return false;
    return true;
}

/* ---- compiling them ---- */

static void wake_loop(void *user) {
    if (eventfd_write(((work *)user)->wake, 1)) return; /* the counter is full, so the loop wakes up anyway */
}

/* Take the result of a task if it is there, and count it. */
static void take_result(work *w, ad_compiler *compiler, task *t) {
    const ad_binary *binary;
    ad_fault fault = {0};
    int result = compiler->get(compiler, &t->request.job, &binary, &fault);
    if (!result) return;
    t->over = true;
    if (result < 0) {
        w->refused++;
        fprintf(stderr, "arrayctl: for %s: %s\n", t->request.job.arch, fault.text);
        return;
    }
    w->made += binary->data != NULL;
    w->wrong += !binary->data;
    compiler->release(compiler, binary);
}

static void compile_all(work *w, ad_compiler *compiler) {
    size_t first = 0;
    eventfd_t unused;
    while (first < w->ntasks) {
        for (size_t i = first; i < w->ntasks && i < first + UNDER_WAY; i++)
            if (!w->tasks[i].over) take_result(w, compiler, &w->tasks[i]);
        while (first < w->ntasks && w->tasks[first].over) first++;
        struct pollfd p = {.fd = w->wake, .events = POLLIN};
        if (first < w->ntasks && poll(&p, 1, 1000) > 0) eventfd_read(w->wake, &unused);
    }
}

static int warm_cache(work *w, const ad_config *c) {
    ad_disk disk;
    ad_compiler *compiler;
    ad_compile_counts counts;
    ad_fault fault;
    ad__disk_open(&disk, w->from ? w->from : c->kernels_cache, w->from ? UINT64_MAX : c->cache_size);
    if (!*disk.folder) {
        fprintf(stderr, "arrayctl: there is no folder of kernels to take jobs from: see option kernels-cache\n");
        return 1;
    }
    size_t jobs = ad__disk_jobs(&disk, add_job, w);
    if (ad__compile_open(c, wake_loop, w, &compiler, &fault)) {
        fprintf(stderr, "arrayctl: %s\n", fault.text);
        return 1;
    }
    compile_all(w, compiler);
    ad__compile_counts(compiler, &counts);
    ad__compile_close(compiler);
    printf("%zu kept kernels; %zu wanted: %llu compiled, %llu there already, %zu do not compile, %zu refused\n", jobs,
           w->ntasks, (unsigned long long)counts.compiled, (unsigned long long)counts.hits_disk, w->wrong, w->refused);
    return w->refused > 0;
}

/* ---- the command line ---- */

/* Take arrayctl's own options out of the arguments; those that remain are arrayd's. -1: there are too many
 * architectures. */
static int parse_warm_options(work *w, int argc, char **argv, char **rest) {
    int n = 0;
    rest[n++] = argv[0];
    for (int i = 1; i < argc; i++) {
        const char *value;
        if ((value = ad__ctl_value("--arch", argc, argv, &i))) {
            if (w->narch == MOST_ARCHS) return -1;
            w->arch[w->narch++] = value;
        } else if ((value = ad__ctl_value("--from", argc, argv, &i))) {
            w->from = value;
        } else {
            rest[n++] = argv[i];
        }
    }
    return n;
}

static int run_warm(ad_ctl *ctl, char **rest) {
    static work w;
    ad_config config;
    ad_config_action action;
    ad_fault fault;
    int n = parse_warm_options(&w, ctl->argc, ctl->argv, rest);
    if (n < 0) return ad__ctl_error(ctl, AD_CTL_USAGE, "at most %d architectures", MOST_ARCHS);
    if (!w.narch) return ad__ctl_error(ctl, AD_CTL_USAGE, "expected --arch=ARCH: sm_80, sm_90, ..., x86-64-v3, ...");
    int status = ad__config_load(&config, n, rest, NULL, &action, &fault);
    if (status) {
        status = ad__ctl_error(ctl, AD_CTL_USAGE, "%s", fault.text);
    } else if ((w.wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0) {
        status = ad__ctl_error(ctl, AD_CTL_BAD, "eventfd: %s", strerror(errno));
    } else {
        status = warm_cache(&w, &config);
    }
    for (size_t i = 0; i < w.ntasks; i++) {
        ad__bytes_free(&w.tasks[i].job);
        free(w.tasks[i].lists);
    }
    free(w.tasks);
    ad__config_free(&config);
    return status;
}

int ad__ctl_warm(ad_ctl *c) {
    char **rest = calloc((size_t)c->argc + 1, sizeof *rest);
    int status = rest ? run_warm(c, rest) : AD_CTL_BAD;
    free(rest);
    return status;
}
