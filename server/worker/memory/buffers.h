/* The buffers of a session, by the ids that its client chose. Only whoever runs the engine calls these. */
#ifndef AD_SERVER_WORKER_MEMORY_BUFFERS_H
#define AD_SERVER_WORKER_MEMORY_BUFFERS_H

#include <stddef.h>

#include "protocol/op.h"
#include "server/worker/engine/stream_queue.h"
#include "server/worker/exec/poison.h"

struct ad_session;
struct ad_shared;
struct ad_spill_owner;
struct ad_moved;
struct ad_import;

typedef struct ad_buffer ad_buffer;
struct ad_buffer {
    /* two lines of the cache, all that freeing it reads where it is the only one to have its memory */
    uint64_t id;
    uint64_t size; /* bytes; what extents are checked against */
    union {
        void *address;   /* a valid pointer also when size is 0 */
        ad_buffer *next; /* of the spare ones */
    };
    ad_block block;           /* block.slab is NULL: no memory */
    ad_poison *poison;        /* NULL: the contents are good */
    ad_stream_queue *home;    /* whose memory it has; NULL: none, and never used */
    struct ad_shared *shared; /* memory that others hold, too (sharing/sharing.h); NULL: its own */
    struct ad_loaded *module; /* whose variable it is; NULL: it is memory of its own */
    struct ad_import *import; /* it is memory of its client (sharing/imports.h); NULL: it is not */
    uint32_t place;           /* its row's in the journal (journal/checkpoint.h); 0: it has none */
    bool changed;             /* since that was written */
    bool readonly;            /* published by somebody: this session may not write it */
    bool in_use;              /* it is not moved to host memory */
    bool was_moved;           /* ever: so moves means something */
    bool is_moved;            /* now: so moved does; its address means nothing then */
    bool listed;              /* among those that could be moved to host memory: owner and so on mean something */
    bool promised;            /* queued operations make it: it has a size, but no memory yet */
    bool freed;               /* by the client: gone when it is held no more */
    uint16_t queued; /* how many operands of queued operations (fusion/queue.h) this is; 0: what follows of them means
                        nothing */

    /* a third, on which it depends when it may be used */
    ad_stream_queue *writer; /* on which it was last written, as that stream queue's operation `written` */
    uint64_t written;
    uint64_t readers;    /* bit n: stream queue n has read it since */
    uint64_t read_at;    /* the last operation that has read it, or the next one if that was no operation */
    uint64_t suspects;   /* checks of this epoch on which the contents depend (exec/deferred_check.h) */
    uint32_t epoch;      /* of suspects */
    int16_t value;       /* what the last queued operation to write it leaves in it, counted from 1; 0: none does */
    int16_t tie;         /* the first of them that uses it, */
    int16_t leaf;        /* by the view of this number, */
    bool several;        /* they read it by several views, */
    bool in_place;       /* they write to it as it exists */
    const ad_desc *view; /* which is that one, as that operation has it */

    /* not cleared: others say which of these mean something */
    struct ad_moved *moved;       /* where its bytes are in host memory */
    struct ad_spill_owner *owner; /* in whose list it is (memory/spill/spill.h) */
    ad_buffer *colder, *warmer;
    uint64_t used_at;
    struct ad_session *holder; /* of shared: the session that this one belongs to, */
    ad_buffer *next_holder, *prev_holder;
    uint64_t seen;  /* and the version of the contents that its streams wait for already */
    uint64_t moves; /* to host memory and back, so far */
};
#define AD_BUFFER_CLEARED offsetof(ad_buffer, moved)

static inline uint64_t ad__buffer_moves(const ad_buffer *b) { return b->was_moved ? b->moves : 0; }

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
/* These are about to be given up, and may not have been used for long: the processor is told of all at once. */
void ad__buffers_prefetch(const ad_buffers *t, const uint64_t *id, size_t n);
/* A new one, zero but for its id. AD_E_VALUE: id is 0 or in use; AD_E_LIMIT; AD_E_MEMORY. */
int ad__buffers_add(ad_buffers *t, uint64_t id, ad_buffer **out, ad_fault *fault);
/* Forget a buffer. Its block and poison are the caller's. */
void ad__buffers_remove(ad_buffers *t, ad_buffer *b);
/* The same in two steps: its id is unknown from now on; what is left of it is done with. */
void ad__buffers_detach(ad_buffers *t, ad_buffer *b);
void ad__buffers_recycle(ad_buffers *t, ad_buffer *b);
/* Call visit for every buffer; it must not add or remove any. */
void ad__buffers_each(const ad_buffers *t, void (*visit)(void *user, ad_buffer *b), void *user);
/* Call visit for every buffer, then forget all and free the table's memory. */
void ad__buffers_clear(ad_buffers *t, void (*visit)(void *user, ad_buffer *b), void *user);

#endif
