/* Factorisations and what solves by them. */
#include "kernels/cuda/call/linalg/solver.h"

namespace {

using namespace ad;

constexpr int64_t SMALL = 128; /* rows up to which a batch is done by batched functions */

template <class T> T *at(char *base, int64_t i, int64_t step) { return reinterpret_cast<T *>(base + i * step); }

/* ---- cholesky ---- */

template <class T> int cholesky_batched(const ad_solver &s, const array &a, cublasFillMode_t fill, int *info) {
    using S = ad_solver_of<T>;
    const int n = int(rows(a));
    void **list;
    int rc = ad_linalg_list(s.c, a.data, int64_t(n) * n * s.size, matrices(a), &list);
    if (rc < 0) return rc;
    return ad_linalg_parts(matrices(a), [&](int64_t first, int part) {
        return s.check(S::potrf_batched(s.handle, fill, n, reinterpret_cast<typename S::element **>(list + first), n,
                                        info + first, part),
                       "potrfBatched");
    });
}

int cholesky_each(const ad_solver &s, const array &a, cublasFillMode_t fill, int *info) {
    const int64_t n = rows(a);
    ad_solver_room room;
    int rc = s.check(cusolverDnXpotrf_bufferSize(s.handle, s.parameters, fill, n, s.data, a.data, n, s.data,
                                                 &room.device_size, &room.host_size),
                     "Xpotrf");
    if (rc == 0) rc = room.open(s.c);
    for (int64_t i = 0; i < matrices(a) && rc == 0; i++)
        rc = s.check(cusolverDnXpotrf(s.handle, s.parameters, fill, n, s.data, a.data + i * n * n * s.size, n, s.data,
                                      room.device, room.device_size, room.host.get(), room.host_size, info + i),
                     "Xpotrf");
    return rc;
}

int cholesky(ad_call *c, const array &a, bool upper) {
    const cublasFillMode_t fill = upper ? CUBLAS_FILL_MODE_LOWER : CUBLAS_FILL_MODE_UPPER;
    ad_solver s;
    int *info, rc;
    if ((rc = s.open(c)) < 0 || (rc = ad_linalg_infos(c, matrices(a), &info)) < 0) return rc;
    if (!ad_linalg_batched(matrices(a), rows(a), 2 * SMALL)) rc = cholesky_each(s, a, fill, info);
    else
        rc = visit_field(c->op->loop,
                         [&](auto t) { return cholesky_batched<typename decltype(t)::type>(s, a, fill, info); });
    if (rc < 0 || (rc = ad_linalg_triangle(c, &a, upper)) < 0) return rc;
    return ad_linalg_report(c, info, matrices(a), AD_CHECK_linalg_definite);
}

/* ---- lu ---- */

/* Factors in place of stacks of packed matrices by columns, and all that is needed to use them. */
struct factors {
    array a;      /* by columns: columns(a) rows of rows(a) elements each */
    int64_t m, n; /* rows and columns */
    bool batched;
    char *pivots; /* of int (batched) or int64 */
    int *info;
    void **list; /* batched: where the matrices are */
};

int64_t pivot_step(const factors &f) { return std::min(f.m, f.n) * int64_t(f.batched ? sizeof(int) : sizeof(int64_t)); }

template <class T> int factor_batched(ad_call *c, factors *f) {
    using S = ad_solver_of<T>;
    const int n = int(f->n);
    cublasHandle_t blas;
    int rc = ad_linalg_list(c, f->a.data, f->m * n * int64_t(sizeof(T)), matrices(f->a), &f->list);
    if (rc < 0 || (rc = ad_cuda_blas(c, 0, &blas)) < 0) return rc;
    return ad_linalg_parts(matrices(f->a), [&](int64_t first, int part) {
        return ad_cuda_blas_status(S::getrf_batched(blas, n, reinterpret_cast<typename S::element **>(f->list + first),
                                                    n, reinterpret_cast<int *>(f->pivots) + first * n, f->info + first,
                                                    part),
                                   "getrfBatched", c->fault);
    });
}

int factor_each(const ad_solver &s, factors *f) {
    ad_solver_room room;
    int rc = s.check(cusolverDnXgetrf_bufferSize(s.handle, s.parameters, f->m, f->n, s.data, f->a.data, f->m, s.data,
                                                 &room.device_size, &room.host_size),
                     "Xgetrf");
    if (rc == 0) rc = room.open(s.c);
    for (int64_t i = 0; i < matrices(f->a) && rc == 0; i++)
        rc = s.check(cusolverDnXgetrf(s.handle, s.parameters, f->m, f->n, s.data, f->a.data + i * f->m * f->n * s.size,
                                      f->m, at<int64_t>(f->pivots, i, pivot_step(*f)), s.data, room.device,
                                      room.device_size, room.host.get(), room.host_size, f->info + i),
                     "Xgetrf");
    return rc;
}

int factor(const ad_solver &s, factors *f) {
    ad_call *c = s.c;
    int rc = ad_linalg_infos(c, matrices(f->a), &f->info);
    if (rc < 0) return rc;
    f->batched = f->m == f->n && ad_linalg_batched(matrices(f->a), f->n, SMALL);
    f->pivots = static_cast<char *>(ad_call_workspace(c, uint64_t(matrices(f->a) * pivot_step(*f))));
    if (f->pivots == nullptr) return AD_E_MEMORY;
    if (!f->batched) return factor_each(s, f);
    return visit_field(c->op->loop, [&](auto t) { return factor_batched<typename decltype(t)::type>(c, f); });
}

/* ---- solve, inv ---- */

template <class T> int back_batched(ad_call *c, const factors &f, cublasOperation_t operation, char *x, int64_t k) {
    using S = ad_solver_of<T>;
    using E = typename S::element;
    const int n = int(f.n);
    cublasHandle_t blas;
    void **sides;
    int wrong = 0, rc = ad_linalg_list(c, x, int64_t(n) * k * int64_t(sizeof(T)), matrices(f.a), &sides);
    if (rc < 0 || (rc = ad_cuda_blas(c, 0, &blas)) < 0) return rc;
    return ad_linalg_parts(matrices(f.a), [&](int64_t first, int part) {
        return ad_cuda_blas_status(S::getrs_batched(blas, operation, n, int(k),
                                                    reinterpret_cast<const E *const *>(f.list + first), n,
                                                    reinterpret_cast<const int *>(f.pivots) + first * n,
                                                    reinterpret_cast<E **>(sides + first), n, &wrong, part),
                                   "getrsBatched", c->fault);
    });
}

/* Solve for x by columns, k of them for each matrix; x becomes the solution. */
int back(const ad_solver &s, const factors &f, cublasOperation_t operation, char *x, int64_t k) {
    int *info, rc;
    if (f.batched)
        return visit_field(s.c->op->loop,
                           [&](auto t) { return back_batched<typename decltype(t)::type>(s.c, f, operation, x, k); });
    if ((rc = ad_linalg_infos(s.c, 1, &info)) < 0) return rc;
    for (int64_t i = 0; i < matrices(f.a) && rc == 0; i++)
        rc = s.check(cusolverDnXgetrs(s.handle, s.parameters, operation, f.n, k, s.data,
                                      f.a.data + i * f.n * f.n * s.size, f.n, at<int64_t>(f.pivots, i, pivot_step(f)),
                                      s.data, x + i * f.n * k * s.size, f.n, info),
                     "Xgetrs");
    return rc;
}

template <class T> int invert_batched(ad_call *c, const factors &f, const array &out) {
    using S = ad_solver_of<T>;
    using E = typename S::element;
    const int n = int(f.n);
    cublasHandle_t blas;
    void **results;
    int *info, rc = ad_linalg_list(c, out.data, int64_t(n) * n * int64_t(sizeof(T)), matrices(f.a), &results);
    if (rc < 0 || (rc = ad_linalg_infos(c, matrices(f.a), &info)) < 0 || (rc = ad_cuda_blas(c, 0, &blas)) < 0)
        return rc;
    return ad_linalg_parts(matrices(f.a), [&](int64_t first, int part) {
        return ad_cuda_blas_status(S::getri_batched(blas, n, reinterpret_cast<const E *const *>(f.list + first), n,
                                                    reinterpret_cast<const int *>(f.pivots) + first * n,
                                                    reinterpret_cast<E **>(results + first), n, info + first, part),
                                   "getriBatched", c->fault);
    });
}

/* ---- qr ---- */

struct qr_job {
    array a, q; /* a: copies by columns, each followed by room for the columns that q has more */
    int64_t m, n, k, width;
    char *tau;
    int *info;
};

template <class T> int qr_batched(ad_call *c, const qr_job &job) {
    using S = ad_solver_of<T>;
    using E = typename S::element;
    cublasHandle_t blas;
    void **list, **taus;
    const int64_t batch = matrices(job.a), size = sizeof(T);
    int wrong = 0, rc;
    if ((rc = ad_linalg_list(c, job.a.data, job.m * job.n * size, batch, &list)) < 0 ||
        (rc = ad_linalg_list(c, job.tau, job.k * size, batch, &taus)) < 0 || (rc = ad_cuda_blas(c, 0, &blas)) < 0)
        return rc;
    return ad_linalg_parts(batch, [&](int64_t first, int part) {
        return ad_cuda_blas_status(S::geqrf_batched(blas, int(job.m), int(job.n), reinterpret_cast<E **>(list + first),
                                                    int(job.m), reinterpret_cast<E **>(taus + first), &wrong, part),
                                   "geqrfBatched", c->fault);
    });
}

int qr_each(const ad_solver &s, const qr_job &job) {
    const int64_t step = rows(job.a) * job.m * s.size;
    ad_solver_room room;
    int rc = s.check(cusolverDnXgeqrf_bufferSize(s.handle, s.parameters, job.m, job.n, s.data, job.a.data, job.m,
                                                 s.data, job.tau, s.data, &room.device_size, &room.host_size),
                     "Xgeqrf");
    if (rc == 0) rc = room.open(s.c);
    for (int64_t i = 0; i < matrices(job.a) && rc == 0; i++)
        rc = s.check(cusolverDnXgeqrf(s.handle, s.parameters, job.m, job.n, s.data, job.a.data + i * step, job.m,
                                      s.data, job.tau + i * job.k * s.size, s.data, room.device, room.device_size,
                                      room.host.get(), room.host_size, job.info + i),
                     "Xgeqrf");
    return rc;
}

/* The columns of q take the place of the reflectors. */
template <class T> int q_each(const ad_solver &s, const qr_job &job) {
    using S = ad_solver_of<T>;
    using E = typename S::element;
    const int m = int(job.m), width = int(job.width), k = int(job.k);
    const int64_t step = rows(job.a) * m;
    E *a = reinterpret_cast<E *>(job.a.data), *tau = reinterpret_cast<E *>(job.tau);
    int size = 0, rc = s.check(S::make_q_size(s.handle, m, width, k, a, m, tau, &size), "orgqr");
    if (rc < 0) return rc;
    E *work = static_cast<E *>(ad_call_workspace(s.c, uint64_t(size) * sizeof(E)));
    if (work == nullptr) return AD_E_MEMORY;
    for (int64_t i = 0; i < matrices(job.a) && rc == 0; i++)
        rc = s.check(S::make_q(s.handle, m, width, k, a + i * step, m, tau + i * k, work, size, job.info + i), "orgqr");
    return rc;
}

/* Take r from a, whose first columns lie by columns. r has its first rows, and zero below the diagonal. */
int take_r(ad_call *c, const qr_job &job, array *r) {
    array top = job.a, to = *r;
    top.shape[top.ndim - 2] = job.n;
    top = transposed(top);
    top.shape[top.ndim - 2] = to.shape[to.ndim - 2];
    const int rc = ad_call_copy(c, &to, &top);
    return rc < 0 ? rc : ad_linalg_triangle(c, r, true);
}

qr_job qr_of(const array &in) {
    qr_job job = {};
    job.m = rows(in);
    job.n = columns(in);
    job.k = std::min(job.m, job.n);
    return job;
}

bool qr_is_batched(const qr_job &job, const array &in) {
    return ad_linalg_batched(matrices(in), job.m, SMALL) && job.n <= SMALL;
}

/* The first columns of job->a, which has memory, become reflectors and r. */
int qr_factor(const ad_solver &s, const array &in, qr_job *job) {
    ad_call *c = s.c;
    array to = job->a;
    int rc = ad_linalg_infos(c, matrices(in), &job->info);
    to.shape[to.ndim - 2] = job->n;
    const array from = transposed(in);
    if (rc < 0 || (rc = ad_call_copy(c, &to, &from)) < 0) return rc;
    if (!qr_is_batched(*job, in)) return qr_each(s, *job);
    return visit_field(c->op->loop, [&](auto t) { return qr_batched<typename decltype(t)::type>(c, *job); });
}

int qr(ad_call *c, const array &in, qr_job *job, array *q, array *r) {
    const bool batched = qr_is_batched(*job, in);
    ad_solver s;
    int rc;
    job->a = transposed(in);
    job->a.dtype = c->op->loop;
    job->a.shape[in.ndim - 2] = batched ? job->n : std::max(job->n, job->width);
    job->tau = static_cast<char *>(ad_call_workspace(c, uint64_t(matrices(in) * job->k * itemsize(c->op->loop))));
    if (job->tau == nullptr || (rc = linalg_scratch(c, &job->a)) < 0) return AD_E_MEMORY;
    if ((rc = s.open(c)) < 0 || (rc = qr_factor(s, in, job)) < 0 || (rc = take_r(c, *job, r)) < 0) return rc;
    if (batched) return ad_linalg_make_q(c, q, job->a.data, job->tau, job->n);
    rc = visit_field(c->op->loop, [&](auto t) { return q_each<typename decltype(t)::type>(s, *job); });
    if (rc < 0) return rc;
    array made = job->a;
    made.shape[made.ndim - 2] = job->width;
    const array by_rows = transposed(made);
    return ad_call_copy(c, q, &by_rows);
}

} // namespace

