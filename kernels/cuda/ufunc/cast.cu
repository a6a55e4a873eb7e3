/* Casts between arrays without gaps: one kernel for each dtype that is made, with all that it is made from. */
#include "kernels/cuda/ufunc/device.cuh"

namespace ad {
inline namespace AD_ISA {

constexpr int cast_width(int from, int to) { return 16 / (from > to ? from : to); } /* elements of a vector */
constexpr int cast_unroll(int width) { return width > 4 ? 2 : 4; }

template <class From, class To> __device__ __forceinline__ void cast_elements(const ad_ufunc_cast &c) {
    constexpr int V = cast_width(sizeof(From), sizeof(To)), U = cast_unroll(V);
    const int64_t first = (int64_t(blockIdx.x) * U * AD_UFUNC_THREADS + threadIdx.x) * V;
    vec<From, V> x[U];
#pragma unroll
    for (int u = 0; u < U; u++) {
        const int64_t i = first + u * AD_UFUNC_THREADS * V;
        if (i + V <= c.count) x[u] = load_vector<From, V>(c.in + i * int64_t(sizeof(From)));
    }
#pragma unroll
    for (int u = 0; u < U; u++) {
        const int64_t i = first + u * AD_UFUNC_THREADS * V;
        if (i + V <= c.count) {
            To r[V];
#pragma unroll
            for (int v = 0; v < V; v++) r[v] = cast<To>(x[u].get(v));
            store_vector(c.out + i * int64_t(sizeof(To)), pack(r));
        } else {
#pragma unroll 1
            for (int64_t j = i; j < c.count; j++)
                reinterpret_cast<To *>(c.out)[j] = cast<To>(reinterpret_cast<const From *>(c.in)[j]);
        }
    }
}

template <class To> __global__ void __launch_bounds__(AD_UFUNC_THREADS)
    cast_kernel(const __grid_constant__ ad_ufunc_cast c) {
    begin();
    switch (c.from) {
#define AD_DTYPE(id, NAME, name, size, kind, letter) \
    case id:                                         \
        cast_elements<t_##name, To>(c);              \
        break;
#include "protocol/dtype.def"
#undef AD_DTYPE
    }
}

} // namespace AD_ISA
} // namespace ad

const void *ad_cuda_cast_kernel(int from, int to, int *elements) {
    static const uint8_t sizes[] = {
#define AD_DTYPE(id, NAME, name, size, kind, letter) size,
#include "protocol/dtype.def"
#undef AD_DTYPE
    };
    const int width = ad::cast_width(sizes[from], sizes[to]);
    *elements = width * ad::cast_unroll(width);
    switch (to) {
#define AD_DTYPE(id, NAME, name, size, kind, letter) \
    case id:                                         \
        return reinterpret_cast<const void *>(&ad::cast_kernel<ad::t_##name>);
#include "protocol/dtype.def"
#undef AD_DTYPE
    default: return nullptr;
    }
}
