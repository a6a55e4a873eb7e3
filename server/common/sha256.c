#include "server/common/sha256.h"

#include <string.h>

/* The first 32 bits of the fractional parts of the cube roots of the first 64 primes. */
static const uint32_t constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate(uint32_t x, int n) { return x >> n | x << (32 - n); }

static uint32_t load(const uint8_t *p) {
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void store(uint8_t *p, uint32_t x) {
    for (int i = 0; i < 4; i++) p[i] = (uint8_t)(x >> (24 - 8 * i));
}

static void schedule(uint32_t w[64], const uint8_t *block) {
    for (int i = 0; i < 16; i++) w[i] = load(block + 4 * i);
    for (int i = 16; i < 64; i++) {
        uint32_t a = w[i - 15], b = w[i - 2];
        w[i] =
            w[i - 16] + w[i - 7] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) + (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
    }
}

/* One step. Which variable is which moves on by one with each, so that nothing has to be moved. */
#define STEP(a, b, c, d, e, f, g, h, i)                                                                              \
    do {                                                                                                             \
        uint32_t x = h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + (g ^ (e & (f ^ g))) + constants[i] + w[i]; \
        d += x;                                                                                                      \
        h = x + (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) | (c & (a | b)));                          \
    } while (0)

static void compress(uint32_t state[8], const uint8_t *block) {
    uint32_t w[64];
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3], e = state[4], f = state[5], g = state[6],
             h = state[7];
    schedule(w, block);
    for (int i = 0; i < 64; i += 8) {
        STEP(a, b, c, d, e, f, g, h, i);
        STEP(h, a, b, c, d, e, f, g, i + 1);
        STEP(g, h, a, b, c, d, e, f, i + 2);
        STEP(f, g, h, a, b, c, d, e, i + 3);
        STEP(e, f, g, h, a, b, c, d, i + 4);
        STEP(d, e, f, g, h, a, b, c, i + 5);
        STEP(c, d, e, f, g, h, a, b, i + 6);
        STEP(b, c, d, e, f, g, h, a, i + 7);
    }
    const uint32_t more[8] = {a, b, c, d, e, f, g, h};
    for (int i = 0; i < 8; i++) state[i] += more[i];
}

void ad__sha256_init(ad_sha256 *s) {
    static const uint32_t first[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memcpy(s->state, first, sizeof first);
    s->size = 0;
}

void ad__sha256_add(ad_sha256 *s, const void *data, size_t size) {
    const uint8_t *p = data;
    size_t used = s->size % 64;
    if (!size) return;
    s->size += size;
    if (used) {
        size_t n = 64 - used < size ? 64 - used : size;
        memcpy(s->block + used, p, n);
        if (used + n < 64) return;
        compress(s->state, s->block);
        p += n;
        size -= n;
    }
    for (; size >= 64; p += 64, size -= 64) compress(s->state, p);
    memcpy(s->block, p, size);
}

void ad__sha256_end(ad_sha256 *s, uint8_t out[AD_SHA256_SIZE]) {
    static const uint8_t padding[64] = {0x80};
    uint8_t length[8];
    uint64_t bits = s->size * 8;
    store(length, (uint32_t)(bits >> 32));
    store(length + 4, (uint32_t)bits);
    ad__sha256_add(s, padding, 1 + (119 - s->size % 64) % 64);
    ad__sha256_add(s, length, sizeof length);
    for (int i = 0; i < 8; i++) store(out + 4 * i, s->state[i]);
}

void ad__sha256_text(const uint8_t hash[AD_SHA256_SIZE], char out[2 * AD_SHA256_SIZE + 1]) {
    for (int i = 0; i < AD_SHA256_SIZE; i++) {
        out[2 * i] = "0123456789abcdef"[hash[i] >> 4];
        out[2 * i + 1] = "0123456789abcdef"[hash[i] & 15];
    }
    out[2 * AD_SHA256_SIZE] = 0;
}
