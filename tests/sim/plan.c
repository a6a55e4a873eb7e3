/* What a seed switches on. Each kind of fault is in some runs and not in others, so that runs differ in kind. */
#include <stdio.h>
#include <string.h>

#include "tests/sim/sim.h"

sim_plan sim_planned;

/* Draw a rate for half of the runs: up to `most` of a million, small rates as often as large ones. */
static unsigned draw_rate(unsigned most) {
    const unsigned shift = (unsigned)sim_draw_below(8), rate = most >> shift;
    return sim_draw_case(500000) ? 0 : 1 + (unsigned)sim_draw_below(rate);
}

/* Draw the settings that came last from a sequence of their own. So a seed without them is the run that it always was.
 */
static void draw_later_settings(sim_plan *p) {
    sim_seed_chance(~p->seed);
    p->events = sim_draw_case(500000);
    p->commons = sim_draw_case(300000);
    p->bursts = sim_draw_case(300000);
    p->indices = sim_draw_case(300000);
}

void sim_make_plan(uint64_t seed) {
    sim_plan *p = &sim_planned;
    p->seed = seed;
    draw_later_settings(p);
    sim_seed_chance(seed);
    p->switches = 1000 + (unsigned)sim_draw_below(300000);
    p->splits = draw_rate(400000);
    p->delays = draw_rate(400000);
    p->late_events = draw_rate(300000);
    p->spurious = draw_rate(100000);
    p->drops = draw_rate(1000000);
    p->worker_kills = draw_rate(3000);
    p->store_kills = sim_draw_case(700000) ? 0 : draw_rate(3000); /* watching stores takes time */
    p->client_kills = draw_rate(300);
    p->most_kills = (unsigned)sim_draw_below(8);
    p->room = sim_draw_case(500000) ? 212992 : 4096 + (unsigned)sim_draw_below(60000);
    p->clients = 1 + (unsigned)sim_draw_below(3);
    p->operations = 10 + (unsigned)sim_draw_below(150);
    if (sim_draw_case(150000)) p->no_memory = draw_rate(3000);
    if (sim_draw_case(150000)) p->no_descriptor = draw_rate(30000);
    p->late = sim_draw_case(300000);
    p->shares = sim_draw_case(500000);
    p->fatal = sim_draw_case(100000);
    p->upgrades = sim_draw_case(150000) ? 1 + (unsigned)sim_draw_below(3) : 0;
    p->spill = sim_draw_case(150000);
    p->moves = sim_draw_case(150000);
    p->forks = sim_draw_case(150000);
    p->quota = sim_draw_case(150000) ? 16384u << sim_draw_below(8) : 0;
    if (p->fatal && p->most_kills > 3) p->most_kills = 3; /* eight deaths at one place end a session */
}

void sim_finish_plan(void) {
    if (!sim_planned.commons) return;
    sim_planned.shares = true;
    sim_planned.clients = 4;   /* three of one user, and another one */
    sim_planned.spill = false; /* what all may write does not leave a device */
}

#define MEMBERS(X)   \
    X(switches)      \
    X(splits)        \
    X(delays)        \
    X(late_events)   \
    X(spurious)      \
    X(drops)         \
    X(worker_kills)  \
    X(store_kills)   \
    X(kill_at_store) \
    X(kill_again)    \
    X(client_kills)  \
    X(most_kills)    \
    X(no_descriptor) \
    X(no_memory)     \
    X(fail_who)      \
    X(fail_what)     \
    X(fail_at)       \
    X(room)          \
    X(clients)       \
    X(operations)    \
    X(late)          \
    X(shares)        \
    X(script)        \
    X(fatal)         \
    X(upgrades)      \
    X(spill)         \
    X(moves)         \
    X(forks)         \
    X(quota)         \
    X(events)        \
    X(commons)       \
    X(bursts)        \
    X(indices)

/* Take all faults away, for a script. */
static void calm_plan(unsigned script) {
    sim_planned = (sim_plan){.seed = sim_planned.seed,
                             .switches = 20000,
                             .room = 212992,
                             .clients = script == 1 ? 2 : 4,
                             .operations = sim_planned.operations,
                             .shares = true,
                             .script = script};
}

bool sim_set_plan(const char *name, uint64_t value) {
    if (!strcmp(name, "script") && value) {
        calm_plan((unsigned)value);
        return true;
    }
#define X(member)                             \
    if (!strcmp(name, #member)) {             \
        sim_planned.member = (unsigned)value; \
        return true;                          \
    }
    MEMBERS(X)
#undef X
    return false;
}

void sim_print_plan(void) {
    fprintf(stderr, "seed %llu:", (unsigned long long)sim_planned.seed);
#define X(member) \
    if (sim_planned.member) fprintf(stderr, " %s=%u", #member, (unsigned)sim_planned.member);
    MEMBERS(X)
#undef X
    fputc('\n', stderr);
}
