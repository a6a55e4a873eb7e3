/* Eigenvalues and eigenvectors of Hermitian matrices, and least squares. */
#include "kernels/cuda/call/linalg/solver.h"

namespace {

using namespace ad;

constexpr int64_t JACOBI = 32;            /* rows up to which a batch is done by Jacobi's method */
constexpr int64_t SMALL = 512;            /* rows up to which it is done by a batched function at all */
constexpr uint64_t MOST_ROOM = 256 << 20; /* bytes that one may take, unless a single matrix needs more */

struct eigh_job {
    array a, values; /* a by columns, becomes the vectors */
    int64_t n;
    cusolverEigMode_t mode;
    cublasFillMode_t fill;
    int *info;
};

int eigh_each(const ad_solver &s, const eigh_job &job) {
    const int64_t n = job.n, matrix = n * n * s.size, line = n * itemsize(job.values.dtype);
    ad_solver_room room;
    int status =
        s.check(cusolverDnXsyevd_bufferSize(s.handle, s.parameters, job.mode, job.fill, n, s.data, job.a.data, n,
                                            s.real, job.values.data, s.data, &room.device_size, &room.host_size),
                "Xsyevd");
    if (!status) status = room.open(s.c);
    for (int64_t i = 0; i < matrices(job.a) && !status; i++)
        status = s.check(cusolverDnXsyevd(s.handle, s.parameters, job.mode, job.fill, n, s.data,
                                          job.a.data + i * matrix, n, s.real, job.values.data + i * line, s.data,
                                          room.device, room.device_size, room.host.get(), room.host_size, job.info + i),
                         "Xsyevd");
    return status;
}

int part_room(const ad_solver &s, const eigh_job &job, int64_t batch, ad_solver_room *room) {
    return s.check(cusolverDnXsyevBatched_bufferSize(s.handle, s.parameters, job.mode, job.fill, job.n, s.data,
                                                     job.a.data, job.n, s.real, job.values.data, s.data,
                                                     &room->device_size, &room->host_size, batch),
                   "XsyevBatched");
}

/* Decompose as many at a time as there is room for. */
int eigh_parts(const ad_solver &s, const eigh_job &job) {
    const int64_t n = job.n, line = n * itemsize(job.values.dtype), all = matrices(job.a);
    ad_solver_room room;
    int status = part_room(s, job, 1, &room);
    const int64_t fit = std::max<int64_t>(1, int64_t(MOST_ROOM / std::max<size_t>(1, room.device_size)));
    if (status || (status = part_room(s, job, std::min(fit, all), &room)) || (status = room.open(s.c))) return status;
    for (int64_t i = 0; i < all && !status; i += fit)
        status = s.check(cusolverDnXsyevBatched(s.handle, s.parameters, job.mode, job.fill, n, s.data,
                                                job.a.data + i * n * n * s.size, n, s.real, job.values.data + i * line,
                                                s.data, room.device, room.device_size, room.host.get(), room.host_size,
                                                job.info + i, std::min(fit, all - i)),
                         "XsyevBatched");
    return status;
}

template <class T> int eigh_jacobi(const ad_solver &s, const eigh_job &job, int64_t first, int batch) {
    using S = ad_solver_of<T>;
    using E = typename S::element;
    const int n = int(job.n);
    E *a = reinterpret_cast<E *>(job.a.data) + first * n * n, *work;
    typename S::real *values = reinterpret_cast<typename S::real *>(job.values.data) + first * n;
    syevjInfo_t made;
    int size = 0, status = s.check(cusolverDnCreateSyevjInfo(&made), "syevjBatched");
    if (status) return status;
    const std::unique_ptr<syevjInfo, cusolverStatus_t (*)(syevjInfo_t)> parameters(made, cusolverDnDestroySyevjInfo);
    status = s.check(S::eigh_batched_size(s.handle, job.mode, job.fill, n, a, n, values, &size, made, batch),
                     "syevjBatched");
    if (status) return status;
    work = static_cast<E *>(ad_call_workspace(s.c, uint64_t(size) * sizeof(E)));
    if (!work) return AD_E_MEMORY;
    return s.check(
        S::eigh_batched(s.handle, job.mode, job.fill, n, a, n, values, work, size, job.info + first, made, batch),
        "syevjBatched");
}

int eigh_batched(const ad_solver &s, const eigh_job &job) {
    if (job.n > JACOBI) return eigh_parts(s, job);
    return ad_linalg_parts(matrices(job.a), [&](int64_t first, int part) {
        return visit_field(s.c->op->loop,
                           [&](auto t) { return eigh_jacobi<typename decltype(t)::type>(s, job, first, part); });
    });
}

/* Compute eigenvalues. Numbers that are not finite are replaced first, as they would keep iterations from ending. */
int eigh(ad_call *c, eigh_job *job) {
    const int64_t batch = matrices(job->a);
    ad_solver s;
    int status;
    if ((status = s.open(c)) || (status = ad_linalg_infos(c, batch + 1, &job->info)) ||
        (status = ad_linalg_clean(c, &job->a, job->info + batch)))
        return status;
    status = ad_linalg_batched(batch, job->n, SMALL) ? eigh_batched(s, *job) : eigh_each(s, *job);
    return status ? status : ad_linalg_report(c, job->info, batch + 1, AD_CHECK_linalg_eigh);
}

/* ---- least squares ---- */

struct lstsq_job {
    array u, s, vh, sides, product, x; /* all packed */
    double rcond;
    int64_t *rank;
};

const void *constant(int64_t value) {
    static const double wide[4] = {0, 0, 1, 0};
    return wide + 2 * value;
}
const void *narrow_constant(int64_t value) {
    static const float narrow[4] = {0, 0, 1, 0};
    return narrow + 2 * value;
}

/* Compute c = b conj(a) for packed a (m by n), b (k by m) and c (k by n), which by columns are transposed. */
int multiply(const ad_solver &s, const array &a, const array &b, const array &out) {
    const bool wide = s.real == CUDA_R_64F;
    const void *one = wide ? constant(1) : narrow_constant(1), *zero = wide ? constant(0) : narrow_constant(0);
    const int64_t sides = columns(b);
    cublasHandle_t blas;
    int status = ad_cuda_blas(s.c, ad_cuda_blas_workspace(s.c->stream->device), &blas);
    if (status) return status;
    const cublasComputeType_t compute = wide ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F;
    return ad_cuda_blas_status(cublasGemmEx_64(blas, CUBLAS_OP_N, CUBLAS_OP_C, sides, columns(a), rows(a), one, b.data,
                                               s.data, sides, a.data, s.data, columns(a), zero, out.data, s.data, sides,
                                               compute, CUBLAS_GEMM_DEFAULT),
                               "gemm", s.c->fault);
}

/* a = u s vh, so x = vh' (u' b / s). A packed matrix is its transpose by columns: of x' = ((b' conj(u)) / s) conj(vh)
 * both products are of matrices as they lie. */
int least_squares(ad_call *c, lstsq_job *job, const array &a, const array &b) {
    ad_solver s;
    int status;
    if ((status = ad_linalg_svd(c, &a, false, &job->u, &job->s, &job->vh, AD_CHECK_linalg_lstsq)) ||
        (status = linalg_copy(c, b, c->op->loop, false, &job->sides)))
        return status;
    job->product = job->sides;
    job->product.shape[0] = columns(job->u);
    if ((status = linalg_scratch(c, &job->product)) || (status = s.open(c))) return status;
    if (count(job->sides) > 0 && (status = multiply(s, job->u, job->sides, job->product))) return status;
    if ((status = ad_linalg_divide(c, &job->product, job->s.data, job->rcond, job->rank))) return status;
    return count(job->sides) > 0 ? multiply(s, job->vh, job->product, job->x) : 0;
}

/* Scratch for a rows by columns matrix of the loop's type. */
int room_for(ad_call *c, int64_t r, int64_t k, array *out) {
    out->ndim = 2;
    out->dtype = c->op->loop;
    out->shape[0] = r;
    out->shape[1] = k;
    return linalg_scratch(c, out);
}

int zero(ad_call *c, const array *a) {
    return ad_cuda_status(cudaMemsetAsync(a->data, 0, size_t(count(*a) * itemsize(a->dtype)), c->stream->cuda),
                          "clearing", c->fault);
}

} // namespace

