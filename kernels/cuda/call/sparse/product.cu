/* Products with sparse matrices. Of short rows a block has some, reads their entries one behind another, whatever row
 * they are of, and adds up the products of each row from shared memory. A warp has a longer row. Threads look at the
 * bounds of their rows themselves. Rows far too long for a warp are left to blocks that share them, so no block takes
 * long. */
#include "kernels/cuda/call/sparse/sparse.cuh"

#include <algorithm>

namespace {

constexpr int64_t LONG = 8192; /* entries from which on a row is shared by blocks, and entries of such a block */
constexpr int EACH = 4;        /* entries of a row that a thread has under way */
constexpr int AHEAD = 8;       /* entries of a tile that a thread has under way */
constexpr int TILE = THREADS * AHEAD;
constexpr int SHORT = 128;   /* entries of a short row, on average */
constexpr int64_t TILES = 4; /* that a block has at most; a warp has each of its rows where there are more */

/* Find the bounds of a row; none where it is wrong, or too long for the threads that ask. */
template <class T, class I>
__device__ void find_bounds(const sparse_task<T, I> &t, int64_t row, int64_t *begin, int64_t *end) {
    *begin = *end = 0;
    if (row >= t.m.rows) return;
    const int64_t first = t.m.indptr[row], last = t.m.indptr[row + 1];
    if (first < 0 || last < first || last > t.m.entries) {
        *t.stop = 1;
        ad_cuda_report(t.check, AD_CHECK_sparse_indptr, t.m.entries, 0, 0);
    } else if (last - first > LONG) *t.has_long = 1;
    else {
        *begin = first;
        *end = last;
    }
}

/* Get the element of x that an entry is multiplied by; 0, reported, where there is none. */
template <class T, class I> __device__ T get_factor(const sparse_task<T, I> &t, I j) {
    if (uint64_t(int64_t(j)) < uint64_t(t.x.rows)) return t.x.data[j];
    ad_cuda_report(t.check, AD_CHECK_sparse_index, j, t.x.rows, 0);
    return T(0);
}

/* f(i, product) for each of N entries of this thread, `step` apart, that lie before `end`. All are read first. */
template <int N, class T, class I, class F>
__device__ void for_products(const sparse_task<T, I> &t, int64_t e, int64_t end, int step, F f) {
    I j[N];
    T v[N], x[N];
#pragma unroll
    for (int i = 0; i < N; i++) {
        const bool there = e + i * step < end;
        j[i] = there ? load_once(t.m.indices + e + i * step) : I(0);
        v[i] = there ? load_once(t.m.data + e + i * step) : T(0);
    }
#pragma unroll
    for (int i = 0; i < N; i++) x[i] = e + i * step < end ? get_factor(t, j[i]) : T(0);
#pragma unroll
    for (int i = 0; i < N; i++)
        if (e + i * step < end) f(i, v[i] * x[i]);
}

/* Compute y[row] for one vector. All lanes of a warp call it. */
template <class T, class I> __device__ void multiply_row(const sparse_task<T, I> &t, int64_t row) {
    const int lane = int(threadIdx.x) % 32;
    int64_t begin, end;
    find_bounds(t, row, &begin, &end);
    T sum = T(0);
    for (int64_t e = begin + lane; e < end; e += EACH * 32)
        for_products<EACH>(t, e, end, 32, [&](int, T product) { sum = sum + product; });
    sum = sum_lanes<32>(sum);
    if (lane == 0 && row < t.m.rows) t.y.data[row] = sum; /* 0 where the row is long */
}

template <class T, class I> __global__ void __launch_bounds__(THREADS)
    multiply_vector(const __grid_constant__ sparse_task<T, I> t) {
    multiply_row(t, (int64_t(blockIdx.x) * THREADS + threadIdx.x) / 32);
}

/* Compute `rows` elements of y, each by 2^shift lanes. */
template <class T, class I> __global__ void __launch_bounds__(THREADS)
    multiply_rows(const __grid_constant__ sparse_task<T, I> t, int rows, int shift) {
    __shared__ T products[TILE];
    const int64_t first_row = int64_t(blockIdx.x) * rows, last_row = min(first_row + rows, t.m.rows);
    const int lanes = 1 << shift, own = int(threadIdx.x) >> shift, lane = int(threadIdx.x) & (lanes - 1);
    const int64_t first = max(int64_t(t.m.indptr[first_row]), int64_t(0)), /* a wrong one is reported below */
        last = min(int64_t(t.m.indptr[last_row]), t.m.entries);
    if (last - first > TILES * TILE) {
        for (int64_t row = first_row + threadIdx.x / 32; row < last_row; row += THREADS / 32) multiply_row(t, row);
        return;
    }
    int64_t begin, end;
    find_bounds(t, own < rows ? first_row + own : t.m.rows, &begin, &end);
    T sum = T(0);
    for (int64_t at = first; at < last; at += TILE) {
        for_products<AHEAD>(t, at + threadIdx.x, last, THREADS,
                            [&](int i, T product) { products[i * THREADS + threadIdx.x] = product; });
        __syncthreads();
        const int from = int(min(max(begin - at, int64_t(0)), int64_t(TILE))),
                  to = int(min(max(min(end, last) - at, int64_t(0)), int64_t(TILE)));
        for (int e = from + lane; e < to; e += lanes) sum = sum + products[e];
        __syncthreads();
    }
    for (int by = lanes / 2; by > 0; by /= 2) sum = sum + shift_down(sum, by, lanes);
    if (lane == 0 && own < rows && first_row + own < t.m.rows) t.y.data[first_row + own] = sum;
}

/* Compute y[row, column] for several vectors: neighbouring threads have neighbouring columns. */
template <class T, class I> __global__ void __launch_bounds__(THREADS)
    multiply_panel(const __grid_constant__ sparse_task<T, I> t) {
    const int64_t u = int64_t(blockIdx.x) * THREADS + threadIdx.x, row = u / t.y.columns, column = u % t.y.columns;
    if (row >= t.m.rows) return;
    int64_t e, end;
    find_bounds(t, row, &e, &end);
    T sum = T(0);
    for (; e < end; e++) {
        const int64_t j = t.m.indices[e];
        if (uint64_t(j) < uint64_t(t.x.rows)) sum = sum + t.m.data[e] * t.x.data[j * t.x.columns + column];
        else ad_cuda_report(t.check, AD_CHECK_sparse_index, j, t.x.rows, 0);
    }
    t.y.data[row * t.y.columns + column] = sum;
}

/* The parts of a block's entries, LONG of them, that are of long rows: of these at most two reach into it. */
template <class T, class I> __global__ void __launch_bounds__(THREADS)
    multiply_long(const __grid_constant__ sparse_task<T, I> t) {
    if (*t.stop != 0 || *t.has_long == 0) return;
    const int64_t first = t.m.indptr[0] + int64_t(blockIdx.x) * LONG,
                  last = min(first + LONG, int64_t(t.m.indptr[t.m.rows]));
    if (first >= last) return;
    const int64_t rows[2] = {find_row(t.m.indptr, int64_t(0), t.m.rows - 1, first),
                             find_row(t.m.indptr, int64_t(0), t.m.rows - 1, last - 1)};
    for (int side = 0; side < (rows[0] == rows[1] ? 1 : 2); side++) {
        const int64_t row = rows[side], row_begin = t.m.indptr[row], row_end = t.m.indptr[row + 1];
        if (row_end - row_begin <= LONG) continue;
        const int64_t begin = max(first, row_begin), end = min(last, row_end);
        for (int64_t column = 0; column < t.y.columns; column++) {
            T sum = T(0);
            for (int64_t e = begin + threadIdx.x; e < end; e += THREADS) {
                const int64_t j = t.m.indices[e];
                if (uint64_t(j) < uint64_t(t.x.rows)) sum = sum + t.m.data[e] * t.x.data[j * t.x.columns + column];
                else ad_cuda_report(t.check, AD_CHECK_sparse_index, j, t.x.rows, 0);
            }
            sum = sum_lanes<32>(sum);
            if (threadIdx.x % 32 == 0) add_at(&t.y.data[row * t.y.columns + column], sum);
        }
    }
}

/* Rows of x are added to those of y that the indices name: `width` neighbouring threads share an entry's columns. */
template <class T, class I> __global__ void __launch_bounds__(THREADS)
    multiply_transposed(const __grid_constant__ sparse_task<T, I> t, int width) {
    if (*t.stop != 0) return;
    const int64_t first = t.m.indptr[0], last = t.m.indptr[t.m.rows];
    const int64_t u = int64_t(blockIdx.x) * THREADS + threadIdx.x, e = first + u / width;
    if (e >= last) return;
    const int64_t row = find_row(t.m.indptr, int64_t(0), t.m.rows - 1, e), j = t.m.indices[e];
    if (uint64_t(j) >= uint64_t(t.y.rows)) return ad_cuda_report(t.check, AD_CHECK_sparse_index, j, t.y.rows, 0);
    const T factor = t.m.data[e];
    for (int64_t column = u % width; column < t.x.columns; column += width)
        add_at(&t.y.data[j * t.y.columns + column], factor * t.x.data[row * t.x.columns + column]);
}

template <class T, class I> void enqueue_vector(ad_call *c, const sparse_task<T, I> &t) {
    const int64_t average = (t.m.entries + t.m.rows - 1) / t.m.rows;
    if (average > SHORT) {
        multiply_vector<<<count_blocks(t.m.rows, THREADS / 32), THREADS, 0, c->stream->cuda>>>(t);
        return;
    }
    const int rows = int(std::min<int64_t>(THREADS, TILE * 15 / 16 / std::max<int64_t>(average, 1)));
    int shift = 0;
    while (rows << (shift + 1) <= THREADS && shift < 5) shift++;
    multiply_rows<<<count_blocks(t.m.rows, rows), THREADS, 0, c->stream->cuda>>>(t, rows, shift);
}

template <class T, class I> int enqueue_product(ad_call *c, const sparse_task<T, I> &t) {
    if (t.y.columns == 1) enqueue_vector(c, t);
    else multiply_panel<<<count_blocks(t.m.rows * t.y.columns, THREADS), THREADS, 0, c->stream->cuda>>>(t);
    if (t.m.entries > LONG) multiply_long<<<count_blocks(t.m.entries, LONG), THREADS, 0, c->stream->cuda>>>(t);
    return ad_cuda_launched("spmm", c->fault);
}

template <class T, class I> int enqueue_transposed(ad_call *c, const sparse_task<T, I> &t) {
    const size_t size = size_t(t.y.rows * t.y.columns) * sizeof(T);
    const int status = ad_cuda_status(cudaMemsetAsync(t.y.data, 0, size, c->stream->cuda), "cudaMemsetAsync", c->fault);
    if (status || t.m.rows == 0 || t.m.entries == 0) return status;
    int width = 1;
    while (width < 32 && width < t.x.columns) width *= 2;
    multiply_transposed<<<count_blocks(t.m.entries * width, THREADS), THREADS, 0, c->stream->cuda>>>(t, width);
    return ad_cuda_launched("spmm", c->fault);
}

} // namespace

int ad_call_spmm(ad_call *c) {
    array in, out;
    int status;
    if ((status = ad_call_input_packed(c, 3, c->op->loop, &in)) || (status = linalg_output(c, 0, c->op->loop, &out)))
        return status;
    if (count(out) == 0) return 0;
    return visit_sparse(c, [&](auto element, auto index) {
        using T = typename decltype(element)::type;
        using I = typename decltype(index)::type;
        const bool transposed = c->op->param[1].as.b;
        sparse_task<T, I> t;
        if ((status = get_csr_input(c, 0, &t.m))) return status;
        t.x = panel_of<const T>(in);
        t.y = panel_of<T>(out);
        c->run->wrote = true;
        if ((status = transposed ? enqueue_check(c, &t) : enqueue_flags(c, &t))) return status;
        status = transposed ? enqueue_transposed(c, t) : enqueue_product(c, t);
        return status ? status : ad_call_finish(c, 0, &out);
    });
}
