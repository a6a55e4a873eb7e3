/* Bytes on their way to a client. The engine appends and sends at once while the socket takes them; what it does not
 * take waits for the I/O thread. Any thread may call these. */
#ifndef AD_SERVER_WORKER_NET_OUTPUT_H
#define AD_SERVER_WORKER_NET_OUTPUT_H

#include <pthread.h>
#include <stdatomic.h>

#include "protocol/frame.h"
#include "server/worker/journal/journal.h"

typedef struct ad_output_block ad_output_block;
struct ad_output_block {
    ad_journal_block own; /* base, size: as another worker would see it */
    ad_output_block *next;
    size_t capacity;
    uint8_t data[];
};

typedef struct ad_output {
    pthread_mutex_t lock;
    int fd;
    uint64_t limit;
    ad_output_block *first, **last, *tail, *at; /* at: what is sent next is in it, or behind it */
    bool keeps;                                 /* what was sent is kept until the client has it */
    atomic_ullong appended;                     /* bytes of the stream ... */
    atomic_ullong settled;                      /* ... of which so many may be sent */
    uint64_t sent, taken;                       /* taken: the client has them */
    ad_journal *journal;                        /* what is appended is written down there; NULL: it is not */
    ad_journal_session *written;                /* for this session */
    atomic_size_t queued;                       /* bytes appended and not yet sent */
    atomic_bool blocked;                        /* the socket is full: only ad__output_resume sends */
    atomic_bool away;                           /* the connection is gone: nothing is sent until ad__output_take_up */
    atomic_bool broken;                         /* it failed: nothing is sent any more */
    atomic_llong progress;                      /* ns: when the socket last took something, or became blocked */
    atomic_ullong total;                        /* bytes sent */
    int status;                                 /* why it is broken */
    const char *why;
} ad_output;

void ad__output_init(ad_output *o, int fd, uint64_t limit);
void ad__output_close(ad_output *o); /* not the descriptor */
/* From here on the stream can be taken up again over another connection. */
void ad__output_keep(ad_output *o);
/* The client has so many bytes. AD_E_PROTOCOL: it cannot have. */
int ad__output_taken(ad_output *o, uint64_t bytes);
/* The connection is gone. */
void ad__output_away(ad_output *o);
/* Nobody will ever take any of it. */
void ad__output_break(ad_output *o);
/* Go on over another connection, which takes the place of the old one in the descriptor (fd is closed then):
 * first head, then what follows the first `received` bytes of the stream. AD_E_RESUME, and *why: that cannot be;
 * AD_E_CONNECTION: it is gone, too. Nothing has changed then. */
int ad__output_take_up(ad_output *o, int fd, const void *head, size_t size, uint64_t received, const char **why);
/* Append a frame; payload is copied. AD_E_MEMORY, AD_E_LIMIT, AD_E_CONNECTION; it is broken then. */
int ad__output_frame(ad_output *o, const void *control, size_t size, uint32_t flags, const void *payload, size_t bytes);
/* A block to be filled with a payload (size bytes, its size member set); NULL: no memory. */
ad_output_block *ad__output_block(const ad_output *o, size_t size);
void ad__output_block_free(const ad_output *o, ad_output_block *b); /* NULL is allowed */
/* Append a frame whose payload is b, which is the output's from here on, success or not. */
int ad__output_chunk(ad_output *o, const void *control, size_t size, uint32_t flags, ad_output_block *b);
/* What is appended is written down, and what state has led to it: nothing behind ad__output_settle's bytes is sent. */
void ad__output_write_down(ad_output *o, ad_journal *journal, ad_journal_session *at);
void ad__output_settle(ad_output *o, uint64_t bytes);
/* Bytes that another worker has appended, of its stream from `base` on. The client may have any of them. AD_E_MEMORY.
 */
int ad__output_put(ad_output *o, uint64_t base, const void *data, size_t size);
/* Send what the socket takes, unless it is blocked. True when that has blocked, broken or ended it just now. */
bool ad__output_flush(ad_output *o);
/* The same although it is blocked; the I/O thread's, when the socket can be written. */
void ad__output_resume(ad_output *o);

#endif
