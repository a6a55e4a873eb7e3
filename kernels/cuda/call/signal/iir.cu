/* iir: recursive filters, section after section, along an axis. A thread goes along a lane; lanes that lie behind each
 * other are turned first, so that neighbouring threads go by neighbouring elements. */
#include "kernels/cuda/call/ndimage/ndimage.h"

#include <algorithm>

namespace {

using namespace ad;

constexpr int THREADS = 64;
constexpr int64_t MOST_BLOCKS = int64_t(1) << 30;

/* Lanes in arrays without gaps: (outer, n, inner) elements, and of the state (sections, order, outer * inner). */
template <class T> struct filter {
    const T *section; /* of each: order+1 factors of the input, then of the output, the first of which is 1 */
    T *x, *state;
    int64_t sections, order, n, inner, lanes;
};

/* Filter a whole lane by one section: transposed direct form II. */
template <class T> __device__ void filter_lane(const filter<T> &f, const T *section, T *state, T *x) {
    const T *b = section, *a = section + f.order + 1;
    for (int64_t i = 0; i < f.n; i++, x += f.inner) {
        const T in = *x, out = f.order > 0 ? b[0] * in + state[0] : b[0] * in;
        *x = out;
        for (int64_t j = 1; j <= f.order; j++) {
            T *z = state + (j - 1) * f.lanes;
            *z = j < f.order ? b[j] * in + z[f.lanes] - a[j] * out : b[j] * in - a[j] * out;
        }
    }
}

template <class T> __global__ void __launch_bounds__(THREADS) filter_lanes(const __grid_constant__ filter<T> f) {
    const int64_t step = int64_t(gridDim.x) * THREADS;
    for (int64_t i = int64_t(blockIdx.x) * THREADS + threadIdx.x; i < f.lanes; i += step)
        for (int64_t s = 0; s < f.sections; s++)
            filter_lane(f, f.section + s * 2 * (f.order + 1), f.state + s * f.order * f.lanes + i,
                        f.x + i / f.inner * f.n * f.inner + i % f.inner);
}

/* Get a as a view with that axis as its first one. */
array move_axis(const array &a, int axis) {
    array b = a;
    b.shape[0] = a.shape[axis];
    b.stride[0] = a.stride[axis];
    for (int i = 0, k = 1; i < a.ndim; i++)
        if (i != axis) {
            b.shape[k] = a.shape[i];
            b.stride[k++] = a.stride[i];
        }
    return b;
}

/* A copy of an operand in scratch memory, which is changed in place. */
int copy_operand(ad_call *c, int index, int axis, array *out) {
    array x;
    const int status = ad_call_input(c, index, c->op->loop, &x);
    if (status) return status;
    x = move_axis(x, axis);
    return ad_call_packed(c, &x, c->op->loop, 0, out);
}

} // namespace

int ad_call_iir(ad_call *c) {
    const int axis = int(c->op->param[0].as.i);
    array x, section, state, out, last;
    int status;
    if ((status = copy_operand(c, 0, axis, &x)) || (status = copy_operand(c, 1, 0, &section)) ||
        (status = copy_operand(c, 2, 0, &state)) || (status = ad_call_output(c, 0, c->op->loop, &out)) ||
        (status = ad_call_output(c, 1, c->op->loop, &last)))
        return status;
    c->run->wrote = true;
    if (count(x) > 0)
        visit(c->op->loop, [&](auto t) {
            using S = typename decltype(t)::type;
            if constexpr (is_float<S> || is_complex<S>) {
                const int64_t n = x.shape[0], lanes = count(x) / n;
                const filter<S> f = {reinterpret_cast<const S *>(section.data),
                                     reinterpret_cast<S *>(x.data),
                                     reinterpret_cast<S *>(state.data),
                                     section.shape[0],
                                     section.shape[2] - 1,
                                     n,
                                     lanes,
                                     lanes};
                const int64_t blocks = std::min((lanes + THREADS - 1) / THREADS, MOST_BLOCKS);
                filter_lanes<S><<<unsigned(blocks), THREADS, 0, c->stream->cuda>>>(f);
            }
        });
    if ((status = ad_cuda_launched("iir", c->fault))) return status;
    const array turned = move_axis(out, axis);
    if ((status = ad_call_copy(c, &turned, &x)) || (status = ad_call_copy(c, &last, &state)) ||
        (status = ad_call_finish(c, 0, &out)))
        return status;
    return ad_call_finish(c, 1, &last);
}
