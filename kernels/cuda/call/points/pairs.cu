/* pair_distances and squareform. A block of threads measures the pairs of SIDE points and SIDE others, whose
 * coordinates lie in shared memory, a few at a time. A thread has EACH times EACH of the pairs. */
#include "kernels/call_points.h"
#include "kernels/cuda/backend/device.h"
#include "kernels/pairs.h"
#include "kernels/words.h"

#include <algorithm>

namespace {

using namespace ad;

constexpr int SIDE = 64, DEEP = 16, EACH = 4, ACROSS = SIDE / EACH, THREADS = ACROSS * ACROSS;
constexpr int64_t MOST_BLOCKS = int64_t(1) << 30;

/* Distances of rows of x from those of y, or from later ones of x where they are joined. Steps in bytes. */
struct pair_plan {
    const double *x, *y;
    int64_t m, n, columns, across, tiles;
    double p;
    char *out;
    int64_t step[2];
    bool joined;
};

/* Coordinates [k, k + DEEP) of SIDE points from `first` on, 0 where there are none. */
__device__ void load_points(double (*to)[SIDE + 1], const double *x, int64_t n, int64_t columns, int64_t first,
                            int64_t k) {
    for (int i = int(threadIdx.x); i < SIDE * DEEP; i += THREADS) {
        const int row = i / DEEP, column = i % DEEP;
        const bool there = first + row < n && k + column < columns;
        to[column][row] = there ? x[(first + row) * columns + k + column] : 0.0;
    }
}

/* Add the terms of the coordinates that lie in shared memory. */
template <class M> __device__ void add_terms(pair_sums<double> (*sum)[EACH], const double (*x)[SIDE + 1],
                                             const double (*y)[SIDE + 1], int64_t deep, double p) {
    const int row = int(threadIdx.x) / ACROSS, column = int(threadIdx.x) % ACROSS;
    for (int k = 0; k < DEEP && k < deep; k++)
        for (int a = 0; a < EACH; a++)
            for (int b = 0; b < EACH; b++) M::add(&sum[a][b], x[k][row + a * ACROSS], y[k][column + b * ACROSS], p);
}

/* Where the distance of row i from column j goes; NULL: nowhere. */
__device__ double *find_place(const pair_plan &p, int64_t i, int64_t j) {
    if (i >= p.m || j >= p.n || (p.joined && j <= i)) return nullptr;
    const int64_t before = i * p.m - i * (i + 1) / 2 - i - 1;
    return reinterpret_cast<double *>(p.out + (p.joined ? (before + j) * p.step[0] : i * p.step[0] + j * p.step[1]));
}

template <class M> __device__ void measure_tile(const pair_plan &p, int64_t i0, int64_t j0) {
    __shared__ double x[DEEP][SIDE + 1], y[DEEP][SIDE + 1];
    pair_sums<double> sum[EACH][EACH] = {};
    for (int64_t k = 0; k < p.columns; k += DEEP) {
        load_points(x, p.x, p.m, p.columns, i0, k);
        load_points(y, p.y, p.n, p.columns, j0, k);
        __syncthreads();
        add_terms<M>(sum, x, y, p.columns - k, p.p);
        __syncthreads();
    }
    const int row = int(threadIdx.x) / ACROSS, column = int(threadIdx.x) % ACROSS;
    for (int a = 0; a < EACH; a++)
        for (int b = 0; b < EACH; b++) {
            double *to = find_place(p, i0 + row + a * ACROSS, j0 + column + b * ACROSS);
            if (to) *to = M::end(sum[a][b], p.p, double(p.columns));
        }
}

template <class M> __global__ void __launch_bounds__(THREADS) measure_tiles(const __grid_constant__ pair_plan p) {
    for (int64_t tile = blockIdx.x; tile < p.tiles; tile += gridDim.x) {
        const int64_t i0 = tile / p.across * SIDE, j0 = tile % p.across * SIDE;
        if (!p.joined || j0 >= i0) measure_tile<M>(p, i0, j0);
    }
}

void launch_metric(const pair_plan &p, int64_t metric, cudaStream_t stream) {
    const unsigned blocks = unsigned(std::min(p.tiles, MOST_BLOCKS));
    switch (metric) {
#define X(name, ns) \
    case AD_PAIRS_##name: measure_tiles<metric_##name><<<blocks, THREADS, 0, stream>>>(p); break;
        AD_PAIR_METRICS(X)
#undef X
    }
}

/* ---- squareform ---- */

/* The pairs of n points, and their matrix. Steps in bytes. */
struct square_plan {
    const char *x;
    char *out;
    int64_t n, from, step[2];
};

template <class T> __global__ void __launch_bounds__(THREADS) fill_square(const __grid_constant__ square_plan p) {
    const int64_t each = int64_t(gridDim.x) * THREADS;
    for (int64_t u = int64_t(blockIdx.x) * THREADS + threadIdx.x; u < p.n * p.n; u += each) {
        const int64_t row = u / p.n, column = u % p.n, i = row < column ? row : column, j = row < column ? column : row;
        const int64_t at = i * p.n - i * (i + 1) / 2 - i - 1 + j;
        T v = {};
        if (row != column) v = *reinterpret_cast<const T *>(p.x + at * p.from);
        *reinterpret_cast<T *>(p.out + row * p.step[0] + column * p.step[1]) = v;
    }
}

template <class T> void launch_square(const square_plan &p, cudaStream_t stream) {
    const int64_t blocks = std::min((p.n * p.n + THREADS - 1) / THREADS, MOST_BLOCKS);
    fill_square<T><<<unsigned(blocks), THREADS, 0, stream>>>(p);
}

} // namespace

int ad_call_pair_distances(ad_call *c) {
    array x, y, out;
    pair_plan p = {};
    int status = get_pairs(c, &x, &y, &out);
    if (status || count(out) == 0) return status;
    p.joined = c->op->nin == 1;
    p.x = reinterpret_cast<const double *>(x.data);
    p.y = reinterpret_cast<const double *>(y.data);
    p.m = x.shape[0];
    p.n = y.shape[0];
    p.columns = x.shape[1];
    p.across = (p.n + SIDE - 1) / SIDE;
    p.tiles = (p.m + SIDE - 1) / SIDE * p.across;
    p.p = ad_scalar_number(&c->op->param[1]);
    p.out = out.data;
    p.step[0] = out.stride[0];
    p.step[1] = p.joined ? 0 : out.stride[1];
    c->run->wrote = true;
    launch_metric(p, c->op->param[0].as.i, c->stream->cuda);
    if ((status = ad_cuda_launched("pair_distances", c->fault))) return status;
    return ad_call_finish(c, 0, &out);
}

int ad_call_squareform(ad_call *c) {
    array x, out;
    int status;
    if ((status = ad_call_input(c, 0, c->op->loop, &x)) || (status = ad_call_output(c, 0, c->op->loop, &out)))
        return status;
    const square_plan p = {x.data, out.data, out.shape[0], x.stride[0], {out.stride[0], out.stride[1]}};
    c->run->wrote = true;
    visit_words(out.dtype, [&](auto word) { launch_square<typename decltype(word)::type>(p, c->stream->cuda); });
    if ((status = ad_cuda_launched("squareform", c->fault))) return status;
    return ad_call_finish(c, 0, &out);
}
