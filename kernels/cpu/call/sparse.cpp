/* Products with sparse matrices, and triangular solves. An index is bounded where it is used; indptr, which
 * nobody else writes, is looked through before. */
#include "kernels/cpu/call/sparse.h"

namespace {

/* ---- products ---- */

/* y[i] for rows begin to end and one vector. The loop has all that it reads in variables of its own: nothing that it
 * writes can have changed them. Where its code lies in a line of the cache makes a quarter of its time, so that is
 * fixed. */
template <class T, class I> __attribute__((aligned(64))) void
multiply_vector(const csr<T, I> &m, int64_t begin, int64_t end, const panel<const T> &x, T *y, bad_index *bad) {
    const I *indptr = m.indptr, *indices = m.indices;
    const T *data = m.data, *from = x.data;
    const uint64_t rows = uint64_t(x.rows);
    int64_t e = indptr[begin], wrong = -1;
    for (int64_t i = begin; i < end; i++) {
        const int64_t behind = indptr[i + 1];
        T sum = T(0);
        for (; e < behind; e++) {
            const int64_t j = indices[e];
            if (uint64_t(j) < rows) sum = sum + data[e] * from[j];
            else wrong = e;
        }
        y[i] = sum;
    }
    if (wrong >= 0) bad->report(indices[wrong]);
}

/* Entries first to last of one row, times columns `at` and on of the rows of x that the indices name, added to sums. */
template <int N, class T, class I> void add_products(const csr<T, I> &m, int64_t first, int64_t last,
                                                     const panel<const T> &x, int64_t at, T *sums, bad_index *bad) {
    const I *indices = m.indices;
    const T *data = m.data, *from = x.data + at;
    const int64_t columns = x.columns;
    const uint64_t rows = uint64_t(x.rows);
    T sum[N];
    int64_t wrong = -1;
    for (int k = 0; k < N; k++) sum[k] = sums[k];
    for (int64_t e = first; e < last; e++) {
        const int64_t j = indices[e];
        if (uint64_t(j) < rows)
            for (int k = 0; k < N; k++) sum[k] = sum[k] + data[e] * from[j * columns + k];
        else wrong = e;
    }
    for (int k = 0; k < N; k++) sums[k] = sum[k];
    if (wrong >= 0) bad->report(indices[wrong]);
}

/* Columns `at` to at + N of y for rows begin to end. */
template <int N, class T, class I> void multiply_columns(const csr<T, I> &m, int64_t begin, int64_t end,
                                                         const panel<const T> &x, int64_t at, const panel<T> &y,
                                                         bad_index *bad) {
    for (int64_t i = begin; i < end; i++) {
        const int64_t behind = m.indptr[i + 1];
        T *to = y.data + i * y.columns + at;
        std::fill(to, to + N, T(0));
        for (int64_t first = m.indptr[i], last; first < behind; first = last) {
            last = std::min(behind, first + CANCEL_EVERY);
            add_products<N>(m, first, last, x, at, to, bad);
            if (last - first == CANCEL_EVERY) ad_cpu_check_cancelled();
        }
    }
}

constexpr int64_t FEW_COLUMNS = 32; /* of which sums are kept in registers, some at a time */

template <class T, class I> void multiply_few_columns(const csr<T, I> &m, int64_t begin, int64_t end,
                                                      const panel<const T> &x, const panel<T> &y, bad_index *bad) {
    int64_t at = 0;
    for (; at + 8 <= x.columns; at += 8) multiply_columns<8>(m, begin, end, x, at, y, bad);
    if (at + 4 <= x.columns) {
        multiply_columns<4>(m, begin, end, x, at, y, bad);
        at += 4;
    }
    if (at + 2 <= x.columns) {
        multiply_columns<2>(m, begin, end, x, at, y, bad);
        at += 2;
    }
    if (at < x.columns) multiply_columns<1>(m, begin, end, x, at, y, bad);
}

/* Adds rows of the dense operand; a few entries may have as many products as a whole matrix. */
template <class T> struct row_adder {
    int64_t products = 0;

    void add(T *__restrict to, T factor, const T *__restrict from, int64_t n) {
        for (int64_t k = 0; k < n; k++) to[k] = to[k] + factor * from[k];
        if ((products += n) < CANCEL_EVERY) return;
        products = 0;
        ad_cpu_check_cancelled();
    }
};

template <class T, class I>
void multiply_rows(const csr<T, I> &m, const panel<const T> &x, const panel<T> &y, bad_index *bad) {
    ad_cpu_parallel(m.rows, rows_for_grain(m.rows, m.entries, x.columns), [&](int64_t begin, int64_t end) {
        row_adder<T> adder;
        if (x.columns == 1) return multiply_vector(m, begin, end, x, y.data, bad);
        if (x.columns <= FEW_COLUMNS) return multiply_few_columns(m, begin, end, x, y, bad);
        for (int64_t i = begin; i < end; i++) {
            T *to = y.data + i * y.columns;
            std::fill(to, to + y.columns, T(0));
            for (int64_t e = m.indptr[i]; e < int64_t(m.indptr[i + 1]); e++) {
                const int64_t j = m.indices[e];
                if (uint64_t(j) < uint64_t(x.rows)) adder.add(to, m.data[e], x.data + j * x.columns, x.columns);
                else bad->report(j);
            }
        }
    });
}

/* Entries first to last of one row, times one element, are added to the elements of y that the indices name. */
template <class T, class I> void add_entries(const csr<T, I> &m, int64_t first, int64_t last, T factor, T *__restrict y,
                                             uint64_t rows, bad_index *bad) {
    const I *indices = m.indices;
    const T *data = m.data;
    int64_t wrong = -1;
    for (int64_t e = first; e < last; e++) {
        const int64_t j = indices[e];
        if (uint64_t(j) < rows) y[j] = y[j] + data[e] * factor;
        else wrong = e;
    }
    if (wrong >= 0) bad->report(indices[wrong]);
}

/* As multiply_transposed, for one vector. */
template <class T, class I>
void multiply_transposed_vector(const csr<T, I> &m, const panel<const T> &x, const panel<T> &y, bad_index *bad) {
    int64_t done = 0;
    for (int64_t i = 0; i < m.rows; i++) {
        const int64_t behind = m.indptr[i + 1];
        for (int64_t first = m.indptr[i], last; first < behind; first = last) {
            last = std::min(behind, first + CANCEL_EVERY);
            add_entries(m, first, last, x.data[i], y.data, uint64_t(y.rows), bad);
            if ((done += last - first + 1) < CANCEL_EVERY) continue;
            done = 0;
            ad_cpu_check_cancelled();
        }
        if (i % GRAIN == 0) ad_cpu_check_cancelled();
    }
}

/* Rows of x are added to those of y that the indices name, in the order of the entries. */
template <class T, class I>
void multiply_transposed(const csr<T, I> &m, const panel<const T> &x, const panel<T> &y, bad_index *bad) {
    row_adder<T> adder;
    std::fill(y.data, y.data + y.rows * y.columns, T(0));
    if (x.columns == 1) return multiply_transposed_vector(m, x, y, bad);
    for (int64_t i = 0; i < m.rows; i++) {
        if (i % GRAIN == 0) ad_cpu_check_cancelled();
        ad_cpu_in_order(m.indptr[i + 1] - m.indptr[i], [&](int64_t begin, int64_t end) {
            for (int64_t e = m.indptr[i] + begin; e < m.indptr[i] + end; e++) {
                const int64_t j = m.indices[e];
                if (uint64_t(j) < uint64_t(y.rows))
                    adder.add(y.data + j * y.columns, m.data[e], x.data + i * x.columns, x.columns);
                else bad->report(j);
            }
        });
    }
}

/* ---- triangular solves ---- */

/* Solve for one row of x; those that it depends on are known. */
template <class T, class I> void solve_row(const csr<T, I> &m, int64_t i, bool lower, bool unit, const panel<T> &x,
                                           row_adder<T> *adder, bad_index *bad) {
    T *own = x.data + i * x.columns, diagonal = T(0);
    for (int64_t e = m.indptr[i]; e < int64_t(m.indptr[i + 1]); e++) {
        const int64_t j = m.indices[e];
        if (uint64_t(j) >= uint64_t(m.rows)) bad->report(j);
        else if (j == i) diagonal = diagonal + m.data[e];
        else if ((j < i) == lower) adder->add(own, T(0) - m.data[e], x.data + j * x.columns, x.columns);
    }
    if (unit) return;
    for (int64_t k = 0; k < x.columns; k++) own[k] = own[k] / diagonal;
}

template <class T, class I>
void solve_rows(const csr<T, I> &m, bool lower, bool unit, const panel<T> &x, bad_index *bad) {
    const int64_t piece = rows_for_grain(m.rows, m.entries, x.columns);
    row_adder<T> adder;
    for (int64_t i = 0; i < m.rows; i++) {
        if (i % piece == 0) ad_cpu_check_cancelled();
        solve_row(m, lower ? i : m.rows - 1 - i, lower, unit, x, &adder, bad);
    }
}

} // namespace

