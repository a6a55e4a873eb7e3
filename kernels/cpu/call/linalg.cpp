/* Factorisations and what solves by them. */
#include "kernels/cpu/call/linalg.h"
#include "kernels/cpu/isa/factor.h"
#include "kernels/cpu/kernels.h"
#include "kernels/math.h"

#include <string.h>

namespace {

using namespace ad;

template <class T> T *matrix(const array &a, int64_t i) {
    return reinterpret_cast<T *>(a.data) + i * rows(a) * columns(a);
}

double cube(int64_t n) { return double(n) * double(n) * double(n); }

/* ---- small matrices, side by side ---- */

constexpr int64_t SMALL_MOST = 64; /* rows; of larger ones LAPACK makes blocks that fit the processor's cache */

/* The kernel for such matrices of n rows, or NULL: there are too few, or LAPACK is as fast. */
const ad_factor_kernel *find_small(const array &out, int64_t n) {
    const ad_factor_kernel *k = ad_cpu_kernels_get()->factor + out.dtype;
    return n <= SMALL_MOST && k->lanes && matrices(out) * 2 >= k->lanes ? k : nullptr;
}

/* Where matrix i of a stack begins. */
char *find_matrix(const array &a, int64_t i) {
    char *at = a.data;
    for (int d = a.ndim - 3; d > 0; d--) {
        at += i % a.shape[d] * a.stride[d];
        i /= a.shape[d];
    }
    return a.ndim > 2 ? at + i * a.stride[0] : at;
}

/* `lanes` matrices from `first` on, of which the stack has `count`; the others are the first one again. */
ad_factor_stack take_matrices(const array &a, int64_t first, int count, int lanes) {
    ad_factor_stack s = {{}, a.stride[a.ndim - 2], a.stride[a.ndim - 1]};
    for (int i = 0; i < lanes; i++) s.at[i] = find_matrix(a, first + (i < count ? i : 0));
    return s;
}

/* one(first, count, scratch) for the matrices of a stack, as many at a time as the kernel has lanes. 1: one of them did
 * not give true, and LAPACK has to do it all. work, elements: as for linalg_try, and of the scratch memory, of one
 * matrix.
 */
template <class F>
int small_each(ad_call *c, const ad_factor_kernel *k, const array &out, double work, int64_t elements, F one) {
    const int64_t n = matrices(out), groups = (n + k->lanes - 1) / k->lanes;
    c->run->wrote = true;
    return linalg_try(c, groups, work * k->lanes, uint64_t(elements * itemsize(out.dtype) * k->lanes),
                      [&](int64_t i, char *scratch) {
                          const int64_t first = i * k->lanes;
                          return !one(first, int(std::min<int64_t>(k->lanes, n - first)), scratch);
                      });
}

int small_cholesky(ad_call *c, const array &in, const array &out, bool upper) {
    const int64_t n = rows(out);
    const ad_factor_kernel *k = in.dtype == out.dtype ? find_small(out, n) : nullptr;
    if (!k) return 1;
    return small_each(c, k, out, cube(n) / 3, n * ad_factor_width(n), [&](int64_t first, int many, char *scratch) {
        const ad_factor_stack a = take_matrices(in, first, many, k->lanes),
                              to = take_matrices(out, first, many, k->lanes);
        return k->cholesky(&a, &to, many, int(n), upper, scratch);
    });
}

/* b NULL: the identity. a and b have the leading dimensions of out. */
int small_solve(ad_call *c, const array &a, const array *b, const array &out) {
    const int64_t n = rows(out), sides = columns(out);
    const bool same = a.dtype == out.dtype && (!b || b->dtype == out.dtype);
    const ad_factor_kernel *k = same && sides <= SMALL_MOST ? find_small(out, n) : nullptr;
    if (!k) return 1;
    const double work = cube(n) / 3 + double(n) * double(n) * double(sides);
    return small_each(c, k, out, work, n * ad_factor_width(n + sides), [&](int64_t first, int many, char *scratch) {
        const ad_factor_stack from = take_matrices(a, first, many, k->lanes),
                              right = b ? take_matrices(*b, first, many, k->lanes) : ad_factor_stack{},
                              to = take_matrices(out, first, many, k->lanes);
        return k->solve(&from, b ? &right : nullptr, &to, many, int(n), int(sides), scratch);
    });
}

/* ---- cholesky ---- */

/* Zero what is above (or below) the diagonal of a matrix by rows. */
template <class T> void clear_triangle(T *a, int64_t n, bool above) {
    for (int64_t i = 0; i < n; i++)
        if (above) std::fill(a + i * n + i + 1, a + (i + 1) * n, T(0));
        else std::fill(a + i * n, a + i * n + i, T(0));
}

template <class T> int cholesky(ad_call *c, const array &out, bool upper) {
    const int64_t n = rows(out);
    return linalg_each(c, matrices(out), cube(n) / 3, 0, "Matrix is not positive definite", [&](int64_t i, char *) {
        T *a = matrix<T>(out, i);
        const int info = ad_lapack<T>::potrf(upper ? 'L' : 'U', int(n), a);
        clear_triangle(a, n, !upper);
        return info;
    });
}

/* ---- qr ---- */

/* A QR decomposition. The transpose of a by columns is a by rows, so the LQ factors by columns are those of a by rows.
 * w: copies of the matrices, which may be q itself. */
struct qr_job {
    array w, q, r;
    int64_t m, n;
    bool in_place;
};

/* Rows of r from what gelqf left of one matrix. */
template <class T> void take_r(const T *a, T *r, int64_t rows, int64_t n) {
    for (int64_t i = 0; i < rows; i++) {
        const int64_t zeros = std::min(i, n);
        std::fill(r + i * n, r + i * n + zeros, T(0));
        if (zeros < n) memcpy(r + i * n + zeros, a + i * n + zeros, size_t(n - zeros) * sizeof(T));
    }
}

template <class T> int qr(ad_call *c, const qr_job &job) {
    using lapack = ad_lapack<T>;
    const int m = int(job.m), n = int(job.n), k = std::min(m, n), columns_of_q = int(columns(job.q));
    ad_lapack_work<T> factor = {nullptr, nullptr, nullptr, -1, 0, 0}, make = factor;
    int status = linalg_ask(c, &factor, [&](const ad_lapack_work<T> &w) {
        return lapack::gelqf(n, m, reinterpret_cast<T *>(job.w.data), w.work, w);
    });
    if (!status)
        status = linalg_ask(c, &make, [&](const ad_lapack_work<T> &w) {
            return lapack::make_q(columns_of_q, m, k, reinterpret_cast<T *>(job.q.data), w.work, w);
        });
    if (status) return status;
    factor.lwork = make.lwork = std::max(factor.lwork, make.lwork);
    linalg_layout layout;
    const uint64_t tau_at = layout.add(k * int64_t(sizeof(T)));
    const linalg_work<T> work(&layout, factor);
    return linalg_each(c, matrices(job.w), 4 * double(m) * n * k, layout.size,
                       "Incorrect argument found while performing QR factorization", [&](int64_t i, char *scratch) {
                           T *a = matrix<T>(job.w, i), *q = matrix<T>(job.q, i),
                             *tau = reinterpret_cast<T *>(scratch + tau_at);
                           const ad_lapack_work<T> w = work.at(scratch);
                           const int info = lapack::gelqf(n, m, a, tau, w);
                           if (info != 0) return info;
                           take_r(a, matrix<T>(job.r, i), rows(job.r), n);
                           for (int64_t row = 0; row < m && !job.in_place; row++)
                               memcpy(q + row * columns_of_q, a + row * n, size_t(k) * sizeof(T));
                           return lapack::make_q(columns_of_q, m, k, q, tau, w);
                       });
}

/* The reflectors of LQ by columns are those of QR by rows; of complex matrices the factors tau are the conjugates. */
template <class T> int qr_raw(ad_call *c, const array &w, const array &tau) {
    const int m = int(rows(w)), n = int(columns(w)), k = std::min(m, n);
    T *taus = reinterpret_cast<T *>(tau.data);
    ad_lapack_work<T> factor = {nullptr, nullptr, nullptr, -1, 0, 0};
    int status = linalg_ask(c, &factor, [&](const ad_lapack_work<T> &work) {
        return ad_lapack<T>::gelqf(n, m, reinterpret_cast<T *>(w.data), taus, work);
    });
    if (status) return status;
    linalg_layout layout;
    const linalg_work<T> work(&layout, factor);
    return linalg_each(c, matrices(w), 2 * double(m) * n * k, layout.size,
                       "Incorrect argument found while performing QR factorization", [&](int64_t i, char *scratch) {
                           T *found = taus + i * k;
                           const int info = ad_lapack<T>::gelqf(n, m, matrix<T>(w, i), found, work.at(scratch));
                           for (int j = 0; j < k; j++) found[j] = adm::conj(found[j]);
                           return info;
                       });
}

/* Fill q with the first columns of the identity: its value when a has no elements. */
template <class T> void identity(const array &q) {
    memset(q.data, 0, size_t(count(q)) * sizeof(T));
    for (int64_t i = 0; i < matrices(q); i++)
        for (int64_t j = 0; j < std::min(rows(q), columns(q)); j++) matrix<T>(q, i)[j * columns(q) + j] = T(1);
}

/* ---- lu, solve, inv: by columns, as the pivots are those of the rows ---- */

template <class T> int lu(ad_call *c, const array &a, const array &pivots) {
    const int64_t m = columns(a), n = rows(a), k = std::min(m, n); /* a is by columns */
    return linalg_each(c, matrices(a), double(m) * double(n) * double(k), uint64_t(k) * sizeof(int), SINGULAR,
                       [&](int64_t i, char *scratch) {
                           int *found = reinterpret_cast<int *>(scratch);
                           int64_t *to = reinterpret_cast<int64_t *>(pivots.data) + i * k;
                           const int info = ad_lapack<T>::getrf(int(m), int(n), matrix<T>(a, i), found);
                           for (int64_t j = 0; j < k; j++) to[j] = found[j] - 1;
                           return info < 0 ? info : 0;
                       });
}

/* Signs and logarithms of determinants, packed. */
struct slogdet_job {
    array a, sign, size;
    const ad_factor_kernel *small; /* NULL: LAPACK does each matrix */
};

/* The determinant of one matrix, or of its transpose, which is the same: that whose rows are read in their order. */
template <class T> determinant<T> find_determinant(const array &a, int64_t i, T *copy, int *pivots) {
    const int64_t n = rows(a), one = a.stride[a.ndim - 2], other = a.stride[a.ndim - 1];
    const bool by_columns = std::abs(one) < std::abs(other);
    const int64_t row = by_columns ? other : one, column = by_columns ? one : other;
    const char *from = find_matrix(a, i);
    for (int64_t j = 0; j < n; j++)
        for (int64_t k = 0; k < n; k++) memcpy(copy + j * n + k, from + j * row + k * column, sizeof(T));
    if (n > 0) ad_lapack<T>::getrf(int(n), int(n), copy, pivots);
    determinant<T> d;
    for (int64_t j = 0; j < n; j++) d.take(copy[j * (n + 1)], pivots[j] != j + 1);
    return d;
}

template <class T> int slogdet(ad_call *c, const slogdet_job &job) {
    const int64_t n = rows(job.a), many = matrices(job.a), lanes = job.small ? job.small->lanes : 1;
    linalg_layout layout;
    const uint64_t pivots = layout.add(n * int64_t(sizeof(int)));
    const uint64_t room = layout.add(n * ad_factor_width(n) * lanes * int64_t(sizeof(T)));
    return linalg_try(
        c, (many + lanes - 1) / lanes, cube(n) / 3 * double(lanes), layout.size, [&](int64_t g, char *to) {
            const int64_t first = g * lanes;
            const int part = int(std::min(lanes, many - first));
            T *sign = reinterpret_cast<T *>(job.sign.data) + first, *scratch = reinterpret_cast<T *>(to + room);
            real_t<T> *size = reinterpret_cast<real_t<T> *>(job.size.data) + first;
            if (job.small) {
                const ad_factor_stack a = take_matrices(job.a, first, part, int(lanes));
                if (job.small->slogdet(&a, sign, size, part, int(n), scratch)) return 0;
            }
            for (int i = 0; i < part; i++) {
                const determinant<T> d =
                    find_determinant<T>(job.a, first + i, scratch, reinterpret_cast<int *>(to + pivots));
                sign[i] = d.find_sign();
                size[i] = d.find_size();
            }
            return 0;
        });
}

template <class T> int solve(ad_call *c, const array &a, const array &b, int64_t n, int64_t k) {
    return linalg_each(c, matrices(a), cube(n) / 3 + 2 * double(n) * double(n) * double(k), uint64_t(n) * sizeof(int),
                       SINGULAR, [&](int64_t i, char *scratch) {
                           int *pivots = reinterpret_cast<int *>(scratch);
                           const int info = ad_lapack<T>::getrf(int(n), int(n), matrix<T>(a, i), pivots);
                           T *x = reinterpret_cast<T *>(b.data) + i * n * k;
                           return info != 0 ? info : ad_lapack<T>::getrs(int(n), int(k), matrix<T>(a, i), pivots, x);
                       });
}

/* Tell whether a diagonal has a zero. */
template <class T> bool is_singular(const T *a, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (a[i * (n + 1)] == T(0)) return true;
    return false;
}

/* The triangular matrices are packed by rows or by columns; b, by rows, becomes x. One matrix may serve all. */
template <class T> int substitute(ad_call *c, const array &a, bool by_columns, const array &b) {
    const int n = int(rows(b)), k = int(columns(b));
    const bool shared = matrices(a) == 1, unit = c->op->param[1].as.b;
    const CBLAS_UPLO triangle = c->op->param[0].as.b != by_columns ? CblasLower : CblasUpper;
    const CBLAS_TRANSPOSE transpose = by_columns ? CblasTrans : CblasNoTrans;
    const CBLAS_DIAG diagonal = unit ? CblasUnit : CblasNonUnit;
    return linalg_each(c, matrices(b), double(n) * n * k, 0, SINGULAR, [&](int64_t i, char *) {
        const T *m = matrix<T>(a, shared ? 0 : i);
        if (!unit && is_singular(m, n)) return 1;
        ad_lapack<T>::solve_triangle(triangle, transpose, diagonal, n, k, m, matrix<T>(b, i));
        return 0;
    });
}

template <class T> int invert(ad_call *c, const array &a) {
    const int n = int(rows(a));
    ad_lapack_work<T> sizes = {nullptr, nullptr, nullptr, -1, 0, 0};
    int status = linalg_ask(c, &sizes, [&](const ad_lapack_work<T> &w) {
        return ad_lapack<T>::getri(n, reinterpret_cast<T *>(a.data), w.iwork, w);
    });
    if (status) return status;
    linalg_layout layout;
    const uint64_t pivots_at = layout.add(n * int64_t(sizeof(int)));
    const linalg_work<T> work(&layout, sizes);
    return linalg_each(c, matrices(a), 2 * cube(n), layout.size, SINGULAR, [&](int64_t i, char *scratch) {
        int *pivots = reinterpret_cast<int *>(scratch + pivots_at);
        const int info = ad_lapack<T>::getrf(n, n, matrix<T>(a, i), pivots);
        return info != 0 ? info : ad_lapack<T>::getri(n, matrix<T>(a, i), pivots, work.at(scratch));
    });
}

} // namespace

