/* Functions that the files of checkpoints share. */
#ifndef AD_SERVER_WORKER_CHECKPOINT_INSIDE_H
#define AD_SERVER_WORKER_CHECKPOINT_INSIDE_H

#include "server/worker/session.h"

static inline ad_journal_table *ad__checkpoint_table(const ad_checkpoint *v) {
    return ad__journal_get(v->journal, v->at->table);
}
/* True if another worker can go on with the session, which has an entry in the journal. */
static inline bool ad__checkpoint_is_recoverable(const ad_checkpoint *v) {
    return v->at && __atomic_load_n(&v->at->alive, __ATOMIC_ACQUIRE);
}

/* ---- rows.c ---- */
ad_journal_table *ad__checkpoint_table_new(ad_journal *l, uint64_t capacity);
ad_journal_log *ad__checkpoint_log_new(ad_journal *l, uint64_t capacity);
/* Write a poison into the journal. 0: it is NULL, or there is no memory. */
ad_at ad__checkpoint_poison_row(ad_journal *l, const ad_poison *p);
/* Free what a row points to in the journal. */
void ad__checkpoint_free_row_data(ad_journal *l, const ad_journal_row *row);
/* Write the first `count` changes to the next log. False: no memory. */
bool ad__checkpoint_write_log(ad_worker_session *s, size_t count, uint64_t *entries);
/* Copy the rows of the next log, which is committed, into the table. */
void ad__checkpoint_apply_log(ad_checkpoint *v, uint64_t entries);
/* Free what the rows of the next log point to: it will not be committed. */
void ad__checkpoint_discard_log(ad_checkpoint *v, uint64_t entries);

/* ---- buffer_free.c ---- */
/* Keep a buffer that the client has freed until the next commit. False: it can be freed now. */
bool ad__checkpoint_keep_buffer(struct ad_worker_session *s, struct ad_buffer *b);
/* Free the buffers that were kept until the commit. */
void ad__checkpoint_give_released(ad_worker_session *s);

/* ---- states.c ---- */
/* Drop the pending checkpoint, if there is one. */
void ad__checkpoint_drop_pending(ad_worker_session *s);

#endif
