#include "protocol/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

void ad__text_add(ad_text *t, const char *format, ...) {
    va_list list;
    int n;

    if (t->used >= t->size) return;
    va_start(list, format);
    n = vsnprintf(t->data + t->used, t->size - t->used, format, list);
    va_end(list);
    if (n > 0) t->used = (size_t)n < t->size - t->used ? t->used + (size_t)n : t->size - 1;
}

void ad__text_shape(ad_text *t, int ndim, const int64_t *shape) {
    ad__text_add(t, "(");
    for (int i = 0; i < ndim; i++) ad__text_add(t, i == 0 ? "%" PRId64 : ",%" PRId64, shape[i]);
    ad__text_add(t, ndim == 1 ? ",)" : ")");
}
