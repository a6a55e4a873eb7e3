/* SHA-256 (FIPS 180-4). */
#ifndef AD_SERVER_SHA256_H
#define AD_SERVER_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define AD_SHA256_SIZE 32

typedef struct ad_sha256 {
    uint32_t state[8];
    uint64_t size; /* bytes so far */
    uint8_t block[64];
} ad_sha256;

void ad__sha256_init(ad_sha256 *s);
void ad__sha256_add(ad_sha256 *s, const void *data, size_t size);
void ad__sha256_end(ad_sha256 *s, uint8_t out[AD_SHA256_SIZE]);
/* As 64 digits and a NUL. */
void ad__sha256_text(const uint8_t hash[AD_SHA256_SIZE], char out[2 * AD_SHA256_SIZE + 1]);

#endif