int ad_call_eigh(ad_call *c) {
    const array in = linalg_input(c, 0);
    const int loop = c->op->loop;
    /* The transpose of a Hermitian matrix has its conjugate vectors; that of a real one is the matrix itself. */
    const bool flip = is_complex_dtype(loop), upper = c->op->param[0].as.b;
    eigh_job job = {};
    array out;
    int status;
    if ((status = linalg_output(c, 0, real_dtype(loop), &job.values)) || (status = ad_call_output(c, 1, loop, &out)))
        return status;
    if (count(in) == 0) return 0;
    if ((status = ad_linalg_fits(c, in)) || (status = linalg_copy(c, in, loop, flip, &job.a))) return status;
    job.n = rows(in);
    job.mode = CUSOLVER_EIG_MODE_VECTOR;
    job.fill = upper == flip ? CUBLAS_FILL_MODE_UPPER : CUBLAS_FILL_MODE_LOWER;
    c->run->wrote = true;
    if ((status = eigh(c, &job)) || (status = ad_call_finish(c, 0, &job.values))) return status;
    const array by_rows = transposed(job.a);
    if ((status = ad_call_copy(c, &out, &by_rows))) return status;
    return ad_call_finish(c, 1, &out);
}

int ad_call_eigvalsh(ad_call *c) {
    const array in = linalg_input(c, 0);
    eigh_job job = {};
    int status;
    if ((status = linalg_output(c, 0, real_dtype(c->op->loop), &job.values)) || count(in) == 0) return status;
    if ((status = ad_linalg_fits(c, in)) || (status = linalg_copy(c, in, c->op->loop, false, &job.a))) return status;
    job.n = rows(in);
    job.mode = CUSOLVER_EIG_MODE_NOVECTOR;
    job.fill = c->op->param[0].as.b ? CUBLAS_FILL_MODE_LOWER : CUBLAS_FILL_MODE_UPPER;
    c->run->wrote = true;
    status = eigh(c, &job);
    return status ? status : ad_call_finish(c, 0, &job.values);
}

