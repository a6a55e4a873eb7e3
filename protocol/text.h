/* Text for faults and traces in a fixed space, cut where that ends; and checks of UTF-8. */
#ifndef AD_PROTOCOL_TEXT_H
#define AD_PROTOCOL_TEXT_H

#include "protocol/base.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ad_text_buffer {
    char *data; /* NUL-terminated from the first ad__text_add on */
    size_t size, used;
} ad_text_buffer;

void ad__text_add(ad_text_buffer *t, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Append numbers as "2,3,4", or as "2,3,..." if they and `behind` more characters do not fit. */
void ad__text_numbers(ad_text_buffer *t, int n, const int64_t *numbers, size_t behind);
/* Append a shape as Python writes it: (), (3,), (2,3). */
void ad__text_shape(ad_text_buffer *t, int ndim, const int64_t *shape);
/* Tell whether a text is UTF-8 as Unicode defines it: shortest forms, no surrogates, nothing beyond the last code
 * point. */
bool ad__is_utf8(const char *text, size_t size);

#ifdef __cplusplus
}
#endif
#endif
