/* Triangular solves. A warp takes the next row of the order of elimination, and waits until the rows that it depends on
 * are known. Then it makes its own known. Only rows that a running warp has taken before are waited for, so it ends. */
#include "kernels/cuda/call/sparse/sparse.cuh"

namespace {

constexpr int WARP = 32;

template <class T, class I> struct solving {
    sparse_task<T, I> t;
    unsigned long long *taken; /* rows that warps have taken */
    int *known;                /* for each row, in memory that is 0 at first */
    bool lower, unit;
};

/* Tell whether entry j of a row belongs to the triangle that is solved. */
__device__ inline bool depends_on(int64_t row, int64_t j, bool lower) { return lower ? j < row : j > row; }

/* Wait for the rows that this lane's entries name; add up what of them is on the diagonal. */
template <class T, class I>
__device__ T wait_for_rows(const solving<T, I> &s, int64_t row, int64_t begin, int64_t end) {
    T diagonal = T(0);
    for (int64_t e = begin; e < end; e += WARP) {
        const int64_t j = s.t.m.indices[e];
        if (uint64_t(j) >= uint64_t(s.t.m.rows)) ad_cuda_report(s.t.check, AD_CHECK_sparse_index, j, s.t.m.rows, 0);
        else if (j == row) diagonal = diagonal + s.t.m.data[e];
        else if (depends_on(row, j, s.lower))
            while (*reinterpret_cast<volatile int *>(s.known + j) == 0) {}
    }
    return diagonal;
}

template <class T, class I>
__device__ T sum_known(const solving<T, I> &s, int64_t row, int64_t begin, int64_t end, int64_t column) {
    T sum = T(0);
    for (int64_t e = begin; e < end; e += WARP) {
        const int64_t j = s.t.m.indices[e];
        if (uint64_t(j) >= uint64_t(s.t.m.rows) || !depends_on(row, j, s.lower)) continue;
        const T *from = s.t.y.data + j * s.t.y.columns + column;
        T x;
        if constexpr (is_complex<T>) x = T(__ldcg(&from->re), __ldcg(&from->im));
        else x = __ldcg(from);
        sum = sum + s.t.m.data[e] * x;
    }
    return sum;
}

template <class T, class I> __global__ void __launch_bounds__(THREADS)
    solve_rows(const __grid_constant__ solving<T, I> s) {
    const int lane = int(threadIdx.x) % WARP;
    if (*s.t.stop != 0) return;
    unsigned long long turn = 0;
    if (lane == 0) turn = atomicAdd(s.taken, 1ull);
    turn = __shfl_sync(~0u, turn, 0);
    if (int64_t(turn) >= s.t.m.rows) return;
    const int64_t row = s.lower ? int64_t(turn) : s.t.m.rows - 1 - int64_t(turn);
    const int64_t begin = s.t.m.indptr[row] + lane, end = s.t.m.indptr[row + 1];
    const T diagonal = sum_lanes<WARP>(wait_for_rows(s, row, begin, end));
    __syncwarp();
    __threadfence();
    for (int64_t column = 0; column < s.t.y.columns; column++) {
        const T sum = sum_lanes<WARP>(sum_known(s, row, begin, end, column));
        if (lane != 0) continue;
        T *own = s.t.y.data + row * s.t.y.columns + column;
        *own = s.unit ? *own - sum : (*own - sum) / diagonal;
    }
    if (lane == 0) {
        __threadfence();
        *reinterpret_cast<volatile int *>(s.known + row) = 1;
    }
}

template <class T, class I> int enqueue_solve(ad_call *c, const sparse_task<T, I> &t) {
    const uint64_t size = 8 + uint64_t(t.m.rows) * sizeof(int);
    char *memory = static_cast<char *>(ad_call_workspace(c, size));
    if (!memory) return AD_E_MEMORY;
    const int status = ad_cuda_status(cudaMemsetAsync(memory, 0, size, c->stream->cuda), "cudaMemsetAsync", c->fault);
    if (status) return status;
    const solving<T, I> s = {t, reinterpret_cast<unsigned long long *>(memory), reinterpret_cast<int *>(memory + 8),
                             c->op->param[0].as.b, c->op->param[1].as.b};
    solve_rows<<<count_blocks(t.m.rows, THREADS / WARP), THREADS, 0, c->stream->cuda>>>(s);
    return ad_cuda_launched("sptrsm", c->fault);
}

} // namespace

int ad_call_sptrsm(ad_call *c) {
    array in, out;
    int status;
    if ((status = ad_call_input(c, 3, c->op->loop, &in)) || (status = linalg_output(c, 0, c->op->loop, &out)))
        return status;
    if (count(out) == 0) return 0;
    return visit_sparse_field(c, [&](auto element, auto index) {
        using T = typename decltype(element)::type;
        sparse_task<T, typename decltype(index)::type> t;
        if ((status = get_csr_input(c, 0, &t.m))) return status;
        t.y = panel_of<T>(out);
        t.x = {t.y.data, t.y.rows, t.y.columns};
        c->run->wrote = true;
        if ((status = ad_call_copy(c, &out, &in)) || (status = enqueue_check(c, &t)) || (status = enqueue_solve(c, t)))
            return status;
        return ad_call_finish(c, 0, &out);
    });
}
