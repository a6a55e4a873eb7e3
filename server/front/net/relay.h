/* Relays of TLS connections. The front decrypts and encrypts, so that a worker has a plain socket:
 *
 *              outer (TCP)               inner (socket pair)
 *     client <-------------> relay r <----------------------> worker
 *                            r->in   ----------------------->
 *                            <-----------------------   r->out
 *
 * Each direction has a bounded buffer: a side that does not read stops the other one's sender. */
#ifndef AD_SERVER_FRONT_NET_RELAY_H
#define AD_SERVER_FRONT_NET_RELAY_H

#include "server/front/front.h"
#include "protocol/tls/tls.h"

/* Begin TLS on a new connection, whose fd the relay owns, and return the socket for the worker. *link is set to the
 * relay, and to NULL when the relay ends. AD_E_SYSTEM, AD_E_MEMORY. */
int ad__relay_open(ad_front *f, int fd, const char *from, ad_relay **link, int *inner);
/* The name in the client's certificate; NULL: there is no certificate, or no relay any more. AD_E_TLS in the fault:
 * the certificate has no name. */
const char *ad__relay_certificate(const ad_relay *r, ad_fault *fault);
/* Admit the client: there is no limit on its bytes any more. */
void ad__relay_admit(ad_relay *r);
/* Do not set *link any more. */
void ad__relay_unlink(ad_relay *r);

#endif
