/* Largest and smallest elements, and where they are. */
#include "kernels/cuda/reduce/ways.cuh"

using namespace ad;

namespace {

/* The largest key of N elements. Floats are compared as such, by one instruction each. */
template <class A, class S, int N> __device__ typename A::K largest_key(const S (&x)[N], const ad_fold &f) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    if constexpr (same<A, place_state<int32_t, true>>)
        if (!(f.flags & AD_FOLD_SKIP)) {
            const int32_t turned = int32_t(f.order) & ~A::order::MAGNITUDE;
            float most = __int_as_float(x[0] ^ turned);
#pragma unroll
            for (int i = 1; i < N; i++)
                asm("max.NaN.f32 %0, %0, %1;" : "+f"(most) : "f"(__int_as_float(x[i] ^ turned)));
            return A::order::key(__float_as_int(most) ^ turned, f);
        }
#endif
    typename A::K all[N];
    return A::order::largest(all, x, f);
}

/* Find the largest element of one run. A thread remembers the chunk of the first one, and the chunk of the first of all
 * is searched in the end. */
template <class A> struct place_work : wide_work<A> {
    using W = wide_work<A>;
    using S = typename A::element;
    using order = typename A::order;
    static constexpr int WIDTH = W::WIDTH, DEPTH = W::DEPTH;

    static __device__ void see_chunk(A &a, uint4 v, int64_t index, const ad_fold &f) {
        uint32_t w[4];
        S x[WIDTH];
        fold_words(w, v);
        fold_unpack(x, w);
        const typename A::K m = largest_key<A>(x, f);
        if (m > a.k || (!A::FLOAT && a.i < 0)) a.k = m, a.i = index;
    }
    static __device__ void see_run(const ad_fold &f, A &a, const char *in, int64_t c, int64_t step) {
        const int64_t before = W::head(in);
        const uint4 *from = reinterpret_cast<const uint4 *>(in + before * int64_t(sizeof(S)));
#pragma unroll 1
        for (; c + (DEPTH - 1) * step < f.chunks; c += DEPTH * step) {
            uint4 v[DEPTH];
#pragma unroll
            for (int u = 0; u < DEPTH; u++) v[u] = __ldcs(from + c + u * step);
#pragma unroll
            for (int u = 0; u < DEPTH; u++) see_chunk(a, v[u], before + (c + u * step) * WIDTH, f);
        }
#pragma unroll 1
        for (; c < f.chunks; c += step) see_chunk(a, __ldcs(from + c), before + c * WIDTH, f);
    }
    static __device__ void run(const ad_fold &f, A (&a)[1], const char *in, const char *mask, const fold_part &part) {
        if (f.nover > 1) return W::run(f, a, in, mask, part);
        see_run(f, a[0], in, part.first, part.step);
        W::take_loose(f, a[0], in, part);
    }
    /* From the chunk's index, or the element's own, to that of the first element with this key. */
    static __device__ void settle(const ad_fold &f, A &a, const char *in) {
        if (f.nover > 1 || a.i < 0) return;
        const int64_t end = a.i + WIDTH < f.reduced ? a.i + WIDTH : f.reduced;
        for (int64_t i = a.i; i < end; i++) {
            if (order::key(fold_load<S>(in + i * int64_t(sizeof(S))), f) != a.k) continue;
            a.i = i;
            return;
        }
    }
};

template <class W, bool Float> struct tops {
    static ad_fold_kernel get_kernel(int way) { return fold_kernels<top_state<W, Float>>(way); }
};
/* Places have no mask: where nothing is wanted there is none. */
template <class W, bool Float> struct places {
    using A = place_state<W, Float>;
    static ad_fold_kernel get_kernel(int way) {
        if (way == AD_FOLD_MASKED) return {nullptr, 0};
        return way == AD_FOLD_WIDE ? fold_kernel<place_work<A>>() : fold_kernels<A>(way);
    }
};

template <template <class, bool> class Of> ad_fold_kernel extreme(int input, int way) {
    switch (input) {
    case AD_INT8:
    case AD_UINT8: return Of<int8_t, false>::get_kernel(way);
    case AD_INT16:
    case AD_UINT16: return Of<int16_t, false>::get_kernel(way);
    case AD_INT32:
    case AD_UINT32: return Of<int32_t, false>::get_kernel(way);
    case AD_INT64:
    case AD_UINT64: return Of<int64_t, false>::get_kernel(way);
    case AD_FLOAT16:
    case AD_BFLOAT16: return Of<int16_t, true>::get_kernel(way);
    case AD_FLOAT32: return Of<int32_t, true>::get_kernel(way);
    case AD_FLOAT64: return Of<int64_t, true>::get_kernel(way);
    default: return {nullptr, 0};
    }
}

} // namespace

ad_fold_kernel ad_fold_top(int input, int way) { return extreme<tops>(input, way); }
ad_fold_kernel ad_fold_place(int input, int way) {
    return input == AD_BOOL ? places<bool8, false>::get_kernel(way) : extreme<places>(input, way);
}
