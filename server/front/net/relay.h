/* TLS connections. A worker gets one end of a socket pair; between the other end and the client the front carries
 * bytes, with a bounded buffer for each direction: who does not read stops the other one's sender. */
#ifndef AD_SERVER_FRONT_NET_RELAY_H
#define AD_SERVER_FRONT_NET_RELAY_H

#include "server/front/front.h"
#include "protocol/tls/tls.h"

/* Begin TLS on a new connection, which it takes over, and give the other end's socket. *link is set to the relay, and
 * to NULL when that is gone. AD_E_SYSTEM, AD_E_MEMORY. */
int ad__relay_open(ad_front *f, int fd, const char *from, ad_relay **link, int *inner);
/* The name in the client's certificate; NULL: it has shown none, or no relay is there any more. AD_E_TLS in the fault:
 * one without a name. */
const char *ad__relay_certificate(const ad_relay *r, ad_fault *fault);
/* The client has been let in: no limit on its bytes any more. */
void ad__relay_admit(ad_relay *r);
/* Nobody looks at *link any more. */
void ad__relay_unlink(ad_relay *r);

#endif
