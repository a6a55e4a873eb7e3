/* Changes since the checkpoint, and what must be written down before it happens.
 *
 * Runner only, unless a comment says otherwise. */
#ifndef AD_SERVER_WORKER_CHECKPOINT_CHANGES_H
#define AD_SERVER_WORKER_CHECKPOINT_CHANGES_H

#include "server/worker/checkpoint/state.h"

/* True while another worker can go on with the session. Any thread. */
bool ad__session_is_recoverable(const struct ad_worker_session *s);
/* True if the session is recoverable, and a checkpoint is committed only when the device has completed its
 * operations. */
bool ad__session_commits_late(const struct ad_worker_session *s);
/* Stop journaling the session: it is over, or cannot be written down. Any thread. */
void ad__checkpoint_give_up(struct ad_worker_session *s);

/* ---- changes ---- */
/* Mark a buffer whose memory, contents or row changes. */
void ad__checkpoint_mark_buffer(struct ad_worker_session *s, struct ad_buffer *b);
/* Note that something else than the stores that fill a buffer has used it, or that they have reached its end. */
void ad__checkpoint_end_filling(struct ad_worker_session *s, struct ad_buffer *b);
/* Mark a stream, an event, a window or a module that changes. */
void ad__checkpoint_mark_row(struct ad_worker_session *s, ad_journal_kind kind, uint64_t id);
/* Remove the row at that place; 0: there is none. */
void ad__checkpoint_remove_row(struct ad_worker_session *s, uint32_t place);
/* Remove the row of a buffer that is about to give up its memory. */
void ad__checkpoint_mark_freed(struct ad_worker_session *s, struct ad_buffer *b);
/* Keep apart what is changed from here on: it belongs to the message at hand. */
static inline void ad__checkpoint_begin_changes(ad_checkpoint *v) {
    v->inside = true;
    v->begun = v->rows.changed.count;
    v->frees.begun = v->frees.count;
}
static inline void ad__checkpoint_end_changes(ad_checkpoint *v) { v->inside = false; }
/* Mark that something has been executed since the checkpoint. */
static inline void ad__checkpoint_mark_executed(ad_checkpoint *v) { v->behind = !v->late; }
/* Make the pending checkpoint invalid: a deferred check has failed. */
static inline void ad__checkpoint_invalidate(ad_checkpoint *v) { v->pending_checkpoint.invalid = true; }

/* ---- descriptors ---- */
/* Tell arrayd, once that is committed, that nobody needs this descriptor any more. The message at hand asked for it,
 * and no window keeps it. */
void ad__checkpoint_release_descriptor(struct ad_worker_session *s, uint64_t number);
/* Tell arrayd at once that nobody needs this descriptor any more. */
void ad__checkpoint_release_descriptor_now(struct ad_worker_session *s, uint64_t number);

/* ---- before it happens ---- */
/* Bytes of a buffer, up to `to`. */
typedef struct ad_extent {
    uint64_t from, to;
} ad_extent;
/* Get the bytes of a buffer that a checked view touches. */
ad_extent ad__checkpoint_extent(const ad_desc *d);
/* Note that the message at hand reads bytes of a buffer. They must not be changed without being written down, until
 * the message is in the committed checkpoint. */
void ad__checkpoint_note_read(const struct ad_worker_session *s, struct ad_buffer *b, ad_extent bytes);
/* True if an operation that changes these bytes of the buffer in place, and reads nothing of it, would give the same
 * when it is executed again, as would those before it. Then ad__checkpoint_before_write is not needed. */
bool ad__checkpoint_is_repeatable_write(const struct ad_worker_session *s, const struct ad_buffer *b, ad_extent bytes);
/* Before an operation changes a buffer in place: give it other memory with the same contents, if that is cheap, and
 * otherwise write down that it is about to be changed. Addresses of the buffer are taken after that. */
void ad__checkpoint_before_write(struct ad_worker_session *s, struct ad_buffer *b, uint64_t number, const char *name);
/* Write down that a kernel of a user is about to be launched. */
void ad__checkpoint_before_launch(struct ad_worker_session *s, uint64_t number);
/* Write down that a module is about to be set up; 0: it has been. */
void ad__checkpoint_before_load(struct ad_worker_session *s, uint64_t module);

#endif
