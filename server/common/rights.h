/* The rights of a principal, by the options and by its grants. */
#ifndef AD_SERVER_RIGHTS_H
#define AD_SERVER_RIGHTS_H

#include "server/common/config.h"
#include "server/common/grants.h"

/* Tell whether a principal may run kernels: its grant decides, else option kernels, unless that is `none`. On backend
 * "cpu" a kernel is native code with all rights of the server's user. So kernels=unix lets only this user and root run
 * them. backend NULL: not known. */
bool ad__may_run_kernels(const ad_config *c, const char *principal, const ad_grants *grants, const char *backend);
/* Tell whether the principal is the user that runs the server. */
bool ad__is_server_user(const char *principal);
/* Tell whether the principal is that user or root: such a one has the machine's limits alone. */
bool ad__is_server_user_or_root(const char *principal);
/* Get how many operations, and bytes of them, a session's client may have in flight: the window that it is told. */
uint64_t ad__window_ops(const ad_config *c, const ad_grants *g);
uint64_t ad__window_bytes(const ad_config *c, const ad_grants *g);
/* Get how many ns a kernel of the principal may take; 0: any time. Its grant kernel-time decides, else the option. */
int64_t ad__kernel_limit(const ad_config *c, const char *principal, const ad_grants *g);

/* Get how many multiprocessors are reserved for the principal while others use a device much; 0: none. Its grant
 * sm-share decides, else the option. A principal of low priority has none. */
int ad__sm_share(const ad_config *c, const ad_grants *g);

/* Get how many buffers a session of the principal may have: option buffers, or a smaller grant. */
uint64_t ad__most_buffers(const ad_config *c, const ad_grants *grants);
/* Get how many buffers all sessions of the principal may have: option buffers-each. 0: root and the server's own user
 * have no such limit. */
uint64_t ad__most_buffers_each(const ad_config *c, const char *principal);

#endif
