/* The states of threads in the fast reductions, which take several elements at once, straight from memory. In
 * take_all<Run>(x, index, step) x holds runs of Run neighbours: the first run begins at index, the next ones step
 * further on. */
#ifndef AD_KERNELS_CUDA_REDUCE_STATES_CUH
#define AD_KERNELS_CUDA_REDUCE_STATES_CUH

#include "kernels/accumulate.h"
#include "kernels/cuda/reduce/fold.cuh"

namespace ad {
inline namespace AD_ISA {

/* ---- elements and results ---- */

__device__ inline float fold_float(half x) {
    float r;
    asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(x.bits));
    return r;
}
template <class T, class S> __device__ T fold_cast(S x) {
    if constexpr (same<S, half>) return T(fold_float(x));
    else return cast<T>(x);
}
template <class T> __device__ T fold_initial(const ad_fold &f) {
    T r;
    memcpy(&r, f.initial, sizeof r);
    return r;
}
/* A result computed in R, as the type that the plan wants. */
template <class R> __device__ void fold_store(const ad_fold &f, char *to, R r) {
    if constexpr (same<R, float>) {
        if (f.narrow == AD_FOLD_HALF) *reinterpret_cast<half *>(to) = half(r);
        else if (f.narrow == AD_FOLD_BFLOAT16) *reinterpret_cast<bfloat16 *>(to) = bfloat16(r);
        else *reinterpret_cast<R *>(to) = r;
    } else {
        *reinterpret_cast<R *>(to) = r;
    }
}
/* Pairwise. */
template <int N, class T> __device__ __forceinline__ T fold_tree(const T *x) {
    if constexpr (N == 1) return x[0];
    else return fold_tree<N / 2>(x) + fold_tree<N - N / 2>(x + N / 2);
}

/* ---- sums ---- */

/* S to the sum's type T. Small integers are added in 32 bits as long as that is safe. */
template <class S, class T> struct sum_state {
    using element = S;
    using leaf = conditional_t<same<T, int64_t> && sizeof(S) <= 2, int32_t, T>;
    T s;
    __device__ void init() { s = T(0); }
    template <int Run, int N> __device__ void take_all(const S (&x)[N], int64_t, int64_t, const ad_fold &) {
        leaf y[N];
#pragma unroll
        for (int i = 0; i < N; i++) y[i] = fold_cast<leaf>(x[i]);
        s = s + T(fold_tree<N>(y));
    }
    __device__ void take(S x, int64_t, const ad_fold &) { s = s + fold_cast<T>(x); }
    __device__ void merge(const sum_state &o) { s = s + o.s; }
    __device__ void finish(const ad_fold &f, char *to) {
        T r = s;
        if (f.flags & AD_FOLD_INITIAL) r = fold_initial<T>(f) + r;
        if (!(f.flags & AD_FOLD_DIVIDE)) return fold_store(f, to, r);
        if constexpr (is_int<T>) fold_store(f, to, double(r) / f.divisor);
        else fold_store(f, to, divided(r, part_t<T>(f.divisor)));
    }
};

template <class S, class T> struct product_state {
    using element = S;
    T s;
    __device__ void init() { s = T(1); }
    template <int Run, int N> __device__ void take_all(const S (&x)[N], int64_t, int64_t, const ad_fold &) {
        T p = fold_cast<T>(x[0]);
#pragma unroll
        for (int i = 1; i < N; i++) p = p * fold_cast<T>(x[i]);
        s = s * p;
    }
    __device__ void take(S x, int64_t, const ad_fold &) { s = s * fold_cast<T>(x); }
    __device__ void merge(const product_state &o) { s = s * o.s; }
    __device__ void finish(const ad_fold &f, char *to) {
        fold_store(f, to, f.flags & AD_FOLD_INITIAL ? fold_initial<T>(f) * s : s);
    }
};

/* Sum and number of those that are not NaN. */
template <class S, bool Divided> struct nansum_state {
    using element = S;
    using T = compute_t<S>;
    T s;
    int64_t n;
    __device__ void init() { s = T(0), n = 0; }
    template <int Run, int N> __device__ void take_all(const S (&x)[N], int64_t, int64_t, const ad_fold &) {
        T y[N];
        int m = 0;
#pragma unroll
        for (int i = 0; i < N; i++) {
            y[i] = fold_cast<T>(x[i]);
            bool nan = is_nan(y[i]);
            y[i] = nan ? T(0) : y[i];
            m += nan ? 0 : 1;
        }
        s = s + fold_tree<N>(y);
        if (Divided) n += m;
    }
    __device__ void take(S x, int64_t i, const ad_fold &f) {
        S one[1] = {x};
        take_all<1>(one, i, 0, f);
    }
    __device__ void merge(const nansum_state &o) { s = s + o.s, n += o.n; }
    __device__ void finish(const ad_fold &f, char *to) {
        if (Divided) return fold_store(f, to, divided(s, part_t<T>(n)));
        fold_store(f, to, f.flags & AD_FOLD_INITIAL ? fold_initial<T>(f) + s : s);
    }
};

/* ---- counts, any, all ---- */

template <class S> struct count_state {
    using element = S;
    int64_t n;
    static __device__ bool nonzero(S x) {
        if constexpr (same<S, half>) return (x.bits & 0x7fff) != 0;
        else return is_true(x);
    }
    __device__ void init() { n = 0; }
    template <int Run, int N> __device__ void take_all(const S (&x)[N], int64_t, int64_t, const ad_fold &f) {
        int m = 0;
#pragma unroll
        for (int i = 0; i < N; i++) m += nonzero(x[i]) ? 1 : 0;
        n += f.flags & AD_FOLD_INVERT ? N - m : m;
    }
    __device__ void take(S x, int64_t i, const ad_fold &f) {
        S one[1] = {x};
        take_all<1>(one, i, 0, f);
    }
    __device__ void merge(const count_state &o) { n += o.n; }
    __device__ void finish(const ad_fold &f, char *to) {
        if (f.flags & AD_FOLD_TRUTH) return fold_store(f, to, uint8_t(n != 0));
        if (f.flags & AD_FOLD_NONE) return fold_store(f, to, uint8_t(n == 0));
        int64_t r = f.flags & AD_FOLD_INITIAL ? fold_initial<int64_t>(f) + n : n;
        if (f.flags & AD_FOLD_DIVIDE) return fold_store(f, to, double(r) / f.divisor);
        fold_store(f, to, r);
    }
};

/* ---- extremes, as largest of integers in whose order the elements are ---- */

/* W: the element's bits. Float: they are those of a floating-point number; NaN comes last, or first where it is to be
 * skipped. */
template <class W, bool Float, bool Place> struct order_of {
    using K = conditional_t<sizeof(W) == 8, int64_t, int32_t>;
    static constexpr K LAST = K(unsigned_t<K>(~unsigned_t<K>(0)) >> 1), FIRST = -LAST - 1;
    static constexpr K MAGNITUDE = K((uint64_t(1) << (sizeof(W) * 8 - 1)) - 1);

    static __device__ K key(W x, const ad_fold &f) {
        if constexpr (same<W, bool8>) return K(bool(x)) ^ K(f.order);
        else if constexpr (!Float) return K(W(x ^ W(f.order)));
        else {
            K b = K(x), magnitude = b & MAGNITUDE;
            if (Place && magnitude == 0) b = 0;
            K k = (b ^ ((b >> (sizeof(K) * 8 - 1)) & MAGNITUDE)) ^ K(f.order);
            return magnitude > K(f.infinity) ? (f.flags & AD_FOLD_SKIP ? FIRST : LAST) : k;
        }
    }
    static __device__ W value(K k, const ad_fold &f) {
        if constexpr (same<W, bool8>) return bool8(k != K(f.order));
        else if constexpr (!Float) return W(W(k) ^ W(f.order));
        else {
            if (k == LAST || k == FIRST) return W(f.infinity | (f.infinity & (0 - f.infinity)) >> 1);
            k ^= K(f.order);
            return W(k ^ ((k >> (sizeof(K) * 8 - 1)) & MAGNITUDE));
        }
    }
    template <int N> static __device__ K largest(K (&k)[N], const W (&x)[N], const ad_fold &f) {
#pragma unroll
        for (int i = 0; i < N; i++) k[i] = key(x[i], f);
        K r = k[0];
#pragma unroll
        for (int i = 1; i < N; i++) r = k[i] > r ? k[i] : r;
        return r;
    }
};

template <class W, bool Float> struct top_state {
    using element = W;
    using order = order_of<W, Float, false>;
    typename order::K k;
    __device__ void init() { k = order::FIRST; }
    template <int Run, int N> __device__ void take_all(const W (&x)[N], int64_t, int64_t, const ad_fold &f) {
        typename order::K all[N], m = order::largest(all, x, f);
        k = m > k ? m : k;
    }
    __device__ void take(W x, int64_t i, const ad_fold &f) {
        W one[1] = {x};
        take_all<1>(one, i, 0, f);
    }
    __device__ void merge(const top_state &o) { k = o.k > k ? o.k : k; }
    __device__ void finish(const ad_fold &f, char *to) {
        if (f.flags & AD_FOLD_INITIAL) take(fold_initial<W>(f), 0, f);
        *reinterpret_cast<W *>(to) = order::value(k, f);
    }
};

template <class W, bool Float> struct place_state {
    using element = W;
    using order = order_of<W, Float, true>;
    using K = typename order::K;
    static constexpr bool FLOAT = Float;
    K k;
    int64_t i;
    __device__ void init() { k = order::FIRST, i = -1; }
    /* Elements come in the order of their indices. */
    template <int Run, int N> __device__ void take_all(const W (&x)[N], int64_t index, int64_t step, const ad_fold &f) {
        K all[N], m = order::largest(all, x, f);
        if (m <= k && (Float || i >= 0)) return;
        int at = N - 1;
#pragma unroll
        for (int j = N - 2; j >= 0; j--) at = all[j] == m ? j : at;
        if (Float && m == order::FIRST) return;
        k = m;
        i = index + at / Run * step + at % Run;
    }
    __device__ void take_key(K o, int64_t index) {
        if (index < 0 || o < k || (o == k && uint64_t(index) >= uint64_t(i))) return;
        k = o;
        i = index;
    }
    /* Take elements, which come in any order. */
    __device__ void take(W x, int64_t index, const ad_fold &f) {
        K o = order::key(x, f);
        if (!Float || o != order::FIRST) take_key(o, index);
    }
    __device__ void merge(const place_state &o) { take_key(o.k, o.i); }
    __device__ void finish(const ad_fold &, char *to) { *reinterpret_cast<int64_t *>(to) = i; }
};

/* ---- variances ---- */

/* Elements come together in groups whose mean and squares are taken first: one division for each. */
template <class S> struct spread_state {
    using element = S;
    using T = compute_t<S>;
    using R = part_t<T>;
    Var<T> v;
    __device__ void init() { v.init(); }
    template <int Run, int N> __device__ void take_all(const S (&x)[N], int64_t, int64_t, const ad_fold &f) {
        const bool skip = f.flags & AD_FOLD_SKIP;
        T y[N], sum[N];
        bool in[N];
        R m = 0, squares = 0;
#pragma unroll
        for (int i = 0; i < N; i++) {
            y[i] = fold_cast<T>(x[i]);
            in[i] = !(skip && is_nan(y[i]));
            sum[i] = in[i] ? y[i] : T(0);
            m += in[i] ? R(1) : R(0);
        }
        if (m == 0) return;
        Var<T> group;
        group.n = m;
        group.mean = scaled(fold_tree<N>(sum), m == R(N) ? R(1) / R(N) : R(1) / m);
#pragma unroll
        for (int i = 0; i < N; i++) {
            T d = y[i] - group.mean;
            squares += in[i] ? product_real(d, d) : R(0);
        }
        group.m2 = squares;
        v.merge(group);
    }
    __device__ void take(S x, int64_t i, const ad_fold &f) {
        S one[1] = {x};
        take_all<1>(one, i, 0, f);
    }
    __device__ void merge(const spread_state &o) { v.merge(o.v); }
    __device__ void finish(const ad_fold &f, char *to) {
        R r = f.flags & AD_FOLD_SKIP && !(v.n > R(f.ddof)) ? adm::nan<R>() : v.variance(f.ddof);
        fold_store(f, to, f.flags & AD_FOLD_ROOT ? adm::sqrt(r) : r);
    }
};

} // namespace AD_ISA
} // namespace ad
#endif
