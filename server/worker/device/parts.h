/* Parts of a device: some multiprocessors are kept free for light sessions while others keep the device busy.
 *
 *     one session             the whole device
 *     a heavy and a light     A: sum  ────────────────────────────────── any multiprocessor
 *     one at the same time    B: matmul matmul matmul matmul ──┐ reserved
 *                                                              └──────────┘ B is not here
 *
 * A session is heavy where ad__stream_queue_charge says so, else light. While both use the device, what the heavy one
 * enqueues leaves some multiprocessors alone. Light ones have the whole device at all times, and on a stream of high
 * priority. This begins at the first operation of the second session, and ends half a second after the latest one of
 * either kind. Work that is under way stays where it is.
 *
 * Which multiprocessors a stream has changes nothing but time, so nothing of this is written down. Runner only. */
#ifndef AD_SERVER_WORKER_DEVICE_PARTS_H
#define AD_SERVER_WORKER_DEVICE_PARTS_H

#include "kernels/parts.h"

struct ad_worker;
struct ad_worker_session;
struct ad_stream_queue;
struct ad_gpu;

#define AD_PARTS_HOLD 500000000 /* ns after the latest operation of a kind for which multiprocessors stay reserved */

/* The latest session of a kind. */
typedef struct ad_parts_user {
    const struct ad_worker_session *session; /* never followed, as it may be over; NULL: none */
    int64_t at;                              /* when it enqueued its latest operation */
} ad_parts_user;

/* Initialised with zeros. */
typedef struct ad_parts {
    ad_parts_user light, heavy;
    int wanted;      /* multiprocessors to reserve for light sessions */
    int asked;       /* those of them that the backend was asked for; 0: the device is one */
    int reserved;    /* what it gave */
    bool begun;      /* some were reserved before, so that streams may still leave them alone */
    int64_t decided; /* when that was last looked at */
} ad_parts;

/* Have a new device ready to be divided as the option sm-share says: later that would wait for what it has to do. A
 * server of one program has no other clients as a rule, and begins sooner without. */
void ad__parts_prepare(const struct ad_worker *w, struct ad_gpu *g);
/* Choose which multiprocessors the operation has that a session is about to enqueue. Where the queue cannot be
 * confined, it has all, and the device is one until it is to be divided anew. */
void ad__parts_choose(struct ad_worker_session *s, struct ad_stream_queue *queue);
/* Get how many multiprocessors of a device are reserved now. */
int ad__parts_reserved(const struct ad_gpu *g, int64_t now);

#endif
