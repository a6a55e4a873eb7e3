/* Functions of the elements of two sparse matrices. Each entry finds its place among those of both, by its column in
 * the other one's row; of two entries of one place the first matrix's stands for both. Results that are not 0 are then
 * moved together. */
#include "kernels/cuda/call/sparse/steps.cuh"

namespace {

/* Two matrices, and the places of their entries. R: T, or bytes for bools. */
template <class T, class R, class I> struct uniting {
    csr<T, I> a, b;
    int function;
    R *data; /* of each place */
    I *indices;
    int64_t *kept;
    const int *stop;
    ad_check *check;
};

template <class R, class T> __device__ R result_of(T x) {
    if constexpr (sizeof(R) == 1) return adm::truth(x);
    else return x;
}

template <class T, class R, class I> __global__ void __launch_bounds__(THREADS)
    place_entries(const __grid_constant__ uniting<T, R, I> u) {
    const int64_t i = int64_t(blockIdx.x) * THREADS + threadIdx.x;
    if (i >= u.a.entries + u.b.entries || *u.stop) return;
    const bool first = i < u.a.entries;
    const csr<T, I> own = first ? u.a : u.b, other = first ? u.b : u.a;
    const int64_t e = first ? i : i - u.a.entries;
    if (e < int64_t(own.indptr[0]) || e >= int64_t(own.indptr[own.rows])) return;
    const int64_t row = find_row(own.indptr, int64_t(0), own.rows - 1, e), j = own.indices[e];
    if (e > int64_t(own.indptr[row]) && int64_t(own.indices[e - 1]) >= j)
        ad_cuda_report(u.check, AD_CHECK_sparse_sorted, row, 0, 0);
    const int64_t behind = other.indptr[row + 1],
                  at = find_column(other.indices, int64_t(other.indptr[row]), behind, j);
    const bool both = at < behind && int64_t(other.indices[at]) == j;
    if (both && !first) return;
    const T x = own.data[e], y = both ? other.data[at] : T(0);
    const T value = first ? unite(u.function, x, y, true) : unite(u.function, y, x, false);
    u.data[e + at] = result_of<R>(value);
    u.indices[e + at] = I(j);
    u.kept[e + at] = u.function == AD_UNION_EITHER || adm::truth(value);
}

template <class R, class T, class I> int unite_matrices(ad_call *c, const csr<T, I> &a, const csr<T, I> &b, int dtype) {
    const int64_t n = a.entries + b.entries;
    kept_entries<R, I> k = {};
    R *data;
    I *indices;
    counted *of_device;
    int *stop;
    int status;
    k.n = n;
    if ((status = begin_kept(c, &k, &of_device, &stop)) || (status = take_workspace(c, n, &data)) ||
        (status = take_workspace(c, n, &indices)))
        return status;
    k.data = data;
    k.indices = indices;
    look_through(c, a, stop, of_device);
    look_through(c, b, stop, of_device);
    const uniting<T, R, I> u = {a, b, int(c->op->param[0].as.i), data, indices, k.kept, stop, &of_device->check};
    if (n) place_entries<<<count_blocks(n, THREADS), THREADS, 0, c->stream->cuda>>>(u);
    if ((status = ad_cuda_launched("spunion", c->fault))) return status;
    return give_kept(c, dtype, k, of_device, a.indptr, b.indptr, a.rows);
}

} // namespace

int ad_call_spunion(ad_call *c) {
    return visit_union(c, [&](auto element, auto index) {
        using T = typename decltype(element)::type;
        csr<T, typename decltype(index)::type> a, b;
        int status;
        if ((status = get_csr_input(c, 0, &a)) || (status = get_csr_input(c, 3, &b))) return status;
        return ad__union_compares(c->op->param[0].as.i) ? unite_matrices<uint8_t>(c, a, b, AD_BOOL)
                                                        : unite_matrices<T>(c, a, b, c->op->loop);
    });
}
