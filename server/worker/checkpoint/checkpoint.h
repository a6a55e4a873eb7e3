/* Checkpoints: what a session writes into the journal, so that another worker can go on with it when this one is
 * killed.
 *
 * A checkpoint says how far the session is in its client's stream, how much it has answered, and what its buffers are.
 * It is written when no operation is queued. Another worker executes what came after it again, from the client's bytes,
 * which stay in the journal until then:
 *
 *     client's bytes   ──A──B──C──D──E──F──▶ received
 *                          │        │
 *          committed checkpoint     executed by the worker that was killed
 *                          └────────▶ executed again by the next worker
 *
 * Three rules make that give the same results:
 *
 * - No answer is sent before the checkpoint that led to it is committed.
 * - Memory of a buffer in the committed checkpoint is not used again before the buffer has left the checkpoint, or the
 *   journal says that its bytes are elsewhere.
 * - An operation that changes a buffer in place writes that down first. If the worker ends meanwhile, the buffer has
 * lost its contents, and whoever reads it is told.
 *
 * Where operations are complete when they return, a checkpoint is committed at once. A device that completes operations
 * later (v->late) has one committed checkpoint and at most one pending, which is committed once the device has passed
 * all that it depends on; it is invalid, and begun again, if a deferred check fails meanwhile:
 *
 *     begun ──▶ pending ──(device has passed it, deferred checks are good)──▶ committed
 *                  └──────(a deferred check has failed)──▶ invalid ──▶ begun
 *
 * Such a device has three more rules:
 *
 * - What is executed again, and what came after it, may have been executed already. So every operation that changes a
 *   buffer in place writes that down, unless it reads nothing of it and nothing has read it since the committed
 *   checkpoint. Memory, windows and shared memory that are given up are freed only after a checkpoint without them
 *   (deferred_free.c).
 * - Answers are sent without waiting for the device. The committed checkpoint says how far they reach, and what is
 * executed again up to there answers nothing. A session that shares memory with others waits, as those may have changed
 * it.
 * - Deferred checks (checkpoint/deferred_check.h) are read before a checkpoint is committed.
 *
 * A buffer that moves to host memory, or back, keeps its contents. So the move is no part of a checkpoint: it is
 * recorded as soon as the copy is complete, and counts for every checkpoint (ad__checkpoint_record_place). Moves of a
 * buffer are counted, and the later place holds.
 *
 * Only whoever runs the engine calls these functions, unless one says otherwise. */
#ifndef AD_SERVER_WORKER_CHECKPOINT_CHECKPOINT_H
#define AD_SERVER_WORKER_CHECKPOINT_CHECKPOINT_H

#include "protocol/op.h"
#include "server/worker/base/component.h"
#include "server/worker/base/hooks.h"
#include "server/worker/journal/journal.h"
#include "server/worker/memory/memory.h"

struct ad_session;
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

extern const ad_component ad__component_checkpoint, ad__component_buffers, ad__component_checks;
extern const ad_checkpoint_hooks ad__checkpoint_hooks;

/* List the session, so that another worker finds it. */
void ad__checkpoint_list(struct ad_session *s);
/* Pass descriptors that come from here on to arrayd as well. */
void ad__checkpoint_watch_descriptors(struct ad_session *s);
/* True while another worker can go on with the session. Any thread. */
bool ad__session_is_recoverable(const struct ad_session *s);
/* True if the session is recoverable, and a checkpoint is committed only when the device has completed its
 * operations. */
bool ad__session_commits_late(const struct ad_session *s);
/* Stop journaling the session: it is over, or cannot be written down. Any thread. */
void ad__checkpoint_give_up(struct ad_session *s);

/* Mark a buffer whose memory, contents or row changes. */
void ad__checkpoint_mark_buffer(struct ad_session *s, struct ad_buffer *b);
/* Mark a stream, an event, a window or a module that changes. */
void ad__checkpoint_mark_row(struct ad_session *s, ad_journal_kind kind, uint64_t id);
/* Remove the row at that place; 0: there is none. */
void ad__checkpoint_remove_row(struct ad_session *s, uint32_t place);
/* Remove the row of a buffer that is about to give up its memory. */
void ad__checkpoint_mark_freed(struct ad_session *s, struct ad_buffer *b);
/* Commit at once, in all sessions that have a buffer of it, that shared memory has moved. */
void ad__checkpoint_mark_moved(struct ad_shared *m);
/* Tell arrayd, once that is committed, that nobody needs this descriptor any more: the message at hand asked for it,
 * and no window keeps it. */
void ad__checkpoint_release_descriptor(struct ad_session *s, uint64_t number);
/* Tell arrayd at once that nobody needs this descriptor any more. */
void ad__checkpoint_release_descriptor_now(struct ad_session *s, uint64_t number);
/* True if an operation that changes the buffer in place and reads nothing of it would give the same when it is executed
 * again: then ad__checkpoint_before_write is not needed. */
