/* Objects of a control block, read one after another where they lie. The block has been through ad__scan, so nothing
 * here looks for its end: whoever reads counts the objects that a container announces, and reads no further after a
 * mistake. A read that gives false has not moved. */
#ifndef AD_PROTOCOL_CURSOR_H
#define AD_PROTOCOL_CURSOR_H

#include "protocol/base.h"

#include <string.h>

/* A big-endian number of 1, 2, 4 or 8 bytes. */
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
    AD_KIND_UNSIGNED, /* a whole number from 0 to 2^64-1, however it is written */
    AD_KIND_SIGNED,   /* a head only, */
    AD_KIND_NEGATIVE, /* and what may come of it */
    AD_KIND_FLOAT,
    AD_KIND_TEXT, /* from here on: what has a length */
    AD_KIND_BYTES,
    AD_KIND_EXT,
    AD_KIND_ARRAY, /* from here on: what has objects in it */
    AD_KIND_MAP,
    AD_KIND_NONE /* a byte that msgpack does not use */
} ad_kind;

/* What an object's first byte says. */
typedef struct ad_head {
    uint8_t kind;  /* ad_kind */
    uint8_t width; /* bytes of the number or the length that follow it */
    uint8_t mask;  /* width 0: the length is these bits of it, */
    uint8_t fixed; /* or this */
} ad_head;
extern const ad_head ad__heads[256];

/* The length that a head announces; p: what comes behind it. */
static inline uint32_t ad__head_length(const ad_head *h, const uint8_t *p) {
    return h->width == 0 ? (uint32_t)((p[-1] & h->mask) | h->fixed) : (uint32_t)ad__get_be(p, h->width);
}

typedef struct ad_object {
    uint8_t kind;  /* ad_kind */
    int8_t type;   /* of an ext */
    uint32_t size; /* bytes, elements or pairs */
    union {
        bool b;
        uint64_t u;
        int64_t i;
        double f;
        const uint8_t *data;
    } as;
} ad_object;

/* The next object, whatever it is; of an array or a map its head. */
void ad__object_read(const uint8_t **at, ad_object *out);
/* Past the next object and all that is in it. */
void ad__object_skip(const uint8_t **at);
/* A whole number, as two's complement; AD_KIND_NONE: the next object is none. */
ad_kind ad__object_number(const uint8_t **at, uint64_t *out);

static inline bool ad__object_is(const uint8_t *at, ad_kind kind) { return ad__heads[*at].kind == kind; }

/* The head of an array. */
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

    if (*from < 0x80) { /* most are that small */
        *out = *from;
        *at = from + 1;
        return true;
    }
    if (ad__object_number(at, out) == AD_KIND_UNSIGNED) return true;
    *at = from;
    return false;
}

/* From 0 to INT64_MAX. */
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

/* From INT64_MIN to INT64_MAX. */
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
