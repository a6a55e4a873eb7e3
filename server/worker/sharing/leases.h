/* Leases: sockets that stand for memory which a process and the server both use. The kernel closes the other end
 * when its process ends, however it ends, and that ends the lease. One epoll descriptor watches all leases. */
#ifndef AD_SERVER_WORKER_SHARING_LEASES_H
#define AD_SERVER_WORKER_SHARING_LEASES_H

#include "server/worker/worker.h"

#define AD_LEASES 1024 /* leases of each kind that a principal may have at a time */

/* A lease, the first member of an export or an import. */
typedef struct ad_held_lease ad_held_lease;
struct ad_held_lease {
    ad_held_lease *next; /* next in the list of leases whose other end was closed */
    int fd;
    void (*over)(ad_worker *w, ad_held_lease *l); /* Runner: the other end was closed. */
};

/* True if a client's descriptor is a Unix stream socket. */
bool ad__is_stream_socket(int fd);
/* Watch the other end from now on. AD_E_SYSTEM. */
int ad__lease_watch(ad_worker *w, ad_held_lease *l, ad_fault *fault);
/* Stop watching a lease, and close this end. */
void ad__lease_close(ad_worker *w, const char *who, ad_held_lease *l);
/* I/O thread: list the leases whose other end was closed. */
void ad__leases_look(ad_worker *w);
/* Runner: call `over` for the listed leases. */
void ad__leases_sweep(ad_worker *w);

#endif
