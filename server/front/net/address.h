/* Addresses to listen on, and what must be said besides before one is listened on. */
#ifndef AD_SERVER_FRONT_NET_ADDRESS_H
#define AD_SERVER_FRONT_NET_ADDRESS_H

#include <netinet/in.h>

#include "server/common/config.h"

typedef union ad_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
} ad_address;

/* The addresses of the options of those names, which are set. AD_E_VALUE: there is none, or it is not to be listened
 * on. */
int ad__address_tcp(const ad_config *c, ad_address *a, ad_fault *fault);
int ad__address_tls(const ad_config *c, ad_address *a, ad_fault *fault);
int ad__address_metrics(const ad_config *c, ad_address *a, ad_fault *fault);

/* ---- check.c ---- */
/* Whether arrayd would take the configuration. The status and the fault say why not. */
int ad__check(const ad_config *c, ad_fault *fault);

#endif
