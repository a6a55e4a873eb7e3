/* Kernels that the decompositions need besides the libraries: infos, pointers, triangles, reflectors. */
#include "kernels/cuda/call/linalg/linalg.h"
#include "kernels/cuda/backend/checks.h"

namespace {

using namespace ad;

constexpr int THREADS = 256;

int blocks_for(ad_call *c, int64_t n) {
    const int64_t most = int64_t(c->stream->device->multiprocessors) * 16, wanted = (n + THREADS - 1) / THREADS;
    return int(wanted < most ? wanted : most);
}

/* Let i go over [0, n), all threads of the grid together. */
#define AD_EACH(i, n) \
    for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < (n); i += int64_t(gridDim.x) * blockDim.x)

/* Call f(tag<W>{}) for the word of an element's size. */
template <class F> void visit_word(int64_t size, F f) {
    if (size == 4) f(tag<uint32_t>{});
    else if (size == 8) f(tag<uint64_t>{});
    else f(tag<ulonglong2>{});
}

__global__ void report_kernel(const int *info, int64_t n, int what, ad_check *check) {
    AD_EACH(i, n)
    if (info[i] != 0) ad_cuda_report(check, what, 0, 0, 0);
}

__global__ void pointers_kernel(char **to, char *base, int64_t step, int64_t n) {
    AD_EACH(i, n) to[i] = base + i * step;
}

template <class W> __global__ void triangle_kernel(W *a, int64_t rows, int64_t columns, int64_t n, bool upper) {
    AD_EACH(i, n) {
        const int64_t line = i / columns, column = i - line * columns, row = line % rows;
        if (upper ? column < row : column > row) a[i] = W{};
    }
}

/* one: the bits of 1 in the first half of a complex element, or in all of a real one. */
template <class W> __global__ void identity_kernel(W *a, int64_t rows, int64_t columns, int64_t n, W one) {
    AD_EACH(i, n) {
        const int64_t line = i / columns;
        a[i] = i - line * columns == line % rows ? one : W{};
    }
}

template <class I> __global__ void pivots_kernel(int64_t *to, const I *from, int64_t n) {
    AD_EACH(i, n) to[i] = int64_t(from[i]) - 1;
}

/* Get the determinant so far of the lane that is `by` lanes above. */
template <class T> __device__ determinant<T> get_above(const determinant<T> &d, int by) {
    determinant<T> other;
    if constexpr (is_complex<T>)
        other.sign = {__shfl_down_sync(~0u, d.sign.re, by), __shfl_down_sync(~0u, d.sign.im, by)};
    else other.sign = __shfl_down_sync(~0u, d.sign, by);
    other.size = __shfl_down_sync(~0u, d.size, by);
    other.singular = __shfl_down_sync(~0u, int(d.singular), by);
    return other;
}

/* A warp for each matrix; a lane takes each 32nd element of the diagonal. */
template <class T, class I>
__global__ void slogdet_kernel(const T *a, const I *pivots, int64_t n, int64_t batch, T *sign, real_t<T> *size) {
    const int lane = int(threadIdx.x % 32);
    const int64_t warps = int64_t(gridDim.x) * blockDim.x / 32;
    for (int64_t i = (int64_t(blockIdx.x) * blockDim.x + threadIdx.x) / 32; i < batch; i += warps) {
        determinant<T> d;
        for (int64_t j = lane; j < n; j += 32) d.take(a[(i * n + j) * n + j], int64_t(pivots[i * n + j]) != j + 1);
        for (int by = 16; by > 0; by /= 2) d.join(get_above(d, by));
        if (lane > 0) continue;
        sign[i] = d.find_sign();
        size[i] = d.find_size();
    }
}

template <class R> __global__ void clean_kernel(R *a, int64_t n, int *flag) {
    AD_EACH(i, n)
    if (!isfinite(a[i])) {
        a[i] = R(0);
        *flag = 1;
    }
}

template <class T> __global__ void zeros_kernel(const T *a, int64_t n, int64_t all, int *info) {
    AD_EACH(i, all)
    if (a[i / n * n * n + i % n * (n + 1)] == T(0)) info[i / n] = 1;
}

template <class R> __global__ void conjugate_kernel(complex<R> *a, int64_t n) { AD_EACH(i, n) a[i].im = -a[i].im; }

/* Join the real and imaginary parts of vectors. Where geev has failed its values are anything, so places are kept
 * within the matrix. */
template <class R>
__global__ void join_kernel(complex<R> *to, const R *from, const complex<R> *values, int64_t n, int64_t all) {
    AD_EACH(i, all) {
        const int64_t vector = i / n, j = vector % n;
        const R im = values[vector].im;
        const int64_t re_at = i - (im < 0 && j > 0 ? n : 0), im_at = re_at + (im != 0 && re_at / n % n < n - 1 ? n : 0);
        to[i] = {from[re_at], im > 0 ? from[im_at] : im < 0 ? -from[im_at] : R(0)};
    }
}

