/* What the parts of survival share. */
#ifndef AD_SERVER_WORKER_JOURNAL_CHECKPOINT_INSIDE_H
#define AD_SERVER_WORKER_JOURNAL_CHECKPOINT_INSIDE_H

#include "server/worker/net/session.h"

/* ---- checkpoint.c ---- */
ad_journal_table *ad__checkpoint_table_new(ad_journal *l, uint64_t capacity);
ad_journal_log *ad__checkpoint_log_new(ad_journal *l, uint64_t capacity);
static inline ad_journal_table *ad__checkpoint_table(const ad_checkpoint *v) {
    return ad__journal_get(v->journal, v->at->table);
}
/* May be taken up; NULL included. */
static inline bool ad__checkpoint_is_recoverable(const ad_checkpoint *v) {
    return v->at && __atomic_load_n(&v->at->alive, __ATOMIC_ACQUIRE);
}

/* What was freed while it was in use goes. */
void ad__checkpoint_give_released(ad_session *s);

/* ---- rows.c ---- */
/* Why there is no value, in the journal; 0: there is one, or no memory. */
ad_at ad__checkpoint_poison_row(ad_journal *l, const ad_poison *p);
/* What a row has besides itself is not needed any more. */
void ad__checkpoint_free_row_data(ad_journal *l, const ad_journal_row *row);
/* Write the first `count` changes to the next log; false: no memory. */
bool ad__checkpoint_write_log(ad_session *s, size_t count, uint64_t *entries);
/* What is written there is valid: put it into the table. */
void ad__checkpoint_apply_log(ad_checkpoint *v, uint64_t entries);
/* It never will be. */
void ad__checkpoint_discard_log(ad_checkpoint *v, uint64_t entries);

/* ---- checkpoint.c ---- */
/* The coming state, if there is one, will not be valid. */
void ad__checkpoint_drop_pending(ad_session *s);

#endif