int ad_call_cholesky(ad_call *c) {
    const array in = linalg_input(c, 0);
    array out;
    int status;
    if ((status = linalg_fits(c, in)) || (status = linalg_output(c, 0, c->op->loop, &out))) return status;
    if (count(out) == 0) return 0;
    const bool upper = c->op->param[0].as.b;
    const int left = small_cholesky(c, in, out, upper);
    if (left <= 0) return left ? left : ad_call_finish(c, 0, &out);
    c->run->wrote = true;
    if ((status = ad_call_copy(c, &out, &in))) return status;
    status = visit_field(c->op->loop, [&](auto t) { return cholesky<typename decltype(t)::type>(c, out, upper); });
    return status ? status : ad_call_finish(c, 0, &out);
}

int ad_call_qr(ad_call *c) {
    const array in = linalg_input(c, 0);
    const int loop = c->op->loop;
    qr_job job;
    int status;
    if ((status = linalg_fits(c, in)) || (status = linalg_output(c, 0, loop, &job.q)) ||
        (status = linalg_output(c, 1, loop, &job.r)))
        return status;
    job.m = rows(in);
    job.n = columns(in);
    job.in_place = columns(job.q) == job.n;
    c->run->wrote = true;
    if (job.m == 0 || job.n == 0) {
        visit_field(loop, [&](auto t) { return identity<typename decltype(t)::type>(job.q), 0; });
    } else if (matrices(in) > 0) {
        if (job.in_place) status = ad_call_copy(c, &(job.w = job.q), &in);
        else status = linalg_copy(c, in, loop, false, &job.w);
        if (status) return status;
        status = visit_field(loop, [&](auto t) { return qr<typename decltype(t)::type>(c, job); });
    }
    if (status || (status = ad_call_finish(c, 0, &job.q))) return status;
    return ad_call_finish(c, 1, &job.r);
}