template <class T> __device__ T conjugate(T v) {
    if constexpr (is_complex<T>) v.im = -v.im;
    return v;
}

/* A block for each matrix; a thread has a column of q and applies the reflectors to it, the last one first. */
template <class T>
__global__ void make_q_kernel(T *q, const T *factors, const T *tau, int m, int n, int width, int64_t batch) {
    const int k = min(m, n);
    for (int64_t b = blockIdx.x; b < batch; b += gridDim.x) {
        T *to = q + b * m * width;
        const T *a = factors + b * m * n, *t = tau + b * k;
        for (int column = threadIdx.x; column < width; column += blockDim.x) {
            for (int i = 0; i < m; i++) to[int64_t(i) * width + column] = T(i == column ? 1 : 0);
            for (int j = min(k - 1, column); j >= 0; j--) {
                const T *v = a + int64_t(j) * m;
                T dot = to[int64_t(j) * width + column];
                for (int i = j + 1; i < m; i++) dot = dot + conjugate(v[i]) * to[int64_t(i) * width + column];
                dot = dot * t[j];
                to[int64_t(j) * width + column] = to[int64_t(j) * width + column] - dot;
                for (int i = j + 1; i < m; i++)
                    to[int64_t(i) * width + column] = to[int64_t(i) * width + column] - v[i] * dot;
            }
        }
    }
}

template <class T, class R>
__global__ void divide_kernel(T *m, int64_t rows, int64_t columns, const R *s, double rcond, int64_t *rank) {
    const R least = R(rcond) * s[0];
    AD_EACH(i, rows * columns) {
        const R value = s[i / rows];
        m[i] = value > least ? m[i] * T(R(1) / value) : T(0);
    }
    if (blockIdx.x != 0 || threadIdx.x != 0) return;
    int64_t found = 0;
    while (found < columns && s[found] > least) found++;
    *rank = found;
}

template <class T> T one_bits(int dtype) {
    union {
        T word;
        float narrow[2];
        double wide[2];
    } one = {};
    if (dtype == AD_FLOAT32 || dtype == AD_COMPLEX64) one.narrow[0] = 1;
    else one.wide[0] = 1;
    return one.word;
}

} // namespace

int ad_linalg_report(ad_call *c, const int *info, int64_t n, int what) {
    c->run->checked = c->run->check != nullptr;
    report_kernel<<<blocks_for(c, n), THREADS, 0, c->stream->cuda>>>(info, n, what, c->run->check);
    return ad_cuda_launched("looking at a decomposition's success", c->fault);
}

int ad_linalg_pointers(ad_call *c, void **to, char *base, int64_t step, int64_t n) {
    pointers_kernel<<<blocks_for(c, n), THREADS, 0, c->stream->cuda>>>(reinterpret_cast<char **>(to), base, step, n);
    return ad_cuda_launched("listing matrices", c->fault);
}

int ad_linalg_triangle(ad_call *c, const array *a, bool upper) {
    const int64_t n = count(*a);
    if (n == 0) return 0;
    visit_word(itemsize(a->dtype), [&](auto t) {
        using W = typename decltype(t)::type;
        triangle_kernel<<<blocks_for(c, n), THREADS, 0, c->stream->cuda>>>(reinterpret_cast<W *>(a->data), rows(*a),
                                                                           columns(*a), n, upper);
    });
    return ad_cuda_launched("clearing a triangle", c->fault);
}

int ad_linalg_zeros(ad_call *c, const array *a, int *info) {
    const int64_t n = rows(*a), all = n * matrices(*a);
    visit_field(a->dtype, [&](auto t) {
        using T = typename decltype(t)::type;
        zeros_kernel<<<blocks_for(c, all), THREADS, 0, c->stream->cuda>>>(reinterpret_cast<const T *>(a->data), n, all,
                                                                          info);
        return 0;
    });
    return ad_cuda_launched("looking for zeros on diagonals", c->fault);
}

int ad_linalg_identity(ad_call *c, const array *a) {
    const int64_t n = count(*a);
    if (n == 0) return 0;
    visit_word(itemsize(a->dtype), [&](auto t) {
        using W = typename decltype(t)::type;
        identity_kernel<<<blocks_for(c, n), THREADS, 0, c->stream->cuda>>>(reinterpret_cast<W *>(a->data), rows(*a),
                                                                           columns(*a), n, one_bits<W>(a->dtype));
    });
    return ad_cuda_launched("an identity matrix", c->fault);
}

