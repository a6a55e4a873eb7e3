/* The states that a session writes: when they are taken, when they become valid, and what may be sent. */
#include <stdlib.h>
#include <string.h>

#include "server/common/log.h"
#include "server/common/os.h"
#include "server/worker/exec/job.h"
#include "server/worker/memory/spill/spill.h"
#include "server/worker/journal/session_journal_inside.h"

#define COLLECTED 16384            /* changes after which they are written down, ... */
#define COLLECTED_BYTES (4u << 20) /* ... or when so many bytes wait for that to be free again */

/* ---- where it is ---- */

static void where(const ad_session *s, uint64_t *frame, uint64_t *used) {
    *frame = s->survival.frame_end;
    *used = 0;
    if (s->in_frame && s->frame.block) {
        *frame = ad__input_place(&s->frame);
        *used = s->frame_used - (s->has_message ? s->message.size : 0);
        if (*used >= s->frame.control_size) {
            *frame += AD_FRAME_HEADER + s->frame.control_size + s->frame.payload_size;
            *used = 0;
        }
    }
    if (s->survival.skip) *used = s->survival.skip;
}

static bool is_before(uint64_t frame, uint64_t used, uint64_t other, uint64_t other_used) {
    return frame < other || (frame == other && used < other_used);
}

/* How far the answers reach that have been appended by now. */
static void describe_answers(const ad_session *s, ad_journal_state *state, uint64_t told_before) {
    const ad_survival *v = &s->survival;
    const ad_reading *r = &s->reading;
    state->appended = atomic_load(&s->output.appended);
    state->read = r->active && !r->to ? r->offset : v->read;
    state->told = v->told - told_before + v->untold;
    where(s, &state->answered, &state->answered_used);
    if (!is_before(state->answered, state->answered_used, v->quiet, v->quiet_used)) return;
    state->answered = v->quiet;
    state->answered_used = v->quiet_used;
}

static void describe(const ad_session *s, ad_journal_state *state) {
    *state = (ad_journal_state){.operations = s->done,
                                .bytes = s->bytes_done,
                                .descriptors = s->survival.descriptors,
                                .stream = s->stream_queue ? s->stream_queue->id + 1 : 0,
                                .buffer_limit = s->buffer_limit};
    where(s, &state->frame, &state->used);
    describe_answers(s, state, s->survival.told);
}

static ad_at write_pending(ad_session *s, ad_at before) {
    ad_survival *v = &s->survival;
    return s->pending == v->pending ? before : ad__survival_poison(v->journal, s->pending);
}

static void not_kept(ad_session *s) {
    ad__log(AD_LOG_WARN, "session not kept", "session=%lu why=%s", s->id, "no memory to write it down");
    ad__survival_over(s);
}

/* A slot that is neither of these two. */
static unsigned other_slot(uint64_t a, unsigned b) {
    unsigned i = 0;
    while (i == a || i == b) i++;
    return i;
}

/* What has been asked for before a state that is valid is not asked for again. */
static void let_descriptors_go(ad_session *s, uint64_t before) {
    ad_survival *v = &s->survival;
    size_t kept = 0;
    for (size_t i = 0; i < v->npassed; i++)
        if (v->passed[i] < before) ad__survival_descriptor_gone(s, v->passed[i]);
        else v->passed[kept++] = v->passed[i];
    v->npassed = kept;
}

/* The state of a slot, which has everything but its log, is valid from here on. */
static void make_valid(ad_session *s, unsigned slot, uint64_t entries) {
    ad_survival *v = &s->survival;
    const ad_journal_state *before = &v->at->state[v->at->current];
    ad_journal_state *state = &v->at->state[slot];
    const ad_at pending_before = before->pending;
    state->log = ad__journal_at(v->journal, v->log[v->next]);
    state->entries = entries;
    ad__journal_store(&v->at->current, slot);
    if (state->frame != before->frame || state->used != before->used) v->at->lives = 0;
    v->at->fragile = 0;
    ad__output_settle(&s->output, state->appended);
    ad__survival_apply(v, entries);
    if (state->pending != pending_before) ad__journal_free(v->journal, ad__journal_get(v->journal, pending_before));
    v->next ^= 1;
    let_descriptors_go(s, state->descriptors);
    __atomic_store_n(&v->executed, state->frame, __ATOMIC_RELAXED);
}

