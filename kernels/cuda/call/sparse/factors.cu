/* Incomplete factors. As in triangular.cu a warp takes the next row, and waits until the rows that it depends on are
 * known; these are rows that running warps have taken before. Of two rows the shorter one is gone through, and its
 * columns are searched in the other. */
#include "kernels/cuda/call/sparse/sparse.cuh"

namespace {

constexpr int WARP = 32;

template <class T, class I> struct factoring {
    csr<T, I> m;
    T *x;                      /* the factors; where they lie the matrix was copied to */
    int64_t *upper;            /* of each row, where its entries behind the diagonal begin */
    unsigned long long *taken; /* rows that warps have taken */
    int *known;                /* for each row, in memory that is 0 at first */
    unsigned long long *bad;   /* the first row whose diagonal element is missing, 0 or NaN; all bits set at first */
    int *stop;
    ad_check *check;
};

template <class T, class I> __global__ void __launch_bounds__(THREADS)
    check_ascending(const __grid_constant__ factoring<T, I> s) {
    if (*s.stop == 1) return; /* indptr is wrong */
    const int64_t e = int64_t(s.m.indptr[0]) + int64_t(blockIdx.x) * THREADS + threadIdx.x;
    if (e >= int64_t(s.m.indptr[s.m.rows])) return;
    const int64_t j = s.m.indices[e], row = find_row(s.m.indptr, int64_t(0), s.m.rows - 1, e);
    const bool inside = uint64_t(j) < uint64_t(s.m.rows);
    if (inside && (e == int64_t(s.m.indptr[row]) || int64_t(s.m.indices[e - 1]) < j)) return;
    if (inside) ad_cuda_report(s.check, AD_CHECK_sparse_sorted, row, 0, 0);
    else ad_cuda_report(s.check, AD_CHECK_sparse_index, j, s.m.rows, 0);
    *s.stop = 2;
}

template <class T, class I> __global__ void __launch_bounds__(THREADS)
    find_diagonals(const __grid_constant__ factoring<T, I> s) {
    const int64_t row = int64_t(blockIdx.x) * THREADS + threadIdx.x;
    if (*s.stop != 0 || row >= s.m.rows) return;
    s.upper[row] = find_column(s.m.indices, int64_t(s.m.indptr[row]), int64_t(s.m.indptr[row + 1]), row + 1);
}

template <class T> __device__ T load_known(const T *from) {
    if constexpr (is_complex<T>) return T(__ldcg(&from->re), __ldcg(&from->im));
    else return __ldcg(from);
}

template <class T, class I> __device__ bool has_diagonal(const factoring<T, I> &s, int64_t row) {
    const int64_t at = s.upper[row];
    return at > int64_t(s.m.indptr[row]) && int64_t(s.m.indices[at - 1]) == row;
}

template <class T, class I> __device__ T load_diagonal(const factoring<T, I> &s, int64_t row) {
    return has_diagonal(s, row) ? load_known(s.x + s.upper[row] - 1) : T(0);
}

/* f(entry of the first range, entry of the second) for this lane's part of the columns that both have. */
template <class T, class I, class F>
__device__ void meet_columns(const factoring<T, I> &s, int lane, int64_t a, int64_t a_end, int64_t b, int64_t b_end, F f) {
    const bool first = a_end - a <= b_end - b;
    const int64_t low = first ? b : a, high = first ? b_end : a_end, end = first ? a_end : b_end;
    for (int64_t e = (first ? a : b) + lane; e < end; e += WARP) {
        const int64_t j = s.m.indices[e], at = find_column(s.m.indices, low, high, j);
        if (at == high || int64_t(s.m.indices[at]) != j) continue;
        if (first) f(e, at);
        else f(at, e);
    }
}

template <class T, class I> __device__ void wait_for_row(const factoring<T, I> &s, int64_t row) {
    while (*reinterpret_cast<volatile int *>(s.known + row) == 0) {}
    __syncwarp();
    __threadfence();
}

template <class T, class I> __device__ void factor_row_lu(const factoring<T, I> &s, int lane, int64_t row) {
    const int64_t end = s.m.indptr[row + 1];
    for (int64_t e = s.m.indptr[row]; e < end; e++) {
        const int64_t k = s.m.indices[e];
        if (k >= row) break;
        wait_for_row(s, k);
        const T factor = load_known(s.x + e) / load_diagonal(s, k);
        __syncwarp();
        if (lane == 0) s.x[e] = factor;
        meet_columns(s, lane, e + 1, end, s.upper[k], int64_t(s.m.indptr[k + 1]), [&](int64_t own, int64_t other) {
            s.x[own] = load_known(s.x + own) - factor * load_known(s.x + other);
        });
        __syncwarp();
    }
}

template <class T, class I> __device__ void factor_row_cholesky(const factoring<T, I> &s, int lane, int64_t row) {
    const int64_t begin = s.m.indptr[row], end = s.m.indptr[row + 1], upper = s.upper[row];
    for (int64_t e = begin; e < upper; e++) {
        const int64_t k = s.m.indices[e];
        if (k < row) wait_for_row(s, k);
        const int64_t before = k == row ? e : s.upper[k] - (has_diagonal(s, k) ? 1 : 0);
        T sum = T(0);
        meet_columns(s, lane, begin, e, int64_t(s.m.indptr[k]), before, [&](int64_t own, int64_t other) {
            sum = sum + load_known(s.x + own) * adm::conj(load_known(s.x + other));
        });
        __syncwarp();
        sum = sum_lanes<WARP>(sum);
        if (lane == 0) {
            const T rest = load_known(s.x + e) - sum;
            s.x[e] = k == row ? root_of(rest) : rest / load_diagonal(s, k);
        }
        __syncwarp();
    }
    for (int64_t e = upper + lane; e < end; e += WARP) s.x[e] = T(0);
}

template <class T, class I, bool Cholesky> __global__ void __launch_bounds__(THREADS)
    factor_rows(const __grid_constant__ factoring<T, I> s) {
    const int lane = int(threadIdx.x) % WARP;
    if (*s.stop != 0) return;
    unsigned long long turn = 0;
    if (lane == 0) turn = atomicAdd(s.taken, 1ull);
    turn = __shfl_sync(~0u, turn, 0);
    const int64_t row = int64_t(turn);
    if (row >= s.m.rows) return;
    if constexpr (Cholesky) factor_row_cholesky(s, lane, row);
    else factor_row_lu(s, lane, row);
    __syncwarp();
    __threadfence();
    if (lane != 0) return;
    const T pivot = load_diagonal(s, row);
    if (pivot == T(0) || pivot != pivot) atomicMin(s.bad, turn);
    *reinterpret_cast<volatile int *>(s.known + row) = 1;
}

template <class T, class I> int enqueue_factors(ad_call *c, factoring<T, I> s) {
    const cudaStream_t stream = c->stream->cuda;
    const uint64_t size = 16 + uint64_t(s.m.rows) * (sizeof(int64_t) + sizeof(int));
    char *memory = static_cast<char *>(ad_call_workspace(c, size));
    if (!memory) return AD_E_MEMORY;
    s.taken = reinterpret_cast<unsigned long long *>(memory);
    s.stop = reinterpret_cast<int *>(memory + 8);
    s.upper = reinterpret_cast<int64_t *>(memory + 16);
    s.known = reinterpret_cast<int *>(s.upper + s.m.rows);
    s.check = c->run->check;
    c->run->checked = true;
    int status = ad_cuda_status(cudaMemsetAsync(memory, 0, size, stream), "cudaMemsetAsync", c->fault);
    if (!status) status = ad_cuda_status(cudaMemsetAsync(s.bad, 0xff, sizeof *s.bad, stream), "cudaMemsetAsync", c->fault);
    if (status) return status;
    const unsigned rows = count_blocks(s.m.rows + 1, THREADS), warps = count_blocks(s.m.rows, THREADS / WARP);
    check_indptr<<<rows, THREADS, 0, stream>>>(s.m.indptr, s.m.rows, s.m.entries, s.stop, s.check);
    if (s.m.rows && s.m.entries) {
        check_ascending<<<count_blocks(s.m.entries, THREADS), THREADS, 0, stream>>>(s);
    }
    if (s.m.rows) {
        find_diagonals<<<rows, THREADS, 0, stream>>>(s);
        if (c->op->param[0].as.b) factor_rows<T, I, true><<<warps, THREADS, 0, stream>>>(s);
        else factor_rows<T, I, false><<<warps, THREADS, 0, stream>>>(s);
    }
    return ad_cuda_launched("ilu0", c->fault);
}

template <class T, class I> int factor_matrix(ad_call *c, const array &out, const array &bad) {
    factoring<T, I> s = {};
    array in;
    int status;
    if ((status = get_csr_input(c, 0, &s.m)) || (status = ad_call_input(c, 0, c->op->loop, &in))) return status;
    s.x = reinterpret_cast<T *>(out.data);
    s.bad = reinterpret_cast<unsigned long long *>(bad.data);
    c->run->wrote = true;
    if ((status = ad_call_copy(c, &out, &in)) || (status = enqueue_factors(c, s)) || (status = ad_call_finish(c, 0, &out)))
        return status;
    return ad_call_finish(c, 1, &bad);
}

} // namespace

int ad_call_ilu0(ad_call *c) {
    return visit_factors(c, [&](auto t, auto u, const array &out, const array &bad) {
        return factor_matrix<typename decltype(t)::type, typename decltype(u)::type>(c, out, bad);
    });
}
