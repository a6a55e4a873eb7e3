/* Entries of sparse matrices in another order, or some of them: elements are moved and no more. */
#include "kernels/cuda/call/sort/sort.h"
#include "kernels/cuda/call/sparse/steps.cuh"

namespace {

template <class I>
__global__ void check_whole(const I *indptr, int64_t rows, int64_t entries, int *stop, ad_check *check) {
    if (indptr[0] == 0 && int64_t(indptr[rows]) == entries) return;
    *stop = 1;
    ad_cuda_report(check, AD_CHECK_sparse_whole, entries, 0, 0);
}

/* Enqueue the look through the indptr of t->m, which must have all entries. AD_E_MEMORY, AD_E_DEVICE. */
template <class W, class I> int enqueue_whole_check(ad_call *c, sparse_task<W, I> *t) {
    const int status = enqueue_check(c, t);
    if (status) return status;
    check_whole<<<1, 1, 0, c->stream->cuda>>>(t->m.indptr, t->m.rows, t->m.entries, t->stop, t->check);
    return ad_cuda_launched("the check of indptr", c->fault);
}

/* ---- the transposed matrix: entries are sorted by column ---- */

/* K: a number of a column. One that is out of bounds becomes the number of columns. */
template <class K, class I> __global__ void __launch_bounds__(THREADS)
    list_columns(const I *indices, int64_t entries, int64_t columns, K *keys, uint32_t *numbers, ad_check *check) {
    const int64_t e = int64_t(blockIdx.x) * THREADS + threadIdx.x;
    if (e >= entries) return;
    const int64_t j = indices[e];
    const bool inside = uint64_t(j) < uint64_t(columns);
    if (!inside) ad_cuda_report(check, AD_CHECK_sparse_index, j, columns, 0);
    keys[e] = K(inside ? j : columns);
    numbers[e] = uint32_t(e);
}

template <class W, class I> __global__ void __launch_bounds__(THREADS)
    move_entries(const csr<W, I> m, const uint32_t *numbers, W *data, I *indices) {
    const int64_t i = int64_t(blockIdx.x) * THREADS + threadIdx.x;
    if (i >= m.entries) return;
    const int64_t e = numbers[i];
    data[i] = m.data[e];
    indices[i] = I(find_row(m.indptr, int64_t(0), m.rows - 1, e));
}

/* Each column begins at the first key that is not below its number. */
template <class K, class I> __global__ void __launch_bounds__(THREADS)
    find_columns(const K *keys, int64_t entries, int64_t columns, I *indptr) {
    const int64_t j = int64_t(blockIdx.x) * THREADS + threadIdx.x;
    if (j > columns) return;
    int64_t low = 0, high = entries;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (int64_t(keys[middle]) < j) low = middle + 1;
        else high = middle;
    }
    indptr[j] = I(low);
}

/* Sort the entries by column. K has 32 bits or 64. */
template <class K, class I> int sort_columns(ad_call *c, const I *indices, int64_t entries, int64_t columns,
                                             ad_check *check, ad_radix_pairs *pairs) {
    const cudaStream_t stream = c->stream->cuda;
    const auto sort = sizeof(K) == 4 ? ad_cuda_radix_pairs32 : ad_cuda_radix_pairs64;
    char *memory;
    size_t size = 0;
    int status;
    *pairs = {{}, {}, 0, 1};
    while (uint64_t(columns) >> pairs->end) pairs->end++;
    for (int i = 0; i < 2; i++) {
        K *keys;
        if ((status = take_workspace(c, entries, &keys)) || (status = take_workspace(c, entries, &pairs->index[i])))
            return status;
        pairs->keys[i] = keys;
    }
    if (entries == 0) return 0;
    list_columns<<<count_blocks(entries, THREADS), THREADS, 0, stream>>>(
        indices, entries, columns, static_cast<K *>(pairs->keys[0]), pairs->index[0], check);
    if ((status = ad_cuda_launched("sptranspose", c->fault)) ||
        (status = ad_cuda_status(sort(nullptr, &size, pairs, int(entries), stream), "sorting", c->fault)) ||
        (status = take_workspace(c, int64_t(size), &memory)))
        return status;
    return ad_cuda_status(sort(memory, &size, pairs, int(entries), stream), "sorting", c->fault);
}

template <class K, class W, class I> int transpose_entries(ad_call *c, const sparse_task<W, I> &t, const array out[3]) {
    const cudaStream_t stream = c->stream->cuda;
    const int64_t columns = c->op->param[0].as.i;
    ad_radix_pairs pairs;
    const int status = sort_columns<K>(c, t.m.indices, t.m.entries, columns, t.check, &pairs);
    if (status) return status;
    if (t.m.entries)
        move_entries<<<count_blocks(t.m.entries, THREADS), THREADS, 0, stream>>>(
            t.m, pairs.index[pairs.at], reinterpret_cast<W *>(out[0].data), reinterpret_cast<I *>(out[1].data));
    find_columns<<<count_blocks(columns + 1, THREADS), THREADS, 0, stream>>>(
        static_cast<const K *>(pairs.keys[pairs.at]), t.m.entries, columns, reinterpret_cast<I *>(out[2].data));
    return ad_cuda_launched("sptranspose", c->fault);
}

