/* Tasks: coroutines that a seeded scheduler runs one at a time, over a virtual clock. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "tests/sim/sim.h"

#define STACK (1u << 20)
#define STEPS_MOST 40000000 /* switches after which a run counts as one that never ends */
#define TIME_MOST 900000000000LL
#define CALL_NS 300 /* what a call takes, up to twice that */
#define MOST_RUNNABLE 256

sim_task *sim_current;
int64_t sim_time;
static ucontext_t scheduler;
static sim_task *tasks;
static int numbers;

static void begin_task(void) {
    sim_current->result = sim_current->run(sim_current->argument);
    sim_leave_task();
}

static void give_locals(sim_task *t, const sim_process *p) {
    if (!p->locals_size) return;
    t->locals = calloc(1, p->locals_size);
    memcpy(t->locals, p->locals_image, p->locals_image_size);
}

sim_task *sim_add_task(sim_process *p, void *(*run)(void *), void *argument) {
    sim_task *t = calloc(1, sizeof *t), **at = &tasks;
    t->process = p;
    t->run = run;
    t->argument = argument;
    t->deadline = INT64_MAX;
    t->number = ++numbers;
    t->doing = "begins";
    t->stack = mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    give_locals(t, p);
    getcontext(&t->context);
    t->context.uc_stack.ss_sp = t->stack;
    t->context.uc_stack.ss_size = STACK;
    makecontext(&t->context, begin_task, 0);
    while (*at) at = &(*at)->next;
    *at = t;
    return t;
}

static void free_task(sim_task *t) {
    munmap(t->stack, STACK);
    free(t->locals);
    free(t);
}

void sim_free_tasks(sim_process *p) {
    for (sim_task **at = &tasks; *at;) {
        sim_task *t = *at;
        if (t->process != p) {
            at = &t->next;
            continue;
        }
        *at = t->next;
        free_task(t);
    }
}

void sim_end_other_tasks(void) {
    for (sim_task *t = tasks; t; t = t->next)
        if (t->process == sim_current->process && t != sim_current) t->done = t->detached = true;
}

sim_task *sim_find_task(int number) {
    sim_task *t = tasks;
    while (t && t->number != number) t = t->next;
    return t;
}

void sim_signal_condition(void *condition, bool all) {
    sim_task *waiting[MOST_RUNNABLE];
    size_t n = 0;
    for (sim_task *t = tasks; t && n < MOST_RUNNABLE; t = t->next)
        if (t->condition == condition && !t->process->dying) waiting[n++] = t;
    if (!all && n) waiting[sim_draw_below(n)]->condition = NULL;
    for (size_t i = 0; all && i < n; i++) waiting[i]->condition = NULL;
}

static void switch_to_scheduler(void) {
    sim_task *self = sim_current;
    self->error = errno;
    sim_current = NULL;
    swapcontext(&self->context, &scheduler);
    errno = self->error;
}

void sim_leave_task(void) {
    sim_current->done = true;
    sim_current->doing = "has ended";
    for (;;) switch_to_scheduler();
}

bool sim_wait(const char *doing, sim_ready *ready, void *what, int64_t deadline) {
    sim_task *t = sim_current;
    if (ready && ready(t, what)) return true;
    if (deadline <= sim_time) return false;
    t->doing = doing;
    t->ready = ready;
    t->what = what;
    t->deadline = deadline;
    switch_to_scheduler();
    const bool did = ready && ready(t, what);
    t->ready = NULL;
    t->deadline = INT64_MAX;
    t->doing = "runs";
    return did;
}

static void die_by_chance(sim_process *p) {
    if (!sim_serving || p->dying) return;
    if (!strcmp(p->program, "arrayd-worker") && sim_worker_deaths < sim_planned.most_kills &&
        sim_draw_case(sim_planned.worker_kills))
        sim_kill_process(p, 9);
    if (!strcmp(p->program, "client") && p->user != SIM_BYSTANDER && sim_draw_case(sim_planned.client_kills))
        sim_kill_process(p, 9);
}

void sim_pass_call(const char *name) {
    sim_task *t = sim_current;
    if (!t) return;
    sim_count_call();
    sim_time += CALL_NS + (int64_t)sim_draw_below(CALL_NS);
    die_by_chance(t->process);
    if (!sim_draw_case(sim_planned.switches)) return;
    t->doing = name;
    switch_to_scheduler();
    t->doing = "runs";
}

/* ---- the scheduler ---- */

static bool can_run(sim_task *t) {
    if (t->done || t->process->dying || t->process->ended) return false;
    if (!t->ready && t->deadline == INT64_MAX) return true;
    return t->deadline <= sim_time || (t->ready && t->ready(t, t->what));
}

static sim_task *choose_task(void) {
    sim_task *runnable[MOST_RUNNABLE];
    size_t n = 0;
    for (sim_task *t = tasks; t && n < MOST_RUNNABLE; t = t->next)
        if (can_run(t)) runnable[n++] = t;
    return n ? runnable[sim_draw_below(n)] : NULL;
}

/* Move the clock to the next time at which something can happen. False: nothing will. */
static bool advance_time(void) {
    int64_t next = INT64_MAX;
    for (const sim_task *t = tasks; t; t = t->next)
        if (!t->done && !t->process->dying && t->deadline < next) next = t->deadline;
    if (next == INT64_MAX) return false;
    sim_time = next > sim_time ? next : sim_time + 1;
    return true;
}

static void forget_detached(void) {
    for (sim_task **at = &tasks; *at;) {
        sim_task *t = *at;
        if (t->done && t->detached) {
            *at = t->next;
            free_task(t);
        } else {
            at = &t->next;
        }
    }
}

void sim_print_tasks(void) {
    for (const sim_task *t = tasks; t; t = t->next)
        fprintf(stderr, "  task %d of %s %d: %s%s, until %lld\n", t->number, t->process->program, t->process->number,
                t->ready ? "waits: " : "", t->doing, t->deadline == INT64_MAX ? -1 : (long long)t->deadline);
}

void sim_run_tasks(void) {
    for (long steps = 0; !sim_failed; steps++) {
        sim_reap_processes();
        if (!sim_processes) return;
        sim_task *t = choose_task();
        if (!t && advance_time()) continue;
        if (!t || steps > STEPS_MOST || sim_time > TIME_MOST) {
            sim_fail("%s", t ? "the run does not end" : "nothing can happen any more");
            return;
        }
        sim_current = t;
        errno = t->error;
        swapcontext(&scheduler, &t->context);
        forget_detached();
    }
}
