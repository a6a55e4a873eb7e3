/* Matrix products of integers and bool, and what cuBLAS wants to know of batches.
 *
 * Products wrap, so signs do not matter: there is one kernel for each size of element, with sums in 32 bits where that
 * is enough. Matrices are multiplied by tiles in shared memory, vectors line by line. Where the result alone does not
 * fill the device the inner dimension is divided among blocks too, which then add into scratch memory. */
#include "kernels/cuda/call/matmul/matmul.h"

#include "kernels/cuda/backend/device.h"

namespace {

using namespace ad;

constexpr int THREADS = 256, TILE = 64, DEPTH = 16, SIDE = 4; /* a thread computes SIDE by SIDE of a tile */
constexpr int PADDED = TILE + 4;
constexpr int FEW_LINES = 4;          /* rows or columns of a result that count as vectors */
constexpr int64_t LONG = 4096;        /* inner dimension that is worth a block for each sum */
constexpr int64_t LEAST_DEPTH = 1024; /* of the inner dimension, for a block */
constexpr int64_t SHORT_DEPTH = 256;  /* below, a block has several parts: it would be over before the next begins */
constexpr int BLOCKS_EACH = 8;        /* blocks for each multiprocessor, when there is enough to do */

/* A device does not interrupt a block: who else uses it waits for the end of one, so none takes more than some 50 ms.
 */
constexpr int64_t TILE_DEPTH = 1 << 17, LINE_DEPTH = 1 << 22;

/* ---- elements ---- */

template <class S> struct number {
    using type = unsigned;
    static __device__ type load(const char *p) { return *reinterpret_cast<const S *>(p); }
    static __device__ void add(type &sum, type a, type b) { sum += a * b; }
    static __device__ type join(type a, type b) { return a + b; }
    static __device__ void join_at(type *p, type v) { atomicAdd(p, v); }
    static __device__ void store(char *p, type v) { *reinterpret_cast<S *>(p) = S(v); }
};
template <> struct number<uint64_t> {
    using type = unsigned long long;
    static __device__ type load(const char *p) { return *reinterpret_cast<const type *>(p); }
    static __device__ void add(type &sum, type a, type b) { sum += a * b; }
    static __device__ type join(type a, type b) { return a + b; }
    static __device__ void join_at(type *p, type v) { atomicAdd(p, v); }
    static __device__ void store(char *p, type v) { *reinterpret_cast<type *>(p) = v; }
};
template <> struct number<bool8> {
    using type = unsigned;
    static __device__ type load(const char *p) { return *p != 0; }
    static __device__ void add(type &sum, type a, type b) { sum |= a & b; }
    static __device__ type join(type a, type b) { return a | b; }
    static __device__ void join_at(type *p, type v) {
        if (v) atomicOr(p, v);
    }
    static __device__ void store(char *p, type v) { *p = char(v); }
};

/* ---- what every kernel is given ---- */

struct task {
    ad_cuda_product p;
    int64_t across, down;  /* blocks over columns and rows of a result */
    int64_t splits, depth; /* of the inner dimension: how many, and how long each is */
    bool a_by_rows, b_by_rows;
    int lanes;  /* vectors: columns of a block */
    void *sums; /* splits > 1: of every element of every result, in order */
};

/* The part of the work that a block has. */
struct part {
    int64_t item, row, column, begin, end; /* blocks of rows and columns; range of the inner dimension */
    const char *a, *b;
    char *c;
};

__device__ part part_of(const task &t, int64_t u) {
    part r;
    r.column = u % t.across;
    u /= t.across;
    r.row = u % t.down;
    u /= t.down;
    r.begin = u % t.splits * t.depth;
    r.end = min(r.begin + t.depth, t.p.a.columns);
    r.item = u / t.splits;
    int64_t offset[3] = {0, 0, 0}, rest = r.item;
    for (int i = t.p.batch.ndim - 1; i >= 0; i--) {
        const int64_t at = rest % t.p.batch.shape[i];
        rest /= t.p.batch.shape[i];
        for (int k = 0; k < 3; k++) offset[k] += at * t.p.batch.stride[i][k];
    }
    r.c = t.p.c.data + offset[0];
    r.a = t.p.a.data + offset[1];
    r.b = t.p.b.data + offset[2];
    return r;
}

template <class N> __device__ void put(const task &t, const part &r, int64_t row, int64_t column, typename N::type v) {
    if (t.splits == 1) return N::store(r.c + row * t.p.c.row_step + column * t.p.c.column_step, v);
    typename N::type *sums = static_cast<typename N::type *>(t.sums);
    N::join_at(sums + (r.item * t.p.c.rows + row) * t.p.c.columns + column, v);
}

/* ---- matrices ---- */

template <class T> struct alignas(16) four { T v[SIDE]; };

/* A thread's share of a and b on its way to shared memory: TILE lines of the result, DEPTH of the inner dimension.
 * Neighbouring threads go along whichever lies contiguous. */
template <class N> struct reader {
    static constexpr int EACH = TILE * DEPTH / THREADS;
    const char *at;         /* this thread's first element */
    int64_t next, advance;  /* bytes to its next element, and to the next piece */
    int line, inner, lines; /* its first element; how many lines there are */
    int line_next, inner_next;
    typename N::type v[EACH];

    __device__ reader(const char *from, int64_t line_step, int64_t inner_step, int64_t count, bool inner_first) {
        line = inner_first ? int(threadIdx.x) / DEPTH : int(threadIdx.x) % TILE;
        inner = inner_first ? int(threadIdx.x) % DEPTH : int(threadIdx.x) / TILE;
        line_next = inner_first ? THREADS / DEPTH : 0;
        inner_next = inner_first ? 0 : THREADS / TILE;
        lines = int(min(count, int64_t(TILE)));
        at = from + line * line_step + inner * inner_step;
        next = line_next * line_step + inner_next * inner_step;
        advance = DEPTH * inner_step;
    }
    __device__ void read(int64_t left) {
        const int depth = int(min(left, int64_t(DEPTH)));
#pragma unroll
        for (int i = 0; i < EACH; i++) {
            const bool inside = line + i * line_next < lines && inner + i * inner_next < depth;
            v[i] = inside ? N::load(at + i * next) : typename N::type(0);
        }
        at += advance;
    }
    __device__ void write(typename N::type (*to)[PADDED]) const {
#pragma unroll
        for (int i = 0; i < EACH; i++) to[inner + i * inner_next][line + i * line_next] = v[i];
    }
};

template <class N> __device__ void multiply_tile(const task &t, const part &r) {
    using T = typename N::type;
    __shared__ __align__(16) T as[DEPTH][PADDED], bs[DEPTH][PADDED];
    const ad_cuda_matrix &a = t.p.a, &b = t.p.b;
    const int64_t row = r.row * TILE, column = r.column * TILE, rows = t.p.c.rows - row,
                  columns = t.p.c.columns - column;
    const int x = int(threadIdx.x) % (TILE / SIDE) * SIDE, y = int(threadIdx.x) / (TILE / SIDE) * SIDE;
    T sum[SIDE][SIDE] = {};
    reader<N> from_a(r.a + r.begin * a.column_step + row * a.row_step, a.row_step, a.column_step, rows, t.a_by_rows);
    reader<N> from_b(r.b + r.begin * b.row_step + column * b.column_step, b.column_step, b.row_step, columns,
                     !t.b_by_rows);
    from_a.read(r.end - r.begin);
    from_b.read(r.end - r.begin);
    for (int64_t k = r.begin; k < r.end; k += DEPTH) {
        from_a.write(as);
        from_b.write(bs);
        __syncthreads();
        if (k + DEPTH < r.end) {
            from_a.read(r.end - k - DEPTH);
            from_b.read(r.end - k - DEPTH);
        }
#pragma unroll
        for (int d = 0; d < DEPTH; d++) {
            const four<T> u = *reinterpret_cast<const four<T> *>(&as[d][y]);
            const four<T> v = *reinterpret_cast<const four<T> *>(&bs[d][x]);
#pragma unroll
            for (int i = 0; i < SIDE; i++)
#pragma unroll
                for (int j = 0; j < SIDE; j++) N::add(sum[i][j], u.v[i], v.v[j]);
        }
        __syncthreads();
    }
#pragma unroll
    for (int i = 0; i < SIDE; i++)
#pragma unroll
        for (int j = 0; j < SIDE; j++)
            if (y + i < rows && x + j < columns) put<N>(t, r, row + y + i, column + x + j, sum[i][j]);
}

template <class N> __global__ void __launch_bounds__(THREADS) tiles(const __grid_constant__ task t) {
    const int64_t n = t.p.batch.count * t.splits * t.across * t.down;
    for (int64_t u = blockIdx.x; u < n; u += gridDim.x) multiply_tile<N>(t, part_of(t, u));
}

/* ---- vectors: a few rows of a by the columns of b; the host has turned it so ---- */

/* A block has t.lanes columns. Those that lie one after the other are taken by neighbouring threads, else the threads
 * of one column are neighbours. */
template <class N> __global__ void __launch_bounds__(THREADS) lines(const __grid_constant__ task t) {
    using T = typename N::type;
    __shared__ T sums[THREADS];
    const int lanes = t.lanes, ways = THREADS / lanes, thread = int(threadIdx.x);
    const int line = t.b_by_rows ? thread % lanes : thread / ways, way = t.b_by_rows ? thread / lanes : thread % ways;
    const int64_t n = t.p.batch.count * t.splits * t.across * t.down;
    for (int64_t u = blockIdx.x; u < n; u += gridDim.x) {
        const part r = part_of(t, u);
        const int64_t column = r.column * lanes + line;
        T sum = 0;
        if (column < t.p.c.columns) {
            const int64_t a_step = ways * t.p.a.column_step, b_step = ways * t.p.b.row_step;
            const char *a = r.a + r.row * t.p.a.row_step + (r.begin + way) * t.p.a.column_step;
            const char *b = r.b + column * t.p.b.column_step + (r.begin + way) * t.p.b.row_step;
            const int turns = int((r.end - r.begin - way + ways - 1) / ways);
#pragma unroll 8
            for (int k = 0; k < turns; k++) N::add(sum, N::load(a + k * a_step), N::load(b + k * b_step));
        }
        T *mine = sums + line * ways + way;
        *mine = sum;
        __syncthreads();
        for (int step = ways / 2; step > 0; step /= 2) {
            if (way < step) *mine = N::join(*mine, mine[step]);
            __syncthreads();
        }
        if (way == 0 && column < t.p.c.columns) put<N>(t, r, r.row, column, *mine);
        __syncthreads();
    }
}

template <class N> __global__ void __launch_bounds__(THREADS) store_sums(const __grid_constant__ task t) {
    const int64_t each = t.p.c.rows * t.p.c.columns, n = t.p.batch.count * each;
    const typename N::type *sums = static_cast<const typename N::type *>(t.sums);
    for (int64_t i = int64_t(blockIdx.x) * THREADS + threadIdx.x; i < n; i += int64_t(gridDim.x) * THREADS) {
        int64_t rest = i / each;
        char *c = t.p.c.data;
        for (int d = t.p.batch.ndim - 1; d >= 0; d--) {
            c += rest % t.p.batch.shape[d] * t.p.batch.stride[d][0];
            rest /= t.p.batch.shape[d];
        }
        const int64_t row = i % each / t.p.c.columns, column = i % t.p.c.columns;
        N::store(c + row * t.p.c.row_step + column * t.p.c.column_step, sums[i]);
    }
}

/* ---- pointers ---- */

__global__ void __launch_bounds__(THREADS)
    fill_pointers(const __grid_constant__ ad_cuda_product p, int64_t first, int64_t n, void **to) {
    const int64_t i = int64_t(blockIdx.x) * THREADS + threadIdx.x;
    if (i >= n) return;
    char *at[3] = {p.c.data, p.a.data, p.b.data};
    int64_t rest = first + i;
    for (int d = p.batch.ndim - 1; d >= 0; d--) {
        for (int k = 0; k < 3; k++) at[k] += rest % p.batch.shape[d] * p.batch.stride[d][k];
        rest /= p.batch.shape[d];
    }
    for (int k = 0; k < 3; k++) to[k * n + i] = at[k];
}

/* ---- the host's part ---- */

template <class N> int run(ad_call *c, task *t, bool vectors) {
    const int64_t sms = c->stream->device->multiprocessors, most = sms * BLOCKS_EACH;
    const int64_t here = t->p.batch.count * t->across * t->down, inner = t->p.a.columns;
    t->splits = here >= 2 * sms ? 1 : (most + here - 1) / here;
    if (t->splits > inner / LEAST_DEPTH) t->splits = inner / LEAST_DEPTH > 0 ? inner / LEAST_DEPTH : 1;
    const int64_t longest = vectors ? LINE_DEPTH / t->lanes : TILE_DEPTH;
    if (inner / t->splits >= longest) t->splits = inner / longest + 1;
    t->depth = ((inner + t->splits - 1) / t->splits + DEPTH - 1) / DEPTH * DEPTH;
    t->splits = (inner + t->depth - 1) / t->depth;
    if (t->splits > 1) {
        const size_t size = size_t(t->p.batch.count * t->p.c.rows * t->p.c.columns) * sizeof(typename N::type);
        if (!(t->sums = ad_call_workspace(c, size))) return AD_E_MEMORY;
        const int status = ad_cuda_status(cudaMemsetAsync(t->sums, 0, size, c->stream->cuda), "matmul", c->fault);
        if (status) return status;
    }
    const int64_t blocks = here * t->splits;
    const int64_t at_once = t->depth < SHORT_DEPTH ? most * 4 : INT32_MAX;
    const unsigned grid = unsigned(blocks < at_once ? blocks : at_once);
    if (vectors) lines<N><<<grid, THREADS, 0, c->stream->cuda>>>(*t);
    else tiles<N><<<grid, THREADS, 0, c->stream->cuda>>>(*t);
    if (t->splits > 1) store_sums<N><<<unsigned(sms), THREADS, 0, c->stream->cuda>>>(*t);
    return ad_cuda_launched("matmul", c->fault);
}

ad_cuda_matrix transposed(const ad_cuda_matrix &m) { return {m.data, m.columns, m.rows, m.column_step, m.row_step}; }

int64_t magnitude(int64_t v) { return v < 0 ? -v : v; }

} // namespace

