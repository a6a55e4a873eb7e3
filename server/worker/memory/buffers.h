/* The buffers of a session, by the ids that its client chose. Runner: all functions here.
 *
 * The fields of a buffer are laid out for the cache:
 *
 *     cleared for a new buffer                                   │ not cleared
 *     ──────────────────────────────────┬────────────────────────┼────────────────────────────
 *     two cache lines: all that freeing │ a third: dependencies, │ moves, shared memory: other
 *     needs, without other holders      │ queued operations      │ fields say which are valid */
#ifndef AD_SERVER_WORKER_MEMORY_BUFFERS_H
#define AD_SERVER_WORKER_MEMORY_BUFFERS_H

#include <stddef.h>

#include "protocol/op.h"
#include "server/worker/device/stream_queue.h"
#include "server/worker/memory/buffer_total.h"
#include "server/worker/memory/poison.h"

struct ad_worker_session;
struct ad_shared;
struct ad_spill_owner;
struct ad_moved;
struct ad_import_use;

typedef struct ad_buffer ad_buffer;

/* The order between stream queues. */
typedef struct ad_buffer_order {
    ad_stream_queue *writer; /* stream queue of the last write, its operation `written` */
    uint64_t written;
    uint64_t readers;            /* bit n: stream queue n has read the buffer since that write */
    uint64_t read_at;            /* last operation that has read the buffer, or the one after a request that did */
    uint64_t read_from, read_to; /* bytes around all that it and those before have read (ad__checkpoint_note_read) */
} ad_buffer_order;

/* The buffer in the fusion queue. */
typedef struct ad_buffer_fusing {
    int16_t value;       /* value of the last queued write, counted from 1; 0: no queued operation writes it */
    int16_t tie;         /* first queued operation that uses the buffer */
    int16_t leaf;        /* number of the view by which that operation uses it */
    bool several;        /* queued operations read the buffer by several views */
    bool in_place;       /* queued operations write into the buffer's present memory */
    const ad_desc *view; /* view with the number `leaf`, as that operation has it */
} ad_buffer_fusing;

/* Moves to host memory and back. */
typedef struct ad_buffer_moving {
    struct ad_moved *to;          /* the bytes in host memory */
    struct ad_spill_owner *owner; /* owner in whose list the buffer is (memory/lru.h) */
    ad_buffer *colder, *warmer;
    uint64_t used_at;
    uint64_t count; /* number of moves so far */
} ad_buffer_moving;

/* The buffer in the list of the holders of `shared`. */
typedef struct ad_buffer_sharing {
    struct ad_worker_session *holder; /* session of this buffer */
    ad_buffer *next, *prev;
    uint64_t seen; /* version of the shared contents that the session's streams wait for already */
} ad_buffer_sharing;

struct ad_buffer {
    /* Two cache lines: all that freeing the buffer reads, if no other buffer has its memory. */
    uint64_t id;
    uint64_t size; /* bytes; extents are checked against it */
    union {
        void *address;   /* address of the first byte; valid also when size is 0 */
        ad_buffer *next; /* next spare buffer, in a spare one */
    };
    ad_block block;               /* memory; block.slab NULL: none */
    ad_poison *poison;            /* why the contents are invalid; NULL: they are valid */
    ad_stream_queue *home;        /* stream queue that its memory is of; NULL: none, never used */
    struct ad_shared *shared;     /* memory with other holders (sharing/sharing.h); NULL: its own memory */
    struct ad_loaded *module;     /* module that it is a variable of; NULL: none */
    struct ad_import_use *import; /* client's memory that it is (sharing/imports.h); NULL: none */
    uint32_t place;               /* place of its row in the journal; 0: it has none */
    bool changed;                 /* the buffer has changed since its row was written */
    bool readonly;                /* the session may not write the buffer: it is published as read-only */
    bool in_use;                  /* an operation uses the buffer, which is not moved meanwhile */
    bool was_moved;               /* the buffer was moved to host memory before: `moving.count` is valid */
    bool is_moved;                /* the buffer is in host memory: `moving.to` is valid, address is not */
    bool listed;                  /* the buffer is in the list of its `moving.owner`, as one that can be moved */
    bool promised;                /* queued operations will make the buffer: it has a size, but no memory yet */
    bool apart;                   /* the committed checkpoint has other memory, whose contents are those of then */
    bool filling;                 /* stores have begun to fill the buffer, or are yet to: nothing else has used it */
    bool freed;                   /* the client has freed the buffer, which is removed when it is not held */
    uint16_t queued;              /* operands of queued operations that are this buffer; 0: `fusing` is invalid */

