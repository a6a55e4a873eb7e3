/* Kernels of users that are under way: which they are, for whoever has to say why the device is lost, and a thread that
 * ends the worker when one takes longer than its session allows. */
#ifndef AD_SERVER_WORKER_ENGINE_WATCHDOG_H
#define AD_SERVER_WORKER_ENGINE_WATCHDOG_H

#include <pthread.h>

#include "protocol/base.h"

#define AD_KERNEL_NAME 64 /* of names as they are shown */

/* What is under way on one stream queue, from its first kernel on. In a list while there is something. */
typedef struct ad_flight ad_flight;
struct ad_flight {
    ad_flight *next, **link; /* link NULL: not in the list */
    char kernel[AD_KERNEL_NAME];
    uint64_t last;  /* operation number of the latest kernel */
    int64_t since;  /* when the stream queue last came further, ns */
    int64_t limit;  /* ns; 0: none */
    uint64_t moved; /* how far it was then */
};

typedef struct ad_watchdog {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_t thread;
    ad_flight *flights;
    bool started, stop;
    void (*bite)(void *user, const char *why); /* does not return */
    void *user;
} ad_watchdog;

void ad__watchdog_init(ad_watchdog *w, void (*bite)(void *user, const char *why), void *user);
void ad__watchdog_close(ad_watchdog *w);
/* Runner: a kernel is about to be enqueued. */
void ad__flight_begin(ad_watchdog *w, ad_flight *f, const char *kernel, uint64_t number, int64_t limit);
/* Runner: its stream queue has completed all operations up to number `complete`. */
void ad__flight_moved(ad_watchdog *w, ad_flight *f, uint64_t complete);
/* The names of the latest kernels under way, with commas; "" for none. */
void ad__watchdog_names(ad_watchdog *w, char *out, size_t size);

#endif
