/* Products of two sparse matrices. Where all rows have few products of entries, short_rows.cuh has what becomes of
 * them. Else all are written down with the places that they belong to, sorted by place, and those of one place are
 * added up in their order. The stream is waited for twice: for the number of products, and for that of places. */
#include "kernels/cuda/call/sort/sort.h"
#include "kernels/cuda/call/sparse/short_rows.cuh"
#include "kernels/cuda/call/sparse/steps.cuh"

namespace {

constexpr int64_t MOST_PRODUCTS = AD_RADIX_MOST;
constexpr int64_t TILE = 8 * THREADS; /* products that a block writes down */
constexpr int64_t LONG = 1024; /* products of a place that one thread adds up, and products of a block that does */

template <class I> __global__ void __launch_bounds__(THREADS)
    check_entries(const I *indices, int64_t entries, int64_t size, ad_check *check) {
    const int64_t e = int64_t(blockIdx.x) * THREADS + threadIdx.x;
    if (e >= entries) return;
    const int64_t j = indices[e];
    if (uint64_t(j) >= uint64_t(size)) ad_cuda_report(check, AD_CHECK_sparse_index, j, size, 0);
}

/* Write how many products each entry of a has; the host has not yet seen whether indices are good. */
template <class T, class I> __global__ void __launch_bounds__(THREADS)
    count_products(const __grid_constant__ matrix_product<T, I> p) {
    const int64_t e = int64_t(blockIdx.x) * THREADS + threadIdx.x;
    if (e > p.a.entries) return;
    int64_t n = 0;
    if (e < p.a.entries && e >= int64_t(p.a.indptr[0]) && e < int64_t(p.a.indptr[p.a.rows])) {
        const int64_t k = p.a.indices[e];
        if (uint64_t(k) < uint64_t(p.b.rows)) n = int64_t(p.b.indptr[k + 1]) - int64_t(p.b.indptr[k]);
    }
    p.begin[e] = n;
}

template <class T, class I> __global__ void __launch_bounds__(THREADS)
    find_widest(const __grid_constant__ matrix_product<T, I> p, const int *stop, counted *found) {
    const int64_t row = int64_t(blockIdx.x) * THREADS + threadIdx.x;
    if (row == 0) found->number = p.begin[p.a.entries];
    if (*stop) return;
    const int64_t n = row < p.a.rows ? p.begin[p.a.indptr[row + 1]] - p.begin[p.a.indptr[row]] : 0;
    if (__syncthreads_or(n > MOST_LANES)) {
        if (threadIdx.x == 0) atomicMax(&found->widest, MOST_LANES + 1ull);
    } else {
        const unsigned widest = __reduce_max_sync(ALL, unsigned(n));
        if (threadIdx.x % 32 == 0 && widest > found->widest) atomicMax(&found->widest, widest);
    }
}

/* Write the products of a's entries, TILE of them a block. Rows of either matrix may have any length, so each thread
 * finds the entry and the row of its product between those of the block's first and last one. */
template <class T, class I> __global__ void __launch_bounds__(THREADS)
    expand_products(const __grid_constant__ matrix_product<T, I> p) {
    __shared__ int64_t entries[2], rows[2];
    const int64_t first = int64_t(blockIdx.x) * TILE, last = min(first + TILE, p.products);
    if (threadIdx.x < 2) {
        const int64_t e = find_row(p.begin, int64_t(0), p.a.entries - 1, threadIdx.x == 0 ? first : last - 1);
        entries[threadIdx.x] = e;
        rows[threadIdx.x] = find_row(p.a.indptr, int64_t(0), p.a.rows - 1, e);
    }
    __syncthreads();
    for (int64_t i = first + threadIdx.x; i < last; i += THREADS) {
        const int64_t e = find_row(p.begin, entries[0], entries[1], i), k = p.a.indices[e],
                      row = find_row(p.a.indptr, rows[0], rows[1], e), f = int64_t(p.b.indptr[k]) + i - p.begin[e];
        p.keys[i] = uint64_t(row) * uint64_t(p.columns) + uint64_t(p.b.indices[f]);
        p.numbers[i] = uint32_t(i);
        p.values[i] = p.a.data[e] * p.b.data[f];
    }
}

template <class T, class I> __global__ void __launch_bounds__(THREADS)
    mark_places(const __grid_constant__ matrix_product<T, I> p) {
    const int64_t i = int64_t(blockIdx.x) * THREADS + threadIdx.x;
    if (i < p.products) p.place[i] = i == 0 || p.keys[i] != p.keys[i - 1];
}

/* Add up the products of one place: the thread of the first of them does. Those of a place that has more than LONG are
 * left to add_long_places. */
template <class T, class I> __global__ void __launch_bounds__(THREADS)
    add_places(const __grid_constant__ matrix_product<T, I> p) {
    const int64_t i = int64_t(blockIdx.x) * THREADS + threadIdx.x;
    if (i >= p.products) return;
    const uint64_t key = p.keys[i];
    if (i > 0 && p.keys[i - 1] == key) return;
    T sum = T(0);
    if (i + LONG >= p.products || p.keys[i + LONG] != key) {
        sum = p.values[p.numbers[i]];
        for (int64_t k = i + 1; k < p.products && p.keys[k] == key; k++) sum = sum + p.values[p.numbers[k]];
    }
    const int64_t at = p.place[i] - 1;
    p.data[at] = sum;
    p.indices[at] = I(key % uint64_t(p.columns));
}

/* The first of n sorted keys that is not below `key`. */
__device__ inline int64_t find_key(const uint64_t *keys, int64_t n, uint64_t key) {
    int64_t low = 0, high = n;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (keys[middle] < key) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* Add those of a block's LONG products that belong to places with more than LONG: of these at most two reach into it.
 */
template <class T, class I> __global__ void __launch_bounds__(THREADS)
    add_long_places(const __grid_constant__ matrix_product<T, I> p) {
    const int64_t first = int64_t(blockIdx.x) * LONG, last = min(first + LONG, p.products);
    const uint64_t keys[2] = {p.keys[first], p.keys[last - 1]};
    for (int side = 0; side < (keys[0] == keys[1] ? 1 : 2); side++) {
        const int64_t begin = find_key(p.keys, p.products, keys[side]),
                      end = find_key(p.keys, p.products, keys[side] + 1);
        if (end - begin <= LONG) continue;
        T sum = T(0);
        for (int64_t i = max(first, begin) + threadIdx.x; i < min(last, end); i += THREADS)
            sum = sum + p.values[p.numbers[i]];
        sum = sum_lanes<32>(sum);
        if (threadIdx.x % 32 == 0) add_at(&p.data[p.place[begin] - 1], sum);
    }
}

/* The places of a row begin at the first key that is its own or a later row's. */
template <class T, class I> __global__ void __launch_bounds__(THREADS)
    find_rows(const __grid_constant__ matrix_product<T, I> p) {
    const int64_t row = int64_t(blockIdx.x) * THREADS + threadIdx.x;
    if (row > p.a.rows) return;
    const int64_t at = find_key(p.keys, p.products, uint64_t(row) * uint64_t(p.columns));
    p.indptr[row] = I(at > 0 ? p.place[at - 1] : 0);
}

int read_number(ad_call *c, const int64_t *from, int64_t *out) {
    const cudaStream_t stream = c->stream->cuda;
    const int status = ad_cuda_status(cudaMemcpyAsync(out, from, sizeof *out, cudaMemcpyDeviceToHost, stream),
                                      "reading a number", c->fault);
    return status ? status : ad_cuda_status(cudaStreamSynchronize(stream), "spgemm", c->fault);
}

/* Look through both matrices, and count the products. AD_E_INDEX, AD_E_VALUE, AD_E_MEMORY, AD_E_DEVICE. */
template <class T, class I> int count_all(ad_call *c, matrix_product<T, I> *p) {
    const cudaStream_t stream = c->stream->cuda;
    counted *of_device, found;
    int *stop;
    int status;
    if ((status = take_workspace(c, 1, &of_device)) || (status = take_workspace(c, 1, &stop)) ||
        (status = take_workspace(c, p->a.entries + 1, &p->begin)) ||
        (status =
             ad_cuda_status(cudaMemsetAsync(of_device, 0, sizeof *of_device, stream), "cudaMemsetAsync", c->fault)) ||
        (status = ad_cuda_status(cudaMemsetAsync(stop, 0, sizeof *stop, stream), "cudaMemsetAsync", c->fault)))
        return status;
    ad_check *check = &of_device->check;
    for (const csr<T, I> *m : {&p->a, &p->b}) {
        const int64_t size = m == &p->a ? p->b.rows : p->columns;
        check_indptr<<<count_blocks(m->rows + 1, THREADS), THREADS, 0, stream>>>(m->indptr, m->rows, m->entries, stop,
                                                                                 check);
        if (m->entries)
            check_entries<<<count_blocks(m->entries, THREADS), THREADS, 0, stream>>>(m->indices, m->entries, size,
                                                                                     check);
    }
    count_products<<<count_blocks(p->a.entries + 1, THREADS), THREADS, 0, stream>>>(*p);
    if ((status = ad_cuda_launched("spgemm", c->fault)) || (status = add_up(c, p->begin, p->a.entries + 1, false)))
        return status;
    find_widest<<<count_blocks(p->a.rows + 1, THREADS), THREADS, 0, stream>>>(*p, stop, of_device);
    if ((status = ad_cuda_launched("spgemm", c->fault)) || (status = read_counted(c, of_device, &found))) return status;
    p->products = found.number;
    p->widest = int(found.widest);
    if (p->products <= MOST_PRODUCTS) return 0;
    return ad__fault(c->fault, AD_E_VALUE,
                     "spgemm: %lld products are too many at once: multiply fewer rows of the first matrix",
                     (long long)p->products);
}

/* Write down the products, and sort them by place. */
template <class T, class I> int sort_products(ad_call *c, matrix_product<T, I> *p) {
    const cudaStream_t stream = c->stream->cuda;
    ad_radix_pairs pairs = {{}, {}, 0, 1};
    char *memory;
    size_t size = 0;
    int status;
    while (pairs.end < 63 && uint64_t(p->a.rows) * uint64_t(p->columns) >> pairs.end) pairs.end++;
    for (int i = 0; i < 2; i++) {
        uint64_t *keys;
        if ((status = take_workspace(c, p->products, &keys)) ||
            (status = take_workspace(c, p->products, &pairs.index[i])))
            return status;
        pairs.keys[i] = keys;
    }
    if ((status = take_workspace(c, p->products, &p->values))) return status;
    p->keys = static_cast<uint64_t *>(pairs.keys[0]);
    p->numbers = pairs.index[0];
    expand_products<<<count_blocks(p->products, TILE), THREADS, 0, stream>>>(*p);
    if ((status = ad_cuda_launched("spgemm", c->fault)) ||
        (status = ad_cuda_status(ad_cuda_radix_pairs64(nullptr, &size, &pairs, int(p->products), stream), "sorting",
                                 c->fault)) ||
        (status = take_workspace(c, int64_t(size), &memory)) ||
        (status = ad_cuda_status(ad_cuda_radix_pairs64(memory, &size, &pairs, int(p->products), stream), "sorting",
                                 c->fault)))
        return status;
    p->keys = static_cast<uint64_t *>(pairs.keys[pairs.at]);
    p->numbers = pairs.index[pairs.at];
    p->place = static_cast<int64_t *>(pairs.keys[1 - pairs.at]);
    return 0;
}

/* Count the places that there are. */
template <class T, class I> int count_places(ad_call *c, matrix_product<T, I> *p, int64_t *places) {
    int status;
    *places = 0;
    if (p->products == 0) return 0;
    if ((status = sort_products(c, p))) return status;
    mark_places<<<count_blocks(p->products, THREADS), THREADS, 0, c->stream->cuda>>>(*p);
    if ((status = ad_cuda_launched("spgemm", c->fault)) || (status = add_up(c, p->place, p->products, true)))
        return status;
    return read_number(c, p->place + p->products - 1, places);
}

template <class T, class I> int write_places(ad_call *c, const matrix_product<T, I> &p) {
    find_rows<<<count_blocks(p.a.rows + 1, THREADS), THREADS, 0, c->stream->cuda>>>(p);
    if (p.products) add_places<<<count_blocks(p.products, THREADS), THREADS, 0, c->stream->cuda>>>(p);
    if (p.products > LONG) add_long_places<<<count_blocks(p.products, LONG), THREADS, 0, c->stream->cuda>>>(p);
    return ad_cuda_launched("spgemm", c->fault);
}

/* ---- short rows ---- */

template <class T, class I> bool has_short_rows(const matrix_product<T, I> &p) { return p.widest <= MOST_LANES; }

/* f(lanes) with as many lanes, known to the compiler, as a row needs. */
template <class T, class I, class F> int with_lanes(const matrix_product<T, I> &p, F f) {
    return p.widest <= 8 ? f(lanes_of<8>{}) : p.widest <= 16 ? f(lanes_of<16>{}) : f(lanes_of<32>{});
}

template <class T, class I> int count_short_places(ad_call *c, matrix_product<T, I> *p, int64_t *places) {
    int status = take_workspace(c, p->a.rows + 1, &p->place);
    if (status) return status;
    status = with_lanes(*p, [&](auto lanes) {
        constexpr int Lanes = decltype(lanes)::value;
        count_row_places<Lanes><<<count_blocks(p->a.rows + 1, THREADS / Lanes), THREADS, 0, c->stream->cuda>>>(*p);
        return ad_cuda_launched("spgemm", c->fault);
    });
    if (status || (status = add_up(c, p->place, p->a.rows + 1, false))) return status;
    return read_number(c, p->place + p->a.rows, places);
}

template <class T, class I> int write_short_places(ad_call *c, const matrix_product<T, I> &p) {
    return with_lanes(p, [&](auto lanes) {
        constexpr int Lanes = decltype(lanes)::value;
        write_row_places<Lanes><<<count_blocks(p.a.rows + 1, THREADS / Lanes), THREADS, 0, c->stream->cuda>>>(p);
        return ad_cuda_launched("spgemm", c->fault);
    });
}

template <class T, class I> int multiply_matrices(ad_call *c) {
    matrix_product<T, I> p = {};
    int64_t n;
    int status;
    p.columns = c->op->param[0].as.i;
    if ((status = get_csr_input(c, 0, &p.a)) || (status = get_csr_input(c, 3, &p.b)) || (status = count_all(c, &p)))
        return status;
    if ((status = has_short_rows(p) ? count_short_places(c, &p, &n) : count_places(c, &p, &n))) return status;
    const int index_dtype = c->op->operand[1].desc.dtype;
    array out[3] = {{nullptr, c->op->loop, 1, {n}, {}},
                    {nullptr, index_dtype, 1, {n}, {}},
                    {nullptr, index_dtype, 1, {p.a.rows + 1}, {}}};
    if (int64_t(I(n)) != n)
        return ad__fault(c->fault, AD_E_VALUE, "the product has %lld entries, too many for indices of type int32",
                         (long long)n);
    for (int k = 0; k < 3; k++)
        if ((status = ad_call_sized(c, k, &out[k]))) return status;
    c->run->values[0] = n;
    c->run->nvalues = 1;
    p.data = reinterpret_cast<T *>(out[0].data);
    p.indices = reinterpret_cast<I *>(out[1].data);
    p.indptr = reinterpret_cast<I *>(out[2].data);
    if ((status = has_short_rows(p) ? write_short_places(c, p) : write_places(c, p))) return status;
    for (int k = 0; k < 3; k++)
        if ((status = ad_call_finish(c, k, &out[k]))) return status;
    return 0;
}

} // namespace

int ad_call_spgemm(ad_call *c) {
    return visit_sparse(c, [&](auto element, auto index) {
        return multiply_matrices<typename decltype(element)::type, typename decltype(index)::type>(c);
    });
}
