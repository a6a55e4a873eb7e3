/* The channel between arrayd and a worker: messages called notes over a SOCK_SEQPACKET socket pair.
 *
 *      arrayd                              worker
 *        |  to WORKER: session, stop, ...    |
 *        |---------------------------------->|
 *        |  to FRONT: ready, slab, lost, ... |
 *        |<----------------------------------|
 *
 * Each note is one packet of sizeof(ad_note) bytes, and some carry a file descriptor (channel.def). */
#ifndef AD_SERVER_CHANNEL_H
#define AD_SERVER_CHANNEL_H

#include "protocol/base.h"
#include "server/common/grants.h"

#define AD_PRINCIPAL_SIZE 64
#define AD_DEATH_TEXT 64 /* bytes of the text that says how a worker has ended */
#define AD_PARTED '~'    /* first letter of a slab's principal: host memory that migrates with this principal */

enum {
#define AD_NOTE(id, NAME, name, to, descriptors, doc) AD_NOTE_##NAME = (id),
#include "server/common/channel.def"
#undef AD_NOTE
};

/* Exit statuses of a worker. A user's kernel can give any, so arrayd believes UNFIT only before the worker is ready. */
enum {
    AD_EXIT_DEVICE_LOST = 3,
    AD_EXIT_ASTRAY = 4, /* what the worker and arrayd know would differ from now on */
    AD_EXIT_UNFIT = 5,  /* arrayd of another build has started it */
};

/* How a worker has ended. */
typedef enum ad_death {
    AD_DEATH_LEFT,    /* arrayd told it to leave: nothing that it executed is to blame */
    AD_DEATH_KILLED,  /* a signal from outside ended it, such as the kernel's for want of memory */
    AD_DEATH_CRASHED, /* it crashed, or arrayd ended it because it did not answer any more */
    AD_DEATH_UNFIT,   /* it did not begin, as its program is of another build than arrayd */
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

/* One end of the channel. Notes that do not fit into the socket are queued here. One thread uses it at a time. */
typedef struct ad_channel {
    int fd;
    ad_note_to from_peer; /* direction of the notes that this end receives */
    ad_queued_note *first, **last;
} ad_channel;

/* Make a connected pair of sockets, non-blocking and close-on-exec. AD_E_SYSTEM. */
int ad__channel_pair(int fd[2], ad_fault *fault);
/* Begin to use fd, which the channel owns from here on. from_peer: AD_TO_WORKER in a worker, AD_TO_FRONT in arrayd. */
void ad__channel_init(ad_channel *c, int fd, ad_note_to from_peer);
/* Close the socket and drop the notes that are queued. */
void ad__channel_close(ad_channel *c);
/* Send a note, or queue it when the socket is full. The channel owns fd (-1: none) in any case, and closes it once
 * it is sent. AD_E_CONNECTION, AD_E_MEMORY. */
int ad__channel_send(ad_channel *c, const ad_note *note, int fd);
/* Send queued notes; call it when the socket can be written. AD_E_CONNECTION. */
int ad__channel_flush(ad_channel *c);
/* Tell whether notes are queued. */
bool ad__channel_waiting(const ad_channel *c);
/* Wait until all notes have been sent, unless the peer reads nothing for a second. */
void ad__channel_drain(ad_channel *c);
/* Receive the next note. 1: *note and *fd are set; 0: none is there now; AD_E_CONNECTION: the peer has gone;
 * AD_E_PROTOCOL: the packet is not a note. The caller owns *fd; -1: the note has none, or this process can open no
 * more descriptors. */
int ad__channel_receive(ad_channel *c, ad_note *note, int *fd);
/* Compute a number, not negative, that is equal in two programs if their notes, reports and journals (layout: a text
 * that describes these) have the same form. */
int ad__channel_form(const char *layout);
/* The name of a kind of note, for the log. */
const char *ad__note_name(uint32_t kind);

#endif
