/* The command config check: whether arrayd would accept a configuration file. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/common/config.h"
#include "server/ctl/ctl.h"
#include "server/front/net/address.h"

/* Remove arrayd's options from the environment: the file is checked alone, and the environment would replace its
 * values. */
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
        unsetenv(name); /* the next entry moves to this place */
    }
}

int ad__ctl_config(ad_ctl *c) {
    char option[4200], *argv[] = {"arrayd", option, NULL};
    ad_config config;
    ad_config_action action;
    ad_fault fault = {0};
    if (c->argc != 3 || strcmp(c->argv[1], "check"))
        return ad__ctl_error(c, AD_CTL_USAGE, "expected: arrayctl config check FILE");
    if ((size_t)snprintf(option, sizeof option, "--config=%s", c->argv[2]) >= sizeof option)
        return ad__ctl_error(c, AD_CTL_USAGE, "the name of the file is too long");
    forget_environment();
    int status = ad__config_load(&config, 2, argv, NULL, &action, &fault);
    if (!status) status = ad__check(&config, &fault);
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
