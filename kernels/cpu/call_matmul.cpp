/* matmul: batches, layouts and the division among threads. The products themselves are in call_matmul_blas.cpp and
 * call_matmul_loops.cpp, each on one thread: large ones are cut into tiles of the result here. */
#include "kernels/cpu/call_matmul.h"

#include <algorithm>

#include "kernels/cpu/parallel.h"

namespace {

using namespace ad;

constexpr int64_t SMALL = 512;               /* multiplications below which a library call costs more than they do */
constexpr int64_t TILE_WORK = 1 << 21;       /* multiplications that a tile should have at least */
constexpr int64_t TILE_SIDE = 128;

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
    ad_matrix a, b, c;
    walk<3> batch; /* c, a, b */
    int64_t tile_rows, tile_columns;
};

/* Tiles of the result: halve the longer side until every thread has something to do. */
void choose_tiles(product *p, int64_t batch) {
    const int64_t want = 2 * ad_cpu_parallel_threads(), inner = p->a.columns;
    int64_t rows = p->c.rows, columns = p->c.columns, tiles = batch;
    while (tiles < want && rows * columns * inner >= 2 * TILE_WORK && std::max(rows, columns) >= 2 * TILE_SIDE) {
        int64_t &side = rows >= columns ? rows : columns;
        side = ((side + 1) / 2 + 15) / 16 * 16;
        tiles *= 2;
    }
    p->tile_rows = rows;
    p->tile_columns = columns;
}

void multiply_tile(const product *p, const int64_t (&at)[3], int64_t row, int64_t column) {
    ad_matrix a = p->a, b = p->b, c = p->c;
    c.data += at[0];
    a.data += at[1];
    b.data += at[2];
    const int64_t rows = std::min(p->tile_rows, c.rows - row), columns = std::min(p->tile_columns, c.columns - column);
    a = block(a, row, rows, 0, a.columns);
    b = block(b, 0, b.rows, column, columns);
    c = block(c, row, rows, column, columns);
    p->multiply(&a, &b, &c);
}

void multiply_all(product *p) {
    choose_tiles(p, p->batch.count);
    const int64_t down = (p->c.rows + p->tile_rows - 1) / p->tile_rows;
    const int64_t across = (p->c.columns + p->tile_columns - 1) / p->tile_columns, tiles = down * across;
    const int64_t work = p->tile_rows * p->tile_columns * p->a.columns, grain = std::max<int64_t>(1, TILE_WORK / work / 8);
    ad_cpu_parallel(p->batch.count * tiles, grain, [&](int64_t begin, int64_t end) {
        for (int64_t u = begin; u < end;) {
            const int64_t item = u / tiles, last = std::min(end, (item + 1) * tiles);
            p->batch.runs(item, item + 1, [&](const int64_t(&at)[3], int64_t, int64_t) {
                for (; u < last; u++)
                    multiply_tile(p, at, u % tiles / across * p->tile_rows, u % across * p->tile_columns);
                return false;
            });
        }
    });
}

void zero(const array *out) {
    uint64_t nothing[2] = {0, 0};
    array from = *out;
    from.data = reinterpret_cast<char *>(nothing);
    for (int i = 0; i < from.ndim; i++) from.stride[i] = 0;
    ad_call_copy(out, &from);
}

bool rows_contiguous(const ad_matrix *m, int64_t size) {
    return (m->columns == 1 || m->column_step == size) && (m->rows == 1 || m->row_step >= m->columns * size) &&
           m->row_step % size == 0;
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
    return out->data == nullptr ? AD_E_MEMORY : 0;
}

/* *a as OpenBLAS can read it. */
int readable(ad_call *c, array *a) {
    ad_matrix m = matrix_of(a);
    return ad_matmul_blas_takes(&m, itemsize(a->dtype)) ? 0 : ad_call_packed(c, a, a->dtype, a->ndim - 2, a);
}

int multiply(ad_call *c, array *a, array *b, array *out) {
    const int ndim = out->ndim, dtype = out->dtype;
    const int64_t work = a->shape[a->ndim - 2] * a->shape[a->ndim - 1] * b->shape[b->ndim - 1];
    product p;
    int rc;
    p.multiply = work < SMALL ? nullptr : ad_matmul_blas(dtype);
    if (p.multiply != nullptr && ((rc = readable(c, a)) < 0 || (rc = readable(c, b)) < 0)) return rc;
    if (p.multiply == nullptr) p.multiply = ad_matmul_loops(dtype);
    p.a = matrix_of(a);
    p.b = matrix_of(b);
    if ((rc = lay_out(c, &p, out)) < 0) return rc;
    const array *first = rc > 0 ? b : a, *second = rc > 0 ? a : b;
    for (int i = 0; i < ndim - 2; i++)
        p.batch.add(out->shape[i], {out->stride[i], broadcast_stride(*first, i, ndim), broadcast_stride(*second, i, ndim)});
    c->run->wrote = true;
    multiply_all(&p);
    return 0;
}

} // namespace

int ad_call_matmul(ad_call *c) {
    array a, b, out;
    int rc, dtype = c->op->loop;
    if (dtype == AD_FLOAT16 || dtype == AD_BFLOAT16) dtype = AD_FLOAT32;
    if ((rc = ad_call_input(c, 0, dtype, &a)) < 0 || (rc = ad_call_input(c, 1, dtype, &b)) < 0 ||
        (rc = ad_call_output(c, 0, dtype, &out)) < 0)
        return rc;
    if (count(out) == 0) return 0;
    if (a.shape[a.ndim - 1] == 0) {
        c->run->wrote = true;
        zero(&out);
    } else if ((rc = multiply(c, &a, &b, &out)) < 0) return rc;
    return ad_call_finish(c, 0, &out);
}
