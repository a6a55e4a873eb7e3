/* Singular values. cuSOLVER wants no more columns than rows, and a packed matrix is its transpose by columns. So a wide
 * matrix is taken as it lies, and a tall one is copied by columns.
 *
 * The matrix x by columns is decomposed as x = p s q'. By rows this means:
 *   wide, x = a^T: vh is p as it lies, u the conjugate of q by columns;
 *   tall, x = a: u is p by columns, vh the conjugate of q as it lies. */
#include "kernels/cuda/call/linalg/solver.h"

namespace {

using namespace ad;

constexpr int64_t BATCHED = 32; /* rows and columns that gesvdjBatched takes at most */
/* Columns up to which nothing is won by polar decompositions, with vectors and without. */
constexpr int64_t SMALL = 64, SMALL_WITHOUT = 128;

struct svd_job {
    array x, p, q; /* by columns: x is (m, n), p (m, width), q (n, n) */
    array s;
    int64_t m, n, width; /* m >= n */
    bool vectors;
    int *info;
};

cusolverEigMode_t mode_of(const svd_job &job) {
    return job.vectors ? CUSOLVER_EIG_MODE_VECTOR : CUSOLVER_EIG_MODE_NOVECTOR;
}

struct gesvdj_parameters {
    gesvdjInfo_t info = nullptr;
    ~gesvdj_parameters() {
        if (info) cusolverDnDestroyGesvdjInfo(info);
    }
};

template <class T> int jacobi_batched(const ad_solver &s, const svd_job &job, int64_t first, int batch) {
    using S = ad_solver_of<T>;
    using E = typename S::element;
    const int m = int(job.m), n = int(job.n);
    E *x = reinterpret_cast<E *>(job.x.data) + first * m * n, *p = reinterpret_cast<E *>(job.p.data) + first * m * m;
    E *q = reinterpret_cast<E *>(job.q.data) + first * n * n;
    typename S::real *values = reinterpret_cast<typename S::real *>(job.s.data) + first * n;
    gesvdj_parameters g;
    int size = 0, status = s.check(cusolverDnCreateGesvdjInfo(&g.info), "gesvdjBatched");
    if (!status)
        status = s.check(
            S::gesvdj_batched_size(s.handle, mode_of(job), m, n, x, m, values, p, m, q, n, &size, g.info, batch),
            "gesvdjBatched");
    if (status) return status;
    E *work = static_cast<E *>(ad_call_workspace(s.c, uint64_t(size) * sizeof(E)));
    if (!work) return AD_E_MEMORY;
    return s.check(S::gesvdj_batched(s.handle, mode_of(job), m, n, x, m, values, p, m, q, n, work, size,
                                     job.info + first, g.info, batch),
                   "gesvdjBatched");
}

/* ---- one matrix after another ---- */

/* Matrix i of a stack, and vector i of one. */
array matrix(const array &a, int64_t i) {
    array one = a;
    one.ndim = 2;
    one.shape[0] = rows(a);
    one.shape[1] = columns(a);
    pack(&one);
    one.data = a.data + i * rows(a) * columns(a) * itemsize(a.dtype);
    return one;
}
array line(const array &a, int64_t i) {
    array one = a;
    one.ndim = 1;
    one.shape[0] = a.shape[a.ndim - 1];
    pack(&one);
    one.data = a.data + i * one.shape[0] * itemsize(a.dtype);
    return one;
}

/* A copy of x to decompose, where its factors go, and what the function works in. */
struct svd_one {
    array x, p, s, q;
    cudaDataType data, real;
    ad_solver_room room;
};

/* Decompose by QR: slow, but for all matrices. one->q is q' by columns, the conjugate of q by rows. */
int qr_room(const ad_solver &s, const svd_job &job, svd_one *one) {
    const signed char p_wanted = !job.vectors         ? 'N'
                                 : job.width == job.n ? 'S'
                                                      : 'A',
                      q_wanted = job.vectors ? 'S' : 'N';
    one->x = matrix(job.x, 0);
    one->q = matrix(job.q, 0);
    one->data = s.data;
    one->real = s.real;
    int status;
    if ((status = linalg_scratch(s.c, &one->x)) || (status = linalg_scratch(s.c, &one->q))) return status;
    status =
        s.check(cusolverDnXgesvd_bufferSize(s.handle, s.parameters, p_wanted, q_wanted, job.m, job.n, s.data,
                                            one->x.data, job.m, s.real, job.s.data, s.data, job.p.data, job.m, s.data,
                                            one->q.data, job.n, s.data, &one->room.device_size, &one->room.host_size),
                "Xgesvd");
    return status ? status : one->room.open(s.c);
}

int qr_one(const ad_solver &s, const svd_job &job, svd_one *one, int64_t i) {
    const signed char p_wanted = !job.vectors         ? 'N'
                                 : job.width == job.n ? 'S'
                                                      : 'A',
                      q_wanted = job.vectors ? 'S' : 'N';
    const array x = matrix(job.x, i), q = matrix(job.q, i);
    int status;
    if (!one->room.device && (status = qr_room(s, job, one))) return status;
    if ((status = ad_call_copy(s.c, &one->x, &x))) return status;
    status = s.check(cusolverDnXgesvd(s.handle, s.parameters, p_wanted, q_wanted, job.m, job.n, s.data, one->x.data,
                                      job.m, s.real, line(job.s, i).data, s.data, matrix(job.p, i).data, job.m, s.data,
                                      one->q.data, job.n, s.data, one->room.device, one->room.device_size,
                                      one->room.host.get(), one->room.host_size, job.info + i),
                     "Xgesvd");
    if (status || !job.vectors) return status;
    const array from = transposed(one->q);
    status = ad_call_copy(s.c, &q, &from);
    return status ? status : ad_linalg_conjugate(s.c, &q);
}

/* Get the scratch memory of gesvdp, and wait for the device. gesvdp uses polar decomposition and eigenvalues. It is
 * several times as fast, but as accurate only in double precision. It changes matrices that are nearly singular, and
 * says how far. */
int polar_room(const ad_solver &s, const svd_job &job, svd_one *one) {
    const bool complex = is_complex_dtype(job.x.dtype);
    const int dtype = complex ? AD_COMPLEX128 : AD_FLOAT64;
    int status = 0;
    one->data = complex ? CUDA_C_64F : CUDA_R_64F;
    one->real = CUDA_R_64F;
    one->x = matrix(job.x, 0);
    one->p = matrix(job.p, 0);
    one->q = matrix(job.q, 0);
    one->s = line(job.s, 0);
    one->x.dtype = one->p.dtype = one->q.dtype = dtype;
    one->s.dtype = AD_FLOAT64;
    if ((status = linalg_scratch(s.c, &one->x))) return status;
    if (job.x.dtype != dtype)
        for (array *a : {&one->p, &one->q, &one->s})
            if ((status = linalg_scratch(s.c, a))) return status;
    status = s.check(cusolverDnXgesvdp_bufferSize(s.handle, s.parameters, mode_of(job), job.width == job.n, job.m,
                                                  job.n, one->data, one->x.data, job.m, one->real, one->s.data,
                                                  one->data, one->p.data, job.m, one->data, one->q.data, job.n,
                                                  one->data, &one->room.device_size, &one->room.host_size),
                     "Xgesvdp");
    return status ? status : one->room.open(s.c);
}

/* Tell whether the result of gesvdp can be kept: it changed singular values by no more than `distance`. */
int polar_holds(const ad_solver &s, const svd_job &job, const svd_one &one, const int *info, double distance) {
    cudaStream_t stream = s.c->stream->cuda;
    double largest = 0;
    int failed = 0, status;
    if (distance != 0 && job.s.dtype == AD_FLOAT64) return 0;
    status = ad_cuda_status(cudaMemcpyAsync(&failed, info, sizeof failed, cudaMemcpyDeviceToHost, stream), "Xgesvdp",
                            s.c->fault);
    if (!status && distance != 0)
        status = ad_cuda_status(cudaMemcpyAsync(&largest, one.s.data, sizeof largest, cudaMemcpyDeviceToHost, stream),
                                "Xgesvdp", s.c->fault);
    if (!status) status = ad_cuda_status(cudaStreamSynchronize(stream), "Xgesvdp", s.c->fault);
    return status ? status : failed == 0 && distance <= 0x1p-30 * largest;
}

int polar_one(const ad_solver &s, const svd_job &job, svd_one *one, svd_one *other, int64_t i) {
    const array x = matrix(job.x, i), p = matrix(job.p, i), q = matrix(job.q, i), values = line(job.s, i);
    const bool narrow = one->x.dtype != x.dtype;
    double distance = 0;
    int result;
    if (!narrow) {
        one->p = p;
        one->q = q;
        one->s = values;
    }
    if ((result = ad_call_copy(s.c, &one->x, &x)) < 0) return result;
    result =
        s.check(cusolverDnXgesvdp(s.handle, s.parameters, mode_of(job), job.width == job.n, job.m, job.n, one->data,
                                  one->x.data, job.m, one->real, one->s.data, one->data, one->p.data, job.m, one->data,
                                  one->q.data, job.n, one->data, one->room.device, one->room.device_size,
                                  one->room.host.get(), one->room.host_size, job.info + i, &distance),
                "Xgesvdp");
    if (result < 0 || (result = polar_holds(s, job, *one, job.info + i, distance)) < 0) return result;
    if (result == 0) return qr_one(s, job, other, i);
    if (!narrow) return 0;
    if ((result = ad_call_copy(s.c, &values, &one->s)) < 0 || !job.vectors) return result;
    return (result = ad_call_copy(s.c, &p, &one->p)) < 0 ? result : ad_call_copy(s.c, &q, &one->q);
}

int each(const ad_solver &s, const svd_job &job) {
    svd_one polar = {}, qr = {};
    const bool small = job.n <= (job.vectors ? SMALL : SMALL_WITHOUT);
    int status = small ? 0 : polar_room(s, job, &polar);
    for (int64_t i = 0; i < matrices(job.x) && !status; i++)
        status = small ? qr_one(s, job, &qr, i) : polar_one(s, job, &polar, &qr, i);
    return status;
}

bool is_batched(const array &in) { return matrices(in) > 1 && rows(in) <= BATCHED && columns(in) <= BATCHED; }

int decompose(const ad_solver &s, const svd_job &job, bool batched) {
    return visit_field(s.c->op->loop, [&](auto t) {
        using T = typename decltype(t)::type;
        if (batched)
            return ad_linalg_parts(matrices(job.x),
                                   [&](int64_t first, int part) { return jacobi_batched<T>(s, job, first, part); });
        return each(s, job);
    });
}

/* Scratch memory for a stack of `width` columns of `length` elements. */
int columns_for(ad_call *c, const array &in, int64_t width, int64_t length, array *out) {
    *out = in;
    out->dtype = c->op->loop;
    out->shape[in.ndim - 2] = width;
    out->shape[in.ndim - 1] = length;
    return linalg_scratch(c, out);
}

/* Put p and q where u and vh are wanted. */
int place(ad_call *c, svd_job *job, bool wide, bool batched, array *u, array *vh) {
    array p = job->p, q = job->q;
    int status;
    if (batched) p.shape[p.ndim - 2] = job->width; /* gesvdjBatched has them all */
    const array p_by_rows = transposed(p), q_by_rows = transposed(q);
    if ((status = ad_linalg_conjugate(c, &q))) return status;
    if (wide) {
        if (p.data != vh->data && (status = ad_call_copy(c, vh, &p))) return status;
        return ad_call_copy(c, u, &q_by_rows);
    }
    if (q.data != vh->data && (status = ad_call_copy(c, vh, &q))) return status;
    return ad_call_copy(c, u, &p_by_rows);
}

/* Room for p and q: one of them is vh as it lies. */
int open_vectors(ad_call *c, svd_job *job, const array &in, bool wide, bool batched, const array *vh) {
    const int64_t all = batched ? job->m : job->width;
    int status = 0;
    if (wide && all == job->width) job->p = *vh;
    else status = columns_for(c, in, all, job->m, &job->p);
    if (status) return status;
    if (!wide) job->q = *vh;
    else status = columns_for(c, in, job->n, job->n, &job->q);
    return status;
}

} // namespace

