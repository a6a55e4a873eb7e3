/* The threads of a block, which run one after another on one fiber, as plain calls. When one of them waits for the
 * others it stays where it is. The next one goes on with the rest, on a fiber of its own. When none is left to begin,
 * threads go on whose wait is over. */
#include "kernels/cpu/backend/block.h"

#include <memory>
#include <new>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <vector>

#include "kernels/cpu/backend/fiber.h"

namespace {

using adrun::block;
using adrun::wait_for;

/* A thread that waits. */
struct waiting {
    ad_fiber fiber;
    wait_for what;
    unsigned mask;
    int other;
    unsigned long long value;
    uint3 thread;
    bool waits, ready;
};

/* The state of a thread of the system that runs blocks. */
struct runner {
    block b; /* first: `wait` gets the runner by it */
    const ad_cpu_grid *grid;
    ad_fiber home, running;
    std::vector<ad_fiber> idle; /* with a stack that nothing is on */
    unsigned char done[AD_BLOCK_THREADS];
    waiting threads[AD_BLOCK_THREADS];
    unsigned nwaiting;
    bool inside, returned; /* a kernel's code runs; a fiber has come to its end */
    int status;
    char why[160];
    alignas(256) char shared[AD_SHARED_MOST];
    alignas(64) char alternate[32 << 10]; /* stack of the signal's handler */
    stack_t before;                       /* the thread's own, which it has again at its end */

