/* Whether arrayd would take a configuration file: its options, the files that they name, and whether they go together.
 * What only a start can show (a port that is taken, a backend that is not there) is not looked at. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "protocol/tls/tls.h"
#include "server/common/config.h"
#include "server/ctl/ctl.h"
#include "server/front/address.h"
#include "server/front/principals.h"

/* The file is looked at by itself: the environment would win over it. */
static void forget_environment(void) {
    extern char **environ;
    for (char **e = environ; *e;) {
        char name[128];
        size_t n = strcspn(*e, "=");
        if (strncmp(*e, "ARRAYD_", 7) || n >= sizeof name) {
            e++;
            continue;
        }
        memcpy(name, *e, n);
        name[n] = 0;
        unsetenv(name); /* what comes behind it moves up */
    }
}

static const char *or_none(const char *path) { return *path ? path : NULL; }

static int check_tls(const ad_config *c, ad_fault *fault) {
    const ad_tls_files files = {or_none(c->tls_cert), or_none(c->tls_key), or_none(c->tls_ca)};
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

static int check(const ad_config *c, ad_fault *fault) {
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

int ad__ctl_config(ad_ctl *c) {
    char option[4200], *argv[] = {"arrayd", option, NULL};
    ad_config config;
    ad_config_wish wish;
    ad_fault fault = {0};
    if (c->argc != 3 || strcmp(c->argv[1], "check"))
        return ad__ctl_error(c, AD_CTL_USAGE, "expected: arrayctl config check FILE");
    if ((size_t)snprintf(option, sizeof option, "--config=%s", c->argv[2]) >= sizeof option)
        return ad__ctl_error(c, AD_CTL_USAGE, "the name of the file is too long");
    forget_environment();
    int status = ad__config_load(&config, 2, argv, NULL, &wish, &fault);
    if (!status) status = check(&config, &fault);
    ad__config_free(&config);
    if (c->json) {
        json_t *answer = json_pack("{s:s, s:b, s:s}", "file", c->argv[2], "good", !status, "why", fault.text);
        int printed = answer ? ad__ctl_print(c, answer) : AD_CTL_BAD;
        json_decref(answer);
        return status ? AD_CTL_BAD : printed;
    }
    if (status) return ad__ctl_error(c, AD_CTL_BAD, "%s: %s", c->argv[2], fault.text);
    printf("%s: arrayd would take this\n", c->argv[2]);
    return AD_CTL_GOOD;
}
