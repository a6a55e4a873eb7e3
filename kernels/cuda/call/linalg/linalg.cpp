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
    int status = ad_linalg_list(s.c, a.data, int64_t(n) * n * s.size, matrices(a), &list);
    if (status) return status;
    return ad_linalg_parts(matrices(a), [&](int64_t first, int part) {
        return s.check(S::potrf_batched(s.handle, fill, n, reinterpret_cast<typename S::element **>(list + first), n,
                                        info + first, part),
                       "potrfBatched");
    });
}

int cholesky_each(const ad_solver &s, const array &a, cublasFillMode_t fill, int *info) {
    const int64_t n = rows(a);
    ad_solver_room room;
    int status = s.check(cusolverDnXpotrf_bufferSize(s.handle, s.parameters, fill, n, s.data, a.data, n, s.data,
                                                     &room.device_size, &room.host_size),
                         "Xpotrf");
    if (!status) status = room.open(s.c);
    for (int64_t i = 0; i < matrices(a) && !status; i++)
        status =
            s.check(cusolverDnXpotrf(s.handle, s.parameters, fill, n, s.data, a.data + i * n * n * s.size, n, s.data,
                                     room.device, room.device_size, room.host.get(), room.host_size, info + i),
                    "Xpotrf");
    return status;
}

int cholesky(ad_call *c, const array &a, bool upper) {
    const cublasFillMode_t fill = upper ? CUBLAS_FILL_MODE_LOWER : CUBLAS_FILL_MODE_UPPER;
    ad_solver s;
    int *info, status;
    if ((status = s.open(c)) || (status = ad_linalg_infos(c, matrices(a), &info))) return status;
    if (!ad_linalg_batched(matrices(a), rows(a), 2 * SMALL)) status = cholesky_each(s, a, fill, info);
    else
        status = visit_field(c->op->loop,
                             [&](auto t) { return cholesky_batched<typename decltype(t)::type>(s, a, fill, info); });
    if (status || (status = ad_linalg_triangle(c, &a, upper))) return status;
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
    int status = ad_linalg_list(c, f->a.data, f->m * n * int64_t(sizeof(T)), matrices(f->a), &f->list);
    if (status || (status = ad_cuda_blas_factor(c, &blas))) return status;
    return ad_linalg_parts(matrices(f->a), [&](int64_t first, int part) {
        return ad_cuda_blas_status(S::getrf_batched(blas, n, reinterpret_cast<typename S::element **>(f->list + first),
                                                    n, reinterpret_cast<int *>(f->pivots) + first * n, f->info + first,
                                                    part),
                                   "getrfBatched", c->fault);
    });
}

int factor_each(const ad_solver &s, factors *f) {
    ad_solver_room room;
    int status = s.check(cusolverDnXgetrf_bufferSize(s.handle, s.parameters, f->m, f->n, s.data, f->a.data, f->m,
                                                     s.data, &room.device_size, &room.host_size),
                         "Xgetrf");
    if (!status) status = room.open(s.c);
    for (int64_t i = 0; i < matrices(f->a) && !status; i++)
        status =
            s.check(cusolverDnXgetrf(s.handle, s.parameters, f->m, f->n, s.data, f->a.data + i * f->m * f->n * s.size,
                                     f->m, at<int64_t>(f->pivots, i, pivot_step(*f)), s.data, room.device,
                                     room.device_size, room.host.get(), room.host_size, f->info + i),
                    "Xgetrf");
    return status;
}

