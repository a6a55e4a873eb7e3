/* Entries of sparse matrices in another order, or some of them: elements are moved and no more. */
#include "kernels/cpu/call/sparse.h"

namespace {

/* ---- the transposed matrix ---- */

/* A transposed matrix, and for each part of the rows and each column where its next entry goes. */
template <class W, class I> struct transposing {
    csr<W, I> m;
    int64_t columns, parts, first[MOST_PARTS + 1]; /* rows of the parts */
    I *next;
    W *data;
    I *indices, *indptr;
};

/* f(part, begin, end) over pieces of the parts' entries. */
template <class W, class I, class F> void go_through_parts(const transposing<W, I> &t, F f) {
    ad_cpu_parallel(t.parts, 1, [&](int64_t begin, int64_t end) {
        for (int64_t k = begin; k < end; k++) {
            const int64_t from = t.m.indptr[t.first[k]], behind = t.m.indptr[t.first[k + 1]];
            ad_cpu_in_order(behind - from, [&](int64_t low, int64_t high) { f(k, from + low, from + high); });
        }
    });
}

template <class W, class I> void cut_entries(transposing<W, I> *t) {
    const int64_t rows = t->m.rows, entries = t->m.entries;
    t->parts = std::max<int64_t>(
        1, std::min<int64_t>({MOST_PARTS, ad_cpu_parallel_threads(), entries / GRAIN, entries / (t->columns + 1)}));
    for (int64_t k = 0; k < t->parts; k++)
        t->first[k] =
            k ? std::lower_bound(t->m.indptr, t->m.indptr + rows, I(entries / t->parts * k)) - t->m.indptr : 0;
    t->first[t->parts] = rows;
}

template <class W, class I> void count_columns(const transposing<W, I> &t, bad_index *bad) {
    ad_cpu_parallel(t.parts * t.columns, GRAIN,
                    [&](int64_t begin, int64_t end) { std::fill(t.next + begin, t.next + end, I(0)); });
    go_through_parts(t, [&](int64_t part, int64_t begin, int64_t end) {
        const I *indices = t.m.indices;
        I *next = t.next + part * t.columns;
        const uint64_t columns = uint64_t(t.columns);
        for (int64_t e = begin; e < end; e++) {
            const int64_t j = indices[e];
            if (uint64_t(j) < columns) next[j]++;
            else bad->report(j);
        }
    });
}

/* Set where columns begin, and in these the entries of each part. */
template <class W, class I> void begin_columns(const transposing<W, I> &t) {
    I sum = 0;
    ad_cpu_in_order(t.columns, [&](int64_t begin, int64_t end) {
        for (int64_t j = begin; j < end; j++) {
            t.indptr[j] = sum;
            for (int64_t part = 0; part < t.parts; part++) {
                const I n = t.next[part * t.columns + j];
                t.next[part * t.columns + j] = sum;
                sum += n;
            }
        }
    });
    t.indptr[t.columns] = sum;
}

template <class W, class I> void move_entries(const transposing<W, I> &t) {
    go_through_parts(t, [&](int64_t part, int64_t begin, int64_t end) {
        const csr<W, I> m = t.m;
        I *next = t.next + part * t.columns, *indices = t.indices;
        W *data = t.data;
        int64_t row = std::upper_bound(m.indptr, m.indptr + m.rows, I(begin)) - m.indptr - 1;
        for (int64_t e = begin; e < end; row++) {
            const int64_t behind = std::min<int64_t>(end, m.indptr[row + 1]);
            if (row % GRAIN == 0) ad_cpu_check_cancelled();
            for (; e < behind; e++) {
                const I at = next[m.indices[e]]++;
                data[at] = m.data[e];
                indices[at] = I(row);
            }
        }
    });
}

template <class W, class I> int transpose_matrix(ad_call *c) {
    transposing<W, I> t;
    array out[3];
    bad_index bad;
    int status;
    t.columns = c->op->param[0].as.i;
    if ((status = get_csr_input(c, 0, &t.m)) || (status = check_indptr(c, t.m)) ||
        (status = check_whole(c, t.m.indptr, t.m.rows, t.m.entries)))
        return status;
    cut_entries(&t);
    if (!(t.next = static_cast<I *>(ad_call_workspace(c, uint64_t(t.parts * t.columns) * sizeof(I)))))
        return AD_E_MEMORY;
    count_columns(t, &bad);
    if ((status = finish_indices(c, bad, t.columns))) return status;
    for (int k = 0; k < 3; k++)
        if ((status = linalg_output(c, k, k ? c->op->operand[c->op->nout + 1].desc.dtype : c->op->loop, &out[k])))
            return status;
    t.data = reinterpret_cast<W *>(out[0].data);
    t.indices = reinterpret_cast<I *>(out[1].data);
    t.indptr = reinterpret_cast<I *>(out[2].data);
    c->run->wrote = true;
    begin_columns(t);
    move_entries(t);
    return finish_csr_outputs(c, out);
}

/* ---- columns and diagonals ---- */

/* The columns of a row that are kept, as far as their type has them: low > high where none is. */
template <class I> struct column_range { I low, high; };

template <class I> inline column_range<I> find_range(const band &kept, int64_t row) {
    constexpr int64_t most = I(uint64_t(-1) >> (65 - 8 * sizeof(I))), least = -most - 1;
    const int64_t shift = kept.diagonal ? row : 0;
    if (kept.low > INT64_MAX - shift) return {1, 0};
    const int64_t low = kept.low + shift, high = kept.high > INT64_MAX - shift ? INT64_MAX : kept.high + shift;
    if (low > high || low > most || high < least) return {1, 0};
    return {I(std::max(low, least)), I(std::min(high, most))};
}

/* Move those of n entries that are kept; how many there are. One comparison says whether an entry is; in sorted rows
 * those follow one another, so few branches are mispredicted. */
template <class W, class I>
int64_t keep_entries(const W *from, const I *columns, int64_t n, column_range<I> kept, W *data, I *indices) {
    using U = typename std::make_unsigned<I>::type;
    const U low = U(kept.low), width = U(kept.high) - low;
    int64_t at = 0;
    if (kept.low > kept.high) return 0;
    for (int64_t e = 0; e < n; e++) {
        const U j = U(columns[e]);
        if (U(j - low) > width) continue;
        data[at] = from[e];
        indices[at++] = I(j);
    }
    return at;
}

/* Move the entries of rows first to last that are kept; how many there are. */
template <class W, class I>
int64_t keep_rows(csr<W, I> m, band kept, int64_t first, int64_t last, W *data, I *indices, int64_t *ends) {
    int64_t n = 0;
    for (int64_t i = first; i < last; i++) {
        const column_range<I> range = find_range<I>(kept, i);
        const int64_t behind = m.indptr[i + 1];
        for (int64_t e = m.indptr[i], next; e < behind; e = next) {
            next = std::min(behind, e + CANCEL_EVERY);
            n += keep_entries(m.data + e, m.indices + e, next - e, range, data + n, indices + n);
            if (next - e == CANCEL_EVERY) ad_cpu_check_cancelled();
        }
        if (i % GRAIN == 0) ad_cpu_check_cancelled();
        ends[i] = n;
    }
    return n;
}

template <class W, class I> int keep_band(ad_call *c) {
    const band kept = get_band(c);
    csr<W, I> m;
    row_parts<W, I> p;
    int status;
    if ((status = get_csr_input(c, 0, &m)) || (status = check_indptr(c, m)) ||
        (status = cut_rows(
             c, m.rows, [&](int64_t row) { return int64_t(m.indptr[row]); }, &p)))
        return status;
    fill_parts(&p, [&](int64_t first, int64_t last, W *data, I *indices) {
        return keep_rows(m, kept, first, last, data, indices, p.ends);
    });
    return give_parts(c, c->op->loop, p);
}

/* ---- rows of entries ---- */

constexpr int64_t BURST = 16; /* entries that are written at once, of which the next rows' are written over */

/* Write the rows of entries begin to end. */
template <class I> void write_rows(const I *indptr, int64_t rows, int64_t begin, int64_t end, I *to) {
    int64_t row = std::upper_bound(indptr, indptr + rows, I(begin)) - indptr - 1;
    for (int64_t e = begin; e < end; row++) {
        const int64_t behind = std::min<int64_t>(end, indptr[row + 1]);
        int64_t i = e;
        if (row % GRAIN == 0) ad_cpu_check_cancelled();
        if (e + BURST <= end) {
            for (int k = 0; k < BURST; k++) to[e + k] = I(row);
            i += BURST;
        }
        for (; i < behind; i++) to[i] = I(row);
        e = behind;
    }
}

template <class I> int list_rows(ad_call *c, int64_t entries) {
    array in, out;
    int status;
    if ((status = ad_call_input_packed(c, 0, c->op->loop, &in)) || (status = linalg_output(c, 0, c->op->loop, &out)))
        return status;
    const csr<I, I> m = {nullptr, nullptr, reinterpret_cast<const I *>(in.data), in.shape[0] - 1, entries};
    if ((status = check_indptr(c, m)) || (status = check_whole(c, m.indptr, m.rows, entries))) return status;
    I *to = reinterpret_cast<I *>(out.data);
    c->run->wrote = true;
    ad_cpu_parallel(entries, GRAIN, [&](int64_t begin, int64_t end) { write_rows(m.indptr, m.rows, begin, end, to); });
    return ad_call_finish(c, 0, &out);
}

} // namespace

int ad_call_sptranspose(ad_call *c) {
    return visit_moved(
        c, [&](auto t, auto u) { return transpose_matrix<typename decltype(t)::type, typename decltype(u)::type>(c); });
}

int ad_call_spband(ad_call *c) {
    return visit_moved(
        c, [&](auto t, auto u) { return keep_band<typename decltype(t)::type, typename decltype(u)::type>(c); });
}

int ad_call_sprows(ad_call *c) {
    const int64_t entries = c->op->param[0].as.i;
    return c->op->loop == AD_INT64 ? list_rows<int64_t>(c, entries) : list_rows<int32_t>(c, entries);
}