    /* A third cache line: what operations on the buffer must wait for. */
    ad_buffer_order order;
    uint64_t suspects; /* deferred checks of `epoch` that the contents depend on (checkpoint/deferred_check.h) */
    uint32_t epoch;    /* epoch of `suspects` */
    ad_buffer_fusing fusing;

    /* Fields that are not cleared for a new buffer: other fields say which of them are valid. */
    ad_buffer_moving moving;
    ad_buffer_sharing sharing;
};
#define AD_BUFFER_CLEARED offsetof(ad_buffer, moving)

static inline uint64_t ad__buffer_moves(const ad_buffer *b) { return b->was_moved ? b->moving.count : 0; }

/* A hash table with open addressing and linear probing. The buffers themselves stay where they are. */
typedef struct ad_buffers {
    struct ad_buffer_slot {
        uint64_t id; /* id of the buffer; 0: the slot is free */
        ad_buffer *buffer;
    } * slots;
    uint64_t mask; /* number of slots - 1, where the number is a power of two; no slots: 0 */
    uint64_t count, most;
    uint64_t cleared; /* first slots that ad__buffers_clear_part has cleared */
    unsigned shift;
    ad_buffer *spare;
    struct ad_buffer_batch *batches;
    ad_buffer_total *total; /* of the session's principal; NULL: the table has a limit of its own only */
} ad_buffers;

/* The address of arrays without elements. */
extern char ad__no_bytes[64];

/* Make an empty table that may have at most `most` buffers. */
void ad__buffers_init(ad_buffers *t, uint64_t most);
/* Find a buffer. NULL: there is none with that id. */
ad_buffer *ad__buffers_find(const ad_buffers *t, uint64_t id);
/* Prefetch buffers that are about to be freed: they may not have been used for long. */
void ad__buffers_prefetch(const ad_buffers *t, const uint64_t *id, size_t n);
/* Add a buffer, zero but for its id. AD_E_VALUE: id is 0 or in use; AD_E_LIMIT: the table has its most buffers, or the
 * principal has; AD_E_MEMORY. */
int ad__buffers_add(ad_buffers *t, uint64_t id, ad_buffer **out, ad_fault *fault);
/* Remove a buffer. The caller has released its block and poison. */
void ad__buffers_remove(ad_buffers *t, ad_buffer *b);
/* Remove a buffer in two steps: forget its id, then recycle the object. */
void ad__buffers_detach(ad_buffers *t, ad_buffer *b);
void ad__buffers_recycle(ad_buffers *t, ad_buffer *b);
/* Call visit for every buffer. It must not add or remove any. */
void ad__buffers_each(const ad_buffers *t, void (*visit)(void *user, ad_buffer *b), void *user);
/* Call visit for the buffers of so many further slots and remove them. True: there are more; no other function may be
 * called for the table until all are gone, but ad__buffers_clear. */
bool ad__buffers_clear_part(ad_buffers *t, uint64_t slots, void (*visit)(void *user, ad_buffer *b), void *user);
/* Call visit for every buffer, then remove all and free the table's memory. */
void ad__buffers_clear(ad_buffers *t, void (*visit)(void *user, ad_buffer *b), void *user);

#endif
