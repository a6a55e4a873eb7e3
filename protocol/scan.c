#include "protocol/cursor.h"
#include "protocol/frame.h"

typedef struct scan {
    const uint8_t *data;
    size_t size, at;
    uint64_t left;                 /* objects that the innermost open container still wants, */
    uint64_t outer[AD_SCAN_DEPTH]; /* and those around it */
    unsigned depth;                /* open containers */
    uint32_t elements;
} scan;

/* NULL, or what is wrong; here as below. Its objects are counted now: so many come, if the block is whole. */
static inline const char *open_container(scan *s, uint64_t children) {
    if (s->depth == AD_SCAN_DEPTH) return "nested too deep";
    if (children > s->size - s->at) return "a container is longer than the block";
    if (children > AD_SCAN_ELEMENTS - s->elements) return "too many objects";
    s->elements += (uint32_t)children;
    s->outer[s->depth++] = s->left;
    s->left = children;
    return NULL;
}

/* An object that is more than a number and the like; its head and the length have been passed. */
static inline const char *step(scan *s, const ad_head *h) {
    uint64_t length;

    if (h->kind == AD_KIND_NONE) return "a byte that msgpack does not use";
    if (s->at > s->size) return "cut off";
    length = ad__head_length(h, s->data + s->at - h->width);
    if (h->kind == AD_KIND_ARRAY) return open_container(s, length);
    if (h->kind == AD_KIND_MAP) return open_container(s, 2 * length);
    length += h->kind == AD_KIND_EXT; /* its type */
    if (length > s->size - s->at) return "a string is longer than the block";
    s->at += length;
    return NULL;
}

/* The next message, after those that are complete. */
static inline const char *begin_message(scan *s) {
    if (!ad__object_is(s->data + s->at, AD_KIND_ARRAY)) return "a message is not an array";
    if (s->elements++ == AD_SCAN_ELEMENTS) return "too many objects";
    s->left = 1;
    return NULL;
}

int ad__scan(const uint8_t *data, size_t size, ad_fault *fault) {
    scan s = {.data = data, .size = size};
    const char *wrong = NULL;

    while (wrong == NULL) {
        while (s.left > 0 && s.at < size && wrong == NULL) {
            const ad_head *h = &ad__heads[data[s.at]];
            s.at += 1u + h->width;
            s.left--;
            if (h->kind >= AD_KIND_TEXT) wrong = step(&s, h);
        }
        if (wrong != NULL) break;
        if (s.left > 0 || s.at > size) wrong = "cut off";
        else if (s.depth > 0) s.left = s.outer[--s.depth];
        else if (s.at == size) return AD_OK;
        else wrong = begin_message(&s);
    }
    return ad__fault(fault, AD_E_PROTOCOL, "control block: %s at byte %zu", wrong, s.at);
}
