/* Secrets: making them, and comparing without telling how much of one is right. */
#ifndef AD_SERVER_SECRET_H
#define AD_SERVER_SECRET_H

#include "protocol/base.h"
#include "server/common/sha256.h"

#define AD_TOKEN_TEXT 48 /* bytes of a token that is made here, with its NUL */
#define AD_TOKEN_LEAST 16
#define AD_TOKEN_MOST 256

/* Whether two runs of bytes differ. The time taken depends on size alone. */
bool ad__secret_differs(const void *a, const void *b, size_t size);
/* A token of 256 random bits as text, "ad1_" and 43 letters. AD_E_SYSTEM. */
int ad__token_make(char out[AD_TOKEN_TEXT], ad_fault *fault);
/* Whether it can be one: AD_TOKEN_LEAST to AD_TOKEN_MOST bytes of printable ASCII without blanks. */
bool ad__token_formed(const char *token, size_t size);
/* What is kept of a token. SHA-256 as it is, without salt or stretching: those slow down guessing, and 256 random bits
 * cannot be guessed. */
void ad__token_hash(const char *token, size_t size, uint8_t out[AD_SHA256_SIZE]);

#endif
