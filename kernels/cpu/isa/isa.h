/* Helpers of the files that are compiled once for each instruction set. */
#ifndef AD_KERNELS_CPU_ISA_ISA_H
#define AD_KERNELS_CPU_ISA_ISA_H

#define AD_NOINLINE __attribute__((noinline))
/* In a loop: keeps the compiler from vectorising what would only grow. */
#define AD_SCALAR_LOOP __asm__ volatile("")
#define AD_PASTE_(a, b) a##b
#define AD_PASTE(a, b) AD_PASTE_(a, b)
#define AD_TEXT_(a) #a
#define AD_TEXT(a) AD_TEXT_(a)

#if defined(__AVX512F__)
#define AD_VECTOR_BYTES 64
#elif defined(__AVX2__)
#define AD_VECTOR_BYTES 32
#else
#define AD_VECTOR_BYTES 16
#endif

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace ad {
inline namespace AD_ISA {

/* A comparison is true in some lane. */
template <class M> bool any(M mask) {
#if defined(__AVX512F__)
    return _mm512_test_epi64_mask((__m512i)mask, (__m512i)mask) != 0;
#elif defined(__AVX2__)
    return !_mm256_testz_si256((__m256i)mask, (__m256i)mask);
#elif defined(__SSE4_1__)
    return !_mm_testz_si128((__m128i)mask, (__m128i)mask);
#else
    for (unsigned i = 0; i < sizeof mask / sizeof mask[0]; i++)
        if (mask[i]) return true;
    return false;
#endif
}

} // namespace AD_ISA
} // namespace ad
#endif
