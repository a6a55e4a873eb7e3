/* Stores into journals. The mapping is read-only; a store faults, is counted, and is repeated alone by the processor's
 * single step. So a worker can be ended, or another task run, between any two stores.
 *
 *     store ──▶ SIGSEGV: count, perhaps end here ──▶ writable, one step ──▶ SIGTRAP: read-only again */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/sim/sim.h"

#define TRAP_FLAG 0x100 /* of the processor's flags: trap after one instruction */

unsigned sim_stores;
bool sim_copying;
static char *stepping[4]; /* pages that are writable for one instruction */
static int nstepping;

static char *find_page(const void *address) { return (char *)((uintptr_t)address & ~(uintptr_t)4095); }

void sim_watch_stores(sim_mapping *m) {
    if (sim_planned.store_kills || sim_planned.kill_at_store)
        mprotect(m->begin, (size_t)(m->end - m->begin), PROT_READ);
}

static sim_mapping *find_mapping(const char *address) {
    const sim_process *p = sim_self();
    for (sim_mapping *m = p ? p->mappings : NULL; m; m = m->next)
        if (m->journal && address >= m->begin && address < m->end) return m;
    return NULL;
}

/* A fault of the program is the end of its process, as the kernel would end it. */
static void report_crash(int signal) {
    sim_fail("%s %d crashed: signal %d", sim_self() ? sim_self()->program : "the simulator",
             sim_self() ? sim_self()->number : 0, signal);
    _exit(3);
}

static void count_store(void) {
    sim_self()->stores++;
    sim_stores += sim_serving;
    const bool by_chance =
        sim_serving && sim_worker_deaths < sim_planned.most_kills && sim_draw_case(sim_planned.store_kills);
    if (!by_chance && !(sim_serving && sim_stores == sim_planned.kill_at_store)) return;
    sim_copying = false;
    sim_kill_process(sim_self(), SIGKILL);
}

static void on_fault(int signal, siginfo_t *info, void *context) {
    ucontext_t *c = context;
    if (!find_mapping(info->si_addr) || nstepping == 4) report_crash(signal);
    if (!nstepping) { /* else the same store, which crosses into another page */
        count_store();
        if (!sim_copying) sim_pass_call("store");
    }
    char *page = find_page(info->si_addr);
    mprotect(page, 4096, PROT_READ | PROT_WRITE);
    stepping[nstepping++] = page;
    c->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
}

static void on_step(int signal, siginfo_t *info, void *context) {
    ucontext_t *c = context;
    (void)signal, (void)info;
    while (nstepping) mprotect(stepping[--nstepping], 4096, PROT_READ);
    c->uc_mcontext.gregs[REG_EFL] &= ~TRAP_FLAG;
}

void sim_catch_stores(void) {
    struct sigaction a = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGSEGV, &a, NULL);
    sigaction(SIGBUS, &a, NULL);
    sigaction(SIGFPE, &a, NULL);
    a.sa_sigaction = on_step;
    sigaction(SIGTRAP, &a, NULL);
}