int ad_linalg_svd(ad_call *c, const array *in, bool full, array *u, array *s, array *vh, int what) {
    const bool wide = columns(*in) >= rows(*in), batched = is_batched(*in);
    const int64_t batch = matrices(*in);
    svd_job job = {};
    ad_solver solver;
    int status;
    job.m = std::max(rows(*in), columns(*in));
    job.n = std::min(rows(*in), columns(*in));
    job.width = full ? job.m : job.n;
    job.vectors = u != nullptr;
    job.s = *s;
    if ((status = linalg_copy(c, *in, c->op->loop, !wide, &job.x)) || (status = solver.open(c)) ||
        (status = ad_linalg_infos(c, batch + 1, &job.info)) || (status = ad_linalg_clean(c, &job.x, job.info + batch)))
        return status;
    if (job.vectors) status = open_vectors(c, &job, *in, wide, batched, vh);
    else if (!(status = columns_for(c, *in, batched ? job.m : job.width, job.m, &job.p)))
        status = columns_for(c, *in, job.n, job.n, &job.q);
    if (status || (status = decompose(solver, job, batched)) ||
        (status = ad_linalg_report(c, job.info, batch + 1, what)))
        return status;
    return job.vectors ? place(c, &job, wide, batched, u, vh) : 0;
}

