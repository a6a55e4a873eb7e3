/* The record that one front hands over to the next in an upgrade. It is a memory file, and names descriptors, which
 * stay open across the exec.
 *
 *     old front                             new front
 *     ad__hand_number(h, &x): out <- x      ad__hand_number(h, &x): x <- at
 *
 * The same functions write and read it, so that the two cannot differ. Each takes a place that is written to the
 * record, or read from it. Values beyond their bounds make all further reading fail. Only fronts of the same
 * AD_HAND_VERSION understand each other; the new one is asked before anything is stopped (upgrade.c). */
#ifndef AD_SERVER_FRONT_UPGRADE_RECORD_H
#define AD_SERVER_FRONT_UPGRADE_RECORD_H

#include "protocol/base.h"
#include "protocol/message.h"

#define AD_HAND_VERSION 5 /* version of the record: another order or other members make another version */

typedef struct ad_hand {
    bool reading, failed;
    ad_bytes out;            /* when writing */
    const uint8_t *at, *end; /* when reading */
    int *fd;                 /* when writing: the descriptors of the record */
    size_t count, room;
} ad_hand;

/* Transfer a number or a flag. */
void ad__hand_number(ad_hand *h, uint64_t *x);
void ad__hand_flag(ad_hand *h, bool *x);
/* Transfer a text in a place of so many bytes. */
void ad__hand_text(ad_hand *h, char *text, size_t size);
/* Transfer a text of any length, or NULL; the reader frees it. */
void ad__hand_string(ad_hand *h, char **text);
/* Transfer a descriptor; -1: there is none. The reader makes it close-on-exec again. */
void ad__hand_fd(ad_hand *h, int *fd);
/* Transfer the number of the elements that follow, and return it. A reader gets no number that the record has no
 * room for. */
size_t ad__hand_count(ad_hand *h, size_t count);
void ad__hand_free(ad_hand *h);

#endif
