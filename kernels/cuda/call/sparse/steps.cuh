/* Steps of the calls whose results are sparse matrices of a size that the data decide: numbers are added up, and the
 * host waits for some of them. */
#ifndef AD_KERNELS_CUDA_CALL_SPARSE_STEPS_CUH
#define AD_KERNELS_CUDA_CALL_SPARSE_STEPS_CUH

#include <cub/device/device_scan.cuh>

#include "kernels/cuda/call/sparse/sparse.cuh"

namespace {

/* Numbers that the host waits for. */
struct counted {
    ad_check check;
    int64_t number;
    unsigned long long widest; /* products of a row */
};

template <class U> int take_workspace(ad_call *c, int64_t n, U **out) {
    *out = static_cast<U *>(ad_call_workspace(c, uint64_t(n) * sizeof(U)));
    return !*out ? AD_E_MEMORY : 0;
}

/* Add up n numbers in place; each becomes the sum of those before it, and of itself where that is asked for. */
inline int add_up(ad_call *c, int64_t *numbers, int64_t n, bool itself) {
    char *memory = nullptr;
    size_t size = 0;
    for (int pass = 0; pass < 2; pass++) {
        const cudaError_t error =
            itself ? cub::DeviceScan::InclusiveSum(memory, size, numbers, numbers, n, c->stream->cuda)
                   : cub::DeviceScan::ExclusiveSum(memory, size, numbers, numbers, n, c->stream->cuda);
        int status = ad_cuda_status(error, "adding up", c->fault);
        if (status || (pass == 0 && (status = take_workspace(c, int64_t(size), &memory)))) return status;
    }
    return 0;
}

/* Wait for numbers of the device, and for the checks before them. */
inline int read_counted(ad_call *c, const counted *from, counted *found) {
    const cudaStream_t stream = c->stream->cuda;
    int status = ad_cuda_status(cudaMemcpyAsync(found, from, sizeof *found, cudaMemcpyDeviceToHost, stream),
                                "reading numbers", c->fault);
    if (!status) status = ad_cuda_status(cudaStreamSynchronize(stream), "a sparse matrix", c->fault);
    return !status && found->check.code ? ad_cuda_check_fault(&found->check, c->fault) : status;
}

/* Places of entries, row by row, of which some are kept. */
template <class W, class I> struct kept_entries {
    int64_t n;
    const W *data;
    const I *indices;
    int64_t *kept; /* of n + 1 places: 1 for each that is kept, else 0; then how many before it are */
    W *to_data;
    I *to_indices;
};

template <class W, class I> __global__ void __launch_bounds__(THREADS)
    move_kept(const __grid_constant__ kept_entries<W, I> k) {
    const int64_t i = int64_t(blockIdx.x) * THREADS + threadIdx.x;
    if (i >= k.n) return;
    const int64_t at = k.kept[i];
    if (k.kept[i + 1] == at) return;
    k.to_data[at] = k.data[i];
    k.to_indices[at] = k.indices[i];
}

/* Write where rows begin that began at a, or at the sum of a and b, among all places. */
template <class I> __global__ void __launch_bounds__(THREADS)
    write_pointers(const I *a, const I *b, int64_t rows, const int64_t *kept, I *to) {
    const int64_t row = int64_t(blockIdx.x) * THREADS + threadIdx.x;
    if (row <= rows) to[row] = I(kept[int64_t(a[row]) + (b ? int64_t(b[row]) : 0)]);
}

/* Wait for the number of kept places, and for the checks before; then make outputs of that size, and move them there.
 * Rows are as in write_pointers. AD_E_INDEX, AD_E_VALUE, AD_E_MEMORY, AD_E_DEVICE. */
template <class W, class I>
int give_kept(ad_call *c, int dtype, kept_entries<W, I> k, counted *of_device, const I *a, const I *b, int64_t rows) {
    const cudaStream_t stream = c->stream->cuda;
    array out[3];
    counted found;
    int status;
    if ((status = add_up(c, k.kept, k.n + 1, false)) ||
        (status = ad_cuda_status(cudaMemcpyAsync(&of_device->number, k.kept + k.n, sizeof of_device->number,
                                                 cudaMemcpyDeviceToDevice, stream),
                                 "cudaMemcpyAsync", c->fault)) ||
        (status = read_counted(c, of_device, &found)) ||
        (status = size_csr_outputs<I>(c, dtype, found.number, rows, out)))
        return status;
    k.to_data = reinterpret_cast<W *>(out[0].data);
    k.to_indices = reinterpret_cast<I *>(out[1].data);
    if (k.n) move_kept<<<count_blocks(k.n, THREADS), THREADS, 0, stream>>>(k);
    write_pointers<<<count_blocks(rows + 1, THREADS), THREADS, 0, stream>>>(a, b, rows, k.kept,
                                                                            reinterpret_cast<I *>(out[2].data));
    status = ad_cuda_launched("entries that are kept", c->fault);
    return status ? status : finish_csr_outputs(c, out);
}

/* Make the numbers of give_kept, and *stop, all 0. AD_E_MEMORY, AD_E_DEVICE. */
template <class W, class I> int begin_kept(ad_call *c, kept_entries<W, I> *k, counted **of_device, int **stop) {
    const cudaStream_t stream = c->stream->cuda;
    int status;
    if ((status = take_workspace(c, 1, of_device)) || (status = take_workspace(c, 1, stop)) ||
        (status = take_workspace(c, k->n + 1, &k->kept)) ||
        (status =
             ad_cuda_status(cudaMemsetAsync(*of_device, 0, sizeof **of_device, stream), "cudaMemsetAsync", c->fault)) ||
        (status = ad_cuda_status(cudaMemsetAsync(*stop, 0, sizeof **stop, stream), "cudaMemsetAsync", c->fault)))
        return status;
    return ad_cuda_status(cudaMemsetAsync(k->kept, 0, uint64_t(k->n + 1) * sizeof(int64_t), stream), "cudaMemsetAsync",
                          c->fault);
}

template <class T, class I> void look_through(ad_call *c, const csr<T, I> &m, int *stop, counted *of_device) {
    check_indptr<<<count_blocks(m.rows + 1, THREADS), THREADS, 0, c->stream->cuda>>>(m.indptr, m.rows, m.entries, stop,
                                                                                     &of_device->check);
}

} // namespace
#endif