template <class W, class I> int transpose_matrix(ad_call *c) {
    sparse_task<W, I> t = {};
    array out[3];
    int status = get_csr_input(c, 0, &t.m);
    for (int k = 0; k < 3 && !status; k++)
        status = linalg_output(c, k, k ? c->op->operand[c->op->nout + 1].desc.dtype : c->op->loop, &out[k]);
    if (status) return status;
    if (t.m.entries > AD_RADIX_MOST)
        return ad__fault(c->fault, AD_E_VALUE,
                         "sptranspose: %lld entries are too many at once: transpose fewer rows of the matrix",
                         (long long)t.m.entries);
    c->run->wrote = true;
    if ((status = enqueue_whole_check(c, &t))) return status;
    status = c->op->param[0].as.i < UINT32_MAX ? transpose_entries<uint32_t>(c, t, out)
                                               : transpose_entries<uint64_t>(c, t, out);
    return status ? status : finish_csr_outputs(c, out);
}

/* ---- columns and diagonals ---- */

template <class W, class I> __global__ void __launch_bounds__(THREADS)
    mark_band(const csr<W, I> m, const band kept_band, const int *stop, int64_t *kept) {
    const int64_t e = int64_t(blockIdx.x) * THREADS + threadIdx.x;
    if (e >= m.entries || *stop || e < int64_t(m.indptr[0]) || e >= int64_t(m.indptr[m.rows])) return;
    const uint64_t shift = kept_band.diagonal ? uint64_t(find_row(m.indptr, int64_t(0), m.rows - 1, e)) : 0;
    const int64_t place = int64_t(uint64_t(int64_t(m.indices[e])) - shift);
    kept[e] = place >= kept_band.low && place <= kept_band.high;
}

template <class W, class I> int keep_band(ad_call *c) {
    csr<W, I> m;
    kept_entries<W, I> k = {};
    counted *of_device;
    int *stop;
    int status = get_csr_input(c, 0, &m);
    if (status) return status;
    k.n = m.entries;
    k.data = m.data;
    k.indices = m.indices;
    if ((status = begin_kept(c, &k, &of_device, &stop))) return status;
    look_through(c, m, stop, of_device);
    const band kept = get_band(c);
    if (m.entries) mark_band<<<count_blocks(m.entries, THREADS), THREADS, 0, c->stream->cuda>>>(m, kept, stop, k.kept);
    if ((status = ad_cuda_launched("spband", c->fault))) return status;
    return give_kept(c, c->op->loop, k, of_device, m.indptr, static_cast<const I *>(nullptr), m.rows);
}

/* ---- rows of entries ---- */

template <class I> __global__ void __launch_bounds__(THREADS)
    write_rows(const I *indptr, int64_t rows, int64_t entries, const int *stop, I *to) {
    const int64_t e = int64_t(blockIdx.x) * THREADS + threadIdx.x;
    if (e < entries && !*stop) to[e] = I(find_row(indptr, int64_t(0), rows - 1, e));
}

template <class I> int list_rows(ad_call *c) {
    array in, out;
    sparse_task<I, I> t = {};
    int status;
    if ((status = ad_call_input_packed(c, 0, c->op->loop, &in)) || (status = linalg_output(c, 0, c->op->loop, &out)))
        return status;
    t.m = {nullptr, nullptr, reinterpret_cast<const I *>(in.data), in.shape[0] - 1, c->op->param[0].as.i};
    c->run->wrote = true;
    if ((status = enqueue_whole_check(c, &t))) return status;
    if (t.m.entries)
        write_rows<<<count_blocks(t.m.entries, THREADS), THREADS, 0, c->stream->cuda>>>(
            t.m.indptr, t.m.rows, t.m.entries, t.stop, reinterpret_cast<I *>(out.data));
    status = ad_cuda_launched("sprows", c->fault);
    return status ? status : ad_call_finish(c, 0, &out);
}

} // namespace

int ad_call_sptranspose(ad_call *c) {
    return visit_moved(c, [&](auto element, auto index) {
        return transpose_matrix<typename decltype(element)::type, typename decltype(index)::type>(c);
    });
}

int ad_call_spband(ad_call *c) {
    return visit_moved(c, [&](auto element, auto index) {
        return keep_band<typename decltype(element)::type, typename decltype(index)::type>(c);
    });
}

int ad_call_sprows(ad_call *c) { return c->op->loop == AD_INT64 ? list_rows<int64_t>(c) : list_rows<int32_t>(c); }
