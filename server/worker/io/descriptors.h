/* Descriptors that come with a session's bytes, on their way from the I/O thread to the runner. Any thread. */
#ifndef AD_SERVER_WORKER_IO_DESCRIPTORS_H
#define AD_SERVER_WORKER_IO_DESCRIPTORS_H

#include <pthread.h>

#include "protocol/base.h"

#define AD_DESCRIPTORS 16 /* most descriptors that have come and are not taken yet */

/* Descriptors on their way from the I/O thread to the runner, numbered from 0 as they come. */
typedef struct ad_descriptors {
    pthread_mutex_t lock;
    int fd[AD_DESCRIPTORS];
    unsigned count;
    const char *who;                                   /* client that has passed them */
    uint64_t taken;                                    /* number of descriptors taken so far */
    void (*seen)(void *user, int fd, uint64_t number); /* called with each descriptor that comes; NULL: none */
    void *user;
} ad_descriptors;

void ad__descriptors_init(ad_descriptors *d, const char *who);
void ad__descriptors_close(ad_descriptors *d);
/* Append a descriptor, or -1 for one that is missing. In the place of one that no request takes another is appended
 * that none takes and that can be closed at any time. AD_E_LIMIT: it is discarded. */
int ad__descriptors_put(ad_descriptors *d, int fd);
/* Tell whether some descriptor is not taken yet. */
bool ad__descriptors_has_unclaimed(ad_descriptors *d);
/* Take the next descriptor and its number; -1: none has come. */
int ad__descriptors_take(ad_descriptors *d, uint64_t *number);

#endif
