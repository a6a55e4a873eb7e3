/* Products with sparse matrices. Some lanes of a warp, by the average length of rows, share a row, and look at its
 * bounds themselves. Rows far too long for a warp are left to blocks that share them, so no block takes long. */
#include "kernels/cuda/call/sparse/sparse.cuh"

namespace {

constexpr int64_t LONG = 8192; /* entries from which on a row is shared by blocks, and entries of such a block */
constexpr int EACH = 4;        /* entries that a thread has under way */

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

/* Compute y[row] for one vector. */
template <class T, class I, int Lanes> __global__ void __launch_bounds__(THREADS)
    multiply_vector(const __grid_constant__ sparse_task<T, I> t) {
    const int64_t row = (int64_t(blockIdx.x) * THREADS + threadIdx.x) / Lanes;
    const int lane = int(threadIdx.x) % Lanes;
    int64_t begin, end;
    find_bounds(t, row, &begin, &end);
    T sum = T(0);
    for (int64_t e = begin + lane; e < end; e += EACH * Lanes) {
        I j[EACH];
        T v[EACH], x[EACH];
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const bool there = e + i * Lanes < end;
            j[i] = there ? load_once(t.m.indices + e + i * Lanes) : I(0);
            v[i] = there ? load_once(t.m.data + e + i * Lanes) : T(0);
        }
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            x[i] = T(0);
            if (e + i * Lanes >= end) continue;
            if (uint64_t(int64_t(j[i])) < uint64_t(t.x.rows)) x[i] = t.x.data[j[i]];
            else ad_cuda_report(t.check, AD_CHECK_sparse_index, j[i], t.x.rows, 0);
        }
#pragma unroll
        for (int i = 0; i < EACH; i++)
            if (e + i * Lanes < end) sum = sum + v[i] * x[i];
    }
    sum = sum_lanes<Lanes>(sum);
    if (lane == 0 && row < t.m.rows) t.y.data[row] = sum; /* 0 where the row is long */
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
    const int64_t average = t.m.entries / t.m.rows;
    const auto launch = [&](auto lanes) {
        constexpr int Lanes = decltype(lanes)::value;
        multiply_vector<T, I, Lanes><<<count_blocks(t.m.rows, THREADS / Lanes), THREADS, 0, c->stream->cuda>>>(t);
    };
    if (average <= 6) launch(lanes_of<2>{});
    else if (average <= 16) launch(lanes_of<4>{});
    else if (average <= 48) launch(lanes_of<8>{});
    else if (average <= 96) launch(lanes_of<16>{});
    else launch(lanes_of<32>{});
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
