#include "kernels/cuda/backend/team.h"

#include <algorithm>
#include <atomic>
#include <new>
#include <pthread.h>
#include <sched.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

namespace {

constexpr size_t PIECE = 256 << 10;  /* what a thread takes at a time */
constexpr size_t ALONE = 768 << 10;  /* up to here waking others takes longer than it saves */
constexpr int64_t PATIENCE = 100000; /* ns that a helper looks out for more work before it sleeps */
constexpr int MOST = 3;              /* helpers; four copy as fast as memory can */

int64_t now() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return int64_t(t.tv_sec) * 1000000000 + t.tv_nsec;
}

} // namespace

struct ad_cuda_team {
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the job: to, from, size, at */
    pthread_cond_t wake = PTHREAD_COND_INITIALIZER;
    char *to = nullptr;
    const char *from = nullptr;
    size_t size = 0, at = 0;
    std::atomic<size_t> rest{0}; /* pieces that nobody has taken */
    std::atomic<size_t> left{0}; /* pieces that are not copied yet */
    std::atomic<bool> stop{false};
    pthread_t helper[MOST];
    int helpers = -1; /* not started */
};

namespace {

struct piece {
    char *to;
    const char *from;
    size_t size;
};

bool take(ad_cuda_team *t, piece *p) {
    if (t->rest.load(std::memory_order_acquire) == 0) return false;
    pthread_mutex_lock(&t->lock);
    const bool some = t->at < t->size;
    if (some) {
        *p = {t->to + t->at, t->from + t->at, std::min(PIECE, t->size - t->at)};
        t->at += p->size;
        t->rest.fetch_sub(1);
    }
    pthread_mutex_unlock(&t->lock);
    return some;
}

void work(ad_cuda_team *t) {
    piece p;
    while (take(t, &p)) {
        memcpy(p.to, p.from, p.size);
        t->left.fetch_sub(1, std::memory_order_release);
    }
}

void sleep_until_woken(ad_cuda_team *t) {
    pthread_mutex_lock(&t->lock);
    while (!t->stop.load() && t->rest.load() == 0) pthread_cond_wait(&t->wake, &t->lock);
    pthread_mutex_unlock(&t->lock);
}

void *help(void *argument) {
    ad_cuda_team *t = static_cast<ad_cuda_team *>(argument);
    while (!t->stop.load()) {
        work(t);
        const int64_t end = now() + PATIENCE;
        while (t->rest.load(std::memory_order_acquire) == 0 && now() < end) {}
        if (t->rest.load() == 0) sleep_until_woken(t);
    }
    return nullptr;
}

/* Fewer where there are not as many processors, none where threads cannot be had. */
void start(ad_cuda_team *t) {
    const long processors = sysconf(_SC_NPROCESSORS_ONLN);
    const int wanted = int(std::min<long>(MOST, processors / 2));
    for (t->helpers = 0; t->helpers < wanted; t->helpers++)
        if (pthread_create(&t->helper[t->helpers], nullptr, help, t) != 0) break;
}

} // namespace

ad_cuda_team *ad_cuda_team_open() { return new (std::nothrow) ad_cuda_team; }

void ad_cuda_team_close(ad_cuda_team *team) {
    if (!team) return;
    pthread_mutex_lock(&team->lock);
    team->stop.store(true);
    pthread_cond_broadcast(&team->wake);
    pthread_mutex_unlock(&team->lock);
    for (int i = 0; i < team->helpers; i++) pthread_join(team->helper[i], nullptr);
    delete team;
}

void ad_cuda_team_copy(ad_cuda_team *team, void *to, const void *from, size_t size) {
    if (size <= ALONE) {
        memcpy(to, from, size);
        return;
    }
    if (team->helpers < 0) start(team);
    const size_t pieces = (size + PIECE - 1) / PIECE;
    pthread_mutex_lock(&team->lock);
    team->to = static_cast<char *>(to);
    team->from = static_cast<const char *>(from);
    team->size = size;
    team->at = 0;
    team->left.store(pieces);
    team->rest.store(pieces);
    pthread_cond_broadcast(&team->wake);
    pthread_mutex_unlock(&team->lock);
    work(team);
    while (team->left.load(std::memory_order_acquire) != 0) sched_yield(); /* helpers are at their last piece */
}
