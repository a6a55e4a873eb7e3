/* The event loop: the functions of libuv that arrayd uses, over simulated descriptors and the virtual clock. */
#ifndef AD_SIM_LOOP_H
#define AD_SIM_LOOP_H

#include "tests/sim/sim.h"

/* Load a copy of a shared object, with globals of its own. Exits if it cannot be loaded. */
void *sim_load_copy(const char *path);
/* Free what the loops of a process have. */
void sim_loops_free(sim_process *p);
/* Let a loop of the process notice a signal. */
void sim_send_signal(sim_process *p, int signal);

#endif