int ad_call_spmm(ad_call *c) {
    array in, out;
    int status;
    if ((status = ad_call_input_packed(c, 3, c->op->loop, &in)) || (status = linalg_output(c, 0, c->op->loop, &out)))
        return status;
    return visit_sparse(c, [&](auto t, auto u) {
        using T = typename decltype(t)::type;
        using I = typename decltype(u)::type;
        csr<T, I> m;
        bad_index bad;
        if ((status = get_csr_input(c, 0, &m)) || (status = check_indptr(c, m))) return status;
        const panel<const T> x = panel_of<const T>(in);
        const panel<T> y = panel_of<T>(out);
        c->run->wrote = true;
        if (c->op->param[1].as.b) multiply_transposed(m, x, y, &bad);
        else multiply_rows(m, x, y, &bad);
        status = finish_indices(c, bad, c->op->param[1].as.b ? y.rows : x.rows);
        return status ? status : ad_call_finish(c, 0, &out);
    });
}

int ad_call_sptrsm(ad_call *c) {
    array in, out;
    int status;
    if ((status = ad_call_input(c, 3, c->op->loop, &in)) || (status = linalg_output(c, 0, c->op->loop, &out)))
        return status;
    return visit_sparse_field(c, [&](auto t, auto u) {
        using T = typename decltype(t)::type;
        csr<T, typename decltype(u)::type> m;
        bad_index bad;
        if ((status = get_csr_input(c, 0, &m)) || (status = check_indptr(c, m))) return status;
        c->run->wrote = true;
        if ((status = ad_call_copy(c, &out, &in))) return status;
        solve_rows(m, c->op->param[0].as.b, c->op->param[1].as.b, panel_of<T>(out), &bad);
        status = finish_indices(c, bad, m.rows);
        return status ? status : ad_call_finish(c, 0, &out);
    });
}
