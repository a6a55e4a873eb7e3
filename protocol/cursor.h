/* Reading the objects of a control block in place, one after another. ad__scan has checked the block, so nothing here
 * checks for its end. Readers count the objects of a container, and stop after a mistake. A read that returns false has
 * not moved *at. */
#ifndef AD_PROTOCOL_CURSOR_H
#define AD_PROTOCOL_CURSOR_H

#include "protocol/base.h"

#include <string.h>

/* Read a big-endian number of 1, 2, 4 or 8 bytes. */
static inline uint64_t ad__get_be(const uint8_t *p, int bytes) {
    uint16_t two;
    uint32_t four;
    uint64_t eight;

    switch (bytes) {
    case 1: return *p;
    case 2: memcpy(&two, p, 2); return __builtin_bswap16(two);
    case 4: memcpy(&four, p, 4); return __builtin_bswap32(four);
    default: memcpy(&eight, p, 8); return __builtin_bswap64(eight);
    }
}

typedef enum ad_kind {
    AD_KIND_NIL,
    AD_KIND_BOOL,
    AD_KIND_UNSIGNED, /* a whole number from 0 to 2^64-1, whatever its encoding */
    AD_KIND_SIGNED,   /* only in heads: the number may turn out to be AD_KIND_UNSIGNED */
    AD_KIND_NEGATIVE, /* a number below 0 */
    AD_KIND_FLOAT,
    AD_KIND_TEXT, /* from here on: objects with a length */
    AD_KIND_BYTES,
    AD_KIND_EXT,
    AD_KIND_ARRAY, /* from here on: objects that contain others */
    AD_KIND_MAP,
    AD_KIND_NONE /* a byte that msgpack does not use */
} ad_kind;

/* The meaning of an object's first byte. */
typedef struct ad_head {
    uint8_t kind;  /* ad_kind */
    uint8_t width; /* bytes of the number or length behind it */
    uint8_t mask;  /* width 0: the bits of the byte that are the length */
    uint8_t fixed; /* the length, where neither width nor mask says it */
} ad_head;
extern const ad_head ad__heads[256];

/* The length that a head announces; p points behind the head's first byte. */
static inline uint32_t ad__head_length(const ad_head *h, const uint8_t *p) {
    return h->width == 0 ? (uint32_t)((p[-1] & h->mask) | h->fixed) : (uint32_t)ad__get_be(p, h->width);
}

typedef struct ad_object {
    uint8_t kind;  /* ad_kind */
    int8_t type;   /* type of an AD_KIND_EXT */
    uint32_t size; /* bytes, elements or pairs */
    union {
        bool b;
        uint64_t u;
        int64_t i;
        double f;
        const uint8_t *data;
    } as;
} ad_object;

/* Read the next object; of an array or a map only its head. */
void ad__object_read(const uint8_t **at, ad_object *out);
/* Skip the next object and all that it contains. */
void ad__object_skip(const uint8_t **at);
/* Read a whole number as two's complement; AD_KIND_NONE: the next object is not one. */
ad_kind ad__object_number(const uint8_t **at, uint64_t *out);

static inline bool ad__object_is(const uint8_t *at, ad_kind kind) { return ad__heads[*at].kind == kind; }

/* Read the head of an array. */
static inline bool ad__object_array(const uint8_t **at, uint32_t *size) {
    const uint8_t *p = *at + 1;
    const ad_head *h = &ad__heads[p[-1]];

    if (h->kind != AD_KIND_ARRAY) return false;
    *size = ad__head_length(h, p);
    *at = p + h->width;
    return true;
}

static inline bool ad__object_unsigned(const uint8_t **at, uint64_t *out) {
    const uint8_t *from = *at;

    if (*from < 0x80) { /* most numbers are that small */
        *out = *from;
        *at = from + 1;
        return true;
    }
    if (ad__object_number(at, out) == AD_KIND_UNSIGNED) return true;
    *at = from;
    return false;
}

/* Read a number from 0 to INT64_MAX. */
static inline bool ad__object_size(const uint8_t **at, int64_t *out) {
    const uint8_t *from = *at;
    uint64_t value;

    if (!ad__object_unsigned(at, &value) || value > INT64_MAX) {
        *at = from;
        return false;
    }
    *out = (int64_t)value;
    return true;
}

/* Read a number from INT64_MIN to INT64_MAX. */
static inline bool ad__object_int(const uint8_t **at, int64_t *out) {
    const uint8_t *from = *at;
    uint64_t value;
    const ad_kind kind = ad__object_number(at, &value);

    if (kind == AD_KIND_NONE || (kind == AD_KIND_UNSIGNED && value > INT64_MAX)) {
        *at = from;
        return false;
    }
    *out = (int64_t)value;
    return true;
}

#endif
