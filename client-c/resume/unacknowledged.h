/* The unacknowledged bytes: the end of the stream of bytes to the server, which may be sent again over another
 * connection.
 *
 *   stream  --- the server has it ---|begin ====== mark ====== mark ====== end|--- gathers ---
 *                                      blocks, in a row, with descriptors
 *
 * The server takes whole frames in turn. So its answers to operations and requests show how many bytes it has received.
 * Owner: the session, whose lock guards them. */
#ifndef AD_CLIENT_C_RESUME_UNACKNOWLEDGED_H
#define AD_CLIENT_C_RESUME_UNACKNOWLEDGED_H

#include "protocol/message.h"

#define AD_UNACKED_MARKS 128

typedef struct ad_unacked_block ad_unacked_block;

/* The server has received all bytes before `end` once it has answered more operations than `ops`, or more requests than
 * `requests`. These are the counts before the last frame that ends at `end`. */
typedef struct ad_unacked_mark {
    uint64_t end, ops, requests;
} ad_unacked_mark;

typedef struct ad_unacked_descriptor {
    uint64_t at; /* byte of the stream that the descriptor goes with */
    int fd;      /* -1: the descriptor was a fork's, of which there is no copy */
} ad_unacked_descriptor;

typedef struct ad_unacked {
    ad_unacked_block *first, *last;
    ad_unacked_block *spare; /* blocks for the next bytes, so that memory is not allocated each time */
    unsigned nspare;
    ad_unacked_block *large; /* spare blocks of large payloads; freed when all bytes are acknowledged */
    unsigned nlarge;
    uint64_t begin, end; /* unacknowledged bytes: positions in the stream */
    ad_unacked_mark mark[AD_UNACKED_MARKS];
    unsigned first_mark, marks;
    ad_unacked_descriptor *passed;
    unsigned npassed, capacity;
} ad_unacked;

/* Add bytes at the end. AD_E_MEMORY: the session cannot be resumed any more. */
int ad__unacked_add(ad_unacked *u, const void *data, size_t size);
/* Return the place of the bytes that were added last. It is valid until they are released. */
const uint8_t *ad__unacked_last(const ad_unacked *u, size_t size);
/* Mark the end of a whole frame. ops, requests: counts before that frame. */
void ad__unacked_mark(ad_unacked *u, uint64_t ops, uint64_t requests);
/* Add a duplicate of the descriptor (-1: none) that goes with the byte at `at`. AD_E_MEMORY, AD_E_SYSTEM: the session
 * cannot be resumed any more. */
int ad__unacked_pass(ad_unacked *u, uint64_t at, int fd);
/* Release the bytes that the server has received, by the counts of what it has answered. */
void ad__unacked_release(ad_unacked *u, uint64_t ops, uint64_t requests);
/* Append some of the bytes from `from` to `to`, and at least one, to out. Returns their number, 0: there are none, or
 * no memory. */
size_t ad__unacked_read(const ad_unacked *u, uint64_t from, uint64_t to, ad_bytes *out);
/* Return the index in passed of the first descriptor at or behind `from`, or -1. */
int ad__unacked_next_descriptor(const ad_unacked *u, uint64_t from);
void ad__unacked_clear(ad_unacked *u);

#endif
