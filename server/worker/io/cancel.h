/* The cancelled part of a client's stream: all computations before a place of its stream (protocol/frame.h,
 * AD_FRAME_CANCEL). */
#ifndef AD_SERVER_WORKER_IO_CANCEL_H
#define AD_SERVER_WORKER_IO_CANCEL_H

#include "server/worker/session.h"

/* Tell whether the client has cancelled what came before this place of its stream. */
static inline bool ad__cancel_covers(const ad_worker_session *s, uint64_t place) {
    return place < atomic_load_explicit(&s->turns.cancelled_before, memory_order_relaxed);
}

/* Tell whether the message at hand is a computation: an operation or a kernel of a user's, whatever its answer. */
static inline bool ad__cancel_concerns_message(const ad_worker_session *s) {
    const unsigned check = s->messages.message.row->check;
    return check == AD_CHECK_OPERATION || check == AD_CHECK_LAUNCH;
}

/* Tell whether the message at hand is a computation that the client has cancelled. */
static inline bool ad__cancel_covers_message(const ad_worker_session *s) {
    return ad__cancel_covers(s, s->messages.place) && ad__cancel_concerns_message(s);
}

#endif
