/* Faults and texts of errors: see base.h. */
#include "protocol/base.h"

#include <stdarg.h>
#include <stdio.h>

/* Remove a character of UTF-8 that the end of the text has cut. */
static void trim_partial_character(char *text, size_t size) {
    size_t i = size;

    while (i > 0 && ((unsigned char)text[i - 1] & 0xc0) == 0x80) i--;
    if (i > 0 && (unsigned char)text[i - 1] >= 0xc0) text[i - 1] = '\0';
}

int ad__fault(ad_fault *fault, int code, const char *format, ...) {
    va_list list;
    int size;

    if (!fault) return code;
    fault->code = code;
    va_start(list, format);
    size = vsnprintf(fault->text, sizeof fault->text, format, list);
    va_end(list);
    if (size >= (int)sizeof fault->text) trim_partial_character(fault->text, sizeof fault->text - 1);
    return code;
}

static const char *const error_texts[] = {
    [0] = "ok",
#define AD_ERROR(code, NAME, exception, text) [code] = text,
#include "protocol/error.def"
#undef AD_ERROR
};

/* Never called; a code of two rows is a repeated case, which does not compile. */
static __attribute__((unused)) void require_unique_codes(unsigned code) {
    switch (code) {
#define AD_ERROR(code, NAME, exception, text) case code:
#include "protocol/error.def"
#undef AD_ERROR
    default: break;
    }
}

const char *ad__error_text(int code) {
    const int count = (int)(sizeof error_texts / sizeof error_texts[0]);

    if (code > 0 || code <= -count || !error_texts[-code]) return "unknown error";
    return error_texts[-code];
}
