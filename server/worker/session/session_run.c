/* The runner's side of a session: from frames to executed messages. */
#include <stdio.h>
#include <stdlib.h>

#include "server/common/log.h"
#include "server/common/os.h"
#include "protocol/infer.h"
#include "protocol/size.h"
#include "server/worker/engine/background.h"
#include "server/worker/checkpoint/blame.h"
#include "server/worker/sharing/imports.h"
#include "server/worker/migrate/migration.h"
#include "server/worker/report.h"
#include "server/worker/session/session.h"
#include "server/worker/sharing/sharing.h"
#include "server/worker/spill/spill.h"
#include "server/worker/io/reply.h"
#include "server/worker/io/trace.h"
#include "server/worker/exec/exec.h"
#include "server/worker/session/ops.h"
#include "server/worker/device/cost.h"
#include "server/worker/io/cancel.h"

#define ALLOWED (AD_BIT(AD_CLASS_OP) | AD_BIT(AD_CLASS_ASK))
#define ROOM (1u << 20) /* queued bytes below which a paused client is read again */
#define FLUSH_AT (64u << 10)
#define CLOCK_EVERY 32             /* cheap messages between two looks at the clock */
#define CLOCK_AFTER (4 * AD_CHEAP) /* expected ns between two looks */

static int report_protocol_error(ad_worker_session *s, int status, const ad_fault *fault) {
    ad__reply_bye(s, status, *fault->text ? fault->text : ad__error_text(status));
    ad__log(session_refused, s->id, s->principal, fault->text);
    return status;
}

static int make_reader(ad_worker_session *s) {
    const int status = ad__reader_new(&s->messages.reader);
    return status ? status : ad__reader_remember(s->messages.reader);
}

/* Pop the next frame and begin to read it: 1; 0: none; negative: the session is over. */
static int begin_frame(ad_worker_session *s) {
    ad_engine *e = &s->worker->engine;
    ad_fault fault = {0};
    pthread_mutex_lock(&e->lock);
    bool got = !ad__run_is_over(s) && ad__input_pop(&s->turns.queue, &s->messages.frame);
    if (got) ad__share_set_waiting(&s->turns.share, s->turns.queue.operations, s->turns.queue.bytes);
    if (got && s->turns.want_room && s->turns.queue.bytes < ROOM && !ad__engine_is_full(s)) {
        s->turns.want_room = false;
        pthread_mutex_unlock(&e->lock);
        ad__engine_request_attention(s);
    } else {
        pthread_mutex_unlock(&e->lock);
    }
    if (!got) return 0;
    if (!s->messages.frame.block) return report_protocol_error(s, s->socket.refusal.code, &s->socket.refusal);
    s->messages.in_frame = true;
    s->messages.payload_used = false;
    s->messages.frame_used = 0;
    s->progress.bytes_in += AD_FRAME_HEADER + s->messages.frame.control_size + (uint64_t)s->messages.frame.payload_size;
    if (ad__is_traced(s)) ad__trace(s, "<-", s->messages.frame.control, s->messages.frame.control_size);
    int status = s->messages.reader ? 0 : make_reader(s);
    if (!status)
        status =
            ad__reader_begin(s->messages.reader, s->messages.frame.control, s->messages.frame.control_size, &fault);
    return status ? report_protocol_error(s, status, &fault) : 1;
}

static int end_frame(ad_worker_session *s) {
    ad_fault fault;
    bool claimed = s->messages.payload_used || !s->messages.frame.payload_size;
    s->messages.in_frame = false;
    s->checkpoint.frame_end = ad__input_place(&s->messages.frame) + AD_FRAME_HEADER + s->messages.frame.control_size +
                              s->messages.frame.payload_size;
    s->progress.bytes_done +=
        AD_FRAME_HEADER + s->messages.frame.control_size + (uint64_t)s->messages.frame.payload_size;
    ad__input_release(&s->messages.frame);
    if (claimed) return 0;
    int status = ad__fault(&fault, AD_E_PROTOCOL, "a payload that no message claims");
    return report_protocol_error(s, status, &fault);
}

