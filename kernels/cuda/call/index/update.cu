/* scatter that adds or keeps the greater or smaller: many threads may come to one element. */
#include "kernels/cuda/call/index/index.h"

#include "kernels/cuda/backend/device.h"
#include "kernels/math.h"
#include "kernels/math_complex.h"

namespace {

using namespace ad;

enum { ADD = 1, MAXIMUM = 2 };
constexpr int THREADS = 256;
constexpr int LOCKS = 1 << 12;

template <class S> __device__ S combined(S old, S v, int mode) {
    using C = compute_t<S>;
    const C a = C(old), b = C(v);
    if (mode == ADD) return cast<S>(C(adm::add(a, b)));
    return cast<S>(mode == MAXIMUM ? C(adm::maximum(a, b)) : C(adm::minimum(a, b)));
}

/* Combine by exchanging the 32 or 64 bits around the element until nobody came between. */
template <class S> __device__ void exchange(S *p, S v, int mode) {
    if constexpr (sizeof(S) == 8) {
        unsigned long long *word = reinterpret_cast<unsigned long long *>(p), seen = *word, old;
        do {
            old = seen;
            const unsigned long long wanted = bit_cast<unsigned long long>(combined(bit_cast<S>(old), v, mode));
            if (wanted == old) return;
            seen = atomicCAS(word, old, wanted);
        } while (seen != old);
    } else {
        using bits = typename conditional<sizeof(S) == 1, uint8_t,
                                          typename conditional<sizeof(S) == 2, uint16_t, uint32_t>::type>::type;
        const uintptr_t at = reinterpret_cast<uintptr_t>(p);
        unsigned *word = reinterpret_cast<unsigned *>(at & ~uintptr_t(3)), seen = *word, old;
        const int shift = int(at & 3) * 8;
        const unsigned mask = unsigned(bits(~bits(0))) << shift;
        do {
            old = seen;
            const bits wanted = bit_cast<bits>(combined(bit_cast<S>(bits(old >> shift)), v, mode));
            const unsigned next = (old & ~mask) | unsigned(wanted) << shift;
            if (next == old) return;
            seen = atomicCAS(word, old, next);
        } while (seen != old);
    }
}

template <class S> __device__ void update(S *p, S v, int mode, int *) {
    if (mode == ADD) {
        if constexpr (same<S, float> || same<S, double>) return void(atomicAdd(p, v));
        else if constexpr (is_int<compute_t<S>> && sizeof(S) == 4)
            return void(atomicAdd(reinterpret_cast<unsigned *>(p), unsigned(v)));
        else if constexpr (is_int<compute_t<S>> && sizeof(S) == 8)
            return void(atomicAdd(reinterpret_cast<unsigned long long *>(p), (unsigned long long)v));
    }
    exchange(p, v, mode);
}

/* A pair is no atomic unit: sums of the parts are independent, comparisons are made behind a lock. */
template <class T> __device__ void update(complex<T> *p, complex<T> v, int mode, int *locks) {
    if (mode == ADD) {
        atomicAdd(&p->re, v.re);
        atomicAdd(&p->im, v.im);
        return;
    }
    int *lock = locks + (reinterpret_cast<uintptr_t>(p) / sizeof(T)) % LOCKS;
    volatile T *part = reinterpret_cast<volatile T *>(p);
    for (bool done = false; !done;) {
        if (atomicCAS(lock, 0, 1) != 0) continue;
        __threadfence();
        const complex<T> next = combined(complex<T>(part[0], part[1]), v, mode);
        part[0] = next.re;
        part[1] = next.im;
        __threadfence();
        atomicExch(lock, 0);
        done = true;
    }
}

template <class S> __global__ void __launch_bounds__(THREADS)
    update_units(const __grid_constant__ ad_cuda_selection s, int mode, int *locks) {
    const uint32_t unit = blockIdx.x * uint32_t(THREADS) + threadIdx.x;
    if (unit >= s.places * s.words || *s.stop != 0) return;
    int64_t plain, indexed, entry[AD_SELECTION_INDICES];
    locate(s, unit, &plain, &indexed, entry);
#pragma unroll
    for (int a = 0; a < AD_SELECTION_INDICES; a++) {
        if (a >= s.k) break;
        if (!index_offset(s, a, *reinterpret_cast<const int64_t *>(s.index[a].data + entry[a]), &indexed)) return;
    }
    update(reinterpret_cast<S *>(s.indexed + indexed), *reinterpret_cast<const S *>(s.plain + plain), mode, locks);
}

int make_locks(ad_call *c, int **out) {
    *out = static_cast<int *>(ad_call_workspace(c, LOCKS * sizeof(int)));
    if (!*out) return AD_E_MEMORY;
    return ad_cuda_status(cudaMemsetAsync(*out, 0, LOCKS * sizeof(int), c->stream->cuda), "clearing locks", c->fault);
}

} // namespace

int ad_cuda_update(ad_call *c, const ad_cuda_selection *s, int dtype, int mode) {
    const int64_t n = int64_t(s->places) * s->words;
    int *locks = nullptr;
    if ((dtype == AD_COMPLEX64 || dtype == AD_COMPLEX128) && mode != ADD) {
        const int status = make_locks(c, &locks);
        if (status) return status;
    }
    visit(dtype, [&](auto t) {
        using S = typename decltype(t)::type;
        update_units<S><<<int((n + THREADS - 1) / THREADS), THREADS, 0, c->stream->cuda>>>(*s, mode, locks);
    });
    return ad_cuda_launched("scatter", c->fault);
}
