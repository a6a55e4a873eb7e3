/* iota. */
#include "kernels/call.h"
#include "kernels/cuda/backend/device.h"
#include "kernels/iota.h"

namespace {

using namespace ad;

constexpr int THREADS = 256;
constexpr int64_t BLOCKS = int64_t(1) << 20;

template <class S> __global__ void __launch_bounds__(THREADS)
    iota(char *out, int64_t stride, int64_t count, S start, S step) {
    const compute_t<S> a = load(start), b = load(step);
    for (int64_t i = int64_t(blockIdx.x) * THREADS + threadIdx.x; i < count; i += int64_t(gridDim.x) * THREADS)
        *reinterpret_cast<S *>(out + i * stride) = iota_element<S>(a, b, i);
}

template <class S> void launch(const ad_call *c, const array *out) {
    const int64_t count = out->shape[0], needed = (count + THREADS - 1) / THREADS;
    alignas(16) char start[16], step[16];
    ad_scalar_store(&c->op->param[0], c->op->loop, start);
    ad_scalar_store(&c->op->param[1], c->op->loop, step);
    iota<S><<<unsigned(needed < BLOCKS ? needed : BLOCKS), THREADS, 0, c->stream->cuda>>>(
        out->data, out->stride[0], count, *reinterpret_cast<S *>(start), *reinterpret_cast<S *>(step));
}

} // namespace

int ad_call_iota(ad_call *c) {
    array out;
    int status = ad_call_output(c, 0, c->op->loop, &out);
    if (status) return status;
    c->run->wrote = true;
    if (out.shape[0] == 0) return 0;
    visit(c->op->loop, [&](auto t) { launch<typename decltype(t)::type>(c, &out); });
    if ((status = ad_cuda_launched("iota", c->fault))) return status;
    return ad_call_finish(c, 0, &out);
}