int ad_call_cholesky(ad_call *c) {
    const array in = linalg_input(c, 0);
    array out;
    int rc;
    if ((rc = linalg_output(c, 0, c->op->loop, &out)) < 0 || count(out) == 0) return rc;
    c->run->wrote = true;
    if ((rc = ad_call_copy(c, &out, &in)) < 0 || (rc = cholesky(c, out, c->op->param[0].as.b)) < 0) return rc;
    return ad_call_finish(c, 0, &out);
}

int ad_call_qr(ad_call *c) {
    const array in = linalg_input(c, 0);
    qr_job job = qr_of(in);
    array q, r;
    int rc;
    if ((rc = ad_linalg_fits(c, in)) < 0 || (rc = linalg_output(c, 0, c->op->loop, &q)) < 0 ||
        (rc = linalg_output(c, 1, c->op->loop, &r)) < 0)
        return rc;
    job.width = columns(q);
    c->run->wrote = true;
    if (count(in) == 0) rc = ad_linalg_identity(c, &q);
    else rc = qr(c, in, &job, &q, &r);
    if (rc < 0 || (rc = ad_call_finish(c, 0, &q)) < 0) return rc;
    return ad_call_finish(c, 1, &r);
}

int ad_call_qr_raw(ad_call *c) {
    const array in = linalg_input(c, 0);
    qr_job job = qr_of(in);
    array tau;
    ad_solver s;
    int rc;
    if ((rc = ad_linalg_fits(c, in)) < 0 || (rc = linalg_output(c, 0, c->op->loop, &job.a)) < 0 ||
        (rc = linalg_output(c, 1, c->op->loop, &tau)) < 0)
        return rc;
    if (count(in) == 0) return 0;
    job.tau = tau.data;
    c->run->wrote = true;
    if ((rc = s.open(c)) < 0 || (rc = qr_factor(s, in, &job)) < 0 || (rc = ad_call_finish(c, 0, &job.a)) < 0) return rc;
    return ad_call_finish(c, 1, &tau);
}

