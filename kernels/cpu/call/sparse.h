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
        bool ascends = true;
        for (int64_t i = begin; i < end; i++) ascends &= m.indptr[i] <= m.indptr[i + 1];
        if (!ascends) good = false;
    });
    if (good.load()) return 0;
    return ad__fault(c->fault, AD_E_VALUE,
                     "indptr of a sparse matrix must ascend, from 0 or more to at most its %" PRId64 " entries",
                     m.entries);
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

} // namespace
#endif
