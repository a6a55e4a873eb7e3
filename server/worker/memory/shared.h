/* Memory that several sessions of a worker hold (sharing/sharing.h). */
#ifndef AD_SERVER_WORKER_MEMORY_SHARED_H
#define AD_SERVER_WORKER_MEMORY_SHARED_H

#include "server/worker/memory/buffers.h"

typedef struct ad_shared ad_shared;
struct ad_shared {
    uint64_t holders; /* number of holders: buffers, capabilities, names and leases */
    uint64_t paying;  /* number of holders of the principal that the block is charged to */
    ad_buffer *buffers;
    struct ad_holder *others; /* capabilities, names and leases (sharing/holders.h) */
    bool common;
    uint64_t size;
    void *address;
    ad_block block;
    ad_stream_queue *home;             /* stream queue that the memory is of; NULL: there is no memory */
    struct ad_worker_session *payer;   /* session whose bytes it counts in; NULL: no session has a buffer of it */
    ad_shared *paid_next, **paid_link; /* neighbours in the payer's list */
    ad_poison *poison;                 /* why the contents are invalid; NULL: they are valid */
    /* The last write: on the stream queue `writer`, or before the event `ready` if recorded, or complete. */
    uint64_t version;
    ad_stream_queue *writer;
    ad_event *ready;
    ad_gpu *ready_gpu;
    bool recorded;
};

/* True if the buffer's memory may be written while an operation runs. Other processes may write imported memory, and
 * memory that was exported at any time. Sessions write common memory in turn, but no kernel may depend on that. */
static inline bool ad__shared_is_open(const ad_buffer *b) {
    return b->import || b->block.open || (b->shared && (b->shared->common || b->shared->block.open));
}

#endif
