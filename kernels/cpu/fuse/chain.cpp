/* Chains: from nodes to a program of steps, in the order of the nodes. */
#include "kernels/cpu/fuse/chain.h"

#include <algorithm>
#include <stdlib.h>
#include <string.h>

#include "kernels/chain_end.h"
#include "kernels/cpu/ufunc/plan.h"
#include "protocol/desc.h"
#include "protocol/infer.h"
#include "protocol/tables.h"

namespace {

constexpr int64_t GRAIN = 1 << 17; /* elements of one cheap operation worth waking a thread for */
constexpr int64_t LEAST_GRAIN = 2048;
constexpr int64_t RANDOM_WEIGHT = 8;   /* cheap operations that take as long as random numbers */
constexpr int64_t SCRATCH = 128 << 10; /* of all blocks: what stays in the cache of one processor */
constexpr int64_t JUMPS = 256;         /* bytes from one element to the next that waste most of a cache line */
constexpr int64_t ORDERED = 4096;      /* elements worth ordering memory accesses for */

/* A source as some node wants it: after conversion to `middle`, in `dtype`. */
struct wanted {
    ad_source source;
    int middle, dtype;
    int16_t slot;
};

struct maker {
    ad_chain_program *p;
    const ad_chain *chain;
    int nwanted = 0;
    wanted list[3 * AD_CHAIN_NODES];
    int16_t value[AD_CHAIN_NODES][2];    /* slots */
    int16_t input_used[AD_CHAIN_INPUTS]; /* the last step that may read the array itself */
    uint8_t value_dtype[AD_CHAIN_NODES][2];
    bool one[AD_CHAIN_INPUTS];
};

/* ---- slots and steps ---- */

int16_t new_slot(maker *m, int dtype) {
    ad_chain_slot *s = &m->p->slot[m->p->nslots];
    *s = {uint8_t(ad__dtypes[dtype].size), false, -1, int16_t(m->p->nsteps), int16_t(m->p->nsteps), nullptr};
    return int16_t(m->p->nslots++);
}

int16_t new_constant(maker *m, int dtype) {
    const int16_t slot = new_slot(m, dtype);
    m->p->slot[slot].one = true;
    m->p->slot[slot].constant = m->p->constant[m->p->nconstants++];
    return slot;
}

ad_chain_step *new_step(maker *m, int kind) {
    ad_chain_step *s = &m->p->step[m->p->nsteps++];
    s->kind = uint8_t(kind);
    s->nop = 2;
    return s;
}

/* The step under way uses the slot. */
int16_t use(maker *m, int16_t slot) {
    m->p->slot[slot].last = int16_t(m->p->nsteps);
    return slot;
}

/* ---- inputs of nodes ---- */

int16_t make_scalar(maker *m, const ad_scalar *scalar, int middle, int dtype) {
    alignas(16) char value[16];
    const int16_t slot = new_constant(m, dtype);
    ad_scalar_store(scalar, middle, value);
    const ad_cpu_cast cast = ad_cpu_cast_get(m->p->kernels, middle, middle, dtype);
    ad_cpu_cast_run(&cast, m->p->slot[slot].constant, 16, value, 16, 1);
    return slot;
}

int16_t make_loaded(maker *m, int index, int middle, int dtype) {
    ad_chain_array *a = &m->p->input[index];
    const ad_cpu_cast cast = ad_cpu_cast_get(m->p->kernels, a->dtype, middle, dtype);
    if (m->one[index]) {
        const int16_t slot = new_constant(m, dtype);
        ad_cpu_cast_run(&cast, m->p->slot[slot].constant, 16, a->loop.base[0], 16, 1);
        return slot;
    }
    const int16_t slot = new_slot(m, dtype);
    ad_chain_step *s = new_step(m, AD_STEP_LOAD);
    s->operand = int16_t(index);
    s->slot[0] = slot;
    s->cast = cast;
    s->plain = a->dtype == dtype && middle == dtype;
    return slot;
}

int16_t make_cast(maker *m, int16_t from, int stored, int middle, int dtype) {
    if (stored == dtype && middle == dtype) return from;
    const int16_t slot = new_slot(m, dtype);
    use(m, from);
    ad_chain_step *s = new_step(m, AD_STEP_CAST);
    s->slot[0] = slot;
    s->slot[1] = from;
    s->cast = ad_cpu_cast_get(m->p->kernels, stored, middle, dtype);
    return slot;
}

/* Numbers of a random source, always in its own type. */
int16_t make_random(maker *m, int index) {
    const int16_t slot = new_slot(m, m->chain->random[index].loop);
    ad_chain_step *s = new_step(m, AD_STEP_RANDOM);
    s->operand = int16_t(index);
    s->slot[0] = slot;
    return slot;
}

/* The slot of a source in a form; made by steps of its own unless it is there already. */
int16_t find_source(maker *m, ad_source source, int middle, int dtype) {
    for (int i = 0; i < m->nwanted && source.kind != AD_SOURCE_SCALAR; i++) {
        const wanted *w = &m->list[i];
        if (memcmp(&w->source, &source, sizeof source) == 0 && w->middle == middle && w->dtype == dtype) return w->slot;
    }
    const int i = source.index;
    const int16_t slot = source.kind == AD_SOURCE_SCALAR  ? make_scalar(m, &m->chain->scalar[i], middle, dtype)
                         : source.kind == AD_SOURCE_INPUT ? make_loaded(m, i, middle, dtype)
                         : source.kind == AD_SOURCE_RANDOM
                             ? make_random(m, i)
                             : make_cast(m, m->value[i][source.part], m->value_dtype[i][source.part], middle, dtype);
    m->list[m->nwanted++] = {source, middle, dtype, slot};
    return slot;
}

/* A step that is about to be made reads the source by this slot. */
int16_t read(maker *m, ad_source source, int16_t slot) {
    if (source.kind == AD_SOURCE_INPUT) m->input_used[source.index] = int16_t(m->p->nsteps);
    return use(m, slot);
}

/* ---- nodes ---- */

void make_copy(maker *m, int i) {
    const ad_chain_node *n = &m->chain->node[i];
    const int16_t from = find_source(m, n->source[0], n->loop, n->dtype[0]);
    if (n->source[0].kind == AD_SOURCE_RANDOM) { /* nobody else has these */
        m->value[i][0] = from;
        return;
    }
    const int16_t slot = new_slot(m, n->dtype[0]);
    read(m, n->source[0], from);
    ad_chain_step *s = new_step(m, AD_STEP_CAST);
    s->slot[0] = m->value[i][0] = slot;
    s->slot[1] = from;
    s->cast = ad_cpu_cast_get(m->p->kernels, n->dtype[0], n->dtype[0], n->dtype[0]);
}

void make_kernel(maker *m, int i, ad_ufunc_kernel kernel, int compute) {
    const ad_chain_node *n = &m->chain->node[i];
    const ad_rule_row *rule = &ad__rules[ad__ufunc(n->row)->rule];
    int16_t slot[5];
    unsigned scalars = 0;
    for (int k = 0; k < n->nin; k++) {
        const int code = rule->in[k];
        slot[n->nout + k] = find_source(m, n->source[k], ad__code_dtype(code, n->loop), ad__code_dtype(code, compute));
        if (m->p->slot[slot[n->nout + k]].one || m->p->count == 1) scalars |= 1u << k; /* as an operation by itself */
    }
    for (int k = 0; k < n->nout; k++) slot[k] = new_slot(m, ad__code_dtype(rule->out[k], compute));
    for (int k = 0; k < n->nin; k++) read(m, n->source[k], slot[n->nout + k]);
    ad_chain_step *s = new_step(m, AD_STEP_RUN);
    s->nop = uint8_t(n->nout + n->nin);
    s->scalars = uint8_t(scalars);
    s->kernel = kernel;
    memcpy(s->slot, slot, sizeof slot);
    for (int k = 0; k < n->nout; k++)
        m->value[i][k] = make_cast(m, slot[k], ad__code_dtype(rule->out[k], compute),
                                   ad__code_dtype(rule->out[k], n->loop), n->dtype[k]);
}

void make_nodes(maker *m) {
    int64_t weight = 0;
    for (int i = 0; i < m->chain->nnodes; i++) {
        const ad_chain_node *n = &m->chain->node[i];
        ad_ufunc_kernel kernel;
        const int compute = ad_ufunc_choose(m->p->kernels, n->row, n->loop, &kernel);
        for (int k = 0; k < n->nout; k++) m->value_dtype[i][k] = n->dtype[k];
        if (kernel) make_kernel(m, i, kernel, compute);
        else make_copy(m, i);
        weight += n->source[0].kind == AD_SOURCE_RANDOM ? RANDOM_WEIGHT : GRAIN / ad_ufunc_grain(n->row);
    }
    m->p->grain = std::max(LEAST_GRAIN, GRAIN / weight);
}

/* ---- arrays ---- */

void make_array(ad_chain_array *a, const ad_loop_wide *all, int k, int dtype) {
    a->dtype = uint8_t(dtype);
    a->size = ad__dtypes[dtype].size;
    a->loop.ndim = all->ndim;
    a->loop.nop = 1;
    a->loop.base[0] = all->base[k];
    memcpy(a->loop.shape, all->shape, size_t(all->ndim) * sizeof *all->shape);
    memcpy(a->loop.stride[0], all->stride[k], size_t(all->ndim) * sizeof *all->shape);
    ad_loop_join(&a->loop);
    a->dense = a->loop.ndim == 1 && (a->loop.stride[0][0] == a->size || a->loop.shape[0] == 1);
    a->home = false;
}

void add_views(ad_loop_wide *all, const ad_chain *chain) {
    for (int i = 0; i < chain->noutputs; i++) {
        const ad_operand *o = &chain->output[i].view;
        ad_loop_add(all, o->data, o->desc.ndim, o->desc.shape, o->desc.strides);
    }
    for (int i = 0; i < chain->ninputs; i++) {
        const ad_operand *o = &chain->input[i];
        ad_loop_add(all, o->data, o->desc.ndim, o->desc.shape, o->desc.strides);
    }
}

/* An array of the chain's shape whose elements lie in row-major order: as the first it makes the others follow it. */
void add_order(ad_loop_wide *all, const ad_chain *chain, void *data, int64_t size) {
    int64_t strides[AD_MAX_NDIM];
    ad__strides_contiguous(chain->ndim, chain->shape, size, strides);
    ad_loop_add(all, data, chain->ndim, chain->shape, strides);
}

/* Add the order of a dimension that there is not. */
void add_order(ad_loop_wide *all, const ad_chain *chain) {
    static char nothing;
    add_order(all, chain, &nothing, 1);
}

/* All views in one order of elements. The operand of the end comes first. */
void make_loop(ad_loop_wide *all, const ad_chain *chain, const ad_operand *value) {
    ad_loop_init(all, chain->ndim, chain->shape);
    if (chain->nrandoms) add_order(all, chain);
    if (value) add_order(all, chain, value->data, ad__dtypes[value->desc.dtype].size);
    add_views(all, chain);
    ad_loop_optimize(all);
}

void make_arrays(maker *m, const ad_loop_wide *all, const ad_operand *value) {
    ad_chain_program *p = m->p;
    const ad_chain *c = m->chain;
    int k = c->nrandoms > 0;
    const bool extra = value != nullptr;
    p->noutputs = c->noutputs + extra;
    p->ninputs = c->ninputs;
    if (value) make_array(&p->output[0], all, k++, value->desc.dtype);
    for (int i = 0; i < c->noutputs; i++) make_array(&p->output[extra + i], all, k++, c->output[i].view.desc.dtype);
    for (int i = 0; i < c->ninputs; i++, k++) {
        make_array(&p->input[i], all, k, c->input[i].desc.dtype);
        m->one[i] = ad_loop_is_scalar(all, k);
        m->input_used[i] = -1;
    }
}

/* No input that is read later lies where the output does: they would be the same view. */
bool may_be_home(const maker *m, const ad_chain_array *a, const ad_operand *view) {
    for (int i = 0; view && i < m->chain->ninputs; i++)
        if (m->chain->input[i].data == view->data && m->input_used[i] > m->p->slot[a->slot].first) return false;
    return true;
}

int16_t value_slot(maker *m, const ad_operand *value) {
    const int dtype = value->desc.dtype;
    return find_source(m, m->chain->end.from, dtype, dtype);
}

void make_outputs(maker *m, const ad_operand *value) {
    ad_chain_program *p = m->p;
    for (int i = 0; i < p->noutputs; i++) {
        ad_chain_array *a = &p->output[i];
        const ad_chain_output *o = value && i == 0 ? nullptr : &m->chain->output[i - (value != nullptr)];
        a->slot = o ? m->value[o->from.index][o->from.part] : value_slot(m, value);
        a->home = may_be_home(m, a, o ? &o->view : nullptr);
        for (int j = 0; j < i; j++)
            if (p->output[j].slot == a->slot && p->output[j].home) a->home = false;
        use(m, a->slot);
    }
}

/* ---- blocks ---- */

/* A block is used again when what it holds has been read for the last time. */
void assign_blocks(ad_chain_program *p) {
    int16_t idle[AD_CHAIN_SLOTS];
    int nidle = 0, next = 0;
    int64_t widest = 1;
    int16_t ends[AD_CHAIN_SLOTS]; /* slots in the order in which they end: a list for each step */
    int16_t head[AD_CHAIN_SLOTS + 1];
    p->nblocks = 0;
    std::fill(head, head + p->nsteps + 1, int16_t(-1));
    for (int i = 0; i < p->nslots; i++) {
        ends[i] = head[p->slot[i].last];
        head[p->slot[i].last] = int16_t(i);
        widest = std::max<int64_t>(widest, p->slot[i].size);
    }
    for (int step = 0; step <= p->nsteps; step++) {
        for (; next < p->nslots && p->slot[next].first <= step; next++)
            if (!p->slot[next].one) p->slot[next].block = nidle ? idle[--nidle] : int16_t(p->nblocks++);
        for (int16_t i = head[step]; i >= 0; i = ends[i])
            if (!p->slot[i].one && i < next) idle[nidle++] = p->slot[i].block;
    }
    const int64_t most = SCRATCH / std::max(p->nblocks, 1) / AD_CHAIN_BLOCK * AD_CHAIN_BLOCK;
    p->block_bytes = std::clamp(most, int64_t(AD_CHAIN_BLOCK), int64_t(AD_BLOCK_BYTES));
    p->block = p->block_bytes / widest;
}

/* Check the parameters. An operation with bad ones runs by itself, and says what is wrong. */
bool has_good_randoms(const ad_chain *chain) {
    ad::random_source r;
    for (int i = 0; i < chain->nrandoms; i++) {
        ad::random_open_source(&r, &chain->random[i]);
        if (ad::random_wrong_values(&r) != 0) return false;
    }
    return true;
}

/* Decline some chains for tests: a GPU declines what has not been compiled yet. */
bool is_declined(const ad_chain *chain) {
    static const bool declines = getenv("ARRAYD_CPU_DECLINES") != nullptr;
    return declines && chain->nnodes % 3 > 0;
}

} // namespace

