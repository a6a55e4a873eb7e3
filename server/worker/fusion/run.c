/* Execute queued operations: a group as a chain, or one operation. drain.c decides which and when. */
#include "server/worker/fusion/entries.h"
#include "server/worker/fusion/queue.h"

#include <string.h>

#include "protocol/infer.h"
#include "protocol/size.h"
#include "server/worker/engine/background.h"
#include "server/worker/exec/job.h"
#include "server/worker/spill/spill.h"
#include "server/worker/fusion/chain_build.h"
#include "server/worker/device/cost.h"
#include "server/worker/checkpoint/buffer_free.h"
#include "server/worker/io/cancel.h"

/* ---- one by one ---- */

static void fail_job(job *j, int status) {
    if (status) ad__poison_release(ad__job_fail(j, status));
}

/* Allocate new outputs with zeros, which remain where the mask is false. */
static int provide_zeros(job *j) {
    int status = 0;
    for (int k = 0; k < j->op->nout && !status && !j->inherited; k++)
        if (j->made[k]) status = ad__fusion_provide_zeros(j->s, j->stream_queue, j->buffer[k], &j->fault);
    return status;
}

/* Check whether the client has cancelled the operation since it was queued. AD_E_CANCELLED. */
static int check_cancelled(job *j, const ad_fusion_op *o) {
    return ad__cancel_covers(j->s, o->place) ? ad__job_fail_cancelled(j) : 0;
}

void ad__fusion_run_one(ad_worker_session *s, unsigned i) {
    ad_fusion_op *o = &s->fusion.ops->op[i];
    job j;
    ad__deferred_checks_make_room(s);
    ad__job_begin(&j, s, &o->op, o->number);
    ad__job_set_queued(&j, o->stream_queue, o->buffer);
    int status = check_cancelled(&j, o);
    if (!status && o->masked) status = provide_zeros(&j);
    fail_job(&j, status ? status : ad__job_run_queued(&j, ad__fusion_provide_memory));
    ad__job_end(&j);
    ad__fusion_release_op(s, i);
}

/* ---- a group as a chain ---- */

/* Bring the chain's operands back from host memory. They are not moved until release_operands. */
static int bring_operands(ad_chain_builder *w, ad_stream_queue *queue, ad_fault *fault) {
    int status = ad__spill_begin(w->s, queue, w->read, w->chain.ninputs, fault);
    return status ? status : ad__spill_begin(w->s, queue, w->written, w->nwritten, fault);
}

static void release_operands(ad_chain_builder *w) {
    ad__spill_end(w->s, w->read, w->chain.ninputs);
    ad__spill_end(w->s, w->written, w->nwritten);
}

/* Free the memory allocated for outputs: executed one by one, the operations may need it, or need it zeroed. */
static void return_outputs(ad_chain_builder *w) {
    for (int i = 0; i < w->nprovided; i++) {
        ad_buffer *b = w->written[i];
        uint64_t size = b->size;
        if (!w->promised[i] || b->promised) continue;
        ad__buffer_give_memory(w->s, b);
        b->size = size;
        b->promised = true;
    }
}

/* Get the description of a chain's output: one of its elementwise results, or what it ends with. */
static const ad_desc *get_output(const ad_chain_builder *w, int i) {
    return i < w->chain.noutputs ? &w->chain.output[i].view.desc : &w->end_operand[0].desc;
}

/* Allocate the outputs, and order the chain after other users of its operands. Shared arrays may have moved after that.
 */
static int prepare_operands(ad_chain_builder *w, ad_stream_queue *queue, ad_fault *fault) {
    int status = 0;
    w->nprovided = 0;
    for (int i = 0; i < w->chain.ninputs && !status; i++)
        if (w->read[i]->poison) status = w->read[i]->poison->code;
    if (!status) status = bring_operands(w, queue, fault);
    for (int i = 0; i < w->nwritten && !status; i++) {
        status = w->written[i]->poison ? w->written[i]->poison->code : 0;
        w->promised[i] = w->written[i]->promised;
        if (!status) status = ad__fusion_provide_memory(w->s, queue, w->written[i], fault);
        w->nprovided = i + !status;
    }
    if (status || (w->s->streams.count == 1 && !w->s->sharing.shares)) return status;
    for (int i = 0; i < w->chain.ninputs && !status; i++) {
        status = ad__stream_queue_uses(w->s, queue, w->read[i], false, fault);
        if (!status) ad__stream_queue_count_peer(w->s, queue, w->read[i], &w->chain.input[i].desc);
    }
    for (int i = 0; i < w->nwritten && !status; i++) {
        status = ad__stream_queue_uses(w->s, queue, w->written[i], true, fault);
        if (!status) ad__stream_queue_count_peer(w->s, queue, w->written[i], get_output(w, i));
    }
    return status;
}

static void *compute_address(const ad_buffer *b, const ad_desc *d) {
    return (void *)((uintptr_t)b->address + (d->form == AD_VIEW ? (uint64_t)d->offset : 0));
}

static void set_addresses(ad_chain_builder *w) {
    ad_chain *c = &w->chain;
    for (int i = 0; i < c->ninputs; i++) c->input[i].data = compute_address(w->read[i], &c->input[i].desc);
    for (int i = 0; i < c->noutputs; i++)
        c->output[i].view.data = compute_address(w->written[i], &c->output[i].view.desc);
    if (c->end.op) w->end_operand[0].data = compute_address(w->written[c->noutputs], &w->end_operand[0].desc);
}

