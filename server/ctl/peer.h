/* A plain client of the server, which sends one frame and reads its answers. It costs what the protocol costs, not
 * what a library costs. */
#ifndef AD_SERVER_CTL_PEER_H
#define AD_SERVER_CTL_PEER_H

#include "protocol/message.h"
#include "server/ctl/ctl.h"

typedef struct ad_peer {
    int fd;
    uint64_t requests, buffers; /* ids used so far */
    ad_bytes control;           /* control block of the next frame */
    ad_reader *reader;
    ad_arena arena;
    char backend[16], device[64], server[64];
    uint8_t *input;
    ad_fault fault; /* the reason of the last failure */
} ad_peer;

/* Connect and exchange hello and welcome. The exit status; messages are printed here. */
int ad__peer_open(ad_peer *p, const ad_ctl *c);
void ad__peer_close(ad_peer *p);
/* Send a frame of `control` and a payload. Negative: p->fault says why. */
int ad__peer_send(ad_peer *p, const void *payload, size_t size);
/* Send a frame and read until the last request is answered. The bytes of the answer's payload; negative: p->fault
 * says why. */
int64_t ad__peer_answer(ad_peer *p);
/* Wait until all operations are complete. Negative: p->fault says why. */
int ad__peer_sync(ad_peer *p);

#endif
