/* Chains: running their programs, block by block, on all threads. */
#include <new>
#include <string.h>

#include "kernels/cpu/call_random.h"
#include "kernels/cpu/chain.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/ufunc_plan.h"
#include "protocol/tables.h"

namespace {

/* What one thread has at hand. */
struct work {
    const ad_chain_program *p;
    char *blocks;
    char *at[AD_CHAIN_SLOTS];          /* where each slot's elements are now */
    bool filled[AD_CHAIN_OUTPUTS + 1]; /* the output's elements have been made in it */
};

/* Where elements begin..begin+n lie in a row; NULL: they do not. */
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
        char *row = a->home ? in_a_row(a, begin, n) : nullptr;
        w->filled[i] = row != nullptr;
        if (a->home) w->at[a->slot] = row ? row : w->blocks + p->slot[a->slot].block * p->block_bytes;
    }
    for (int i = 0; i < p->nsteps; i++) step(w, &p->step[i], begin, n);
    for (int i = 0; i < p->noutputs; i++)
        if (!w->filled[i]) store(w, &p->output[i], begin, n);
}

void run_range(const ad_chain_program *p, char *blocks, int64_t begin, int64_t end) {
    work w;
    w.p = p;
    w.blocks = blocks;
    for (int i = 0; i < p->nslots; i++)
        w.at[i] = p->slot[i].one ? p->slot[i].constant : blocks + p->slot[i].block * p->block_bytes;
    for (int64_t i = begin; i < end; i += p->block) run_block(&w, i, end - i < p->block ? end - i : p->block);
}

/* The value that the chain's end reduces, in memory of its own. */
int run_with_end(const ad_chain *chain, ad_run *run, ad_chain_program *p, ad_stream *stream, ad_fault *fault) {
    ad_op op = *chain->end.op;
    ad_operand operand[2] = {op.operand[0], op.operand[1]};
    int64_t count = 1;
    for (int d = 0; d < chain->ndim; d++) count *= chain->shape[d];
    void *value = run->workspace(run, uint64_t(count) * ad__dtypes[operand[1].desc.dtype].size);
    if (!value) return 0; /* one by one they may yet find room */
    ad_cpu_chain_plan(p, chain, value);
    ad_cpu_chain_run(p);
    operand[1].data = value;
    op.operand = operand;
    int rc = ad_cpu_reduce(stream, &op, run, fault);
    return rc < 0 ? rc : 1;
}

} // namespace

void ad_cpu_chain_run(const ad_chain_program *p) {
    ad_cpu_parallel(p->count, p->grain, [p](int64_t begin, int64_t end) {
        alignas(64) char blocks[AD_CHAIN_SLOTS * AD_CHAIN_BLOCK]; /* of which as much is touched as the program has */
        run_range(p, blocks, begin, end);
    });
}

int ad_cpu_fuse(ad_stream *stream, const ad_chain *chain, ad_run *run, ad_fault *fault) {
    ad_chain_program p;
    for (int i = 0; i < chain->noutputs; i++)
        if (chain->output[i].view.desc.form == AD_VIEW) run->wrote = true;
    if (chain->end.op) return run_with_end(chain, run, &p, stream, fault);
    ad_cpu_chain_plan(&p, chain, nullptr);
    ad_cpu_chain_run(&p);
    return 1;
}
