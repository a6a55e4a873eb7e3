/* SHA-256 and comparing secrets with OpenSSL's libcrypto, which is loaded when it is first needed. */
#ifndef AD_TLS_DIGEST_H
#define AD_TLS_DIGEST_H

#include "protocol/base.h"

#define AD_SHA256_SIZE 32

typedef struct ad_digest_part {
    const void *data;
    size_t size;
} ad_digest_part;

/* Open one of OpenSSL 3's libraries, "ssl" or "crypto". NULL: it is not to be had, and dlerror says why. */
void *ad__openssl_open(const char *name);
/* Any thread: load libcrypto, once in a process. AD_E_UNSUPPORTED: it is not there, or lacks a function. */
int ad__crypto_load(ad_fault *fault);
/* Any thread: hash n parts, one behind the other. AD_E_UNSUPPORTED, AD_E_MEMORY. */
int ad__sha256(const ad_digest_part *parts, size_t n, uint8_t out[AD_SHA256_SIZE], ad_fault *fault);
/* Format a hash as 64 digits and a NUL. */
void ad__sha256_text(const uint8_t hash[AD_SHA256_SIZE], char out[2 * AD_SHA256_SIZE + 1]);
/* Read a hash as text: "sha256:" and 64 digits (0-9, a-f). False: it is none. */
bool ad__sha256_parse(const char *text, uint8_t out[AD_SHA256_SIZE]);
/* Tell whether two runs of bytes differ, in a time that depends on size alone. True if there is no libcrypto. */
bool ad__secret_differs(const void *a, const void *b, size_t size);

#endif
