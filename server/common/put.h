/* Text for machines, appended to a growing run of bytes: JSON, and labels of Prometheus. */
#ifndef AD_SERVER_PUT_H
#define AD_SERVER_PUT_H

#include "protocol/message.h"

/* Append formatted text, as printf prints it. */
void ad__put(ad_bytes *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Append a string of JSON with its quotes. Bytes that are not UTF-8 become U+FFFD. */
void ad__put_json(ad_bytes *b, const char *text);
/* Append the value of a label with its quotes. Bytes that are not UTF-8 become U+FFFD. */
void ad__put_label(ad_bytes *b, const char *text);

#endif
