/* sim: run seeds of the simulator.
 *
 *     sim BUILD [--seeds N] [--from S] [--set NAME=VALUE]...      many; a line for each that fails
 *     sim BUILD --seed S [--trace] [--set NAME=VALUE]...          one, with what happened
 *     sim BUILD --sweep [--every N] [--twice] [--seed S] [--set NAME=VALUE]...
 *         a script, once for each store into the journal (or each N-th), with a kill there; --twice: and once more with
 *         a kill of the next worker, too
 *     sim BUILD --fail [--seed S] [--set NAME=VALUE]...
 *         a script, once for each allocation, descriptor, mapping and watch of workers, the front and a client, which fails
 *     sim BUILD --twice ...                                       each seed twice: both must be the same
 *     sim BUILD --until-failure ...                               no more after a seed that fails
 *
 * BUILD is the folder that `make simulator` has filled, such as build/release. */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tests/sim/director.h"
#include "tests/sim/sim.h"

#define MOST_SETTINGS 32
#define SECONDS 120 /* of processor time for one seed */

typedef struct setting {
    char name[32];
    uint64_t value;
} setting;

typedef struct options {
    const char *build;
    uint64_t from, seeds, every;
    bool twice, one, until_failure, sweep, fail;
    int count;
    setting settings[MOST_SETTINGS];
} options;

typedef struct outcome {
    uint64_t hash;
    int64_t time;
    unsigned deaths, stores, uses;
    bool failed;
} outcome;

static void run_seed(const options *o, uint64_t seed, outcome *out) {
    sim_make_plan(seed);
    for (int i = 0; i < o->count; i++)
        if (!sim_set_plan(o->settings[i].name, o->settings[i].value)) {
            fprintf(stderr, "sim: --set %s: there is no such setting\n", o->settings[i].name);
            exit(2);
        }
    sim_finish_plan();
    if (sim_tracing) sim_print_plan();
    if (sim_planned.late) setenv("ARRAYD_CPU_LATE", "1", 1);
    sim_catch_stores();
    sim_start_director();
    sim_run_tasks();
    *out = (outcome){sim_hash, sim_time, sim_worker_deaths, sim_stores, sim_uses, sim_failed};
}

/* Run a seed in a process of its own, so that nothing is left of it. */
static void fork_seed(const options *o, uint64_t seed, outcome *out) {
    int ends[2], status;
    *out = (outcome){.failed = true};
    if (pipe(ends)) exit(2);
    const pid_t pid = fork();
    if (pid == 0) {
        setrlimit(RLIMIT_CPU, &(struct rlimit){SECONDS, SECONDS + 1});
        run_seed(o, seed, out);
        _exit(write(ends[1], out, sizeof *out) != sizeof *out);
    }
    close(ends[1]);
    const ssize_t n = read(ends[0], out, sizeof *out);
    close(ends[0]);
    waitpid(pid, &status, 0);
    if (n != sizeof *out) {
        *out = (outcome){.failed = true};
        fprintf(stderr, "seed %llu: the simulator ended by signal %d\n", (unsigned long long)seed,
                WIFSIGNALED(status) ? WTERMSIG(status) : 0);
    }
}

/* Print how to repeat a seed. */
static void print_command(const options *o, uint64_t seed) {
    printf("again: %s/sim/sim %s --seed %llu --trace", o->build, o->build, (unsigned long long)seed);
    for (int i = 0; i < o->count; i++)
        printf(" --set %s=%llu", o->settings[i].name, (unsigned long long)o->settings[i].value);
    putchar('\n');
}

static bool check_seed(const options *o, uint64_t seed, unsigned *deaths) {
    outcome first, second;
    if (sim_tracing) run_seed(o, seed, &first); /* here, so that a debugger sees it */
    else fork_seed(o, seed, &first);
    *deaths += first.deaths;
    bool good = !first.failed;
    if (good && o->twice) {
        fork_seed(o, seed, &second);
        good = second.hash == first.hash && second.time == first.time;
        if (!good) fprintf(stderr, "seed %llu: two runs differ\n", (unsigned long long)seed);
    }
    if (!good) print_command(o, seed);
    if (o->one)
        printf("hash %016llx, %.3f ms, %u workers killed, %u stores\n", (unsigned long long)first.hash,
               (double)first.time / 1e6, first.deaths, first.stores);
    return good;
}

/* Load what most seeds need, once. */
static void prepare_programs(const char *build) {
    char backend[4096];
    sim_set_build(build);
    sim_prepare_copies("arrayd", 4);
    sim_prepare_copies("arrayd-worker", 9);
    sim_prepare_copies("client", 4);
    sim_prepare_copies("libarrayd-cpu", 6);
    snprintf(backend, sizeof backend, "%s/libarrayd-cpu.so", sim_backend_folder());
    if (!dlopen(backend, RTLD_NOW | RTLD_LOCAL)) exit((fprintf(stderr, "sim: %s\n", dlerror()), 2));
}

static volatile sig_atomic_t interrupted;

static void stop_running(int signal) {
    (void)signal;
    interrupted = 1;
}

