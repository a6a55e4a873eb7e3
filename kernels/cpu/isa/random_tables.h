/* The tables that the instruction-set specific part of the cpu backend (kernels/cpu/isa/random.cpp) gives
 * call/random.cpp. */
#ifndef AD_KERNELS_CPU_ISA_RANDOM_TABLES_H
#define AD_KERNELS_CPU_ISA_RANDOM_TABLES_H

#include "protocol/distribution.h"

struct ad_random_kernels {
    /* The words of `blocks` blocks of a stream, 4 of 32 bits each. out: 64-byte aligned, with room for a multiple of 32
     * blocks. */
    void (*words)(void *out, uint64_t key, uint64_t block, uint32_t stream, int64_t blocks);
    /* n elements (an even number) of a BLOCK distribution of one set of parameters, from their words; by row. NULL:
     * there is none. */
    void (*real32[AD_RANDOM_LIMIT])(float *out, const uint32_t *words, int64_t n, const double *p);
    void (*real64[AD_RANDOM_LIMIT])(double *out, const uint64_t *words, int64_t n, const double *p);
    /* 0..span from words; false: some are to be drawn again. */
    bool (*below32)(uint32_t *out, const uint32_t *words, int64_t n, uint32_t span);
    /* low + offset[i], in elements of 1 << size bytes. */
    void (*shift32[4])(void *out, const uint32_t *offset, int64_t n, uint64_t low);
};

#endif