static void set_pending(ad_survival *v, ad_poison *pending) {
    if (pending == v->pending) return;
    ad__poison_release(v->pending);
    v->pending = pending ? ad__poison_share(pending) : NULL;
}

static void drop_changes(ad_survival *v, size_t count) {
    v->changed.count -= count;
    if (v->changed.count) memmove(v->changed.list, v->changed.list + count, v->changed.count * sizeof *v->changed.list);
}

/* With the first `count` changes. */
static void commit_now(ad_session *s, size_t count) {
    ad_survival *v = &s->survival;
    if (s->held.count) return;
    unsigned slot = other_slot(v->at->current, (unsigned)v->at->current);
    ad_journal_state *state = &v->at->state[slot];
    uint64_t entries;
    describe(s, state);
    state->pending = write_pending(s, v->at->state[v->at->current].pending);
    if (!ad__survival_write(s, count, &entries)) {
        not_kept(s);
        return;
    }
    make_valid(s, slot, entries);
    set_pending(v, s->pending);
    drop_changes(v, count);
    v->begun = 0;
    v->behind = v->announced = false;
    if (v->nleaving) ad__survival_give_leaving(s);
}

/* ---- what is complete later: taking a state ---- */

/* Who has memory in common with others must not have said what those may have changed when it is executed again. */
static bool answers_wait(const ad_session *s) { return s->shares || s->survival.parked_shares || s->exporting; }

static bool is_news(const ad_session *s) {
    const ad_survival *v = &s->survival;
    const ad_journal_state *valid = &v->at->state[v->at->current];
    uint64_t frame, used;
    where(s, &frame, &used);
    return v->changed.count || v->nparked || frame != valid->frame || used != valid->used || s->pending != v->pending ||
           (answers_wait(s) && atomic_load(&s->output.appended) != valid->appended);
}

/* The first `count` changes are what the coming state is about. */
static bool move_changes(ad_survival *v, size_t count) {
    if (count == v->changed.count) {
        const ad_changes empty = v->taken;
        v->taken = v->changed;
        v->changed = empty;
        v->changed.count = 0;
        return true;
    }
    if (v->taken.room < count) {
        ad_changed *list = ad__os.malloc(count * sizeof *list);
        if (!list) return false;
        free(v->taken.list);
        v->taken = (ad_changes){.list = list, .room = count};
    }
    v->taken.count = count;
    if (count) memcpy(v->taken.list, v->changed.list, count * sizeof *v->taken.list);
    drop_changes(v, count);
    return true;
}

static void take(ad_session *s) {
    ad_survival *v = &s->survival;
    const size_t count = v->inside ? v->begun : v->changed.count;
    ad_coming *c = &v->coming;
    c->slot = other_slot(v->at->current, (unsigned)v->at->current);
    ad_journal_state *state = &v->at->state[c->slot];
    describe(s, state);
    state->pending = write_pending(s, v->at->state[v->at->current].pending);
    if (!ad__survival_write(s, count, &c->entries) || !move_changes(v, count)) {
        not_kept(s);
        return;
    }
    v->begun = 0;
    v->parked_taken = v->inside ? v->parked_begun : v->nparked;
    for (unsigned i = 0; i < s->nstream_queues; i++) s->stream_queues[i]->awaited = s->stream_queues[i]->sequence;
    c->told = v->told;
    c->pending = s->pending ? ad__poison_share(s->pending) : NULL;
    c->spoiled = false;
    c->open = true;
}

/* ---- giving it up ---- */

