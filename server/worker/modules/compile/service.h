/* The compile service: an ad_compiler (kernels/compile.h) behind a cache in memory and one on disk.
 *
 * One thread of its own does all that takes time: it looks into the folder, starts a process for each compilation, and
 * hears them. Users' jobs go before those that the backends begin by themselves. */
#ifndef AD_SERVER_WORKER_MODULES_COMPILE_SERVICE_H
#define AD_SERVER_WORKER_MODULES_COMPILE_SERVICE_H

#include "kernels/compile.h"
#include "server/common/config.h"

typedef struct ad_compile_counts {
    uint64_t compiled, failures, hits_memory, hits_disk, waiting;
} ad_compile_counts;

/* Starts the thread. done(user) is called by it, with nothing locked, when jobs have been done; it may be NULL. c is
 * only read here. AD_E_MEMORY, AD_E_SYSTEM. */
int ad__compile_open(const ad_config *c, void (*done)(void *user), void *user, ad_compiler **out, ad_fault *fault);
/* Ends what is under way. Every binary has been released. NULL: nothing. */
void ad__compile_close(ad_compiler *compiler);
/* NULL: all zero. Any thread. */
void ad__compile_counts(ad_compiler *compiler, ad_compile_counts *out);

#endif