int factor(const ad_solver &s, factors *f) {
    ad_call *c = s.c;
    int status = ad_linalg_infos(c, matrices(f->a), &f->info);
    if (status) return status;
    f->batched = f->m == f->n && ad_linalg_batched(matrices(f->a), f->n, SMALL);
    f->pivots = static_cast<char *>(ad_call_workspace(c, uint64_t(matrices(f->a) * pivot_step(*f))));
    if (!f->pivots) return AD_E_MEMORY;
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
    int wrong = 0, status = ad_linalg_list(c, x, int64_t(n) * k * int64_t(sizeof(T)), matrices(f.a), &sides);
    if (status || (status = ad_cuda_blas_factor(c, &blas))) return status;
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
    int *info, status;
    if (f.batched)
        return visit_field(s.c->op->loop,
                           [&](auto t) { return back_batched<typename decltype(t)::type>(s.c, f, operation, x, k); });
    if ((status = ad_linalg_infos(s.c, 1, &info))) return status;
    for (int64_t i = 0; i < matrices(f.a) && !status; i++)
        status = s.check(
            cusolverDnXgetrs(s.handle, s.parameters, operation, f.n, k, s.data, f.a.data + i * f.n * f.n * s.size, f.n,
                             at<int64_t>(f.pivots, i, pivot_step(f)), s.data, x + i * f.n * k * s.size, f.n, info),
            "Xgetrs");
    return status;
}

template <class T> int invert_batched(ad_call *c, const factors &f, const array &out) {
    using S = ad_solver_of<T>;
    using E = typename S::element;
    const int n = int(f.n);
    cublasHandle_t blas;
    void **results;
    int *info, status = ad_linalg_list(c, out.data, int64_t(n) * n * int64_t(sizeof(T)), matrices(f.a), &results);
    if (status || (status = ad_linalg_infos(c, matrices(f.a), &info)) || (status = ad_cuda_blas_factor(c, &blas)))
        return status;
    return ad_linalg_parts(matrices(f.a), [&](int64_t first, int part) {
        return ad_cuda_blas_status(S::getri_batched(blas, n, reinterpret_cast<const E *const *>(f.list + first), n,
                                                    reinterpret_cast<const int *>(f.pivots) + first * n,
                                                    reinterpret_cast<E **>(results + first), n, info + first, part),
                                   "getriBatched", c->fault);
    });
}

/* ---- triangular systems ---- */

/* Systems by rows are to cuBLAS x.T @ a.T = b.T, by columns: a.T lies on the right, and its triangle is the other one.
 */
struct triangular_job {
    array a, b; /* packed by rows; b becomes x; one matrix a may serve all of b */
    cublasFillMode_t fill;
    cublasDiagType_t diagonal;
};

template <class T> typename ad_solver_of<T>::element get_one() {
    typename ad_solver_of<T>::element one = {};
    *reinterpret_cast<typename ad_solver_of<T>::real *>(&one) = 1; /* the real part comes first */
    return one;
}

template <class T> int substitute_batched(ad_call *c, const triangular_job &job, cublasHandle_t blas) {
    using S = ad_solver_of<T>;
    using E = typename S::element;
    const int n = int(rows(job.b)), k = int(columns(job.b));
    const int64_t size = sizeof(T), batch = matrices(job.b);
    const E one = get_one<T>();
    void **list, **sides;
    int status = ad_linalg_list(c, job.a.data, matrices(job.a) == 1 ? 0 : int64_t(n) * n * size, batch, &list);
    if (status || (status = ad_linalg_list(c, job.b.data, int64_t(n) * k * size, batch, &sides))) return status;
    return ad_linalg_parts(batch, [&](int64_t first, int part) {
        return ad_cuda_blas_status(S::trsm_batched(blas, CUBLAS_SIDE_RIGHT, job.fill, CUBLAS_OP_N, job.diagonal, k, n,
                                                   &one, reinterpret_cast<const E *const *>(list + first), n,
                                                   reinterpret_cast<E **>(sides + first), k, part),
                                   "trsmBatched", c->fault);
    });
}

