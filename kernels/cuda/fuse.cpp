/* Chains of elementwise operations: launched as one kernel where there is one. */
#include <new>
#include <string.h>

#include "kernels/call.h"
#include "kernels/cuda/fuse_cache.h"

namespace {

constexpr int END_OPERANDS = 4; /* of a reduction: its output, its input, a mask, and one to spare */

/* The kernel may begin before the one ahead of it has ended, and waits by itself, as in ad_ufunc_launch. */
int launch(ad_stream *stream, cudaKernel_t kernel, ad_fuse_plan *p, ad_fault *fault) {
    void *arguments[] = {&p->head};
    cudaLaunchAttribute early;
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(p->blocks);
    config.blockDim = dim3(AD_FUSE_THREADS);
    config.stream = stream->cuda;
    config.attrs = &early;
    config.numAttrs = stream->device->major >= 9 ? 1 : 0;
    return ad_cuda_status(cudaLaunchKernelExC(&config, reinterpret_cast<const void *>(kernel), arguments),
                          "launching a chain", fault);
}

void store_scalars(const ad_chain *chain, ad_fuse_plan *p) {
    char *to = reinterpret_cast<char *>(&p->operand[p->form.nout + p->form.nin]);
    for (int k = 0; k < p->form.nscalars; k++, to += sizeof(ad_fuse_scalar))
        ad_scalar_store(&chain->scalar[p->scalar[k]], p->scalar_dtype[k], to);
}

/* The chain's end reads what the kernel has put into scratch memory. */
int reduce(ad_stream *stream, const ad_chain *chain, void *value, ad_run *run, ad_fault *fault) {
    const ad_op *end = chain->end.op;
    ad_op op = *end;
    ad_operand operand[END_OPERANDS];
    memcpy(operand, end->operand, sizeof *operand * size_t(end->nout + end->nin));
    operand[end->nout].data = value;
    op.operand = operand;
    return ad_cuda_reduce(stream, &op, run, fault);
}

uint64_t value_size(const ad_chain *chain, int dtype) {
    uint64_t size = uint64_t(ad::visit(dtype, [](auto t) { return sizeof(typename decltype(t)::type); }));
    for (int d = 0; d < chain->ndim; d++) size *= uint64_t(chain->shape[d]);
    return size;
}

int fuse(ad_stream *stream, const ad_chain *chain, ad_run *run, ad_fault *fault) {
    ad_fuse_plan p;
    cudaKernel_t kernel;
    const ad_op *end = chain->end.op;
    if (end != nullptr && (end->opcode != AD_REQ_REDUCE || end->nout + end->nin > END_OPERANDS)) return 0;
    if (!ad_fuse_plan_make(chain, stream->device->multiprocessors, &p)) return 0;
    int rc = ad_fuse_kernel(stream->device, chain, &p.form, &kernel, fault);
    if (rc <= 0) return rc;
    store_scalars(chain, &p);
    void *value = nullptr;
    if (end != nullptr) {
        const int last = p.form.nout - 1;
        value = run->workspace(run, value_size(chain, p.form.dtype[last]));
        if (value == nullptr) return 0;
        p.operand[last].base = static_cast<char *>(value);
    }
    for (int k = 0; k < chain->noutputs; k++)
        if (chain->output[k].view.desc.form == AD_VIEW) run->wrote = true;
    if ((rc = launch(stream, kernel, &p, fault)) < 0) return rc;
    if (end != nullptr) rc = reduce(stream, chain, value, run, fault);
    return rc < 0 ? rc : 1;
}

} // namespace

int ad_cuda_fuse(ad_stream *stream, const ad_chain *chain, ad_run *run, ad_fault *fault) {
    if (stream->device->compiler == nullptr) return 0;
    int rc = ad_cuda_enter(stream->device, fault);
    if (rc < 0) return rc;
    try {
        return fuse(stream, chain, run, fault);
    } catch (const std::bad_alloc &) {
        return 0;
    }
}
