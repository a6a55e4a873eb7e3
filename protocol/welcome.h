/* The map of welcome, for encoding and decoding: its keys, and the members of ad_welcome that have their values. */
#ifndef AD_PROTOCOL_WELCOME_H
#define AD_PROTOCOL_WELCOME_H

#include "protocol/message.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ad_welcome_key {
    const char *name;
    size_t offset; /* offset of the member of ad_welcome */
    size_t size;   /* bytes of a text; 0: a uint64_t */
} ad_welcome_key;

enum { AD__WELCOME_KEYS = 16 };
extern const ad_welcome_key ad__welcome_keys[AD__WELCOME_KEYS];

#ifdef __cplusplus
}
#endif
#endif
