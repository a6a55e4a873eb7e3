/* The generators of cuRAND's device API, for both backends: XORWOW (Marsaglia, "Xorshift RNGs", 2003), MRG32k3a
 * (L'Ecuyer, "Good parameters and implementations for combined multiple recursive random number generators", 1999) and
 * Philox4x32-10. A program gets CuPy's numbers, because three things are as cuRAND's headers and its documentation say:
 * seeds, the distance between the sequences of two states, and how numbers are made from words.
 *
 * A state has CURAND_WORDS words. State t of word w lies at w*states + t, so neighbours read together:
 *   0..6  the generator's own; 7  which of the next two hold; 8  the second float32 of a pair of normal numbers;
 *   10, 11  the second float64 */
#ifndef AD_KERNELS_CURAND_H
#define AD_KERNELS_CURAND_H

#include "kernels/random.h"
#include "protocol/curand.h"

namespace ad {
inline namespace AD_ISA {

constexpr int CURAND_WORDS = AD_CURAND_WORDS, CURAND_OWN = 7;
constexpr int CURAND_BITS = 24;   /* of the number of a state */
constexpr int CURAND_POINTS = 64; /* of which one is looked for in a circle: three of four are */

/* ---- XORWOW: 160 bits, of which every step is a linear function, and a counter ---- */

struct xorwow_matrix {
    uint32_t row[160][5]; /* row i: what bit i becomes */

    AD_HD void apply(uint32_t (&v)[5]) const {
        uint32_t sum[5] = {0, 0, 0, 0, 0};
        for (int i = 0; i < 160; i++) {
            const uint32_t all = 0u - (v[i / 32] >> i % 32 & 1);
            for (int k = 0; k < 5; k++) sum[k] ^= row[i][k] & all;
        }
        for (int k = 0; k < 5; k++) v[k] = sum[k];
    }
};

struct xorwow {
    static constexpr int DISTANCE = 67; /* of neighbouring sequences: 2^67 numbers */
    uint32_t v[5], count;

    AD_HD void seed(uint64_t number) {
        const uint32_t low = 1099087573u * (uint32_t(number) ^ 0xaad26b49u);
        const uint32_t high = 2591861531u * (uint32_t(number >> 32) ^ 0xf7dcefddu);
        v[0] = 123456789u + low;
        v[1] = 362436069u ^ low;
        v[2] = 521288629u + high;
        v[3] = 88675123u ^ high;
        v[4] = 5783321u + low;
        count = 6615241u + high + low;
    }
    AD_HD uint32_t word() {
        const uint32_t t = v[0] ^ v[0] >> 2;
        for (int k = 0; k < 4; k++) v[k] = v[k + 1];
        v[4] = v[4] ^ v[4] << 4 ^ t ^ t << 1;
        count += 362437u;
        return v[4] + count;
    }
    template <class T> AD_HD T upto1();
    AD_HD void get(uint32_t (&w)[CURAND_OWN]) const {
        w[0] = count;
        for (int k = 0; k < 5; k++) w[k + 1] = v[k];
        w[6] = 0;
    }
    AD_HD void set(const uint32_t (&w)[CURAND_OWN]) {
        count = w[0];
        for (int k = 0; k < 5; k++) v[k] = w[k + 1];
    }
};

/* Row i of the matrix of one step. */
AD_HD void xorwow_step(int i, uint32_t (&row)[5]) {
    xorwow g;
    for (int k = 0; k < 5; k++) g.v[k] = i / 32 == k ? 1u << i % 32 : 0;
    g.count = 0;
    g.word();
    for (int k = 0; k < 5; k++) row[k] = g.v[k];
}

/* ---- MRG32k3a: two recurrences modulo primes near 2^32 ---- */

struct mrg_matrix {
    uint32_t at[2][3][3];
};

AD_HD void mrg_apply(const uint32_t (&m)[3][3], uint32_t (&v)[3], uint32_t modulus) {
    uint32_t r[3];
    for (int i = 0; i < 3; i++) {
        uint64_t sum = 0;
        for (int k = 0; k < 3; k++) sum += uint64_t(m[i][k]) * v[k] % modulus;
        r[i] = uint32_t(sum % modulus);
    }
    for (int i = 0; i < 3; i++) v[i] = r[i];
}

/* Row i of the square is row i times the matrix. */
inline void mrg_square(uint32_t (*m)[3][3], uint32_t modulus) {
    uint32_t r[3][3];
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++) {
            uint64_t sum = 0;
            for (int l = 0; l < 3; l++) sum += uint64_t((*m)[i][l]) * (*m)[l][k] % modulus;
            r[i][k] = uint32_t(sum % modulus);
        }
    memcpy(m, r, sizeof r);
}

struct mrg32k3a {
    static constexpr int DISTANCE = 76;
    uint32_t s[2][3];

