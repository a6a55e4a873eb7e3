/* Waiting for a device, and what its status means for a session. Runner only. */
#ifndef AD_SERVER_WORKER_DEVICE_WAIT_H
#define AD_SERVER_WORKER_DEVICE_WAIT_H

#include "kernels/backend.h"

struct ad_worker_session;
struct ad_stream_queue;

/* Reasons for which a session waits. */
typedef enum ad_wait_for {
    AD_WAIT_NONE,
    AD_WAIT_STREAM, /* until one stream queue is idle */
    AD_WAIT_ALL,    /* until all stream queues are idle */
    AD_WAIT_ROOM,   /* until one stream queue has reached a mark */
    AD_WAIT_EVENT,  /* until an event is reached */
    AD_WAIT_USE,    /* until a checkpoint has the last use of a holder of shared memory (sharing/holders.h) */
    AD_WAIT_MORE,   /* until a message comes, or a time has come, or all stream queues are idle and the fusion queue
                     * waits for nobody (fusion/queue.h) */
    /* reasons without a device */
    AD_WAIT_COMPILER,   /* until a module has been compiled */
    AD_WAIT_MIGRATION,  /* until the principal's migration has succeeded or failed (migrate/migration.h) */
    AD_WAIT_PULL,       /* until an array of another server has come, or is cancelled (sharing/pull.h) */
    AD_WAIT_BACKGROUND, /* until some background operation has ended (engine/background.h) */
} ad_wait_for;

typedef struct ad_wait {
    ad_wait_for kind;
    struct ad_stream_queue *stream_queue;
    ad_event *event;
    uint64_t session, place; /* of AD_WAIT_USE: the message that uses the holder */
    int64_t since, until;    /* until: of AD_WAIT_MORE */
    uint64_t returns;        /* ad_engine.returns when the wait began */
} ad_wait;

/* Get the time when the session's turn began, for uses to which two milliseconds do not matter: to read the clock for
 * each small operation takes long. Without a turn it is the present time. */
int64_t ad__session_turn_time(const struct ad_worker_session *s);
/* Let the session wait; then the message at hand is executed again. */
void ad__session_await(struct ad_worker_session *s, ad_wait_for kind, struct ad_stream_queue *stream_queue,
                       ad_event *event);
/* Let the session wait for more messages, at most so many ns. */
void ad__session_await_more(struct ad_worker_session *s, int64_t ns);
/* Check a status of the backend, and return it. AD_E_DEVICE_LOST ends the process. */
int ad__session_status(struct ad_worker_session *s, int status, const ad_fault *fault);

#endif