static void fail_group(ad_chain_builder *w, const job *why, int status) {
    if (status == AD_E_CANCELLED) w->s->progress.cancelled += w->count - 1; /* one has been counted */
    for (unsigned at = 0; at < w->count; at++) {
        ad_fusion_op *o = &w->ops->op[w->order[at]];
        job j;
        ad__job_begin(&j, w->s, &o->op, o->number);
        ad__job_set_queued(&j, o->stream_queue, o->buffer);
        j.fault = why->fault;
        j.run.wrote = why->run.wrote;
        fail_job(&j, status);
    }
}

/* Make everything that the chain has written depend on the chain's check, and on those of what it has read: an
 * operation that was queued with it may have got one meanwhile. */
static void spread_check(ad_chain_builder *w, const job *j) {
    uint64_t all = 0;
    if (j->run.checked) all = ad__deferred_checks_add(w->s, j->number, ad__op_name(j->op), false);
    if (!w->s->deferred_checks.count) return;
    for (int i = 0; i < w->chain.ninputs; i++) all |= ad__deferred_checks_of(w->s, w->read[i]);
    for (int i = 0; i < w->nwritten; i++)
        ad__deferred_checks_set(w->s, w->written[i], ad__deferred_checks_of(w->s, w->written[i]) | all);
}

static int64_t sum_cost(const ad_chain_builder *w) {
    int64_t ns = 0;
    for (unsigned at = 0; at < w->count; at++) ns = ad__size_sum(ns, w->ops->op[w->order[at]].cost);
    return ns;
}

static int enqueue_chain(ad_chain_builder *w) {
    ad_worker_session *s = w->s;
    const ad_backend *backend = s->worker->backend;
    ad_fusion_op *last = &w->ops->op[w->order[w->count - 1]];
    job j;
    int result;
    ad__job_begin(&j, s, &last->op, last->number);
    j.stream_queue = last->stream_queue;
    if (prepare_operands(w, j.stream_queue, &j.fault)) return 0; /* one by one, each operation reports what it lacks */
    set_addresses(w);
    if (backend->asynchronous) {
        int64_t cost = ad__size_product(ad__device_cost(&last->op), w->chain.ninputs + w->nwritten) / 2;
        ad__stream_queue_expect(j.stream_queue, cost, ad__stream_queue_charge(s, cost));
        if (ad__deferred_checks_find_place(s, &j.run.check, &j.fault)) return 0;
    }
    const bool in_background = ad__background_begin(s, sum_cost(w));
    if (in_background) j.run.cancelled = &s->turns.cancelled;
    result = backend->fuse(j.stream_queue->stream, &w->chain, &j.run, &j.fault);
    if (in_background) ad__background_end(s);
    result = ad__job_explain_status(&j, result);
    ad__session_status(s, result, &j.fault);
    if (result) {
        int counted = ad__session_enqueued(s, j.stream_queue, &j.fault);
        if (result > 0 && counted) result = counted;
        spread_check(w, &j);
    }
    if (result < 0) fail_group(w, &j, result);
    ad__job_end(&j);
    return result != 0;
}

/* Run the chain. 1: executed, or failed for good; 0: the operations must run one by one. */
static int run_chain(ad_chain_builder *w) {
    int done = enqueue_chain(w);
    if (!done) return_outputs(w);
    release_operands(w);
    return done;
}

/* Tell whether the end, run after the chain, would still find the value of its operand. */
static bool is_operand_unchanged(const ad_chain_builder *w, unsigned end) {
    return w->ops->op[end].buffer[1]->fusing.value == w->ops->member[end].from[0] + 1;
}

/* Run a group as a chain with its end, or else the chain first and the end by itself. False: nothing was executed. */
static bool run_as_chain(ad_chain_builder *w) {
    ad__chain_build(w, AD_NOWHERE);
    if (run_chain(w)) return true;
    if (w->end == AD_NOWHERE || w->chain.nnodes < 2 || w->chain.noutputs == AD_CHAIN_OUTPUTS ||
        !is_operand_unchanged(w, (unsigned)w->end))
        return false;
    ad__chain_build(w, w->end);
    if (!run_chain(w)) return false;
    for (unsigned at = 0; at < w->count; at++)
        if (w->order[at] != w->end) ad__fusion_release_op(w->s, w->order[at]);
    ad__fusion_run_one(w->s, (unsigned)w->end);
    w->count--;
    return true;
}

bool ad__fusion_run_group(ad_worker_session *s, const ad_groups *groups, const ad_group *g) {
    ad_fusion_queue *h = &s->fusion;
    ad_chain_builder w; /* not initialised as a whole: it is large */
    w.s = s;
    w.ops = h->ops;
    w.groups = groups;
    w.order = groups->order + g->first;
    w.count = g->count;
    w.end = AD_NOWHERE;
    for (unsigned at = 0; at < g->count; at++) {
        if (h->ops->member[w.order[at]].ends) w.end = w.order[at];
        if (ad__cancel_covers(s, h->ops->op[w.order[at]].place)) return false;
    }
    ad__deferred_checks_make_room(s);
    bool done = run_as_chain(&w);
    h->chains += done;
    h->chained += done ? w.count : 0;
    h->apart += !done;
    for (unsigned at = 0; at < g->count && done && w.count == g->count; at++) ad__fusion_release_op(s, w.order[at]);
    return done;
}