void ad__survival_drop_coming(ad_session *s) {
    ad_survival *v = &s->survival;
    ad_coming *c = &v->coming;
    if (!c->open) return;
    ad__survival_unwrite(v, c->entries);
    const ad_at pending = v->at->state[c->slot].pending;
    if (pending != v->at->state[v->at->current].pending)
        ad__journal_free(v->journal, ad__journal_get(v->journal, pending));
    ad__poison_release(c->pending);
    c->pending = NULL;
    c->open = false;
}

/* What is there still is written down the next time; what has gone since is among the later changes. */
static bool is_still_news(ad_session *s, const ad_changed *c) {
    ad_buffer *b;
    uint16_t device;
    bool timed;
    switch (c->kind) {
    case AD_JOURNAL_NONE: return true;
    case AD_JOURNAL_BUFFER:
        if (!(b = ad__buffers_find(&s->buffers, c->id)) || b->changed) return false;
        return b->changed = true;
    case AD_JOURNAL_STREAM: return ad__stream_queue_known(s, c->id) != NULL;
    case AD_JOURNAL_EVENT: return ad__event_known(s, c->id, &device, &timed);
    case AD_JOURNAL_MODULE: return ad__module_place(s, c->id) != NULL;
    default: return ad__window_known(s, c->id) != NULL;
    }
}

static void give_up(ad_session *s) {
    ad_survival *v = &s->survival;
    ad_changes all = v->taken;
    size_t kept = 0;
    for (size_t i = 0; i < all.count; i++)
        if (is_still_news(s, &all.list[i])) all.list[kept++] = all.list[i];
    all.count = kept;
    for (size_t i = 0; i < v->changed.count; i++) {
        ad_changed *list = ad__os_grow(all.list, all.count, &all.room, sizeof *list);
        if (!list) {
            not_kept(s);
            break;
        }
        all.list = list;
        list[all.count++] = v->changed.list[i];
    }
    v->taken = v->changed;
    v->taken.count = 0;
    v->changed = all;
    v->begun += kept;
    v->parked_taken = 0;
    ad__survival_drop_coming(s);
}

/* ---- making it valid ---- */

static bool is_reached(const ad_session *s) {
    for (unsigned i = 0; i < s->nstream_queues; i++) {
        const ad_stream_queue *queue = s->stream_queues[i];
        if (queue->passed < queue->awaited && !ad__stream_queue_idle(queue)) return false;
    }
    return true;
}

/* Answers that were sent after it was taken count further. */
static void renew_answers(ad_session *s) {
    ad_survival *v = &s->survival;
    const ad_journal_state *valid = &v->at->state[v->at->current];
    ad_journal_state *state = &v->at->state[v->coming.slot];
    if (!answers_wait(s)) {
        describe_answers(s, state, v->coming.told);
    } else if (state->appended < valid->appended) {
        state->appended = valid->appended;
        state->read = valid->read;
        state->answered = valid->answered;
        state->answered_used = valid->answered_used;
    }
}

/* The device is there. False: what it has found out cannot be read now. */
static bool conclude(ad_session *s, bool judge) {
    ad_survival *v = &s->survival;
    ad_coming *c = &v->coming;
    if (s->deferred_checks.count && (s->held.count || !judge)) return false;
    if (s->deferred_checks.count) ad__deferred_checks_read(s, false);
    if (c->spoiled) {
        give_up(s);
        return true;
    }
    ad__spill_look(s->worker); /* a place in the table is not used again before all is said that is to be said of it */
    renew_answers(s);
    v->committed = v->at->state[c->slot].operations;
    make_valid(s, c->slot, c->entries);
    set_pending(v, c->pending);
    ad__poison_release(c->pending);
    c->pending = NULL;
    v->told_before = c->told;
    v->taken.count = 0;
    c->open = false;
    ad__survival_unpark(s, v->parked_taken);
    ad__stream_queues_settle(s);
    return true;
}

