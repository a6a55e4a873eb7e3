/* The part of a session that its checkpoints need. */
#ifndef AD_SERVER_WORKER_CHECKPOINT_STATE_H
#define AD_SERVER_WORKER_CHECKPOINT_STATE_H

#include "protocol/op.h"
#include "server/worker/base/component.h"
#include "server/worker/base/hooks.h"
#include "server/worker/journal/journal.h"
#include "server/worker/memory/memory.h"

struct ad_worker_session;
struct ad_buffer;
struct ad_stream_queue;
struct ad_shared;
struct ad_worker;

/* Something with a row that has changed since the checkpoint. kind AD_JOURNAL_NONE: it is gone, and its row was at
 * `place`. */
typedef struct ad_changed {
    uint64_t id;
    uint32_t kind, place;
} ad_changed;

typedef struct ad_changes {
    ad_changed *list;
    size_t count, room;
} ad_changes;

/* The pending checkpoint of a device that completes operations later. */
typedef struct ad_pending_checkpoint {
    bool open;
    bool invalid; /* a deferred check has failed since the checkpoint was begun */
    unsigned slot;
    uint64_t entries, told;
    struct ad_poison *pending;
} ad_pending_checkpoint;

/* Rows that the session has in the journal, and what has changed since the checkpoint. */
typedef struct ad_checkpoint_rows {
    ad_changes changed;
    uint32_t *spare; /* places whose row is free */
    size_t nspare, spare_room;
    uint32_t places; /* places that have ever had a row */
} ad_checkpoint_rows;

/* Buffers that the client has freed and the committed checkpoint has. */
typedef struct ad_kept_buffers {
    struct ad_buffer **list;
    size_t count, room;
    uint64_t bytes;
} ad_kept_buffers;

/* Numbers of descriptors that arrayd still has, and no window keeps. */
typedef struct ad_unneeded_descriptors {
    uint64_t *list;
    size_t count, room;
} ad_unneeded_descriptors;

/* Memory to free after a checkpoint without it; the first `pending` of the list: after the pending one. */
typedef struct ad_deferred_frees {
    struct ad_deferred_free *list;
    size_t count, room, pending;
    size_t begun;  /* count before the message at hand */
    size_t delays; /* number of those for which answers wait */
} ad_deferred_frees;

/* Blame for crashes of the worker (blame.h). */
typedef struct ad_suspect {
    ad_blame blame; /* copy of the blame in the journal */
    uint64_t at;    /* place of the last message that was begun */
    bool careful;   /* the message at hand is suspected, so it is executed alone */
    bool left_out;  /* the message at hand is to blame, so it is not executed */
} ad_suspect;

/* The part of a session that another worker has executed. */
typedef struct ad_resumed {
    uint64_t fatal;             /* the module that it died of while it set the module up */
    uint64_t skip;              /* bytes of the first control block that it has executed */
    uint64_t read;              /* bytes that it has sent in answer to the first read */
    uint64_t blamed;            /* last operation whose kernels are not launched again, because it died */
    uint64_t quiet, quiet_used; /* place up to which it has answered; 0: nowhere */
    uint64_t untold;            /* failures that it has told after the committed checkpoint */
    bool silent;                /* it has answered the message at hand */
    bool behind; /* what it has answered is executed again, and the device may have more of it to do than it had then */
} ad_resumed;

typedef struct ad_checkpoint {
    ad_journal *journal;    /* NULL: the session is not journaled */
    ad_journal_session *at; /* the session's entry in the journal */
    bool listed;            /* the session is in the journal's list */
    unsigned next;          /* the log that the next checkpoint writes */
    ad_journal_log *log[2];
    ad_checkpoint_rows rows;
    struct ad_poison *pending; /* the failure in the committed checkpoint, for the next synchronisation */
    bool inside;               /* a message is being executed; begun and frees.begun count what came before it */
    bool behind;               /* operations have been executed since the checkpoint */
    bool collects;             /* the message at hand need not be committed at once */
    bool announced;            /* a buffer was changed in place since the checkpoint */
    size_t begun;
    ad_kept_buffers kept;
    uint64_t frame_end;   /* place in the client's stream where the next frame begins */
    uint64_t executed;    /* bytes of the stream that nobody needs any more; the I/O thread reads this */
    uint64_t descriptors; /* number of descriptors that executed messages have asked for */
    ad_unneeded_descriptors unneeded;
    ad_suspect suspect;
    ad_resumed resumed;

    /* Fields for devices that complete operations later (late). */
    bool late;
    ad_pending_checkpoint pending_checkpoint;
    ad_changes pending_changes; /* changes that the pending checkpoint writes */
    ad_deferred_frees frees;
    uint64_t committed;         /* number of operations in the committed checkpoint */
    uint64_t loaded;            /* last operation that reads a window */
    uint64_t told, told_before; /* failures told at synchronisations so far, and when the checkpoint was begun */
} ad_checkpoint;

#endif
