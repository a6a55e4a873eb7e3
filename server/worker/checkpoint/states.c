/* When checkpoints are begun and committed, and which answers may be sent. */
#include <stdlib.h>
#include <string.h>

#include "server/common/log.h"
#include "server/common/os.h"
#include "server/worker/exec/job.h"
#include "server/worker/spill/spill.h"
#include "server/worker/checkpoint/inside.h"
#include "server/worker/session.h"

#define COLLECTED 16384            /* changes after which a checkpoint is due */
#define COLLECTED_BYTES (4u << 20) /* bytes waiting to be freed after which a checkpoint is due */

/* ---- the position in the client's stream ---- */

static void find_position(const ad_worker_session *s, uint64_t *frame, uint64_t *used) {
    *frame = s->checkpoint.frame_end;
    *used = 0;
    if (s->messages.in_frame && s->messages.frame.block) {
        *frame = ad__input_place(&s->messages.frame);
        *used = s->messages.frame_used - (s->messages.at_hand ? s->messages.message.size : 0);
        if (*used >= s->messages.frame.control_size) {
            *frame += AD_FRAME_HEADER + s->messages.frame.control_size + s->messages.frame.payload_size;
            *used = 0;
        }
    }
    if (s->checkpoint.resumed.skip) *used = s->checkpoint.resumed.skip;
}

static bool is_before(uint64_t frame, uint64_t used, uint64_t other, uint64_t other_used) {
    return frame < other || (frame == other && used < other_used);
}

/* Write how far the answers reach that have been appended by now. */
static void describe_answers(const ad_worker_session *s, ad_journal_checkpoint *state, uint64_t told_before) {
    const ad_checkpoint *v = &s->checkpoint;
    const ad_reading *r = &s->reading;
    state->appended = atomic_load(&s->output.appended);
    state->read = r->active && !r->to ? r->offset : v->resumed.read;
    state->told = v->told - told_before + v->resumed.untold;
    find_position(s, &state->answered, &state->answered_used);
    if (!is_before(state->answered, state->answered_used, v->resumed.quiet, v->resumed.quiet_used)) return;
    state->answered = v->resumed.quiet;
    state->answered_used = v->resumed.quiet_used;
}

static void describe_checkpoint(const ad_worker_session *s, ad_journal_checkpoint *state) {
    *state = (ad_journal_checkpoint){.operations = s->progress.done,
                                     .bytes = s->progress.bytes_done,
                                     .descriptors = s->checkpoint.descriptors,
                                     .stream = s->streams.current ? s->streams.current->id + 1 : 0,
                                     .buffer_limit = s->held.buffer_limit};
    find_position(s, &state->frame, &state->used);
    describe_answers(s, state, s->checkpoint.told);
}

/* Write the failure that waits for the next synchronisation. False: there is no memory. */
static bool write_pending(ad_worker_session *s, ad_at before, ad_journal_checkpoint *state) {
    ad_checkpoint *v = &s->checkpoint;
    ad_poison *now = s->progress.pending;
    state->pending = now == v->pending ? before : ad__checkpoint_poison_row(v->journal, now);
    return !now || state->pending;
}

static void give_up_journal(ad_worker_session *s) {
    ad__log(session_not_kept, s->id, "no memory to write it down");
    ad__checkpoint_give_up(s);
}

/* Find a slot that is neither of these two. */
static unsigned find_other_slot(uint64_t a, unsigned b) {
    unsigned i = 0;
    while (i == a || i == b) i++;
    return i;
}

/* Release descriptors that messages before the committed checkpoint have asked for. */
static void release_descriptors(ad_worker_session *s, uint64_t before) {
    ad_checkpoint *v = &s->checkpoint;
    size_t rest = 0;
    for (size_t i = 0; i < v->unneeded.count; i++)
        if (v->unneeded.list[i] < before) ad__checkpoint_release_descriptor_now(s, v->unneeded.list[i]);
        else v->unneeded.list[rest++] = v->unneeded.list[i];
    v->unneeded.count = rest;
}

/* Commit the checkpoint in a slot, which has everything but its log. */
static void commit_slot(ad_worker_session *s, unsigned slot, uint64_t entries) {
    ad_checkpoint *v = &s->checkpoint;
    const ad_journal_checkpoint *before = &v->at->checkpoint[v->at->current];
    ad_journal_checkpoint *state = &v->at->checkpoint[slot];
    const ad_at pending_before = before->pending;
    state->log = ad__journal_at(v->journal, v->log[v->next]);
    state->entries = entries;
    ad__journal_store(&v->at->current, slot);
    if (state->frame != before->frame || state->used != before->used) v->at->lives = 0;
    ad__output_settle(&s->output, state->appended);
    ad__checkpoint_apply_log(v, entries);
    if (state->pending != pending_before) ad__journal_free(v->journal, ad__journal_get(v->journal, pending_before));
    v->next ^= 1;
    release_descriptors(s, state->descriptors);
    __atomic_store_n(&v->executed, state->frame, __ATOMIC_RELAXED);
}