int ad_call_qr_raw(ad_call *c) {
    const array in = linalg_input(c, 0);
    const int loop = c->op->loop;
    array w, tau, h, by_columns;
    int status;
    if ((status = linalg_fits(c, in)) || (status = linalg_output(c, 0, loop, &h)) ||
        (status = linalg_output(c, 1, loop, &tau)))
        return status;
    if (count(in) == 0) return 0;
    if ((status = linalg_copy(c, in, loop, false, &w))) return status;
    c->run->wrote = true;
    status = visit_field(loop, [&](auto t) { return qr_raw<typename decltype(t)::type>(c, w, tau); });
    by_columns = transposed(w);
    if (status || (status = ad_call_copy(c, &h, &by_columns)) || (status = ad_call_finish(c, 0, &h))) return status;
    return ad_call_finish(c, 1, &tau);
}

int ad_call_lu(ad_call *c) {
    const array in = linalg_input(c, 0);
    array a, out, pivots, by_rows;
    int status;
    if ((status = linalg_fits(c, in)) || (status = linalg_copy(c, in, c->op->loop, true, &a)) ||
        (status = ad_call_output(c, 0, c->op->loop, &out)) || (status = linalg_output(c, 1, AD_INT64, &pivots)))
        return status;
    if (count(in) == 0) return 0;
    c->run->wrote = true;
    status = visit_field(c->op->loop, [&](auto t) { return lu<typename decltype(t)::type>(c, a, pivots); });
    if (status) return status;
    by_rows = transposed(a);
    if ((status = ad_call_copy(c, &out, &by_rows)) || (status = ad_call_finish(c, 0, &out))) return status;
    return ad_call_finish(c, 1, &pivots);
}

