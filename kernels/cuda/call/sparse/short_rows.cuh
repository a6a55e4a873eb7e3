/* The product of two sparse matrices none of whose rows has more products of entries than a warp has threads. Some
 * threads of a warp share a row: each has one product, they sort them by column, and the first of those of a place adds
 * them up in their order. Nothing is written but the result. */
#ifndef AD_KERNELS_CUDA_CALL_SPARSE_SHORT_ROWS_CUH
#define AD_KERNELS_CUDA_CALL_SPARSE_SHORT_ROWS_CUH

#include "kernels/cuda/call/sparse/sparse.cuh"

namespace {

constexpr int MOST_LANES = 32;
constexpr uint32_t ALL = ~0u;
constexpr uint64_t NO_KEY = ~uint64_t(0);

/* A product of two matrices. The numbers of columns are at most 2^32. */
template <class T, class I> struct matrix_product {
    csr<T, I> a, b;
    int64_t columns, products;
    int64_t *begin;    /* of each entry of a, the number of its first product; then that of all */
    uint64_t *keys;    /* of products, sorted: row * columns + column */
    uint32_t *numbers; /* number of the product */
    T *values;         /* of products, as they were numbered */
    int64_t
        *place; /* of each sorted product, how many places there are up to its own; of short rows, where each begins */
    int widest; /* products of a row at most; or more than MOST_LANES */
    T *data;
    I *indices, *indptr;
};

template <class T> __device__ inline T take_from(T v, int lane, int width) {
    if constexpr (is_complex<T>) return {take_from(v.re, lane, width), take_from(v.im, lane, width)};
    else if constexpr (same<T, uint64_t>) return __shfl_sync(ALL, (unsigned long long)v, lane, width);
    else return __shfl_sync(ALL, v, lane, width);
}

/* A product in a thread: of entries a and b, in a column. n: how many its row has. */
struct row_product {
    int64_t a, b;
    uint64_t key; /* column, then the thread's lane; NO_KEY: there is none */
    int n;
};

template <class T, class I> __device__ row_product find_product(const matrix_product<T, I> &p, int64_t row, int lane) {
    row_product found = {0, 0, NO_KEY, 0};
    if (row >= p.a.rows) return found;
    const int64_t begin = p.a.indptr[row], end = p.a.indptr[row + 1], first = p.begin[begin];
    found.n = int(p.begin[end] - first);
    if (lane >= found.n) return found;
    found.a = find_row(p.begin, begin, end - 1, first + lane);
    found.b = int64_t(p.b.indptr[p.a.indices[found.a]]) + first + lane - p.begin[found.a];
    found.key = uint64_t(p.b.indices[found.b]) * MOST_LANES + uint64_t(lane);
    return found;
}

/* Sort keys over neighbouring lanes. */
template <int Lanes> __device__ uint64_t sort_keys(uint64_t key, int lane) {
#pragma unroll
    for (int size = 2; size <= Lanes; size *= 2)
#pragma unroll
        for (int by = size / 2; by > 0; by /= 2) {
            const uint64_t other = take_from(key, lane ^ by, Lanes);
            const bool low = (lane & by) == 0, up = (lane & size) == 0;
            key = (low == up) == (other < key) ? other : key;
        }
    return key;
}

/* Which of a row's lanes have the first product of a place, bit by bit. */
template <int Lanes> __device__ uint32_t find_firsts(uint64_t key, int lane) {
    const uint64_t before = take_from(key, lane > 0 ? lane - 1 : 0, Lanes);
    const bool is_first = key != NO_KEY && (lane == 0 || key / MOST_LANES != before / MOST_LANES);
    const uint32_t of_warp = __ballot_sync(ALL, is_first);
    return Lanes == 32 ? of_warp : of_warp >> (threadIdx.x % 32 / Lanes * Lanes) & ((1u << Lanes % 32) - 1);
}

/* The sum of a place's products, in the lane of the first of them. */
template <int Lanes, class T> __device__ T sum_place(T v, uint64_t key, int lane) {
    T sum = v;
    for (int by = 1; by < Lanes; by++) {
        const T other = take_from(v, lane + by, Lanes);
        const uint64_t behind = take_from(key, lane + by, Lanes);
        const bool same_place = lane + by < Lanes && key != NO_KEY && key / MOST_LANES == behind / MOST_LANES;
        if (!__any_sync(ALL, same_place)) break;
        if (same_place) sum = sum + other;
    }
    return sum;
}

/* Write how many places each row has. */
template <int Lanes, class T, class I> __global__ void __launch_bounds__(THREADS)
    count_row_places(const __grid_constant__ matrix_product<T, I> p) {
    const int64_t row = (int64_t(blockIdx.x) * THREADS + threadIdx.x) / Lanes;
    const int lane = int(threadIdx.x) % Lanes;
    const uint64_t key = sort_keys<Lanes>(find_product(p, row, lane).key, lane);
    const uint32_t firsts = find_firsts<Lanes>(key, lane);
    if (lane == 0 && row <= p.a.rows) p.place[row] = row < p.a.rows ? __popc(firsts) : 0;
}

/* Write the places of each row; p.place has where they begin. */
template <int Lanes, class T, class I> __global__ void __launch_bounds__(THREADS)
    write_row_places(const __grid_constant__ matrix_product<T, I> p) {
    const int64_t row = (int64_t(blockIdx.x) * THREADS + threadIdx.x) / Lanes;
    const int lane = int(threadIdx.x) % Lanes;
    const row_product own = find_product(p, row, lane);
    const uint64_t key = sort_keys<Lanes>(own.key, lane);
    const uint32_t firsts = find_firsts<Lanes>(key, lane);
    const T product = own.key != NO_KEY ? p.a.data[own.a] * p.b.data[own.b] : T(0);
    const T sum = sum_place<Lanes>(take_from(product, int(key % MOST_LANES) % Lanes, Lanes), key, lane);
    if (row > p.a.rows) return;
    const int64_t begin = p.place[row];
    if (lane == 0) p.indptr[row] = I(begin);
    if (!(firsts >> lane & 1)) return;
    const int64_t at = begin + __popc(firsts & ((1u << lane) - 1));
    p.data[at] = sum;
    p.indices[at] = I(key / MOST_LANES);
}

} // namespace
#endif