int ad_linalg_pivots(ad_call *c, int64_t *to, const void *from, bool wide, int64_t n) {
    const int blocks = blocks_for(c, n);
    if (wide) pivots_kernel<<<blocks, THREADS, 0, c->stream->cuda>>>(to, static_cast<const int64_t *>(from), n);
    else pivots_kernel<<<blocks, THREADS, 0, c->stream->cuda>>>(to, static_cast<const int *>(from), n);
    return ad_cuda_launched("pivots", c->fault);
}

int ad_linalg_slogdet(ad_call *c, const array *a, const void *pivots, bool wide, char *sign, char *size) {
    const int64_t n = rows(*a), batch = matrices(*a);
    const int blocks = blocks_for(c, batch * 32);
    visit_field(a->dtype, [&](auto t) {
        using T = typename decltype(t)::type;
        const T *from = reinterpret_cast<const T *>(a->data);
        T *signs = reinterpret_cast<T *>(sign);
        real_t<T> *sizes = reinterpret_cast<real_t<T> *>(size);
        cudaStream_t stream = c->stream->cuda;
        if (wide)
            slogdet_kernel<<<blocks, THREADS, 0, stream>>>(from, static_cast<const int64_t *>(pivots), n, batch, signs,
                                                           sizes);
        else
            slogdet_kernel<<<blocks, THREADS, 0, stream>>>(from, static_cast<const int *>(pivots), n, batch, signs,
                                                           sizes);
        return 0;
    });
    return ad_cuda_launched("determinants", c->fault);
}

int ad_linalg_clean(ad_call *c, const array *a, int *flag) {
    const int64_t n = count(*a) * (is_complex_dtype(a->dtype) ? 2 : 1);
    const int blocks = blocks_for(c, n);
    if (real_dtype(a->dtype) == AD_FLOAT32)
        clean_kernel<<<blocks, THREADS, 0, c->stream->cuda>>>(reinterpret_cast<float *>(a->data), n, flag);
    else clean_kernel<<<blocks, THREADS, 0, c->stream->cuda>>>(reinterpret_cast<double *>(a->data), n, flag);
    return ad_cuda_launched("looking for NaN", c->fault);
}

int ad_linalg_join(ad_call *c, const array *to, const char *from, const array *values) {
    const int64_t n = count(*to);
    const int blocks = blocks_for(c, n);
    const auto join = [&](auto t) {
        using R = typename decltype(t)::type;
        join_kernel<<<blocks, THREADS, 0, c->stream->cuda>>>(
            reinterpret_cast<complex<R> *>(to->data), reinterpret_cast<const R *>(from),
            reinterpret_cast<const complex<R> *>(values->data), rows(*to), n);
    };
    if (to->dtype == AD_COMPLEX64) join(tag<float>{});
    else join(tag<double>{});
    return ad_cuda_launched("complex eigenvectors", c->fault);
}

int ad_linalg_conjugate(ad_call *c, const array *a) {
    const int64_t n = count(*a);
    const int blocks = blocks_for(c, n);
    if (n == 0 || !is_complex_dtype(a->dtype)) return 0;
    if (a->dtype == AD_COMPLEX64)
        conjugate_kernel<<<blocks, THREADS, 0, c->stream->cuda>>>(reinterpret_cast<complex<float> *>(a->data), n);
    else conjugate_kernel<<<blocks, THREADS, 0, c->stream->cuda>>>(reinterpret_cast<complex<double> *>(a->data), n);
    return ad_cuda_launched("conjugation", c->fault);
}

int ad_linalg_make_q(ad_call *c, const array *q, const char *factors, const char *tau, int64_t n) {
    const int64_t batch = matrices(*q), most = int64_t(c->stream->device->multiprocessors) * 32;
    const int threads = columns(*q) >= 128 ? 128 : int((columns(*q) + 31) / 32 * 32);
    visit_field(q->dtype, [&](auto t) {
        using T = typename decltype(t)::type;
        make_q_kernel<<<int(batch < most ? batch : most), threads, 0, c->stream->cuda>>>(
            reinterpret_cast<T *>(q->data), reinterpret_cast<const T *>(factors), reinterpret_cast<const T *>(tau),
            int(rows(*q)), int(n), int(columns(*q)), batch);
        return 0;
    });
    return ad_cuda_launched("making q", c->fault);
}

int ad_linalg_divide(ad_call *c, const array *m, const void *s, double rcond, int64_t *rank) {
    const int64_t lines = columns(*m), length = rows(*m); /* m by columns is its transpose by rows */
    const int64_t n = lines * length;
    visit_field(m->dtype, [&](auto t) {
        using T = typename decltype(t)::type;
        divide_kernel<<<blocks_for(c, n > 0 ? n : 1), THREADS, 0, c->stream->cuda>>>(
            reinterpret_cast<T *>(m->data), lines, length, static_cast<const real_t<T> *>(s), rcond, rank);
        return 0;
    });
    return ad_cuda_launched("dividing by singular values", c->fault);
}
