/* Tokens: making, checking and hashing them. See secret.h. */
#include "server/common/secret.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

int ad__token_make(char out[AD_TOKEN_TEXT], ad_fault *fault) {
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    uint8_t bytes[33] = {0}; /* 256 random bits, and 8 zero ones that make them a multiple of 6 */
    char *p = out;
    if (getrandom(bytes, 32, 0) != 32) return ad__fault(fault, AD_E_SYSTEM, "getrandom: %s", strerror(errno));
    p = stpcpy(p, "ad1_");
    for (int i = 0; i < 33; i += 3) {
        uint32_t three = (uint32_t)bytes[i] << 16 | (uint32_t)bytes[i + 1] << 8 | bytes[i + 2];
        for (int shift = 18; shift >= 0; shift -= 6) *p++ = letters[three >> shift & 63];
    }
    p[-1] = 0; /* the last letter, which holds zero bits alone, becomes the end */
    explicit_bzero(bytes, sizeof bytes);
    return 0;
}

bool ad__token_formed(const char *token, size_t size) {
    if (size < AD_TOKEN_LEAST || size > AD_TOKEN_MOST) return false;
    for (size_t i = 0; i < size; i++)
        if (token[i] <= ' ' || token[i] > '~') return false;
    return true;
}

int ad__token_hash(const char *token, size_t size, uint8_t out[AD_SHA256_SIZE], ad_fault *fault) {
    return ad__sha256(&(ad_digest_part){token, size}, 1, out, fault);
}
