/* Singular values, eigenvalues, least squares. */
#include "kernels/cpu/call/linalg.h"

#include <string.h>

/* All that OpenBLAS's LAPACK needs of Fortran's run-time library is the // of strings, so that library need not be
 * there. Weak, as it may be linked all the same. */
extern "C" __attribute__((weak)) void _gfortran_concat_string(size_t size, char *to, size_t first_size,
                                                              const char *first, size_t second_size,
                                                              const char *second) {
    const size_t from_first = std::min(size, first_size), from_second = std::min(size - from_first, second_size);
    memcpy(to, first, from_first);
    memcpy(to + from_first, second, from_second);
    memset(to + from_first + from_second, ' ', size - from_first - from_second);
}

namespace {

using namespace ad;

template <class T> T *line(const array &a, int64_t i) { /* the ith of a stack of vectors */
    return reinterpret_cast<T *>(a.data) + i * a.shape[a.ndim - 1];
}
template <class T> T *matrix(const array &a, int64_t i) {
    return reinterpret_cast<T *>(a.data) + i * rows(a) * columns(a);
}

/* Check that all is finite: without that LAPACK's iterations may have no end. */
template <class T> bool is_finite(const T *a, int64_t n) {
    using R = real_t<T>;
    const R *part = reinterpret_cast<const R *>(a);
    bool finite = true;
    for (int64_t i = 0; i < n * int64_t(sizeof(T) / sizeof(R)); i++) finite &= part[i] - part[i] == 0;
    return finite;
}

/* ---- singular values ---- */

/* A job. By columns a copy w of the matrices is their transpose, whose right vectors are u and whose left ones are
 * vh. */
struct svd_job {
    array w, u, s, vh;
    int64_t m, n;
    char vectors; /* 'A'll, 'S'ome or 'N'o */
};

template <class T> ad_lapack_work<T> svd_sizes(const svd_job &job) {
    const int64_t least = std::min(job.m, job.n), most = std::max(job.m, job.n);
    const int64_t real = job.vectors == 'N'
                             ? 7 * least
                             : std::max(5 * least * least + 7 * least, 2 * most * least + 2 * least * least + least);
    return {nullptr, nullptr, nullptr, -1, int(is_complex<T> ? std::min<int64_t>(real, INT_MAX) : 0), int(8 * least)};
}

template <class T> int svd(ad_call *c, const svd_job &job) {
    const int m = int(job.m), n = int(job.n);
    const int width = job.vectors == 'N' ? 1 : int(columns(job.u));
    const auto decompose = [&](int64_t i, const ad_lapack_work<T> &w) {
        const bool none = job.vectors == 'N';
        T *u = none ? nullptr : matrix<T>(job.u, i), *vh = none ? nullptr : matrix<T>(job.vh, i);
        return ad_lapack<T>::gesdd(job.vectors, n, m, matrix<T>(job.w, i), line<real_t<T>>(job.s, i), vh, u, width, w);
    };
    ad_lapack_work<T> sizes = svd_sizes<T>(job);
    int status = sizes.lrwork == INT_MAX || sizes.liwork < 0
                     ? ad__fault(c->fault, AD_E_UNSUPPORTED, "a matrix is too large for LAPACK")
                     : linalg_ask(c, &sizes, [&](const ad_lapack_work<T> &w) { return decompose(0, w); });
    if (status) return status;
    linalg_layout layout;
    const linalg_work<T> work(&layout, sizes);
    return linalg_each(c, matrices(job.w), 8 * double(m) * n * std::min(m, n), layout.size, "SVD did not converge",
                       [&](int64_t i, char *scratch) {
                           if (!is_finite(matrix<T>(job.w, i), job.m * job.n)) return 1;
                           return decompose(i, work.at(scratch));
                       });
}

void identity(const array &q, int dtype) {
    memset(q.data, 0, size_t(count(q) * itemsize(dtype)));
    visit_field(dtype, [&](auto t) {
        using T = typename decltype(t)::type;
        for (int64_t i = 0; i < matrices(q); i++)
            for (int64_t j = 0; j < std::min(rows(q), columns(q)); j++) matrix<T>(q, i)[j * columns(q) + j] = T(1);
        return 0;
    });
}

/* ---- eigenvalues ---- */

template <class T> int eigh(ad_call *c, const array &a, const array &values, char job, char uplo) {
    const int n = int(rows(a));
    const auto decompose = [&](int64_t i, const ad_lapack_work<T> &w) {
        return ad_lapack<T>::eigh(job, uplo, n, matrix<T>(a, i), line<real_t<T>>(values, i), w);
    };
    ad_lapack_work<T> sizes = {nullptr, nullptr, nullptr, -1, is_complex<T> ? -1 : 0, -1};
    int status = linalg_ask(c, &sizes, [&](const ad_lapack_work<T> &w) { return decompose(0, w); });
    if (status) return status;
    linalg_layout layout;
    const linalg_work<T> work(&layout, sizes);
    return linalg_each(c, matrices(a), 4 * double(n) * n * n, layout.size, "Eigenvalues did not converge",
                       [&](int64_t i, char *scratch) {
                           if (!is_finite(matrix<T>(a, i), int64_t(n) * n)) return 1;
                           return decompose(i, work.at(scratch));
                       });
}

/* ---- eigenvalues of any matrix ---- */

/* A job. a and vectors lie by columns, and the results are complex. */
struct eig_job {
    array a, values, vectors;
    int n;
    char want; /* 'V'ectors or 'N'one */
};

/* Join vectors of a real matrix. For a pair of conjugate values two columns have the real and the imaginary part of the
 * first one's vector. re, im: n each. */
template <class R> void join_vectors(complex<R> *to, const R *from, const R *im, int64_t n) {
    for (int64_t j = 0; j < n; j++) {
        const R *first = from + (j - (im[j] < 0)) * n, *second = first + n;
        for (int64_t i = 0; i < n; i++)
            to[j * n + i] = {first[i], im[j] > 0 ? second[i] : im[j] < 0 ? -second[i] : R(0)};
    }
}

/* vectors: room for those of a real matrix. */
template <class T> int eig_one(const eig_job &job, int64_t i, T *vectors, const ad_lapack_work<T> &w) {
    using C = complex<real_t<T>>;
    C *values = line<C>(job.values, i), *out = job.want == 'V' ? matrix<C>(job.vectors, i) : nullptr;
    if constexpr (is_complex<T>) {
        return ad_lapack<T>::geev(job.want, job.n, matrix<T>(job.a, i), values, out, w);
    } else {
        const int info = ad_lapack<T>::geev(job.want, job.n, matrix<T>(job.a, i), vectors, w);
        if (info != 0 || w.lwork < 0) return info;
        for (int j = 0; j < job.n; j++) values[j] = {w.rwork[j], w.rwork[job.n + j]};
        if (out) join_vectors(out, vectors, w.rwork + job.n, job.n);
        return 0;
    }
}

template <class T> int eig(ad_call *c, const eig_job &job) {
    const int64_t n = job.n;
    ad_lapack_work<T> sizes = {nullptr, nullptr, nullptr, -1, 2 * job.n, 0};
    int status =
        job.n > INT_MAX / 2
            ? ad__fault(c->fault, AD_E_UNSUPPORTED, "a matrix is too large for LAPACK")
            : linalg_ask(c, &sizes, [&](const ad_lapack_work<T> &w) { return eig_one<T>(job, 0, nullptr, w); });
    if (status) return status;
    linalg_layout layout;
    const linalg_work<T> work(&layout, sizes);
    const uint64_t room = layout.add(is_complex<T> || job.want == 'N' ? 0 : n * n * int64_t(sizeof(T)));
    return linalg_each(c, matrices(job.a), 25 * double(n) * n * n, layout.size, "Eigenvalues did not converge",
                       [&](int64_t i, char *scratch) {
                           if (!is_finite(matrix<T>(job.a, i), n * n)) return 1;
                           return eig_one(job, i, reinterpret_cast<T *>(scratch + room), work.at(scratch));
                       });
}

int run_eig(ad_call *c, bool vectors) {
    const array in = linalg_input(c, 0);
    const int loop = c->op->loop, wide = complex_dtype(loop);
    eig_job job = {};
    array out;
    int status;
    if ((status = linalg_fits(c, in)) || (status = linalg_output(c, 0, wide, &job.values)) ||
        (vectors && (status = ad_call_output(c, 1, wide, &out))))
        return status;
    if (count(in) == 0) return 0;
    job.n = int(rows(in));
    job.want = vectors ? 'V' : 'N';
    job.vectors = in;
    job.vectors.dtype = wide;
    if ((status = linalg_copy(c, in, loop, true, &job.a)) || (vectors && (status = linalg_scratch(c, &job.vectors))))
        return status;
    c->run->wrote = true;
    status = visit_field(loop, [&](auto t) { return eig<typename decltype(t)::type>(c, job); });
    if (status || (status = ad_call_finish(c, 0, &job.values)) || !vectors) return status;
    const array by_rows = transposed(job.vectors);
    if ((status = ad_call_copy(c, &out, &by_rows))) return status;
    return ad_call_finish(c, 1, &out);
}

/* ---- least squares ---- */

struct lstsq_job {
    array a, x, s; /* a and x by columns; x is overwritten by the solution */
    int64_t m, n, k;
    double rcond;
    int64_t *rank;
};

template <class T> int lstsq(ad_call *c, const lstsq_job &job) {
    const int m = int(job.m), n = int(job.n), k = int(job.k), most = std::max(m, n);
    int rank = 0;
    const auto solve = [&](const ad_lapack_work<T> &w) {
        return ad_lapack<T>::gelsd(m, n, k, matrix<T>(job.a, 0), matrix<T>(job.x, 0), most, line<real_t<T>>(job.s, 0),
                                   real_t<T>(job.rcond), &rank, w);
    };
    ad_lapack_work<T> sizes = {nullptr, nullptr, nullptr, -1, is_complex<T> ? -1 : 0, -1};
    int status = linalg_ask(c, &sizes, solve);
    if (status) return status;
    linalg_layout layout;
    const linalg_work<T> work(&layout, sizes);
    status =
        linalg_each(c, 1, 0, layout.size, "SVD did not converge in Linear Least Squares", [&](int64_t, char *scratch) {
            return is_finite(matrix<T>(job.a, 0), job.m * job.n) ? solve(work.at(scratch)) : 1;
        });
    *job.rank = rank;
    return status;
}

/* The right sides by columns, in room for the solution. */
int right_sides(ad_call *c, const array &b, int64_t n, array *x) {
    const int64_t m = rows(b), k = std::max<int64_t>(columns(b), 1);
    array top, from = transposed(b);
    x->ndim = 2;
    x->dtype = c->op->loop;
    x->shape[0] = k;
    x->shape[1] = std::max(m, n);
    int status = linalg_scratch(c, x);
    if (status) return status;
    memset(x->data, 0, size_t(count(*x) * itemsize(x->dtype)));
    top = *x;
    top.shape[0] = columns(b);
    top.shape[1] = m;
    return ad_call_copy(c, &top, &from);
}

int svd_outputs(ad_call *c, svd_job *job) {
    int status;
    if (c->op->nout == 1) return linalg_output(c, 0, real_dtype(c->op->loop), &job->s);
    if ((status = linalg_output(c, 0, c->op->loop, &job->u)) ||
        (status = linalg_output(c, 1, real_dtype(c->op->loop), &job->s)))
        return status;
    return linalg_output(c, 2, c->op->loop, &job->vh);
}

int svd_finish(ad_call *c, const svd_job *job) {
    int status;
    if (c->op->nout == 1) return ad_call_finish(c, 0, &job->s);
    if ((status = ad_call_finish(c, 0, &job->u)) || (status = ad_call_finish(c, 1, &job->s))) return status;
    return ad_call_finish(c, 2, &job->vh);
}

int run_svd(ad_call *c, char vectors) {
    const array in = linalg_input(c, 0);
    svd_job job;
    int status;
    if ((status = linalg_fits(c, in)) || (status = svd_outputs(c, &job))) return status;
    job.m = rows(in);
    job.n = columns(in);
    job.vectors = vectors;
    c->run->wrote = true;
    if (count(in) > 0) {
        if ((status = linalg_copy(c, in, c->op->loop, false, &job.w))) return status;
        status = visit_field(c->op->loop, [&](auto t) { return svd<typename decltype(t)::type>(c, job); });
        if (status) return status;
    } else if (vectors != 'N') {
        identity(job.u, c->op->loop);
        identity(job.vh, c->op->loop);
    }
    return svd_finish(c, &job);
}

} // namespace

