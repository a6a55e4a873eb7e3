/* What a worker may ask of the system: the calls of a list (system_calls.def), and no others. */
#ifndef ARRAYD_SERVER_WORKER_CONFINE_H
#define ARRAYD_SERVER_WORKER_CONFINE_H

#include "server/worker/worker.h"

/* Let the system refuse all other calls of this process, and of compilers that it starts, as the option system-calls
 * says. There is no way back. AD_E_SYSTEM: the system cannot do that. */
int ad__confine_worker(const ad_worker *w, ad_fault *fault);

#endif
