/* What clients have given to others: the simulator remembers what each of these arrays must be. */
#include <stdlib.h>
#include <string.h>

#include "tests/sim/sim.h"

static sim_shared *list[SIM_SHARED];
static unsigned count;
bool sim_shared_crossed;

sim_shared *sim_shared_add(int64_t n, const int64_t *value, bool maybe_lost) {
    if (count == SIM_SHARED) return NULL;
    sim_shared *s = list[count] = calloc(1, sizeof *s);
    s->number = (int)++count;
    s->user = sim_self()->user;
    s->count = n;
    s->value = malloc((size_t)n * sizeof *value);
    memcpy(s->value, value, (size_t)n * sizeof *value);
    s->maybe_lost = maybe_lost;
    return s;
}

unsigned sim_shared_count(void) { return count; }

sim_shared *sim_shared_choose(void) { return count ? list[sim_draw_below(count)] : NULL; }

sim_shared *sim_shared_latest(unsigned user) {
    for (unsigned i = count; i; i--)
        if (list[i - 1]->by_capability && list[i - 1]->limit && list[i - 1]->user == user) return list[i - 1];
    return NULL;
}

bool sim_shared_is_first(void) {
    static bool asked;
    return asked ? false : (asked = true);
}
