/* Text for faults and traces, written into a fixed space and cut where that ends; and what text is. */
#ifndef AD_PROTOCOL_TEXT_H
#define AD_PROTOCOL_TEXT_H

#include "protocol/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ad_text {
    char *data; /* NUL-terminated from the first ad__text_add on */
    size_t size, used;
} ad_text;

void ad__text_add(ad_text *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* 2,3,4, or 2,3,... where no more numbers fit with what is to stand behind them: `behind` characters. */
void ad__text_numbers(ad_text *t, int n, const int64_t *numbers, size_t behind);
/* A shape as Python writes it: (), (3,), (2,3). */
void ad__text_shape(ad_text *t, int ndim, const int64_t *shape);
/* UTF-8 as the Unicode standard has it: shortest forms, no surrogates, nothing beyond the last code point. */
bool ad__is_utf8(const char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
