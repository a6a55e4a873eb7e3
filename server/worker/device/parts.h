/* Parts of a device: some multiprocessors are reserved for short operations while others keep the device busy.
 *
 *     one session             the whole device
 *     a heavy and a light     ┌─ reserved ─┬───────────── rest ─────────────┐
 *     one at the same time    │ A: sum     │ B: matmul matmul matmul matmul │
 *                             └────────────┴────────────────────────────────┘
 *
 * A session is heavy where ad__stream_queue_charge says so, else light. The parts begin when a light session enqueues a
 * short operation while a heavy one uses the device, at the next operation of each. They end half a second after the
 * latest operation of either kind. Work that is under way stays where it is. A long operation of a light session
 * goes where those of heavy ones go, because there it ends sooner.
 *
 * Which part a stream is in changes nothing but time, so nothing of this is written down. Runner only. */
#ifndef AD_SERVER_WORKER_DEVICE_PARTS_H
#define AD_SERVER_WORKER_DEVICE_PARTS_H

#include "kernels/parts.h"

struct ad_worker;
struct ad_worker_session;
struct ad_stream_queue;
struct ad_gpu;

#define AD_PARTS_HOLD 500000000 /* ns after the latest operation of a kind for which the parts stay */
#define AD_PARTS_SHORT 20000    /* longest expected ns of an operation for the reserved part */

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
    bool begun;      /* it was divided before, so that streams may still be in parts */
    int64_t decided; /* when that was last looked at */
} ad_parts;

/* Choose the part for an operation of `ns` that a session is about to enqueue, and let the queue go on there. Where a
 * queue cannot, it stays where it is, and the device is one until it is to be divided anew. */
void ad__parts_place(struct ad_worker_session *s, struct ad_stream_queue *queue, int64_t ns);
/* Get how many multiprocessors of a device are reserved now. */
int ad__parts_reserved(const struct ad_gpu *g, int64_t now);

#endif