template <class T> int substitute(ad_call *c, const triangular_job &job) {
    using S = ad_solver_of<T>;
    using E = typename S::element;
    const int n = int(rows(job.b)), k = int(columns(job.b));
    const int64_t size = sizeof(T), step = matrices(job.a) == 1 ? 0 : int64_t(n) * n * size;
    const E one = get_one<T>();
    cublasHandle_t blas;
    int status = ad_cuda_blas_factor(c, &blas);
    if (!status && ad_linalg_batched(matrices(job.b), n, SMALL)) return substitute_batched<T>(c, job, blas);
    for (int64_t i = 0; i < matrices(job.b) && !status; i++)
        status =
            ad_cuda_blas_status(S::trsm(blas, CUBLAS_SIDE_RIGHT, job.fill, CUBLAS_OP_N, job.diagonal, k, n, &one,
                                        at<E>(job.a.data, i, step), n, at<E>(job.b.data, i, int64_t(n) * k * size), k),
                                "trsm", c->fault);
    return status;
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
    int wrong = 0, status;
    if ((status = ad_linalg_list(c, job.a.data, job.m * job.n * size, batch, &list)) ||
        (status = ad_linalg_list(c, job.tau, job.k * size, batch, &taus)) || (status = ad_cuda_blas_factor(c, &blas)))
        return status;
    return ad_linalg_parts(batch, [&](int64_t first, int part) {
        return ad_cuda_blas_status(S::geqrf_batched(blas, int(job.m), int(job.n), reinterpret_cast<E **>(list + first),
                                                    int(job.m), reinterpret_cast<E **>(taus + first), &wrong, part),
                                   "geqrfBatched", c->fault);
    });
}

int qr_each(const ad_solver &s, const qr_job &job) {
    const int64_t step = rows(job.a) * job.m * s.size;
    ad_solver_room room;
    int status = s.check(cusolverDnXgeqrf_bufferSize(s.handle, s.parameters, job.m, job.n, s.data, job.a.data, job.m,
                                                     s.data, job.tau, s.data, &room.device_size, &room.host_size),
                         "Xgeqrf");
    if (!status) status = room.open(s.c);
    for (int64_t i = 0; i < matrices(job.a) && !status; i++)
        status = s.check(cusolverDnXgeqrf(s.handle, s.parameters, job.m, job.n, s.data, job.a.data + i * step, job.m,
                                          s.data, job.tau + i * job.k * s.size, s.data, room.device, room.device_size,
                                          room.host.get(), room.host_size, job.info + i),
                         "Xgeqrf");
    return status;
}

/* The columns of q take the place of the reflectors. */
template <class T> int q_each(const ad_solver &s, const qr_job &job) {
    using S = ad_solver_of<T>;
    using E = typename S::element;
    const int m = int(job.m), width = int(job.width), k = int(job.k);
    const int64_t step = rows(job.a) * m;
    E *a = reinterpret_cast<E *>(job.a.data), *tau = reinterpret_cast<E *>(job.tau);
    int size = 0, status = s.check(S::make_q_size(s.handle, m, width, k, a, m, tau, &size), "orgqr");
    if (status) return status;
    E *work = static_cast<E *>(ad_call_workspace(s.c, uint64_t(size) * sizeof(E)));
    if (!work) return AD_E_MEMORY;
    for (int64_t i = 0; i < matrices(job.a) && !status; i++)
        status =
            s.check(S::make_q(s.handle, m, width, k, a + i * step, m, tau + i * k, work, size, job.info + i), "orgqr");
    return status;
}

/* Take r from a, whose first columns lie by columns. r has its first rows, and zero below the diagonal. */
int take_r(ad_call *c, const qr_job &job, array *r) {
    array top = job.a, to = *r;
    top.shape[top.ndim - 2] = job.n;
    top = transposed(top);
    top.shape[top.ndim - 2] = to.shape[to.ndim - 2];
    const int status = ad_call_copy(c, &to, &top);
    return status ? status : ad_linalg_triangle(c, r, true);
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
    int status = ad_linalg_infos(c, matrices(in), &job->info);
    to.shape[to.ndim - 2] = job->n;
    const array from = transposed(in);
    if (status || (status = ad_call_copy(c, &to, &from))) return status;
    if (!qr_is_batched(*job, in)) return qr_each(s, *job);
    return visit_field(c->op->loop, [&](auto t) { return qr_batched<typename decltype(t)::type>(c, *job); });
}

