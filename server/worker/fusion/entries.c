/* The operations of the fusion queue: which values and buffers they use, and their memory. */
#include "server/worker/fusion/entries.h"

#include "protocol/desc.h"
#include "protocol/rows_request.h"
#include "protocol/rows_ufunc.h"
#include "protocol/size.h"
#include "server/worker/checkpoint/buffer_free.h"
#include "server/worker/exec/job.h"

bool ad__fusion_launch_costs_more(const ad_worker_session *s) {
    return s->worker->backend->asynchronous && ad__desc_count(&s->fusion.like) <= AD_FUSION_SMALL;
}

/* ---- adding an operation ---- */

bool ad__fusion_is_root(const ad_op *op, ad_buffer *const *buffer) {
    for (int i = op->nout; i < op->nout + op->nin; i++)
        if (buffer[i] && buffer[i]->queued && buffer[i]->fusing.value) return false;
    return true;
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
static int16_t get_leaf(ad_worker_session *s, ad_buffer *b, bool first) {
    if (first && b->fusing.leaf != AD_NOWHERE) return b->fusing.leaf;
    int16_t leaf = (int16_t)s->fusion.leaves++;
    if (first) b->fusing.leaf = leaf;
    return leaf;
}

/* Record the source of input k: a buffer's value, or a scalar (NULL). */
static inline void record_source(ad_worker_session *s, ad_member *m, int k, ad_buffer *b, bool first) {
    m->from[k] = m->leaf[k] = AD_NOWHERE;
    if (!b) m->scalars++;
    else if (b->fusing.value) m->from[k] = (int16_t)(b->fusing.value - 1);
    else m->leaf[k] = get_leaf(s, b, first);
}

static void record_inputs(ad_worker_session *s, unsigned i, const ad_op *op, ad_buffer *const *buffer, ad_member *m) {
    const int n = m->random ? 0 : op->nin;
    for (int k = 0; k < n; k++) {
        ad_buffer *b = buffer[op->nout + k];
        record_source(s, m, k, b, b && record_use(i, b, &op->operand[op->nout + k].desc));
    }
}

/* Record an output's old value as an input, because the operation has a mask; a new output has zeros. Kept out of line:
 * masks are rare. */
static __attribute__((noinline)) void record_old_value(ad_worker_session *s, const ad_op *op, int k, ad_buffer *b,
                                                       bool first, ad_member *m) {
    record_source(s, m, op->nin + k, ad__fusion_is_view(&op->operand[k]) ? b : NULL, first);
}

static void record_outputs(ad_worker_session *s, unsigned i, const ad_op *op, ad_buffer *const *buffer, ad_member *m) {
    for (int k = 0; k < op->nout; k++) {
        const bool exists = ad__fusion_is_view(&op->operand[k]), first = record_use(i, buffer[k], &op->operand[k].desc);
        if (m->masked) record_old_value(s, op, k, buffer[k], first, m);
        if (exists) buffer[k]->fusing.in_place = true;
        buffer[k]->fusing.value = (int16_t)(2 * i + (unsigned)k + 1);
        buffer[k]->fusing.leaf = AD_NOWHERE;
    }
}

/* Make the outputs depend on all unfinished checks of the inputs. */
static void spread_suspects(ad_worker_session *s, const ad_op *op, ad_buffer *const *buffer) {
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
    m->stream_queue = queued->stream_queue;
    m->scalars = 0;
}

void ad__fusion_append(ad_worker_session *s, const ad_fusion_op *queued) {
    ad_fusion_queue *h = &s->fusion;
    const ad_op *op = &queued->op;
    unsigned i = h->count++;
    ad_member *m = &h->ops->member[i];
    bool root = ad__fusion_is_root(op, queued->buffer);
    if (!i) {
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

/* ---- removing one ---- */

static void free_unused_buffer(ad_worker_session *s, ad_buffer *b) {
    if (b->promised) s->fusion.unwritten++;
    s->fusion.freed--;
    ad__buffer_free(s, b);
}

void ad__fusion_release_op(ad_worker_session *s, unsigned i) {
    const ad_fusion_op *o = &s->fusion.ops->op[i];
    s->fusion.gone |= UINT64_C(1) << i;
    for (int k = 0; k < o->op.nout + o->op.nin; k++) {
        ad_buffer *b = o->buffer[k];
        if (b && !--b->queued && b->freed) free_unused_buffer(s, b);
    }
}

/* ---- memory ---- */

int ad__fusion_provide_memory(ad_worker_session *s, ad_stream_queue *queue, ad_buffer *b, ad_fault *fault) {
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

int ad__fusion_provide_zeros(ad_worker_session *s, ad_stream_queue *queue, ad_buffer *b, ad_fault *fault) {
    const bool promised = b->promised;
    int status = ad__fusion_provide_memory(s, queue, b, fault);
    if (status || !promised || b->block.clean) return status;
    return ad__session_status(s, s->worker->backend->zero(queue->stream, b->address, b->size, fault), fault);
}
