/* The compile service: an ad_compiler (kernels/compile.h) with a cache in memory and one on disk.
 *
 * A thread of its own does all that takes time. It reads the cache on disk, starts a process for each compilation, and
 * reads the result. Users' jobs go before those that backends begin by themselves. */
#ifndef AD_SERVER_WORKER_MODULES_COMPILE_SERVICE_H
#define AD_SERVER_WORKER_MODULES_COMPILE_SERVICE_H

#include "kernels/compile.h"
#include "server/common/config.h"

typedef struct ad_compile_counts {
    uint64_t compiled, failures, hits_memory, hits_disk, waiting;
} ad_compile_counts;

/* Start the service. Its thread calls done(user) with no lock held, when jobs are done; done may be NULL. c is read
 * only by this call. AD_E_MEMORY, AD_E_SYSTEM. */
int ad__compile_open(const ad_config *c, void (*done)(void *user), void *user, ad_compiler **out, ad_fault *fault);
/* Stop the service and its compilations, when every binary was released. NULL is allowed. */
void ad__compile_close(ad_compiler *compiler);
/* Any thread: get the counts. compiler NULL: all are zero. */
void ad__compile_counts(ad_compiler *compiler, ad_compile_counts *out);

#endif
