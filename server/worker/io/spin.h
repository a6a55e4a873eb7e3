/* Spinning: the loop polls its sockets for a moment before it sleeps. I/O thread. */
#ifndef AD_SERVER_WORKER_IO_SPIN_H
#define AD_SERVER_WORKER_IO_SPIN_H

#include <stdbool.h>

struct ad_worker;

/* Record that a client has sent something. */
void ad__worker_record_message(struct ad_worker *w);
/* Tell whether messages have often come soon of late, so that spinning pays, or whether it is to be done anyway. */
bool ad__worker_spins(const struct ad_worker *w);
/* Tell whether the loop should poll again at once although nothing is left to do. */
bool ad__worker_must_spin(struct ad_worker *w);

#endif