int ad_cuda_matmul_pointers(ad_call *c, const ad_cuda_product *p, int64_t first, int64_t n, void **to) {
    fill_pointers<<<unsigned((n + THREADS - 1) / THREADS), THREADS, 0, c->stream->cuda>>>(*p, first, n, to);
    return ad_cuda_launched("matmul", c->fault);
}

int ad_cuda_matmul_loops(ad_call *c, const ad_cuda_product *p) {
    task t = {};
    t.p = *p;
    const bool vectors = p->c.rows <= FEW_LINES || p->c.columns <= FEW_LINES;
    if (vectors && p->c.columns < p->c.rows) {
        t.p.a = transposed(p->b);
        t.p.b = transposed(p->a);
        t.p.c = transposed(p->c);
        for (int i = 0; i < t.p.batch.ndim; i++) {
            t.p.batch.stride[i][1] = p->batch.stride[i][2];
            t.p.batch.stride[i][2] = p->batch.stride[i][1];
        }
    }
    t.a_by_rows = magnitude(t.p.a.column_step) <= magnitude(t.p.a.row_step);
    t.b_by_rows = t.p.c.columns > 1 && magnitude(t.p.b.column_step) <= magnitude(t.p.b.row_step);
    t.lanes = t.b_by_rows ? 32 : p->a.columns >= LONG ? 1 : THREADS / 32;
    const int lanes = vectors ? t.lanes : TILE;
    t.across = (t.p.c.columns + lanes - 1) / lanes;
    t.down = vectors ? t.p.c.rows : (t.p.c.rows + TILE - 1) / TILE;
    switch (p->dtype) {
    case AD_BOOL: return run<number<bool8>>(c, &t, vectors);
    case AD_INT8:
    case AD_UINT8: return run<number<uint8_t>>(c, &t, vectors);
    case AD_INT16:
    case AD_UINT16: return run<number<uint16_t>>(c, &t, vectors);
    case AD_INT32:
    case AD_UINT32: return run<number<uint32_t>>(c, &t, vectors);
    default: return run<number<uint64_t>>(c, &t, vectors);
    }
}
