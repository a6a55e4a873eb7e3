/* iota. */
#include "kernels/call.h"

#include "kernels/cpu/backend/operand.h"
#include "kernels/cpu/backend/parallel.h"
#include "kernels/iota.h"

namespace {

using namespace ad;

constexpr int64_t GRAIN = 1 << 15;

template <class S> void fill(const array *out, S start, S step) {
    const int64_t jump = out->stride[0];
    const compute_t<S> a = load(start), b = load(step);
    ad_cpu_parallel(out->shape[0], GRAIN, [&](int64_t begin, int64_t end) {
        if (jump == int64_t(sizeof(S))) {
            S *to = reinterpret_cast<S *>(out->data);
            for (int64_t i = begin; i < end; i++) to[i] = iota_element<S>(a, b, i);
            return;
        }
        for (int64_t i = begin; i < end; i++) *reinterpret_cast<S *>(out->data + i * jump) = iota_element<S>(a, b, i);
    });
}

} // namespace

int ad_call_iota(ad_call *c) {
    array out;
    int status = ad_call_output(c, 0, c->op->loop, &out);
    if (status) return status;
    c->run->wrote = true;
    visit(c->op->loop, [&](auto t) {
        using S = typename decltype(t)::type;
        alignas(16) char start[16], step[16];
        ad_scalar_store(&c->op->param[0], c->op->loop, start);
        ad_scalar_store(&c->op->param[1], c->op->loop, step);
        fill<S>(&out, *reinterpret_cast<S *>(start), *reinterpret_cast<S *>(step));
    });
    return ad_call_finish(c, 0, &out);
}