int ad_call_slogdet(ad_call *c) {
    slogdet_job job;
    int status;
    job.a = linalg_input(c, 0);
    if ((status = linalg_fits(c, job.a)) || (status = linalg_output(c, 0, c->op->loop, &job.sign)) ||
        (status = linalg_output(c, 1, real_dtype(c->op->loop), &job.size)))
        return status;
    if (count(job.sign) == 0) return 0;
    if (job.a.dtype != c->op->loop && (status = linalg_copy(c, linalg_input(c, 0), c->op->loop, false, &job.a)))
        return status;
    job.small = find_small(job.a, rows(job.a));
    c->run->wrote = true;
    status = visit_field(c->op->loop, [&](auto t) { return slogdet<typename decltype(t)::type>(c, job); });
    if (status || (status = ad_call_finish(c, 0, &job.sign))) return status;
    return ad_call_finish(c, 1, &job.size);
}

/* One matrix with many right sides is a single system: the right sides lie side by side, by columns. */
int ad_call_solve(ad_call *c) {
    const array a = linalg_input(c, 0), b = linalg_input(c, 1);
    const int loop = c->op->loop;
    array factor, out, x, by_rows;
    int status;
    if ((status = linalg_fits(c, a)) || (status = linalg_fits(c, b)) || (status = ad_call_output(c, 0, loop, &out)))
        return status;
    if (count(out) == 0) return 0;
    const bool shared = matrices(a) == 1;
    const array sides = linalg_broadcast(b, out), stack = linalg_broadcast(a, out);
    const int left = shared ? 1 : small_solve(c, stack, &sides, out);
    if (left <= 0) return left ? left : ad_call_finish(c, 0, &out);
    if ((status = linalg_copy(c, shared ? a : stack, loop, true, &factor)) ||
        (status = linalg_copy(c, sides, loop, true, &x)))
        return status;
    const int64_t n = rows(out), k = columns(out) * (shared ? matrices(out) : 1);
    if (k > INT_MAX) return ad__fault(c->fault, AD_E_UNSUPPORTED, "more than %d right sides", INT_MAX);
    status = visit_field(loop, [&](auto t) { return solve<typename decltype(t)::type>(c, factor, x, n, k); });
    if (status) return status;
    c->run->wrote = true;
    by_rows = transposed(x);
    if ((status = ad_call_copy(c, &out, &by_rows))) return status;
    return ad_call_finish(c, 0, &out);
}

