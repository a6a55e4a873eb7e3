/* Stores into journals. The mapping is read-only; a store faults, is counted, and is repeated alone by the processor's
 * single step. So a worker can be ended, or another task run, between any two stores.
 *
 *     store ──▶ SIGSEGV: count, perhaps end here ──▶ writable, one step ──▶ SIGTRAP: read-only again */
#include <execinfo.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "tests/sim/sim.h"

#define MOST_FRAMES 32
#define TRAP_FLAG 0x100 /* of the processor's flags: trap after one instruction */

unsigned sim_stores;
static char *stepping[4]; /* pages that are writable for one instruction */
static int nstepping;

static char *find_page(const void *address) { return (char *)((uintptr_t)address & ~(uintptr_t)4095); }

/* ---- a kill at a given store ----
 * Watching takes time, so stores are watched only from the last call before that store on. A run that records says how
 * many stores there were at each call. Watching changes nothing else, so a run with a kill is the same up to it. */

#define MOST_CALLS (1u << 24)

static unsigned *recorded; /* stores at each call, in memory that all runs have in common */
static unsigned calls, watch_at;
static bool records, watches;

void sim_record_stores(void) {
    recorded = mmap(NULL, MOST_CALLS * sizeof *recorded, PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (recorded == MAP_FAILED) abort();
    records = true;
}

/* Find the last call before the store. */
void sim_watch_before(unsigned store) {
    unsigned low = 0, high = MOST_CALLS - 1;
    records = false;
    while (recorded[high - 1] == 0 && high > 1) high /= 2; /* none were so many */
    high = 2 * high < MOST_CALLS ? 2 * high : MOST_CALLS - 1;
    while (low + 1 < high) {
        const unsigned middle = low + (high - low) / 2;
        if (recorded[middle] && recorded[middle] < store + 1) low = middle;
        else high = middle;
    }
    watch_at = low;
}

static void protect_journal(const sim_mapping *m, int protection) {
    if (m->journal) mprotect(m->begin, (size_t)(m->end - m->begin), protection);
}

static void protect_all(int protection) {
    for (const sim_process *p = sim_processes; p; p = p->next)
        for (const sim_mapping *m = p->mappings; m; m = m->next) protect_journal(m, protection);
}

void sim_count_call(void) {
    calls++;
    if (records && calls < MOST_CALLS) recorded[calls] = sim_stores + 1; /* 0: there was no such call */
    if (!watch_at || calls != watch_at) return;
    sim_stores = recorded[calls] - 1;
    watches = true;
    protect_all(PROT_READ);
}

static bool is_watching(void) {
    return sim_planned.store_kills || watches || ((records || sim_planned.kill_at_store) && !watch_at);
}

void sim_watch_stores(sim_mapping *m) {
    if (is_watching()) protect_journal(m, PROT_READ);
}

static sim_mapping *find_mapping(const char *address) {
    const sim_process *p = sim_self();
    for (sim_mapping *m = p ? p->mappings : NULL; m; m = m->next)
        if (m->journal && address >= m->begin && address < m->end) return m;
    return NULL;
}

void sim_copy_as_kernel(char *to, const void *from, size_t size) {
    const bool watched = is_watching() && find_mapping(to);
    char *first = find_page(to);
    const size_t bytes = (size_t)(to + size - first);
    if (watched) mprotect(first, bytes, PROT_READ | PROT_WRITE);
    memcpy(to, from, size);
    if (watched) mprotect(first, bytes, PROT_READ);
}

/* A fault of the program is the end of the run. Its calls are printed by their places in the shared object. */
static void report_crash(int signal) {
    void *frames[MOST_FRAMES];
    backtrace_symbols_fd(frames, backtrace(frames, MOST_FRAMES), STDERR_FILENO);
    sim_fail("%s %d crashed: signal %d", sim_self() ? sim_self()->program : "the simulator",
             sim_self() ? sim_self()->number : 0, signal);
    _exit(3);
}

static bool is_planned(void) {
    const unsigned first = sim_planned.kill_at_store;
    return sim_serving && first &&
           (sim_stores == first || (sim_planned.kill_again && sim_stores == first + sim_planned.kill_again));
}

static void count_store(void) {
    sim_self()->stores++;
    sim_stores += sim_serving;
    const bool by_chance =
        sim_serving && sim_worker_deaths < sim_planned.most_kills && sim_draw_case(sim_planned.store_kills);
    if (!by_chance && !is_planned()) return;
    if (watches && !(sim_planned.kill_again && sim_stores == sim_planned.kill_at_store)) {
        watches = false;
        protect_all(PROT_READ | PROT_WRITE);
    }
    sim_kill_process(sim_self(), SIGKILL);
}

/* Carry out a `rep stos` or `rep movs` whole, which the single step would cut into its repetitions. False: it is
 * another instruction. */
static bool carry_out_string(greg_t *r) {
    const unsigned char *code = (const unsigned char *)r[REG_RIP];
    const bool wide = code[1] == 0x48;
    const unsigned char operation = code[wide ? 2 : 1];
    const size_t unit = wide ? 8 : 1, size = (size_t)r[REG_RCX] * unit;
    char *to = (char *)r[REG_RDI];
    const bool moves = operation == (wide ? 0xa5 : 0xa4);
    if (code[0] != 0xf3 || (!moves && operation != (wide ? 0xab : 0xaa))) return false;
    char *first = find_page(to);
    mprotect(first, (size_t)(to + size - first), PROT_READ | PROT_WRITE);
    if (moves) memcpy(to, (const char *)r[REG_RSI], size);
    for (size_t i = 0; i < size && !moves; i += unit) memcpy(to + i, &r[REG_RAX], unit);
    mprotect(first, (size_t)(to + size - first), PROT_READ);
    r[REG_RDI] += (greg_t)size;
    if (moves) r[REG_RSI] += (greg_t)size;
    r[REG_RCX] = 0;
    r[REG_RIP] += wide ? 3 : 2;
    return true;
}

static void on_fault(int signal, siginfo_t *info, void *context) {
    ucontext_t *c = context;
    if (!find_mapping(info->si_addr) || nstepping == 4) report_crash(signal);
    if (!nstepping) { /* otherwise this is the same store, which crosses into another page */
        count_store();
        if (sim_planned.store_kills) sim_pass_call("store");
    }
    if (!nstepping && carry_out_string(c->uc_mcontext.gregs)) return;
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
