/* Addresses to listen on, and the conditions under which each is allowed. */
#ifndef AD_SERVER_FRONT_NET_ADDRESS_H
#define AD_SERVER_FRONT_NET_ADDRESS_H

#include <netinet/in.h>

#include "server/common/config.h"

typedef union ad_address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
} ad_address;

/* Read the address of option tcp, tls or metrics, which is set. AD_E_VALUE: it is not an address, or it is not safe. */
int ad__address_tcp(const ad_config *c, ad_address *a, ad_fault *fault);
int ad__address_tls(const ad_config *c, ad_address *a, ad_fault *fault);
int ad__address_metrics(const ad_config *c, ad_address *a, ad_fault *fault);

/* ---- check.c ---- */
/* Check that arrayd would accept a configuration. The status and the fault say why not. */
int ad__check(const ad_config *c, ad_fault *fault);
/* Check that a server with the option self-signed has an address to serve. AD_E_VALUE. */
int ad__check_self_signed(const ad_config *c, ad_fault *fault);

#endif
