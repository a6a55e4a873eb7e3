/* Incomplete factors of sparse matrices, row by row: rows before are known. Of two rows the shorter one is gone through,
 * and its columns are searched in the other. */
#include "kernels/cpu/call/sparse.h"

namespace {

/* The factors as they come. */
template <class T, class I> struct factoring {
    csr<T, I> m;
    T *x;
    int64_t *upper; /* of each row that is known, where its entries behind the diagonal begin */
    int64_t steps = 0;
    int64_t bad_row = -1; /* the first one whose diagonal element is missing, 0 or NaN */

    bool has_diagonal(int64_t row) const {
        return upper[row] > int64_t(m.indptr[row]) && int64_t(m.indices[upper[row] - 1]) == row;
    }
    T diagonal(int64_t row) const { return has_diagonal(row) ? x[upper[row] - 1] : T(0); }
    void count(int64_t n) {
        if ((steps += n) < CANCEL_EVERY) return;
        steps = 0;
        ad_cpu_check_cancelled();
    }
};

/* f(entry of the first range, entry of the second) for all columns that both have. */
template <class T, class I, class F>
void meet_columns(factoring<T, I> *s, int64_t a, int64_t a_end, int64_t b, int64_t b_end, F f) {
    const I *j = s->m.indices;
    const bool first = a_end - a <= b_end - b;
    int64_t at = first ? b : a;
    const int64_t end = first ? b_end : a_end;
    for (int64_t e = first ? a : b, last = first ? a_end : b_end; e < last; e++) {
        if (at < end && j[at] < j[e]) at = std::lower_bound(j + at + 1, j + end, j[e]) - j;
        if (at == end) break;
        if (j[at] != j[e]) continue;
        if (first) f(e, at);
        else f(at, e);
        at++;
    }
    s->count(std::min(a_end - a, b_end - b));
}

template <class T, class I> void finish_row(factoring<T, I> *s, int64_t i) {
    const T pivot = s->diagonal(i);
    if (s->bad_row < 0 && (pivot == T(0) || pivot != pivot)) s->bad_row = i;
}

template <class T, class I> void factor_lu(factoring<T, I> *s) {
    const csr<T, I> &m = s->m;
    for (int64_t i = 0; i < m.rows; i++) {
        const int64_t end = m.indptr[i + 1];
        int64_t e = m.indptr[i];
        for (; e < end && int64_t(m.indices[e]) < i; e++) {
            const int64_t k = m.indices[e];
            const T factor = s->x[e] = s->x[e] / s->diagonal(k);
            meet_columns(s, e + 1, end, s->upper[k], m.indptr[k + 1],
                         [&](int64_t own, int64_t other) { s->x[own] = s->x[own] - factor * s->x[other]; });
        }
        s->upper[i] = e < end && int64_t(m.indices[e]) == i ? e + 1 : e;
        s->count(1);
        finish_row(s, i);
    }
}

template <class T, class I> void factor_cholesky(factoring<T, I> *s) {
    const csr<T, I> &m = s->m;
    for (int64_t i = 0; i < m.rows; i++) {
        const int64_t begin = m.indptr[i], end = m.indptr[i + 1];
        int64_t e = begin;
        for (; e < end && int64_t(m.indices[e]) <= i; e++) {
            const int64_t k = m.indices[e];
            T sum = s->x[e];
            const int64_t before = k == i ? e : s->has_diagonal(k) ? s->upper[k] - 1 : s->upper[k];
            meet_columns(s, begin, e, m.indptr[k], before, [&](int64_t own, int64_t other) {
                sum = sum - s->x[own] * adm::conj(s->x[other]);
            });
            s->x[e] = k == i ? root_of(sum) : sum / s->diagonal(k);
        }
        s->upper[i] = e;
        std::fill(s->x + e, s->x + end, T(0));
        s->count(1);
        finish_row(s, i);
    }
}

/* Check that columns ascend in each row. AD_E_INDEX, AD_E_VALUE. */
template <class T, class I> int check_ascending(ad_call *c, const csr<T, I> &m) {
    int status = check_indices(c, m, m.rows);
    if (status) return status;
    std::atomic<int64_t> row{-1};
    ad_cpu_parallel(m.rows, rows_for_grain(m.rows, m.entries, 1), [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i++)
            for (int64_t e = m.indptr[i] + 1; e < int64_t(m.indptr[i + 1]); e++)
                if (m.indices[e - 1] >= m.indices[e]) row = i;
    });
    if (row.load() < 0) return 0;
    return ad__fault(c->fault, AD_E_VALUE,
                     "the columns of row %" PRId64 " of a sparse matrix do not ascend: sort its indices, and add up "
                     "those that are there twice",
                     row.load());
}

template <class T, class I> int factor_matrix(ad_call *c, const array &out, const array &bad) {
    factoring<T, I> s;
    array in;
    int status;
    if ((status = get_csr_input(c, 0, &s.m)) || (status = check_indptr(c, s.m)) || (status = check_ascending(c, s.m)) ||
        (status = ad_call_input(c, 0, c->op->loop, &in)))
        return status;
    s.x = reinterpret_cast<T *>(out.data);
    s.upper = static_cast<int64_t *>(ad_call_workspace(c, uint64_t(s.m.rows) * sizeof(int64_t)));
    if (!s.upper) return AD_E_MEMORY;
    c->run->wrote = true;
    if ((status = ad_call_copy(c, &out, &in))) return status;
    if (c->op->param[0].as.b) factor_cholesky(&s);
    else factor_lu(&s);
    *reinterpret_cast<int64_t *>(bad.data) = s.bad_row;
    status = ad_call_finish(c, 0, &out);
    return status ? status : ad_call_finish(c, 1, &bad);
}

} // namespace

int ad_call_ilu0(ad_call *c) {
    return visit_factors(c, [&](auto t, auto u, const array &out, const array &bad) {
        return factor_matrix<typename decltype(t)::type, typename decltype(u)::type>(c, out, bad);
    });
}
