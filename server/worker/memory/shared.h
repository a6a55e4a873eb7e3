/* Memory that several sessions of a worker hold (sharing/sharing.h). */
#ifndef AD_SERVER_WORKER_MEMORY_SHARED_H
#define AD_SERVER_WORKER_MEMORY_SHARED_H

#include "server/worker/base/phase.h"
#include "server/worker/memory/buffers.h"

typedef struct ad_shared ad_shared;
struct ad_shared {
    uint64_t holders; /* number of holders: buffers, capabilities, names and leases */
    uint64_t paying;  /* number of holders of the principal that the block is charged to */
    ad_buffer *buffers;
    struct ad_holder *others; /* capabilities, names and leases (sharing/holders.h) */
    bool common;
    bool moving;      /* what is done to the memory moves it, and does not change it */
    uint64_t readers; /* leases of programs that only read the memory; AD_READERS_UNKNOWN: another worker gave them */
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

#define AD_READERS_UNKNOWN UINT64_MAX

/* True if the memory stays as it is, and who writes to it gets a copy: others hold it, or programs read it. */
static inline bool ad__shared_is_kept(const ad_shared *m) { return !m->common && (m->holders > 1 || m->readers); }

/* True if the buffer's memory may be written while an operation runs. Other processes may write imported memory, and
 * memory that was exported at any time. Sessions write common memory in turn, but no kernel may depend on that. */
static inline bool ad__shared_is_open(const ad_buffer *b) {
    return b->import || b->block.open || (b->shared && (b->shared->common || b->shared->block.open));
}

#define AD_SHARED_APART 8 /* most holders that get copies of their own in host memory */

/* True if nothing but a few buffers of sessions hold the memory, which nothing uses now. Then each of them may have a
 * copy of its own instead. */
static inline bool ad__shared_may_part(const ad_shared *m) {
    uint64_t n = 0;
    if (m->holders > AD_SHARED_APART || m->poison || m->common || m->block.open || !m->block.slab) return false;
    for (const ad_buffer *b = m->buffers; b; b = b->sharing.next, n++)
        if (b->in_use || b->poison || b->readonly || ad__run_is_dropping(b->sharing.holder)) return false;
    return n == m->holders;
}

#endif
