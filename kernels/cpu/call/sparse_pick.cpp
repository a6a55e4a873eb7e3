/* Parts of sparse matrices that take one look at their entries: a diagonal, rows by their numbers, and what is
 * connected. */
#include "kernels/cpu/call/sparse.h"

namespace {

/* ---- a diagonal ---- */

constexpr int64_t LOOK = 16; /* entries that are looked at together, those of the next rows among them */
constexpr int64_t SHORT = 5; /* entries of a row that are looked at one by one */

/* Whether any of LOOK indices is the wanted one. Few rows are longer, so that the end of a row is no branch. */
template <class I> inline bool has_index(const I *indices, I wanted) {
    I found = 0;
    for (int64_t k = 0; k < LOOK; k++) found |= I(indices[k] == wanted);
    return found != 0;
}

/* The sum of the entries first to last that are in a column. */
template <class T, class I> inline T add_wanted(const csr<T, I> &m, int64_t first, int64_t last, I wanted) {
    T sum = T(0);
    for (int64_t e = first; e < last; e++)
        if (m.indices[e] == wanted) sum = sum + m.data[e];
    return sum;
}

/* As add_wanted, for a row that is not short. */
template <class T, class I> T add_long_row(const csr<T, I> &m, int64_t first, int64_t last, I wanted) {
    T sum = T(0);
    for (int64_t e = first, next; e < last; e = next) {
        next = std::min(last, e + LOOK);
        if ((e - first) % CANCEL_EVERY == CANCEL_EVERY - LOOK) ad_cpu_check_cancelled();
        if (e + LOOK > m.entries || has_index(m.indices + e, wanted)) sum = sum + add_wanted(m, e, next, wanted);
    }
    return sum;
}

template <class T, class I>
void add_diagonal(const csr<T, I> &matrix, int64_t row, int64_t column, int64_t length, T *to) {
    ad_cpu_parallel(length, rows_for_grain(matrix.rows, matrix.entries, 1), [&](int64_t begin, int64_t end) {
        const csr<T, I> m = matrix;
        for (int64_t i = begin, e = m.indptr[row + begin]; i < end; i++) {
            const int64_t behind = m.indptr[row + i + 1];
            const I wanted = I(column + i);
            if (int64_t(wanted) != column + i) to[i] = T(0);
            else to[i] = behind - e <= SHORT ? add_wanted(m, e, behind, wanted) : add_long_row(m, e, behind, wanted);
            e = behind;
        }
    });
}

template <class T, class I> int give_diagonal(ad_call *c) {
    const int64_t length = c->op->param[2].as.i;
    csr<T, I> m;
    array out;
    int status;
    if ((status = get_csr_input(c, 0, &m)) || (status = check_indptr(c, m)) ||
        (status = linalg_output(c, 0, c->op->loop, &out)))
        return status;
    c->run->wrote = true;
    add_diagonal(m, c->op->param[0].as.i, c->op->param[1].as.i, length, reinterpret_cast<T *>(out.data));
    return ad_call_finish(c, 0, &out);
}

/* ---- rows by their numbers ---- */

/* Where rows that are taken begin in the matrix, and where each ends in the result. */
struct taken_rows {
    const int64_t *lines;
    int64_t n, *from, *ends;
};

/* Find the rows. AD_E_INDEX for one that there is not, AD_E_VALUE for more entries than can be counted. */
template <class W, class I> int find_taken(ad_call *c, const csr<W, I> &m, const taken_rows &t) {
    bad_index bad;
    int64_t sum = 0;
    bool too_many = false;
    ad_cpu_in_order(t.n, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i++) {
            const int64_t line = t.lines[i], row = line < 0 ? line + m.rows : line;
            const bool there = uint64_t(row) < uint64_t(m.rows);
            if (!there) bad.report(line);
            t.from[i] = there ? int64_t(m.indptr[row]) : 0;
            too_many |= __builtin_add_overflow(sum, there ? int64_t(m.indptr[row + 1]) - t.from[i] : 0, &sum);
            t.ends[i] = sum;
        }
    });
    if (!too_many) return finish_indices(c, bad, m.rows);
    return ad__fault(c->fault, AD_E_VALUE, "sptake: the rows have 2^63 entries or more: take fewer of them");
}

template <class W, class I> void move_taken(const csr<W, I> &m, const taken_rows &t, W *data, I *indices, I *indptr) {
    const int64_t total = t.n ? t.ends[t.n - 1] : 0;
    indptr[0] = 0;
    ad_cpu_parallel(t.n, rows_for_grain(t.n, total, 1), [&](int64_t begin, int64_t end) {
        int64_t at = begin ? t.ends[begin - 1] : 0;
        for (int64_t i = begin; i < end; i++) {
            const W *from = m.data + t.from[i] - at;
            const I *columns = m.indices + t.from[i] - at;
            for (int64_t behind = t.ends[i]; at < behind; at++) {
                data[at] = from[at];
                indices[at] = columns[at];
            }
            indptr[i + 1] = I(at);
        }
    });
}

