/* The buffers of a session, by the ids that its client chose. Only whoever runs the engine calls these. */
#ifndef AD_SERVER_BUFFERS_H
#define AD_SERVER_BUFFERS_H

#include "server/worker/lane.h"
#include "server/worker/poison.h"

struct ad_session;
struct ad_shared;

typedef struct ad_buffer ad_buffer;
struct ad_buffer {
    uint64_t id;
    uint64_t size;     /* bytes; what extents are checked against */
    void *address;     /* a valid pointer also when size is 0 */
    ad_block block;    /* block.slab is NULL: no memory */
    ad_poison *poison; /* NULL: the contents are good */
    ad_lane *home;     /* whose memory it has; NULL: none, and never used */
    ad_lane *writer;   /* on which it was last written, as that lane's operation `written` */
    uint64_t written;
    uint64_t readers;  /* bit n: lane n has read it since */
    uint64_t suspects; /* verdicts of this epoch on which the contents depend (verdict.h) */
    uint32_t epoch;
    bool readonly;             /* published by somebody: this session may not write it */
    struct ad_shared *shared;  /* memory that others hold, too (sharing.h); NULL: its own */
    struct ad_session *holder; /* of shared: the session that this one belongs to ... */
    ad_buffer *next_holder, *prev_holder;
    uint64_t seen;   /* ... and the version of the contents that its streams wait for already */
    ad_buffer *next; /* spare ones */
};

/* Open addressing with linear probing; buffers themselves stay where they are. */
typedef struct ad_buffers {
    struct ad_buffer_slot {
        uint64_t id; /* 0: free */
        ad_buffer *buffer;
    } * slots;
    uint64_t mask; /* number of slots - 1; a power of two, or no slots */
    uint64_t count, most;
    unsigned shift;
    ad_buffer *spare;
    struct ad_buffer_batch *batches;
} ad_buffers;

/* At most `most` buffers. */
void ad__buffers_init(ad_buffers *t, uint64_t most);
/* NULL: there is none. */
ad_buffer *ad__buffers_find(const ad_buffers *t, uint64_t id);
/* A new one, zero but for its id. AD_E_VALUE: id is 0 or in use; AD_E_LIMIT; AD_E_MEMORY. */
int ad__buffers_add(ad_buffers *t, uint64_t id, ad_buffer **out, ad_fault *fault);
/* Forget a buffer. Its block and poison are the caller's. */
void ad__buffers_remove(ad_buffers *t, ad_buffer *b);
/* Call visit for every buffer; it must not add or remove any. */
void ad__buffers_each(const ad_buffers *t, void (*visit)(void *user, ad_buffer *b), void *user);
/* Call visit for every buffer, then forget all and free the table's memory. */
void ad__buffers_clear(ad_buffers *t, void (*visit)(void *user, ad_buffer *b), void *user);

#endif
