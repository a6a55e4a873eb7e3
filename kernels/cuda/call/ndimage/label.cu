/* label: numbers of connected elements. Each element has a parent, an earlier one that it is connected with or itself.
 * Threads join trees of parents by atomic minima; the roots are then counted and numbered in order. */
#include "kernels/cuda/backend/divide.h"
#include "kernels/cuda/call/ndimage/ndimage.h"

#include <algorithm>

namespace {

using namespace ad;

constexpr int THREADS = 256, EACH = 8, TILE = THREADS * EACH, PREPARERS = 256, ADDERS = 1024;
constexpr int32_t NONE = -1;

/* Elements of an array without gaps by their places in it. Neighbours: those of offsets that lead to earlier ones. */
struct field {
    const bool8 *x;
    int32_t *parent, *label;
    const char *given; /* the offsets as the operand has them */
    int64_t given_step[2];
    int64_t *offset, *away; /* scratch: of each neighbour along each axis, and in elements, 0: it is none */
    int64_t count, neighbours, tiles;
    int32_t *before; /* roots before each tile */
    int64_t *total;
    int ndim;
    int64_t shape[AD_MAX_NDIM];
    ad_divisor divisor[AD_MAX_NDIM];
};

/* One block. */
__global__ void __launch_bounds__(PREPARERS) prepare_neighbours(const __grid_constant__ field f) {
    for (int64_t k = threadIdx.x; k < f.neighbours; k += PREPARERS) {
        int64_t far = 0;
        bool inside = true;
        for (int d = 0; d < f.ndim; d++) {
            const int64_t one = *reinterpret_cast<const int64_t *>(f.given + k * f.given_step[0] + d * f.given_step[1]);
            f.offset[k * f.ndim + d] = one;
            inside = inside && one > -f.shape[d] && one < f.shape[d];
            if (inside) far = far * f.shape[d] + one;
        }
        f.away[k] = inside && far < 0 ? -far : 0;
    }
}

__global__ void __launch_bounds__(THREADS) begin_parents(const __grid_constant__ field f) {
    const int64_t step = int64_t(gridDim.x) * THREADS;
    for (int64_t i = int64_t(blockIdx.x) * THREADS + threadIdx.x; i < f.count; i += step)
        f.parent[i] = f.x[i] ? int32_t(i) : NONE;
}

__device__ int32_t find_root(const int32_t *parent, int32_t i) {
    for (int32_t next; (next = *(volatile const int32_t *)&parent[i]) != i; i = next) {}
    return i;
}

__device__ void join_places(int32_t *parent, int32_t a, int32_t b) {
    while (true) {
        a = find_root(parent, a);
        b = find_root(parent, b);
        if (a == b) return;
        const int32_t high = max(a, b), low = min(a, b), old = atomicMin(&parent[high], low);
        if (old == high) return;
        a = old;
        b = low;
    }
}

__device__ bool has_neighbour(const field &f, uint32_t i, int64_t k) {
    const int64_t *offset = f.offset + k * f.ndim;
    for (int d = f.ndim - 1; d >= 0; d--) {
        uint32_t at;
        i = f.divisor[d].divide(i, &at);
        if (uint64_t(int64_t(at) + offset[d]) >= uint64_t(f.shape[d])) return false;
    }
    return true;
}

__global__ void __launch_bounds__(THREADS) join_elements(const __grid_constant__ field f) {
    const int64_t step = int64_t(gridDim.x) * THREADS;
    for (int64_t i = int64_t(blockIdx.x) * THREADS + threadIdx.x; i < f.count; i += step) {
        if (f.parent[i] == NONE) continue;
        for (int64_t k = 0; k < f.neighbours; k++) {
            const int64_t away = f.away[k];
            if (away == 0 || !has_neighbour(f, uint32_t(i), k) || f.parent[i - away] == NONE) continue;
            join_places(f.parent, int32_t(i - away), int32_t(i));
        }
    }
}

/* Parents become roots, which are counted for each tile. */
__global__ void __launch_bounds__(THREADS) count_roots(const __grid_constant__ field f) {
    for (int64_t t = blockIdx.x; t < f.tiles; t += gridDim.x) {
        int roots = 0;
        for (int k = 0; k < EACH; k++) {
            const int64_t i = t * TILE + k * THREADS + threadIdx.x;
            const bool inside = i < f.count && f.parent[i] != NONE;
            const int32_t root = inside ? find_root(f.parent, int32_t(i)) : NONE;
            if (inside) f.parent[i] = root;
            roots += __syncthreads_count(inside && root == i);
        }
        if (threadIdx.x == 0) f.before[t] = roots;
    }
}

/* Add the sums of the tiles before each tile, in one block. */
__global__ void __launch_bounds__(ADDERS) add_tiles(const __grid_constant__ field f) {
    __shared__ int32_t sums[ADDERS];
    int32_t carry = 0;
    for (int64_t first = 0; first < f.tiles; first += ADDERS) {
        const int64_t t = first + threadIdx.x;
        const int32_t own = t < f.tiles ? f.before[t] : 0;
        sums[threadIdx.x] = own;
        __syncthreads();
        for (int step = 1; step < ADDERS; step *= 2) {
            const int32_t other = int(threadIdx.x) >= step ? sums[threadIdx.x - step] : 0;
            __syncthreads();
            sums[threadIdx.x] += other;
            __syncthreads();
        }
        if (t < f.tiles) f.before[t] = carry + sums[threadIdx.x] - own;
        carry += sums[ADDERS - 1];
        __syncthreads();
    }
    if (threadIdx.x == 0) *f.total = carry;
}

/* Roots get their numbers, */
__global__ void __launch_bounds__(THREADS) number_roots(const __grid_constant__ field f) {
    __shared__ int32_t warps[THREADS / 32];
    for (int64_t t = blockIdx.x; t < f.tiles; t += gridDim.x) {
        int32_t number = f.before[t] + 1;
        for (int k = 0; k < EACH; k++) {
            const int64_t i = t * TILE + k * THREADS + threadIdx.x;
            const bool root = i < f.count && f.parent[i] == i;
            const unsigned ballot = __ballot_sync(~0u, root);
            const int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
            if (lane == 0) warps[warp] = __popc(ballot);
            __syncthreads();
            int32_t mine = number + __popc(ballot & ((1u << lane) - 1));
            for (int w = 0; w < THREADS / 32; w++) {
                if (w < warp) mine += warps[w];
                number += warps[w];
            }
            if (root) f.label[i] = mine;
            __syncthreads();
        }
    }
}

/* Give the other elements the number of their root. */
__global__ void __launch_bounds__(THREADS) number_others(const __grid_constant__ field f) {
    const int64_t step = int64_t(gridDim.x) * THREADS;
    for (int64_t i = int64_t(blockIdx.x) * THREADS + threadIdx.x; i < f.count; i += step) {
        const int32_t root = f.parent[i];
        if (root != i) f.label[i] = root == NONE ? 0 : f.label[root];
    }
}

int open_field(ad_call *c, const array *x, const array *offsets, field *f) {
    f->x = reinterpret_cast<const bool8 *>(x->data);
    f->ndim = x->ndim;
    f->count = count(*x);
    f->tiles = (f->count + TILE - 1) / TILE;
    f->neighbours = offsets->shape[0];
    f->given = offsets->data;
    f->given_step[0] = offsets->stride[0];
    f->given_step[1] = offsets->stride[1];
    for (int d = 0; d < x->ndim; d++) {
        f->shape[d] = x->shape[d];
        if (f->count > 0) f->divisor[d].set(x->shape[d]);
    }
    f->offset = static_cast<int64_t *>(ad_call_workspace(c, uint64_t(f->neighbours * (f->ndim + 1) + 1) * 8));
    f->parent = static_cast<int32_t *>(ad_call_workspace(c, uint64_t(f->count) * 4));
    f->before = static_cast<int32_t *>(ad_call_workspace(c, uint64_t(f->tiles + 1) * 4));
    if (!f->offset || !f->parent || !f->before) return AD_E_MEMORY;
    f->away = f->offset + f->neighbours * f->ndim;
    return 0;
}

} // namespace

