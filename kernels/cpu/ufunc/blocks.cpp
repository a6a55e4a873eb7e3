/* Ufuncs over awkward layouts, by way of blocks that are gathered in whichever order suits the memory. */
#include "kernels/cpu/ufunc/plan.h"

namespace {

using plan = ad_ufunc_plan;

constexpr int OPERANDS = AD_LOOP_OPERANDS - 1; /* all but the mask */
constexpr int64_t TILE_COLUMNS = 64;

/* Copy rows x columns elements between a dense block and an array, along the longer or, where it matters, the smoother
 * way.
 */
void gather_block(const plan *p, int k, char *block, const char *from, int64_t row, int64_t column, int64_t rows,
                  int64_t columns, bool down) {
    const int64_t size = p->size[k];
    if (down)
        for (int64_t c = 0; c < columns; c++)
            ad_ufunc_gather(p, k, block + c * size, columns * size, from + c * column, row, rows);
    else
        for (int64_t r = 0; r < rows; r++)
            ad_ufunc_gather(p, k, block + r * columns * size, size, from + r * row, column, columns);
}

void spread_block(const plan *p, int k, char *to, const char *block, int64_t row, int64_t column, int64_t rows,
                  int64_t columns, bool down) {
    const int64_t size = p->size[k];
    if (down)
        for (int64_t c = 0; c < columns; c++)
            ad_ufunc_spread(p, k, to + c * column, row, block + c * size, columns * size, rows);
    else
        for (int64_t r = 0; r < rows; r++)
            ad_ufunc_spread(p, k, to + r * row, column, block + r * columns * size, size, columns);
}

/* ---- short rows ---- */

struct gathered {
    ad_loop rows;  /* of this operand alone */
    bool one;      /* one element */
    bool linear;   /* elements follow each other in the loop's order: nothing to gather */
    bool periodic; /* every row is the same */
    alignas(64) char block[AD_BLOCK_BYTES];
};

void gathered_init(const plan *p, int k, gathered *g) {
    const ad_loop *l = &p->loop;
    int64_t expected = p->size[k];
    ad_loop_outer(&g->rows, l, k, 1);
    g->one = k >= p->nout && ad_loop_is_scalar(l, k);
    g->linear = !p->converts[k];
    g->periodic = k >= p->nout;
    for (int d = l->ndim - 1; d >= 0; d--) {
        if (l->stride[k][d] != expected) g->linear = false;
        if (d < l->ndim - 1 && l->stride[k][d] != 0) g->periodic = false;
        expected *= l->shape[d];
    }
}

/* Call f(address, rows, block) for the rows begin..end, as stretches along the dimension outside the rows. */
template <class F> void stretches(const plan *p, int k, gathered *g, int64_t begin, int64_t end, F f) {
    char *block = g->block;
    const int64_t bytes = p->loop.shape[p->loop.ndim - 1] * p->size[k];
    ad_loop_walk(&g->rows, begin, end, [&](char *const *q, int64_t n) {
        f(q[0], n, block);
        block += n * bytes;
    });
}

void short_gather(const plan *p, int k, gathered *g, int64_t begin, int64_t end) {
    const int last = p->loop.ndim - 1;
    const int64_t columns = p->loop.shape[last], column = p->loop.stride[k][last], row = p->loop.stride[k][last - 1];
    stretches(p, k, g, begin, end, [&](char *q, int64_t rows, char *block) {
        gather_block(p, k, block, q, row, column, rows, columns, rows > columns);
    });
}

void short_spread(const plan *p, int k, gathered *g, int64_t begin, int64_t end) {
    const int last = p->loop.ndim - 1;
    const int64_t columns = p->loop.shape[last], column = p->loop.stride[k][last], row = p->loop.stride[k][last - 1];
    stretches(p, k, g, begin, end, [&](char *q, int64_t rows, char *block) {
        spread_block(p, k, q, block, row, column, rows, columns, rows > columns);
    });
}

/* ---- tiles ---- */

struct tile {
    char *const *at; /* first element of each operand */
    int64_t row0, column0, rows, columns;
};

bool is_down(const plan *p, int k) {
    const int last = p->loop.ndim - 1;
    int64_t row = p->loop.stride[k][last - 1], column = p->loop.stride[k][last];
    return row != 0 && (row < 0 ? -row : row) < (column < 0 ? -column : column);
}

char *tile_origin(const plan *p, int k, const tile *t) {
    const int last = p->loop.ndim - 1;
    return t->at[k] + t->row0 * p->loop.stride[k][last - 1] + t->column0 * p->loop.stride[k][last];
}

void copy_tile(const plan *p, const tile *t) {
    const int last = p->loop.ndim - 1;
    char *to = tile_origin(p, 0, t);
    const char *from = tile_origin(p, 1, t);
    const int64_t *ts = p->loop.stride[0], *fs = p->loop.stride[1];
    if (is_down(p, 1))
        for (int64_t c = 0; c < t->columns; c++)
            ad_cpu_cast_run(&p->cast[1], to + c * ts[last], ts[last - 1], from + c * fs[last], fs[last - 1], t->rows);
    else
        for (int64_t r = 0; r < t->rows; r++)
            ad_cpu_cast_run(&p->cast[1], to + r * ts[last - 1], ts[last], from + r * fs[last - 1], fs[last],
                            t->columns);
}

void run_tile(const plan *p, const tile *t) {
    alignas(64) char block[OPERANDS][AD_BLOCK_BYTES];
    const int last = p->loop.ndim - 1;
    void *q[OPERANDS];
    int64_t step[OPERANDS];
    for (int k = 0; k < p->nop; k++) {
        const bool packed = p->packed >> k & 1;
        const int64_t row = p->loop.stride[k][last - 1], column = p->loop.stride[k][last];
        q[k] = packed ? block[k] : tile_origin(p, k, t);
        step[k] = packed ? t->columns * p->size[k] : row;
        if (packed && k >= p->nout)
            gather_block(p, k, block[k], tile_origin(p, k, t), row, column, t->rows, t->columns, is_down(p, k));
    }
    for (int64_t r = 0; r < t->rows; r++) {
        p->kernel(q, p->scalars, t->columns);
        for (int k = 0; k < p->nop; k++) q[k] = static_cast<char *>(q[k]) + step[k];
    }
    for (int k = 0; k < p->nout; k++)
        if (p->packed >> k & 1)
            spread_block(p, k, tile_origin(p, k, t), block[k], p->loop.stride[k][last - 1], p->loop.stride[k][last],
                         t->rows, t->columns, is_down(p, k));
}

} // namespace

