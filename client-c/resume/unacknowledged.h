/* What the server may not have yet: the end of the stream of bytes to it, in a row, so that it can be sent again over
 * another connection. How far the server is shows in what it says of operations and requests: it takes frames one after
 * another and whole. Belongs to the session, whose lock guards it. */
#ifndef AD_CLIENT_C_RESUME_UNACKNOWLEDGED_H
#define AD_CLIENT_C_RESUME_UNACKNOWLEDGED_H

#include "protocol/message.h"

#define AD_UNACKED_MARKS 128

typedef struct ad_unacked_block ad_unacked_block;

/* Up to `end` the server has everything once it has come beyond so many operations, or so many requests: those before
 * the last frame of these bytes. */
typedef struct ad_unacked_mark {
    uint64_t end, ops, requests;
} ad_unacked_mark;

typedef struct ad_unacked_descriptor {
    uint64_t at; /* the byte that it goes with */
    int fd;      /* -1: it was a fork's, and not to be kept */
} ad_unacked_descriptor;

typedef struct ad_unacked {
    ad_unacked_block *first, *last,
        *spare; /* spare: to be used again, without asking the system for memory each time */
    unsigned nspare;
    ad_unacked_block *large; /* the same of payloads, while there is anything here */
    unsigned nlarge;
    uint64_t begin, end; /* of what is kept, in bytes of the stream */
    ad_unacked_mark mark[AD_UNACKED_MARKS];
    unsigned first_mark, marks;
    ad_unacked_descriptor *passed;
    unsigned npassed, capacity;
} ad_unacked;

int ad__unacked_add(ad_unacked *u, const void *data, size_t size); /* AD_E_MEMORY: it is of no use any more */
/* Where the bytes that were added last are, until they are released. */
const uint8_t *ad__unacked_last(const ad_unacked *u, size_t size);
/* What has been added ends with a whole frame, before which there were so many operations and requests. */
void ad__unacked_mark(ad_unacked *u, uint64_t ops, uint64_t requests);
/* A descriptor that goes with a byte that is about to be added; fd is duplicated (-1: none). AD_E_MEMORY, AD_E_SYSTEM:
 * it is of no use any more. */
int ad__unacked_pass(ad_unacked *u, uint64_t at, int fd);
/* The server has answered so many. */
void ad__unacked_release(ad_unacked *u, uint64_t ops, uint64_t requests);
/* Appends bytes from `from` on to out, some of those before `to`; how many. */
size_t ad__unacked_read(const ad_unacked *u, uint64_t from, uint64_t to, ad_bytes *out);
/* The first descriptor at or behind `from`: its place here, or -1. */
int ad__unacked_next_descriptor(const ad_unacked *u, uint64_t from);
void ad__unacked_clear(ad_unacked *u);

#endif