/* Check the payload, which belongs to a write that is the last message of its block. AD_E_PROTOCOL. */
static int check_payload(ad_worker_session *s, ad_fault *fault) {
    if (!(s->messages.message.row->flags & AD_R_PAYLOAD)) return 0;
    if (s->messages.frame_used != s->messages.frame.control_size)
        return ad__fault(fault, AD_E_PROTOCOL, "write is not the last message of its frame");
    if (!s->messages.frame.payload_size) return ad__fault(fault, AD_E_PROTOCOL, "write without a payload");
    s->messages.payload_used = true;
    return 0;
}

/* Read the next message. 1: s->message is set; 0: none is there; negative: the session is over. */
static int read_message(ad_worker_session *s) {
    ad_fault fault;
    if (s->messages.at_hand) return 1;
    fault.code = 0;
    fault.text[0] = 0;
    for (;;) {
        int result = s->messages.in_frame ? 1 : begin_frame(s);
        if (result <= 0) return result;
        if (!s->fusion.count) ad__arena_reset(&s->messages.arena);
        result = ad__reader_next(s->messages.reader, &s->messages.arena, ALLOWED, &s->messages.message, &fault);
        if (result > 0) {
            s->messages.frame_used += s->messages.message.size;
            result = check_payload(s, &fault);
            if (result) return report_protocol_error(s, result, &fault);
            if (s->messages.frame_used <= s->checkpoint.resumed.skip)
                continue; /* another worker has executed this message */
            s->checkpoint.resumed.skip = 0;
            s->messages.cost = ad__exec_cost(s, &s->messages.message);
            s->messages.place = ad__input_place(&s->messages.frame) + AD_FRAME_HEADER + s->messages.frame_used -
                                s->messages.message.size;
            s->messages.at_hand = true;
            if (s->checkpoint.resumed.quiet) ad__checkpoint_suppress_replies(s);
            return 1;
        }
        if (result < 0) return report_protocol_error(s, result, &fault);
        s->checkpoint.resumed.skip = 0;
        if ((result = end_frame(s))) return result;
    }
}

/* ---- waiting for the device ---- */

/* Tell whether the message at hand must wait until all that a worker before has answered is complete again: its client
 * may have seen that it was. Then the session waits. */
static bool must_catch_up(ad_worker_session *s) {
    if (!s->checkpoint.resumed.behind) return false;
    ad__fusion_flush(s);
    ad__session_await(s, AD_WAIT_ALL, NULL, NULL);
    if (!ad__session_poll(s)) return true;
    s->checkpoint.resumed.behind = false;
    return false;
}

/* Tell whether the next operation must wait until less is under way. Then the session waits. */
static bool must_wait_for_room(ad_worker_session *s) {
    const bool settles = s->messages.message.row->flags & AD_R_SETTLED;
    const bool writes_down = ad__session_commits_late(s);
    if (settles) ad__fusion_flush(s);
    ad_stream_queue *queue = s->streams.current ? ad__stream_queue_current(s, NULL) : NULL;
    if (queue && ad__stream_queue_full(queue)) ad__session_await(s, AD_WAIT_ROOM, queue, NULL);
    else if (settles && (s->deferred_checks.count || writes_down)) ad__session_await(s, AD_WAIT_ALL, NULL, NULL);
    if (s->wait.kind && !ad__session_poll(s)) return true;
    if (settles && writes_down) ad__checkpoint_commit(s);
    return false;
}

