/* Which operations are queued: those that fit the queued ones, and need not come after them. */
#include "server/worker/fusion/queue.h"

#include <stdlib.h>
#include <string.h>

#include "protocol/desc.h"
#include "protocol/rows_ufunc.h"
#include "protocol/size.h"
#include "server/common/os.h"
#include "server/worker/exec/job.h"
#include "server/worker/sharing/sharing.h"
#include "server/worker/checkpoint/buffer_free.h"

/* Tell whether a ufunc can be queued: it must be unable to fail because of its data. */
static bool is_fusible_ufunc(const ad_op *op, bool *masked) {
    const ad_ufunc_row *row = ad__ufunc(op->row);
    if (!row || op->nout != row->nout || op->nin < row->nin || op->nin > row->nin + 1) return false;
    *masked = op->nin > row->nin;
    return op->row != AD_UFUNC_power || ad__dtypes[op->loop].kind != 'i';
}

static bool is_empty(const ad_desc *d) {
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

static bool has_more_at_hand(ad_session *s) {
    ad_engine *e = &s->worker->engine;
    if (s->messages.in_frame && s->messages.frame_used < s->messages.frame.control_size) return true;
    pthread_mutex_lock(&e->lock);
    bool more = s->turns.queue.count != 0;
    pthread_mutex_unlock(&e->lock);
    return more;
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

/* Tell whether a queued value can be read while it is queued: by the view that wrote it or, for a scan without regard
 * to the shape, by its flat view. */
static bool can_read_value(const ad_session *s, const ad_op *op, const ad_buffer *b, const ad_desc *d) {
    if (s->fusion.ops->member[(b->fusing.value - 1) / 2].ends) return false;
    return ad__desc_same(b->fusing.view, d) || (op->opcode == AD_REQ_CALL && is_flat(d, b->fusing.view));
}

/* Tell whether the operands can join the queue: each buffer written there must be used by one view only. */
static bool can_join_operands(const ad_session *s, const ad_op *op, ad_buffer *const *buffer) {
    for (int i = 0; i < op->nout + op->nin; i++) {
        const ad_buffer *b = buffer[i];
        const ad_desc *d = &op->operand[i].desc;
        if (!b || !b->queued) continue;
        if (b->fusing.value && !can_read_value(s, op, b, d)) return false;
        if (i < op->nout && (b->fusing.several || !ad__desc_same(b->fusing.view, d))) return false;
    }
    return !ad__fusion_is_end(op) || (buffer[1]->queued && buffer[1]->fusing.value);
}

bool ad__fusion_launch_costs_more(const ad_session *s) {
    return s->worker->backend->asynchronous && ad__desc_count(&s->fusion.like) <= AD_FUSION_SMALL;
}

static bool is_root(const ad_op *op, ad_buffer *const *buffer) {
    for (int i = op->nout; i < op->nout + op->nin; i++)
        if (buffer[i] && buffer[i]->queued && buffer[i]->fusing.value) return false;
    return true;
}

static bool has_room(const ad_session *s, const ad_op *op, ad_buffer *const *buffer) {
    const ad_fusion_queue *h = &s->fusion;
    if (h->count == AD_FUSION_OPS) return false;
    if (h->roots < AD_FUSION_FEW || !is_root(op, buffer)) return true;
    if (!s->worker->backend->asynchronous && h->roots_cost < AD_FUSION_FEW_NS) return false;
    return h->roots < AD_FUSION_ROOTS || h->roots_cost < AD_FUSION_ROOTS_NS || ad__fusion_launch_costs_more(s);
}

/* ---- queueing an operation ---- */

static int add_outputs(ad_session *s, const ad_op *op, ad_buffer **buffer) {
    ad_fault fault;
    uint64_t size[AD_MAX_OUT];
    for (int i = 0; i < op->nout; i++) {
        const ad_desc *d = &op->operand[i].desc;
        if (ad__fusion_is_view(&op->operand[i])) continue;
        int status = ad__fresh_size(d, &size[i], &fault);
        if (!status) status = ad__buffers_add(&s->buffers, d->buffer, &buffer[i], &fault);
        if (status) {
            if (i == 1 && !ad__fusion_is_view(&op->operand[0])) ad__buffers_remove(&s->buffers, buffer[0]);
            return status;
        }
        buffer[i]->size = size[i];
        buffer[i]->promised = true;
    }
    return 0;
}

/* Record that operation i uses the buffer by this view. True: the buffer's first use was by an equal view. */
static bool record_use(unsigned i, ad_buffer *b, const ad_desc *d) {
    if (!b->queued++) {
        b->fusing.view = d;
        b->fusing.tie = (int16_t)i;
        b->fusing.leaf = AD_NOWHERE;
        b->fusing.value = 0;
        b->fusing.several = b->fusing.in_place = false;
        return true;
    }
    bool first = ad__desc_same(b->fusing.view, d);
    if (!first) b->fusing.several = true;
    return first;
}

/* Get the number of a view. Only the first view of a buffer is recognised again. */
static int16_t get_leaf(ad_session *s, ad_buffer *b, bool first) {
    if (first && b->fusing.leaf != AD_NOWHERE) return b->fusing.leaf;
    int16_t leaf = (int16_t)s->fusion.leaves++;
    if (first) b->fusing.leaf = leaf;
    return leaf;
}

/* Record the source of input k: a buffer's value, or a scalar (NULL). */
static inline void record_source(ad_session *s, ad_member *m, int k, ad_buffer *b, bool first) {
    m->from[k] = m->leaf[k] = AD_NOWHERE;
    if (!b) m->scalars++;
    else if (b->fusing.value) m->from[k] = (int16_t)(b->fusing.value - 1);
    else m->leaf[k] = get_leaf(s, b, first);
}

static void record_inputs(ad_session *s, unsigned i, const ad_op *op, ad_buffer *const *buffer, ad_member *m) {
    const int n = m->random ? 0 : op->nin;
    for (int k = 0; k < n; k++) {
        ad_buffer *b = buffer[op->nout + k];
        record_source(s, m, k, b, b && record_use(i, b, &op->operand[op->nout + k].desc));
    }
}

/* Record an output's old value as an input, because the operation has a mask; a new output has zeros. Kept out of line:
 * masks are rare. */
static __attribute__((noinline)) void record_old_value(ad_session *s, const ad_op *op, int k, ad_buffer *b, bool first,
                                                       ad_member *m) {
    record_source(s, m, op->nin + k, ad__fusion_is_view(&op->operand[k]) ? b : NULL, first);
}

static void record_outputs(ad_session *s, unsigned i, const ad_op *op, ad_buffer *const *buffer, ad_member *m) {
    for (int k = 0; k < op->nout; k++) {
        const bool exists = ad__fusion_is_view(&op->operand[k]), first = record_use(i, buffer[k], &op->operand[k].desc);
        if (m->masked) record_old_value(s, op, k, buffer[k], first, m);
        if (exists) buffer[k]->fusing.in_place = true;
        buffer[k]->fusing.value = (int16_t)(2 * i + (unsigned)k + 1);
        buffer[k]->fusing.leaf = AD_NOWHERE;
    }
}

/* Make the outputs depend on all unfinished checks of the inputs. */
static void spread_suspects(ad_session *s, const ad_op *op, ad_buffer *const *buffer) {
    uint64_t all = 0;
    if (!s->deferred_checks.count) return;
    for (int i = op->nout; i < op->nout + op->nin; i++)
        if (buffer[i]) all |= ad__deferred_checks_of(s, buffer[i]);
    for (int i = 0; i < op->nout; i++) {
        uint64_t own = ad__fusion_is_view(&op->operand[i]) ? ad__deferred_checks_of(s, buffer[i]) : 0;
        ad__deferred_checks_set(s, buffer[i], all | own);
    }
}

/* Encode function and type; 0: unlike any other. An integer power can fail, and chains fail as a whole. */
static uint32_t encode_kind(const ad_op *op) {
    const char kind = ad__dtypes[op->loop].kind;
    if (op->opcode != AD_REQ_UFUNC || (op->row == AD_UFUNC_power && (kind == 'i' || kind == 'u'))) return 0;
    return ((uint32_t)op->row + 1) << 8 | op->loop;
}

static void init_member(ad_member *m, const ad_fusion_op *queued) {
    const ad_op *op = &queued->op;
    const int masks = queued->masked ? op->nout : 0;
    m->kind = encode_kind(op);
    m->ends = ad__fusion_is_end(op);
    m->random = op->opcode == AD_REQ_CALL && !m->ends;
    m->masked = queued->masked;
    m->nin = m->random ? 0 : (uint8_t)(op->nin + masks);
    m->nout = op->nout;
    m->operands = (uint8_t)(op->nout + op->nin);
    m->scalars = 0;
}

void ad__fusion_append(ad_session *s, ad_stream_queue *queue, const ad_fusion_op *queued) {
    ad_fusion_queue *h = &s->fusion;
    const ad_op *op = &queued->op;
    unsigned i = h->count++;
    ad_member *m = &h->ops->member[i];
    bool root = is_root(op, queued->buffer);
    if (!i) {
        h->stream_queue = queue;
        h->like = *ad__fusion_shape_of(op);
        h->first = queued->number;
        h->leaves = 0;
    }
    if (queued != &h->ops->op[i]) h->ops->op[i] = *queued;
    init_member(m, queued);
    record_inputs(s, i, op, queued->buffer, m);
    record_outputs(s, i, op, queued->buffer, m);
    spread_suspects(s, op, queued->buffer);
    const bool full = root || !s->worker->backend->asynchronous;
    h->cost = ad__size_sum(h->cost, full ? queued->cost : AD_FUSION_NODE_NS);
    h->roots += root;
    h->roots_cost = ad__size_sum(h->roots_cost, root ? queued->cost : 0);
}

/* Find and check the operands. False: the operation or an operand cannot be queued. */
static bool check_candidate(ad_session *s, ad_op *op, job *j) {
    ad__job_begin(j, s, op, s->progress.done + 1);
    if (!(j->stream_queue = ad__stream_queue_current(s, &j->fault)) || ad__job_check(j)) return false;
    return !is_empty(ad__fusion_shape_of(op)) && !is_common(op, j->buffer) && has_clean_writes(op, j->buffer);
}

static const int64_t *copy_numbers(int64_t **to, const int64_t *numbers, int n) {
    int64_t *copy = *to;
    for (int i = 0; i < n; i++) copy[i] = numbers[i];
    *to += n;
    return copy;
}

bool ad__fusion_copy_op(ad_arena *to, ad_op *op) {
    const size_t operands = (size_t)(op->nout + op->nin);
    size_t dims = 0;
    for (size_t i = 0; i < operands; i++) dims += op->operand[i].is_scalar ? 0 : op->operand[i].desc.ndim;
    ad_operand *operand = ad__arena_alloc(to, operands * sizeof *operand + op->nparam * sizeof *op->param +
                                                  2 * dims * sizeof(int64_t) + 1);
    if (!operand) return false;
    ad_scalar *param = (ad_scalar *)(void *)(operand + operands);
    int64_t *numbers = (int64_t *)(void *)(param + op->nparam);
    for (int i = 0; i < op->nparam; i++) param[i] = op->param[i];
    for (size_t i = 0; i < operands; i++) {
        ad_desc *d = &operand[i].desc;
        operand[i] = op->operand[i];
        if (operand[i].is_scalar) continue;
        d->shape = copy_numbers(&numbers, d->shape, d->ndim);
        d->strides = copy_numbers(&numbers, d->strides, d->ndim);
    }
    op->operand = operand;
    op->param = param;
    return true;
}

static bool can_join(ad_session *s, const ad_op *op, const job *j) {
    const bool shaped = ad__fusion_is_end(op) || has_same_shape(&s->fusion.like, ad__fusion_shape_of(op));
    return j->stream_queue == s->fusion.stream_queue && shaped && can_join_operands(s, op, j->buffer);
}

/* Move the operation to the queue's arena, so that the arena of messages can be reused. False: no host memory. */
static bool move_to_arena(ad_session *s, ad_op *op) {
    if (!s->fusion.count) ad__arena_reset(&s->fusion.arena);
    if (!ad__fusion_copy_op(&s->fusion.arena, op)) return false;
    ad__arena_reset(&s->messages.arena);
    return true;
}

/* Tell whether the operation can be queued after a drain that was begun for it. */
static bool can_join_after_drain(ad_session *s, ad_op *op, job *j) {
    if (!check_candidate(s, op, j) || (s->fusion.count && !can_join(s, op, j))) return false;
    if (!s->fusion.count && (ad__fusion_is_end(op) || !has_more_at_hand(s))) return false;
    return move_to_arena(s, op);
}

/* Refuse to queue an operation: it is executed by itself, after all that is queued. */
static ad_fusion_offer refuse_op(ad_session *s) {
    if (ad__fusion_drain(s)) return AD_FUSION_REFUSED;
    s->fusion.way = AD_WAY_ALONE;
    return AD_FUSION_RETRY;
}

static ad_fusion_offer queue_op(ad_session *s, ad_op *op, job *j, bool masked) {
    ad_fusion_queue *h = &s->fusion;
    if (!h->ops && !(h->ops = ad__os.malloc(sizeof *h->ops))) return refuse_op(s);
    if (add_outputs(s, op, j->buffer)) return refuse_op(s);
    ad_fusion_op *queued = &h->ops->op[h->count];
    queued->op = *op;
    queued->number = s->progress.done + 1;
    queued->cost = s->messages.cost;
    queued->masked = masked;
    for (int i = 0; i < op->nout + op->nin; i++) queued->buffer[i] = j->buffer[i];
    ad__fusion_append(s, j->stream_queue, queued);
    return AD_FUSION_QUEUED;
}

static bool is_fusible(const ad_session *s, const ad_op *op, bool *masked) {
    return op->opcode == AD_REQ_UFUNC ? is_fusible_ufunc(op, masked) : ad__fusion_is_eligible(s, op);
}

/* Tell whether queueing is in vain for now, because recent small operations had nothing in common. */
static bool is_in_vain(ad_session *s) {
    ad_fusion_queue *h = &s->fusion;
    if (!h->vain || h->count || s->messages.cost > AD_FUSION_VAIN_NS) return false;
    h->vain--;
    return true;
}

ad_fusion_offer ad__fusion_offer(ad_session *s, ad_op *op) {
    ad_fusion_queue *h = &s->fusion;
    ad_fusion_drain way = h->way;
    bool masked = false;
    job j;
    h->way = AD_WAY_NONE;
    if (way == AD_WAY_ALONE) return AD_FUSION_REFUSED;
    if (!s->worker->fuses || s->checkpoint.suspect.careful || is_in_vain(s) || !is_fusible(s, op, &masked))
        return refuse_op(s);
    if (way == AD_WAY_NONE) {
        if (!h->count && !has_more_at_hand(s)) return refuse_op(s);
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

static void free_unused_buffer(ad_session *s, ad_buffer *b) {
    if (b->promised) s->fusion.unwritten++;
    s->fusion.freed--;
    ad__buffer_free(s, b);
}

void ad__fusion_release_op(ad_session *s, unsigned i) {
    const ad_fusion_op *o = &s->fusion.ops->op[i];
    s->fusion.gone |= UINT64_C(1) << i;
    for (int k = 0; k < o->op.nout + o->op.nin; k++) {
        ad_buffer *b = o->buffer[k];
        if (b && !--b->queued && b->freed) free_unused_buffer(s, b);
    }
}

bool ad__fusion_defer_buffer(ad_session *s, ad_buffer *b) {
    if (!b->queued) return false;
    b->freed = true;
    s->fusion.freed++;
    ad__buffers_detach(&s->buffers, b);
    return true;
}

bool ad__fusion_may_overtake(const ad_session *s, const ad_message *m) {
    if (s->fusion.bytes > AD_FUSION_BYTES) return false;
    if (m->row->flags & AD_R_OVERTAKES) return !s->checkpoint.behind || ad__checkpoint_is_repeatable(m);
    /* A new buffer could lack memory that queued frees would return. */
    return m->row->flags & AD_R_ALLOCATES && !s->fusion.freed && !s->checkpoint.kept.count;
}

int ad__fusion_provide_memory(ad_session *s, ad_stream_queue *queue, ad_buffer *b, ad_fault *fault) {
    uint64_t size = b->size;
    if (!b->promised) return 0;
    b->promised = false;
    b->size = 0;
    int status = ad__buffer_take_memory(s, queue, b, size, false, fault);
    if (!status) return 0;
    b->promised = true;
    b->size = size;
    return status;
}

int ad__fusion_provide_zeros(ad_session *s, ad_stream_queue *queue, ad_buffer *b, ad_fault *fault) {
    const bool promised = b->promised;
    int status = ad__fusion_provide_memory(s, queue, b, fault);
    if (status || !promised || b->block.clean) return status;
    return ad__session_status(s, s->worker->backend->zero(queue->stream, b->address, b->size, fault), fault);
}

static void drop_queue(ad_session *s) {
    for (unsigned i = 0; i < s->fusion.count; i++)
        if (!(s->fusion.gone >> i & 1)) ad__fusion_release_op(s, i);
    s->fusion.count = 0;
    s->fusion.draining = false;
    free(s->fusion.ops);
    ad__arena_free(&s->fusion.arena);
    s->fusion.ops = NULL;
}

const ad_component ad__component_fusion = {.name = "fusion queue", .drop = drop_queue};
