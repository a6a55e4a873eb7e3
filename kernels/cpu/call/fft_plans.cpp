#include "kernels/cpu/call/fft_plans.h"
#include "kernels/cpu/kernels.h"

#include <mutex>
#include <new>

struct ad_fft_kept {
    ad_fft_plan key;
    const ad_fft_kernels *kernels; /* kernels that made the plan */
    const ad_device *device;       /* that counts the plan */
    void *plan;                    /* NULL: none here */
    uint64_t used;                 /* when it was asked for last */
    int users;
};

namespace {

constexpr int MOST_PLANS = 64;
constexpr int64_t MOST_POINTS = 1 << 23; /* of all plans that nobody uses; a plan takes some 16 bytes for each */

std::mutex lock;
ad_fft_kept table[MOST_PLANS];
uint64_t now;

bool same_key(const ad_fft_plan *a, const ad_fft_plan *b) {
    return a->form == b->form && a->wide == b->wide && a->n == b->n;
}

void destroy(ad_fft_kept *k) {
    if (k->plan) k->kernels->destroy(k->key.form, k->key.wide, k->plan);
    k->plan = nullptr;
}

/* The plan, or the place that has been idle longest; NULL: all are in use. */
ad_fft_kept *find(const ad_fft_plan *p, const ad_fft_kernels *kernels) {
    ad_fft_kept *idle = nullptr;
    for (ad_fft_kept &k : table) {
        if (k.plan && k.kernels == kernels && same_key(&k.key, p)) return &k;
        if (k.users == 0 && (!idle || k.used < idle->used)) idle = &k;
    }
    if (idle) destroy(idle);
    return idle;
}

/* Destroy the plans that have been idle longest, until the others are small enough. */
void destroy_surplus() {
    for (;;) {
        ad_fft_kept *oldest = nullptr;
        int64_t points = 0;
        for (ad_fft_kept &k : table) {
            if (!k.plan || k.users > 0) continue;
            points += k.key.n;
            if (!oldest || k.used < oldest->used) oldest = &k;
        }
        if (points <= MOST_POINTS) return;
        destroy(oldest);
    }
}

} // namespace

int ad_fft_acquire(const ad_device *device, const ad_fft_plan *p, ad_fft_kept **out, ad_fault *fault) {
    const std::lock_guard<std::mutex> hold(lock);
    const ad_fft_kernels *kernels = ad_cpu_kernels_get()->fft;
    ad_fft_kept *k = find(p, kernels);
    if (!k) return ad__fault(fault, AD_E_MEMORY, "out of plans for Fourier transforms");
    if (!k->plan) k->device = device;
    try {
        if (!k->plan) k->plan = kernels->make(p->form, p->wide, p->n);
    } catch (const std::bad_alloc &) {
        return ad__fault(fault, AD_E_MEMORY, "no memory for a Fourier transform of %lld points",
                         static_cast<long long>(p->n));
    }
    k->key = *p;
    k->kernels = kernels;
    k->used = ++now;
    k->users++;
    *out = k;
    return 0;
}

void ad_fft_plans_count(const ad_device *device, ad_plans *out) {
    std::lock_guard<std::mutex> guard(lock);
    *out = {0, MOST_PLANS, 0};
    for (const ad_fft_kept &k : table) out->count += k.plan && k.device == device;
}

void ad_fft_release(ad_fft_kept *k) {
    const std::lock_guard<std::mutex> hold(lock);
    if (--k->users == 0) destroy_surplus();
}

void ad_fft_run(const ad_fft_kept *k, const ad_fft_lines *lines) {
    k->kernels->run(k->key.wide, k->key.n, k->plan, lines);
}
