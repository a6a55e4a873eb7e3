/* Parts of sparse matrices that take one look at their entries: a diagonal, rows by their numbers, and what is
 * connected. */
#include "kernels/cuda/call/sparse/steps.cuh"

namespace {

/* ---- a diagonal ---- */

template <class T, class I> __global__ void __launch_bounds__(THREADS)
    add_diagonal(const csr<T, I> m, int64_t row, int64_t column, int64_t length, const int *stop, T *to) {
    const int64_t e = int64_t(blockIdx.x) * THREADS + threadIdx.x;
    if (e >= m.entries || *stop || e < int64_t(m.indptr[row]) || e >= int64_t(m.indptr[row + length])) return;
    const int64_t i = find_row(m.indptr, row, row + length - 1, e) - row;
    if (int64_t(m.indices[e]) == column + i) add_at(to + i, m.data[e]);
}

template <class T, class I> int give_diagonal(ad_call *c) {
    const int64_t row = c->op->param[0].as.i, column = c->op->param[1].as.i, length = c->op->param[2].as.i;
    const cudaStream_t stream = c->stream->cuda;
    sparse_task<T, I> t = {};
    array out;
    int status;
    if ((status = get_csr_input(c, 0, &t.m)) || (status = linalg_output(c, 0, c->op->loop, &out))) return status;
    c->run->wrote = true;
    if ((status = enqueue_check(c, &t)) ||
        (status = ad_cuda_status(cudaMemsetAsync(out.data, 0, uint64_t(length) * sizeof(T), stream), "cudaMemsetAsync",
                                 c->fault)))
        return status;
    if (length && t.m.entries)
        add_diagonal<<<count_blocks(t.m.entries, THREADS), THREADS, 0, stream>>>(t.m, row, column, length, t.stop,
                                                                                 reinterpret_cast<T *>(out.data));
    status = ad_cuda_launched("spdiagonal", c->fault);
    return status ? status : ad_call_finish(c, 0, &out);
}

/* ---- rows by their numbers ---- */

/* Rows that are taken: where each begins in the matrix; of n + 1 places the entries of each, then how many are before.
 */
struct taken_rows {
    const int64_t *lines;
    int64_t n, *from, *ends;
};

template <class W, class I> __global__ void __launch_bounds__(THREADS)
    find_taken(const csr<W, I> m, const taken_rows t, const int *stop, ad_check *check) {
    const int64_t i = int64_t(blockIdx.x) * THREADS + threadIdx.x;
    if (i >= t.n || *stop) return;
    const int64_t line = t.lines[i], row = line < 0 ? line + m.rows : line;
    if (uint64_t(row) >= uint64_t(m.rows)) {
        ad_cuda_report(check, AD_CHECK_sparse_index, line, m.rows, 0);
        return;
    }
    const int64_t begin = m.indptr[row];
    t.from[i] = begin;
    t.ends[i] = int64_t(m.indptr[row + 1]) - begin;
}

template <class W, class I> __global__ void __launch_bounds__(THREADS)
    move_taken(const csr<W, I> m, const taken_rows t, int64_t total, W *data, I *indices) {
    const int64_t e = int64_t(blockIdx.x) * THREADS + threadIdx.x;
    if (e >= total) return;
    const int64_t i = find_row(t.ends, int64_t(0), t.n - 1, e), at = t.from[i] + (e - t.ends[i]);
    data[e] = m.data[at];
    indices[e] = m.indices[at];
}

template <class I> __global__ void __launch_bounds__(THREADS) write_ends(const taken_rows t, I *to) {
    const int64_t i = int64_t(blockIdx.x) * THREADS + threadIdx.x;
    if (i <= t.n) to[i] = I(t.ends[i]);
}

/* Make outputs of the size that has been found, and move the rows there. AD_E_VALUE, AD_E_MEMORY, AD_E_DEVICE. */
template <class W, class I> int give_taken(ad_call *c, const csr<W, I> &m, const taken_rows &t, int64_t total) {
    const cudaStream_t stream = c->stream->cuda;
    array out[3];
    int status = size_csr_outputs<I>(c, c->op->loop, total, t.n, out);
    if (status) return status;
    if (total)
        move_taken<<<count_blocks(total, THREADS), THREADS, 0, stream>>>(
            m, t, total, reinterpret_cast<W *>(out[0].data), reinterpret_cast<I *>(out[1].data));
    write_ends<<<count_blocks(t.n + 1, THREADS), THREADS, 0, stream>>>(t, reinterpret_cast<I *>(out[2].data));
    status = ad_cuda_launched("sptake", c->fault);
    return status ? status : finish_csr_outputs(c, out);
}

template <class W, class I> int take_rows(ad_call *c) {
    const cudaStream_t stream = c->stream->cuda;
    csr<W, I> m;
    array lines;
    kept_entries<W, I> k = {};
    counted *of_device, found;
    taken_rows t;
    int *stop;
    int status;
    if ((status = get_csr_input(c, 0, &m)) || (status = ad_call_input_packed(c, 3, AD_INT64, &lines))) return status;
    k.n = t.n = lines.shape[0];
    t.lines = reinterpret_cast<const int64_t *>(lines.data);
    if ((status = begin_kept(c, &k, &of_device, &stop)) || (status = take_workspace(c, t.n, &t.from))) return status;
    t.ends = k.kept;
    look_through(c, m, stop, of_device);
    if (t.n) find_taken<<<count_blocks(t.n, THREADS), THREADS, 0, stream>>>(m, t, stop, &of_device->check);
    if ((status = ad_cuda_launched("sptake", c->fault)) || (status = add_up(c, t.ends, t.n + 1, false)) ||
        (status = ad_cuda_status(cudaMemcpyAsync(&of_device->number, t.ends + t.n, sizeof of_device->number,
                                                 cudaMemcpyDeviceToDevice, stream),
                                 "cudaMemcpyAsync", c->fault)) ||
        (status = read_counted(c, of_device, &found)))
        return status;
    return give_taken(c, m, t, found.number);
}

/* ---- connected components ---- */

__device__ inline int32_t least_at(int32_t *p, int32_t v) { return atomicMin(p, v); }
__device__ inline int64_t least_at(int64_t *p, int64_t v) {
    return int64_t(atomicMin(reinterpret_cast<long long *>(p), (long long)v));
}

/* The root of a tree, of which each node has a lesser one or itself for a parent. */
template <class I> __device__ I find_root(const I *parents, I node) {
    for (I next; (next = *const_cast<volatile const I *>(parents + node)) != node; node = next) {}
    return node;
}

template <class I> __device__ void join_nodes(I *parents, I a, I b) {
    while (true) {
        a = find_root(parents, a);
        b = find_root(parents, b);
        if (a == b) return;
        const I high = a > b ? a : b, low = a > b ? b : a, old = least_at(parents + high, low);
        if (old == high) return;
        a = old;
        b = low;
    }
}

template <class I> __global__ void __launch_bounds__(THREADS) begin_nodes(I *parents, int64_t rows) {
    const int64_t i = int64_t(blockIdx.x) * THREADS + threadIdx.x;
    if (i < rows) parents[i] = I(i);
}

template <class T, class I> __global__ void __launch_bounds__(THREADS)
    join_entries(const csr<T, I> m, const int *stop, I *parents, ad_check *check) {
    const int64_t e = int64_t(blockIdx.x) * THREADS + threadIdx.x;
    if (e >= m.entries || *stop || e < int64_t(m.indptr[0]) || e >= int64_t(m.indptr[m.rows])) return;
    const I column = m.indices[e];
    if (uint64_t(int64_t(column)) >= uint64_t(m.rows)) {
        ad_cuda_report(check, AD_CHECK_sparse_index, column, m.rows, 0);
        return;
    }
    if (!(m.data[e] == T(0))) join_nodes(parents, I(find_row(m.indptr, int64_t(0), m.rows - 1, e)), column);
}

template <class I> __global__ void __launch_bounds__(THREADS) write_roots(const I *parents, int64_t rows, I *to) {
    const int64_t i = int64_t(blockIdx.x) * THREADS + threadIdx.x;
    if (i < rows) to[i] = find_root(parents, I(i));
}

template <class T, class I> int give_components(ad_call *c) {
    const cudaStream_t stream = c->stream->cuda;
    sparse_task<T, I> t = {};
    array out;
    I *parents;
    int status;
    if ((status = get_csr_input(c, 0, &t.m)) ||
        (status = linalg_output(c, 0, c->op->operand[c->op->nout + 1].desc.dtype, &out)) ||
        (status = take_workspace(c, t.m.rows, &parents)))
        return status;
    c->run->wrote = true;
    if ((status = enqueue_check(c, &t))) return status;
    const unsigned blocks = count_blocks(t.m.rows, THREADS);
    if (blocks) begin_nodes<<<blocks, THREADS, 0, stream>>>(parents, t.m.rows);
    if (t.m.entries)
        join_entries<<<count_blocks(t.m.entries, THREADS), THREADS, 0, stream>>>(t.m, t.stop, parents, t.check);
    if (blocks) write_roots<<<blocks, THREADS, 0, stream>>>(parents, t.m.rows, reinterpret_cast<I *>(out.data));
    status = ad_cuda_launched("spcomponents", c->fault);
    return status ? status : ad_call_finish(c, 0, &out);
}

} // namespace

int ad_call_spdiagonal(ad_call *c) {
    return visit_sparse(c, [&](auto element, auto index) {
        return give_diagonal<typename decltype(element)::type, typename decltype(index)::type>(c);
    });
}

int ad_call_sptake(ad_call *c) {
    return visit_moved(c, [&](auto element, auto index) {
        return take_rows<typename decltype(element)::type, typename decltype(index)::type>(c);
    });
}

int ad_call_spcomponents(ad_call *c) {
    return visit_sparse(c, [&](auto element, auto index) {
        return give_components<typename decltype(element)::type, typename decltype(index)::type>(c);
    });
}
