/* Matrix products by cuBLAS. It counts by columns: a matrix that lies by rows is to it the transposed one. So the
 * transposed product is computed, c^T = b^T a^T. */
#include "kernels/cuda/call/matmul/matmul.h"

#include "kernels/cuda/backend/libraries.h"

namespace {

using namespace ad;

constexpr double SMALL_WORK = 1 << 26; /* multiplications below which the full workspace is not worth it */
constexpr uint64_t SMALL_WORKSPACE = 4 << 20;
constexpr int64_t FEW_PIECES = 4;          /* products with several batch axes: calls, or else an array of pointers */
constexpr int64_t MOST_POINTERS = 1 << 20; /* of one call */

struct element_type {
    cudaDataType data;
    cublasComputeType_t compute;
    bool wide; /* alpha and beta are doubles */
};

element_type type_of(int dtype, bool tf32) {
    const cublasComputeType_t single = tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    switch (dtype) {
    case AD_FLOAT16: return {CUDA_R_16F, CUBLAS_COMPUTE_32F, false};
    case AD_BFLOAT16: return {CUDA_R_16BF, CUBLAS_COMPUTE_32F, false};
    case AD_FLOAT64: return {CUDA_R_64F, CUBLAS_COMPUTE_64F, true};
    case AD_COMPLEX64: return {CUDA_C_32F, single, false};
    case AD_COMPLEX128: return {CUDA_C_64F, CUBLAS_COMPUTE_64F, true};
    default: return {CUDA_R_32F, single, false};
    }
}

/* 1 and 0, as complex numbers, whose first part alone real types read. */
const void *one(const element_type &t) {
    static const float narrow[2] = {1, 0};
    static const double wide[2] = {1, 0};
    return t.wide ? static_cast<const void *>(wide) : narrow;
}
const void *zero() {
    static const double nothing[2] = {0, 0};
    return nothing;
}

/* A matrix as cuBLAS is told of it, in columns: transposed says that it lies by columns here. */
struct layout {
    cublasOperation_t operation;
    int64_t leading;
};

layout layout_of(const ad_cuda_matrix &m, int64_t size) {
    const bool rows = (m.columns == 1 || m.column_step == size) && (m.rows == 1 || m.row_step >= m.columns * size);
    const int64_t step = rows ? m.row_step : m.column_step, lines = rows ? m.rows : m.columns;
    const int64_t length = rows ? m.columns : m.rows;
    return {rows ? CUBLAS_OP_N : CUBLAS_OP_T, lines == 1 ? length : step / size};
}

/* Lines of `length` contiguous elements, `step` bytes apart. */
bool lines_fit(int64_t lines, int64_t length, int64_t element_step, int64_t step, int64_t size) {
    return (length == 1 || element_step == size) && (lines == 1 || (step >= length * size && step % size == 0));
}

/* A batch that is one sequence of equal steps, in bytes. */
struct sequence {
    int64_t count, step[3]; /* c, a, b */
};

struct job {
    ad_call *c;
    cublasHandle_t handle;
    ad_cuda_product p;
    int64_t size;
    element_type type;
};

ad_cuda_matrix moved(const ad_cuda_matrix &m, int64_t offset) {
    return {m.data + offset, m.rows, m.columns, m.row_step, m.column_step};
}

int status_of(const job *j, cublasStatus_t status) { return ad_cuda_blas_status(status, "matmul", j->c->fault); }

/* ---- vectors ---- */

template <class F, class S, class T> cublasStatus_t gemv(F f, const job *j, cublasOperation_t op, int64_t m, int64_t n,
                                                         int64_t leading, const char *a, int64_t a_step, const char *x,
                                                         int64_t x_inc, int64_t x_step, char *y, int64_t y_inc,
                                                         int64_t y_step, int64_t count) {
    return f(j->handle, op, m, n, static_cast<const S *>(one(j->type)), reinterpret_cast<const T *>(a), leading,
             a_step / j->size, reinterpret_cast<const T *>(x), x_inc, x_step / j->size, static_cast<const S *>(zero()),
             reinterpret_cast<T *>(y), y_inc, y_step / j->size, count);
}

/* Compute y = m x for every item of a sequence. m is as it lies in columns, with `op` on it. */
cublasStatus_t gemv_of(const job *j, const ad_cuda_matrix &m, int64_t m_step, const char *x, int64_t x_inc,
                       int64_t x_step, char *y, int64_t y_inc, int64_t y_step, int64_t count) {
    const layout l = layout_of(m, j->size);
    const cublasOperation_t op = l.operation == CUBLAS_OP_N ? CUBLAS_OP_T : CUBLAS_OP_N;
    const int64_t down = op == CUBLAS_OP_T ? m.columns : m.rows, across = op == CUBLAS_OP_T ? m.rows : m.columns;
#define GEMV(function, S, T)                                                                                       \
    gemv<decltype(&function), S, T>(function, j, op, down, across, l.leading, m.data, m_step, x, x_inc, x_step, y, \
                                    y_inc, y_step, count)
    switch (j->p.dtype) {
    case AD_FLOAT16: return GEMV(cublasHSHgemvStridedBatched_64, float, __half);
    case AD_BFLOAT16: return GEMV(cublasTSTgemvStridedBatched_64, float, __nv_bfloat16);
    case AD_FLOAT64: return GEMV(cublasDgemvStridedBatched_64, double, double);
    case AD_COMPLEX64: return GEMV(cublasCgemvStridedBatched_64, cuComplex, cuComplex);
    case AD_COMPLEX128: return GEMV(cublasZgemvStridedBatched_64, cuDoubleComplex, cuDoubleComplex);
    default: return GEMV(cublasSgemvStridedBatched_64, float, float);
    }
#undef GEMV
}

int64_t increment(int64_t n, int64_t step, int64_t size) { return n == 1 ? 1 : step / size; }

cublasStatus_t matrix_vector(const job *j, const int64_t (&at)[3], const sequence &s) {
    const ad_cuda_product &p = j->p;
    if (p.c.columns == 1)
        return gemv_of(j, moved(p.a, at[1]), s.step[1], p.b.data + at[2], increment(p.b.rows, p.b.row_step, j->size),
                       s.step[2], p.c.data + at[0], increment(p.c.rows, p.c.row_step, j->size), s.step[0], s.count);
    const ad_cuda_matrix b = {p.b.data + at[2], p.b.columns, p.b.rows, p.b.column_step, p.b.row_step};
    return gemv_of(j, b, s.step[2], p.a.data + at[1], increment(p.a.columns, p.a.column_step, j->size), s.step[1],
                   p.c.data + at[0], 1, s.step[0], s.count);
}

int dot(const job *j) {
    const ad_cuda_product &p = j->p;
    const cudaDataType execution = p.dtype == AD_FLOAT16 || p.dtype == AD_BFLOAT16 ? CUDA_R_32F : j->type.data;
    int status = status_of(j, cublasSetPointerMode(j->handle, CUBLAS_POINTER_MODE_DEVICE));
    if (status) return status;
    const cublasStatus_t result = cublasDotEx_64(
        j->handle, p.a.columns, p.a.data, j->type.data, increment(p.a.columns, p.a.column_step, j->size), p.b.data,
        j->type.data, increment(p.b.rows, p.b.row_step, j->size), p.c.data, j->type.data, execution);
    status = status_of(j, cublasSetPointerMode(j->handle, CUBLAS_POINTER_MODE_HOST));
    return result == CUBLAS_STATUS_SUCCESS ? status : status_of(j, result);
}

/* ---- matrices ---- */

cublasStatus_t gemm(const job *j, const int64_t (&at)[3], const sequence &s) {
    const ad_cuda_product &p = j->p;
    const layout a = layout_of(p.a, j->size), b = layout_of(p.b, j->size), c = layout_of(p.c, j->size);
    const char *first = p.b.data + at[2], *second = p.a.data + at[1];
    char *to = p.c.data + at[0];
    if (s.count == 1)
        return cublasGemmEx_64(j->handle, b.operation, a.operation, p.c.columns, p.c.rows, p.a.columns, one(j->type),
                               first, j->type.data, b.leading, second, j->type.data, a.leading, zero(), to,
                               j->type.data, c.leading, j->type.compute, CUBLAS_GEMM_DEFAULT);
    return cublasGemmStridedBatchedEx_64(j->handle, b.operation, a.operation, p.c.columns, p.c.rows, p.a.columns,
                                         one(j->type), first, j->type.data, b.leading, s.step[2] / j->size, second,
                                         j->type.data, a.leading, s.step[1] / j->size, zero(), to, j->type.data,
                                         c.leading, s.step[0] / j->size, s.count, j->type.compute, CUBLAS_GEMM_DEFAULT);
}

int multiply_sequence(const job *j, const int64_t (&at)[3], const sequence &s) {
    const bool vector = j->p.c.columns == 1 || j->p.c.rows == 1;
    return status_of(j, vector ? matrix_vector(j, at, s) : gemm(j, at, s));
}

/* Items begin..end of the batch, by an array of pointers to each operand. */
int multiply_pointers(const job *j, int64_t begin, int64_t end) {
    const ad_cuda_product &p = j->p;
    const int64_t n = end - begin;
    const layout a = layout_of(p.a, j->size), b = layout_of(p.b, j->size), c = layout_of(p.c, j->size);
    void **pointers = static_cast<void **>(ad_call_workspace(j->c, uint64_t(n) * 3 * sizeof(void *)));
    if (!pointers) return AD_E_MEMORY;
    const int status = ad_cuda_matmul_pointers(j->c, &p, begin, n, pointers);
    if (status) return status;
    return status_of(j, cublasGemmBatchedEx_64(j->handle, b.operation, a.operation, p.c.columns, p.c.rows, p.a.columns,
                                               one(j->type), pointers + 2 * n, j->type.data, b.leading, pointers + n,
                                               j->type.data, a.leading, zero(), pointers, j->type.data, c.leading, n,
                                               j->type.compute, CUBLAS_GEMM_DEFAULT));
}

/* Join products that have one b, and whose rows follow each other, into one product of more rows. */
void fold_rows(ad_cuda_product *p, int64_t size) {
    walk<3> &w = p->batch;
    while (w.ndim > 0 && w.stride[w.ndim - 1][2] == 0) {
        const int64_t(&step)[3] = w.stride[w.ndim - 1];
        const int64_t a_row = p->a.rows == 1 ? step[1] : p->a.row_step;
        const int64_t c_row = p->c.rows == 1 ? step[0] : p->c.row_step;
        if (step[1] != a_row * p->a.rows || step[0] != c_row * p->c.rows) return;
        ad_cuda_matrix a = p->a, c = p->c;
        a.rows = c.rows = p->a.rows * w.shape[w.ndim - 1];
        a.row_step = a_row;
        c.row_step = c_row;
        if (!lines_fit(a.rows, a.columns, a.column_step, a.row_step, size) ||
            !lines_fit(c.rows, c.columns, c.column_step, c.row_step, size))
            return;
        p->a = a;
        p->c = c;
        w.count /= w.shape[--w.ndim];
    }
}

/* The longest axis of the batch comes last, where it can be one sequence: false if it cannot. */
bool longest_last(walk<3> *w) {
    int best = -1;
    for (int i = 0; i < w->ndim; i++)
        if (w->stride[i][0] > 0 && w->stride[i][1] >= 0 && w->stride[i][2] >= 0 &&
            (best < 0 || w->shape[i] > w->shape[best]))
            best = i;
    if (best < 0) return false;
    const int last = w->ndim - 1;
    const int64_t n = w->shape[best];
    w->shape[best] = w->shape[last];
    w->shape[last] = n;
    for (int k = 0; k < 3; k++) {
        const int64_t step = w->stride[best][k];
        w->stride[best][k] = w->stride[last][k];
        w->stride[last][k] = step;
    }
    return true;
}

int multiply_runs(const job *j, bool in_sequence) {
    const walk<3> &w = j->p.batch;
    int status = 0;
    w.runs(0, w.count, [&](const int64_t(&at)[3], int64_t n, int64_t) {
        if (in_sequence) return !(status = multiply_sequence(j, at, {n, {w.inner(0), w.inner(1), w.inner(2)}}));
        for (int64_t i = 0; i < n && !status; i++) {
            const int64_t item[3] = {at[0] + i * w.inner(0), at[1] + i * w.inner(1), at[2] + i * w.inner(2)};
            status = multiply_sequence(j, item, {1, {0, 0, 0}});
        }
        return !status;
    });
    return status;
}

int multiply_batch(job *j) {
    walk<3> &w = j->p.batch;
    if (w.ndim == 0) return multiply_sequence(j, {0, 0, 0}, {1, {0, 0, 0}});
    const bool in_sequence = longest_last(&w);
    const int64_t calls = in_sequence ? w.count / w.length() : w.count;
    if (calls <= FEW_PIECES) return multiply_runs(j, in_sequence);
    int status = 0;
    for (int64_t at = 0; at < w.count && !status; at += MOST_POINTERS)
        status = multiply_pointers(j, at, at + MOST_POINTERS < w.count ? at + MOST_POINTERS : w.count);
    return status;
}

} // namespace

