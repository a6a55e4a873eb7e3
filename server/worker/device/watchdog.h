/* Users' kernels that are under way. Their names are for the message when the device is lost. A thread ends the worker
 * when a kernel exceeds its session's kernel-time. */
#ifndef AD_SERVER_WORKER_DEVICE_WATCHDOG_H
#define AD_SERVER_WORKER_DEVICE_WATCHDOG_H

#include <pthread.h>

#include "protocol/base.h"

#define AD_KERNEL_NAME 64 /* bytes of a name as it is shown */

/* Kernels under way on one stream queue, in the watchdog's list until the latest is complete. */
typedef struct ad_flight ad_flight;
struct ad_flight {
    ad_flight *next, **link; /* link: NULL outside the list */
    char kernel[AD_KERNEL_NAME];
    uint64_t last;  /* operation number of the latest kernel */
    int64_t since;  /* when the stream queue last made progress, ns */
    int64_t limit;  /* ns; 0: none */
    uint64_t moved; /* number of operations complete then */
};

typedef struct ad_watchdog {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_t thread;
    ad_flight *flights;
    bool started, stop;
    void (*on_lost)(void *user, const char *why); /* called by the thread with the watchdog's user; does not return */
    void *user;
} ad_watchdog;

/* Initialise a watchdog; its thread starts with the first kernel that has a limit. */
void ad__watchdog_init(ad_watchdog *w, void (*on_lost)(void *user, const char *why), void *user);
/* Stop and join the thread. */
void ad__watchdog_close(ad_watchdog *w);
/* Runner: record a kernel that is about to be enqueued. limit: ns; 0: none. */
void ad__flight_begin(ad_watchdog *w, ad_flight *f, const char *kernel, uint64_t number, int64_t limit);
/* Runner: record that the flight's stream queue has completed all operations up to `complete`. */
void ad__flight_moved(ad_watchdog *w, ad_flight *f, uint64_t complete);
/* Write the names of the latest kernels under way, separated by commas; "": none. Any thread. */
void ad__watchdog_names(ad_watchdog *w, char *out, size_t size);

#endif
