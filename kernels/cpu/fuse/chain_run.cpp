/* Chains: running their programs, block by block, on all threads. */
#include <new>
#include <string.h>

#include "kernels/chain_end.h"
#include "kernels/cpu/call/random.h"
#include "kernels/cpu/call/scan.h"
#include "kernels/cpu/fuse/chain.h"
#include "kernels/cpu/backend/parallel.h"
#include "kernels/cpu/ufunc/plan.h"
#include "protocol/desc.h"
#include "protocol/tables.h"

namespace {

/* The state of one thread. */
struct work {
    const ad_chain_program *p;
    char *blocks;
    char *value; /* where output 0 has element `first`; NULL: where the program says */
    int64_t first;
    char *at[AD_CHAIN_SLOTS];          /* where each slot's elements are now */
    bool filled[AD_CHAIN_OUTPUTS + 1]; /* the output's elements have been made in it */
};

/* Get the address of elements begin..begin+n where they lie in a row; NULL: they do not. */
char *in_a_row(const ad_chain_array *a, int64_t begin, int64_t n) {
    if (a->dense) return a->loop.base[0] + begin * a->size;
    const int last = a->loop.ndim - 1;
    const int64_t inner = a->loop.shape[last];
    if (a->loop.stride[0][last] != a->size || begin % inner + n > inner) return nullptr;
    char *at = nullptr;
    ad_loop_walk(&a->loop, begin, begin + n, [&](char *const *q, int64_t) { at = q[0]; });
    return at;
}

void load(work *w, const ad_chain_step *s, int64_t begin, int64_t n) {
    const ad_chain_array *a = &w->p->input[s->operand];
    const ad_chain_slot *slot = &w->p->slot[s->slot[0]];
    char *to = w->blocks + slot->block * w->p->block_bytes;
    w->at[s->slot[0]] = to;
    char *row = s->plain ? in_a_row(a, begin, n) : nullptr;
    if (row) {
        w->at[s->slot[0]] = row;
        return;
    }
    const int64_t stride = a->loop.stride[0][a->loop.ndim - 1];
    ad_loop_walk(&a->loop, begin, begin + n, [&](char *const *q, int64_t m) {
        ad_cpu_cast_run(&s->cast, to, slot->size, q[0], stride, m);
        to += m * slot->size;
    });
}

void store(const work *w, const ad_chain_array *a, int64_t begin, int64_t n) {
    const char *from = w->at[a->slot];
    const int64_t stride = a->loop.stride[0][a->loop.ndim - 1];
    ad_cast_kernel copy = w->p->kernels->cast[a->dtype][a->dtype];
    ad_loop_walk(&a->loop, begin, begin + n, [&](char *const *q, int64_t m) {
        copy(q[0], stride, from, a->size, m);
        from += m * a->size;
    });
}

void step(work *w, const ad_chain_step *s, int64_t begin, int64_t n) {
    const ad_chain_slot *slot = w->p->slot;
    void *q[5];
    switch (s->kind) {
    case AD_STEP_LOAD: load(w, s, begin, n); return;
    case AD_STEP_RANDOM:
        ad_cpu_random_make(&w->p->random[s->operand], begin, n, static_cast<char *>(w->at[s->slot[0]]));
        return;
    case AD_STEP_CAST:
        ad_cpu_cast_run(&s->cast, w->at[s->slot[0]], slot[s->slot[0]].size, w->at[s->slot[1]],
                        slot[s->slot[1]].one ? 0 : slot[s->slot[1]].size, n);
        return;
    default:
        for (int k = 0; k < s->nop; k++) q[k] = w->at[s->slot[k]];
        s->kernel(q, s->scalars, n);
    }
}

/* Elements begin..begin+n, at most a block. */
void run_block(work *w, int64_t begin, int64_t n) {
    const ad_chain_program *p = w->p;
    for (int i = 0; i < p->noutputs; i++) {
        const ad_chain_array *a = &p->output[i];
        char *row = i == 0 && w->value ? w->value + (begin - w->first) * a->size
                    : a->home          ? in_a_row(a, begin, n)
                                       : nullptr;
        w->filled[i] = row != nullptr;
        if (a->home) w->at[a->slot] = row ? row : w->blocks + p->slot[a->slot].block * p->block_bytes;
    }
    for (int i = 0; i < p->nsteps; i++) step(w, &p->step[i], begin, n);
    for (int i = 0; i < p->noutputs; i++)
        if (!w->filled[i]) store(w, &p->output[i], begin, n);
}

/* Run a range. value: where output 0 goes; NULL: where the program says. */
void run_range(const ad_chain_program *p, int64_t begin, int64_t end, char *value) {
    alignas(64) char blocks[AD_CHAIN_SLOTS * AD_CHAIN_BLOCK]; /* of which as much is touched as the program has */
    work w;
    w.p = p;
    w.blocks = blocks;
    w.value = value;
    w.first = begin;
    for (int i = 0; i < p->nslots; i++)
        w.at[i] = p->slot[i].one ? p->slot[i].constant : blocks + p->slot[i].block * p->block_bytes;
    for (int64_t i = begin; i < end; i += p->block) run_block(&w, i, end - i < p->block ? end - i : p->block);
}

/* The chain's end, with an input of its own. */
struct end_op {
    ad_op op;
    ad_operand operand[2];
    explicit end_op(const ad_op *end) : op(*end), operand{end->operand[0], end->operand[1]} { op.operand = operand; }
};

/* The value that the chain's end takes, in memory of its own, or in the end's output. */
int run_with_end(const ad_chain *chain, ad_run *run, ad_chain_program *p, ad_stream *stream, ad_fault *fault) {
    end_op end(chain->end.op);
    ad_operand *value = &end.operand[1];
    const bool scan = ad_chain_end_scans(&end.op);
    int64_t count = 1;
    for (int d = 0; d < chain->ndim; d++) count *= chain->shape[d];
    value->data = ad_cpu_scan_stays(&end.op)
                      ? end.operand[0].data
                      : run->workspace(run, uint64_t(count) * ad__dtypes[value->desc.dtype].size);
    if (!value->data) return 0; /* one by one they may yet find room */
    ad_cpu_chain_plan(p, chain, value);
    ad_cpu_chain_run(p);
    int status = scan ? ad__call_run(stream, &end.op, run, fault) : ad_cpu_reduce(stream, &end.op, run, fault);
    return status ? status : 1;
}

/* A scan that has elements made where it would read them, as its own type. */
int run_scan(const ad_chain *chain, ad_run *run, ad_chain_program *p, ad_stream *stream, ad_fault *fault) {
    end_op end(chain->end.op);
    ad_desc *d = &end.operand[1].desc;
    int64_t strides[AD_MAX_NDIM];
    d->dtype = end.op.loop;
    d->strides = strides;
    ad__strides_contiguous(d->ndim, d->shape, ad__dtypes[d->dtype].size, strides);
    ad_cpu_chain_plan(p, chain, &end.operand[1]);
    ad_call c = {stream, &end.op, run, fault};
    int status = ad_cpu_scan(&c, p);
    return status ? status : 1;
}

} // namespace

void ad_cpu_chain_run(const ad_chain_program *p) {
    ad_cpu_parallel(p->count, p->grain, [p](int64_t begin, int64_t end) { run_range(p, begin, end, nullptr); });
}

void ad_cpu_chain_make(const ad_chain_program *p, int64_t begin, int64_t end, void *to) {
    run_range(p, begin, end, static_cast<char *>(to));
}

int ad_cpu_fuse(ad_stream *stream, const ad_chain *chain, ad_run *run, ad_fault *fault) {
    ad_chain_program p;
    for (int i = 0; i < chain->noutputs; i++)
        if (chain->output[i].view.desc.form == AD_VIEW) run->wrote = true;
    if (chain->end.op && chain->noutputs == 0 && ad_cpu_scan_takes(chain->end.op))
        return run_scan(chain, run, &p, stream, fault);
    if (chain->end.op) return run_with_end(chain, run, &p, stream, fault);
    ad_cpu_chain_plan(&p, chain, nullptr);
    ad_cpu_chain_run(&p);
    return 1;
}
