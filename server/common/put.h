/* Text for machines, appended to a growing run of bytes: JSON, and the labels of Prometheus. */
#ifndef AD_SERVER_PUT_H
#define AD_SERVER_PUT_H

#include "protocol/message.h"

/* As printf does. */
void ad__put(ad_bytes *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A string of JSON, with its quotes. What is no UTF-8 becomes U+FFFD. */
void ad__put_json(ad_bytes *b, const char *text);
/* The value of a label, with its quotes. The same. */
void ad__put_label(ad_bytes *b, const char *text);

#endif
