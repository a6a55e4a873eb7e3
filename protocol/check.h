/* The field checker: one unpacked message against its row, for decode.c. */
#ifndef AD_PROTOCOL_CHECK_H
#define AD_PROTOCOL_CHECK_H

#include "protocol/message.h"

struct msgpack_object;

/* Fills *m from arena. allowed: mask of classes. AD_E_PROTOCOL, AD_E_MEMORY. */
int ad__check_message(const struct msgpack_object *object, ad_arena *arena, uint32_t allowed, ad_message *m,
                      ad_fault *fault);

#endif
