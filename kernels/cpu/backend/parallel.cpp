#include "kernels/cpu/backend/parallel.h"

#include <atomic>
#include <errno.h>
#include <exception>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <utility>

namespace {

constexpr int MAX_THREADS = 256;
constexpr int PIECES_PER_THREAD = 4;  /* so that a thread that starts late costs little */
constexpr int64_t GRAINS_MOST = 1024; /* of a piece: some 20 ms, after which somebody may have cancelled it */

struct job {
    void (*body)(void *, int64_t, int64_t);
    void *context;
    int64_t n, piece;
    const int *cancelled; /* by whom it is run: ad_cpu_cancel_scope; NULL: nobody cancels it */
    std::atomic<int64_t> next;
    std::atomic<bool> given_up;
    std::exception_ptr why; /* it is given up; the first piece that threw */
};

thread_local const int *cancel_flag; /* of the operation that this thread works for */

bool is_cancelled(const int *flag) { return flag && __atomic_load_n(flag, __ATOMIC_RELAXED) != 0; }

/* mutex guards everything but `current.next` and `threads`; `owner` is held by the caller whose job runs. */
struct pool {
    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, owner = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t wake = PTHREAD_COND_INITIALIZER, done = PTHREAD_COND_INITIALIZER;
    pthread_t thread[MAX_THREADS];
    int started = 0, users = 0;
    std::atomic<int> threads{1};
    uint64_t generation = 0;  /* of jobs */
    int wanted = 0, busy = 0; /* threads that may still join the job; that are in it */
    bool stop = false;
    job current;
} g;

/* next stays below n + threads * piece, which fits as n is at most 2^62 and a piece a fourth of it. */
void run_pieces(job *j) {
    for (;;) {
        if (is_cancelled(j->cancelled)) throw ad_cpu_cancelled{};
        int64_t begin = j->next.fetch_add(j->piece, std::memory_order_relaxed);
        if (begin >= j->n) return;
        j->body(j->context, begin, j->n - begin < j->piece ? j->n : begin + j->piece);
    }
}

/* Nothing may be thrown across the threads of the pool. */
void work(job *j) {
    const ad_cpu_cancel_scope scope(j->cancelled);
    try {
        run_pieces(j);
    } catch (...) {
        if (!j->given_up.exchange(true)) j->why = std::current_exception();
        j->next = j->n;
    }
}

/* All of it on this thread. */
void run_alone(int64_t n, int64_t piece, void (*body)(void *, int64_t, int64_t), void *context) {
    for (int64_t begin = 0, some; begin < n; begin += some) {
        ad_cpu_check_cancelled();
        some = n - begin < piece ? n - begin : piece;
        body(context, begin, begin + some);
    }
}

void *thread_main(void *) {
    uint64_t seen = 0;
    pthread_mutex_lock(&g.mutex);
    for (;;) {
        while (!g.stop && (g.generation == seen || g.wanted == 0)) pthread_cond_wait(&g.wake, &g.mutex);
        if (g.stop) break;
        seen = g.generation;
        g.wanted--;
        g.busy++;
        pthread_mutex_unlock(&g.mutex);
        work(&g.current);
        pthread_mutex_lock(&g.mutex);
        if (--g.busy == 0) pthread_cond_signal(&g.done);
    }
    pthread_mutex_unlock(&g.mutex);
    return nullptr;
}

int processors() {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
    return CPU_COUNT(&set);
}

/* Signals belong to the program's own threads. */
void start_threads(int n) {
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    while (g.started < n && pthread_create(&g.thread[g.started], nullptr, thread_main, nullptr) == 0) g.started++;
    pthread_sigmask(SIG_SETMASK, &old, nullptr);
}

} // namespace

int ad_cpu_parallel_open(int threads, ad_fault *fault) {
    if (threads < 0) return ad__fault(fault, AD_E_VALUE, "number of threads must not be negative, not %d", threads);
    int n = threads == 0 ? processors() : threads;
    if (n > MAX_THREADS) n = MAX_THREADS;
    pthread_mutex_lock(&g.owner);
    start_threads(n - 1);
    g.threads.store(g.started + 1, std::memory_order_relaxed);
    g.users++;
    pthread_mutex_unlock(&g.owner);
    return 0;
}

void ad_cpu_parallel_close(void) {
    pthread_mutex_lock(&g.owner);
    if (--g.users == 0) {
        pthread_mutex_lock(&g.mutex);
        g.stop = true;
        pthread_cond_broadcast(&g.wake);
        pthread_mutex_unlock(&g.mutex);
        for (int i = 0; i < g.started; i++) pthread_join(g.thread[i], nullptr);
        g.started = 0;
        g.stop = false;
        g.threads.store(1, std::memory_order_relaxed);
    }
    pthread_mutex_unlock(&g.owner);
}

int ad_cpu_parallel_threads(void) { return g.threads.load(std::memory_order_relaxed); }

ad_cpu_cancel_scope::ad_cpu_cancel_scope(const int *cancelled) : before(cancel_flag) { cancel_flag = cancelled; }

ad_cpu_cancel_scope::~ad_cpu_cancel_scope() { cancel_flag = before; }

void ad_cpu_check_cancelled() {
    if (is_cancelled(cancel_flag)) throw ad_cpu_cancelled{};
}

/* Choose how many elements one of `shares` takes at a time: a multiple of grain, and no more than GRAINS_MOST of it. */
static int64_t piece_size(int64_t n, int64_t grain, int shares) {
    const int64_t most = grain < INT64_MAX / GRAINS_MOST ? grain * GRAINS_MOST : grain;
    const int64_t size = n / shares + (n % shares != 0);
    return size >= most ? most : (size + grain - 1) / grain * grain;
}

static void run_shared(int threads) {
    pthread_mutex_lock(&g.mutex);
    g.generation++;
    g.wanted = threads - 1;
    pthread_cond_broadcast(&g.wake);
    pthread_mutex_unlock(&g.mutex);
    work(&g.current);
    pthread_mutex_lock(&g.mutex);
    g.wanted = 0; /* who has not come yet finds nothing left */
    while (g.busy > 0) pthread_cond_wait(&g.done, &g.mutex);
    pthread_mutex_unlock(&g.mutex);
}

void ad_cpu_parallel_run(int64_t n, int64_t grain, void (*body)(void *, int64_t, int64_t), void *context) {
    int threads = ad_cpu_parallel_threads();
    if (n <= 0) return;
    if (threads < 2 || pthread_mutex_trylock(&g.owner) != 0) {
        run_alone(n, piece_size(n, grain, 1), body, context);
        return;
    }
    g.current.body = body;
    g.current.context = context;
    g.current.n = n;
    g.current.piece = piece_size(n, grain, threads * PIECES_PER_THREAD);
    g.current.cancelled = cancel_flag;
    g.current.next.store(0, std::memory_order_relaxed);
    g.current.given_up = false;
    run_shared(threads);
    const std::exception_ptr why = std::exchange(g.current.why, nullptr);
    pthread_mutex_unlock(&g.owner);
    if (why) std::rethrow_exception(why);
}
