/* Text for machines: see put.h. */
#include "server/common/put.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void ad__put(ad_bytes *b, const char *format, ...) {
    va_list list;
    va_start(list, format);
    int n = vsnprintf(NULL, 0, format, list);
    va_end(list);
    if (n < 0 || ad__bytes_reserve(b, (size_t)n + 1)) return;
    va_start(list, format);
    vsnprintf((char *)b->data + b->size, (size_t)n + 1, format, list);
    va_end(list);
    b->size += (size_t)n;
}

/* Count the bytes of the UTF-8 character at p; 0: there is none (RFC 3629). */
static size_t measure_character(const unsigned char *p) {
    if (p[0] < 0x80) return 1;
    if (p[0] < 0xC2 || p[0] > 0xF4) return 0;
    size_t n = p[0] < 0xE0 ? 2 : p[0] < 0xF0 ? 3 : 4;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xC0) != 0x80) return 0;
    bool overlong = (p[0] == 0xE0 && p[1] < 0xA0) || (p[0] == 0xF0 && p[1] < 0x90);
    bool beyond = (p[0] == 0xED && p[1] > 0x9F) || (p[0] == 0xF4 && p[1] > 0x8F);
    return overlong || beyond ? 0 : n;
}

/* Append a quoted text; `control` appends its control characters. */
static void put_quoted(ad_bytes *b, const char *text, void (*control)(ad_bytes *b, unsigned char c)) {
    ad__bytes_append(b, "\"", 1);
    for (const unsigned char *p = (const unsigned char *)text; *p;) {
        size_t n = measure_character(p);
        if (*p == '"' || *p == '\\') ad__bytes_append(b, "\\", 1);
        if (!n) ad__bytes_append(b, "\xEF\xBF\xBD", 3);
        else if (*p < ' ' || *p == 127) control(b, *p);
        else ad__bytes_append(b, p, n);
        p += n ? n : 1;
    }
    ad__bytes_append(b, "\"", 1);
}

/* Append a control character for JSON. */
static void put_json_control(ad_bytes *b, unsigned char c) { ad__put(b, "\\u%04x", c); }

/* Append a control character for Prometheus, which escapes \n alone. */
static void put_label_control(ad_bytes *b, unsigned char c) { ad__put(b, c == '\n' ? "\\n" : "%c", c); }

void ad__put_json(ad_bytes *b, const char *text) { put_quoted(b, text, put_json_control); }

void ad__put_label(ad_bytes *b, const char *text) { put_quoted(b, text, put_label_control); }
