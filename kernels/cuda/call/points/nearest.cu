/* nearest_points. A block of threads looks for the nearest points of a query: each thread among every so many, and then
 * all choose the best of what they have found. */
#include "kernels/call_points.h"
#include "kernels/cuda/backend/device.h"
#include "kernels/pairs.h"

#include <algorithm>

namespace {

using namespace ad;

constexpr int THREADS = 128, WARPS = THREADS / 32;
constexpr int64_t MOST_BLOCKS = int64_t(1) << 30;

struct near_plan {
    const double *points, *queries;
    int64_t n, m, columns;
    int k;
    double p, bound; /* the bound as a sum of terms */
    char *far, *place;
    int64_t far_step[2], place_step[2]; /* bytes */
};

struct candidate {
    double distance;
    int64_t place; /* -1: none */
};

__device__ bool is_nearer(candidate a, candidate b) {
    return a.distance < b.distance || (a.distance == b.distance && a.place < b.place);
}

/* The sum of terms of a point and a query. */
template <class M> __device__ double measure_point(const near_plan &p, const double *x, int64_t i) {
    pair_sums<double> sum = {};
    for (int64_t k = 0; k < p.columns; k++) M::add(&sum, x[k], p.points[i * p.columns + k], p.p);
    return sum.a;
}

__device__ void insert(candidate *list, int k, candidate one) {
    int at = k - 1;
    if (!is_nearer(one, list[at])) return;
    for (; at > 0 && is_nearer(one, list[at - 1]); at--) list[at] = list[at - 1];
    list[at] = one;
}

/* Of one candidate of each thread the nearest one, for all of them. `best` has room for one of each warp. */
__device__ candidate choose_nearest(candidate one, candidate *best) {
    for (int step = 16; step > 0; step /= 2) {
        const candidate other = {__shfl_xor_sync(~0u, one.distance, step), __shfl_xor_sync(~0u, one.place, step)};
        if (is_nearer(other, one)) one = other;
    }
    if (threadIdx.x % 32 == 0) best[threadIdx.x / 32] = one;
    __syncthreads();
    for (int i = 0; i < WARPS; i++)
        if (is_nearer(best[i], one)) one = best[i];
    __syncthreads();
    return one;
}

template <class M> __device__ void write_found(const near_plan &p, int64_t query, int i, candidate one) {
    const bool none = one.place < 0;
    char *far = p.far + query * p.far_step[0] + i * p.far_step[1];
    char *place = p.place + query * p.place_step[0] + i * p.place_step[1];
    const double distance = M::end(pair_sums<double>{one.distance, 0}, p.p, double(p.columns));
    *reinterpret_cast<double *>(far) = none ? __builtin_huge_val() : distance;
    *reinterpret_cast<int64_t *>(place) = none ? p.n : one.place;
}

template <class M> __global__ void __launch_bounds__(THREADS) find_nearest(const __grid_constant__ near_plan p) {
    __shared__ candidate best[WARPS];
    for (int64_t query = blockIdx.x; query < p.m; query += gridDim.x) {
        candidate list[AD_MOST_NEAREST];
        for (int i = 0; i < p.k; i++) list[i] = {p.bound, -1};
        for (int64_t i = threadIdx.x; i < p.n; i += THREADS)
            insert(list, p.k, {measure_point<M>(p, p.queries + query * p.columns, i), i});
        for (int i = 0, own = 0; i < p.k; i++) {
            const candidate mine = own < p.k ? list[own] : candidate{p.bound, -1}, one = choose_nearest(mine, best);
            if (one.place >= 0 && one.place == mine.place) own++;
            if (threadIdx.x == 0) write_found<M>(p, query, i, one);
        }
    }
}

template <class M> void launch_search(near_plan p, double bound, cudaStream_t stream) {
    p.bound = bound;
    find_nearest<M><<<unsigned(std::min(p.m, MOST_BLOCKS)), THREADS, 0, stream>>>(p);
}

} // namespace

int ad_call_nearest_points(ad_call *c) {
    array points, queries, far, place;
    int status = get_nearest(c, &points, &queries, &far, &place);
    if (status || count(far) == 0) return status;
    near_plan p = {reinterpret_cast<const double *>(points.data),
                   reinterpret_cast<const double *>(queries.data),
                   points.shape[0],
                   queries.shape[0],
                   points.shape[1],
                   int(c->op->param[0].as.i),
                   ad_scalar_number(&c->op->param[1]),
                   0,
                   far.data,
                   place.data,
                   {far.stride[0], far.stride[1]},
                   {place.stride[0], place.stride[1]}};
    const double bound = std::max(ad_scalar_number(&c->op->param[2]), 0.0);
    c->run->wrote = true;
    if (p.p == 2) launch_search<metric_euclidean>(p, bound * bound, c->stream->cuda);
    else if (p.p == 1) launch_search<metric_cityblock>(p, bound, c->stream->cuda);
    else if (p.p == __builtin_huge_val()) launch_search<metric_chebyshev>(p, bound, c->stream->cuda);
    else launch_search<metric_minkowski>(p, adm::libm_pow(bound, p.p), c->stream->cuda);
    if ((status = ad_cuda_launched("nearest_points", c->fault)) || (status = ad_call_finish(c, 0, &far))) return status;
    return ad_call_finish(c, 1, &place);
}
