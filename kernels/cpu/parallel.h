/* Threads of the cpu backend: one small pool for the process. Idle threads sleep; short loops never touch it. */
#ifndef AD_KERNELS_CPU_PARALLEL_H
#define AD_KERNELS_CPU_PARALLEL_H

#include "protocol/base.h"

/* Use `threads` threads in all from now on, the caller's included (0: one for each processor this process may run on).
 * Called by device_open; counts its users. AD_E_SYSTEM; fewer threads than asked for are no failure. */
int ad_cpu_parallel_open(int threads, ad_fault *fault);
void ad_cpu_parallel_close(void);
int ad_cpu_parallel_threads(void);
/* body(context, begin, end) over pieces of [0, n), each but the last a multiple of grain; returns when all are done.
 * Pieces run in any order on any thread. When the pool is taken, as inside a body, the caller does it all itself. */
void ad_cpu_parallel_run(int64_t n, int64_t grain, void (*body)(void *context, int64_t begin, int64_t end),
                         void *context);

/* f(begin, end) over [0, n): in parallel when there are at least two grains of work, else at once right here. */
template <class F> inline void ad_cpu_parallel(int64_t n, int64_t grain, F f) {
    if (n < 2 * grain || ad_cpu_parallel_threads() < 2) {
        if (n > 0) f(int64_t(0), n);
        return;
    }
    ad_cpu_parallel_run(
        n, grain, [](void *context, int64_t begin, int64_t end) { (*static_cast<F *>(context))(begin, end); }, &f);
}

#endif
