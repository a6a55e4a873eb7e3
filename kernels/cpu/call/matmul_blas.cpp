/* Matrix products by OpenBLAS, which runs each of them on the thread that asks for it. */
#include "kernels/cpu/call/matmul.h"

#include <cblas.h>
#include <limits.h>
#include <string.h>

namespace {

using namespace ad;

/* ---- OpenBLAS's functions by type ---- */

template <class T> struct blas;
template <> struct blas<float> {
    static constexpr auto gemm = cblas_sgemm;
    static constexpr auto gemv = cblas_sgemv;
    static constexpr auto dot = cblas_sdot;
    static constexpr float one = 1, zero = 0;
};
template <> struct blas<double> {
    static constexpr auto gemm = cblas_dgemm;
    static constexpr auto gemv = cblas_dgemv;
    static constexpr auto dot = cblas_ddot;
    static constexpr double one = 1, zero = 0;
};
constexpr float complex64_one[2] = {1, 0}, complex64_zero[2] = {0, 0};
template <> struct blas<complex<float>> {
    static constexpr auto gemm = cblas_cgemm;
    static constexpr auto gemv = cblas_cgemv;
    static complex<float> dot(int n, const complex<float> *x, int x_step, const complex<float> *y, int y_step) {
        complex<float> sum;
        cblas_cdotu_sub(n, x, x_step, y, y_step, &sum);
        return sum;
    }
    static constexpr const void *one = complex64_one, *zero = complex64_zero;
};
constexpr double complex128_one[2] = {1, 0}, complex128_zero[2] = {0, 0};
template <> struct blas<complex<double>> {
    static constexpr auto gemm = cblas_zgemm;
    static constexpr auto gemv = cblas_zgemv;
    static complex<double> dot(int n, const complex<double> *x, int x_step, const complex<double> *y, int y_step) {
        complex<double> sum;
        cblas_zdotu_sub(n, x, x_step, y, y_step, &sum);
        return sum;
    }
    static constexpr const void *one = complex128_one, *zero = complex128_zero;
};

template <class T> T *at(const ad_matrix *m) { return reinterpret_cast<T *>(m->data); }

/* The layout that OpenBLAS is told of a matrix: transposed where its columns are the contiguous ones. */
struct layout {
    CBLAS_TRANSPOSE transpose;
    int leading;
};

template <class T> layout layout_of(const ad_matrix *m) {
    constexpr int64_t size = sizeof(T);
    const bool by_rows =
        (m->columns == 1 || m->column_step == size) && (m->rows == 1 || m->row_step >= m->columns * size);
    const int64_t step = by_rows ? m->row_step : m->column_step, lines = by_rows ? m->rows : m->columns;
    const int64_t length = by_rows ? m->columns : m->rows;
    return {by_rows ? CblasNoTrans : CblasTrans, int(lines == 1 ? length : step / size)};
}

/* A line of a matrix as a vector. OpenBLAS counts negative steps from the other end, so they are not given to it. */
template <class T> void gemv(const ad_matrix *m, char *x, int64_t x_step, char *y, int64_t y_step, bool add) {
    constexpr int64_t size = sizeof(T);
    layout l = layout_of<T>(m);
    const bool plain = l.transpose == CblasNoTrans;
    for (int64_t i = 0; i < m->rows && !add; i++) *reinterpret_cast<T *>(y + i * y_step) = T(0);
    blas<T>::gemv(CblasRowMajor, l.transpose, int(plain ? m->rows : m->columns), int(plain ? m->columns : m->rows),
                  blas<T>::one, reinterpret_cast<const T *>(m->data), l.leading, reinterpret_cast<const T *>(x),
                  int(x_step / size), blas<T>::one, reinterpret_cast<T *>(y), int(y_step / size));
}

bool vector_step(int64_t step, int64_t size) { return step >= size && step % size == 0 && step / size <= INT_MAX; }

/* The product of a row and a column, which is one element. */
template <class T> void dot(const ad_matrix *a, const ad_matrix *b, const ad_matrix *c, bool add) {
    constexpr int64_t size = sizeof(T);
    const T sum = blas<T>::dot(int(a->columns), at<const T>(a), int(a->column_step / size), at<const T>(b),
                               int(b->row_step / size));
    *at<T>(c) = add ? *at<T>(c) + sum : sum;
}

template <class T> void multiply(const ad_matrix *a, const ad_matrix *b, const ad_matrix *c, bool add) {
    constexpr int64_t size = sizeof(T);
    if (c->rows == 1 && c->columns == 1 && vector_step(a->column_step, size) && vector_step(b->row_step, size))
        return dot<T>(a, b, c, add);
    if (c->columns == 1 && vector_step(b->row_step, size) && vector_step(c->row_step, size))
        return gemv<T>(a, b->data, b->row_step, c->data, c->row_step, add);
    if (c->rows == 1 && vector_step(a->column_step, size)) {
        ad_matrix flipped = {b->data, b->columns, b->rows, b->column_step, b->row_step};
        return gemv<T>(&flipped, a->data, a->column_step, c->data, size, add);
    }
    layout la = layout_of<T>(a), lb = layout_of<T>(b);
    const int64_t leading = c->rows == 1 ? c->columns : c->row_step / size;
    blas<T>::gemm(CblasRowMajor, la.transpose, lb.transpose, int(c->rows), int(c->columns), int(a->columns),
                  blas<T>::one, at<const T>(a), la.leading, at<const T>(b), lb.leading,
                  add ? blas<T>::one : blas<T>::zero, at<T>(c), int(leading));
}

/* Lines of `length` contiguous elements, `step` bytes apart. */
bool lines_fit(int64_t lines, int64_t length, int64_t element_step, int64_t step, int64_t size) {
    if (length > 1 && element_step != size) return false;
    if (lines == 1) return length <= INT_MAX;
    return step >= length * size && step % size == 0 && step / size <= INT_MAX;
}

} // namespace

bool ad_matmul_blas_takes(const ad_matrix *m, int64_t size) {
    return lines_fit(m->rows, m->columns, m->column_step, m->row_step, size) ||
           lines_fit(m->columns, m->rows, m->row_step, m->column_step, size);
}

ad_matmul_function *ad_matmul_blas(int dtype) {
    switch (dtype) {
    case AD_FLOAT32: return multiply<float>;
    case AD_FLOAT64: return multiply<double>;
    case AD_COMPLEX64: return multiply<complex<float>>;
    case AD_COMPLEX128: return multiply<complex<double>>;
    default: return nullptr;
    }
}
