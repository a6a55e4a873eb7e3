/* Memory that arrayd says is reserved for principals. The list comes on the I/O thread, and the runner of the engine
 * puts it into the accounts of the devices. */
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
    ad_reservation *list, *coming; /* list in force; list of which the last entry has not come yet */
    uint64_t count, expected;
    atomic_bool changed;
} ad_reserved;

void ad__reserved_init(ad_reserved *r);
void ad__reserved_close(ad_reserved *r);
/* I/O thread: take an entry of the list. AD_E_PROTOCOL, AD_E_MEMORY. */
int ad__reserved_take(ad_reserved *r, const ad_note *note);
/* Runner: set the reserves of all open devices, if the list has changed. */
void ad__reserved_apply(struct ad_worker *w);
/* Runner: set the reserves of a device that was opened now. */
void ad__reserved_open(struct ad_worker *w, struct ad_gpu *g);

#endif
