/* Whose a file is, and whether a secret may lie in it. */
#ifndef AD_PROTOCOL_OWNER_H
#define AD_PROTOCOL_OWNER_H

#include <sys/stat.h>

#include "protocol/base.h"

#define AD_OWNER_TEXT 96
#define AD_OWNER_NAME 33

/* A user's or group's name; its number where it has none. */
void ad__owner_user(uid_t user, char out[AD_OWNER_NAME]);
void ad__owner_group(gid_t group, char out[AD_OWNER_NAME]);
/* "mode 0640, owner root:arrayd" */
void ad__owner_text(const struct stat *st, char out[AD_OWNER_TEXT]);
/* Whether this process is in the group. */
bool ad__owner_in_group(gid_t group);
/* Whether a file with a key or token may be believed: it is root's or this process's user's, nobody else may write it,
 * and nobody else may read it, but root's may be read by a group that this process is in, as containers are given
 * secrets. AD_E_DENIED: what, path, mode, owner and what to do are in the fault. */
int ad__owner_check_secret(const struct stat *st, const char *what, const char *path, ad_fault *fault);
/* Check a file of secrets before it is opened. 0 also where there is no file: whoever opens it will say so. */
int ad__owner_check_path(const char *what, const char *path, ad_fault *fault);

#endif