bool ad_cpu_chain_suits(const ad_chain *chain) {
    ad_loop_wide all;
    if (is_declined(chain)) return false;
    const bool scan = ad_chain_end_scans(chain->end.op);
    if (chain->nnodes + scan < 2 || !has_good_randoms(chain) || (scan && ad_chain_keeps(chain))) return false;
    ad_loop_init(&all, chain->ndim, chain->shape);
    if (chain->nrandoms || scan) add_order(&all, chain);
    add_views(&all, chain);
    if (all.nop == 0) return false;
    ad_loop_optimize(&all);
    /* An operation by itself takes arrays that lie across each other in tiles. */
    if (ad_loop_count(&all) < ORDERED) return true;
    for (int k = 0; k < all.nop; k++)
        if (all.ndim > 1 && llabs(all.stride[k][all.ndim - 1]) >= JUMPS) return false;
    return true;
}

void ad_cpu_chain_plan(ad_chain_program *p, const ad_chain *chain, const ad_operand *value) {
    ad_loop_wide all;
    maker m;
    m.p = p;
    m.chain = chain;
    p->kernels = ad_cpu_kernels_get();
    p->nsteps = p->nslots = p->nconstants = 0;
    for (int i = 0; i < chain->nrandoms; i++) ad::random_open_source(&p->random[i], &chain->random[i]);
    make_loop(&all, chain, value);
    p->count = ad_loop_count(&all);
    make_arrays(&m, &all, value);
    make_nodes(&m);
    make_outputs(&m, value);
    assign_blocks(p);
}
