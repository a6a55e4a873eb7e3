/* Every row of reduction.def by its accumulator, for inputs of any type and under any mask. There is one kernel for
 * each type computed in, and elements are converted as they are read. */
#ifndef AD_KERNELS_CUDA_REDUCE_ANY_CUH
#define AD_KERNELS_CUDA_REDUCE_ANY_CUH

#include "kernels/accumulate.h"
#include "kernels/cuda/reduce/states.cuh"
#include "kernels/ufunc.h"
#include "protocol/rows_reduction.h"

namespace ad {
inline namespace AD_ISA {

/* Convert v to T, by way of the loop's type where that is narrower than T. */
template <class T, class V> __device__ T fold_enter(V v, int through) {
    if constexpr (same<T, float>) {
        if (through == AD_FOLD_HALF) return float(cast<half>(v));
        if (through == AD_FOLD_BFLOAT16) return float(cast<bfloat16>(v));
    }
    if constexpr (same<T, uint8_t>)
        if (through == AD_FOLD_BOOL) return cast<bool>(v) ? 1 : 0;
    return cast<T>(v);
}

/* Several elements, of those that are wanted. Integers come as 64 bits, real numbers as double, which holds all. */
template <class T, int N>
__device__ void fold_fetch(T (&x)[N], const char *const (&p)[N], const bool (&want)[N], int dtype, int through) {
    int64_t i[N];
    double re[N], im[N];
    if (dtype == dtype_of<T>::value && through == AD_FOLD_AS_IS) {
#pragma unroll
        for (int k = 0; k < N; k++)
            if (want[k]) x[k] = fold_load<T>(p[k]);
        return;
    }
#define AD_FETCH(NAME, ...) \
    case AD_##NAME: _Pragma("unroll") for (int k = 0; k < N; k++) if (want[k]) __VA_ARGS__; break
    switch (dtype) {
        AD_FETCH(BOOL, i[k] = *p[k] != 0);
        AD_FETCH(INT8, i[k] = fold_load<int8_t>(p[k]));
        AD_FETCH(INT16, i[k] = fold_load<int16_t>(p[k]));
        AD_FETCH(INT32, i[k] = fold_load<int32_t>(p[k]));
        AD_FETCH(UINT8, i[k] = fold_load<uint8_t>(p[k]));
        AD_FETCH(UINT16, i[k] = fold_load<uint16_t>(p[k]));
        AD_FETCH(UINT32, i[k] = fold_load<uint32_t>(p[k]));
        AD_FETCH(FLOAT16, re[k] = fold_float(fold_load<half>(p[k])));
        AD_FETCH(BFLOAT16, re[k] = float(fold_load<bfloat16>(p[k])));
        AD_FETCH(FLOAT32, re[k] = fold_load<float>(p[k]));
        AD_FETCH(FLOAT64, re[k] = fold_load<double>(p[k]));
        AD_FETCH(COMPLEX64, re[k] = fold_load<float>(p[k]), im[k] = fold_load<float>(p[k] + 4));
        AD_FETCH(COMPLEX128, re[k] = fold_load<double>(p[k]), im[k] = fold_load<double>(p[k] + 8));
    default: /* 64-bit integers */
#pragma unroll
        for (int k = 0; k < N; k++)
            if (want[k]) i[k] = fold_load<int64_t>(p[k]);
    }
#undef AD_FETCH
#pragma unroll
    for (int k = 0; k < N; k++) {
        if (!want[k]) continue;
        if (dtype == AD_UINT64) x[k] = fold_enter<T>(uint64_t(i[k]), through);
        else if (dtype < AD_FLOAT16) x[k] = fold_enter<T>(i[k], through);
        else if (dtype < AD_COMPLEX64) x[k] = fold_enter<T>(re[k], through);
        else if constexpr (is_complex<T>) x[k] = cast<T>(complex<double>(re[k], im[k]));
        else if (through == AD_FOLD_BOOL) x[k] = T(re[k] != 0 || im[k] != 0);
        else x[k] = fold_enter<T>(re[k], through);
    }
}

/* A<T> with its result as O. */
template <template <class> class A, class T, class O> struct any_state {
    A<T> a;
    __device__ void init() { a.init(); }
    __device__ void merge(const any_state &o) { a.merge(o.a); }
    __device__ void take(T x, int64_t index) {
        if constexpr (INDEXED<A<T>>) a.take(x, index);
        else a.take(x);
    }
    __device__ void finish(const ad_fold &f, char *to) {
        if (f.flags & AD_FOLD_INITIAL) {
            any_state first;
            first.init();
            first.take(fold_initial<T>(f), -1);
            a.merge(first.a);
        }
        O r = a.template result<O>(f.ddof);
        if constexpr (is_float<O>) r = f.flags & AD_FOLD_ROOT ? adm::sqrt(r) : r;
        fold_store(f, to, r);
    }
};

template <template <class> class A, class T, class O> struct any_work : fold_work {
    using state = any_state<A, T, O>;
    static constexpr int SIDE = 1, DEPTH = 4;

    static __device__ void run(const ad_fold &f, state (&a)[1], const char *in, const char *mask,
                               const fold_part &part) {
        const int64_t step = part.step;
#pragma unroll 1
        for (int64_t i = part.first; i < part.end; i += DEPTH * step) {
            const char *p[DEPTH];
            bool want[DEPTH];
            T x[DEPTH];
#pragma unroll
            for (int u = 0; u < DEPTH; u++) {
                const int64_t j = i + u * step;
                fold_place at = {j * f.over[0].in, j * f.over[0].mask, 0};
                if (f.nover > 1) {
                    at = {0, 0, 0};
                    fold_locate(f.over, f.nover, j, &at);
                }
                p[u] = in + at.in;
                want[u] = j < part.end && (!f.mask || mask[at.mask] != 0);
            }
            fold_fetch(x, p, want, f.input, f.through);
#pragma unroll
            for (int u = 0; u < DEPTH; u++)
                if (want[u]) a[0].take(x[u], i + u * step);
        }
    }
};

/* Rows that the plan replaces by others need no kernel. Deviations are roots of variances, integers have no NaN, and
 * truth is computed in bytes. */
template <int Traits, int Rule, class T> constexpr bool fold_has() {
    return (rule<Rule>::loops >> dtype_of<T>::value & 1) && !(Traits & AD_F_ROOT) &&
           !(Traits & AD_F_SKIP && is_int<T>)&&(!(Traits & AD_F_TRUTH) || same<T, uint8_t>);
}
template <int Traits, template <class> class A, int Rule, class T> ad_fold_kernel fold_any() {
    if constexpr (fold_has<Traits, Rule, T>()) {
        using O = typename coded<rule<Rule>::out0, T>::type;
        return fold_kernel<any_work<A, T, conditional_t<same<O, bool8>, uint8_t, O>>>();
    } else {
        return {nullptr, 0};
    }
}
template <class T> ad_fold_kernel fold_any_row(int row) {
    switch (row) {
#define AD_REDUCTION(id, name, rulename, accumulator, empty, domain, plain, kernel, traits, ...) \
    case id:                                                                                     \
        return fold_any<(traits), accumulator, AD_RULE_##rulename, T>();
#include "protocol/reduction.def"
#undef AD_REDUCTION
    default: return {nullptr, 0};
    }
}

} // namespace AD_ISA
} // namespace ad
#endif
