/* Tokens, and the hashes of them that the server stores. ad__secret_differs (protocol/tls/digest.h) compares them. */
#ifndef AD_SERVER_SECRET_H
#define AD_SERVER_SECRET_H

#include "protocol/base.h"
#include "protocol/tls/digest.h"

#define AD_TOKEN_TEXT 48 /* bytes of a token that the server makes, with its NUL */
#define AD_TOKEN_LEAST 16
#define AD_TOKEN_MOST 256

/* Make a token of 256 random bits as text: "ad1_" and 43 letters. AD_E_SYSTEM. */
int ad__token_make(char out[AD_TOKEN_TEXT], ad_fault *fault);
/* Tell whether a text can be a token: AD_TOKEN_LEAST to AD_TOKEN_MOST bytes of printable ASCII without blanks. */
bool ad__token_formed(const char *token, size_t size);
/* Hash a token for storage. Plain SHA-256 is enough: salt and stretching slow down guessing, and 256 random bits
 * cannot be guessed. AD_E_UNSUPPORTED: there is no libcrypto; AD_E_MEMORY. */
int ad__token_hash(const char *token, size_t size, uint8_t out[AD_SHA256_SIZE], ad_fault *fault);

#endif
