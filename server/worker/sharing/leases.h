/* Leases: sockets that stand for memory which a process and the server both have. The end of the other end, which the
 * kernel closes when its process ends in whatever way, ends the lease. One epoll descriptor watches all of them. */
#ifndef AD_SERVER_WORKER_SHARING_LEASES_H
#define AD_SERVER_WORKER_SHARING_LEASES_H

#include "server/worker/worker.h"

#define AD_LEASES 1024 /* of each kind, of a principal, at a time */

/* The first member of what it is of. */
typedef struct ad_lease ad_lease;
struct ad_lease {
    ad_lease *next; /* of those that are over */
    int fd;
    void (*over)(ad_worker *w, ad_lease *l); /* runner: its other end has been closed */
};

/* From here on the other end is watched. AD_E_SYSTEM. */
int ad__lease_watch(ad_worker *w, ad_lease *l, ad_fault *fault);
/* Not any more, and this end is closed. */
void ad__lease_close(ad_worker *w, ad_lease *l);
/* I/O thread: other ends have been closed. */
void ad__leases_look(ad_worker *w);
/* Runner: tell those whose they were. */
void ad__leases_sweep(ad_worker *w);

#endif
