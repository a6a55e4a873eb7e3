/* Owners of files, and whether a secret is safe in a file. */
#ifndef AD_PROTOCOL_OWNER_H
#define AD_PROTOCOL_OWNER_H

#include <sys/stat.h>

#include "protocol/base.h"

#define AD_OWNER_TEXT 96
#define AD_OWNER_NAME 33

/* Get a user's or group's name, or its number where it has none. */
void ad__owner_user(uid_t user, char out[AD_OWNER_NAME]);
void ad__owner_group(gid_t group, char out[AD_OWNER_NAME]);
/* Describe mode and owner of a file: "mode 0640, owner root:arrayd". */
void ad__owner_text(const struct stat *st, char out[AD_OWNER_TEXT]);
/* Find the end of a path that is too long for a message: it tells files apart better than the beginning. */
const char *ad__path_end(const char *path);
/* Tell whether this process is in the group. */
bool ad__owner_in_group(gid_t group);
/* Check that a file with a key or token is safe: it belongs to root or to this process's user, and nobody else may
 * write or read it. A file of root may be readable by a group of this process, as containers get secrets.
 * AD_E_DENIED: the fault has what, path, mode, owner and what to do. */
int ad__owner_check_secret(const struct stat *st, const char *what, const char *path, ad_fault *fault);
/* Check a file of secrets before it is opened. 0 also if there is no file, as opening it will report that. */
int ad__owner_check_path(const char *what, const char *path, ad_fault *fault);

#endif
