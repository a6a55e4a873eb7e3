/* Bytes from a client on their way to the engine: blocks that a socket is read into, and the frames in them. A frame is
 * never copied unless it does not fit the block that it began in. */
#ifndef AD_SERVER_WORKER_NET_INPUT_H
#define AD_SERVER_WORKER_NET_INPUT_H

#include <stdatomic.h>

#include "protocol/frame.h"
#include "server/worker/journal/journal.h"
#include "server/worker/net/windows.h"

#define AD_INPUT_BLOCK (64u << 10)

typedef struct ad_input_block ad_input_block;
struct ad_input_block {
    ad_journal_block own; /* base, and what is used of it, as another worker would see it */
    ad_journal *journal;  /* whose memory it is; NULL: none's */
    ad_input_block *next;
    atomic_uint users; /* the reader, every frame that has not been executed, and the list of what is written down */
    size_t capacity, used;
    uint8_t data[];
};

/* A whole frame. */
typedef struct ad_input_frame {
    ad_input_block *block;
    const uint8_t *control, *payload;
    uint32_t control_size, payload_size;
    uint32_t operations; /* messages in it, where they are counted */
} ad_input_frame;

/* The reading end; the I/O thread's. */
typedef struct ad_input {
    ad_input_block *block;  /* NULL: nothing is half read */
    size_t start;           /* of the first byte in it that belongs to no frame yet */
    uint64_t received;      /* bytes of the stream */
    uint64_t process;       /* the last that has sent some, where the socket says it (ad__input_ask_sender), else 0 */
    ad_frame note;          /* the last one that came */
    ad_journal *journal;    /* what is read is written down there; NULL: it is not */
    ad_journal_session *at; /* for this session */
    ad_input_block *first, *last;
} ad_input;

/* Read once from a non-blocking socket; descriptors that come with the bytes go to d. 1 something came, 0 nothing there
 * now, AD_E_CONNECTION the peer has gone, AD_E_MEMORY, AD_E_LIMIT more descriptors than are taken. */
int ad__input_read(ad_input *in, int fd, ad_descriptors *d);
/* Bytes on this Unix socket come with the process that has sent them, as the kernel says; or do not any more. */
void ad__input_ask_sender(int fd, bool ask);
/* The next whole frame: 1 with *f (release it), AD_INPUT_NOTE a note, 0 not yet, AD_E_PROTOCOL, AD_E_MEMORY. */
#define AD_INPUT_NOTE 2
int ad__input_next(ad_input *in, ad_input_frame *f, ad_fault *fault);
/* Give up a block that holds nothing any more; call it when the socket has been read for now. */
void ad__input_release_used(ad_input *in);
void ad__input_close(ad_input *in);
/* Nobody needs the first so many bytes of the stream any more. */
void ad__input_forget(ad_input *in, uint64_t before);
/* Where a frame begins in the stream. */
static inline uint64_t ad__input_place(const ad_input_frame *f) {
    return f->block->own.base + (uint64_t)(f->control - f->block->data) - AD_FRAME_HEADER;
}
/* Bytes that another worker has received, the next of the stream. AD_E_MEMORY. */
int ad__input_put(ad_input *in, const void *data, size_t size);
void ad__input_release(ad_input_frame *f);

/* Frames in order, in a ring that grows. */
typedef struct ad_input_queue {
    ad_input_frame *ring;
    uint32_t first, count, capacity;
    size_t bytes;
    uint64_t operations;
} ad_input_queue;

int ad__input_push(ad_input_queue *q, const ad_input_frame *f); /* AD_E_MEMORY */
bool ad__input_pop(ad_input_queue *q, ad_input_frame *f);
void ad__input_clear(ad_input_queue *q);

#endif
