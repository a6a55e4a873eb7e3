#include "server/worker/fusion/chain_build.h"

#include <string.h>

#include "protocol/desc.h"
#include "protocol/infer.h"
#include "protocol/rows_ufunc.h"
#include "server/worker/fusion/entries.h"

#define NOT_HERE 0xff /* kind of a source: the value is not made in this chain */

static ad_source add_scalar(ad_chain_builder *w, ad_scalar scalar) {
    w->chain.scalar[w->chain.nscalars] = scalar;
    return (ad_source){AD_SOURCE_SCALAR, (uint8_t)w->chain.nscalars++, 0};
}

/* Add input k of operation i, which is operand `index` of it. */
static ad_source add_input(ad_chain_builder *w, unsigned i, int k, int index) {
    const ad_fusion_op *o = &w->ops->op[i];
    const ad_member *m = &w->ops->member[i];
    const ad_operand *operand = &o->op.operand[index];
    int from = m->from[k];
    if (operand->is_scalar) return add_scalar(w, operand->scalar);
    if (from != AD_NOWHERE && w->value[from].kind != NOT_HERE) return w->value[from];
    int16_t *place = &w->input[from == AD_NOWHERE ? m->leaf[k] : AD_FUSION_LEAVES + from];
    if (*place == AD_NOWHERE) {
        *place = (int16_t)w->chain.ninputs++;
        w->chain.input[*place] = *operand;
        w->read[*place] = o->buffer[index];
    }
    return (ad_source){AD_SOURCE_INPUT, (uint8_t)*place, 0};
}

static void add_output(ad_chain_builder *w, const ad_operand *view, ad_buffer *b, ad_source from) {
    w->chain.output[w->chain.noutputs++] = (ad_chain_output){*view, from};
    w->written[w->nwritten++] = b;
}

static ad_source refer_to_node(const ad_chain_builder *w, const ad_chain_node *n, int part) {
    return (ad_source){AD_SOURCE_NODE, (uint8_t)(n - w->chain.node), (uint8_t)part};
}

/* Add nodes that keep the outputs' old values where the mask is false. */
static void add_masks(ad_chain_builder *w, unsigned i, const ad_chain_node *of) {
    const ad_op *op = &w->ops->op[i].op;
    const ad_source mask = add_input(w, i, op->nin - 1, op->nout + op->nin - 1);
    for (int k = 0; k < op->nout; k++) {
        const uint8_t dtype = op->operand[k].desc.dtype;
        ad_chain_node *n = &w->chain.node[w->chain.nnodes++];
        *n = (ad_chain_node){.row = AD_UFUNC_where, .loop = dtype, .nin = 3, .nout = 1, .dtype = {dtype}};
        n->source[0] = mask;
        n->source[1] = refer_to_node(w, of, k);
        n->source[2] = ad__fusion_is_view(&op->operand[k]) ? add_input(w, i, op->nin + k, k)
                                                           : add_scalar(w, (ad_scalar){.kind = AD_SCALAR_BOOL});
        w->value[2 * i + (unsigned)k] = refer_to_node(w, n, 0);
    }
}

static void add_random(ad_chain_builder *w, const ad_op *op, ad_chain_node *n) {
    ad_chain_random *r = &w->chain.random[w->chain.nrandoms];
    *r = (ad_chain_random){.id = (uint8_t)op->param[0].as.i,
                           .loop = op->loop,
                           .key = (uint64_t)op->param[1].as.i,
                           .first = (uint64_t)op->param[2].as.i};
    for (int k = 0; k < op->nin; k++) r->parameter[k] = op->operand[op->nout + k].scalar;
    n->row = AD_UFUNC_copy;
    n->nin = 1;
    n->source[0] = (ad_source){AD_SOURCE_RANDOM, (uint8_t)w->chain.nrandoms++, 0};
}

static void add_node(ad_chain_builder *w, unsigned i) {
    const ad_op *op = &w->ops->op[i].op;
    const ad_member *m = &w->ops->member[i];
    ad_chain_node *n = &w->chain.node[w->chain.nnodes++];
    *n = (ad_chain_node){.row = op->row, .loop = op->loop, .nin = (uint8_t)(op->nin - m->masked), .nout = op->nout};
    if (m->random) add_random(w, op, n);
    else
        for (int k = 0; k < n->nin; k++) n->source[k] = add_input(w, i, k, op->nout + k);
    for (int k = 0; k < op->nout; k++) {
        n->dtype[k] = op->operand[k].desc.dtype;
        w->value[2 * i + (unsigned)k] = refer_to_node(w, n, k);
    }
    if (m->masked) add_masks(w, i, n);
}

static void add_end(ad_chain_builder *w, unsigned i) {
    const ad_fusion_op *o = &w->ops->op[i];
    int from = w->ops->member[i].from[0];
    w->end_op = o->op;
    w->end_op.operand = w->end_operand;
    w->end_operand[0] = o->op.operand[0];
    w->end_operand[1] = o->op.operand[1];
    w->end_operand[1].data = NULL;
    w->end_operand[1].desc.strides = w->strides;
    const ad_desc *d = &w->end_operand[1].desc;
    ad__strides_contiguous(d->ndim, d->shape, ad__dtypes[d->dtype].size, w->strides);
    w->chain.end.op = &w->end_op;
    w->chain.end.from = w->value[from];
    w->written[w->nwritten++] = o->buffer[0];
}

/* Tell whether an output is written to memory. An end that runs by itself (`apart`) reads its operand from there. */
static bool is_written(const ad_chain_builder *w, unsigned i, int k, int apart) {
    if (w->groups->kept[2 * i + (unsigned)k]) return true;
    return apart != AD_NOWHERE && w->ops->member[apart].from[0] == (int)(2 * i) + k;
}

/* Find the shape of the operations of the chain: that of the first one which is not its end. */
static const ad_desc *find_shape(const ad_chain_builder *w) {
    unsigned at = 0;
    while (at + 1 < w->count && w->ops->member[w->order[at]].ends) at++;
    return ad__fusion_shape_of(&w->ops->op[w->order[at]].op);
}

/* Outputs are added after all nodes: a buffer written twice then gets the last value, which is the final one. */
void ad__chain_build(ad_chain_builder *w, int apart) {
    const ad_desc *like = find_shape(w);
    w->chain.ndim = like->ndim;
    w->chain.shape = like->shape;
    w->chain.nnodes = w->chain.ninputs = w->chain.nscalars = w->chain.noutputs = w->chain.nrandoms = w->nwritten = 0;
    w->chain.end.op = NULL;
    memset(w->value, NOT_HERE, sizeof w->value);
    memset(w->input, 0xff, sizeof w->input);
    for (unsigned at = 0; at < w->count; at++)
        if (!w->ops->member[w->order[at]].ends) add_node(w, w->order[at]);
    for (unsigned at = 0; at < w->count; at++) {
        unsigned i = w->order[at];
        const ad_fusion_op *o = &w->ops->op[i];
        for (int k = 0; k < o->op.nout && !w->ops->member[i].ends; k++)
            if (is_written(w, i, k, apart))
                add_output(w, &o->op.operand[k], o->buffer[k], w->value[2 * i + (unsigned)k]);
    }
    if (w->end != AD_NOWHERE && apart == AD_NOWHERE) add_end(w, (unsigned)w->end);
}
