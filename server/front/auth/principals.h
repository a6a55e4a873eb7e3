/* Who may come in and what each may do: the files that the options tokens and principals name.
 *
 * One line for a principal, fields separated by blanks, # before a comment:
 *
 *     alice sha256:DIGITS memory=8G sessions=4                 tokens: name, hash of the token, grants
 *     uid:1000 kernels=no devices=0,1                          principals: who, grants
 *
 * who: uid:N, gid:N, uid:*, cert:NAME, cert:*, token:*. Of a line for a user, one for a group and the one for everybody
 * the first in this order counts. grants: connect, kernels, exports, admin (yes or no), names (yes, no or how many),
 * sessions and buffers (numbers), memory, memory-each and reserve (sizes), devices (numbers separated by commas, or
 * all), priority (low, normal or high). */
#ifndef AD_SERVER_FRONT_AUTH_PRINCIPALS_H
#define AD_SERVER_FRONT_AUTH_PRINCIPALS_H

#include <sys/types.h>

#include "server/common/channel.h"
#include "server/common/grants.h"

typedef struct ad_principals ad_principals;

/* Read both files; an empty path: none. The fault names file and line. AD_E_VALUE, AD_E_SYSTEM, AD_E_MEMORY;
 * AD_E_DENIED: others may write the file. */
int ad__principals_load(const char *tokens, const char *principals, ad_principals **out, ad_fault *fault);
void ad__principals_free(ad_principals *p);
/* Whether it can be the name of a token's owner. */
bool ad__principals_is_name(const char *text);
size_t ad__principals_tokens(const ad_principals *p); /* how many */
/* Who has a line, one after another: *at is 0 at first. NULL: no more. */
const char *ad__principals_next(const ad_principals *p, size_t *at, ad_grants *grants);

/* Whose token it is: *who becomes "token:NAME". False: nobody's. It takes as long whatever of it is right. */
bool ad__principals_token(const ad_principals *p, const char *token, size_t size, char who[AD_PRINCIPAL_SIZE],
                          ad_grants *grants);
/* *who becomes "cert:NAME". False: the name is too long for that. */
bool ad__principals_certificate(const ad_principals *p, const char *name, char who[AD_PRINCIPAL_SIZE],
                                ad_grants *grants);
/* Whether the file of principals has a line for who ("uid:1000"). */
bool ad__principals_names(const ad_principals *p, const char *who);
/* *who becomes "uid:N". groups: all that the peer is in. */
void ad__principals_user(const ad_principals *p, uid_t uid, size_t n, const gid_t *groups, char who[AD_PRINCIPAL_SIZE],
                         ad_grants *grants);

#endif
