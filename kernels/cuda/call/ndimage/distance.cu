/* nearest_zero: the nearest element that is zero, and the square of its distance. A thread goes along a lane. */
#include "kernels/cuda/call/ndimage/ndimage.h"
#include "kernels/ndimage_distance.h"

#include <algorithm>

namespace {

using namespace ad;

constexpr int THREADS = 128;
constexpr int64_t MOST_BLOCKS = int64_t(1) << 30;

/* Memory of as many elements as the array has. */
struct distance_field {
    const bool8 *x;
    const char *sampling;
    double *square[2], *start;
    int64_t *nearest[2], count, n, inner;
    int32_t *parabola;
};

unsigned count_blocks(int64_t threads) { return unsigned(std::min((threads + THREADS - 1) / THREADS, MOST_BLOCKS)); }

__global__ void __launch_bounds__(THREADS) begin_field(const __grid_constant__ distance_field f) {
    const int64_t step = int64_t(gridDim.x) * THREADS;
    for (int64_t i = int64_t(blockIdx.x) * THREADS + threadIdx.x; i < f.count; i += step) {
        f.square[0][i] = 0;
        f.nearest[0][i] = f.x[i] ? -1 : i;
    }
}

__global__ void __launch_bounds__(THREADS) go_along(const __grid_constant__ distance_field f) {
    const int64_t step = int64_t(gridDim.x) * THREADS;
    const double sampling = *reinterpret_cast<const double *>(f.sampling);
    for (int64_t i = int64_t(blockIdx.x) * THREADS + threadIdx.x; i < f.count / f.n; i += step) {
        const int64_t at = i / f.inner * f.n * f.inner + i % f.inner;
        find_nearest({f.square[0] + at, f.nearest[0] + at, f.square[1] + at, f.nearest[1] + at, f.parabola + at,
                      f.start + at, f.n, f.inner, sampling * sampling});
    }
}

int open_field(ad_call *c, const array *x, distance_field *f) {
    f->x = reinterpret_cast<const bool8 *>(x->data);
    f->count = count(*x);
    for (int i = 0; i < 2; i++) {
        f->square[i] = static_cast<double *>(ad_call_workspace(c, uint64_t(f->count) * 8));
        f->nearest[i] = static_cast<int64_t *>(ad_call_workspace(c, uint64_t(f->count) * 8));
        if (!f->square[i] || !f->nearest[i]) return AD_E_MEMORY;
    }
    f->start = static_cast<double *>(ad_call_workspace(c, uint64_t(f->count) * 8));
    f->parabola = static_cast<int32_t *>(ad_call_workspace(c, uint64_t(f->count) * 4));
    return !f->start || !f->parabola ? AD_E_MEMORY : 0;
}

} // namespace

int ad_call_nearest_zero(ad_call *c) {
    array x, sampling, square, nearest;
    distance_field f = {};
    int status;
    if ((status = ad_call_input_packed(c, 0, AD_BOOL, &x)) || (status = ad_call_input(c, 1, AD_FLOAT64, &sampling)) ||
        (status = ad_call_output(c, 0, AD_FLOAT64, &square)) || (status = ad_call_output(c, 1, AD_INT64, &nearest)))
        return status;
    if (count(x) == 0) return 0;
    if ((status = open_field(c, &x, &f))) return status;
    begin_field<<<count_blocks(f.count), THREADS, 0, c->stream->cuda>>>(f);
    for (int i = 0; i < x.ndim; i++) {
        f.n = x.shape[i];
        f.inner = count(x, i + 1, x.ndim);
        f.sampling = sampling.data + i * sampling.stride[0];
        go_along<<<count_blocks(f.count / f.n), THREADS, 0, c->stream->cuda>>>(f);
        std::swap(f.square[0], f.square[1]);
        std::swap(f.nearest[0], f.nearest[1]);
    }
    if ((status = ad_cuda_launched("nearest_zero", c->fault))) return status;
    array own = square;
    pack(&own);
    own.data = reinterpret_cast<char *>(f.square[0]);
    c->run->wrote = true;
    if ((status = ad_call_copy(c, &square, &own))) return status;
    own.dtype = AD_INT64;
    own.data = reinterpret_cast<char *>(f.nearest[0]);
    if ((status = ad_call_copy(c, &nearest, &own)) || (status = ad_call_finish(c, 0, &square))) return status;
    return ad_call_finish(c, 1, &nearest);
}
