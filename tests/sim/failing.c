/* An allocation, a descriptor, a mapping or a watch of the loop that fails once, at the use of a given number. */
#include <string.h>

#include "tests/sim/sim.h"

unsigned sim_uses;

static bool is_concerned(const sim_process *p) {
    switch (sim_planned.fail_who) {
    case 1: return !strcmp(p->program, "arrayd-worker");
    case 2: return !strcmp(p->program, "arrayd");
    case 3: return !strcmp(p->program, "client") && p->user == SIM_OTHER;
    default: return false;
    }
}

bool sim_must_fail(sim_resource what) {
    const sim_process *p = sim_self();
    if (!p || !sim_serving || what != sim_planned.fail_what || !is_concerned(p)) return false;
    const bool fails = ++sim_uses == sim_planned.fail_at;
    if (fails) sim_note("fails", (long)what, (long)sim_uses);
    return fails;
}