    ~runner() { sigaltstack(&before, nullptr); }
};

thread_local runner *current; /* runner of the kernel in this thread, for the signal's handler */
thread_local std::unique_ptr<runner> own;

runner *runner_of(block *b) { return reinterpret_cast<runner *>(b); }

/* ---- going to and fro ---- */

/* Leave the kernel's code for good. */
[[noreturn]] void give_up(runner *r, int status, const char *why) {
    r->status = status;
    snprintf(r->why, sizeof r->why, "%s", why);
    ad_fiber_switch(&r->running, &r->home);
    __builtin_unreachable();
}

void fail(block *b, const char *why) { give_up(runner_of(b), AD_E_DEVICE_LOST, why); }

unsigned long long wait(block *b, wait_for what, unsigned mask, unsigned long long value, int other) {
    runner *r = runner_of(b);
    const unsigned me = b->current;
    waiting *w = &r->threads[me];
    if (what == adrun::WAIT_GRID && !r->grid->meeting)
        give_up(r, AD_E_VALUE, "it waits for the grid, but was not launched with enable_cooperative_groups=True");
    if (what != adrun::WAIT_BLOCK && what != adrun::WAIT_GRID && what != adrun::WAIT_ACTIVE && !(mask >> me % 32 & 1))
        give_up(r, AD_E_VALUE, "a thread waits for lanes of its warp with a mask that it is not in itself");
    w->what = what;
    w->mask = mask;
    w->value = value;
    w->other = other;
    w->thread = b->thread;
    w->waits = true;
    w->ready = false;
    r->nwaiting++;
    w->fiber = r->running;
    ad_fiber_switch(&w->fiber, &r->home);
    b->current = me;
    b->thread = w->thread;
    return w->value;
}

/* Run threads of a block: the function of a fiber. */
void fiber_main(void *argument) {
    runner *r = static_cast<runner *>(argument);
    for (;;) {
        r->grid->run(r->grid->argument, &r->b);
        r->returned = true;
        ad_fiber_switch(&r->running, &r->home);
    }
}

void enter(runner *r, ad_fiber *fiber) {
    r->running = *fiber;
    r->returned = false;
    r->inside = true;
    ad_fiber_switch(&r->home, fiber);
    r->inside = false;
}

/* ---- who may go on ---- */

unsigned warp_end(const runner *r, unsigned first) { return first + 32 < r->b.count ? first + 32 : r->b.count; }

void let_go(runner *r, waiting *w, unsigned long long result) {
    w->value = result;
    w->waits = false;
    w->ready = true;
    r->nwaiting--;
}

/* All threads that have not ended wait for the same, of the block or of the grid. */
bool release_block(runner *r, wait_for what) {
    unsigned yes = 0, all = 0;
    for (unsigned i = 0; i < r->b.count; i++) {
        const waiting *w = &r->threads[i];
        if (r->done[i]) continue;
        if (!w->waits || w->what != what) return false;
        yes += w->value != 0;
        all++;
    }
    if (all == 0) return false;
    if (what == adrun::WAIT_GRID && !ad_cpu_meet(r->grid->meeting)) return false;
    for (unsigned i = 0; i < r->b.count; i++)
        if (!r->done[i]) let_go(r, &r->threads[i], (unsigned long long)all << 32 | yes);
    return true;
}

unsigned reduce(unsigned a, unsigned b, int with) {
    const int x = int(a), y = int(b);
    switch (with) {
    case adrun::REDUCE_MIN: return unsigned(y < x ? y : x);
    case adrun::REDUCE_MAX: return unsigned(x < y ? y : x);
    case adrun::REDUCE_UMIN: return b < a ? b : a;
    case adrun::REDUCE_UMAX: return a < b ? b : a;
    case adrun::REDUCE_AND: return a & b;
    case adrun::REDUCE_OR: return a | b;
    case adrun::REDUCE_XOR: return a ^ b;
    default: return a + b;
    }
}

/* Get the result of a group's exchange for lane `me`; value: those of all lanes. */
unsigned long long outcome(const waiting *w, unsigned group, const unsigned long long value[32], unsigned me) {
    unsigned lanes = 0;
    bool first = true;
    switch (w->what) {
    case adrun::WAIT_SHUFFLE: return group >> (w->other & 31) & 1 ? value[w->other & 31] : value[me];
    case adrun::WAIT_ACTIVE: return group;
    case adrun::WAIT_WARP: return 0;
    default: break;
    }
    for (unsigned i = 0; i < 32; i++) {
        if (!(group >> i & 1)) continue;
        if (w->what == adrun::WAIT_VOTE) lanes |= unsigned(value[i] != 0) << i;
        else if (w->what == adrun::WAIT_MATCH) lanes |= unsigned(value[i] == value[me]) << i;
        else lanes = first ? unsigned(value[i]) : reduce(lanes, unsigned(value[i]), w->other);
        first = false;
    }
    return (unsigned long long)group << 32 | lanes;
}

void release_group(runner *r, unsigned first, unsigned group) {
    unsigned long long value[32] = {0}, result[32];
    for (unsigned i = 0; i < 32; i++)
        if (group >> i & 1) value[i] = r->threads[first + i].value;
    for (unsigned i = 0; i < 32; i++)
        if (group >> i & 1) result[i] = outcome(&r->threads[first + i], group, value, i);
    for (unsigned i = 0; i < 32; i++)
        if (group >> i & 1) let_go(r, &r->threads[first + i], result[i]);
}

/* The lanes that wait for the same as lane `i` with the same mask, once all of the mask do that have not ended. */
unsigned complete_group(const runner *r, unsigned first, unsigned end, unsigned i) {
    const waiting *w = &r->threads[i];
    unsigned group = 0;
    for (unsigned k = first; k < end; k++) {
        const waiting *x = &r->threads[k];
        if (!(w->mask >> (k - first) & 1) || r->done[k]) continue;
        if (!x->waits || x->what != w->what || x->mask != w->mask) return 0;
        group |= 1u << (k - first);
    }
    return group;
}

bool release_warp(runner *r, unsigned first) {
    const unsigned end = warp_end(r, first);
    bool some = false;
    for (unsigned i = first; i < end; i++) {
        const waiting *w = &r->threads[i];
        if (!w->waits || w->what == adrun::WAIT_BLOCK || w->what == adrun::WAIT_GRID || w->what == adrun::WAIT_ACTIVE)
            continue;
        const unsigned group = complete_group(r, first, end, i);
        if (group != 0) release_group(r, first, group);
        some = some || group != 0;
    }
    return some;
}

/* Nothing else can go on: those that ask who is there are. */
bool release_active(runner *r, unsigned first) {
    unsigned group = 0;
    for (unsigned i = first; i < warp_end(r, first); i++)
        if (r->threads[i].waits && r->threads[i].what == adrun::WAIT_ACTIVE) group |= 1u << (i - first);
    if (group != 0) release_group(r, first, group);
    return group != 0;
}

bool release(runner *r) {
    bool some = false;
    for (unsigned first = 0; first < r->b.count; first += 32) some = release_warp(r, first) || some;
    if (some || release_block(r, adrun::WAIT_BLOCK) || release_block(r, adrun::WAIT_GRID)) return true;
    for (unsigned first = 0; first < r->b.count; first += 32) some = release_active(r, first) || some;
    return some;
}

/* ---- a block ---- */

bool idle_fiber(runner *r, ad_fiber *out) {
    if (!r->idle.empty()) {
        *out = r->idle.back();
        r->idle.pop_back();
        return true;
    }
    if (!ad_fiber_open(out)) return false;
    ad_fiber_prepare(out, fiber_main, r);
    return true;
}

/* A fiber came back: it has ended, or its thread waits and keeps it, or the block is over. */
int after(runner *r) {
    if (r->status) ad_fiber_close(&r->running);
    else if (r->returned) r->idle.push_back(r->running);
    return r->status;
}

int go_on(runner *r) {
    for (unsigned i = 0; i < r->b.count; i++) {
        waiting *w = &r->threads[i];
        if (!w->ready) continue;
        w->ready = false;
        ad_fiber fiber = w->fiber;
        enter(r, &fiber);
        if (after(r)) return r->status;
    }
    return 0;
}

int begin_threads(runner *r) {
    while (r->b.next < r->b.count) {
        ad_fiber fiber;
        if (!idle_fiber(r, &fiber)) {
            snprintf(r->why, sizeof r->why, "no memory for the stacks of its threads");
            return r->status = AD_E_MEMORY;
        }
        enter(r, &fiber);
        if (after(r)) return r->status;
    }
    return 0;
}

int run_threads(runner *r) {
    int status = begin_threads(r);
    while (!status && r->nwaiting > 0) {
        if (!release(r)) {
            snprintf(r->why, sizeof r->why,
                     "threads wait at a barrier, for lanes of their warp, or for the grid, that others never reach");
            return r->status = AD_E_VALUE;
        }
        status = go_on(r);
    }
    return status;
}

/* Fibers of threads that will never go on. */
void abandon(runner *r) {
    for (unsigned i = 0; i < r->b.count; i++) {
        waiting *w = &r->threads[i];
        if (w->waits || w->ready) ad_fiber_close(&w->fiber);
        w->waits = w->ready = false;
    }
    r->nwaiting = 0;
}

runner *get_runner() {
    if (own) return own.get();
    own.reset(new (std::nothrow) runner());
    if (!own) return nullptr;
    own->idle.reserve(AD_BLOCK_THREADS);
    own->b.wait = wait;
    own->b.fail = fail;
    own->b.dynamic = own->shared;
    own->b.done = own->done;
    stack_t alternate = {};
    alternate.ss_sp = own->alternate;
    alternate.ss_size = sizeof own->alternate;
    sigaltstack(&alternate, &own->before);
    return own.get();
}

/* ---- what the processor refuses ---- */

const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT};