int ad_call_svd(ad_call *c) { return run_svd(c, c->op->param[0].as.b ? 'A' : 'S'); }
int ad_call_svdvals(ad_call *c) { return run_svd(c, 'N'); }

int ad_call_eigh(ad_call *c) {
    const array in = linalg_input(c, 0);
    array a, values, out, by_rows;
    int status;
    if ((status = linalg_fits(c, in)) || (status = linalg_output(c, 0, real_dtype(c->op->loop), &values)) ||
        (status = ad_call_output(c, 1, c->op->loop, &out)))
        return status;
    if (count(in) == 0) return 0;
    if ((status = linalg_copy(c, in, c->op->loop, true, &a))) return status;
    c->run->wrote = true;
    status = visit_field(c->op->loop, [&](auto t) {
        return eigh<typename decltype(t)::type>(c, a, values, 'V', c->op->param[0].as.b ? 'U' : 'L');
    });
    if (status || (status = ad_call_finish(c, 0, &values))) return status;
    by_rows = transposed(a);
    if ((status = ad_call_copy(c, &out, &by_rows))) return status;
    return ad_call_finish(c, 1, &out);
}

int ad_call_eigvalsh(ad_call *c) {
    const array in = linalg_input(c, 0);
    array a, values;
    int status;
    if ((status = linalg_fits(c, in)) || (status = linalg_output(c, 0, real_dtype(c->op->loop), &values)))
        return status;
    if (count(in) == 0) return 0;
    if ((status = linalg_copy(c, in, c->op->loop, false, &a))) return status;
    c->run->wrote = true;
    status = visit_field(c->op->loop, [&](auto t) { /* by columns the triangles change places */
                                                    return eigh<typename decltype(t)::type>(
                                                        c, a, values, 'N', c->op->param[0].as.b ? 'L' : 'U');
    });
    return status ? status : ad_call_finish(c, 0, &values);
}