int ad_call_label(ad_call *c) {
    array x, offsets, out, total;
    field f = {};
    int status;
    if ((status = ad_call_input_packed(c, 0, AD_BOOL, &x)) || (status = ad_call_input(c, 1, AD_INT64, &offsets)) ||
        (status = ad_cuda_packed_output(c, 0, AD_INT32, &out)) || (status = ad_call_output(c, 1, AD_INT64, &total)) ||
        (status = open_field(c, &x, &offsets, &f)))
        return status;
    f.label = reinterpret_cast<int32_t *>(out.data);
    f.total = reinterpret_cast<int64_t *>(total.data);
    c->run->wrote = true;
    const unsigned blocks = unsigned(std::max((f.count + THREADS - 1) / THREADS, int64_t(1)));
    const unsigned tiles = unsigned(std::max(f.tiles, int64_t(1)));
    prepare_neighbours<<<1, PREPARERS, 0, c->stream->cuda>>>(f);
    begin_parents<<<blocks, THREADS, 0, c->stream->cuda>>>(f);
    join_elements<<<blocks, THREADS, 0, c->stream->cuda>>>(f);
    count_roots<<<tiles, THREADS, 0, c->stream->cuda>>>(f);
    add_tiles<<<1, ADDERS, 0, c->stream->cuda>>>(f);
    number_roots<<<tiles, THREADS, 0, c->stream->cuda>>>(f);
    number_others<<<blocks, THREADS, 0, c->stream->cuda>>>(f);
    if ((status = ad_cuda_launched("label", c->fault)) || (status = ad_call_finish(c, 0, &out))) return status;
    return ad_call_finish(c, 1, &total);
}
