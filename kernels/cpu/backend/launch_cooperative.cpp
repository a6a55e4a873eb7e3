/* Cooperative launches. Every block has a thread of the system, whose shared memory is its own. So all blocks are under
 * way at once and may wait for each other. */
#include <condition_variable>
#include <memory>
#include <mutex>
#include <new>
#include <pthread.h>
#include <signal.h>
#include <vector>

#include "kernels/cpu/backend/block.h"
#include "kernels/cpu/backend/fiber.h"

#define MOST_BLOCKS 128

struct ad_cpu_meeting {
    std::mutex lock;
    std::condition_variable moved;
    uint64_t blocks, here = 0, times = 0; /* that wait now; how often all have met */
    bool broken = false;                  /* some block will never come again */
};

bool ad_cpu_meet(ad_cpu_meeting *m) {
    std::unique_lock<std::mutex> hold(m->lock);
    if (++m->here == m->blocks && !m->broken) {
        m->here = 0;
        m->times++;
        m->moved.notify_all();
        return true;
    }
    const uint64_t seen = m->times;
    m->moved.wait(hold, [&] { return m->broken || m->times != seen; });
    return m->times != seen;
}

namespace {

struct member {
    ad_cpu_grid grid;
    uint64_t index;
    ad_cpu_meeting *meeting;
    int status;
    ad_fault fault;
    pthread_t thread;
};

void leave(ad_cpu_meeting *m) {
    std::lock_guard<std::mutex> hold(m->lock);
    m->broken = true;
    m->moved.notify_all();
}

/* A block that has ended meets nobody any more: whoever waits for it does so in vain. */
void *run_member(void *argument) {
    member *b = static_cast<member *>(argument);
    try {
        b->status = ad_cpu_block_run(&b->grid, b->index, &b->fault);
    } catch (const std::bad_alloc &) {
        b->status = ad__fault(&b->fault, AD_E_MEMORY, "out of memory");
    }
    leave(b->meeting);
    ad_cpu_block_rest();
    return nullptr;
}

/* Signals belong to the program's own threads. How many have been started. */
uint64_t start(std::vector<member> &all) {
    sigset_t every, old;
    uint64_t n = 0;
    sigfillset(&every);
    pthread_sigmask(SIG_SETMASK, &every, &old);
    while (n < all.size() && pthread_create(&all[n].thread, nullptr, run_member, &all[n]) == 0) n++;
    pthread_sigmask(SIG_SETMASK, &old, nullptr);
    return n;
}

/* The first failure that is no other's consequence: a crash, then what a block itself has done wrong. */
const member *first_failure(const std::vector<member> &all) {
    const member *found = nullptr;
    for (const member &b : all)
        if (b.status < 0 && (!found || (b.status == AD_E_DEVICE_LOST && found->status != AD_E_DEVICE_LOST))) found = &b;
    return found;
}

} // namespace

int ad_cpu_launch_cooperative(const ad_cpu_grid *grid, uint64_t blocks, ad_run *run, ad_fault *fault) {
    if (blocks > MOST_BLOCKS || blocks * grid->count > AD_FIBERS)
        return ad__fault(fault, AD_E_VALUE,
                         "kernel %s: a cooperative launch of %llu blocks of %u threads; at once there are at most %d "
                         "blocks, and %d threads in all, on processors",
                         grid->name, static_cast<unsigned long long>(blocks), grid->count, MOST_BLOCKS, AD_FIBERS);
    ad_cpu_meeting meeting;
    meeting.blocks = blocks;
    std::vector<member> all(blocks);
    for (uint64_t i = 0; i < blocks; i++) {
        all[i].grid = *grid;
        all[i].grid.meeting = &meeting;
        all[i].index = i;
        all[i].meeting = &meeting;
        all[i].status = 0;
        all[i].fault = {};
    }
    run->wrote = true;
    const uint64_t started = start(all);
    if (started < blocks) leave(&meeting);
    for (uint64_t i = 0; i < started; i++) pthread_join(all[i].thread, nullptr);
    if (started < blocks)
        return ad__fault(fault, AD_E_MEMORY, "kernel %s: no threads for its %llu blocks", grid->name,
                         static_cast<unsigned long long>(blocks));
    const member *failed = first_failure(all);
    return failed ? ad__fault(fault, failed->status, "%s", failed->fault.text) : 0;
}