int qr(ad_call *c, const array &in, qr_job *job, array *q, array *r) {
    const bool batched = qr_is_batched(*job, in);
    ad_solver s;
    int status;
    job->a = transposed(in);
    job->a.dtype = c->op->loop;
    job->a.shape[in.ndim - 2] = batched ? job->n : std::max(job->n, job->width);
    job->tau = static_cast<char *>(ad_call_workspace(c, uint64_t(matrices(in) * job->k * itemsize(c->op->loop))));
    if (!job->tau || (status = linalg_scratch(c, &job->a))) return AD_E_MEMORY;
    if ((status = s.open(c)) || (status = qr_factor(s, in, job)) || (status = take_r(c, *job, r))) return status;
    if (batched) return ad_linalg_make_q(c, q, job->a.data, job->tau, job->n);
    status = visit_field(c->op->loop, [&](auto t) { return q_each<typename decltype(t)::type>(s, *job); });
    if (status) return status;
    array made = job->a;
    made.shape[made.ndim - 2] = job->width;
    const array by_rows = transposed(made);
    return ad_call_copy(c, q, &by_rows);
}

} // namespace

int ad_call_cholesky(ad_call *c) {
    const array in = linalg_input(c, 0);
    array out;
    int status;
    if ((status = linalg_output(c, 0, c->op->loop, &out)) || count(out) == 0) return status;
    c->run->wrote = true;
    if ((status = ad_call_copy(c, &out, &in)) || (status = cholesky(c, out, c->op->param[0].as.b))) return status;
    return ad_call_finish(c, 0, &out);
}

int ad_call_qr(ad_call *c) {
    const array in = linalg_input(c, 0);
    qr_job job = qr_of(in);
    array q, r;
    int status;
    if ((status = ad_linalg_fits(c, in)) || (status = linalg_output(c, 0, c->op->loop, &q)) ||
        (status = linalg_output(c, 1, c->op->loop, &r)))
        return status;
    job.width = columns(q);
    c->run->wrote = true;
    if (count(in) == 0) status = ad_linalg_identity(c, &q);
    else status = qr(c, in, &job, &q, &r);
    if (status || (status = ad_call_finish(c, 0, &q))) return status;
    return ad_call_finish(c, 1, &r);
}

int ad_call_qr_raw(ad_call *c) {
    const array in = linalg_input(c, 0);
    qr_job job = qr_of(in);
    array tau;
    ad_solver s;
    int status;
    if ((status = ad_linalg_fits(c, in)) || (status = linalg_output(c, 0, c->op->loop, &job.a)) ||
        (status = linalg_output(c, 1, c->op->loop, &tau)))
        return status;
    if (count(in) == 0) return 0;
    job.tau = tau.data;
    c->run->wrote = true;
    if ((status = s.open(c)) || (status = qr_factor(s, in, &job)) || (status = ad_call_finish(c, 0, &job.a)))
        return status;
    return ad_call_finish(c, 1, &tau);
}

int ad_call_lu(ad_call *c) {
    const array in = linalg_input(c, 0);
    const int loop = c->op->loop;
    factors f = {};
    array out, pivots;
    ad_solver s;
    int status;
    if ((status = ad_call_output(c, 0, loop, &out)) || (status = linalg_output(c, 1, AD_INT64, &pivots))) return status;
    if (count(in) == 0) return 0;
    f.m = rows(in);
    f.n = columns(in);
    if ((status = linalg_copy(c, in, loop, true, &f.a)) || (status = s.open(c)) || (status = factor(s, &f)))
        return status;
    c->run->wrote = true;
    const array by_rows = transposed(f.a);
    status = ad_linalg_pivots(c, reinterpret_cast<int64_t *>(pivots.data), f.pivots, !f.batched, count(pivots));
    if (status || (status = ad_call_copy(c, &out, &by_rows)) || (status = ad_call_finish(c, 0, &out))) return status;
    return ad_call_finish(c, 1, &pivots);
}

int ad_call_slogdet(ad_call *c) {
    const array in = linalg_input(c, 0);
    factors f = {};
    array sign, size;
    ad_solver s;
    int status;
    if ((status = linalg_output(c, 0, c->op->loop, &sign)) ||
        (status = linalg_output(c, 1, real_dtype(c->op->loop), &size)))
        return status;
    if (count(sign) == 0) return 0;
    f.m = f.n = rows(in);
    if ((status = linalg_copy(c, in, c->op->loop, false, &f.a)) || (status = s.open(c)) ||
        (f.n > 0 && (status = factor(s, &f))))
        return status;
    c->run->wrote = true;
    status = ad_linalg_slogdet(c, &f.a, f.pivots, !f.batched, sign.data, size.data);
    if (status || (status = ad_call_finish(c, 0, &sign))) return status;
    return ad_call_finish(c, 1, &size);
}

