/* The only source of chance of a run: xoshiro256**, begun by splitmix64 from the seed. */
#include <string.h>

#include "tests/sim/sim.h"

static uint64_t state[4];

static uint64_t rotate_left(uint64_t x, int k) { return x << k | x >> (64 - k); }

static uint64_t draw_bits(void) {
    const uint64_t result = rotate_left(state[1] * 5, 7) * 9, t = state[1] << 17;
    state[2] ^= state[0];
    state[3] ^= state[1];
    state[1] ^= state[2];
    state[0] ^= state[3];
    state[2] ^= t;
    state[3] = rotate_left(state[3], 45);
    return result;
}

void sim_seed_chance(uint64_t seed) {
    for (int i = 0; i < 4; i++) {
        uint64_t z = seed += 0x9e3779b97f4a7c15u;
        z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
        z = (z ^ z >> 27) * 0x94d049bb133111ebu;
        state[i] = z ^ z >> 31;
    }
}

uint64_t sim_draw_below(uint64_t n) { return n ? draw_bits() % n : 0; }

bool sim_draw_case(unsigned in_million) { return in_million && draw_bits() % 1000000 < in_million; }

void sim_draw_bytes(void *out, size_t size) {
    for (char *at = out; size;) {
        const uint64_t bits = draw_bits();
        const size_t n = size < sizeof bits ? size : sizeof bits;
        memcpy(at, &bits, n);
        at += n;
        size -= n;
    }
}