int ad_call_lstsq(ad_call *c) {
    const array a = linalg_input(c, 0), b = linalg_input(c, 1);
    const ad_scalar *rcond = &c->op->param[0];
    const int64_t k = std::min(rows(a), columns(a));
    lstsq_job job = {};
    array rank;
    int status;
    if ((status = ad_linalg_fits(c, a)) || (status = linalg_output(c, 0, c->op->loop, &job.x)) ||
        (status = ad_call_output(c, 1, AD_INT64, &rank)) ||
        (status = linalg_output(c, 2, real_dtype(c->op->loop), &job.s)) || (status = room_for(c, rows(a), k, &job.u)) ||
        (status = room_for(c, k, columns(a), &job.vh)))
        return status;
    job.rank = reinterpret_cast<int64_t *>(rank.data);
    const double given = ad_scalar_number(rcond);
    job.rcond = given < 0 ? (real_dtype(c->op->loop) == AD_FLOAT32 ? 0x1p-23 : 0x1p-52) : given;
    c->run->wrote = true;
    if (count(a) > 0) status = least_squares(c, &job, a, b);
    else if (!(status = zero(c, &job.x))) status = zero(c, &rank);
    if (status || (status = ad_call_finish(c, 0, &job.x)) || (status = ad_call_finish(c, 1, &rank))) return status;
    return ad_call_finish(c, 2, &job.s);
}
