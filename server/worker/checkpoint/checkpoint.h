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
 *   lost its contents, and whoever reads it is told.
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
 *   buffer in place writes that down, unless it reads nothing of it, and nothing has read it since the committed
 *   checkpoint. Memory, windows and shared memory that are given up are freed only after a checkpoint without them
 *   (deferred_free.c).
 * - Answers are sent without waiting for the device. The committed checkpoint says how far they reach, and what is
 *   executed again up to there answers nothing. A session that shares memory with others waits, as those may have
 *   changed it.
 * - Deferred checks (checkpoint/deferred_check.h) are read before a checkpoint is committed.
 *
 * A buffer that moves to host memory, or back, keeps its contents. So the move is no part of a checkpoint. It is
 * recorded as soon as the copy is complete, and counts for every checkpoint (ad__checkpoint_record_place). Moves of a
 * buffer are counted, and the later place holds.
 *
 * Only whoever runs the engine calls these functions, unless one says otherwise. */
#ifndef AD_SERVER_WORKER_CHECKPOINT_CHECKPOINT_H
#define AD_SERVER_WORKER_CHECKPOINT_CHECKPOINT_H

#include "server/worker/checkpoint/changes.h"

extern const ad_component ad__component_checkpoint, ad__component_buffers, ad__component_checks;
extern const ad_checkpoint_hooks ad__checkpoint_hooks;

/* List the session, so that another worker finds it. */
void ad__checkpoint_list(struct ad_worker_session *s);
/* Pass descriptors that come from here on to arrayd as well. */
void ad__checkpoint_watch_descriptors(struct ad_worker_session *s);

/* Commit at once, in all sessions that have a buffer of it, that shared memory has moved. */
void ad__checkpoint_mark_moved(struct ad_shared *m);

/* ---- rows.c ---- */
/* Record that the bytes of the buffer with that row (0: none) are in another place now, whole. Their old place may be
 * used again, whichever checkpoint is committed. */
void ad__checkpoint_record_place(struct ad_worker_session *s, uint32_t place, const ad_journal_place *now);
/* Record that the memory of the buffer with that row is about to be used again, without a checkpoint. */
void ad__checkpoint_record_loss(struct ad_worker_session *s, uint32_t place);
/* Make the row of memory that names and capabilities hold. */
ad_journal_row ad__checkpoint_memory_row(const struct ad_worker *w, const struct ad_shared *m);

/* ---- states.c ---- */
/* Commit what has been executed, and let its answers be sent, as soon as the device allows. */
void ad__checkpoint_commit(struct ad_worker_session *s);
/* True when it is time to commit in the middle of a turn. */
bool ad__checkpoint_is_due(const struct ad_worker_session *s);
/* True when enough has been executed to commit, where operations are complete when they return. */
bool ad__checkpoint_is_full(const struct ad_checkpoint *v);
/* True if the operation changes nothing in place, so that it can be executed again. */
bool ad__checkpoint_is_repeatable(const ad_message *m);
/* True if the committed checkpoint of a session has the message at that place in its stream, or no worker will execute
 * the session again. */
bool ad__checkpoint_has_message(struct ad_worker *w, uint64_t session, uint64_t place);
/* Begin a message: what it changes is kept apart until it ends. */
void ad__checkpoint_begin_message(struct ad_worker_session *s, const ad_message *m);
/* Suppress replies to the message at hand if another worker has answered it. */
void ad__checkpoint_suppress_replies(struct ad_worker_session *s);
/* Wait for the device, and commit all that the session has executed. judge: read deferred checks as well. False: not
 * all could be committed. */
bool ad__checkpoint_flush(struct ad_worker_session *s, bool judge);

/* ---- progress.c ---- */
/* Poll what is under way, and acknowledge what is complete. True: the session has nothing to wait for. */
bool ad__session_poll(struct ad_worker_session *s);
/* Wait until all before the message at hand is committed. False: the session waits; call again. */
bool ad__checkpoint_await_commit(struct ad_worker_session *s);
/* Wait until all before the message at hand is committed, if the device completes operations later. False: the
 * session waits; call again. */
bool ad__checkpoint_is_committed(struct ad_worker_session *s);
/* Wait until an operation has a place for what it may find out later (deferred_check.h). False: the session waits; call
 * again. */
bool ad__checkpoint_await_place(struct ad_worker_session *s);

/* ---- deferred_free.c ---- */
/* True if memory that the buffer gives up must stay until a checkpoint without it. */
bool ad__checkpoint_must_defer(const struct ad_worker_session *s, const struct ad_buffer *b);
/* Free a block (b: the buffer that had it, or NULL) after the next checkpoint without it. False: the session is not
 * journaled, so the caller frees it now. */
bool ad__checkpoint_defer_free(struct ad_worker_session *s, ad_stream_arena *home, const ad_block *block,
                               const struct ad_buffer *b);
/* Frees what was given up, of another kind than a block. */
typedef void ad_deferred_release(struct ad_worker_session *s, void *object);
/* Release an object after the next checkpoint without it. delays: until then others may change what answers depend on,
 * so answers wait for their checkpoint. False: the session is not journaled, so the caller releases it now. */
bool ad__checkpoint_defer_release(struct ad_worker_session *s, ad_deferred_release *release, void *object, bool delays);
/* True if an object that `release` will free, and for which `matches` is true, waits for that. */
bool ad__checkpoint_has_deferred(const struct ad_worker_session *s, ad_deferred_release *release,
                                 bool (*matches)(const void *object, const void *user), const void *user);
/* Free the first n deferred pieces of memory. */
void ad__checkpoint_free_deferred(struct ad_worker_session *s, size_t n);
/* Move deferred memory on the queue's device to host memory, where no checkpoint can be begun. False: nothing moved. */
bool ad__checkpoint_move_deferred_to_host(struct ad_worker_session *s, struct ad_stream_queue *queue);
/* Free deferred memory at once, where nothing else makes room: it is lost if the worker is killed now. */
bool ad__checkpoint_drop_deferred(struct ad_worker_session *s);

/* ---- shortage.c ---- */
/* Free buffers that were kept, because memory is short. False: there are none. */
bool ad__checkpoint_give_released_memory(struct ad_worker_session *s);
/* Commit, so that deferred memory of all sessions is freed, because memory is short. False: nothing was freed. */
bool ad__checkpoint_free_all_deferred(struct ad_worker_session *s);

#endif
