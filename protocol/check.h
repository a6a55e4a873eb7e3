/* The field checker, for decode.c: it checks one message after another against its row. */
#ifndef AD_PROTOCOL_CHECK_H
#define AD_PROTOCOL_CHECK_H

#include "protocol/message.h"

/* Read the message at *at, of a scanned block, into *m, and move *at behind it. Its parts are in the arena. allowed:
 * mask of classes. AD_E_PROTOCOL, AD_E_MEMORY. */
int ad__check_message(const uint8_t **at, ad_arena *arena, uint32_t allowed, ad_message *m, ad_fault *fault);
/* Check what must be true of all fields of a message together. AD_E_PROTOCOL. */
int ad__check_row(ad_message *m, ad_fault *fault);

#endif
