/* Functions of the elements of two sparse matrices, row by row: columns of both are merged. That they ascend is seen
 * from the merged ones, which ascend only then. */
#include "kernels/cpu/call/sparse.h"

namespace {

/* The function, known to the compiler, and what it gives: bools are bytes. */
template <int Function> struct union_function { static constexpr int value = Function; };
template <class T, int Function> using union_result =
    typename std::conditional<Function >= AD_UNION_NOT_EQUAL && Function <= AD_UNION_GREATER, uint8_t, T>::type;

template <class F> int with_function(int64_t function, F f) {
    switch (function) {
    case AD_UNION_ADD: return f(union_function<AD_UNION_ADD>{});
    case AD_UNION_SUBTRACT: return f(union_function<AD_UNION_SUBTRACT>{});
    case AD_UNION_MULTIPLY: return f(union_function<AD_UNION_MULTIPLY>{});
    case AD_UNION_MAXIMUM: return f(union_function<AD_UNION_MAXIMUM>{});
    case AD_UNION_MINIMUM: return f(union_function<AD_UNION_MINIMUM>{});
    case AD_UNION_NOT_EQUAL: return f(union_function<AD_UNION_NOT_EQUAL>{});
    case AD_UNION_LESS: return f(union_function<AD_UNION_LESS>{});
    case AD_UNION_GREATER: return f(union_function<AD_UNION_GREATER>{});
    default: return f(union_function<AD_UNION_EITHER>{});
    }
}

template <class R, class T> inline R result_of(T x) {
    if constexpr (sizeof(R) == 1) return adm::truth(x);
    else return x;
}

/* Entries of one row of the result as they come. */
template <int Function, class T, class I> struct row_writer {
    using R = union_result<T, Function>;
    R *data;
    I *indices;
    int64_t n = 0, steps = 0, before = INT64_MIN;
    bool ascends = true;

    void put(I column, T x, T y, bool first) {
        const R value = result_of<R>(unite(Function, x, y, first));
        data[n] = value;
        indices[n] = column;
        n += Function == AD_UNION_EITHER || adm::truth(value);
        ascends &= int64_t(column) > before;
        before = column;
        if (++steps % CANCEL_EVERY == 0) ad_cpu_check_cancelled();
    }
};

/* The writer is one of the loop's own: nothing that it writes can have changed it. */
template <int Function, class T, class I> row_writer<Function, T, I>
unite_row(const csr<T, I> &a, const csr<T, I> &b, int64_t row, row_writer<Function, T, I> to) {
    const I *a_indices = a.indices, *b_indices = b.indices;
    const T *a_data = a.data, *b_data = b.data;
    const int64_t a_end = a.indptr[row + 1], b_end = b.indptr[row + 1];
    int64_t i = a.indptr[row], j = b.indptr[row];
    to.before = INT64_MIN;
    const bool apart = i < a_end && j < b_end && a_indices[a_end - 1] < b_indices[j]; /* as of blocks side by side */
    while (!apart && i < a_end && j < b_end) {
        const I p = a_indices[i], q = b_indices[j];
        if (p == q) {
            to.put(p, a_data[i++], b_data[j++], true);
            continue;
        }
        const bool first = p < q;
        to.put(first ? p : q, first ? a_data[i] : T(0), first ? T(0) : b_data[j], first);
        i += first;
        j += !first;
    }
    for (; i < a_end; i++) to.put(a_indices[i], a_data[i], T(0), true);
    for (; j < b_end; j++) to.put(b_indices[j], T(0), b_data[j], false);
    return to;
}

template <int Function, class T, class I> int unite_matrices(ad_call *c, const csr<T, I> &a, const csr<T, I> &b) {
    row_parts<union_result<T, Function>, I> p;
    std::atomic<int64_t> bad_row{-1};
    const int status = cut_rows(
        c, a.rows, [&](int64_t row) { return int64_t(a.indptr[row]) + int64_t(b.indptr[row]); }, &p);
    if (status) return status;
    fill_parts(&p, [&](int64_t first, int64_t last, auto *data, I *indices) {
        row_writer<Function, T, I> to = {data, indices};
        for (int64_t i = first; i < last; i++) {
            if (i % GRAIN == 0) ad_cpu_check_cancelled();
            to = unite_row(a, b, i, to);
            p.ends[i] = to.n;
            if (to.ascends) continue;
            bad_row = i;
            break;
        }
        return to.n;
    });
    if (bad_row.load() >= 0)
        return ad__fault(c->fault, AD_E_VALUE,
                         "the columns of row %" PRId64
                         " of a sparse matrix do not ascend: sort its indices, and add up "
                         "those that are there twice",
                         bad_row.load());
    return give_parts(c, ad__union_compares(Function) ? int(AD_BOOL) : c->op->loop, p);
}

} // namespace

int ad_call_spunion(ad_call *c) {
    return visit_union(c, [&](auto t, auto u) {
        csr<typename decltype(t)::type, typename decltype(u)::type> a, b;
        int status;
        if ((status = get_csr_input(c, 0, &a)) || (status = get_csr_input(c, 3, &b)) || (status = check_indptr(c, a)) ||
            (status = check_indptr(c, b)))
            return status;
        return with_function(c->op->param[0].as.i,
                             [&](auto function) { return unite_matrices<decltype(function)::value>(c, a, b); });
    });
}
