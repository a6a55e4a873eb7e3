/* Input: bytes from a client on their way to the engine, in blocks that a socket is read into:
 *
 *     block 1                        block 2, made when the last frame of block 1 does not fit
 *     [frame][frame][frame][half]    [half][frame][fra ...
 *                          └─copied──▶                ▲ received
 *
 * A frame is never copied unless it does not fit the block that it began in. */
#ifndef AD_SERVER_WORKER_IO_INPUT_H
#define AD_SERVER_WORKER_IO_INPUT_H

#include <stdatomic.h>

#include "protocol/frame.h"
#include "protocol/ring.h"
#include "server/worker/base/component.h"
#include "server/worker/journal/journal.h"
#include "server/worker/io/descriptors.h"

#define AD_INPUT_BLOCK (64u << 10)

typedef struct ad_input_block ad_input_block;
struct ad_input_block {
    ad_journal_block own; /* for the journal: place in the stream, and bytes used */
    ad_journal *journal;  /* owner of the block's memory; NULL: the process */
    ad_input_block *next;
    atomic_uint users; /* the reader, each frame that is not executed yet, and the journal's list */
    size_t capacity, used;
    uint8_t data[];
};

/* A complete frame, which holds a reference to its block. */
typedef struct ad_input_frame {
    ad_input_block *block;
    const uint8_t *control, *payload;
    uint32_t control_size, payload_size;
    uint32_t operations; /* number of messages in it; 0: not counted */
} ad_input_frame;

/* The reading end of a session's input. I/O thread. */
typedef struct ad_input {
    ad_input_block *block; /* the block that is read into; NULL: none */
    size_t start;          /* offset in it of the first byte after all complete frames */
    uint64_t received;     /* bytes of the stream so far */
    uint64_t
        process;   /* latest process that has sent bytes, where the socket says it (ad__input_ask_sender); 0: unknown */
    ad_frame note; /* the latest note */
    uint64_t note_place;    /* place of the latest note in the stream */
    ad_ring_reader *ring;   /* the ring that bytes may come by; NULL: none */
    ad_journal *journal;    /* journal that received bytes are recorded in; NULL: none */
    ad_journal_session *at; /* row of the session in the journal */
    ad_input_block *first, *last;
} ad_input;

/* Read once from the ring or from a non-blocking socket; descriptors that come with the bytes go to d. 1: bytes have
 * come; 0: none are there now; AD_E_CONNECTION: the peer has closed; AD_E_MEMORY; AD_E_LIMIT: too many descriptors;
 * AD_E_PROTOCOL: the peer has broken the ring. */
int ad__input_read(ad_input *in, int fd, ad_descriptors *d);
/* Let the kernel say which process sends the bytes on this Unix socket, or no longer. */
void ad__input_ask_sender(int fd, bool ask);
/* Get the next complete frame: 1 with *f, to be released; AD_INPUT_NOTE: a note in in->note; 0: none yet;
 * AD_E_PROTOCOL, AD_E_MEMORY. */
#define AD_INPUT_NOTE 2
int ad__input_next(ad_input *in, ad_input_frame *f, ad_fault *fault);
/* Release the block that is read into once all its frames are executed. Call it after each reading of the socket. */
void ad__input_release_used(ad_input *in);
void ad__input_close(ad_input *in);
/* Release the journal's blocks before this place in the stream, which a successor no longer needs. */
void ad__input_forget(ad_input *in, uint64_t before);
/* Get the place of a frame in the stream. */
static inline uint64_t ad__input_place(const ad_input_frame *f) {
    return f->block->own.base + (uint64_t)(f->control - f->block->data) - AD_FRAME_HEADER;
}
/* Append bytes of the stream that another worker has received. AD_E_MEMORY. */
int ad__input_put(ad_input *in, const void *data, size_t size);
void ad__input_release(ad_input_frame *f);

/* A queue of frames: a ring buffer that grows. */
typedef struct ad_input_queue {
    ad_input_frame *ring;
    uint32_t first, count, capacity;
    size_t bytes;
    uint64_t operations;
} ad_input_queue;

int ad__input_push(ad_input_queue *q, const ad_input_frame *f); /* AD_E_MEMORY */
bool ad__input_pop(ad_input_queue *q, ad_input_frame *f);
void ad__input_clear(ad_input_queue *q);

extern const ad_component ad__component_input;

#endif