static void set_pending(ad_checkpoint *v, ad_poison *pending) {
    if (pending == v->pending) return;
    ad__poison_release(v->pending);
    v->pending = pending ? ad__poison_hold(pending) : NULL;
}

static void drop_changes(ad_checkpoint *v, size_t count) {
    v->rows.changed.count -= count;
    if (v->rows.changed.count)
        memmove(v->rows.changed.list, v->rows.changed.list + count,
                v->rows.changed.count * sizeof *v->rows.changed.list);
}

/* Write a checkpoint with the first `count` changes and commit it at once. */
static void commit_now(ad_worker_session *s, size_t count) {
    ad_checkpoint *v = &s->checkpoint;
    if (s->fusion.count) return;
    unsigned slot = find_other_slot(v->at->current, (unsigned)v->at->current);
    ad_journal_checkpoint *state = &v->at->checkpoint[slot];
    uint64_t entries;
    describe_checkpoint(s, state);
    if (!write_pending(s, v->at->checkpoint[v->at->current].pending, state) ||
        !ad__checkpoint_write_log(s, count, &entries)) {
        give_up_journal(s);
        return;
    }
    commit_slot(s, slot, entries);
    set_pending(v, s->progress.pending);
    drop_changes(v, count);
    v->begun = 0;
    v->behind = v->announced = false;
    if (v->kept.count) ad__checkpoint_give_released(s);
    if (v->frees.count) ad__checkpoint_free_deferred(s, v->inside ? v->frees.begun : v->frees.count);
}

/* ---- devices that complete operations later: beginning a checkpoint ---- */

/* True if answers must wait for the commit: other sessions may change what they depend on before operations are
 * executed again. */
static bool must_delay_answers(const ad_worker_session *s) {
    return s->sharing.shares || s->checkpoint.frees.delays || s->sharing.exporting;
}

static bool has_news(const ad_worker_session *s) {
    const ad_checkpoint *v = &s->checkpoint;
    const ad_journal_checkpoint *valid = &v->at->checkpoint[v->at->current];
    uint64_t frame, used;
    find_position(s, &frame, &used);
    return v->rows.changed.count || v->frees.count || frame != valid->frame || used != valid->used ||
           s->progress.pending != v->pending ||
           (must_delay_answers(s) && atomic_load(&s->output.appended) != valid->appended);
}

/* Move the first `count` changes to the pending checkpoint. */
static bool move_changes(ad_checkpoint *v, size_t count) {
    if (count == v->rows.changed.count) {
        const ad_changes empty = v->pending_changes;
        v->pending_changes = v->rows.changed;
        v->rows.changed = empty;
        v->rows.changed.count = 0;
        return true;
    }
    if (v->pending_changes.room < count) {
        ad_changed *list = ad__os.malloc(count * sizeof *list);
        if (!list) return false;
        free(v->pending_changes.list);
        v->pending_changes = (ad_changes){.list = list, .room = count};
    }
    v->pending_changes.count = count;
    if (count) memcpy(v->pending_changes.list, v->rows.changed.list, count * sizeof *v->pending_changes.list);
    drop_changes(v, count);
    return true;
}

static void begin_checkpoint(ad_worker_session *s) {
    ad_checkpoint *v = &s->checkpoint;
    const size_t count = v->inside ? v->begun : v->rows.changed.count;
    ad_pending_checkpoint *c = &v->pending_checkpoint;
    c->slot = find_other_slot(v->at->current, (unsigned)v->at->current);
    ad_journal_checkpoint *state = &v->at->checkpoint[c->slot];
    describe_checkpoint(s, state);
    if (!write_pending(s, v->at->checkpoint[v->at->current].pending, state) ||
        !ad__checkpoint_write_log(s, count, &c->entries) || !move_changes(v, count)) {
        give_up_journal(s);
        return;
    }
    v->begun = 0;
    v->frees.pending = v->inside ? v->frees.begun : v->frees.count;
    for (unsigned i = 0; i < s->streams.count; i++) s->streams.queues[i]->awaited = s->streams.queues[i]->sequence;
    c->told = v->told;
    c->pending = s->progress.pending ? ad__poison_hold(s->progress.pending) : NULL;
    c->invalid = false;
    c->open = true;
}

/* ---- abandoning the pending checkpoint ---- */

