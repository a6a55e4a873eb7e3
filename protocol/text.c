/* Text in a fixed space, and UTF-8: see text.h. */
#include "protocol/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void ad__text_add(ad_text_buffer *t, const char *format, ...) {
    va_list list;
    int n;

    if (t->used >= t->size) return;
    va_start(list, format);
    n = vsnprintf(t->data + t->used, t->size - t->used, format, list);
    va_end(list);
    if (n > 0) t->used = (size_t)n < t->size - t->used ? t->used + (size_t)n : t->size - 1;
}

void ad__text_numbers(ad_text_buffer *t, int n, const int64_t *numbers, size_t behind) {
    const size_t first = t->used, more = behind + strlen(",...");
    size_t last = first; /* the last end after which "..." and the text behind it have room */

    for (int i = 0; i < n; i++) {
        ad__text_add(t, i == 0 ? "%" PRId64 : ",%" PRId64, numbers[i]);
        if (t->used + behind >= t->size) {
            t->used = last;
            ad__text_add(t, last == first ? "..." : ",...");
            return;
        }
        if (t->used + more < t->size) last = t->used;
    }
}

void ad__text_shape(ad_text_buffer *t, int ndim, const int64_t *shape) {
    ad__text_add(t, "(");
    ad__text_numbers(t, ndim, shape, ndim == 1 ? 2 : 1);
    ad__text_add(t, ndim == 1 ? ",)" : ")");
}

/* Count the bytes of the character at p, at most `left`; 0: it is not UTF-8. */
static size_t measure_utf8_character(const unsigned char *p, size_t left) {
    const size_t n = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : p[0] < 0xf5 ? 4 : 0;

    if (n == 0 || n > left) return 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80) return 0;
    /* Overlong forms, surrogates, and numbers beyond the last code point are refused. */
    if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) || (p[0] == 0xf0 && p[1] < 0x90) ||
        (p[0] == 0xf4 && p[1] > 0x8f))
        return 0;
    return n;
}

bool ad__is_utf8(const char *text, size_t size) {
    for (size_t i = 0, n; i < size; i += n)
        if ((n = measure_utf8_character((const unsigned char *)text + i, size - i)) == 0) return false;
    return true;
}
