/* The field checker: one message after another against its row, for decode.c. */
#ifndef AD_PROTOCOL_CHECK_H
#define AD_PROTOCOL_CHECK_H

#include "protocol/message.h"

/* Fills *m from arena with the message at *at, of a scanned block, and goes past it. allowed: mask of classes.
 * AD_E_PROTOCOL, AD_E_MEMORY. */
int ad__check_message(const uint8_t **at, ad_arena *arena, uint32_t allowed, ad_message *m, ad_fault *fault);
/* What must be true of all fields together. AD_E_PROTOCOL. */
int ad__check_row(ad_message *m, ad_fault *fault);

#endif
