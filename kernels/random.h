/* The source of random numbers, for both backends: Philox4x32-10, a function of a key and a counter (Salmon, Moraes,
 * Dror, Shaw: "Parallel random numbers: as easy as 1, 2, 3", 2011).
 *
 * A key has three streams of 2^64 elements. The stream of an element depends on its distribution alone. So no number is
 * used twice under a key as long as elements are numbered on:
 *   FOURS  element e is word e%4 of the block at counter (e/4, 0, FOURS): 32 bits
 *   PAIRS  element e is words 2(e%2) and 2(e%2)+1, the low one first, of the block at (e/2, 0, PAIRS): 64 bits
 *   OWN    element e has the blocks at (e, 0, OWN), (e, 1, OWN), ...
 * In (a, b, c), Philox's counter of 128 bits, a is its two low words; then come b and c. */
#ifndef AD_KERNELS_RANDOM_H
#define AD_KERNELS_RANDOM_H

#include "kernels/math_libm.h"
#include "kernels/types.h"
#include "protocol/distribution.h"

namespace ad {
inline namespace AD_ISA {

enum random_stream : uint32_t { STREAM_FOURS, STREAM_PAIRS, STREAM_OWN };

struct random_block {
    uint32_t word[4];
};

AD_HD uint32_t multiply_high(uint32_t a, uint32_t b) { return uint32_t(uint64_t(a) * b >> 32); }

AD_HD random_block philox(random_block c, uint32_t key0, uint32_t key1) {
    constexpr uint32_t M0 = 0xD2511F53u, M1 = 0xCD9E8D57u, W0 = 0x9E3779B9u, W1 = 0xBB67AE85u;
#ifdef __CUDA_ARCH__
#pragma unroll
#endif
    for (int round = 0; round < 10; round++) {
        const uint32_t high0 = multiply_high(M0, c.word[0]), low0 = M0 * c.word[0];
        const uint32_t high1 = multiply_high(M1, c.word[2]), low1 = M1 * c.word[2];
        c = {{high1 ^ c.word[1] ^ key0, low1, high0 ^ c.word[3] ^ key1, low0}};
        key0 += W0;
        key1 += W1;
    }
    return c;
}

AD_HD random_block random_at(uint64_t key, uint64_t counter, uint32_t third, uint32_t stream) {
    return philox({{uint32_t(counter), uint32_t(counter >> 32), third, stream}}, uint32_t(key), uint32_t(key >> 32));
}

/* The words of an element of a BLOCK distribution: R is uint32_t (FOURS) or uint64_t (PAIRS). */
template <class R> struct random_words {
    static constexpr int count = 16 / int(sizeof(R)); /* in a block */
    static constexpr uint32_t stream = sizeof(R) == 4 ? STREAM_FOURS : STREAM_PAIRS;
    static AD_HD R get(const random_block &b, int i) {
        if constexpr (sizeof(R) == 4) return b.word[i];
        else return R(b.word[2 * i]) | R(b.word[2 * i + 1]) << 32;
    }
    /* Get the words of one element. Elements that come in pairs get their neighbour's with the lowest bit of the number
     * turned. */
    static AD_HD R of(uint64_t key, uint64_t element) {
        const random_block b = random_at(key, element / count, 0, stream);
        const int i = int(element % count);
        if constexpr (sizeof(R) == 4) return i == 0 ? b.word[0] : i == 1 ? b.word[1] : i == 2 ? b.word[2] : b.word[3];
        else return i == 0 ? get(b, 0) : get(b, 1);
    }
};

/* A word as a number. unit: [0, 1), what `uniform` is. upto1: (0, 1], with all its bits. inside: (0, 1), of which 1-x
 * is exact. turn: [-1, 1). */
template <class T> struct random_number;
template <> struct random_number<float> {
    using word = uint32_t;
    static AD_HD float unit(word w) { return float(int32_t(w >> 8)) * 0x1p-24f; }
    static AD_HD float upto1(word w) {
#ifdef __CUDA_ARCH__
        return float(w) * 0x1p-32f + 0x1p-33f;
#else
        /* Without AVX-512 only signed integers convert as vectors; rounded once all the same. */
        return (float(int32_t(w >> 16)) * 0x1p-16f + float(int32_t(w & 0xffff)) * 0x1p-32f) + 0x1p-33f;
#endif
    }
    static AD_HD float inside(word w) { return (float(int32_t(w >> 9)) + 0.5f) * 0x1p-23f; }
    static AD_HD float turn(word w) { return float(int32_t(w)) * 0x1p-31f; }
};
template <> struct random_number<double> {
    using word = uint64_t;
    /* 52 bits put into 1.x: there is no vector instruction for a conversion before AVX-512. The 53rd by itself. */
    static AD_HD double unit(word w) {
#ifdef __CUDA_ARCH__
        return double(w >> 11) * 0x1p-53;
#else
        const double high = bit_cast<double>(w >> 12 | 0x3ff0000000000000u) - 1.0;
        return high + bit_cast<double>((w >> 11 & 1) * 0x3ca0000000000000u);
#endif
    }
    static AD_HD double upto1(word w) { return unit(w) + 0x1p-53; }
    static AD_HD double inside(word w) { return (bit_cast<double>(w >> 12 | 0x3ff0000000000000u) - 1.0) + 0x1p-53; }
    static AD_HD double turn(word w) { return unit(w) * 2.0 - 1.0; }
};

/* a + b*x in two roundings, so that the backends agree to the bit. */
AD_HD float random_affine(float a, float b, float x) {
#ifdef __CUDA_ARCH__
    return __fadd_rn(a, __fmul_rn(b, x));
#else
    return a + b * x;
#endif
}
AD_HD double random_affine(double a, double b, double x) {
#ifdef __CUDA_ARCH__
    return __dadd_rn(a, __dmul_rn(b, x));
#else
    return a + b * x;
#endif
}

/* Blocks of an element of its own, word after word. */
struct random_sequence {
    uint64_t key, element;
    uint32_t next;
    int left;
    random_block block;

    AD_HD random_sequence(uint64_t k, uint64_t e) : key(k), element(e), next(0), left(0), block() {}
    /* The first block is known. */
    AD_HD random_sequence(uint64_t k, uint64_t e, const random_block &b)
        : key(k), element(e), next(1), left(4), block(b) {}
    AD_HD uint32_t word() {
        if (left == 0) {
            block = random_at(key, element, next++, STREAM_OWN);
            left = 4;
        }
        const uint32_t w = block.word[0];
        block = {{block.word[1], block.word[2], block.word[3], 0}};
        left--;
        return w;
    }
    template <class R> AD_HD R take() {
        if constexpr (sizeof(R) == 4) return word();
        else {
            const R low = word();
            return low | R(word()) << 32;
        }
    }
    template <class T> AD_HD T inside() { return random_number<T>::inside(take<typename random_number<T>::word>()); }
    template <class T> AD_HD T upto1() { return random_number<T>::upto1(take<typename random_number<T>::word>()); }
};

} // namespace AD_ISA
} // namespace ad
#endif