template <class W, class I> int take_rows(ad_call *c) {
    csr<W, I> m;
    array lines, out[3];
    int status;
    if ((status = get_csr_input(c, 0, &m)) || (status = ad_call_input_packed(c, 3, AD_INT64, &lines)) ||
        (status = check_indptr(c, m)))
        return status;
    taken_rows t = {reinterpret_cast<const int64_t *>(lines.data), lines.shape[0], nullptr, nullptr};
    t.from = static_cast<int64_t *>(ad_call_workspace(c, uint64_t(t.n) * sizeof(int64_t)));
    t.ends = static_cast<int64_t *>(ad_call_workspace(c, uint64_t(t.n) * sizeof(int64_t)));
    if (!t.from || !t.ends) return AD_E_MEMORY;
    if ((status = find_taken(c, m, t)) ||
        (status = size_csr_outputs<I>(c, c->op->loop, t.n ? t.ends[t.n - 1] : 0, t.n, out)))
        return status;
    move_taken(m, t, reinterpret_cast<W *>(out[0].data), reinterpret_cast<I *>(out[1].data),
               reinterpret_cast<I *>(out[2].data));
    return finish_csr_outputs(c, out);
}

/* ---- connected components ---- */

/* The root of a tree, of which each node has a lesser one or itself for a parent; the way there becomes shorter. */
template <class I> inline I find_root(I *parents, I node) {
    while (parents[node] != node) node = parents[node] = parents[parents[node]];
    return node;
}

/* Join the tree whose root is given with those of the columns of entries first to last; its root then. */
template <class T, class I>
I join_columns(const csr<T, I> &m, int64_t first, int64_t last, I root, I *parents, bad_index *bad) {
    const I *indices = m.indices;
    const uint64_t rows = uint64_t(m.rows);
    for (int64_t e = first; e < last; e++) {
        const I column = indices[e];
        if (uint64_t(int64_t(column)) >= rows) {
            bad->report(column);
            continue;
        }
        if (m.data[e] == T(0)) continue;
        const I other = find_root(parents, column), least = std::min(root, other);
        parents[root] = parents[other] = least;
        root = least;
    }
    return root;
}

template <class T, class I> void join_rows(const csr<T, I> &m, I *parents, bad_index *bad) {
    int64_t done = 0;
    for (int64_t i = 0; i < m.rows; i++) {
        const int64_t behind = m.indptr[i + 1];
        I root = find_root(parents, I(i));
        for (int64_t first = m.indptr[i], last; first < behind; first = last) {
            last = std::min(behind, first + CANCEL_EVERY);
            root = join_columns(m, first, last, root, parents, bad);
            if ((done += last - first) < CANCEL_EVERY) continue;
            done = 0;
            ad_cpu_check_cancelled();
        }
        if (i % GRAIN == 0) ad_cpu_check_cancelled();
    }
}

template <class T, class I> int give_components(ad_call *c) {
    csr<T, I> m;
    array out;
    bad_index bad;
    int status;
    if ((status = get_csr_input(c, 0, &m)) || (status = check_indptr(c, m)) ||
        (status = linalg_output(c, 0, c->op->operand[c->op->nout + 1].desc.dtype, &out)))
        return status;
    I *parents = static_cast<I *>(ad_call_workspace(c, uint64_t(m.rows) * sizeof(I)));
    if (!parents) return AD_E_MEMORY;
    for (int64_t i = 0; i < m.rows; i++) parents[i] = I(i);
    join_rows(m, parents, &bad);
    if ((status = finish_indices(c, bad, m.rows))) return status;
    I *to = reinterpret_cast<I *>(out.data);
    c->run->wrote = true;
    for (int64_t i = 0; i < m.rows; i++) to[i] = parents[i] = parents[parents[i]]; /* parents come first */
    return ad_call_finish(c, 0, &out);
}

} // namespace

int ad_call_spdiagonal(ad_call *c) {
    return visit_sparse(
        c, [&](auto t, auto u) { return give_diagonal<typename decltype(t)::type, typename decltype(u)::type>(c); });
}

int ad_call_sptake(ad_call *c) {
    return visit_moved(
        c, [&](auto t, auto u) { return take_rows<typename decltype(t)::type, typename decltype(u)::type>(c); });
}

int ad_call_spcomponents(ad_call *c) {
    return visit_sparse(
        c, [&](auto t, auto u) { return give_components<typename decltype(t)::type, typename decltype(u)::type>(c); });
}
