/* Launches: the blocks of a grid are run by the backend's threads. */
#include <algorithm>
#include <atomic>
#include <mutex>
#include <new>

#include "kernels/cpu/backend/device.h"
#include "kernels/cpu/backend/fiber.h"
#include "kernels/cpu/backend/module.h"
#include "kernels/cpu/backend/parallel.h"
#include "kernels/launch.h"

namespace {

constexpr uint64_t FEW_THREADS = 2048; /* that are not worth waking other threads for */

/* Blocks that are taken one after another by whoever has time. */
struct work {
    ad_cpu_grid grid;
    uint64_t blocks;
    std::atomic<uint64_t> next{0};
    std::atomic<bool> failed{false};
    std::mutex lock;
    ad_fault fault = {};
};

/* Nothing may be thrown across the threads of the pool. */
int run_block(const work *w, uint64_t index, ad_fault *fault) {
    try {
        return ad_cpu_block_run(&w->grid, index, fault);
    } catch (const std::bad_alloc &) {
        return ad__fault(fault, AD_E_MEMORY, "out of memory");
    }
}

void take_blocks(work *w) {
    for (uint64_t i; !w->failed.load(std::memory_order_relaxed) && (i = w->next.fetch_add(1)) < w->blocks;) {
        ad_fault fault = {};
        if (run_block(w, i, &fault) == 0) continue;
        std::lock_guard<std::mutex> hold(w->lock);
        if (!w->failed.exchange(true)) w->fault = fault;
    }
    ad_cpu_block_rest();
}

void run_blocks(work *w) {
    const uint64_t fibers = AD_FIBERS / w->grid.count; /* at a time, when every thread has one */
    const uint64_t runners = std::min({uint64_t(ad_cpu_parallel_threads()), w->blocks, fibers});
    if (runners < 2 || w->blocks * w->grid.count < FEW_THREADS) {
        take_blocks(w);
        return;
    }
    ad_cpu_parallel_run(
        int64_t(runners), 1, [](void *context, int64_t, int64_t) { take_blocks(static_cast<work *>(context)); }, w);
}

} // namespace

int ad_cpu_launch_check(const ad_kernel_launch *l, ad_fault *fault) {
    const adrun::entry *e = l->kernel->entry;
    const ad_launch_limits limits = {e->name, e->sizes, e->nparameters, AD_BLOCK_THREADS,
                                     l->kernel->max_dynamic_shared};
    return ad_launch_check(l, &limits, fault);
}

int ad_cpu_launch(ad_stream *stream, const ad_kernel_launch *l, ad_run *run, ad_fault *fault) {
    static std::mutex one_at_a_time; /* each may need all fibers */
    const std::lock_guard<std::mutex> hold(one_at_a_time);
    int status = ad_faults_check(&stream->device->faults, AD_SITE_run, fault);
    if (status || (status = ad_cpu_launch_check(l, fault))) return status;
    const adrun::entry *e = l->kernel->entry;
    work w;
    w.grid = {e->name,
              e->run,
              l->argument,
              {l->grid[0], l->grid[1], l->grid[2]},
              {l->block[0], l->block[1], l->block[2]},
              l->block[0] * l->block[1] * l->block[2],
              nullptr};
    w.blocks = uint64_t(l->grid[0]) * l->grid[1] * l->grid[2];
    if (l->cooperative) return ad_cpu_launch_cooperative(&w.grid, w.blocks, run, fault);
    run->wrote = true;
    run_blocks(&w);
    return w.failed ? ad__fault(fault, w.fault.code, "%s", w.fault.text) : 0;
}
