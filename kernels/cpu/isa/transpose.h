/* Rows of elements turned into vectors that have one element of each row, and back. */
#ifndef AD_KERNELS_CPU_ISA_TRANSPOSE_H
#define AD_KERNELS_CPU_ISA_TRANSPOSE_H

#include "kernels/cpu/isa/isa.h"

#include <string.h>
#include <utility>

#include "kernels/accumulate.h"

namespace ad {
inline namespace AD_ISA {

/* Transpose L rows of L elements, in steps that stay within blocks of 16 bytes or move whole ones. Element by element,
 * what crosses blocks is several times slower. */
template <class K> struct transposition {
    using V = vec<K>;
    static constexpr int L = AD_VECTOR_BYTES / sizeof(K), B = 16 / sizeof(K), BLOCKS = L / B;
    using each_lane = std::make_index_sequence<size_t(L)>;
    using each_word = std::make_index_sequence<AD_VECTOR_BYTES / 8>;

    /* The lower halves of each block of a and b, or the upper ones, in turns. */
    template <int From, size_t... I> static V mixed(V a, V b, std::index_sequence<I...>) {
        return __builtin_shufflevector(a, b, (int(I) / B * B + From + int(I) % B / 2 + int(I) % 2 * L)...);
    }
    /* Every second block of a and then of b. */
    template <int First, size_t... I> static V blocks(V a, V b, std::index_sequence<I...>) {
        using W = vec<int64_t>;
        return V(__builtin_shufflevector(W(a), W(b), (int(I) / 2 * 4 + 2 * First + int(I) % 2)...));
    }

    static void within_blocks(V *m) {
        V t[B];
        for (int stage = 1; stage < B; stage *= 2) {
            for (int i = 0; i < B / 2; i++) {
                t[2 * i] = mixed<0>(m[i], m[i + B / 2], each_lane());
                t[2 * i + 1] = mixed<B / 2>(m[i], m[i + B / 2], each_lane());
            }
            for (int i = 0; i < B; i++) m[i] = t[i];
        }
    }
    /* Blocks of vectors that are B apart. */
    static void of_blocks(V *m) {
        V t[BLOCKS];
        for (int stage = 1; stage < BLOCKS; stage *= 2) {
            for (int i = 0; i < BLOCKS / 2; i++) {
                t[i] = blocks<0>(m[2 * i * B], m[(2 * i + 1) * B], each_word());
                t[i + BLOCKS / 2] = blocks<1>(m[2 * i * B], m[(2 * i + 1) * B], each_word());
            }
            for (int i = 0; i < BLOCKS; i++) m[i * B] = t[i];
        }
    }
    static void transpose_rows(V *m) {
        for (int i = 0; i < L; i += B) within_blocks(m + i);
        for (int i = 0; i < B; i++) of_blocks(m + i);
    }
};

template <class K> inline vec<K> load_vector(const char *p) {
    vec<K> v;
    memcpy(&v, p, sizeof v);
    return v;
}

} // namespace AD_ISA
} // namespace ad
#endif
