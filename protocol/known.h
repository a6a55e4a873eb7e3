/* Known messages: operations that a client sends again are recognised by their bytes, instead of being read anew.
 *
 *     bytes     [ufunc mul f4 [[#71 f4 [8]]] [[#64 f4 0 [8]] 0.25] []]
 *     mask      [ufunc mul f4 [[... f4 [8]]] [[... f4 . [8]] ....] []]
 *     holes                     id            id      offset scalar     read from the bytes each time
 *     image     the operands, as the reader made them: copied, and the holes' values put into the copy
 *
 * So nothing of a message is believed because an earlier one was right: all bytes but the holes are the same, and holes
 * are read and checked. Facts that depend on no hole, such as the estimate of a message's cost, are kept as well
 * (ad_facts).
 *
 * The messages before it predict which known message comes next. So a loop of any length is recognised from its second
 * turn on. Known messages take AD_KNOWN_MEMORY bytes at most: the oldest make way. */
#ifndef AD_PROTOCOL_KNOWN_H
#define AD_PROTOCOL_KNOWN_H

#include "protocol/message.h"

typedef struct ad_known ad_known;

#define AD_KNOWN_MEMORY (160u << 10)

int ad__known_new(ad_known **out); /* AD_E_MEMORY */
void ad__known_free(ad_known *k);

/* Scan a block as ad__scan does. Recognise known messages in it, and learn others. AD_E_PROTOCOL. */
int ad__known_scan(ad_known *k, const uint8_t *data, size_t size, ad_fault *fault);
/* Read the next message of the block that was scanned last. False: it is not known, or there is no memory. */
bool ad__known_read(ad_known *k, const uint8_t *at, const uint8_t *end, ad_arena *arena, ad_message *m);

#endif