bool ad__checkpoint_is_repeatable_write(const struct ad_session *s, const struct ad_buffer *b);
/* Write down that an operation is about to change a buffer in place. */
void ad__checkpoint_before_write(struct ad_session *s, struct ad_buffer *b, uint64_t number, const char *name);
/* Write down that a kernel of a user is about to be launched. */
void ad__checkpoint_before_launch(struct ad_session *s, uint64_t number);
/* Write down that a module is about to be set up; 0: it has been. */
void ad__checkpoint_before_load(struct ad_session *s, uint64_t module);
/* Keep a buffer that the client has freed until the next commit. False: it can be freed now. */
bool ad__checkpoint_keep_buffer(struct ad_session *s, struct ad_buffer *b);
/* Free buffers that were kept, because memory is short. False: there are none. */
bool ad__checkpoint_give_released_memory(struct ad_session *s);
/* Record that the bytes of the buffer with that row (0: none) are in another place now, whole. Their old place may be
 * used again, whichever checkpoint is committed. */
void ad__checkpoint_record_place(struct ad_session *s, uint32_t place, const ad_journal_place *now);
/* Record that the memory of the buffer with that row is about to be used again, without a checkpoint. */
void ad__checkpoint_record_loss(struct ad_session *s, uint32_t place);
/* Make the row of memory that names and capabilities hold. */
ad_journal_row ad__checkpoint_memory_row(const struct ad_worker *w, const struct ad_shared *m);
/* Commit what has been executed, and let its answers be sent, as soon as the device allows. */
void ad__checkpoint_commit(struct ad_session *s);
/* True when it is time to commit in the middle of a turn. */
bool ad__checkpoint_is_due(const struct ad_session *s);
/* True when enough has been executed to commit, where operations are complete when they return. */
bool ad__checkpoint_is_full(const struct ad_checkpoint *v);
/* True if the operation changes nothing in place, so that it can be executed again. */
bool ad__checkpoint_is_repeatable(const ad_message *m);
/* Begin a message: what it changes is kept apart until it ends. */
void ad__checkpoint_begin_message(struct ad_session *s, const ad_message *m);
static inline void ad__checkpoint_begin_changes(ad_checkpoint *v) {
    v->inside = true;
    v->begun = v->rows.changed.count;
    v->frees.begun = v->frees.count;
}
static inline void ad__checkpoint_end_changes(ad_checkpoint *v) { v->inside = false; }
/* Mark that something has been executed since the checkpoint. */
static inline void ad__checkpoint_mark_executed(ad_checkpoint *v) { v->behind = !v->late; }
/* Wait until all before the message at hand is committed. False: the session waits; call again. */
bool ad__checkpoint_await_commit(struct ad_session *s);
/* Wait until all before the message at hand is committed, if the device completes operations later. False: the
 * session waits; call again. */
bool ad__checkpoint_is_committed(struct ad_session *s);
/* Suppress replies to the message at hand if another worker has answered it. */
void ad__checkpoint_suppress_replies(struct ad_session *s);
/* Make the pending checkpoint invalid: a deferred check has failed. */
static inline void ad__checkpoint_invalidate(ad_checkpoint *v) { v->pending_checkpoint.invalid = true; }
/* Wait for the device, and commit all that the session has executed. judge: read deferred checks as well. False: not
 * all could be committed. */
bool ad__checkpoint_flush(struct ad_session *s, bool judge);

/* ---- progress.c ---- */
/* Poll what is under way, and acknowledge what is complete. True: the session has nothing to wait for. */
bool ad__session_poll(struct ad_session *s);

/* ---- deferred_free.c ---- */
/* True if memory that the buffer gives up must stay until a checkpoint without it. */
bool ad__checkpoint_must_defer(const struct ad_session *s, const struct ad_buffer *b);
/* Free a block (b: the buffer that had it, or NULL) after the next checkpoint without it. False: the session is not
 * journaled, so the caller frees it now. */
bool ad__checkpoint_defer_free(struct ad_session *s, ad_stream_arena *home, const ad_block *block,
                               const struct ad_buffer *b);
/* Frees what was given up, of another kind than a block. */
typedef void ad_deferred_release(struct ad_session *s, void *object);
/* Release an object after the next checkpoint without it. delays: until then others may change what answers depend on,
 * so answers wait for their checkpoint. False: the session is not journaled, so the caller releases it now. */
bool ad__checkpoint_defer_release(struct ad_session *s, ad_deferred_release *release, void *object, bool delays);
/* True if an object that `release` will free, and for which `matches` is true, waits for that. */
bool ad__checkpoint_has_deferred(const struct ad_session *s, ad_deferred_release *release,
                                 bool (*matches)(const void *object, const void *user), const void *user);
/* Free the first n deferred pieces of memory. */
void ad__checkpoint_free_deferred(struct ad_session *s, size_t n);
/* Commit, so that deferred memory of all sessions is freed, because memory is short. False: nothing was freed. */
bool ad__checkpoint_free_all_deferred(struct ad_session *s);
/* Move deferred memory on the queue's device to host memory, where no checkpoint can be begun. False: nothing moved. */
bool ad__checkpoint_move_deferred_to_host(struct ad_session *s, struct ad_stream_queue *queue);
/* Free deferred memory at once, where nothing else makes room: it is lost if the worker is killed now. */
bool ad__checkpoint_drop_deferred(struct ad_session *s);

#endif
