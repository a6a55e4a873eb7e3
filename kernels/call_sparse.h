/* Sparse matrices as calls of both backends see them. */
#ifndef AD_KERNELS_CALL_SPARSE_H
#define AD_KERNELS_CALL_SPARSE_H

#include "kernels/call_linalg.h"
#include "kernels/math.h"
#include "kernels/math_complex.h"
#include "kernels/words.h"
#include "protocol/sparse.h"

namespace ad {
inline namespace AD_ISA {

/* A matrix in CSR format, packed. T: what is computed in; I: int32_t or int64_t. */
template <class T, class I> struct csr {
    const T *data;
    const I *indices, *indptr;
    int64_t rows, entries;
};

/* A dense operand: rows of `columns` elements, packed. */
template <class T> struct panel {
    T *data;
    int64_t rows, columns;
};

/* f(t, tag<I>{}) for the type of the indices, which has been checked. */
template <class T, class F> inline int visit_indices(const ad_call *c, T t, F &&f) {
    return c->op->operand[c->op->nout + 1].desc.dtype == AD_INT64 ? f(t, tag<int64_t>{}) : f(t, tag<int32_t>{});
}

/* f(tag<T>{}, tag<I>{}) for loops without integers, such as those that divide. */
template <class F> inline int visit_sparse_field(const ad_call *c, F &&f) {
    return visit_field(c->op->loop, [&](auto t) { return visit_indices(c, t, f); });
}

/* f(tag<T>{}, tag<I>{}) for the loop's type and that of the indices; both have been checked. Integers are computed
 * without a sign, where wrapping is defined. */
template <class F> inline int visit_sparse(const ad_call *c, F &&f) {
    return c->op->loop == AD_INT64 ? visit_indices(c, tag<uint64_t>{}, f) : visit_sparse_field(c, f);
}

/* The matrix that inputs first, first + 1 and first + 2 are. AD_E_MEMORY. */
template <class T, class I> inline int get_csr_input(ad_call *c, int first, csr<T, I> *m) {
    const int index_dtype = c->op->operand[c->op->nout + 1].desc.dtype;
    array data, indices, indptr;
    int status;
    if ((status = ad_call_input_packed(c, first, c->op->loop, &data)) ||
        (status = ad_call_input_packed(c, first + 1, index_dtype, &indices)) ||
        (status = ad_call_input_packed(c, first + 2, index_dtype, &indptr)))
        return status;
    m->data = reinterpret_cast<const T *>(data.data);
    m->indices = reinterpret_cast<const I *>(indices.data);
    m->indptr = reinterpret_cast<const I *>(indptr.data);
    m->rows = indptr.shape[0] - 1;
    m->entries = data.shape[0];
    return 0;
}

/* f(tag<T>{}, tag<I>{}) for the loop's type, among which are integers of both kinds, and that of the indices. */
template <class F> inline int visit_union(const ad_call *c, F &&f) {
    switch (c->op->loop) {
    case AD_INT64: return visit_indices(c, tag<int64_t>{}, f);
    case AD_UINT64: return visit_indices(c, tag<uint64_t>{}, f);
    default: return visit_sparse_field(c, f);
    }
}

/* A function of protocol/sparse.h of the elements x and y, of which x is the one of an entry where `first` says so.
 * Bools are 0 and 1. */
template <class T> AD_HD T unite(int function, T x, T y, bool first) {
    switch (function) {
    case AD_UNION_ADD: return adm::add(x, y);
    case AD_UNION_SUBTRACT: return adm::sub(x, y);
    case AD_UNION_MULTIPLY: return adm::mul(x, y);
    case AD_UNION_MAXIMUM: return adm::maximum(x, y);
    case AD_UNION_MINIMUM: return adm::minimum(x, y);
    case AD_UNION_NOT_EQUAL: return T(x != y ? 1 : 0);
    case AD_UNION_LESS: return T(adm::less(x, y) ? 1 : 0);
    case AD_UNION_GREATER: return T(adm::less(y, x) ? 1 : 0);
    default: return first ? x : y;
    }
}

/* f(tag<W>{}, tag<I>{}) for words as large as elements of the loop, and the type of the indices. */
template <class F> inline int visit_moved(const ad_call *c, F &&f) {
    return visit_words(c->op->loop, [&](auto word) { return visit_indices(c, word, f); });
}

/* Which entries spband keeps: those of some columns, or of some diagonals (the differences of columns and rows). */
struct band {
    int64_t low, high;
    bool diagonal;
};

inline band get_band(const ad_call *c) { return {c->op->param[0].as.i, c->op->param[1].as.i, c->op->param[2].as.b}; }

/* Outputs 0 to 2 of a call whose result is a matrix of so many entries, which it replies. AD_E_MEMORY, AD_E_VALUE where
 * the type of the indices does not count so far. */
template <class I> inline int size_csr_outputs(ad_call *c, int dtype, int64_t entries, int64_t rows, array out[3]) {
    const int index_dtype = c->op->operand[1].desc.dtype;
    if (int64_t(I(entries)) != entries)
        return ad__fault(c->fault, AD_E_VALUE, "the result has %lld entries, too many for indices of type int32",
                         (long long)entries);
    out[0] = {nullptr, dtype, 1, {entries}, {}};
    out[1] = {nullptr, index_dtype, 1, {entries}, {}};
    out[2] = {nullptr, index_dtype, 1, {rows + 1}, {}};
    for (int k = 0; k < 3; k++) {
        const int status = ad_call_sized(c, k, &out[k]);
        if (status) return status;
    }
    c->run->values[0] = entries;
    c->run->nvalues = 1;
    return 0;
}

inline int finish_csr_outputs(ad_call *c, const array out[3]) {
    for (int k = 0; k < 3; k++) {
        const int status = ad_call_finish(c, k, &out[k]);
        if (status) return status;
    }
    return 0;
}

/* f(tag<T>{}, tag<I>{}, factors, bad) for the outputs of ilu0: the factors, and the first row that has none.
 * AD_E_MEMORY. */
template <class F> inline int visit_factors(ad_call *c, F &&f) {
    array out, bad;
    int status;
    if ((status = linalg_output(c, 0, c->op->loop, &out)) || (status = ad_call_output(c, 1, AD_INT64, &bad)))
        return status;
    return visit_sparse_field(c, [&](auto t, auto u) { return f(t, u, out, bad); });
}

/* The root of an element on the diagonal of a matrix that is its own adjoint: that is real. */
template <class T> AD_HD T root_of(T x) { return T(adm::sqrt(adm::real(x))); }

template <class T> inline panel<T> panel_of(const array &a) {
    return {reinterpret_cast<T *>(a.data), a.shape[0], a.ndim > 1 ? a.shape[1] : 1};
}

} // namespace AD_ISA
} // namespace ad
#endif
