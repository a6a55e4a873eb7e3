/* What arrayd says is reserved for principals. It comes on the I/O thread, and is put into the accounts of the devices
 * by whoever runs the engine. */
#ifndef AD_SERVER_WORKER_MEMORY_RESERVED_H
#define AD_SERVER_WORKER_MEMORY_RESERVED_H

#include <pthread.h>
#include <stdatomic.h>

#include "server/common/channel.h"

struct ad_gpu;
struct ad_worker;

typedef struct ad_reservation {
    char who[AD_PRINCIPAL_SIZE];
    uint64_t bytes, devices;
} ad_reservation;

typedef struct ad_reserved {
    pthread_mutex_t lock;
    ad_reservation *list, *coming; /* coming: until the last entry is there */
    uint64_t count, expected;
    atomic_bool changed;
} ad_reserved;

void ad__reserved_init(ad_reserved *r);
void ad__reserved_close(ad_reserved *r);
/* I/O thread: an entry has come. AD_E_PROTOCOL, AD_E_MEMORY. */
int ad__reserved_take(ad_reserved *r, const ad_note *note);
/* Runner: the accounts of all open devices, when something has changed. */
void ad__reserved_apply(struct ad_worker *w);
/* Runner: of one that was opened now. */
void ad__reserved_open(struct ad_worker *w, struct ad_gpu *g);

#endif
