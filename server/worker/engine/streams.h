/* Streams and events that clients ask for, and what they want to know of devices and memory. Only whoever runs the
 * engine calls these. */
#ifndef AD_SERVER_WORKER_ENGINE_STREAMS_H
#define AD_SERVER_WORKER_ENGINE_STREAMS_H

#include "kernels/backend.h"
#include "protocol/message.h"

struct ad_session;
struct ad_stream_queue;

#define AD_EVENTS 65536 /* of a session */

typedef struct ad_mine ad_mine;

typedef struct ad_events {
    ad_mine *list; /* in order of ids */
    size_t count, capacity;
} ad_events;

/* STREAM, STREAM_DROP, ON, EVENT, EVENT_DROP, AFTER: a status, with a fault that names the request. */
int ad__streams_op(struct ad_session *s, const ad_message *m, ad_fault *fault);
/* WAIT, DONE, ELAPSED, POOL, DEVICE: false when the session waits and the message comes again. */
bool ad__streams_ask(struct ad_session *s, const ad_message *m);
/* What is known of an event; false: there is none. */
bool ad__event_known(struct ad_session *s, uint64_t id, uint16_t *device, bool *timed);
uint32_t *ad__event_place(struct ad_session *s,
                          uint64_t id); /* its row's in the journal; NULL: there is no such event */
/* One that another worker saw reached. */
int ad__event_restore(struct ad_session *s, uint64_t id, uint64_t device, bool timed, ad_fault *fault);
void ad__events_close(struct ad_session *s);

#endif
