/* Holders of shared memory other than buffers of sessions: capabilities, names and leases. Each has an ad_holder, with
 * which capabilities and names begin, and the memory lists them.
 *
 *     ad_shared ── buffers ──▶ buffer ──▶ buffer
 *        │
 *        └──────── others ───▶ capability ──▶ name ──▶ lease
 *
 * Runner: all functions here. */
#ifndef AD_SERVER_WORKER_SHARING_HOLDERS_H
#define AD_SERVER_WORKER_SHARING_HOLDERS_H

#include "server/worker/memory/shared.h"
#include "server/worker/session.h"

typedef struct ad_holder ad_holder;
/* Write a holder into the journal, and set its place. */
typedef void ad_holder_write(ad_worker *w, ad_holder *h);
struct ad_holder {
    ad_shared *shared;
    ad_holder *next, **link; /* neighbours in the memory's list */
    ad_holder_write *write;  /* NULL: no journal has it */
    uint32_t place;          /* place in the journal; 0: it has none */
    char principal[AD_PRINCIPAL_SIZE];
};

/* List a holder in its memory, which it has been counted in (ad__shared_hold), and write it into the journal. */
void ad__holder_begin(ad_worker *w, ad_holder *h);
/* End a holder: it leaves the journal, and its hold on the memory ends. */
void ad__holder_end(ad_worker *w, ad_holder *h);
/* Write the memory's holders into the journal again: it has moved. */
void ad__holders_write(ad_worker *w, ad_shared *shared);

#endif
