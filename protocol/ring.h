/* A ring: memory through which a client and a worker on one machine exchange bytes without the socket between them.
 * docs/internals/ring.md has the whole story.
 *
 *     memory   | line of the ring | up: tail, head | down: tail, head | bytes up | bytes down |
 *                                   client ─▶ worker  worker ─▶ client
 *
 * One end writes each direction and the other one reads it. A direction is a run of records, whose padding makes them
 * multiples of 16 bytes:
 *
 *     | place u64 | size u64 | bytes, padding | place | size | ...
 *       └ where in the stream the bytes lie
 *
 * Bytes of the stream that no record has go over the socket. */
#ifndef AD_PROTOCOL_RING_H
#define AD_PROTOCOL_RING_H

#include <stdatomic.h>
#include <sys/uio.h>

#include "protocol/base.h"

#define AD_RING_LINE 64          /* bytes of a line of the processor's cache */
#define AD_RING_DATA (64u << 10) /* bytes of records in each direction */
#define AD_RING_HEAD 4096        /* bytes before them */
#define AD_RING_SIZE (AD_RING_HEAD + 2 * AD_RING_DATA)
#define AD_RING_LAYOUT 1 /* another number means another layout */

/* Indices of one direction. They count bytes of records from the beginning, and never go back. */
typedef struct ad_ring_way {
    /* The writer's line. Bit 0 of `tail` says that the reader sleeps; the others are the end of the records, times 2.
     * Both ends change the word by compare-and-swap alone, so a record never becomes visible to a sleeping reader. */
    _Alignas(AD_RING_LINE) atomic_ullong tail;
    atomic_ullong announced; /* the socket has bytes of the stream up to this place, or will */
    /* The reader's line. */
    _Alignas(AD_RING_LINE) atomic_ullong head; /* end of the records that have been read */
} ad_ring_way;

typedef struct ad_ring_memory {
    uint32_t layout;    /* AD_RING_LAYOUT; set before the client has the memory */
    atomic_uint joined; /* 1: the client announces what it sends over the socket */
    ad_ring_way up, down;
    _Alignas(AD_RING_HEAD) uint8_t bytes[2][AD_RING_DATA]; /* records up, and down */
} ad_ring_memory;

/* The writing end of a direction. One thread at a time. */
typedef struct ad_ring_writer {
    ad_ring_way *way;
    uint8_t *bytes;
    uint64_t tail;      /* end of the records */
    uint64_t place;     /* end of what has been sent of the stream, by ring or socket */
    uint64_t announced; /* copy of way->announced; the other end may write anything there */
} ad_ring_writer;

/* The reading end of a direction. One thread at a time. */
typedef struct ad_ring_reader {
    ad_ring_way *way;
    const uint8_t *bytes;
    uint64_t head;  /* end of what has been read of the records */
    uint64_t place; /* end of what has been received of the stream, by ring or socket */
    uint64_t left;  /* bytes of the record at hand that have not been read */
    bool asleep;    /* all bytes come over the socket */
} ad_ring_reader;

/* How often an end looks at its rings before it gives the processor to others. That costs it half a microsecond, and
 * after it the other end may have waited as long. So an end to which bytes come while it looks does so for as long as a
 * round trip takes. An end to which none come, because it has the processor that the other end needs, looks for a
 * moment only. Now and then it tries a long look. */
typedef struct ad_ring_patience {
    unsigned looks, waits;
} ad_ring_patience;

/* ---- memory ---- */

/* Make the memory and its descriptor, which is close-on-exec and can be neither shrunk nor grown. Both readers sleep.
 * AD_E_SYSTEM, AD_E_MEMORY. */
int ad__ring_create(ad_ring_memory **memory, int *fd);
/* Map the memory of a descriptor, which stays the caller's. A fork's child does not have it. AD_E_VALUE: it is not that
 * of a ring of this layout; AD_E_MEMORY. */