void ad__checkpoint_drop_pending(ad_worker_session *s) {
    ad_checkpoint *v = &s->checkpoint;
    ad_pending_checkpoint *c = &v->pending_checkpoint;
    if (!c->open) return;
    ad__checkpoint_discard_log(v, c->entries);
    const ad_at pending = v->at->checkpoint[c->slot].pending;
    if (pending != v->at->checkpoint[v->at->current].pending)
        ad__journal_free(v->journal, ad__journal_get(v->journal, pending));
    ad__poison_release(c->pending);
    c->pending = NULL;
    c->open = false;
}

/* True if the next checkpoint must write the change again. An entry that is gone by now has a later change. */
static bool is_still_news(ad_worker_session *s, const ad_changed *c) {
    ad_buffer *b;
    if (c->kind == AD_JOURNAL_NONE) return true;
    if (c->kind != AD_JOURNAL_BUFFER) return ad__component_of(s->worker, c->kind)->place(s, c->id) != NULL;
    if (!(b = ad__buffers_find(&s->buffers, c->id)) || b->changed) return false;
    return b->changed = true;
}

static void abandon_pending(ad_worker_session *s) {
    ad_checkpoint *v = &s->checkpoint;
    ad_changes all = v->pending_changes;
    size_t rest = 0;
    for (size_t i = 0; i < all.count; i++)
        if (is_still_news(s, &all.list[i])) all.list[rest++] = all.list[i];
    all.count = rest;
    for (size_t i = 0; i < v->rows.changed.count; i++) {
        ad_changed *list = ad__os_grow(all.list, all.count, &all.room, sizeof *list);
        if (!list) {
            give_up_journal(s);
            break;
        }
        all.list = list;
        list[all.count++] = v->rows.changed.list[i];
    }
    v->pending_changes = v->rows.changed;
    v->pending_changes.count = 0;
    v->rows.changed = all;
    v->begun += rest;
    v->frees.pending = 0;
    ad__checkpoint_drop_pending(s);
}

/* ---- committing the pending checkpoint ---- */

static bool is_reached(const ad_worker_session *s) {
    for (unsigned i = 0; i < s->streams.count; i++) {
        const ad_stream_queue *queue = s->streams.queues[i];
        if (queue->passed < queue->awaited && !ad__stream_queue_idle(queue)) return false;
    }
    return true;
}

/* Extend the pending checkpoint to the answers that were sent after it was begun. */
static void renew_answers(ad_worker_session *s) {
    ad_checkpoint *v = &s->checkpoint;
    const ad_journal_checkpoint *valid = &v->at->checkpoint[v->at->current];
    ad_journal_checkpoint *state = &v->at->checkpoint[v->pending_checkpoint.slot];
    if (!must_delay_answers(s)) {
        describe_answers(s, state, v->pending_checkpoint.told);
    } else if (state->appended < valid->appended) {
        state->appended = valid->appended;
        state->read = valid->read;
        state->answered = valid->answered;
        state->answered_used = valid->answered_used;
    }
}

/* Commit the pending checkpoint, which the device has passed. False: its deferred checks cannot be read now. */
static bool finish_pending(ad_worker_session *s, bool judge) {
    ad_checkpoint *v = &s->checkpoint;
    ad_pending_checkpoint *c = &v->pending_checkpoint;
    if (s->deferred_checks.count && (s->fusion.count || !judge)) return false;
    if (s->deferred_checks.count) ad__deferred_checks_read(s, false);
    if (c->invalid) {
        abandon_pending(s);
        return true;
    }
    ad__spill_look(s->worker); /* moves to host memory are recorded before a row's place can be used again */
    renew_answers(s);
    v->committed = v->at->checkpoint[c->slot].operations;
    commit_slot(s, c->slot, c->entries);
    set_pending(v, c->pending);
    ad__poison_release(c->pending);
    c->pending = NULL;
    v->told_before = c->told;
    v->pending_changes.count = 0;
    c->open = false;
    ad__checkpoint_free_deferred(s, v->frees.pending);
    ad__stream_queues_settle(s);
    return true;
}

/* Let answers be sent before all that was executed is committed. */
static void release_answers(ad_worker_session *s) {
    ad_checkpoint *v = &s->checkpoint;
    const ad_journal_checkpoint *valid = &v->at->checkpoint[v->at->current];
    if (atomic_load(&s->output.appended) == valid->appended || must_delay_answers(s)) return;
    unsigned slot = find_other_slot(v->at->current,
                                    v->pending_checkpoint.open ? v->pending_checkpoint.slot : (unsigned)v->at->current);
    ad_journal_checkpoint *state = &v->at->checkpoint[slot];
    *state = *valid;
    state->log = state->entries = 0; /* the table has the rows of the log already */
    describe_answers(s, state, v->told_before);
    ad__journal_store(&v->at->current, slot);
    ad__output_settle(&s->output, state->appended);
}

