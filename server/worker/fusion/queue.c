/* The fusion queue takes operations that fit the queued ones, and need not come after them. */
#include "server/worker/fusion/entries.h"
#include "server/worker/fusion/queue.h"

#include <stdlib.h>
#include <string.h>

#include "protocol/desc.h"
#include "protocol/rows_request.h"
#include "protocol/rows_ufunc.h"
#include "protocol/size.h"
#include "server/common/os.h"
#include "server/worker/device/cost.h"
#include "server/worker/exec/job.h"
#include "server/worker/sharing/sharing.h"
#include "server/worker/checkpoint/buffer_free.h"
#include "server/worker/io/cancel.h"

/* Tell whether a ufunc can be queued: it must be unable to fail because of its data. */
static bool is_fusible_ufunc(const ad_op *op, bool *masked) {
    const ad_ufunc_row *row = ad__ufunc(op->row);
    if (!row || op->nout != row->nout || op->nin < row->nin || op->nin > row->nin + 1) return false;
    *masked = op->nin > row->nin;
    return op->row != AD_UFUNC_power || ad__dtypes[op->loop].kind != 'i';
}

static bool has_empty_shape(const ad_desc *d) {
    for (int i = 0; i < d->ndim; i++)
        if (d->shape[i] == 0) return true;
    return false;
}

/* Tell whether an operand's memory is shared with other writers, or must not be written. Operations on shared memory
 * take effect in the order of all sessions. Module variables and imported memory are written even if their array is
 * dropped, and imported pieces may overlap. Forbidden writes are refused at once. */
static bool is_common(const ad_op *op, ad_buffer *const *buffer) {
    for (int i = 0; i < op->nout + op->nin; i++) {
        const ad_buffer *b = buffer[i];
        if (b && (b->module || b->import) && i < op->nout) return true;
        if (b && b->shared && (b->shared->common || (i < op->nout && b->readonly))) return true;
    }
    return false;
}

/* Tell whether each existing output is the only view of its buffer here, but for inputs with the same view. */
static bool has_clean_writes(const ad_op *op, ad_buffer *const *buffer) {
    for (int o = 0; o < op->nout; o++) {
        if (!ad__fusion_is_view(&op->operand[o])) continue;
        if (!ad__fusion_is_plain(&op->operand[o].desc)) return false;
        for (int i = 0; i < op->nout + op->nin; i++) {
            if (i == o || buffer[i] != buffer[o]) continue;
            if (i < op->nout || !ad__desc_same(&op->operand[i].desc, &op->operand[o].desc)) return false;
        }
    }
    return true;
}

static bool has_more_at_hand(ad_worker_session *s) {
    ad_engine *e = &s->worker->engine;
    if (s->messages.in_frame && s->messages.frame_used < s->messages.frame.control_size) return true;
    pthread_mutex_lock(&e->lock);
    bool more = s->turns.queue.count != 0;
    pthread_mutex_unlock(&e->lock);
    return more;
}

/* ---- waiting for other operations ---- */

/* Find how many ns an operation of a stream queue may wait while the device works on others. */
static int64_t find_time_ahead(const ad_worker_session *s, const ad_stream_queue *queue) {
    const int64_t ahead = queue ? ad__stream_queue_ahead(s, queue) : 0;
    return ahead > AD_FUSION_AHEAD_NS ? ahead - AD_FUSION_AHEAD_NS : 0;
}

/* Find how many ns an operation waits for others although its device is idle. */
static int64_t find_patience(const ad_worker_session *s, const ad_op *op) {
    const int64_t ns = ad__cost_on_device(s, op);
    if (ns < AD_FUSION_LONG_NS) return 0;
    return ns / AD_FUSION_PATIENCE < AD_FUSION_PATIENCE_MOST ? ns / AD_FUSION_PATIENCE : AD_FUSION_PATIENCE_MOST;
}

/* Begin to be patient with the first queued operation, or renew that with another one. */
static void renew_patience(ad_worker_session *s, const ad_op *op) {
    ad_fusion_queue *h = &s->fusion;
    if (!h->count) {
        h->patience = find_patience(s, op);
        h->patient_until = h->patient_most = 0;
    }
    if (!h->patience) return;
    const int64_t now = ad__os_now();
    if (!h->count) h->patient_most = now + 4 * h->patience;
    h->patient_until = now + h->patience < h->patient_most ? now + h->patience : h->patient_most;
}