    AD_HD void seed(uint64_t number) {
        const uint32_t x[2] = {uint32_t(number) ^ 0x55555555u, uint32_t(number >> 32) ^ 0xAAAAAAAAu};
        for (int i = 0; i < 2; i++)
            for (int k = 0; k < 3; k++)
                s[i][k] = number == 0 ? 12345u : uint32_t(uint64_t(x[(i + k) % 2]) * 12345u % modulus(i));
    }
    static AD_HD uint32_t modulus(int i) { return i == 0 ? 4294967087u : 4294944443u; }
    /* From 1 to the first modulus. */
    AD_HD uint32_t step() {
        const uint32_t m1 = modulus(0), m2 = modulus(1);
        const uint32_t a = uint32_t((1403580ull * s[0][1] + 810728ull * (m1 - s[0][0])) % m1);
        const uint32_t b = uint32_t((527612ull * s[1][2] + 1370589ull * (m2 - s[1][0])) % m2);
        for (int k = 0; k < 2; k++) {
            s[0][k] = s[0][k + 1];
            s[1][k] = s[1][k + 1];
        }
        s[0][2] = a;
        s[1][2] = b;
        return a <= b ? a - b + m1 : a - b;
    }
    AD_HD uint32_t word() {
        const double x = double(step()) * 1.000000048662;
        return x >= 4294967295.0 ? 4294967295u : uint32_t(x);
    }
    template <class T> AD_HD T upto1() { return T(double(step()) * 2.3283065498378288e-10); }
    AD_HD void get(uint32_t (&w)[CURAND_OWN]) const {
        for (int k = 0; k < 6; k++) w[k] = s[k / 3][k % 3];
        w[6] = 0;
    }
    /* Set the state; words that are no state of this generator become one. */
    AD_HD void set(const uint32_t (&w)[CURAND_OWN]) {
        for (int k = 0; k < 6; k++) s[k / 3][k % 3] = w[k] % modulus(k / 3);
    }
};

/* ---- Philox4x32-10: word `place` of the block at a counter of 128 bits ---- */

struct philox_counter {
    uint32_t counter[4], key[2], place;
    random_block block;
    bool known; /* block is the counter's */

    AD_HD void seed(uint64_t number) {
        for (int k = 0; k < 4; k++) counter[k] = 0;
        key[0] = uint32_t(number);
        key[1] = uint32_t(number >> 32);
        place = 0;
        known = false;
    }
    AD_HD uint32_t word() {
        if (!known) block = philox({{counter[0], counter[1], counter[2], counter[3]}}, key[0], key[1]);
        known = true;
        const uint32_t w = place == 0   ? block.word[0]
                           : place == 1 ? block.word[1]
                           : place == 2 ? block.word[2]
                                        : block.word[3];
        if (++place < 4) return w;
        place = 0;
        known = false;
        if (++counter[0] == 0 && ++counter[1] == 0 && ++counter[2] == 0) counter[3]++;
        return w;
    }
    template <class T> AD_HD T upto1();
    AD_HD void get(uint32_t (&w)[CURAND_OWN]) const {
        for (int k = 0; k < 4; k++) w[k] = counter[k];
        w[4] = key[0];
        w[5] = key[1];
        w[6] = place;
    }
    AD_HD void set(const uint32_t (&w)[CURAND_OWN]) {
        for (int k = 0; k < 4; k++) counter[k] = w[k];
        key[0] = w[4];
        key[1] = w[5];
        place = w[6] & 3;
        known = false;
    }
};

/* ---- XOR128 (Marsaglia, "Xorshift RNGs", 2003), seeded as CuPy's older functions do ---- */

struct xor128 {
    uint32_t v[4];
    uint64_t number; /* the seed */