void ad_ufunc_run_short(const plan *p, int64_t begin, int64_t end) {
    gathered g[OPERANDS];
    const int64_t columns = p->loop.shape[p->loop.ndim - 1], block = p->block / columns;
    unsigned scalars = 0;
    for (int k = 0; k < p->nop; k++) {
        gathered_init(p, k, &g[k]);
        if (g[k].one) scalars |= 1u << (k - p->nout);
    }
    for (int64_t i = begin; i < end; i += block) {
        int64_t n = end - i < block ? end - i : block;
        void *q[OPERANDS];
        for (int k = 0; k < p->nop; k++) {
            q[k] = g[k].one ? p->loop.base[k] : g[k].linear ? p->loop.base[k] + i * columns * p->size[k] : g[k].block;
            if (k < p->nout || g[k].one || g[k].linear || (g[k].periodic && i != begin)) continue;
            short_gather(p, k, &g[k], i, i + n);
        }
        p->kernel(q, scalars, n * columns);
        for (int k = 0; k < p->nout; k++)
            if (!g[k].linear) short_spread(p, k, &g[k], i, i + n);
    }
}

void ad_ufunc_run_tiles(const plan *p, int64_t begin, int64_t end) {
    ad_loop rows;
    const int64_t columns = p->loop.shape[p->loop.ndim - 1];
    const int64_t high = p->block / TILE_COLUMNS;
    ad_loop_outer(&rows, &p->loop, 0, p->nop);
    ad_loop_walk(&rows, begin, end, [&](char *const *at, int64_t n) {
        for (int64_t r = 0; r < n; r += high)
            for (int64_t c = 0; c < columns; c += TILE_COLUMNS) {
                tile t = {at, r, c, n - r < high ? n - r : high,
                          columns - c < TILE_COLUMNS ? columns - c : TILE_COLUMNS};
                if (p->kernel) run_tile(p, &t);
                else copy_tile(p, &t);
            }
    });
}