int ad_call_lu(ad_call *c) {
    const array in = linalg_input(c, 0);
    const int loop = c->op->loop;
    factors f = {};
    array out, pivots;
    ad_solver s;
    int rc;
    if ((rc = ad_call_output(c, 0, loop, &out)) < 0 || (rc = linalg_output(c, 1, AD_INT64, &pivots)) < 0) return rc;
    if (count(in) == 0) return 0;
    f.m = rows(in);
    f.n = columns(in);
    if ((rc = linalg_copy(c, in, loop, true, &f.a)) < 0 || (rc = s.open(c)) < 0 || (rc = factor(s, &f)) < 0) return rc;
    c->run->wrote = true;
    const array by_rows = transposed(f.a);
    rc = ad_linalg_pivots(c, reinterpret_cast<int64_t *>(pivots.data), f.pivots, !f.batched, count(pivots));
    if (rc < 0 || (rc = ad_call_copy(c, &out, &by_rows)) < 0 || (rc = ad_call_finish(c, 0, &out)) < 0) return rc;
    return ad_call_finish(c, 1, &pivots);
}

/* The matrix is factored as it lies, which is its transpose by columns. Where one matrix has many right sides they lie
 * side by side, and are those of one system. */
int ad_call_solve(ad_call *c) {
    const array a = linalg_input(c, 0), b = linalg_input(c, 1);
    const int loop = c->op->loop;
    factors f = {};
    array out, x;
    ad_solver s;
    int rc;
    if ((rc = ad_call_output(c, 0, loop, &out)) < 0 || count(out) == 0) return rc;
    const bool shared = matrices(a) == 1;
    const array sides = linalg_broadcast(b, out);
    f.m = f.n = rows(out);
    const int64_t k = columns(out) * (shared ? matrices(out) : 1);
    if (k > INT_MAX) return ad__fault(c->fault, AD_E_UNSUPPORTED, "more than %d right sides", INT_MAX);
    if ((rc = linalg_copy(c, shared ? a : linalg_broadcast(a, out), loop, false, &f.a)) < 0 ||
        (rc = linalg_copy(c, sides, loop, true, &x)) < 0 || (rc = s.open(c)) < 0 || (rc = factor(s, &f)) < 0 ||
        (rc = ad_linalg_report(c, f.info, matrices(f.a), AD_CHECK_linalg_singular)) < 0 ||
        (rc = back(s, f, CUBLAS_OP_T, x.data, k)) < 0)
        return rc;
    c->run->wrote = true;
    const array by_rows = transposed(x);
    if ((rc = ad_call_copy(c, &out, &by_rows)) < 0) return rc;
    return ad_call_finish(c, 0, &out);
}

int ad_call_inv(ad_call *c) {
    const array in = linalg_input(c, 0);
    const int loop = c->op->loop;
    factors f = {};
    array out;
    ad_solver s;
    int rc;
    if ((rc = linalg_output(c, 0, loop, &out)) < 0 || count(out) == 0) return rc;
    f.m = f.n = rows(in);
    if ((rc = linalg_copy(c, in, loop, false, &f.a)) < 0 || (rc = s.open(c)) < 0 || (rc = factor(s, &f)) < 0 ||
        (rc = ad_linalg_report(c, f.info, matrices(f.a), AD_CHECK_linalg_singular)) < 0)
        return rc;
    c->run->wrote = true;
    if (f.batched)
        rc = visit_field(loop, [&](auto t) { return invert_batched<typename decltype(t)::type>(c, f, out); });
    else if ((rc = ad_linalg_identity(c, &out)) == 0) rc = back(s, f, CUBLAS_OP_N, out.data, f.n);
    return rc < 0 ? rc : ad_call_finish(c, 0, &out);
}
