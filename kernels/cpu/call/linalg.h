/* The common part of the decompositions on the host's processors. They call a LAPACK function for each matrix of a
 * stack, and divide the stack among threads. OpenBLAS itself runs on the thread that asks. */
#ifndef AD_KERNELS_CPU_CALL_LINALG_H
#define AD_KERNELS_CPU_CALL_LINALG_H

#include <algorithm>
#include <atomic>
#include <limits.h>

#include "kernels/call_linalg.h"
#include "kernels/cpu/call/linalg_lapack.h"
#include "kernels/cpu/backend/parallel.h"

namespace ad {
inline namespace AD_ISA {

constexpr char SINGULAR[] = "Singular matrix";

/* LAPACK counts in an int. */
inline int linalg_fits(ad_call *c, const array &a) {
    if (rows(a) <= INT_MAX && columns(a) <= INT_MAX) return 0;
    return ad__fault(c->fault, AD_E_UNSUPPORTED, "a matrix has more than %d rows or columns", INT_MAX);
}

template <class T> double real_part(const T &v) {
    if constexpr (is_complex<T>) return double(v.re);
    else return double(v);
}

/* Ask ask(work) how much it needs: sizes of *w that are -1 become what it answers. AD_E_UNSUPPORTED. */
template <class T, class Ask> int linalg_ask(ad_call *c, ad_lapack_work<T> *w, Ask ask) {
    T most[1] = {};
    real_t<T> rmost[1] = {};
    int imost[1] = {};
    const ad_lapack_work<T> question = {most, rmost, imost, -1, -1, -1};
    const double tick = sizeof(real_t<T>) == 4 ? 0x1p-23 : 0x1p-52;
    const int info = ask(question);
    const double lwork = real_part(most[0]) * (1 + tick), lrwork = double(rmost[0]) * (1 + tick);
    if (info != 0 || lwork > INT_MAX || lrwork > INT_MAX || lwork < 0 || lrwork < 0 || imost[0] < 0)
        return ad__fault(c->fault, AD_E_UNSUPPORTED, "a matrix is too large for LAPACK");
    if (w->lwork < 0) w->lwork = std::max(1, int(lwork));
    if (w->lrwork < 0) w->lrwork = int(lrwork);
    if (w->liwork < 0) w->liwork = imost[0];
    return 0;
}

/* The places of the parts of one thread's scratch memory, each on its own cache lines. */
struct linalg_layout {
    uint64_t size = 0;
    uint64_t add(int64_t bytes) {
        const uint64_t at = size;
        size += (uint64_t(bytes) + 63) / 64 * 64;
        return at;
    }
};

template <class T> struct linalg_work {
    uint64_t work, rwork, iwork;
    ad_lapack_work<T> sizes;
    linalg_work(linalg_layout *layout, const ad_lapack_work<T> &w) : sizes(w) {
        work = layout->add(int64_t(w.lwork) * int64_t(sizeof(T)));
        rwork = layout->add(int64_t(w.lrwork) * int64_t(sizeof(real_t<T>)));
        iwork = layout->add(int64_t(w.liwork) * int64_t(sizeof(int)));
    }
    ad_lapack_work<T> at(char *scratch) const {
        ad_lapack_work<T> w = sizes;
        w.work = reinterpret_cast<T *>(scratch + work);
        w.rwork = reinterpret_cast<real_t<T> *>(scratch + rwork);
        w.iwork = reinterpret_cast<int *>(scratch + iwork);
        return w;
    }
};

/* one(i, scratch) for each of n matrices; scratch: `size` bytes of this thread. work: about how many multiplications
 * one is. 1: one of them did not give 0. AD_E_MEMORY. */
template <class F> int linalg_try(ad_call *c, int64_t n, double work, uint64_t size, F one) {
    constexpr double PIECE = 1 << 16; /* worth waking a thread for */
    int64_t parts = std::min<int64_t>(n, ad_cpu_parallel_threads());
    if (double(n) * work < double(parts) * PIECE) parts = std::max<int64_t>(1, int64_t(double(n) * work / PIECE));
    char *scratch = size > 0 ? static_cast<char *>(ad_call_workspace(c, size * uint64_t(parts))) : nullptr;
    if (size > 0 && !scratch) return AD_E_MEMORY;
    std::atomic<bool> failed{false};
    ad_cpu_parallel(parts, 1, [&](int64_t begin, int64_t end) {
        for (int64_t p = begin; p < end; p++)
            for (int64_t i = n * p / parts; i < n * (p + 1) / parts; i++) {
                ad_cpu_check_cancelled();
                if (one(i, scratch + uint64_t(p) * size) != 0) failed = true;
            }
    });
    return failed;
}

/* As linalg_try, but AD_E_LINALG with `text` where one of them did not give 0. */
template <class F> int linalg_each(ad_call *c, int64_t n, double work, uint64_t size, const char *text, F one) {
    const int result = linalg_try(c, n, work, size, one);
    return result > 0 ? ad__fault(c->fault, AD_E_LINALG, "%s", text) : result;
}

} // namespace AD_ISA
} // namespace ad
#endif