static void add_setting(options *o, const char *text) {
    const char *sign = strchr(text, '=');
    if (!sign || o->count == MOST_SETTINGS || sign - text >= 32) exit(2);
    memcpy(o->settings[o->count].name, text, (size_t)(sign - text));
    o->settings[o->count++].value = strtoull(sign + 1, NULL, 0);
}

static void read_options(options *o, int argc, char **argv) {
    o->build = argv[1];
    o->seeds = o->every = 1;
    for (int i = 2; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (!strcmp(argv[i], "--trace")) sim_tracing = true;
        else if (!strcmp(argv[i], "--twice")) o->twice = true;
        else if (!strcmp(argv[i], "--until-failure")) o->until_failure = true;
        else if (!strcmp(argv[i], "--sweep")) o->sweep = true, add_setting(o, "script=1");
        else if (!strcmp(argv[i], "--seeds")) o->seeds = strtoull(value, NULL, 0), i++;
        else if (!strcmp(argv[i], "--fail")) o->fail = true, add_setting(o, "script=1");
        else if (!strcmp(argv[i], "--every")) o->every = strtoull(value, NULL, 0), i++;
        else if (!strcmp(argv[i], "--from")) o->from = strtoull(value, NULL, 0), i++;
        else if (!strcmp(argv[i], "--seed")) o->from = strtoull(value, NULL, 0), o->one = true, i++;
        else if (!strcmp(argv[i], "--set")) add_setting(o, value), i++;
        else exit((fprintf(stderr, "sim: %s is no option\n", argv[i]), 2));
    }
}

/* ---- a kill at each store ---- */

#define MOST_LATER 997 /* stores of the next worker within which it is killed, too; a prime */

static bool sweep_store(options *o, unsigned store, unsigned later) {
    outcome out;
    o->settings[o->count] = (setting){"kill_at_store", store};
    o->settings[o->count + 1] = (setting){"kill_again", later};
    o->count += 2;
    fork_seed(o, o->from, &out);
    if (!out.failed && !out.deaths) fprintf(stderr, "store %u: no worker was killed there\n", store);
    const bool good = !out.failed && out.deaths;
    if (!good) print_command(o, o->from);
    o->count -= 2;
    return good;
}

/* Kill a worker at each store of a script; with --twice, after each such kill also the next one at some store. */
static int sweep_stores(options *o) {
    outcome all;
    unsigned long failed = 0;
    sim_record_stores();
    fork_seed(o, o->from, &all);
    if (all.failed) return 1;
    unsigned done = 0;
    for (uint64_t store = 1; store <= all.stores && !interrupted && !(failed && o->until_failure); store += o->every) {
        sim_watch_before((unsigned)store);
        failed += !sweep_store(o, (unsigned)store, 0);
        if (o->twice) failed += !sweep_store(o, (unsigned)store, 1 + (unsigned)(store * 7919 % MOST_LATER));
        done++;
    }
    printf("%u of %u stores, %lu failed\n", done, all.stores, failed);
    return failed != 0;
}

/* ---- a failure of each resource ---- */

static bool fail_one(options *o, unsigned who, unsigned what, unsigned at, outcome *out) {
    o->settings[o->count] = (setting){"fail_who", who};
    o->settings[o->count + 1] = (setting){"fail_what", what};
    o->settings[o->count + 2] = (setting){"fail_at", at};
    o->count += 3;
    fork_seed(o, o->from, out);
    if (out->failed) print_command(o, o->from);
    o->count -= 3;
    return !out->failed;
}

/* Let each use of each resource fail, one in each run. */
static int fail_resources(options *o) {
    unsigned long failed = 0, all = 0;
    for (unsigned who = 1; who <= 3; who++)
        for (unsigned what = 0; what < SIM_RESOURCES; what++) {
            outcome out;
            if (!fail_one(o, who, what, 0, &out)) return 1;
            const unsigned uses = out.uses;
            for (uint64_t at = 1; at <= uses && !interrupted; at += o->every, all++)
                failed += !fail_one(o, who, what, (unsigned)at, &out);
        }
    printf("%lu failures of resources, %lu failed\n", all, failed);
    return failed != 0;
}

/* Addresses must be the same in each run, as programs may order things by them. */
static void fix_addresses(char **argv) {
    if (personality(0xffffffff) & ADDR_NO_RANDOMIZE) return;
    if (personality(ADDR_NO_RANDOMIZE) >= 0) execv("/proc/self/exe", argv);
    fprintf(stderr, "sim: addresses are random here, so a seed may not repeat what it did\n");
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    options o = {0};
    unsigned long failed = 0;
    unsigned deaths = 0;
    if (argc < 2) return 2;
    fix_addresses(argv);
    clearenv();
    setenv("OPENBLAS_NUM_THREADS", "1", 1);
    read_options(&o, argc, argv);
    prepare_programs(o.build);
    signal(SIGINT, stop_running);
    signal(SIGTERM, stop_running);
    if (o.fail) return fail_resources(&o);
    if (o.sweep) return sweep_stores(&o);
    uint64_t seed = o.from;
    while (seed < o.from + o.seeds && !interrupted && !(failed && o.until_failure))
        failed += !check_seed(&o, seed++, &deaths);
    printf("%llu seeds, %lu failed, %u workers killed\n", (unsigned long long)(seed - o.from), failed, deaths);
    return failed != 0;
}