/* What has been answered by now is sent, though not all that was executed counts yet. */
static void answer(ad_session *s) {
    ad_survival *v = &s->survival;
    const ad_journal_state *valid = &v->at->state[v->at->current];
    if (atomic_load(&s->output.appended) == valid->appended || answers_wait(s)) return;
    unsigned slot = other_slot(v->at->current, v->coming.open ? v->coming.slot : (unsigned)v->at->current);
    ad_journal_state *state = &v->at->state[slot];
    *state = *valid;
    state->log = state->entries = 0; /* that is in the table */
    describe_answers(s, state, v->told_before);
    ad__journal_store(&v->at->current, slot);
    ad__output_settle(&s->output, state->appended);
}

/* passed: all that was enqueued is known to be complete. */
static void go_on(ad_session *s, bool passed, bool judge) {
    ad_survival *v = &s->survival;
    for (int i = 0; i < 3 && ad__survival_lives(v); i++) { /* taken, spoiled, and taken again */
        if (!v->coming.open) {
            if (s->held.count || s->exporting || !is_news(s)) break;
            take(s);
        }
        if (!v->coming.open || !(passed || is_reached(s)) || !conclude(s, judge)) break;
    }
    if (ad__survival_lives(v)) answer(s);
}

void ad__survival_commit(ad_session *s) {
    ad_survival *v = &s->survival;
    if (!ad__survival_lives(v)) {
        v->behind = v->announced = false;
        ad__survival_give_leaving(s);
        if (v->nparked && ad__stream_queues_idle(s)) ad__survival_unpark(s, v->nparked);
        return;
    }
    if (v->late) go_on(s, false, true);
    else commit_now(s, v->changed.count);
}

bool ad__survival_again(const ad_message *m) {
    const ad_op *op = &m->op;
    if (m->opcode == AD_REQ_FREE) return true;
    if (m->opcode != AD_REQ_UFUNC && m->opcode != AD_REQ_REDUCE && m->opcode != AD_REQ_CALL) return false;
    for (int i = 0; i < op->nout; i++)
        if (op->operand[i].is_scalar || op->operand[i].desc.form == AD_VIEW) return false;
    return op->nout;
}

bool ad__survival_is_full(const ad_survival *v) {
    if (v->late) return false;
    return v->announced || (v->at && v->at->fragile) || v->changed.count >= COLLECTED ||
           v->leaving_bytes > COLLECTED_BYTES;
}

void ad__survival_enter(ad_session *s, const ad_message *m) {
    ad_survival *v = &s->survival;
    if (!v->late) {
        v->collects = s->cost <= AD_CHEAP && ad__survival_again(m);
        if (v->behind && !v->collects) ad__survival_commit(s);
    }
    ad__survival_begun(v);
}

bool ad__survival_due(const ad_session *s) {
    const ad_survival *v = &s->survival;
    if (v->late) return v->at && s->done - v->committed >= AD_MARK_OPS && !v->coming.open;
    return !v->collects || ad__survival_is_full(v);
}

bool ad__survival_ready(ad_session *s) {
    ad_survival *v = &s->survival;
    ad__session_await(s, AD_WAIT_ALL, NULL, NULL);
    if (!ad__session_poll(s)) return false;
    if (v->late) ad__survival_commit(s);
    return true;
}

bool ad__survival_counts(ad_session *s) { return !ad__survives_late(s) || ad__survival_ready(s); }

bool ad__survival_flush(ad_session *s, bool judge) {
    ad_survival *v = &s->survival;
    if (!ad__survival_lives(v)) return false;
    if (!v->late) {
        commit_now(s, v->inside ? v->begun : v->changed.count);
        return !s->held.count;
    }
    if (ad__stream_queues_wait(s, NULL)) return false;
    if (v->coming.open) go_on(s, true, judge); /* then all that is news by now */
    go_on(s, true, judge);
    return !v->coming.open && !s->held.count;
}

void ad__survival_hush(ad_session *s) {
    ad_survival *v = &s->survival;
    const uint64_t used = s->frame_used - s->message.size;
    v->silent = is_before(ad__input_place(&s->frame), used, v->quiet, v->quiet_used);
    if (!v->silent) v->quiet = v->quiet_used = v->untold = 0;
}
