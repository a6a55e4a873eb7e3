/* Random numbers in bulk. */
#include "kernels/cpu/isa/random_tables.h"

#include "kernels/cpu/isa/isa.h"
#include "kernels/random_block.h"

#ifdef __x86_64__
#include <immintrin.h>
#endif

namespace ad {
inline namespace AD_ISA {

extern const ad_random_kernels random_kernels;

namespace {

/* Lanes: one word of a block in each lane of 64 bits. The bits above the word do not matter until the end. */
typedef uint64_t lanes __attribute__((vector_size(AD_VECTOR_BYTES)));
constexpr int LANES = AD_VECTOR_BYTES / 8;
constexpr int SIDE = AD_VECTOR_BYTES == 64 ? 4 : 2; /* vectors at a time, so that one does not wait for the other */

/* Product of the low halves. */
inline lanes multiply(lanes a, lanes b) {
#if defined(__AVX512F__)
    return lanes(_mm512_maskz_mul_epu32(__mmask8(-1), __m512i(a), __m512i(b))); /* GCC warns inside the plain one */
#elif defined(__AVX2__)
    return lanes(_mm256_mul_epu32(__m256i(a), __m256i(b)));
#elif defined(__x86_64__)
    return lanes(_mm_mul_epu32(__m128i(a), __m128i(b)));
#else
    return (a & 0xffffffffu) * (b & 0xffffffffu);
#endif
}

inline lanes all(uint64_t v) { return lanes{} + v; }

inline void store(uint64_t *to, lanes low, lanes high) {
    for (int l = 0; l < LANES; l++) {
        to[2 * l] = low[l];
        to[2 * l + 1] = high[l];
    }
}

void words(void *out, uint64_t key, uint64_t block, uint32_t stream, int64_t blocks) {
    uint64_t *to = static_cast<uint64_t *>(out);
    lanes index;
    for (int l = 0; l < LANES; l++) index[l] = block + uint64_t(l);
    const lanes m0 = all(0xD2511F53u), m1 = all(0xCD9E8D57u);
    for (int64_t i = 0; i < blocks; i += SIDE * LANES, to += 2 * SIDE * LANES) {
        lanes c[SIDE][4];
        uint32_t key0 = uint32_t(key), key1 = uint32_t(key >> 32);
        for (int k = 0; k < SIDE; k++, index += uint64_t(LANES)) {
            c[k][0] = index;
            c[k][1] = index >> 32;
            c[k][2] = all(0);
            c[k][3] = all(stream);
        }
        for (int round = 0; round < 10; round++) {
            const lanes k0 = all(key0), k1 = all(key1);
            for (int k = 0; k < SIDE; k++) {
                const lanes p0 = multiply(m0, c[k][0]), p1 = multiply(m1, c[k][2]);
                c[k][0] = (p1 >> 32) ^ c[k][1] ^ k0;
                c[k][1] = p1;
                c[k][2] = (p0 >> 32) ^ c[k][3] ^ k1;
                c[k][3] = p0;
            }
            key0 += 0x9E3779B9u;
            key1 += 0xBB67AE85u;
        }
        for (int k = 0; k < SIDE; k++)
            store(to + 2 * k * LANES, (c[k][0] & 0xffffffffu) | c[k][1] << 32, (c[k][2] & 0xffffffffu) | c[k][3] << 32);
    }
}

template <int Id, class T, class R>
void real(T *__restrict out, const R *__restrict w, int64_t n, const double *parameter) {
    const random_parameters<T> p = {T(parameter[0]), T(parameter[1]), T(parameter[2])};
    if constexpr (random_paired<Id>) {
        for (int64_t j = 0; j < n / 2; j++) {
            T x, y;
            normal_pair<T>(w[2 * j], w[2 * j + 1], &x, &y);
            out[2 * j] = p.a + p.b * x;
            out[2 * j + 1] = p.a + p.b * y;
        }
        if constexpr (Id == AD_RANDOM_lognormal)
            for (int64_t j = 0; j < n; j++) out[j] = adm::exp(out[j]);
    } else
        for (int64_t j = 0; j < n; j++) out[j] = random_one<Id, T>::of(w[j], p);
}

bool below32(uint32_t *__restrict out, const uint32_t *__restrict w, int64_t n, uint32_t span) {
    const uint32_t range = span + 1, least = range == 0 ? 0 : (0u - range) % range;
    uint32_t again = 0;
    if (range == 0) {
        memcpy(out, w, size_t(n) * sizeof *w);
        return true;
    }
    for (int64_t j = 0; j < n; j++) {
        out[j] = multiply_high(w[j], range);
        again |= w[j] * range < least ? 1u : 0u;
    }
    return again == 0;
}

template <class S> void shift32(void *out, const uint32_t *__restrict offset, int64_t n, uint64_t low) {
    S *__restrict to = static_cast<S *>(out);
    const S first = S(low);
    for (int64_t j = 0; j < n; j++) to[j] = S(first + S(offset[j]));
}

#define AD_DISTRIBUTION(id, name, source, loops, ...) AD_ENTRY_##source##_##loops(id)
#define AD_ENTRY_BLOCK_REAL(id)               \
    k.real32[id] = real<id, float, uint32_t>; \
    k.real64[id] = real<id, double, uint64_t>;
#define AD_ENTRY_BLOCK_BITS(id)
#define AD_ENTRY_BLOCK_WHOLE(id)
#define AD_ENTRY_OWN_REAL(id)
#define AD_ENTRY_OWN_COUNT(id)
constexpr ad_random_kernels make() {
    ad_random_kernels k{};
#include "protocol/distribution.def"
    k.words = words;
    k.below32 = below32;
    k.shift32[0] = shift32<uint8_t>;
    k.shift32[1] = shift32<uint16_t>;
    k.shift32[2] = shift32<uint32_t>;
    k.shift32[3] = shift32<uint64_t>;
    return k;
}
#undef AD_DISTRIBUTION

} // namespace

const ad_random_kernels random_kernels = make();

} // namespace AD_ISA
} // namespace ad
