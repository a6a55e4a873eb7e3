#ifndef AD_SIM_DIRECTOR_H
#define AD_SIM_DIRECTOR_H

#include "tests/sim/calls.h"
#include "tests/sim/sim.h"

/* Start the process that starts all others. */
void sim_start_director(void);
/* Tell whether somebody listens at a path. */
bool sim_is_listening(const char *path);

#endif