    AD_HD void seed(uint64_t n) {
        number = n;
        for (int k = 0; k < 4; k++) {
            n = 1812433253u * (n ^ n >> 30) + uint64_t(k + 1);
            v[k] = uint32_t(n);
        }
    }
    AD_HD uint32_t word() {
        const uint32_t t = v[0] ^ v[0] << 11;
        for (int k = 0; k < 3; k++) v[k] = v[k + 1];
        v[3] = v[3] ^ v[3] >> 19 ^ t ^ t >> 8;
        return v[3];
    }
    /* Make a number on [0, 1) of 53 bits of two words. */
    template <class T> AD_HD T upto1() {
        const double high = double(word() >> 5);
        return T((high * 0x1p26 + double(word() >> 6)) * 0x1p-53);
    }
    AD_HD void get(uint32_t (&w)[CURAND_OWN]) const {
        for (int k = 0; k < 4; k++) w[k] = v[k];
        w[4] = uint32_t(number);
        w[5] = uint32_t(number >> 32);
        w[6] = 0;
    }
    AD_HD void set(const uint32_t (&w)[CURAND_OWN]) {
        for (int k = 0; k < 4; k++) v[k] = w[k];
        number = uint64_t(w[4]) | uint64_t(w[5]) << 32;
    }
};

/* ---- words as numbers on (0, 1] ---- */

AD_HD float curand_upto1(uint32_t w) { return float(w) * 0x1p-32f + 0x1p-33f; }
/* 53 bits of two words, of which 11 are both's. */
AD_HD uint64_t curand_wide(uint32_t low, uint32_t high) { return uint64_t(low) ^ uint64_t(high) << 21; }

template <> AD_HD float xorwow::upto1<float>() { return curand_upto1(word()); }
template <> AD_HD double xorwow::upto1<double>() {
    const uint32_t low = word();
    return double(curand_wide(low, word())) * 0x1p-53 + 0x1p-54;
}
template <> AD_HD float philox_counter::upto1<float>() { return curand_upto1(word()); }
template <> AD_HD double philox_counter::upto1<double>() { return double(word()) * 0x1p-32 + 0x1p-32; }

/* ---- pairs of normal numbers (Box and Muller): the length from the first number, the angle from the second ---- */

template <class T> struct normal_pair_of { T first, second; };

/* turn: in radians. */
AD_HD normal_pair_of<float> curand_box_muller(float u, float turn) {
    const float r = adm::sqrt(-2.0f * adm::log(u));
    float sine, cosine;
#ifdef __CUDA_ARCH__
    __sincosf(turn, &sine, &cosine);
#else
    sine = adm::sin(turn);
    cosine = adm::cos(turn);
#endif
    return {r * sine, r * cosine};
}
/* turn: in units of pi. */
AD_HD normal_pair_of<double> curand_box_muller(double u, double turn) {
    const double r = adm::sqrt(-2.0 * adm::log(u));
    double sine, cosine;
#ifdef __CUDA_ARCH__
    ::sincospi(turn, &sine, &cosine);
#else
    sine = adm::sin(turn * 3.14159265358979323846);
    cosine = adm::cos(turn * 3.14159265358979323846);
#endif
    return {r * sine, r * cosine};
}

constexpr float CURAND_TURN = 2.3283064e-10f * 6.2831855f;

template <class T, class G> AD_HD normal_pair_of<T> curand_normal_pair(G *g) {
    if constexpr (same<T, float>) {
        const float u = curand_upto1(g->word()), w = float(g->word());
#ifdef __CUDA_ARCH__
        return curand_box_muller(u, __fmaf_rn(w, CURAND_TURN, CURAND_TURN / 2));
#else
        return curand_box_muller(u, __builtin_fmaf(w, CURAND_TURN, CURAND_TURN / 2));
#endif
    } else {
        const uint32_t a = g->word(), b = g->word(), c = g->word();
        const double u = double(curand_wide(a, b)) * 0x1p-53 + 0x1p-54;
        return curand_box_muller(u, double(curand_wide(c, g->word())) * 0x1p-52 + 0x1p-53);
    }
}
template <class T> AD_HD normal_pair_of<T> curand_normal_pair(mrg32k3a *g) {
    const T u = g->upto1<T>();
    return curand_box_muller(u, g->upto1<T>() * (same<T, float> ? T(6.2831855f) : T(2)));
}

/* By Marsaglia's polar method: a point in the unit circle. */
template <class T> AD_HD normal_pair_of<T> curand_normal_pair(xor128 *g) {
    for (int i = 0; i < CURAND_POINTS; i++) {
        const double x = 2 * g->upto1<double>() - 1, y = 2 * g->upto1<double>() - 1, r = x * x + y * y;
        if (!(r < 1 && r > 0)) continue;
        const double f = adm::sqrt(-2 * adm::log(r) / r);
        return {T(f * y), T(f * x)};
    }
    return {T(0), T(0)};
}

/* ---- a state: a generator, and the second normal numbers of pairs ---- */

template <class G> struct curand_state {
    G g;
    uint32_t held; /* bit 0: second; bit 1: second_wide */
    float second;
    double second_wide;

    AD_HD void seed(uint64_t number) {
        g.seed(number);
        held = 0;
        second = 0;
        second_wide = 0;
    }
    AD_HD void load(const uint32_t *from, int64_t states) {
        uint32_t w[CURAND_OWN];
        for (int k = 0; k < CURAND_OWN; k++) w[k] = from[k * states];
        g.set(w);
        held = from[7 * states];
        second = bit_cast<float>(from[8 * states]);
        second_wide = bit_cast<double>(uint64_t(from[10 * states]) | uint64_t(from[11 * states]) << 32);
    }
    AD_HD void store(uint32_t *to, int64_t states) const {
        const uint64_t wide = bit_cast<uint64_t>(second_wide);
        uint32_t w[CURAND_OWN];
        g.get(w);
        for (int k = 0; k < CURAND_OWN; k++) to[k * states] = w[k];
        to[7 * states] = held;
        to[8 * states] = bit_cast<uint32_t>(second);
        to[9 * states] = 0;
        to[10 * states] = uint32_t(wide);
        to[11 * states] = uint32_t(wide >> 32);
    }
    /* On [0, 1). */
    template <class T> AD_HD T below1() {
        const T u = g.template upto1<T>();
        return u >= T(1) ? T(0) : u;
    }
    template <class T> AD_HD T normal() {
        constexpr uint32_t bit = same<T, float> ? 1 : 2;
        held ^= bit;
        if (!(held & bit)) {
            if constexpr (same<T, float>) return second;
            else return second_wide;
        }
        const normal_pair_of<T> pair = curand_normal_pair<T>(&g);
        if constexpr (same<T, float>) second = pair.second;
        else second_wide = pair.second;
        return pair.first;
    }
};

} // namespace AD_ISA
} // namespace ad
#endif