/* Begin and commit checkpoints as far as the device is. passed: all that was enqueued is known to be complete. */
static void advance_checkpoints(ad_worker_session *s, bool passed, bool judge) {
    ad_checkpoint *v = &s->checkpoint;
    for (int i = 0; i < 3 && ad__checkpoint_is_recoverable(v); i++) { /* once begun, once invalid, once begun again */
        if (!v->pending_checkpoint.open) {
            if (s->fusion.count || s->sharing.exporting || !has_news(s)) break;
            begin_checkpoint(s);
        }
        if (!v->pending_checkpoint.open || !(passed || is_reached(s)) || !finish_pending(s, judge)) break;
    }
    if (ad__checkpoint_is_recoverable(v)) release_answers(s);
}

void ad__checkpoint_commit(ad_worker_session *s) {
    ad_checkpoint *v = &s->checkpoint;
    if (!ad__checkpoint_is_recoverable(v)) {
        v->behind = v->announced = false;
        ad__checkpoint_give_released(s);
        if (v->frees.count && ad__stream_queues_idle(s)) ad__checkpoint_free_deferred(s, v->frees.count);
        return;
    }
    if (v->late) advance_checkpoints(s, false, true);
    else commit_now(s, v->rows.changed.count);
}

static bool has_message(const ad_worker_session *s, uint64_t place) {
    if (!ad__session_is_recoverable(s)) return true;
    const ad_journal_checkpoint *valid = &s->checkpoint.at->checkpoint[s->checkpoint.at->current];
    return place < valid->frame + AD_FRAME_HEADER + valid->used;
}

bool ad__checkpoint_has_message(ad_worker *w, uint64_t session, uint64_t place) {
    pthread_mutex_lock(&w->sessions_lock);
    const ad_worker_session *s = w->sessions;
    while (s && s->id != session) s = s->next;
    const bool has = !s || has_message(s, place);
    pthread_mutex_unlock(&w->sessions_lock);
    return has;
}

bool ad__checkpoint_is_repeatable(const ad_message *m) {
    const ad_op *op = &m->op;
    if (!(m->row->flags & AD_R_REPEATABLE)) return false;
    for (int i = 0; i < op->nout; i++)
        if (op->operand[i].is_scalar || op->operand[i].desc.form == AD_VIEW) return false;
    return op->nout || !(m->row->flags & AD_R_OUTPUT);
}

bool ad__checkpoint_is_full(const ad_checkpoint *v) {
    if (v->late) return false;
    return v->announced || v->rows.changed.count >= COLLECTED || v->kept.bytes > COLLECTED_BYTES;
}

void ad__checkpoint_begin_message(ad_worker_session *s, const ad_message *m) {
    ad_checkpoint *v = &s->checkpoint;
    if (!v->late) {
        v->collects = s->messages.cost <= AD_CHEAP && ad__checkpoint_is_repeatable(m);
        if (v->behind && !v->collects) ad__checkpoint_commit(s);
    }
    ad__checkpoint_begin_changes(v);
}

bool ad__checkpoint_is_due(const ad_worker_session *s) {
    const ad_checkpoint *v = &s->checkpoint;
    if (v->late) return v->at && s->progress.done - v->committed >= AD_MARK_OPS && !v->pending_checkpoint.open;
    return !v->collects || ad__checkpoint_is_full(v);
}

bool ad__checkpoint_flush(ad_worker_session *s, bool judge) {
    ad_checkpoint *v = &s->checkpoint;
    if (!ad__checkpoint_is_recoverable(v)) return false;
    if (!v->late) {
        commit_now(s, v->inside ? v->begun : v->rows.changed.count);
        return !s->fusion.count;
    }
    if (ad__stream_queues_wait(s, NULL)) return false;
    if (v->pending_checkpoint.open) advance_checkpoints(s, true, judge); /* a second checkpoint has the rest */
    advance_checkpoints(s, true, judge);
    return !v->pending_checkpoint.open && !s->fusion.count;
}

void ad__checkpoint_suppress_replies(ad_worker_session *s) {
    ad_checkpoint *v = &s->checkpoint;
    const uint64_t used = s->messages.frame_used - s->messages.message.size;
    v->resumed.silent = is_before(ad__input_place(&s->messages.frame), used, v->resumed.quiet, v->resumed.quiet_used);
    if (v->resumed.silent) return;
    v->resumed.quiet = v->resumed.quiet_used = v->resumed.untold = 0;
    v->resumed.behind = v->late;
}