/* Find how many ns the queued operations may wait because their first one is long. */
static int64_t find_patience_left(const ad_fusion_queue *h) {
    const int64_t left = h->patience ? h->patient_until - ad__os_now() : 0;
    return left > 0 ? left : 0;
}

int64_t ad__fusion_time_to_wait(const ad_worker_session *s) {
    const ad_fusion_queue *h = &s->fusion;
    const ad_stream_queue *queue = NULL;
    int64_t least = INT64_MAX;
    if (!h->count || h->draining || h->count == AD_FUSION_OPS || !s->worker->backend->asynchronous) return 0;
    for (unsigned i = 0; i < h->count && least; i++) {
        if (h->ops->op[i].stream_queue == queue) continue;
        queue = h->ops->op[i].stream_queue;
        const int64_t ns = find_time_ahead(s, queue);
        if (ns < least) least = ns;
    }
    const int64_t patience = find_patience_left(h);
    return patience > least ? patience : least;
}

/* Tell whether an operation is worth queueing although nothing is queued. */
static bool has_reason_to_wait(ad_worker_session *s, const ad_op *op) {
    if (has_more_at_hand(s)) return true;
    if (!s->worker->backend->asynchronous || !s->streams.current) return false;
    if (find_patience(s, op)) return true;
    return find_time_ahead(s, ad__stream_queue_current(s, NULL));
}

/* ---- which operations can join the queue ---- */

static bool has_same_shape(const ad_desc *a, const ad_desc *b) {
    if (a->ndim != b->ndim) return false;
    for (int i = 0; i < a->ndim; i++)
        if (a->shape[i] != b->shape[i]) return false;
    return true;
}

/* Tell whether d is the one-dimensional view of all elements of `of`. */
static bool is_flat(const ad_desc *d, const ad_desc *of) {
    return d->ndim == 1 && d->dtype == of->dtype && d->offset == of->offset && ad__is_contiguous(d) &&
           ad__is_contiguous(of) && ad__desc_count(d) == ad__desc_count(of);
}

/* Tell whether a queued value can be read while it is queued. Only the view that wrote it can be read or, by a scan
 * without regard to the shape, its flat view. */
static bool can_read_value(const ad_worker_session *s, const ad_op *op, const ad_buffer *b, const ad_desc *d) {
    if (s->fusion.ops->member[(b->fusing.value - 1) / 2].ends) return false;
    return ad__desc_same(b->fusing.view, d) || (op->opcode == AD_REQ_CALL && is_flat(d, b->fusing.view));
}

/* Tell whether the operands can join the queue: each buffer written there must be used by one view only, and each that
 * is used there by operations of one stream queue. */
static bool can_join_operands(const ad_worker_session *s, const ad_op *op, const job *j) {
    ad_buffer *const *buffer = j->buffer;
    for (int i = 0; i < op->nout + op->nin; i++) {
        const ad_buffer *b = buffer[i];
        const ad_desc *d = &op->operand[i].desc;
        if (!b || !b->queued) continue;
        if (s->fusion.ops->op[b->fusing.tie].stream_queue != j->stream_queue) return false;
        if (b->fusing.value && !can_read_value(s, op, b, d)) return false;
        if (i < op->nout && (b->fusing.several || !ad__desc_same(b->fusing.view, d))) return false;
    }
    return !ad__fusion_is_end(op) || (buffer[1]->queued && buffer[1]->fusing.value);
}

static bool has_room(const ad_worker_session *s, const ad_op *op, ad_buffer *const *buffer) {
    const ad_fusion_queue *h = &s->fusion;
    if (h->count == AD_FUSION_OPS) return false;
    if (h->roots < AD_FUSION_FEW || !ad__fusion_is_root(op, buffer)) return true;
    if (!s->worker->backend->asynchronous && h->roots_cost < AD_FUSION_FEW_NS) return false;
    return h->roots < AD_FUSION_ROOTS || h->roots_cost < AD_FUSION_ROOTS_NS || ad__fusion_launch_costs_more(s);
}

/* ---- queueing an operation ---- */

