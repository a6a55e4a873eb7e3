/* Reading addresses of options, and checking that they are safe to listen on: see address.h. */
#include "server/front/net/address.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

static bool is_loopback(const ad_address *a) {
    if (a->any.sa_family == AF_INET) return ntohl(a->v4.sin_addr.s_addr) >> 24 == 127;
    return IN6_IS_ADDR_LOOPBACK(&a->v6.sin6_addr);
}

/* Read an address and port. name: the option's, for the message. AD_E_VALUE. */
static int parse_address(const char *name, const char *text, ad_address *a, ad_fault *fault) {
    char host[64], *end;
    const char *colon = strrchr(text, ':');
    size_t n = colon ? (size_t)(colon - text) : 0;
    unsigned long port = colon ? strtoul(colon + 1, &end, 10) : 0;
    memset(a, 0, sizeof *a);
    if (!colon || n == 0 || n >= sizeof host || colon[1] < '0' || colon[1] > '9' || *end || port > 65535)
        return ad__fault(fault, AD_E_VALUE, "option %s: \"%.60s\": expected an address and port, as 127.0.0.1:7311",
                         name, text);
    memcpy(host, text, n);
    host[n] = 0;
    if (!strcmp(host, "localhost")) strcpy(host, "127.0.0.1");
    if (host[0] == '[' && host[n - 1] == ']') {
        host[n - 1] = 0;
        a->v6.sin6_family = AF_INET6;
        a->v6.sin6_port = htons((uint16_t)port);
        n = inet_pton(AF_INET6, host + 1, &a->v6.sin6_addr) == 1;
    } else {
        a->v4.sin_family = AF_INET;
        a->v4.sin_port = htons((uint16_t)port);
        n = inet_pton(AF_INET, host, &a->v4.sin_addr) == 1;
    }
    return n ? 0 : ad__fault(fault, AD_E_VALUE, "option %s: \"%.60s\" is not an address", name, text);
}

/* Without encryption only loopback addresses are safe, as tokens could be read on the way. */
int ad__address_tcp(const ad_config *c, ad_address *a, ad_fault *fault) {
    int status = parse_address("tcp", c->tcp, a, fault);
    if (status) return status;
    if (!is_loopback(a))
        return ad__fault(fault, AD_E_VALUE,
                         "option tcp: %.60s is not a loopback address; without encryption only 127.0.0.0/8 and "
                         "[::1] are served: use option tls",
                         c->tcp);
    if (*c->tokens || c->tcp_open) return 0;
    return ad__fault(fault, AD_E_VALUE,
                     "option tcp: TCP connections do not tell users apart: name a file of tokens (option tokens), "
                     "or let every user of this machine in (tcp-open = yes)");
}

int ad__address_tls(const ad_config *c, ad_address *a, ad_fault *fault) {
    int status = parse_address("tls", c->tls, a, fault);
    if (status || *c->tokens || *c->tls_ca || c->self_signed) return status;
    return ad__fault(fault, AD_E_VALUE,
                     "option tls: nobody could come in: name a file of tokens (option tokens) or of the "
                     "authorities of client certificates (option tls-ca)");
}

int ad__address_metrics(const ad_config *c, ad_address *a, ad_fault *fault) {
    int status = parse_address("metrics", c->metrics, a, fault);
    if (status || is_loopback(a) || c->metrics_open) return status;
    return ad__fault(fault, AD_E_VALUE,
                     "option metrics: %.60s is not a loopback address, and whoever reaches it could read who computes "
                     "what: metrics-open = yes allows that",
                     c->metrics);
}