int ad_call_solve_triangular(ad_call *c) {
    const array a = linalg_input(c, 0), b = linalg_input(c, 1);
    array triangle, out;
    int status;
    if ((status = linalg_fits(c, a)) || (status = linalg_fits(c, b)) ||
        (status = linalg_output(c, 0, c->op->loop, &out)))
        return status;
    if (count(out) == 0) return 0;
    const array sides = linalg_broadcast(b, out);
    triangle = matrices(a) == 1 ? a : linalg_broadcast(a, out);
    const bool by_columns = triangle.dtype == c->op->loop && !is_packed(triangle) && is_packed(transposed(triangle));
    if ((triangle.dtype != c->op->loop || (!by_columns && !is_packed(triangle))) &&
        (status = linalg_copy(c, triangle, c->op->loop, false, &triangle)))
        return status;
    c->run->wrote = true;
    if ((status = ad_call_copy(c, &out, &sides))) return status;
    status = visit_field(c->op->loop,
                         [&](auto t) { return substitute<typename decltype(t)::type>(c, triangle, by_columns, out); });
    return status ? status : ad_call_finish(c, 0, &out);
}

int ad_call_inv(ad_call *c) {
    const array in = linalg_input(c, 0);
    array a, out, by_rows;
    int status;
    if ((status = linalg_fits(c, in)) || (status = ad_call_output(c, 0, c->op->loop, &out))) return status;
    if (count(out) == 0) return 0;
    const int left = small_solve(c, in, nullptr, out);
    if (left <= 0) return left ? left : ad_call_finish(c, 0, &out);
    if ((status = linalg_copy(c, in, c->op->loop, true, &a))) return status;
    status = visit_field(c->op->loop, [&](auto t) { return invert<typename decltype(t)::type>(c, a); });
    if (status) return status;
    c->run->wrote = true;
    by_rows = transposed(a);
    if ((status = ad_call_copy(c, &out, &by_rows))) return status;
    return ad_call_finish(c, 0, &out);
}