/* Execute the message at hand. False: it waits for output to shrink, for the device, or for the next turn. */
static bool execute_message(ad_worker_session *s) {
    if (s->fusion.count && !ad__fusion_may_overtake(s, &s->messages.message) && !ad__fusion_drain(s)) return false;
    ad__checkpoint_begin_message(s, &s->messages.message);
    if (!ad__execute(s, &s->messages.message)) return false;
    if (s->messages.message.row->cls == AD_CLASS_ASK) {
        s->progress.requests++;
    } else {
        s->progress.done++;
        if (s->fusion.count) s->fusion.bytes += s->messages.message.size;
        else ad__stream_queues_settle(s);
    }
    s->checkpoint.descriptors = s->windows.descriptors.taken; /* only the runner takes descriptors */
    s->messages.at_hand = false;
    if (!s->fusion.count) ad__checkpoint_mark_executed(&s->checkpoint);
    return true;
}

static bool execute_with_blame(ad_worker_session *s) {
    ad__blame_begin_message(s);
    bool done = execute_message(s);
    ad__checkpoint_end_changes(&s->checkpoint);
    ad__blame_end_message(s);
    return done;
}

/* ---- turns ---- */

/* Tell whether this turn may run work of `cost`, behind queued operations of `held`. False: *end says how it ends. */
static bool may_run(ad_worker_session *s, int64_t cost, int64_t held, int64_t limit, ad_turn *end) {
    const int64_t both = ad__size_sum(cost, held);
    *end = AD_TURN_HEAVY;
    if (cost > limit || (both > limit && !s->worker->backend->asynchronous)) return false;
    *end = AD_TURN_WAITING;
    if (ad__background_has_room(s, both)) return true;
    ad__session_await(s, AD_WAIT_BACKGROUND, NULL, NULL);
    return false;
}

/* Tell how a turn ends in the middle of a drain: it waits for the device, or has no more time. */
static ad_turn choose_turn_end(const ad_worker_session *s) { return s->wait.kind ? AD_TURN_WAITING : AD_TURN_MORE; }

/* Take up what the turn before has left: a wait, or a queue that was being drained. False: *end says how it ends. */
static bool begin_turn(ad_worker_session *s, int64_t until, int64_t limit, ad_turn *end) {
    *end = AD_TURN_WAITING;
    if (atomic_load_explicit(&s->move.halted, memory_order_relaxed) && !s->worker->hooks.migration->ends_session(s)) {
        ad__session_await(s, AD_WAIT_MIGRATION, NULL, NULL);
        return false;
    }
    if (s->wait.kind == AD_WAIT_MORE) s->wait.kind = AD_WAIT_NONE; /* whatever gave the turn has ended that wait */
    if (s->wait.kind && !ad__session_poll(s)) return false;
    s->fusion.turn_until = until;
    if (s->fusion.draining && !may_run(s, 0, s->fusion.cost, limit, end)) return false;
    if (ad__fusion_continue(s)) return true;
    *end = choose_turn_end(s);
    return false;
}

/* Read the next message. 1: it is at hand; 0: none is there; negative: the session is over, or nobody takes its
 * results. */
static int take_message(ad_worker_session *s) {
    const bool last = atomic_load_explicit(&s->socket.ends_after_forks, memory_order_relaxed);
    const int result = read_message(s);
    if (atomic_load_explicit(&s->output.broken, memory_order_relaxed) && !last) return -1;
    return last && (!result || !ad__descriptors_has_unclaimed(&s->windows.descriptors)) ? -1 : result;
}

static void flush_output(ad_worker_session *s) {
    if (ad__output_flush(&s->output)) ad__engine_request_attention(s);
}

/* Run the message at hand. False: *end says how the turn ends. */
static bool run_message(ad_worker_session *s, int64_t cost, int64_t held, int64_t limit, ad_turn *end) {
    if (!may_run(s, cost, held, limit, end) || ad__blame_must_wait(s)) return false;
    if (ad__size_sum(cost, held) > limit) ad__fusion_flush(s);
    if (cost > AD_CHEAP * 10) flush_output(s);
    if (s->worker->backend->asynchronous && (must_catch_up(s) || must_wait_for_room(s))) return false;
    if (!execute_with_blame(s)) {
        *end = s->wait.kind ? AD_TURN_WAITING : s->fusion.draining ? AD_TURN_MORE : AD_TURN_STALLED;
        return false;
    }
    ad__reply_ack(s, false);
    if (ad__checkpoint_is_due(s)) ad__checkpoint_commit(s);
    if (atomic_load_explicit(&s->output.queued, memory_order_relaxed) > FLUSH_AT) flush_output(s);
    return true;
}

