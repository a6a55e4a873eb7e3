/* matmul: batches, layouts and the division among threads. The products themselves are in matmul_blas.cpp and
 * matmul_loops.cpp, each on one thread: large ones are cut into tiles of the result here. */
#include "kernels/cpu/call/matmul.h"

#include <algorithm>
#include <limits.h>

#include "kernels/cpu/backend/parallel.h"

namespace {

using namespace ad;

constexpr int64_t SMALL = 512;         /* multiplications below which a library call costs more than they do */
constexpr int64_t TILE_WORK = 1 << 21; /* multiplications that a tile should have at least */
constexpr int64_t TILE_SIDE = 128;
constexpr int64_t TILE_MOST = 1 << 24;  /* rows or columns, which OpenBLAS counts in an int */
constexpr int64_t PIECE_WORK = 1 << 18; /* multiplications of small products that one thread does at a time */

/* Multiplications between two looks at whether the operation is cancelled: some 0.2 s. */
constexpr int64_t BLAS_MOST = int64_t(1) << 31, LOOPS_MOST = 1 << 28;
constexpr int64_t INNER_LEAST = 4096; /* of a sum that is cut for that: each part costs a pass over the result */

ad_matrix matrix_of(const array *a) {
    const int r = a->ndim - 2, k = a->ndim - 1;
    return {a->data, a->shape[r], a->shape[k], a->stride[r], a->stride[k]};
}

ad_matrix transposed(const ad_matrix &m) { return {m.data, m.columns, m.rows, m.column_step, m.row_step}; }

ad_matrix block(const ad_matrix &m, int64_t row, int64_t rows, int64_t column, int64_t columns) {
    return {m.data + row * m.row_step + column * m.column_step, rows, columns, m.row_step, m.column_step};
}

/* A product of every pair of a batch. */
struct product {
    ad_matmul_function *multiply;
    int64_t most; /* multiplications at a time */
    ad_matrix a, b, c;
    walk<3> batch; /* c, a, b */
    int64_t tile_rows, tile_columns, tile_inner;
};

/* INT64_MAX where that is less than the product, as views of few elements in memory can be of any size. */
int64_t work_of(int64_t rows, int64_t columns, int64_t inner) {
    int64_t work;
    if (__builtin_mul_overflow(rows, columns, &work) || __builtin_mul_overflow(work, inner, &work)) return INT64_MAX;
    return work;
}

/* Tiles of the result: halve the longer side until every thread has something to do, large products twice. The sum of a
 * tile is cut where it would still take long. */
void choose_tiles(product *p) {
    const int64_t threads = ad_cpu_parallel_threads(), inner = p->a.columns;
    int64_t rows = p->c.rows, columns = p->c.columns, tiles = p->batch.count;
    while (std::max(rows, columns) >= 2 * TILE_SIDE) {
        const int64_t work = work_of(rows, columns, inner);
        const bool wanted = tiles < threads ? work >= 2 * TILE_WORK : tiles < 2 * threads && work >= 32 * TILE_WORK;
        const bool too_long = work > p->most && rows * columns > p->most / INNER_LEAST;
        if (!wanted && !too_long && std::max(rows, columns) < TILE_MOST) break;
        int64_t &side = rows >= columns ? rows : columns;
        side = ((side + 1) / 2 + 15) / 16 * 16;
        tiles *= 2;
    }
    p->tile_rows = rows;
    p->tile_columns = columns;
    p->tile_inner = inner;
    if (work_of(rows, columns, inner) > p->most) p->tile_inner = std::max(INNER_LEAST, p->most / (rows * columns));
}

ad_matrix moved(const ad_matrix &m, int64_t offset) {
    return {m.data + offset, m.rows, m.columns, m.row_step, m.column_step};
}

void multiply_tile(const product *p, const int64_t (&at)[3], int64_t row, int64_t column) {
    const int64_t rows = std::min(p->tile_rows, p->c.rows - row);
    const int64_t columns = std::min(p->tile_columns, p->c.columns - column);
    const ad_matrix c = block(moved(p->c, at[0]), row, rows, column, columns);
    for (int64_t k = 0; k < p->a.columns; k += p->tile_inner) {
        const int64_t inner = std::min(p->tile_inner, p->a.columns - k);
        const ad_matrix a = block(moved(p->a, at[1]), row, rows, k, inner);
        const ad_matrix b = block(moved(p->b, at[2]), k, inner, column, columns);
        ad_cpu_check_cancelled();
        p->multiply(&a, &b, &c, k > 0);
    }
}

/* Whole products, items begin..end of the batch. */
void multiply_items(const product *p, int64_t begin, int64_t end) {
    const walk<3> &w = p->batch;
    w.runs(begin, end, [&](const int64_t(&at)[3], int64_t n, int64_t) {
        for (int64_t i = 0; i < n; i++) {
            const ad_matrix c = moved(p->c, at[0] + i * w.inner(0)), a = moved(p->a, at[1] + i * w.inner(1));
            const ad_matrix b = moved(p->b, at[2] + i * w.inner(2));
            p->multiply(&a, &b, &c, false);
        }
        return true;
    });
}

/* Tell whether a single product is done by one thread at once: it needs no tiles. */
bool is_piece(const product &p) {
    return std::max(p.c.rows, p.c.columns) < 2 * TILE_SIDE && work_of(p.c.rows, p.c.columns, p.a.columns) < PIECE_WORK;
}

void multiply_all(product *p) {
    choose_tiles(p);
    const int64_t down = (p->c.rows + p->tile_rows - 1) / p->tile_rows;
    const int64_t across = (p->c.columns + p->tile_columns - 1) / p->tile_columns, tiles = down * across;
    const int64_t work = work_of(p->tile_rows, p->tile_columns, p->a.columns);
    const int64_t grain = std::max<int64_t>(1, PIECE_WORK / work);
    ad_cpu_parallel(p->batch.count * tiles, grain, [&](int64_t begin, int64_t end) {
        if (tiles == 1 && p->tile_inner == p->a.columns) return multiply_items(p, begin, end);
        for (int64_t u = begin; u < end; u++)
            p->batch.runs(u / tiles, u / tiles + 1, [&](const int64_t(&at)[3], int64_t, int64_t) {
                multiply_tile(p, at, u % tiles / across * p->tile_rows, u % across * p->tile_columns);
                return false;
            });
    });
}

int zero(ad_call *c, const array *out) {
    uint64_t nothing[2] = {0, 0};
    array from = *out;
    from.data = reinterpret_cast<char *>(nothing);
    for (int i = 0; i < from.ndim; i++) from.stride[i] = 0;
    return ad_call_copy(c, out, &from);
}

bool rows_contiguous(const ad_matrix *m, int64_t size) {
    return (m->columns == 1 || m->column_step == size) &&
           (m->rows == 1 ||
            (m->row_step >= m->columns * size && m->row_step % size == 0 && m->row_step / size <= INT_MAX));
}

/* The result must have contiguous rows: where it has contiguous columns the transposed product is computed, where
 * neither *out becomes scratch memory. */
int lay_out(ad_call *c, product *p, array *out) {
    const int64_t size = itemsize(out->dtype);
    p->c = matrix_of(out);
    if (rows_contiguous(&p->c, size)) return 0;
    ad_matrix flipped = transposed(p->c);
    if (rows_contiguous(&flipped, size)) {
        ad_matrix a = p->a;
        p->a = transposed(p->b);
        p->b = transposed(a);
        p->c = flipped;
        return 1;
    }
    int64_t bytes = pack(out);
    out->data = static_cast<char *>(ad_call_workspace(c, uint64_t(bytes)));
    p->c = matrix_of(out);
    return !out->data ? AD_E_MEMORY : 0;
}

bool readable(const array *a) {
    ad_matrix m = matrix_of(a);
    return ad_matmul_blas_takes(&m, itemsize(a->dtype));
}

/* Prepare a and b as OpenBLAS can read them, copied where they have to be, and choose its function; or the loops, which
 * read all. */
int choose_function(ad_call *c, array *a, array *b, product *p) {
    const int64_t inner = a->shape[a->ndim - 1];
    const int64_t work = work_of(a->shape[a->ndim - 2], b->shape[b->ndim - 1], inner);
    int status;
    p->multiply = work < SMALL || inner > TILE_MOST ? nullptr : ad_matmul_blas(a->dtype);
    if (p->multiply)
        for (array *x : {a, b})
            if (!readable(x) && (status = ad_call_packed(c, x, x->dtype, x->ndim - 2, x))) return status;
    p->most = BLAS_MOST;
    if (!p->multiply || !readable(a) || !readable(b)) {
        p->multiply = ad_matmul_loops(a->dtype);
        p->most = LOOPS_MOST;
    }
    p->a = matrix_of(a);
    p->b = matrix_of(b);
    return 0;
}

int multiply(ad_call *c, array *a, array *b, array *out) {
    const int ndim = out->ndim;
    product p;
    int result;
    if ((result = choose_function(c, a, b, &p)) < 0 || (result = lay_out(c, &p, out)) < 0) return result;
    const array *first = result > 0 ? b : a, *second = result > 0 ? a : b;
    for (int i = 0; i < ndim - 2; i++)
        p.batch.add(out->shape[i],
                    {out->stride[i], broadcast_stride(*first, i, ndim), broadcast_stride(*second, i, ndim)});
    c->run->wrote = true;
    if (ndim == 2 && is_piece(p)) p.multiply(&p.a, &p.b, &p.c, false);
    else multiply_all(&p);
    return 0;
}

} // namespace

int ad_call_matmul(ad_call *c) {
    array a, b, out;
    int status, dtype = c->op->loop;
    if (dtype == AD_FLOAT16 || dtype == AD_BFLOAT16) dtype = AD_FLOAT32;
    if ((status = ad_call_input(c, 0, dtype, &a)) || (status = ad_call_input(c, 1, dtype, &b)) ||
        (status = ad_call_output(c, 0, dtype, &out)))
        return status;
    if (count(out) == 0) return 0;
    if (a.shape[a.ndim - 1] == 0) {
        c->run->wrote = true;
        if ((status = zero(c, &out))) return status;
    } else if ((status = multiply(c, &a, &b, &out))) return status;
    return ad_call_finish(c, 0, &out);
}