const char *text_of(int number) {
    switch (number) {
    case SIGSEGV:
    case SIGBUS: return "an illegal memory access";
    case SIGFPE: return "an integer division by zero";
    case SIGILL:
    case SIGTRAP: return "an illegal instruction";
    default: return "abort()";
    }
}

void on_signal(int number) {
    runner *r = current;
    if (r && r->inside) give_up(r, AD_E_DEVICE_LOST, text_of(number));
    signal(number, SIG_DFL); /* not a kernel's: what would have happened happens */
    raise(number);
}

/* The backend's threads let no signal through. */
void let_through() {
    sigset_t set;
    sigemptyset(&set);
    for (int number : signals) sigaddset(&set, number);
    pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
}

} // namespace

void ad_cpu_traps_set() {
    struct sigaction a = {};
    a.sa_handler = on_signal;
    a.sa_flags = SA_ONSTACK | SA_NODEFER;
    for (int number : signals) sigaction(number, &a, nullptr);
}

int ad_cpu_block_run(const ad_cpu_grid *grid, uint64_t index, ad_fault *fault) {
    runner *r = get_runner();
    if (!r) return ad__fault(fault, AD_E_MEMORY, "out of memory");
    if (!current) let_through();
    current = r;
    r->grid = grid;
    r->status = 0;
    r->b.threads = grid->threads;
    r->b.blocks = grid->blocks;
    r->b.index = {unsigned(index % grid->blocks.x), unsigned(index / grid->blocks.x % grid->blocks.y),
                  unsigned(index / grid->blocks.x / grid->blocks.y)};
    r->b.next = 0;
    r->b.count = grid->count;
    memset(r->done, 0, grid->count);
    if (run_threads(r) == 0) return 0;
    const uint3 at = r->b.thread;
    abandon(r);
    if (r->status == AD_E_DEVICE_LOST)
        return ad__fault(fault, r->status, "kernel %s: %s in block (%u, %u, %u), thread (%u, %u, %u)", grid->name,
                         r->why, r->b.index.x, r->b.index.y, r->b.index.z, at.x, at.y, at.z);
    return ad__fault(fault, r->status, "kernel %s: %s (block (%u, %u, %u))", grid->name, r->why, r->b.index.x,
                     r->b.index.y, r->b.index.z);
}

void ad_cpu_block_rest() {
    if (!own) return;
    for (ad_fiber &fiber : own->idle) ad_fiber_close(&fiber);
    own->idle.clear();
    current = nullptr;
}
