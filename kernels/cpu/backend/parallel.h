/* Threads of the cpu backend: one small pool for the process. Idle threads sleep; short loops never touch it. */
#ifndef AD_KERNELS_CPU_BACKEND_PARALLEL_H
#define AD_KERNELS_CPU_BACKEND_PARALLEL_H

#include "protocol/base.h"

/* Use `threads` threads in all from now on, the caller's included (0: one for each processor this process may run on).
 * Called by device_open; counts its users. AD_E_SYSTEM; fewer threads than asked for are no failure. */
int ad_cpu_parallel_open(int threads, ad_fault *fault);
void ad_cpu_parallel_close(void);
int ad_cpu_parallel_threads(void);
/* body(context, begin, end) over pieces of [0, n), each but the last a multiple of grain; returns when all are done.
 * Pieces run in any order on any thread. When the pool is taken, as inside a body, the caller does it all itself.
 * Throws ad_cpu_cancelled between two pieces when the operation is to be given up, and what a body has thrown. */
void ad_cpu_parallel_run(int64_t n, int64_t grain, void (*body)(void *context, int64_t begin, int64_t end),
                         void *context);

/* An operation is given up by this exception, which passes through its kernels and ends in backend.cpp. So a kernel
 * owns what it holds by objects with destructors. */
struct ad_cpu_cancelled {};

/* While one of these lives, what this thread runs is given up as soon as *cancelled is not 0 (NULL: never). */
class ad_cpu_cancel_scope {
    const int *before;

  public:
    explicit ad_cpu_cancel_scope(const int *cancelled);
    ~ad_cpu_cancel_scope();
    ad_cpu_cancel_scope(const ad_cpu_cancel_scope &) = delete;
};

/* Loops that take long without ad_cpu_parallel call this now and then: it throws ad_cpu_cancelled, or costs a load. */
void ad_cpu_check_cancelled();

/* f(begin, end) over pieces of [0, n), one after another on this thread, for loops whose order matters. */
template <class F> inline void ad_cpu_in_order(int64_t n, F f) {
    constexpr int64_t PIECE = 1 << 22; /* elements */
    for (int64_t begin = 0; begin < n; begin += PIECE) {
        ad_cpu_check_cancelled();
        f(begin, n - begin < PIECE ? n : begin + PIECE);
    }
}

/* f(begin, end) over [0, n): in parallel when there are at least two grains of work, else at once right here. */
template <class F> inline void ad_cpu_parallel(int64_t n, int64_t grain, F f) {
    if (n / 2 < grain) {
        if (n > 0) f(int64_t(0), n);
        return;
    }
    ad_cpu_parallel_run(
        n, grain, [](void *context, int64_t begin, int64_t end) { (*static_cast<F *>(context))(begin, end); }, &f);
}

#endif
