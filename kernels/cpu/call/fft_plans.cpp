#include "kernels/cpu/call/fft_plans.h"

#include <fftw3.h>
#include <mutex>
#include <string.h>

struct ad_fft_kept {
    ad_fft_plan key;
    void *plan;    /* fftw_plan or fftwf_plan; NULL: none here */
    uint64_t used; /* when it was asked for last */
    int users;
};

namespace {

constexpr int MOST_PLANS = 64;
constexpr uintptr_t ALIGNMENT = 16; /* what fftw_alignment_of counts from */

std::mutex lock; /* for the table, and for FFTW, which plans on one thread at a time */
ad_fft_kept table[MOST_PLANS];
uint64_t now;

unsigned flags_of(const ad_fft_plan *p) {
    return FFTW_ESTIMATE | (p->in_place ? 0u : FFTW_PRESERVE_INPUT) | (p->aligned ? 0u : FFTW_UNALIGNED);
}

fftw_iodim64 points_of(const ad_fft_plan *p) { return {p->n, p->from_step, p->to_step}; }
fftw_iodim64 lines_of(const ad_fft_plan *p) { return {p->lines, p->from_next, p->to_next}; }

/* A planner that only estimates does not look at the arrays, but at where they are. */
char *somewhere(int which) {
    alignas(ALIGNMENT) static char places[2][ALIGNMENT];
    return places[which];
}

template <class R, class C, class D> struct precision {
    D (*complex)(int, const fftw_iodim64 *, int, const fftw_iodim64 *, C *, C *, int, unsigned);
    D (*from_real)(int, const fftw_iodim64 *, int, const fftw_iodim64 *, R *, C *, unsigned);
    D (*to_real)(int, const fftw_iodim64 *, int, const fftw_iodim64 *, C *, R *, unsigned);

    D make(const ad_fft_plan *p) const {
        const fftw_iodim64 points = points_of(p), lines = lines_of(p);
        const int many = p->lines > 1 ? 1 : 0;
        void *from = somewhere(0), *to = somewhere(p->in_place ? 0 : 1);
        switch (p->kind) {
        case AD_FFT_FROM_REAL:
            return from_real(1, &points, many, &lines, static_cast<R *>(from), static_cast<C *>(to), flags_of(p));
        case AD_FFT_TO_REAL:
            return to_real(1, &points, many, &lines, static_cast<C *>(from), static_cast<R *>(to), flags_of(p));
        default:
            return complex(1, &points, many, &lines, static_cast<C *>(from), static_cast<C *>(to),
                           p->kind == AD_FFT_FORWARD ? FFTW_FORWARD : FFTW_BACKWARD, flags_of(p));
        }
    }
};

constexpr precision<double, fftw_complex, fftw_plan> wide = {fftw_plan_guru64_dft, fftw_plan_guru64_dft_r2c,
                                                             fftw_plan_guru64_dft_c2r};
constexpr precision<float, fftwf_complex, fftwf_plan> narrow = {fftwf_plan_guru64_dft, fftwf_plan_guru64_dft_r2c,
                                                                fftwf_plan_guru64_dft_c2r};

void *make(const ad_fft_plan *p) { return p->wide ? static_cast<void *>(wide.make(p)) : narrow.make(p); }

void destroy(ad_fft_kept *k) {
    if (k->plan == nullptr) return;
    if (k->key.wide) fftw_destroy_plan(static_cast<fftw_plan>(k->plan));
    else fftwf_destroy_plan(static_cast<fftwf_plan>(k->plan));
    k->plan = nullptr;
}

/* The plan, or the place that has been idle longest; NULL: all are in use. */
ad_fft_kept *find(const ad_fft_plan *p) {
    ad_fft_kept *idle = nullptr;
    for (ad_fft_kept &k : table) {
        if (k.plan != nullptr && memcmp(&k.key, p, sizeof *p) == 0) return &k;
        if (k.users == 0 && (idle == nullptr || k.used < idle->used)) idle = &k;
    }
    if (idle != nullptr) destroy(idle);
    return idle;
}

} // namespace

int ad_fft_acquire(const ad_fft_plan *p, ad_fft_kept **out, ad_fault *fault) {
    const std::lock_guard<std::mutex> hold(lock);
    ad_fft_kept *k = find(p);
    if (k == nullptr) return ad__fault(fault, AD_E_MEMORY, "out of plans of FFTW");
    if (k->plan == nullptr) k->plan = make(p);
    if (k->plan == nullptr)
        return ad__fault(fault, AD_E_DEVICE, "FFTW has no plan for %lld points", static_cast<long long>(p->n));
    k->key = *p;
    k->used = ++now;
    k->users++;
    *out = k;
    return 0;
}

void ad_fft_plans_count(ad_plans *out) {
    std::lock_guard<std::mutex> guard(lock);
    *out = {0, MOST_PLANS, 0};
    for (const ad_fft_kept &k : table) out->count += k.plan != nullptr;
}

void ad_fft_release(ad_fft_kept *k) {
    const std::lock_guard<std::mutex> hold(lock);
    k->users--;
}

void ad_fft_run(const ad_fft_kept *k, char *from, char *to) {
    void *const a = from, *const b = to;
    if (k->key.wide) {
        const fftw_plan p = static_cast<fftw_plan>(k->plan);
        switch (k->key.kind) {
        case AD_FFT_FROM_REAL: return fftw_execute_dft_r2c(p, static_cast<double *>(a), static_cast<fftw_complex *>(b));
        case AD_FFT_TO_REAL: return fftw_execute_dft_c2r(p, static_cast<fftw_complex *>(a), static_cast<double *>(b));
        default: return fftw_execute_dft(p, static_cast<fftw_complex *>(a), static_cast<fftw_complex *>(b));
        }
    }
    const fftwf_plan p = static_cast<fftwf_plan>(k->plan);
    switch (k->key.kind) {
    case AD_FFT_FROM_REAL: return fftwf_execute_dft_r2c(p, static_cast<float *>(a), static_cast<fftwf_complex *>(b));
    case AD_FFT_TO_REAL: return fftwf_execute_dft_c2r(p, static_cast<fftwf_complex *>(a), static_cast<float *>(b));
    default: return fftwf_execute_dft(p, static_cast<fftwf_complex *>(a), static_cast<fftwf_complex *>(b));
    }
}

bool ad_fft_aligned(const char *data, int64_t offset) {
    return (reinterpret_cast<uintptr_t>(data) + uintptr_t(offset)) % ALIGNMENT == 0;
}