/* The matrix is factored as it lies, which is its transpose by columns. Where one matrix has many right sides they lie
 * side by side, and are those of one system. */
int ad_call_solve(ad_call *c) {
    const array a = linalg_input(c, 0), b = linalg_input(c, 1);
    const int loop = c->op->loop;
    factors f = {};
    array out, x;
    ad_solver s;
    int status;
    if ((status = ad_call_output(c, 0, loop, &out)) || count(out) == 0) return status;
    const bool shared = matrices(a) == 1;
    const array sides = linalg_broadcast(b, out);
    f.m = f.n = rows(out);
    const int64_t k = columns(out) * (shared ? matrices(out) : 1);
    if (k > INT_MAX) return ad__fault(c->fault, AD_E_UNSUPPORTED, "more than %d right sides", INT_MAX);
    if ((status = linalg_copy(c, shared ? a : linalg_broadcast(a, out), loop, false, &f.a)) ||
        (status = linalg_copy(c, sides, loop, true, &x)) || (status = s.open(c)) || (status = factor(s, &f)) ||
        (status = ad_linalg_report(c, f.info, matrices(f.a), AD_CHECK_linalg_singular)) ||
        (status = back(s, f, CUBLAS_OP_T, x.data, k)))
        return status;
    c->run->wrote = true;
    const array by_rows = transposed(x);
    if ((status = ad_call_copy(c, &out, &by_rows))) return status;
    return ad_call_finish(c, 0, &out);
}

int ad_call_solve_triangular(ad_call *c) {
    const array a = linalg_input(c, 0), b = linalg_input(c, 1);
    const bool unit = c->op->param[1].as.b;
    triangular_job job = {};
    int status, *info;
    if ((status = ad_linalg_fits(c, a)) || (status = ad_linalg_fits(c, b)) ||
        (status = linalg_output(c, 0, c->op->loop, &job.b)) || count(job.b) == 0)
        return status;
    job.fill = c->op->param[0].as.b ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER;
    job.diagonal = unit ? CUBLAS_DIAG_UNIT : CUBLAS_DIAG_NON_UNIT;
    const array sides = linalg_broadcast(b, job.b);
    status = linalg_copy(c, matrices(a) == 1 ? a : linalg_broadcast(a, job.b), c->op->loop, false, &job.a);
    if (!status && !unit && !(status = ad_linalg_infos(c, matrices(job.a), &info)) &&
        !(status = ad_linalg_zeros(c, &job.a, info)))
        status = ad_linalg_report(c, info, matrices(job.a), AD_CHECK_linalg_singular);
    if (status) return status;
    c->run->wrote = true;
    if ((status = ad_call_copy(c, &job.b, &sides))) return status;
    status = visit_field(c->op->loop, [&](auto t) { return substitute<typename decltype(t)::type>(c, job); });
    return status ? status : ad_call_finish(c, 0, &job.b);
}

int ad_call_inv(ad_call *c) {
    const array in = linalg_input(c, 0);
    const int loop = c->op->loop;
    factors f = {};
    array out;
    ad_solver s;
    int status;
    if ((status = linalg_output(c, 0, loop, &out)) || count(out) == 0) return status;
    f.m = f.n = rows(in);
    if ((status = linalg_copy(c, in, loop, false, &f.a)) || (status = s.open(c)) || (status = factor(s, &f)) ||
        (status = ad_linalg_report(c, f.info, matrices(f.a), AD_CHECK_linalg_singular)))
        return status;
    c->run->wrote = true;
    if (f.batched)
        status = visit_field(loop, [&](auto t) { return invert_batched<typename decltype(t)::type>(c, f, out); });
    else if (!(status = ad_linalg_identity(c, &out))) status = back(s, f, CUBLAS_OP_N, out.data, f.n);
    return status ? status : ad_call_finish(c, 0, &out);
}