int ad_call_svd(ad_call *c) {
    const array in = linalg_input(c, 0);
    array u, s, vh;
    int status;
    if ((status = ad_linalg_fits(c, in)) || (status = linalg_output(c, 0, c->op->loop, &u)) ||
        (status = linalg_output(c, 1, real_dtype(c->op->loop), &s)) || (status = linalg_output(c, 2, c->op->loop, &vh)))
        return status;
    c->run->wrote = true;
    if (count(in) > 0) status = ad_linalg_svd(c, &in, c->op->param[0].as.b, &u, &s, &vh, AD_CHECK_linalg_svd);
    else if (!(status = ad_linalg_identity(c, &u))) status = ad_linalg_identity(c, &vh);
    if (status || (status = ad_call_finish(c, 0, &u)) || (status = ad_call_finish(c, 1, &s))) return status;
    return ad_call_finish(c, 2, &vh);
}

int ad_call_svdvals(ad_call *c) {
    const array in = linalg_input(c, 0);
    array s;
    int status;
    if ((status = ad_linalg_fits(c, in)) || (status = linalg_output(c, 0, real_dtype(c->op->loop), &s))) return status;
    c->run->wrote = true;
    if (count(in) > 0) status = ad_linalg_svd(c, &in, false, nullptr, &s, nullptr, AD_CHECK_linalg_svd);
    return status ? status : ad_call_finish(c, 0, &s);
}
