/* The channel between arrayd and a worker: notes over a SOCK_SEQPACKET socket pair, some with a descriptor. */
#ifndef AD_SERVER_CHANNEL_H
#define AD_SERVER_CHANNEL_H

#include "protocol/base.h"
#include "server/common/grants.h"

#define AD_PRINCIPAL_SIZE 64
#define AD_DEATH_TEXT 64 /* bytes of how a worker has ended, for people */
#define AD_PARTED '~'    /* before the principal of a slab: host memory that goes with it to its own worker */

enum {
#define AD_NOTE(id, NAME, name, to, descriptors, doc) AD_NOTE_##NAME = (id),
#include "server/common/channel.def"
#undef AD_NOTE
};

/* How a worker has ended. */
typedef enum ad_death {
    AD_DEATH_LEFT,    /* it was to: nothing of what it did is to blame */
    AD_DEATH_KILLED,  /* by somebody, or by the kernel for want of memory */
    AD_DEATH_CRASHED, /* by itself, or because it did not answer any more */
} ad_death;

typedef enum ad_note_to { AD_TO_WORKER, AD_TO_FRONT } ad_note_to;

typedef struct ad_note {
    uint32_t kind, zero;
    uint64_t id, size, process, resumable;
    uint8_t secret[16];
    ad_grants grants;
    char who[AD_PRINCIPAL_SIZE];
    char text[AD_FAULT_TEXT];
} ad_note;

typedef struct ad_queued_note ad_queued_note;

/* One end. Notes that do not fit the socket wait here. Not for several threads at a time. */
typedef struct ad_channel {
    int fd;
    ad_note_to from_peer; /* what this end receives */
    ad_queued_note *first, **last;
} ad_channel;

/* A connected, non-blocking, close-on-exec pair. AD_E_SYSTEM. */
int ad__channel_pair(int fd[2], ad_fault *fault);
/* Takes over fd. from_peer: AD_TO_WORKER in a worker, AD_TO_FRONT in arrayd. */
void ad__channel_init(ad_channel *c, int fd, ad_note_to from_peer);
void ad__channel_close(ad_channel *c);
/* Send, or queue when the socket is full. fd (-1: none) is the channel's from here on, success or not: closed once
 * sent. AD_E_CONNECTION, AD_E_MEMORY. */
int ad__channel_send(ad_channel *c, const ad_note *note, int fd);
/* Send what is queued; call it when the socket can be written. AD_E_CONNECTION. */
int ad__channel_flush(ad_channel *c);
bool ad__channel_waiting(const ad_channel *c);
/* Wait until all has been sent, as long as the peer takes some within a second. */
void ad__channel_drain(ad_channel *c);
/* Next note: 1 with *note and *fd (-1: none, or this process may have no more descriptors; the caller's), 0 none there
 * now, AD_E_CONNECTION: the peer has gone, AD_E_PROTOCOL: not a note. */
int ad__channel_receive(ad_channel *c, ad_note *note, int *fd);
/* Name of a kind for the log. */
const char *ad__note_name(uint32_t kind);

#endif
