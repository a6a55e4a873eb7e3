/* Checking a configuration as arrayd would: each option, the files that options name, and their combination. Only a
 * start can show more, such as a port that is taken or a backend that is not there. */
#include <string.h>

#include "protocol/tls/tls.h"
#include "server/front/net/address.h"
#include "server/front/auth/principals.h"

static const char *get_path_or_null(const char *path) { return *path ? path : NULL; }

static int check_tls(const ad_config *c, ad_fault *fault) {
    const ad_tls_files files = {get_path_or_null(c->tls_cert), get_path_or_null(c->tls_key),
                                get_path_or_null(c->tls_ca)};
    ad_tls_context *tls = NULL;
    ad_address a;
    int status = ad__address_tls(c, &a, fault);
    if (status) return status;
    if (!files.certificate)
        return ad__fault(fault, AD_E_VALUE, "option tls: a certificate is missing (options tls-cert and tls-key)");
    status = ad__tls_server(&files, &tls, fault);
    ad__tls_context_free(tls);
    return status;
}

int ad__check(const ad_config *c, ad_fault *fault) {
    ad_principals *principals = NULL;
    ad_address a;
    int status = ad__principals_load(c->tokens, c->principals, &principals, fault);
    ad__principals_free(principals);
    if (!status && *c->tcp) status = ad__address_tcp(c, &a, fault);
    if (!status && *c->tls) status = check_tls(c, fault);
    if (!status && *c->metrics) status = ad__address_metrics(c, &a, fault);
    if (!status && !strcmp(c->socket, "none") && !*c->tcp && !*c->tls)
        status = ad__fault(fault, AD_E_VALUE, "option socket: none, and no tcp or tls: there is nothing to listen on");
    return status;
}
