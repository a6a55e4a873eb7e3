/* A plain client of the server: one frame out, answers in. What it costs is the protocol's, not a library's. */
#ifndef AD_SERVER_CTL_PEER_H
#define AD_SERVER_CTL_PEER_H

#include "protocol/message.h"
#include "server/ctl/ctl.h"

typedef struct ad_peer {
    int fd;
    uint64_t requests, buffers; /* used so far */
    ad_bytes control;           /* of the next frame */
    ad_reader *reader;
    ad_arena arena;
    char backend[16], device[64], server[64];
    uint8_t *input;
    ad_fault fault; /* why something failed */
} ad_peer;

/* Connect and say hello. The status, said already. */
int ad__peer_open(ad_peer *p, const ad_ctl *c);
void ad__peer_close(ad_peer *p);
/* Send what stands in control, with a payload. Negative, with a fault. */
int ad__peer_send(ad_peer *p, const void *payload, size_t size);
/* Send, and read until the last request is answered; the bytes of its payload, or negative with a fault. */
int64_t ad__peer_answer(ad_peer *p);
/* Wait until all is complete. */
int ad__peer_sync(ad_peer *p);

#endif
