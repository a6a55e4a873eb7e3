/* The rights of a principal, by options and grants: see rights.h. */
#include "server/common/rights.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define REMOTE_SECONDS 60.0 /* how long a remote user's kernel may run, where no option or grant says so */

static bool is_local_user(const char *principal) { return strncmp(principal, "uid:", 4) == 0; }

bool ad__is_server_user(const char *principal) {
    return is_local_user(principal) && strtoul(principal + 4, NULL, 10) == geteuid();
}

bool ad__is_server_user_or_root(const char *principal) {
    return ad__is_server_user(principal) || !strcmp(principal, "uid:0");
}

bool ad__may_run_kernels(const ad_config *c, const char *principal, const ad_grants *grants, const char *backend) {
    if (!strcmp(c->kernels, "none")) return false;
    if (grants->named & AD_GRANT_KERNELS) return grants->may & AD_GRANT_KERNELS;
    if (!strcmp(c->kernels, "all")) return true;
    if (strcmp(c->kernels, "unix") || !is_local_user(principal)) return false;
    if (!backend || strcmp(backend, "cpu")) return true;
    return ad__is_server_user_or_root(principal);
}

int64_t ad__kernel_limit(const ad_config *c, const char *principal, const ad_grants *g) {
    if (g->kernel_time) return (int64_t)g->kernel_time;
    double seconds = c->kernel_time > 0 ? c->kernel_time : is_local_user(principal) ? 0 : REMOTE_SECONDS;
    return (int64_t)(seconds * 1e9);
}

int ad__sm_share(const ad_config *c, const ad_grants *g) {
    const uint64_t share = g->sm_share ? g->sm_share : c->sm_share;
    if (g->priority < AD_PRIORITY_NORMAL || share == AD_GRANT_NO_SHARE) return 0;
    return share < INT_MAX ? (int)share : INT_MAX;
}

uint64_t ad__most_buffers_each(const ad_config *c, const char *principal) {
    return ad__is_server_user_or_root(principal) ? 0 : c->buffers_each;
}

static uint64_t take_smaller(uint64_t usual, uint64_t granted) { return granted && granted < usual ? granted : usual; }

uint64_t ad__most_buffers(const ad_config *c, const ad_grants *g) { return take_smaller(c->buffers, g->buffers); }

uint64_t ad__window_ops(const ad_config *c, const ad_grants *g) { return take_smaller(c->window_ops, g->operations); }

uint64_t ad__window_bytes(const ad_config *c, const ad_grants *g) { return take_smaller(c->window_bytes, g->bytes); }
