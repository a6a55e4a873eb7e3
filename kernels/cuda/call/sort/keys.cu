/* Passes over elements before and after they are sorted. */
#include "kernels/call_order.h"
#include "kernels/cuda/call/sort/sort.h"
#include "kernels/cuda/backend/device.h"

namespace {

using namespace ad;

constexpr int THREADS = 256, EACH = 4;

/* Call f(i) for all i below n: EACH of them by each thread, neighbouring ones by neighbouring threads. */
template <class F> __global__ void __launch_bounds__(THREADS) each_kernel(int64_t n, F f) {
    const int64_t first = int64_t(blockIdx.x) * (THREADS * EACH) + threadIdx.x;
    if (first + (EACH - 1) * THREADS < n) {
#pragma unroll
        for (int i = 0; i < EACH; i++) f(first + i * THREADS);
    } else
        for (int i = 0; i < EACH; i++)
            if (first + i * THREADS < n) f(first + i * THREADS);
}

template <class F> int each(ad_call *c, int64_t n, const F &f) {
    each_kernel<<<unsigned((n + THREADS * EACH - 1) / (THREADS * EACH)), THREADS, 0, c->stream->cuda>>>(n, f);
    return ad_cuda_launched("sorting", c->fault);
}

/* ---- keys ---- */

template <class S> constexpr int key_bits = sizeof(S) > 4 ? 64 : 32;
template <int Bits> struct key_of_bits { using type = uint32_t; };
template <> struct key_of_bits<64> { using type = uint64_t; };
template <class S> using own_key = typename key_of_bits<key_bits<S>>::type;

template <class S> struct to_values {
    const S *x;
    own_key<S> *keys;
    __device__ void operator()(int64_t i) const { keys[i] = order<S>::of(x[i]); }
};
template <class S> struct to_equals {
    const S *x;
    own_key<S> *keys;
    __device__ void operator()(int64_t i) const { keys[i] = order<S>::equal(x[i]); }
};

/* Numbers with a NaN have keys above all others. Their order is: NaN as the real part, with the imaginary part's key
 * below it; NaN and the real part; the imaginary part and NaN; NaN twice. The second key is 0 where the first says all.
 */
template <class T> struct pair_of_keys {
    using K = typename order<T>::key;
    K first, second;
    __device__ explicit pair_of_keys(complex<T> v) {
        const K re = order<T>::equal(v.re), im = order<T>::equal(v.im), nan = order<T>::nan;
        const int which = 2 * (re == nan) + (im == nan);
        first = which == 0 ? re : K(nan - 3 + which);
        second = which == 3 ? K(0) : which == 1 ? re : im;
    }
};
struct to_pair {
    const complex<float> *x;
    uint64_t *keys;
    __device__ void operator()(int64_t i) const {
        const pair_of_keys<float> p(x[i]);
        keys[i] = uint64_t(p.first) << 32 | p.second;
    }
};
struct to_first {
    const complex<double> *x;
    uint64_t *keys;
    bool second;
    __device__ void operator()(int64_t i) const {
        const pair_of_keys<double> p(x[i]);
        keys[i] = second ? p.second : p.first;
    }
};

template <class S> struct from_values {
    const own_key<S> *keys;
    S *out;
    __device__ void operator()(int64_t i) const { out[i] = order<S>::back(typename order<S>::key(keys[i])); }
};

/* ---- other passes ---- */

template <class U> struct flip {
    const U *x;
    U *out;
    __device__ void operator()(int64_t i) const { out[i] = U(x[i] ^ U(U(1) << (8 * sizeof(U) - 1))); }
};
struct truth {
    const uint8_t *x;
    uint8_t *out;
    __device__ void operator()(int64_t i) const { out[i] = x[i] != 0; }
};
struct counting {
    uint32_t *to;
    uint32_t start;
    __device__ void operator()(int64_t i) const { to[i] = start + uint32_t(i); }
};
struct widening {
    const uint32_t *from;
    int64_t first;
    int64_t *to;
    __device__ void operator()(int64_t i) const { to[i] = first + from[i]; }
};
template <class W> struct picking {
    const W *from;
    const uint32_t *index;
    W *to;
    int64_t n, rows;
    __device__ void operator()(int64_t i) const {
        const int64_t row = rows == 1 ? 0 : i / n;
        to[i] = from[row * n + index[i]];
    }
};

template <class U> int flip_all(ad_call *c, const char *x, int64_t n, char *out) {
    return each(c, n, flip<U>{reinterpret_cast<const U *>(x), reinterpret_cast<U *>(out)});
}
template <class W>
int pick_all(ad_call *c, const char *from, const uint32_t *index, int64_t rows, int64_t n, char *to) {
    return each(c, rows * n, picking<W>{reinterpret_cast<const W *>(from), index, reinterpret_cast<W *>(to), n, rows});
}

} // namespace

int ad_cuda_keys(ad_call *c, int dtype, int which, const char *x, int64_t n, void *keys) {
    return visit(dtype, [&](auto t) {
        using S = typename decltype(t)::type;
        const S *from = reinterpret_cast<const S *>(x);
        if constexpr (same<S, complex<float>>) return each(c, n, to_pair{from, static_cast<uint64_t *>(keys)});
        else if constexpr (same<S, complex<double>>)
            return each(c, n, to_first{from, static_cast<uint64_t *>(keys), which == AD_KEYS_SECOND});
        else if (order<S>::real && which != AD_KEYS_VALUES)
            return each(c, n, to_equals<S>{from, static_cast<own_key<S> *>(keys)});
        else return each(c, n, to_values<S>{from, static_cast<own_key<S> *>(keys)});
    });
}

int ad_cuda_from_keys(ad_call *c, int dtype, const void *keys, int64_t n, char *out) {
    return visit(dtype, [&](auto t) {
        using S = typename decltype(t)::type;
        if constexpr (is_complex<S>) return ad__fault(c->fault, AD_E_UNSUPPORTED, "sort: complex numbers have no keys");
        else return each(c, n, from_values<S>{static_cast<const own_key<S> *>(keys), reinterpret_cast<S *>(out)});
    });
}

int ad_cuda_carry(ad_call *c, int dtype, const char *x, int64_t n, char *out, bool back) {
    if (dtype == AD_BOOL && back) return 0;
    if (dtype == AD_BOOL)
        return each(c, n, truth{reinterpret_cast<const uint8_t *>(x), reinterpret_cast<uint8_t *>(out)});
    switch (itemsize(dtype)) {
    case 1: return flip_all<uint8_t>(c, x, n, out);
    case 2: return flip_all<uint16_t>(c, x, n, out);
    case 4: return flip_all<uint32_t>(c, x, n, out);
    default: return flip_all<uint64_t>(c, x, n, out);
    }
}

int ad_cuda_count_up(ad_call *c, uint32_t *to, int64_t n, int64_t start) {
    return each(c, n, counting{to, uint32_t(start)});
}

int ad_cuda_widen(ad_call *c, const uint32_t *from, int64_t n, int64_t first, int64_t *to) {
    return each(c, n, widening{from, first, to});
}

int ad_cuda_pick(ad_call *c, int size, const char *from, const uint32_t *index, int64_t rows, int64_t n, char *to) {
    if (size == 16) return pick_all<complex<uint64_t>>(c, from, index, rows, n, to);
    return pick_all<uint64_t>(c, from, index, rows, n, to);
}