static int add_outputs(ad_worker_session *s, job *j) {
    const ad_op *op = j->op;
    ad_buffer **buffer = j->buffer;
    uint64_t size[AD_MAX_OUT];
    for (int i = 0; i < op->nout; i++) {
        if (ad__fusion_is_view(&op->operand[i])) continue;
        int status = ad__job_fresh_size(j, i, &size[i]);
        if (!status) status = ad__buffers_add(&s->buffers, op->operand[i].desc.buffer, &buffer[i], &j->fault);
        if (status) {
            if (i == 1 && !ad__fusion_is_view(&op->operand[0])) ad__buffers_remove(&s->buffers, buffer[0]);
            return status;
        }
        buffer[i]->size = size[i];
        buffer[i]->promised = true;
    }
    return 0;
}

/* Tell whether an operation copies much memory between devices. The link between them would have nothing to do while
 * the copy waits for others to join it. Memory that is freed meanwhile would make the copy's stream wait for others. */
static bool is_transfer(const ad_op *op, const job *j) {
    if (op->opcode != AD_REQ_UFUNC || op->row != AD_UFUNC_copy || !j->s->worker->backend->asynchronous) return false;
    for (int i = 0; i < op->nout + op->nin; i++)
        if (j->buffer[i] && ad__stream_queue_is_far(j->stream_queue, j->buffer[i], &op->operand[i].desc)) return true;
    return false;
}

/* Find and check the operands. False: the operation or an operand cannot be queued. */
static bool check_candidate(ad_worker_session *s, ad_op *op, job *j) {
    ad__job_begin(j, s, op, s->progress.done + 1);
    if (!(j->stream_queue = ad__stream_queue_current(s, &j->fault)) || ad__job_check(j)) return false;
    if (is_transfer(op, j)) return false;
    return !has_empty_shape(ad__fusion_shape_of(op)) && !is_common(op, j->buffer) && has_clean_writes(op, j->buffer);
}

/* Tell whether an operation has the shape of those that are queued for its stream queue. */
static bool has_queued_shape(const ad_worker_session *s, const ad_op *op, const ad_stream_queue *queue) {
    if (ad__fusion_is_end(op)) return true;
    for (unsigned i = s->fusion.count; i-- > 0;) {
        const ad_fusion_op *o = &s->fusion.ops->op[i];
        if (o->stream_queue == queue && !ad__fusion_is_end(&o->op))
            return has_same_shape(ad__fusion_shape_of(&o->op), ad__fusion_shape_of(op));
    }
    return true;
}

static bool can_join(ad_worker_session *s, const ad_op *op, const job *j) {
    return has_queued_shape(s, op, j->stream_queue) && can_join_operands(s, op, j);
}

/* Move the operation to the queue's arena, so that the arena of messages can be reused. False: no host memory. */
static bool move_to_arena(ad_worker_session *s, ad_op *op) {
    if (!s->fusion.count) ad__arena_reset(&s->fusion.arena);
    if (!ad__fusion_copy_op(&s->fusion.arena, op)) return false;
    ad__arena_reset(&s->messages.arena);
    return true;
}

/* Tell whether the operation can be queued after a drain that was begun for it. */
static bool can_join_after_drain(ad_worker_session *s, ad_op *op, job *j) {
    if (!check_candidate(s, op, j) || (s->fusion.count && !can_join(s, op, j))) return false;
    if (!s->fusion.count && (ad__fusion_is_end(op) || !has_reason_to_wait(s, op))) return false;
    return move_to_arena(s, op);
}

/* Refuse to queue an operation: it is executed by itself, after all that is queued. */
static ad_fusion_offer refuse_op(ad_worker_session *s) {
    if (!s->fusion.count || ad__fusion_drain(s)) return AD_FUSION_REFUSED;
    s->fusion.way = AD_WAY_ALONE;
    return AD_FUSION_RETRY;
}

/* Find which outputs nothing before the operation has read, of those that exist already. */
static uint8_t find_repeatable(const ad_worker_session *s, const job *j) {
    uint8_t found = 0;
    for (int i = 0; i < j->op->nout && s->checkpoint.late; i++)
        if (ad__fusion_is_view(&j->op->operand[i]) &&
            ad__checkpoint_is_repeatable_write(s, j->buffer[i], ad__job_extent(j, i)))
            found |= (uint8_t)(1u << i);
    return found;
}

