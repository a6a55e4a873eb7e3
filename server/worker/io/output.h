/* Output: bytes on their way to a client.
 *
 *     stream   0 ─────── taken ──────── sent ──────── settled ─────── appended
 *              freed      held for a     not sent      not yet to be
 *                         new connection yet           sent (journal)
 *
 * The engine appends, and sends at once what the socket takes. The I/O thread sends the rest. Any thread may call these
 * functions, which lock. */
#ifndef AD_SERVER_WORKER_IO_OUTPUT_H
#define AD_SERVER_WORKER_IO_OUTPUT_H

#include <pthread.h>
#include <stdatomic.h>

#include "protocol/frame.h"
#include "protocol/ring.h"
#include "server/worker/base/component.h"
#include "server/worker/journal/journal.h"

typedef struct ad_output_block ad_output_block;
struct ad_output_block {
    ad_journal_block own; /* for the journal: place in the stream, and size */
    ad_output_block *next;
    size_t capacity;
    uint8_t data[];
};

typedef struct ad_output {
    pthread_mutex_t lock;
    int fd;
    ad_ring_writer *ring; /* the ring that bytes are put into where the client looks there; NULL: none */
    int pass;             /* its descriptor, which goes with the next bytes over the socket; -1: none */
    uint64_t limit;
    ad_output_block *first, **last, *tail, *at; /* at: the block with the next byte to be sent, or one before it */
    bool keeps;                                 /* sent bytes are held until the client has them */
    atomic_ullong appended;                     /* end of the stream so far */
    atomic_ullong settled;                      /* place up to which the stream may be sent */
    uint64_t sent, taken;                       /* bytes sent; bytes that the client has */
    ad_journal *journal;                        /* journal that appended bytes are recorded in; NULL: none */
    ad_journal_session *written;                /* row of the session in the journal */
    atomic_size_t queued;                       /* bytes appended and not sent */
    atomic_bool blocked;                        /* the socket is full: only ad__output_resume sends */
    atomic_bool away;                           /* the connection is closed: nothing is sent until ad__output_take_up */
    atomic_bool broken;                         /* the output has failed: nothing is sent any more */
    atomic_llong progress;                      /* while it is blocked: ns when it became so, or last took bytes */
    atomic_ullong total;                        /* bytes sent over all connections */
    int status;                                 /* AD_E_...: why it is broken */
    const char *why;
} ad_output;

void ad__output_init(ad_output *o, int fd, uint64_t limit);
/* Free the output, but do not close its descriptor. */
void ad__output_close(ad_output *o);
/* Hold sent bytes from now on, so that the stream can continue over another connection. */
void ad__output_keep(ad_output *o);
/* Record that the client has so many bytes. AD_E_PROTOCOL: that is more than were sent. */
int ad__output_taken(ad_output *o, uint64_t bytes);
/* Use a ring from now on. Its descriptor goes to the client with the next bytes, and is owned here. */
void ad__output_use_ring(ad_output *o, ad_ring_writer *w, ad_ring_memory *memory, int pass);
/* Use the socket alone from now on. */
void ad__output_leave_ring(ad_output *o);
/* Record that the connection is closed. Without ad__output_keep the output is broken then. */
void ad__output_away(ad_output *o);
/* Break the output for good: the client will not come back. */
void ad__output_break(ad_output *o);
/* Continue over another connection, which replaces the old one behind the same descriptor (fd is closed then). First
 * head is sent, then what follows the first `received` bytes of the stream. AD_E_RESUME with *why: that is impossible;
 * AD_E_CONNECTION: the new connection is closed, too. Both change nothing. */
int ad__output_take_up(ad_output *o, int fd, const void *head, size_t size, uint64_t received, const char **why);
/* Append a frame; the payload is copied. AD_E_MEMORY, AD_E_LIMIT, AD_E_CONNECTION: the output is broken. */
int ad__output_frame(ad_output *o, const void *control, size_t size, uint32_t flags, const void *payload, size_t bytes);
/* Create a block for a payload of size bytes; the caller sets own.size. NULL: no memory. */
ad_output_block *ad__output_block(const ad_output *o, size_t size);
/* Free such a block; NULL is allowed. */
void ad__output_block_free(const ad_output *o, ad_output_block *b);
/* Append a frame whose payload is b. The output owns b from here on, also after a failure. */
int ad__output_chunk(ad_output *o, const void *control, size_t size, uint32_t flags, ad_output_block *b);
/* Record appended bytes in the journal from now on. They are sent only after the checkpoint that led to them
 * (ad__output_settle). */
void ad__output_write_down(ad_output *o, ad_journal *journal, ad_journal_session *at);
void ad__output_settle(ad_output *o, uint64_t bytes);
/* Append bytes that another worker has appended, from place `base` of its stream on. The client may have any of them.
 * AD_E_MEMORY. */
int ad__output_put(ad_output *o, uint64_t base, const void *data, size_t size);
/* Send what the socket takes, unless it is blocked. True: just now it became blocked, closed or broken. */
bool ad__output_flush(ad_output *o);
/* I/O thread: send what the socket takes, because it is writable again. */
void ad__output_resume(ad_output *o);

extern const ad_component ad__component_output;

#endif
