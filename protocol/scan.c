/* The scan that bounds a control block before it is read: see frame.h. */
#include "protocol/cursor.h"
#include "protocol/frame.h"

typedef struct scan {
    const uint8_t *data;
    size_t size, at;
    uint64_t left;                 /* objects that the innermost open container still lacks */
    uint64_t outer[AD_SCAN_DEPTH]; /* the same number for each container around it */
    unsigned depth;                /* open containers */
    uint64_t elements;             /* objects of all containers so far */
} scan;

/* Open a container of so many objects. This and the next functions return NULL, or what is wrong. */
static inline const char *open_container(scan *s, uint64_t children) {
    if (s->depth == AD_SCAN_DEPTH) return "nested too deep";
    if (children > s->size - s->at) return "a container is longer than the block";
    s->elements += children;
    s->outer[s->depth++] = s->left;
    s->left = children;
    return NULL;
}

/* Scan an object that is longer than one byte and is not a short array. */
static inline const char *scan_object(scan *s) {
    const ad_head *h = &ad__heads[s->data[s->at]];
    uint64_t length;

    if (h->kind == AD_KIND_NONE) return "a byte that msgpack does not use";
    s->at++;
    if (s->size - s->at < h->width) return "cut off";
    s->at += h->width;
    if (h->kind < AD_KIND_TEXT) return NULL;
    length = ad__head_length(h, s->data + s->at - h->width);
    if (h->kind == AD_KIND_ARRAY) return open_container(s, length);
    if (h->kind == AD_KIND_MAP) return open_container(s, 2 * length);
    length += h->kind == AD_KIND_EXT; /* one byte for the ext's type */
    if (length > s->size - s->at) return "a string is longer than the block";
    s->at += length;
    return NULL;
}

/* Scan a message from its first byte on. Most objects are small numbers and short arrays. */
static inline const char *scan_message(scan *s) {
    const char *wrong = NULL;

    if (!ad__object_is(s->data + s->at, AD_KIND_ARRAY)) return "a message is not an array";
    s->elements++;
    s->left = 1;
    while (!wrong) {
        uint8_t byte;
        while (s->left == 0) {
            if (s->depth == 0) return NULL;
            s->left = s->outer[--s->depth];
        }
        if (s->at == s->size) return "cut off";
        byte = s->data[s->at];
        s->left--;
        if (byte < 0x80) s->at++;
        else if ((byte & 0xf0) == 0x90) s->at++, wrong = open_container(s, byte & 15);
        else wrong = scan_object(s);
    }
    return wrong;
}

static int report_scan(const scan *s, const char *wrong, ad_fault *fault) {
    if (!wrong && s->elements > AD_SCAN_ELEMENTS) wrong = "too many objects";
    if (!wrong) return 0;
    return ad__fault(fault, AD_E_PROTOCOL, "control block: %s at byte %zu", wrong, s->at);
}

int ad__scan(const uint8_t *data, size_t size, ad_fault *fault) {
    scan s = {.data = data, .size = size};
    const char *wrong = NULL;

    while (!wrong && s.at < size) wrong = scan_message(&s);
    return report_scan(&s, wrong, fault);
}

int ad__scan_with(const uint8_t *data, size_t size,
                  size_t (*skip)(void *of, const uint8_t *at, size_t left, uint64_t *elements), void *of,
                  ad_fault *fault) {
    scan s = {.data = data, .size = size};
    const char *wrong = NULL;

    while (!wrong && s.at < size) {
        const size_t known = skip(of, data + s.at, size - s.at, &s.elements);
        if (known) s.at += known;
        else wrong = scan_message(&s);
    }
    return report_scan(&s, wrong, fault);
}

size_t ad__scan_one(const uint8_t *data, size_t size, uint32_t *elements) {
    scan s = {.data = data, .size = size};

    if (scan_message(&s)) return 0;
    *elements = (uint32_t)s.elements;
    return s.at;
}

uint32_t ad__scan_messages(const uint8_t *data, size_t size) {
    scan s = {.data = data, .size = size};
    uint32_t count = 0;

    while (s.at < size && !scan_message(&s)) count++;
    return count;
}
