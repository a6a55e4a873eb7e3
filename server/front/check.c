/* Checking a configuration as arrayd would: each option, the files that options name, and their combination. Only a
 * start can show more, such as a port that is taken or a backend that is not there. */
#include <string.h>
#include <unistd.h>

#include "protocol/tls/tls.h"
#include "server/front/net/address.h"
#include "server/front/auth/principals.h"
#include "server/front/peers/peers.h"

/* Tell whether arrayd makes this file when it starts. */
static bool will_be_made(const ad_config *c, const char *path) {
    return c->self_signed && (!*path || access(path, F_OK));
}

static int check_tls(const ad_config *c, ad_fault *fault) {
    const ad_tls_files files = ad__tls_files(c->tls_cert, c->tls_key, c->tls_ca);
    ad_tls_context *tls = NULL;
    ad_address a;
    int status = ad__address_tls(c, &a, fault);
    if (status || will_be_made(c, c->tls_cert)) return status;
    if (!files.certificate)
        return ad__fault(fault, AD_E_VALUE, "option tls: a certificate is missing (options tls-cert and tls-key)");
    status = ad__tls_server(&files, &tls, fault);
    ad__tls_context_free(tls);
    return status;
}

int ad__check_self_signed(const ad_config *c, ad_fault *fault) {
    if (!c->self_signed || *c->tls) return 0;
    return ad__fault(fault, AD_E_VALUE,
                     "option self-signed: expected an address to serve (option tls), as 0.0.0.0:7312");
}

int ad__check(const ad_config *c, ad_fault *fault) {
    ad_principals *principals = NULL;
    ad_peers *peers = NULL;
    ad_address a;
    int status = ad__principals_load(will_be_made(c, c->tokens) ? "" : c->tokens, c->principals, &principals, fault);
    ad__principals_free(principals);
    if (!status) status = ad__peers_load(c->server_name, c->peers, &peers, fault);
    ad__peers_free(peers);
    if (!status && *c->tcp) status = ad__address_tcp(c, &a, fault);
    if (!status && *c->tls) status = check_tls(c, fault);
    if (!status) status = ad__check_self_signed(c, fault);
    if (!status && *c->metrics) status = ad__address_metrics(c, &a, fault);
    if (!status && !strcmp(c->socket, "none") && !*c->tcp && !*c->tls)
        status = ad__fault(fault, AD_E_VALUE, "option socket: none, and no tcp or tls: there is nothing to listen on");
    return status;
}