bool ad_cuda_matmul_takes(const array *x) {
    const int r = x->ndim - 2, k = x->ndim - 1;
    const int64_t size = itemsize(x->dtype);
    if (reinterpret_cast<uintptr_t>(x->data) % uintptr_t(size) != 0) return false;
    for (int i = 0; i < r; i++)
        if (x->shape[i] > 1 && x->stride[i] % size != 0) return false;
    return lines_fit(x->shape[r], x->shape[k], x->stride[k], x->stride[r], size) ||
           lines_fit(x->shape[k], x->shape[r], x->stride[r], x->stride[k], size);
}

int ad_cuda_matmul_blas(ad_call *c, const ad_cuda_product *p) {
    job j = {c, nullptr, *p, itemsize(p->dtype), type_of(p->dtype, c->op->param[0].as.b)};
    fold_rows(&j.p, j.size);
    const double work = double(j.p.c.rows) * double(j.p.c.columns) * double(j.p.a.columns) * double(j.p.batch.count);
    const uint64_t full = ad_cuda_blas_workspace(c->stream->device);
    int status = ad_cuda_blas(c, work < SMALL_WORK && full > SMALL_WORKSPACE ? SMALL_WORKSPACE : full, &j.handle);
    if (status) return status;
    /* Sums that are divided among blocks stay in float32 too. */
    status = status_of(&j, cublasSetMathMode(j.handle, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION));
    if (status) return status;
    if (j.p.batch.count == 1 && j.p.c.rows == 1 && j.p.c.columns == 1) return dot(&j);
    return multiply_batch(&j);
}