int ad_call_eig(ad_call *c) { return run_eig(c, true); }
int ad_call_eigvals(ad_call *c) { return run_eig(c, false); }

int ad_call_lstsq(ad_call *c) {
    const array in = linalg_input(c, 0), b = linalg_input(c, 1);
    const int loop = c->op->loop;
    array out, rank, top;
    lstsq_job job = {};
    int status;
    if ((status = linalg_fits(c, in)) || (status = linalg_fits(c, b)) || (status = ad_call_output(c, 0, loop, &out)) ||
        (status = ad_call_output(c, 1, AD_INT64, &rank)) || (status = linalg_output(c, 2, real_dtype(loop), &job.s)) ||
        (status = right_sides(c, b, columns(in), &job.x)))
        return status;
    job.m = rows(in);
    job.n = columns(in);
    job.k = job.x.shape[0];
    job.rank = reinterpret_cast<int64_t *>(rank.data);
    job.rcond = ad_scalar_number(&c->op->param[0]);
    c->run->wrote = true;
    *job.rank = 0;
    if (job.m == 0) memset(job.x.data, 0, size_t(count(job.x) * itemsize(loop)));
    if (count(in) > 0) {
        if ((status = linalg_copy(c, in, loop, true, &job.a))) return status;
        status = visit_field(loop, [&](auto t) { return lstsq<typename decltype(t)::type>(c, job); });
        if (status) return status;
    }
    top = transposed(job.x);
    top.shape[0] = job.n;
    top.shape[1] = columns(out);
    if ((status = ad_call_copy(c, &out, &top)) || (status = ad_call_finish(c, 0, &out)) ||
        (status = ad_call_finish(c, 1, &rank)))
        return status;
    return ad_call_finish(c, 2, &job.s);
}
