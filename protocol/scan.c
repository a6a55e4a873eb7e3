#include "protocol/frame.h"

/* What a first byte of msgpack announces. */
typedef enum shape { SCAN_LEAF, SCAN_BYTES, SCAN_ARRAY, SCAN_MAP, SCAN_BAD } shape;

typedef struct head {
    uint8_t shape;
    uint8_t width; /* bytes of the length or number that follow the first byte */
    uint8_t extra; /* bytes beyond the declared length (the type of an ext) */
    uint8_t fixed; /* the length itself, where it is in the first byte */
} head;

/* The bytes from 0xc0 to 0xdf; the others are ranges. A number's own bytes are its width too. */
#define LEAF(width) \
    { SCAN_LEAF, width, 0, 0 }
#define BYTES(width) \
    { SCAN_BYTES, width, 0, 0 }
#define EXT(width, length) \
    { SCAN_BYTES, width, 1, length }
static const head heads[32] = {
    /* nil, unused, false, true */
    LEAF(0),
    {SCAN_BAD, 0, 0, 0},
    LEAF(0),
    LEAF(0),
    /* bin, ext, float */
    BYTES(1),
    BYTES(2),
    BYTES(4),
    EXT(1, 0),
    EXT(2, 0),
    EXT(4, 0),
    LEAF(4),
    LEAF(8),
    /* unsigned, signed */
    LEAF(1),
    LEAF(2),
    LEAF(4),
    LEAF(8),
    LEAF(1),
    LEAF(2),
    LEAF(4),
    LEAF(8),
    /* fixext, str */
    EXT(0, 1),
    EXT(0, 2),
    EXT(0, 4),
    EXT(0, 8),
    EXT(0, 16),
    BYTES(1),
    BYTES(2),
    BYTES(4),
    /* array, map */
    {SCAN_ARRAY, 2, 0, 0},
    {SCAN_ARRAY, 4, 0, 0},
    {SCAN_MAP, 2, 0, 0},
    {SCAN_MAP, 4, 0, 0}};

static head head_of(uint8_t byte) {
    if (byte < 0x80 || byte >= 0xe0) return (head){SCAN_LEAF, 0, 0, 0};
    if (byte < 0x90) return (head){SCAN_MAP, 0, 0, byte & 15};
    if (byte < 0xa0) return (head){SCAN_ARRAY, 0, 0, byte & 15};
    if (byte < 0xc0) return (head){SCAN_BYTES, 0, 0, byte & 31};
    return heads[byte - 0xc0];
}

/* Big-endian, as msgpack's lengths are. */
static uint64_t get_be(const uint8_t *in, int bytes) {
    uint64_t value = 0;

    for (int i = 0; i < bytes; i++) value = value << 8 | in[i];
    return value;
}

typedef struct scan {
    const uint8_t *data;
    size_t size, at;
    uint64_t left[AD_SCAN_DEPTH]; /* objects that the open containers still want */
    int depth;
    uint32_t elements;
} scan;

static int bad(ad_fault *fault, const scan *s, const char *what) {
    return ad__fault(fault, AD_E_PROTOCOL, "control block: %s at byte %zu", what, s->at);
}

static int open_container(scan *s, uint64_t children, ad_fault *fault) {
    if (s->depth == AD_SCAN_DEPTH) return bad(fault, s, "nested too deep");
    if (children > s->size - s->at) return bad(fault, s, "a container is longer than the block");
    s->left[s->depth++] = children;
    while (s->depth > 0 && s->left[s->depth - 1] == 0) s->depth--;
    return AD_OK;
}

/* One object's head, and a leaf's body. */
static int step(scan *s, ad_fault *fault) {
    const head h = head_of(s->data[s->at]);
    uint64_t length;

    if (h.shape == SCAN_BAD) return bad(fault, s, "a byte that msgpack does not use");
    if (s->depth == 0 && h.shape != SCAN_ARRAY) return bad(fault, s, "a message is not an array");
    if (++s->elements > AD_SCAN_ELEMENTS) return bad(fault, s, "too many objects");
    s->at++;
    if (s->size - s->at < h.width) return bad(fault, s, "cut off");
    length = h.shape == SCAN_LEAF ? 0 : h.width > 0 ? get_be(s->data + s->at, h.width) : h.fixed;
    s->at += h.width;
    if (s->depth > 0) s->left[s->depth - 1]--; /* of the container that this object is in */
    if (h.shape == SCAN_ARRAY || h.shape == SCAN_MAP)
        return open_container(s, h.shape == SCAN_MAP ? 2 * length : length, fault);
    length += h.extra;
    if (length > s->size - s->at) return bad(fault, s, "a string is longer than the block");
    s->at += length;
    while (s->depth > 0 && s->left[s->depth - 1] == 0) s->depth--;
    return AD_OK;
}

int ad__scan(const uint8_t *data, size_t size, ad_fault *fault) {
    scan s = {.data = data, .size = size};
    int status = AD_OK;

    while (status == AD_OK && s.at < size) status = step(&s, fault);
    if (status == AD_OK && s.depth > 0) status = bad(fault, &s, "cut off");
    return status;
}
