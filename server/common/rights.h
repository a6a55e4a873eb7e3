/* What a principal may, by the options and by its grants. */
#ifndef AD_SERVER_RIGHTS_H
#define AD_SERVER_RIGHTS_H

#include "server/common/config.h"
#include "server/common/grants.h"

/* Option kernels, for a principal; what a file names for it counts more, but not more than `none`. backend: "cpu",
 * where a kernel is native code with all rights of the server's user, so that with kernels=unix only this user and root
 * may; NULL: any, as far as it is known. */
bool ad__may_run_kernels(const ad_config *c, const char *principal, const ad_grants *grants, const char *backend);
/* It is the user that the server runs as. */
bool ad__is_server_user(const char *principal);
/* What may be in flight of one session of whom is granted this: the window that its client is told. */
uint64_t ad__window_ops(const ad_config *c, const ad_grants *g);
uint64_t ad__window_bytes(const ad_config *c, const ad_grants *g);
/* Nanoseconds that a kernel of this principal may take; 0: any time. The grant kernel-time, else the option. */
int64_t ad__kernel_limit(const ad_config *c, const char *principal, const ad_grants *g);

/* Buffers that a session of it may have. Option buffers, and a grant that is less. */
uint64_t ad__most_buffers(const ad_config *c, const ad_grants *grants);

#endif
