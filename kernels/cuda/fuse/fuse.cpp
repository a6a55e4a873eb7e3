/* Chains of elementwise operations: launched as one kernel where there is one. */
#include <new>
#include <string.h>

#include "kernels/call.h"
#include "kernels/chain_end.h"
#include "kernels/cuda/call/scan/plan.h"
#include "kernels/cuda/fuse/cache.h"
#include "kernels/cuda/reduce/plan.h"
#include "kernels/random_call.h"

namespace {

constexpr int END_OPERANDS = 4; /* of a reduction: its output, its input, a mask, and one to spare */

/* The kernel may begin before the one ahead of it has ended, and waits by itself, as in ad_ufunc_launch. */
int launch(ad_stream *stream, cudaKernel_t kernel, unsigned blocks, void *argument, ad_fault *fault) {
    void *arguments[] = {argument};
    cudaLaunchAttribute early;
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(blocks);
    config.blockDim = dim3(AD_FUSE_THREADS);
    config.stream = stream->cuda;
    config.attrs = &early;
    config.numAttrs = stream->device->major >= 9 ? 1 : 0;
    return ad_cuda_status(cudaLaunchKernelExC(&config, reinterpret_cast<const void *>(kernel), arguments),
                          "launching a chain", fault);
}

/* Store what fuse_random_value of random.cuh reads. */
void store_random(const ad_chain_random *random, char *to) {
    ad::random_source r;
    uint64_t value[4] = {};
    ad::random_open_source(&r, random);
    value[0] = r.key;
    if (r.row->loops == AD_RANDOM_REAL) memcpy(value + 1, r.value, sizeof r.value);
    else ad::random_span(&r, &value[1], &value[2]);
    memcpy(to, value, sizeof value);
}

void store_scalars(const ad_chain *chain, ad_fuse_plan *p) {
    char *to = reinterpret_cast<char *>(&p->operand[ad_fuse_operands(&p->form)]);
    for (int k = 0; k < p->form.nscalars; k++, to += sizeof(ad_fuse_scalar))
        ad_scalar_store(&chain->scalar[p->scalar[k]], p->scalar_dtype[k], to);
    for (int k = 0; k < p->form.nrandoms; k++, to += 2 * sizeof(ad_fuse_scalar)) store_random(&chain->random[k], to);
}

/* Check the parameters. An operation with bad ones runs by itself, and says what is wrong. */
bool has_good_randoms(const ad_chain *chain) {
    ad::random_source r;
    for (int k = 0; k < chain->nrandoms; k++) {
        ad::random_open_source(&r, &chain->random[k]);
        if (ad::random_wrong_values(&r) != 0) return false;
    }
    return true;
}

/* ---- ends ---- */

/* The end, of an input at `value`. */
struct end_op {
    ad_op op;
    ad_operand operand[END_OPERANDS];
    end_op(const ad_op *end, void *value) : op(*end) {
        memcpy(static_cast<void *>(operand), end->operand, sizeof *operand * size_t(end->nout + end->nin));
        operand[end->nout].data = value;
        op.operand = operand;
    }
};

bool takes_end(const ad_chain *chain) {
    const ad_op *end = chain->end.op;
    return end->nout + end->nin <= END_OPERANDS && (!ad_chain_end_scans(end) || !ad_chain_keeps(chain));
}

/* The argument that fuse_fold of fold.cuh and fuse_scan of scan.cuh read: what the end's kernel is told, and the
 * chain's. */
template <class End> struct end_argument {
    End end;
    alignas(16) char chain[sizeof(ad_fuse_plan)];
};

template <class End> int launch_end(ad_call *c, const ad_chain *chain, cudaKernel_t kernel, const End &end,
                                    unsigned blocks, ad_fuse_plan *p) {
    end_argument<End> a;
    store_scalars(chain, p);
    const size_t used = sizeof p->head + sizeof *p->operand * size_t(ad_fuse_operands(&p->form)) +
                        sizeof(ad_fuse_scalar) * size_t(ad_fuse_scalars(&p->form));
    a.end = end;
    memcpy(a.chain, &p->head, used);
    int status = launch(c->stream, kernel, blocks, &a, c->fault);
    return status ? status : 1;
}

int launch_fold(ad_call *c, const ad_chain *chain, cudaKernel_t kernel, ad_fold_layout *lay, ad_fuse_plan *p) {
    if (ad_fold_scratch(c, &lay->fold, lay->groups, lay->state)) return 0;
    if (c->op->operand[0].desc.form == AD_VIEW) c->run->wrote = true;
    return launch_end(c, chain, kernel, lay->fold, unsigned(lay->groups * lay->fold.blocks), p);
}

/* Try one kernel that computes what it reduces. Not tried: the reduction is not one of those. */
int try_fold(ad_stream *stream, const ad_chain *chain, ad_run *run, ad_fault *fault, bool *tried) {
    end_op virtually(chain->end.op, nullptr);
    ad_call c = {stream, &virtually.op, run, fault};
    ad_fold_layout lay;
    ad_fuse_plan p;
    cudaKernel_t kernel;
    *tried = false;
    if (chain->noutputs != 0 || !ad_fold_lay(&c, &lay) || lay.way == AD_FOLD_SHORT ||
        (lay.way == AD_FOLD_WIDE && lay.fold.nover > 1))
        return 0;
    const ad_fuse_end end = {uint8_t(lay.family), uint8_t(lay.way), uint8_t(lay.input), uint8_t(lay.loop)};
    if (!ad_fuse_plan_end(chain, &end, lay.way != AD_FOLD_WIDE || lay.fold.loose == 0, &p)) return 0;
    *tried = true;
    int result = ad_fuse_kernel(stream->device, chain, &p.form, &kernel, fault);
    return result <= 0 ? result : launch_fold(&c, chain, kernel, &lay, &p);
}

int launch_scan(ad_call *c, const ad_chain *chain, cudaKernel_t kernel, ad_scan_layout *lay, ad_fuse_plan *p) {
    if (lay->messages > 0) {
        lay->scan.messages = static_cast<char *>(c->run->workspace(c->run, uint64_t(lay->messages)));
        lay->scan.tag = ad_fold_tag();
        if (!lay->scan.messages) return 0;
    }
    return launch_end(c, chain, kernel, lay->scan, unsigned(lay->blocks), p);
}

/* Try one kernel that computes what it scans. Not tried: lanes are not rows, or not of whole vectors. */
int try_scan(ad_stream *stream, const ad_chain *chain, ad_run *run, ad_fault *fault, bool *tried) {
    ad_call c = {stream, chain->end.op, run, fault};
    ad_scan_layout lay;
    ad_fuse_plan p;
    cudaKernel_t kernel;
    *tried = false;
    if (chain->noutputs != 0 || !ad_scan_lay(chain->end.op, &lay)) return 0;
    const bool whole = lay.scan.n % lay.width == 0;
    const ad_fuse_end end = {uint8_t(lay.product ? AD_FUSE_SCAN_PRODUCT : AD_FUSE_SCAN_SUM), uint8_t(lay.way),
                             uint8_t(lay.input), uint8_t(lay.loop)};
    if ((!whole && lay.scan.lanes > 1) || !ad_fuse_plan_end(chain, &end, whole, &p)) return 0;
    *tried = true;
    int result = ad_fuse_kernel(stream->device, chain, &p.form, &kernel, fault);
    return result <= 0 ? result : launch_scan(&c, chain, kernel, &lay, &p);
}

/* ---- chains ---- */

uint64_t value_size(const ad_chain *chain, int dtype) {
    uint64_t size = uint64_t(ad::visit(dtype, [](auto t) { return sizeof(typename decltype(t)::type); }));
    for (int d = 0; d < chain->ndim; d++) size *= uint64_t(chain->shape[d]);
    return size;
}

int fuse(ad_stream *stream, const ad_chain *chain, ad_run *run, ad_fault *fault) {
    ad_fuse_plan p;
    cudaKernel_t kernel;
    void *value = nullptr;
    const ad_op *end = chain->end.op;
    const bool scan = ad_chain_end_scans(end);
    bool tried = false;
    int result;
    if (!has_good_randoms(chain)) return 0;
    if (end) {
        if (!takes_end(chain)) return 0;
        result = (scan ? try_scan : try_fold)(stream, chain, run, fault, &tried);
        if (tried) return result;
    }
    if (!ad_fuse_plan_make(chain, stream->device->multiprocessors, &p)) return 0;
    if ((result = ad_fuse_kernel(stream->device, chain, &p.form, &kernel, fault)) <= 0) return result;
    store_scalars(chain, &p);
    if (end) { /* by way of scratch memory, or of the output's: a scan reads what it writes over before */
        const int last = p.form.nout - 1, dtype = p.form.dtype[last];
        const bool stays = scan && dtype == end->loop && dtype == end->operand[0].desc.dtype;
        value = stays ? end->operand[0].data : run->workspace(run, value_size(chain, dtype));
        if (!value) return 0;
        p.operand[last].base = static_cast<char *>(value);
    }
    for (int k = 0; k < chain->noutputs; k++)
        if (chain->output[k].view.desc.form == AD_VIEW) run->wrote = true;
    if ((result = launch(stream, kernel, p.blocks, &p.head, fault)) < 0) return result;
    if (end) {
        end_op of_value(end, value);
        result =
            scan ? ad__call_run(stream, &of_value.op, run, fault) : ad_cuda_reduce(stream, &of_value.op, run, fault);
    }
    return result < 0 ? result : 1;
}

} // namespace

int ad_cuda_fuse(ad_stream *stream, const ad_chain *chain, ad_run *run, ad_fault *fault) {
    if (!stream->device->compiler) return 0;
    int result = ad_cuda_enter(stream->device, fault);
    if (result < 0) return result;
    try {
        return fuse(stream, chain, run, fault);
    } catch (const std::bad_alloc &) {
        return 0;
    }
}