/* End a turn that has run all messages: drain the queue of operations, unless more may soon join it, and commit. */
static ad_turn end_turn(ad_worker_session *s, int64_t held, int64_t limit) {
    ad_turn end;
    if (!may_run(s, 0, held, limit, &end)) return end;
    const int64_t time_to_wait = ad__fusion_time_to_wait(s);
    if (time_to_wait) {
        ad__session_await_more(s, time_to_wait);
        return AD_TURN_WAITING;
    }
    if (!ad__fusion_drain(s)) return choose_turn_end(s);
    if (s->checkpoint.late) ad__checkpoint_commit(s); /* the checkpoint lets more operations count as complete */
    ad__reply_ack(s, true);
    ad__checkpoint_commit(s);
    return AD_TURN_EMPTY;
}

ad_turn ad__session_turn(ad_worker_session *s, int64_t budget, int64_t limit) {
    const int64_t until = s->turns.since + budget;
    int64_t unseen = 0; /* expected ns since the clock was looked at */
    ad_turn end;
    if (!begin_turn(s, until, limit, &end)) return end;
    for (unsigned i = 1;; i++) {
        const int got = take_message(s);
        if (got < 0) return AD_TURN_OVER;
        const int64_t held = s->fusion.count && !ad__cancel_covers(s, s->messages.place) ? s->fusion.cost : 0;
        if (!got) return end_turn(s, held, limit);
        const int64_t cost = ad__cancel_covers_message(s) ? 0 : s->messages.cost;
        if (!run_message(s, cost, held, limit, &end)) return end;
        unseen += cost < CLOCK_AFTER ? cost : CLOCK_AFTER;
        if (unseen < CLOCK_AFTER && i % CLOCK_EVERY) continue;
        if (ad__os_now() >= until) return AD_TURN_MORE;
        unseen = 0;
    }
}

static void drop_messages(ad_worker_session *s) {
    ad__poison_release(s->progress.pending);
    ad__reader_free(s->messages.reader);
    ad__arena_free(&s->messages.arena);
    s->progress.pending = NULL;
    s->messages.reader = NULL;
}

const ad_component ad__component_messages = {.name = "messages", .drop = drop_messages};

/* End what the session has under way. False: the session waits for some of it. */
static bool end_executing(ad_worker_session *s) {
    ad_engine *e = &s->worker->engine;
    ad__checkpoint_give_up(s);
    if (s->messages.in_frame) ad__input_release(&s->messages.frame);
    s->messages.in_frame = s->messages.at_hand = false;
    ad__session_await(s, AD_WAIT_ALL, NULL, NULL);
    if (!ad__session_poll(s)) return false;
    pthread_mutex_lock(&e->lock);
    ad__run_enter(s, AD_RUN_DROPPING);
    pthread_mutex_unlock(&e->lock);
    return true;
}

ad_turn ad__session_drop(ad_worker_session *s) {
    ad_engine *e = &s->worker->engine;
    pthread_mutex_lock(&e->lock);
    const bool dropped = ad__run_phase(s) == AD_RUN_DROPPED;
    if (!ad__run_is_over(s)) ad__run_enter(s, AD_RUN_OVER); /* nothing can be queued any more */
    ad__input_clear(&s->turns.queue);
    ad__share_set_waiting(&s->turns.share, 0, 0);
    pthread_mutex_unlock(&e->lock);
    if (dropped) return AD_TURN_OVER;
    if (!ad__run_is_dropping(s) && !end_executing(s)) return AD_TURN_WAITING;
    if (!ad__components_drop(s)) return AD_TURN_MORE;
    ad__spill_settle(s->worker);
    return AD_TURN_OVER;
}
