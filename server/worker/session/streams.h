/* Streams and events of clients, and their questions about devices and memory. Runner only. */
#ifndef AD_SERVER_WORKER_SESSION_STREAMS_H
#define AD_SERVER_WORKER_SESSION_STREAMS_H

#include "kernels/backend.h"
#include "protocol/message.h"
#include "server/worker/base/component.h"

struct ad_worker_session;
struct ad_stream_queue;

#define AD_EVENTS 65536 /* most events of a session */

typedef struct ad_client_event ad_client_event;

typedef struct ad_events {
    ad_client_event *list; /* sorted by id */
    size_t count, capacity;
} ad_events;

extern const ad_component ad__component_events, ad__component_streams;

#endif