int ad__ring_map(int fd, ad_ring_memory **memory);
void ad__ring_unmap(ad_ring_memory *memory);

/* ---- writing ---- */

/* Begin to write a direction, where `place` bytes of the stream have been sent. */
void ad__ring_write_begin(ad_ring_writer *w, ad_ring_way *way, uint8_t *bytes, uint64_t place);
/* Count the bytes of the parts. */
static inline uint64_t ad__ring_measure(const struct iovec *part, size_t parts) {
    uint64_t size = 0;
    for (size_t i = 0; i < parts; i++) size += part[i].iov_len;
    return size;
}
/* Put all bytes of the parts into the ring. False, and nothing is put: the reader sleeps, there is no room, or
 * announced bytes must go over the socket first. */
bool ad__ring_put(ad_ring_writer *w, const struct iovec *part, size_t parts);
/* Announce bytes, before they are sent over the socket. */
void ad__ring_announce(ad_ring_writer *w, uint64_t size);
/* Count bytes that the socket has taken. */
static inline void ad__ring_count_sent(ad_ring_writer *w, uint64_t size) { w->place += size; }

/* ---- reading ---- */

/* Where the next bytes of a stream are. */
typedef enum ad_ring_source {
    AD_RING_EMPTY,  /* nowhere yet */
    AD_RING_RECORD, /* in the ring */
    AD_RING_SOCKET, /* they come, or may come, over the socket */
} ad_ring_source;

/* Begin to read a direction, where `place` bytes of the stream have been received. The reader sleeps. */
void ad__ring_read_begin(ad_ring_reader *r, ad_ring_way *way, const uint8_t *bytes, uint64_t place);
/* Find the next bytes; *size: how many there are at most, in the ring or over the socket. Negative: AD_E_PROTOCOL, the
 * other end has broken the ring. */
int ad__ring_look(ad_ring_reader *r, uint64_t *size);
/* Copy bytes out of the record that ad__ring_look has found: at most as many as it said. */
void ad__ring_take(ad_ring_reader *r, void *to, size_t size);
/* Count bytes that were received over the socket. */
static inline void ad__ring_count_received(ad_ring_reader *r, uint64_t size) { r->place += size; }
/* Let the writer use the socket from now on. False: something has come before that, and the reader is awake. */
bool ad__ring_sleep(ad_ring_reader *r);
/* Let the writer use the ring from now on. */
void ad__ring_wake(ad_ring_reader *r);
/* Tell an awake reader whether there is a record, or what is to be one: a look at a line that both ends share. */
static inline bool ad__ring_has_record(const ad_ring_reader *r) {
    return r->left || atomic_load_explicit(&r->way->tail, memory_order_acquire) != r->head << 1;
}
/* Tell an awake reader whether bytes come over the socket, or a record has come. */
static inline bool ad__ring_has_news(const ad_ring_reader *r) {
    return ad__ring_has_record(r) || atomic_load_explicit(&r->way->announced, memory_order_relaxed) > r->place;
}
#define AD_RING_LOOKS_LEAST 40u
#define AD_RING_LOOKS_MOST 320u /* 8 us on a processor of 2026 */
#define AD_RING_TRIAL 64u       /* of so many waits one is for AD_RING_LOOKS_MOST */

/* Begin to wait, and return how often to look before the processor is given to others. */
static inline unsigned ad__ring_begin_wait(ad_ring_patience *p) {
    if (++p->waits % AD_RING_TRIAL == 0) p->looks = AD_RING_LOOKS_MOST;
    if (p->looks < AD_RING_LOOKS_LEAST) p->looks = AD_RING_LOOKS_LEAST;
    return p->looks;
}
/* Learn whether something came while the end looked. */
static inline bool ad__ring_end_wait(ad_ring_patience *p, bool came) {
    if (!came) p->looks /= 4;
    return came;
}
/* Wait for some cycles, and leave the processor's units to its other thread. */
static inline void ad__ring_pause(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

#endif
