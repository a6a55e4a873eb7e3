/* What one front hands over to the next when it is upgraded: a record in a memory file, and the descriptors that it
 * names, which stay open across the exec.
 *
 * The same functions write and read it, so that the two cannot differ: each takes a place, out of which the record is
 * written, or into which it is read. What is read is within bounds or fails all that follows. Only fronts of the same
 * AD_HAND_VERSION understand each other; the new one is asked before anything is stopped (upgrade.c). */
#ifndef AD_SERVER_FRONT_UPGRADE_RECORD_H
#define AD_SERVER_FRONT_UPGRADE_RECORD_H

#include "protocol/base.h"
#include "protocol/message.h"

#define AD_HAND_VERSION 3 /* of the record: another order or other members, another version */

typedef struct ad_hand {
    bool reading, failed;
    ad_bytes out;            /* writing */
    const uint8_t *at, *end; /* reading */
    int *fd;                 /* writing: the descriptors of the record */
    size_t count, room;
} ad_hand;

void ad__hand_number(ad_hand *h, uint64_t *x);
void ad__hand_flag(ad_hand *h, bool *x);
/* Text in a place of so many bytes. */
void ad__hand_text(ad_hand *h, char *text, size_t size);
/* Text of any length, NULL included: to be freed by the reader. */
void ad__hand_string(ad_hand *h, char **text);
/* -1: none. Each is read once; it is closed on exec again from there on. */
void ad__hand_fd(ad_hand *h, int *fd);
/* How many follow; the same is returned. Reading: not more than there can be. */
size_t ad__hand_count(ad_hand *h, size_t count);
void ad__hand_free(ad_hand *h);

#endif
