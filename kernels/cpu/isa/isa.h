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

#endif