static ad_fusion_offer queue_op(ad_worker_session *s, ad_op *op, job *j, bool masked) {
    ad_fusion_queue *h = &s->fusion;
    if (!h->ops && !(h->ops = ad__os.malloc(sizeof *h->ops))) return refuse_op(s);
    if (add_outputs(s, j)) return refuse_op(s);
    renew_patience(s, op);
    ad_fusion_op *queued = &h->ops->op[h->count];
    queued->op = *op;
    queued->number = s->progress.done + 1;
    queued->place = s->messages.place;
    queued->cost = s->messages.cost;
    queued->masked = masked;
    queued->repeatable = find_repeatable(s, j);
    queued->stream_queue = j->stream_queue;
    for (int i = 0; i < op->nout + op->nin; i++) queued->buffer[i] = j->buffer[i];
    ad__fusion_append(s, queued);
    return AD_FUSION_QUEUED;
}

static bool is_fusible(const ad_worker_session *s, const ad_op *op, bool *masked) {
    return op->opcode == AD_REQ_UFUNC ? is_fusible_ufunc(op, masked) : ad__fusion_is_eligible(s, op);
}

/* Tell whether queueing is in vain for now, because recent small operations had nothing in common. */
static bool is_in_vain(ad_worker_session *s) {
    ad_fusion_queue *h = &s->fusion;
    if (!h->vain || h->count || s->messages.cost > AD_FUSION_VAIN_NS) return false;
    h->vain--;
    return true;
}

ad_fusion_offer ad__fusion_offer(ad_worker_session *s, ad_op *op) {
    ad_fusion_queue *h = &s->fusion;
    ad_fusion_drain way = h->way;
    bool masked = false;
    job j;
    h->way = AD_WAY_NONE;
    if (way == AD_WAY_ALONE) return AD_FUSION_REFUSED;
    if (!s->worker->fuses || s->checkpoint.suspect.careful || ad__cancel_covers_message(s) || is_in_vain(s) ||
        !is_fusible(s, op, &masked))
        return refuse_op(s);
    if (way == AD_WAY_NONE) {
        if (!h->count && !has_reason_to_wait(s, op)) return refuse_op(s);
        if (!check_candidate(s, op, &j)) return refuse_op(s);
        bool along = !h->count || can_join(s, op, &j);
        if (!h->count || (along && has_room(s, op, j.buffer))) return queue_op(s, op, &j, masked);
        if (!(along ? ad__fusion_make_room(s) : ad__fusion_drain(s))) {
            h->way = AD_WAY_ROOM;
            return AD_FUSION_RETRY;
        }
    }
    return !is_in_vain(s) && can_join_after_drain(s, op, &j) ? queue_op(s, op, &j, masked) : refuse_op(s);
}

/* ---- releasing buffers ---- */

bool ad__fusion_defer_buffer(ad_worker_session *s, ad_buffer *b) {
    if (!b->queued) return false;
    b->freed = true;
    s->fusion.freed++;
    ad__buffers_detach(&s->buffers, b);
    return true;
}

bool ad__fusion_may_overtake(const ad_worker_session *s, const ad_message *m) {
    if (s->fusion.bytes > AD_FUSION_BYTES) return false;
    if (m->row->flags & AD_R_CHOOSES) return true;
    if (m->row->flags & AD_R_OVERTAKES) return !s->checkpoint.behind || ad__checkpoint_is_repeatable(m);
    /* A new buffer could lack memory that queued frees would return. */
    return m->row->flags & AD_R_ALLOCATES && !s->fusion.freed && !s->checkpoint.kept.count;
}

static void drop_queue(ad_worker_session *s) {
    for (unsigned i = 0; i < s->fusion.count; i++)
        if (!(s->fusion.gone >> i & 1)) ad__fusion_release_op(s, i);
    s->fusion.count = 0;
    s->fusion.draining = false;
    free(s->fusion.ops);
    ad__arena_free(&s->fusion.arena);
    s->fusion.ops = NULL;
}

const ad_component ad__component_fusion = {.name = "fusion queue", .drop = drop_queue};
