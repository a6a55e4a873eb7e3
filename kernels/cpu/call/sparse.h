/* What the calls on sparse matrices share: checks of indices and indptr, and how rows are cut into pieces of work. */
#ifndef AD_KERNELS_CPU_CALL_SPARSE_H
#define AD_KERNELS_CPU_CALL_SPARSE_H

#include "kernels/call_sparse.h"

#include <algorithm>
#include <atomic>
#include <inttypes.h>

#include "kernels/cpu/backend/parallel.h"

namespace {

using namespace ad;

constexpr int64_t GRAIN = 1 << 14;        /* entries */
constexpr int64_t CANCEL_EVERY = 1 << 20; /* products */

/* The first index that was out of bounds, of those that any thread has met. */
struct bad_index {
    std::atomic<bool> found{false};
    int64_t value = 0;

    void report(int64_t v) {
        if (!found.exchange(true)) value = v;
    }
};

inline int finish_indices(ad_call *c, const bad_index &bad, int64_t size) {
    if (!bad.found.load()) return 0;
    return ad__fault(c->fault, AD_E_INDEX,
                     "the index %" PRId64 " of a sparse matrix is out of bounds for size %" PRId64, bad.value, size);
}

/* Check that rows begin and end within the data, none before the one that precedes it. AD_E_VALUE. */
template <class T, class I> int check_indptr(ad_call *c, const csr<T, I> &m) {
    std::atomic<bool> good{m.indptr[0] >= 0 && int64_t(m.indptr[m.rows]) <= m.entries};
    ad_cpu_parallel(m.rows, GRAIN, [&](int64_t begin, int64_t end) {
        const I *indptr = m.indptr;
        I falls = 0; /* as wide as the elements, so that the loop vectorises */
        for (int64_t i = begin; i < end; i++) falls |= I(indptr[i] > indptr[i + 1]);
        if (falls) good = false;
    });
    if (good.load()) return 0;
    return ad__fault(c->fault, AD_E_VALUE,
                     "indptr of a sparse matrix must ascend, from 0 or more to at most its %" PRId64 " entries",
                     m.entries);
}

/* Check besides that the rows begin at 0 and have all the entries. AD_E_VALUE. */
template <class I> int check_whole(ad_call *c, const I *indptr, int64_t rows, int64_t entries) {
    if (indptr[0] == 0 && int64_t(indptr[rows]) == entries) return 0;
    return ad__fault(c->fault, AD_E_VALUE,
                     "indptr of a sparse matrix must begin with 0 and end with the number of its entries, %" PRId64,
                     entries);
}

inline int64_t rows_for_grain(int64_t rows, int64_t entries, int64_t columns) {
    const double work =
        (double(entries) / double(std::max<int64_t>(rows, 1)) + 1) * double(std::max<int64_t>(columns, 1));
    return std::max<int64_t>(1, int64_t(double(GRAIN) / work));
}

/* Check all indices of the matrix before they are used. AD_E_INDEX. */
template <class T, class I> int check_indices(ad_call *c, const csr<T, I> &m, int64_t size) {
    bad_index bad;
    ad_cpu_parallel(m.entries, GRAIN, [&](int64_t begin, int64_t end) {
        for (int64_t e = begin; e < end; e++)
            if (uint64_t(int64_t(m.indices[e])) >= uint64_t(size)) bad.report(m.indices[e]);
    });
    return finish_indices(c, bad, size);
}

constexpr int MOST_PARTS = 64;

/* Rows of a result whose number of entries is not known before: threads compute parts of them, whose entries lie in
 * scratch memory one behind the other, each part's from its room on. W: an element. */
template <class W, class I> struct row_parts {
    int64_t rows, parts = 1;
    int64_t first[MOST_PARTS + 1], room[MOST_PARTS], count[MOST_PARTS]; /* rows, entries of each part */
    int64_t *ends; /* of each row, how many entries its part has up to its end */
    W *data;
    I *indices;
};

/* Cut rows into parts of about as much work: begins(row) is how much comes before a row, and does not descend. The
 * result has as many entries at most. AD_E_MEMORY. */
template <class W, class I, class F> int cut_rows(ad_call *c, int64_t rows, F begins, row_parts<W, I> *p) {
    const int64_t base = begins(0), work = begins(rows) - base;
    p->rows = rows;
    p->parts = std::max<int64_t>(1, std::min<int64_t>({MOST_PARTS, ad_cpu_parallel_threads(), work / GRAIN}));
    for (int64_t k = 0; k < p->parts; k++) {
        int64_t low = 0, high = rows;
        while (k > 0 && low < high) {
            const int64_t middle = low + (high - low) / 2;
            if (begins(middle) - base < work / p->parts * k) low = middle + 1;
            else high = middle;
        }
        p->first[k] = low;
        p->room[k] = begins(low) - base;
    }
    p->first[p->parts] = rows;
    p->ends = static_cast<int64_t *>(ad_call_workspace(c, uint64_t(rows) * sizeof(int64_t)));
    p->data = static_cast<W *>(ad_call_workspace(c, uint64_t(work) * sizeof(W)));
    p->indices = static_cast<I *>(ad_call_workspace(c, uint64_t(work) * sizeof(I)));
    return !p->ends || !p->data || !p->indices ? AD_E_MEMORY : 0;
}

/* Compute all parts: f(first row, row behind the last one, data, indices) writes the entries of rows and their ends,
 * and returns how many there are. */
template <class W, class I, class F> void fill_parts(row_parts<W, I> *p, F f) {
    ad_cpu_parallel(p->parts, 1, [&](int64_t begin, int64_t end) {
        for (int64_t k = begin; k < end; k++)
            p->count[k] = f(p->first[k], p->first[k + 1], p->data + p->room[k], p->indices + p->room[k]);
    });
}

/* Make outputs of the size that the result has, and move it there. AD_E_MEMORY, AD_E_VALUE. */
template <class W, class I> int give_parts(ad_call *c, int dtype, const row_parts<W, I> &p) {
    int64_t before[MOST_PARTS + 1] = {0};
    array out[3];
    for (int64_t k = 0; k < p.parts; k++) before[k + 1] = before[k] + p.count[k];
    const int status = size_csr_outputs<I>(c, dtype, before[p.parts], p.rows, out);
    if (status) return status;
    W *data = reinterpret_cast<W *>(out[0].data);
    I *indices = reinterpret_cast<I *>(out[1].data), *indptr = reinterpret_cast<I *>(out[2].data);
    indptr[0] = 0;
    ad_cpu_parallel(p.parts, 1, [&](int64_t begin, int64_t end) {
        for (int64_t k = begin; k < end; k++) {
            std::copy_n(p.data + p.room[k], p.count[k], data + before[k]);
            std::copy_n(p.indices + p.room[k], p.count[k], indices + before[k]);
            for (int64_t i = p.first[k]; i < p.first[k + 1]; i++) indptr[i + 1] = I(before[k] + p.ends[i]);
        }
    });
    return finish_csr_outputs(c, out);
}

} // namespace
#endif
