/* Eigenvalues and eigenvectors of any square matrices. */
#include "kernels/cuda/call/linalg/solver.h"

namespace {

using namespace ad;

/* A job. a and the vectors lie by columns. cuSOLVER gives the values of real matrices as complex numbers, but of the
 * vectors the parts: these go to own. */
struct eig_job {
    array a, values, vectors, own;
    cusolverEigMode_t mode;
    int *info;
};

int eig_each(const ad_solver &s, const eig_job &job) {
    const int64_t n = rows(job.a), matrix = n * n * s.size, value = itemsize(job.values.dtype);
    const cudaDataType pair = s.real == CUDA_R_64F ? CUDA_C_64F : CUDA_C_32F;
    char *vectors = job.mode == CUSOLVER_EIG_MODE_VECTOR ? job.own.data : job.a.data; /* VECTOR alone uses them */
    ad_solver_room room;
    int status = s.check(cusolverDnXgeev_bufferSize(s.handle, s.parameters, CUSOLVER_EIG_MODE_NOVECTOR, job.mode, n,
                                                    s.data, job.a.data, n, pair, job.values.data, s.data, vectors, n,
                                                    s.data, vectors, n, s.data, &room.device_size, &room.host_size),
                         "Xgeev");
    if (!status) status = room.open(s.c);
    for (int64_t i = 0; i < matrices(job.a) && !status; i++)
        status = s.check(cusolverDnXgeev(s.handle, s.parameters, CUSOLVER_EIG_MODE_NOVECTOR, job.mode, n, s.data,
                                         job.a.data + i * matrix, n, pair, job.values.data + i * n * value, s.data,
                                         vectors + i * matrix, n, s.data, vectors + i * matrix, n, s.data, room.device,
                                         room.device_size, room.host.get(), room.host_size, job.info + i),
                         "Xgeev");
    return status;
}

/* Compute eigenvalues. Numbers that are not finite are replaced first, as they would keep iterations from ending. */
int eig(ad_call *c, eig_job *job) {
    const int64_t batch = matrices(job->a);
    ad_solver s;
    int status;
    if ((status = s.open(c)) || (status = ad_linalg_infos(c, batch + 1, &job->info)) ||
        (status = ad_linalg_clean(c, &job->a, job->info + batch)) || (status = eig_each(s, *job)))
        return status;
    return ad_linalg_report(c, job->info, batch + 1, AD_CHECK_linalg_eigh);
}

/* Room for the vectors, in the type that cuSOLVER gives them in and in their own. */
int vectors_room(ad_call *c, eig_job *job) {
    int status;
    job->own = job->vectors = job->a;
    job->vectors.dtype = complex_dtype(c->op->loop);
    if ((status = linalg_scratch(c, &job->own))) return status;
    if (job->vectors.dtype != job->own.dtype) return linalg_scratch(c, &job->vectors);
    job->vectors = job->own;
    return 0;
}

int run_eig(ad_call *c, bool vectors) {
    const array in = linalg_input(c, 0);
    const int loop = c->op->loop, wide = complex_dtype(loop);
    eig_job job = {};
    array out;
    int status;
    if ((status = linalg_output(c, 0, wide, &job.values)) || (vectors && (status = ad_call_output(c, 1, wide, &out))))
        return status;
    if (count(in) == 0) return 0;
    if ((status = ad_linalg_fits(c, in)) || (status = linalg_copy(c, in, loop, true, &job.a)) ||
        (vectors && (status = vectors_room(c, &job))))
        return status;
    job.mode = vectors ? CUSOLVER_EIG_MODE_VECTOR : CUSOLVER_EIG_MODE_NOVECTOR;
    c->run->wrote = true;
    if ((status = eig(c, &job)) || (status = ad_call_finish(c, 0, &job.values)) || !vectors) return status;
    if (wide != loop && (status = ad_linalg_join(c, &job.vectors, job.own.data, &job.values))) return status;
    const array by_rows = transposed(job.vectors);
    if ((status = ad_call_copy(c, &out, &by_rows))) return status;
    return ad_call_finish(c, 1, &out);
}

} // namespace

int ad_call_eig(ad_call *c) { return run_eig(c, true); }
int ad_call_eigvals(ad_call *c) { return run_eig(c, false); }
