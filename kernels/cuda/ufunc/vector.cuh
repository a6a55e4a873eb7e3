/* Vectors of up to 16 bytes, which the elementwise kernels have in common, those compiled by nvcc and those at run
 * time. */
#ifndef AD_KERNELS_CUDA_UFUNC_VECTOR_CUH
#define AD_KERNELS_CUDA_UFUNC_VECTOR_CUH

#include "kernels/types.h"

namespace ad {
inline namespace AD_ISA {

/* Kernels are launched while the one before may still be running (ad_ufunc_launch): nothing may be read or written
 * before this. */
__device__ __forceinline__ void begin() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

/* ---- vectors of up to 16 bytes; of those that are computed with, also more ---- */

template <int Bytes> struct raw;
template <> struct raw<1> { using type = uint8_t; };
template <> struct raw<2> { using type = uint16_t; };
template <> struct raw<4> { using type = uint32_t; };
template <> struct raw<8> { using type = uint2; };
template <> struct raw<16> { using type = uint4; };

/* V elements as they lie in memory, in registers of 4 bytes: small elements stay together until they are wanted. */
template <class S, int V> struct vec {
    static constexpr int bytes = sizeof(S) * V, words = (bytes + 3) / 4;
    static constexpr int parts = bytes > 16 ? bytes / 16 : 1;
    using memory = typename raw<bytes / parts>::type;
    uint32_t word[words];

    __device__ __forceinline__ S get(int i) const {
        if constexpr (sizeof(S) == 1) return bit_cast<S>(uint8_t(word[i / 4] >> i % 4 * 8));
        else if constexpr (sizeof(S) == 2) return bit_cast<S>(uint16_t(word[i / 2] >> i % 2 * 16));
        else if constexpr (sizeof(S) == 4) return bit_cast<S>(word[i]);
        else if constexpr (sizeof(S) == 8) return bit_cast<S>(make_uint2(word[2 * i], word[2 * i + 1]));
        else return bit_cast<S>(make_uint4(word[4 * i], word[4 * i + 1], word[4 * i + 2], word[4 * i + 3]));
    }
};

/* Load a vector, one of more than 16 bytes in several steps. */
template <class S, int V> __device__ __forceinline__ vec<S, V> load_vector(const char *p) {
    using memory = typename vec<S, V>::memory;
    vec<S, V> v;
#pragma unroll
    for (int i = 0; i < vec<S, V>::parts; i++) {
        const memory m = reinterpret_cast<const memory *>(p)[i];
        if constexpr (vec<S, V>::bytes < 4) v.word[0] = m;
        else memcpy(v.word + 4 * i, &m, sizeof m);
    }
    return v;
}
template <class S, int V> __device__ __forceinline__ void store_vector(char *p, const vec<S, V> &v) {
    using memory = typename vec<S, V>::memory;
#pragma unroll
    for (int i = 0; i < vec<S, V>::parts; i++) {
        memory m;
        if constexpr (vec<S, V>::bytes < 4) m = memory(v.word[0]);
        else memcpy(&m, v.word + 4 * i, sizeof m);
        reinterpret_cast<memory *>(p)[i] = m;
    }
}

template <class S> __device__ __forceinline__ uint32_t low_word(S s) {
    if constexpr (sizeof(S) == 1) return bit_cast<uint8_t>(s);
    else if constexpr (sizeof(S) == 2) return bit_cast<uint16_t>(s);
    else return bit_cast<uint32_t>(s);
}

template <class S, int V> __device__ __forceinline__ vec<S, V> pack(const S (&s)[V]) {
    vec<S, V> v;
    if constexpr (sizeof(S) >= 4) {
        memcpy(v.word, s, sizeof s);
    } else if constexpr (V == 1) {
        v.word[0] = low_word(s[0]);
    } else if constexpr (sizeof(S) == 2 || V == 2) {
#pragma unroll
        for (int i = 0; i < v.words; i++)
            v.word[i] = __byte_perm(low_word(s[2 * i]), low_word(s[2 * i + 1]), sizeof(S) == 2 ? 0x5410 : 0x0040);
    } else {
#pragma unroll
        for (int i = 0; i < v.words; i++)
            v.word[i] = __byte_perm(__byte_perm(low_word(s[4 * i]), low_word(s[4 * i + 1]), 0x0040),
                                    __byte_perm(low_word(s[4 * i + 2]), low_word(s[4 * i + 3]), 0x0040), 0x5410);
    }
    return v;
}

template <class S, int V> __device__ __forceinline__ vec<S, V> splat(S s) {
    S all[V];
#pragma unroll
    for (int i = 0; i < V; i++) all[i] = s;
    return pack<S, V>(all);
}

/* Drops the first N elements; `next`, N more, come at the end. */
template <int N, class S, int V> __device__ __forceinline__ void shift(vec<S, V> &v, const vec<S, N> &next) {
    constexpr int bytes = N * int(sizeof(S));
    if constexpr (N == V) {
        v = next;
    } else if constexpr (vec<S, V>::bytes < 4) { /* in the lower part of a word */
        v.word[0] = v.word[0] >> bytes * 8 | next.word[0] << (vec<S, V>::bytes - bytes) * 8;
    } else if constexpr (bytes % 4 == 0) {
#pragma unroll
        for (int i = 0; i < v.words; i++)
            v.word[i] = i + bytes / 4 < v.words ? v.word[i + bytes / 4] : next.word[i + bytes / 4 - v.words];
    } else {
#pragma unroll
        for (int i = 0; i < v.words; i++)
            v.word[i] = __funnelshift_r(v.word[i], i + 1 < v.words ? v.word[i + 1] : next.word[0], bytes * 8);
    }
}

} // namespace AD_ISA
} // namespace ad
#endif
